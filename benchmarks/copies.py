"""Conversions that must write bytes, large arrays, against the documented recipe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from timeit import Timer
from typing import Any

import numpy as np
import scipy.sparse
import torch

import interop

from .timing import Row, compare, report

__all__ = ["main"]

Case = tuple[str, Any, dict[str, Any], Callable[[Any], Any]]


def cases(side: int = 4096) -> Iterator[Case]:
    """Yield name, value, keywords of `convert` and the recipe that documentation gives."""
    f4 = torch.rand(side, side)
    np_ = {"to": "numpy"}
    yield "f32 → numpy, fresh", f4, {**np_, "copy": True}, lambda x: x.clone().numpy()
    yield (
        "f32 transposed → numpy, fresh",
        f4.t(),
        {**np_, "copy": True},
        lambda x: x.contiguous().numpy(),
    )
    for name in ("bfloat16", "float16"):
        half = f4.to(getattr(torch, name))
        yield f"{name} → numpy f32", half, {**np_, "dtype": "float32"}, lambda x: x.float().numpy()
    yield "f32 → numpy f64", f4, {**np_, "dtype": "float64"}, lambda x: x.double().numpy()
    z = torch.complex(f4[: side // 2], f4[side // 2 :])
    yield "conjugate → numpy", z.conj(), np_, lambda x: x.resolve_conj().numpy()
    yield "negated → numpy", z.conj().imag, np_, lambda x: x.resolve_neg().numpy()
    csr = _csr(side)
    yield "torch CSR → numpy dense", csr, np_, lambda x: x.to_dense().numpy()
    yield "torch COO → numpy dense", csr.to_sparse_coo(), np_, lambda x: x.to_dense().numpy()
    q = torch.quantize_per_tensor(f4, 0.01, 3, torch.quint8)
    yield "quint8 → numpy f32", q, np_, lambda x: x.dequantize().numpy()
    a = f4.numpy()
    yield "f32 → torch, fresh", a, {"to": "torch", "copy": True}, torch.tensor


def numpy_cases(side: int = 4096) -> Iterator[Case]:
    """Yield the cases in which the recipe is NumPy's own copy, which is as fast as there is."""
    a = torch.rand(side, side).numpy()
    yield (
        "negative strides → torch",
        a[::-1],
        {"to": "torch"},
        lambda x: torch.from_numpy(x.copy()),
    )
    yield (
        "big-endian → torch",
        a.astype(">f4"),
        {"to": "torch"},
        lambda x: torch.from_numpy(x.astype("f4")),
    )


def _csr(side: int) -> torch.Tensor:
    s = scipy.sparse.random_array((side, side), density=0.01, format="csr", rng=0, dtype=np.float32)
    return interop.convert(s, to="torch.sparse_csr")


def rows(chosen: Iterable[Case]) -> list[Row]:
    """Compare `interop.convert` with each recipe."""
    return [
        compare(
            name,
            Timer(lambda x=x, k=keywords: interop.convert(x, **k)),
            Timer(lambda x=x, by=by: by(x)),
            rounds=7,
            budget=0,
        )
        for name, x, keywords, by in chosen
    ]


def main() -> None:
    """Print the tables; a ratio above 1 means that interop is that much faster."""
    title = "conversions that write 64 MiB or more, against the documented recipe (speed-up)"
    report(title, rows(cases()), unit=1e-3, name="ms", inverse=True)
    title = "the same, where the recipe is NumPy's own copy (speed-up)"
    report(title, rows(numpy_cases()), unit=1e-3, name="ms", inverse=True)
