"""The specs of pandas' objects: the dtype of their numbers, and how these lie in memory.

pandas keeps numbers in NumPy's arrays, in pairs of numbers and a mask ("Int64"), or in Arrow's
memory ("int64[pyarrow]"). Its own ``__array__`` turns nulls into NaN whatever the dtype, and locks
some views and not others. So nothing here relies on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from functools import cache
from itertools import chain
from math import isnan, prod
from numbers import Number
from types import NoneType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import interop
from interop.errors import InteropError
from interop.kit import (
    EMPTY,
    arrow_dtype,
    common_dtype,
    describe_columns,
    dtype_name,
    kinds_of_column,
    memory_traits,
)
from interop.plugin import DTYPES, MEMORY_TRAITS, Spec, itemsize

from . import labels

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    Array: TypeAlias = np.ndarray[Any, Any]
    #: Rows in a list, or in Arrow's memory.
    Rows: TypeAlias = list[Any] | pa.Array | pa.ChunkedArray
    #: An array in which pandas keeps numbers: NumPy's or an extension array.
    Storage: TypeAlias = Any
    #: NumPy's dtypes and pandas' own.
    Dtype: TypeAlias = np.dtype[Any] | pd.api.extensions.ExtensionDtype
    #: An object of one axis.
    Vector: TypeAlias = pd.Series | pd.Index | pd.api.extensions.ExtensionArray

#: The traits of memory that a view of it keeps.
LAYOUT = frozenset(
    {"noncontiguous", "fortran", "negative_strides", "broadcast"}
    | {"unaligned", "byteswapped", "readonly"}
)

#: The trait of labels for which few libraries have a place.
_ATTRIBUTES = frozenset({"attributes"})
#: The trait of a DataFrame without columns: numbers that are not there have no dtype.
UNKNOWN_DTYPE = frozenset({"unknown_dtype"})

_MASKED, _INDEXED = frozenset({"masked"}), frozenset({"indexed"})
_SCATTERED, _NOT_NUMBERS = frozenset({"scattered"}), frozenset({"not_numbers"})
_UNTYPED = _NOT_NUMBERS | {"untyped"}
#: The trait of lists that no format of numbers takes.
_DEEPER = frozenset({"lists_of_lists"})
#: The traits of sparse arrays, and of frames that have some; ``zero_fill`` if all have that.
_ZERO_FILLED = frozenset({"sparse", "zero_fill"})

#: The names of the dtypes seen so far; "" for those that do not hold numbers.
_names: dict[Dtype, str] = {}


# ---------------------------------------------------------------------- specs


def describe(vector: Vector) -> Spec:
    """Return the spec of a Series or an extension array; one of rows is described as they are."""
    array = storage(vector)
    facts, is_series = inspect_array(array), hasattr(vector, "index")
    if is_series and (vector.attrs or not labels.is_default(vector.index)):
        facts = facts._replace(traits=facts.traits | _ATTRIBUTES)
    if facts.traits >= _NOT_NUMBERS and (spec := _describe_rows(array)) is not None:
        return spec._replace(traits=spec.traits | (facts.traits & _ATTRIBUTES))
    return _spec("pandas.series" if is_series else "pandas.array", vector, facts)


def describe_index(index: pd.Index) -> Spec:
    """Return the spec of an Index; the numbers of a range are computed."""
    import pandas as pd

    if isinstance(index, pd.RangeIndex):
        facts = Facts("int64", _SCATTERED)
    elif isinstance(index, pd.MultiIndex):
        facts = Facts("a tuple of labels", _NOT_NUMBERS)
    else:
        facts = inspect_array(storage(index))
    return _spec("pandas.index", index, facts)


def describe_frame(frame: pd.DataFrame) -> Spec:
    """Return the spec of a DataFrame."""
    import pandas as pd

    facts = inspect_frame(frame)
    traits = facts.traits | kinds_of_columns(frame)
    is_indexed = not isinstance(frame.index, pd.RangeIndex)
    # Of a range there is no column elsewhere.
    if frame.attrs or not (is_indexed or labels.is_default(frame.index)):
        traits |= _ATTRIBUTES
    traits |= _INDEXED if is_indexed else EMPTY
    return _spec("pandas.dataframe", frame, facts._replace(traits=traits))


def _spec(name: str, value: Vector | pd.DataFrame, facts: Facts) -> Spec:
    shape = value.shape
    return Spec(name, facts.dtype, "cpu", shape, facts.traits, prod(shape) * itemsize(facts.dtype))


# ---------------------------------------------------------------------- rows


def rows_of(vector: Vector) -> Rows | None:
    """Return the rows that a vector holds, or None if its elements are something else.

    Objects that are lists or arrays are a list of these. Where some are missing, and where the
    dtype is one of Arrow's, the rows lie in Arrow's memory, which has nulls.
    """
    return _rows_in(storage(vector))


def fast_key(vector: Vector) -> tuple[object, ...] | None:
    """Return what tells one vector of plain arrays from another: the key of their list."""
    array = storage(vector)
    return _key_of_lists()(array.tolist()) if _is_of_objects(array) else None


@cache
def _key_of_lists() -> Callable[[list[Any]], Any]:
    keys = {declared.format.name: declared.format.fast_key for declared in interop.formats()}
    return keys.get("python.arrays") or (lambda _: None)


def _describe_rows(array: Storage) -> Spec | None:
    """Return the spec of the rows in an array; None if they are no rows of numbers."""
    try:
        rows = _rows_in(array)
        spec = None if rows is None else interop.spec(rows)
    except InteropError:
        return None
    if spec is None or spec.dtype not in DTYPES or spec.wrapped or spec.traits & _DEEPER:
        return None
    if _is_of_objects(array) and not isinstance(rows, list):  # which Arrow gets in a copy
        return spec._replace(format="pandas.rows", traits=spec.traits - MEMORY_TRAITS)
    return spec._replace(format="pandas.rows", wrapped=spec.format)


def _rows_in(array: Storage) -> Rows | None:
    import numpy as np
    import pandas as pd

    if is_arrow(array.dtype):
        chunked = array.__arrow_array__()
        return chunked.chunk(0) if chunked.num_chunks == 1 else chunked
    objects = array if _is_of_objects(array) else ()
    first = next((element for element in objects if not _is_missing(element)), None)
    is_array = hasattr(first, "shape") and not isinstance(first, (Number, np.generic))
    if not is_array and not isinstance(first, (list, tuple)):
        return None
    rows: list[Any] = array.tolist()
    # What stands for a missing object is an object of one of three types.
    has_gaps = not {float, NoneType, type(pd.NA)}.isdisjoint({*map(type, rows)})
    if has_gaps and any(map(_is_missing, rows)):
        return _with_nulls(rows)
    lists = (row for row in rows if isinstance(row, (list, tuple)))
    return _with_nulls(rows) if NoneType in {*map(type, chain.from_iterable(lists))} else rows


def _is_of_objects(array: Storage) -> bool:
    """Tell whether an array is one of NumPy's of objects; other libraries' may be of any kind."""
    import numpy as np

    return isinstance(array, np.ndarray) and array.dtype.hasobject


def _is_missing(element: object) -> bool:
    """Tell whether an object stands for a missing one."""
    import pandas as pd

    return element is None or element is pd.NA or (isinstance(element, float) and isnan(element))


def _with_nulls(rows: list[Any]) -> pa.Array | None:
    """Return rows as an Arrow array, in which those that are missing are null, if it takes them.

    NaN in a row is a number.
    """
    import pyarrow as pa

    try:
        return pa.array([None if _is_missing(row) else row for row in rows])
    except (pa.ArrowException, TypeError, ValueError):  # of tensors, for example
        return None


# ---------------------------------------------------------------------- dtypes


def number_name(dtype: Dtype) -> str:
    """Return the name of the numbers that a dtype holds, nullable or not; "" if it holds none."""
    name = _names.get(dtype)
    return _name_of_new(dtype) if name is None else name


def _name_of_new(dtype: Dtype) -> str:
    """Return the name for a dtype not seen before, and remember it."""
    import numpy as np

    if isinstance(dtype, np.dtype):
        name = dtype_name(dtype) if dtype.kind in "biufc" else ""
    elif is_arrow(dtype):
        name = arrow_dtype(str(dtype.pyarrow_dtype))
    elif _is_masked_dtype(dtype):
        name = dtype.numpy_dtype.name
    elif is_sparse(dtype):
        name = number_name(dtype.subtype)
    else:
        return ""  # not remembered: there may be any number of categorical dtypes and the like
    return _names.setdefault(dtype, name if name in DTYPES else "")


def is_arrow(dtype: Dtype) -> bool:
    """Tell whether numbers of a dtype lie in Arrow's memory."""
    import pandas as pd

    return isinstance(dtype, pd.ArrowDtype)


def is_sparse(dtype: Dtype) -> bool:
    """Tell whether only those numbers are stored that differ from one that fills the rest."""
    import pandas as pd

    return isinstance(dtype, pd.SparseDtype)


def is_untyped(dtype: Dtype) -> bool:
    """Tell whether a dtype is of objects or of Arrow's decimals, which may be numbers."""
    import numpy as np

    if isinstance(dtype, np.dtype):
        return dtype.kind == "O"
    return is_arrow(dtype) and str(dtype.pyarrow_dtype).startswith("decimal")


def _is_masked_dtype(dtype: Dtype) -> bool:
    import numpy as np
    import pandas as pd

    # Another library's dtype may have an attribute of that name, too.
    is_pandas_own = type(dtype).__module__.partition(".")[0] == pd.__name__
    has_numbers = isinstance(getattr(dtype, "numpy_dtype", None), np.dtype)
    return is_pandas_own and has_numbers and _has_mask(dtype)


def _has_mask(dtype: pd.api.extensions.ExtensionDtype) -> bool:
    import pandas as pd

    return issubclass(
        dtype.construct_array_type(),
        (pd.arrays.IntegerArray, pd.arrays.FloatingArray, pd.arrays.BooleanArray),
    )


# ---------------------------------------------------------------------- one array


class Facts(NamedTuple):
    """The facts about the numbers of an array that its metadata and its mask tell.

    Parameters
    ----------
    dtype : str
        A dtype of numbers, or pandas' name of another dtype.
    traits : frozenset of str
        Traits of the memory, ``masked`` if there are nulls, ``scattered`` if the numbers do not lie
        in memory one after the other, ``not_numbers``.
    """

    dtype: str
    traits: frozenset[str]


def storage(vector: Vector) -> Storage:
    """Return the array in which a Series, an Index or an extension array keeps its numbers."""
    import pandas as pd

    if isinstance(vector, pd.arrays.NumpyExtensionArray):
        return vector.to_numpy()
    # pandas' public accessors lock what they return, which hides whether it was locked before.
    return vector._values if isinstance(vector, (pd.Series, pd.Index)) else vector


def inspect_array(array: Storage) -> Facts:
    """Return the facts about an extension array or a NumPy array."""
    dtype = array.dtype
    name = number_name(dtype)
    if not name:
        nulls = array.__arrow_array__().null_count if is_arrow(dtype) else 0
        traits = _UNTYPED | _null_traits(nulls) if is_untyped(dtype) else _NOT_NUMBERS
        return Facts(_other_name(dtype), traits)
    if is_arrow(dtype):
        chunked = array.__arrow_array__()
        one_block = chunked.num_chunks == 1 and name != "bool"
        return Facts(name, _null_traits(chunked.null_count) | (EMPTY if one_block else _SCATTERED))
    if is_sparse(dtype):
        return Facts(name, _ZERO_FILLED if dtype.fill_value == 0 else _ZERO_FILLED - {"zero_fill"})
    if hasattr(array, "_mask"):
        return Facts(name, _null_traits(has_nulls(array)) | layout(array._data))
    return Facts(name, layout(array))


def _other_name(dtype: Dtype) -> str:
    """Return pandas' name of a dtype without numbers, told apart from those of dtypes of numbers.

    Another library's dtype may be called ``"float32"``, too.
    """
    name = str(dtype)
    return f"extension dtype {name}" if name in DTYPES else name


def _null_traits(nulls: int) -> frozenset[str]:
    return _MASKED if nulls else EMPTY


def has_nulls(array: Storage) -> bool:
    """Tell whether a nullable array has nulls; to count them takes less time than `any`."""
    import numpy as np

    return bool(np.count_nonzero(array._mask))


def layout(array: Array) -> frozenset[str]:
    """Return the traits of the memory of a NumPy array."""
    traits = memory_traits(array)
    return traits if array.dtype.isnative else traits | {"byteswapped"}


# ---------------------------------------------------------------------- columns


def inspect_frame(frame: pd.DataFrame) -> Facts:
    """Return the facts about a DataFrame, for which only masks are read."""
    import numpy as np

    # There are few blocks, however many columns lie in them.
    blocks = [block.values for block in frame._mgr.blocks]
    names = [number_name(values.dtype) for values in blocks]
    if not all(names):
        return _not_numbers(frame)
    if len(blocks) == 1:
        (values,) = blocks
        is_array = isinstance(values, np.ndarray)
        return Facts(names[0], layout(values.T)) if is_array else inspect_array(values)
    name, traits = common_dtype(frozenset(names))
    facts = [inspect_array(v).traits for v in blocks if not isinstance(v, np.ndarray)]
    if any(isinstance(v, np.ndarray) and not v.flags.writeable for v in blocks):
        traits |= {"readonly"}
    traits |= _SCATTERED | (frozenset().union(*facts) & _OF_ANY)
    are_filled = bool(facts) and len(facts) == len(blocks)
    return Facts(name, traits | (frozenset.intersection(*facts) & _OF_ALL if are_filled else EMPTY))


def single_block(frame: pd.DataFrame) -> Storage | None:
    """Return the one array in which the columns of a DataFrame lie, or None."""
    blocks = frame._mgr.blocks
    return blocks[0].values.T if len(blocks) == 1 else None


def column_arrays(frame: pd.DataFrame) -> Iterator[Storage]:
    """Yield the array of each column; several columns may have the same name."""
    return (storage(column) for _, column in frame.items())


def _not_numbers(frame: pd.DataFrame) -> Facts:
    """Name the columns that do not hold numbers, one for each dtype."""
    words, traits = describe_columns(
        (number_name(dtype) or _other_name(dtype), name) for name, dtype in frame.dtypes.items()
    )
    if "untyped" in traits:
        traits = traits.union(*map(_nulls, column_arrays(frame)))
    return Facts(words, traits)


def _nulls(array: Storage) -> frozenset[str]:
    """Return ``masked`` if an array has nulls."""
    return inspect_array(array).traits & _MASKED


def frame_fast_key(frame: pd.DataFrame) -> tuple[object, ...] | None:
    """Return what tells one DataFrame of plain numbers from another: all that its spec says."""
    index, columns, attributes = frame.index, frame.columns, bool(frame._attrs)
    arrays = [block.values for block in frame._mgr.blocks]
    keys = frozenset(map(_block_key, arrays)) if len(arrays) > 1 else tuple(map(_block_key, arrays))
    if not keys or None in keys:
        return None
    names = frozenset([number_name(array.dtype) for array in arrays])
    size = len(index) * len(columns) * itemsize(common_dtype(names)[0])
    kind = None if labels.is_default(index) else type(index)
    is_labelled = attributes or kind is not None or labels.are_named(columns)
    return keys, kind, attributes, is_labelled, size.bit_length() >> 1  # its `size_class`


def _block_key(values: Storage) -> tuple[object, ...] | None:
    """Return what tells one block of numbers, which lie one after the other, from another."""
    mask = getattr(values, "_mask", None)
    numbers = values if mask is None else values._data
    flags = getattr(numbers, "flags", None)
    if flags is None or not flags.forc or not number_name(values.dtype):
        return None
    return values.dtype, flags.num, mask is not None and has_nulls(values)


# ---------------------------------------------------------------------- kinds of columns


def kinds_of_columns(frame: pd.DataFrame) -> frozenset[str]:
    """Return the traits of columns that Arrow keeps in another way, or other libraries do."""
    return frozenset().union(*(_kinds(block.values) for block in frame._mgr.blocks))


def _kinds(values: Storage) -> Set[str]:
    """Return the traits of an extension array, or of an array of columns that lie in its rows."""
    import numpy as np
    import pandas as pd

    dtype = values.dtype
    if in_arrow(dtype):
        return kinds_of_column(values.__arrow_array__())
    if isinstance(dtype, pd.CategoricalDtype):
        return {"category_columns"}
    if hasattr(values, "_mask"):
        is_bool = number_name(dtype) == "bool"
        kinds = {"byte_columns"} if is_bool or has_nulls(values) else set()
        is_block = values._data.strides[-1] == values._data.itemsize
        return kinds if is_bool else kinds | _OF_STRIDES[is_block]
    array = getattr(values, "_ndarray", values)
    if is_sparse(dtype) or not isinstance(array, np.ndarray) or array.dtype.kind == "O":
        return {"object_columns"}
    if array.dtype.kind == "b":
        return {"byte_columns"}
    if array.strides[-1] != array.itemsize or not array.dtype.isnative:
        return {"strided_columns"}
    kinds = {"zoned_columns"} if isinstance(dtype, pd.DatetimeTZDtype) else set()
    return kinds | {"second_columns" if array.dtype.str.endswith("[s]") else "block_columns"}


#: The traits that a frame has if one of its columns does, and if all do.
_OF_ANY, _OF_ALL = frozenset({"masked", "sparse", "readonly"}), frozenset({"zero_fill"})
#: The kinds of columns whose elements lie one after the other, or not.
_OF_STRIDES = {True: frozenset({"block_columns"}), False: frozenset({"strided_columns"})}


def in_arrow(dtype: Dtype) -> bool:
    """Return whether elements of a dtype lie in Arrow's memory: numbers, text or others."""
    return is_arrow(dtype) or getattr(dtype, "storage", "") == "pyarrow"


def is_shared_by_copies(dtype: Dtype) -> bool:
    """Return whether pandas' own copies of what has a dtype share memory: texts and categories."""
    import pandas as pd

    return in_arrow(dtype) or isinstance(dtype, pd.CategoricalDtype)


def chunks_of(array: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    """Return an Arrow array as chunks."""
    import pyarrow as pa

    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
