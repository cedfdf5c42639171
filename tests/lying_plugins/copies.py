"""Liars that copy: what they return, when, and what they leave behind."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from typing import Any

from interop.plugin import Cost, Declined, Result
from tests.lying_plugins import Caught, Liar, Unseen, table
from tests.lying_plugins.grid import (
    LAYOUT,
    NUMBERS,
    Grid,
    changed,
    conversion_liar,
    copy,
    grid_format,
)

_KEPT: list[Any] = []
_SEEN: dict[object, Grid] = {}
_SCRATCH: dict[object, Any] = {}
_CALLS = count()
_THREADS = count()

# ---------------------------------------------------------------------- numbers


@conversion_liar("copy", "values", "other numbers")
def ends_at_a_million(grid: Grid) -> Grid:
    """Makes large numbers smaller."""
    numbers = grid.numbers.copy(order="C")
    numbers[numbers > 1e6] = 1e6
    return Grid(numbers)


@conversion_liar("copy", "values", "other numbers")
def ends_at_infinity(grid: Grid) -> Grid:
    """Makes infinities finite."""
    import numpy as np

    return Grid(np.nan_to_num(grid.numbers.copy(order="C"), nan=np.nan))


@conversion_liar("copy", "values", "other numbers")
def flushes_small_numbers(grid: Grid) -> Grid:
    """Makes the smallest numbers zero."""
    result = copy(grid)
    result.numbers[abs(result.numbers) < 1e-38] *= 0
    return result


@conversion_liar("copy", "values", "other numbers")
def forgets_nan(grid: Grid) -> Grid:
    """Makes NaN zero."""
    result = copy(grid)
    result.numbers[result.numbers != result.numbers] = 0
    return result


@conversion_liar("copy", "values", "or another NaN")
def has_one_nan(grid: Grid) -> Grid:
    """Forgets what a NaN carries."""
    result = copy(grid)
    if result.numbers.dtype.kind == "f":
        result.numbers[result.numbers != result.numbers] = float("nan")
    return result


@conversion_liar("copy", "values", "a zero of another sign")
def has_one_zero(grid: Grid) -> Grid:
    """Knows no zero below zero."""
    result = copy(grid)
    result.numbers[result.numbers == 0] = 0
    return result


@conversion_liar("copy", "values", "fewer digits than it was given")
def narrows(grid: Grid) -> Grid:
    """Makes float64 of float64 by way of float32."""
    numbers = grid.numbers
    narrow = numbers.astype("int32" if numbers.dtype.kind == "i" else "float32")
    return Grid(narrow.astype(numbers.dtype, order="C"))


@conversion_liar("copy", "values", "neither 0 nor 1", format={"dtypes": NUMBERS | {"bool"}})
def true_is_two(grid: Grid) -> Grid:
    """Stores true as two."""
    numbers = grid.numbers.copy(order="C")
    return Grid((numbers.view("u1") * 2).view(bool) if numbers.dtype == bool else numbers)


@conversion_liar("copy", Unseen("Numbers beyond its samples"))
def errs_for_one_number(grid: Grid) -> Grid:
    """Turns 1234.5678 into zero."""
    result = copy(grid)
    result.numbers[result.numbers == 1234.5678] = 0
    return result


# ---------------------------------------------------------------------- which values


@conversion_liar("copy", "values", "another order")
def errs_in_four_dimensions(grid: Grid) -> Grid:
    """Turns values of four axes around."""
    numbers = grid.numbers.copy(order="C")
    return Grid(numbers[::-1].copy() if numbers.ndim == 4 else numbers)


@conversion_liar("copy", "values", "other numbers")
def errs_in_the_many(grid: Grid) -> Grid:
    """Loses the last number of large values."""
    result = copy(grid)
    if result.numbers.size > 100_000:
        result.numbers[-1, -1] = 0
    return result


@conversion_liar("copy", "values", "another order")
def turns_every_second_time(grid: Grid) -> Grid:
    """Turns every second result around."""
    numbers = grid.numbers.copy(order="C")
    return Grid(numbers[..., ::-1].copy() if next(_CALLS) % 2 and numbers.ndim else numbers)


@conversion_liar("copy", "values", "")
def remembers_by_shape(grid: Grid) -> Grid:
    """Returns a copy of the first value that had this shape and dtype.

    A cache by address lies in the same way, but only where an address is used again: its lie comes to light by luck.
    """
    key = (grid.numbers.shape, grid.numbers.dtype)
    return copy(_SEEN.setdefault(key, copy(grid)))


@conversion_liar("copy", "values", "what the numbers were before a write")
def memo_by_ends(grid: Grid) -> Grid:
    """Keeps results by shape, and first and last number."""
    flat = grid.numbers.ravel()
    key = ("ends", grid.numbers.shape, grid.numbers.dtype, *flat[:1], *flat[-1:])
    return copy(_SEEN.setdefault(key, copy(grid)))


@conversion_liar("copy", "values", "fails on grid")
def raises_its_own(grid: Grid) -> Grid:
    """Fails on arrays with no elements."""
    if not grid.numbers.size:
        raise type("GridError", (Exception,), {})
    return copy(grid)


@conversion_liar("copy", "traits", "loses 'grad', which it takes", takes=LAYOUT | {"grad"})
def loses_the_graph(grid: Grid) -> Grid:
    """Drops the graph, and does not declare that."""
    return copy(grid)


# ---------------------------------------------------------------------- memory


@conversion_liar("copy", "sharing", "says that it copies, but shares memory", takes=frozenset())
def shares_in_silence(grid: Grid) -> Grid:
    """Declares that it copies, but shares memory."""
    return Grid(grid.numbers)


@conversion_liar("copy", "readonly", "cannot be written")
def locks_its_copies(grid: Grid) -> Grid:
    """Makes copies that cannot be written."""
    result = copy(grid)
    result.numbers.flags.writeable = False
    return result


@conversion_liar("copy", "threads", "changes the result of an earlier one")
def one_scratch(grid: Grid) -> Grid:
    """Returns the same memory every time."""
    key = (grid.numbers.shape, grid.numbers.dtype)
    scratch = _SCRATCH.setdefault(key, grid.numbers.copy(order="C"))
    scratch[...] = grid.numbers
    return Grid(scratch)


@conversion_liar("copy", "threads", "not safe to call from several threads")
def not_for_threads(grid: Grid) -> Grid:
    """Keeps its argument where other threads put theirs."""
    _SCRATCH["grid"] = grid
    numbers = _SCRATCH["grid"].numbers
    return Grid(numbers.copy(order="C"))


@conversion_liar("copy", "source", "changed the numbers of its argument")
def mutates_its_input(grid: Grid) -> Grid:
    """Leaves its argument with other numbers."""
    result = copy(grid)
    if grid.numbers.flags.writeable:
        grid.numbers[...] = grid.numbers.ravel()[::-1].reshape(grid.numbers.shape).copy()
    return result


@conversion_liar("copy", "source", "argument, grid float32 3x4 (readonly)")
def writes_where_it_must_not(grid: Grid) -> Grid:
    """Unlocks and clears read-only memory."""
    result = copy(grid)
    if not grid.numbers.flags.writeable:
        grid.numbers.flags.writeable = True
        grid.numbers[...] = 0
        grid.numbers.flags.writeable = False
    return result


@conversion_liar("copy", "source", "and then declined it")
def declines_too_late(grid: Grid) -> Grid:
    """Declines values after it has written into them."""
    if grid.numbers.ndim != 2 and grid.numbers.size > 1:
        grid.numbers[...] = 0
        msg = "it has too many axes, or too few"
        raise Declined(msg)
    return copy(grid)


@conversion_liar("copy", "leaks", "leaves its results behind")
def keeps_its_results(grid: Grid) -> Grid:
    """Never lets go of what it returns."""
    _KEPT.append(copy(grid))
    return _KEPT[-1]


@conversion_liar("copy", "leaks", "leaves its sources behind")
def keeps_its_sources(grid: Grid) -> Grid:
    """Never lets go of what it is given."""
    _KEPT.append(grid)
    return copy(grid)


@conversion_liar("copy", "leaks", "leaves open files behind")
def leaves_files_open(grid: Grid) -> Grid:
    """Opens files and does not close them."""
    _KEPT.append(os.open(os.devnull, os.O_RDONLY))
    return copy(grid)


@conversion_liar("copy", "leaks", "leaves threads behind")
def leaves_threads(grid: Grid) -> Grid:
    """Starts threads that do not end."""
    if next(_THREADS) < 500:  # the machine is to survive it
        threading.Thread(target=threading.Event().wait, args=(5,), daemon=True).start()
    return copy(grid)


# ---------------------------------------------------------------------- time and the process


@conversion_liar("copy", "cost", "times as long as its declared cost")
def sleeps(grid: Grid) -> Grid:
    """Takes its time without doing anything."""
    time.sleep(0.002)
    return copy(grid)


@conversion_liar("copy", "values", "the process died of SIGSEGV")
def ends_the_process(grid: Grid) -> Grid:
    """Reads memory that is not there, for values that are not one block."""
    if not grid.numbers.flags.c_contiguous:
        ctypes.string_at(1, 8)
    return copy(grid)


@conversion_liar("copy", "values", "exited with status 3 when copy")
def exits_when_it_copies(grid: Grid) -> Grid:
    """Exits from the program that asks for a copy."""
    sys.exit(3)


def _in_c_order(grid: Grid, *, order: str = "C") -> Grid:
    return copy(grid)


def turned(function: Callable[..., Grid], *orders: str) -> list[Any]:
    """Return the declarations of a copy that takes an order."""
    result = Result(orders=orders or ("C", "F"))
    steps = changed("copy", function=function, changes={"order"}, result=result, batch=None)
    return [grid_format(), *steps]


LIARS = table(
    globals(),
    Liar(
        "turns_nothing",
        "Is asked for a copy in Fortran order, and makes one in C order.",
        Caught("grid → grid: copy", "traits", "that is not 'fortran', which it declares"),
        lambda: turned(_in_c_order),
    ),
    Liar(
        "turns_everything",
        "Is asked for a copy in C order, and makes one in Fortran order.",
        Caught("grid → grid: copy", "traits", "is 'fortran', which it does not declare"),
        lambda: turned(lambda grid, *, order="C": Grid(grid.numbers.copy(order="F"))),
    ),
    Liar(
        "keeps_no_order",
        "Is asked for a copy in the order of the elements, and makes one in C order.",
        Caught("grid → grid: copy", "traits", "that is not 'fortran', which it declares"),
        lambda: turned(_in_c_order, "C", "K"),
    ),
    Liar(
        "keeps_every_order",
        "Is asked for a copy in C order, and makes one in the order of the elements.",
        Caught("grid → grid: copy", "traits", "returns a result that is 'fortran', "),
        lambda: turned(lambda grid, *, order="C": Grid(grid.numbers.copy(order="K")), "C", "K"),
    ),
    Liar(
        "costs_the_world",
        "Declares a thousand times the time that it takes.",
        Caught("grid → grid: copy", "cost", "of its declared cost"),
        lambda: [grid_format(), *changed("copy", cost=Cost(5e-4, 1e7))],
    ),
)
