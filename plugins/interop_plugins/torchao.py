"""torchao: quantized tensors that claim to be of the dtype of their numbers, and hold none.

Those whose codes are known share them with every other quantized format, which also dequantizes
them. Of the others only the numbers can be had. No step takes the outer tensor for a dense one: it
has no memory, and whoever asks for its address is given zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from interop.plugin import (
    Components,
    Conversion,
    Cost,
    Declaration,
    Format,
    Limits,
    Samples,
    hookimpl,
)

from . import _torchao_dense as dense
from . import _torchao_tensors as tensors
from ._torchao_assembly import pack

__all__ = ["interop_declarations"]

_GRAD, _GAPS = frozenset({"grad"}), frozenset({"noncontiguous"})
_BIASED, _SCALED = frozenset({"biased"}), frozenset({"act_pre_scale"})

_DEVICES = ("cpu", "cuda", "mps", "xpu")
_DTYPES = frozenset({"float16", "bfloat16", "float32"})
_REALS = _DTYPES | {"float64"}
_INSTALL = "pip install torchao"
_BASE = "torchao.utils:TorchAOBaseTensor"

_ROLES = {"codes": "code_dtype", "scale": "float64"}
_ZEROS = {"zero_point": "int64"}
#: For each format with codes: its class, the roles beside codes and scales, and its own traits.
_CODED = {
    "torchao.int8": ("Int8Tensor", _ZEROS, _SCALED),
    "torchao.float8": ("Float8Tensor", {}, frozenset()),
    "torchao.int4": ("Int4Tensor", {"bias": "float64"}, _BIASED | _SCALED),
    "torchao.intx": ("IntxUnpackedToInt8Tensor", _ZEROS, frozenset()),
}

#: What the texts of refusals say.
_OBSTACLES = {
    "act_pre_scale": "what it is multiplied with is to be scaled by its act_pre_scale first, which "
    "nothing else carries; do that yourself and set it to None, or convert both parts.",
    "mixed_components": "its components are on different devices; move it to one (.to(device)).",
    "no_dequantize": "its class has no dequantize of its own, and its codes are laid out for one "
    "device's kernels; keep the tensor that it was made of, or one of plain codes.",
    "meta": "it has a shape but no data; convert it where it was loaded.",
}
_NF4_OBSTACLES = {
    **_OBSTACLES,
    "noncontiguous": "torchao gives its numbers in the order they had before; convert it as it "
    "was, and transpose the result.",
}


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> Iterable[Format]:
    """Return a format for each class whose codes are known, and two for all others."""
    for name, (type_, roles, traits) in _CODED.items():
        yield _format(
            name,
            types=(f"torchao.quantization:{type_}",),
            dtypes=_DTYPES,
            carries=_GRAD | _GAPS | traits,
            components=Components(
                layout="affine",
                format="torch",
                unpack_keeps=traits,
                roles=_ROLES | roles,
                unpack=tensors.unpack,
                pack=partial(pack, name),
                unpack_copies=frozenset({"codes"}) if name == "torchao.int4" else frozenset(),
                pack_copies=frozenset({"codes"}) if name == "torchao.int4" else frozenset(),
                pack_seconds=3e-5,
            ),
            limits=Limits(refusal_hints=_OBSTACLES),
        )
    nf4 = ("torchao.quantization:NF4Tensor", "torchao.dtypes:NF4Tensor")
    yield _format(
        "torchao.nf4", types=nf4, dtypes=_REALS, limits=Limits(refusal_hints=_NF4_OBSTACLES)
    )
    yield _format(
        "torchao.opaque", types=(_BASE,), dtypes=_REALS, limits=Limits(refusal_hints=_OBSTACLES)
    )


def _format(name: str, **fields: object) -> Format:
    return Format(
        **{
            "name": name,
            "describe": tensors.describe,
            "devices": _DEVICES,
            "carries": _GRAD,
            "requires": "torchao",
            "install": _INSTALL,
            "memory": tensors.memory,
            "transit": False,
            "samples": Samples(dense.SAMPLES[name], dense.VARIANTS),
            **fields,
        }  # type: ignore[arg-type]
    )


def _conversions() -> Iterable[Conversion]:
    """Return the ways out of graphs, and to the numbers of tensors whose codes are not known."""
    for name, (_, _, traits) in _CODED.items():
        yield Conversion(
            name,
            name,
            tensors.detach,
            devices=None,
            takes=_GAPS | traits,
            requires=_GRAD,
            drops=_GRAD,
            effects=frozenset({"detach"}),
            cost=Cost(5e-5),
        )
    for name, function in (
        ("torchao.nf4", dense.dequantize_nf4),
        ("torchao.opaque", dense.dequantize),
    ):
        for requires, effects in ((frozenset(), frozenset()), (_GRAD, frozenset({"detach"}))):
            yield Conversion(
                name,
                "torch",
                function,
                devices=None,
                requires=requires,
                drops=requires,
                effects=effects | {"dequantize"},
                cost=Cost(1e-4, 1e9),
            )
