"""Quantized arrays that belong to no framework, with components of NumPy's, torch's or CuPy's.

A `QuantizedArray` is dequantized by the framework of its components. A finished one has an element
for each code: codes that share bytes are unpacked on the way, or dequantized as they are.
"""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import (
    COPY,
    DTYPE,
    EMPTY,
    Components,
    Conversion,
    Cost,
    Declaration,
    Format,
    Result,
    Samples,
    hookimpl,
)

from .codes import unpack_cupy, unpack_numpy, unpack_torch
from .components import detach, pack, unpack
from .dense import dequantize_cupy, dequantize_into_numpy, dequantize_numpy, dequantize_torch
from .describe import describe, memory
from .frameworks import DTYPES, NUMPY_DTYPES
from .samples import require_grad

__all__ = ["interop_declarations"]

_GRAD = frozenset({"grad"})
_PACKED, _SCHEMES = frozenset({"packed"}), frozenset({"biased", "per_block"})
_STRIDED = frozenset({"noncontiguous", "broadcast", "unaligned"})
_MEMORY = {
    "numpy": _STRIDED | {"readonly", "immutable", "negative_strides", "byteswapped"},
    "torch": _STRIDED,
    "cupy": _STRIDED | {"negative_strides"},
}
_DEVICES = {"numpy": ("cpu",), "torch": ("cpu", "cuda", "mps", "xpu"), "cupy": ("cuda",)}
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
            samples=Samples(variants={"grad": require_grad} if framework == "torch" else {}),
        )
        for framework, memory_traits in _MEMORY.items()
    ]


def _steps() -> Iterable[Conversion]:
    """Yield the steps out of a graph, to real numbers, and to codes of an element each."""
    yield Conversion(
        "quantized.torch",
        "quantized.torch",
        detach,
        devices=None,
        takes=_MEMORY["torch"] | _PACKED | _SCHEMES,
        requires=_GRAD,
        drops=_GRAD,
        effects=frozenset({"detach"}),
    )
    # CuPy has no bfloat16 to round to.
    for framework, dequantize, unpack_codes, dtypes, latency, bandwidth in (
        ("numpy", dequantize_numpy, unpack_numpy, DTYPES, 1e-5, 1e10),
        ("torch", dequantize_torch, unpack_torch, DTYPES, 2e-5, 7e9),
        ("cupy", dequantize_cupy, unpack_cupy, NUMPY_DTYPES, 1e-4, 2e11),
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
            cost=Cost(latency, bandwidth),
            into=dequantize_into_numpy if framework == "numpy" else None,
        )
        yield Conversion(
            f"quantized.{framework}",
            f"quantized.{framework}",
            unpack_codes,
            devices=None,
            takes=_MEMORY[framework] | _SCHEMES | _GRAD,
            requires=_PACKED,
            drops=_PACKED,
            effects=COPY,
            shares=True,  # the components that are not packed
            cost=Cost(latency, bandwidth / 3),
        )
