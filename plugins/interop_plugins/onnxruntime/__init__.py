"""ONNX Runtime: the tensors of its OrtValue.

ONNX Runtime's own ways to share memory lose track of it. The result of `OrtValue.numpy` does not
hold the array that the value was made of, so it outlives its memory. `ortvalue_from_numpy` ignores
byte order, masks and flags. Its DLPack calls bool uint8, and ignores streams. So memory leaves here
with the value as its owner, and comes in by a capsule that ONNX Runtime owns, if it takes one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from interop.kit import COPY, CPU, EMPTY, transfer
from interop.plugin import (
    Conversion,
    Copy,
    Cost,
    Declaration,
    Drop,
    Format,
    Limits,
    Samples,
    hookimpl,
)

from . import cuda, dense, describe
from .describe import (
    DTYPES,
    LOCKED,
    NARROW,
    ON_CUDA,
    PACKED,
    PLAIN,
    REFUSAL_HINTS,
)

_CUDA = frozenset({"cuda"})
#: The traits of memory that may be shared if the policy permits it.
_FLAGS = frozenset({"readonly", "immutable"})

_MODULE = "onnxruntime.capi.onnxruntime_inference_collection"
_NATIVE = "onnxruntime.capi.onnxruntime_pybind11_state"


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [_format(), *_to_numpy(), *_from_numpy(), *_on_cuda(), *_between_devices()]


def _format() -> Format:
    """Return the format of tensors; other contents of an OrtValue are refused with a reason."""
    return Format(
        "onnxruntime",
        types=(f"{_MODULE}:OrtValue", f"{_NATIVE}:OrtValue", f"{_MODULE}:SparseTensor"),
        target_types=(f"{_MODULE}:OrtValue",),
        aliases=("ort",),
        describe=describe.describe,
        dtypes=DTYPES,
        devices=("cpu", "cuda"),
        limits=Limits(unsupported={"cuda": DTYPES - ON_CUDA}, refusal_hints=REFUSAL_HINTS),
        carries=LOCKED,
        requires="onnxruntime",
        install="pip install onnxruntime",
        unary=(
            Drop("bare", dense.wrap, takes=EMPTY, cost=Cost(5e-7)),
            Copy(dense.copy, devices=CPU, drops=LOCKED, cost=Cost(5e-6, 1e10), name="ort_copy"),
        ),
        memory=describe.memory,
        fast_path=describe.itself_if_tensor,
        samples=Samples(variants={"bare": dense.bare}),
    )


def _to_numpy() -> Iterable[Conversion]:
    make = partial(Conversion, "onnxruntime", "numpy")
    share = partial(make, dtypes=PLAIN | NARROW, cost=Cost(2e-6))
    yield share(dense.to_numpy, fast_path=dense.numpy_fast_path)
    yield share(dense.to_locked_numpy, requires=LOCKED, drops=LOCKED, adds={"readonly"})
    yield make(
        dense.unpack,
        dtypes=PACKED,
        takes=LOCKED,
        drops=LOCKED,
        effects=COPY,
        cost=Cost(8e-6, 2e9),
    )


def _from_numpy() -> Iterable[Conversion]:
    make = partial(Conversion, "numpy", "onnxruntime", takes=_FLAGS)
    yield make(
        dense.from_numpy,
        dtypes=PLAIN,
        cost=Cost(4e-6),
        fast_path=dense.ort_fast_path,
        name="ort_from_numpy",
    )
    yield make(dense.from_narrow_numpy, dtypes=NARROW, cost=Cost(5e-6))
    yield make(dense.pack, dtypes=PACKED, effects=COPY, cost=Cost(8e-6, 2e9))


def _on_cuda() -> Iterable[Conversion]:
    """Return the conversions that share memory with torch, also on the host, and with CuPy."""
    share = partial(Conversion, "onnxruntime", devices=_CUDA, cost=Cost(5e-6))
    yield share("torch", cuda.to_torch, dtypes=ON_CUDA)
    # CuPy holds no other dtypes of ON_CUDA without ml_dtypes.
    yield share("cupy", cuda.to_cupy, dtypes=PLAIN)
    wait = Cost(2e-5)  # waiting for the stream takes longer than all the rest
    from_torch = partial(Conversion, "torch", "onnxruntime", cuda.from_torch, dtypes=ON_CUDA)
    yield from_torch(devices=_CUDA, cost=wait, name="ort_from_torch_there")
    yield from_torch(cost=Cost(4e-6), name="ort_from_torch")
    yield Conversion(
        "cupy",
        "onnxruntime",
        cuda.from_cupy,
        dtypes=PLAIN,
        devices=_CUDA,
        takes={"immutable"},
        cost=wait,
    )


def _between_devices() -> Iterable[Conversion]:
    link = partial(transfer, dtypes=PLAIN, cost=Cost(1e-5, 1.2e10))
    yield link("onnxruntime", "numpy", cuda.download, _CUDA, CPU, name="ort_download")
    yield link("numpy", "onnxruntime", cuda.upload, CPU, _CUDA, takes=_FLAGS, name="ort_upload")
