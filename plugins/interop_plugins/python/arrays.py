"""Sequences of arrays of one shape, stacked into one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import interop
from interop.errors import Declined, InteropError
from interop.kit import EMPTY, numpy_dtype

from .numbers import ODD_NUMBERS, no_arrays

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from interop.plugin import Format

_DTYPE = attrgetter("dtype")
#: Where arrays that are stacked may lie.
DEVICES = ("cpu", "cuda", "rocm", "metal", "tpu", "oneapi")

#: Bytes from which on the planner asks first how much memory is left.
_SMALL = 2**24

#: What an array interface says of a block of bytes.
_OF_BYTES = frozenset({"shape", "typestr", "data", "version"})

#: The traits of arrays that their stack can have, too, or can go without.
CARRIES = EMPTY | {"grad", "labelled", "mixed"}


def stack(value: Sequence[Any], *, dtype: str) -> NDArray[Any]:
    """Return a NumPy array of the elements of a sequence, which are converted one by one."""
    import numpy as np

    target = numpy_dtype(dtype)
    rows = [
        # A subclass with a unit, say, stays one; here its numbers count.
        row if type(row) is np.ndarray else np.asarray(interop.convert(row, "numpy"))
        for row in value
    ]
    dtypes = {row.dtype for row in rows}
    if dtypes == {target}:
        return np.array(rows)  # which is faster than `stack`
    if len(dtypes) == 1 and rows[0].nbytes * len(rows) < _SMALL:
        stacked: NDArray[Any] = interop.convert(np.array(rows), "numpy", dtype=target)
        return stacked
    result = np.empty((len(rows), *rows[0].shape), target)
    for n, row in enumerate(rows):
        same = row.dtype == target
        result[n, ...] = row if same else interop.convert(row, "numpy", dtype=target)
    return result


def numpy_fast_path(value: Any) -> Any:
    """Return the stack of small, plain arrays of one type, dtype and shape; else pass."""
    import numpy as np

    if not value or len({*map(type, value)}) != 1:
        return NotImplemented
    if type(value[0]) is not np.ndarray:
        value = _as_arrays(value)
        if type(value) is not list:  # it is stacked already, or has to be planned
            return value
    if value[0].nbytes * len(value) >= _SMALL:
        return NotImplemented
    dtypes = {*map(_DTYPE, value)}
    dtype = dtypes.pop()
    if dtypes or dtype.num >= ODD_NUMBERS or not dtype.isnative:
        return NotImplemented
    try:
        return np.array(value)
    except ValueError:  # they differ in shape
        return NotImplemented


def _as_arrays(value: Sequence[Any]) -> Any:
    """Return values of one type, on one device, as NumPy's arrays; pass if they need more."""
    kind: Any = type(value[0])
    try:
        return (_readers.get(kind) or _reader(value[0]))(value)
    except (InteropError, AttributeError, KeyError, TypeError, ValueError):
        return NotImplemented  # the plan, which is asked then, says why


@lru_cache(maxsize=256)
def formats_of(type_name: str) -> tuple[Format, ...]:
    """Return the formats that declare a type of a name."""
    formats = (declared.format for declared in interop.formats())
    return tuple(format_ for format_ in formats if type_name in format_.types)


#: What reads values of types that formats declare. Others are freed with their last value.
_readers: dict[type, Callable[[Sequence[Any]], Any]] = {}


def _reader(first: Any) -> Callable[[Sequence[Any]], Any]:
    """Return what makes NumPy's arrays of values of a type, one by one or stacked."""
    kind = type(first)
    formats = formats_of(f"{kind.__module__}:{kind.__qualname__}")
    read = _reader_of(first, formats)
    if formats:
        _readers[kind] = read
    return read


def _reader_of(first: Any, formats: Sequence[Format]) -> Callable[[Sequence[Any]], Any]:
    """Return what reads values of a type that some formats declare.

    Values of a type of one dense format are arrays, and so are images, which say of what bytes they
    are. Those of a type of several formats are stacked by their own framework, which knows which of
    them are dense, and whether they are on one device.
    """
    kind: Any = type(first)
    if issubclass(kind, no_arrays()):
        return lambda _: NotImplemented
    # Where JAX's arrays lie it says by their sharding in less time than by their device.
    place = next((name for name in ("sharding", "device") if hasattr(first, name)), None)
    place_of = None if place is None else attrgetter(place)
    if not formats and isinstance(getattr(kind, "__array_interface__", None), property):
        return partial(_each, place_of, _from_bytes)
    if not formats or not formats[0].is_dense or formats[0].labels or formats[0].lazy:
        return lambda _: NotImplemented
    if len(formats) == 1:
        return partial(_each, place_of, partial(interop.convert, to="numpy"))
    return partial(_stacked, kind, formats[0].framework)


def _each(
    place_of: Callable[[Any], Any] | None, read: Callable[[Any], Any], value: Sequence[Any]
) -> Any:
    if place_of is not None and len({*map(place_of, value)}) != 1:
        return NotImplemented
    return [*map(read, value)]


def _stacked(kind: type, framework: Any, value: Any) -> Any:
    stacked = interop.convert(value, framework)
    return interop.convert(stacked, "numpy") if type(stacked) is kind else NotImplemented


def _from_bytes(value: Any) -> NDArray[Any]:
    """Return an array over the bytes that a value names, which NumPy counts."""
    import numpy as np

    entries = value.__array_interface__
    if type(entries["data"]) is not bytes or entries.keys() - _OF_BYTES:
        msg = "its memory is at an address, or is no block"
        raise TypeError(msg)
    return np.frombuffer(entries["data"], entries["typestr"]).reshape(entries["shape"])


def sample(value: np.ndarray[Any, Any]) -> list[Any]:
    """Return the rows of an array in a list."""
    if not value.size:
        msg = "a sequence without elements holds no array"
        raise Declined(msg)
    return [value[n, ...] for n in range(len(value))]
