"""``order=``: what each function does with it, and for values that are more than strided arrays."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

import interop
from interop import Interop
from interop.errors import BadRequestError, RefusedError
from tests.cases import marked
from tests.toys import labels

ROWS = np.arange(12.0).reshape(3, 4)


def _is_fortran(tensor: torch.Tensor) -> bool:
    return tensor.permute(*reversed(range(tensor.ndim))).is_contiguous()


CALLS: dict[str, Callable[..., Any]] = {
    "convert": interop.convert,
    "converter": lambda x, to, **keywords: interop.converter(to, **keywords)(x),
    "pickled": lambda x, to, **keywords: pickle.loads(
        pickle.dumps(interop.converter(to, **keywords))
    )(x),
    "plan": lambda x, to, **keywords: interop.plan(x, to, **keywords)(x),
    "convert_tree": lambda x, to, **keywords: interop.convert_tree({"x": [x]}, to, **keywords)["x"][
        0
    ],
    "Interop": lambda x, to, **keywords: Interop().convert(x, to, **keywords),
}


@pytest.mark.parametrize("call", CALLS)
def test_every_function_lays_results_out_as_asked(call: str) -> None:
    """`convert`, `converter`, `convert_tree` and routes give the order, cold and warm."""
    for _ in range(3):
        shared = CALLS[call](ROWS, "torch", order="C")
        assert shared.data_ptr() == ROWS.ctypes.data
        turned = CALLS[call](ROWS, "torch", order="F")
        assert _is_fortran(turned)
        assert turned.tolist() == ROWS.tolist()
        shared = CALLS[call](ROWS.T, "torch", order="F")
        assert shared.data_ptr() == ROWS.ctypes.data
        copied = CALLS[call](ROWS.T, "numpy", order="C")
        assert copied.flags.c_contiguous
        assert copied.tolist() == ROWS.T.tolist()


def test_warm_calls_tell_layouts_apart() -> None:
    """A call that has learnt a fast path for one layout copies the others that it must."""
    mine = Interop()
    column, wide = np.arange(12.0).reshape(12, 1), np.arange(12.0).reshape(2, 6)
    for order in ("C", "F", "C", "F"):
        for _ in range(3):
            for array in (column, wide, wide.T, wide[:, ::2], wide.astype("f4"), column[:, 0]):
                result = mine.convert(array, to="numpy", order=order)
                expected = np.asarray(array, order=order)
                assert result.strides == expected.strides
                assert (result is array) == (expected is array)
                fresh = mine.convert(array, to="numpy", order=order, copy=True)
                assert not np.shares_memory(fresh, array)
                assert fresh.flags.c_contiguous if order == "C" else fresh.flags.f_contiguous
                plain = mine.convert(array, to="numpy")
                assert plain is array


def test_calls_without_an_order_never_turn_elements() -> None:
    """A copy keeps the order in which elements lie, and repeated ones are copied in C order."""
    repeated = np.broadcast_to(np.arange(4.0)[:, None], (4, 3))
    for to, value in (("numpy", repeated), ("torch", torch.arange(4.0)[:, None].expand(4, 3))):
        for keywords in ({"copy": True}, {"dtype": "float16"}):
            result = interop.convert(value, to=to, **keywords)
            assert interop.spec(result).traits == frozenset()
        turned = interop.convert(value, to=to, copy=True, order="F")
        assert interop.spec(turned).traits == {"noncontiguous", "fortran"}


def test_like_gives_the_format_and_order_the_order() -> None:
    """``order=`` holds beside ``like=``, whose own order does not count."""
    like = torch.ones(2, 2).T
    result = interop.convert(ROWS, like=like, order="F")
    assert _is_fortran(result)
    assert interop.convert(ROWS, like=like, order="C").data_ptr() == ROWS.ctypes.data


def test_a_mapping_of_dtypes_goes_with_an_order() -> None:
    """The dtype of a value decides its cast, and all results lie as asked."""
    tree = {"a": ROWS, "b": ROWS.astype("i8"), "c": np.ones((3, 1))}
    dtypes = {"real floating": "float32"}
    result = interop.convert_tree(tree, to="numpy", dtype=dtypes, order="F")
    assert [x.dtype.name for x in result.values()] == ["float32", "int64", "float32"]
    assert all(x.flags.f_contiguous for x in result.values())


def test_an_order_that_there_is_not_is_refused() -> None:
    """Other words of NumPy's ``order=`` say nothing that a result could be held to."""
    for order in ("K", "A", "c", 1, True, b"C", ["C"]):
        with pytest.raises(BadRequestError):
            interop.convert(ROWS, to="numpy", order=order)
        with pytest.raises(BadRequestError):
            interop.converter("numpy", order=order)


def test_out_has_an_order_of_its_own() -> None:
    """``order=`` beside ``out=`` is refused before anything is written."""
    out = np.zeros((3, 4))
    for order in ("C", "F"):
        with pytest.raises(BadRequestError):
            interop.convert(ROWS, out=out, order=order)
    assert not out.any()


# ---------------------------------------------------------------------- torch


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


@pytest.mark.parametrize("size", [2**9, 2**10 + 3])
def test_large_arrays_are_turned_block_by_block(size: int) -> None:
    """Copies that are divided among threads have the same numbers in the same order."""
    array = np.arange(float(size * size)).reshape(size, size)
    for value in (array, torch.from_numpy(array)):
        result = interop.convert(value, to="numpy", order="F")
        assert result.flags.f_contiguous
        np.testing.assert_array_equal(result, array)


def test_casts_of_what_lies_as_asked_are_one_step() -> None:
    """An array in either order is cast or copied to the order that is asked for in one step."""
    for value in (ROWS, ROWS.T, torch.from_numpy(ROWS), torch.from_numpy(ROWS).T):
        to = interop.spec(value).format
        for order in ("C", "F"):
            for keywords in ({"dtype": "float32"}, {"copy": True}):
                plan = interop.plan(value, to=to, order=order, **keywords)
                assert len(plan.steps) == 1
                result = np.asarray(plan(value))
                assert result.flags.c_contiguous if order == "C" else result.flags.f_contiguous
                np.testing.assert_array_equal(result, np.asarray(value))


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


# ---------------------------------------------------------------------- trees


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


# ---------------------------------------------------------------------- other targets


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


def test_another_target_serves_where_one_cannot() -> None:
    """Of several targets, one that has the order is taken."""
    assert isinstance(interop.convert(ROWS, to=["python", "numpy"], order="F"), np.ndarray)


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


def test_devices_turn_elements_where_they_lie() -> None:
    """On a device the copy is made there, and what lies as asked is shared between frameworks."""
    spec = interop.make_spec("torch", "float32", device="cuda:0", shape=(64, 32))
    turned = interop.plan(spec, to="cupy", order="F")
    assert "copy" in turned.effects
    assert turned.result.device == "cuda:0"
    assert turned.result.traits == {"noncontiguous", "fortran"}
    assert all(step.after.device == "cuda:0" for step in turned.steps)
    assert interop.plan(spec, to="cupy", order="C", copy=False).zero_copy
    fortran = spec._replace(traits=frozenset({"noncontiguous", "fortran"}))
    assert interop.plan(fortran, to="cupy", order="F", copy=False).zero_copy
    with pytest.raises(RefusedError):
        interop.plan(fortran, to="cupy", order="C", copy=False)
    down = interop.plan(spec, to="numpy", order="F")
    assert down.effects == {"transfer", "copy"}
    assert down.result.traits == {"noncontiguous", "fortran"}
