"""The specs of quantized arrays, and where the memory of their components lies."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from interop.errors import UnknownValueError
from interop.kit import EMPTY, extent
from interop.plugin import Spec

from .array import QuantizedArray
from .frameworks import dtype_name

if TYPE_CHECKING:
    from .frameworks import Array

#: Those whose arrays can be components.
FRAMEWORKS = ("numpy", "torch", "cupy")


def describe(value: QuantizedArray) -> Spec:
    """Return the spec of a quantized array, named after the framework of its components.

    Parameters
    ----------
    value : QuantizedArray

    Returns
    -------
    Spec

    Raises
    ------
    UnknownValueError
        The codes are of a framework whose arrays cannot be components.
    """
    codes = value.codes
    parts = [part for part in arrays_of(value).values() if part is not None]
    framework = framework_of(codes)
    if framework not in FRAMEWORKS:
        msg = (
            f"a QuantizedArray with codes of {type(codes).__module__}.{type(codes).__qualname__} "
            "is not supported; give it arrays of numpy, torch or cupy."
        )
        raise UnknownValueError(msg)
    traits = EMPTY.union(*(_traits(part) for part in parts))
    if any(framework_of(part) != framework for part in parts):
        traits |= {"mixed_components"}
    elif any(_device(part) != _device(codes) for part in parts):
        traits |= {"apart"}
    if value.packed is not None:
        traits |= {"packed"}
    if value.bias is not None:
        traits |= {"biased"}
    if value.block_size is not None:
        traits |= {"per_block"}
    if value.scale_layout != "linear":
        traits |= {"swizzled"}
    return Spec(
        f"quantized.{framework}",
        value.dtype,
        _device(codes),
        value.shape,
        traits,
        sum(part.nbytes for part in parts),
        code_dtype=dtype_name(codes),
    )


def framework_of(part: Array) -> str:
    """Return the name of the framework of a component."""
    return type(part).__module__.partition(".")[0]


def arrays_of(value: QuantizedArray) -> dict[str, Array]:
    """Return the components by their roles; those that a value lacks are None."""
    return {
        "codes": value.codes,
        "scale": value.scale,
        "zero_point": value.zero_point,
        "bias": value.bias,
    }


def _device(part: Array) -> str:
    device = getattr(part, "device", "cpu")
    index = getattr(device, "id", None)  # CuPy's device does not name its type
    return str(device) if index is None else f"cuda:{index}"


def _traits(part: Array) -> frozenset[str]:
    """Return the traits of the memory of one component."""
    if framework_of(part) == "torch":
        present = {"noncontiguous": not part.is_contiguous(), "grad": part.requires_grad}
    elif not hasattr(part, "__setitem__"):  # an array scalar, which is copied
        return EMPTY
    else:
        steps = [step for n, step in zip(part.shape, part.strides, strict=True) if n > 1]
        flags = part.flags
        present = {
            "noncontiguous": not flags.c_contiguous,
            "negative_strides": min(steps, default=0) < 0,
            "broadcast": 0 in steps,
            "byteswapped": not part.dtype.isnative,
            "readonly": not getattr(flags, "writeable", True),
            "unaligned": not getattr(flags, "aligned", True),
        }
    return frozenset(trait for trait, holds in present.items() if holds)


def memory(value: QuantizedArray) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory of each component."""
    arrays = [part for part in arrays_of(value).values() if hasattr(part, "__setitem__")]
    return tuple(_extent(part) for part in arrays if prod(part.shape))


def _extent(part: Array) -> tuple[int, int]:
    framework = framework_of(part)
    size = part.dtype.itemsize
    if framework == "torch":
        address, strides = part.data_ptr(), [step * size for step in part.stride()]
    else:
        address = part.ctypes.data if framework == "numpy" else part.data.ptr
        strides = part.strides
    return extent(address, part.shape, strides, size)
