"""The commands that list what is registered: ``formats``, ``conversions`` and ``plugins``."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from interop._api.default import default
from interop._model.conversion import Conversion, Cost, Result
from interop._model.text import duration
from interop._registry.declared import Declared, DeclaredFormat
from interop.errors import InteropError

from .notation import read, read_spec, unknown_format
from .output import FAILURE, JSON, fail, misused, reports_errors, show_json, show_table, state_style

_NAME = typer.Argument(metavar="NAME", help="Only those of one framework, or one format.")
_FROM = typer.Option(
    "--from", metavar="NAME", help="Only those that start at a framework or format."
)
_TO = typer.Option("--to", metavar="NAME", help="Only those that lead to a framework or format.")

_FORMAT_HEADS = ("format", "framework", "layout", "dtypes", "devices", "exports", "declared by")
_CONVERSION_HEADS = (
    *("from", "to", "conversion", "effects", "only if", "on"),
    *("cost", "state", "declared by"),
)
_PLUGIN_HEADS = ("plugin", "distribution", "version", "state", "formats", "conversions", "reason")


@reports_errors
def formats(
    name: Annotated[str | None, _NAME] = None, as_json: Annotated[bool, JSON] = False
) -> None:
    """List the formats, and whether their frameworks are installed."""
    entries = [entry for entry in default.formats() if name is None or _is_within(entry.name, name)]
    if name is not None and not entries:
        misused(unknown_format(default, name))
    if as_json:
        show_json([_format_as_dict(entry) for entry in entries])
    else:
        origins = [entry.provenance for entry in entries]
        rows = map(_format_row, entries)
        show_table(_FORMAT_HEADS, rows, {"framework": state_style}, origins=origins)


def _format_row(entry: DeclaredFormat) -> tuple[str, ...]:
    format_ = entry.format
    return (
        entry.name,
        entry.state,
        format_.layout or ("dense" if format_.is_dense else "sparse"),
        str(len(format_.dtypes)),
        ", ".join(format_.devices),
        ", ".join(sorted(format_.exports)) or "—",
        str(entry.provenance),
    )


def _format_as_dict(entry: DeclaredFormat) -> dict[str, object]:
    format_ = entry.format
    return {
        "name": entry.name,
        "state": entry.state,
        "requires": format_.requires,
        "install": format_.install,
        "devices": list(format_.devices),
        "dtypes": sorted(format_.dtypes),
        "layout": format_.layout,
        "dense": format_.is_dense,
        "carries": sorted(format_.carries),
        "exports": sorted(format_.exports),
        "types": list(format_.types),
        "plugin": entry.provenance.plugin,
        "declared_by": str(entry.provenance),
    }


@reports_errors
def conversions(
    source: Annotated[str | None, _FROM] = None,
    target: Annotated[str | None, _TO] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """List the conversions that are declared."""
    declared = default.conversions()
    ends = {end for entry in declared for end in entry.conversion[:2]}
    for name in (source, target):
        if name is not None and not any(_is_within(end, name) for end in ends):
            misused(unknown_format(default, name))
    missing = {entry.name for entry in default.formats() if entry.state == "missing"}
    entries = [
        entry if missing.isdisjoint(entry.conversion[:2]) else entry._replace(state="missing")
        for entry in declared
        if (source is None or _is_within(entry.conversion.source, source))
        and (target is None or _is_within(entry.conversion.target, target))
    ]
    if as_json:
        show_json([_conversion_as_dict(entry) for entry in entries])
        return
    if not entries:
        fail(_nothing_declared(source, target))
    origins = [entry.provenance for entry in entries]
    rows = map(_conversion_row, entries)
    show_table(_CONVERSION_HEADS, rows, {"state": state_style}, origins=origins)


def _nothing_declared(source: str | None, target: str | None) -> str:
    """Say that no conversion is declared, and where to find a route of several steps."""
    if source is not None and target is not None:
        with suppress(InteropError):
            default.plan(read_spec(default, source), to=read(default, target).format)
            return (
                f"no conversion is declared from {source} straight to {target}; "
                f"'interop plan {source} {target}' shows the route there."
            )
    return "no conversion is declared between these; leave out --from or --to to see more."


def _conversion_row(entry: Declared) -> tuple[str, ...]:
    conversion = entry.conversion
    return (
        conversion.source,
        conversion.target,
        conversion.label,
        ", ".join(sorted(conversion.effects)) or "view",
        ", ".join(sorted(conversion.requires)) or "—",
        ", ".join(sorted(conversion.devices)) if conversion.devices else "any",
        _cost(conversion.cost),
        entry.state,
        str(entry.provenance),
    )


def _cost(cost: Cost) -> str:
    latency = duration(cost.latency)
    if cost.bandwidth is None:
        return latency
    rate, unit = (1e12, "TB") if cost.bandwidth >= 1e12 else (1e9, "GB")
    return f"{latency} + {cost.bandwidth / rate:.3g} {unit}/s"


def _conversion_as_dict(entry: Declared) -> dict[str, object]:
    conversion = entry.conversion
    facts = {"name": conversion.label, "aliases": conversion.aliases}
    return {"key": entry.key, "state": entry.state, **_as_dict(conversion), **facts}


def _as_dict(declaration: Conversion | Result | Cost) -> dict[str, object]:
    """Return the fields of a declaration that JSON can hold: all but its functions."""
    fields = declaration._asdict()
    return {name: _as_json(field) for name, field in fields.items() if not callable(field)}


def _as_json(field: object) -> object:
    if isinstance(field, (Result, Cost)):
        return _as_dict(field)
    return sorted(field) if isinstance(field, frozenset) else field


@reports_errors
def plugins(as_json: Annotated[bool, JSON] = False) -> None:
    """List the plugins, and why any is not loaded."""
    entries = default.plugins()
    if as_json:
        show_json([plugin._asdict() for plugin in entries])
    else:
        rows = [{head: cell or "—" for head, cell in plugin.row().items()} for plugin in entries]
        last = ("replaces",) if any(plugin.replaces for plugin in entries) else ()
        heads = (*_PLUGIN_HEADS, *last)
        cells = ([row[head] for head in heads] for row in rows)
        show_table(heads, cells, {"state": state_style})
    if any(plugin.state == "failed" for plugin in entries):
        raise typer.Exit(FAILURE)


def _is_within(name: str, framework: str) -> bool:
    """Return whether a name is that of a format, or of its framework."""
    return name == framework or name.startswith(f"{framework}.")
