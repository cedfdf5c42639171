"""Calls with keywords that take fast paths: strange tensors get what a cold process gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

from interop import Interop
from tests.api.test_fast_keywords import (
    check_as_cold,
    check_filled,
    planned_again,
    requests,
    slow_calls,
    warmed,
)
from tests.cases import together

__all__ = ["slow_calls"]  # a fixture

#: What is not plain, and yet of a type for which a fast path is kept.
STRANGE: dict[str, Callable[[], Any]] = {
    "grad": lambda: torch.ones(4, requires_grad=True),
    "conj": lambda: torch.tensor([1 + 2j, 3 - 1j]).conj(),
    "neg": lambda: torch._neg_view(torch.arange(4.0)),
    "bfloat16": lambda: torch.ones(4, dtype=torch.bfloat16),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "meta": lambda: torch.ones(4, device="meta"),
    "strided": lambda: torch.arange(12.0).reshape(3, 4).T,
    "strided in a graph": lambda: torch.ones(3, 4, requires_grad=True).T,
    "expanded": lambda: torch.ones(1).expand(4),
    "parameter": lambda: torch.nn.Parameter(torch.ones(2)),
    "read-only": lambda: np.broadcast_to(np.arange(4.0), (1, 4)),
    "byte-swapped": lambda: np.arange(4, dtype=">f8"),
}
PLAIN: dict[str, Callable[[], Any]] = {
    "f": lambda: torch.arange(3.0),
    "i": lambda: torch.arange(3),
    "h": lambda: torch.arange(3, dtype=torch.bfloat16),
    "d": lambda: torch.ones(4, dtype=torch.float64),
    "arrays": lambda: np.arange(3.0),
}


@pytest.fixture(scope="module")
def warm() -> Interop:
    """An instance that has a fast path for plain values of every call."""
    return warmed(Interop(), ("numpy", "torch"), [*PLAIN.values()])


@pytest.fixture(scope="module")
def cold() -> Interop:
    """An instance that is made to forget all before it is asked."""
    return Interop()


@together("name", [*STRANGE, *PLAIN])
@pytest.mark.parametrize("to", ["numpy", "torch"])
def test_a_value_gets_what_a_cold_process_gives_it(
    name: str, to: str, warm: Interop, cold: Interop
) -> None:
    """Value, dtype, memory, warnings and error are those of a call without fast paths, alone or in a tree."""
    check_as_cold({**STRANGE, **PLAIN}[name], to, warm, cold)


def _inference() -> Any:
    with torch.inference_mode():
        return torch.zeros(4, dtype=torch.float64)


#: What stands in for an ``out=`` that is written on a fast path, made of the numbers to write.
OUTS: dict[str, Callable[[Any], Any]] = {
    "an array": lambda a: np.zeros(4),
    "a tensor": lambda a: torch.zeros(4, dtype=torch.float64),
    "a tensor over it": torch.from_numpy,
    "a tensor over it, in turn": lambda a: torch.from_numpy(a).reshape(2, 2).T.reshape(4),
    "of a graph": lambda a: torch.zeros(4, dtype=torch.float64, requires_grad=True),
    "of inference": lambda a: _inference(),
    "expanded": lambda a: torch.zeros(1, dtype=torch.float64).expand(4),
    "negated": lambda a: torch._neg_view(torch.zeros(4, dtype=torch.float64)),
    "sparse": lambda a: torch.zeros(4, dtype=torch.float64).to_sparse(),
    "of oneDNN's layout": lambda a: torch.zeros(4).to_mkldnn(),
    "of no memory": lambda a: torch.zeros(4, dtype=torch.float64, device="meta"),
}


@together("name", OUTS)
def test_a_strange_out_is_written_or_refused_as_a_cold_process_does(
    name: str, warm: Interop, cold: Interop
) -> None:
    """The error, or the numbers in the value and in ``out=``, are those of a call without."""
    wraps = np.asarray, torch.from_numpy, lambda a: torch.from_numpy(a).float()
    check_filled(OUTS[name], wraps, warm, cold)


def test_a_strided_out_over_the_value_gets_all_of_its_numbers(warm: Interop) -> None:
    """Where the two interleave in one memory, every number is read before it is written over."""
    for _ in range(4):
        numbers = torch.arange(16, dtype=torch.float64)
        out, value = numbers[4:12:2], numbers[0:8:2]
        expected = value.tolist()
        assert warm.convert(value, out=out) is out
        assert out.tolist() == expected


#: Values, and the calls with which they are planned every time; all others are fast once warm.
PLANNED: dict[str, tuple[Callable[[], Any], str]] = {
    "small array of bits": (lambda: torch.ones(4, dtype=torch.bfloat16), "python several stream"),
    "tensor": (lambda: torch.ones(4), "several stream"),
    "tensor in a graph": (lambda: torch.ones(4, requires_grad=True), "several stream"),
    "transposed tensor": (lambda: torch.ones(4, 2).t(), "several stream"),
    "conjugate": (
        lambda: torch.ones(4, dtype=torch.complex64).conj(),
        "same share allow copy device dtype forbid like python several sparse stream to-copy writable",
    ),
    "list": (lambda: [1.0, 2.0], "allow forbid several stream writable"),
    "sparse array": (
        lambda: scipy.sparse.csr_array(np.eye(3)),
        "allow copy dtype forbid several stream to-copy writable",
    ),
}
REQUESTS = {**requests("torch", torch.ones(1)), "sparse": {"to": "scipy.csr"}}


@together("name", PLANNED)
def test_which_calls_are_planned_when_they_are_made_again(name: str, slow_calls: list[str]) -> None:
    """A third call is fast, described and planned by nothing, but for the value and words listed."""
    make, words = PLANNED[name]
    assert planned_again(Interop(), make, REQUESTS, slow_calls) == {*words.split()}


@pytest.mark.parametrize("side", [2, 2**10], ids=["small", "large"])
@pytest.mark.parametrize("keywords", [{"copy": True}, {"dtype": "float64"}], ids=["copy", "dtype"])
def test_warm_trees_with_keywords_keep_what_is_tied(
    keywords: dict[str, Any], side: int, warm: Interop
) -> None:
    """The same elements are one array; the same bytes as others, in another order, or none, are not."""
    weight, nothing = torch.arange(side**2 * 1.0).reshape(side, side), torch.zeros(2, 0)
    cases = {
        "tied": (weight, weight.view(side, side), True),
        "detached": (weight, weight.detach(), True),
        "reshaped": (weight, weight.reshape(-1), False),
        "as bits": (weight, weight.view(torch.int32), False),
        "turned": (weight, weight.T, False),
        "begun": (weight, weight[:1], False),
        "apart": (weight, weight.clone(), False),
        "empty": (nothing, nothing.view(2, 0), False),
    }
    for name, (first, second, tied) in cases.items():
        for tree in ([first, second], [second, first]):
            result = warm.convert_tree(tree, to="numpy", **keywords)
            assert (result[0] is result[1]) is tied, name
            for array, tensor in zip(result, tree, strict=True):
                np.testing.assert_array_equal(array, tensor, name)


def test_a_like_of_one_type_is_not_taken_for_another_format_of_it(warm: Interop) -> None:
    """The result is as sparse as the tensor in this call's ``like=``."""
    array, dense = np.eye(2), torch.ones(2, 2)
    likes = {"torch.sparse_coo": dense.to_sparse(), "torch": dense.t()}
    for _ in range(3):
        assert warm.spec(warm.convert(array, like=dense)).format == "torch"
        for format_, like in likes.items():
            assert warm.spec(warm.convert(array, like=like)).format == format_
