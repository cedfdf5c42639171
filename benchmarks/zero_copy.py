"""What interop adds to a conversion of a small array that copies nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import scipy.sparse
import torch

import interop

from .timing import Row, compare, report

__all__ = ["main"]

Pair = tuple[str, Any, str, Callable[[Any], Any]]


class Stranger:
    """An array of no known framework that speaks DLPack."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self._array = array

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def _csr_to_torch(a: Any) -> torch.Tensor:
    parts = map(torch.from_numpy, (a.indptr, a.indices, a.data))
    return torch.sparse_csr_tensor(*parts, size=a.shape, check_invariants=False)


def _csr_to_scipy(t: torch.Tensor) -> Any:
    parts = t.values().numpy(), t.col_indices().numpy(), t.crow_indices().numpy()
    return scipy.sparse.csr_array(parts, shape=tuple(t.shape))


def _codes(q: torch.Tensor) -> interop.QuantizedArray:
    codes = torch.empty(0, dtype=torch.uint8)
    codes.set_(q.untyped_storage(), q.storage_offset(), q.size(), q.stride())
    scale = torch.tensor(q.q_scale(), dtype=torch.float64)
    return interop.QuantizedArray(codes, scale, torch.tensor(q.q_zero_point()))


def pairs() -> Iterator[Pair]:
    """Yield name, value, target and the best hand-written call for that very value."""
    t = torch.arange(12.0).reshape(3, 4)
    a = np.arange(12.0).reshape(3, 4)
    b = a.astype(ml_dtypes.bfloat16)
    s = scipy.sparse.random_array((50, 50), density=0.1, format="csr", rng=0)
    q = torch.quantize_per_tensor(t, 0.1, 3, torch.quint8)
    yield "torch → numpy", t, "numpy", lambda x: x.numpy()
    yield "torch → numpy, grad", t.clone().requires_grad_(), "numpy", lambda x: x.detach().numpy()
    yield (
        "torch → numpy, bfloat16",
        t.bfloat16(),
        "numpy",
        lambda x: x.view(torch.uint16).numpy().view(ml_dtypes.bfloat16),
    )
    yield "torch → numpy, complex", t + 1j, "numpy", lambda x: x.numpy()
    yield "torch → numpy, transposed", t.t(), "numpy", lambda x: x.numpy()
    yield "numpy → torch", a, "torch", torch.from_numpy
    yield (
        "numpy → torch, bfloat16",
        b,
        "torch",
        lambda x: torch.from_numpy(x.view(np.uint16)).view(torch.bfloat16),
    )
    yield "numpy → numpy", a, "numpy", np.asarray
    yield "scipy csr → torch csr", s, "torch.sparse_csr", _csr_to_torch
    yield "torch csr → scipy csr", _csr_to_torch(s), "scipy.csr", _csr_to_scipy
    yield "torch quantized → codes", q, "quantized", _codes
    yield "stranger → numpy", Stranger(a), "numpy", np.from_dlpack
    yield "stranger → torch", Stranger(a), "torch", torch.from_dlpack


def rows() -> list[Row]:
    """Compare `interop.convert` with the best hand-written call, pair by pair."""
    return [
        compare(name, lambda x=x, to=to: interop.convert(x, to=to), lambda x=x, by=by: by(x))
        for name, x, to, by in pairs()
    ]


def converter_rows() -> list[Row]:
    """Compare `interop.converter` with the best hand-written call, pair by pair."""
    found = []
    for name, x, to, by in pairs():
        convert = interop.converter(to)
        found.append(compare(name, lambda x=x, c=convert: c(x), lambda x=x, by=by: by(x)))
    return found


def main() -> None:
    """Print both tables."""
    report("convert, small arrays, nothing copied", rows(), unit=1e-9, name="ns")
    report("converter, the same", converter_rows(), unit=1e-9, name="ns")
