"""Copies of NumPy arrays: cut up among threads, and in blocks where rows and columns cross."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any, Literal

from interop.plugin import DTYPES, parallel_for

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

__all__ = ["write", "written"]

#: Elements that are not worth a thought, as they are copied in some microseconds.
_FEW = 2**16
#: Bytes for which `parallel_for` takes one thread.
_ALONE = 2**23
#: Bytes of a block, which the second cache has to hold; elements along a side; and elements by
#: which the rows of a block are set apart, because rows at a power of two share their cache lines.
_BLOCK, _SIDE, _GAP = 2**18, 256, 16
#: Elements that are looked up at a time: NumPy makes indices of eight bytes of them.
_LOOKED_UP = 2**18
#: Elements of an innermost loop that takes longer to enter than to run.
_SHORT = 8
#: Elements from which on rows that cross columns are copied in blocks, and bytes at multiples of
#: which the lines of a column push each other out of a cache, so that few are copied so, too.
_MANY, _CLASH = 2**20, 512
#: Bytes between neighbours from which on a row touches a cache line for every element.
_FAR = 256


def written(value: Array, dtype: np.dtype[Any], order: Literal["C", "K"] = "C") -> Array:
    """Return a writable copy of `value`, cast to `dtype` without a warning.

    Parameters
    ----------
    value : numpy.ndarray
    dtype : numpy.dtype
    order : {"C", "K"}
        Of the elements in memory: by their indices, or as they lie in that of `value`.
    """
    import numpy as np

    if value.size < _FEW or _is_straight(value, dtype, order):
        if value.dtype is dtype:
            return value.copy(order)
        with np.errstate(all="ignore"):
            return _castable(value, dtype).astype(dtype, order=order)
    out = np.empty_like(value, dtype, order, subok=False)
    write(out, value, fresh=True)
    return out


def _is_straight(value: Array, dtype: np.dtype[Any], order: str) -> bool:
    """Tell whether elements are written one after the other as they lie, by one thread.

    NumPy needs no help with them, and to find that out block by block takes longer than to write.
    """
    own = 2  # what NumPy calls the dtypes that others have added to it
    return (
        value.size * dtype.itemsize < _ALONE
        and own not in {dtype.isbuiltin, value.dtype.isbuiltin}
        and (order == "K" or _crossing(value, _last(value.shape)) is None)
    )


def _last(shape: tuple[int, ...]) -> int:
    """Return the axis along which neighbours are closest in an array in C order."""
    return next(axis for axis in reversed(range(len(shape))) if shape[axis] > 1)


def write(out: Array, value: Array, *, fresh: bool = False) -> None:
    """Write `value` into `out`, cast on the way, without a warning.

    Parameters
    ----------
    out, value : numpy.ndarray
        Of one shape, each of any strides.
    fresh : bool
        Whether nobody has written to `out` so far.
    """
    import numpy as np

    # Where it lies in memory as it is indexed, what is cut off first is far from the rest.
    axes = sorted(range(out.ndim), key=lambda axis: -abs(out.strides[axis]))
    out, value = out.transpose(axes), value.transpose(axes)
    boxes, copy = _cut(out, value)

    def work(start: int, stop: int) -> None:
        # The state of errors is each thread's own.
        with np.errstate(all="ignore"):
            for box in boxes[start:stop]:
                copy(out[box], value[box])

    easy = isinstance(boxes, _Slabs) and _is_easy(out.dtype) and _is_easy(value.dtype)
    parallel_for(work, len(boxes), out.nbytes, touching=fresh and easy)


def _is_easy(dtype: np.dtype[Any]) -> bool:
    """Tell whether NumPy casts a dtype as fast as memory can be read."""
    return dtype.isbuiltin == 1 and dtype.char != "e"


def _cut(out: Array, value: Array) -> tuple[Any, Callable[[Array, Array], None]]:
    """Return into which boxes to cut the work, and how to copy each."""
    axes = _crossing(value, _nearest(out)) if out.size >= _FEW else None
    if axes is None:
        return _Slabs(out.shape), _copy
    if out.shape[axes[1]] <= _SHORT:
        across = {axes[1]: out.shape[axes[1]]}
        return list(_blocks(out.shape, across, out.itemsize)), _copy_by_one
    sides = {axis: min(out.shape[axis], _SIDE) for axis in axes}
    return list(_blocks(out.shape, sides, value.itemsize)), _turn


class _Slabs:
    """What cuts an array along the first axis that is long enough for several threads.

    Several neighbours are one: to enter the copy again costs a thread a turn at the GIL.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        long = (axis for axis, length in enumerate(shape) if length >= _SHORT)
        self._axis = next(long, 0)
        self._length = shape[self._axis] if shape else 1

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, part: slice) -> list[Any]:
        return [(*(slice(None),) * self._axis, part) if self._length > 1 else ...]


def _copy(out: Array, value: Array) -> None:
    import numpy as np

    if value.itemsize == 1 and value.dtype.isbuiltin != 1 and out.size > 256:
        _look_up(out, value)
        return
    np.copyto(out, _castable(value, out.dtype), casting="unsafe")


def _look_up(out: Array, value: Array) -> None:
    """Cast numbers of which there are 256, of dtypes that NumPy would cast by calls."""
    import numpy as np

    numbers = np.arange(256, dtype=np.uint8).view(value.dtype)
    table = np.empty(256, out.dtype)
    np.copyto(table, _castable(numbers, out.dtype), casting="unsafe")
    codes, step = value.view(np.uint8), max(1, _LOOKED_UP * len(value) // value.size)
    for start in range(0, len(value), step):
        part = slice(start, start + step)
        np.take(table, codes[part], out=out[part], mode="wrap")  # the other modes take longer


def _castable(value: Array, wanted: np.dtype[Any]) -> Array:
    """Return an array with the numbers of `value` that NumPy can cast to `wanted` in silence."""
    import numpy as np

    if value.dtype.kind == "c" and wanted.kind not in "cb":
        return value.real
    if value.dtype.isbuiltin == 1 or np.can_cast(value.dtype, wanted, "unsafe"):
        return value
    # Two ml_dtypes that do not know each other: both of these hold every value of either.
    kinds = [DTYPES[dtype.name].kind for dtype in (value.dtype, wanted) if dtype.name in DTYPES]
    return value.astype(np.int8 if set(kinds) <= {"u", "i"} else np.float32)


def _nearest(array: Array) -> int:
    """Return the axis along which neighbours are closest in memory."""
    steps = [
        (abs(step), -axis)
        for axis, (length, step) in enumerate(zip(array.shape, array.strides, strict=True))
        if length > 1
    ]
    return -min(steps)[1]


def _crossing(value: Array, across: int) -> tuple[int, int] | None:
    """Return the axes along which an array is walked best, and what it is written into.

    None says that it makes no difference: they are the same, or a cache holds the lines that the
    one leaves behind until the other needs them again.
    """
    along, far = _nearest(value), abs(value.strides[across])
    if along == across or far < _FAR:
        return None
    kept = value.size < _MANY and far % _CLASH and value.shape[across] > _SHORT
    return None if kept else (along, across)


def _blocks(
    shape: tuple[int, ...], least: dict[int, int], itemsize: int
) -> Iterator[tuple[slice, ...]]:
    """Yield what cuts an array into blocks that fit a cache, with at least the given sides."""
    room = _BLOCK // itemsize
    sides = [least.get(axis, 1) for axis in range(len(shape))]
    for axis in reversed(range(len(shape))):
        others = prod(sides) // sides[axis]
        sides[axis] = max(sides[axis], min(shape[axis], room // others))
    yield from _boxes(shape, tuple(sides))


def _boxes(shape: tuple[int, ...], sides: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    if not shape:
        yield ()
        return
    for start in range(0, shape[0], sides[0]):
        for rest in _boxes(shape[1:], sides[1:]):
            yield (slice(start, start + sides[0]), *rest)


def _turn(out: Array, value: Array) -> None:
    """Copy a block by way of memory in a cache: read in the one's order, write in the other's."""
    # NumPy casts ml_dtypes by calls, one for each row.
    buffer = _buffer(value, value.dtype if value.dtype.isbuiltin == 1 else out.dtype)
    _copy(buffer, value)
    _copy(out, buffer)


def _copy_by_one(out: Array, value: Array) -> None:
    """Copy place by place along the short axis that would be NumPy's innermost loop."""
    last = _nearest(out)
    for index in range(out.shape[last]):
        place: Any = (*(slice(None),) * last, index)
        _copy(out[place], value[place])


def _buffer(value: Array, dtype: np.dtype[Any]) -> Array:
    """Return an empty array of the shape and the order of `value`, its rows set apart."""
    import numpy as np

    order = sorted(range(value.ndim), key=lambda axis: -abs(value.strides[axis]))
    shape = [value.shape[axis] for axis in order]
    wide = np.empty((*shape[:-1], shape[-1] + _GAP), dtype)
    back = np.argsort(order)
    return wide[..., : shape[-1]].transpose(back)
