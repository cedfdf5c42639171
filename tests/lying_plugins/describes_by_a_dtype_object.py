"""Describes a dtype by an object of NumPy's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Declaration, Spec, hookimpl
from tests.lying_plugins.grid import Grid, conversions, describe, grid_format

#: Who lies, in which check, and what the finding says.
LIE = ("format grid", "describe", "which has to be the name of a dtype")


def lie(grid: Grid) -> Spec:
    """Return a spec with an object in the place of a name."""
    dtype: Any = grid.numbers.dtype
    return describe(grid)._replace(dtype=dtype)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(describe=lie), *conversions()]
