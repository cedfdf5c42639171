"""``order=``: what each function does with it."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import interop
from interop import Interop
from interop.errors import BadRequestError, RefusedError
from tests.toys import labels

ROWS = np.arange(12.0).reshape(3, 4)


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
        shared = CALLS[call](ROWS, "numpy", order="C")
        assert shared.ctypes.data == ROWS.ctypes.data
        turned = CALLS[call](ROWS, "numpy", order="F")
        assert turned.flags.f_contiguous
        assert turned.tolist() == ROWS.tolist()
        shared = CALLS[call](ROWS.T, "numpy", order="F")
        assert shared.ctypes.data == ROWS.ctypes.data
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
    for keywords in ({"copy": True}, {"dtype": "float16"}):
        result = interop.convert(repeated, to="numpy", **keywords)
        assert interop.spec(result).traits == frozenset()
    turned = interop.convert(repeated, to="numpy", copy=True, order="F")
    assert interop.spec(turned).traits == {"noncontiguous", "fortran"}


def test_like_gives_the_format_and_order_the_order() -> None:
    """``order=`` holds beside ``like=``, whose own order does not count."""
    like = np.ones((2, 2)).T
    assert interop.convert(ROWS, like=like, order="F").flags.f_contiguous
    assert interop.convert(ROWS, like=like, order="C") is ROWS


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


@pytest.mark.parametrize("size", [2**9, 2**10 + 3])
def test_large_arrays_are_turned_block_by_block(size: int) -> None:
    """Copies that are divided among threads have the same numbers in the same order."""
    array = np.arange(float(size * size)).reshape(size, size)
    result = interop.convert(array, to="numpy", order="F")
    assert result.flags.f_contiguous
    np.testing.assert_array_equal(result, array)


def test_casts_of_what_lies_as_asked_are_one_step() -> None:
    """An array in either order is cast or copied to the order that is asked for in one step."""
    for value in (ROWS, ROWS.T):
        for order in ("C", "F"):
            for keywords in ({"dtype": "float32"}, {"copy": True}):
                plan = interop.plan(value, to="numpy", order=order, **keywords)
                assert len(plan.steps) == 1
                result = np.asarray(plan(value))
                assert result.flags.c_contiguous if order == "C" else result.flags.f_contiguous
                np.testing.assert_array_equal(result, np.asarray(value))


def test_targets_without_strides_serve_as_c() -> None:
    """Lists are made by the same steps with "C" and without, never with "F", unless of one axis."""
    for value in (ROWS, ROWS.T):
        plan = interop.plan(value, to="python", order="C")
        assert labels(plan) == labels(interop.plan(value, to="python"))
        assert plan(value) == value.tolist()
        with pytest.raises(RefusedError):
            interop.convert(value, to="python", order="F")
    for order in ("C", "F"):
        assert interop.convert(np.ones(3, "f4"), to="python", order=order) == [1, 1, 1]


def test_tied_arrays_stay_tied() -> None:
    """Two views of the same memory become one copy in another order."""
    state = {"a": ROWS, "b": ROWS[:], "c": ROWS.T}
    for order in ("C", "F"):
        result = interop.convert_tree(state, to="numpy", order=order, copy=True)
        assert result["a"] is result["b"]
        assert [x.tolist() for x in result.values()] == [x.tolist() for x in state.values()]
        flag = f"{order.lower()}_contiguous"
        assert all(getattr(x.flags, flag) for x in result.values())


def test_another_target_serves_where_one_cannot() -> None:
    """Of several targets, one that has the order is taken."""
    assert isinstance(interop.convert(ROWS, to=["python", "numpy"], order="F"), np.ndarray)


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
