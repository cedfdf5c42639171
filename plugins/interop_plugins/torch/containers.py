"""TensorDicts, tensorclasses and graphs of several types, opened as parts of trees."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from interop.plugin import Branch

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Value: TypeAlias = Any


def open_tensordict(value: Value) -> Branch | None:
    """Open a TensorDict or a tensorclass; what is no tensor in it is given as it was put in."""
    import tensordict

    if not _is_collection(value) or tensordict.is_non_tensor(value):
        return None
    names = list(value.keys())
    is_class = tensordict.is_tensorclass(value)
    children = [getattr(value, name) if is_class else value[name] for name in names]
    held = [_is_held(child) for child in children]

    def rebuild(new: list[Value]) -> Value:
        made = dict(zip(names, new, strict=True))
        if not all(_is_held(child) for child, was in zip(new, held, strict=True) if was):
            return made
        if is_class:
            return type(value)(**made, batch_size=value.batch_size)
        return _with_items(
            value, made, {name for name, was in zip(names, held, strict=True) if was}
        )

    return Branch(names, children, rebuild)


def _with_items(value: Value, items: dict[str, Value], tensors: set[str]) -> Value:
    """Return a TensorDict of the type of another, with other tensors and other metadata."""
    new = value.clone(recurse=False)  # with new places for the same tensors
    for name, item in items.items():
        if name in tensors:
            new.set(name, item)
        else:
            new.set_non_tensor(name, item)
    return new.lock_() if value.is_locked else new


def open_graph(value: Value) -> Branch | None:
    """Open a graph of several types of nodes by its stores; to ask it for a key makes a new one."""
    from torch_geometric.data import HeteroData

    if not isinstance(value, HeteroData):
        return None

    def rebuild(children: list[Value]) -> Value:
        new = copy(value)
        for store, items in zip(new.stores, children, strict=True):
            for name, item in items.items():
                store[name] = item
        return new

    names = ["graph", *value.node_types, *value.edge_types]
    return Branch(names, [dict(store.items()) for store in value.stores], rebuild)


def _is_held(value: Value) -> bool:
    """Tell whether a value is stored as tensors."""
    import torch

    return isinstance(value, torch.Tensor) or _is_collection(value)


def _is_collection(value: Value) -> bool:
    """Return whether a value is a TensorDict or a tensorclass.

    `tensordict.is_tensor_collection` would keep the class of every value that it was ever asked of.
    """
    import tensordict

    is_class = getattr(type(value), "_is_tensorclass", False)
    return is_class is True or isinstance(value, tensordict.TensorDictBase)
