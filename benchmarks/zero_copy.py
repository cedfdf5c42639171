"""What interop adds to a conversion of a small array that copies nothing."""

from __future__ import annotations

from collections.abc import Iterator
from timeit import Timer
from typing import Any

import ml_dtypes
import numpy as np
import scipy.sparse
import torch

import interop

from .timing import Row, compare, report

__all__ = ["main"]

#: Name, value, target, and the best hand-written statement for that very value, ``x``.
Pair = tuple[str, Any, str, str]


class Stranger:
    """An array of no known framework that speaks DLPack."""

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
    yield "torch → numpy, grad", t.clone().requires_grad_(), "numpy", "x.detach().numpy()"
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
    yield "stranger → numpy", Stranger(a), "numpy", "np.from_dlpack(x)"
    yield "stranger → torch", Stranger(a), "torch", "torch.from_dlpack(x)"


def rows(ours: str) -> list[Row]:
    """Compare a statement of ours with the best hand-written one, pair by pair."""
    found = []
    for name, x, to, by_hand in pairs():
        names = {**_NAMES, "x": x, "to": to, "converter": interop.converter(to)}
        found.append(compare(name, Timer(ours, globals=names), Timer(by_hand, globals=names)))
    return found


def main() -> None:
    """Print what `convert` and a converter add to the best hand-written call."""
    title = "convert(x, to=…), small arrays, nothing copied"
    report(title, rows("convert(x, to=to)"), unit=1e-9, name="ns")
    report("converter(…)(x), the same", rows("converter(x)"), unit=1e-9, name="ns")
