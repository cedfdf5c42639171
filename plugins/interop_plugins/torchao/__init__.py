"""torchao: quantized tensors, which have the dtype of the numbers they stand for but hold codes.

If the layout of the codes is known, a tensor shares them with every other quantized format, and
those dequantize it. Other tensors can only be dequantized by torchao. No step treats the outer
tensor as a dense one: it has no memory, and returns zero as its address.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from interop.kit import EMPTY, REALS
from interop.plugin import (
    Components,
    Conversion,
    Cost,
    Declaration,
    Drop,
    Format,
    Limits,
    Samples,
    hookimpl,
)

from . import dense, quantized, samples
from .describe import CODE_DTYPES, describe, memory

_GRAD, _GAPS = frozenset({"grad"}), frozenset({"noncontiguous"})
_BLOCKS, _BIASED = frozenset({"per_block"}), frozenset({"biased"})
_SCALED = frozenset({"act_pre_scale"})

_DEVICES = ("cpu", "cuda", "mps", "xpu")
_DTYPES = frozenset({"float16", "bfloat16", "float32"})
_INSTALL = "pip install torchao"
_BASE = "torchao.utils:TorchAOBaseTensor"

#: Some classes have no zero points. They have this role all the same, because the zero points of
#: another format's value may all be zero.
_ROLES = {"codes": "code_dtype", "scale": "float64", "zero_point": "int64"}
#: By format: the class, the roles beside those in `_ROLES`, and the traits of its own.
_CODED = {
    "torchao.int8": ("Int8Tensor", {}, _BLOCKS | _SCALED),
    "torchao.float8": ("Float8Tensor", {}, _BLOCKS),
    "torchao.int4": ("Int4Tensor", {"bias": "float64"}, _BLOCKS | _BIASED | _SCALED),
    "torchao.intx": ("IntxUnpackedToInt8Tensor", {}, _BLOCKS),
}

#: The texts of refusals by trait.
_REFUSAL_HINTS = {
    "act_pre_scale": "whatever it is multiplied with has to be scaled by its act_pre_scale first, "
    "which no other format carries; do that yourself and set it to None, or convert both parts.",
    "mixed_components": "its components are on different devices; move it to one (.to(device)).",
    "no_dequantize": "its class has no dequantize of its own, and its codes are laid out for the "
    "kernels of one device; keep the tensor that it was made of, or one of plain codes.",
    "meta": "it has a shape but no data; convert it where it was loaded.",
}
_NF4_REFUSAL_HINTS = {
    **_REFUSAL_HINTS,
    "noncontiguous": "torchao gives its numbers in the order they had before; convert it as it "
    "was, and transpose the result.",
}


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return everything that is declared for torchao."""
    return [
        *_coded_formats(),
        _format(
            "torchao.nf4",
            types=("torchao.quantization:NF4Tensor", "torchao.dtypes:NF4Tensor"),
            dtypes=_DTYPES | REALS,
            limits=Limits(refusal_hints=_NF4_REFUSAL_HINTS),
        ),
        _format("torchao.opaque", types=(_BASE,), dtypes=_DTYPES | REALS),
        *_dequantizing(),
    ]


def _coded_formats() -> Iterable[Format]:
    """Yield a format for each class whose layout of codes is known."""
    for name, (class_, roles, traits) in _CODED.items():
        is_packed = name == "torchao.int4"
        packed = frozenset({"codes"}) if is_packed else EMPTY
        yield _format(
            name,
            types=(f"torchao.quantization:{class_}",),
            dtypes=_DTYPES,
            carries=_GRAD | _GAPS | traits,
            unary=(Drop("grad", dense.detach, "detach", cost=Cost(5e-5)),),
            ndims=frozenset({2, 3}) if is_packed else None,
            components=Components(
                layout="affine",
                format="torch",
                unpack_keeps=traits,
                roles=_ROLES | roles,
                unpack=quantized.unpack,
                pack=partial(quantized.pack, name),
                unpack_copies=packed,
                pack_copies=packed,
                pack_requires=_BLOCKS if is_packed else EMPTY,
                pack_seconds=3e-5,
                code_dtypes=CODE_DTYPES[name],
            ),
        )


def _format(name: str, **fields: Any) -> Format:
    shared: dict[str, Any] = {"carries": _GRAD, "limits": Limits(refusal_hints=_REFUSAL_HINTS)}
    return Format(
        name,
        describe=describe,
        devices=_DEVICES,
        requires="torchao",
        install=_INSTALL,
        memory=memory,
        samples=Samples(samples.MAKERS[name], "torch", samples.VARIANTS),
        **shared | fields,
    )


def _dequantizing() -> Iterable[Conversion]:
    """Yield the ways to real numbers for tensors whose layout of codes is not known."""
    for name, function in (
        ("torchao.nf4", dense.dequantize_nf4),
        ("torchao.opaque", dense.dequantize),
    ):
        for in_graph, effects in ((EMPTY, EMPTY), (_GRAD, frozenset({"detach"}))):
            yield Conversion(
                name,
                "torch",
                function,
                devices=None,
                requires=in_graph,
                drops=in_graph,
                effects=effects | {"dequantize"},
                cost=Cost(1e-4, 1e9),
            )
