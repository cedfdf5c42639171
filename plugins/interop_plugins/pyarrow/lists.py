"""Arrow's lists: rows of one length as fixed-size lists, ragged rows as values and offsets.

A list array has no lengths in its type. Its offsets tell them, and they are read to describe it.
Where all rows have one length, the array is one of fixed-size lists over the same memory.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from interop.kit import check_offsets, extents
from interop.plugin import Declined, Parts, Spec

from .dense import flat_array, to_numpy
from .describe import ALIGNMENT, device
from .describe import describe_chunks as describe_flat_chunks
from .describe import memory as memory_of_values
from .dtypes import DTYPES, dtype_name, number_types

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa

    Array: TypeAlias = np.ndarray[Any, Any]
    Extents: TypeAlias = tuple[tuple[int, int], ...]

_IMMUTABLE = frozenset({"immutable"})
#: The traits of lists that lead nowhere.
ODD = frozenset({"null_rows", "lists_of_lists"})

REFUSAL_HINTS = {
    "null_rows": "some of its rows are null, or elements of rows of several lengths; leave null "
    "rows out (drop_null), or make empty rows of them (fill_null([])), and fill the elements.",
    "lists_of_lists": "its rows are lists of lists of several lengths, also within them; flatten "
    "one level first (pyarrow.compute.list_flatten).",
    "pad": "Its rows differ in length; to='torch.jagged', 'tensorflow.ragged' or 'awkward' keeps "
    "them as they are.",
}


def is_list(type_: pa.DataType) -> bool:
    """Tell whether a type is that of lists whose lengths are in their offsets."""
    import pyarrow as pa

    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def is_vector(type_: pa.DataType) -> bool:
    """Tell whether a type is that of lists of one length."""
    import pyarrow as pa

    return bool(pa.types.is_fixed_size_list(type_))


def offsets_of(array: pa.ListArray) -> Array:
    """Return the offsets of an array's rows into its values, over their memory."""
    import numpy as np

    if not len(array):
        return np.zeros(1, _offset_dtype(array))
    width = np.dtype(_offset_dtype(array)).itemsize
    return np.frombuffer(
        array.buffers()[1], _offset_dtype(array), len(array) + 1, array.offset * width
    )


def _offset_dtype(array: pa.ListArray) -> str:
    import pyarrow as pa

    return "int64" if pa.types.is_large_list(array.type) else "int32"


class _Rows(NamedTuple):
    """The facts about the rows of an array of lists: their lengths, and what is in them."""

    #: Lengths of the axes of the longest row.
    shape: tuple[int, ...]
    traits: frozenset[str]
    #: The values of all rows, or of all their rows.
    values: pa.Array


def _rows(array: pa.ListArray) -> _Rows:
    """Return the facts about rows, which may be lists again."""
    offsets = offsets_of(array)
    lengths = offsets[1:] - offsets[:-1]
    longest = int(lengths.max(initial=0))
    traits = set()
    if len(array):
        ends, shortest = (int(offsets[0]), int(offsets[-1])), int(lengths.min())
        check_offsets("a ListArray", ends, shortest, len(array.values))
        if shortest != longest:
            traits.add("nested")
    if array.null_count:
        traits.add("null_rows")
    first, last = int(offsets[0]), int(offsets[-1])
    values = array.values.slice(first, last - first)
    if not is_list(values.type):
        vector: list[int] = []
        while is_vector(values.type):
            if values.null_count:
                traits.add("null_rows")
            vector.append(values.type.list_size)
            values = values.flatten()
        traits.update({"hybrid"} if vector else ())
        traits.update({"masked"} if values.null_count else ())
        return _Rows((longest, *vector), frozenset(traits), values)
    inner = _rows(values)
    if "nested" in inner.traits:
        traits.add("lists_of_lists")
    elif "nested" in traits:  # the rows in them are of one length, and count as vectors
        traits.add("hybrid")
    return _Rows((longest, *inner.shape), inner.traits | traits, inner.values)


def describe(array: pa.ListArray | pa.LargeListArray) -> Spec:
    """Return the spec of an array of lists, whose second axis is as long as its longest row.

    Rows of one length are those of a dense array; others have the trait ``nested``.
    """
    leaf = array.type
    while is_list(leaf) or is_vector(leaf):
        leaf = leaf.value_type
    dtype = dtype_name(leaf) if leaf.id in number_types() else ""
    if dtype not in DTYPES or not array.is_cpu:
        location = "cpu" if array.is_cpu else device(array)
        name, nbytes = str(array.type), array.get_total_buffer_size()
        longest = _longest(array) if array.is_cpu else 0
        return Spec("pyarrow.list", name, location, (len(array), longest), _IMMUTABLE, nbytes)
    shape, traits, values = _rows(array)
    if {"nested", "masked"} <= traits:
        traits |= {"null_rows"}
    if traits & ODD:  # which say why the lengths differ
        traits -= {"nested"}
    if dtype == "bool":
        traits |= {"bits"}
    inner = shape[1:] if "hybrid" in traits else ()
    if len(shape) > 1 and not inner:
        traits |= {"deep"}
    width, stored = number_types()[leaf.id][1], len(values)
    data = values.buffers()[1]
    if data is not None and not data.is_mutable:
        traits |= {"readonly"}
    if data is not None and data.address % min(width, ALIGNMENT):
        traits |= {"unaligned"}
    return Spec(
        "pyarrow.list",
        dtype,
        "cpu",
        (len(array), *shape),
        traits | _IMMUTABLE,
        stored * width + (len(array) + 1) * offsets_of(array).itemsize,
        nnz=stored // max(1, prod(inner)),
        index_dtype=_offset_dtype(array),
    )


def _longest(array: pa.ListArray | pa.LargeListArray) -> int:
    import numpy as np

    return int(np.diff(offsets_of(array)).max(initial=0))


def describe_chunks(chunked: pa.ChunkedArray) -> Spec:
    """Return the spec of a chunked array; one of lists is described as all chunks together."""
    return _joined(chunked) if is_list(chunked.type) else describe_flat_chunks(chunked)


def _joined(chunked: pa.ChunkedArray) -> Spec:
    import pyarrow as pa

    chunks = [chunk for chunk in chunked.chunks if len(chunk)] or [pa.array([], chunked.type)]
    specs = [describe(chunk) for chunk in chunks]
    first = specs[0]
    longest = [max(lengths) for lengths in zip(*(spec.shape for spec in specs), strict=True)]
    traits = frozenset().union(*(spec.traits for spec in specs)) | {"lists"}
    # Of rows without elements nobody can tell.
    if len({spec.shape[2:] for spec in specs if spec.shape[1:2] != (0,)}) > 1:
        traits |= {"lists_of_lists"}
    elif "nested" in traits or len({spec.shape[1:] for spec in specs}) > 1:
        traits |= {"nested"} | ({"hybrid"} if len(first.shape) > 2 else set())
        traits -= {"deep"}
    if traits & ODD:
        traits -= {"nested"}
    if chunked.num_chunks != 1:
        traits |= {"chunked"}
    return first._replace(
        format="pyarrow.chunked_array",
        shape=(len(chunked), *(longest[1:] if first.dtype in DTYPES else ())),
        traits=traits,
        nbytes=sum(spec.nbytes for spec in specs),
        nnz=sum(spec.nnz or 0 for spec in specs),
    )


def elements(row: pa.Scalar) -> pa.Array | pa.Tensor | None:
    """Return what is in one row of an array of lists or tensors; None if the row is null."""
    import pyarrow as pa

    if not row.is_valid:
        return None
    return row.to_tensor() if isinstance(row, pa.FixedShapeTensorScalar) else row.values


def describe_null_row(row: pa.Scalar) -> Spec:
    """Return the spec of a row that is null."""
    return Spec("pyarrow.row", str(row.type), "cpu", (), frozenset({"null_rows"}))


def memory(array: pa.ListArray) -> Extents:
    """Return the addresses and lengths of the numbers of all rows, and of the offsets."""
    if not array.is_cpu:
        return ()
    offsets = (offsets_of(array),) if len(array) else ()  # without rows they are made up
    return memory_of_values(_rows(array).values) + extents(offsets)


# ---------------------------------------------------------------------- rows of one length


def regular(array: pa.ListArray) -> pa.FixedSizeListArray:
    """Return lists of one length as fixed-size lists over the same memory."""
    import pyarrow as pa

    offsets = offsets_of(array)
    first, last = int(offsets[0]), int(offsets[-1])
    values = array.values.slice(first, last - first)
    if is_list(values.type):
        values = regular(values)
    length = int(offsets[1] - offsets[0]) if len(array) else 0
    type_ = pa.list_(values.type, length)
    return pa.Array.from_buffers(type_, len(array), [None], 0, children=[values])


def to_lists(array: pa.FixedSizeListArray) -> pa.ListArray:
    """Return fixed-size lists of numbers as lists over the same memory, with new offsets."""
    import numpy as np
    import pyarrow as pa

    size, count = array.type.list_size, len(array)
    if size and not count:
        msg = f"lists that have no rows do not tell that these would have {size} numbers each."
        raise Declined(msg)
    values = array.values.slice(array.offset * size, count * size)
    wide = count * size >= 2**31
    offsets = np.arange(count + 1, dtype="int64" if wide else "int32") * size
    type_ = (pa.large_list if wide else pa.list_)(values.type)
    return pa.Array.from_buffers(type_, count, [None, pa.py_buffer(offsets)], 0, children=[values])


# ---------------------------------------------------------------------- ragged rows


def unpack(array: pa.ListArray) -> Parts:
    """Return the values of all rows and the offsets of the rows, over their memory.

    Offsets that do not begin with zero, as those of a slice, are counted anew.
    """
    offsets, rows = offsets_of(array), _rows(array)
    if offsets[0]:
        offsets = offsets - offsets[0]
    values = to_numpy(rows.values)
    if "hybrid" in rows.traits:
        values = values.reshape(int(offsets[-1]), *rows.shape[1:])
    return Parts((len(array), *rows.shape), {"values": values, "offsets": offsets})


def pack(parts: Parts) -> pa.ListArray:
    """Return lists over values and offsets."""
    import numpy as np
    import pyarrow as pa

    values, offsets = parts.arrays["values"], np.ascontiguousarray(parts.arrays["offsets"])
    _check(offsets, len(values))
    flat = flat_array(values)
    for size in reversed(values.shape[1:]):
        if not size:
            msg = "Arrow does not count vectors without elements"
            raise Declined(msg)
        flat = pa.FixedSizeListArray.from_arrays(flat, size)
    type_ = (pa.large_list if offsets.dtype == np.int64 else pa.list_)(flat.type)
    buffers = [None, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(type_, len(offsets) - 1, buffers, 0, children=[flat])


def _check(offsets: Array, stored: int) -> None:
    """Decline offsets that are not those of rows: Arrow would read what is not there."""
    steps = offsets[1:] - offsets[:-1]
    if not len(offsets) or offsets[0] < 0 or offsets[-1] > stored or (steps < 0).any():
        msg = f"its offsets do not count up from 0 to its {stored} values"
        raise Declined(msg)


def padded(array: pa.ListArray) -> Array:
    """Return the rows one below the other in a new array, with zeros after the shorter ones."""
    import numpy as np

    parts = unpack(array)
    values, offsets = parts.arrays["values"], parts.arrays["offsets"]
    out = np.zeros(parts.shape, values.dtype)
    lengths = offsets[1:] - offsets[:-1]
    out[np.arange(parts.shape[1]) < lengths[:, np.newaxis]] = values
    return out
