"""Calls with keywords that take fast paths: strange values get what a cold process gives them."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch

import interop
from interop import Interop
from interop._execution.engine import Engine
from interop._execution.trace import shares_memory
from interop._recognition.recognition import Recognition
from interop.errors import InteropError
from tests.inside import forget


class Special(np.ndarray):
    """A subclass, for which nothing was learnt."""


def _locked(array: Any) -> Any:
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
    "strided": lambda: torch.arange(12.0).reshape(3, 4).T,
    "strided in a graph": lambda: torch.ones(3, 4, requires_grad=True).T,
    "expanded": lambda: torch.ones(1).expand(4),
    "parameter": lambda: torch.nn.Parameter(torch.ones(2)),
    "read-only": lambda: _locked(np.arange(4.0)),
    "byte-swapped": lambda: np.arange(4, dtype=">f8"),
    "masked": lambda: np.ma.masked_array([1.0, 2.0], mask=[True, False]),
    "subclass": lambda: np.arange(4.0).view(Special),
    "strings": lambda: np.array(["a", "b"]),
    "numpy scalar": lambda: np.float64(2.5),
    "bytes": lambda: bytearray(b"abcd"),
    "range": lambda: range(3),
}


PLAIN = {
    "f": lambda: torch.arange(3.0),
    "d": lambda: np.arange(3.0),
    "i": lambda: torch.arange(3),
    "b": lambda: np.array([True, False]),
    "h": lambda: torch.arange(3, dtype=torch.bfloat16),
    "c": lambda: np.array([1 + 2j]),
    "n": lambda: 1.5,
    "y": lambda: b"abcd",
}


def _plain(to: str) -> Any:
    return np.ones(4) if to == "numpy" else torch.ones(4)


def _own_dtype(mine: Interop, x: Any) -> str | None:
    return mine.spec(x).dtype


def _under_policy(mine: Interop, x: Any, to: str) -> Any:
    with interop.policy(forbid="detach"):
        return mine.convert(x, to=to)


def _filled(mine: Interop, x: Any, to: str) -> Any:
    out = np.zeros(mine.spec(x).shape) if to == "numpy" else torch.zeros(mine.spec(x).shape)
    return mine.convert(x, out=out)


#: Keywords with which trees of plain leaves are walked without a plan once they are warm.
KEYWORDS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "copy": {"copy": True},
    "no copy": {"copy": False},
    "wider": {"dtype": "float64"},
    "narrower": {"dtype": "float16"},
    "whole": {"dtype": "int32"},
    "all": {"dtype": "float64", "cast_all": True},
    "all copied": {"dtype": "float32", "copy": True},
    "device": {"device": "cpu"},
    "forbid": {"forbid": {"detach"}, "copy": True},
    "others refused": {"others": "refuse"},
    "others converted": {"others": "convert"},
}


def _in_a_tree(words: dict[str, Any], mine: Interop, x: Any, to: str) -> Any:
    tree = {"plain": torch.ones(2), "also": np.zeros(2), "odd": x}
    return mine.convert_tree(tree, to=to, **words)["odd"]


#: By what they ask for, calls that plain values take a fast path for once they are warm.
CALLS: dict[str, Callable[[Interop, Any, str], Any]] = {
    "copy": lambda mine, x, to: mine.convert(x, to=to, copy=True),
    "no copy": lambda mine, x, to: mine.convert(x, to=to, copy=False),
    "writable": lambda mine, x, to: mine.convert(x, to=to, copy="writable"),
    "wider": lambda mine, x, to: mine.convert(x, to=to, dtype="float64"),
    "narrower": lambda mine, x, to: mine.convert(x, to=to, dtype="float32"),
    "device": lambda mine, x, to: mine.convert(x, to=to, device="cpu"),
    "like": lambda mine, x, to: mine.convert(x, like=_plain(to)),
    "allow": lambda mine, x, to: mine.convert(x, to=to, allow="narrow"),
    "forbid": lambda mine, x, to: mine.convert(x, to=to, forbid="copy"),
    "sets of effects": lambda mine, x, to: mine.convert(
        x, to=to, allow={"narrow"}, forbid={"copy", "transfer"}
    ),
    "forbid what moves": lambda mine, x, to: mine.convert(x, to=to, forbid={"copy", "transfer"}),
    "forbid what loses": lambda mine, x, to: mine.convert(x, to=to, forbid="detach"),
    "order": lambda mine, x, to: mine.convert(x, to=to, order="C"),
    "own dtype": lambda mine, x, to: mine.convert(x, to=to, dtype=_own_dtype(mine, x)),
    "policy": _under_policy,
    "converter": lambda mine, x, to: mine.converter(to, dtype="float64")(x),
    "out": _filled,
    **{f"in a tree, {name}": partial(_in_a_tree, words) for name, words in KEYWORDS.items()},
}


def facts(call: Callable[[], Any], value: Any) -> tuple[object, ...]:
    """Return what can be told of a result and its memory, of the warnings, or of an error."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result = call()
        except InteropError as error:
            return type(error), str(error)
    told_texts = [str(warning.message) for warning in told]
    if not isinstance(result, (np.ndarray, torch.Tensor)):
        return type(result), repr(result), told_texts
    shares = shares_memory(interop.default._registry.loaded(), value, result)
    return type(result), interop.spec(result), repr(result), shares, result is value, told_texts


@pytest.fixture(scope="module")
def warm() -> Interop:
    """An instance that has a fast path for plain values of every call."""
    mine = Interop()
    makers = *PLAIN.values(), lambda: torch.ones(4, dtype=torch.float64), lambda: np.ones(4, "f4")
    for call, to, make in itertools.product(CALLS.values(), ("numpy", "torch"), makers):
        for _ in range(4):
            plain = make()
            facts(lambda call=call, plain=plain, to=to: call(mine, plain, to), plain)
    return mine


@pytest.fixture(scope="module")
def cold() -> Interop:
    """An instance that is made to forget all before it is asked."""
    return Interop()


@pytest.mark.parametrize("to", ["numpy", "torch"])
@pytest.mark.parametrize("name", [*STRANGE, *PLAIN])
def test_a_value_gets_what_a_cold_process_gives_it(
    name: str, to: str, warm: Interop, cold: Interop
) -> None:
    """Value, dtype, memory, warnings and error are those of a call without fast paths, alone or in a tree."""
    forget(cold)
    for asked, call in CALLS.items():
        make = {**STRANGE, **PLAIN}[name]
        value = make()
        with interop.trace():  # which takes no fast path
            expected = facts(lambda call=call, value=value: call(cold, value, to), value)
        for _ in range(3):
            value = make()
            told = facts(lambda call=call, value=value: call(warm, value, to), value)
            assert told == expected, asked
    kept = warm._converters._by_keywords.values()
    learnt = [fast for converter in kept for fast in converter.learnt.values()]
    assert any(fast.by_key for fast in learnt)
    assert any(fast.plain or fast.same for fast in learnt)


@pytest.mark.parametrize(("name", "other"), [("allow", "forbid"), ("forbid", "allow")])
@pytest.mark.parametrize("beside", [{}, "narrow", {"narrow"}], ids=["alone", "a name", "a set"])
def test_effects_may_be_sets(
    name: str, other: str, beside: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warm call with a set of effects is not planned again, and heeds what the set then holds."""
    mine, effects, tensor = Interop(), {"detach"}, torch.ones(3)
    words = {name: effects} | ({other: beside} if beside else {})
    for _ in range(4):
        mine.convert(tensor, "numpy", **words)
    with monkeypatch.context() as patches:
        patches.setattr(mine._converters, "convert", None)
        assert mine.convert(tensor, "numpy", **words).tolist() == [1.0, 1.0, 1.0]
    effects.add("nothing")
    with pytest.raises(InteropError):
        mine.convert(tensor, "numpy", **words)


@pytest.mark.parametrize("keywords", KEYWORDS.values(), ids=KEYWORDS)
def test_plain_trees_with_keywords_are_walked_without_a_plan(
    keywords: dict[str, Any], warm: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No leaf is described once trees like it were converted."""

    def described(value: Any) -> Any:
        msg = f"{type(value)} is described"
        raise AssertionError(msg)

    tree = [torch.arange(3.0), {"ids": torch.arange(3)}, (np.ones(2), None)]
    expected = warm.convert_tree(tree, to="numpy", **keywords)
    with monkeypatch.context() as patches:
        patches.setattr(warm._registry.recognition, "describe", described)
        result = warm.convert_tree(tree, to="numpy", **keywords)
    assert repr(result) == repr(expected)


@pytest.mark.parametrize("keywords", [{"copy": True}, {"dtype": "float64"}], ids=["copy", "dtype"])
def test_only_the_large_leaf_of_a_tree_is_planned(
    keywords: dict[str, Any], warm: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The small leaves beside it take their fast paths, and it comes as it does alone."""
    large, small = torch.arange(2.0**22), torch.arange(3.0)
    tree = {"a": small, "b": (large, [large, None]), "c": np.ones(3, "float32")}
    mine, described = warm, []
    for warming in ({**tree, "b": None}, tree):
        mine.convert_tree(warming, to="numpy", **keywords)
    describe = mine._registry.recognition.describe
    monkeypatch.setattr(
        mine._registry.recognition,
        "describe",
        lambda value: described.append(value) or describe(value),
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
    keywords: dict[str, Any], side: int, warm: Interop
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
            result = warm.convert_tree(tree, to="numpy", **keywords)
            assert (result[0] is result[1]) is tied, name
            for array, tensor in zip(result, tree, strict=True):
                np.testing.assert_array_equal(array, tensor, name)
                assert (
                    array.size == 0 or array.ctypes.data != tensor.data_ptr() or name == "as bits"
                )


def test_a_like_of_one_type_is_not_taken_for_another_format_of_it(warm: Interop) -> None:
    """The result is as sparse, or on the device, as the value in this call's ``like=``."""
    array, dense = np.eye(2), torch.ones(2, 2)
    likes = {"torch.sparse_coo": dense.to_sparse(), "torch": dense.t()}
    for _ in range(3):
        assert warm.spec(warm.convert(array, like=dense)).format == "torch"
        for format_, like in likes.items():
            assert warm.spec(warm.convert(array, like=like)).format == format_


def test_an_iterator_of_effects_counts_in_its_own_call(warm: Interop) -> None:
    """What an iterator named is not remembered for a call with the same, used up, iterator."""
    tensor = torch.ones(2, requires_grad=True)
    for _ in range(3):
        with pytest.raises(interop.errors.RefusedError):
            warm.convert(tensor, to="numpy", forbid=iter(["detach"]))
    effects = iter(["detach"])
    with pytest.raises(interop.errors.RefusedError):
        warm.convert(tensor, to="numpy", forbid=effects)
    assert warm.convert(tensor, to="numpy", forbid=effects).tolist() == [1.0, 1.0]


def _inference() -> Any:
    with torch.inference_mode():
        return torch.zeros(4, dtype=torch.float64)


#: What stands in for an ``out=`` that is written on a fast path, made of the numbers to write.
OUTS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda a: np.zeros(4),
    "of another dtype": lambda a: np.zeros(4, "float32"),
    "of another width": lambda a: np.zeros(4, "int64"),
    "of a shape to broadcast to": lambda a: np.zeros((2, 4)),
    "of one element": lambda a: np.zeros(1),
    "locked": lambda a: _locked(np.zeros(4)),
    "in reverse": lambda a: np.zeros(4)[::-1],
    "spread": lambda a: np.zeros(8)[::2],
    "byte-swapped": lambda a: np.zeros(4, ">f8"),
    "broadcast": lambda a: np.lib.stride_tricks.as_strided(np.zeros(1), (4,), (0,)),
    "masked": lambda a: np.ma.masked_array(np.zeros(4), mask=[0, 1, 0, 0]),
    "a matrix": lambda a: np.zeros((2, 2)).view(np.matrix),
    "itself": lambda a: a,
    "itself in reverse": lambda a: a[::-1],
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


@pytest.mark.parametrize("name", OUTS)
def test_a_strange_out_is_written_or_refused_as_a_cold_process_does(
    name: str, warm: Interop, cold: Interop
) -> None:
    """The error, or the numbers in the value and in ``out=``, are those of a call without."""
    forget(cold)
    for wrap in (np.asarray, torch.from_numpy, lambda a: torch.from_numpy(a).to(torch.float32)):
        outcomes = []
        for mine in (cold, warm, warm, warm):
            numbers = np.arange(1.0, 5.0)
            out = OUTS[name](numbers)
            x = wrap(numbers)
            told = facts(lambda mine=mine, x=x, out=out: mine.convert(x, out=out), x)
            outcomes.append((told, repr(numbers), repr(out)))
        assert outcomes[1:] == outcomes[:1] * 3, wrap


@pytest.mark.parametrize("library", [np, torch], ids=["numpy", "torch"])
def test_a_strided_out_over_the_value_gets_all_of_its_numbers(library: Any, warm: Interop) -> None:
    """Where the two interleave in one memory, every number is read before it is written over."""
    for _ in range(4):
        numbers = library.arange(16, dtype=library.float64)
        out, value = numbers[4:12:2], numbers[0:8:2]
        expected = value.tolist()
        assert warm.convert(value, out=out) is out
        assert out.tolist() == expected
        spread = library.arange(8, dtype=library.float64)[::2]
        apart = library.zeros(8, dtype=library.float64)[::2]
        assert warm.convert(spread, out=apart).tolist() == [0.0, 2.0, 4.0, 6.0]


def test_a_plain_out_is_written_on_a_fast_path(warm: Interop) -> None:
    """It is found by the types of the two, and the numbers are the value's."""
    out = np.zeros(3)
    warm.convert(torch.arange(3.0, dtype=torch.float64), out=out)
    fill = warm._converters.fills[torch.Tensor, np.ndarray]
    assert fill(torch.full((3,), 7.0, dtype=torch.float64), out)
    assert out.tolist() == [7.0] * 3
    assert not fill(torch.full((1,), 8.0, dtype=torch.float64), out)
    assert out.tolist() == [7.0] * 3


#: Values, and the calls with which they are planned every time; all others are fast once warm.
PLANNED: dict[str, tuple[Callable[[], Any], str]] = {
    "array": (lambda: np.ones(4), "several stream"),
    "small array of bits": (lambda: torch.ones(4, dtype=torch.bfloat16), "python several stream"),
    "tensor": (lambda: torch.ones(4), "several stream"),
    "tensor in a graph": (lambda: torch.ones(4, requires_grad=True), "several stream"),
    "transposed tensor": (lambda: torch.ones(4, 2).t(), "several stream"),
    "conjugate": (
        lambda: torch.ones(4, dtype=torch.complex64).conj(),
        "same share allow copy device dtype forbid like python several sparse stream to-copy writable",
    ),
    "large array": (
        lambda: np.ones(2**21),
        "copy sparse several stream to-copy",
    ),
    "bytes": (lambda: b"four", "several stream"),
    "bytes of somebody": (lambda: memoryview(bytearray(4)), "several stream"),
    "array scalar": (
        lambda: np.float64(1),
        "same share allow copy device dtype forbid like python several sparse stream to-copy writable",
    ),
    "list": (
        lambda: [1.0, 2.0],
        "allow forbid several stream writable",
    ),
    "sparse array": (
        lambda: scipy.sparse.csr_array(np.eye(3)),
        "allow copy dtype forbid several stream to-copy writable",
    ),
}
REQUESTS: dict[str, dict[str, Any]] = {
    "same": {"to": "torch"},
    "share": {"to": "numpy"},
    "python": {"to": "python"},
    "sparse": {"to": "scipy.csr"},
    "several": {"to": ["numpy", "torch"]},
    "like": {"like": torch.ones(1)},
    "device": {"to": "torch", "device": "cpu"},
    "dtype": {"to": "numpy", "dtype": "float64"},
    "copy": {"to": "torch", "copy": True},
    "to-copy": {"to": "numpy", "copy": True},
    "writable": {"to": "torch", "copy": "writable"},
    "allow": {"to": "torch", "allow": "narrow"},
    "forbid": {"to": "torch", "forbid": "detach"},
    "stream": {"to": "torch", "stream": None},
}


@pytest.fixture
def slow_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of what calls that take no fast path have called, as they call it."""
    called: list[str] = []

    def count(owner: type, name: str) -> None:
        method = getattr(owner, name)

        def counted(*args: Any, **keywords: Any) -> Any:
            called.append(name)
            return method(*args, **keywords)

        monkeypatch.setattr(owner, name, counted)

    count(Engine, "run")
    count(Recognition, "describe")
    return called


@pytest.mark.parametrize("name", PLANNED)
def test_which_calls_are_planned_when_they_are_made_again(name: str, slow_calls: list[str]) -> None:
    """A third call is fast, described and planned by nothing, but for the value and words listed."""
    make, words = PLANNED[name]
    mine, planned = Interop(), set()
    for request, keywords in REQUESTS.items():
        for _ in range(3):
            slow_calls.clear()
            with suppress(interop.errors.RefusedError):  # an array scalar is not made sparse
                mine.convert(make(), **keywords)
        if slow_calls:
            planned.add(request)
    assert planned == {*words.split()}


@pytest.mark.parametrize(("dtype", "is_planned"), [("float64", True), ("int16", False)])
def test_calls_with_large_results_are_planned(
    dtype: str, is_planned: bool, slow_calls: list[str]
) -> None:
    """It is asked whether memory is left for a result of 16 MiB, however small the value is."""
    mine, array = Interop(), np.ones(2**21, "uint8")
    for _ in range(3):
        slow_calls.clear()
        assert mine.convert(array, to="numpy", dtype=dtype)[-1] == 1
    assert bool(slow_calls) is is_planned
