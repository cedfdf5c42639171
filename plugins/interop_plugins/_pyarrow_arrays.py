"""Arrays of Arrow's in one piece or several: what they are, and how they come and go.

Their memory never changes, so that NumPy gets it read-only. What lies under a null is undefined
there: whoever lets the nulls go gets NaN, 0 or False in their places, in memory of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from interop.plugin import Spec

from ._pyarrow_types import NUMBERS, Kind, arrow_type, kind_of, numbers

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

__all__ = [
    "all_chunks",
    "array_fast_path",
    "cast_with_nulls",
    "chunk_to_numpy",
    "combined",
    "copy",
    "describe",
    "describe_chunks",
    "describe_lists",
    "describe_scalar",
    "describe_tensors",
    "device",
    "fill_value",
    "first_chunk",
    "flat_array",
    "from_masked",
    "from_masked_copy",
    "from_numpy",
    "invalid",
    "memory",
    "memory_of_chunks",
    "numpy_fast_path",
    "scalar_from_numpy",
    "scalar_to_numpy",
    "to_chunks",
    "to_lists",
    "to_numpy",
    "to_tensors",
    "to_torch",
    "torch_fast_path",
    "written",
]

_IMMUTABLE = frozenset({"immutable"})
_MASKED, _CHUNKED = frozenset({"masked"}), frozenset({"chunked"})
_NONE: frozenset[str] = frozenset()

#: What Arrow, NumPy or torch raise when there is nothing to hand over.
_REFUSALS = (BufferError, ValueError, RuntimeError, TypeError, NotImplementedError)

#: To whatever dtype, the address of an element is then a multiple of its size.
_ALIGNMENT = 8
#: Of NumPy's `flags.num`: one C-ordered block, and aligned.
_BLOCK = 0x0001 | 0x0100

#: Filled on first use: torch's consumer of capsules, and Arrow's makers of arrays and of buffers.
_torch_from_dlpack: list[Callable[[Any], Any]] = []
_makers: list[tuple[Callable[..., Any], Callable[[Any], Any]]] = []
#: Filled with the latter: Arrow's types by NumPy's dtypes.
_types: dict[Any, Any] = {}

# DLPack's numbers of devices, which are Arrow's too.
_DEVICES = {2: "cuda", 7: "vulkan", 8: "metal", 10: "rocm", 13: "cuda"}


# ---------------------------------------------------------------------- describing


def describe(value: Any) -> Spec:
    """Return the spec of an array of numbers, of one axis.

    Parameters
    ----------
    value : pyarrow.Array

    Returns
    -------
    Spec
        Whether there are nulls is Arrow's own finding, which reads their bits once and is kept.
        Arrays whose elements are not numbers are named as Arrow names them, so that nothing takes
        them.
    """
    kind = value.type
    known = numbers().get(kind.id)
    if known is None:
        return Spec("pyarrow", *_facts(value, kind_of(kind)))
    data = value.buffers()[1]
    length, width = len(value), known[1]
    if data is None or not data.is_cpu or not data.is_mutable or data.address % _ALIGNMENT:
        return Spec("pyarrow", *_facts(value, kind_of(kind)))
    traits = _IMMUTABLE | _MASKED if value.null_count else _IMMUTABLE
    return Spec("pyarrow", known[0], "cpu", (length,), traits, length * width)


def describe_lists(value: Any) -> Spec:
    """Return the spec of an array of lists of one length, whose axes follow that of the array."""
    return Spec("pyarrow.fixed_size_list", *_facts(value, kind_of(value.type)))


def describe_tensors(value: Any) -> Spec:
    """Return the spec of an array of tensors of one shape, whose axes follow that of the array."""
    return Spec("pyarrow.fixed_shape_tensor", *_facts(value, kind_of(value.type)))


def describe_chunks(value: Any) -> Spec:
    """Return the spec of a chunked array; one of a single chunk is described as that chunk."""
    kind = kind_of(value.type)
    if value.num_chunks == 1:
        return Spec("pyarrow.chunked_array", *_facts(value.chunk(0), kind))
    shape = (len(value), *kind.row)
    there = "cpu" if value.is_cpu else device(value.chunk(0))
    masked = _MASKED if there == "cpu" and value.null_count else _NONE
    traits = _IMMUTABLE | _CHUNKED | masked | _inner_nulls(value, kind)
    return Spec("pyarrow.chunked_array", kind.dtype, there, shape, traits, _nbytes(shape, kind))


def describe_scalar(value: Any) -> Spec:
    """Return the spec of a scalar."""
    kind = kind_of(value.type)
    dtype = str(value.type) if kind.inner else kind.dtype
    traits = _NONE if value.is_valid else _MASKED
    return Spec("pyarrow.scalar", dtype, "cpu", (), traits, kind.width)


def _inner_nulls(value: Any, kind: Kind) -> frozenset[str]:
    """Return the trait of chunks whose rows are valid and have nulls inside."""
    inside = kind.inner and any(_levels(chunk)[-1].null_count for chunk in value.chunks)
    return _MASKED if inside else _NONE


def _facts(value: Any, kind: Kind) -> tuple[Any, ...]:
    """Return what the spec of an array says after its format."""
    shape = (len(value), *kind.row)
    if not value.is_cpu:
        return kind.dtype, device(value), shape, _IMMUTABLE, _nbytes(shape, kind)
    if kind.dtype not in NUMBERS and kind.dtype != "bool":
        return kind.dtype, "cpu", shape, _IMMUTABLE, value.get_total_buffer_size()
    levels = _levels(value)
    data = levels[-1].buffers()[1]
    traits = set(_IMMUTABLE)
    if any(level.null_count for level in levels):
        traits.add("masked")
    if data is not None and not data.is_mutable:
        traits.add("readonly")
    if data is not None and data.address % kind.width and not kind.bits:
        traits.add("unaligned")
    if kind.moved:
        traits.add("noncontiguous")
    return kind.dtype, "cpu", shape, frozenset(traits), _nbytes(shape, kind)


def _nbytes(shape: tuple[int, ...], kind: Kind) -> int:
    size = kind.width
    for length in shape:
        size *= length
    return size


def device(value: Any) -> str:
    """Return the device of an array that is not in the memory of the host."""
    buffer = next(each for each in value.buffers() if each is not None)
    kind = int(buffer.device_type.value)
    return f"{_DEVICES.get(kind, f'device{kind}')}:{max(buffer.device.device_id, 0)}"


def _levels(value: Any) -> list[Any]:
    """Return an array, and the arrays of the elements of its rows, down to the numbers."""
    import pyarrow as pa

    levels = [value]
    if isinstance(value, pa.FixedShapeTensorArray):
        value = value.storage
    while pa.types.is_fixed_size_list(value.type):
        size = value.type.list_size
        value = value.values.slice(value.offset * size, len(value) * size)
        levels.append(value)
    return levels


# ---------------------------------------------------------------------- memory


def memory(value: Any) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the numbers of an array and of the bits of its nulls."""
    return tuple(_extents(value)) if value.is_cpu else ()


def memory_of_chunks(value: Any) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory of all chunks."""
    return tuple(extent for chunk in value.chunks for extent in memory(chunk))


def _extents(value: Any) -> Iterator[tuple[int, int]]:
    kind = kind_of(value.type)
    levels = _levels(value) if kind.dtype in NUMBERS or kind.dtype == "bool" else []
    for level in levels:
        if len(level) and level.buffers()[0] is not None:
            yield _bits_extent(level.buffers()[0], level)
    last = levels[-1] if levels else value
    data = last.buffers()[1] if levels else None
    if data is None or not len(last):
        return
    if kind.bits:
        yield _bits_extent(data, last)
    else:
        yield data.address + last.offset * kind.width, len(last) * kind.width


def _bits_extent(bits: Any, array: Any) -> tuple[int, int]:
    first, last = array.offset // 8, (array.offset + len(array) - 1) // 8
    return bits.address + first, last - first + 1


# ---------------------------------------------------------------------- out of Arrow


def to_numpy(value: Any) -> Array:
    """Return the numbers of an array: bits in memory of their own, all others read-only."""
    return _shaped(_flat(_levels(value)[-1]), value)


def _shaped(flat: Array, value: Any) -> Array:
    """Return flat numbers in the shape of an array; a copy of its own is put in order."""
    import numpy as np

    kind = kind_of(value.type)
    array = flat.reshape(len(value), *kind.inner)
    if kind.moved:
        array = array.transpose(0, *(axis + 1 for axis in kind.order))
        if array.flags.writeable:
            array = np.ascontiguousarray(array)
    return array


def _flat(values: Any) -> Array:
    """Return the numbers of a flat array, nulls or not."""
    import numpy as np

    kind = kind_of(values.type)
    length, data = len(values), values.buffers()[1]
    if kind.bits:
        return _unpacked(data, values.offset, length)
    stored = np.dtype("int8" if kind.dtype == "bool" else kind.dtype)
    if not length:
        array = np.empty(0, stored)
    else:
        array = np.frombuffer(data, stored, length, values.offset * stored.itemsize)
    if kind.dtype == "bool":  # whatever is not zero is true, and NumPy knows no true but 1
        truth: Array = np.not_equal(array, 0)
        return truth
    array.flags.writeable = False
    return array


def _unpacked(bits: Any, offset: int, length: int, invert: bool = False) -> Array:
    """Return the truth values that some bits stand for, or their opposites."""
    import numpy as np

    if not length:
        return np.empty(0, np.bool_)
    first, skipped = divmod(offset, 8)
    packed = np.frombuffer(bits, np.uint8, (skipped + length + 7) // 8, first)
    if invert:
        packed = ~packed
    found = np.unpackbits(packed, count=skipped + length, bitorder="little")
    truth: Array = found[skipped:].view(np.bool_)
    return truth


def invalid(value: Any) -> Array | None:
    """Return which elements of an array are null, or None if none is."""
    if not value.null_count:
        return None
    return _unpacked(value.buffers()[0], value.offset, len(value), invert=True)


def fill_value(dtype: str) -> float | int | bool:
    """Return what takes the place of nulls: NaN, 0 or False."""
    if dtype == "bool":
        return False
    return float("nan") if dtype.startswith("float") else 0


def written(value: Any) -> Array:
    """Return the numbers of an array in memory of their own, with NaN, 0 or False for its nulls."""
    import numpy as np

    levels = _levels(value)
    flat = _flat(levels[-1])
    if not flat.flags.writeable:
        flat = flat.copy()
    for level in levels:
        nulls = invalid(level)
        if nulls is not None:
            fill = fill_value(flat.dtype.name)
            rows = flat.reshape(len(nulls), -1)
            rows, nulls = (rows, nulls[:, np.newaxis]) if rows.shape[1] > 1 else (flat, nulls)
            np.copyto(rows, fill, where=nulls)
    return _shaped(flat, value)


def combined(value: Any) -> Array:
    """Return the numbers of all chunks in one block, with NaN, 0 or False for nulls."""
    import numpy as np

    kind = kind_of(value.type)
    out = np.empty((len(value), *kind.row), kind.dtype)
    start = 0
    for chunk in value.chunks:
        out[start : start + len(chunk)] = written(chunk) if _has_nulls(chunk) else to_numpy(chunk)
        start += len(chunk)
    return out


def _has_nulls(value: Any) -> bool:
    return any(level.null_count for level in _levels(value))


def chunk_to_numpy(value: Any) -> Array:
    """Return the numbers of the one chunk of a chunked array."""
    return to_numpy(value.chunk(0))


def scalar_to_numpy(value: Any) -> Array:
    """Return a scalar as an array of no axes; a null is NaN, 0 or False."""
    import numpy as np

    name = kind_of(value.type).dtype
    number = value.as_py() if value.is_valid else fill_value(name)
    return np.array(number, name)


def numpy_fast_path(value: Any) -> Any:
    """Share a plain array with NumPy, or answer `NotImplemented`."""
    import numpy as np

    # NumPy asks those that refuse a second time, in a way of which Arrow warns.
    if value.null_count:
        return NotImplemented
    array = np.from_dlpack(value)
    # That of an array without memory is NumPy's own, and writable.
    return NotImplemented if array.flags.writeable else array


def to_torch(value: Any) -> Any:
    """Return a tensor over the memory of an array, which torch takes to be writable.

    Whether it may have the memory all the same was the policy's to say.
    """
    if not _torch_from_dlpack:
        from torch.utils.dlpack import from_dlpack

        _torch_from_dlpack.append(from_dlpack)
    return _torch_from_dlpack[0](value.__dlpack__(max_version=(1, 0)))


def torch_fast_path(value: Any) -> Any:
    """Share a plain array with torch, or answer `NotImplemented`."""
    data = value.buffers()[1]
    if value.null_count or not data or not data.is_mutable or data.address % _ALIGNMENT:
        return NotImplemented
    try:
        return to_torch(value)
    except _REFUSALS:
        return NotImplemented


# ---------------------------------------------------------------------- into Arrow


def from_numpy(value: Array) -> Any:
    """Return an array over the memory of a compact NumPy array of one axis; bools are packed."""
    return flat_array(value)


def flat_array(value: Array, nulls: Array | None = None) -> Any:
    """Return a flat array over the memory of a compact array; bools are packed into bits."""
    import numpy as np
    import pyarrow as pa

    if value.dtype == np.bool_:
        data = np.packbits(value, axis=None, bitorder="little")
    else:
        data = value.reshape(-1)
    bits = None
    if nulls is not None:
        valid = np.packbits(nulls, axis=None, bitorder="little")
        bits = pa.py_buffer(np.invert(valid, out=valid))
    count = 0 if nulls is None else -1
    type_ = arrow_type(value.dtype.name)
    return pa.Array.from_buffers(type_, value.size, [bits, pa.py_buffer(data)], count)


def array_fast_path(value: Array) -> Any:
    """Share a plain array of one axis with Arrow, or answer `NotImplemented`."""
    if not _makers:
        _learn()
    type_ = _types.get(value.dtype)
    if type_ is None or value.ndim != 1 or value.flags.num & _BLOCK != _BLOCK:
        return NotImplemented
    make, buffer = _makers[0]
    return make(type_, len(value), [None, buffer(value)], 0)


def _learn() -> None:
    """Look up what the fast_path calls, which costs as much as what it does."""
    import numpy as np
    import pyarrow as pa

    _types.update({np.dtype(name): arrow_type(name) for name in NUMBERS})
    _makers.append((pa.Array.from_buffers, pa.py_buffer))


def from_masked(value: Any) -> Any:
    """Return an array over the memory of a masked array, with nulls where that is masked."""
    import numpy as np

    return flat_array(np.ma.getdata(value, subok=False), np.ma.getmaskarray(value))


def from_masked_copy(value: Any) -> Any:
    """Return an array with the numbers of a masked array, and nulls where that is masked."""
    import numpy as np

    data = np.ma.getdata(value, subok=False)
    native = data.dtype.newbyteorder("=")
    return flat_array(np.array(data, native, order="C"), np.ma.getmaskarray(value))


def to_lists(value: Array) -> Any:
    """Return an array of lists of one length, nested as there are axes."""
    import pyarrow as pa

    array = flat_array(value)
    for axis in range(value.ndim - 1, 0, -1):
        type_ = pa.list_(array.type, value.shape[axis])
        length = 1
        for each in value.shape[:axis]:
            length *= each
        array = pa.Array.from_buffers(type_, length, [None], 0, children=[array])
    return array


def to_tensors(value: Array) -> Any:
    """Return an array of the tensors along the first axis."""
    import pyarrow as pa

    array = flat_array(value)
    shape = value.shape[1:]
    size = 1
    for each in shape:
        size *= each
    lists = pa.list_(array.type, size)
    storage = pa.Array.from_buffers(lists, len(value), [None], 0, children=[array])
    return pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(array.type, shape), storage)


def scalar_from_numpy(value: Array) -> Any:
    """Return the one number of an array of no axes as a scalar."""
    return flat_array(value.copy())[0]


# ---------------------------------------------------------------------- within Arrow


def copy(value: Any) -> Any:
    """Return a copy of an array, with its nulls."""
    import pyarrow as pa

    return pa.concat_arrays([value])


def cast_with_nulls(value: Any, *, dtype: str) -> Any:
    """Return an array of another dtype with the same nulls, its numbers as NumPy casts them."""
    import numpy as np

    with np.errstate(all="ignore"):
        return flat_array(_flat(value).astype(dtype), invalid(value))


def first_chunk(value: Any) -> Any:
    """Return the one chunk of a chunked array."""
    return value.chunk(0)


def all_chunks(value: Any) -> Any:
    """Return a copy of all chunks in one array, with their nulls."""
    import pyarrow as pa

    return pa.concat_arrays(value.chunks) if value.num_chunks else pa.array([], value.type)


def to_chunks(value: Any) -> Any:
    """Return a chunked array of one chunk."""
    import pyarrow as pa

    return pa.chunked_array([value])
