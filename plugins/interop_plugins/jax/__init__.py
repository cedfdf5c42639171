"""JAX: dense arrays, references to them, and the sparse ones of `jax.experimental`.

JAX's arrays never change, so results that share their memory are read-only where the consumer can
mark them so. On the way into JAX, elements are copied on the host and shared on accelerators: on
the host XLA shares only memory that happens to be aligned to 64 bytes, and no spec tells that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from interop.kit import (
    COMPLEX,
    COPY,
    CPU,
    DEVICE,
    DTYPE,
    EMPTY,
    INTEGERS,
    NATIVE,
    REALS,
    transfer,
)
from interop.plugin import (
    MEMORY_TRAITS,
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
    Wrapper,
    hookimpl,
)
from interop.plugin.advanced import Advanced

from . import autodiff, containers, dense, describe, offers, samples, shards, sparse
from .describe import DLPACK_DTYPES, GAPS, IMMUTABLE
from .sparse import INVALID, PADDED, UNCOALESCED

#: The numbers of axes of NumPy's arrays, by way of which tensors come and go.
_NUMPY_AXES = frozenset(range(65))
_SHARDED = frozenset({"sharded"})
_REPLICATED, _DISTRIBUTED = frozenset({"replicated"}), frozenset({"distributed"})
_SEVERAL = _SHARDED | _REPLICATED | _DISTRIBUTED
_GATHER = frozenset({"gather"})
_HOST_MEMORY = frozenset({"host_memory"})
#: The traits of an array on one device that holds its own elements.
_PLAIN = IMMUTABLE | GAPS
_AXIS_KINDS = frozenset({"batched", "hybrid"})

_DEVICES = ("cpu", "cuda", "rocm", "tpu")
_ACCELERATORS = frozenset(_DEVICES) - CPU
#: The devices whose memory DLPack hands over.
_DLPACK_DEVICES = frozenset({"cuda", "rocm"})
_PAGE_LOCKED = frozenset({"cuda_host"})

_TORCH_DTYPES = DLPACK_DTYPES - {"float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz"}
#: The real dtypes that NumPy casts, and all dtypes that it casts nearly at the speed of memory.
_REAL = INTEGERS | REALS | {"bool", "bfloat16"}
_FAST = (_REAL | COMPLEX) - {"float16"}
_LONG = frozenset({"longdouble", "clongdouble"})


_HINTS = {
    **{
        dtype: f"JAX holds {dtype} only while its option jax_enable_x64 is on; switch it on "
        "(jax.config.update('jax_enable_x64', True)) or, for numbers, ask for a narrower dtype=."
        for dtype in describe.WIDE
    },
    "key<": "it holds keys of random numbers; jax.random.key_data(x) gives their bits.",
    "jax:ShapeDtypeStruct": "it has a shape and a dtype, but no data; interop.make_spec('jax', "
    "str(x.dtype), shape=x.shape) describes it for a plan.",
    "deleted": "its memory is gone, because it was deleted or donated to a function; convert it "
    "before that, or convert what the function returned.",
    "gather": "What this process has of it are its value.addressable_shards. With allow='gather' "
    "every process that has a part must make this call.",
    "host_memory": "it lies in the host memory of an accelerator; put it on the device first "
    "(jax.device_put).",
    "sharded": "it lies on several devices, and the target reads from one; name that one "
    "(device='cuda:0'), or ask for a format on the host, where it is gathered.",
    "invalid_indices": "it has indices below zero, or pointers that do not rise from zero to the "
    "number of elements, and other libraries do not check for either.",
}
_LIMITS = Limits(unsupported_now=describe.unsupported_now, refusal_hints=_HINTS)

_INSTALL = "pip install jax"
#: JAX copies what comes in, and compiles for every new shape.
_ADVANCED = Advanced(default_dtype=describe.default_dtype, divides_host=True)
#: The cost of steps that JAX has to compile first.
_COMPILED = Cost(5e-3, 1e9)
#: The dtypes that sparse arrays can have: their zeros are left out, so they need a zero.
_STORABLE = DLPACK_DTYPES - {"float8_e8m0fnu"}


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return JAX's formats, conversions and dtype names, its pytrees and its differentiation."""
    return [
        *_formats(),
        *_conversions(),
        DtypeNames("jax._src.numpy.scalar_types:_ScalarMeta", describe.scalar_type_name),
        Container("jax", containers.open_pytree, containers.row),
        Autodiff("jax", autodiff.vjp, autodiff.attach),
    ]


def _formats() -> Iterator[Format]:
    yield Format(
        "jax",
        types=("jaxlib._jax:ArrayImpl", "jax:Array", "jax._src.core:Tracer"),
        target_types=("jax:Array",),
        aliases=("jnp",),
        describe=describe.describe,
        dtypes=describe.DTYPES,
        devices=_DEVICES,
        limits=_LIMITS,
        carries=IMMUTABLE | _SEVERAL | GAPS | _HOST_MEMORY | {"traced"},
        exports={"dlpack": DLPACK_DTYPES},
        requires="jax",
        install=_INSTALL,
        unary=tuple(_within_jax()),
        memory=describe.memory,
        fast_path=describe.unless_deleted,
        advanced=_ADVANCED._replace(
            offers={"dlpack": offers.offer}, page_locked=True, fast_key=describe.fast_key
        ),
    )
    yield Format(
        "jax.ref",
        types=("jax:Ref",),
        target_types=(),
        dtypes=describe.DTYPES,
        devices=_DEVICES,
        wrapper=Wrapper(dense.read, 2e-5, once=True),  # every reading is a copy
        requires="jax",
        install=_INSTALL,
    )
    yield from _sparse_formats()


def _sparse_formats() -> Iterator[Format]:
    sparse_format = partial(
        Format,
        dtypes=_STORABLE,
        devices=_DEVICES,
        limits=_LIMITS,
        carries=UNCOALESCED | PADDED | _AXIS_KINDS | _SEVERAL | {"traced"},
        requires="jax",
        install=_INSTALL,
        index_dtypes=frozenset({"int32", "int64"}),  # the latter as `_LIMITS` say
        memory=sparse.memory,
        advanced=_ADVANCED,
    )
    within: dict[str, Any] = {"effect": "copy", "dtypes": _STORABLE, "adds": IMMUTABLE}
    takes, cost = IMMUTABLE | UNCOALESCED, Cost(2e-4, 1e9)
    without_padding = Drop("padded", sparse.without_padding, takes=takes, cost=cost, **within)
    canonicalize = Drop(
        "uncoalesced", sparse.canonicalize, takes=IMMUTABLE, cost=_COMPILED, **within
    )
    components = partial(Components, format="jax", unpack_keeps=UNCOALESCED, pack_seconds=1e-4)
    yield sparse_format(
        "jax.bcoo",
        types=("jax.experimental.sparse:BCOO",),
        describe=sparse.describe_bcoo,
        components=components(
            layout="coo",
            roles={"values": "dtype", "indices": "index_dtype"},
            unpack=sparse.unpack_bcoo,
            pack=sparse.pack_bcoo,
            unpack_copies=frozenset({"indices"}),
            pack_copies=frozenset({"indices"}),
        ),
        unary=(without_padding, canonicalize),
        ndims=frozenset(range(1, 65)),
        samples=Samples(make=samples.bcoo),
    )
    yield sparse_format(
        "jax.bcsr",
        types=("jax.experimental.sparse:BCSR",),
        describe=sparse.describe_bcsr,
        components=components(
            layout="csr",
            roles={"values": "dtype", "indices": "index_dtype", "pointers": "index_dtype"},
            unpack=sparse.unpack_bcsr,
            pack=sparse.pack_bcsr,
        ),
        unary=(without_padding,),
        ndims=frozenset(range(2, 65)),
        samples=Samples(make=samples.bcsr),
    )


def _conversions() -> Iterator[Conversion]:
    yield from _from_jax()
    yield from _numpy_to_jax()
    yield from _others_to_jax()
    yield from _shard_by_shard()
    yield from _sparse_conversions()


def _from_jax() -> Iterator[Conversion]:
    """Yield the ways out. On accelerators other frameworks declare their ways in, by DLPack."""
    share = partial(Conversion, "jax", takes=IMMUTABLE, cost=Cost(1e-6))
    yield share("numpy", dense.to_numpy, dtypes=DLPACK_DTYPES, fast_path=dense.numpy_fast_path)
    share = partial(share, "torch", dense.to_torch, dtypes=_TORCH_DTYPES, ndims=_NUMPY_AXES)
    yield share(fast_path=dense.torch_fast_path)
    copy = partial(Conversion, "jax", "numpy", takes=_PLAIN)
    yield copy(dense.unpack, dtypes=describe.PACKED, effects=COPY, cost=Cost(1e-5, 1e9))
    yield copy(dense.gather, requires=_SHARDED, drops=_SHARDED, effects=COPY, cost=Cost(1e-4, 8e9))
    download = partial(transfer, "jax", "numpy", devices=_ACCELERATORS, to=CPU, takes=_PLAIN)
    yield download(dense.download)
    yield download(dense.gather, requires=_SHARDED, drops=_SHARDED)
    together: dict[str, Any] = {"requires": _DISTRIBUTED, "drops": _DISTRIBUTED, "effects": _GATHER}
    together["cost"] = Cost(1e-3, 1e9)
    yield copy(shards.gather_processes, **together)
    yield download(shards.gather_processes, **together)


def _shard_by_shard() -> Iterator[Conversion]:
    """Yield the hand-offs, shard by shard, to torch's DTensor and back. Nothing is gathered."""
    to_torch = partial(
        Conversion,
        "jax",
        "torch.dtensor",
        takes=IMMUTABLE,
        drops=_SEVERAL,
        dtypes=_TORCH_DTYPES,
        devices=CPU | _DLPACK_DEVICES,
        like=_REPLICATED | _DISTRIBUTED,
    )
    for requires in (_DISTRIBUTED, _REPLICATED):
        yield to_torch(shards.share_shard, requires=requires, cost=Cost(5e-5))
    yield to_torch(shards.join_shards, requires=_DISTRIBUTED, effects=COPY, cost=Cost(2e-4, 1e10))
    for requires in (_DISTRIBUTED, _REPLICATED):
        yield Conversion(
            "torch.dtensor",
            "jax",
            shards.from_dtensor,
            takes=MEMORY_TRAITS | {"conj", "neg"},
            requires=requires,
            drops=_SEVERAL | {"conj", "neg"},
            adds=IMMUTABLE,
            dtypes=_TORCH_DTYPES,
            devices=CPU | _DLPACK_DEVICES,
            like=_DISTRIBUTED,
            effects=COPY,
            cost=Cost(2e-4, 1e10),
        )


def _numpy_to_jax() -> Iterator[Conversion]:
    from_numpy = partial(Conversion, "numpy", "jax", adds=IMMUTABLE)
    copy = partial(from_numpy, dense.from_numpy, takes=MEMORY_TRAITS, effects=COPY)
    yield copy(fast_path=dense.jax_fast_path, cost=Cost(4e-5, 1.2e10))
    # These put an array on a part of the host that is named.
    put = partial(copy, result=Result(devices=CPU), changes=DEVICE, effects=EMPTY)
    yield put(cost=Cost(5e-5, 1.2e10), name="put_numpy")
    # A cast on the way in is as fast as a copy. Casting first would need memory for two results.
    for name, dtypes, results, speed in (
        ("real", _FAST | _LONG, _FAST - COMPLEX, 1.2e10),
        ("complex", _FAST | _LONG, COMPLEX, 1.2e10),
        ("half", _REAL, _REAL, 8e9),
    ):
        cast: dict[str, Any] = {"dtypes": dtypes, "cost": Cost(8e-5, speed)}
        to = Result(dtypes=results)
        yield copy(result=to, changes=DTYPE, name=f"from_numpy_cast_{name}", **cast)
        to = to._replace(devices=CPU)
        yield put(result=to, changes=DTYPE | DEVICE, name=f"put_numpy_cast_{name}", **cast)
    for name in ("int", "uint"):
        yield from_numpy(
            dense.from_numpy_if_exact,
            dtypes=frozenset({f"{name}64"}),
            takes=MEMORY_TRAITS,
            effects=COPY,
            changes=DTYPE,
            checked=True,
            result=Result(dtypes=frozenset({f"{name}32"})),
            cost=Cost(9e-5, 6e9),
            name=f"from_numpy_{name}_if_exact",
        )


def _others_to_jax() -> Iterator[Conversion]:
    yield Conversion(
        "torch",
        "jax",
        dense.from_torch,
        dtypes=_TORCH_DTYPES,
        ndims=_NUMPY_AXES,
        takes=frozenset({"noncontiguous", "broadcast", "unaligned"}),
        adds=IMMUTABLE,
        effects=COPY,
        cost=Cost(4e-5, 1.3e10),
        fast_path=dense.from_torch_fast_path,
    )
    yield transfer("numpy", "jax", dense.upload, CPU, _ACCELERATORS, takes=NATIVE, adds=IMMUTABLE)
    yield Conversion(
        "python.arrays",
        "jax",
        dense.stack,
        devices=_ACCELERATORS,
        adds=IMMUTABLE,
        changes=DTYPE,
        effects=COPY,
        cost=Cost(3e-5, 1.2e11),
    )
    # Read-only memory is not taken. By default it may not be shared with writers, but memory of
    # immutable arrays may, so a route through JAX would open it to them.
    adopt = partial(Conversion, "dlpack", "jax", dtypes=DLPACK_DTYPES, takes=IMMUTABLE)
    there: dict[str, Any] = {"devices": _DLPACK_DEVICES, "adds": IMMUTABLE}
    yield adopt(
        dense.from_dlpack,
        adopt=offers.adopt,
        cost=Cost(3.6e-5),  # of memory on an H200
        name="jax_from_dlpack",
        **there,
    )
    # JAX reads the memory when it computes, and nothing orders that behind later writes to it. So
    # it is shared with those who ask for page-locked memory, and copied for all others.
    yield adopt(
        dense.from_page_locked,
        devices=_PAGE_LOCKED,
        adds=IMMUTABLE | _HOST_MEMORY,
        cost=Cost(3.6e-5),  # as of a device's memory
        name="jax_from_page_locked",
    )
    yield adopt(
        dense.copy_from_dlpack,
        effects=COPY,
        cost=Cost(1.2e-4, 1e12),  # more than to copy first: it is for addresses, which no plan sees
        name="jax_copy_from_dlpack",
        **there,
    )


def _within_jax() -> Iterator[Conversion]:
    fields: dict[str, Any] = {"takes": _PLAIN, "adds": IMMUTABLE}
    host, device = Cost(5e-5, 1.2e10), Cost(5e-5, 1e12)
    yield from _anywhere(Copy(dense.copy, cost=host, **fields), device)
    # On the host JAX compiles a cast for every shape, so NumPy casts on the way in instead.
    yield Cast(dense.cast, devices=_ACCELERATORS, cost=device, **fields)
    for requires in (_SHARDED, _REPLICATED):
        yield from _anywhere(Copy(dense.copy, requires=requires, cost=host, **fields), device)
        yield from _anywhere(Cast(dense.cast, requires=requires, cost=host, **fields), device)
    yield Move(dense.move, **fields)
    yield Move(
        dense.from_host_memory,
        _ACCELERATORS,
        requires=_HOST_MEMORY,
        drops=_HOST_MEMORY,
        **fields,
    )
    yield Move(dense.gather_there, requires=_SHARDED, drops=_SHARDED, **fields)
    yield Drop("replicated", dense.replica, cost=Cost(2e-5), **fields)


def _anywhere(step: Conversion, cost: Cost) -> Iterator[Conversion]:
    """Yield a step on the host, and the same at another cost on devices."""
    yield step._replace(devices=CPU)
    yield step._replace(devices=_ACCELERATORS, cost=cost)


def _sparse_conversions() -> Iterator[Conversion]:
    """Yield the steps from and to the sparse formats, and between them."""
    step = partial(Conversion, devices=None, dtypes=_STORABLE, adds=IMMUTABLE)
    loose = IMMUTABLE | UNCOALESCED
    for name in ("jax.bcoo", "jax.bcsr"):
        yield step(
            name,
            "jax",
            sparse.to_dense,
            takes=loose | PADDED | _AXIS_KINDS | (INVALID if name == "jax.bcoo" else EMPTY),
            drops=UNCOALESCED | PADDED | _AXIS_KINDS | INVALID,
            cost=_COMPILED,
        )
    # Both share the values, and write new indices.
    reindex = partial(step, ndims=frozenset({2}), effects=COPY, shares=True)
    yield reindex("jax.bcoo", "jax.bcsr", sparse.to_bcsr, takes=IMMUTABLE, cost=Cost(2e-3, 1e9))
    yield reindex("jax.bcsr", "jax.bcoo", sparse.to_bcoo, takes=loose, cost=Cost(6e-5, 1e10))
    yield step(
        "jax",
        "jax.bcoo",
        sparse.from_dense,
        takes=IMMUTABLE | GAPS,
        ndims=frozenset(range(1, 64)),  # NumPy, which JAX calls, takes no more index arrays
        result=Result(index_dtype="int32"),
        effects=COPY,
        cost=Cost(7e-5, 2.5e9),
    )
