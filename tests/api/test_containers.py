"""What trees open beside Python's own containers, what passes through them, and what is refused."""

from __future__ import annotations

import datetime as dt
import time
from collections import ChainMap, UserDict, UserList
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pytest

import interop
from interop import Interop
from interop.errors import BadRequestError, InteropError, RefusedError, UnknownValueError
from interop.plugin import Branch, Container
from tests.cases import together
from tests.kit.library import Array, arange, ones
from tests.kit.library_plugin import with_library


@pytest.fixture(scope="module")
def mine() -> Interop:
    """An instance that also knows the toy library."""
    return with_library()


class Frozen(Mapping):
    """A mapping of a type that has no copy of its own."""

    def __init__(self, contents: dict[str, Any]) -> None:
        self._contents = contents

    def __getitem__(self, name: str) -> Any:
        return self._contents[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._contents)

    def __len__(self) -> int:
        return len(self._contents)


class Graph:
    """An object that is asked by keys, as those of torch_geometric are."""

    def __init__(self, **contents: Any) -> None:
        self._contents = contents
        self.tag: str | None = None

    def __copy__(self) -> Graph:
        new = Graph(**self._contents)
        new.tag = self.tag
        return new

    def __setitem__(self, name: str, value: Any) -> None:
        self._contents[name] = value

    def keys(self) -> list[str]:
        return list(self._contents)

    def __getitem__(self, name: str) -> Any:
        return self._contents[name]


class OfItsOwn(Graph):
    """What takes no arrays but those of the library, as torch's dicts of parameters do."""

    def __setitem__(self, name: str, value: Any) -> None:
        if not isinstance(value, Array):
            raise TypeError(name)
        super().__setitem__(name, value)

    def __copy__(self) -> OfItsOwn:
        return OfItsOwn(**self._contents)


def _check(result: Any, source: Array) -> None:
    assert isinstance(result, np.ndarray)
    assert result.ctypes.data == source.data.ctypes.data


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda contents: Graph(**contents), Graph),
        (UserDict, UserDict),
        (MappingProxyType, MappingProxyType),
        (lambda contents: SimpleNamespace(**contents), SimpleNamespace),
    ],
    ids=["keys", "UserDict", "MappingProxyType", "SimpleNamespace"],
)
def test_mappings_of_others_are_opened(mine: Interop, make: Any, kind: type) -> None:
    """What is asked by keys becomes another of its type around the arrays, by its own means."""
    tensor = arange(3)
    tree = make({"x": tensor})
    result = mine.convert_tree({"tree": tree}, to="numpy")["tree"]
    assert type(result) is kind
    _check(result.x if kind is SimpleNamespace else result["x"], tensor)
    assert (tree.x if kind is SimpleNamespace else tree["x"]) is tensor
    with pytest.raises(RefusedError, match=r"^tree/x: "):
        mine.convert_tree({"tree": tree}, to="numpy", dtype="float64", copy=False)


def test_a_mapping_of_others_keeps_its_attributes(mine: Interop) -> None:
    """What a copy takes along beside the items is there afterwards."""
    graph = Graph(x=ones(1))
    graph.tag = "train"
    result = mine.convert_tree(graph, to="numpy")
    assert type(result) is Graph
    assert result.tag == "train"
    assert isinstance(graph["x"], Array)


def test_every_mapping_of_a_chain_is_converted(mine: Interop) -> None:
    """A ChainMap comes back as one, with the arrays that its first mapping hides."""
    first, hidden = ones(1), ones(1)
    chain = ChainMap({"x": first}, {"x": hidden, "n": 1})
    result = mine.convert_tree({"c": chain}, to="numpy")["c"]
    assert type(result) is ChainMap
    _check(result.maps[0]["x"], first)
    _check(result.maps[1]["x"], hidden)
    assert result["n"] == 1
    assert chain["x"] is first
    assert chain.maps[1]["x"] is hidden


@together("kind", [Frozen, lambda contents: OfItsOwn(**contents)])
def test_a_mapping_that_cannot_be_made_anew_is_refused(mine: Interop, kind: Any) -> None:
    """Nothing else stands for it, and the advice works."""
    tree = kind({"x": arange(3)})
    with pytest.raises(BadRequestError):
        mine.convert_tree({"tree": [tree]}, to="numpy")
    assert mine.convert_tree({"x": tree["x"]}, to="numpy")["x"].tolist() == [0, 1, 2]


def test_weak_mappings_are_refused(mine: Interop) -> None:
    """Nothing would refer to the new arrays, so that they would be gone with the call."""
    tensor = ones(1)
    with pytest.raises(BadRequestError):
        mine.convert_tree({"w": WeakValueDictionary(x=tensor)}, to="numpy")


def test_a_tree_that_is_consumed_loses_nothing_to_a_mapping_that_takes_no_arrays(
    mine: Interop,
) -> None:
    """A dict stands for the mapping if its copy does not take what has been converted."""
    tree = {"p": OfItsOwn(x=ones(2)), "q": ones(1)}
    with pytest.raises(BadRequestError):
        mine.convert_tree(tree, to="numpy", consume=True)
    assert tree["p"]["x"].tolist() == [1, 1]
    assert tree["q"].tolist() == [1]


def test_a_mapping_is_registered_by_a_container() -> None:
    """A plugin's way to open a type counts before its own means."""

    def opened(value: Any) -> Branch | None:
        if not isinstance(value, Frozen):
            return None
        names = list(value)
        return Branch(
            names,
            [value[name] for name in names],
            lambda new: Frozen(dict(zip(names, new, strict=True))),
        )

    mine = interop.Interop()
    mine.register(Container(__name__, opened))
    result = mine.convert_tree({"tree": Frozen({"x": ones(1)})}, to="numpy")["tree"]
    assert type(result) is Frozen
    assert isinstance(result["x"], np.ndarray)


class Size(tuple):
    """A tuple that is not made of one argument."""

    def __new__(cls, height: int, width: int) -> Any:
        return super().__new__(cls, (height, width))


def test_containers_of_others_without_arrays_stay_as_they_are(mine: Interop) -> None:
    """A mapping or a tuple that would not come back as its own type is kept if it holds no array."""
    tree = {
        "a": Frozen({"x": 1}),
        "b": Graph(x=[Frozen({})]),
        "c": Size(1, 2),
    }
    result = mine.convert_tree({**tree, "e": ones(1)}, to="numpy", others="keep")
    assert all(result[name] is value for name, value in tree.items())
    numbers = mine.convert_tree({"b": Graph(x=1)}, to="numpy", others="convert")
    assert numbers["b"]["x"].tolist() == 1


def test_sequences_derived_from_pythons_are_opened(mine: Interop) -> None:
    """A UserList, a tuple made by C and a subclass of tuple are opened and made anew."""

    class Pair(tuple):
        """A tuple of a type of its own."""

    array = arange(3)
    time_, users, pair = mine.convert_tree(
        [time.struct_time([array, *range(1, 9)]), UserList([array]), Pair([array])], to="numpy"
    )
    assert (type(time_), type(users), type(pair)) == (time.struct_time, UserList, Pair)
    for result in (time_.tm_year, users[0], pair[0]):
        _check(result, array)
    assert time_[1:] == tuple(range(1, 9))


def test_a_file_of_numpys_is_opened(mine: Interop, tmp_path: Path) -> None:
    """The arrays of an .npz file are read into a dict."""
    np.savez(tmp_path / "numbers.npz", a=np.arange(3.0), b=np.array(["x"]))
    with np.load(tmp_path / "numbers.npz") as file:
        result = mine.convert_tree(file, to="library")
    assert type(result) is dict
    assert result["a"].data.tolist() == [0, 1, 2]
    assert result["b"].tolist() == ["x"]


RECORD = [("a", "i8"), ("b", "f8", (2,)), ("c", "U3"), ("n", [("x", "f4"), ("y", "c8")])]
ROWS = [(1, (2, 3), "d", (4, 5)), (6, (7, 8), "e", (9, 10))]


@together("kind", [np.ndarray, np.recarray])
def test_records_become_one_array_a_field(mine: Interop, kind: Any) -> None:
    """Each field of numbers is one array, and nested fields and axes stay; text passes through."""
    records = np.array(ROWS, np.dtype(RECORD, align=True)).view(kind)
    result = mine.convert_tree({"r": [records], "w": np.ones(1)}, to="library")["r"][0]
    a, b, c, nested = result.values()
    x, y = nested["x"].data, nested["y"].data
    assert type(result) is type(nested) is dict
    assert list(result) == [*"abcn"]
    assert (a.data.tolist(), a.data.dtype) == ([1, 6], "i8")
    assert (b.data.tolist(), b.data.dtype) == ([[2, 3], [7, 8]], "f8")
    assert (type(c), c.tolist()) == (np.ndarray, ["d", "e"])
    assert (x.tolist(), x.dtype) == ([4, 9], "f4")
    assert (y.tolist(), y.dtype) == ([5, 10], "c8")
    start = records.ctypes.data
    assert a.data.ctypes.data == start
    assert b.data.ctypes.data == start + records.dtype.fields["b"][1]
    assert x.ctypes.data == start + records.dtype.fields["n"][1]


def test_records_without_numbers_and_records_for_numpy_stay_records(mine: Interop) -> None:
    """Nothing is opened that holds no numbers, or that the target holds as it is."""
    texts, records = np.zeros(2, [("a", "U3")]), np.zeros(2, "i4,f4")
    assert mine.convert_tree([texts], to="library")[0] is texts
    assert mine.convert_tree([records, np.ones(1)], to="numpy")[0] is records


def test_one_record_and_masked_records_are_opened(mine: Interop) -> None:
    """A record has fields without axes, and each field of masked records has its own mask."""
    records = np.zeros(2, "i8,f4")
    assert mine.convert_tree([records[1]], to="library")[0]["f1"].shape == ()
    masked = np.ma.array(records, mask=[(True, False), (False, False)])
    with pytest.raises(RefusedError) as caught:
        mine.convert_tree([masked], to="library")
    assert caught.value.where == "0/f0"


def test_an_error_in_a_field_of_records_says_where_it_came_up(mine: Interop) -> None:
    """The path leads to the field; with others="refuse", a field of text is refused there."""
    tree = {"r": np.array(ROWS, np.dtype(RECORD, align=True))}
    with pytest.raises(RefusedError, match=r"^r/c: "):
        mine.convert_tree(tree, to="library", others="refuse")
    numbers = {"r": tree["r"][["a", "n"]]}
    result = mine.convert_tree(numbers, to="library", others="refuse")["r"]
    assert [*result, *result["n"]] == [*"anxy"]
    with pytest.raises(RefusedError, match=r"^r/n/x: "):
        mine.convert_tree(numbers, to="library", dtype="float64", copy=False)


def test_the_refusal_of_records_leads_to_their_fields(mine: Interop) -> None:
    """Records are no one array; what the refusal names makes an array of each field."""
    records = np.array(ROWS, RECORD)
    with pytest.raises(RefusedError):
        mine.convert(records, to="library")
    assert mine.convert_tree(records, to="library")["a"].data.tolist() == [1, 6]


def test_the_owner_of_a_method_is_not_opened(mine: Interop) -> None:
    """A method under accepts gets its own object, although that is a mapping of arrays."""

    class Batch(dict):
        """A mapping with a method."""

        @mine.accepts("numpy")
        def shifted(self, x: Any) -> Any:
            assert type(self) is Batch
            assert isinstance(self["shift"], Array)
            return x + self["shift"].data

    assert Batch(shift=ones(2)).shifted(ones(2)).data.tolist() == [2, 2]


_OTHERS: dict[str, Any] = {
    "text": np.array(["a", "b"]),
    "bytes": np.array([b"a"]),
    "objects": np.array([object()]),
    "dates": np.array(["2026-01-01"], dtype="datetime64[D]"),
    "one text": np.str_("a"),
    "one bytes": np.bytes_(b"a"),
    "one date": np.datetime64("2026-01-01"),
    "span": np.timedelta64(1, "s"),
    "date": dt.date(2026, 1, 1),
    "path": Path("a"),
    "words": {"a", "b"},
}


@together("name", list(_OTHERS))
def test_convert_tree_passes_text_and_objects_through(mine: Interop, name: str) -> None:
    """Arrays of text, objects and dates come back as they are, unless others are refused by path."""
    value, array = _OTHERS[name], ones(2)
    for to in ("library", "python"):
        for _ in range(2):  # cold and warm
            result = mine.convert_tree({"a": [value], "x": array}, to=to)
            assert result["a"][0] is value
            assert mine.convert(result["x"], to="python") == [1, 1]
        with pytest.raises(InteropError):
            mine.convert_tree({"a": [value]}, to=to, others="refuse")
    assert mine.convert_tree(value, to="library") is value


def test_a_result_of_text_is_given_back_as_it_is(mine: Interop) -> None:
    """A function under accepts may return names beside its numbers."""
    names = np.array(["a", "b"])

    @mine.accepts("numpy")
    def named(x: Any) -> Any:
        return x * 2, {"names": names}

    for _ in range(3):  # cold and warm
        doubled, rest = named(ones(2))
        assert type(doubled) is Array
        assert doubled.data.tolist() == [2, 2]
        assert rest["names"] is names


def test_numbers_that_are_refused_do_not_pass(mine: Interop) -> None:
    """What is refused for another reason than its elements is refused in a tree, too."""
    masked = np.ma.masked_array([1, 2], [True, False])
    with pytest.raises(RefusedError):
        mine.convert_tree({"a": masked}, to="library")


class Samples(Sequence[Array]):
    """A sequence of a type that nobody knows how to make anew."""

    def __getitem__(self, index: Any) -> Any:
        return [ones(1)][index]

    def __len__(self) -> int:
        return 1


@together(
    "make",
    [
        lambda: map(ones, [1]),
        lambda: iter([ones(1)]),
        {"a": ones(1)}.values,
        lambda: {ones(1)},
        Samples,
    ],
)
def test_convert_tree_refuses_models_iterators_and_sets_of_arrays(mine: Interop, make: Any) -> None:
    """Models, iterators, sets, views and sequences of arrays never come back as they are."""
    for others in ("keep", "convert"):
        with pytest.raises(UnknownValueError):
            mine.convert_tree(make(), to="numpy", others=others)
        with pytest.raises(UnknownValueError, match=r"^a/0: "):
            mine.convert_tree({"a": [make()]}, to="numpy", others=others)


def test_a_tree_that_is_one_object_with_arrays_is_refused(mine: Interop) -> None:
    """An object with arrays among its attributes passes inside a tree, and is refused as one."""

    class Holder:
        def __init__(self) -> None:
            self.x = ones(1)

    class Archive:  # as that of safetensors, whose class names no module
        __module__ = "builtins"

        def keys(self) -> list[str]:
            return ["x"]

    class Slotted:
        __slots__ = ("__x", "y")

        def __init__(self) -> None:
            self.__x = ones(1)

    class Steps:  # as a pipeline, whose parts hold the arrays
        def __init__(self) -> None:
            self.steps = [("first", Holder())]

    for value in (Holder(), Slotted(), Steps(), Archive()):
        with pytest.raises(UnknownValueError):
            mine.convert_tree(value, to="numpy")
        assert mine.convert_tree([value], to="numpy")[0] is value
    plain = object()
    assert mine.convert_tree(plain, to="numpy") is plain
