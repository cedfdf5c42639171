"""Arrays, chunked arrays and scalars of Arrow: how their numbers come and go.

Their memory never changes, so NumPy gets it read-only. The number under a null is undefined: where
the nulls are dropped, NaN, 0 or False takes their places in new memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from interop.kit import arrow_nulls, arrow_numbers, cast_objects, export

from .describe import ALIGNMENT, levels
from .dtypes import NUMBERS, arrow_type, element_layout

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import torch

    Array: TypeAlias = np.ndarray[Any, Any]
    _Constructors: TypeAlias = tuple[
        dict[np.dtype[Any], pa.DataType],
        Callable[[Array], pa.Array] | None,
        Callable[..., pa.Array],
        Callable[[Array], pa.Buffer],
    ]

#: The errors of Arrow and torch where memory cannot be shared.
_REFUSALS = (BufferError, ValueError, RuntimeError, TypeError, NotImplementedError)

#: The bits of NumPy's `flags.num` of one C-ordered, aligned block.
_BLOCK = 0x0001 | 0x0100


@cache
def _torch_from_dlpack() -> Callable[[object], torch.Tensor]:
    """Return torch's consumer of capsules: to import it takes a fast path a tenth of its time."""
    from torch.utils.dlpack import from_dlpack

    return from_dlpack


# ---------------------------------------------------------------------- out of Arrow


def to_numpy(array: pa.Array) -> Array:
    """Return the numbers of an array: read-only over its memory, but bits in new memory."""
    return _shaped(_flat(levels(array)[-1]), array)


def _shaped(flat: Array, source: pa.Array) -> Array:
    """Return flat numbers in the shape of an array; if they are in new memory, C-ordered."""
    import numpy as np

    layout = element_layout(source.type)
    array = flat.reshape(len(source), *layout.stored_shape)
    if layout.permuted:
        array = array.transpose(0, *(axis + 1 for axis in layout.order))
        if array.flags.writeable:
            array = np.ascontiguousarray(array)
    return array


def _flat(values: pa.Array) -> Array:
    """Return the numbers of a flat array, nulls or not."""
    layout = element_layout(values.type)
    if layout.dtype == "bool" and not layout.bits:
        truth: Array = arrow_numbers(values.storage) != 0  # in NumPy only 1 is true
        return truth
    numbers: Array = arrow_numbers(values)
    return numbers


def null_places(array: pa.Array) -> Array | None:
    """Return which elements of an array are null, also inside of its rows, or None if none is."""
    import numpy as np

    nested = levels(array)
    if len(nested) == 1 or not any(level.null_count for level in nested):
        flat: Array | None = arrow_nulls(array)
        return flat
    places = np.zeros(len(nested[-1]), np.bool_)
    for level in nested:
        if level.null_count:
            places.reshape(len(level), -1)[arrow_nulls(level)] = True
    return _shaped(places, array)


def chunk_to_numpy(chunked: pa.ChunkedArray) -> Array:
    """Return the numbers of the one chunk of a chunked array."""
    return to_numpy(chunked.chunk(0))


def scalar_to_numpy(scalar: pa.Scalar, *, dtype: str | None = None) -> Array:
    """Return a scalar as an array of no axes; a null is NaN, if the dtype has one, or zero."""
    import ml_dtypes  # noqa: F401 - whose dtypes NumPy knows by name from then on
    import numpy as np

    type_, number = np.dtype(dtype or element_layout(scalar.type).dtype), scalar.as_py()
    array: Array = cast_objects(np.array(number, object), type_, fill_nulls=True)
    return array


def numpy_fast_path(array: pa.Array) -> Any:
    """Share a plain array with NumPy, or return `NotImplemented`."""
    import numpy as np

    # When Arrow refuses to export nulls, NumPy asks again in a way that makes Arrow warn.
    if array.null_count:
        return NotImplemented
    shared = np.from_dlpack(array)
    # That of an array without memory is NumPy's own, and writable.
    return NotImplemented if shared.flags.writeable else shared


def to_torch(array: pa.Array) -> torch.Tensor:
    """Return a tensor over the memory of an array, which torch takes to be writable.

    The policy has decided that it may share the memory all the same.
    """
    return _torch_from_dlpack()(export(array))


def torch_fast_path(array: pa.Array) -> Any:
    """Share a plain array with torch, or return `NotImplemented`."""
    data = array.buffers()[1]
    if array.null_count or not data or not data.is_mutable or data.address % ALIGNMENT:
        return NotImplemented
    try:
        return to_torch(array)
    except _REFUSALS:
        return NotImplemented


# ---------------------------------------------------------------------- into Arrow


def flat_array(array: Array, nulls: Array | None = None) -> pa.Array:
    """Return a flat Arrow array over the memory of a compact array; bools are packed into bits."""
    import numpy as np
    import pyarrow as pa

    if array.dtype == np.bool_:
        data = np.packbits(array, axis=None, bitorder="little")
    else:
        data = array.reshape(-1)
    bits = None
    if nulls is not None:
        valid = np.packbits(nulls, axis=None, bitorder="little")
        bits = pa.py_buffer(np.invert(valid, out=valid))
    null_count = 0 if nulls is None else -1  # -1: Arrow counts them when it is asked
    type_ = arrow_type(array.dtype.name)
    return pa.Array.from_buffers(type_, array.size, [bits, pa.py_buffer(data)], null_count)


def array_fast_path(array: Array) -> Any:
    """Share a plain array of one axis with Arrow, or return `NotImplemented`."""
    types, from_dlpack, from_buffers, buffer = _constructors()
    type_ = types.get(array.dtype)
    if type_ is None or array.ndim != 1 or array.flags.num & _BLOCK != _BLOCK:
        return NotImplemented
    # It refuses arrays without elements, and strides that no element is reached by.
    if from_dlpack is not None and len(array) > 1:
        return from_dlpack(array)
    return from_buffers(type_, len(array), [None, buffer(array)], 0)


@cache
def _constructors() -> _Constructors:
    """Return Arrow's types by NumPy's dtypes, and its constructors of arrays and of buffers.

    That by DLPack, which PyArrow has from 26 on, takes three quarters of the time of the others.
    """
    import numpy as np
    import pyarrow as pa

    types = {np.dtype(name): arrow_type(name) for name in NUMBERS}
    from_dlpack = getattr(pa.Array, "from_dlpack", None)
    return types, from_dlpack, pa.Array.from_buffers, pa.py_buffer


def _mask(masked: Any) -> np.ndarray[Any, Any]:
    """Return the mask of a NumPy array, or of another library's such as astropy's."""
    import numpy as np

    if isinstance(masked, np.ma.MaskedArray):
        return np.ma.getmaskarray(masked)
    return np.asarray(masked.mask, bool)


def from_masked(masked: np.ma.MaskedArray[Any, Any]) -> pa.Array:
    """Return an Arrow array over the memory of a masked array, with nulls in masked places."""
    import numpy as np

    return flat_array(np.ma.getdata(masked, subok=False), _mask(masked))


def copy_masked(masked: np.ma.MaskedArray[Any, Any]) -> pa.Array:
    """Return an Arrow array with the numbers of a masked array, and nulls in masked places."""
    import numpy as np

    data = np.ma.getdata(masked, subok=False)
    native = data.dtype.newbyteorder("=")
    return flat_array(np.array(data, native, order="C"), _mask(masked))


def to_masked(array: pa.Array) -> np.ma.MaskedArray[Any, Any]:
    """Return the numbers of an array over its memory, with a mask in the places of nulls."""
    import numpy as np

    nulls = null_places(array)
    return np.ma.MaskedArray(to_numpy(array), mask=np.ma.nomask if nulls is None else nulls)


def to_lists(array: Array) -> pa.FixedSizeListArray:
    """Return an Arrow array of lists of one length, nested as deep as there are axes."""
    import pyarrow as pa

    nested = flat_array(array)
    for axis in range(array.ndim - 1, 0, -1):
        type_ = pa.list_(nested.type, array.shape[axis])
        length = prod(array.shape[:axis])
        nested = pa.Array.from_buffers(type_, length, [None], 0, children=[nested])
    return nested


def to_tensors(array: Array) -> pa.FixedShapeTensorArray:
    """Return an Arrow array of the tensors along the first axis."""
    import pyarrow as pa

    flat = flat_array(array)
    shape = array.shape[1:]
    lists = pa.list_(flat.type, prod(shape))
    storage = pa.Array.from_buffers(lists, len(array), [None], 0, children=[flat])
    return pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(flat.type, shape), storage)


def scalar_from_numpy(array: Array) -> pa.Scalar:
    """Return the one number of an array of no axes as a scalar."""
    return flat_array(array.copy())[0]


# ---------------------------------------------------------------------- within Arrow


def copy(array: pa.Array) -> pa.Array:
    """Return a copy of an array, with its nulls."""
    import pyarrow as pa

    return pa.concat_arrays([array])


def all_chunks(chunked: pa.ChunkedArray) -> pa.Array:
    """Return the chunks in one array, with their nulls: the only one, or a copy of all."""
    import pyarrow as pa

    if chunked.num_chunks == 1:
        return chunked.chunk(0)
    return pa.concat_arrays(chunked.chunks) if chunked.num_chunks else pa.array([], chunked.type)


def to_chunks(array: pa.Array) -> pa.ChunkedArray:
    """Return a chunked array of one chunk."""
    import pyarrow as pa

    return pa.chunked_array([array])
