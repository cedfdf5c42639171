"""Liars with casts."""

from __future__ import annotations

from interop.plugin import Cost
from tests.lying_plugins import Caught, Liar, table
from tests.lying_plugins.grid import Grid, changed, conversion_liar, grid_format


@conversion_liar("cast", "values", "other numbers")
def rounds(grid: Grid, *, dtype: str) -> Grid:
    """Rounds where casts cut off: 1.5 becomes 2."""
    numbers = grid.numbers.round() if dtype == "int64" else grid.numbers
    return Grid(numbers.astype(dtype, order="C"))


@conversion_liar("cast", "values", "other numbers")
def floors(grid: Grid, *, dtype: str) -> Grid:
    """Rounds down where casts cut off."""
    import numpy as np

    numbers = np.floor(grid.numbers) if dtype == "int64" else grid.numbers
    return Grid(numbers.astype(dtype, order="C"))


@conversion_liar("cast", "values", "fewer digits")
def cuts_off(grid: Grid, *, dtype: str) -> Grid:
    """Cuts digits off on the way to float32, where casts round."""
    numbers = grid.numbers
    if numbers.dtype == "float64" and dtype == "float32":
        bits = numbers.copy().view("i8") & ~((1 << 29) - 1)
        numbers = bits.view("f8")
    return Grid(numbers.astype(dtype, order="C"))


@conversion_liar("cast", "values", "than it was given")
def by_float32(grid: Grid, *, dtype: str) -> Grid:
    """Casts by way of float32."""
    return Grid(grid.numbers.astype("float32").astype(dtype, order="C"))


@conversion_liar("cast", "values", "than it was given")
def by_float64(grid: Grid, *, dtype: str) -> Grid:
    """Casts integers by way of float64."""
    return Grid(grid.numbers.astype("float64").astype(dtype, order="C"))


@conversion_liar("cast", "values", "other numbers")
def absolute(grid: Grid, *, dtype: str) -> Grid:
    """Loses the sign."""
    return Grid(abs(grid.numbers).astype(dtype, order="C"))


@conversion_liar("cast", "source", "changed the numbers")
def writes_back(grid: Grid, *, dtype: str) -> Grid:
    """Casts its argument, too."""
    result = grid.numbers.astype(dtype, order="C")
    if grid.numbers.flags.writeable:
        grid.numbers[...] = result
    return Grid(result)


@conversion_liar("cast", "values", "other numbers")
def saturates(grid: Grid, *, dtype: str) -> Grid:
    """Lets nothing exceed a thousand."""
    return Grid(grid.numbers.clip(-1000, 1000).astype(dtype, order="C"))


@conversion_liar("cast", "dtype", "returns")
def never_casts(grid: Grid, *, dtype: str) -> Grid:
    """Returns the dtype that came."""
    return Grid(grid.numbers.copy(order="C"))


LIARS = table(
    globals(),
    Liar(
        "casts_in_place",
        "Casts by a copy, and declares no effect.",
        Caught("grid → grid: cast", "sharing", "cast says that it shares memory, but copies"),
        lambda: [grid_format(), *changed("cast", effects=frozenset())],
    ),
    Liar(
        "costs_nothing",
        "Declares a thousandth of the time that it takes.",
        Caught("grid → grid: cast", "cost", "times as long as its declared cost"),
        lambda: [grid_format(), *changed("cast", cost=Cost(1e-9, 5e12))],
    ),
)
