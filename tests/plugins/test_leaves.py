"""Leaves and containers of trees that are not what they seem to be."""

from __future__ import annotations

import collections
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch.fx.experimental.proxy_tensor import make_fx

import interop
from interop.errors import BadRequestError, RefusedError, UnknownValueError
from tests.cases import together

# ---------------------------------------------------------------------- what holds no numbers


def _tensorflow(make: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: make(import_module("tensorflow"))


NO_NUMBERS: dict[str, Callable[[], Any]] = {
    "strings": _tensorflow(lambda tf: tf.constant(["a"])),
    "ragged strings": _tensorflow(lambda tf: tf.ragged.constant([["a"], ["b", "c"]])),
    "sparse strings": _tensorflow(lambda tf: tf.sparse.from_dense(tf.constant([["a", ""]]))),
    "a resource": _tensorflow(
        lambda tf: (
            tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(["a"], [1]), 0
            ).resource_handle
        )
    ),
    "a variant": _tensorflow(lambda tf: tf.data.Dataset.range(3)._variant_tensor),
    "codes": _tensorflow(lambda tf: tf.bitcast(tf.constant([1], tf.int8), tf.qint8)),
}


# github.com/huggingface/datasets/issues/5072
@pytest.mark.extra("tensorflow")
@together("name", NO_NUMBERS)
@together("to", ["torch", "numpy", "jax"])
def test_leaves_without_numbers_pass_through_a_tree(name: str, to: str) -> None:
    """What TensorFlow has beside numbers stays as it is among numbers, and is refused alone."""
    value = NO_NUMBERS[name]()
    tree = interop.convert_tree({"x": np.ones(2, "float32"), "name": value}, to=to)
    assert tree["name"] is value
    assert interop.spec(tree["x"]).format == to
    with pytest.raises(RefusedError):
        interop.convert(value, to=to)
    with pytest.raises(RefusedError):
        interop.convert_tree({"name": value}, to=to, others="refuse")


# github.com/skjerns/mat7.3/issues/14
@pytest.mark.extra("h5py")
def test_null_datasets_pass_through_a_file(tmp_path: Path) -> None:
    """A dataset of HDF5 without a shape is an empty value, or stays, and the others are converted."""
    h5py = import_module("h5py")
    with h5py.File(tmp_path / "some.h5", "w") as file:
        file["x"], file["e"] = np.ones(2), h5py.Empty("f4")
        tree = interop.convert_tree(file, to="torch")
        leaves = interop.convert_tree({"x": file["x"], "e": file["e"]}, to="torch")
        assert leaves["e"] == file["e"]
        with pytest.raises(RefusedError):
            interop.convert(file["e"], to="torch")
    assert tree["x"].tolist() == leaves["x"].tolist() == [1, 1]
    assert (type(tree["e"]), tree["e"].dtype) == (h5py.Empty, "float32")


# github.com/gzuidhof/nn-transfer/issues/13
@pytest.mark.extra("tensorflow", "keras")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@together("make", ["Sequential", "layers.Dense", "optimizers.Adam", "metrics.Mean"])
def test_models_of_keras_are_refused_as_models_are(make: str) -> None:
    """A model, a layer or an optimizer is not given back unconverted: its own variables convert."""
    keras = import_module("keras")
    kind = keras
    for name in make.split("."):
        kind = getattr(kind, name)
    value = (
        kind([keras.Input((3,)), keras.layers.Dense(2)])
        if make == "Sequential"
        else (kind(2) if make == "layers.Dense" else kind())
    )
    for tree in (value, {"x": np.ones(1), "model": [value]}):
        with pytest.raises(UnknownValueError, match=r"x\.get_weights\(\)|x\.variables") as refusal:
            interop.convert_tree(tree, to="torch")
    weights = value.variables if "x.variables" in str(refusal.value) else value.get_weights()
    assert isinstance(interop.convert_tree(list(weights), to="torch"), list)


# ---------------------------------------------------------------------- tensors without memory


class Waiting(torch.Tensor):
    """A result of a collective operation that others are still computing."""

    held: torch.Tensor

    @staticmethod
    def __new__(cls, held: torch.Tensor) -> Any:
        self = torch.Tensor._make_wrapper_subclass(cls, held.shape, dtype=held.dtype)
        self.held = held
        return self

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def wait(self) -> torch.Tensor:
        return self.held


class Edges(Waiting):
    """An index of edges, which keeps it in a tensor of its own."""

    wait = None  # type: ignore[assignment]

    def as_tensor(self) -> torch.Tensor:
        return self.held


def _traced(mode: str) -> str:
    """Return what a conversion inside a trace of some kind says."""
    said: list[str] = []

    def function(x: torch.Tensor) -> torch.Tensor:
        with pytest.raises(RefusedError) as refusal:
            interop.convert(x, to="numpy")
        said.append(str(refusal.value))
        return x * 1

    if mode == "export":

        class Module(torch.nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return function(x)

        torch.export.export(Module(), (torch.ones(2),), strict=False)
    else:
        make_fx(function, tracing_mode=mode)(torch.ones(2))
    return said[0]


def _said(value: Any) -> str:
    with pytest.raises(RefusedError) as refusal:
        interop.convert(value, to="numpy")
    with pytest.raises(RefusedError):
        interop.convert_tree({"x": value}, to="numpy")
    return str(refusal.value)


# github.com/pytorch/pytorch/issues/152534, 148779; github.com/sgl-project/sglang/issues/2353
@pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)
@together(
    "say, words",
    [
        (lambda: _said(Waiting(torch.ones(2))), "convert what x.wait() returns"),
        (lambda: _said(Edges(torch.ones(2))), "convert what x.as_tensor() returns"),
        (lambda: _said(torch.nn.LazyLinear(2).weight), "call the module once"),
        (lambda: _traced("export"), "convert outside the trace"),
        (lambda: _traced("fake"), "convert outside the trace"),
        (lambda: _traced("symbolic"), "convert outside the trace"),
        (lambda: _said(torch.ones(2, device="meta")), "give it data first"),
    ],
)
def test_a_tensor_without_memory_says_what_leads_on(say: Callable[[], str], words: str) -> None:
    """What waits, wraps, is not initialized or is traced each has a sentence of its own."""
    assert words in say()


# ---------------------------------------------------------------------- containers


@together(
    "name",
    [
        *("h5py", "zarr", "optree", "pydantic", "msgspec", "tensordict", "torch_geometric.data"),
        *("xarray", "attr"),
    ],
)
@together("mocked", [False, True])
def test_a_module_of_the_same_name_changes_nothing(
    name: str, mocked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program's own ``zarr.py``, or what stands in for one, has no containers of zarr's."""

    class Mocked(ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return Mocked(name)

    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, name, (Mocked if mocked else ModuleType)(name))
        leaf = object()
        result = interop.Interop().convert_tree({"x": np.ones(1), "y": leaf}, to="torch")
    assert result["x"].tolist() == [1]
    assert result["y"] is leaf


class Frozen(dict[Any, Any]):
    """A dict that takes no items."""

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError("it is immutable")

    def __reduce__(self) -> Any:
        return Frozen, (dict(self),)


class Shared(dict[Any, Any]):
    """A dict whose copy is itself."""

    def __copy__(self) -> Any:
        return self


class Buffer(collections.deque[Any]):
    """A deque that is made in a way of its own."""

    def __init__(self, owner: str, room: int, unit: str) -> None:
        super().__init__(maxlen=room)


def _buffer() -> Buffer:
    buffer = Buffer("me", 3, "s")
    buffer.append(np.ones(1))
    return buffer


@together(
    "make, way",
    [
        (lambda: Frozen(x=np.ones(1)), "dict(x)"),
        (lambda: Shared(x=np.ones(1)), "dict(x)"),
        (_buffer, "list(x)"),
    ],
)
def test_containers_that_cannot_be_refilled_are_refused(make: Callable[[], Any], way: str) -> None:
    """The refusal has the path and what to pass; the container keeps its items."""
    value = make()
    items = list(value.values() if isinstance(value, dict) else value)
    with pytest.raises(BadRequestError) as refusal:
        interop.convert_tree({"a": value}, to="torch")
    assert f"pass {way}." in str(refusal.value)
    now = list(value.values() if isinstance(value, dict) else value)
    assert all(item is was for item, was in zip(now, items, strict=True))
    assert interop.convert_tree(eval(way, {"x": value}), to="torch")


def _tensors() -> dict[str, torch.Tensor]:
    return {"x": torch.ones(2), "y": torch.zeros(2)}


def _tensordict(make: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: make(import_module("tensordict"))


TENSORDICTS: dict[str, Callable[[], Any]] = {
    "metadata": _tensordict(
        lambda td: td.TensorDict(
            {**_tensors(), "m": td.NonTensorData({"k": 1}, batch_size=[2])}, batch_size=[2]
        )
    ),
    "locked": _tensordict(lambda td: td.TensorDict(_tensors(), batch_size=[2]).lock_()),
    "parameters": _tensordict(lambda td: td.TensorDictParams(td.TensorDict(_tensors()))),
    "lazily stacked": _tensordict(
        lambda td: td.LazyStackedTensorDict(
            td.TensorDict({"x": torch.ones(2)}), td.TensorDict({"x": torch.zeros(2)})
        )
    ),
    "named": _tensordict(lambda td: td.TensorDict(_tensors(), batch_size=[2], names=["batch"])),
}


@pytest.mark.extra("tensordict")
@pytest.mark.filterwarnings(
    "ignore::UserWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
)
@together("name", TENSORDICTS)
@together("words, dtype", [({"copy": True}, torch.float32), ({"dtype": "float16"}, torch.float16)])
def test_tensordicts_keep_their_kind(name: str, words: dict[str, Any], dtype: torch.dtype) -> None:
    """Type, lock, names and metadata stay where the arrays are still tensors; the source, too."""
    value = TENSORDICTS[name]()
    before = value["x"].clone()
    result = interop.convert_tree({"a": value}, to="torch", **words)["a"]
    assert type(result) is type(value)
    assert (result.is_locked, result.batch_size) == (value.is_locked, value.batch_size)
    assert result["x"].dtype == dtype
    assert torch.equal(result["x"].float(), before.float())
    assert torch.equal(value["x"], before)
    assert result["x"].data_ptr() != value["x"].data_ptr()
    if name == "metadata":
        assert result["m"] == {"k": 1}
    if name == "named":
        assert result.names == ["batch"]


def test_accepts_stands_below_staticmethod() -> None:
    """The order that works is that which the refusal of the other names."""

    class Model:
        @staticmethod
        @interop.accepts("torch")
        def double(x: Any) -> Any:
            assert isinstance(x, torch.Tensor)
            return x * 2

    for owner in (Model, Model()):
        assert owner.double(np.ones(1)).tolist() == [2]
