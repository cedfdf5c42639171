"""TensorFlow: tensors and variables, SparseTensor and IndexedSlices.

Tensors never change, so results that share their memory are read-only where the consumer can mark
them so. Variables do change, so they are always copied. On the way into TensorFlow, elements are
copied on the host, because TensorFlow aborts on memory that is not aligned to 64 bytes, and no spec
tells the alignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from interop.kit import COMPLEX, COPY, CPU, DTYPE, EMPTY, INTEGERS, transfer
from interop.plugin import (
    MEMORY_TRAITS,
    Cast,
    Components,
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
    itself,
)
from interop.plugin.advanced import Advanced, NoTrace

from . import dense, describe, ragged, samples, sparse
from .describe import DLPACK_DTYPES, DTYPES, IMMUTABLE
from .sparse import UNCOALESCED

_VARIABLE = frozenset({"variable"})
#: The traits of values that only TensorFlow can make sense of.
_ODD = frozenset(
    {"traced", "unknown_shape", "strings", "codes", "handles", "not_numbers", "elsewhere"}
)

_DEVICES = ("cpu", "cuda", "rocm", "tpu")
_ACCELERATORS = frozenset(_DEVICES) - CPU
#: The devices whose memory DLPack hands over.
_DLPACK_DEVICES = frozenset({"cuda", "rocm"})

_REAL = DLPACK_DTYPES - COMPLEX
#: The dtypes that NumPy casts nearly at the speed of memory.
_FAST = DLPACK_DTYPES - {"float16"}
_LONG = frozenset({"longdouble", "clongdouble"})
#: The dtypes that can be moved to a device; TensorFlow keeps int32 on the host.
_MOVABLE = DLPACK_DTYPES - {"int32"}
#: The dtypes for which TensorFlow has a kernel that copies on a device.
_COPIED_ON_DEVICE = frozenset({"float16", "float32", "float64", "int64"})

#: The dtypes that TensorFlow fills up with zeros.
_PADDED = INTEGERS | COMPLEX | {"bool", "bfloat16", "float16", "float32", "float64"}

#: Numbers of axes that NumPy can hold; TensorFlow has up to 254.
_AXES = frozenset(range(65))
_SOME_AXES = _AXES - {0}

#: The dtypes of Python's numbers.
_DEFAULT_DTYPES = {"int64": "int32", "float64": "float32", "complex128": "complex128"}

_HINTS = {
    "tensorflow:TensorSpec": "it has a shape and a dtype, but no data; "
    "interop.make_spec('tensorflow', x.dtype.name, shape=tuple(x.shape)) describes it for a plan.",
    "keras.layers:Layer": "interop.convert_tree converts the arrays in x.get_weights(), and in "
    "x.get_state_tree() of a model.",
    "keras.optimizers:Optimizer": "interop.convert_tree converts the arrays in x.variables.",
    "keras.metrics:Metric": "interop.convert_tree converts the arrays in x.variables.",
    "strings": "its elements are strings, not numbers; turn them into numbers first "
    "(tf.strings.to_number, tf.io.decode_raw), or take them as Python's (x.numpy().tolist()).",
    "codes": "it holds codes of a quantized dtype, whose scale TensorFlow keeps elsewhere; "
    "dequantize it first (tf.quantization.dequantize), or take the codes as integers (tf.bitcast).",
    "handles": "it holds handles of TensorFlow's own objects and no numbers; convert what the "
    "objects hold.",
    "symbolic": "it is a placeholder of a Keras model and has no value; call the model on data, "
    "and convert what that returns.",
    "elsewhere": "it lies on a device of another process or of a plugin; bring it to a device of "
    "this process first (tf.identity in a tf.device block).",
    "shapeless": "it does not say how many rows the dense tensor has; give it a dense_shape.",
    "invalid_indices": "it has indices outside of its shape, and other libraries do not check for "
    "them; leave those elements out first.",
    "lists_of_lists": "its rows are ragged themselves; flatten one level first "
    "(x.merge_dims(0, 1)).",
    "foreign": "its parts are not TensorFlow's tensors; make them so (tf.convert_to_tensor).",
}


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return TensorFlow's formats, conversions and dtype names, and what keeps AutoGraph out."""
    return [
        *_formats(),
        *_conversions(),
        DtypeNames("tensorflow:DType", describe.dtype_name),
        NoTrace(describe.keep_autograph_out),
    ]


def _formats() -> Iterator[Format]:
    yield _tensors()
    yield _ragged()
    yield _sparse()
    yield _slices()


def _format(name: str, **fields: Any) -> Format:
    return Format(
        name,
        dtypes=DTYPES,
        devices=_DEVICES,
        requires="tensorflow",
        install="pip install tensorflow",
        limits=Limits(unsupported_now=describe.unsupported_now, refusal_hints=_HINTS),
        # It copies what comes in.
        advanced=Advanced(default_dtype=_DEFAULT_DTYPES.__getitem__),
        **fields,
    )


def _tensors() -> Format:
    return _format(
        "tensorflow",
        types=(
            "tensorflow.python.framework.ops:EagerTensor",
            "tensorflow:Tensor",
            "tensorflow:Variable",
            "keras.src.backend.tensorflow.core:Variable",
            "keras.src.backend.common.keras_tensor:KerasTensor",
        ),
        target_types=("tensorflow:Tensor", "tensorflow.python.framework.ops:EagerTensor"),
        aliases=("tf",),
        describe=describe.describe,
        carries=IMMUTABLE | _ODD,
        unary=tuple(_within_tensorflow()),
        memory=dense.memory,
        fill=dense.fill,
        fast_path=itself,
        samples=Samples(variants={"variable": samples.variable}),
    )


def _ragged() -> Format:
    return _format(
        "tensorflow.ragged",
        types=("tensorflow:RaggedTensor",),
        describe=ragged.describe,
        memory=ragged.memory,
        carries=IMMUTABLE | _ODD | {"nested", "hybrid", "lists_of_lists"},
        index_dtypes=frozenset({"int32", "int64"}),
        ndims=frozenset(range(2, 65)),
        components=Components(
            "ragged",
            "tensorflow",
            {"values": "dtype", "offsets": "index_dtype"},
            ragged.unpack,
            ragged.pack,
            unpack_keeps=frozenset({"nested", "hybrid"}),
            pack_seconds=3e-4,
        ),
        samples=Samples(make=ragged.sample, variants={"nested": ragged.variant}),
    )


def _sparse() -> Format:
    return _format(
        "tensorflow.sparse",
        types=("tensorflow:SparseTensor",),
        describe=sparse.describe_sparse,
        carries=UNCOALESCED | _ODD,
        components=Components(
            layout="coo",
            format="tensorflow",
            roles={"values": "dtype", "indices": "index_dtype"},
            unpack_keeps=UNCOALESCED,
            # Some of TensorFlow's functions sum values at the same coordinate, others refuse them.
            pack_refuses=UNCOALESCED,
            unpack=sparse.unpack,
            pack=sparse.pack,
            unpack_copies=frozenset({"indices"}),
            pack_copies=frozenset({"indices"}),
            pack_seconds=4e-5,
        ),
        ndims=_SOME_AXES,
        index_dtypes=frozenset({"int64"}),
        unary=(
            Drop(
                "uncoalesced",
                sparse.canonicalize,
                "copy",
                takes=IMMUTABLE,
                adds=IMMUTABLE,
                devices=CPU,
                ndims=_SOME_AXES,
                cost=Cost(1.5e-4, 2e8),
            ),
        ),
        memory=sparse.memory,
        samples=Samples(make=samples.stored, variants={"uncoalesced": samples.twice}),
    )


def _slices() -> Format:
    return _format(
        "tensorflow.indexed_slices",
        types=("tensorflow:IndexedSlices",),
        describe=sparse.describe_slices,
        carries=IMMUTABLE | UNCOALESCED | _ODD | {"shapeless", "foreign", "invalid_indices"},
        index_dtypes=frozenset({"int32", "int64"}),
        memory=sparse.memory,
        samples=Samples(make=samples.slices),
    )


def _conversions() -> Iterator[Conversion]:
    yield from _from_tensors()
    yield from _to_tensorflow()
    yield from _sparse_conversions()
    yield from _slices_conversions()
    yield Conversion(
        "tensorflow",
        "tensorflow.ragged",
        ragged.from_dense,
        devices=None,
        ndims={2},
        takes=IMMUTABLE,
        adds=IMMUTABLE,
        result=Result(index_dtype="int32"),
        cost=Cost(3e-4),
    )
    make = partial(Conversion, "tensorflow.ragged", "tensorflow", devices=None)
    make = partial(make, takes=IMMUTABLE | {"hybrid"})
    yield make(ragged.regular, drops={"hybrid"}, cost=Cost(5e-5), name="regular_rows")
    yield make(
        ragged.padded,
        dtypes=_PADDED,
        requires={"nested"},
        drops={"nested", "hybrid"},
        adds=IMMUTABLE,
        effects=COPY | {"pad"},
        cost=Cost(3e-4, 1e9),
        name="pad_rows",
    )


def _from_tensors() -> Iterator[Conversion]:
    """Yield the ways out of tensors.

    The format does not export DLPack: consumers name a stream, which TensorFlow does not take.
    """
    share = partial(Conversion, "tensorflow", takes=IMMUTABLE)
    yield share(
        "numpy",
        dense.to_numpy,
        dtypes=DLPACK_DTYPES - {"bfloat16"},
        ndims=_AXES,
        fast_path=dense.numpy_fast_path,
        cost=Cost(8e-7),
    )
    yield share(
        "numpy",
        dense.narrow_to_numpy,
        dtypes=describe.NARROW,
        ndims=_AXES,
        fast_path=dense.numpy_fast_path,
        cost=Cost(1.5e-6),
    )
    yield share(
        "torch",
        dense.to_torch,
        dtypes=DLPACK_DTYPES,
        ndims=_AXES,
        devices=CPU | _DLPACK_DEVICES,
        fast_path=dense.torch_fast_path,
        cost=Cost(1.3e-6),
    )
    for target, module in (("cupy", "cupy"), ("jax", "jax.dlpack")):
        yield share(
            target,
            partial(dense.to_consumer, module),
            dtypes=DLPACK_DTYPES,
            devices=_DLPACK_DEVICES,
            adds=IMMUTABLE if target == "jax" else EMPTY,
            cost=Cost(1e-5),
            name=f"tensorflow_to_{target}",
        )
    download = partial(transfer, "tensorflow", "numpy", devices=_ACCELERATORS, to=CPU, ndims=_AXES)
    yield download(dense.download, takes=IMMUTABLE)
    # A variable is always copied, so that no later assignment changes the result.
    variables: dict[str, Any] = {"requires": _VARIABLE, "drops": _VARIABLE}
    yield download(dense.snapshot, **variables)
    yield Conversion(
        "tensorflow",
        "numpy",
        dense.snapshot,
        ndims=_AXES,
        effects=COPY,
        cost=Cost(1.2e-5, 1.5e10),
        **variables,
    )


def _to_tensorflow() -> Iterator[Conversion]:
    within: dict[str, Any] = {"takes": MEMORY_TRAITS, "adds": IMMUTABLE}
    copy = partial(Conversion, "numpy", "tensorflow", dense.from_numpy, effects=COPY, **within)
    yield copy(fast_path=dense.tensorflow_fast_path, cost=Cost(4e-6, 1.5e10))
    # A cast on the way in is as fast as a copy. Casting first would need memory for two results.
    for name, dtypes, results, speed in (
        ("real", _FAST | _LONG, _FAST - COMPLEX, 1.5e10),
        ("complex", _FAST | _LONG, COMPLEX, 1.5e10),
        ("half", _REAL, _REAL, 8e9),
    ):
        yield copy(
            dtypes=dtypes,
            result=Result(dtypes=results),
            changes=DTYPE,
            cost=Cost(5e-6, speed),
            name=f"from_numpy_cast_{name}",
        )
    upload = partial(transfer, "numpy", "tensorflow", dense.upload, CPU, _ACCELERATORS)
    yield upload(dtypes=_MOVABLE, **within)


def _within_tensorflow() -> Iterator[Conversion]:
    immutable: dict[str, Any] = {"takes": IMMUTABLE, "adds": IMMUTABLE}
    cost = Cost(1.5e-5, 1.5e10)
    yield Drop("variable", dense.read, "copy", devices=CPU, takes=EMPTY, adds=IMMUTABLE, cost=cost)
    yield Copy(dense.copy, devices=CPU, ndims=_AXES, cost=Cost(4e-6, 1.5e10), **immutable)
    on_device: dict[str, Any] = {"devices": _ACCELERATORS, **immutable}
    yield Copy(dense.deep_copy, dtypes=_COPIED_ON_DEVICE, cost=Cost(2e-5, 1e12), **on_device)
    # On the host NumPy casts on the way in, by the same rules for every source.
    reals = _REAL & _MOVABLE
    yield Cast(dense.cast, reals, dtypes=reals, cost=Cost(3e-5, 1e12), **on_device)
    yield Move(dense.move, dtypes=_MOVABLE, **immutable)


def _sparse_conversions() -> Iterator[Conversion]:
    name = "tensorflow.sparse"
    densify = partial(Conversion, name, takes=IMMUTABLE | UNCOALESCED, drops=UNCOALESCED)
    scatter = partial(densify, ndims=_AXES, cost=Cost(1.5e-5, 8e9))
    yield scatter("numpy", sparse.to_array)
    yield scatter("tensorflow", sparse.to_tensor, adds=IMMUTABLE)
    yield densify(
        "tensorflow",
        sparse.to_tensor_there,
        devices=_ACCELERATORS,
        dtypes=_MOVABLE,
        adds=IMMUTABLE,
        cost=Cost(5e-5, 1e12),
    )
    sparsify = partial(
        Conversion,
        adds=IMMUTABLE,
        effects=COPY,
        ndims=_SOME_AXES - {64},  # NumPy takes no more index arrays than 63
        result=Result(index_dtype="int64"),
        cost=Cost(6e-5, 1e9),
    )
    yield sparsify("tensorflow", name, sparse.from_tensor, takes=IMMUTABLE)
    yield sparsify("numpy", name, sparse.from_array, takes=MEMORY_TRAITS, dtypes=DTYPES)


def _slices_conversions() -> Iterator[Conversion]:
    from_slices = partial(
        Conversion,
        "tensorflow.indexed_slices",
        takes=IMMUTABLE | UNCOALESCED,
        drops=UNCOALESCED,
        ndims=_SOME_AXES,
    )
    densify = partial(from_slices, cost=Cost(2e-5, 1e10))
    yield densify("numpy", sparse.slices_to_array)
    yield densify("tensorflow", sparse.slices_to_tensor, adds=IMMUTABLE)
    yield from_slices(
        "tensorflow.sparse",
        sparse.slices_to_sparse,
        result=Result(index_dtype="int64"),
        adds=IMMUTABLE,
        effects=COPY,
        cost=Cost(1e-4, 1e9),
    )
