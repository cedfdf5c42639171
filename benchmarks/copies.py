"""Conversions that must write bytes, large arrays, against the documented recipe.

A recipe is the code that a competent user finds in the documentation of the libraries at hand.
Tests check that both give the same numbers; here they are timed in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from timeit import Timer
from typing import Any

import ml_dtypes
import numpy as np
import scipy.sparse
import torch

import interop

from .limit import limiting
from .timing import Row, compare

__all__ = ["cases", "numpy_cases", "rows"]

Case = tuple[str, Any, dict[str, Any], Callable[[Any], Any]]

_NUMPY, _TORCH = {"to": "numpy"}, {"to": "torch"}


def cases(side: int = 4096) -> Iterator[Case]:
    """Yield name, value, keywords of `convert` and the recipe that documentation gives."""
    f4 = torch.rand(side, side)
    yield from _memory_orders(f4)
    yield from _casts(f4)
    yield from _lazy(f4)
    yield from _densify(side)
    yield from _dequantize(f4)
    yield from _to_torch(f4)
    yield from _torch_to_torch(f4)
    yield from _into(f4)
    yield from _layouts(side)


def numpy_cases(side: int = 4096) -> Iterator[Case]:
    """Yield the cases in which the recipe is NumPy's or SciPy's own copy, in one thread."""
    a = np.random.default_rng(0).random((side, side), np.float32)
    copy = {**_NUMPY, "copy": True}
    yield "f32 → fresh", a, copy, lambda x: x.copy()
    yield "f32 transposed → fresh", a.T, copy, lambda x: x.copy(order="K")
    cube = np.ascontiguousarray(a.reshape(side // 16, side // 16, -1)).transpose(2, 0, 1)
    yield "f32 3-D permuted → fresh", cube, copy, lambda x: x.copy(order="K")
    yield "f32 → f64", a, {**_NUMPY, "dtype": "float64"}, lambda x: x.astype("f8")
    yield "f32 → bfloat16", a, {**_NUMPY, "dtype": "bfloat16"}, lambda x: x.astype(_BF16)
    yield "f32 → i32", a, {**_NUMPY, "dtype": "int32"}, lambda x: x.astype("i4")
    b = a.astype("f8")
    yield "f64 → f32", b, {**_NUMPY, "dtype": "float32"}, lambda x: x.astype("f4")
    backwards = a[::-1]
    yield "negative strides → torch", backwards, _TORCH, lambda x: torch.from_numpy(x.copy())
    big = a.astype(">f4")
    yield "big-endian → torch", big, _TORCH, lambda x: torch.from_numpy(x.astype("f4"))
    odd = np.zeros(a.nbytes + 1, "u1")[1:].view("f4").reshape(a.shape)
    yield "unaligned → torch", odd, _TORCH, lambda x: torch.from_numpy(x.copy())
    s = _random(side)
    for layout in ("csr", "csc", "coo", "bsr", "lil", "dok"):
        value = s.asformat(layout) if layout != "bsr" else s.tobsr((2, 2))
        yield f"scipy {layout} → dense", value, _NUMPY, lambda x: x.toarray()
    diagonals = scipy.sparse.diags_array(list(a[:64]), offsets=range(64), shape=(side, side))
    yield "scipy dia → dense", diagonals.astype("f4"), _NUMPY, lambda x: x.toarray()


def expert_cases(side: int = 4096) -> Iterator[Case]:
    """Yield copies and casts for which an expert allocates by NumPy and lets torch write.

    That takes a line more than the documented recipe, and the knowledge of which library allocates
    in huge pages.
    """
    f4 = torch.rand(side, side)
    yield "f32 → numpy, fresh", f4, {**_NUMPY, "copy": True}, _written
    for source, target in (
        *(("bfloat16", "float32"), ("float16", "float32"), ("float32", "float64")),
        *(("float64", "float32"), ("uint8", "float32"), ("int64", "float64")),
    ):
        value = (f4 * 100).to(getattr(torch, source))
        keywords = {**_NUMPY, "dtype": target}
        by = partial(_written, dtype=target)
        yield f"{source} → numpy {target}", value, keywords, by
    z = torch.complex(f4, f4).conj()
    yield "conjugate → numpy", z, _NUMPY, partial(_written, dtype="complex64")


def _written(value: torch.Tensor, dtype: str = "float32") -> np.ndarray[Any, Any]:
    out = np.empty(value.shape, dtype)
    torch.from_numpy(out).copy_(value)
    return out


def middle_cases() -> Iterator[Case]:
    """Yield the same cases with arrays that fit in a cache."""
    yield from cases(480)
    yield from numpy_cases(480)


_BF16 = ml_dtypes.bfloat16


def _memory_orders(f4: torch.Tensor) -> Iterator[Case]:
    """Yield the copies of tensors that are walked in another order."""
    fresh = {**_NUMPY, "copy": True}
    yield "f32 → numpy, fresh", f4, fresh, lambda x: x.clone().numpy()
    high = len(f4) // 8
    images = f4.view(-1, high, high, 4)[..., :3]
    channels = f4.view(-1, high, high)[: len(images) // 3 * 3].view(-1, 3, high, high)
    for name, value in (
        ("transposed", f4.t()),
        ("3-D permuted", f4.view(high // 2, high // 2, -1).permute(2, 0, 1)),
        ("NHWC as NCHW", images.permute(0, 3, 1, 2)),
        ("NCHW as NHWC", torch.cat([channels] * 4).permute(0, 2, 3, 1)),
        ("every 2nd column", torch.cat([f4, f4])[:, ::2]),
        ("half the columns", torch.cat([f4, f4])[:, : f4.shape[1] // 2]),
        ("broadcast", f4[0].expand_as(f4)),
    ):
        # Both keep the order of the elements, but for those that have none.
        by = torch.Tensor.contiguous if name == "broadcast" else torch.Tensor.clone
        yield f"f32 {name} → numpy, fresh", value, fresh, lambda x, by=by: by(x).numpy()


def _casts(f4: torch.Tensor) -> Iterator[Case]:
    for source, target in (
        *(("bfloat16", "float32"), ("float16", "float32"), ("float8_e4m3fn", "float32")),
        *(("float32", "float64"), ("float64", "float32"), ("float32", "float16")),
        *(("float32", "int32"), ("uint8", "float32"), ("bool", "float32")),
        *(("int32", "int64"), ("int64", "float64"), ("complex64", "complex128")),
    ):
        value = (f4 * 100).to(getattr(torch, source))
        torch_dtype = getattr(torch, target)
        yield (
            f"{source} → numpy {target}",
            value,
            {**_NUMPY, "dtype": target},
            lambda x, torch_dtype=torch_dtype: x.to(torch_dtype).numpy(),
        )
    half = f4.bfloat16().t()
    keywords = {**_NUMPY, "dtype": "float32"}
    yield "bfloat16 transposed → numpy float32", half, keywords, lambda x: x.float().numpy()
    high = len(f4) // 8
    images = (f4.view(-1, high, high, 4)[..., :3] * 255).byte().permute(0, 3, 1, 2)
    yield "uint8 NHWC as NCHW → numpy float32", images, keywords, lambda x: x.float().numpy()


def _lazy(f4: torch.Tensor) -> Iterator[Case]:
    half = len(f4) // 2
    z = torch.complex(f4[:half], f4[half:])
    yield "conjugate → numpy", z.conj(), _NUMPY, lambda x: x.resolve_conj().numpy()
    yield "adjoint → numpy", z.mH, _NUMPY, lambda x: x.resolve_conj().numpy()
    negated = torch.complex(f4, f4).conj().imag
    yield "negated → numpy", negated, _NUMPY, lambda x: x.resolve_neg().numpy()


def _random(side: int, density: float = 0.01, dtype: str = "float32") -> Any:
    return scipy.sparse.random_array(
        (side, side), density=density, format="csr", rng=0, dtype=np.dtype(dtype)
    )


def _torch_layouts(s: Any) -> Iterator[tuple[str, torch.Tensor]]:
    csr = interop.convert(s, to="torch.sparse_csr")
    coo = csr.to_sparse_coo().coalesce()
    twice = torch.cat([coo.indices(), coo.indices()], 1)
    values = torch.cat([coo.values(), coo.values()])
    yield "CSR", csr
    yield "COO", coo
    yield "COO uncoalesced", torch.sparse_coo_tensor(twice, values, coo.shape)
    yield "CSC", csr.to_sparse_csc()
    yield "BSR", csr.to_sparse_bsr((4, 4))
    yield "BSC", csr.to_sparse_bsc((4, 4))


def _densify(side: int) -> Iterator[Case]:
    for name, value in _torch_layouts(_random(side)):
        yield f"torch {name} → numpy dense", value, _NUMPY, lambda x: x.to_dense().numpy()
        if name in ("CSR", "COO"):
            yield f"torch {name} → torch dense", value, _TORCH, lambda x: x.to_dense()
            keywords = {**_NUMPY, "dtype": "float64"}
            wide = f"torch {name} → numpy dense float64"
            yield wide, value, keywords, lambda x: x.to_dense().double().numpy()
    s = _random(side)
    yield "scipy CSR → torch dense", s, _TORCH, lambda x: torch.from_numpy(x.toarray())


def _dequantize(f4: torch.Tensor) -> Iterator[Case]:
    zeros = torch.zeros(len(f4), dtype=torch.int64)
    scales = torch.linspace(0.01, 0.02, len(f4), dtype=torch.float64)
    narrow = scales.float()  # as torch's observers find them
    for name, q in (
        ("quint8", torch.quantize_per_tensor(f4, 0.01, 3, torch.quint8)),
        ("qint8 per channel", torch.quantize_per_channel(f4, scales, zeros, 0, torch.qint8)),
        (
            "qint8 per channel, float32 scales",
            torch.quantize_per_channel(f4, narrow, zeros, 0, torch.qint8),
        ),
        ("qint32", torch.quantize_per_tensor(f4, 1e-6, 0, torch.qint32)),
    ):
        yield f"{name} → numpy f32", q, _NUMPY, lambda x: x.dequantize().numpy()
        if name == "quint8":
            yield f"{name} → torch f32", q, _TORCH, lambda x: x.dequantize()


def _to_torch(f4: torch.Tensor) -> Iterator[Case]:
    a = f4.numpy()
    fresh = {**_TORCH, "copy": True}
    yield "numpy f32 → torch, fresh", a, fresh, torch.tensor
    yield "numpy f32 transposed → torch, fresh", a.T, fresh, lambda x: torch.from_numpy(x).clone()
    locked = a.view()
    locked.flags.writeable = False
    yield "numpy read-only → torch", locked, _TORCH, torch.tensor
    for name in ("float64", "float16", "bfloat16"):
        keywords, torch_dtype = {**_TORCH, "dtype": name}, getattr(torch, name)
        yield (
            f"numpy f32 → torch {name}",
            a,
            keywords,
            lambda x, w=torch_dtype: torch.tensor(x, dtype=w),
        )
    bits = a.astype(_BF16)
    keywords = {**_TORCH, "dtype": "float32"}
    yield "ml_dtypes bfloat16 → torch f32", bits, keywords, lambda x: torch.tensor(x.astype("f4"))


def _torch_to_torch(f4: torch.Tensor) -> Iterator[Case]:
    fresh = {**_TORCH, "copy": True}
    yield "torch f32 → torch, fresh", f4, fresh, lambda x: x.clone()
    yield "torch f32 transposed → torch, fresh", f4.t(), fresh, lambda x: x.clone()
    yield "torch f32 → torch f64", f4, {**_TORCH, "dtype": "float64"}, lambda x: x.double()
    half = f4.half()
    yield "torch f16 → torch f32", half, {**_TORCH, "dtype": "float32"}, lambda x: x.float()


def _into(f4: torch.Tensor) -> Iterator[Case]:
    """Yield conversions into an array that exists already."""
    out = np.empty(f4.shape, np.float32)
    keywords = {"out": out}
    yield "bfloat16 → out=", f4.bfloat16(), keywords, lambda x: _filled(out, x.float().numpy())
    yield "f32 transposed → out=", f4.t(), keywords, lambda x: _filled(out, x.numpy())
    s = _random(len(f4))
    csr = interop.convert(s, to="torch.sparse_csr")
    yield "torch CSR → out=", csr, keywords, lambda x: _filled(out, x.to_dense().numpy())
    q = torch.quantize_per_tensor(f4, 0.01, 3, torch.quint8)
    yield "quint8 → out=", q, keywords, lambda x: _filled(out, x.dequantize().numpy())


def _filled(out: np.ndarray[Any, Any], value: Any) -> Any:
    np.copyto(out, value)
    return out


def _layouts(side: int) -> Iterator[Case]:
    """Yield the changes of layout of sparse arrays whose components take 64 MiB and more."""
    layouts = dict(_torch_layouts(_random(2 * side, 0.05)))
    for source, target in (
        *(("COO", "csr"), ("COO uncoalesced", "csr"), ("COO", "csc")),
        *(("CSR", "coo"), ("CSR", "csc"), ("CSC", "csr"), ("CSC", "coo")),
    ):
        keywords, layout = {"to": f"torch.sparse_{target}"}, getattr(torch, f"sparse_{target}")
        yield (
            f"torch {source} → torch {target.upper()}",
            layouts[source],
            keywords,
            lambda x, layout=layout: x.to_sparse(layout=layout),
        )
    few = torch.where(torch.rand(side, side) < 0.99, 0, 1.0)
    yield "torch dense → torch COO", few, {"to": "torch.sparse_coo"}, lambda x: x.to_sparse()
    yield "torch dense → torch CSR", few, {"to": "torch.sparse_csr"}, lambda x: x.to_sparse_csr()
    yield "torch dense → torch CSC", few, {"to": "torch.sparse_csc"}, lambda x: x.to_sparse_csc()
    by = scipy.sparse.csr_array
    yield "torch dense → scipy CSR", few, {"to": "scipy.csr"}, lambda x: by(x.numpy())


def rows(chosen: Iterable[Case], *, fresh: bool = True) -> list[Row]:
    """Compare `interop.convert` with each recipe, in fresh memory or in memory used before.

    In fresh memory it is also compared with the machine's limit.
    """
    return [
        compare(
            name,
            Timer(lambda x=x, k=keywords: interop.convert(x, **k)),
            Timer(lambda x=x, by=by: by(x)),
            rounds=7 if fresh else 11,
            budget=0 if fresh else 5e-3,
            fresh=fresh,
            limits=[Timer(copy) for copy in limiting(x, keywords)] if fresh else (),
        )
        for name, x, keywords, by in chosen
    ]
