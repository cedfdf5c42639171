"""DataFrames: how their columns become one array, and an array becomes columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from interop.errors import RefusedError
from interop.kit import extents, misfit
from interop.plugin import Declined

from .arrays import copy_array, pieces, storage_memory, stored, to_numpy, write
from .describe import column_arrays, inspect_frame, is_arrow, number_name, single_block

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

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

    rows, columns = frame.shape
    out = np.empty((columns, rows), dtype)
    for part, label, array in zip(out, frame.columns, column_arrays(frame), strict=True):
        try:
            write(part, array)
        except RefusedError as error:  # of an object that is no number
            error.locate(f"column {label!r}")
            raise
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
    if any(map(is_arrow, set(frame.dtypes))):
        for place, array in enumerate(column_arrays(frame)):
            if is_arrow(array.dtype):  # of which pandas' copy is none
                copied.isetitem(place, copy_array(array))
    return copied


def cast_frame(frame: pd.DataFrame, *, dtype: str) -> pd.DataFrame:
    """Return a DataFrame of another dtype with the same labels, cast as NumPy casts."""
    import pandas as pd

    numbers = gather_frame(frame, dtype=dtype)
    cast = pd.DataFrame(numbers, index=frame.index, columns=frame.columns, copy=False)
    return cast.__finalize__(frame)


def frame_memory(frame: pd.DataFrame) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory of the numbers of a DataFrame."""
    import numpy as np

    block = single_block(frame)
    if isinstance(block, np.ndarray) and number_name(block.dtype):
        return extents((block,))
    return tuple(extent for array in column_arrays(frame) for extent in storage_memory(array))
