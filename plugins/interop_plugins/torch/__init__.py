"""PyTorch: dense, sparse and quantized tensors.

This file declares; the functions are in the modules beside it. The speeds are those of 64 MiB on
two cores. Large results on the host lie in memory that NumPy allocates, in huge pages, whichever
library fills them; small ones lie in torch's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from interop.plugin import (
    COMPLEX,
    COPY,
    CPU,
    DEVICE,
    DTYPE,
    EMPTY,
    TRANSFER,
    Autodiff,
    Components,
    Conversion,
    Cost,
    Declaration,
    DtypeNames,
    Format,
    Limits,
    NoTrace,
    Problems,
    Result,
    Samples,
    hookimpl,
)

from . import autodiff, cuda, dense, no_trace, problems, quantized, samples, shards, sparse
from .dense import CAST_REALS, CLIPPED, WHOLE
from .describe import (
    BIT_DTYPES,
    DTYPE_NAMES,
    available,
    describe,
    dtype_name,
    fast_key,
    memory,
)

if TYPE_CHECKING:
    from torch import Tensor

    TensorFunction = Callable[..., Tensor]

__all__ = ["interop_declarations"]

_GRAD, _SUBCLASS, _ZERO = frozenset({"grad"}), frozenset({"subclass"}), frozenset({"zero_tensor"})
_CONJ, _NEG = frozenset({"conj"}), frozenset({"neg"})
_UNCOALESCED, _GAPS = frozenset({"uncoalesced"}), frozenset({"noncontiguous"})
_LAZY = _CONJ | _NEG
_READONLY = frozenset({"readonly"})
_REPLICATED, _DISTRIBUTED = frozenset({"replicated"}), frozenset({"distributed"})

_DEVICES = ("cpu", "cuda", "mps", "xpu")
_CUDA, _MPS = frozenset({"cuda"}), frozenset({"mps"})
_ACCELERATORS = frozenset(_DEVICES) - CPU

#: What torch's kernels read. Views do not read, and `dense.align` reads whatever is unaligned.
_LAYOUT = frozenset({"noncontiguous", "broadcast"})
_UNALIGNED = frozenset({"unaligned"})
_VIEWABLE = _LAYOUT | _UNALIGNED
_CARRIES = _VIEWABLE | _GRAD | _LAZY
#: The traits with which an array of NumPy's can still lie where torch can share it.
_SHAREABLE = frozenset({"noncontiguous", "broadcast", "readonly", "immutable"})

_COMPLEX = COMPLEX | {"complex32"}
_REAL = DTYPE_NAMES - _COMPLEX
#: What NumPy holds as it is. The other dtypes of 8 and 16 bits cross as bits, complex32 by a cast.
_NUMPY_DTYPES = DTYPE_NAMES - BIT_DTYPES - {"complex32"}
#: What torch widens one element at a time.
_SLOW = frozenset({"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz"})
_DOUBLE = frozenset({"float64"})
#: What a sparse tensor can leave zeros out of.
_STORABLE = DTYPE_NAMES - {"float8_e8m0fnu"}
_NOT_ON_MPS = frozenset({"float64", "complex128"})
#: torch computes with sparse tensors of these alone.
_SPARSE_MATH = DTYPE_NAMES - BIT_DTYPES - {"uint16", "uint32", "uint64"} | {"bfloat16"}
_STORED = _STORABLE - _SPARSE_MATH

#: Between the host and a device, from pageable memory.
_WIRE = Cost(1.5e-5, 1.2e10)

_LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
_BLOCKS = frozenset({"sparse_bsr", "sparse_bsc"})
_LINES = frozenset({"sparse_csr", "sparse_csc"})
_SHAPED = frozenset({"hybrid", "batched", "uncoalesced"})
_SPARSE_TRAITS = frozenset({"grad", "hybrid", "noncontiguous", "unaligned"})
_MATRIX = frozenset({2})
#: Compressed are the last two axes but for dense ones; torch has tensors of at most 64.
_MATRICES = frozenset(range(2, 65))
_INSTALL = "pip install torch"
_INTERFACE = "cuda_array_interface"
_SHARD_HINTS = {
    "gather": "What this process has of it is value.to_local(), at value.placements on "
    "value.device_mesh. With allow='gather' every process of the mesh must make this call.",
    "elsewhere": "its mesh is of other processes, and this one has nothing of it.",
}


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return everything that is declared for torch."""
    return [
        *_formats(),
        *_conversions(),
        DtypeNames("torch:dtype", dtype_name),
        Autodiff("torch", autodiff.vjp, autodiff.attach),
        NoTrace(no_trace.mark),
        Problems(problems.find),
    ]


def _formats() -> Iterable[Format]:
    """Return the format of dense tensors, and those of the layouts that share its type."""
    return [
        Format(
            "torch",
            types=("torch:Tensor", "torch.nn.parameter:Parameter"),
            target_types=("torch:Tensor",),
            aliases=("pytorch", "torch:strided"),
            describe=describe,
            dtypes=DTYPE_NAMES,
            devices=_DEVICES,
            carries=_CARRIES | {"traced"},  # which no step takes
            exports={"dlpack": DTYPE_NAMES},
            requires="torch",
            install=_INSTALL,
            memory=memory,
            limits=Limits(
                unsupported={"mps": _NOT_ON_MPS}, available=available, unwritable=dense.unwritable
            ),
            fill=dense.fill,
            fast_key=fast_key,
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
                unpack=quantized.unpack,
                fast_unpack=quantized.fast_unpack,
                pack=quantized.pack,
                pack_seconds=2e-5,
                code_dtypes=frozenset(quantized.CODE_DTYPES),
            ),
            samples=Samples(variants=samples.QUANTIZED),
        ),
        _format(
            "mkldnn",
            dtypes=frozenset({"float32", "bfloat16", "float16", "int8", "uint8"}),
            samples=Samples(make=samples.mkldnn),
        ),
        Format(
            "torch.dtensor",
            types=("torch.distributed.tensor:DTensor",),
            describe=shards.describe,
            dtypes=DTYPE_NAMES,
            devices=_DEVICES,
            carries=_CARRIES | _REPLICATED | _DISTRIBUTED,
            requires="torch",
            install=_INSTALL,
            memory=shards.memory,
            limits=Limits(refusal_hints=_SHARD_HINTS, available=available),
        ),
    ]


def _sparse_format(layout: str) -> Format:
    roles = {"values": "dtype", "indices": "index_dtype"}
    if layout == "sparse_coo":
        return _format(
            layout,
            dtypes=_STORABLE,
            carries=_SPARSE_TRAITS | _UNCOALESCED,
            components=Components(
                layout="coo",
                format="torch",
                roles=roles,
                unpack_keeps=_UNCOALESCED,
                unpack=sparse.unpack_coo,
                pack=sparse.pack_coo,
                pack_copies=frozenset({"indices"}),
            ),
            samples=Samples(variants=samples.COO),
            index_dtypes=frozenset({"int64"}),
        )
    return _format(
        layout,
        dtypes=_STORABLE,
        carries=_SPARSE_TRAITS | {"batched"},
        ndims=_MATRICES,
        components=Components(
            layout=layout.removeprefix("sparse_"),
            format="torch",
            roles={**roles, "pointers": "index_dtype"},
            unpack=sparse.unpack_compressed,
            fast_unpack=None
            if layout in _BLOCKS
            else partial(sparse.fast_unpack_compressed, f"torch.{layout}"),
            pack=partial(sparse.pack_compressed, layout),
        ),
        samples=Samples(variants=samples.SPARSE),
        index_dtypes=frozenset({"int32", "int64"}),
    )


def _format(name: str, **fields: Any) -> Format:
    return Format(
        f"torch.{name}",
        types=("torch:Tensor",),
        aliases=(f"torch:{name}",),  # the object that names the layout
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
        *_with_bits(_densifying()),
        *_with_bits(_layout_changes()),
        *_with_bits(_batches_of_dense()),
        *_regroupings(),
        *_opaque(),
        *_shards(),
    ]


def _step(name: str, function: TensorFunction, **fields: Any) -> Conversion:
    """Return a step from dense tensors to dense tensors, on any device unless told otherwise."""
    return Conversion("torch", "torch", function, **{"devices": None, "name": name, **fields})


def _views() -> Iterable[Conversion]:
    return [
        _step(
            "detach",
            dense.detach,
            takes=_VIEWABLE | _LAZY | _ZERO,
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
            "as_bits",
            dense.view_as,
            dtypes=BIT_DTYPES,
            takes=_VIEWABLE,
            result=Result(bits="carry"),
        ),
        _step(
            "from_bits",
            dense.view_as,
            dtypes=frozenset({"uint8", "uint16"}),
            takes=_VIEWABLE,
            result=Result(bits="restore"),
        ),
    ]


def _copies() -> Iterable[Conversion]:
    """Return the steps that write the same numbers, on the same device or on another."""
    copying = partial(_everywhere, effects=COPY)
    yield from copying("clone", dense.clone, 1.9e10, 1.5e11, takes=_GRAD)
    yield from copying("contiguous", dense.clone, 6e9, 8e10, takes=_LAYOUT | _GRAD, requires=_GAPS)
    yield from copying(
        "align", dense.align, 6e9, 8e10, takes=_CARRIES, requires=_UNALIGNED, drops=_LAZY
    )
    resolving = partial(_everywhere, drops=_LAZY, effects=COPY, into=dense.fill)
    for name, trait in (("resolve_conj", _CONJ), ("resolve_neg", _NEG)):
        yield from resolving(
            name, dense.resolve, 1.6e10, 1.5e11, takes=_GRAD | _LAZY, requires=trait
        )
        yield from resolving(
            f"{name}_in_order",
            dense.resolve_in_order,
            1.6e10,
            1e11,
            takes=_CARRIES - _UNALIGNED,
            requires=trait | _GAPS,
            adds=_GAPS,
        )
    yield _step(
        "materialize_zeros",
        dense.clone,
        takes=_LAYOUT | _GRAD,
        requires=_ZERO,
        drops=_ZERO,
        effects=COPY,
        cost=Cost(2e-6, 2e10),
    )
    yield from _moves(_step, dense.move, _LAYOUT | _GRAD, frozenset(_DEVICES))


def _everywhere(
    name: str, function: TensorFunction, speed: float, cached: float, **fields: Any
) -> Iterable[Conversion]:
    """Return a step with its speeds on the host, and again with that of an accelerator.

    The latter is assumed, not measured: it is half of what the memory of current ones can do.
    """
    yield _step(name, function, devices=CPU, cost=Cost(1.5e-6, speed, cached), **fields)
    yield _step(name, function, devices=_ACCELERATORS, cost=Cost(1e-5, 1e12), **fields)


def _moves(
    make: Callable[..., Conversion],
    function: TensorFunction,
    takes: frozenset[str],
    devices: frozenset[str],
) -> Iterable[Conversion]:
    """Return the steps to other devices. MPS has no 64-bit floating point."""
    for name, dtypes, to_devices in (
        (function.__name__, DTYPE_NAMES, devices - _MPS),
        (f"{function.__name__}_to_mps", DTYPE_NAMES - _NOT_ON_MPS, devices & _MPS),
    ):
        yield make(
            name=name,
            function=function,
            dtypes=dtypes,
            takes=takes,
            changes=DEVICE,
            result=Result(devices=to_devices),
            effects=TRANSFER,
            cost=_WIRE,
        )


def _casts() -> Iterable[Conversion]:
    """Return the casts.

    Complex numbers stay complex: torch would drop their imaginary parts with a warning. On the
    host, casts are left out where NumPy makes other numbers, so that it does not matter which
    library casts.
    """
    for name, source, target, speed, cached in (
        ("cast", WHOLE, DTYPE_NAMES - CLIPPED, 1.9e10, 1.2e11),
        ("cast_real", _REAL - WHOLE - _SLOW - _DOUBLE, CAST_REALS, 1.9e10, 1.2e11),
        ("cast_double", _DOUBLE, CAST_REALS - {"float16"}, 1.9e10, 1.2e11),
        ("cast_narrow", _SLOW, CAST_REALS, 2e9, 5e9),
        ("cast_complex", _COMPLEX, _COMPLEX, 1.9e10, 1.2e11),
    ):
        cast = partial(_cast, dtypes=source, result=Result(dtypes=target), devices=CPU)
        yield cast(name, takes=_GRAD, cost=Cost(2e-6, speed, cached))
        yield cast(
            f"{name}_strided",
            takes=_LAYOUT | _GRAD,
            requires=_GAPS,
            # torch walks strided elements one by one.
            cost=Cost(2e-6, min(speed, 3e9), min(cached, 2.5e10)),
        )
        # Where any order will do, the result keeps that of the tensor; repeated elements have none.
        yield cast(
            f"{name}_in_order",
            dense.cast_in_order,
            takes=_LAYOUT - {"broadcast"} | _GRAD,
            requires=_GAPS,
            adds=_GAPS,
            cost=Cost(2e-6, speed, min(cached, 1e11)),
        )
    yield from _casts_of_lazy()
    yield from _casts_as_numpy()
    on_device = partial(
        _cast,
        devices=_ACCELERATORS,
        takes=_CARRIES - _UNALIGNED,
        drops=_LAZY,
        cost=Cost(1e-5, 1e12),
    )
    yield on_device("cast_there", dtypes=_REAL, result=Result(dtypes=DTYPE_NAMES))
    yield on_device("cast_complex_there", dtypes=_COMPLEX, result=Result(dtypes=_COMPLEX))


def _casts_of_lazy() -> Iterable[Conversion]:
    """Return the casts on the host that resolve conjugates and negatives on the way.

    To resolve first would take memory for a second copy.
    """
    for name, trait, source, target in (
        ("cast_conj", _CONJ, _COMPLEX, _COMPLEX),
        ("cast_neg_complex", _NEG, _COMPLEX, _COMPLEX),
        ("cast_neg", _NEG, _REAL - _DOUBLE, CAST_REALS),
        ("cast_neg_double", _NEG, _DOUBLE, CAST_REALS - {"float16"}),
    ):
        cast = partial(
            _cast,
            dtypes=source,
            result=Result(dtypes=target),
            devices=CPU,
            drops=_LAZY,
            into=dense.fill,
        )
        yield cast(name, takes=_GRAD | _LAZY, requires=trait, cost=Cost(3e-6, 1.6e10, 1.2e11))
        yield cast(
            f"{name}_in_order",
            dense.cast_in_order,
            takes=_CARRIES - _UNALIGNED,
            requires=trait | _GAPS,
            adds=_GAPS,
            cost=Cost(3e-6, 1.6e10, 1e11),
        )


def _casts_as_numpy() -> Iterable[Conversion]:
    """Return, for tensors in graphs, the casts on the host for which torch makes other numbers."""
    cast = partial(
        _cast,
        function=dense.cast_as_numpy,
        devices=CPU,
        takes=_LAYOUT,
        requires=_GRAD,
        cost=Cost(1.5e-5, 2e9),
    )
    yield cast("cast_as_numpy", dtypes=_NUMPY_DTYPES & _REAL - WHOLE, result=Result(dtypes=CLIPPED))
    half = frozenset({"float16"})
    yield cast("cast_double_as_numpy", dtypes=_DOUBLE, result=Result(dtypes=half))


def _cast(name: str, function: TensorFunction = dense.cast, **fields: Any) -> Conversion:
    return _step(name, function, changes=DTYPE, effects=COPY, **fields)


def _numpy() -> Iterable[Conversion]:
    """Return the hand-offs between tensors and arrays."""
    to_numpy = partial(
        Conversion, "torch", "numpy", takes=_VIEWABLE, fast_path=dense.numpy_fast_path
    )
    to_torch = partial(
        Conversion, "numpy", "torch", takes=_SHAREABLE, fast_path=dense.torch_fast_path
    )
    as_is, as_bits = Cost(5e-7), Cost(1.2e-6)
    yield to_numpy(dense.tensor_to_numpy, dtypes=_NUMPY_DTYPES, cost=as_is)
    yield to_numpy(dense.bits_to_numpy, dtypes=BIT_DTYPES, cost=as_bits)
    yield to_torch(dense.numpy_to_torch, dtypes=_NUMPY_DTYPES, cost=as_is)
    yield to_torch(dense.bits_to_torch, dtypes=BIT_DTYPES, cost=as_bits)
    yield Conversion(
        "numpy",
        "torch",
        dense.copy_into_torch,
        takes=_SHAREABLE - _GAPS,
        effects=COPY,
        cost=Cost(4e-6, 1.9e10, 1.2e11),
    )
    yield Conversion(
        "torch",
        "numpy",
        dense.download,
        dtypes=DTYPE_NAMES - {"complex32"},
        devices=_ACCELERATORS,
        takes=_LAYOUT,
        changes=DEVICE,
        result=Result(devices=CPU),
        effects=TRANSFER,
        cost=_WIRE,
    )
    upload = partial(Conversion, "numpy", "torch", into=dense.upload_into)
    yield from _moves(upload, dense.upload, _SHAREABLE, _ACCELERATORS)


def _protocols() -> Iterable[Conversion]:
    return [
        Conversion(
            "python.arrays",
            "torch",
            dense.stack,
            dtypes=DTYPE_NAMES,
            devices=None,
            takes=_GRAD | {"labelled"},
            drops=frozenset({"labelled"}),
            changes=DTYPE,
            effects=COPY,
            cost=Cost(1.5e-5, 5e8),  # most of it for each element, of which nobody knows the size
        ),
        Conversion(
            "dlpack",
            "torch",
            dense.from_dlpack,
            fast_path=dense.dlpack_fast_path,
            dtypes=DTYPE_NAMES,
            devices=CPU | _CUDA,
            takes=_SHAREABLE,
            stream=True,
            cost=Cost(1e-5),
            name="torch_from_dlpack",
        ),
        Conversion(
            _INTERFACE,
            "torch",
            cuda.from_cuda_array_interface,
            dtypes=_NUMPY_DTYPES,
            devices=_CUDA,
            takes=_SHAREABLE - _READONLY,
            stream=True,
            # The driver is asked for the device, and who reads the interface itself comes first.
            cost=Cost(1.6e-5),
        ),
        *_copies_there(),
    ]


def _copies_there() -> Iterable[Conversion]:
    """Return the steps that share memory, copy it, and let its producer wait, all in one.

    If a step of torch's copied what another has shared, the producer could write to it meanwhile.
    """
    for protocol, share, dtypes, takes, seconds in (
        ("dlpack", dense.from_dlpack, DTYPE_NAMES, _SHAREABLE, 1.5e-5),
        (_INTERFACE, cuda.from_cuda_array_interface, _NUMPY_DTYPES, _SHAREABLE - _READONLY, 2.6e-5),
    ):
        for kind, source, target in (
            ("", dtypes & _REAL, DTYPE_NAMES),
            ("complex_", dtypes & _COMPLEX, _COMPLEX),
        ):
            yield Conversion(
                protocol,
                "torch",
                partial(cuda.copy_shared, share),
                dtypes=source,
                devices=_CUDA,
                takes=takes,
                changes=DTYPE,
                result=Result(dtypes=target),
                effects=COPY,
                stream=True,
                cost=Cost(seconds, 1e12),
                name=f"torch_copy_{kind}from_{protocol}",
                into=partial(cuda.fill_from_shared, share),
            )


def _between(
    source: str, target: str, name: str, function: TensorFunction, **fields: Any
) -> Conversion:
    """Return a step from or to a sparse layout; ``""`` stands for the dense one."""
    start, end = (f"torch.{layout}" if layout else "torch" for layout in (source, target))
    return Conversion(start, end, function, **{"devices": None, "name": name, **fields})


def _sparse_steps() -> Iterable[Conversion]:
    """Return the steps that keep a layout."""
    for layout in _LAYOUTS:
        within = partial(_between, layout, layout)
        yield within(
            "detach",
            dense.detach,
            takes=_SHAPED | _GAPS | _UNALIGNED,
            requires=_GRAD,
            drops=_GRAD,
            effects=frozenset({"detach"}),
        )
        yield from _moves(within, dense.move, _SHAPED | _GRAD, frozenset(_DEVICES))
        yield within(
            "compact",
            sparse.compact,
            takes=_SHAPED,
            requires=_GAPS,
            drops=_GAPS,
            effects=COPY,
            shares=True,
            cost=Cost(8e-6, 1.2e10),
        )
        yield within(
            "align",
            sparse.align,
            takes=_SHAPED | _GAPS,
            requires=_UNALIGNED,
            drops=_UNALIGNED,
            effects=COPY,
            cost=Cost(8e-6, 6e9),
        )
    coalesce = partial(
        _between,
        "sparse_coo",
        "sparse_coo",
        takes=_GAPS | {"hybrid"},
        drops=_UNCOALESCED,
        effects=COPY,
        cost=Cost(1e-4, 0.85e9),
    )
    # In a graph torch itself has to do it, and leaves the indices in an order of its own.
    for in_graph, gaps in ((EMPTY, EMPTY), (_GRAD, _GAPS)):
        yield coalesce(
            name="coalesce",
            function=sparse.coalesce,
            dtypes=_SPARSE_MATH,
            requires=_UNCOALESCED | in_graph,
            adds=gaps,
        )
    yield coalesce(
        name="coalesce_stored",
        function=sparse.coalesce_stored,
        dtypes=_STORED,
        requires=_UNCOALESCED,
    )


def _with_bits(steps: Iterable[Conversion]) -> Iterable[Conversion]:
    """Yield steps, and with each a step for the dtypes that torch stores and does not compute with.

    That one takes nothing that would have to be summed or differentiated.
    """
    for step in steps:
        yield step
        if step.dtypes != _SPARSE_MATH:
            continue
        computed = _UNCOALESCED | _GRAD
        yield step._replace(
            function=partial(sparse.in_bits, step.function),
            name=f"{step.name}_in_bits",
            dtypes=_STORED,
            takes={*step.takes} - computed,
            drops={*step.drops} - computed,
        )


def _densifying() -> Iterable[Conversion]:
    """Return the steps from sparse to dense, into torch's memory and, where it can, NumPy's."""
    for layout in _LAYOUTS:
        yield _between(
            layout,
            "",
            "densify",
            sparse.densify,
            dtypes=_SPARSE_MATH,
            takes=_SHAPED | _GRAD | _GAPS,
            drops=_SHAPED,
            effects=frozenset({"densify"}),
            cost=Cost(5e-5, 1.2e9) if layout in _BLOCKS else Cost(5e-6, 3.2e9, 1e10),
        )
        if layout not in _BLOCKS:  # torch adds no blocks to a dense tensor
            densify_into = partial(
                _between,
                layout,
                "",
                function=sparse.densify_into,
                dtypes=_SPARSE_MATH - {"complex32"},
                devices=CPU,
                takes=_GAPS,
                effects=frozenset({"densify"}),
            )
            yield densify_into("densify_into", cost=Cost(5e-6, 1e10, 5e10))
            if layout == "sparse_coo":
                yield densify_into(
                    "densify_loose_into",
                    requires=_UNCOALESCED,
                    drops=_UNCOALESCED,
                    cost=Cost(2e-5, 1.5e9),
                )


def _layout_changes() -> Iterable[Conversion]:
    """Return the steps from dense to sparse, and between the sparse layouts."""
    for target in sorted(_BLOCKS):
        yield _between(
            "",
            target,
            f"dense_to_{target}",
            partial(sparse.to_blocks, target),
            dtypes=_SPARSE_MATH,
            takes=_GRAD | _LAYOUT,
            ndims=_MATRIX,
            result=Result(index_dtype="int64"),
            effects=COPY,
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
        # Between rows and columns, batches and dense axes stay as they are.
        extra = _SHAPED - _UNCOALESCED if {source, target} == _LINES else EMPTY
        yield _between(
            source,
            target,
            f"{source or 'dense'}_to_{target}",
            partial(sparse.to_layout, target),
            dtypes=_SPARSE_MATH,
            takes=_GRAD | extra | (_GAPS if source else _LAYOUT),
            ndims=None if extra or (to_coo and not source) else _MATRIX,
            # The order of columns and of blocks is not that of coordinates.
            adds=_UNCOALESCED if to_coo and source not in ("", "sparse_csr") else EMPTY,
            result=Result(index_dtype="int64" if to_coo or not source else None),
            effects=COPY,
            shares=shares,
            cost=Cost(8e-5 if source in _BLOCKS else 2e-5, speed),
        )


def _batches_of_dense() -> Iterable[Conversion]:
    """Return the steps from dense tensors, of which every axis but the last two is of batches."""
    for target in ("sparse_csr", "sparse_csc"):
        yield _between(
            "",
            target,
            f"dense_to_batched_{target}",
            partial(sparse.to_batches, target),
            dtypes=_SPARSE_MATH,
            takes=_LAYOUT,  # torch makes such batches in a graph, but does not differentiate them
            ndims=_MATRICES - _MATRIX,
            adds={"batched"},
            result=Result(index_dtype="int64"),
            effects=COPY,
            cost=Cost(2e-5, 1e9),
        )


def _regroupings() -> Iterable[Conversion]:
    """Return the steps between the two layouts of blocks."""
    for source, target in (("sparse_bsr", "sparse_bsc"), ("sparse_bsc", "sparse_bsr")):
        yield _between(
            source,
            target,
            f"{source}_to_{target}",
            partial(sparse.regroup, target),
            takes=_GAPS,
            drops=_GAPS,
            ndims=_MATRIX,
            effects=COPY,
            cost=Cost(8e-5, 1e9),
        )


def _opaque() -> Iterable[Conversion]:
    """Return the ways out of the layouts that torch alone can read."""
    return [
        _between(
            "mkldnn",
            "",
            "mkldnn_to_dense",
            sparse.densify,
            takes=_GRAD,
            effects=COPY,
            cost=Cost(8e-6, 2e10),
        ),
        _between(
            "quantized",
            "",
            "dequantize",
            quantized.dequantize,
            takes=_GAPS,
            effects=frozenset({"dequantize"}),
            cost=Cost(4e-6, 1.2e10, 5e10),
            into=quantized.dequantize_into,
        ),
    ]


def _shards() -> Iterable[Conversion]:
    """Return the steps of tensors in shards; each process makes that of its own."""
    out = partial(_between, "dtensor", "")
    yield out("replica", shards.replica, takes=_CARRIES, requires=_REPLICATED, drops=_REPLICATED)
    gather = partial(out, drops=_DISTRIBUTED, effects=frozenset({"gather"}))
    yield gather("gather", shards.gather, requires=_DISTRIBUTED, cost=Cost(1e-3, 1e9))
    yield gather(
        "gather_in_graph",
        shards.gather_in_graph,
        requires=_DISTRIBUTED | _GRAD,
        cost=Cost(2e-3, 5e8),
    )
    into = partial(_between, "", "dtensor", like=_REPLICATED | _DISTRIBUTED)
    yield into("place", shards.place, takes=_CARRIES - _UNALIGNED, cost=Cost(1e-4))
    within = partial(_between, "dtensor", "dtensor")
    for requires in (_REPLICATED, _DISTRIBUTED):
        yield within(
            "copy", shards.copy, takes=_CARRIES - _UNALIGNED, requires=requires, effects=COPY
        )
        yield within(
            "detach",
            shards.detach,
            takes=_VIEWABLE | _LAZY,
            requires=requires | _GRAD,
            drops=_GRAD,
            effects=frozenset({"detach"}),
            cost=Cost(1e-5),
        )
