"""Trees and calls in which every array takes a fast path: strange values get what they got before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import interop
from interop import Interop
from interop._api import accepts, leaves
from interop.errors import InteropError, RefusedError
from tests.api.test_fast_keywords import STRANGE, facts
from tests.inside import forget


def _warmed(mine: Interop) -> Interop:
    """Return an instance that has a fast path for the leaves of every plain type."""
    for to in ("numpy", "torch"):
        for _ in range(3):
            mine.convert_tree({"a": torch.ones(2), "b": np.ones(2), "c": 1.5}, to=to)
    return mine


@pytest.fixture(scope="module")
def kept() -> Interop:
    """An instance that several tests warm, none of which registers anything."""
    return Interop()


@pytest.fixture
def warm(kept: Interop) -> Interop:
    """An instance that has a fast path for the leaves of every plain type, and no others."""
    return _warmed(forget(kept))


@pytest.fixture(scope="module")
def cold() -> Interop:
    """An instance that is made to forget all before it is asked."""
    return Interop()


@pytest.mark.parametrize("to", ["numpy", "torch"])
@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_argument_gets_what_a_cold_process_gives_it(
    name: str, to: str, warm: Interop, cold: Interop
) -> None:
    """A function is given, and gives back, what it is in its first call."""

    def function(plain: Any, odd: Any) -> Any:
        return {"odd": odd}

    value, plain = STRANGE[name](), torch.ones(2) if to == "numpy" else np.ones(2)
    called = warm.accepts(to)(function)
    for _ in range(3):
        called(plain, plain)
    expected = facts(lambda: forget(cold).accepts(to)(function)(plain, value)["odd"], value)
    assert facts(lambda: called(plain, value)["odd"], value) == expected


def test_a_warm_tree_is_made_of_views(warm: Interop) -> None:
    """The arrays lie where the tensors do; containers are new, and all else passes through."""
    tensor, text = torch.arange(3.0), "text"
    tree = {"list": [tensor, text, None], "tuple": (tensor, 1), "twice": tensor}
    result = warm.convert_tree(tree, to="numpy")
    first = result["list"][0]
    assert first.ctypes.data == tensor.data_ptr()
    assert result["tuple"][0] is first is result["twice"]
    assert result["list"][1:] == [text, None]
    assert type(result["tuple"]) is tuple
    assert tree["list"][0] is tensor


def test_a_policy_holds_in_a_warm_tree(warm: Interop) -> None:
    """What is forbidden around a call is refused in a tree and in a function's arguments."""
    series, labelled = pd.Series([1.0, 2.0]), pd.Series([1.0, 2.0], index=["a", "b"])
    total = warm.accepts("numpy")(np.sum)
    for _ in range(2):
        warm.convert_tree([series], to="numpy")
        total(series)
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
    series, grad = pd.Series([1.0, 2.0], index=["a", "b"]), torch.ones(2, requires_grad=True)
    same = warm.accepts("numpy", allow="detach")(lambda x: x)
    calls: list[Callable[[], Any]] = [
        lambda: warm.convert_tree([series], to="numpy"),
        lambda: warm.convert_tree({"x": series}, to="numpy", dtype="float64"),
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
    tensor = torch.ones(2)
    plain: list[Callable[[], Any]] = [
        lambda: warm.convert_tree([tensor], to="numpy"),
        lambda: warm.convert_tree([tensor], to="numpy", copy=False),
        lambda: same(tensor),
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
        warm.convert_tree([torch.ones(1), torch.ones(2)], to="numpy")
        warm.accepts("numpy")(lambda x: x)(torch.ones(1))
    assert len(trace) == 4


def test_a_registration_is_followed_at_once() -> None:
    """A cheaper conversion that is registered later is taken by trees and calls that were warm."""
    from interop.plugin import Conversion, Cost

    warm = _warmed(Interop())
    marked = np.full(2, 7.0, "f4")
    warm_call = warm.accepts("numpy")(lambda x: x.sum())
    assert [float(warm_call(torch.ones(2))) for _ in range(3)] == [2.0] * 3
    replaces = {"array-interop"}
    warm.register(
        Conversion("torch", "numpy", lambda tensor: marked, cost=Cost(0.0), replaces=replaces)
    )
    assert float(warm_call(torch.ones(2))) == 14.0
    assert warm.convert_tree([torch.ones(2)], to="numpy")[0][0] == 7.0


def test_a_function_that_fails_is_called_once(warm: Interop) -> None:
    """Its error is the caller's, and nothing is tried again."""
    calls = []

    def fails(x: Any) -> None:
        calls.append(x)
        if len(calls) > 2:
            msg = "no"
            raise KeyError(msg)

    called = warm.accepts("numpy")(fails)
    called(torch.ones(1))
    called(torch.ones(1))
    with pytest.raises(KeyError, match="no"):
        called(torch.ones(1))
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
    results = [called(step, torch.arange(3.0)) for step in (1, 1, -1)]
    assert len(calls) == 3
    assert [type(result) for result in results] == [torch.Tensor] * 3
    assert results[2].tolist() == [2.0, 1.0, 0.0]


def test_a_warm_call_with_several_arrays_and_keywords_describes_nothing(
    warm: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An array that is two arguments is converted once, without a copy, and results come back."""
    seen: list[tuple[Any, Any]] = []

    def function(x: Any, y: Any, scale: int = 1) -> Any:
        seen.append((x, y))
        return x * scale

    called, tensor = warm.accepts("numpy")(function), torch.arange(3.0)
    for _ in range(2):
        called(tensor, y=tensor, scale=2)
    monkeypatch.setattr(warm._registry.recognition, "describe", None)
    result = called(tensor, y=tensor, scale=2)
    assert torch.equal(result, torch.tensor([0.0, 2.0, 4.0]))
    first, second = seen[-1]
    assert first is second
    assert first.ctypes.data == tensor.data_ptr()


@pytest.mark.parametrize("to", ["numpy", "torch"])
def test_numbers_of_a_tree_take_fast_paths_each_at_its_place(
    to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One number at several places gets several arrays, of the dtypes that a plan gives them."""
    number, mine = 1.5, Interop()
    tree = {"a": number, "b": [number, 7, 7, True], "c": np.ones(2), "d": "text", "e": 2j}
    (planned, *again) = (mine.convert_tree(tree, to=to, others="convert") for _ in range(2))
    monkeypatch.setattr(mine._registry.recognition, "describe", None)  # no value is planned again
    again.append(mine.convert_tree(tree, to=to, others="convert"))
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
    assert mine.convert_tree(tree, to=to)["b"] == [number, 7, 7, True]


def test_a_number_that_its_fast_path_leaves_out_is_planned() -> None:
    """An integer that int64 does not hold gets the dtype, or the refusal, that a plan gives it."""
    mine = Interop()
    for _ in range(2):
        mine.convert_tree([1, 2], to="numpy", others="convert")
    large, small = mine.convert_tree([2**63, 1], to="numpy", others="convert")
    assert (str(large.dtype), str(small.dtype), int(large)) == ("uint64", "int64", 2**63)
    with pytest.raises(InteropError, match=r"^1: "):
        mine.convert_tree([1, 2**80 + 1], to="torch", others="convert")
