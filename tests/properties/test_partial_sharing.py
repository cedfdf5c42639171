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
from tests.cases import together
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


_LISTS = [[1.0, 2, 3], [], [4.0, 5], [6.0], [7.0, 8, 9, 10]]


def _jagged(rows: slice) -> torch.Tensor:
    """Return a jagged tensor with a slice of the offsets, and all values."""
    start, stop, _ = rows.indices(len(_LISTS))
    whole: Any = interop.convert(_LISTS, to="torch.jagged")
    return torch.nested.nested_tensor_from_jagged(whole.values(), whole.offsets()[start : stop + 1])


def _arrow(type_: pa.DataType) -> Callable[[slice], Any]:
    return lambda rows: pa.array(_LISTS, type_)[rows]


def _polars(rows: slice) -> Any:
    return pytest.importorskip("polars").Series(_LISTS)[rows]


def _awkward(rows: slice) -> Any:
    return pytest.importorskip("awkward").Array(_LISTS)[rows]


def _tensorflow(rows: slice) -> Any:
    return pytest.importorskip("tensorflow").ragged.constant(_LISTS)[rows]


def _addresses(value: Any) -> Iterator[tuple[int, int]]:
    """Yield where each part of ragged rows begins and ends, as their library tells it."""
    match interop.spec(value).format.partition(".")[0]:
        case "polars":
            yield from _addresses(value.to_arrow())
        case "pyarrow":
            for buffer in value.buffers():
                if buffer is not None:
                    yield buffer.address, buffer.address + buffer.size
        case "torch":
            for tensor in (value.values(), value.offsets()):
                yield tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes
        case "awkward":
            import awkward as ak

            _, _, parts = ak.to_buffers(value)
            for part in parts.values():
                yield part.ctypes.data, part.ctypes.data + part.nbytes
        case _:
            for tensor in (value.flat_values, value.row_splits):
                array = np.asarray(memoryview(tensor))
                yield array.ctypes.data, array.ctypes.data + array.nbytes


@pytest.mark.extra("tensorflow")
@pytest.mark.parametrize("request_", [{}, {"copy": False}, {"dtype": "float32"}, {"copy": True}])
@pytest.mark.parametrize("rows", [slice(i, j) for i, j in ((0, 5), (1, 5), (0, 3), (2, 4), (3, 3))])
@together(
    "source",
    [
        *(_arrow(type_(pa.float64())) for type_ in (pa.list_, pa.large_list)),
        *(_awkward, _polars, _jagged, _tensorflow),
    ],
)
def test_a_plan_for_a_slice_of_ragged_rows_says_what_it_shares(
    source: Callable[[slice], Any], rows: slice, request_: dict[str, Any]
) -> None:
    """Plan and receipt agree with the addresses, for all rows, some of them, and none."""
    targets = ("awkward", "torch.jagged", "pyarrow.list", "polars.list", "tensorflow.ragged")
    value, planned = source(rows), 0
    for target in targets:
        try:
            plan = interop.plan(value, to=target, **request_)
        except RefusedError:
            continue
        planned += 1
        with interop.trace() as receipts:
            result = interop.convert(value, to=target, **request_)
        shared = result is value or any(
            max(start, first) < min(end, last)
            for start, end in _addresses(value)
            for first, last in _addresses(result)
        )
        said = receipts[-1].aliased
        if interop.spec(value).shape[0]:
            assert (plan.aliases, said) in {(shared, shared), (shared, None)}, (target, plan)
        elif "copy" in plan.effects:  # memory of nothing may be shared or not
            assert (plan.aliases, said) in {(False, False), (False, None)}, (target, plan)
    assert planned


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
