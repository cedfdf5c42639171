"""DataFrames: how their columns become one array, and an array becomes columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from interop.errors import RefusedError
from interop.kit import CastErrors, cast_dtypes, extents, misfit, real_part
from interop.plugin import Declined

from .arrays import cast_array, copy_array, pieces, storage_memory, stored, to_numpy, write
from .describe import (
    column_arrays,
    inspect_frame,
    is_shared_by_copies,
    is_untyped,
    number_name,
    single_block,
)

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from .describe import Storage

    Array: TypeAlias = np.ndarray[Any, Any]


def frame_to_numpy(frame: pd.DataFrame) -> Array:
    """Return a read-only array over the memory of a DataFrame of one block."""
    import numpy as np

    block = single_block(frame)
    if not isinstance(block, np.ndarray):
        if frame.shape[1] == 1:
            return to_numpy(frame.iloc[:, 0])[:, np.newaxis]
        msg = "its columns do not lie in one array"
        raise Declined(msg)
    view: Array = block.view()
    view.flags.writeable = False
    return view


def frame_fast_path(frame: pd.DataFrame) -> Any:
    """Return a read-only array over a DataFrame that lies in one NumPy array of numbers."""
    blocks = frame._mgr.blocks
    dtype = blocks[0].dtype if len(blocks) == 1 else None
    if type(dtype).__module__ != "numpy.dtypes" or not number_name(dtype):
        return NotImplemented
    view: Array = blocks[0].values.T.view()
    view.flags.writeable = False
    return view


def gather_frame(frame: pd.DataFrame, *, dtype: str) -> Array:
    """Return the columns side by side in a new array, each in one block as pandas orders them."""
    import ml_dtypes  # noqa: F401 - whose dtypes NumPy knows by name from then on
    import numpy as np

    out, errors = np.empty(frame.shape[::-1], dtype), CastErrors()
    for block in frame._mgr.blocks:
        values, places = block.values, block.mgr_locs
        if isinstance(values, np.ndarray) and values.dtype.kind in "biufc":
            numbers = real_part(values, out.dtype)
            errors.run(out.__setitem__, places.indexer, numbers)
            continue
        rows = values if values.ndim > 1 else [values]
        for place, row in zip(places, rows, strict=True):
            try:
                write(out[place], row)
            except RefusedError as error:  # of an object that is no number
                error.locate(f"column {frame.columns[place]!r}")
                raise
    errors.tell()
    return out.T


def gather_if_exact(frame: pd.DataFrame) -> Array:
    """Return what `gather_frame` does if the common dtype holds every integer of the columns."""
    dtype = inspect_frame(frame).dtype
    for label, array in zip(frame.columns, column_arrays(frame), strict=True):
        for piece, nulls in pieces(array):
            numbers = piece if nulls is None else piece[~nulls]
            if reason := misfit(numbers, dtype):
                msg = f"column {label!r}: {reason}"
                raise Declined(msg)
    return gather_frame(frame, dtype=dtype)


def to_csc(frame: pd.DataFrame) -> Any:
    """Return the stored numbers of sparse columns as a SciPy array, column by column.

    Raises
    ------
    Declined
        There are more of them than its indices can count.
    """
    import numpy as np
    import scipy.sparse

    dtype = inspect_frame(frame).dtype
    values, places = zip(*map(stored, column_arrays(frame)), strict=True)
    pointers = np.cumsum([0, *map(len, values)])
    if pointers[-1] > np.iinfo("int32").max:
        msg = f"the columns store {pointers[-1]} numbers, which indices of 32 bits cannot count"
        raise Declined(msg)
    arrays = np.concatenate(values, dtype=dtype), np.concatenate(places), pointers.astype("int32")
    return scipy.sparse.csc_array(arrays, shape=frame.shape)


def to_frame(array: Array) -> pd.DataFrame:
    """Return a DataFrame over the memory of an array."""
    import pandas as pd

    return pd.DataFrame(array, copy=False)


def copy_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a copy with the labels."""
    copied = frame.copy(deep=True)
    if any(map(is_shared_by_copies, set(frame.dtypes))):
        for place, array in enumerate(column_arrays(frame)):
            if is_shared_by_copies(array.dtype):
                copied.isetitem(place, copy_array(array))
    return copied


def cast_columns(frame: pd.DataFrame, *, columns: Mapping[str, str]) -> pd.DataFrame:
    """Return a DataFrame whose columns of some dtypes have others, cast as NumPy casts.

    The others are those of the frame. Nulls stay nulls.
    """
    import pandas as pd

    arrays = list(frame._iter_column_arrays())
    dtypes = [*map(_dtype_of, arrays)]
    columns = cast_dtypes({*dtypes} - {""}, columns)
    arrays = [
        cast_array(array, columns[own]) if own in columns else array
        for array, own in zip(arrays, dtypes, strict=True)
    ]
    cast = pd.DataFrame(dict(enumerate(arrays)), index=frame.index, copy=False)
    cast.columns = frame.columns
    return cast.__finalize__(frame)


def _dtype_of(array: Storage) -> str:
    """Return the dtype of a column of numbers, or ``untyped`` of objects and decimals."""
    return number_name(array.dtype) or ("untyped" if is_untyped(array.dtype) else "")


def frame_memory(frame: pd.DataFrame) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory of a DataFrame; () if one is unknown."""
    import numpy as np

    block = single_block(frame)
    if isinstance(block, np.ndarray) and number_name(block.dtype):
        return extents((block,))
    columns = [storage_memory(array) for array in column_arrays(frame)]
    return tuple(extent for column in columns for extent in column) if all(columns) else ()
