"""PyTorch: dense, sparse and quantized tensors.

This file has the declarations; the functions are in the modules beside it. The speeds were measured
with 64 MiB on two cores. Large results on the host lie in memory that NumPy allocates, in huge
pages, whichever library fills them. Small results lie in memory of torch's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from interop.kit import COMPLEX, COPY, CPU, DTYPE, EMPTY, transfer
from interop.plugin import (
    Autodiff,
    Cast,
    Components,
    Container,
    Conversion,
    Copy,
    Cost,
    Declaration,
    Drop,
    DtypeNames,
    Format,
    Limits,
    Move,
    Result,
    Samples,
    hookimpl,
)
from interop.plugin.advanced import Advanced, NoTrace, Problems

from . import (
    autodiff,
    codes,
    containers,
    cuda,
    dense,
    no_trace,
    offers,
    packed,
    problems,
    quantized,
    ragged,
    samples,
    shards,
    sparse,
    subclasses,
)
from .dense import CAST_REALS, CLIPPED, WHOLE
from .describe import (
    BIT_DTYPES,
    DTYPE_NAMES,
    default_dtype,
    describe,
    dtype_name,
    fast_key,
    memory,
)

if TYPE_CHECKING:
    from torch import Tensor

    TensorFunction = Callable[..., Tensor]

_GRAD, _LAZY = frozenset({"grad"}), frozenset({"conj", "neg"})
_UNCOALESCED, _GAPS = frozenset({"uncoalesced"}), frozenset({"noncontiguous"})
_ORDERS, _C_OR_KEPT = frozenset("CFK"), frozenset("CK")
_READONLY, _SUBCLASS = frozenset({"readonly"}), frozenset({"subclass"})
_REPLICATED, _DISTRIBUTED = frozenset({"replicated"}), frozenset({"distributed"})

_DEVICES = ("cpu", "cuda", "mps", "xpu")
_CUDA, _MPS = frozenset({"cuda"}), frozenset({"mps"})
_ACCELERATORS = frozenset(_DEVICES) - CPU

#: The traits of memory that torch's kernels can read. Views read nothing, and `dense.align` can
#: read unaligned memory.
_LAYOUT = frozenset({"noncontiguous", "broadcast"})
_UNALIGNED = frozenset({"unaligned"})
_VIEWABLE = _LAYOUT | _UNALIGNED
_CARRIES = _VIEWABLE | _GRAD | _LAZY
_ALIGNED = _CARRIES - _UNALIGNED
#: The traits of NumPy arrays whose memory torch can share.
_SHAREABLE = frozenset({"noncontiguous", "broadcast", "readonly", "immutable"})

_COMPLEX = COMPLEX | {"complex32"}
_REAL = DTYPE_NAMES - _COMPLEX
#: The dtypes that NumPy has, too. Others of 8 and 16 bits pass as bits, and complex32 by a cast.
_NUMPY_DTYPES = DTYPE_NAMES - BIT_DTYPES - {"complex32"}
#: The dtypes that torch widens slowly, one element at a time.
_SLOW = frozenset({"float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2fnuz"})
_DOUBLE, _HALF = frozenset({"float64"}), frozenset({"float16"})
#: The dtypes that sparse tensors can have: their zeros are left out, so they need a zero.
_STORABLE = DTYPE_NAMES - {"float8_e8m0fnu"}
_NOT_ON_MPS = frozenset({"float64", "complex128"})
#: The dtypes of sparse tensors that torch computes with. It can only store the others.
_SPARSE_MATH = DTYPE_NAMES - BIT_DTYPES - {"uint16", "uint32", "uint64"} | {"bfloat16"}
_STORED = _STORABLE - _SPARSE_MATH

#: The cost on an accelerator. The speed is assumed, not measured: a fourth of current memory's.
_THERE = Cost(1e-5, 1e12)
#: The cost of a copy that puts elements in another order.
_ACROSS = Cost(1.5e-6, 6e9, 8e10)
#: The cost of a transfer into page-locked memory, measured on an H200.
_LOCKED = Cost(1.8e-5, 1.1e11)

_LINES, _BLOCKS = ("sparse_csr", "sparse_csc"), ("sparse_bsr", "sparse_bsc")
_COMPRESSED = _LINES + _BLOCKS
_SHAPED = frozenset({"hybrid", "batched", "uncoalesced"})
_SPARSE_TRAITS = frozenset({"grad", "hybrid", "noncontiguous", "unaligned"})
_MATRIX = frozenset({2})
#: Beside the two compressed axes there may be axes of batches and dense axes, up to 64 in all.
_MATRICES = frozenset(range(2, 65))
_ROWS = frozenset(range(1, 65))
_INTERFACE = "cuda_array_interface"
_SHARD_HINTS = {
    "gather": "What this process has of it is value.to_local(), at value.placements on "
    "value.device_mesh. With allow='gather' every process of the mesh must make this call.",
    "elsewhere": "its mesh is of other processes, and this one has nothing of it.",
}


#: Why values stay where they are that are no plain tensors, or hold some.
_STATE = "interop.convert_tree converts the arrays in its state_dict()."
_STORED_ONLY = (
    "torch stores it, and does not say how many numbers share an element; x.view(torch.uint8) "
    "gives the bytes, and interop.QuantizedArray(..., packed=..., shape=...) the numbers in them "
    "if they are int2, uint2, int4 or uint4, which packed= has to name."
)
_DENSE_HINTS = {
    "masked": "it keeps its numbers and its mask apart; convert what x.get_data() and x.get_mask() "
    "return.",
    "nested": "x.unbind() gives its rows, and torch.nested.to_padded_tensor(x, 0.0) pads them to "
    "one shape.",
    "uninitialized": "it is not initialized: it gets its shape when its module is called for the "
    "first time; call the module once.",
    "waiting": "it waits for a collective operation; convert what x.wait() returns.",
    "as_tensor": "its class keeps its numbers in a tensor of its own; convert what x.as_tensor() "
    "returns.",
    "torch.float4": "two of its numbers share a byte along one axis, and that is not its last; "
    "convert it as it was before it was transposed, and transpose the result.",
    **dict.fromkeys(("torch.int", "torch.uint", "torch.bits"), _STORED_ONLY),
    "torch.nn:Module": _STATE,
    "torch.optim:Optimizer": _STATE,
    "torch.optim.lr_scheduler:LRScheduler": _STATE,
}

#: Parameters of other libraries that hold codes.
_CODES = (
    "bitsandbytes.nn.modules:Params4bit",
    "bitsandbytes.nn.modules:Int8Params",
    "diffusers.quantizers.gguf.utils:GGUFParameter",
)
_CODES_HINTS = {
    "no_scale": "the scale of its codes is not with them: a layer that has computed keeps it in "
    "its state (layer.state.SCB); dequantize both by bitsandbytes.functional."
    "int8_vectorwise_dequant(...).",
}

#: Why jagged tensors stay where they are.
_RAGGED_HINTS = {
    "rearranged": "another axis than the second is jagged, or there are gaps between its rows; "
    "make it plain first (x.transpose(...), x.contiguous()).",
}


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return everything that is declared for torch."""
    return [
        *_formats(),
        *_bits(),
        *_numpy(),
        *_protocols(),
        *_with_bits(_densifying()),
        *_differentiable(_with_bits(_layout_changes())),
        *_ragged(),
        *_opaque(),
        *_packed(),
        _codes(),
        *_shards(),
        DtypeNames("torch:dtype", dtype_name),
        Container("tensordict:TensorDict", containers.open_tensordict),
        Container("torch_geometric.data:HeteroData", containers.open_graph),
        Autodiff("torch", autodiff.vjp, autodiff.attach, autodiff.recorded),
        NoTrace(no_trace.mark),
        Problems(problems.find),
    ]


# ---------------------------------------------------------------------- formats


def _formats() -> Iterable[Format]:
    """Yield the formats of dense tensors, of the layouts of the same type, and of shards."""
    yield _format(
        "torch",
        types=("torch:Tensor", "torch.nn.parameter:Parameter"),
        target_types=("torch:Tensor",),
        aliases=("pytorch", "torch:strided"),
        dtypes=DTYPE_NAMES,
        carries=_CARRIES | {"traced", "subclass"},
        exports={"dlpack": DTYPE_NAMES},
        unary=(*_dense_steps(), *_steps_of_subclasses(), *_host_casts()),
        limits=Limits(unsupported={"mps": _NOT_ON_MPS}, refusal_hints=_DENSE_HINTS),
        fill=dense.fill,
        advanced=Advanced(
            hub=True,
            fast_key=fast_key,
            default_dtype=default_dtype,
            address=methodcaller("data_ptr"),
            unwritable=dense.unwritable,
            written=dense.note_write,
            offers={"dlpack": offers.offer},
            page_locked=True,
        ),
        samples=Samples(variants=samples.DENSE),
    )
    yield _coo_format()
    yield from map(_compressed_format, _COMPRESSED)
    yield _quantized_format()
    yield _jagged_format()
    yield _layout_format(
        "mkldnn",
        dtypes=frozenset({"float32", "bfloat16", "float16", "int8", "uint8"}),
        ndims=_ROWS,
        carries=_GRAD,
        samples=Samples(make=methodcaller("to_mkldnn"), variants=samples.SPARSE),
    )
    yield _layout_format(
        "packed",
        aliases=("torch:float4_e2m1fn_x2",),
        dtypes=frozenset({"float4_e2m1fn"}),
        carries=_VIEWABLE,
        ndims=_ROWS,
        unary=tuple(_moves(takes=_LAYOUT)),
        samples=Samples(make=packed.pack, source="numpy"),
    )
    yield _format(
        "torch.codes",
        types=_CODES,
        target_types=(),
        describe=codes.describe,
        dtypes=DTYPE_NAMES,
        limits=Limits(refusal_hints=_CODES_HINTS),
    )
    yield _format(
        "torch.dtensor",
        types=("torch.distributed.tensor:DTensor",),
        describe=shards.describe,
        dtypes=DTYPE_NAMES,
        carries=_CARRIES | _REPLICATED | _DISTRIBUTED,
        unary=tuple(_shard_steps()),
        memory=shards.memory,
        limits=Limits(refusal_hints=_SHARD_HINTS),
    )


def _quantized_format() -> Format:
    return _layout_format(
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
        advanced=Advanced(fast_key=fast_key),
        samples=Samples(variants=samples.QUANTIZED),
    )


def _jagged_format() -> Format:
    return _format(
        "torch.jagged",
        types=("torch.nested._internal.nested_tensor:NestedTensor",),
        aliases=("torch:jagged",),
        describe=ragged.describe,
        memory=ragged.memory,
        dtypes=_STORABLE,
        index_dtypes=frozenset({"int32", "int64"}),
        carries=_GAPS | _GRAD | {"nested", "hybrid", "rearranged", "meta"},
        ndims=_MATRICES,
        components=Components(
            "ragged",
            "torch",
            {"values": "dtype", "offsets": "index_dtype"},
            ragged.unpack,
            ragged.pack,
            unpack_keeps=frozenset({"nested", "hybrid"}),
            pack_seconds=4e-5,
        ),
        unary=(Drop("grad", dense.detach, "detach", takes=_GAPS | {"nested", "hybrid"}),),
        limits=Limits(refusal_hints=_RAGGED_HINTS),
        advanced=Advanced(default_dtype=default_dtype),
        samples=Samples(make=ragged.sample, variants={"nested": ragged.variant}),
    )


def _coo_format() -> Format:
    return _sparse_format(
        "sparse_coo",
        index_dtypes=frozenset({"int64"}),
        carries=_SPARSE_TRAITS | _UNCOALESCED,
        components=Components(
            "coo",
            "torch",
            {"values": "dtype", "indices": "index_dtype"},
            sparse.unpack_coo,
            sparse.pack_coo,
            unpack_keeps=_UNCOALESCED,
            pack_copies=frozenset({"indices"}),
        ),
        unary=(*_sparse_steps(), *_coalescing()),
        advanced=Advanced(hub=True),
        variants=samples.COO,
    )


def _compressed_format(layout: str) -> Format:
    fast_unpack = partial(sparse.fast_unpack_compressed, f"torch.{layout}")
    return _sparse_format(
        layout,
        index_dtypes=frozenset({"int32", "int64"}),
        carries=_SPARSE_TRAITS | {"batched"},
        ndims=_MATRICES,
        components=Components(
            layout.removeprefix("sparse_"),
            "torch",
            {"values": "dtype", "indices": "index_dtype", "pointers": "index_dtype"},
            sparse.unpack_compressed,
            partial(sparse.pack_compressed, layout),
            fast_unpack=None if layout in _BLOCKS else fast_unpack,
        ),
        unary=tuple(_sparse_steps()),
        advanced=Advanced(hub=layout not in _BLOCKS),
        variants=samples.SPARSE,
    )


def _sparse_format(layout: str, variants: samples.Variants, **fields: Any) -> Format:
    make = partial(samples.stored, layout)
    return _layout_format(
        layout, dtypes=_STORABLE, samples=Samples(make=make, variants=variants), **fields
    )


def _layout_format(layout: str, **fields: Any) -> Format:
    # The alias is the object that names the layout.
    shared: dict[str, Any] = {"types": ("torch:Tensor",), "aliases": (f"torch:{layout}",)}
    return _format(f"torch.{layout}", **shared | fields)


def _format(name: str, **fields: Any) -> Format:
    shared: dict[str, Any] = {"describe": describe, "devices": _DEVICES, "memory": memory}
    return Format(name, requires="torch", install="pip install torch", **shared | fields)


# ---------------------------------------------------------------------- within one format


def _dense_steps() -> Iterable[Conversion]:
    """Yield the steps within dense tensors on any device, except for the casts on the host."""
    yield Drop("grad", dense.detach, "detach", takes=_CARRIES | {"zero_tensor"}, cost=Cost(3e-7))
    yield Drop("subclass", dense.without_subclass, name="as_plain_tensor")
    yield Drop(
        "zero_tensor",
        dense.clone,
        "copy",
        takes=_LAYOUT | _GRAD,
        cost=Cost(2e-6, 2e10),
        name="materialize_zeros",
    )
    for step in (*_copies(), *_resolutions()):
        yield step._replace(devices=CPU)
        yield step._replace(devices=_ACCELERATORS, cost=_THERE, across=None)
    yield from _moves(takes=_LAYOUT | _GRAD, into=dense.move_into, batch=dense.move_all)
    yield Move(
        dense.lock_pages,
        {"cuda_host"},
        takes=_LAYOUT | _GRAD,
        devices=CPU | _CUDA,
        cost=_LOCKED,
    )
    there: dict[str, Any] = {"devices": _ACCELERATORS, "drops": _LAZY, "cost": _THERE}
    yield from _casts("cast{}_there", dense.cast, _ALIGNED, **there)
    for name in ("int", "uint"):  # for targets without 64 bits
        yield Cast(
            dense.cast_if_exact,
            {f"{name}32"},
            dtypes={f"{name}64"},
            devices=_CUDA,
            takes=_LAYOUT,
            checked=True,
            cost=Cost(5e-5, 5e11),
            name=f"cast_{name}_if_exact_there",
        )


def _copies() -> Iterable[Conversion]:
    """Yield the copies on the host, which devices make at a cost of their own."""
    takes, cost = _LAYOUT | _GRAD, Cost(1.5e-6, 1.9e10, 1.5e11)
    yield Copy(dense.clone, _ORDERS, takes=takes, cost=cost, across=_ACROSS)
    yield Copy(dense.align, takes=_CARRIES, requires=_UNALIGNED, drops=_LAZY, cost=_ACROSS)


def _casts(
    name: str, function: TensorFunction, takes: frozenset[str], **fields: Any
) -> Iterable[Conversion]:
    """Yield the casts of real and of complex numbers; integers and bools have no gradients."""
    cast, real, whole = partial(Cast, function, **fields), DTYPE_NAMES - WHOLE, takes - _GRAD
    yield cast(dtypes=_REAL, to=real, takes=takes, name=name.format(""))
    yield cast(dtypes=_REAL, to=WHOLE, takes=whole, name=name.format("_whole"))
    yield cast(dtypes=_COMPLEX, to=_COMPLEX, takes=takes, name=name.format("_complex"))


def _steps_of_subclasses() -> Iterable[Conversion]:
    """Yield the steps that keep the class of a tensor, and what the class knows of it."""
    takes = _VIEWABLE | _GRAD | _SUBCLASS | {"labelled"}
    fields: dict[str, Any] = {"takes": takes, "requires": _SUBCLASS}
    yield Copy(subclasses.clone, _C_OR_KEPT, cost=Cost(1.5e-6, 1.9e10, 1.5e11), **fields)
    cast, cost = subclasses.cast, Cost(2e-6, 1.9e10, 1.2e11)
    yield from _casts("cast_subclass{}", cast, takes, cost=cost, requires=_SUBCLASS)
    yield from _moves(name="move_subclass", function=subclasses.move, **fields)


def _resolutions() -> Iterable[Conversion]:
    """Yield the steps on the host that resolve conjugates and negatives."""
    for trait in sorted(_LAZY):
        yield Copy(
            dense.resolve,
            _ORDERS,
            takes=_ALIGNED,
            requires={trait},
            drops=_LAZY,
            into=dense.fill,
            cost=Cost(1.5e-6, 1.6e10, 1.5e11),
            across=_ACROSS,
            name=f"resolve_{trait}",
        )


def _moves(
    name: str = "", function: TensorFunction = dense.move, **fields: Any
) -> Iterable[Conversion]:
    """Yield the steps to other devices. MPS has no 64-bit floating point."""
    move = partial(Move, function, **fields)
    yield move(to=frozenset(_DEVICES) - _MPS, dtypes=DTYPE_NAMES, name=name)
    yield move(to=_MPS, dtypes=DTYPE_NAMES - _NOT_ON_MPS, name=f"{name or 'move'}_to_mps")


def _host_casts() -> Iterable[Conversion]:
    """Yield the casts on the host; those with a trait resolve conjugates and negatives on the way.

    Complex numbers stay complex: torch would drop their imaginary parts with a warning. Casts for
    which NumPy gives other results are left out, so that it does not matter which library casts.
    Resolving first would take memory for a second copy.
    """
    cast = partial(Cast, dense.cast, orders=_ORDERS, devices=CPU)
    for name, dtypes, to, speed, cached in (
        ("cast", WHOLE, DTYPE_NAMES - CLIPPED, 1.9e10, 1.2e11),
        ("cast_real", _REAL - WHOLE - _SLOW - _DOUBLE, CAST_REALS, 1.9e10, 1.2e11),
        ("cast_double", _DOUBLE, CAST_REALS - _HALF, 1.9e10, 1.2e11),
        ("cast_narrow", _SLOW, CAST_REALS, 2e9, 5e9),
        ("cast_complex", _COMPLEX, _COMPLEX, 1.9e10, 1.2e11),
    ):
        # torch walks strided elements one by one.
        across = Cost(2e-6, min(speed, 3e9), min(cached, 2.5e10))
        cost, takes = Cost(2e-6, speed, cached), _LAYOUT | _GRAD
        yield cast(to=to, dtypes=dtypes, takes=takes, cost=cost, across=across, name=name)
    # NumPy cannot cast tensors in graphs. So torch does the casts that were left out, by steps that
    # give NumPy's results.
    cost = Cost(1.5e-5, 2e9)
    in_graph = partial(Cast, dense.cast_as_numpy, devices=CPU, requires=_GRAD, cost=cost)
    yield in_graph(takes=_LAYOUT, dtypes=_NUMPY_DTYPES & _REAL - WHOLE, to=CLIPPED)
    yield in_graph(takes=_LAYOUT, dtypes=_DOUBLE, to=_HALF, name="cast_double_as_numpy")
    cast = partial(cast, takes=_ALIGNED, drops=_LAZY, into=dense.fill)
    cast = partial(cast, cost=Cost(3e-6, 1.6e10, 1.2e11), across=Cost(3e-6, 3e9, 2.5e10))
    yield cast(dtypes=_COMPLEX, to=_COMPLEX, requires={"conj"}, name="cast_conj")
    cast = partial(cast, requires={"neg"})
    yield cast(dtypes=_COMPLEX, to=_COMPLEX, name="cast_neg_complex")
    yield cast(dtypes=_REAL - _DOUBLE, to=CAST_REALS, name="cast_neg")
    yield cast(dtypes=_DOUBLE, to=CAST_REALS - _HALF, name="cast_neg_double")


def _sparse_steps() -> Iterable[Conversion]:
    """Yield the steps that keep a sparse layout."""
    yield Drop("grad", dense.detach, "detach")
    yield from _moves(takes=_SHAPED | _GRAD)
    compact, align = Cost(8e-6, 1.2e10), Cost(8e-6, 6e9)
    yield Drop("noncontiguous", sparse.compact, "copy", takes=_SHAPED, shares=True, cost=compact)
    yield Drop("unaligned", sparse.align, "copy", takes=_SHAPED | _GAPS, cost=align)


def _coalescing() -> Iterable[Conversion]:
    drop = partial(Drop, "uncoalesced", effect="copy", cost=Cost(1e-4, 0.85e9))
    takes = _GAPS | {"hybrid"}
    yield drop(sparse.coalesce, takes=takes, dtypes=_SPARSE_MATH)
    # In a graph torch itself has to coalesce, and leaves the indices in an order of its own.
    yield drop(sparse.coalesce, takes=takes, dtypes=_SPARSE_MATH, requires=_GRAD, adds=_GAPS)
    yield drop(sparse.coalesce_stored, takes=takes, dtypes=_STORED)


def _shard_steps() -> Iterable[Conversion]:
    for requires in (_REPLICATED, _DISTRIBUTED):
        yield Copy(shards.copy, takes=_ALIGNED, requires=requires)
        cost = Cost(1e-5)
        yield Drop("grad", shards.detach, "detach", takes=_CARRIES, requires=requires, cost=cost)


# ---------------------------------------------------------------------- to and from others


def _bits() -> Iterable[Conversion]:
    """Yield the views of elements as unsigned integers of the same width, and back."""
    view = partial(Conversion, "torch", "torch", dense.view_as, devices=None, takes=_VIEWABLE)
    yield view(dtypes=BIT_DTYPES, result=Result(bits="carry"), name="as_bits")
    integers = frozenset({"uint8", "uint16"})
    yield view(dtypes=integers, result=Result(bits="restore"), name="from_bits")


def _numpy() -> Iterable[Conversion]:
    """Yield the hand-offs between tensors and arrays."""
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
    yield transfer(
        "torch",
        "numpy",
        dense.download,
        _ACCELERATORS,
        CPU,
        dtypes=DTYPE_NAMES - {"complex32"},
        takes=_LAYOUT,
        into=dense.download_into,
        batch=dense.download_all,
    )
    # One number comes as such, without an array on the way.
    yield transfer(
        "torch",
        "python",
        dense.item,
        _ACCELERATORS,
        CPU,
        dtypes=DTYPE_NAMES - {"complex32"},
        ndims=frozenset({0}),
        effects=COPY,
        cost=Cost(1.5e-5),
    )
    upload = partial(
        transfer,
        "numpy",
        "torch",
        dense.upload,
        CPU,
        takes=_SHAREABLE,
        into=dense.upload_into,
        batch=dense.upload_all,
    )
    yield upload(_ACCELERATORS - _MPS, dtypes=DTYPE_NAMES)
    yield upload(_MPS, dtypes=DTYPE_NAMES - _NOT_ON_MPS, name="upload_to_mps")


def _protocols() -> Iterable[Conversion]:
    """Yield the ways in from sequences of arrays, from DLPack and from CUDA's array interface."""
    stack = partial(
        Conversion,
        "python.arrays",
        "torch",
        dense.stack,
        dtypes=DTYPE_NAMES,
        devices=None,
        takes={"labelled", "mixed"},
        drops=frozenset({"labelled", "mixed"}),
        changes=DTYPE,
        effects=COPY,
        cost=Cost(1.5e-5, 5e8),  # most of the time goes to each array, but a cost counts bytes
        fast_path=dense.stack_fast_path,
    )
    yield stack()
    # Integers and bools have no gradients.
    yield stack(requires=_GRAD, result=Result(dtypes=DTYPE_NAMES - WHOLE), name="stack_in_graph")
    yield Conversion(
        "dlpack",
        "torch",
        dense.from_dlpack,
        fast_path=dense.dlpack_fast_path,
        adopt=offers.adopt,
        dtypes=DTYPE_NAMES,
        devices=CPU | _CUDA,
        takes=_SHAREABLE,
        stream=True,
        cost=Cost(1e-5),
        name="torch_from_dlpack",
    )
    yield Conversion(
        _INTERFACE,
        "torch",
        cuda.from_cuda_array_interface,
        adopt=cuda.adopt_interface,
        dtypes=_NUMPY_DTYPES,
        devices=_CUDA,
        takes=_SHAREABLE - _READONLY,
        stream=True,
        # The driver is asked for the device. The cost also keeps routes into frameworks that read
        # the interface themselves from leading through torch.
        cost=Cost(1.6e-5),
    )
    yield from _copies_there()


def _copies_there() -> Iterable[Conversion]:
    """Yield the steps that share memory, copy it, and let its producer wait, all in one.

    If one step shared memory and the next copied it, the producer could write to it in between.
    """
    interface, writable = cuda.from_cuda_array_interface, _SHAREABLE - _READONLY
    for protocol, share, adopt, held, takes, seconds in (
        ("dlpack", dense.from_dlpack, offers.copy_adopted, DTYPE_NAMES, _SHAREABLE, 1.5e-5),
        (_INTERFACE, interface, cuda.copy_adopted_interface, _NUMPY_DTYPES, writable, 2.6e-5),
    ):
        copy, into = partial(cuda.copy_shared, share), partial(cuda.fill_from_shared, share)
        make = partial(Conversion, protocol, "torch", copy, into=into, adopt=adopt, effects=COPY)
        make = partial(make, devices=_CUDA, takes=takes, changes=DTYPE, stream=True)
        for kind, dtypes, to in (("", _REAL, DTYPE_NAMES), ("complex_", _COMPLEX, _COMPLEX)):
            yield make(
                dtypes=held & dtypes,
                result=Result(dtypes=to),
                cost=Cost(seconds, 1e12),
                name=f"torch_copy_{kind}from_{protocol}",
            )


# ---------------------------------------------------------------------- between layouts


def _between(source: str, target: str, function: TensorFunction, **fields: Any) -> Conversion:
    """Return a step from or to another layout; ``""`` stands for the dense one."""
    start, end = (f"torch.{layout}" if layout else "torch" for layout in (source, target))
    name = f"{source or 'dense'}_to_{target or 'dense'}"
    return Conversion(start, end, function, **{"devices": None, "name": name, **fields})


def _with_bits(steps: Iterable[Conversion]) -> Iterable[Conversion]:
    """Yield steps, with further ones for dtypes that torch can store but not compute with.

    The further steps take no values that would have to be summed or differentiated.
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


def _ragged() -> Iterable[Conversion]:
    """Yield the steps from rows of several lengths to jagged tensors, and from these to dense."""
    join = partial(Conversion, "python.ragged", dtypes=DTYPE_NAMES, devices=None)
    join = partial(join, takes=_GRAD | {"labelled", "hybrid"}, requires={"nested"})
    join = partial(join, cost=Cost(4e-5, 5e8))
    yield join("torch.jagged", ragged.from_rows, drops={"labelled"}, effects=COPY)
    lost = {"labelled", "nested", "hybrid"}
    yield join("torch", ragged.padded_rows, drops=lost, effects=COPY | {"pad"}, name="pad_rows")

    to_jagged = partial(_between, "", "jagged", dtypes=_STORABLE, takes=_GRAD)
    to_jagged = partial(to_jagged, result=Result(index_dtype="int32"))
    share = to_jagged(ragged.from_dense, ndims=_MATRIX, cost=Cost(4e-5), name="from_dense")
    yield from _differentiable([share])
    join = partial(to_jagged, ragged.from_nested, requires={"nested"}, effects=COPY)
    join = partial(join, cost=Cost(6e-5, 1e9))
    yield join(ndims=_MATRIX, name="join_rows")
    yield join(ndims=_MATRICES - _MATRIX, adds={"hybrid"}, name="join_rows_of_vectors")

    to_dense = partial(_between, "jagged", "", takes=_GRAD | _GAPS | {"hybrid"})
    yield to_dense(ragged.regular, drops={"hybrid"}, cost=Cost(4e-5), name="regular_rows")
    yield to_dense(
        ragged.padded,
        dtypes=_SPARSE_MATH,
        requires={"nested"},
        drops={"nested", "hybrid"},
        effects=COPY | {"pad"},
        cost=Cost(3e-5, 1e9),
        name="pad_rows",
    )


def _densifying() -> Iterable[Conversion]:
    """Yield the steps from sparse to dense, into torch's memory and, where it can, NumPy's."""
    for layout in ("sparse_coo", *_COMPRESSED):
        yield _between(
            layout,
            "",
            sparse.densify,
            dtypes=_SPARSE_MATH,
            takes=_SHAPED | _GRAD | _GAPS,
            drops=_SHAPED,
            cost=Cost(5e-5, 1.2e9) if layout in _BLOCKS else Cost(5e-6, 3.2e9, 1e10),
            name="densify",
        )
    into = partial(_between, target="", function=sparse.densify_into, devices=CPU, takes=_GAPS)
    into = partial(into, dtypes=_SPARSE_MATH - {"complex32"})
    for layout in ("sparse_coo", *_LINES):  # torch adds no blocks to a dense tensor
        yield into(layout, cost=Cost(5e-6, 1e10, 5e10), name="densify_into")
    loose = partial(into, requires=_UNCOALESCED, drops=_UNCOALESCED)
    yield loose("sparse_coo", cost=Cost(2e-5, 1.5e9), name="densify_loose_into")


def _differentiable(conversions: Iterable[Conversion]) -> Iterable[Conversion]:
    """Yield changes of layout, which torch does not differentiate if numbers are complex."""
    for conversion in conversions:
        if "grad" in conversion.takes:
            dtypes = conversion.dtypes or DTYPE_NAMES
            yield conversion._replace(dtypes=dtypes - _COMPLEX)
            takes, name = conversion.takes - _GRAD, f"complex_{conversion.label}"
            yield conversion._replace(dtypes=dtypes & _COMPLEX, takes=takes, name=name)
        else:
            yield conversion


def _layout_changes() -> Iterable[Conversion]:
    """Yield the steps from dense to sparse, and between the sparse layouts."""
    coo, csr, csc, bsr, bsc = "sparse_coo", *_COMPRESSED
    takes, wide = _GRAD | _LAYOUT, Result(index_dtype="int64")
    from_dense = partial(_change, "", takes=takes, result=wide)
    yield from_dense(coo, sparse.to_layout, Cost(2e-5, 3.7e9))
    from_matrix = partial(from_dense, ndims=_MATRIX)
    yield from_matrix(csr, sparse.to_layout, Cost(2e-5, 2.4e9))
    yield from_matrix(csc, sparse.to_layout, Cost(2e-5, 1e9))
    yield from_matrix(bsr, sparse.to_blocks, Cost(1e-4, 1e9))
    yield from_matrix(bsc, sparse.to_blocks, Cost(1e-4, 1e9))
    for target in (csr, csc):  # all axes but the last two are axes of batches
        yield from_dense(
            target,
            sparse.to_batches,
            Cost(2e-5, 1e9),
            takes=_LAYOUT,  # torch makes such batches in a graph, but does not differentiate them
            ndims=_MATRICES - _MATRIX,
            adds={"batched"},
            name=f"dense_to_batched_{target}",
        )

    # Steps between rows and columns keep batches and dense axes.
    for source, target in ((csr, csc), (csc, csr)):
        takes = _GRAD | _GAPS | {"hybrid", "batched"}
        yield _change(source, target, sparse.to_layout, Cost(2e-5, 0.85e9), takes=takes)
    plain: dict[str, Any] = {"takes": _GRAD | _GAPS, "ndims": _MATRIX}
    yield _change(coo, csr, sparse.to_layout, Cost(2e-5, 1e11), shares=True, **plain)
    yield _change(coo, csc, sparse.to_layout, Cost(2e-5, 0.55e9), **plain)
    # Elements in order of columns or of blocks are not in order of coordinates.
    for source, adds, cost in (
        (csr, EMPTY, Cost(2e-5, 2e10)),
        (csc, _UNCOALESCED, Cost(2e-5, 2e10)),
        (bsr, _UNCOALESCED, Cost(8e-5, 2e9)),
        (bsc, _UNCOALESCED, Cost(8e-5, 2e9)),
    ):
        to_coo = partial(_change, source, coo, sparse.to_layout, cost, adds=adds)
        yield to_coo(result=wide, shares=True, **plain)
    for source, target in ((bsr, bsc), (bsc, bsr)):
        regroup = partial(_change, source, target, sparse.regroup, Cost(8e-5, 1e9), dtypes=None)
        yield regroup(takes=_GAPS, drops=_GAPS, ndims=_MATRIX)


def _change(
    source: str, target: str, function: TensorFunction, cost: Cost, **fields: Any
) -> Conversion:
    fields = {"dtypes": _SPARSE_MATH, "effects": COPY, "cost": cost, **fields}
    return _between(source, target, partial(function, target), **fields)


def _opaque() -> Iterable[Conversion]:
    """Yield the ways out of layouts that only torch can read."""
    yield _between("mkldnn", "", sparse.densify, takes=_GRAD, effects=COPY, cost=Cost(8e-6, 2e10))
    yield _between(
        "quantized",
        "",
        quantized.dequantize,
        takes=_GAPS,
        effects=frozenset({"dequantize"}),
        cost=Cost(4e-6, 1.2e10, 5e10),
        into=quantized.dequantize_into,
        name="dequantize",
    )


def _packed() -> Iterable[Conversion]:
    """Yield the steps between numbers that share bytes and those of ml_dtypes, a byte for each."""
    make = partial(Conversion, effects=COPY, cost=Cost(3e-6, 2e9))
    yield make("torch.packed", "numpy", packed.unpack, takes=_VIEWABLE)
    yield make(
        "numpy",
        "torch.packed",
        packed.pack,
        dtypes={"float4_e2m1fn"},
        takes=_LAYOUT,
        ndims=_ROWS,
    )


def _codes() -> Conversion:
    """Return the step from codes of other libraries to the numbers that they stand for."""
    effects, cost = frozenset({"dequantize"}), Cost(1e-4, 1e9)
    return _between("codes", "", codes.dequantize, effects=effects, cost=cost, name="dequantize")


def _shards() -> Iterable[Conversion]:
    """Yield the steps from DTensors to tensors and back; each process handles its own shard."""
    out = partial(_between, "dtensor", "")
    replicated = {"requires": _REPLICATED, "drops": _REPLICATED}
    yield out(shards.replica, takes=_CARRIES, **replicated, name="replica")
    gather = partial(out, drops=_DISTRIBUTED, effects=frozenset({"gather"}))
    cost = Cost(1e-3, 1e9)
    yield gather(shards.gather, requires=_DISTRIBUTED, cost=cost, name="gather")
    in_graph, cost = _DISTRIBUTED | _GRAD, Cost(2e-3, 5e8)
    yield gather(shards.gather_in_graph, requires=in_graph, cost=cost, name="gather_in_graph")
    yield _between(
        "",
        "dtensor",
        shards.place,
        takes=_ALIGNED,
        like=_REPLICATED | _DISTRIBUTED,
        cost=Cost(1e-4),
        name="place",
    )
