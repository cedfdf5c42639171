"""The planner's choice of an order of steps, against each fixed order.

A ladder of ``isinstance`` has a fixed order: one for all values, sizes and machines. Each order is
measured twice. Once it is written in the libraries' own calls, as in such a ladder. Once interop
carries it out in two requests, with the kernels and the memory that it would choose, so that only
the order differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from timeit import Timer
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import scipy.sparse
import torch

from interop import Interop

from .timing import Row, against, back_memory, interleaved

__all__ = ["Choice", "choices", "rows"]

Words = dict[str, Any]
#: One stage of a fixed order: keywords for `convert`, or a library's own call.
Stage = Words | Callable[[Any], Any]


class Choice(NamedTuple):
    """One conversion, and the orders in which it can be done.

    Parameters
    ----------
    name : str
    value : object
    words : dict
        The keywords for `convert`.
    orders : dict of str to tuple of Stage
        The stages of each fixed order.
    """

    name: str
    value: Any
    words: Words
    orders: dict[str, tuple[Stage, ...]]


#: The fixed orders of every row.
WORK_FIRST, WORK_LAST = "work, then hand over", "hand over, then work"
#: The same orders, carried out by interop.
FIRST_BY_US, LAST_BY_US = f"{WORK_FIRST}, by interop", f"{WORK_LAST}, by interop"

_BITS = {torch.bfloat16: (torch.uint16, ml_dtypes.bfloat16)}


def choices(side: int) -> Iterator[Choice]:
    """Yield conversions of values of `side` by `side`."""
    dense = torch.rand(side, side)
    yield from _out_of_torch(dense)
    yield from _into_torch(dense.numpy())
    csr = scipy.sparse.random_array((side, side), density=0.02, format="csr", rng=0, dtype="f4")
    yield from _densified(csr)
    yield from _cast(csr)
    if torch.cuda.is_available():
        yield from _device(dense.cuda())


def _out_of_torch(dense: torch.Tensor) -> Iterator[Choice]:
    """Yield casts by torch before the hand-over, or by NumPy after it."""
    for name, value, dtype in (
        ("torch bf16 → numpy f32", dense.bfloat16(), "float32"),
        ("torch f16 → numpy f32", dense.half(), "float32"),
        ("torch f32 → numpy f64", dense, "float64"),
        ("torch f64 → numpy f32", dense.double(), "float32"),
        ("torch f32 → numpy f16", dense, "float16"),
        ("torch f32.T → numpy f64", dense.t(), "float64"),
    ):
        orders: dict[str, tuple[Stage, ...]] = {
            WORK_FIRST: (partial(torch.Tensor.to, dtype=getattr(torch, dtype)), _to_numpy),
            WORK_LAST: (_to_numpy, partial(np.ndarray.astype, dtype=dtype)),
            FIRST_BY_US: ({"to": "torch", "dtype": dtype}, {"to": "numpy"}),
            LAST_BY_US: ({"to": "numpy"}, {"to": "numpy", "dtype": dtype}),
        }
        yield Choice(name, value, {"to": "numpy", "dtype": dtype}, orders)


def _into_torch(array: np.ndarray[Any, Any]) -> Iterator[Choice]:
    """Yield casts and copies by NumPy before the hand-over, or by torch after it."""
    for name, value, dtype in (
        ("numpy f32 → torch f64", array, "float64"),
        ("numpy f64 → torch f32", array.astype("f8"), "float32"),
        ("numpy f16 → torch f32", array.astype("f2"), "float32"),
        ("numpy f32 → torch f16", array, "float16"),
        ("numpy f32.T → torch f64", array.T, "float64"),
    ):
        keywords = {"dtype": dtype}
        cast = partial(torch.Tensor.to, dtype=getattr(torch, dtype))
        by_hand = (partial(np.ndarray.astype, dtype=dtype), torch.from_numpy)
        yield Choice(name, value, {"to": "torch", **keywords}, _in_torch(by_hand, cast, keywords))
    for name, value in (
        ("numpy f32 → torch, fresh", array),
        ("numpy f32.T → torch, fresh", array.T),
    ):
        fresh = partial(torch.clone, memory_format=torch.contiguous_format)
        by_hand = (np.ndarray.copy, torch.from_numpy)
        keywords = {"copy": True}
        yield Choice(name, value, {"to": "torch", **keywords}, _in_torch(by_hand, fresh, keywords))


def _in_torch(
    first: tuple[Stage, ...], last: Stage, keywords: Words
) -> dict[str, tuple[Stage, ...]]:
    return {
        WORK_FIRST: first,
        WORK_LAST: (torch.from_numpy, last),
        FIRST_BY_US: ({"to": "numpy", **keywords}, {"to": "torch"}),
        LAST_BY_US: ({"to": "torch"}, {"to": "torch", **keywords}),
    }


def _densified(csr: scipy.sparse.csr_array) -> Iterator[Choice]:
    """Yield sparse values that become dense in the library they are in, or in the other."""
    tensor = _shared(csr)
    coo = tensor.to_sparse_coo()
    for name, value, last in (
        ("torch CSR → numpy", tensor, _csr_to_scipy),
        ("torch COO → numpy", coo, _coo_to_scipy),
    ):
        layout = name.partition(" → ")[0].partition(" ")[2].lower()
        orders: dict[str, tuple[Stage, ...]] = {
            WORK_FIRST: (torch.Tensor.to_dense, _to_numpy),
            WORK_LAST: (last, _to_array),
            FIRST_BY_US: ({"to": "torch"}, {"to": "numpy"}),
            LAST_BY_US: ({"to": f"scipy.{layout}"}, {"to": "numpy"}),
        }
        yield Choice(name, value, {"to": "numpy"}, orders)
    for name, other, hand_over in (
        ("scipy CSR → torch", csr, _shared),
        ("scipy COO → torch", csr.tocoo(), _coo_to_torch),
    ):
        layout = name.partition(" → ")[0].partition(" ")[2].lower()
        orders = {
            WORK_FIRST: (_to_array, torch.from_numpy),
            WORK_LAST: (hand_over, torch.Tensor.to_dense),
            FIRST_BY_US: ({"to": "numpy"}, {"to": "torch"}),
            LAST_BY_US: ({"to": f"torch.sparse_{layout}"}, {"to": "torch"}),
        }
        yield Choice(name, other, {"to": "torch"}, orders)


def _cast(csr: scipy.sparse.csr_array) -> Iterator[Choice]:
    """Yield casts before or after a change between sparse and dense, as the hand-over."""
    for name, value, dtype in (
        ("scipy CSR f32 → numpy f64", csr, "float64"),
        ("scipy CSR f64 → numpy f32", csr.astype("f8"), "float32"),
    ):
        yield _either(name, value, ("scipy.csr", "numpy"), dtype, _to_array)
    dense = csr.toarray()
    for name, other, dtype in (
        ("numpy f32 → scipy CSR f64", dense, "float64"),
        ("numpy f64 → scipy CSR f32", dense.astype("f8"), "float32"),
    ):
        yield _either(name, other, ("numpy", "scipy.csr"), dtype, scipy.sparse.csr_array)


def _either(
    name: str, value: Any, formats: tuple[str, str], dtype: str, hand_over: Stage
) -> Choice:
    (source, target), keywords = formats, {"dtype": dtype}
    cast = partial(_astype, dtype=dtype)
    orders: dict[str, tuple[Stage, ...]] = {
        WORK_FIRST: (cast, hand_over),
        WORK_LAST: (hand_over, cast),
        FIRST_BY_US: ({"to": source, **keywords}, {"to": target}),
        LAST_BY_US: ({"to": target}, {"to": target, **keywords}),
    }
    return Choice(name, value, {"to": target, **keywords}, orders)


def _astype(value: Any, dtype: str) -> Any:
    return value.astype(dtype)


def _to_numpy(value: torch.Tensor) -> Any:
    """Return the array of a tensor; bfloat16 passes as bits, since NumPy has no such dtype."""
    bits = _BITS.get(value.dtype)
    return value.cpu().numpy() if bits is None else value.view(bits[0]).numpy().view(bits[1])


def _to_array(value: Any) -> Any:
    return value.toarray()


def _shared(csr: Any) -> torch.Tensor:
    """Return the tensor over a compressed SciPy array."""
    parts = (torch.from_numpy(part) for part in (csr.indptr, csr.indices, csr.data))
    return torch.sparse_csr_tensor(*parts, size=csr.shape, check_invariants=False)


def _csr_to_scipy(tensor: torch.Tensor) -> Any:
    parts = (tensor.values(), tensor.col_indices(), tensor.crow_indices())
    return scipy.sparse.csr_array(tuple(part.numpy() for part in parts), shape=tuple(tensor.shape))


def _coo_to_scipy(tensor: torch.Tensor) -> Any:
    coalesced = tensor.coalesce()
    values, indices = coalesced.values().numpy(), coalesced.indices().numpy()
    return scipy.sparse.coo_array((values, tuple(indices)), shape=tuple(tensor.shape))


def _coo_to_torch(coo: Any) -> torch.Tensor:
    indices = torch.from_numpy(np.stack(coo.coords))
    return torch.sparse_coo_tensor(
        indices, torch.from_numpy(coo.data), coo.shape, check_invariants=False
    )


def _device(dense: torch.Tensor) -> Iterator[Choice]:
    """Yield casts on the device before the transfer, or on the host after it."""
    for name, value, dtype in (
        ("cuda f32 → numpy f16", dense, "float16"),
        ("cuda f16 → numpy f32", dense.half(), "float32"),
    ):
        torch_dtype = getattr(torch, dtype)
        orders: dict[str, tuple[Stage, ...]] = {
            WORK_FIRST: (partial(torch.Tensor.to, dtype=torch_dtype), _to_numpy),
            WORK_LAST: (torch.Tensor.cpu, partial(torch.Tensor.to, dtype=torch_dtype), _to_numpy),
            FIRST_BY_US: ({"to": "torch", "dtype": dtype}, {"to": "numpy"}),
            LAST_BY_US: ({"to": "numpy"}, {"to": "numpy", "dtype": dtype}),
        }
        yield Choice(name, value, {"to": "numpy", "dtype": dtype}, orders)


def _carried_out(interop: Interop, value: Any, stages: tuple[Stage, ...]) -> Any:
    for stage in stages:
        value = stage(value) if callable(stage) else interop.convert(value, **stage)
    return value


def rows(side: int = 2900) -> dict[str, list[Row]]:
    """Compare `convert` with each fixed order, for values of `side` by `side`."""
    interop = Interop()
    rows_by_order: dict[str, list[Row]] = {}
    back_memory()
    for choice in choices(side):
        timers = {"ours": Timer(partial(interop.convert, choice.value, **choice.words))}
        for order, stages in choice.orders.items():
            timers[order] = Timer(partial(_carried_out, interop, choice.value, stages))
        times = interleaved(timers, rounds=9, budget=0)
        for order in choice.orders:
            rows_by_order.setdefault(order, []).append(
                against(choice.name, times["ours"], times[order])
            )
    return rows_by_order
