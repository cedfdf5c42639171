"""Trees and calls in which every array takes a fast path: strange values get what they got before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

import interop
from interop import Interop
from interop._api import accepts, leaves
from interop.errors import InteropError, RefusedError
from tests.inside import forget
from tests.kit.library import Array, Quantity, arange, ones
from tests.kit.library_plugin import with_library
from tests.toys import Box, toy, view


def _warmed(mine: Interop) -> Interop:
    """Return an instance that has a fast path for the leaves of every plain type."""
    for to in ("numpy", "library"):
        for _ in range(3):
            mine.convert_tree({"a": ones(2), "b": np.ones(2), "c": 1.5}, to=to)
    return mine


@pytest.fixture(scope="module")
def kept() -> Interop:
    """An instance that several tests warm, none of which registers anything."""
    return with_library()


@pytest.fixture
def warm(kept: Interop) -> Interop:
    """An instance that has a fast path for the leaves of every plain type, and no others."""
    return _warmed(forget(kept))


def test_a_warm_tree_is_made_of_views(warm: Interop) -> None:
    """The arrays lie where the tensors do; containers are new, and all else passes through."""
    array, text = arange(3), "text"
    tree = {"list": [array, text, None], "tuple": (array, 1), "twice": array}
    result = warm.convert_tree(tree, to="numpy")
    first = result["list"][0]
    assert first.ctypes.data == array.data.ctypes.data
    assert result["tuple"][0] is first is result["twice"]
    assert result["list"][1:] == [text, None]
    assert type(result["tuple"]) is tuple
    assert tree["list"][0] is array


def test_a_policy_holds_in_a_warm_tree(warm: Interop) -> None:
    """What is forbidden around a call is refused in a tree and in a function's arguments."""
    plain, labelled = Quantity(np.ones(2)), Quantity(np.ones(2), "m")
    total = warm.accepts("numpy")(np.sum)
    for _ in range(2):
        warm.convert_tree([plain], to="numpy")
        total(plain)
    warm.convert_tree([labelled], to="numpy")
    with interop.policy(forbid="drop_labels"):
        with pytest.raises(RefusedError):
            warm.convert_tree([labelled], to="numpy")
        with pytest.raises(RefusedError):
            total(labelled)


def test_what_is_learnt_in_a_block_serves_calls_in_blocks_of_its_policy_alone(
    warm: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Warm trees and arguments take the short way in a block, too, and each block has its own."""
    length, grad = Quantity(np.ones(2), "m"), Array(np.ones(2), requires_grad=True)
    same = warm.accepts("numpy", allow="detach")(lambda x: x)
    calls: list[Callable[[], Any]] = [
        lambda: warm.convert_tree([length], to="numpy"),
        lambda: warm.convert_tree({"x": length}, to="numpy", dtype="float64"),
        lambda: warm.convert_tree([grad], to="numpy"),
        lambda: same(grad),
    ]
    refused = {"drop_labels": {0, 1}, "detach": {2}, "transfer": set()}
    for _ in range(3):
        for forbidden, numbers in refused.items():
            with interop.policy(forbid=forbidden):
                for number, call in enumerate(calls):
                    with pytest.raises(RefusedError) if number in numbers else nullcontext():
                        call()
        for call in calls:
            call()
    mine, box, array = Interop(plugins=False), Box("a", [1.0]), ones(2)
    mine.register(toy("a"), toy("b"), view("a", "b", fast_path=lambda box: Box("b", box.numbers)))
    plain: list[Callable[[], Any]] = [
        lambda: mine.convert_tree([box], to="b"),
        lambda: mine.convert_tree([box], to="b", copy=False),
        lambda: same(array),
    ]
    with interop.policy(forbid="transfer"):
        for call in plain * 3:
            call()
        for owner, name in ((leaves.Trees, "converted"), (accepts.Calls, "planned")):
            monkeypatch.setattr(owner, name, None)
        for call in plain:
            call()
    with interop.policy(forbid="copy"):
        for call in plain:
            with pytest.raises(TypeError):  # the long way, which is gone
                call()


def test_a_trace_sees_every_array_of_a_warm_tree(warm: Interop) -> None:
    """No array takes a fast path past an open trace."""
    with interop.trace() as trace:
        warm.convert_tree([ones(1), ones(2)], to="numpy")
        warm.accepts("numpy")(lambda x: x)(ones(1))
    assert len(trace) == 4


def test_a_registration_is_followed_at_once() -> None:
    """A cheaper conversion that is registered later is taken by trees and calls that were warm."""
    from interop.plugin import Conversion, Cost

    warm = _warmed(with_library())
    marked = np.full(2, 7.0, "f4")
    warm_call = warm.accepts("numpy")(lambda x: x.sum())
    assert [float(warm_call(ones(2)).data) for _ in range(3)] == [2.0] * 3
    replaces = {"array-interop"}
    warm.register(
        Conversion("library", "numpy", lambda array: marked, cost=Cost(0.0), replaces=replaces)
    )
    assert float(warm_call(ones(2)).data) == 14.0
    assert warm.convert_tree([ones(2)], to="numpy")[0][0] == 7.0


def test_a_function_that_fails_is_called_once(warm: Interop) -> None:
    """Its error is the caller's, and nothing is tried again."""
    calls = []

    def fails(x: Any) -> None:
        calls.append(x)
        if len(calls) > 2:
            msg = "no"
            raise KeyError(msg)

    called = warm.accepts("numpy")(fails)
    called(ones(1))
    called(ones(1))
    with pytest.raises(KeyError, match="no"):
        called(ones(1))
    assert len(calls) == 3


def test_a_strange_result_is_given_back_without_another_call(warm: Interop) -> None:
    """A result without a fast path goes back to the first array, from the one call made.

    An argument that is no array, such as a number before the arrays, decides nothing.
    """
    calls = []

    def function(step: int, x: Any) -> Any:
        calls.append(x)
        return np.asarray(x)[::step]

    called = warm.accepts("numpy")(function)
    results = [called(step, arange(3)) for step in (1, 1, -1)]
    assert len(calls) == 3
    assert [type(result) for result in results] == [Array] * 3
    assert results[2].data.tolist() == [2.0, 1.0, 0.0]


def test_a_warm_call_with_several_arrays_and_keywords_describes_nothing(
    warm: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An array that is two arguments is converted once, without a copy, and results come back."""
    seen: list[tuple[Any, Any]] = []

    def function(x: Any, y: Any, scale: int = 1) -> Any:
        seen.append((x, y))
        return x * scale

    called, array = warm.accepts("numpy")(function), arange(3)
    for _ in range(2):
        called(array, y=array, scale=2)
    monkeypatch.setattr(warm._registry.recognition, "describe", None)
    result = called(array, y=array, scale=2)
    assert result.data.tolist() == [0.0, 2.0, 4.0]
    first, second = seen[-1]
    assert first is second
    assert first.ctypes.data == array.data.ctypes.data


def test_numbers_of_a_tree_take_fast_paths_each_at_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One number at several places gets several arrays, of the dtypes that a plan gives them."""
    number, mine = 1.5, Interop()
    tree = {"a": number, "b": [number, 7, 7, True], "c": np.ones(2), "d": "text", "e": 2j}
    (planned, *again) = (mine.convert_tree(tree, to="numpy", others="convert") for _ in range(2))
    monkeypatch.setattr(mine._registry.recognition, "describe", None)  # no value is planned again
    again.append(mine.convert_tree(tree, to="numpy", others="convert"))
    for result in again:
        assert repr(result) == repr(planned)
        arrays = [result["a"], *result["b"], result["e"]]
        assert [x.dtype for x in arrays] == [
            x.dtype for x in (planned["a"], *planned["b"], planned["e"])
        ]
        arrays[0][...] = 0
        assert float(arrays[1]) == number
        assert int(arrays[2]) == int(arrays[3]) == 7
        assert arrays[2] is not arrays[3]
        assert len({id(x) for x in arrays}) == len(arrays)
    assert mine.convert_tree(tree, to="numpy")["b"] == [number, 7, 7, True]


def test_a_number_that_its_fast_path_leaves_out_is_planned() -> None:
    """An integer that int64 does not hold gets the dtype, or the refusal, that a plan gives it."""
    mine = Interop()
    for _ in range(2):
        mine.convert_tree([1, 2], to="numpy", others="convert")
    large, small = mine.convert_tree([2**63, 1], to="numpy", others="convert")
    assert (str(large.dtype), str(small.dtype), int(large)) == ("uint64", "int64", 2**63)
    with pytest.raises(InteropError, match=r"^1: "):
        mine.convert_tree([1, 2**80 + 1], to="numpy", others="convert")
