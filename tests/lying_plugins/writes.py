"""Liars that write into memory that is there already, and one that exports other memory."""

from __future__ import annotations

from typing import Any

from interop.kit import extents
from interop.plugin import Conversion, Cost, Declaration, Format, make_spec
from tests.lying_plugins import Caught, Liar, table
from tests.lying_plugins.grid import Grid, conversion_liar, format_liar


@format_liar("fill", "fill", "gives out other memory")
def fill_rebinds(out: Grid, grid: Grid) -> None:
    """Shares what was to be written."""
    out.numbers = grid.numbers


@format_liar("fill", "fill", "gives out other memory than it had, and writes there")
def fill_rebinds_a_copy(out: Grid, grid: Grid) -> None:
    """Puts a copy in the place of out's memory."""
    out.numbers = grid.numbers.copy()


@format_liar("fill", "fill", "noncontiguous")
def fill_ravels(out: Grid, grid: Grid) -> None:
    """Writes into a copy that ravel() makes of out in Fortran's order."""
    out.numbers.ravel()[...] = grid.numbers.ravel()


@format_liar("fill", "fill", "fill of format grid")
def fill_by_bytes(out: Grid, grid: Grid) -> None:
    """Writes bytes, as if all memory were contiguous."""
    out.numbers.data.cast("B")[:] = grid.numbers.tobytes()


@format_liar("fill", "fill", "fill of format grid")
def fill_in_the_order_of_memory(out: Grid, grid: Grid) -> None:
    """Reads the elements as they lie, not as they are numbered."""
    out.numbers[...] = grid.numbers.ravel(order="K").reshape(grid.numbers.shape)


@format_liar("fill", "fill", "writes other numbers")
def fill_backwards(out: Grid, grid: Grid) -> None:
    """Writes other numbers into out than it was given."""
    out.numbers[...] = grid.numbers[::-1]


@conversion_liar("copy", "into", "gives out other memory", field="into")
def into_rebinds(out: Grid, grid: Grid) -> None:
    """Puts a copy in the place of out's memory."""
    out.numbers = grid.numbers.copy()


@conversion_liar("copy", "into", "3x4 on cpu (fortran, noncontiguous)", field="into")
def into_ravels(out: Grid, grid: Grid) -> None:
    """Writes into a copy that reshape() makes of out in Fortran's order."""
    out.numbers.reshape(-1)[...] = grid.numbers.reshape(-1)


@conversion_liar("copy", "into", "(noncontiguous)", field="into")
def into_in_the_order_of_memory(out: Grid, grid: Grid) -> None:
    """Reads the elements as they lie, not as they are numbered."""
    out.numbers[...] = grid.numbers.ravel(order="K").reshape(grid.numbers.shape)


@conversion_liar("copy", "into", "writes other numbers", field="into")
def into_backwards(out: Grid, grid: Grid) -> None:
    """Writes results into out in the wrong order."""
    out.numbers[...] = grid.numbers[::-1]


class Crate:
    """An array that exports a copy."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.numbers.copy().__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _crate_format() -> list[Declaration]:
    return [
        Format(
            "crate",
            types=(f"{__name__}:Crate",),
            describe=lambda crate: make_spec(
                "crate", crate.numbers.dtype.name, shape=crate.numbers.shape
            ),
            dtypes={"float32", "float64"},
            exports={"dlpack": {"float32", "float64"}},
            memory=lambda crate: extents((crate.numbers,)),
        ),
        Conversion("numpy", "crate", Crate, cost=Cost(2e-7)),
    ]


LIARS = table(
    globals(),
    Liar(
        "exports_a_copy",
        "Exports a copy of what it reports as its memory.",
        Caught(
            "crate → numpy: from_dlpack by dlpack", "sharing", *(2 * ["crate exports a copy: its"])
        ),
        _crate_format,
    ),
)
