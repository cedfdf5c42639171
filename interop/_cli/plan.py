"""The command ``plan``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand

from interop._api.default import default
from interop._model.dtype import DTYPES
from interop._model.effect import EFFECTS
from interop._model.spec import TRAITS
from interop._model.typing import OrderLike
from interop._planning.plan import HEADS, refused, rows, title
from interop.errors import RefusedError

from .notation import read, read_spec
from .output import (
    FAILURE,
    JSON,
    fail,
    line,
    misused,
    reports_errors,
    show_json,
    show_table,
)


def _starting(names: Iterable[str], typed: str) -> list[str]:
    return [name for name in names if name.startswith(typed)]


def _formats(typed: str) -> list[str]:
    """Return the formats that begin like what was typed, for the shell to complete."""
    return _starting((declared.name for declared in default.formats()), typed)


def _effects(typed: str) -> list[str]:
    return _starting(EFFECTS, typed)


def _dtypes(typed: str) -> list[str]:
    return _starting(DTYPES, typed)


_SOURCE = typer.Argument(
    metavar="SRC",
    help="The value to convert: format[:device][:dtype][:shape][:trait...].",
    autocompletion=_formats,
)
_TARGET = typer.Argument(
    metavar="DST", help="The target: format[:device][:dtype].", autocompletion=_formats
)
_COPY = typer.Option("--copy/--no-copy", help="Always use fresh memory, or never copy.")
_ORDER = typer.Option(
    "--order", metavar="ORDER", help="The order of the elements of a dense result: C or F."
)
_DTYPE = typer.Option(
    "--dtype", metavar="DTYPE", help="The dtype of the result.", autocompletion=_dtypes
)
_DEVICE = typer.Option("--device", metavar="DEVICE", help="The device of the result.")
_ALLOW = typer.Option(
    "--allow",
    metavar="EFFECT",
    help="An effect to permit; may be given several times.",
    autocompletion=_effects,
)
_FORBID = typer.Option(
    "--forbid",
    metavar="EFFECT",
    help="An effect to refuse; may be given several times.",
    autocompletion=_effects,
)
_DENSITY = typer.Option(
    "--density",
    metavar="SHARE",
    min=0,
    max=1,
    help="The share of elements that a sparse array stores.",
)


class PlanCommand(TyperCommand):
    """The command, whose help explains effects and traits below the options."""

    def format_epilog(self, ctx: object, formatter: Any) -> None:
        """Write the effects and the traits."""
        defaults = {True: "permitted", False: "refused"}
        with formatter.section("Effects, and whether they are permitted by default"):
            formatter.write_dl(
                [(name, f"{defaults[e.allowed]}; {e.meaning}") for name, e in EFFECTS.items()]
            )
        with formatter.section("Traits"):
            formatter.write_dl(list(TRAITS.items()))


@reports_errors
def plan(
    source: Annotated[str, _SOURCE],
    target: Annotated[str, _TARGET],
    *,
    copy: Annotated[bool | None, _COPY] = None,
    order: Annotated[str | None, _ORDER] = None,
    dtype: Annotated[str | None, _DTYPE] = None,
    device: Annotated[str | None, _DEVICE] = None,
    allow: Annotated[list[str] | None, _ALLOW] = None,
    forbid: Annotated[list[str] | None, _FORBID] = None,
    density: Annotated[float, _DENSITY] = 0.01,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Show the route of a conversion, and the routes refused.

    No framework and no device is needed.

    Example: interop plan torch:cuda:float32:4096x4096 numpy
    """
    spec = read_spec(default, source, density)
    result = read(default, target)
    if result.shape is not None or result.traits:
        misused(f"{target!r} is a target: write format[:device][:dtype].")
    for name, word, option in (("dtype", result.dtype, dtype), ("device", result.device, device)):
        if word and option and word != option:
            misused(f"the target and --{name} name two {name}s; name one.")
    try:
        route = default.plan(
            spec,
            to=result.format,
            dtype=result.dtype or dtype,
            device=result.device or device,
            copy=copy,
            order=cast("OrderLike", order),  # any other word is refused there
            allow=frozenset(allow or ()),
            forbid=frozenset(forbid or ()),
        )
    except RefusedError as refusal:
        fail(str(refusal), effects=sorted(refusal.effects))
    if as_json:
        show_json(route.as_dict())
        raise typer.Exit(FAILURE if route.problem else 0)
    line(title(route), "bold")
    if route.steps:
        origins = [step.provenance for step in route.steps]
        styles = {"effects": lambda cell: "green" if cell == "view" else "yellow"}
        # A step starts where the one before ends, and the first as the title says.
        show_table(HEADS, rows(route), styles, spare="from", origins=origins)
    for missing in route.missing:
        line(missing, "yellow")
    if others := refused(route):
        for text in ("", *others.split("\n")):
            line(text)
    if route.problem:
        raise typer.Exit(FAILURE)
