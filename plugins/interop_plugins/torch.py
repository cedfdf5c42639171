"""PyTorch: dense, sparse and quantized tensors, declared; the functions are in the modules beside.

The speeds are those of 64 MiB on two cores. Large results on the host lie in memory that NumPy
allocates, in huge pages, whoever fills them; small ones in torch's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from interop.plugin import (
    DTYPES,
    Autodiff,
    Components,
    Conversion,
    Cost,
    Declaration,
    DtypeNames,
    Format,
    NoTrace,
    Problem,
    Problems,
    Result,
    Samples,
    hookimpl,
)

from . import _torch_composite as composite
from . import _torch_dense as dense
from . import _torch_samples as samples
from . import _torch_troubles
from ._torch_autodiff import attach, vjp
from ._torch_compile import shield
from ._torch_describe import BIT_DTYPES, DTYPE_NAMES, describe, dtype_name, memory

__all__ = ["interop_declarations"]

_NONE: frozenset[str] = frozenset()
_GRAD, _SUBCLASS, _ZERO = frozenset({"grad"}), frozenset({"subclass"}), frozenset({"zero_tensor"})
_CONJ, _NEG = frozenset({"conj"}), frozenset({"neg"})
_UNCOALESCED, _GAPS = frozenset({"uncoalesced"}), frozenset({"noncontiguous"})
_LAZY = _CONJ | _NEG
_COPY, _TRANSFER = frozenset({"copy"}), frozenset({"transfer"})
_DTYPE = frozenset({"dtype"})

_DEVICES = ("cpu", "cuda", "mps", "xpu")
_CPU = frozenset({"cpu"})
_MPS = frozenset({"mps"})
_ACCELERATORS = frozenset(_DEVICES) - _CPU

_LAYOUT = frozenset({"noncontiguous", "broadcast", "unaligned"})
_BLOCK = _LAYOUT - {"noncontiguous", "broadcast"}
_CARRIES = _LAYOUT | _GRAD | _LAZY
#: What an array of NumPy's may be and yet lie where torch can share it.
_SHAREABLE = frozenset({"noncontiguous", "broadcast", "readonly", "immutable"})

_COMPLEX = frozenset(name for name in DTYPE_NAMES if DTYPES[name].kind == "c")
_REAL = DTYPE_NAMES - _COMPLEX
#: What NumPy can hold as it is; the others of 8 and 16 bits go as bits, and complex32 by a cast.
_NUMPY = DTYPE_NAMES - BIT_DTYPES - {"complex32"}
#: What torch widens one by one.
_SLOW = frozenset({"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz"})
#: Whole numbers, and what torch casts other real numbers to as NumPy does. The dtypes left out have
#: no agreed place for infinities, NaN or zero, or for what is too large.
_WHOLE = frozenset(name for name in DTYPE_NAMES if DTYPES[name].kind in "bui")
_CLIPPED = frozenset({"float8_e4m3fn", "float8_e8m0fnu"})
_REALS = DTYPE_NAMES - _CLIPPED - _WHOLE | {"bool"}
_DOUBLE = frozenset({"float64"})
_NOT_MPS = frozenset({"float64", "complex128"})
#: torch computes sparse tensors of no others.
_SPARSE_MATH = DTYPE_NAMES - BIT_DTYPES - {"uint16", "uint32", "uint64"} | {"bfloat16"}

#: Between the host and a device, pageable memory.
_WIRE = Cost(1.5e-5, 1.2e10)

_LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
_BLOCKS = frozenset({"sparse_bsr", "sparse_bsc"})
_SHAPED = frozenset({"hybrid", "batched", "uncoalesced"})
_SPARSE_TRAITS = frozenset({"grad", "hybrid", "noncontiguous"})
_INSTALL = "pip install torch"


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats, the conversions, the names of dtypes, the differentiation, what its compiler must not trace and what may be wrong with an installation."""
    return [
        *_formats(),
        *_conversions(),
        *_dtypes(),
        *_autodiffs(),
        *map(NoTrace, _shields()),
        Problems(_troubles),
    ]


def _shields() -> Iterable[Callable[[Any], None]]:
    """Return what keeps torch.compile out of conversions."""
    return [shield]


def _autodiffs() -> Iterable[Autodiff]:
    """Return how it differentiates."""
    return [Autodiff("torch", vjp, attach)]


def _dtypes() -> Iterable[DtypeNames]:
    """Return how torch names its dtypes."""
    return [DtypeNames("torch:dtype", dtype_name)]


def _troubles() -> Iterable[Problem]:
    """Return what is wrong with torch as it is installed here."""
    return _torch_troubles.found()


def _formats() -> Iterable[Format]:
    """Return the format of dense tensors, and those of the layouts that share its type."""
    return [
        Format(
            "torch",
            types=("torch:Tensor", "torch.nn.parameter:Parameter"),
            describe=describe,
            dtypes=DTYPE_NAMES,
            devices=_DEVICES,
            carries=_CARRIES | {"traced"},  # which no step takes
            exports={"dlpack": DTYPE_NAMES},
            requires="torch",
            install=_INSTALL,
            memory=memory,
            fill=dense.fill,
            samples=Samples(variants=samples.DENSE),
        ),
        *(_sparse_format(layout) for layout in _LAYOUTS),
        _format(
            "quantized",
            dtypes=frozenset({"float32"}),
            carries=_GAPS,
            components=Components(
                layout="affine",
                format="torch",
                roles={"codes": "code_dtype", "scale": "float64", "zero_point": "int64"},
                unpack=composite.unpack_quantized,
                fast_unpack=composite.fast_unpack_quantized,
                pack=composite.pack_quantized,
                pack_seconds=2e-5,
            ),
            samples=Samples(variants=samples.QUANTIZED),
        ),
        _format(
            "mkldnn",
            dtypes=frozenset({"float32", "bfloat16", "float16", "int8", "uint8"}),
            samples=Samples(make=samples.mkldnn),
        ),
    ]


def _sparse_format(layout: str) -> Format:
    roles = {"values": "dtype", "indices": "index_dtype"}
    if layout == "sparse_coo":
        return _format(
            layout,
            dtypes=DTYPE_NAMES,
            carries=_SPARSE_TRAITS | _UNCOALESCED,
            components=Components(
                layout="coo",
                format="torch",
                roles=roles,
                unpack_keeps=_UNCOALESCED,
                unpack=composite.unpack_coo,
                pack=composite.pack_coo,
                pack_copies=frozenset({"indices"}),
            ),
            samples=Samples(variants=samples.COO),
            index_dtypes=frozenset({"int64"}),
        )
    return _format(
        layout,
        dtypes=DTYPE_NAMES,
        carries=_SPARSE_TRAITS | {"batched"},
        components=Components(
            layout=layout.removeprefix("sparse_"),
            format="torch",
            roles={**roles, "pointers": "index_dtype"},
            unpack=composite.unpack_compressed,
            fast_unpack=None
            if layout in _BLOCKS
            else partial(composite.fast_unpack_rows, f"torch.{layout}"),
            pack=partial(composite.pack_compressed, layout),
        ),
        samples=Samples(variants=samples.SPARSE),
        index_dtypes=frozenset({"int32", "int64"}),
    )


def _format(name: str, **fields: Any) -> Format:
    return Format(
        f"torch.{name}",
        types=("torch:Tensor",),
        describe=describe,
        devices=_DEVICES,
        requires="torch",
        install=_INSTALL,
        memory=memory,
        **fields,
    )


def _conversions() -> Iterable[Conversion]:
    """Return every step that torch or NumPy can make with a tensor."""
    return [
        *_views(),
        *_copies(),
        *_casts(),
        *_numpy(),
        *_protocols(),
        *_sparse_steps(),
        *_densifying(),
        *_layout_changes(),
        *_regroupings(),
        *_opaque(),
    ]


def _step(name: str, function: Any, **fields: Any) -> Conversion:
    """Return a step from dense tensors to dense tensors, on any device unless said otherwise."""
    return Conversion("torch", "torch", function, **{"devices": None, "name": name, **fields})


def _views() -> Iterable[Conversion]:
    return [
        _step(
            "detach",
            dense.detach,
            takes=_LAYOUT | _LAZY | _ZERO,
            requires=_GRAD,
            drops=_GRAD,
            effects=frozenset({"detach"}),
            cost=Cost(3e-7),
        ),
        _step(
            "as_plain_tensor",
            dense.without_subclass,
            takes=_CARRIES,
            requires=_SUBCLASS,
            drops=_SUBCLASS,
            cost=Cost(1e-6),
        ),
        _step(
            "as_bits", dense.view_as, dtypes=BIT_DTYPES, takes=_LAYOUT, result=Result(bits="carry")
        ),
        _step(
            "from_bits",
            dense.view_as,
            dtypes=frozenset({"uint8", "uint16"}),
            takes=_LAYOUT,
            result=Result(bits="restore"),
        ),
    ]


def _copies() -> Iterable[Conversion]:
    """Return the steps that write the same numbers, on the device or on another."""
    strided: dict[str, Any] = {"takes": _LAYOUT | _GRAD, "effects": _COPY}
    block: dict[str, Any] = {"takes": _BLOCK | _GRAD, "effects": _COPY}
    yield from _everywhere("clone", dense.clone, 1.9e10, 1.5e11, **block)
    yield from _everywhere("contiguous", dense.clone, 6e9, 8e10, requires=_GAPS, **strided)
    lazy: dict[str, Any] = {"drops": _LAZY, "effects": _COPY, "into": dense.fill}
    for name, trait in (("resolve_conj", _CONJ), ("resolve_neg", _NEG)):
        taken = {"takes": _BLOCK | _GRAD | _LAZY, "requires": trait}
        yield from _everywhere(name, dense.resolve, 1.6e10, 1.5e11, **taken, **lazy)
        taken = {"takes": _CARRIES, "requires": trait | _GAPS, "adds": _GAPS}
        kept = dense.resolve_in_order
        yield from _everywhere(f"{name}_in_order", kept, 1.6e10, 1e11, **taken, **lazy)
    written: dict[str, Any] = {**strided, "cost": Cost(2e-6, 2e10)}
    yield _step("materialize_zeros", dense.clone, requires=_ZERO, drops=_ZERO, **written)
    yield from _moves(_step, dense.move, _LAYOUT | _GRAD, frozenset(_DEVICES))


def _everywhere(
    name: str, function: Any, speed: float, cached: float, **fields: Any
) -> Iterable[Conversion]:
    """Return a step with its speeds on the host, and with that of an accelerator.

    The latter is assumed, not measured: half of what the memory of current ones can do.
    """
    yield _step(name, function, devices=_CPU, cost=Cost(1.5e-6, speed, cached), **fields)
    yield _step(name, function, devices=_ACCELERATORS, cost=Cost(1e-5, 1e12), **fields)


def _moves(
    make: Callable[..., Conversion], function: Any, takes: frozenset[str], devices: frozenset[str]
) -> Iterable[Conversion]:
    """Return the steps to other devices; there is no 64-bit floating point on MPS."""
    for name, dtypes, to_devices in (
        (function.__name__, DTYPE_NAMES, devices - _MPS),
        (f"{function.__name__}_to_mps", DTYPE_NAMES - _NOT_MPS, devices & _MPS),
    ):
        yield make(
            name=name,
            function=function,
            dtypes=dtypes,
            takes=takes,
            changes=frozenset({"device"}),
            result=Result(devices=to_devices),
            effects=_TRANSFER,
            cost=_WIRE,
        )


def _casts() -> Iterable[Conversion]:
    """Return the casts.

    Complex numbers stay complex: torch would drop half of each, with a warning. On the host those
    casts are left out of which NumPy makes other numbers, so that it does not matter who casts.
    """
    for name, source, target, speed, cached in (
        ("cast", _WHOLE, DTYPE_NAMES - _CLIPPED, 1.9e10, 1.2e11),
        ("cast_real", _REAL - _WHOLE - _SLOW - _DOUBLE, _REALS, 1.9e10, 1.2e11),
        ("cast_double", _DOUBLE, _REALS - {"float16"}, 1.9e10, 1.2e11),
        ("cast_narrow", _SLOW, _REALS, 2e9, 5e9),
        ("cast_complex", _COMPLEX, _COMPLEX, 1.9e10, 1.2e11),
    ):
        pairs: dict[str, Any] = {"dtypes": source, "result": Result(dtypes=target), "devices": _CPU}
        taken = _BLOCK | _GRAD
        yield _cast(name, cost=Cost(2e-6, speed, cached), takes=taken, **pairs)
        # torch walks what is strided one by one.
        cost, taken = Cost(2e-6, min(speed, 3e9), min(cached, 2.5e10)), _LAYOUT | _GRAD
        yield _cast(f"{name}_strided", cost=cost, takes=taken, requires=_GAPS, **pairs)
        # Where any order will do, it is that of the tensor; elements that repeat have none.
        taken -= {"broadcast"}
        kept: dict[str, Any] = {"takes": taken, "requires": _GAPS, "adds": _GAPS, **pairs}
        cost = Cost(2e-6, speed, min(cached, 1e11))
        yield _cast(f"{name}_in_order", dense.cast_in_order, cost=cost, **kept)
    yield from _casts_as_numpy()
    there = partial(_cast, devices=_ACCELERATORS, takes=_LAYOUT | _GRAD, cost=Cost(1e-5, 1e12))
    yield there("cast_there", dtypes=_REAL, result=Result(dtypes=DTYPE_NAMES))
    yield there("cast_complex_there", dtypes=_COMPLEX, result=Result(dtypes=_COMPLEX))


def _casts_as_numpy() -> Iterable[Conversion]:
    """Return, for tensors in graphs, the casts on the host of which torch makes other numbers."""
    make = partial(_cast, function=dense.cast_as_numpy, devices=_CPU, requires=_GRAD, takes=_LAYOUT)
    clipped = _NUMPY & _REAL - _WHOLE
    cost = Cost(3e-6, 2e9)
    yield make("cast_as_numpy", dtypes=clipped, result=Result(dtypes=_CLIPPED), cost=cost)
    half = frozenset({"float16"})
    yield make("cast_double_as_numpy", dtypes=_DOUBLE, result=Result(dtypes=half), cost=cost)


def _cast(name: str, function: Any = dense.cast, **fields: Any) -> Conversion:
    return _step(name, function, changes=_DTYPE, effects=_COPY, **fields)


def _numpy() -> Iterable[Conversion]:
    """Return the hand-offs between tensors and arrays."""
    wide, bits = Cost(5e-7), Cost(1.2e-6)
    out: dict[str, Any] = {"takes": _LAYOUT, "fast_path": dense.numpy_fast_path}
    back: dict[str, Any] = {"takes": _SHAREABLE, "fast_path": dense.torch_fast_path}
    yield from (
        Conversion("torch", "numpy", dense.tensor_to_numpy, dtypes=_NUMPY, cost=wide, **out),
        Conversion("torch", "numpy", dense.bits_to_numpy, dtypes=BIT_DTYPES, cost=bits, **out),
        Conversion("numpy", "torch", dense.numpy_to_torch, dtypes=_NUMPY, cost=wide, **back),
        Conversion("numpy", "torch", dense.bits_to_torch, dtypes=BIT_DTYPES, cost=bits, **back),
        Conversion(
            "numpy",
            "torch",
            dense.copy_into_torch,
            takes=_SHAREABLE - _GAPS,
            effects=_COPY,
            cost=Cost(4e-6, 1.9e10, 1.2e11),
        ),
        Conversion(
            "torch",
            "numpy",
            dense.download,
            dtypes=DTYPE_NAMES - {"complex32"},
            devices=_ACCELERATORS,
            takes=_LAYOUT,
            changes=frozenset({"device"}),
            result=Result(devices=_CPU),
            effects=_TRANSFER,
            cost=_WIRE,
        ),
    )
    upload = partial(Conversion, "numpy", "torch")
    yield from _moves(upload, dense.upload, _SHAREABLE, _ACCELERATORS)


def _protocols() -> Iterable[Conversion]:
    return [
        Conversion(
            "dlpack",
            "torch",
            dense.from_dlpack,
            fast_path=dense.dlpack_fast_path,
            dtypes=DTYPE_NAMES,
            devices=frozenset({"cpu", "cuda"}),
            takes=_SHAREABLE,
            stream=True,
            cost=Cost(4e-6),
            name="torch_from_dlpack",
        ),
        Conversion(
            "cuda_array_interface",
            "torch",
            dense.from_cuda_array_interface,
            dtypes=_NUMPY,
            devices=frozenset({"cuda"}),
            takes=_SHAREABLE - {"readonly"},
            cost=Cost(1e-5),
        ),
    ]


def _sparse(source: str, target: str, name: str, function: Any, **fields: Any) -> Conversion:
    """Return a step from or to a sparse layout; ``""`` stands for the dense one."""
    start, end = (f"torch.{one}" if one else "torch" for one in (source, target))
    return Conversion(start, end, function, **{"devices": None, "name": name, **fields})


def _sparse_steps() -> Iterable[Conversion]:
    """Return the steps that keep a layout."""
    for layout in _LAYOUTS:
        keep = partial(_sparse, layout, layout)
        yield keep(
            "detach",
            dense.detach,
            takes=_SHAPED | _GAPS,
            requires=_GRAD,
            drops=_GRAD,
            effects=frozenset({"detach"}),
        )
        yield from _moves(keep, dense.move, _SHAPED | _GRAD, frozenset(_DEVICES))
        tidy: dict[str, Any] = {"requires": _GAPS, "drops": _GAPS, "effects": _COPY}
        cost = Cost(8e-6, 1.2e10)
        yield keep("compact", composite.compact, takes=_SHAPED, shares=True, cost=cost, **tidy)
    # In a graph torch has to do it, which leaves the indices in an order of its own.
    for graph, gaps in ((_NONE, _NONE), (_GRAD, _GAPS)):
        yield _sparse(
            "sparse_coo",
            "sparse_coo",
            "coalesce",
            composite.coalesce,
            dtypes=_SPARSE_MATH,
            takes=_GAPS | {"hybrid"},
            requires=_UNCOALESCED | graph,
            drops=_UNCOALESCED,
            adds=gaps,
            effects=_COPY,
            cost=Cost(2e-5, 0.85e9),
        )


def _densifying() -> Iterable[Conversion]:
    """Return the steps from sparse to dense, in torch's memory and, where it can, in NumPy's."""
    for layout in _LAYOUTS:
        yield _sparse(
            layout,
            "",
            "densify",
            composite.densify,
            dtypes=_SPARSE_MATH,
            takes=_SHAPED | _GRAD | _GAPS,
            drops=_SHAPED,
            effects=frozenset({"densify"}),
            cost=Cost(1e-5, 1.2e9) if layout in _BLOCKS else Cost(5e-6, 3.2e9, 1e10),
        )
        if layout not in _BLOCKS:  # torch adds no blocks to an array
            into = partial(
                _sparse,
                layout,
                "",
                function=composite.densify_into,
                dtypes=_SPARSE_MATH - {"complex32"},
                devices=_CPU,
                takes=_GAPS,
                effects=frozenset({"densify"}),
            )
            yield into("densify_into", cost=Cost(5e-6, 1e10, 5e10))
            if layout == "sparse_coo":
                loose: dict[str, Any] = {"requires": _UNCOALESCED, "drops": _UNCOALESCED}
                yield into("densify_loose_into", cost=Cost(2e-5, 1.5e9), **loose)


def _layout_changes() -> Iterable[Conversion]:
    """Return the steps from dense to sparse, and between the sparse layouts."""
    matrix = frozenset({2})
    for target in sorted(_BLOCKS):
        yield _sparse(
            "",
            target,
            f"dense_to_{target}",
            partial(composite.to_blocks, target),
            dtypes=_SPARSE_MATH,
            takes=_GRAD | _LAYOUT,
            ndims=matrix,
            result=Result(index_dtype="int64"),
            effects=_COPY,
            cost=Cost(1e-4, 1e9),
        )
    for source, target, speed, shares in (
        ("", "sparse_coo", 3.7e9, False),
        ("", "sparse_csr", 2.4e9, False),
        ("", "sparse_csc", 1e9, False),
        ("sparse_coo", "sparse_csr", 1e11, True),
        ("sparse_coo", "sparse_csc", 0.55e9, False),
        ("sparse_csr", "sparse_coo", 2e10, True),
        ("sparse_csc", "sparse_coo", 2e10, True),
        ("sparse_csr", "sparse_csc", 0.85e9, False),
        ("sparse_csc", "sparse_csr", 0.85e9, False),
        ("sparse_bsr", "sparse_coo", 2e9, True),
        ("sparse_bsc", "sparse_coo", 2e9, True),
    ):
        to_coo = target == "sparse_coo"
        yield _sparse(
            source,
            target,
            f"{source or 'dense'}_to_{target}",
            partial(composite.to_layout, target),
            dtypes=_SPARSE_MATH,
            takes=_GRAD | (_GAPS if source else _LAYOUT),
            ndims=None if to_coo and not source else matrix,
            # The order of columns and of blocks is not that of coordinates.
            adds=_UNCOALESCED if to_coo and source not in ("", "sparse_csr") else _NONE,
            result=Result(index_dtype="int64" if to_coo or not source else None),
            effects=_COPY,
            shares=shares,
            cost=Cost(2e-5, speed),
        )


def _regroupings() -> Iterable[Conversion]:
    """Return the steps between the two layouts of blocks."""
    for source, target in (("sparse_bsr", "sparse_bsc"), ("sparse_bsc", "sparse_bsr")):
        yield _sparse(
            source,
            target,
            f"{source}_to_{target}",
            partial(composite.regroup, target),
            takes=_GAPS,
            drops=_GAPS,
            ndims=frozenset({2}),
            effects=_COPY,
            cost=Cost(8e-5, 1e9),
        )


def _opaque() -> Iterable[Conversion]:
    """Return the ways out of torch's layouts that only torch can read."""
    return [
        _sparse(
            "mkldnn",
            "",
            "mkldnn_to_dense",
            composite.densify,
            takes=_GRAD,
            effects=_COPY,
            cost=Cost(8e-6, 2e10),
        ),
        _sparse(
            "quantized",
            "",
            "dequantize",
            composite.dequantize,
            takes=_GAPS,
            effects=frozenset({"dequantize"}),
            cost=Cost(4e-6, 1.2e10, 5e10),
            into=composite.dequantize_into,
        ),
    ]
