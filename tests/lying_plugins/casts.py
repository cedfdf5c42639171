"""Liars with casts, copies and numbers."""

from __future__ import annotations

from typing import Any

from tests.lying_plugins.classes import Caught, Liar, Unseen, table
from tests.lying_plugins.grid import Grid, changed, grid_format


def _rounded(grid: Grid, *, dtype: str) -> Grid:
    """Round to the nearest integer."""
    import numpy as np

    numbers = np.rint(grid.numbers) if dtype == "int64" else grid.numbers
    return Grid(numbers.astype(dtype, order="C"))


def _floored(grid: Grid, *, dtype: str) -> Grid:
    import numpy as np

    numbers = np.floor(grid.numbers) if dtype == "int64" else grid.numbers
    return Grid(numbers.astype(dtype, order="C"))


def _cut_off(grid: Grid, *, dtype: str) -> Grid:
    """Cut digits off on the way to float32, instead of rounding."""
    import numpy as np

    numbers = grid.numbers
    if numbers.dtype == "float64" and dtype == "float32":
        bits = numbers.copy().view("u8") & ~np.uint64((1 << 29) - 1)
        numbers = bits.view("f8")
    return Grid(numbers.astype(dtype, order="C"))


def _by_float32(grid: Grid, *, dtype: str) -> Grid:
    return Grid(grid.numbers.astype("float32").astype(dtype, order="C"))


def _by_float64(grid: Grid, *, dtype: str) -> Grid:
    return Grid(grid.numbers.astype("float64").astype(dtype, order="C"))


def _absolute(grid: Grid, *, dtype: str) -> Grid:
    return Grid(abs(grid.numbers).astype(dtype, order="C"))


def _in_place(grid: Grid, *, dtype: str) -> Grid:
    grid.numbers.ravel()[:0] = 0
    result = grid.numbers.astype(dtype, order="C")
    if grid.numbers.flags.writeable:
        grid.numbers[...] = result
    return Grid(result)


def _saturated(grid: Grid, *, dtype: str) -> Grid:
    """Let nothing be larger than a thousand."""
    return Grid(grid.numbers.clip(-1000, 1000).astype(dtype, order="C"))


def _never_casts(grid: Grid, *, dtype: str) -> Grid:
    return Grid(grid.numbers.copy(order="C"))


def _one_in_a_thousand(grid: Grid) -> Grid:
    numbers = grid.numbers.copy(order="C")
    numbers[numbers == 1234.5678] = 0
    return Grid(numbers)


def _cast(name: str, lie: str, function: Any, check: str, text: str) -> Liar:
    fate = Caught("grid → grid: cast", check, text)
    return Liar(name, lie, fate, lambda: [grid_format(), *changed("cast", function=function)])


LIARS = table(
    __name__,
    _cast(
        "rounds", "Rounds where casts cut off: 1.5 becomes 2.", _rounded, "values", "other numbers"
    ),
    _cast("floors", "Rounds down where casts cut off.", _floored, "values", "other numbers"),
    _cast("cuts_off", "Cuts off where casts round.", _cut_off, "values", "fewer digits"),
    _cast("by_float32", "Casts by way of float32.", _by_float32, "values", "than it was given"),
    _cast(
        "by_float64",
        "Casts integers by way of float64.",
        _by_float64,
        "values",
        "than it was given",
    ),
    _cast("absolute", "Loses the sign.", _absolute, "values", "other numbers"),
    _cast("writes_back", "Casts its argument, too.", _in_place, "source", "changed the numbers"),
    _cast("saturates", "Lets nothing exceed a thousand.", _saturated, "values", "other numbers"),
    _cast("never_casts", "Returns the dtype that came.", _never_casts, "dtype", "returns"),
    Liar(
        "errs_for_one_number",
        "Turns 1234.5678 into zero.",
        Unseen("Numbers beyond its samples"),
        lambda: [grid_format(), *changed("copy", function=_one_in_a_thousand)],
    ),
    Liar(
        "casts_in_place",
        "Casts by a copy, and declares no effect.",
        Caught("grid → grid: cast", "sharing", "cast says that it shares memory, but copies"),
        lambda: [grid_format(), *changed("cast", effects=frozenset())],
    ),
)
