"""``order=`` for values that are more than strided arrays: in graphs, lazy, sparse, of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

import interop
from interop.errors import RefusedError
from tests.cases import marked
from tests.toys import labels

ROWS = np.arange(12.0).reshape(3, 4)


def _is_fortran(tensor: torch.Tensor) -> bool:
    return tensor.permute(*reversed(range(tensor.ndim))).is_contiguous()


def test_tensors_lie_as_asked() -> None:
    """Between NumPy and torch what lies as asked is shared, and a copy or cast is one step more."""
    for call in (interop.convert, lambda x, to, **words: interop.converter(to, **words)(x)):
        for _ in range(3):
            turned = call(ROWS, "torch", order="F")
            assert _is_fortran(turned)
            assert turned.tolist() == ROWS.tolist()
            for value, order in ((ROWS, "C"), (ROWS.T, "F")):
                assert call(value, "torch", order=order).data_ptr() == ROWS.ctypes.data
    result = interop.convert(ROWS, like=torch.ones(2, 2).T, order="F")
    assert _is_fortran(result)
    expanded = torch.arange(4.0)[:, None].expand(4, 3)
    for value in (torch.from_numpy(ROWS), torch.from_numpy(ROWS).T, expanded):
        for order in ("C", "F"):
            for words in ({"dtype": "float32"}, {"copy": True}):
                plan = interop.plan(value, to="torch", order=order, **words)
                assert len(plan.steps) == 1 or value is expanded
                result = plan(value)
                assert result.is_contiguous() if order == "C" else _is_fortran(result)
                assert torch.equal(result, value.to(result.dtype))
    large = torch.arange(float((2**10 + 3) ** 2)).reshape(2**10 + 3, -1)  # copied by threads
    result = interop.convert(large, to="numpy", order="F")
    assert result.flags.f_contiguous
    np.testing.assert_array_equal(result, large)


def test_tensors_in_graphs_stay_in_them() -> None:
    """A copy in another order is part of the graph, and its gradient arrives."""
    leaf = torch.ones(2, 3, requires_grad=True)
    result = interop.convert(leaf * 2, to="torch", order="F")
    assert _is_fortran(result)
    (result * torch.arange(6.0).reshape(2, 3)).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [[0, 2, 4], [6, 8, 10]]
    detached = interop.convert(leaf * 2, to="numpy", order="F")
    assert detached.flags.f_contiguous


def test_lazy_conjugates_are_resolved_into_the_order() -> None:
    """What is conjugated or negated lazily comes out as numbers that lie as asked."""
    numbers = torch.tensor([[1 + 2j, 3 - 1j, 4j], [5, 6j, 7 + 7j]])
    for lazy in (numbers.conj(), numbers.mT.conj(), numbers.conj().imag, numbers.T.conj().imag):
        expected = lazy.resolve_conj().resolve_neg().numpy()
        for order in ("C", "F"):
            array = interop.convert(lazy, to="numpy", order=order)
            assert array.flags.c_contiguous if order == "C" else array.flags.f_contiguous
            np.testing.assert_array_equal(array, expected)
            tensor = interop.convert(lazy, to="torch", order=order)
            assert tensor.is_contiguous() if order == "C" else _is_fortran(tensor)
            np.testing.assert_array_equal(tensor.resolve_conj().resolve_neg(), expected)
    route = interop.plan(numbers.mT.conj(), to="numpy", order="F")
    assert labels(route)[0] == "resolve_conj"
    assert len(route.steps) == 2


def test_narrow_reals_pass_as_bits_in_the_order() -> None:
    """bfloat16 has the order on both sides."""
    tensor = torch.arange(6.0).reshape(2, 3).to(torch.bfloat16)
    array = interop.convert(tensor, to="numpy", order="F")
    assert array.flags.f_contiguous
    assert array.dtype == "bfloat16"
    assert array.astype("f4").tolist() == tensor.tolist()
    back = interop.convert(array, to="torch", order="C")
    assert back.is_contiguous()
    assert back.tolist() == tensor.tolist()
    shared = interop.convert(array, to="torch", order="F")
    assert shared.data_ptr() == array.ctypes.data


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
def test_sparse_arrays_are_written_in_the_order(layout: str) -> None:
    """SciPy's arrays become dense in Fortran order by one step, as in C order."""
    pytest.importorskip("scipy")
    dense = np.arange(35.0).reshape(5, 7) * (np.arange(35).reshape(5, 7) % 3 == 0)
    sparse = interop.convert(dense, to=f"scipy.{layout}")
    for order in ("C", "F"):
        assert labels(interop.plan(sparse, to="numpy", order=order)) == ["to_dense"]
        result = interop.convert(sparse, to="numpy", order=order)
        assert result.flags.c_contiguous if order == "C" else result.flags.f_contiguous
        np.testing.assert_array_equal(result, dense)


def test_tied_weights_stay_tied() -> None:
    """Two tensors over the same memory become one copy in another order."""
    weight = torch.arange(6.0).reshape(2, 3)
    state = {"a": weight, "b": weight.detach(), "c": weight.T}
    for order in ("C", "F"):
        result = interop.convert_tree(state, to="torch", order=order)
        assert result["a"].data_ptr() == result["b"].data_ptr()
        assert [x.tolist() for x in result.values()] == [x.tolist() for x in state.values()]
        lies = torch.Tensor.is_contiguous if order == "C" else _is_fortran
        assert all(map(lies, result.values()))


@pytest.mark.parametrize(
    "to",
    marked(
        [
            *("python", "pandas.dataframe", "polars.dataframe", "pyarrow.table", "scipy.csr"),
            *("dask", "jax", "tensorflow", "torch.sparse_coo", "pyarrow.fixed_size_list"),
        ]
    ),
)
def test_targets_without_strides_serve_as_c(to: str) -> None:
    """Tables, lists, sparse and lazy arrays, JAX and TensorFlow are "C", and never "F"."""
    pytest.importorskip(to.partition(".")[0] if to != "python" else "numpy")
    array = ROWS.astype("f4")
    for value in (array, array.T):
        result = interop.convert(value, to=to, order="C")
        assert interop.spec(result).format == to
        back = interop.convert(result, to="numpy")
        np.testing.assert_array_equal(back, value)
        with pytest.raises(RefusedError):
            interop.convert(value, to=to, order="F")


@pytest.mark.parametrize(
    "to", ["pandas.dataframe", "polars.dataframe", "pyarrow.table", "scipy.csr", "dask", "python"]
)
def test_c_asks_nothing_of_what_has_no_order(to: str) -> None:
    """Tables, lists, sparse and lazy arrays are made by the same steps with "C" and without."""
    pytest.importorskip(to.partition(".")[0] if to != "python" else "numpy")
    for value in (ROWS, ROWS.T):
        assert labels(interop.plan(value, to=to, order="C")) == labels(interop.plan(value, to=to))


def test_one_axis_has_one_order() -> None:
    """Where C and Fortran order are the same, every target has both."""
    for to in ("python", "jax", "pandas.series", "pyarrow", "polars.series"):
        for order in ("C", "F"):
            result = interop.convert(np.ones(3, "f4"), to=to, order=order)
            assert interop.convert(result, to="python") == [1, 1, 1]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": [1, 2, 3], "b": [1.0, 2.0, 3.0]}),
        pd.DataFrame({"a": pd.array([1, 2, None], "Int64"), "b": pd.array([1, 2, 3], "Int64")}),
        pd.DataFrame(ROWS),
        pl.DataFrame({"a": [1.0, 2.0, 3.0], "b": [4.0, None, 6.0]}),
        pl.DataFrame({"a": [1, 2, 3], "b": [1.0, 2.0, 3.0]}),
        pl.from_numpy(np.asfortranarray(ROWS)),
    ],
    ids=["mixed", "nullable", "block", "nulls", "polars mixed", "polars block"],
)
def test_columns_are_in_fortran_order_without_a_second_copy(frame: Any) -> None:
    """Frames keep columns, so that "F" takes the steps that no order takes, and "C" one more."""
    keywords: Any = {"to": "numpy", "allow": {"drop_mask"}}
    free = labels(interop.plan(frame, **keywords))
    assert labels(interop.plan(frame, order="F", **keywords)) == free
    by_columns = interop.convert(frame, order="F", **keywords)
    assert by_columns.flags.f_contiguous
    assert labels(interop.plan(frame, order="C", **keywords)) == [*free, "copy"]
    by_rows = interop.convert(frame, order="C", **keywords)
    assert by_rows.flags.c_contiguous
    np.testing.assert_array_equal(by_rows, by_columns)
