"""The steps within CuPy's dense arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import interop
from interop.kit import misfit, real_part
from interop.plugin import Declined

from .loans import reading
from .streams import device_named, working

if TYPE_CHECKING:
    from .describe import CupyArray, DType
    from .streams import Stream


def as_array(value: CupyArray) -> CupyArray:
    """Return the memory of an array of a subclass as a plain array."""
    import cupy

    return value.view(cupy.ndarray)


def copy(value: CupyArray, *, order: Literal["C", "F"] = "C", stream: Stream = None) -> CupyArray:
    """Return a copy in an order on the same device."""
    with reading(value, stream):
        return value.copy(order=order)


def cast(value: CupyArray, *, dtype: str, stream: Stream = None) -> CupyArray:
    """Return a C-ordered copy of another dtype, which of complex numbers keeps the real part."""
    target = _dtype_named(dtype)
    with reading(value, stream):
        return _castable(value, target).astype(target, order="C")


def cast_if_exact(value: CupyArray, *, dtype: str, stream: Stream = None) -> CupyArray:
    """Return integers of 64 bits in 32 if all of them fit.

    The least and the largest are found where the array lies, and come to the host together.
    """
    import cupy
    import numpy as np

    with reading(value, stream):
        if value.size:
            ends = cupy.stack([value.min(), value.max()]).get()
            if reason := misfit(ends, dtype):
                raise Declined(reason)
        return value.astype(np.dtype(dtype), order="C")


def _dtype_named(name: str) -> DType:
    import numpy as np

    if name != "bfloat16":
        return np.dtype(name)
    import ml_dtypes

    bfloat16: DType = np.dtype(ml_dtypes.bfloat16)
    return bfloat16


def _castable(value: CupyArray, target: DType) -> CupyArray:
    """Return an array with the numbers of `value` that a kernel casts to `target` silently."""
    value = real_part(value, target)
    names = {value.dtype.name, target.name}
    # Not every kernel handles bfloat16; float32 holds it, and everything else as narrow.
    if len(names) > 1 and "bfloat16" in names and value.dtype.itemsize <= 2:
        return value.astype("float32")
    return value


def move(value: CupyArray, *, device: str, stream: Stream = None) -> CupyArray:
    """Return a C-ordered copy on another device of the same kind, complete on return."""
    import cupy

    target = device_named(device)
    with working(target, stream) as target_stream:
        before = target_stream.record()
        with value.data.device:
            source_stream = cupy.cuda.get_current_stream()
            source_stream.wait_event(before)
            source = value if value.flags.c_contiguous else value.copy(order="C")
            ready = source_stream.record()
        target_stream.wait_event(ready)
        result = cupy.empty(value.shape, value.dtype)
        if value.size:
            result.data.copy_from_device_async(source.data, source.nbytes, target_stream)
        target_stream.synchronize()
    return result


def stack(value: Sequence[object], *, dtype: Any) -> CupyArray:
    """Return an array of the elements of a sequence, on their device."""
    import cupy

    convert = interop.converter("cupy", dtype=dtype)
    rows = [convert(element) for element in value]
    with rows[0].device:
        return cupy.stack(rows)


def fill(out: CupyArray, value: CupyArray) -> None:
    """Write the numbers of `value` into `out`, which is on the same device."""
    with reading(value, None):
        out[...] = _castable(value, out.dtype)
