"""Liars that describe their values, and report where they lie, wrongly."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from interop import Interop, Spec
from interop.plugin import Conversion, Cost, Format, Samples
from interop.plugin.advanced import Advanced
from tests.lying_plugins import Caught, Contained, Liar, Unseen, table
from tests.lying_plugins.grid import (
    LAYOUT,
    NUMBERS,
    Grid,
    changed,
    conversions,
    describe,
    format_liar,
    grid_format,
    grid_to_numpy,
    memory,
    numpy_to_grid,
)

_SPECS: dict[int, Spec] = {}
_COPIES: list[Any] = []


def _convert(mine: Interop) -> object:
    import numpy as np

    return mine.convert(Grid(np.ones(3)), "numpy")


# ---------------------------------------------------------------------- what a description says


@format_liar("describe", "describe", "raised KeyError")
def cannot_describe(grid: Grid) -> Spec:
    """Describes nothing at all."""
    raise KeyError(grid.numbers.dtype)


@format_liar("describe", "describe", "raised AttributeError: 'NoneType' object")
def up_to_four_axes(grid: Grid) -> Any:
    """Knows no fifth axis."""
    return describe(grid) if grid.numbers.ndim < 5 else None


@format_liar("describe", "variants", "does not say that a value is 'masked'")
def hides_the_mask(grid: Grid) -> Spec:
    """Reports no mask."""
    return describe(grid)._replace(traits=describe(grid).traits - {"masked"})


@format_liar("describe", "variants", "'readonly'")
def no_locks(grid: Grid) -> Spec:
    """Reports no lock."""
    return describe(grid)._replace(traits=describe(grid).traits - {"readonly"})


def _plain(describe: Callable[[Grid], Spec]) -> list[Any]:
    """Return a plugin without any trait, as somebody writes who has not thought of memory."""
    return [
        grid_format(
            describe=describe, devices=("cpu",), carries=(), fill=None, advanced=Advanced(),
            samples=Samples(),
        ),
        Conversion("grid", "numpy", grid_to_numpy, cost=Cost(2e-7)),
        Conversion("numpy", "grid", numpy_to_grid, cost=Cost(2e-7)),
    ]  # fmt: skip


def _forgetful(trait: str) -> Callable[[Callable[[Grid], Spec]], Liar]:
    text = f"does not say that a value is {trait!r}, although it is"
    fate = Caught("format grid", "describe", text)
    return lambda function: Liar.of(function, fate, lambda: _plain(function))


@_forgetful("readonly")
def forgets_locks(grid: Grid) -> Spec:
    """Says nothing of memory that may not be written."""
    return describe(grid)._replace(traits=describe(grid).traits - {"readonly"})


@_forgetful("negative_strides")
def forgets_strides(grid: Grid) -> Spec:
    """Says nothing of the order of the numbers in memory."""
    return describe(grid)._replace(traits=describe(grid).traits & {"readonly"})


@format_liar("describe", "variants", "'grad'")
def no_graphs(grid: Grid) -> Spec:
    """Reports no graph."""
    return describe(grid)._replace(traits=describe(grid).traits - {"grad"})


@format_liar("describe", "describe", "says 8 bytes")
def counts_once(grid: Grid) -> Spec:
    """Reports 8 bytes for all."""
    return describe(grid)._replace(nbytes=8)


@format_liar("describe", "describe", "bytes of grid")
def miscounts(grid: Grid) -> Spec:
    """Counts the elements for the bytes."""
    return describe(grid)._replace(nbytes=grid.numbers.size)


@format_liar("describe", "describe", "float32")
def one_dtype(grid: Grid) -> Spec:
    """Calls all float32."""
    return describe(grid)._replace(dtype="float32")


@format_liar("describe", "describe", "describe of format grid says grid int32")
def int64_as_int32(grid: Grid) -> Spec:
    """Calls int64 int32."""
    spec = describe(grid)
    return spec._replace(dtype="int32") if spec.dtype == "int64" else spec


def _of_named_dtypes(describe: Callable[[Grid], Spec]) -> Liar:
    """Make a liar whose maker says which dtypes it takes."""
    fate = Caught("format grid", "describe", "describe of format grid says grid float32 4x3")
    made = changed("numpy_to_grid", dtypes=NUMBERS)
    return Liar.of(describe, fate, lambda: [grid_format(describe=describe), *made])


@_of_named_dtypes
def reversed_shape(grid: Grid) -> Spec:
    """Reverses shapes."""
    return describe(grid)._replace(shape=grid.numbers.shape[::-1])


@format_liar("describe", "variants", "")
def keeps_specs_by_id(grid: Grid) -> Spec:
    """Keeps specs by the addresses of objects."""
    return _SPECS.setdefault(id(grid), describe(grid))


@format_liar("describe", "describe", "which has to be of type str or NoneType")
def dtype_object(grid: Grid) -> Spec:
    """Describes a dtype by an object of NumPy."""
    return describe(grid)._replace(dtype=grid.numbers.dtype)


@format_liar("describe", Contained(_convert, "grid"))
def dtype_object_in_use(grid: Grid) -> Spec:
    """Describes a dtype by an object of NumPy, and nobody has checked it."""
    return describe(grid)._replace(dtype=grid.numbers.dtype)


@format_liar("describe", Contained(_convert, "grid"))
def traits_as_a_set(grid: Grid) -> Any:
    """Gives a set of traits."""
    traits: Any = {"masked"}
    return describe(grid)._replace(traits=traits)


@format_liar("describe", Contained(_convert, "grid"))
def answers_none(grid: Grid) -> Any:
    """Has no answer."""
    return None


# ---------------------------------------------------------------------- what it takes to describe


@format_liar("describe", "describe", "20 times as long")
def slow_if_large(grid: Grid) -> Spec:
    """Sleeps for large values."""
    if grid.numbers.nbytes > 1_000_000:
        time.sleep(0.002)
    return describe(grid)


@format_liar("describe", Unseen("Sizes beyond its samples"))
def slow_if_huge(grid: Grid) -> Spec:
    """Sleeps for values of 2 GiB."""
    if grid.numbers.nbytes > 2**31:
        time.sleep(1.0)
    return describe(grid)


@format_liar("describe", "describe", "takes more than")
def describes_slowly(grid: Grid) -> Spec:
    """Takes its time to describe a value."""
    time.sleep(0.004)
    return describe(grid)


@format_liar("describe", "describe", "20 times as long")
def reads_everything(grid: Grid) -> Spec:
    """Reads all numbers."""
    for _ in range(20):
        grid.numbers.sum()
    return describe(grid)


@format_liar("describe", "describe", "reads the numbers of a large value into memory")
def reads_when_described(grid: Grid) -> Spec:
    """Copies the numbers to describe them, as one that is loaded from a file would."""
    grid.numbers.copy()
    return describe(grid)


@format_liar("describe", "describe", "exited with status 3")
def exits_when_described(grid: Grid) -> Spec:
    """Exits from the program that asks what a value is."""
    sys.exit(3)


# ---------------------------------------------------------------------- where values lie


@format_liar("memory", "memory", "beside its numbers")
def four_bytes_off(grid: Grid) -> tuple[tuple[int, int], ...]:
    """Reports memory four bytes off."""
    return tuple((address + 4, nbytes) for address, nbytes in memory(grid))


@format_liar("memory", "memory", "")
def is_off_by_one(grid: Grid) -> tuple[tuple[int, int], ...]:
    """Reports memory that begins one byte too late."""
    return tuple((address + 1, nbytes) for address, nbytes in memory(grid))


@format_liar("memory", "memory", "of the 48 bytes")
def half_of_it(grid: Grid) -> tuple[tuple[int, int], ...]:
    """Reports half of the memory."""
    return tuple((address, nbytes // 2) for address, nbytes in memory(grid))


@format_liar("memory", "memory", "where nothing can lie")
def nowhere(grid: Grid) -> tuple[tuple[int, int], ...]:
    """Reports no address."""
    return ((0, grid.numbers.nbytes),)


@format_liar("memory", "memory", "")
def of_the_object(grid: Grid) -> tuple[tuple[int, int], ...]:
    """Reports where the object lies."""
    return ((id(grid), grid.numbers.nbytes),)


@format_liar("memory", "memory", "other addresses every time")
def reports_other_addresses(grid: Grid) -> tuple[tuple[int, int], ...]:
    """Reports the address of a copy."""
    _COPIES.append(grid.numbers.copy())
    return ((_COPIES[-1].ctypes.data, _COPIES[-1].nbytes),)


# ---------------------------------------------------------------------- samples, keys and extents


def _declared(name: str, lie: str, check: str, text: str, **changes: Any) -> Liar:
    fate = Caught("format grid", check, text)
    return Liar(name, lie, fate, lambda: [grid_format(**changes), *conversions()])


def _nibbles(nbytes: Callable[[int], int]) -> list[Any]:
    """Return a plugin of numbers of four bits, which says how many bytes so many numbers take."""

    def describe(nibbles: Nibbles) -> Spec:
        shape = nibbles.numbers.shape
        return Spec("nibbles", "int4", "cpu", shape, nbytes=nbytes(nibbles.numbers.size))

    fields: dict[str, Any] = {"effects": {"copy"}, "cost": Cost(2e-6, 1e9)}
    types = (f"{__name__}:Nibbles",)
    return [
        Format("nibbles", types=types, describe=describe, dtypes={"int4"}),
        Conversion("numpy", "nibbles", lambda a: Nibbles(a.copy()), name="pack", **fields),
        Conversion("nibbles", "numpy", lambda n: n.numbers.copy(), name="unpack", **fields),
    ]


class Nibbles:
    """Numbers of four bits."""

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers


def _made(array: Any) -> Grid:
    return Grid(array.copy())


LIARS = table(
    globals(),
    Liar(
        "weighs_its_nibbles_as_nothing",
        "Says that numbers of four bits take no bytes.",
        Caught("format nibbles", "describe", "says 0 bytes of nibbles int4 3x4"),
        lambda: _nibbles(lambda size: 0),
    ),
    _declared(
        "miscounts_what_it_makes_itself",
        "Counts the elements for the bytes, and makes its samples itself.",
        *("describe", "says 12 bytes of grid float32 3x4 on cpu, not 48"),
        describe=lambda grid: describe(grid)._replace(nbytes=grid.numbers.size),
        samples=grid_format().samples._replace(make=_made, source="numpy"),
    ),
    _declared(
        "casts_its_samples",
        "Makes samples of another dtype than those that they are made of.",
        *("describe", "samples.make returned dtype float32, as describe has it, for"),
        samples=Samples(make=lambda array: Grid(array.astype("float32")), source="numpy"),
    ),
    _declared(
        "misspells_its_class",
        "Names a class that its module does not have.",
        *("describe", "type 'tests.lying_plugins.grid:Grid', which interop does not recognise"),
        types=("tests.lying_plugins.grid:Gird",),
    ),
    _declared(
        "mistakes_what_its_samples_are_made_of",
        "Takes an array for a grid where its samples are made.",
        *("describe", "samples.make fails on a value of numpy: AttributeError: "),
        samples=Samples(make=lambda grid: Grid(grid.numbers), source="numpy"),
    ),
    _declared(
        "transposes_its_samples",
        "Makes variants with their axes swapped.",
        *("variants", "returned shape 6x4, as describe has it, for a sample of 4x6"),
        samples=Samples(variants={"noncontiguous": lambda grid: Grid(grid.numbers.T)}),
    ),
    _declared(
        "trips_over_its_samples",
        "Has a mistake in the function that makes its masked grids.",
        *("variants", "variants['masked'] fails: AttributeError: 'Grid' object has no"),
        samples=Samples(variants={"masked": lambda grid: Grid(grid.numbers, grid.shape)}),
    ),
    _declared(
        "has_one_key_for_all",
        "Tells values apart by their dtype alone, whether they are odd or large.",
        *("fast_key", "the same key"),
        advanced=Advanced(fast_key=lambda grid: grid.numbers.dtype),
    ),
    _declared(
        "carries_what_nothing_has",
        "Carries a trait that is misspelt.",
        *("extent", "no sample has 'gard', and nothing else declares it; did you mean"),
        carries=LAYOUT | {"masked", "gard"},
    ),
    Liar(
        "device_that_is_not_there",
        "Has a device that no machine has.",
        Unseen("Missing devices"),
        lambda: [grid_format(devices=("cpu", "accelerator", "abacus")), *conversions()],
    ),
    Liar(
        "narrow_takes",
        "Takes no layout but the plain one, although it could.",
        Unseen("Modesty"),
        lambda: [
            grid_format(),
            *changed("grid_to_numpy", function=grid_to_numpy, takes=frozenset({"readonly"})),
        ],
    ),
)
