"""Quantized arrays that belong to no framework; their components are NumPy's, torch's or CuPy's.

A `QuantizedArray` is dequantized by the framework of its components. In a result every code has an
element of its own: codes that share bytes are unpacked, unless they are dequantized as they are.
"""

from __future__ import annotations

from collections.abc import Iterable

from interop.kit import DTYPE, EMPTY
from interop.plugin import (
    Components,
    Conversion,
    Cost,
    Declaration,
    Drop,
    Format,
    Result,
    Samples,
    hookimpl,
)
from interop.plugin.advanced import Advanced

from .codes import unpack_cupy, unpack_numpy, unpack_torch
from .components import detach, in_rows, join, pack, unpack
from .dense import dequantize_cupy, dequantize_into_numpy, dequantize_numpy, dequantize_torch
from .describe import describe, memory
from .frameworks import DTYPES, NUMPY_DTYPES
from .samples import add_bias, put_in_blocks, require_grad, swizzle, take_apart

_GRAD = frozenset({"grad"})
_PACKED, _SCHEMES = frozenset({"packed"}), frozenset({"biased", "per_block"})
_SWIZZLED = frozenset({"swizzled"})
_STRIDED = frozenset({"noncontiguous", "broadcast", "unaligned"})
_MEMORY = {
    "numpy": _STRIDED | {"readonly", "immutable", "negative_strides", "byteswapped"},
    "torch": _STRIDED,
    "cupy": _STRIDED | {"negative_strides"},
}
_DEVICES = {"numpy": ("cpu",), "torch": ("cpu", "cuda", "mps", "xpu"), "cupy": ("cuda",)}
_UNPACKING = {
    "numpy": (unpack_numpy, Cost(1e-5, 1e10 / 3)),
    "torch": (unpack_torch, Cost(2e-5, 7e9 / 3)),
    "cupy": (unpack_cupy, Cost(1e-4, 2e11 / 3)),
}
_INSTALL = {"numpy": "pip install numpy", "torch": "pip install torch"}


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return a format for each framework of components, and the ways to real numbers."""
    return [*_formats(), *_steps()]


def _formats() -> Iterable[Format]:
    return [
        Format(
            f"quantized.{framework}",
            types=("interop_plugins.quantized.array:QuantizedArray",),
            describe=describe,
            dtypes=DTYPES,
            devices=_DEVICES[framework],
            carries=memory_traits | _SCHEMES | (_GRAD if framework == "torch" else EMPTY),
            requires=framework,
            install=_INSTALL.get(framework, "pip install cupy-cuda13x"),
            unary=tuple(_unary(framework)),
            components=Components(
                layout="affine",
                format=framework,
                roles={
                    "codes": "code_dtype",
                    "scale": "float64",
                    "zero_point": "int64",
                    "bias": "float64",
                },
                unpack_keeps=_SCHEMES,
                unpack=unpack,
                pack=pack,
            ),
            memory=memory,
            advanced=Advanced(hub=True),
            samples=Samples(
                variants={"biased": add_bias, "per_block": put_in_blocks, "swizzled": swizzle}
                | ({"apart": take_apart} if framework != "numpy" else {})
                | ({"grad": require_grad} if framework == "torch" else {})
            ),
        )
        for framework, memory_traits in _MEMORY.items()
    ]


def _unary(framework: str) -> Iterable[Conversion]:
    """Yield the steps that unpack codes, bring components together, and leave a graph."""
    unpack_codes, cost = _UNPACKING[framework]
    takes = _MEMORY[framework] | _SCHEMES | _GRAD
    yield Drop("packed", unpack_codes, "copy", takes=takes, cost=cost)
    # The codes, which are many, are shared.
    tiled = takes | _PACKED
    yield Drop("swizzled", in_rows, "copy", takes=tiled, shares=True, cost=Cost(2e-5))
    if framework != "numpy":
        # The codes stay where they are, and are shared: scales and zero points are small.
        takes |= _PACKED | _SWIZZLED
        yield Drop("apart", join, "transfer", takes=takes, shares=True, cost=Cost(5e-5))
    if framework == "torch":
        yield Drop(
            "grad", detach, "detach", takes=_MEMORY[framework] | _SCHEMES | _PACKED | _SWIZZLED
        )


def _steps() -> Iterable[Conversion]:
    """Yield the steps to real numbers."""
    # CuPy cannot round to bfloat16.
    for framework, dequantize, dtypes, cost in (
        ("numpy", dequantize_numpy, DTYPES, Cost(1e-5, 1e10)),
        ("torch", dequantize_torch, DTYPES, Cost(2e-5, 7e9)),
        ("cupy", dequantize_cupy, NUMPY_DTYPES, Cost(1e-4, 2e11)),
    ):
        yield Conversion(
            f"quantized.{framework}",
            framework,
            dequantize,
            dtypes=dtypes,
            devices=None,
            takes=_MEMORY[framework] | _SCHEMES | _PACKED,
            drops=_PACKED | _SCHEMES,
            changes=DTYPE,
            result=Result(dtypes=dtypes),
            effects=frozenset({"dequantize"}),
            cost=cost,
            into=dequantize_into_numpy if framework == "numpy" else None,
        )
