"""Makes samples of another dtype than those that they are made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Declaration, Samples, hookimpl
from tests.lying_plugins.grid import Grid, conversions, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("format grid", "describe", "samples.make returned dtype float32, as describe has it, for")


def lie(array: Any) -> Grid:
    """Return a grid of single precision, whatever it is made of."""
    return Grid(array.astype("float32"))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(samples=Samples(make=lie, source="numpy")), *conversions()]
