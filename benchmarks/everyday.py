"""Everyday calls: keywords, ``like=``, ``out=``, converters, lists, trees, decorators, blocks.

Each is compared with code that is written by hand for that very value, and with the barest front: a
function that looks up the same statement by the keywords of the call and the type of the value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import optree
import scipy.sparse
import torch

import interop

from . import bare
from .table import Table, from_rows
from .timing import Row, compare, small

__all__ = ["tables"]

_LEAVES = 200


class Call(NamedTuple):
    """A call of ours, and the code that a user would write by hand."""

    name: str
    ours: str
    by_hand: str
    block: Any = nullcontext  # the block in which ours is timed
    bare: str = ""  # the call of the barest front, if its text differs from ours


#: Above 1.5 on average, or above 4 for one of them, calls are too dear.
CALLS = (
    Call("copy=True", "convert(t, to='numpy', copy=True)", "t.numpy().copy()"),
    Call("copy=False", "convert(t, to='numpy', copy=False)", "t.numpy()"),
    Call("dtype= with a cast", "convert(t, to='numpy', dtype='float64')", "t.numpy().astype('f8')"),
    Call("dtype= without one", "convert(t, to='numpy', dtype='float32')", "t.numpy()"),
    Call("device=", "convert(a, to='torch', device='cpu')", "torch.from_numpy(a)"),
    Call("like=", "convert(a, like=t)", "torch.from_numpy(a)"),
    Call("out=", "convert(t, out=out)", "np.copyto(out, t.numpy())"),
    Call("converter(dtype=)", "cast(t)", "t.numpy().astype('f8')", bare="bare_cast(t)"),
    Call("converter(copy=False)", "shared(t)", "t.numpy()", bare="bare_shared(t)"),
    Call("CSR → numpy", "convert(csr, to='numpy')", "csr.toarray()"),
    Call("CSR → torch COO", "convert(csr, to='torch.sparse_coo')", "coo(csr)"),
    Call("list → numpy", "convert(numbers, to='numpy')", "np.asarray(numbers)"),
    Call("float → numpy", "convert(1.5, to='numpy')", "np.asarray(1.5)"),
    Call("numpy → python", "convert(a, to='python')", "a.tolist()"),
    Call("accepts, a foreign array", "kept(t)", "torch.from_numpy(same(t.numpy()))"),
    Call("accepts, an own array", "kept(a)", "np.asarray(same(np.asarray(a)))"),
    Call(
        f"convert_tree, dict of {_LEAVES} tensors",
        "convert_tree(tree, to='numpy')",
        "{key: x.numpy() for key, x in tree.items()}",
    ),
    Call(
        "the same, by optree.tree_map",
        "convert_tree(tree, to='numpy')",
        "optree.tree_map(lambda x: convert(x, to='numpy'), tree)",
    ),
    Call("convert_tree, batch of two", "convert_tree(batch, to='numpy')", "by_hand(batch)"),
)
_BLOCKS = (
    Call(
        "inside policy()",
        "convert(t, to='numpy')",
        "convert(t, to='numpy')",
        lambda: interop.policy(forbid="narrow"),
    ),
    Call("inside trace()", "convert(t, to='numpy')", "convert(t, to='numpy')", interop.trace),
)


def tables(only: Collection[str] | None = None, rounds: int = 21) -> Iterator[Table]:
    """Yield the table of calls against code written by hand, and the table of open blocks."""
    note = (
        "Against what one would write by hand for that very value. The barest front is a function "
        "in Python that looks up that statement by the words of the call and by the type of the "
        "value. It looks at nothing else, so that it is wrong for values that are not plain."
    )
    for key, title, short, calls, text in (
        ("everyday", "everyday calls on small values", "everyday calls", CALLS, note),
        (
            "everyday.blocks",
            "a call inside an open block, against the same call outside",
            "open blocks",
            _BLOCKS,
            "",
        ),
    ):
        limit = "the barest front" if text else ""
        lines = from_rows(list(_rows(calls, only, rounds)), "by hand", limit)
        if lines:
            yield Table(key, title, text, lines, goal=1.5, short=short, limit=limit)


def _rows(calls: tuple[Call, ...], only: Collection[str] | None, rounds: int) -> Iterator[Row]:
    names = environment()
    for call in calls:
        if only is None or call.name in only:
            ours, theirs = small(call.ours, names), small(call.by_hand, names)
            limits = [small(call.bare or call.ours, {**names, **bare.names(same)})]
            if call.block is not nullcontext:  # of which the barest front knows nothing
                limits = []
                names_inside = {**names, "block": call.block}
                ours = small(f"with block():\n for _ in range(100): {call.ours}", names_inside)
                theirs = small(f"for _ in range(100): {call.by_hand}", names)
            yield compare(call.name, ours, theirs, rounds=rounds, limits=limits)


def environment() -> dict[str, Any]:
    t, csr = torch.ones(4, 4), scipy.sparse.random_array((100, 100), density=0.05, format="csr")
    return {
        "np": np,
        "torch": torch,
        "optree": optree,
        "convert": interop.convert,
        "convert_tree": interop.convert_tree,
        "t": t,
        "a": np.ones((4, 4)),
        "out": np.empty((4, 4), "f4"),
        "csr": csr,
        "coo": bare.coo,
        "numbers": [1.0, 2.0, 3.0],
        "cast": interop.converter("numpy", dtype="float64"),
        "shared": interop.converter("numpy", copy=False),
        "same": same,
        "kept": interop.accepts("numpy")(same),
        "tree": {str(place): torch.ones(4) for place in range(_LEAVES)},
        "batch": (t, torch.arange(4)),
        "by_hand": lambda batch: tuple(x.numpy() for x in batch),
    }


def same(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return x
