"""Liars between grids and NumPy's arrays, and between devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interop.plugin import Cost, Samples
from tests.lying_plugins import Caught, Liar, table
from tests.lying_plugins.grid import LAYOUT, Grid, changed, conversion_liar, grid_format


def _borrowed(owner: Any, interface: dict[str, Any]) -> Any:
    """Return an array over memory that it keeps alive by an owner."""
    import numpy as np

    return np.asarray(type("Memory", (), {"__array_interface__": interface, "owner": owner})())


@conversion_liar("grid_to_numpy", "sharing", "says that it shares memory, but copies")
def copies_in_silence(grid: Grid) -> Any:
    """Declares that it shares memory, but copies."""
    return grid.numbers.copy(order="K")


@conversion_liar(
    "grid_to_numpy", "traits", "loses 'masked', which it takes", takes=LAYOUT | {"masked"}
)
def drops_the_mask(grid: Grid) -> Any:
    """Takes masked grids, and returns their numbers without the mask."""
    return grid.numbers


@conversion_liar("grid_to_numpy", "values", "grid_to_numpy returns")
def errs_in_columns(grid: Grid) -> Any:
    """Reads what is stored column by column as if it lay row by row."""
    numbers = grid.numbers
    if numbers.flags.f_contiguous and not numbers.flags.c_contiguous:
        return numbers.ravel("K").reshape(numbers.shape)
    return numbers


def _as_one_block(grid: Grid) -> Any:
    import numpy as np

    numbers = grid.numbers
    if not numbers.flags.f_contiguous:
        return numbers
    return np.ndarray(numbers.shape, numbers.dtype, numbers.T)


@conversion_liar("grid_to_numpy", "values", "its elements in another order")
def wrong_strides(grid: Grid) -> Any:
    """Takes the memory for one block in C's order."""
    return _as_one_block(grid)


@conversion_liar("grid_to_numpy", "shape", "returns the shape")
def transposes(grid: Grid) -> Any:
    """Returns rows for columns."""
    return grid.numbers.T


@conversion_liar("grid_to_numpy", "lifetime", "changes when its source is gone")
def forgets_the_owner(grid: Grid) -> Any:
    """Returns an array over memory that nobody keeps alive."""
    return _borrowed(None, dict(grid.numbers.__array_interface__))


@conversion_liar("grid_to_numpy", "lifetime", "memory alive")
def frees_what_has_gaps(grid: Grid) -> Any:
    """Keeps no memory alive that is stored with gaps."""
    numbers = grid.numbers
    if numbers.flags.c_contiguous or not numbers.size:
        return numbers
    return _borrowed(None, {**numbers.__array_interface__})


@conversion_liar("grid_to_numpy", "readonly", "makes read-only memory writable")
def opens_what_is_locked(grid: Grid) -> Any:
    """Lets read-only memory be written."""
    interface = grid.numbers.__array_interface__
    return _borrowed(grid, {**interface, "data": (interface["data"][0], False)})


@conversion_liar(
    *("grid_to_numpy", "readonly", "makes read-only memory writable, which drops="),
    drops=frozenset({"readonly"}),
)
def opens_what_is_locked_as_declared(grid: Grid) -> Any:
    """Lets read-only memory be written, and declares that it drops the lock."""
    interface = grid.numbers.__array_interface__
    return _borrowed(grid, {**interface, "data": (interface["data"][0], False)})


@conversion_liar(
    "grid_to_numpy", "fast_path", "for which every route is refused", field="fast_path"
)
def takes_the_fast_path_through_the_mask(grid: Grid) -> Any:
    """Has a fast path that does not look for masks."""
    return grid.numbers


@conversion_liar("grid_to_numpy", "fast_path", "has no attribute 'indices'", field="fast_path")
def takes_a_fast_path_that_leads_nowhere(grid: Any) -> Any:
    """Has a fast path for values that have what a grid has not."""
    return grid.indices


@conversion_liar("copy", "fast_path", "the batch of copy returns others", field="batch")
def mixes_up_a_batch(grids: list[Grid]) -> list[Grid]:
    """Copies several grids at once, and returns them in another order."""
    return [Grid(grid.numbers.copy()) for grid in reversed(grids)]


@conversion_liar("copy", "fast_path", "the batch of copy returns others", field="batch")
def loses_one_of_a_batch(grids: list[Grid]) -> list[Grid]:
    """Copies several grids at once, but for the last."""
    return [Grid(grid.numbers.copy()) for grid in grids[:-1]]


@conversion_liar("copy", "fast_path", "the batch of copy returns others", field="batch")
def casts_a_batch(grids: list[Grid]) -> list[Grid]:
    """Copies several grids at once, into another dtype."""
    return [Grid(grid.numbers.astype("float64")) for grid in grids]


@conversion_liar("copy", "fast_path", "the batch of copy shares memory", field="batch")
def shares_a_batch(grids: list[Grid]) -> list[Grid]:
    """Copies one grid, and shares the memory of several."""
    return [Grid(grid.numbers) for grid in grids]


@conversion_liar("copy", "fast_path", "the batch of copy returns others", field="batch")
def unpacks_a_batch(grids: list[Grid]) -> list[Any]:
    """Copies several grids at once, into arrays of NumPy."""
    return [grid.numbers.copy() for grid in grids]


@conversion_liar("copy", "fast_path", "the batch of copy returns others", field="batch")
def gives_a_batch_one_shape(grids: list[Grid]) -> list[Grid]:
    """Copies several grids at once, in the shape of the first."""
    shape = grids[0].numbers.shape
    return [Grid(grid.numbers.reshape(shape).copy()) for grid in grids]


def _offers_what_is_masked() -> list[Any]:
    def adopt(offer: Callable[[Grid], Any], grid: Grid) -> Any:
        return offer(grid)

    honest = grid_format()
    offering = honest.advanced._replace(offers={"grid": lambda grid: grid.numbers})
    return [honest._replace(advanced=offering), *changed("grid_to_numpy", adopt=adopt)]


@conversion_liar("numpy_to_grid", "dtype", "returns float32 for float64")
def wrong_dtype(array: Any) -> Grid:
    """Returns float32 where float64 is promised."""
    return Grid(array.astype("float32") if array.dtype == "float64" else array)


@conversion_liar(
    *("numpy_to_grid", "values", "fewer digits"),
    format={"memory": None},
    effects=frozenset({"copy"}),
    dtypes=frozenset({"float64"}),
    cost=Cost(2e-6, 5e9),
)
def lies_out_of_sight(array: Any) -> Grid:
    """Narrows, in a format that does not report where its numbers lie."""
    return Grid(array.astype("float32").astype(array.dtype, order="C"))


@conversion_liar("move", "values", "unexpected keyword argument 'device'")
def takes_no_device(grid: Grid) -> Grid:
    """Moves a value, and cannot be told where to."""
    return Grid(grid.numbers.copy(), device="accelerator")


@conversion_liar("move", "device", "returns a result on")
def stays_where_it_was(grid: Grid, *, device: str) -> Grid:
    """Declares that it moves, and does not."""
    return Grid(grid.numbers.copy(), device=grid.device)


@conversion_liar("detach", "traits", "is 'grad', but declares that it drops that")
def keeps_what_it_drops(grid: Grid) -> Grid:
    """Declares that the graph is gone, and keeps it."""
    return Grid(grid.numbers, grid.mask, grad=True)


@conversion_liar("drop_mask", "effects", "without the effect 'drop_mask'", effects=frozenset())
def drops_the_mask_as_declared(grid: Grid) -> Grid:
    """Declares that it drops masks, and not the effect of that."""
    return Grid(grid.numbers, grad=grid.grad)


def _with_make(**changes: Any) -> list[Any]:
    """Return a plugin that makes its samples itself, of which another conversion is changed."""
    samples = Samples(make=lambda array: Grid(array.copy()), source="numpy")
    labels = ("grid_to_numpy", "numpy_to_grid", "copy", "cast")
    return [
        grid_format(carries=LAYOUT, devices=("cpu",), samples=samples),
        *(c for c in changed("grid_to_numpy", **changes) if c.label in labels),
    ]


LIARS = table(
    globals(),
    Liar(
        "wrong_strides_and_makes_its_samples",
        "Takes the memory for one block in C's order, and makes its samples itself.",
        Caught("grid → numpy: grid_to_numpy", "values", "in another order", "grid_to_numpy"),
        lambda: _with_make(function=_as_one_block),
    ),
    Liar(
        "clips_and_makes_its_samples",
        "Loses what is below zero on the only way out, and makes its samples itself.",
        Caught("grid → numpy: grid_to_numpy", "values", "other numbers", "grid_to_numpy"),
        lambda: _with_make(
            function=lambda grid: grid.numbers.clip(0, out=grid.numbers.copy(order="C")),
            effects={"copy"},
            cost=Cost(2e-6, 5e9),
        ),
    ),
    Liar(
        "offers_what_is_masked",
        "Offers the numbers of a grid without looking for masks, and adopts them.",
        Caught("grid → numpy: grid_to_numpy", "fast_path", "for which every route is refused"),
        _offers_what_is_masked,
    ),
    Liar(
        "misspells_a_trait",
        "Requires a trait that no value has.",
        Caught(
            "grid → grid: drop_mask if maksed",
            "extent",
            "no sample has 'maksed', and nothing else declares it; did you mean 'masked'?",
        ),
        lambda: [grid_format(), *changed("drop_mask", requires={"maksed"})],
    ),
)
