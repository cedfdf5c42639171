"""Arrays, chunked arrays and scalars of Arrow: their specs, their nulls, and their memory."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from interop.kit import EMPTY, buffer_extents
from interop.plugin import Spec

from .dtypes import NUMBERS, ElementLayout, element_layout, number_types, traits_of

if TYPE_CHECKING:
    import pyarrow as pa

    Extents: TypeAlias = tuple[tuple[int, int], ...]

#: An address that is a multiple of this is aligned for every dtype.
ALIGNMENT = 8

_IMMUTABLE = frozenset({"immutable"})
_MASKED, _CHUNKED = frozenset({"masked"}), frozenset({"chunked"})

#: DLPack's numbers of device types, which are Arrow's, too.
_DEVICES = {2: "cuda", 7: "vulkan", 8: "metal", 10: "rocm", 13: "cuda"}


def describe(array: pa.Array) -> Spec:
    """Return the spec of an array of numbers, of one axis.

    Parameters
    ----------
    array : pyarrow.Array

    Returns
    -------
    Spec
        Arrow itself counts the nulls: it reads their bits once and keeps the count. If the elements
        are not numbers, the dtype is Arrow's name of the type, which no conversion takes.
    """
    type_ = array.type
    number_type = number_types().get(type_.id)
    if number_type is None:
        return Spec("pyarrow", *_facts(array, element_layout(type_)))
    data = array.buffers()[1]
    length, width = len(array), number_type[1]
    if data is None or not data.is_cpu or not data.is_mutable or data.address % ALIGNMENT:
        return Spec("pyarrow", *_facts(array, element_layout(type_)))
    traits = _IMMUTABLE | _MASKED if array.null_count else _IMMUTABLE
    return Spec("pyarrow", number_type[0], "cpu", (length,), traits, length * width)


def describe_rows(name: str, array: pa.FixedSizeListArray | pa.FixedShapeTensorArray) -> Spec:
    """Return the spec of lists of one length or of tensors, whose axes follow the array's."""
    return Spec(name, *_facts(array, element_layout(array.type)))


def describe_chunks(chunked: pa.ChunkedArray) -> Spec:
    """Return the spec of a chunked array; one of a single chunk is described as that chunk."""
    layout = element_layout(chunked.type)
    if chunked.num_chunks == 1:
        return Spec("pyarrow.chunked_array", *_facts(chunked.chunk(0), layout))
    shape = (len(chunked), *layout.row_shape)
    location = "cpu" if chunked.is_cpu else device(chunked.chunk(0))
    masked = _MASKED if location == "cpu" and chunked.null_count else EMPTY
    traits = _IMMUTABLE | _CHUNKED | masked | _inner_nulls(chunked, layout)
    traits |= traits_of(layout.dtype)
    nbytes = prod(shape) * layout.width
    return Spec("pyarrow.chunked_array", layout.dtype, location, shape, traits, nbytes)


def describe_scalar(scalar: pa.Scalar) -> Spec:
    """Return the spec of a scalar."""
    layout = element_layout(scalar.type)
    dtype = str(scalar.type) if layout.stored_shape else layout.dtype
    traits = traits_of(dtype) if scalar.is_valid else traits_of(dtype) | _MASKED
    return Spec("pyarrow.scalar", dtype, "cpu", (), traits, layout.width)


def _inner_nulls(chunked: pa.ChunkedArray, layout: ElementLayout) -> frozenset[str]:
    """Return ``masked`` if there are nulls inside the rows of the chunks."""
    nested = bool(layout.stored_shape)
    return _MASKED if nested and any(levels(c)[-1].null_count for c in chunked.chunks) else EMPTY


class _Facts(NamedTuple):
    """The fields of an array's spec after the format."""

    dtype: str
    device: str
    shape: tuple[int, ...]
    traits: frozenset[str]
    nbytes: int


def _facts(array: pa.Array, layout: ElementLayout) -> _Facts:
    shape = (len(array), *layout.row_shape)
    nbytes = prod(shape) * layout.width
    if not array.is_cpu:
        return _Facts(layout.dtype, device(array), shape, _IMMUTABLE, nbytes)
    if layout.dtype not in NUMBERS and layout.dtype != "bool":
        nulls = _MASKED if array.null_count else EMPTY
        others = _IMMUTABLE | nulls | traits_of(layout.dtype)
        return _Facts(layout.dtype, "cpu", shape, others, array.get_total_buffer_size())
    nested = levels(array)
    data = nested[-1].buffers()[1]
    traits = set(_IMMUTABLE)
    if any(level.null_count for level in nested):
        traits.add("masked")
    if data is not None and not data.is_mutable:
        traits.add("readonly")
    if data is not None and data.address % layout.width and not layout.bits:
        traits.add("unaligned")
    if layout.permuted:
        traits.add("noncontiguous")
    return _Facts(layout.dtype, "cpu", shape, frozenset(traits), nbytes)


def device(array: pa.Array) -> str:
    """Return the device of an array that is not in the memory of the host."""
    buffer = next(buffer for buffer in array.buffers() if buffer is not None)
    number = int(buffer.device_type.value)
    return f"{_DEVICES.get(number, f'device{number}')}:{max(buffer.device.device_id, 0)}"


def levels(array: pa.Array) -> list[pa.Array]:
    """Return an array, and the arrays of the elements of its rows, down to the numbers."""
    import pyarrow as pa

    nested = [array]
    if isinstance(array, pa.FixedShapeTensorArray):
        array = array.storage
    while pa.types.is_fixed_size_list(array.type):
        size = array.type.list_size
        array = array.values.slice(array.offset * size, len(array) * size)
        nested.append(array)
    return nested


# ---------------------------------------------------------------------- memory


def memory(array: pa.Array | pa.ChunkedArray) -> Extents:
    """Return the addresses and lengths of numbers and of the bits of nulls, chunk by chunk."""
    chunks = getattr(array, "chunks", [array])
    return tuple(extent for chunk in chunks if chunk.is_cpu for extent in _extents(chunk))


def _extents(array: pa.Array) -> Iterator[tuple[int, int]]:
    layout = element_layout(array.type)
    if layout.dtype not in NUMBERS and layout.dtype != "bool":
        yield from buffer_extents([array])
        return
    nested = levels(array)
    for level in nested:
        if len(level) and level.buffers()[0] is not None:
            yield _extent_of_bits(level.buffers()[0], level)
    leaf = nested[-1]
    data = leaf.buffers()[1]
    if data is None or not len(leaf):
        return
    if layout.bits:
        yield _extent_of_bits(data, leaf)
    else:
        yield data.address + leaf.offset * layout.width, len(leaf) * layout.width


def _extent_of_bits(bits: pa.Buffer, array: pa.Array) -> tuple[int, int]:
    first, last = array.offset // 8, (array.offset + len(array) - 1) // 8
    return bits.address + first, last - first + 1
