"""The command ``plan``."""

from __future__ import annotations

from typing import Annotated

import typer

from interop._api.default import default
from interop._planning.route import HEADS
from interop.errors import RefusedError

from .notation import read, read_spec
from .output import JSON, fail, line, misused, reports_errors, show_json, show_table

__all__ = ["plan"]

_SOURCE = typer.Argument(
    metavar="SRC", help="The value to convert: format[:device][:dtype][:shape][:trait...]."
)
_TARGET = typer.Argument(metavar="DST", help="The target: format[:device][:dtype].")
_COPY = typer.Option("--copy/--no-copy", help="Always use fresh memory, or never copy.")
_DTYPE = typer.Option("--dtype", help="The dtype of the result.")
_DEVICE = typer.Option("--device", help="The device of the result.")
_ALLOW = typer.Option("--allow", help="An effect to permit; may be given several times.")
_FORBID = typer.Option("--forbid", help="An effect to refuse; may be given several times.")
_DENSITY = typer.Option(
    "--density", min=0, max=1, help="The share of elements that a sparse array stores."
)


@reports_errors
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
    """Show the route that a conversion would take, and the routes that were refused.

    No framework and no device is needed: interop plan torch:cuda:float32:4096x4096 numpy
    """
    spec = read_spec(default, source, density)
    result = read(default, target)
    if result.shape is not None or result.traits:
        misused(f"{target!r} is a target: write format[:device][:dtype].", as_json=as_json)
    for name, word, option in (("dtype", result.dtype, dtype), ("device", result.device, device)):
        if word and option and word != option:
            misused(f"the target and --{name} name two {name}s; name one.", as_json=as_json)
    try:
        route = default.plan(
            spec,
            to=result.format,
            dtype=result.dtype or dtype,
            device=result.device or device,
            copy=copy,
            allow=allow or (),
            forbid=forbid or (),
        )
    except RefusedError as refusal:
        fail(str(refusal), as_json=as_json, effects=sorted(refusal.effects))
    if as_json:
        show_json(route.as_dict())
        return
    line(route._title(), "bold")
    if route.steps:
        show_table(HEADS, route._rows(), _style)
    line("")
    line(route._explain())


def _style(column: int, cell: str) -> str:
    return ("green" if cell == "view" else "yellow") if column == 4 else ""
