"""Columns of pandas, which lie in NumPy's arrays, beside a mask, or in Arrow's memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

from interop.kit import (
    CastErrors,
    ColumnReader,
    arrow_nulls,
    arrow_numbers,
    cast_decimals,
    cast_objects,
    check_coordinates,
    common_dtype,
    null_number,
    real_part,
)
from interop.plugin import Declined

from .describe import has_nulls, is_arrow, is_sparse, is_untyped, number_name, storage

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    from .describe import Storage, Vector

    Array: TypeAlias = np.ndarray[Any, Any]
    #: A part of a column that lies in one block.
    Chunk: TypeAlias = Storage | pa.Array

#: How many elements of Arrow's memory are read at a time.
_PIECE = 2**18


def columns(frame: pd.DataFrame) -> Iterator[tuple[Any, Storage]]:
    """Yield the name and the array of each column; several may have the same name."""
    return zip(frame.columns, frame._iter_column_arrays(), strict=True)


def dtype_of(vector: Vector) -> str:
    """Return the dtype of numbers, ``untyped`` of objects and decimals, or "" of others."""
    return number_name(vector.dtype) or ("untyped" if is_untyped(vector.dtype) else "")


def chunks(vector: Vector) -> Iterator[Chunk]:
    """Yield the parts of a vector. The numbers of a range are made anew, as pandas keeps them."""
    import numpy as np
    import pandas as pd

    if isinstance(vector, pd.RangeIndex):
        yield np.arange(vector.start, vector.stop, vector.step, dtype=np.int64)
        return
    array = storage(vector)
    if is_arrow(array.dtype):
        for chunk in array.__arrow_array__().chunks:
            yield from (chunk.slice(n, _PIECE) for n in range(0, len(chunk), _PIECE))
    elif is_sparse(array.dtype):
        _places(array)  # which pandas takes on trust
        yield array.to_dense()
    else:
        yield array


def numbers(chunk: Chunk) -> Array:
    """Return the numbers of a part of a column, with anything in the places of nulls."""
    import numpy as np

    if isinstance(chunk, np.ndarray):
        return chunk
    if hasattr(chunk, "_mask"):
        array: Array = chunk._data
        return array
    plain: Array = arrow_numbers(chunk)
    return plain


def nulls(chunk: Chunk) -> Array | None:
    """Return the places of nulls in a part of a column; NaN is none."""
    import numpy as np

    if isinstance(chunk, np.ndarray):
        return None
    if hasattr(chunk, "_mask"):
        return chunk._mask if has_nulls(chunk) else None
    places: Array | None = arrow_nulls(chunk)
    return places


def untyped(vector: Vector, *, dtype: str) -> Array:
    """Return the numbers of objects, all of which must be some, or of decimals and their nulls."""
    import numpy as np

    array = storage(vector)
    is_decimal = is_arrow(array.dtype)
    numbers: Array = (
        cast_decimals(array.__arrow_array__(), dtype=dtype)
        if is_decimal
        else cast_objects(array, np.dtype(dtype))
    )
    return numbers


def stack(frame: pd.DataFrame, *, dtype: str | None) -> Any:
    """Return numbers of NumPy's arrays, beside a mask or not, block by block in one array."""
    import numpy as np

    blocks = frame._mgr.blocks
    if not all(isinstance(b.values, np.ndarray) or hasattr(b.values, "_mask") for b in blocks):
        return NotImplemented
    names = frozenset([number_name(block.dtype) for block in blocks])
    if "" in names:
        return NotImplemented
    dtype = dtype or common_dtype(names)[0]
    out, errors, unseen = np.empty(frame.shape[::-1], dtype), CastErrors(), CastErrors()
    for block in blocks:
        own, places = numbers(block.values), nulls(block.values)
        rows = block.mgr_locs.indexer
        if own.dtype == out.dtype:
            out[rows] = own
        else:  # null positions hold arbitrary values
            noting = errors if places is None else unseen
            noting.run(out.__setitem__, rows, real_part(own, out.dtype))
        if places is not None:
            out[rows, places] = null_number(out.dtype)
    errors.tell()
    return out.T


def stored(array: Storage) -> tuple[Array, Array]:
    """Return the numbers that a sparse array stores, and a copy of their places, in order."""
    return array.sp_values, _places(array).copy()


def _places(array: Storage) -> Array:
    """Return the places of the numbers that a sparse array stores, none of which is outside."""
    index = array.sp_index
    places: Array = index.to_int_index().indices
    check_coordinates("a pandas.SparseArray", [places], (index.length,))
    return places


def make(numbers: Array, nulls: Array | None) -> Storage:
    """Return numbers and the places of nulls as pandas' nullable array over both, or Arrow's."""
    import numpy as np
    import pandas as pd

    if nulls is None:
        return numbers
    if numbers.dtype == np.bool_:
        return pd.arrays.BooleanArray(numbers, nulls)
    if numbers.dtype == np.float16:  # of which pandas has none with nulls
        import pyarrow as pa

        return pd.arrays.ArrowExtensionArray(pa.array(numbers, mask=nulls))
    if numbers.dtype.kind not in "iuf" or numbers.dtype.itemsize > 8:
        msg = f"pandas has no nulls in {numbers.dtype}"
        raise Declined(msg)
    kind = pd.arrays.FloatingArray if numbers.dtype.kind == "f" else pd.arrays.IntegerArray
    return kind(numbers, nulls)


READER = ColumnReader(
    columns=columns,
    numbers=numbers,
    nulls=nulls,
    chunks=chunks,
    dtype=dtype_of,
    untyped=untyped,
    stack=stack,
    make=make,
)
