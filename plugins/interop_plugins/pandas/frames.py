"""DataFrames: how their columns become one array, and an array becomes columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from interop.kit import extents, extents_of_all
from interop.plugin import Declined

from .arrays import copy_array, storage_memory, to_numpy
from .columns import READER, stored
from .describe import (
    column_arrays,
    inspect_frame,
    is_shared_by_copies,
    number_name,
    single_block,
)

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

    arrays = READER.cast_columns(frame, columns)
    cast = pd.DataFrame(dict(enumerate(arrays)), index=frame.index, copy=False)
    cast.columns = frame.columns
    kept: pd.DataFrame = frame._constructor(cast, copy=False).__finalize__(frame)
    return kept


def frame_memory(frame: pd.DataFrame) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory of a DataFrame; () if one is unknown."""
    import numpy as np

    block = single_block(frame)
    if isinstance(block, np.ndarray) and number_name(block.dtype):
        return extents((block,))
    return extents_of_all(map(storage_memory, column_arrays(frame)))
