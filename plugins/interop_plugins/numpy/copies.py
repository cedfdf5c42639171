"""Copies of NumPy arrays: divided among threads, and made in blocks where rows cross columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import TYPE_CHECKING, Literal

from interop.kit import CastErrors, checked_cast, parallel_for, real_part
from interop.plugin import DTYPES

if TYPE_CHECKING:
    from types import EllipsisType
    from typing import TypeAlias

    from .dtypes import Array, DType

    Order: TypeAlias = Literal["C", "F", "K"]
    Box: TypeAlias = tuple[slice, ...] | EllipsisType
    Boxes: TypeAlias = "_Slabs | list[Box]"

#: Elements that are copied in some microseconds, so that NumPy's own way is good enough.
FEW = 2**16
#: Bytes below which `parallel_for` takes one thread.
_ALONE = 2**23
#: Bytes of a block, which must fit the second cache; elements along a side; and elements by which
#: the rows of a block are set apart, because rows at a power of two share their cache lines.
_BLOCK, _SIDE, _GAP = 2**19, 512, 16
#: Elements that are looked up at a time: NumPy makes an index of eight bytes of each.
_LOOKED_UP = 2**18
#: Elements of an innermost loop that is slower to enter than to run.
_SHORT = 8
#: Rows that cross columns are copied in blocks from this many elements on, and below it where the
#: stride is a multiple of this many bytes: a column's lines then push each other out of a cache.
_MANY, _CLASH = 2**20, 512
#: From this many bytes between neighbours on, a row touches a cache line for every element.
_FAR = 256


def written(value: Array, dtype: DType, order: Order = "C") -> Array:
    """Return a writable copy of `value`, cast to `dtype`.

    Parameters
    ----------
    value : numpy.ndarray
    dtype : numpy.dtype
    order : {"C", "F", "K"}
        The order of the result's elements in memory: by their indices, in reverse, or as in
        `value`.
    """
    if order == "F":
        return written(value.T, dtype).T
    few = value.size < FEW
    if few and value.dtype is dtype:
        return value.copy(order)
    import numpy as np

    if few or _is_straight(value, dtype, order):
        result: Array = checked_cast(_castable(value, dtype), dtype, order)
        return result
    out = np.empty_like(value, dtype, order, subok=False)
    write(out, value, fresh=True)
    return out


def is_simple(out: Array, value: Array) -> bool:
    """Tell whether NumPy writes elements of one dtype as fast as anything here would."""
    if value.size < FEW:
        return True
    return value.nbytes < _ALONE and value.flags.c_contiguous and out.flags.c_contiguous


def _is_straight(value: Array, dtype: DType, order: str) -> bool:
    """Tell whether elements are written one after the other as they lie, by one thread.

    NumPy needs no help with them, and finding that out block by block takes longer than writing.
    """
    user_defined = 2  # NumPy's `isbuiltin` of dtypes that others have added to it
    return (
        value.size * dtype.itemsize < _ALONE
        and user_defined not in {dtype.isbuiltin, value.dtype.isbuiltin}
        and (order == "K" or _crossing(value, _last(value.shape)) is None)
    )


def _last(shape: tuple[int, ...]) -> int:
    """Return the axis along which neighbours are closest in an array in C order."""
    return next(axis for axis in reversed(range(len(shape))) if shape[axis] > 1)


def write(out: Array, value: Array, *, fresh: bool = False) -> None:
    """Write `value` into `out`, cast on the way.

    Parameters
    ----------
    out, value : numpy.ndarray
        Of one shape, each of any strides.
    fresh : bool
        Whether the memory of `out` has not been touched yet.
    """
    # With the axes in the order of memory, boxes cut along the first are far from each other.
    axes = sorted(range(out.ndim), key=lambda axis: -abs(out.strides[axis]))
    out, value = out.transpose(axes), value.transpose(axes)
    boxes, copy = _cut(out, value)
    errors = CastErrors()

    def work(start: int, stop: int) -> None:
        for box in boxes[start:stop]:
            errors.run(copy, out[box], value[box])

    memory_bound = isinstance(boxes, _Slabs) and _is_fast(out.dtype) and _is_fast(value.dtype)
    parallel_for(work, len(boxes), out.nbytes, touching=fresh and memory_bound)
    errors.tell()


def _is_fast(dtype: DType) -> bool:
    """Tell whether NumPy casts a dtype as fast as memory can be read."""
    return dtype.isbuiltin == 1 and dtype.char != "e"


def _cut(out: Array, value: Array) -> tuple[Boxes, Callable[[Array, Array], None]]:
    """Return the boxes to divide the work into, and how to copy each."""
    axes = _crossing(value, _nearest(out)) if out.size >= FEW else None
    if axes is None:
        return _Slabs(out.shape), _copy
    if out.shape[axes[1]] <= _SHORT:
        across = {axes[1]: out.shape[axes[1]]}
        return list(_blocks(out.shape, across, out.itemsize)), _copy_by_one
    sides = {axis: min(out.shape[axis], _SIDE) for axis in axes}
    return list(_blocks(out.shape, sides, value.itemsize)), _turn


class _Slabs:
    """The boxes of an array that is cut along the first axis long enough for several threads.

    Neighbours are given as one: entering the copy again costs a thread a turn at the GIL.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        long = (axis for axis, length in enumerate(shape) if length >= _SHORT)
        self._axis = next(long, 0)
        self._length = shape[self._axis] if shape else 1

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, part: slice) -> list[Box]:
        return [(*(slice(None),) * self._axis, part) if self._length > 1 else ...]


def _copy(out: Array, value: Array) -> None:
    import numpy as np

    if value.itemsize == 1 and value.dtype.isbuiltin != 1 and out.size > 256:
        _look_up(out, value)
        return
    np.copyto(out, _castable(value, out.dtype), casting="unsafe")


def _look_up(out: Array, value: Array) -> None:
    """Cast elements of one byte by a table, of a dtype that NumPy casts one call at a time."""
    import numpy as np

    numbers = np.arange(256, dtype=np.uint8).view(value.dtype)
    table = np.empty(256, out.dtype)
    np.copyto(table, _castable(numbers, out.dtype), casting="unsafe")
    codes, step = value.view(np.uint8), max(1, _LOOKED_UP * len(value) // value.size)
    for start in range(0, len(value), step):
        part = slice(start, start + step)
        np.take(table, codes[part], out=out[part], mode="wrap")  # the other modes take longer


def _castable(value: Array, target: DType) -> Array:
    """Return an array with the numbers of `value` that NumPy can cast to `target` silently."""
    value = real_part(value, target)
    source = value.dtype
    if source.isbuiltin == 1:
        return value
    import numpy as np

    if np.can_cast(source, target, "unsafe"):
        return value
    # NumPy has no cast between some ml_dtypes; int8 or float32 holds every value of both.
    kinds = [DTYPES[dtype.name].kind for dtype in (source, target) if dtype.name in DTYPES]
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
    """Return the axes along which an array, and what it is written into, are best walked.

    None if it makes no difference: they are the same, or a cache holds the lines that the one
    leaves behind until the other needs them again.
    """
    along, stride = _nearest(value), abs(value.strides[across])
    if along == across or stride < _FAR:
        return None
    cached = value.size < _MANY and stride % _CLASH and value.shape[across] > _SHORT
    return None if cached else (along, across)


def _blocks(
    shape: tuple[int, ...], least: dict[int, int], itemsize: int
) -> Iterator[tuple[slice, ...]]:
    """Yield the blocks of an array, which fit a cache and have at least the given sides."""
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
        for inner in _boxes(shape[1:], sides[1:]):
            yield (slice(start, start + sides[0]), *inner)


def _turn(out: Array, value: Array) -> None:
    """Copy a block through a buffer in a cache: read in one order, write in the other."""
    # NumPy casts ml_dtypes with one call for each row.
    buffer = _buffer(value, value.dtype if value.dtype.isbuiltin == 1 else out.dtype)
    _copy(buffer, value)
    _copy(out, buffer)


def _copy_by_one(out: Array, value: Array) -> None:
    """Copy index by index along the short axis that would be NumPy's innermost loop."""
    last = _nearest(out)
    for index in range(out.shape[last]):
        place: tuple[slice | int, ...] = (*(slice(None),) * last, index)
        _copy(out[place], value[place])


def _buffer(value: Array, dtype: DType) -> Array:
    """Return an empty array of the shape and the order of `value`, its rows set apart."""
    import numpy as np

    order = sorted(range(value.ndim), key=lambda axis: -abs(value.strides[axis]))
    shape = [value.shape[axis] for axis in order]
    wide = np.empty((*shape[:-1], shape[-1] + _GAP), dtype)
    back = np.argsort(order)
    return wide[..., : shape[-1]].transpose(back)
