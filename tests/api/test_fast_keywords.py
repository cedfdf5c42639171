"""Calls with keywords that take fast paths: strange values get what a cold process gives them."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import interop
from interop import Interop
from interop._execution.engine import Engine
from interop._recognition.recognition import Recognition
from interop.errors import InteropError
from tests.inside import forget, shares_memory
from tests.kit.library import Array, arange, ones
from tests.kit.library_plugin import with_library
from tests.toys import Box, toy, view


class Special(np.ndarray):
    """A subclass, for which nothing was learnt."""


def _locked(array: Any) -> Any:
    array.flags.writeable = False
    return array


#: What is not plain, and yet of a type for which a fast path is kept.
STRANGE: dict[str, Callable[[], Any]] = {
    "grad": lambda: Array(np.ones(4), requires_grad=True),
    "strided": lambda: Array(np.arange(12.0).reshape(3, 4).T),
    "strided in a graph": lambda: Array(np.ones((3, 4)).T, requires_grad=True),
    "expanded": lambda: Array(np.broadcast_to(np.ones(1), (4,))),
    "turned": lambda: np.arange(12.0).reshape(3, 4).T,
    "repeated": lambda: np.broadcast_to(np.ones(1), (4,)),
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
    "f": lambda: arange(3),
    "d": lambda: np.arange(3.0),
    "i": lambda: Array(np.arange(3)),
    "b": lambda: np.array([True, False]),
    "h": lambda: np.arange(3, dtype=ml_dtypes.bfloat16),
    "c": lambda: np.array([1 + 2j]),
    "n": lambda: 1.5,
    "y": lambda: b"abcd",
}


def _plain(mine: Interop, to: str) -> Any:
    return mine.convert(np.ones(2, "f4"), to=to)


def _own_dtype(mine: Interop, x: Any) -> str | None:
    return mine.spec(x).dtype


def _under_policy(mine: Interop, x: Any, to: str) -> Any:
    with interop.policy(forbid="detach"):
        return mine.convert(x, to=to)


def _filled(mine: Interop, x: Any, to: str) -> Any:
    return mine.convert(x, out=mine.convert(np.zeros(mine.spec(x).shape), to=to))


def _given(plain: Any, odd: Any) -> Any:
    return {"odd": odd}


def _accepted(mine: Interop, x: Any, to: str) -> Any:
    called = _FUNCTIONS.setdefault((mine, to), mine.accepts(to)(_given))
    return called(np.ones(2) if to != "numpy" else _plain(mine, "library"), x)["odd"]


#: What is called in each instance, by its target.
_FUNCTIONS: dict[tuple[Interop, str], Callable[..., Any]] = {}


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
    tree = {"plain": _plain(mine, to), "also": np.zeros(2), "odd": x}
    return mine.convert_tree(tree, to=to, **words)["odd"]


#: By what they ask for, calls that plain values take a fast path for once they are warm.
CALLS: dict[str, Callable[[Interop, Any, str], Any]] = {
    "copy": lambda mine, x, to: mine.convert(x, to=to, copy=True),
    "no copy": lambda mine, x, to: mine.convert(x, to=to, copy=False),
    "writable": lambda mine, x, to: mine.convert(x, to=to, copy="writable"),
    "wider": lambda mine, x, to: mine.convert(x, to=to, dtype="float64"),
    "narrower": lambda mine, x, to: mine.convert(x, to=to, dtype="float32"),
    "device": lambda mine, x, to: mine.convert(x, to=to, device="cpu"),
    "like": lambda mine, x, to: mine.convert(x, like=_plain(mine, to)),
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
    "accepts": _accepted,
    **{f"in a tree, {name}": partial(_in_a_tree, words) for name, words in KEYWORDS.items()},
}


def facts(mine: Interop, call: Callable[[], Any], value: Any) -> tuple[object, ...]:
    """Return what can be told of a result and its memory, of the warnings, or of an error."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            result = call()
        except InteropError as error:
            return type(error), str(error)
    told_texts = [str(warning.message) for warning in told]
    if not hasattr(result, "__dlpack__"):
        return type(result), repr(result), told_texts
    shares = shares_memory(value, result, mine)
    return type(result), mine.spec(result), repr(result), shares, result is value, told_texts


def warmed(mine: Interop, targets: tuple[str, ...], makers: list[Callable[[], Any]]) -> Interop:
    """Return an instance that has a fast path for plain values of every call."""
    with warnings.catch_warnings(action="ignore"):
        for call, to, make in itertools.product(CALLS.values(), targets, makers):
            for _ in range(3):
                with suppress(InteropError):
                    call(mine, make(), to)
    return mine


def check_as_cold(make: Callable[[], Any], to: str, warm: Interop, cold: Interop) -> None:
    """Compare every call of a warm instance with the first of one that has forgotten all."""
    forget(cold)
    for asked, call in CALLS.items():
        value = make()
        with interop.trace():  # which takes no fast path
            expected = facts(cold, lambda call=call, value=value: call(cold, value, to), value)
        for _ in range(3):
            value = make()
            told = facts(warm, lambda call=call, value=value: call(warm, value, to), value)
            assert told == expected, asked


@pytest.fixture(scope="module")
def warm() -> Interop:
    """An instance that has a fast path for plain values of every call."""
    makers = [*PLAIN.values(), lambda: Array(np.ones(4)), lambda: np.ones(4, "f4")]
    return warmed(with_library(), ("numpy", "library"), makers)


@pytest.fixture(scope="module")
def cold() -> Interop:
    """An instance that is made to forget all before it is asked."""
    return with_library()


@pytest.mark.parametrize("to", ["numpy", "library"])
@pytest.mark.parametrize("name", [*STRANGE, *PLAIN])
def test_a_value_gets_what_a_cold_process_gives_it(
    name: str, to: str, warm: Interop, cold: Interop
) -> None:
    """Value, dtype, memory, warnings and error are those of a call without fast paths, alone or in a tree."""
    check_as_cold({**STRANGE, **PLAIN}[name], to, warm, cold)
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
    mine, effects, array = with_library(), {"detach"}, ones(3)
    words = {name: effects} | ({other: beside} if beside else {})
    for _ in range(4):
        mine.convert(array, "numpy", **words)
    with monkeypatch.context() as patches:
        patches.setattr(mine._converters, "convert", None)
        assert mine.convert(array, "numpy", **words).tolist() == [1.0, 1.0, 1.0]
    effects.add("nothing")
    with pytest.raises(InteropError):
        mine.convert(array, "numpy", **words)


@pytest.mark.parametrize("keywords", KEYWORDS.values(), ids=KEYWORDS)
def test_plain_trees_with_keywords_are_walked_without_a_plan(
    keywords: dict[str, Any], warm: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No leaf is described once trees like it were converted."""

    def described(value: Any) -> Any:
        msg = f"{type(value)} is described"
        raise AssertionError(msg)

    tree = [arange(3), {"ids": Array(np.arange(3))}, (np.ones(2), None)]
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
    large, small = arange(2**22), arange(3)
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
        numbers = value if isinstance(value, np.ndarray) else value.data
        np.testing.assert_array_equal(array, numbers)
        assert array.dtype == keywords.get("dtype", "float32")
        assert not np.shares_memory(array, numbers)


@pytest.mark.parametrize("side", [2, 2**10], ids=["small", "large"])
@pytest.mark.parametrize("keywords", [{"copy": True}, {"dtype": "float32"}], ids=["copy", "dtype"])
def test_warm_trees_with_keywords_keep_what_is_tied(
    keywords: dict[str, Any], side: int, warm: Interop
) -> None:
    """The same elements are one array; the same bytes as others, in another order, or none, are not."""
    numbers, nothing = np.arange(side**2 * 1.0).reshape(side, side), np.zeros((2, 0))
    weight, empty = Array(numbers), Array(nothing)
    cases = {
        "twice": (weight, weight, True),
        "tied": (weight, Array(numbers.view()), True),
        "reshaped": (weight, Array(numbers.reshape(-1)), False),
        "as bits": (weight, Array(numbers.view("i8")), False),
        "turned": (weight, Array(numbers.T), False),
        "begun": (weight, Array(numbers[:1]), False),
        "apart": (weight, Array(numbers.copy()), False),
        "empty": (empty, Array(nothing), False),
        "the same empty": (empty, empty, True),
    }
    for name, (first, second, tied) in cases.items():
        for tree in ([first, second], [second, first]):
            result = warm.convert_tree(tree, to="numpy", **keywords)
            assert (result[0] is result[1]) is tied, name
            for array, source in zip(result, tree, strict=True):
                np.testing.assert_array_equal(array, source.data, name)
                assert not np.shares_memory(array, source.data) or name == "as bits"


def test_a_like_of_one_type_is_not_taken_for_another_format_of_it(empty: Interop) -> None:
    """The result is of the format of the value in this call's ``like=``, whose type several have."""
    empty.register(*map(toy, "abc"), view("a", "b"), view("a", "c"))
    for _ in range(3):
        for kind in ("b", "c", "b"):
            assert empty.convert(Box("a", [1.0]), like=Box(kind, [2.0])).kind == kind


def test_an_iterator_of_effects_counts_in_its_own_call(warm: Interop) -> None:
    """What an iterator named is not remembered for a call with the same, used up, iterator."""
    weight = Array(np.ones(2), requires_grad=True)
    for _ in range(3):
        with pytest.raises(interop.errors.RefusedError):
            warm.convert(weight, to="numpy", forbid=iter(["detach"]))
    effects = iter(["detach"])
    with pytest.raises(interop.errors.RefusedError):
        warm.convert(weight, to="numpy", forbid=effects)
    assert warm.convert(weight, to="numpy", forbid=effects).tolist() == [1.0, 1.0]


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
    "of the library": lambda a: Array(np.zeros(4)),
    "of the library, over it": Array,
    "of the library, over it in reverse": lambda a: Array(a[::-1]),
    "of a graph": lambda a: Array(np.zeros(4), requires_grad=True),
    "expanded": lambda a: Array(np.broadcast_to(np.zeros(1), (4,))),
}


@pytest.mark.parametrize("name", OUTS)
def test_a_strange_out_is_written_or_refused_as_a_cold_process_does(
    name: str, warm: Interop, cold: Interop
) -> None:
    """The error, or the numbers in the value and in ``out=``, are those of a call without."""
    check_filled(OUTS[name], (np.asarray, Array, lambda a: Array(a.astype("f4"))), warm, cold)


def check_filled(
    make: Callable[[Any], Any], wraps: Iterable[Callable[[Any], Any]], warm: Interop, cold: Interop
) -> None:
    """Compare what every kind of a value makes of an ``out=``, in a warm instance and a cold one."""
    forget(cold)
    for wrap in wraps:
        outcomes = []
        for mine in (cold, warm, warm, warm):
            numbers = np.arange(1.0, 5.0)
            out = make(numbers)
            x = wrap(numbers)
            told = facts(mine, lambda mine=mine, x=x, out=out: mine.convert(x, out=out), x)
            outcomes.append((told, repr(numbers), repr(out)))
        assert outcomes[1:] == outcomes[:1] * 3, wrap


@pytest.mark.parametrize("wrap", [np.asarray, Array], ids=["numpy", "library"])
def test_a_strided_out_over_the_value_gets_all_of_its_numbers(wrap: Any, warm: Interop) -> None:
    """Where the two interleave in one memory, every number is read before it is written over."""
    for _ in range(4):
        numbers = np.arange(16.0)
        out, value = numbers[4:12:2], wrap(numbers[0:8:2])
        expected = numbers[0:8:2].tolist()
        assert warm.convert(value, out=out) is out
        assert out.tolist() == expected
        apart = np.zeros(8)[::2]
        assert warm.convert(wrap(np.arange(8.0)[::2]), out=apart).tolist() == [0.0, 2.0, 4.0, 6.0]


def test_a_plain_out_is_written_on_a_fast_path(warm: Interop) -> None:
    """It is found by the types of the two, and the numbers are the value's."""
    out = np.zeros(3)
    warm.convert(Array(np.arange(3.0)), out=out)
    fill = warm._converters.fills[Array, np.ndarray]
    assert fill(Array(np.full(3, 7.0)), out)
    assert out.tolist() == [7.0] * 3
    assert not fill(Array(np.full(1, 8.0)), out)
    assert out.tolist() == [7.0] * 3


#: Values, and the calls with which they are planned every time; all others are fast once warm.
PLANNED: dict[str, tuple[Callable[[], Any], str]] = {
    "array": (lambda: np.ones(4), "several stream"),
    "small array of bits": (lambda: np.ones(4, ml_dtypes.bfloat16), "python several stream"),
    "array of the library": (lambda: ones(4), "several stream"),
    "array in a graph": (lambda: Array(np.ones(4), requires_grad=True), "several stream"),
    "transposed array": (lambda: Array(np.ones((4, 2)).T), "several stream"),
    "large array": (
        lambda: np.ones(2**21),
        "copy several stream to-copy",
    ),
    "bytes": (lambda: b"four", "several stream"),
    "bytes of somebody": (lambda: memoryview(bytearray(4)), "several stream"),
    "array scalar": (
        lambda: np.float64(1),
        "same share allow copy device dtype forbid like python several stream to-copy writable",
    ),
    "list": (lambda: [1.0, 2.0], "several stream"),
}


def requests(to: str, like: Any) -> dict[str, dict[str, Any]]:
    """Return the keywords of calls to a format, by the words of the tables."""
    return {
        "same": {"to": to},
        "share": {"to": "numpy"},
        "python": {"to": "python"},
        "several": {"to": ["numpy", to]},
        "like": {"like": like},
        "device": {"to": to, "device": "cpu"},
        "dtype": {"to": "numpy", "dtype": "float64"},
        "copy": {"to": to, "copy": True},
        "to-copy": {"to": "numpy", "copy": True},
        "writable": {"to": to, "copy": "writable"},
        "allow": {"to": to, "allow": "narrow"},
        "forbid": {"to": to, "forbid": "detach"},
        "stream": {"to": to, "stream": None},
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
    assert planned_again(with_library(), make, requests("library", ones(1)), slow_calls) == {
        *words.split()
    }


def planned_again(
    mine: Interop, make: Callable[[], Any], requests: dict[str, Any], slow_calls: list[str]
) -> set[str]:
    """Return the requests that are planned in a third call."""
    planned = set()
    for request, keywords in requests.items():
        for _ in range(3):
            slow_calls.clear()
            with suppress(interop.errors.RefusedError):  # an array scalar is not made sparse
                mine.convert(make(), **keywords)
        if slow_calls:
            planned.add(request)
    return planned


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
