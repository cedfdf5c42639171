"""Trees: what is traversed, what stays tied, what an error says, and what memory it takes."""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
import sys
import traceback
import weakref
from collections import OrderedDict, UserDict, defaultdict, deque
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pytest

import interop
import interop.plugin
from interop._api import leaves as _leaves
from interop._execution import engine as _engine
from interop._model.provenance import how_to_install
from interop.errors import (
    BadRequestError,
    ConversionError,
    InteropError,
    NotInstalledError,
    RefusedError,
    RefusedLeavesError,
    UnknownValueError,
)
from interop.plugin import Conversion, Format
from tests.kit.library import Array, Quantity, arange, ones
from tests.kit.library_plugin import with_library


@pytest.fixture(scope="module")
def mine() -> interop.Interop:
    """An instance that also knows the toy library."""
    return with_library()


class Point(NamedTuple):
    x: Any
    y: Any


class Rows(list):
    """A list of a type of its own, with an attribute."""

    name = "rows"


class Table(dict):
    """A dict of a type of its own."""


@dataclasses.dataclass
class State:
    weight: Any
    step: int
    cache: Any = dataclasses.field(default=None, init=False)

    def __post_init__(self) -> None:
        assert isinstance(self.weight, Array), "it is initialised with arrays of the library only"


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    weight: Any
    rate: float = 0.1


def _array() -> Array:
    return arange(3)


def _check(result: Any, kind: Any = np.ndarray) -> None:
    assert type(result) is kind
    assert str(result.dtype).endswith("float32")
    assert [float(n) for n in result] == [0.0, 1.0, 2.0]


@pytest.mark.parametrize(
    ("tree", "get"),
    [
        ({"b": _array(), "a": 1}, lambda t: t["b"]),
        ([_array()], lambda t: t[0]),
        ((_array(), "text"), lambda t: t[0]),
        (Point(1, _array()), lambda t: t.y),
        (OrderedDict(z=_array(), a=None), lambda t: t["z"]),
        (defaultdict(list, z=_array()), lambda t: t["z"]),
        (deque([_array()], maxlen=2), lambda t: t[0]),
        (Rows([_array()]), lambda t: t[0]),
        (Table(z=_array(), a=1), lambda t: t["z"]),
        (UserDict(z=_array()), lambda t: t["z"]),
        (State(_array(), 3), lambda t: t.weight),
        (Frozen(_array()), lambda t: t.weight),
        ({1: {None: [(_array(),)]}}, lambda t: t[1][None][0][0]),
        (_array(), lambda t: t),
    ],
    ids=lambda v: type(v).__name__ if not callable(v) else "",
)
def test_containers_are_traversed_and_made_anew(mine: interop.Interop, tree: Any, get: Any) -> None:
    """A container comes back as a new one of its kind, around arrays that share their memory."""
    source = get(tree)
    result = mine.convert_tree(tree, to="numpy")
    assert type(result) is (np.ndarray if tree is source else type(tree))
    assert result is not tree
    _check(get(result))
    assert get(result).ctypes.data == source.data.ctypes.data
    assert get(tree) is source
    if isinstance(tree, (dict, UserDict)):
        assert list(result) == list(tree), "in the order of the keys"


def test_everything_but_arrays_passes_through(mine: interop.Interop) -> None:
    """Numbers, strings, bytes, types and unknown objects come back as they are."""
    thing = object()
    tree = {"a": 1, "b": "text", "c": b"bytes", "d": None, "e": thing, "f": np.float32, "h": {1, 2}}
    tree["g"] = ones(1).dtype
    result = mine.convert_tree({**tree, "z": ones(1)}, to="numpy")
    assert all(result[name] is tree[name] for name in tree)


def test_array_scalars_are_arrays(mine: interop.Interop) -> None:
    """An array scalar is converted, as it would be outside of a tree."""
    result = mine.convert_tree([np.float32(2), 2.0], to="library")
    assert (str(result[0].dtype), result[0].shape) == ("library.float32", ())
    assert float(result[0].data) == 2.0
    assert result[1] == 2.0
    assert isinstance(result[1], float)


def test_an_attribute_of_a_state_dict_stays(mine: interop.Interop) -> None:
    """What is kept beside the items of an OrderedDict, as versions are, is still there."""
    state: Any = OrderedDict(weight=ones(2), bias=ones(1), count=3)
    state._metadata = {"version": 2}
    for _ in range(3):  # the later ones may take fast paths
        result = mine.convert_tree(state, to="numpy")
        assert type(result) is OrderedDict
        assert result._metadata == state._metadata
        assert list(result) == list(state)
        assert isinstance(state["weight"], Array)


@pytest.mark.parametrize("copy", [None, True])
def test_tied_weights_stay_tied(mine: interop.Interop, copy: bool | None) -> None:
    """Arrays that a state dict makes of one weight become one copy, or views of its memory."""
    weight = np.ones((3, 3), "f4")
    state = {"a": Array(weight), "b": Array(weight), "c": ones(3), "d": ones(3)}
    for _ in range(3):  # the later ones may take fast paths
        result = mine.convert_tree(state, to="numpy", copy=copy)
        first, second = result["a"], result["b"]
        assert first.ctypes.data == second.ctypes.data
        assert (first is second) is (copy is True)
        assert not np.shares_memory(result["c"], result["d"])
        assert (first.ctypes.data == weight.ctypes.data) is (copy is None)


def test_tied_arrays_stay_tied_where_a_framework_copies() -> None:
    """Of two views of one array a framework of its own memory makes one copy, cold and warm."""
    mine, array = interop.Interop(), np.ones(4, "f4")
    mine.register(
        Format("boxes", (f"{__name__}:Boxed",), Boxed.describe, {"float32"}),
        Conversion("numpy", "boxes", Boxed, effects={"copy"}),
    )
    mine.convert(array, to="boxes")
    for _ in range(3):
        result = mine.convert_tree({"b": array, "a": array[:]}, to="boxes")
        assert result["a"] is result["b"]


class Boxed:
    """An array in memory of its own."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array.copy()

    def describe(self) -> interop.Spec:
        return interop.plugin.make_spec("boxes", "float32", shape=self.array.shape)


class Packed(Point):
    """A named tuple that takes arrays of the library alone, as torch's packed sequences do."""

    def __new__(cls, x: Any, y: Any = None) -> Any:
        assert isinstance(x, Array)
        return super().__new__(cls, x, y)


def test_named_tuples_that_check_their_fields_are_rebuilt(mine: interop.Interop) -> None:
    """A tuple whose constructor takes arrays of one library comes back with others in it."""
    packed = Packed(ones(2))
    result = mine.convert_tree({"h": packed}, to="numpy")["h"]
    assert type(result) is Packed
    assert result.x.ctypes.data == packed.x.data.ctypes.data
    assert result.y is None


def test_plain_containers_need_no_library(in_subprocess: Any) -> None:
    """Trees of Python's own containers, and functions under accepts, need no optree and no rich."""
    printed = in_subprocess("""
        import sys
        sys.modules["optree"] = sys.modules["rich"] = None
        from collections import OrderedDict, deque, namedtuple
        from dataclasses import dataclass
        import interop, numpy as np

        @dataclass
        class State:
            x: object

        pair = namedtuple("pair", "x y")
        a = np.arange(3.0)
        tree = {"d": OrderedDict(a=[a, (a,)]), "p": pair(a, deque([a])), "s": State(a)}
        result = interop.convert_tree(tree, to="python")
        print(result)
        add = interop.accepts("numpy")(lambda x, y: x + y["b"])
        print(add(a, {"b": a}))
        """)
    three = [0.0, 1.0, 2.0]
    assert str(OrderedDict(a=[three, (three,)])) in printed
    assert f"pair(x={three}, y=deque([{three}]))" in printed
    assert "[0. 2. 4.]" in printed


def test_one_object_at_two_places_is_one_result(mine: interop.Interop) -> None:
    """An array that occurs twice is converted once, whatever its layout."""
    turned, codes = Array(np.ones((2, 3)).T), np.ones(2, "i1")
    quantized = interop.QuantizedArray(codes, np.float32(2))
    first, second = mine.convert_tree(
        [[turned, quantized], (turned, quantized)], to="numpy", copy=True
    )
    assert first[0] is second[0]
    assert first[1] is second[1]


def test_views_that_differ_are_not_tied() -> None:
    """Views of one memory that differ in shape, dtype, order or length stay different arrays.

    So do two orders of the axes of one cube, of the same address, length, dtype and shape.
    """
    base = np.arange(16, dtype="f4").reshape(4, 4)
    cube = base.reshape(2, 2, 4)[..., ::2].copy()
    views = [base, base.T, base.reshape(2, 8), base.view("i4"), base[:2], base.T[::-1]]
    views += [cube.transpose(2, 1, 0), cube.transpose(1, 0, 2)]
    results = interop.convert_tree(views, to="numpy", copy=True)
    for view, result in zip(views, results, strict=True):
        assert np.array_equal(result, view)
    assert len({id(result) for result in results}) == len(views)


def test_values_with_different_results_are_not_tied(mine: interop.Interop) -> None:
    """An array in a graph and its detached twin are tied only where the result has no history."""
    weight = Array(np.ones(2), requires_grad=True)
    twin = Array(weight.data)
    unchanged, plain = mine.convert_tree([weight, twin], to="library")
    assert (unchanged, plain) == (weight, twin)
    tied = mine.convert_tree([weight, twin], to="numpy", copy=True)
    assert tied[0] is tied[1]


def test_containers_without_arrays_are_new_containers_too(mine: interop.Interop) -> None:
    """Nothing that is written into a container of the result shows in the tree, in any call."""
    tree = {"x": ones(2), "sizes": {"n": [1, 2]}, "none": []}
    for _ in range(3):
        result = mine.convert_tree(tree, to="numpy", copy=True)
        assert (result["sizes"], result["none"]) == (tree["sizes"], [])
        assert result["sizes"] is not tree["sizes"]
        assert result["sizes"]["n"] is not tree["sizes"]["n"]
        assert result["none"] is not tree["none"]


def test_only_plain_arrays_are_tied(mine: interop.Interop) -> None:
    """Quantized and labelled values are not tied, even if they share their memory."""
    codes = np.arange(4, dtype="i1").reshape(2, 2)
    scale = np.array([1.0, 10.0])
    quantized = [interop.QuantizedArray(codes, scale, axis=axis) for axis in (0, 1)]
    rows, columns = interop.convert_tree(quantized, to="numpy")
    assert rows.tolist() == [[0, 1], [20, 30]]
    assert columns.tolist() == [[0, 10], [2, 30]]
    lengths = [Quantity(scale, unit) for unit in ("m", "km")]
    copies = mine.convert_tree(lengths, to="quantity", copy=True)
    assert [copied.unit for copied in copies] == ["m", "km"]


class Fleeting:
    """A producer that exports a new array at each request."""

    def __init__(self, number: float) -> None:
        self.number = number

    def __dlpack__(self, **keywords: Any) -> Any:
        return np.full(4, self.number).__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize("copy", [None, True])
def test_arrays_that_lay_at_one_address_one_after_the_other_are_not_tied(
    mine: interop.Interop, copy: bool | None
) -> None:
    """What producers export may be freed, and its address used again, before the next is asked."""
    tree = [Fleeting(number) for number in range(20)]
    for to in ("numpy", "library"):
        results = mine.convert_tree(tree, to=to, copy=copy)
        assert [float(mine.convert(x, to="numpy")[0]) for x in results] == list(range(20))


def test_empty_arrays_are_not_tied() -> None:
    """Arrays without elements have no memory that could be the same."""
    a, b = interop.convert_tree([np.empty(0), np.empty(0)], to="numpy", copy=True)
    assert a is not b


def test_a_refusal_names_the_path(mine: interop.Interop) -> None:
    """The message begins with the path of the leaf, and the error keeps it."""
    tree = {"model": {"layers": [0, 1, 2, {"weight": np.ma.array([1, 2], mask=[0, 1])}]}}
    with pytest.raises(RefusedError) as caught:
        mine.convert_tree(tree, to="library")
    assert caught.value.where == "model/layers/3/weight"
    assert caught.value.effects == {"drop_mask"}


@pytest.mark.parametrize("count", [2, 11])
def test_all_refused_leaves_are_named_at_once(mine: interop.Interop, count: int) -> None:
    """One error, caught as any refusal, holds those of the first ten, each with its path."""
    tree = {
        "weight": ones(2),
        "x": {f"m{n}": np.ma.array([n, 2], mask=[0, 1]) for n in range(count - 1)},
        "y": np.ones(2, np.longdouble),
    }
    with pytest.raises(RefusedError) as caught:
        mine.convert_tree(tree, to="library", consume=True)
    error: Any = caught.value
    assert isinstance(error, RefusedLeavesError)
    assert isinstance(error, ExceptionGroup)
    assert (error.where, error.effects) == (
        "",
        {"drop_mask", "narrow"} if count < 10 else {"drop_mask"},
    )
    paths = [*(f"x/m{n}" for n in range(count - 1)), "y"]
    assert [each.where for each in error.exceptions] == paths[:10]
    assert all(str(each).startswith(f"{each.where}: cannot convert ") for each in error.exceptions)
    more = "" if count < 10 else " and 1 more"
    assert str(error) == f"{error.exceptions[0]}\nRefused as well: {', '.join(paths[1:10])}{more}."
    assert {*tree} == {"weight", "x", "y"}
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert [str(each) for each in again.exceptions] == [str(each) for each in error.exceptions]
        assert (str(again), again.effects) == (str(error), error.effects)
    narrow, rest = error.split(lambda each: getattr(each, "where", "") == "x/m0")
    assert (type(narrow), narrow.effects) == (RefusedLeavesError, {"drop_mask"})
    assert len(rest.exceptions) == min(count, 10) - 1
    text = "".join(traceback.format_exception(error))
    assert all(f"{path}: cannot convert " in text for path in paths[:10])
    assert text.count("interop.py") == 0


def test_a_refusal_comes_before_the_first_conversion() -> None:
    """If one leaf is refused, none is converted, and the tree is whole even with consume=True."""
    mine, calls = interop.Interop(), []
    mine.register(interop.Format("box", target_types=(), dtypes=frozenset({"float64"})))
    mine.conversion("numpy", "box")(calls.append)
    tree = [np.ones(2), np.ones(2, "complex64")]
    with pytest.raises(RefusedError, match=r"^1: "):
        mine.convert_tree(tree, to="box", consume=True)
    assert (calls, len(tree)) == ([], 2)


def test_a_failure_names_the_path_and_the_step() -> None:
    """An error of a conversion says at which path it came up."""
    mine = interop.Interop()

    def break_down(value: Any) -> Any:
        raise KeyError(value.shape)

    mine.register(interop.Format("box", dtypes=frozenset({"float64"})))
    mine.conversion("numpy", "box")(break_down)
    with pytest.raises(ConversionError) as caught:
        mine.convert_tree({"a": (np.ones(2),)}, to="box")
    assert caught.value.where == "a/0"


def test_whether_the_target_is_installed_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a large tree nor a second one asks for every leaf whether its target is there."""
    instance, asked = with_library(), []

    def noted(format_: interop.Format) -> str:
        asked.append(format_.name)
        return ""

    monkeypatch.setattr(_engine, "not_installed", noted)
    for _ in range(2):
        tree = instance.convert_tree([ones(n) for n in range(9)], "numpy", dtype="float64")
        assert [leaf.dtype for leaf in tree] == [np.float64] * 9
    assert asked == ["numpy"]


class Broken:
    """Says that it is an array, and raises an error when it is asked for it."""

    dtype, shape = np.dtype("f8"), (1,)

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __array__(self, *args: Any, **keywords: Any) -> Any:
        raise self._error


@pytest.mark.parametrize("error", [KeyError("broken"), KeyboardInterrupt()])
def test_a_failure_with_consume_loses_nothing(mine: interop.Interop, error: BaseException) -> None:
    """Containers are filled again: with the results so far, and with the arrays that are left."""
    inner = deque([np.full(1, 2.0)], maxlen=4)
    last, broken = np.full(1, 5.0), Broken(error)
    listed = [inner, "text"]
    tree = {"a": np.ones(1), "b": listed, "c": (np.full(1, 3.0), {"e": broken}), "d": last}
    with pytest.raises((InteropError, KeyboardInterrupt)):
        mine.convert_tree(tree, to="library", dtype="float32", consume=True)
    assert list(tree) == ["a", "b", "c", "d"]
    results = [tree["a"], inner[0], tree["c"][0]]
    assert [result.data.dtype for result in results] == [np.float32] * 3
    assert [float(result.data[0]) for result in results] == [1, 2, 3]
    assert tree["b"] is listed
    assert (listed, inner.maxlen) == ([inner, "text"], 4)
    assert tree["c"][1] == {"e": broken}
    assert tree["d"] is last


def test_a_tree_that_is_too_deep_is_refused(mine: interop.Interop) -> None:
    """A list of 5,000 levels is refused by an error of interop's, as a list of numbers is."""
    for levels in (600, 700, 5000):
        deep: Any = [ones(1)]
        for _ in range(levels):
            deep = {"a": deep} if levels == 600 else [deep]
        top = deep.copy()
        for consume in (False, True):
            with pytest.raises(BadRequestError):
                mine.convert_tree(deep, to="numpy", consume=consume)
            assert deep == top
        with pytest.raises(BadRequestError):
            mine.accepts("numpy")(len)(deep)


def test_a_missing_framework_is_named_although_plans_are_known() -> None:
    """Behind the path stands what installs it, and a plan from before lets no tree be taken apart."""
    mine = interop.Interop()
    missing = {"requires": "no_such_module", "install": "pip install such"}
    mine.register(interop.Format("box", dtypes=frozenset({"float64"}), **missing))
    mine.conversion("numpy", "box")(lambda value: value)
    assert mine.plan(mine.spec(np.ones(2)), to="box").steps
    tree = {"weight": np.ones(2)}
    for _ in range(2):
        with pytest.raises(NotInstalledError):
            mine.convert_tree(tree, to="box", consume=True)
        assert tree.keys() == {"weight"}


@pytest.mark.parametrize("leaf", [3, "text", object()])
def test_others_can_be_refused(leaf: object) -> None:
    """With others="refuse" a leaf that is no array is refused by its path, unless it is None."""
    with pytest.raises(UnknownValueError):
        interop.convert_tree({"a": None, "b": [np.ones(1), leaf]}, to="python", others="refuse")
    assert interop.convert_tree([None, np.ones(1)], to="python", others="refuse")[0] is None


def test_others_can_be_converted() -> None:
    """With others="convert" numbers become arrays without axes, and all the rest passes through."""
    tree = {"on": True, "n": 3, "rate": 0.5, "z": 1j, "list": [1, 2], "text": "a", "none": None}
    result = interop.convert_tree(tree, to="numpy", others="convert")
    dtypes = {name: result[name].dtype for name in ("on", "n", "rate", "z")}
    assert dtypes == {
        "on": np.bool_,
        "n": np.int64,
        "rate": np.float64,
        "z": np.complex128,
    }
    assert [result[name].shape for name in dtypes] == [()] * 4
    assert [result[name].item() for name in dtypes] == [True, 3, 0.5, 1j]
    assert [type(leaf) for leaf in result["list"]] == [np.ndarray] * 2
    assert (result["text"], result["none"]) == ("a", None)
    assert interop.convert_tree(tree, to="numpy") == tree
    first, second = interop.convert_tree([tree["rate"]] * 2, to="numpy", others="convert")
    assert first is not second  # to write into one number changes no other


def test_converted_numbers_follow_the_dtype_of_their_kind() -> None:
    """A dtype is for numbers of its kind as for arrays, and one that cannot be is located."""
    tree = {"rate": 0.5, "n": 3}
    result = interop.convert_tree(tree, to="numpy", dtype="float32", others="convert")
    assert (result["rate"].dtype, result["n"].dtype) == (np.float32, np.int64)
    with pytest.raises(RefusedError, match=r"^n: "):
        interop.convert_tree({"n": 2**80 + 1}, to="numpy", others="convert")


def test_a_tree_that_holds_itself_is_refused() -> None:
    """A cycle is an error with the path around it, and one container at two places is none."""
    tree: dict[str, Any] = {"a": []}
    tree["a"].append(tree)
    for _ in range(2):
        with pytest.raises(BadRequestError):
            interop.convert_tree(tree, to="numpy")
    inner = [np.ones(1)]
    first, second = interop.convert_tree([inner, inner], to="numpy", copy=True)
    assert first[0] is second[0]


def test_keywords_are_those_of_convert(mine: interop.Interop) -> None:
    """dtype=, like= and copy= apply to every leaf."""
    result = mine.convert_tree({"a": np.ones(2)}, like=ones(1), dtype="float32")
    assert (type(result["a"]), result["a"].data.dtype) == (Array, np.float32)
    with pytest.raises(RefusedError):
        mine.convert_tree({"a": np.ones(2)}, to="library", dtype="float32", copy=False)


class Big:
    """Counts how many arrays of a private format are alive."""

    alive = 0
    most = 0

    def __init__(self) -> None:
        Big.alive += 1
        Big.most = max(Big.most, Big.alive)
        weakref.finalize(self, self._gone)

    @staticmethod
    def _gone() -> None:
        Big.alive -= 1


@pytest.mark.parametrize(("consume", "most"), [(False, 16), (True, 9)])
def test_memory_stays_at_source_and_result(
    consume: bool, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most source and result are alive at once; with consume=True each source is freed in turn."""
    mine = interop.Interop()
    spec = interop.plugin.make_spec("big", "float64", shape=(1,))
    home = ModuleType("big_arrays")
    home.Big = Big
    monkeypatch.setitem(sys.modules, "big_arrays", home)
    types, float64 = ("big_arrays:Big",), frozenset({"float64"})
    mine.register(interop.Format("big", types, lambda _: spec, float64))
    mine.conversion("big", "big", effects={"copy"})(lambda value: Big())
    tree = {"a": [Big() for _ in range(4)], "b": deque(Big() for _ in range(4))}
    Big.most = Big.alive
    result = mine.convert_tree(tree, to="big", copy=True, consume=consume)
    gc.collect()
    assert Big.most == most
    assert [len(result["a"]), len(result["b"])] == [4, 4]
    assert tree == {} if consume else len(tree["b"]) == 4
    del result, tree
    gc.collect()
    assert Big.alive == 0


def test_progress_is_shown_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """A bar of the bytes done is on standard error, and nothing is on standard output."""
    interop.convert_tree([np.ones(2**18)] * 2, to="numpy", copy=True, progress=True)
    shown = capsys.readouterr()
    assert "2.0/2.0 MiB" in shown.err.replace("2.1/2.1 MB", "2.0/2.0 MiB")
    assert shown.out == ""


def test_without_the_library_of_its_bar_it_says_how_to_get_it(in_subprocess: Any) -> None:
    """If rich is missing, the error is one sentence with the command that installs it."""
    printed = in_subprocess("""
        import sys; sys.modules["rich"] = None
        import interop, numpy as np
        try:
            interop.convert_tree([np.ones(1)], to="numpy", progress=True)
        except interop.errors.NotInstalledError as error:
            print(error.name, error)
        """)
    assert printed.startswith("rich ")
    assert how_to_install("tree") in printed


def test_builtins_are_never_arrays() -> None:
    """No value of a built-in type counts as an array inside a tree."""
    registry = interop.default._registry
    builtin = (1, 1.0, "a", b"a", bytearray(b"a"), memoryview(b"a"), range(3), None, [1], {1})
    assert not any(_leaves.is_array(registry, value) for value in builtin)


def test_a_protocol_of_an_instance_counts_in_a_tree() -> None:
    """What converts alone because of an attribute of its own converts inside a tree as well."""
    array = np.arange(3.0)
    holder = type("Holder", (), {})()
    holder.__array_interface__ = array.__array_interface__
    holder.owner = array
    result = interop.convert_tree({"leaf": [holder]}, to="numpy")
    assert np.shares_memory(result["leaf"][0], array)


def test_a_dtype_is_for_the_arrays_of_its_kind(mine: interop.Interop) -> None:
    """Reals are cast to a real dtype; token ids, masks and complex numbers stay as they are."""
    batch = {
        "pixels": ones(2),
        "weights": interop.QuantizedArray(np.ones(2, "i1"), np.float32(2)),
        "ids": np.array([30522, 40001], dtype="i4"),
        "mask": np.array([True, False]),
        "phase": np.array([1j], dtype="complex64"),
    }
    for _ in range(2):  # cold and warm
        half = mine.convert_tree(batch, to="numpy", dtype="bf16")
        dtypes = {name: x.dtype.name for name, x in half.items()}
        assert dtypes == {
            "pixels": "bfloat16",
            "weights": "bfloat16",
            "ids": "int32",
            "mask": "bool",
            "phase": "complex64",
        }
        assert half["ids"].tolist() == [30522, 40001]
        short = mine.convert_tree(batch, to="numpy", dtype=np.int16, allow=iter(["narrow"]))
        assert [short[name].dtype for name in ("pixels", "ids", "mask")] == ["f4", "i2", "?"]
        reals = {"ids": batch["ids"], "mask": batch["mask"]}
        cast = mine.convert_tree(reals, to="numpy", dtype="float32", cast_all=True)
        assert [x.dtype for x in cast.values()] == ["float32"] * 2


def test_lists_of_numbers_become_arrays_if_asked(mine: interop.Interop) -> None:
    """A list of numbers or of arrays is one array; lists of others and tuples are opened."""
    batch = {
        "ids": [[1, 2], [3, 4]],
        "mask": [[1, 1], [0]],
        "parts": [ones(2), Array(np.zeros(2, "f4"))],
        "text": ["a", "b"],
        "mixed": [[1], "ab"],
        "rows": [{"x": [1.0]}],
        "pair": (1, [2]),
        "count": 3,
    }
    result = mine.convert_tree(batch, to="numpy", lists="arrays", allow="pad")
    assert result["ids"].tolist() == batch["ids"]
    assert result["mask"].tolist() == [[1, 1], [0, 0]]
    assert result["parts"].tolist() == [[1, 1], [0, 0]]
    assert result["text"] == ["a", "b"]
    assert result["mixed"][0].tolist() == [1]
    assert result["mixed"][1] == "ab"
    assert result["rows"][0]["x"].tolist() == [1.0]
    assert result["pair"][0] == 1
    assert result["pair"][1].tolist() == [2]
    assert result["count"] == 3
    assert mine.convert_tree(batch["ids"], to="numpy", lists="arrays").tolist() == batch["ids"]
    opened = mine.convert_tree(batch, to="numpy")
    assert opened["ids"] == batch["ids"]


@pytest.mark.parametrize("make", [list, np.array, lambda row: Array(np.array(row))])
def test_a_list_is_the_same_array_again(make: Any) -> None:
    """Later lists, which take a fast path, become what the first has become; one list is one array."""
    mine = with_library()
    for number in (1.0, 2.0, 3.0):
        rows = [make([number, 2.0]), make([3.0, 4.0])]
        tree = {"a": rows, "b": [rows, "text"], "c": ones(1), "d": [[1.0], "text"]}
        result = mine.convert_tree(tree, to="numpy", lists="arrays")
        assert result["a"].tolist() == [[number, 2], [3, 4]]
        assert result["b"][0] is result["a"]
        assert result["b"][1] == "text"
        assert result["c"].ctypes.data == tree["c"].data.ctypes.data
        assert result["d"][0].tolist() == [1]
        getattr(rows[0], "data", rows[0])[0] = 9
        assert result["a"][0, 0] == number


def test_a_list_that_is_no_array_is_refused_by_its_path() -> None:
    """Rows of several lengths need consent to be padded, and arrays have to be of one shape."""
    for rows, error in (
        ([[1], [2, 3]], RefusedError),
        ([np.ones((1, 2)), np.ones((2, 1))], BadRequestError),
    ):
        with pytest.raises(error, match=r"^a/0: "):
            interop.convert_tree({"a": (rows,)}, to="numpy", lists="arrays")
    with pytest.raises(BadRequestError):
        interop.convert_tree({}, to="numpy", lists="array")


def test_lists_are_filled_again_with_arrays_after_an_error() -> None:
    """With consume=True, a list that is one array is a leaf like others."""

    class Fails:
        shape, dtype = (1,), np.dtype("f8")

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            raise OSError

    tree = {"a": [1, 2], "b": Fails()}
    with pytest.raises(InteropError):
        interop.convert_tree(tree, to="numpy", lists="arrays", consume=True)
    assert tree["a"].tolist() == [1, 2]
