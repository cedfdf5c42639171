"""Trees: nested containers, opened down to their leaves and put together again.

This module opens the containers of Python's standard library and types derived from them,
dataclasses, and the mappings of others. Plugins open the containers of frameworks (`Container`).
"""

from __future__ import annotations

import sys
from collections import OrderedDict, UserDict, UserList, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from copy import copy
from dataclasses import fields, is_dataclass
from types import MappingProxyType, SimpleNamespace
from typing import Any, NamedTuple

from interop._model.extension import Branch, Container
from interop._model.typing import Value, ValueFunction
from interop.errors import BadRequestError, HandOffError, InteropError

_EMPTIABLE = (dict, defaultdict, OrderedDict, list, deque)
#: Types whose values hold nothing, and there are many of them.
_LEAVES = frozenset({int, float, complex, bool, str, bytes, type(None)})


class _Child(NamedTuple):
    """What stands at one place of a container that can be emptied."""

    #: The number of its first leaf.
    number: int
    build: ValueFunction
    #: Itself, if it can be emptied, too; other containers keep their arrays alive.
    container: Value

    def made(self, leaves: Sequence[Value]) -> Value:
        """Return what stands here around the leaves of the tree as they are now."""
        if self.container is not None:
            return self.container
        if self.build is next:
            return leaves[self.number]
        return self.build(iter(leaves[self.number :]))


class _Contents(NamedTuple):
    """What stands in a container that can be emptied."""

    container: Value
    names: Sequence[Value]
    children: list[_Child]

    def put_back(self, leaves: Sequence[Value]) -> None:
        """Fill the container with what it held, but for the leaves, which may be others now."""
        children = [child.made(leaves) for child in self.children]
        self.container.clear()
        if isinstance(self.container, dict):
            self.container.update(zip(self.names, children, strict=True))
        else:
            self.container.extend(children)


class Tree:
    """A tree of containers, opened down to its leaves.

    Parameters
    ----------
    root : object
    is_array : callable
        Tells whether a value is an array, which is never opened.
    containers : iterable of Container
        Those that plugins open.
    passes : callable, optional
        Tells whether a value is to be left unopened.
    empties : bool, default False
        Whether `emptied` is going to be asked for.

    Raises
    ------
    BadRequestError
        A container holds itself, or the tree is too deep.
    HandOffError
        A mapping does not give what it holds.
    """

    def __init__(
        self,
        root: Value,
        is_array: Callable[[Value], bool],
        containers: Iterable[Container] = (),
        *,
        passes: Callable[[Value], bool] | None = None,
        empties: bool = False,
    ) -> None:
        self._is_array = is_array
        self._passes = passes
        self._empties = empties
        self._openers = [c.open for c in containers if sys.modules.get(c.requires)]
        self._openers += _OPENERS
        self._above: dict[int, tuple[Any, ...]] = {}
        self._arrays = 0
        #: From left to right.
        self.leaves: list[Value] = []
        #: The names that lead to each leaf.
        self.paths: list[tuple[Any, ...]] = []
        self._emptiable: list[_Contents] = []
        #: To rebuild takes two calls a level, and what calls this has made some.
        self._deepest = sys.getrecursionlimit() // 3
        try:
            self._build = self._grow(root, ())
        except RecursionError:
            raise self._too_deep() from None

    def rebuilt(self, leaves: Iterable[Any]) -> Value:
        """Return a tree of new containers of the same kinds, with other leaves."""
        try:
            return self._build(iter(leaves))
        except RecursionError:
            raise self._too_deep() from None

    def _too_deep(self) -> BadRequestError:
        msg = f"the tree is more than {self._deepest} levels deep; flatten it first."
        return BadRequestError(msg)

    @contextmanager
    def emptied(self) -> Iterator[None]:
        """Empty the containers that can be emptied; fill them with the leaves after an error."""
        try:
            for contents in self._emptiable:
                contents.container.clear()
            yield
        except BaseException:
            for contents in self._emptiable:
                contents.put_back(self.leaves)
            raise

    def _grow(self, value: Value, path: tuple[Any, ...]) -> ValueFunction:
        """Collect the leaves below `value`; return a function that rebuilds it from an iterator."""
        try:
            is_array = self._is_array(value)
        except InteropError as error:
            error.locate(joined(path))
            raise
        if is_array:
            self._arrays += 1
            return self._leaf(value, path)
        if type(value) in _LEAVES or (self._passes is not None and self._passes(value)):
            return self._leaf(value, path)
        branch = self._opened(value)
        is_foreign = branch is None
        if branch is None:
            branch = _open_foreign(value, path)
        if branch is None:
            return self._leaf(value, path)
        if id(value) in self._above:
            above = joined(self._above[id(value)])
            msg = f"the tree holds itself: the {type(value).__name__} at {joined(path)} is {above}."
            raise BadRequestError(msg)
        if len(path) > self._deepest:
            raise self._too_deep()
        self._above[id(value)] = path
        arrays, leaves, emptiable = self._arrays, len(self.leaves), len(self._emptiable)
        grown: list[ValueFunction] = []
        children: list[_Child] = []
        for name, child in zip(branch.names, branch.children, strict=True):
            number = len(self.leaves)
            grown.append(self._grow(child, (*path, name)))
            if self._empties:
                container = child if type(child) in _EMPTIABLE else None
                children.append(_Child(number, grown[-1], container))
        del self._above[id(value)]
        if is_foreign and self._arrays == arrays:
            del self.leaves[leaves:], self.paths[leaves:], self._emptiable[emptiable:]
            return self._leaf(value, path)
        if self._empties and type(value) in _EMPTIABLE:
            self._emptiable.append(_Contents(value, branch.names, children))
        rebuild = branch.rebuild  # a closure over the branch would keep the children alive
        return lambda leaves: rebuild([build(leaves) for build in grown])

    def _leaf(self, value: Value, path: tuple[Any, ...]) -> ValueFunction:
        self.leaves.append(value)
        self.paths.append(path)
        return next

    def _opened(self, value: Value) -> Branch | None:
        opener = _EXACT_OPENERS.get(type(value))
        if opener is not None:
            return opener(value)
        return next(filter(None, (opened(value) for opened in self._openers)), None)


def joined(path: tuple[Any, ...]) -> str:
    """Return a path as it is written in messages: ``model/layers/3/weight``."""
    return "/".join(map(str, path)) or "the root"


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
    if not isinstance(value, (list, UserList)):
        return None

    def rebuild(children: list[Value]) -> Value:
        new = copy(value)
        new[:] = children
        return new

    return Branch(range(len(value)), list(value), rebuild)


def _open_deque(value: Value) -> Branch | None:
    if not isinstance(value, deque):
        return None

    def rebuild(children: list[Value]) -> Value:
        new = copy(value)
        new.clear()
        new.extend(children)
        return new

    return Branch(range(len(value)), list(value), rebuild)


def _open_tuple(value: Value) -> Branch | None:
    """Open a tuple; rebuilding a named one skips its initialiser, because torch's packed refuse."""
    kind: Any = type(value)
    if kind is tuple:
        return Branch(range(len(value)), value, tuple)
    if not isinstance(value, tuple):
        return None
    if hasattr(kind, "_make"):
        return Branch(kind._fields, list(value), kind._make)
    if hasattr(kind, "n_sequence_fields"):  # made by C
        return Branch(range(len(value)), list(value), kind)
    return None


def _open_record(value: Value) -> Branch | None:
    """Open an instance of a dataclass by its fields; a new one is not initialised again."""
    if isinstance(value, (type, tuple, Set)):  # whose items are no fields
        return None
    if is_dataclass(value):
        names = [field.name for field in fields(value) if hasattr(value, field.name)]
    elif isinstance(value, SimpleNamespace):
        names = list(vars(value))
    else:
        return None

    def rebuild(children: list[Value]) -> Value:
        return _with_fields(copy(value), names, children)

    return Branch(names, [getattr(value, name) for name in names], rebuild)


def _open_both(value: Value) -> Branch | None:
    """Open a dataclass that is a list or a mapping as well, by its items and then by its fields."""
    fields_of = _open_record(value) if is_dataclass(value) else None
    items = _open_mapping(value) or _open_list(value) or _open_deque(value) if fields_of else None
    if fields_of is None or items is None:
        return None
    rebuild_items, names, count = items.rebuild, fields_of.names, len(items.names)

    def rebuild(children: list[Value]) -> Value:
        return _with_fields(rebuild_items(children[:count]), names, children[count:])

    return Branch([*items.names, *names], [*items.children, *fields_of.children], rebuild)


def _with_fields(record: Value, names: Sequence[Value], contents: Sequence[Value]) -> Value:
    for name, child in zip(names, contents, strict=True):
        object.__setattr__(record, name, child)  # also if the dataclass is frozen
    return record


#: The functions that open values of these very types.
_EXACT_OPENERS: dict[type, Callable[[Value], Branch | None]] = {
    **dict.fromkeys((dict, OrderedDict, defaultdict), _open_mapping),
    list: _open_list,
    tuple: _open_tuple,
    deque: _open_deque,
}
#: Functions that open a container, or return None.
_OPENERS = (_open_both, _open_mapping, _open_list, _open_tuple, _open_deque, _open_record)


def _open_foreign(value: Value, path: tuple[Any, ...]) -> Branch | None:
    """Open a mapping or a tuple of a type that nobody knows how to make anew.

    A dict or a tuple stands for it, if there is an array in it.
    """
    kind = type(value)
    if isinstance(value, tuple):
        return Branch(range(len(value)), list(value), tuple)
    if not isinstance(value, Mapping) and not is_like_mapping(kind):
        return None
    try:
        names = list(value.keys())
        children = [value[name] for name in names]
    except InteropError:
        raise
    # A mapping of others may raise anything: its file is closed, say.
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        msg = f"the {kind.__qualname__} does not give what it holds ({reason}); make a dict of it."
        problem = HandOffError(msg)
        problem.locate(joined(path))
        raise problem from error
    made = MappingProxyType if kind is MappingProxyType else dict

    def rebuild(children: list[Value]) -> Value:
        return made(dict(zip(names, children, strict=True)))

    return Branch(names, children, rebuild)


def is_like_mapping(kind: type) -> bool:
    """Tell whether values of a type are asked by keys, although it is not registered as mapping."""
    return hasattr(kind, "__getitem__") and callable(getattr(kind, "keys", None))
