"""TensorDicts, tensorclasses and graphs of several types, opened as parts of trees."""

from __future__ import annotations

from copy import copy
from functools import partial
from typing import TYPE_CHECKING

from interop.plugin import Branch

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Value: TypeAlias = Any


def open_tensordict(value: Value) -> Branch | None:
    """Open a TensorDict or a tensorclass; what is no tensor in it is given as it was put in."""
    import tensordict

    if not tensordict.is_tensor_collection(value) or tensordict.is_non_tensor(value):
        return None
    names = list(value.keys())
    if tensordict.is_tensorclass(value):
        make: Callable[..., Value] = type(value)
        children = [getattr(value, name) for name in names]
        make_from: Callable[[dict[str, Value]], Value] = partial(
            _from_fields, make, value.batch_size
        )
    else:
        children = [value[name] for name in names]
        axes = value.names if value._has_names() else None
        make_from = partial(tensordict.TensorDict, batch_size=value.batch_size, names=axes)
    held = [_is_held(child) for child in children]

    def rebuild(new: list[Value]) -> Value:
        made = dict(zip(names, new, strict=True))
        stays = all(_is_held(child) for child, was in zip(new, held, strict=True) if was)
        return make_from(made) if stays else made

    return Branch(names, children, rebuild)


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


def _from_fields(make: Callable[..., Value], batch_size: object, named: dict[str, Value]) -> Value:
    return make(**named, batch_size=batch_size)


def _is_held(value: Value) -> bool:
    """Tell whether a value is stored as tensors."""
    import tensordict
    import torch

    return isinstance(value, torch.Tensor) or tensordict.is_tensor_collection(value)
