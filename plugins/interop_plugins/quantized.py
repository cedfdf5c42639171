"""Quantized arrays that belong to no framework, with components of NumPy's, torch's or CuPy's.

A `QuantizedArray` is dequantized by the framework its components are in. A finished one has an
element for each code: codes that share bytes are unpacked on the way, or dequantized as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from interop.errors import UnknownValueError
from interop.plugin import (
    Components,
    Conversion,
    Cost,
    Declaration,
    Format,
    Parts,
    QuantizedArray,
    Result,
    Samples,
    Spec,
    hookimpl,
)

from . import _quantized_numbers as numbers
from ._quantized_numbers import DTYPES, NUMPY_DTYPES, dtype_name

__all__ = ["interop_declarations"]

_NONE: frozenset[str] = frozenset()
_GRAD = frozenset({"grad"})
_PACKED, _BIASED = frozenset({"packed"}), frozenset({"biased"})
_STRIDED = frozenset({"noncontiguous", "broadcast", "unaligned"})
_MEMORY = {
    "numpy": _STRIDED | {"readonly", "immutable", "negative_strides", "byteswapped"},
    "torch": _STRIDED,
    "cupy": _STRIDED | {"negative_strides"},
}
_DEVICES = {"numpy": ("cpu",), "torch": ("cpu", "cuda", "mps", "xpu"), "cupy": ("cuda",)}
_INSTALL = {"numpy": "pip install numpy", "torch": "pip install torch"}

#: What scales and zero points are handed over as. All frameworks have these dtypes.
_COMMON = frozenset(
    {"float16", "float32", "float64"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)


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
    parts = [part for part in _arrays(value).values() if part is not None]
    framework = _framework(codes)
    if framework not in _MEMORY:
        msg = (
            f"a QuantizedArray with codes of {type(codes).__module__}.{type(codes).__qualname__} "
            "is not known; give it arrays of numpy, torch or cupy."
        )
        raise UnknownValueError(msg)
    traits = _NONE.union(*(_traits(part) for part in parts))
    if any(_framework(part) != framework for part in parts):
        traits |= {"mixed_components"}
    if value.packed is not None:
        traits |= _PACKED
    if value.bias is not None:
        traits |= _BIASED
    return Spec(
        f"quantized.{framework}",
        value.dtype,
        _device(codes),
        value.shape,
        traits,
        sum(part.nbytes for part in parts),
        code_dtype=dtype_name(codes),
    )


def _framework(part: Any) -> str:
    return type(part).__module__.partition(".")[0]


def _arrays(value: QuantizedArray) -> dict[str, Any]:
    return {
        "codes": value.codes,
        "scale": value.scale,
        "zero_point": value.zero_point,
        "bias": value.bias,
    }


def _device(part: Any) -> str:
    device = getattr(part, "device", "cpu")
    index = getattr(device, "id", None)  # CuPy's device does not say of which type it is
    return str(device) if index is None else f"cuda:{index}"


def _traits(part: Any) -> frozenset[str]:
    """Return the traits of the memory of one component."""
    if _framework(part) == "torch":
        found = {"noncontiguous": not part.is_contiguous(), "grad": part.requires_grad}
    elif not hasattr(part, "__setitem__"):  # an array scalar, which is copied
        return _NONE
    else:
        steps = [step for n, step in zip(part.shape, part.strides, strict=True) if n > 1]
        flags = part.flags
        found = {
            "noncontiguous": not flags.c_contiguous,
            "negative_strides": min(steps, default=0) < 0,
            "broadcast": 0 in steps,
            "byteswapped": not part.dtype.isnative,
            "readonly": not getattr(flags, "writeable", True),
            "unaligned": not getattr(flags, "aligned", True),
        }
    return frozenset(trait for trait, holds in found.items() if holds)


def unpack(value: QuantizedArray) -> Parts:
    """Return the components, which are the very arrays of the value.

    But for scales, zero points and biases of dtypes that not all frameworks have: they are widened.
    """
    return _apart(value, {role: _common(role, part) for role, part in _arrays(value).items()})


def _apart(value: QuantizedArray, arrays: dict[str, Any]) -> Parts:
    facts = {"axis": value.axis, "block_size": value.block_size, "dtype": value.dtype}
    return Parts(value.shape, arrays, facts)


def _common(role: str, part: Any) -> Any:
    """Return a component as an array of a dtype that all frameworks have."""
    if part is not None and not hasattr(part, "__setitem__"):
        part = _as_array(part)
    if part is None or role == "codes" or dtype_name(part) in _COMMON:
        return part
    kind = dtype_name(part)
    wider = ("uint8" if kind.startswith("u") else "int8") if "int" in kind else "float32"
    if _framework(part) == "torch":
        import torch

        return part.to(getattr(torch, wider))
    return part.astype(wider)


def _as_array(scalar: Any) -> Any:
    import numpy as np

    return np.asarray(scalar)


def pack(parts: Parts) -> QuantizedArray:
    """Return the quantized array with the given components."""
    arrays, facts = parts.arrays, parts.facts
    return QuantizedArray(
        arrays["codes"],
        arrays["scale"],
        arrays["zero_point"],
        axis=facts["axis"],
        block_size=facts["block_size"],
        dtype=facts["dtype"],
        bias=arrays.get("bias"),
    )


def detach(value: QuantizedArray) -> QuantizedArray:
    """Return the quantized array with components outside any autograd graph."""
    found = _arrays(value).items()
    arrays = {role: part if part is None else part.detach() for role, part in found}
    if value.packed is None:
        return pack(_apart(value, arrays))
    return QuantizedArray(
        **arrays,
        axis=value.axis,
        block_size=value.block_size,
        dtype=value.dtype,
        packed=value.packed,
        shape=value.shape,
    )


def require_grad(value: QuantizedArray) -> QuantizedArray:
    """Return the quantized array with a scale that is a leaf of an autograd graph: a sample."""
    scale = value.scale.detach().requires_grad_()
    return pack(_apart(value, {**_arrays(value), "scale": scale}))


def memory(value: QuantizedArray) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory of each component."""
    arrays = [part for part in _arrays(value).values() if hasattr(part, "__setitem__")]
    return tuple(_extent(part) for part in arrays if prod(part.shape))


def _extent(part: Any) -> tuple[int, int]:
    framework = _framework(part)
    size = part.dtype.itemsize
    if framework == "torch":
        address, strides = part.data_ptr(), [step * size for step in part.stride()]
    else:
        address = part.ctypes.data if framework == "numpy" else part.data.ptr
        strides = part.strides
    reach = [(n - 1) * step for n, step in zip(part.shape, strides, strict=True)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    return address + low, high - low + size


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> Iterable[Format]:
    """Return one format for each framework that the components may be in."""
    return [
        Format(
            f"quantized.{framework}",
            types=("interop._model.quantized:QuantizedArray",),
            describe=describe,
            dtypes=DTYPES,
            devices=_DEVICES[framework],
            carries=memory_traits | _BIASED | (_GRAD if framework == "torch" else _NONE),
            requires=framework,
            install=_INSTALL.get(framework, "pip install cupy-cuda13x"),
            components=Components(
                layout="affine",
                format=framework,
                roles={
                    "codes": "code_dtype",
                    "scale": "float64",
                    "zero_point": "int64",
                    "bias": "float64",
                },
                unpack_keeps=_BIASED,
                unpack=unpack,
                pack=pack,
            ),
            memory=memory,
            samples=Samples(variants={"grad": require_grad} if framework == "torch" else {}),
        )
        for framework, memory_traits in _MEMORY.items()
    ]


def _conversions() -> Iterable[Conversion]:
    """Return the ways to real numbers, within each framework."""
    yield Conversion(
        "quantized.torch",
        "quantized.torch",
        detach,
        devices=None,
        takes=_MEMORY["torch"] | _PACKED | _BIASED,
        requires=_GRAD,
        drops=_GRAD,
        effects=frozenset({"detach"}),
    )
    # CuPy has no bfloat16 to round to.
    for framework, dtypes, latency, bandwidth in (
        ("numpy", DTYPES, 1e-5, 1e10),
        ("torch", DTYPES, 2e-5, 7e9),
        ("cupy", NUMPY_DTYPES, 1e-4, 2e11),
    ):
        dequantize = getattr(numbers, f"dequantize_{framework}")
        yield Conversion(
            f"quantized.{framework}",
            framework,
            dequantize,
            dtypes=dtypes,
            devices=None,
            takes=_MEMORY[framework] | _BIASED | _PACKED,
            drops=_PACKED | _BIASED,
            changes=frozenset({"dtype"}),
            result=Result(dtypes=dtypes),
            effects=frozenset({"dequantize"}),
            cost=Cost(latency, bandwidth),
            into=numbers.dequantize_into_numpy if framework == "numpy" else None,
        )
        yield Conversion(
            f"quantized.{framework}",
            f"quantized.{framework}",
            getattr(numbers, f"unpack_{framework}"),
            devices=None,
            takes=_MEMORY[framework] | _BIASED | _GRAD,
            requires=_PACKED,
            drops=_PACKED,
            effects=frozenset({"copy"}),
            shares=True,  # what is not packed
            cost=Cost(latency, bandwidth / 3),
        )
