"""Trees: nested containers, opened down to their leaves and put together again.

``optree`` opens the containers of Python's standard library, and the types that a user has
registered with it. This module opens mappings, because ``optree`` does not keep their order, and
the containers that it takes for leaves or cannot rebuild: subclasses of ``list`` and of named
tuples, and dataclasses. Plugins open the containers of frameworks (`Container`).
"""

from __future__ import annotations

import sys
from collections import OrderedDict, UserDict, defaultdict, deque
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import fields, is_dataclass
from itertools import chain, repeat
from typing import Any

from interop._model.extension import Branch, Container
from interop._model.typing import Value, ValueFunction
from interop._registry.installed import importable
from interop.errors import BadRequestError, NotInstalledError

_EMPTIABLE = (dict, defaultdict, OrderedDict, list, deque)


class Tree:
    """A tree of containers, opened down to its leaves, which `is_leaf` tells."""

    def __init__(
        self, root: Value, is_leaf: Callable[[Value], bool], containers: Iterable[Container] = ()
    ) -> None:
        self._flatten = _flattener()
        self._is_leaf = is_leaf
        self._containers = [c.open for c in containers if c.requires in sys.modules]
        self._above: dict[int, tuple[Any, ...]] = {}
        #: From left to right.
        self.leaves: list[Value] = []
        #: The names that lead to each leaf.
        self.paths: list[tuple[Any, ...]] = []
        #: The containers, from the root down, that can be emptied.
        self.emptiable: list[Value] = []
        self._build = self._grow(root, ())

    def rebuilt(self, leaves: Iterable[Any]) -> Value:
        """Return a tree of new containers of the same kinds, with other leaves."""
        return self._build(iter(leaves))

    def _grow(self, value: Value, path: tuple[Any, ...]) -> ValueFunction:
        """Collect the leaves below `value`; return a function that rebuilds it from an iterator."""
        branch = None if self._is_leaf(value) else self._opened(value)
        if branch is None:
            self.leaves.append(value)
            self.paths.append(path)
            return next
        if id(value) in self._above:
            above = joined(self._above[id(value)])
            msg = f"the tree holds itself: the {type(value).__name__} at {joined(path)} is {above}."
            raise BadRequestError(msg)
        if type(value) in _EMPTIABLE:
            self.emptiable.append(value)
        self._above[id(value)] = path
        grown = [
            self._grow(child, (*path, name))
            for name, child in zip(branch.names, branch.children, strict=True)
        ]
        del self._above[id(value)]
        rebuild = branch.rebuild  # a closure over the branch would keep the children alive
        return lambda leaves: rebuild([build(leaves) for build in grown])

    def _opened(self, value: Value) -> Branch | None:
        for opened in (*self._containers, *_OPENERS):
            branch = opened(value)
            if branch is not None:
                return branch
        return self._flatten(value)


def joined(path: tuple[Any, ...]) -> str:
    """Return a path as it is written in messages: ``model/layers/3/weight``."""
    return "/".join(map(str, path)) or "the root"


def check_optree() -> None:
    """Refuse to open trees if optree is missing."""
    if not importable("optree"):
        msg = "trees need optree, which is not installed: pip install 'array-interop[tree]'"
        raise NotInstalledError(msg, name="optree")


def _flattener() -> Callable[[Value], Branch | None]:
    check_optree()
    import optree

    def flatten(value: Value) -> Branch | None:
        is_below = chain((False,), repeat(True))  # everything but the value itself is a leaf
        paths, children, structure = optree.tree_flatten_with_path(
            value, is_leaf=lambda _: next(is_below), none_is_leaf=True
        )
        if paths == [()]:
            return None
        return Branch([path[0] for path in paths], children, structure.unflatten)

    return flatten


def _open_mapping(value: Value) -> Branch | None:
    """Open a mapping in its own order, with the attributes that a state dict has."""
    if not isinstance(value, (dict, UserDict)):
        return None
    names = list(value)

    def rebuild(children: list[Value]) -> Value:
        new = copy(value)
        for name, child in zip(names, children, strict=True):
            new[name] = child
        return new

    return Branch(names, [value[name] for name in names], rebuild)


def _open_list(value: Value) -> Branch | None:
    if not isinstance(value, list) or type(value) is list:
        return None

    def rebuild(children: list[Value]) -> Value:
        new = copy(value)
        new[:] = children
        return new

    return Branch(range(len(value)), list(value), rebuild)


def _open_named_tuple(value: Value) -> Branch | None:
    """Open a named tuple; rebuilding skips the initialiser, because torch's packed ones refuse."""
    if not isinstance(value, tuple) or not hasattr(type(value), "_make"):
        return None
    kind: Any = type(value)
    return Branch(kind._fields, list(value), kind._make)


def _open_dataclass(value: Value) -> Branch | None:
    """Open an instance of a dataclass by its fields; a new one is not initialised again."""
    if isinstance(value, type) or not is_dataclass(value):
        return None
    names = [field.name for field in fields(value) if hasattr(value, field.name)]

    def rebuild(children: list[Value]) -> Value:
        new = copy(value)
        for name, child in zip(names, children, strict=True):
            object.__setattr__(new, name, child)  # also if the dataclass is frozen
        return new

    return Branch(names, [getattr(value, name) for name in names], rebuild)


#: Functions that open a container, or return None.
_OPENERS = (_open_mapping, _open_list, _open_named_tuple, _open_dataclass)
