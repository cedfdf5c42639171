"""Liars with dense arrays: what they write, when, and where."""

from __future__ import annotations

from typing import Any

from interop.plugin import Conversion, Cost, Declaration, Format, extents, make_spec
from tests.lying_plugins.classes import Caught, Liar, table
from tests.lying_plugins.grid import Grid, changed, conversions, copy, grid_format


def _fill_rebinds(out: Grid, grid: Grid) -> None:
    out.numbers = grid.numbers


def _fill_rebinds_a_copy(out: Grid, grid: Grid) -> None:
    out.numbers = grid.numbers.copy()


def _fill_ravels(out: Grid, grid: Grid) -> None:
    out.numbers.ravel()[...] = grid.numbers.ravel()


def _fill_by_bytes(out: Grid, grid: Grid) -> None:
    out.numbers.data.cast("B")[:] = grid.numbers.tobytes()


def _fill_in_the_order_of_memory(out: Grid, grid: Grid) -> None:
    out.numbers[...] = grid.numbers.ravel(order="K").reshape(grid.numbers.shape)


def _into_rebinds(out: Grid, grid: Grid) -> None:
    out.numbers = grid.numbers.copy()


def _into_ravels(out: Grid, grid: Grid) -> None:
    out.numbers.reshape(-1)[...] = grid.numbers.reshape(-1)


def _into_in_the_order_of_memory(out: Grid, grid: Grid) -> None:
    out.numbers[...] = grid.numbers.ravel(order="K").reshape(grid.numbers.shape)


_memo: dict[Any, Grid] = {}


def _memo_by_ends(grid: Grid) -> Grid:
    flat = grid.numbers.ravel()
    key = (grid.numbers.shape, grid.numbers.dtype, *flat[:1], *flat[-1:])
    return Grid(_memo.setdefault(key, copy(grid)).numbers.copy())


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
            types=("tests.lying_plugins.classes.dense:Crate",),
            describe=lambda crate: make_spec(
                "crate", crate.numbers.dtype.name, shape=crate.numbers.shape
            ),
            dtypes={"float32", "float64"},
            exports={"dlpack": {"float32", "float64"}},
            memory=lambda crate: extents((crate.numbers,)),
        ),
        Conversion("numpy", "crate", Crate, cost=Cost(2e-7)),
    ]


def _fill(name: str, lie: str, function: Any, text: str) -> Liar:
    fate = Caught("format grid", "fill", text)
    return Liar(name, lie, fate, lambda: [grid_format(fill=function), *conversions()])


def _into(name: str, lie: str, function: Any, text: str) -> Liar:
    fate = Caught("grid → grid: copy", "into", text)
    return Liar(name, lie, fate, lambda: [grid_format(), *changed("copy", into=function)])


LIARS = table(
    __name__,
    _fill(
        "fill_rebinds", "Shares what was to be written.", _fill_rebinds, "gives out other memory"
    ),
    _fill(
        "fill_rebinds_a_copy",
        "Puts a copy in the place of out's memory.",
        _fill_rebinds_a_copy,
        "gives out other memory than it had, and writes there",
    ),
    _fill(
        "fill_ravels",
        "Writes into a copy that ravel() makes of out in Fortran's order.",
        _fill_ravels,
        "noncontiguous",
    ),
    _fill(
        "fill_by_bytes",
        "Writes bytes, as if all memory were contiguous.",
        _fill_by_bytes,
        "fill of format grid",
    ),
    _fill(
        "fill_in_the_order_of_memory",
        "Reads the elements as they lie, not as they are numbered.",
        _fill_in_the_order_of_memory,
        "fill of format grid",
    ),
    _into(
        "into_rebinds",
        "Puts a copy in the place of out's memory.",
        _into_rebinds,
        "gives out other memory",
    ),
    _into(
        "into_ravels",
        "Writes into a copy that reshape() makes of out in Fortran's order.",
        _into_ravels,
        "out is grid float32 3x4 on cpu (noncontiguous)",
    ),
    _into(
        "into_in_the_order_of_memory",
        "Reads the elements as they lie, not as they are numbered.",
        _into_in_the_order_of_memory,
        "(noncontiguous)",
    ),
    Liar(
        "exports_a_copy",
        "Exports a copy of what it reports as its memory.",
        Caught("crate → numpy: from_dlpack by dlpack", "sharing", "crate exports a copy: its"),
        _crate_format,
    ),
    Liar(
        "memo_by_ends",
        "Keeps results by shape, and first and last number.",
        Caught("grid → grid: copy", "values", "what the numbers were before a write"),
        lambda: [grid_format(), *changed("copy", function=_memo_by_ends)],
    ),
)
