"""Trees and calls in which every array takes a fast path: strange values get what they got before."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import interop
from interop import Interop
from interop._execution.trace import shares_memory
from interop.errors import BadRequestError, InteropError, RefusedError, UnknownValueError
from tests.toys import forget


class Special(np.ndarray):
    """A subclass, for which nothing was learnt."""


def _locked() -> np.ndarray:
    array = np.arange(4.0)
    array.flags.writeable = False
    return array


#: What is not plain, and yet of a type for which a fast path is kept.
STRANGE: dict[str, Callable[[], Any]] = {
    "grad": lambda: torch.ones(4, requires_grad=True),
    "conj": lambda: torch.tensor([1 + 2j, 3 - 1j]).conj(),
    "neg": lambda: torch._neg_view(torch.arange(4.0)),
    "bfloat16": lambda: torch.ones(4, dtype=torch.bfloat16),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "meta": lambda: torch.ones(4, device="meta"),
    "parameter": lambda: torch.nn.Parameter(torch.ones(2)),
    "read-only": _locked,
    "byte-swapped": lambda: np.arange(4, dtype=">f8"),
    "masked": lambda: np.ma.masked_array([1.0, 2.0], mask=[True, False]),
    "subclass": lambda: np.arange(4.0).view(Special),
    "strings": lambda: np.array(["a", "b"]),
    "numpy scalar": lambda: np.float64(2.5),
    "bytes": lambda: bytearray(b"abcd"),
    "range": lambda: range(3),
}


def _facts(convert: Callable[[], Any], value: Any) -> tuple[object, ...]:
    """Return what can be told of a result and its memory, or of an error."""
    try:
        result = convert()["odd"]
    except InteropError as error:
        return type(error), str(error)
    if not isinstance(result, (np.ndarray, torch.Tensor)):
        return type(result), result
    shares = shares_memory(interop.default._registry.loaded(), value, result)
    return type(result), interop.spec(result), repr(result), shares, result is value


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
def test_a_strange_leaf_gets_what_a_cold_process_gives_it(
    name: str, to: str, warm: Interop, cold: Interop
) -> None:
    """Value, dtype, memory and error are those of the first call of a process."""
    value = STRANGE[name]()
    tree = {"plain": torch.ones(2), "also": np.zeros(2), "odd": value}
    expected = _facts(lambda: forget(cold).convert_tree(tree, to=to), value)
    assert _facts(lambda: warm.convert_tree(tree, to=to), value) == expected


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
    expected = _facts(lambda: forget(cold).accepts(to)(function)(plain, value), value)
    assert _facts(lambda: called(plain, value), value) == expected


#: Keywords with which trees of plain leaves are walked without a plan once they are warm.
KEYWORDS: dict[str, dict[str, Any]] = {
    "copy": {"copy": True},
    "no copy": {"copy": False},
    "wider": {"dtype": "float64"},
    "narrower": {"dtype": "float16"},
    "whole": {"dtype": "int32"},
    "all": {"dtype": "float64", "cast_all": True},
    "all copied": {"dtype": "float32", "copy": True},
    "device": {"device": "cpu"},
    "forbid": {"forbid": "detach", "copy": True},
    "others refused": {"others": "refuse"},
    "others converted": {"others": "convert"},
}
PLAIN = {
    "f": lambda: torch.arange(3.0),
    "d": lambda: np.arange(3.0),
    "i": lambda: torch.arange(3),
    "b": lambda: np.array([True, False]),
    "h": lambda: torch.arange(3, dtype=torch.bfloat16),
    "c": lambda: np.array([1 + 2j]),
    "n": lambda: 1.5,
}


@pytest.fixture(scope="module")
def warm_with_keywords() -> Interop:
    """An instance that has converted trees of all plain leaves with all keywords."""
    mine = Interop()
    for keywords in KEYWORDS.values():
        for to in ("numpy", "torch"):
            for make in PLAIN.values():
                with suppress(InteropError):
                    for _ in range(3):
                        mine.convert_tree({"odd": make()}, to=to, **keywords)
    return mine


@pytest.mark.parametrize("to", ["numpy", "torch"])
@pytest.mark.parametrize("name", [*STRANGE, *PLAIN])
def test_a_leaf_gets_what_a_cold_process_gives_it_with_keywords(
    name: str, to: str, warm_with_keywords: Interop, cold: Interop
) -> None:
    """Value, dtype, memory and error are those of a call that takes no fast path."""
    make = {**STRANGE, **PLAIN}[name]
    for asked, keywords in KEYWORDS.items():
        outcomes = []
        for mine in (forget(cold), warm_with_keywords):
            value = make()
            tree = {"plain": torch.ones(2), "also": np.zeros(2), "odd": value}
            convert = partial(mine.convert_tree, tree, to=to, **keywords)
            outcomes.append(_facts(convert, value))
        assert outcomes[0] == outcomes[1], asked


@pytest.mark.parametrize("keywords", KEYWORDS.values(), ids=KEYWORDS)
def test_plain_trees_with_keywords_are_walked_without_a_plan(
    keywords: dict[str, Any], warm_with_keywords: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No leaf is described once trees like it were converted."""

    def described(value: Any) -> Any:
        msg = f"{type(value)} is described"
        raise AssertionError(msg)

    tree = [torch.arange(3.0), {"ids": torch.arange(3)}, (np.ones(2), None)]
    expected = warm_with_keywords.convert_tree(tree, to="numpy", **keywords)
    with monkeypatch.context() as patches:
        patches.setattr(warm_with_keywords._registry, "describe", described)
        result = warm_with_keywords.convert_tree(tree, to="numpy", **keywords)
    assert repr(result) == repr(expected)


@pytest.mark.parametrize("keywords", [{"copy": True}, {"dtype": "float64"}], ids=["copy", "dtype"])
def test_only_the_large_leaf_of_a_tree_is_planned(
    keywords: dict[str, Any], warm_with_keywords: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The small leaves beside it take their fast paths, and it comes as it does alone."""
    large, small = torch.arange(2.0**22), torch.arange(3.0)
    tree = {"a": small, "b": (large, [large, None]), "c": np.ones(3, "float32")}
    mine, described = warm_with_keywords, []
    for warming in ({**tree, "b": None}, tree):
        mine.convert_tree(warming, to="numpy", **keywords)
    describe = mine._registry.describe
    monkeypatch.setattr(
        mine._registry, "describe", lambda value: described.append(value) or describe(value)
    )
    result = mine.convert_tree(tree, to="numpy", **keywords)
    assert [value is large for value in described] == [True]
    assert result["b"][0] is result["b"][1][0]
    for array, value in ((result["a"], small), (result["b"][0], large), (result["c"], tree["c"])):
        np.testing.assert_array_equal(array, value)
        assert array.dtype == keywords.get("dtype", "float32")
        assert not np.shares_memory(array, np.asarray(value))


@pytest.mark.parametrize("side", [2, 2**10], ids=["small", "large"])
@pytest.mark.parametrize("keywords", [{"copy": True}, {"dtype": "float64"}], ids=["copy", "dtype"])
def test_warm_trees_with_keywords_keep_what_is_tied(
    keywords: dict[str, Any], side: int, warm_with_keywords: Interop
) -> None:
    """The same elements are one array; the same bytes as others, in another order, or none, are not."""
    weight, empty = torch.arange(side**2 * 1.0).reshape(side, side), torch.zeros(2, 0)
    cases = {
        "twice": (weight, weight, True),
        "tied": (weight, weight.view(side, side), True),
        "detached": (weight, weight.detach(), True),
        "reshaped": (weight, weight.reshape(-1), False),
        "as bits": (weight, weight.view(torch.int32), False),
        "turned": (weight, weight.T, False),
        "begun": (weight, weight[:1], False),
        "apart": (weight, weight.clone(), False),
        "empty": (empty, empty.view(2, 0), False),
        "the same empty": (empty, empty, True),
    }
    for name, (first, second, tied) in cases.items():
        for tree in ([first, second], [second, first]):
            result = warm_with_keywords.convert_tree(tree, to="numpy", **keywords)
            assert (result[0] is result[1]) is tied, name
            for array, tensor in zip(result, tree, strict=True):
                np.testing.assert_array_equal(array, tensor, name)
                assert (
                    array.size == 0 or array.ctypes.data != tensor.data_ptr() or name == "as bits"
                )


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


def test_a_warm_state_dict_keeps_its_attributes(warm: Interop) -> None:
    """What torch keeps beside the tensors of a state dict is there, and the tree is as it was."""
    state = torch.nn.BatchNorm1d(2).state_dict()
    result = warm.convert_tree(state, to="numpy")
    assert type(result) is OrderedDict
    assert result._metadata == state._metadata
    assert list(result) == list(state)
    assert isinstance(result["weight"], np.ndarray)
    assert isinstance(state["weight"], torch.Tensor)


def test_numbers_pass_through_although_one_alone_is_converted(warm: Interop) -> None:
    """A fast path kept for Python's numbers is not taken inside a tree."""
    for _ in range(3):
        assert isinstance(warm.convert(2.5, to="numpy"), np.ndarray)
        assert isinstance(warm.convert([2.5], to="numpy"), np.ndarray)
    result = warm.convert_tree([2.5, [1], torch.ones(1)], to="numpy")
    assert result[:2] == [2.5, [1]]
    assert type(result[0]) is float


def test_a_tree_that_holds_itself_is_refused(warm: Interop) -> None:
    """It is refused with its path, not with a RecursionError."""
    tree: list[Any] = [torch.ones(1)]
    tree.append(tree)
    with pytest.raises(BadRequestError, match="holds itself"):
        warm.convert_tree(tree, to="numpy")


def test_what_is_no_array_is_treated_as_the_caller_says(warm: Interop) -> None:
    """What is no array is refused, or made one, in a warm tree, and kept in the next."""
    tree = {"a": torch.ones(1), "b": 2.5}
    with pytest.raises(UnknownValueError):
        warm.convert_tree(tree, to="numpy", others="refuse")
    for _ in range(3):
        assert isinstance(warm.convert_tree(tree, to="numpy", others="convert")["b"], np.ndarray)
        assert warm.convert_tree(tree, to="numpy")["b"] is tree["b"]


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
    """A result that has no fast path back is converted after all, from the one call made."""
    calls = []

    def function(x: Any) -> Any:
        calls.append(x)
        return np.asarray(x)[::-1] if len(calls) == 3 else x

    called = warm.accepts("numpy")(function)
    results = [called(torch.arange(3.0)) for _ in range(3)]
    assert len(calls) == 3
    assert [type(result) for result in results] == [torch.Tensor] * 3
    assert results[2].tolist() == [2.0, 1.0, 0.0]


def test_a_strange_result_goes_back_to_the_first_array_and_not_the_first_argument(
    warm: Interop,
) -> None:
    """An argument that is no array, such as a number before the arrays, decides nothing."""

    def function(step: int, x: Any) -> Any:
        return np.asarray(x)[::step]

    called = warm.accepts("numpy")(function)
    results = [called(step, torch.arange(3.0)) for step in (1, 1, -1)]
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
    monkeypatch.setattr(warm._registry, "describe", None)
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
    monkeypatch.setattr(mine._registry, "describe", None)  # no value is planned again
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


@pytest.mark.parametrize("others", ["keep", "refuse"])
def test_numbers_that_have_fast_paths_are_converted_only_where_they_are_asked_for(
    others: Any,
) -> None:
    """Numbers that another call has converted stay numbers, or are refused."""
    mine, tree = Interop(), {"a": np.ones(2), "b": [*range(20)]}
    for _ in range(2):
        mine.convert_tree(tree, to="torch", others="convert")
    if others == "refuse":
        with pytest.raises(UnknownValueError, match=r"^b/0: int is not"):
            mine.convert_tree(tree, to="torch", others=others)
    else:
        assert mine.convert_tree(tree, to="torch", others=others)["b"] == tree["b"]


def test_a_number_that_its_fast_path_leaves_out_is_planned() -> None:
    """An integer that int64 does not hold gets the dtype, or the refusal, that a plan gives it."""
    mine = Interop()
    for _ in range(2):
        mine.convert_tree([1, 2], to="numpy", others="convert")
    large, small = mine.convert_tree([2**63, 1], to="numpy", others="convert")
    assert (str(large.dtype), str(small.dtype), int(large)) == ("uint64", "int64", 2**63)
    with pytest.raises(InteropError, match=r"^1: "):
        mine.convert_tree([1, 2**80 + 1], to="torch", others="convert")
