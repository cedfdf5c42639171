"""Tensors on CUDA devices: shared with torch and CuPy, and moved to and from the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from interop.errors import DeviceError
from interop.kit import MemoryAt, numpy_dtype

from .dense import Producer
from .describe import ELEMENT_TYPES, array_interface

if TYPE_CHECKING:
    import cupy
    import numpy as np
    import torch
    from onnxruntime import OrtValue

    Array: TypeAlias = np.ndarray[Any, Any]


def to_torch(value: OrtValue) -> torch.Tensor:
    """Return a tensor over the memory of one on a CUDA device, which keeps the value alive."""
    import torch

    name = ELEMENT_TYPES[value.element_type()]
    device = f"cuda:{value.__dlpack_device__()[1]}"
    return torch.as_tensor(_memory(value, name), device=device).view(getattr(torch, name))


def to_cupy(value: OrtValue) -> cupy.ndarray:
    """Return an array over the memory of a tensor on a CUDA device, which keeps the value alive."""
    import cupy

    with cupy.cuda.Device(value.__dlpack_device__()[1]):
        return cupy.asarray(_memory(value, ELEMENT_TYPES[value.element_type()]))


def _memory(value: OrtValue, name: str) -> MemoryAt:
    bits = "<i2" if name == "bfloat16" else numpy_dtype(name).str
    interface = array_interface(value, tuple(value.shape()), bits)
    return MemoryAt(interface, value, "__cuda_array_interface__")


def from_torch(tensor: torch.Tensor) -> OrtValue:
    """Return an OrtValue over the memory of a tensor, once that is written.

    ONNX Runtime asks for no stream, and its own stream waits for no other.
    """
    import torch
    from onnxruntime import OrtValue

    if tensor.is_cuda:
        torch.cuda.current_stream(tensor.device).synchronize()
    source = tensor.view(torch.uint8) if tensor.dtype == torch.bool else tensor
    return OrtValue.from_dlpack(Producer(source, tensor.dtype))


def from_cupy(array: cupy.ndarray) -> OrtValue:
    """Return an OrtValue over the memory of an array on a CUDA device, once that is written."""
    from onnxruntime import OrtValue

    with array.device:
        from cupy.cuda import get_current_stream

        get_current_stream().synchronize()
    source = array.view("u1") if array.dtype.kind == "b" else array
    return OrtValue.from_dlpack(Producer(source, array.dtype))


def download(value: OrtValue, *, device: str) -> Array:
    """Return an array of a tensor on another device, copied by ONNX Runtime."""
    array: Array = value.numpy()
    return array


def upload(array: Array, *, device: str) -> OrtValue:
    """Return a tensor on a CUDA device with the elements of an array, copied when it returns.

    Raises
    ------
    DeviceError
        The installed build has no provider for CUDA; its own error would be of memory.
    """
    from onnxruntime import OrtValue, get_available_providers

    if "CUDAExecutionProvider" not in get_available_providers():
        msg = (
            "ONNX Runtime finds no provider for CUDA; install the device's driver and "
            "onnxruntime-gpu, or ask for device='cpu'."
        )
        raise DeviceError(msg)
    type_, _, index = device.partition(":")
    return OrtValue.ortvalue_from_numpy(array, type_, int(index or 0))
