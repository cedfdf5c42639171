"""Series, Indexes and the arrays inside them: how their numbers come and go."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, TypeAlias

from interop.kit import buffer_extents, copied_columns, extents
from interop.plugin import Declined

from .columns import READER, stored
from .describe import (
    in_arrow,
    is_arrow,
    is_shared_by_copies,
    is_sparse,
    number_name,
    storage,
)

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from .describe import Storage, Vector

    Array: TypeAlias = np.ndarray[Any, Any]


# ---------------------------------------------------------------------- out of pandas


def to_numpy(vector: Vector) -> Array:
    """Return a read-only array over the memory of a Series, an Index or an array without nulls.

    pandas shares memory between its objects until one of them is written to, and cannot notice a
    write through an array. So it locks the arrays it gives away, except those of nullable dtypes.
    """
    array = storage(vector)
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


def series_fast_path(series: pd.Series) -> Any:
    """Return a read-only array over a Series that lies in a NumPy array of numbers."""
    dtype = series.dtype
    if type(dtype).__module__ == "numpy.dtypes" and number_name(dtype):
        array: Array = series.to_numpy()
        if not array.flags.writeable:
            return array
    return NotImplemented


def to_coo(vector: Vector) -> Any:
    """Return the stored numbers and their places as a SciPy array of one axis."""
    import scipy.sparse

    values, places = stored(storage(vector))
    coo = scipy.sparse.coo_array((values.copy(), (places,)), shape=vector.shape)
    coo.has_canonical_format = True
    return coo


# ---------------------------------------------------------------------- into pandas


def sample_of_rows(array: Array) -> pd.Series:
    """Return the rows of an array as the elements of a Series, to try conversions out."""
    import pandas as pd

    if array.ndim < 2 or not array.size:
        msg = f"an array of shape {array.shape} has no rows"
        raise Declined(msg)
    return pd.Series(list(array))


def to_series(array: Array) -> pd.Series:
    """Return a Series over the memory of an array."""
    import pandas as pd

    return pd.Series(array, copy=False)


def to_index(array: Array) -> pd.Index:
    """Return an Index over a copy of an array: labels must not change."""
    import numpy as np
    import pandas as pd

    return pd.Index(np.array(array), copy=False)


def to_array(array: Array) -> pd.arrays.NumpyExtensionArray:
    """Return an extension array around a copy of an array."""
    import numpy as np
    import pandas as pd

    return pd.arrays.NumpyExtensionArray(np.array(array))


# ---------------------------------------------------------------------- within pandas


def copy_series(series: pd.Series) -> pd.Series:
    """Return a copy with the labels."""
    if not is_shared_by_copies(series.dtype):
        return series.copy(deep=True)
    numbers = copy_array(storage(series))
    copied = series._constructor(numbers, index=series.index, copy=False)
    return copied.__finalize__(series)


def copy_index(index: pd.Index) -> pd.Index:
    """Return a copy with the names."""
    import pandas as pd

    if not is_shared_by_copies(index.dtype):
        return index.copy(deep=True)
    return pd.Index(copy_array(storage(index)), name=index.name, copy=False)


def copy_array(array: Storage) -> Storage:
    """Return a copy. pandas' own copies of what lies in Arrow's memory share that memory."""
    import pandas as pd

    if isinstance(array.dtype, pd.CategoricalDtype):
        dtype = pd.CategoricalDtype(copy_index(array.categories), array.ordered)
        return pd.Categorical.from_codes(array.codes.copy(), dtype=dtype)
    if not in_arrow(array.dtype):
        return array.copy()
    import pyarrow as pa

    chunked = copied_columns(pa, pa.table({"": array.__arrow_array__()})).column(0)
    if is_arrow(array.dtype):
        return type(array)(chunked)
    return array.dtype.__from_arrow__(chunked)


def copy_rows(vector: Vector) -> Vector:
    """Return a copy with the labels, whose rows are copied, too."""
    import pandas as pd

    copied = copy_series(vector) if isinstance(vector, pd.Series) else copy_array(vector)
    if not is_arrow(vector.dtype):
        objects = storage(copied)
        for place, row in enumerate(objects):
            objects[place] = deepcopy(row)
    return copied


def cast_series(series: pd.Series, *, dtype: str) -> pd.Series:
    """Return a Series of another dtype with the same labels and nulls, cast as NumPy casts."""
    cast = READER.cast(storage(series), dtype=dtype)
    labelled = series._constructor(cast, index=series.index, copy=False)
    return labelled.__finalize__(series)


# ---------------------------------------------------------------------- memory


def memory(vector: Vector) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory in which the numbers lie."""
    import pandas as pd

    if isinstance(vector, (pd.RangeIndex, pd.MultiIndex)):
        return ()
    return storage_memory(storage(vector))


def storage_memory(array: Storage) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory of an array and of its mask, if it tells."""
    import numpy as np
    import pandas as pd

    if in_arrow(array.dtype):
        return buffer_extents([array.__arrow_array__()])
    if isinstance(array.dtype, pd.CategoricalDtype):
        inner = memory(array.categories)
        return extents((array.codes,)) + inner if inner else ()
    array = getattr(array, "_ndarray", array)
    if hasattr(array, "_mask"):
        return extents((array._data, array._mask))
    if is_sparse(array.dtype):
        return extents((array.sp_values,))
    return extents((array,)) if isinstance(array, np.ndarray) else ()
