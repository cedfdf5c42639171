"""TensorFlow: tensors and variables, SparseTensor and IndexedSlices, declared.

Tensors never change: what shares their memory is read-only where that can be said. Variables do
change, and what is made of one is a copy. Into TensorFlow elements are copied on the host, because
TensorFlow aborts on memory that is not aligned to 64 bytes, and no spec tells what is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from interop.plugin import (
    MEMORY_TRAITS,
    Components,
    Conversion,
    Cost,
    Declaration,
    DtypeNames,
    Format,
    Limits,
    NoTrace,
    Result,
    Samples,
    hookimpl,
)

from . import _tensorflow_dense as dense
from . import _tensorflow_describe as known
from . import _tensorflow_sparse as sparse

__all__ = ["interop_declarations"]

_COPY, _TRANSFER, _DENSIFY = frozenset({"copy"}), frozenset({"transfer"}), frozenset({"densify"})
_IMMUTABLE, _VARIABLE = frozenset({"immutable"}), frozenset({"variable"})
_UNCOALESCED = frozenset({"uncoalesced"})
_DTYPE, _DEVICE = frozenset({"dtype"}), frozenset({"device"})
#: What only TensorFlow can make sense of.
_ODD = frozenset({"traced", "unknown_shape", "strings", "codes", "handles", "elsewhere"})

_DEVICES = ("cpu", "cuda", "rocm", "tpu")
_CPU = frozenset({"cpu"})
_ACCELERATORS = frozenset(_DEVICES) - _CPU
#: Where DLPack hands memory over.
_SHARED = frozenset({"cuda", "rocm"})

_PLAIN = known.DLPACK_DTYPES - {"bfloat16"}
_COMPLEX = frozenset({"complex64", "complex128"})
_REAL = known.DLPACK_DTYPES - _COMPLEX
#: What lies on a device where TensorFlow says so; its int32 stays on the host.
_MOVABLE = known.DLPACK_DTYPES - {"int32"}
#: Of what TensorFlow has a kernel that copies on a device.
_COPIED_THERE = frozenset({"float16", "float32", "float64", "int64"})

#: Numbers of axes that NumPy can hold; TensorFlow has up to 254.
_AXES = frozenset(range(65))
_SOME_AXES = _AXES - {0}

#: Between the host and a device.
_WIRE = Cost(1.5e-5, 1.2e10)

#: What the texts of refusals say.
_OBSTACLES = {
    "strings": "its elements are strings, not numbers; turn them into numbers first "
    "(tf.strings.to_number, tf.io.decode_raw), or take them as Python's (x.numpy().tolist()).",
    "codes": "it holds codes of a quantized dtype, whose scale TensorFlow keeps elsewhere; "
    "dequantize it first (tf.quantization.dequantize), or take the codes as integers (tf.bitcast).",
    "handles": "it holds handles of TensorFlow's own objects and no numbers; convert what the "
    "objects hold.",
    "symbolic": "it is a placeholder of a Keras model and has no value; call the model on data, "
    "and convert what that returns.",
    "elsewhere": "it lies on a device of another process's or of a plugin's; bring it to one of "
    "this process first (tf.identity in a tf.device block).",
    "shapeless": "it does not say how many rows the whole has; give it a dense_shape.",
    "invalid_indices": "it has indices outside of its shape, which other libraries take for "
    "granted; leave those elements out first.",
    "foreign": "its parts are not TensorFlow's tensors; make them so (tf.convert_to_tensor).",
}

_TYPES = (
    "tensorflow.python.framework.ops:EagerTensor",
    "tensorflow:Tensor",
    "tensorflow:Variable",
    "tensorflow:RaggedTensor",
    "keras.src.backend.tensorflow.core:Variable",
    "keras.src.backend.common.keras_tensor:KerasTensor",
)
_COMMON: dict[str, Any] = {
    "dtypes": known.DTYPES,
    "devices": _DEVICES,
    "requires": "tensorflow",
    "install": "pip install tensorflow",
    "limits": Limits(refusal_hints=_OBSTACLES),
    "transit": False,  # it copies what comes in
}


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats, the conversions, the names of dtypes and what its compiler must not trace."""
    return [*_formats(), *_conversions(), *_dtypes(), *map(NoTrace, _shields())]


def _shields() -> Iterable[Callable[[Any], None]]:
    """Return what keeps AutoGraph out of conversions."""
    return [known.shield]


def _dtypes() -> Iterable[DtypeNames]:
    """Return how TensorFlow names its dtypes."""
    return [DtypeNames("tensorflow:DType", known.dtype_name)]


def _formats() -> Iterable[Format]:
    """Return the format of tensors and variables, and those of sparse ones."""
    return [
        Format(
            "tensorflow",
            types=_TYPES,
            target_types=("tensorflow:Tensor", "tensorflow.python.framework.ops:EagerTensor"),
            describe=known.describe,
            carries=_IMMUTABLE | _ODD,
            memory=dense.memory,
            fill=dense.fill,
            fast_path=_itself,
            samples=Samples(variants={"variable": dense.variable}),
            **_COMMON,
        ),
        Format(
            "tensorflow.sparse",
            types=("tensorflow:SparseTensor",),
            describe=sparse.describe,
            carries=_UNCOALESCED | _ODD,
            components=Components(
                layout="coo",
                format="tensorflow",
                roles={"values": "dtype", "indices": "index_dtype"},
                unpack_keeps=_UNCOALESCED,
                unpack=sparse.unpack,
                pack=sparse.pack,
                unpack_copies=frozenset({"indices"}),
                pack_copies=frozenset({"indices"}),
                pack_seconds=4e-5,
            ),
            ndims=_SOME_AXES,
            index_dtypes=frozenset({"int64"}),
            memory=sparse.memory,
            samples=Samples(variants={"uncoalesced": sparse.twice}),
            **_COMMON,
        ),
        Format(
            "tensorflow.indexed_slices",
            types=("tensorflow:IndexedSlices",),
            describe=sparse.describe_slices,
            carries=_IMMUTABLE | _UNCOALESCED | _ODD | {"shapeless", "foreign", "invalid_indices"},
            index_dtypes=frozenset({"int32", "int64"}),
            memory=sparse.memory,
            samples=Samples(make=sparse.sample_slices),
            **_COMMON,
        ),
    ]


def _itself(value: Any) -> Any:
    """Return a tensor as it is."""
    return value


def _conversions() -> Iterable[Conversion]:
    """Return the hand-offs to and from the others, and the steps within TensorFlow."""
    return [*_out(), *_snapshots(), *_into(), *_within(), *_sparse_steps(), *_slices_steps()]


def _out() -> Iterable[Conversion]:
    """Return the ways out of tensors.

    DLPack is not declared as spoken: whoever consumes names a stream, which TensorFlow refuses.
    """
    make = partial(Conversion, "tensorflow", takes=_IMMUTABLE)
    yield make(
        "numpy",
        dense.to_numpy,
        dtypes=_PLAIN,
        ndims=_AXES,
        fast_path=dense.numpy_fast_path,
        cost=Cost(8e-7),
    )
    yield make(
        "numpy",
        dense.narrow_to_numpy,
        dtypes=known.NARROW,
        ndims=_AXES,
        fast_path=dense.numpy_fast_path,
        cost=Cost(1.5e-6),
    )
    yield make(
        "torch",
        dense.to_torch,
        dtypes=known.DLPACK_DTYPES,
        ndims=_AXES,
        devices=_CPU | _SHARED,
        fast_path=dense.torch_fast_path,
        cost=Cost(1.3e-6),
    )
    for target, module in (("cupy", "cupy"), ("jax", "jax.dlpack")):
        yield make(
            target,
            partial(dense.to_consumer, module),
            dtypes=known.DLPACK_DTYPES,
            devices=_SHARED,
            adds=_IMMUTABLE if target == "jax" else frozenset(),
            cost=Cost(1e-5),
            name=f"tensorflow_to_{target}",
        )
    yield make(
        "numpy",
        dense.download,
        devices=_ACCELERATORS,
        ndims=_AXES,
        changes=_DEVICE,
        result=Result(devices=_CPU),
        effects=_TRANSFER,
        cost=_WIRE,
    )


def _snapshots() -> Iterable[Conversion]:
    """Return what is made of variables: always a copy, which no assignment changes."""
    make = partial(Conversion, "tensorflow", requires=_VARIABLE, drops=_VARIABLE)
    yield make("numpy", dense.snapshot, ndims=_AXES, effects=_COPY, cost=Cost(1.2e-5, 1.5e10))
    yield make("tensorflow", dense.read, adds=_IMMUTABLE, effects=_COPY, cost=Cost(1.5e-5, 1.5e10))
    yield make(
        "numpy",
        dense.snapshot,
        devices=_ACCELERATORS,
        ndims=_AXES,
        changes=_DEVICE,
        result=Result(devices=_CPU),
        effects=_TRANSFER,
        cost=_WIRE,
    )


def _into() -> Iterable[Conversion]:
    make = partial(Conversion, "numpy", "tensorflow", adds=_IMMUTABLE, takes=MEMORY_TRAITS)
    yield make(
        dense.from_numpy,
        fast_path=dense.tensorflow_fast_path,
        effects=_COPY,
        cost=Cost(4e-6, 1.5e10),
    )
    for name, dtypes in (("real", _REAL), ("complex", _COMPLEX)):
        yield make(
            dense.from_numpy,
            dtypes=dtypes,
            result=Result(dtypes=dtypes),
            changes=_DTYPE,
            effects=_COPY,
            cost=Cost(5e-6, 8e9),
            name=f"from_numpy_cast_{name}",
        )
    yield make(
        dense.upload,
        dtypes=_MOVABLE,
        changes=_DEVICE,
        result=Result(devices=_ACCELERATORS),
        effects=_TRANSFER,
        cost=_WIRE,
    )


def _within() -> Iterable[Conversion]:
    make = partial(Conversion, "tensorflow", "tensorflow", takes=_IMMUTABLE, adds=_IMMUTABLE)
    yield make(dense.copy, ndims=_AXES, effects=_COPY, cost=Cost(4e-6, 1.5e10))
    there: dict[str, Any] = {"devices": _ACCELERATORS, "effects": _COPY}
    yield make(dense.deep_copy, dtypes=_COPIED_THERE, cost=Cost(2e-5, 1e12), **there)
    # On the host NumPy casts, on the way in, and by the same rules for all.
    reals = _REAL & _MOVABLE
    there.update(dtypes=reals, result=Result(dtypes=reals), changes=_DTYPE)
    yield make(dense.cast, cost=Cost(3e-5, 1e12), **there)
    yield make(
        dense.move, devices=None, dtypes=_MOVABLE, changes=_DEVICE, effects=_TRANSFER, cost=_WIRE
    )


def _sparse_steps() -> Iterable[Conversion]:
    name = "tensorflow.sparse"
    loose = _IMMUTABLE | _UNCOALESCED
    dropped: dict[str, Any] = {"takes": loose, "drops": _UNCOALESCED, "effects": _DENSIFY}
    scattered = Cost(1.5e-5, 8e9)
    yield Conversion(name, "numpy", sparse.to_array, ndims=_AXES, cost=scattered, **dropped)
    dropped["adds"] = _IMMUTABLE
    yield Conversion(name, "tensorflow", sparse.to_tensor, ndims=_AXES, cost=scattered, **dropped)
    yield Conversion(
        name,
        "tensorflow",
        sparse.to_tensor_there,
        devices=_ACCELERATORS,
        dtypes=_MOVABLE,
        cost=Cost(5e-5, 1e12),
        **dropped,
    )
    written: dict[str, Any] = {"effects": _COPY, "adds": _IMMUTABLE, "ndims": _SOME_AXES}
    yield Conversion(
        name,
        name,
        sparse.canonicalize,
        takes=_IMMUTABLE,
        requires=_UNCOALESCED,
        drops=_UNCOALESCED,
        cost=Cost(1.5e-4, 2e8),
        **written,
    )
    told: dict[str, Any] = {
        "result": Result(index_dtype="int64"),
        "cost": Cost(6e-5, 1e9),
        **written,
    }
    yield Conversion("tensorflow", name, sparse.from_tensor, takes=_IMMUTABLE, **told)
    yield Conversion(
        "numpy", name, sparse.from_array, takes=MEMORY_TRAITS, dtypes=known.DTYPES, **told
    )


def _slices_steps() -> Iterable[Conversion]:
    make = partial(Conversion, "tensorflow.indexed_slices", takes=_IMMUTABLE | _UNCOALESCED)
    for target, function, adds in (
        ("numpy", sparse.slices_to_array, frozenset[str]()),
        ("tensorflow", sparse.slices_to_tensor, _IMMUTABLE),
    ):
        yield make(
            target,
            function,
            ndims=_SOME_AXES,
            drops=_UNCOALESCED,
            adds=adds,
            effects=_DENSIFY,
            cost=Cost(2e-5, 1e10),
        )
    yield make(
        "tensorflow.sparse",
        sparse.slices_to_sparse,
        ndims=_SOME_AXES,
        result=Result(index_dtype="int64"),
        adds=_IMMUTABLE,
        effects=_COPY,
        cost=Cost(1e-4, 1e9),
    )
