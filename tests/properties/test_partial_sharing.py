"""Routes of several steps that share a part of the memory each: together they may share none."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
import sparse
import torch

import interop
from interop.errors import RefusedError
from tests.properties.readers import FORMATS

_DENSE = np.array([[1.0, 2, 0], [0, 3, 0], [4, 0, 5]])
_TARGETS = (
    *("scipy.csr", "scipy.csc", "scipy.coo", "sparse.coo", "sparse.gcxs"),
    *("torch.sparse_coo", "torch.sparse_csr", "torch.sparse_csc"),
)


def _tensor(layout: str) -> Callable[[], torch.Tensor]:
    def make() -> torch.Tensor:
        with warnings.catch_warnings(action="ignore"):  # the compressed layouts are in beta
            return torch.from_numpy(_DENSE).to_sparse(layout=getattr(torch, layout))

    return make


_SOURCES: dict[str, Callable[[], Any]] = {
    "csr": lambda: sp.csr_array(_DENSE),
    "csc": lambda: sp.csc_array(_DENSE),
    "coo": lambda: sp.coo_array(_DENSE),
    "bsr": lambda: sp.bsr_array(_DENSE),
    "sparse.coo": lambda: sparse.COO.from_numpy(_DENSE),
    "gcxs": lambda: sparse.GCXS.from_numpy(_DENSE),
    "gcxs by columns": lambda: sparse.GCXS.from_numpy(_DENSE, compressed_axes=(1,)),
    "torch coo": _tensor("sparse_coo"),
    "torch csr": _tensor("sparse_csr"),
    "torch csc": _tensor("sparse_csc"),
}


def _converted(
    make: Callable[[], Any], targets: Iterable[str], request: dict[str, Any]
) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the route of a value to each target that it is not refused, the receipt and the result."""
    for target in targets:
        value = make()
        try:
            route = interop.plan(value, to=target, **request)
        except RefusedError:
            continue
        with interop.trace() as receipts:
            result = interop.convert(value, to=target, **request)
        yield route, receipts[-1], result


def test_a_cast_takes_no_detour_for_sharing_that_it_does_not_have() -> None:
    """A cast of coordinates is one step: a compressed layout on the way would share nothing more."""
    value = sparse.COO.from_numpy(_DENSE)
    route = interop.plan(value, to="sparse.coo", dtype="float32")
    assert [step.label for step in route.steps] == ["sparse_coo_to_sparse_coo"]
    assert not route.aliases


_ROWS: dict[str, Callable[[], Any]] = {
    "numpy": _DENSE.copy,
    "torch": lambda: torch.from_numpy(_DENSE.copy()),
    "lists of one length": lambda: pa.FixedSizeListArray.from_arrays(pa.array(_DENSE.ravel()), 3),
    "lists": lambda: pa.array(_DENSE.tolist()),
    "ragged lists": lambda: pa.array([[1.0, 2], [3]]),
    "jagged": lambda: interop.convert(pa.array([[1.0, 2], [3]]), to="torch.jagged"),
}


_KINDS = {**_SOURCES, **_ROWS}


@pytest.mark.extra
@pytest.mark.parametrize("request_", [{}, {"dtype": "float32"}, {"copy": True}], ids=str)
@pytest.mark.parametrize("source", _KINDS)
def test_a_plan_says_whether_memory_is_shared(source: str, request_: dict[str, Any]) -> None:
    """What a plan says of sharing is what the addresses say, however many steps share a part.

    Offsets that are made for the occasion, or left behind, are no memory of the value's.
    """
    planned, targets = 0, _TARGETS if source in _SOURCES else FORMATS
    for route, receipt, result in _converted(_KINDS[source], targets, request_):
        planned += 1
        after = interop.spec(result)
        if after.wrapped:  # of rows of one length, offsets do not count as memory
            continue
        if source in _SOURCES or (
            receipt.aliased is not None and not after.format.startswith("python")
        ):
            assert receipt.aliased is (route.aliases if route.steps else True), route
        if source in _SOURCES and request_.get("copy"):
            assert not route.aliases, route
    # Rows go to more targets with what only the group `test-all` has.
    assert planned > (4 if source in _SOURCES else 2)


def test_rows_of_one_length_are_cast_as_the_dense_array_that_they_are() -> None:
    """A cast to another framework makes no offsets on the way."""
    value = _ROWS["lists of one length"]()
    route = interop.plan(value, to="numpy", dtype="float32")
    assert [step.label for step in route.steps] == ["to_numpy", "cast"]


def test_a_head_says_what_its_steps_say() -> None:
    """A plan whose steps share a part and copy a part says both."""
    route = interop.plan(sp.csr_array(_DENSE), to="scipy.coo")
    assert route.aliases
    assert not route.zero_copy
    assert "shares some memory, copies the rest" in str(route).splitlines()[0]


def test_pointers_that_a_change_of_layout_makes_are_not_shared() -> None:
    """Coordinates have no pointers, so what has both its others replaced shares nothing."""
    numbers = np.zeros((3, 2), ml_dtypes.float8_e3m4)
    numbers[0, 0] = 1
    value = interop.convert(numbers, to="jax.bcoo")
    plan = interop.plan(value, to="scipy.csr")
    with interop.trace() as receipts:
        interop.convert(value, to="scipy.csr")
    assert (plan.aliases, receipts[0].aliased) == (False, False)
