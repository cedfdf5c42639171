"""The commands that show what is there: ``plan``, ``formats``, ``conversions`` and the others."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from interop._api.interop import Interop
from interop._model.conversion import Conversion
from interop._model.display import duration
from interop._planning.route import HEADS
from interop.errors import RefusedError

from . import drawing
from .network import network, routes
from .notation import read, read_spec
from .output import FOUND, JSON, bar, fail, line, misused, show_json, show_table, told
from .page import page

__all__ = ["conversions", "formats", "graph", "plan", "plugins"]

_SOURCE = typer.Argument(
    metavar="SRC", help="What is converted: format[:device][:dtype][:shape][:trait...]."
)
_TARGET = typer.Argument(metavar="DST", help="What is wanted: format[:device][:dtype].")
_COPY = typer.Option("--copy/--no-copy", help="Own fresh memory, or never copy.")
_DTYPE = typer.Option("--dtype", help="The dtype wanted.")
_DEVICE = typer.Option("--device", help="The device wanted.")
_ALLOW = typer.Option("--allow", help="An effect to permit; may be given several times.")
_FORBID = typer.Option("--forbid", help="An effect to refuse; may be given several times.")
_DENSITY = typer.Option("--density", min=0, max=1, help="Share of a sparse array that is stored.")
_NAME = typer.Argument(help="Those of one framework or format alone.")
_FROM = typer.Option("--from", help="Those that start at a framework or format.")
_TO = typer.Option("--to", help="Those that lead to a framework or format.")

_STATES = {"missing": "dim", "failed": "red", "blocked": "dim", "dormant": "dim"}


@told
def plan(
    source: Annotated[str, _SOURCE],
    target: Annotated[str, _TARGET],
    *,
    copy: Annotated[bool | None, _COPY] = None,
    dtype: Annotated[str | None, _DTYPE] = None,
    device: Annotated[str | None, _DEVICE] = None,
    allow: Annotated[list[str] | None, _ALLOW] = None,
    forbid: Annotated[list[str] | None, _FORBID] = None,
    density: Annotated[float, _DENSITY] = 0.01,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Show the route that a conversion would take, and those that were refused.

    No framework and no device is needed: interop plan torch:cuda:float32:4096x4096 numpy
    """
    face = _face()
    spec = read_spec(face, source, density)
    words = read(face, target)
    if words.shape is not None or words.traits:
        misused(f"{target!r} is a target: write format[:device][:dtype].", as_json=as_json)
    for name, one, other in (("dtype", words.dtype, dtype), ("device", words.device, device)):
        if one and other and one != other:
            misused(f"the target and --{name} name two {name}s; name one.", as_json=as_json)
    request: dict[str, Any] = {
        "dtype": words.dtype or dtype,
        "device": words.device or device,
        "copy": copy,
        "allow": allow or (),
        "forbid": forbid or (),
    }
    try:
        route = face.plan(spec, to=words.format, **request)
    except RefusedError as refusal:
        fail(str(refusal), as_json=as_json, effects=sorted(refusal.effects))
    if as_json:
        show_json(route.as_dict())
        return
    line(route._title(), "bold")
    if route.steps:
        show_table(HEADS, route._rows(), _plan_style)
    line("")
    line(route._explain())


def _plan_style(column: int, cell: str) -> str:
    return ("green" if cell == "view" else "yellow") if column == 4 else ""


@told
def formats(
    name: Annotated[str | None, _NAME] = None, as_json: Annotated[bool, JSON] = False
) -> None:
    """List the formats, and whether their frameworks are installed."""
    face = _face()
    found = [one for one in face.formats() if name is None or _within(one.name, name)]
    if name is not None and not found:
        fail(f"there is no format {name!r}; leave out the name to see all.", as_json=as_json)
    if as_json:
        show_json(
            [
                {
                    "name": one.name,
                    "state": one.state,
                    "requires": one.format.requires,
                    "install": one.format.install,
                    "devices": list(one.format.devices),
                    "dtypes": sorted(one.format.dtypes),
                    "layout": one.format.layout,
                    "dense": one.format.is_dense,
                    "carries": sorted(one.format.carries),
                    "speaks": sorted(one.format.speaks),
                    "types": list(one.format.types),
                    "plugin": one.provenance.plugin,
                    "declared_by": str(one.provenance),
                }
                for one in found
            ]
        )
        return
    rows = [
        (
            one.name,
            one.state,
            one.format.layout or ("dense" if one.format.is_dense else "sparse"),
            str(len(one.format.dtypes)),
            ", ".join(one.format.devices),
            ", ".join(sorted(one.format.speaks)) or "—",
            str(one.provenance),
        )
        for one in found
    ]
    heads = ("format", "framework", "layout", "dtypes", "devices", "speaks", "declared by")
    show_table(heads, rows, lambda column, cell: _STATES.get(cell, "") if column == 1 else "")


@told
def conversions(
    source: Annotated[str | None, _FROM] = None,
    target: Annotated[str | None, _TO] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """List the conversions that are declared."""
    found = [
        one
        for one in _face().conversions()
        if (source is None or _within(one.conversion.source, source))
        and (target is None or _within(one.conversion.target, target))
    ]
    if as_json:
        show_json(
            [{"key": one.key, "state": one.state, **_as_dict(one.conversion)} for one in found]
        )
        return
    if not found:
        fail("no conversion is declared between these; leave out --from or --to to see more.")
    rows = [
        (
            one.conversion.source,
            one.conversion.target,
            one.conversion.label,
            ", ".join(sorted(one.conversion.effects)) or "view",
            ", ".join(sorted(one.conversion.requires)) or "—",
            ", ".join(sorted(one.conversion.devices)) if one.conversion.devices else "any",
            _speed(one.conversion),
            one.state,
            str(one.provenance),
        )
        for one in found
    ]
    heads = ("from", "to", "conversion", "effects", "only if", "on", "cost", "state", "declared by")
    show_table(heads, rows, lambda column, cell: _STATES.get(cell, "") if column == 7 else "")


def _speed(one: Conversion) -> str:
    rate = one.cost.bandwidth
    return duration(one.cost.latency) + ("" if rate is None else f" + {rate / 1e9:.3g} GB/s")


def _as_dict(one: Conversion) -> dict[str, Any]:
    """Return a declaration as what JSON can hold, without its functions."""
    fields = {**one._asdict(), "name": one.label, "aliases": one.aliases}
    return {
        name: sorted(field) if isinstance(field, frozenset) else field
        for name, field in {**fields, "cost": one.cost._asdict()}.items()
        if not callable(field)
    }


@told
def plugins(as_json: Annotated[bool, JSON] = False) -> None:
    """List the plugins that were found, and why any is not loaded."""
    found = _face().plugins()
    if as_json:
        show_json([one._asdict() for one in found])
    else:
        heads = ("plugin", "distribution", "version", "state", "formats", "conversions", "reason")
        rows = [
            (
                one.name,
                one.distribution,
                one.version,
                one.state,
                str(one.formats),
                str(one.conversions),
                one.reason or "—",
            )
            for one in found
        ]
        show_table(heads, rows, lambda column, cell: _STATES.get(cell, "") if column == 3 else "")
    if any(one.state == "failed" for one in found):
        raise typer.Exit(FOUND)


class Drawing(StrEnum):
    """How the graph can be drawn."""

    svg = "svg"
    mermaid = "mermaid"
    dot = "dot"
    html = "html"
    json = "json"


_DRAWING = typer.Option("--as", help="What to draw; by default what the file's name ends with.")
_FILE = typer.Option("--file", "-o", help="Where to write it instead of standard output.")
_ENDINGS = {".svg": "svg", ".mmd": "mermaid", ".dot": "dot", ".gv": "dot", ".html": "html"}


@told
def graph(
    kind: Annotated[Drawing | None, _DRAWING] = None,
    file: Annotated[Path | None, _FILE] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Draw the formats and the conversions between them.

    As SVG, Mermaid, DOT, or as one HTML page that shows the route and its cost for each pair.
    """
    ending = _ENDINGS.get(file.suffix.lower(), file.suffix.lower()[1:]) if file else "svg"
    wanted = "json" if as_json else kind.value if kind else ending
    if wanted not in set(Drawing):
        misused(f"{file} does not say what to draw; pass --as svg, mermaid, dot, html or json.")
    text = _drawn(wanted, quiet=file is None)
    if file is None:
        typer.echo(text)
        return
    try:
        file.write_text(text + "\n", "utf-8")
    except OSError as error:
        fail(f"{file} cannot be written ({error.strerror or error}); pass another --file.")
    line(f"wrote {file}")


def _drawn(wanted: str, *, quiet: bool) -> str:
    import json

    face = _face()
    shown = network(face)
    if wanted == "html":
        with bar("planning", hidden=quiet) as progress:
            return page(shown, routes(face, shown, progress))
    if wanted == "json":
        return json.dumps(shown.as_dict(), indent=1, ensure_ascii=False)
    return {"svg": drawing.svg, "mermaid": drawing.mermaid, "dot": drawing.dot}[wanted](shown)


def _within(name: str, wanted: str) -> bool:
    return name == wanted or name.startswith(f"{wanted}.")


def _face() -> Interop:
    from interop._api.default import default

    return default
