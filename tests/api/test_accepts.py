"""accepts: functions written for one framework, called with the arrays of another."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator, Iterator
from functools import partial
from types import MethodType
from typing import Any

import numpy as np
import pytest

import interop
from interop import Interop
from interop.errors import BadRequestError, RefusedError
from interop.plugin import Autodiff
from tests.cases import together
from tests.kit.library import Array, ones
from tests.kit.library_plugin import with_library
from tests.toys import Box, copy, toy, view

LIBRARY = with_library()


@pytest.fixture
def mine() -> Interop:
    """The instance that also knows the toy library."""
    return LIBRARY


@LIBRARY.accepts("numpy")
def centred(x: np.ndarray, *, scale: Any = 1) -> np.ndarray:
    """Return `x` less its mean, scaled."""
    assert isinstance(x, np.ndarray)
    return (x - x.mean()) * scale


def test_the_caller_gets_back_its_own_framework() -> None:
    """The result is of the first array's framework."""
    numbers = np.array([1.0, 2.0, 3.0])
    for make in (np.asarray, Array):
        result = centred(make(numbers), scale=2)
        assert type(result) is type(make(numbers))
        assert getattr(result, "data", result).tolist() == [-2.0, 0.0, 2.0]


def test_lists_are_arrays_where_the_function_wants_them_as_such(mine: Interop) -> None:
    """A list of numbers or of arrays is one array inside; other containers are opened."""

    @mine.accepts("numpy", lists=True)
    def kinds(*values: Any) -> Any:
        return [getattr(value, "shape", value) for value in values]

    for _ in range(2):  # cold, and warm
        assert kinds([1.0, 3.0]) == [(2,)]
        assert kinds([[1, 2], [3, 4]], ones(3)) == [(2, 2), (3,)]
        assert kinds([ones(2), ones(2)]) == [(2, 2)]
        assert kinds((1, 2), ones(3)) == [(1, 2), (3,)]
        assert kinds(["a", 1], 3) == [["a", 1], 3]
        with pytest.raises(BadRequestError, match=r"^values/1: "):
            kinds(ones(2), [np.ones((1, 2)), np.ones((2, 1))])


def test_lists_name_no_framework_to_give_results_back_in(mine: Interop) -> None:
    """The result goes back to the first array that is no list, or stays as it is."""

    @mine.accepts("numpy", lists=True)
    def summed(x: Any, y: Any = 0) -> Any:
        return x + y

    for _ in range(2):
        alone = summed([1.0, 2.0])
        assert type(alone) is np.ndarray
        assert alone.tolist() == [1.0, 2.0]
        beside = summed([1.0, 2.0], ones(2))
        assert type(beside) is Array
        assert beside.data.tolist() == [2.0, 3.0]
        assert summed(ones(2), y=[1.0, 2.0]).data.tolist() == [2.0, 3.0]


def test_arrays_are_found_in_keywords_and_containers(mine: Interop) -> None:
    """Arrays among keywords, and inside dicts, lists and tuples, are converted as well."""

    @mine.accepts("numpy")
    def add(pair: Any, *, more: Any) -> Any:
        assert all(isinstance(array, np.ndarray) for array in (*pair, more["c"]))
        return {"sum": sum(pair) + more["c"], "n": 3}

    result = add((ones(2), np.ones(2)), more={"c": Array(np.ones(2))})
    assert isinstance(result["sum"], Array)
    assert (result["sum"].data.tolist(), result["n"]) == ([3.0, 3.0], 3)


def test_objects_pass_as_they_are(mine: Interop) -> None:
    """An object that holds arrays, such as `self`, is passed as the very object."""

    @dataclasses.dataclass
    class Model:
        weight: Any
        calls: int = 0

        @mine.accepts("numpy")
        def __call__(self, x: np.ndarray) -> np.ndarray:
            self.calls += 1
            assert isinstance(self.weight, Array)
            return x * 2

    model = Model(ones(1))
    assert model(ones(2)).data.tolist() == [2.0, 2.0]
    assert model.calls == 1


def test_without_arrays_it_is_just_called(mine: Interop) -> None:
    """A call without arrays passes its arguments and its result through."""
    assert centred.__wrapped__ is not None
    identity = mine.accepts("numpy")(lambda x: x)
    numbers = [1.0, 2.0]
    assert identity(numbers) is numbers


def test_memory_is_shared_with_the_caller_unless_copied(mine: Interop) -> None:
    """The function gets the caller's memory, or with copy=True memory of its own."""
    array = Array(np.zeros(2))

    @mine.accepts("numpy")
    def shared(x: np.ndarray) -> np.ndarray:
        assert x.ctypes.data == array.data.ctypes.data
        return x

    @mine.accepts("numpy", copy=True)
    def owned(x: np.ndarray) -> np.ndarray:
        x += 1
        return x

    assert shared(array).data.ctypes.data == array.data.ctypes.data
    assert owned(array).data.tolist() == [1.0, 1.0]
    assert array.data.tolist() == [0.0, 0.0]


def test_keywords_are_those_of_convert(mine: Interop) -> None:
    """dtype= casts on the way in; a refusal names the argument."""
    typed = mine.accepts("library", dtype="float32")(lambda x: str(x.dtype))
    assert typed(np.ones(2)) == "library.float32"
    strict = mine.accepts("numpy", copy=False, dtype="float32")(lambda x, y: x)
    with pytest.raises(RefusedError, match=r"^y: "):
        strict(ones(2), np.ones(2))


@pytest.mark.parametrize("to", [["numpy", "library"], ("numpy",)], ids=["list", "tuple"])
def test_one_of_several_formats_may_be_asked_for(mine: Interop, to: Any) -> None:
    """Of a sequence of targets the cheapest is taken, however often the function is called."""
    kinds = []
    same = mine.accepts(to)(lambda x: kinds.append(type(x)) or x)
    for _ in range(3):
        assert same(ones(2)).data.tolist() == [1, 1]
    assert {*kinds} == {np.ndarray if len(to) == 1 else Array}


def test_functions_that_give_results_later_are_refused(mine: Interop) -> None:
    """Their results would come back unconverted, also where they are bound or partial."""

    async def later(x: Array) -> Array:
        return x

    def each(x: Array) -> Iterator[Array]:
        yield x

    async def each_later(x: Array) -> AsyncIterator[Array]:
        yield x

    for function in (later, each, each_later):
        called = type("Called", (), {"__call__": function})()
        wrapped = (partial(function), partial(partial(function), 1), called, partial(called))
        for value in (function, *wrapped, MethodType(function, 1)):
            with pytest.raises(BadRequestError):
                mine.accepts("numpy")(value)
    double = mine.accepts("numpy")(partial(np.multiply, 2))
    assert double(ones(2)).data.tolist() == [2, 2]


# ---------------------------------------------------------------------- differentiation


#: Whether the library records histories now.
RECORDING = {"now": True}


def _recorded(array: Array) -> str | None:
    return "calls it on Array(x.data)" if array.requires_grad and RECORDING["now"] else None


def _attach(plain: Any, forward: Any, arrays: Any) -> Any:
    """Tie results into the graph of the arrays: keep the pullback with the first of them."""
    outputs, arrays[0].pullback = forward([Array(array.data) for array in arrays])
    return outputs


def _vjp(function: Any, arrays: Any) -> Any:
    """Differentiate a linear function of vectors, by its values at the units."""

    def pullback(cotangents: Any) -> Any:
        gradients = [np.zeros_like(array) for array in arrays]
        for gradient, place in ((g, p) for g in gradients for p in range(len(g))):
            units = [np.zeros_like(array) for array in arrays]
            units[[g is gradient for g in gradients].index(True)][place] = 1
            slopes = zip(cotangents, function(units), strict=True)
            gradient[place] = sum(np.dot(cotangent, slope) for cotangent, slope in slopes)
        return gradients

    return function(arrays), pullback


@pytest.fixture(scope="module")
def differentiating() -> Interop:
    """An instance in which the library records histories, and functions of NumPy's have gradients."""
    return with_library(
        Autodiff("library", _vjp, _attach, _recorded), Autodiff("numpy", _vjp, _attach)
    )


@together("wrap", [lambda x: x, lambda x: (x, x), lambda x: {"x": [x]}])
def test_history_is_cut_only_where_that_is_asked_for(
    differentiating: Interop, monkeypatch: pytest.MonkeyPatch, wrap: Any
) -> None:
    """A call that would cut a history is refused while one is recorded, cold and warm."""
    plain, weight = ones(4), Array(np.ones(4, "f4"), requires_grad=True)
    first = np.ones(1, np.float32)  # the function takes part in no differentiation of NumPy's
    call = differentiating.accepts("numpy")(lambda *x: first)
    cut = differentiating.accepts("numpy", allow="detach")(lambda *x: first)
    for arguments in ((), (first,)):
        for _ in range(3):
            call(*arguments, wrap(plain))
            with pytest.raises(RefusedError) as refusal:
                call(*arguments, wrap(weight))
            assert refusal.value.effects == {"detach"}
            cut(*arguments, wrap(weight))
            with monkeypatch.context() as patches:
                patches.setitem(RECORDING, "now", False)
                call(*arguments, wrap(weight))


def test_gradients_pass_through_a_function_of_another_framework(differentiating: Interop) -> None:
    """With grad=True results are the caller's, and so are the gradients, in the dtypes of its arrays."""

    @differentiating.accepts("numpy", grad=True)
    def mixed(x: np.ndarray, y: np.ndarray, factor: Any) -> Any:
        assert {type(x), type(y), type(factor)} == {np.ndarray}
        return 2 * x + y, {"n": 3, "y": y * factor}

    x, y = Array(np.ones(2, "f4"), requires_grad=True), Array(np.arange(2.0))
    first, rest = mixed(x, y, np.array([10.0, 20.0]))
    assert (type(first), first.data.tolist()) == (Array, [2, 3])
    assert (rest["n"], type(rest["y"]), rest["y"].data.tolist()) == (3, Array, [0, 20])
    cotangent = ones(2, dtype="float64")
    gradients = x.pullback([cotangent, cotangent])  # type: ignore[attr-defined]
    assert [g.data.tolist() for g in gradients] == [[2, 2], [11, 21]]
    assert [g.data.dtype for g in gradients] == ["f4", "f8"]


def test_histories_that_grad_cannot_keep_are_refused(differentiating: Interop) -> None:
    """So is that of an array beside a first one of another format, and what nobody differentiates."""
    weight = Array(np.ones(2), requires_grad=True)
    with pytest.raises(BadRequestError):
        differentiating.accepts("quantity", grad=True)(lambda x: x)(weight)
    with pytest.raises(BadRequestError, match=r"^y: "):
        differentiating.accepts("library", grad=True)(lambda x, y: x)(np.ones(2), weight)
    same = differentiating.accepts("library", grad=True)(lambda x: x)
    assert same(weight) is weight


def test_a_function_without_a_signature_is_accepted(mine: Interop) -> None:
    """A function of C, whose parameters have no names, says where the argument stands."""
    assert mine.accepts("numpy")(max)(3.0, 4.0) == 4.0
    with pytest.raises(RefusedError):
        mine.accepts("library")(max)(1, np.ma.array([1.0], mask=[True]))


@LIBRARY.accepts
def halved(x: np.ndarray, times: int = 1) -> np.ndarray:
    """Return half of an array."""
    assert type(x) is np.ndarray
    return x / 2**times


def test_without_parentheses_the_annotations_name_the_format() -> None:
    """A bare @accepts takes the format of the array type that the function is annotated with."""
    result = halved(Array(np.array([2.0, 4.0])), times=1)
    assert isinstance(result, Array)
    assert result.data.tolist() == [1.0, 2.0]


def test_the_first_array_is_that_of_the_first_argument(mine: Interop) -> None:
    """Keywords and dicts count in the order of the call, in the first call and in later ones."""
    first = mine.accepts("numpy")(lambda **arrays: next(iter(arrays.values())) + 1)
    odd, array = ones(1), np.ones(1)
    for _ in range(3):
        assert type(first(b=odd, a=array)) is Array
        assert type(first(b=array, a=odd)) is np.ndarray
        first(b=odd, a=odd)
        first(b=array, a=array)


def test_warm_calls_look_into_containers_that_were_empty_before(mine: Interop) -> None:
    """Arguments are told apart by their types, of which a container's says nothing."""
    first = mine.accepts("numpy")(lambda array, others: [type(x) for x in others])
    for _ in range(3):
        assert first(np.ones(1), ()) == []
        assert first(ones(1), ()) == []
    assert first(np.ones(1), (ones(1),)) == [np.ndarray]
    assert first(ones(1), (ones(1),)) == [np.ndarray]


def test_warm_calls_give_back_whatever_a_function_returns(mine: Interop) -> None:
    """A result may be of another kind in each call: a number, a dict, None, another library's."""
    results = [
        1.5,
        {"a": np.ones(1)},
        None,
        np.float32(2),
        Array(np.ones(1)),
        np.ones(1),
        np.ones(1).T,
    ]
    given = mine.accepts("numpy")(lambda x, n: results[n])
    for array, own in ((np.ones(2), np.ndarray), (ones(2), Array)):
        for _ in range(2):
            cold = [mine.accepts("numpy")(lambda x, n: results[n])(array, n) for n in range(7)]
            warm = [given(array, n) for n in range(7)]
            assert list(map(type, cold)) == list(map(type, warm))
        assert type(warm[1]["a"]) is type(warm[4]) is type(warm[5]) is own


def test_an_array_that_is_given_twice_is_one_array_inside(mine: Interop) -> None:
    """Also where each is converted by a copy, in the first call and in later ones."""
    same = mine.accepts("numpy", copy=True)(lambda x, y: x is y)
    array = ones(2)
    assert [same(array, array) for _ in range(3)] == [True] * 3
    assert [same(array, ones(2)) for _ in range(3)] == [False] * 3
    twice = mine.accepts("numpy")(lambda x: (x, x))
    assert [len({id(y) for y in twice(Array(np.ones(2)))}) for _ in range(3)] == [1] * 3


def test_its_target_may_be_named_as_that_of_convert(mine: Interop) -> None:
    """to= is a keyword of accepts as it is of convert."""
    doubled = mine.accepts(to="numpy")(lambda x: x + x)
    assert doubled(ones(2)).data.tolist() == [2.0, 2.0]


def test_without_parentheses_and_annotations_it_is_refused_at_once(mine: Interop) -> None:
    """A bare @accepts over a function that names no array type, or two, is refused as it stands."""

    def two(x: np.ndarray, y: Array) -> None: ...

    def hidden(x: NotImported) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    for function in (lambda x: x, two, hidden):
        with pytest.raises(BadRequestError):
            mine.accepts(function)


def test_warm_calls_give_back_to_the_first_array_of_numbers(mine: Interop) -> None:
    """An array of text before it does not count, however many calls were made before."""
    backwards = mine.accepts("numpy")(lambda first, x: x[::-1])
    numbers, words = np.ones(2), np.array(["a", "b"])
    for _ in range(4):
        assert isinstance(backwards(numbers, ones(2)), np.ndarray)
        assert isinstance(backwards(words, ones(2)), Array)


class Read:
    """An object that is no array of any framework's, and offers one that is read."""

    dtype, shape = np.dtype("f8"), (2,)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array([1.0, 3.0], dtype, copy=copy)


def test_results_stay_as_they_are_where_the_caller_has_no_arrays_to_make(mine: Interop) -> None:
    """What is only read by a protocol cannot be given back, in the first call or in later ones."""
    halves = mine.accepts("library")(lambda x: Array(x.data / 2))
    for _ in range(3):
        result = halves(Read())
        assert isinstance(result, Array)
        assert result.data.tolist() == [0.5, 1.5]
        assert isinstance(halves(np.ones(2)), np.ndarray)


def test_a_framework_that_only_copies_its_own_arrays_gets_none_back(empty: interop.Interop) -> None:
    """A step within one format makes no array of it out of another's."""
    empty.register(toy("a"), toy("b"), view("a", "b"), copy("a", "a"), copy("b", "b"))
    box = Box("a", [1.0, 2.0])
    for _ in range(3):
        result = empty.accepts("b")(lambda x: x)(box)
        assert (result.kind, result.numbers is box.numbers) == ("b", True)
