"""The planner's choice of an order of steps, against each fixed one.

A fixed order is what a ladder of ``isinstance`` has: one for all values, sizes and machines. Each
is carried out by interop as well, in two requests, so that only the order differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from timeit import Timer
from typing import Any, NamedTuple

import scipy.sparse
import torch

from interop import Cost, Interop

from .timing import Row, against, interleaved

__all__ = ["Choice", "choices", "rows"]

Words = dict[str, Any]


class Choice(NamedTuple):
    """One conversion, and the orders in which it can be done.

    Parameters
    ----------
    name : str
    value : object
    words : dict
        What is asked of `convert`.
    orders : dict of str to tuple of dict
        For each fixed order, the requests that make it.
    """

    name: str
    value: Any
    words: Words
    orders: dict[str, tuple[Words, ...]]


#: What the fixed orders have in common, over all rows.
WORK_FIRST, WORK_LAST = "work, then hand over", "hand over, then work"


def choices(side: int) -> Iterator[Choice]:
    """Yield conversions of values of `side` by `side`."""
    dense = torch.rand(side, side)
    yield from _dense(dense)
    yield from _sparse(side)
    if torch.cuda.is_available():
        yield from _device(dense.cuda())


def _dense(dense: torch.Tensor) -> Iterator[Choice]:
    for name, value, dtype in (
        ("torch bf16 → numpy f32", dense.bfloat16(), "float32"),
        ("torch f16 → numpy f32", dense.half(), "float32"),
        ("torch f32 → numpy f64", dense, "float64"),
        ("torch f64 → numpy f32", dense.double(), "float32"),
        ("torch f32 → numpy bf16", dense, "bfloat16"),
        ("torch f32.T → numpy f64", dense.t(), "float64"),
    ):
        yield _either(name, value, "torch", "numpy", {"dtype": dtype})
    array = dense.numpy()
    for name, other, words in (
        ("numpy f32 → torch, fresh", array, {"copy": True}),
        ("numpy f32.T → torch, fresh", array.T, {"copy": True}),
        ("numpy f32.T → torch f64", array.T, {"dtype": "float64"}),
        ("numpy f32 → torch bf16", array, {"dtype": "bfloat16"}),
        ("numpy f16 → torch f32", array.astype("f2"), {"dtype": "float32"}),
    ):
        yield _either(name, other, "numpy", "torch", words)


def _either(name: str, value: Any, source: str, target: str, words: Words) -> Choice:
    """Return the choice between a library that works before the hand-over and one after it."""
    first = ({"to": source, **words}, {"to": target})
    last = ({"to": target}, {"to": target, **words})
    return Choice(name, value, {"to": target, **words}, {WORK_FIRST: first, WORK_LAST: last})


def _sparse(side: int) -> Iterator[Choice]:
    csr = scipy.sparse.random_array((side, side), density=0.02, format="csr", rng=0, dtype="f4")
    tensor = torch.sparse_csr_tensor(csr.indptr, csr.indices, csr.data, csr.shape)
    for name, value, inside, target, hand_over in (
        ("torch CSR → numpy", tensor, "torch", "numpy", "scipy.csr"),
        ("torch COO → numpy", tensor.to_sparse_coo(), "torch", "numpy", "scipy.coo"),
        ("scipy CSR → torch", csr, "numpy", "torch", "torch.sparse_csr"),
        ("scipy COO → torch", csr.tocoo(), "numpy", "torch", "torch.sparse_coo"),
    ):
        orders = {
            WORK_FIRST: ({"to": inside}, {"to": target}),
            WORK_LAST: ({"to": hand_over}, {"to": target}),
        }
        yield Choice(name, value, {"to": target}, orders)
    wide: Words = {"to": "numpy", "dtype": "float64"}
    narrow: Words = {"to": "numpy", "dtype": "float32"}
    for name, value, words in (
        ("scipy CSR f32 → numpy f64", csr, wide),
        ("scipy CSR f64 → numpy f32", csr.astype("f8"), narrow),
    ):
        orders = {  # the work that comes first or last is the cast
            WORK_FIRST: ({**words, "to": "scipy.csr"}, {"to": "numpy"}),
            WORK_LAST: ({"to": "numpy"}, words),
        }
        yield Choice(name, value, words, orders)


def _device(dense: torch.Tensor) -> Iterator[Choice]:
    for name, value, dtype in (
        ("cuda f32 → numpy f16", dense, "float16"),
        ("cuda f16 → numpy f32", dense.half(), "float32"),
        ("cuda f32.T → numpy f32", dense.t(), "float32"),
    ):
        yield _either(name, value, "torch", "numpy", {"dtype": dtype})


def _carried_out(face: Interop, value: Any, requests: tuple[Words, ...]) -> Any:
    for words in requests:
        value = face.convert(value, **words)
    return value


def rows(costs: Mapping[str, Cost] | None = None, side: int = 2900) -> dict[str, list[Row]]:
    """Return, for each fixed order, how `convert` compares with it.

    Parameters
    ----------
    costs : mapping of str to Cost, optional
        As for `Interop`.
    side : int
    """
    face = Interop(costs=costs)
    found: dict[str, list[Row]] = {}
    for choice in choices(side):
        timers = {"ours": Timer(partial(face.convert, choice.value, **choice.words))}
        for order, requests in choice.orders.items():
            timers[order] = Timer(partial(_carried_out, face, choice.value, requests))
        times = interleaved(timers, rounds=9, budget=0)
        for order in choice.orders:
            found.setdefault(order, []).append(against(choice.name, times["ours"], times[order]))
    return found
