"""Trees of frameworks: state dicts, pytrees, records, tables and batches, and what stays tied in them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optree
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sparse
import torch
import xarray as xr

import interop
from interop.errors import (
    BadRequestError,
    HandOffError,
    InteropError,
    RefusedError,
    RefusedLeavesError,
    UnknownValueError,
)
from tests.cases import together


def _tensor() -> torch.Tensor:
    return torch.arange(3.0, requires_grad=True)


def _check(result: Any, source: torch.Tensor) -> None:
    assert isinstance(result, np.ndarray)
    assert result.ctypes.data == source.data_ptr()


# ---------------------------------------------------------------------- what is tied


@pytest.mark.parametrize("copy", [None, True])
def test_a_state_dict_keeps_its_versions_and_tied_weights(copy: bool | None) -> None:
    """Versions stand beside the arrays, one weight under two names is one copy, and torch loads it."""
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.BatchNorm1d(2))
    model[1].weight = model[0].weight
    state = model.state_dict()
    assert state["0.weight"] is not state["1.weight"]
    for _ in range(3):  # the later ones may take fast paths
        result = interop.convert_tree(state, to="numpy", copy=copy)
        assert (type(result), list(result)) == (type(state), list(state))
        assert result._metadata == state._metadata
        first, second = result["0.weight"], result["1.weight"]
        assert first.ctypes.data == second.ctypes.data
        assert (first is second) is (copy is True)
        assert (first.ctypes.data == model[0].weight.data_ptr()) is (copy is None)
    model.load_state_dict(interop.convert_tree(result, to="torch"))


def test_tied_arrays_are_one_copy_of_jaxs() -> None:
    """Of two views of one array JAX makes one copy, in the first call and in later ones."""
    array = np.ones(4, "f4")
    for _ in range(3):
        result = interop.convert_tree({"b": array, "a": array[:]}, to="jax")
        assert result["a"] is result["b"]


def test_sparse_and_labelled_values_are_not_tied() -> None:
    """They may share their memory and differ: in what fills the rest, or in the index."""
    data, coords = np.ones(2), np.array([[0, 1]])
    pair = [sparse.COO(coords, data, (3,), fill_value=fill) for fill in (0.0, 5.0)]
    dense = interop.convert_tree(pair, to="numpy", copy=True)
    assert [array.tolist() for array in dense] == [[1, 1, 0], [1, 1, 5]]
    series = [pd.Series(data, index=[*names], copy=False) for names in ("ab", "cd")]
    copies = interop.convert_tree(series, to="pandas.series", copy=True)
    assert [list(s.index) for s in copies] == [["a", "b"], ["c", "d"]]


@pytest.mark.parametrize("requires_grad", [False, True])
def test_lazy_conjugates_are_not_tied_to_what_they_conjugate(requires_grad: bool) -> None:
    """A lazy conjugate lies in the memory of its source and has other numbers, in a graph or not."""
    z = torch.tensor([1 + 2j, 3 - 1j], requires_grad=requires_grad)
    plain, conjugate, twin = interop.convert_tree([z, z.conj(), z.detach()], to="numpy", copy=True)
    assert plain.tolist() == [1 + 2j, 3 - 1j]
    assert conjugate.tolist() == [1 - 2j, 3 + 1j]
    assert plain is twin


# ---------------------------------------------------------------------- containers


@jax.tree_util.register_pytree_with_keys_class
class Registered:
    """A class that only JAX knows how to open."""

    def __init__(self, weight: Any, name: str) -> None:
        self.weight, self.name = weight, name

    def tree_flatten_with_keys(self) -> Any:
        return (((jax.tree_util.GetAttrKey("weight"), self.weight),), self.name)

    @classmethod
    def tree_unflatten(cls, name: str, children: Any) -> Registered:
        return cls(*children, name)


def test_containers_of_frameworks_are_opened() -> None:
    """A pytree of JAX's, packed sequences and results of torch's come back as such, over the memory."""
    tensor = torch.arange(3.0)
    packed = torch.nn.utils.rnn.pack_sequence([torch.ones(2), torch.ones(1)])
    tree = [Registered(tensor, "name"), packed, tensor.sort(), torch.Size([2])]
    pytree, sequences, ordered, size = interop.convert_tree(tree, to="numpy")
    assert (type(pytree), pytree.name) == (Registered, "name")
    _check(pytree.weight, tensor)
    assert type(sequences) is type(packed)
    _check(sequences.data, packed.data)
    assert (sequences.batch_sizes.tolist(), sequences.sorted_indices) == ([2, 1], None)
    assert type(ordered) is torch.return_types.sort
    assert ordered.indices.tolist() == [0, 1, 2]
    assert size is tree[3]


def test_dtype_objects_of_torchs_pass_through() -> None:
    """They are no arrays."""
    tree = interop.convert_tree({"dtype": torch.float32, "x": torch.ones(1)}, to="numpy")
    assert tree["dtype"] is torch.float32


def test_a_dict_of_parameters_takes_no_arrays_and_loses_none() -> None:
    """It is refused, also where it is consumed; a dict of the same is converted."""
    tree = {"p": torch.nn.ParameterDict({"x": torch.ones(2)}), "q": torch.zeros(1)}
    for consume in (False, True):
        with pytest.raises(BadRequestError):
            interop.convert_tree(tree, to="numpy", consume=consume)
        assert (tree["p"]["x"].tolist(), tree["q"].tolist()) == ([1, 1], [0])
    assert interop.convert_tree(dict(tree["p"]), to="numpy")["x"].tolist() == [1, 1]


@together(
    "make",
    [
        lambda: torch.nn.Linear(1, 1),
        lambda: torch.nn.ModuleDict({"a": torch.nn.Linear(1, 1)}),
        lambda: torch.nn.Linear(1, 1).named_parameters(),
        lambda: torch.utils.data.DataLoader([torch.ones(1)]),
    ],
)
def test_models_and_their_parameters_are_refused(make: Any) -> None:
    """A module, its parameters or a loader never come back as they are where they are all."""
    with pytest.raises(UnknownValueError):
        interop.convert_tree(make(), to="numpy")
    if not isinstance(make(), torch.utils.data.DataLoader):
        with pytest.raises(UnknownValueError, match=r"^a/0: "):
            interop.convert_tree({"a": [make()]}, to="numpy")


def test_masked_records_become_columns_of_arrows_with_nulls() -> None:
    """Each field has its own mask."""
    records = np.zeros(2, "i4,f4")
    masked = np.ma.array(records, mask=[(True, False), (False, False)])
    result = interop.convert_tree([masked], to="pyarrow")[0]
    assert [result[name].to_pylist() for name in result] == [[None, 0], [0, 0]]


def test_records_become_tensors_of_their_fields() -> None:
    """A tensor a field, of the field's dtype and over the records' memory."""
    records = np.array([(1, 2.0), (3, 4.0)], [("a", "i4"), ("b", "u1")])
    result = interop.convert_tree([records], to="torch")[0]
    assert {name: x.dtype for name, x in result.items()} == {"a": torch.int32, "b": torch.uint8}
    assert result["b"].data_ptr() == records.ctypes.data + 4


_OTHERS: dict[str, Any] = {
    "column": pd.Series(["a"]),
    "categories": pd.Series(["a"], dtype="category"),
    "frame": pd.DataFrame({"n": [1], "t": ["a"]}),
    "polars": pl.Series(["a"]),
    "arrow": pa.array(["a", None]),
    "table": pa.table({"n": [1], "t": ["a"]}),
    "labelled": xr.DataArray(["a"]),
}


@together("name", list(_OTHERS))
def test_columns_of_text_pass_through(name: str) -> None:
    """Text of tables and columns comes back as it is, unless others are refused by path."""
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


def test_tables_of_text_alone_are_named_at_once() -> None:
    """A tree is refused if all its arrays are tables that cannot be converted: by the paths of all."""
    table = pd.DataFrame({"a": ["x"], "b": [1]})
    with pytest.raises(RefusedLeavesError):
        interop.convert_tree([table, table.copy()], to="torch")


def test_arrays_that_are_pytrees_are_arrays() -> None:
    """A sparse JAX array is converted whole, although JAX calls it a pytree."""
    from jax.experimental import sparse

    value = sparse.BCOO.fromdense(jnp.eye(2))
    (result,) = interop.convert_tree([value], to="numpy")
    assert np.array_equal(result, np.eye(2))


@pytest.mark.extra("transformers")
def test_model_outputs_of_transformers() -> None:
    """A ModelOutput keeps its class, its attributes and what it leaves out."""
    from transformers.modeling_outputs import BaseModelOutput

    output = BaseModelOutput(last_hidden_state=_tensor(), hidden_states=(_tensor(), _tensor()))
    result = interop.convert_tree(output, to="numpy")
    assert type(result) is BaseModelOutput
    _check(result.last_hidden_state, output.last_hidden_state)
    _check(result["last_hidden_state"], output.last_hidden_state)
    _check(result.hidden_states[1], output.hidden_states[1])
    assert result.attentions is None
    assert list(result) == ["last_hidden_state", "hidden_states"]
    assert isinstance(output.last_hidden_state, torch.Tensor)


def test_types_registered_with_optree_are_traversed() -> None:
    """A type that a user has registered with optree is traversed."""

    class Pair:
        def __init__(self, *items: Any) -> None:
            self.items = items

    everywhere = optree.registry.__GLOBAL_NAMESPACE
    optree.register_pytree_node(
        Pair, lambda p: (p.items, None), lambda _, items: Pair(*items), namespace=everywhere
    )
    tensor = _tensor()
    result = interop.convert_tree([Pair(tensor, 1)], to="numpy")
    _check(result[0].items[0], tensor)


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


def test_a_dataset_of_xarray_is_opened() -> None:
    """The variables of a Dataset are converted; one of text passes through."""
    data = xr.Dataset({"x": ("i", np.ones(2)), "y": ("j", np.ones(3)), "n": ("i", ["a", "b"])})
    result = interop.convert_tree({"d": data}, to="torch")["d"]
    assert type(result) is dict
    assert [result[name].tolist() for name in "xy"] == [[1, 1], [1, 1, 1]]
    assert result["n"].identical(data["n"])
    with pytest.raises(RefusedError, match=r"^d/x: "):
        interop.convert_tree({"d": data}, to="torch", forbid="drop_labels")


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
