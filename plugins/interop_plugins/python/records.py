"""Records of libraries that have no arrays, opened by their fields as parts of trees.

They are made anew without being checked or initialised again.
"""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from interop.plugin import Branch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    Value: TypeAlias = Any


def make_attrs(children: list[Value]) -> Value:
    """Return an instance of an attrs class with some attributes."""
    import attr

    return attr.make_class("Row", _letters(children))(*children)


def make_pydantic(children: list[Value]) -> Value:
    """Return a pydantic model with some fields."""
    import pydantic

    fields: dict[str, Any] = dict.fromkeys(_letters(children), (Any, ...))
    return pydantic.create_model("Row", **fields)(**dict(zip(fields, children, strict=True)))


def make_msgspec(children: list[Value]) -> Value:
    """Return a struct of msgspec's with some fields."""
    import msgspec

    return msgspec.defstruct("Row", _letters(children))(*children)


def _letters(children: list[Value]) -> list[str]:
    return [chr(ord("a") + number) for number in range(len(children))]


def open_attrs(value: Value) -> Branch | None:
    """Open an instance of an attrs class by its attributes."""
    attributes = getattr(type(value), "__attrs_attrs__", None)
    if attributes is None:
        return None
    names = [attribute.name for attribute in attributes if hasattr(value, attribute.name)]
    return _record(value, names, object.__setattr__)  # also if the class is frozen


def open_pydantic(value: Value) -> Branch | None:
    """Open a pydantic model by its fields, and by those that it takes beyond them."""
    import pydantic

    if not isinstance(value, pydantic.BaseModel):
        return None
    names = [name for name, _ in value]

    def rebuild(children: list[Value]) -> Value:
        return value.model_copy(update=dict(zip(names, children, strict=True)))

    return Branch(names, [getattr(value, name) for name in names], rebuild)


def open_msgspec(value: Value) -> Branch | None:
    """Open a struct of msgspec by its fields."""
    import msgspec

    if not isinstance(value, msgspec.Struct):
        return None
    return _record(value, value.__struct_fields__, msgspec.structs.force_setattr)


def _record(value: Value, names: Sequence[str], put: Callable[[Value, str, Value], None]) -> Branch:
    """Return the branch of an object that is copied, and whose fields are put into the copy."""

    def rebuild(children: list[Value]) -> Value:
        new = copy(value)
        for name, child in zip(names, children, strict=True):
            put(new, name, child)
        return new

    return Branch(names, [getattr(value, name) for name in names], rebuild)


def open_h5py(value: Value) -> Branch | None:
    """Open a file or a group of HDF5, which holds no other arrays than its own, as a dict."""
    import h5py

    if not isinstance(value, h5py.Group):
        return None
    branch = _read(value)
    # A dataset without a shape has no array; to read it gives what stands for that.
    children = [
        child[()] if isinstance(child, h5py.Dataset) and child.shape is None else child
        for child in branch.children
    ]
    return branch._replace(children=children)


def open_zarr(value: Value) -> Branch | None:
    """Open a group of zarr, which holds no other arrays than its own, as a dict."""
    import zarr

    return _read(value) if isinstance(value, zarr.Group) else None


def _read(value: Value) -> Branch:
    """Return the branch of a store, for which a dict stands."""
    names = list(value)

    def rebuild(children: list[Value]) -> Value:
        return dict(zip(names, children, strict=True))

    return Branch(names, [value[name] for name in names], rebuild)


def make_optree(children: list[Value]) -> Value:
    """Return a container around some children, of a class that optree has been told of."""
    import optree

    register: Any = optree.register_pytree_node  # which expects a Collection, and needs none
    with suppress(ValueError):  # it has been told before
        register(
            _Row,
            lambda row: (row.children, None),
            lambda _, children: _Row(list(children)),
            namespace=optree.registry.__GLOBAL_NAMESPACE,
        )
    return _Row(children)


class _Row:
    def __init__(self, children: list[Value]) -> None:
        self.children = children


def open_optree(value: Value) -> Branch | None:
    """Open a container of a type that a user has registered with optree."""
    if isinstance(value, (tuple, list, dict)) or type(value).__module__ == "collections":
        return None  # these open without it, in their own order and with their attributes
    import optree

    is_below = chain((False,), repeat(True))  # everything but the value itself is a leaf
    paths, children, structure = optree.tree_flatten_with_path(
        value, is_leaf=lambda _: next(is_below), none_is_leaf=True
    )
    if paths == [()]:
        return None
    return Branch([path[0] for path in paths], children, structure.unflatten)
