"""What trees open beside Python's own containers, what passes through them, and what is refused."""

from __future__ import annotations

import datetime as dt
import warnings
from collections import ChainMap, UserDict, UserList
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
import xarray as xr

import interop
from interop.errors import (
    BadRequestError,
    HandOffError,
    InteropError,
    RefusedError,
    UnknownValueError,
)
from interop.plugin import Branch, Container
from tests.cases import together


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


def _check(result: Any, source: torch.Tensor) -> None:
    assert isinstance(result, np.ndarray)
    assert result.ctypes.data == source.data_ptr()


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
def test_mappings_of_others_are_opened(make: Any, kind: type) -> None:
    """What is asked by keys becomes another of its type around the arrays, by its own means."""
    tensor = torch.nn.Parameter(torch.arange(3.0))
    tree = make({"x": tensor})
    result = interop.convert_tree({"tree": tree}, to="numpy")["tree"]
    assert type(result) is kind
    _check(result.x if kind is SimpleNamespace else result["x"], tensor)
    assert (tree.x if kind is SimpleNamespace else tree["x"]) is tensor
    with pytest.raises(RefusedError, match=r"^tree/x: "):
        interop.convert_tree({"tree": tree}, to="numpy", dtype="float64", copy=False)


def test_a_mapping_of_others_keeps_its_attributes() -> None:
    """What a copy takes along beside the items is there afterwards."""
    graph = Graph(x=torch.ones(1))
    graph.tag = "train"
    result = interop.convert_tree(graph, to="numpy")
    assert type(result) is Graph
    assert result.tag == "train"
    assert isinstance(graph["x"], torch.Tensor)


def test_every_mapping_of_a_chain_is_converted() -> None:
    """A ChainMap comes back as one, with the arrays that its first mapping hides."""
    first, hidden = torch.ones(1), torch.zeros(1)
    chain = ChainMap({"x": first}, {"x": hidden, "n": 1})
    result = interop.convert_tree({"c": chain}, to="numpy")["c"]
    assert type(result) is ChainMap
    _check(result.maps[0]["x"], first)
    _check(result.maps[1]["x"], hidden)
    assert result["n"] == 1
    assert chain["x"] is first
    assert chain.maps[1]["x"] is hidden


@together("kind", [Frozen, torch.nn.ParameterDict])
def test_a_mapping_that_cannot_be_made_anew_is_refused(kind: Any) -> None:
    """Nothing else stands for it, and the advice works."""
    tree = kind({"x": torch.arange(3.0)})
    with pytest.raises(BadRequestError):
        interop.convert_tree({"tree": [tree]}, to="numpy")
    assert interop.convert_tree(dict(tree), to="numpy")["x"].tolist() == [0, 1, 2]


def test_weak_mappings_are_refused() -> None:
    """Nothing would refer to the new arrays, so that they would be gone with the call."""
    tensor = torch.ones(1)
    with pytest.raises(BadRequestError):
        interop.convert_tree({"w": WeakValueDictionary(x=tensor)}, to="numpy")


def test_a_tree_that_is_consumed_loses_nothing_to_a_mapping_that_takes_no_arrays() -> None:
    """A dict stands for the mapping if its copy does not take what has been converted."""
    tree = {"p": torch.nn.ParameterDict({"x": torch.ones(2)}), "q": torch.zeros(1)}
    with pytest.raises(BadRequestError):
        interop.convert_tree(tree, to="numpy", consume=True)
    assert tree["p"]["x"].tolist() == [1, 1]
    assert tree["q"].tolist() == [0]


def test_results_of_functions_are_opened_by_the_containers_of_plugins() -> None:
    """A function under accepts may return a Dataset, whose variables go back one by one."""

    @interop.accepts("numpy")
    def dataset(x: Any) -> xr.Dataset:
        return xr.Dataset({"x": ("i", x)})

    result = dataset(torch.ones(2))
    assert type(result) is dict
    assert isinstance(result["x"], torch.Tensor)


@pytest.mark.extra("requests")
def test_a_mapping_of_requests_keeps_its_type() -> None:
    """A mapping with a `copy` of its own still finds names in other cases."""
    from requests.structures import CaseInsensitiveDict

    headers = CaseInsensitiveDict({"Mean": torch.ones(2)})
    result = interop.convert_tree({"headers": headers}, to="numpy")["headers"]
    assert type(result) is CaseInsensitiveDict
    _check(result["mean"], headers["mean"])


@pytest.mark.extra("torch_geometric")
def test_graphs_of_pytorch_geometric_keep_their_type() -> None:
    """Data, a Batch and HeteroData come back as such, and the source is unchanged."""
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of its import
        from torch_geometric.data import Batch, Data, HeteroData

    data = Data(x=torch.ones(2, 3), edge_index=torch.tensor([[0], [1]]), name="a")
    batch, hetero = Batch.from_data_list([data, data]), HeteroData(year=torch.ones(1))
    hetero["paper"].x = torch.ones(2)
    hetero["a", "to", "b"].edge_index = torch.zeros(2, 1)
    keys = hetero.to_dict().keys()
    results = interop.convert_tree([data, batch, hetero], to="numpy")
    assert [*map(type, results)] == [Data, type(batch), HeteroData]
    _check(results[0].x, data.x)
    assert results[0].name == "a"
    assert results[1].num_graphs == 2
    _check(results[1].x, batch.x)
    _check(results[2]["paper"].x, hetero["paper"].x)
    _check(results[2]["a", "to", "b"].edge_index, hetero["a", "to", "b"].edge_index)
    _check(results[2].year, hetero.year)
    assert hetero.to_dict().keys() == keys == results[2].to_dict().keys()
    assert isinstance(hetero["paper"].x, torch.Tensor)
    with pytest.raises(UnknownValueError):
        interop.convert(hetero, to="numpy")


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
    result = mine.convert_tree({"tree": Frozen({"x": torch.ones(1)})}, to="numpy")["tree"]
    assert type(result) is Frozen
    assert isinstance(result["x"], np.ndarray)


def test_containers_of_others_without_arrays_stay_as_they_are() -> None:
    """A mapping or a tuple that would not come back as its own type is kept if it holds no array."""
    tree = {
        "a": Frozen({"x": 1}),
        "b": Graph(x=[Frozen({})]),
        "c": torch.Size([2]),
    }
    result = interop.convert_tree({**tree, "e": torch.ones(1)}, to="numpy", others="keep")
    assert all(result[name] is value for name, value in tree.items())
    numbers = interop.convert_tree({"b": Graph(x=1)}, to="numpy", others="convert")
    assert numbers["b"]["x"].tolist() == 1


def test_sequences_derived_from_pythons_are_opened() -> None:
    """A UserList, a tuple made by C and a subclass of tuple are opened and made anew."""

    class Pair(tuple):
        """A tuple of a type of its own."""

    tensor = torch.arange(3.0)
    ordered, users, pair = interop.convert_tree(
        [tensor.sort(), UserList([tensor]), Pair([tensor])], to="numpy"
    )
    assert type(ordered) is torch.return_types.sort
    assert ordered.indices.tolist() == [0, 1, 2]
    assert type(users) is UserList
    _check(users[0], tensor)
    assert type(pair) is Pair
    _check(pair[0], tensor)


def test_a_dataset_of_xarray_is_opened() -> None:
    """The variables of a Dataset are converted; one of text passes through."""
    data = xr.Dataset({"x": ("i", np.ones(2)), "y": ("j", np.ones(3)), "n": ("i", ["a", "b"])})
    result = interop.convert_tree({"d": data}, to="torch")["d"]
    assert type(result) is dict
    assert [result[name].tolist() for name in "xy"] == [[1, 1], [1, 1, 1]]
    assert result["n"].identical(data["n"])
    with pytest.raises(RefusedError, match=r"^d/x: "):
        interop.convert_tree({"d": data}, to="torch", forbid="drop_labels")


def test_a_file_of_numpys_is_opened(tmp_path: Path) -> None:
    """The arrays of an .npz file are read into a dict."""
    np.savez(tmp_path / "numbers.npz", a=np.arange(3.0), b=np.array(["x"]))
    with np.load(tmp_path / "numbers.npz") as file:
        result = interop.convert_tree(file, to="torch")
    assert type(result) is dict
    assert result["a"].tolist() == [0, 1, 2]
    assert result["b"].tolist() == ["x"]


RECORD = [("a", "i4"), ("b", "f8", (2,)), ("c", "U3"), ("n", [("x", "f4"), ("y", "u1")])]
ROWS = [(1, (2, 3), "d", (4, 5)), (6, (7, 8), "e", (9, 10))]


@together("kind", [np.ndarray, np.recarray])
def test_records_become_one_array_a_field(kind: Any) -> None:
    """Each field of numbers is one array, and nested fields and axes stay; text passes through."""
    records = np.array(ROWS, np.dtype(RECORD, align=True)).view(kind)
    result = interop.convert_tree({"r": [records], "w": np.ones(1)}, to="torch")["r"][0]
    a, b, c, nested = result.values()
    assert type(result) is type(nested) is dict
    assert list(result) == [*"abcn"]
    assert (a.tolist(), a.dtype) == ([1, 6], torch.int32)
    assert (b.tolist(), b.dtype) == ([[2, 3], [7, 8]], torch.float64)
    assert (type(c), c.tolist()) == (np.ndarray, ["d", "e"])
    assert (nested["x"].tolist(), nested["x"].dtype) == ([4, 9], torch.float32)
    assert (nested["y"].tolist(), nested["y"].dtype) == ([5, 10], torch.uint8)
    start = records.ctypes.data
    assert a.data_ptr() == start
    assert b.data_ptr() == start + records.dtype.fields["b"][1]
    assert nested["x"].data_ptr() == start + records.dtype.fields["n"][1]


def test_records_without_numbers_and_records_for_numpy_stay_records() -> None:
    """Nothing is opened that holds no numbers, or that the target holds as it is."""
    texts, records = np.zeros(2, [("a", "U3")]), np.zeros(2, "i4,f4")
    assert interop.convert_tree([texts], to="torch")[0] is texts
    assert interop.convert_tree([records, np.ones(1)], to="numpy")[0] is records


def test_one_record_and_masked_records_are_opened() -> None:
    """A record has fields without axes, and each field of masked records has its own mask."""
    records = np.zeros(2, "i4,f4")
    assert interop.convert_tree([records[1]], to="torch")[0]["f1"].shape == ()
    masked = np.ma.array(records, mask=[(True, False), (False, False)])
    result = interop.convert_tree([masked], to="pyarrow")[0]
    assert [result[name].to_pylist() for name in result] == [[None, 0], [0, 0]]


def test_an_error_in_a_field_of_records_says_where_it_came_up() -> None:
    """The path leads to the field; with others="refuse", a field of text is refused there."""
    tree = {"r": np.array(ROWS, np.dtype(RECORD, align=True))}
    with pytest.raises(RefusedError, match=r"^r/c: "):
        interop.convert_tree(tree, to="torch", others="refuse")
    numbers = {"r": tree["r"][["a", "n"]]}
    result = interop.convert_tree(numbers, to="torch", others="refuse")["r"]
    assert [*result, *result["n"]] == [*"anxy"]
    with pytest.raises(RefusedError, match=r"^r/n/x: "):
        interop.convert_tree(numbers, to="torch", dtype="float16", copy=False)


def test_the_refusal_of_records_leads_to_their_fields() -> None:
    """Records are no one array; what the refusal names makes an array of each field."""
    records = np.array(ROWS, RECORD)
    with pytest.raises(RefusedError):
        interop.convert(records, to="torch")
    assert interop.convert_tree(records, to="torch")["a"].tolist() == [1, 6]


@pytest.mark.extra("sklearn")
def test_a_bunch_of_scikit_learns_is_opened() -> None:
    """A data set comes back as one, with tensors for numbers and the names as they are."""
    from sklearn.datasets import load_iris

    iris = load_iris()
    result = interop.convert_tree(iris, to="torch")
    assert type(result) is type(iris)
    assert result.data.shape == (150, 4)
    assert result["data"].data_ptr() == iris.data.ctypes.data
    assert result.target_names is iris.target_names


@pytest.mark.extra("transformers")
def test_a_batch_of_a_tokenizer_is_opened() -> None:
    """A BatchEncoding comes back as one, and text in it passes through."""
    from transformers import BatchEncoding

    batch = BatchEncoding({"ids": np.ones((1, 2), "i8"), "text": np.array(["a b"])})
    result = interop.convert_tree(batch, to="torch", dtype={"integral": "int32"})
    assert type(result) is BatchEncoding
    assert result["ids"].dtype == torch.int32
    assert result["text"] is batch["text"]
    assert isinstance(batch["ids"], np.ndarray)


@pytest.mark.extra("attrs")
def test_instances_of_attrs_classes_are_opened() -> None:
    """They are made anew without running validators, also if they are frozen or have slots."""
    import attrs

    for define in (attrs.define, attrs.frozen, attrs.define(slots=False)):

        @define
        class Batch:
            x: Any = attrs.field(validator=attrs.validators.instance_of(torch.Tensor))
            name: str = "train"

        tensor = torch.ones(2)
        batch = Batch(tensor)
        result = interop.convert_tree([batch], to="numpy")[0]
        assert (type(result), result.name) == (Batch, "train")
        _check(result.x, tensor)
        assert batch.x is tensor


@pytest.mark.extra("pydantic")
def test_pydantic_models_are_opened() -> None:
    """They are made anew without validation, with what they take beyond their fields."""
    import pydantic

    class Batch(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(arbitrary_types_allowed=True, frozen=True, extra="allow")
        x: torch.Tensor
        name: str = "train"

    tensor = torch.ones(2)
    batch = Batch(x=tensor, more=tensor)
    result = interop.convert_tree(batch, to="numpy")
    assert (type(result), result.name) == (Batch, "train")
    _check(result.x, tensor)
    _check(result.more, tensor)
    assert batch.x is tensor
    with pytest.raises(RefusedError):
        interop.convert_tree(batch, to="numpy", dtype="float64", copy=False)


@pytest.mark.extra("msgspec")
def test_structs_of_msgspec_are_opened() -> None:
    """A struct comes back as one of its type, also if it is frozen."""
    import msgspec

    class Batch(msgspec.Struct, frozen=True):
        x: Any
        name: str = "train"

    tensor = torch.ones(2)
    result = interop.convert_tree((Batch(tensor),), to="numpy")[0]
    assert (type(result), result.name) == (Batch, "train")
    _check(result.x, tensor)


@pytest.mark.extra("tensordict")
def test_tensordicts_are_opened() -> None:
    """A dict stands for a TensorDict of other arrays; of tensors it stays one, of its batch size."""
    from tensordict import TensorDict, tensorclass

    @tensorclass
    class Frame:
        x: torch.Tensor
        name: str

    tensor = torch.arange(6.0).reshape(2, 3)
    frame = Frame(x=tensor, name="train", batch_size=[2])
    tree = TensorDict(
        {"x": tensor, "n": {"y": tensor}, "t": "text"}, batch_size=[2], names=["time"]
    )
    result, record = interop.convert_tree([tree, frame], to="numpy")
    assert (type(result), type(result["n"]), type(record)) == (dict, dict, dict)
    assert (result["t"], record["name"]) == ("text", "train")
    for array in (result["x"], result["n"]["y"], record["x"]):
        _check(array, tensor)
    result, record = interop.convert_tree([tree, frame], to="torch", dtype="float64")
    assert (type(result), type(record)) == (TensorDict, Frame)
    assert (result.batch_size, result.names, record.batch_size) == ((2,), ["time"], (2,))
    assert (result["t"], record.name) == ("text", "train")
    for array in (result["x"], result["n", "y"], record.x):
        assert torch.equal(array, tensor.double())
        assert array.dtype == torch.float64
    assert tree["x"].dtype == torch.float32


@pytest.mark.extra("tensordict")
def test_a_function_under_accepts_takes_tensordicts() -> None:
    """The function is given a dict of its own arrays, and the results become the caller's."""
    from tensordict import TensorDict

    tree = TensorDict({"x": torch.arange(3.0)}, batch_size=[3])

    @interop.accepts("numpy")
    def double(batch: Any) -> Any:
        assert isinstance(batch["x"], np.ndarray)
        return {"y": batch["x"] * 2}

    for _ in range(3):  # cold and warm
        result = double(tree)
        assert type(result["y"]) is torch.Tensor
        assert result["y"].tolist() == [0, 2, 4]


def test_the_owner_of_a_method_is_not_opened() -> None:
    """A method under accepts gets its own object, although that is a mapping of arrays."""

    class Batch(dict):
        """A mapping with a method."""

        @interop.accepts("numpy")
        def shifted(self, x: Any) -> Any:
            assert type(self) is Batch
            assert isinstance(self["shift"], torch.Tensor)
            return x + self["shift"].numpy()

    assert Batch(shift=torch.ones(2)).shifted(torch.ones(2)).tolist() == [2, 2]


@pytest.mark.extra("h5py")
def test_a_file_of_hdf5_is_opened(tmp_path: Path) -> None:
    """The datasets of a file and of its groups are read into arrays; a closed file says so."""
    import h5py

    with h5py.File(tmp_path / "numbers.h5", "w") as file:
        file["a/b"] = np.arange(3.0)
        with pytest.raises(UnknownValueError):
            interop.convert(file, to="torch")
        result = interop.convert_tree(file, to="torch")
        file.attrs["mean"] = np.ones(1)
        with pytest.raises(BadRequestError):
            interop.convert_tree(file.attrs, to="torch")
        assert interop.convert_tree(dict(file.attrs), to="torch")["mean"].tolist() == [1]
    assert type(result) is dict
    assert result["a"]["b"].tolist() == [0, 1, 2]
    with pytest.raises(HandOffError, match=r"^files/0: the File does not give what it holds") as e:
        interop.convert_tree({"files": [file]}, to="torch")
    assert isinstance(e.value.__cause__, ValueError)


_OTHERS: dict[str, Any] = {
    "text": np.array(["a", "b"]),
    "bytes": np.array([b"a"]),
    "objects": np.array([object()]),
    "dates": np.array(["2026-01-01"], dtype="datetime64[D]"),
    "one text": np.str_("a"),
    "one bytes": np.bytes_(b"a"),
    "one date": np.datetime64("2026-01-01"),
    "span": np.timedelta64(1, "s"),
    "column": pd.Series(["a"]),
    "categories": pd.Series(["a"], dtype="category"),
    "frame": pd.DataFrame({"n": [1], "t": ["a"]}),
    "polars": pl.Series(["a"]),
    "arrow": pa.array(["a", None]),
    "table": pa.table({"n": [1], "t": ["a"]}),
    "labelled": xr.DataArray(["a"]),
    "date": dt.date(2026, 1, 1),
    "path": Path("a"),
    "words": {"a", "b"},
}


@together("name", list(_OTHERS))
def test_convert_tree_passes_text_and_objects_through(name: str) -> None:
    """Arrays of text, objects and dates come back as they are, unless others are refused by path."""
    value, tensor = _OTHERS[name], torch.ones(2)
    for to in ("torch", "jax"):
        for _ in range(2):  # cold and warm
            result = interop.convert_tree({"a": [value], "x": tensor}, to=to)
            assert result["a"][0] is value
            assert result["x"].tolist() == [1, 1]
        with pytest.raises(InteropError):
            interop.convert_tree({"a": [value]}, to=to, others="refuse")
    if name in {"frame", "table"}:  # which have columns of numbers
        with pytest.raises(RefusedError):
            interop.convert_tree(value, to="torch")
    else:
        assert interop.convert_tree(value, to="torch") is value


def test_a_result_of_text_is_given_back_as_it_is() -> None:
    """A function under accepts may return names beside its numbers."""
    names = np.array(["a", "b"])

    @interop.accepts("numpy")
    def named(x: Any) -> Any:
        return x * 2, {"names": names}

    for _ in range(3):  # cold and warm
        doubled, rest = named(torch.ones(2))
        assert type(doubled) is torch.Tensor
        assert doubled.tolist() == [2, 2]
        assert rest["names"] is names


def test_numbers_that_are_refused_do_not_pass() -> None:
    """What is refused for another reason than its elements is refused in a tree, too."""
    for value in (
        np.ma.masked_array([1, 2], [True, False]),
        torch.ones(1, device="meta"),
    ):
        with pytest.raises(RefusedError):
            interop.convert_tree({"a": value}, to="numpy")


class Samples(Sequence[torch.Tensor]):
    """A sequence of a type that nobody knows how to make anew."""

    def __getitem__(self, index: Any) -> Any:
        return [torch.ones(1)][index]

    def __len__(self) -> int:
        return 1


@together(
    "make",
    [
        lambda: torch.nn.Linear(1, 1),
        lambda: torch.nn.ModuleDict({"a": torch.nn.Linear(1, 1)}),
        lambda: torch.nn.Linear(1, 1).named_parameters(),
        lambda: map(torch.ones, [1]),
        lambda: iter([torch.ones(1)]),
        {"a": torch.ones(1)}.values,
        lambda: {torch.ones(1)},
        Samples,
    ],
)
def test_convert_tree_refuses_models_iterators_and_sets_of_arrays(make: Any) -> None:
    """Models, iterators, sets, views and sequences of arrays never come back as they are."""
    for others in ("keep", "convert"):
        with pytest.raises(UnknownValueError):
            interop.convert_tree(make(), to="numpy", others=others)
        with pytest.raises(UnknownValueError, match=r"^a/0: "):
            interop.convert_tree({"a": [make()]}, to="numpy", others=others)


def test_a_tree_that_is_one_object_with_arrays_is_refused() -> None:
    """An object with arrays among its attributes passes inside a tree, and is refused as one."""

    class Holder:
        def __init__(self) -> None:
            self.x = torch.ones(1)

    class Archive:  # as that of safetensors, whose class names no module
        __module__ = "builtins"

        def keys(self) -> list[str]:
            return ["x"]

    class Slotted:
        __slots__ = ("__x", "y")

        def __init__(self) -> None:
            self.__x = torch.ones(1)

    class Steps:  # as a pipeline, whose parts hold the arrays
        def __init__(self) -> None:
            self.steps = [("first", Holder())]

    holder, loader = Holder(), torch.utils.data.DataLoader([torch.ones(1)])
    for value in (holder, Slotted(), Steps(), loader, Archive()):
        with pytest.raises(UnknownValueError):
            interop.convert_tree(value, to="numpy")
        assert interop.convert_tree([value], to="numpy")[0] is value
    plain = object()
    assert interop.convert_tree(plain, to="numpy") is plain


@together(
    "make",
    [
        lambda frame: frame,
        lambda frame: {"train": frame},
        lambda frame: [["a", frame], np.array(["b"]), frame],
    ],
)
def test_a_tree_of_nothing_but_tables_with_text_is_refused(make: Any) -> None:
    """They may have columns of numbers, so they do not all come back as they are, silently."""
    for frame in (
        pd.DataFrame({"n": [1], "t": ["a"]}),
        pl.DataFrame({"n": [1], "t": ["a"]}),
        pa.table({"n": [1], "t": ["a"]}),
    ):
        for _ in range(2):
            with pytest.raises(RefusedError, match=r"^(the root|train|0/1): "):
                interop.convert_tree(make(frame), to="torch")
        assert interop.convert_tree([make(frame), np.ones(1)], to="torch")[1].tolist() == [1]
