"""Zero-copy conversions of small arrays: the time that interop adds to the best call by hand."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from importlib.util import find_spec
from typing import Any

import ml_dtypes
import numpy as np
import scipy.sparse
import torch

import interop

from .timing import Row, compare, small

__all__ = ["pairs", "rows"]

#: Name, value, target, and the best hand-written statement for that very value, ``x``.
Pair = tuple[str, Any, str, str]


class Foreign:
    """An array of an unknown framework that exports DLPack."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


_CSR_TO_TORCH = (
    "torch.sparse_csr_tensor(torch.from_numpy(x.indptr), torch.from_numpy(x.indices), "
    "torch.from_numpy(x.data), size=x.shape, check_invariants=False)"
)
_CSR_TO_SCIPY = (
    "csr_array((x.values().numpy(), x.col_indices().numpy(), x.crow_indices().numpy()), "
    "shape=tuple(x.shape))"
)
_CODES = (
    "QuantizedArray(torch.empty(0, dtype=torch.uint8)"
    ".set_(x.untyped_storage(), x.storage_offset(), x.size(), x.stride()), "
    "torch.tensor(x.q_scale(), dtype=torch.float64), torch.tensor(x.q_zero_point()))"
)
_NAMES = {
    "np": np,
    "torch": torch,
    "bfloat16": ml_dtypes.bfloat16,
    "csr_array": scipy.sparse.csr_array,
    "QuantizedArray": interop.QuantizedArray,
    "convert": interop.convert,
}


def pairs() -> Iterator[Pair]:
    """Yield the pairs of the comparison."""
    t = torch.arange(12.0).reshape(3, 4)
    a = np.arange(12.0).reshape(3, 4)
    b = a.astype(ml_dtypes.bfloat16)
    s = scipy.sparse.random_array((50, 50), density=0.1, format="csr", rng=0)
    q = torch.quantize_per_tensor(t, 0.1, 3, torch.quint8)
    yield "torch → numpy", t, "numpy", "x.numpy()"
    yield "torch → numpy, grad", t.clone().requires_grad_(), "numpy", "x.numpy(force=True)"
    bits = "x.view(torch.uint16).numpy().view(bfloat16)"
    yield "torch → numpy, bfloat16", t.bfloat16(), "numpy", bits
    yield "torch → numpy, complex", t + 1j, "numpy", "x.numpy()"
    yield "torch → numpy, transposed", t.t(), "numpy", "x.numpy()"
    yield "numpy → torch", a, "torch", "torch.from_numpy(x)"
    bits = "torch.from_numpy(x.view(np.uint16)).view(torch.bfloat16)"
    yield "numpy → torch, bfloat16", b, "torch", bits
    yield "numpy → numpy", a, "numpy", "np.asarray(x)"
    yield "scipy csr → torch csr", s, "torch.sparse_csr", _CSR_TO_TORCH
    yield (
        "torch csr → scipy csr",
        interop.convert(s, "torch.sparse_csr"),
        "scipy.csr",
        _CSR_TO_SCIPY,
    )
    yield "torch quantized → codes", q, "quantized", _CODES
    yield "foreign → numpy", Foreign(a), "numpy", "np.from_dlpack(x)"
    yield "foreign → torch", Foreign(a), "torch", "torch.from_dlpack(x)"
    if find_spec("jax"):
        yield from _jax_pairs(a)
    if find_spec("tensorflow"):
        import tensorflow as tf

        yield "tensorflow → numpy", tf.constant(a, "float32"), "numpy", "np.asarray(x)"
    if find_spec("sparse"):
        yield from _sparse_pairs(s)
    if find_spec("tensorflow"):
        import tensorflow as tf

        yield "tensorflow → numpy", tf.constant(a, "float32"), "numpy", "np.asarray(x)"


def _jax_pairs(a: np.ndarray[Any, Any]) -> Iterator[Pair]:
    import jax.numpy as jnp

    x = jnp.asarray(a, "float32")
    yield "jax → numpy", x, "numpy", "np.asarray(x)"
    yield "jax → torch", x, "torch", "torch.from_dlpack(x)"
    t = torch.arange(12.0).reshape(3, 4)
    _NAMES["jnp"] = jnp
    yield "torch → jax, copied", t, "jax", "jnp.array(x.numpy())"
    yield "jax → torch, bfloat16", x.astype("bfloat16"), "torch", "torch.from_dlpack(x)"


def _sparse_pairs(s: scipy.sparse.csr_array) -> Iterator[Pair]:
    import sparse

    x = sparse.GCXS.from_scipy_sparse(s)
    _NAMES["GCXS"] = sparse.GCXS
    yield "sparse gcxs → scipy csr", x, "scipy.csr", "x.to_scipy_sparse()"
    yield "scipy csr → sparse gcxs", s, "sparse.gcxs.csr", "GCXS.from_scipy_sparse(x)"


def rows(ours: str, only: Collection[str] | None = None, rounds: int = 21) -> list[Row]:
    """Compare a statement of ours with the best hand-written statement, pair by pair."""
    cases = []
    for name, x, to, by_hand in pairs():
        if only is None or name in only:
            names = {**_NAMES, "x": x, "to": to, "converter": interop.converter(to)}
            timers = small(ours, names), small(by_hand, names)
            cases.append(compare(name, *timers, rounds=rounds))
    return cases
