"""Everyday calls: keywords, ``like=``, ``out=``, converters, lists, trees, decorators, blocks.

Each is compared with code that is written by hand for that very value, and with the barest front: a
function that looks up the same statement by the keywords of the call and the type of the value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import nullcontext
from importlib import import_module
from importlib.util import find_spec
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
    bare: str | None = ""  # the call of the barest front, if its text differs; None if it has none


CALLS = (
    Call("copy=True", "convert(t, to='numpy', copy=True)", "t.numpy().copy()"),
    Call("copy=False", "convert(t, to='numpy', copy=False)", "t.numpy()"),
    Call("dtype= with a cast", "convert(t, to='numpy', dtype='float64')", "t.numpy().astype('f8')"),
    Call("dtype= without one", "convert(t, to='numpy', dtype='float32')", "t.numpy()"),
    Call(
        "dtype= of bfloat16, after float32",
        "convert(half, to='numpy', dtype='float32')",
        "half.float().numpy()",
        bare=None,
    ),
    Call("allow=", "convert(t, to='numpy', allow='narrow')", "t.numpy()", bare=None),
    Call("device=", "convert(a, to='torch', device='cpu')", "torch.from_numpy(a)"),
    Call("like=", "convert(a, like=t)", "torch.from_numpy(a)"),
    Call("out=", "convert(t, out=out)", "np.copyto(out, t.numpy())"),
    Call("converter(dtype=)", "cast(t)", "t.numpy().astype('f8')", bare="bare_cast(t)"),
    Call("converter(copy=False)", "shared(t)", "t.numpy()", bare="bare_shared(t)"),
    Call("CSR → numpy", "convert(csr, to='numpy')", "csr.toarray()"),
    Call("CSR → torch COO", "convert(csr, to='torch.sparse_coo')", "coo(csr)"),
    Call("list → numpy", "convert(numbers, to='numpy')", "np.asarray(numbers)"),
    Call("list of 10^5 floats → numpy", "convert(many, to='numpy')", "np.asarray(many)"),
    Call("list → torch", "convert(numbers, to='torch')", "torch.tensor(numbers)", bare=None),
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
    Call(
        "convert_tree with dtype=",
        "convert_tree(tree, to='numpy', dtype='float64')",
        "{key: x.numpy().astype('f8') for key, x in tree.items()}",
        bare=None,
    ),
    Call(
        "convert_tree with copy=True",
        "convert_tree(tree, to='numpy', copy=True)",
        "{key: x.numpy().copy() for key, x in tree.items()}",
        bare=None,
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


if find_spec("jax"):
    _BY_JAX = "jnp.array(t.numpy())"
    CALLS = (*CALLS, Call("torch → jax", "convert(t, to='jax')", _BY_JAX, bare=None))


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
            yield Table(key, title, text, lines, short=short, limit=limit)


def _rows(calls: tuple[Call, ...], only: Collection[str] | None, rounds: int) -> Iterator[Row]:
    names = environment()
    for call in calls:
        if only is None or call.name in only:
            ours, theirs = small(call.ours, names), small(call.by_hand, names)
            limits = []
            if call.block is nullcontext and call.bare is not None:
                limits = [small(call.bare or call.ours, {**names, **bare.names(same)})]
            if call.block is not nullcontext:
                names_inside = {**names, "block": call.block}
                ours = small(f"with block():\n for _ in range(100): {call.ours}", names_inside)
                theirs = small(f"for _ in range(100): {call.by_hand}", names)
            yield compare(call.name, ours, theirs, rounds=rounds, limits=limits)


def environment() -> dict[str, Any]:
    t, csr = torch.ones(4, 4), scipy.sparse.random_array((100, 100), density=0.05, format="csr")
    jnp = import_module("jax.numpy") if find_spec("jax") else None
    return {
        "np": np,
        "jnp": jnp,
        "torch": torch,
        "optree": optree,
        "convert": interop.convert,
        "convert_tree": interop.convert_tree,
        "t": t,
        "half": torch.ones(4, 4, dtype=torch.bfloat16),
        "a": np.ones((4, 4)),
        "out": np.empty((4, 4), "f4"),
        "csr": csr,
        "coo": bare.coo,
        "numbers": [1.0, 2.0, 3.0],
        "many": [float(number) for number in range(10**5)],
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
