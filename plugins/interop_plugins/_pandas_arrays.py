"""One array of pandas' (of a Series, an Index, a column): what it holds, and how it is read.

pandas keeps numbers in NumPy's arrays, in pairs of numbers and a mask ("Int64"), or in Arrow's
memory ("int64[pyarrow]"). Its own ``__array__`` turns nulls into NaN, whatever the dtype, and
locks some views and not others, so that none of it is relied on for what is null.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from interop.plugin import DTYPES, Declined

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

__all__ = [
    "LAYOUT",
    "Look",
    "bare",
    "bounds",
    "extents",
    "layout",
    "locked",
    "look",
    "number_name",
    "write",
]

#: What the memory of an array can be like, as far as views of it go.
LAYOUT = frozenset(
    {"noncontiguous", "negative_strides", "broadcast", "unaligned", "byteswapped", "readonly"}
)

_NONE: frozenset[str] = frozenset()
_SCATTERED = frozenset({"scattered"})

#: The bits of `flags.num` of an array that is one aligned block and can be written.
_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x0001, 0x0100, 0x0400
_ORDINARY = _CONTIGUOUS | _ALIGNED | _WRITEABLE

#: NumPy's numbers of the dtypes that have other names on other machines.
_LONG_NUMBERS = {13: "longdouble", 16: "clongdouble"}

#: Elements of Arrow's memory that are read at a time.
_PIECE = 2**18

#: Arrow's names of what NumPy calls otherwise.
_ARROW_NAMES = {"halffloat": "float16", "float": "float32", "double": "float64"}

#: By NumPy dtype that was met: its name, or "" if it is none of numbers.
_names: dict[Any, str] = {}


class Look(NamedTuple):
    """What is known of an array without touching its numbers.

    Parameters
    ----------
    dtype : str
        A dtype of numbers, or pandas' own name of another.
    traits : frozenset of str
        Those of the memory, ``masked`` if there are nulls, ``scattered`` if the numbers do not lie
        one after the other as such, ``not_numbers``.
    """

    dtype: str
    traits: frozenset[str]


def number_name(dtype: Any) -> str:
    """Return the name of the numbers that a pandas dtype is of, nullable or not; "" if of none."""
    known = _names.get(dtype)
    return _learn(dtype) if known is None else known


def _learn(dtype: Any) -> str:
    import numpy as np

    if isinstance(dtype, np.dtype):
        name = _LONG_NUMBERS.get(dtype.num, dtype.name) if dtype.kind in "biufc" else ""
    elif is_arrow(dtype):
        said = str(dtype.pyarrow_dtype)
        name = _ARROW_NAMES.get(said, said)
    elif _is_masked_dtype(dtype):
        name = dtype.numpy_dtype.name
    else:
        return ""  # categories and the like, of which there may be many
    found = name if name in DTYPES else ""
    return _names.setdefault(dtype, found)


def is_arrow(dtype: Any) -> bool:
    """Tell whether a pandas dtype is of Arrow's memory."""
    import pandas as pd

    return isinstance(dtype, pd.ArrowDtype)


def _is_masked_dtype(dtype: Any) -> bool:
    import numpy as np
    import pandas as pd

    # pandas' own, and no stranger's that has an attribute of that name.
    own = type(dtype).__module__.partition(".")[0] == pd.__name__
    return own and isinstance(getattr(dtype, "numpy_dtype", None), np.dtype) and _has_mask(dtype)


def _has_mask(dtype: Any) -> bool:
    import pandas as pd

    kind = dtype.construct_array_type()
    return issubclass(
        kind, (pd.arrays.IntegerArray, pd.arrays.FloatingArray, pd.arrays.BooleanArray)
    )


def bare(value: Any) -> Any:
    """Return the extension array inside a Series or an Index, or the array of NumPy's in that."""
    import pandas as pd

    if isinstance(value, pd.arrays.NumpyExtensionArray):
        return value.to_numpy()
    # pandas' public ways lock what they give away, so that one cannot see what was locked before.
    return value._values if isinstance(value, (pd.Series, pd.Index)) else value


def look(array: Any) -> Look:
    """Return what is known of an extension array or of an array of NumPy's."""
    dtype = array.dtype
    name = number_name(dtype)
    if not name:
        return Look(_other_name(dtype), frozenset({"not_numbers"}))
    if is_arrow(dtype):
        chunked = array.__arrow_array__()
        one_block = chunked.num_chunks == 1 and name != "bool"
        return Look(name, _nulls(chunked.null_count) | (_NONE if one_block else _SCATTERED))
    if hasattr(array, "_mask"):
        return Look(name, _nulls(array._mask.any()) | layout(array._data))
    return Look(name, layout(array))


def _other_name(dtype: Any) -> str:
    """Return pandas' name of a dtype, which a stranger's may share with one of numbers."""
    name = str(dtype)
    return f"extension dtype {name}" if name in DTYPES else name


def _nulls(count: Any) -> frozenset[str]:
    return frozenset({"masked"}) if count else _NONE


def layout(array: Array) -> frozenset[str]:
    """Return the traits of the memory of an array of NumPy's."""
    flags = array.flags.num
    swapped = not array.dtype.isnative
    if flags & _ORDINARY == _ORDINARY and not swapped:
        return _NONE
    # An axis of length 1 is never stepped along, whatever its stride.
    steps = [step for n, step in zip(array.shape, array.strides, strict=True) if n > 1]
    found = {
        "byteswapped": swapped,
        "readonly": not flags & _WRITEABLE,
        "unaligned": not flags & _ALIGNED,
        "noncontiguous": not flags & _CONTIGUOUS,
        "negative_strides": min(steps, default=0) < 0,
        "broadcast": array.size > 0 and 0 in steps,
    }
    return frozenset(trait for trait, holds in found.items() if holds)


def locked(array: Any) -> Array:
    """Return a read-only array of NumPy's over the memory of one without nulls.

    pandas shares memory between its objects until one of them is written to, which it would not
    notice of an array: so it locks those it gives away, but for its nullable dtypes.
    """
    if is_arrow(array.dtype):
        chunked = array.__arrow_array__()
        if chunked.num_chunks != 1:
            msg = f"the array lies in {chunked.num_chunks} chunks"
            raise Declined(msg)
        view: Array = chunked.chunk(0).to_numpy(zero_copy_only=True)
    else:
        view = (array._data if hasattr(array, "_mask") else array).view()
    view.flags.writeable = False
    return view


def pieces(array: Any) -> Iterator[tuple[Array, Array | None]]:
    """Yield the numbers of an array piece by piece, each with the places of its nulls."""
    if is_arrow(array.dtype):
        for chunk in array.__arrow_array__().chunks:
            for start in range(0, len(chunk), _PIECE):
                yield _arrow_piece(chunk.slice(start, _PIECE))
    elif hasattr(array, "_mask"):
        yield array._data, array._mask if array._mask.any() else None
    else:
        yield array, None


def _arrow_piece(piece: Any) -> tuple[Array, Array | None]:
    """Return the numbers of some of Arrow's memory, whatever they are where there is a null."""
    import pyarrow as pa

    if not piece.null_count:
        return piece.to_numpy(zero_copy_only=False), None
    nulls = piece.is_null().to_numpy(zero_copy_only=False)
    _, numbers = piece.buffers()
    plain = pa.Array.from_buffers(
        piece.type, len(piece), [None, numbers], null_count=0, offset=piece.offset
    )
    return plain.to_numpy(zero_copy_only=False), nulls


def write(out: Array, array: Any) -> None:
    """Write the numbers of an array into one of NumPy's, of any dtype.

    Nulls become NaN where there is one, else zero. Numbers that the dtype cannot hold become what
    NumPy makes of them, without a warning; of complex numbers a real dtype keeps the real part.
    """
    import numpy as np

    start, null = 0, float("nan") if out.dtype.kind in "fc" else 0
    with np.errstate(all="ignore"):
        for numbers, nulls in pieces(array):
            part = out[start : start + len(numbers)]
            start += len(numbers)
            real = part.dtype.kind != "c" and numbers.dtype.kind == "c" and part.dtype.kind != "b"
            part[...] = numbers.real if real else numbers
            if nulls is not None:
                part[nulls] = null


def extents(array: Any) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory of an array's numbers."""
    if is_arrow(array.dtype):
        buffers = [buffer for chunk in array.__arrow_array__().chunks for buffer in chunk.buffers()]
        return tuple((one.address, one.size) for one in buffers if one is not None and one.size)
    if hasattr(array, "_mask"):
        return bounds(array._data) + bounds(array._mask)
    return bounds(array)


def bounds(array: Array) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory of an array of NumPy's."""
    import numpy as np

    low, high = np.lib.array_utils.byte_bounds(array)
    return ((low, high - low),) if array.size else ()
