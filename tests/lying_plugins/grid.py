"""A small array class, an honest plugin for it, and how to make liars of that.

Each liar is the honest plugin, as in `honest.py`, with one thing changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from interop.kit import COPY, DEVICE, DTYPE, extents
from interop.plugin import Conversion, Cost, Format, Samples, Spec, size_class
from interop.plugin.advanced import Advanced
from tests.lying_plugins import Caught, Contained, Liar, Unseen

__all__ = [
    "LAYOUT",
    "NUMBERS",
    "Grid",
    "changed",
    "conversion_liar",
    "conversions",
    "format_liar",
    "grid_format",
]

Fate = Caught | Contained | Unseen

NUMBERS = frozenset({"float32", "float64", "int64"})
LAYOUT = frozenset({"noncontiguous", "negative_strides", "broadcast", "readonly"})
_MASKED, _GRAD = frozenset({"masked"}), frozenset({"grad"})


class Kind(NamedTuple):
    """What a grid calls its dtype."""

    name: str


class Grid:
    """An array: numbers, where they are, and perhaps a mask over them or a graph behind them."""

    def __init__(
        self, numbers: Any, mask: Any = None, device: str = "cpu", *, grad: bool = False
    ) -> None:
        self.numbers = numbers
        self.mask = mask
        self.device = device
        self.grad = grad

    @property
    def _dtype(self) -> Kind:
        return Kind(self.numbers.dtype.name)


def describe(grid: Grid) -> Spec:
    """Return what is known of a grid without touching its numbers."""
    numbers, traits = grid.numbers, set()
    if grid.mask is not None:
        traits.add("masked")
    if grid.grad:
        traits.add("grad")
    if not numbers.flags.writeable:
        traits.add("readonly")
    if not numbers.flags.c_contiguous:
        traits |= {"noncontiguous", "fortran"} if numbers.flags.f_contiguous else {"noncontiguous"}
        steps = [s for n, s in zip(numbers.shape, numbers.strides, strict=True) if n > 1]
        if min(steps) < 0:
            traits.add("negative_strides")
        if 0 in steps:
            traits.add("broadcast")
    return Spec(
        "grid", numbers.dtype.name, grid.device, numbers.shape, frozenset(traits), numbers.nbytes
    )


def fast_key(grid: Grid) -> tuple[object, ...] | None:
    """Return what tells plain grids apart."""
    spec = describe(grid)
    if spec.traits:
        return None
    return spec.dtype, spec.device, len(spec.shape), size_class(spec.nbytes)


def memory(grid: Grid) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory it lies in."""
    return extents((grid.numbers,))


def fill(out: Grid, grid: Grid) -> None:
    """Write the numbers of a grid into another."""
    out.numbers[...] = grid.numbers


def grid_to_numpy(grid: Grid) -> Any:
    """Return the array inside."""
    return grid.numbers


def numpy_to_grid(array: Any) -> Grid:
    """Return a grid over an array."""
    return Grid(array)


def copy(grid: Grid) -> Grid:
    """Return a grid with numbers of its own."""
    return Grid(grid.numbers.copy(order="C"))


def copy_into(out: Grid, grid: Grid) -> None:
    """Write what `copy` makes into a grid that is there already."""
    out.numbers[...] = grid.numbers


def copy_all(grids: list[Grid]) -> list[Grid]:
    """Return what `copy` makes of each of some grids."""
    return [*map(copy, grids)]


def cast(grid: Grid, *, dtype: str) -> Grid:
    """Return a grid of another dtype."""
    import numpy as np

    with np.errstate(all="ignore"):
        return Grid(grid.numbers.astype(dtype, order="C"))


def drop_mask(grid: Grid) -> Grid:
    """Return the grid without its mask."""
    return Grid(grid.numbers, grad=grid.grad)


def detach(grid: Grid) -> Grid:
    """Return the grid without the graph behind it."""
    return Grid(grid.numbers, grid.mask)


def move(grid: Grid, *, device: str) -> Grid:
    """Return a grid on another device."""
    return Grid(grid.numbers.copy(), device=device)


def masked(grid: Grid) -> Grid:
    """Return a grid with its first element masked."""
    import numpy as np

    mask = np.zeros(grid.numbers.shape, bool)
    mask[(slice(1),) * mask.ndim] = True
    return Grid(grid.numbers, mask, grid.device)


def backwards(grid: Grid) -> Grid:
    """Return a grid that is stored backwards along its first axis."""
    return Grid(grid.numbers[::-1].copy()[::-1], device=grid.device)


def columns(grid: Grid) -> Grid:
    """Return a grid that is stored column by column."""
    return Grid(grid.numbers.copy(order="F"), device=grid.device)


def spread(grid: Grid) -> Grid:
    """Return a grid whose rows are all the first."""
    import numpy as np

    numbers = grid.numbers.copy()
    strides = (0, *numbers.strides[1:])
    return Grid(np.lib.stride_tricks.as_strided(numbers, numbers.shape, strides))


def locked(grid: Grid) -> Grid:
    """Return a grid that is not to be written."""
    grid.numbers.flags.writeable = False
    return grid


def with_grad(grid: Grid) -> Grid:
    """Return a grid with a graph behind it."""
    return Grid(grid.numbers, grid.mask, grid.device, grad=True)


def grid_format(**changes: Any) -> Format:
    """Return the honest format, with some fields changed."""
    honest = Format(
        "grid",
        types=("tests.lying_plugins.grid:Grid",),
        describe=describe,
        dtypes=NUMBERS,
        devices=("cpu", "accelerator"),
        carries=LAYOUT | _MASKED | _GRAD,
        memory=memory,
        fill=fill,
        advanced=Advanced(fast_key=fast_key),
        samples=Samples(
            variants={
                "noncontiguous": columns,
                "negative_strides": backwards,
                "broadcast": spread,
                "masked": masked,
                "grad": with_grad,
                "readonly": locked,
            }
        ),
    )
    return honest._replace(**changes)


def conversions() -> list[Conversion]:
    """Return the honest conversions."""
    return [
        Conversion("grid", "numpy", grid_to_numpy, takes=LAYOUT, cost=Cost(2e-7)),
        Conversion("numpy", "grid", numpy_to_grid, takes=LAYOUT, cost=Cost(2e-7)),
        Conversion(
            *("grid", "grid", copy),
            takes=LAYOUT,
            effects=COPY,
            into=copy_into,
            batch=copy_all,
            cost=Cost(5e-7, 1e10),
        ),
        Conversion(
            *("grid", "grid", cast),
            takes=LAYOUT,
            changes=DTYPE,
            effects=COPY,
            cost=Cost(2e-6, 5e9),
        ),
        Conversion(
            *("grid", "grid", drop_mask),
            takes=LAYOUT | _GRAD,
            requires=_MASKED,
            drops=_MASKED,
            effects={"drop_mask"},
            cost=Cost(2e-7),
        ),
        Conversion(
            *("grid", "grid", detach),
            takes=LAYOUT | _MASKED,
            requires=_GRAD,
            drops=_GRAD,
            effects={"detach"},
            cost=Cost(2e-7),
        ),
        Conversion(
            *("grid", "grid", move),
            devices=None,
            takes=LAYOUT,
            changes=DEVICE,
            cost=Cost(5e-7, 1e10),
        ),
    ]


def changed(label: str, **changes: Any) -> list[Conversion]:
    """Return the honest conversions, with some fields of one changed."""
    function = changes.get("function")
    if function is not None:
        changes.setdefault("name", label)
    honest = conversions()
    lying = [
        conversion._replace(**changes) if conversion.label == label else conversion
        for conversion in honest
    ]
    assert lying != honest
    return lying


_PROMISES = {
    "copy": "grid → grid: copy",
    "cast": "grid → grid: cast",
    "move": "grid → grid: move",
    "drop_mask": "grid → grid: drop_mask if masked",
    "detach": "grid → grid: detach if grad",
    "grid_to_numpy": "grid → numpy: grid_to_numpy",
    "numpy_to_grid": "numpy → grid: numpy_to_grid",
}


def conversion_liar(
    label: str, check: str | Fate, text: str = "", *, field: str = "function", **changes: Any
) -> Callable[[Callable[..., Any]], Liar]:
    """Make a liar of a function that stands in a field of an honest conversion.

    Parameters
    ----------
    label : str
        Of the conversion.
    check : str or Caught or Contained or Unseen
        The check that finds the lie in the conversion, or another fate.
    text : str
        Part of the finding.
    field : str
        Where the function stands.
    **changes
        Of other fields of the conversion; ``format`` has those of its format.
    """
    fate = Caught(_PROMISES[label], check, text) if isinstance(check, str) else check
    of_format = changes.pop("format", {})

    def liar(function: Callable[..., Any]) -> Liar:
        lying = {field: function, **changes}
        return Liar.of(function, fate, lambda: [grid_format(**of_format), *changed(label, **lying)])

    return liar


def format_liar(
    field: str, check: str | Fate, text: str = "", **changes: Any
) -> Callable[[Callable[..., Any]], Liar]:
    """Make a liar of a function that stands in a field of the honest format.

    Parameters
    ----------
    field : str
    check : str or Caught or Contained or Unseen
        The check that finds the lie in the format, or another fate.
    text : str
        Part of the finding.
    **changes
        Of other fields of the format.
    """
    fate = Caught("format grid", check, text) if isinstance(check, str) else check

    def liar(function: Callable[..., Any]) -> Liar:
        lying = {field: function, **changes}
        return Liar.of(function, fate, lambda: [grid_format(**lying), *conversions()])

    return liar
