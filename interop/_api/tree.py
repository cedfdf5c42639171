"""Trees: nested containers, opened down to their leaves and put together again.

This module opens the containers of Python's standard library and types derived from them,
dataclasses, and the mappings of others. Plugins open the containers of frameworks (`Container`).
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import ChainMap, OrderedDict, UserDict, UserList, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from copy import copy
from dataclasses import fields, is_dataclass
from functools import partial
from operator import itemgetter
from types import FunctionType, MappingProxyType, SimpleNamespace
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from interop._model.blame import is_signal
from interop._model.extension import Branch, Container
from interop._model.typing import SCALARS, Value
from interop._recognition.classes import imported
from interop._recognition.unknown import is_like_mapping
from interop._text import legible
from interop.errors import BadRequestError, DoesNotFitError, HandOffError, InteropError

_EMPTIABLE = (dict, defaultdict, OrderedDict, list, deque)


#: As many children are looked at one by one.
_FEW = 8
#: As many names of the path to a tree without an end are shown.
_SHOWN = 8
#: How many characters of a name are shown.
_LONGEST_NAME = 200

#: What leads to the children of a container, they, and what makes a new one: as in a `Branch`.
_Opened: TypeAlias = tuple[Sequence[Value], Iterable[Value], Callable[[list[Value]], Value]]


def _refilled(container: Value, names: Sequence[Value], children: Sequence[Value]) -> Value:
    """Return a dict, a list or a deque with other contents."""
    container.clear()
    if isinstance(container, dict):
        container.update(zip(names, children, strict=True))
    else:
        container.extend(children)
    return container


def _rebuilt(
    rebuild: Callable[[list[Value]], Value], names: Sequence[Value], children: list[Value]
) -> Value:
    """Return a new container, or a dict where it does not take the children: none may be lost."""
    try:
        return rebuild(children)
    except BadRequestError:
        return dict(zip(names, children, strict=True))


class Tree:
    """A tree of containers, opened down to its leaves.

    It is flat: a list has the root and the children of all containers, each at an index, those of
    one container side by side.

    Parameters
    ----------
    root : object
    is_array : callable
        Tells whether a value is an array, which is never opened.
    containers : callable
        Returns those that plugins open; called for a value that may be one of them.
    passes : callable, optional
        Tells whether a value is to be left unopened.
    passed : set of type, default `SCALARS`
        The types of values that are no leaves: they stay what they are.
    arrays : mapping, optional
        Its keys are types whose values are arrays without a question.
    lists : bool, default False
        Whether a list may be an array.

    Raises
    ------
    BadRequestError
        A container holds itself, or cannot be made anew; or the tree is too deep.
    HandOffError
        A container does not give what it holds.
    """

    __slots__ = (
        *("_containers", "_is_array", "_lists", "_parents", "_passed", "_passes", "_plain"),
        *("arrays", "leaves", "values"),
    )

    def __init__(
        self,
        root: Value,
        is_array: Callable[[Value], bool],
        containers: Callable[[], Iterable[Container]] = tuple,
        *,
        passes: Callable[[Value], bool] | None = None,
        passed: Set[type] = SCALARS,
        arrays: Mapping[type, object] = MappingProxyType({}),
        lists: bool = False,
    ) -> None:
        self._is_array = is_array
        self._passes = passes
        self._lists = lists
        self._passed = passed
        self._plain = arrays
        self._containers = containers
        #: How many leaves are arrays.
        self.arrays = 0
        self.values: list[Value] = [root]
        #: The indices of the leaves, from left to right.
        self.leaves: list[int] = []
        #: The containers, each before those that it holds: its index, that of its first child,
        #: after which the others stand, what leads to each, and what makes a new one.
        self._parents: list[tuple[int, int, Sequence[Value], Callable[[list[Value]], Value]]] = []
        try:
            self._grow(0)
        except RecursionError:
            path = self.path(self._parents[-1][0])
            msg = (
                f"the tree at {joined(path[:_SHOWN])} holds itself, or is more than {len(path)} "
                "levels deep; flatten it first."
            )
            raise BadRequestError(msg) from None

    def rebuilt(self, values: list[Value] | None = None) -> Value:
        """Return a tree of new containers of the same kinds, around other values if given."""
        values = self.values if values is None else values
        try:
            for index, start, names, rebuild in reversed(self._parents):
                values[index] = rebuild(values[start : start + len(names)])
        except InteropError as error:
            error.locate(joined(self.path(index)))
            raise
        return values[0]

    def opened_leaf(self, index: int) -> list[int]:
        """Open an array if a plugin has a container for it; return the indices of what it holds."""
        value, count = self.values[index], len(self.leaves)
        branch = next(filter(None, (opened(value) for opened in self._own_openers())), None)
        if branch is not None:
            self._open(branch, index)
        return self.leaves[count:]

    def path(self, index: int) -> tuple[Value, ...]:
        """Return the names that lead to an index."""
        names: list[Value] = []
        while index:
            nearest = bisect_right(self._parents, index, key=itemgetter(1)) - 1
            above, start, children, *_ = self._parents[nearest]
            names.append(children[index - start])
            index = above
        return tuple(reversed(names))

    @contextmanager
    def emptied(self) -> Iterator[None]:
        """Empty the containers that can be emptied; fill them with the leaves after an error."""
        values, emptied = self.values, {}
        for index, *_ in self._parents:
            container, values[index] = values[index], None  # others would keep their arrays alive
            if type(container) in _EMPTIABLE:
                emptied[index] = container
        try:
            for container in emptied.values():
                container.clear()
            yield
        except BaseException:
            for index, start, names, rebuild in reversed(self._parents):
                children = values[start : start + len(names)]
                if index in emptied:
                    values[index] = _refilled(emptied[index], names, children)
                else:
                    values[index] = _rebuilt(rebuild, names, children)
            raise

    def _grow(self, index: int) -> None:
        """Collect the leaves below the value at an index."""
        value = self.values[index]
        open_exactly = _EXACT_OPENERS.get(type(value))
        if open_exactly is not None and not (self._lists and type(value) is list):
            self._open(open_exactly(value), index)
            return
        try:
            is_array = self._is_array(value)
        except InteropError as error:
            error.locate(joined(self.path(index)))
            raise
        if is_array:
            self.arrays += 1
            self.leaves.append(index)
        elif type(value) in self._passed:
            pass
        elif type(value) in SCALARS or (self._passes is not None and self._passes(value)):
            self.leaves.append(index)
        else:
            self._grow_odd(value, index)

    def _grow_odd(self, value: Value, index: int) -> None:
        """Collect the leaves of a container, or take the value for a leaf if it holds no array."""
        branch, is_foreign = self._opened(value, index)
        if branch is None:
            self.leaves.append(index)
            return
        leaves, parents, arrays = len(self.leaves), len(self._parents), self.arrays
        start = len(self.values)
        self._open(branch, index)
        if is_foreign and self.arrays == arrays:
            del self.leaves[leaves:], self._parents[parents:], self.values[start:]
            self.leaves.append(index)
        elif is_foreign and not _can_be_copied(value):
            raise _not_made_anew(value, self.path(index))

    def _open(self, branch: _Opened, index: int) -> None:
        """Put the children of the container at an index into the list, and collect their leaves."""
        values, plain, passed, leaves = self.values, self._plain, self._passed, self.leaves
        (names, opened, rebuild), value = branch, values[index]
        start, children = len(values), [*opened]
        self._parents.append((index, start, names, rebuild))
        values.extend(children)
        if len(children) != len(names):
            msg = (
                f"a {type(value).__qualname__} was opened to {len(names)} names of other children."
            )
            raise ValueError(msg)
        if len(children) > _FEW and plain.keys() >= {*map(type, children)}:
            leaves.extend(range(start, start + len(children)))
            self.arrays += len(children)
            return
        count = 0
        for child_place, child in enumerate(children, start):
            kind = type(child)
            if kind in plain:
                leaves.append(child_place)
                count += 1
            elif kind not in passed:
                self._grow(child_place)
        self.arrays += count

    def _opened(self, value: Value, index: int) -> tuple[Branch | None, bool]:
        """Open a container, if it is one; tell whether it is of a type that nobody registered."""
        openers = (*self._own_openers(), _open_python, _open_tuple)
        try:
            branch = next(filter(None, (opened(value) for opened in openers)), None)
            return branch or _open_foreign(value), branch is None
        except (InteropError, RecursionError):
            raise
        # A container of others may raise anything: its file is closed, say.
        except BaseException as error:
            if is_signal(error):
                raise
            raise _unread(value, self.path(index), error) from error

    def _own_openers(self) -> Iterator[Callable[[Value], Branch | None]]:
        """Yield the functions with which plugins open containers."""
        return (c.open for c in self._containers() if _is_imported(c.requires))


def _is_imported(name: str) -> bool:
    """Return whether a module is imported, or the class or the function ``"module:name"``.

    Another module of that name, or one that stands in for it, has no such class.
    """
    module, _, attribute = name.partition(":")
    if not attribute:
        return sys.modules.get(module) is not None
    return isinstance(imported(name), (type, FunctionType))


def joined(path: tuple[Any, ...]) -> str:
    """Return a path as it is written in messages: ``model/layers/3/weight``."""
    return legible("/".join(legible(str(name), _LONGEST_NAME) for name in path)) or "the root"


def _open_dict(value: dict[Value, Value]) -> _Opened:
    names = list(value)
    return names, value.values(), lambda children: dict(zip(names, children, strict=True))


def _open_proxy(value: Value) -> _Opened:
    names, children, rebuild = _open_dict(value)
    return names, children, lambda new: MappingProxyType(rebuild(new))


def _open_python(value: Value) -> Branch | None:
    """Open a container of a type derived from one of Python's, and an instance of a dataclass.

    A copy of it gets other contents: it keeps the attributes that a state dict has, and is not
    initialised again. What is both is opened by its items and then by its fields.
    """
    items, record = _open_items(value), _open_fields(value)
    if items is None or record is None:
        return items or record
    rebuild_items, names, count = items.rebuild, record.names, len(items.names)

    def rebuild(children: list[Value]) -> Value:
        return _with_fields(rebuild_items(children[:count]), names, children[count:])

    return Branch([*items.names, *names], [*items.children, *record.children], rebuild)


def _open_items(value: Value) -> Branch | None:
    if isinstance(value, (dict, UserDict)):
        names = list(value)
        children = [value[name] for name in names]
        return Branch(names, children, partial(_with_items, value, names))
    if isinstance(value, (list, UserList, deque)):
        indices = range(len(value))
        return Branch(indices, list(value), partial(_with_items, value, indices))
    if isinstance(value, ChainMap):  # whose first mapping may hide what is in others
        maps = value.maps
        return Branch(range(len(maps)), list(maps), lambda new: _with_maps(copy(value), new))
    return None


def _open_fields(value: Value) -> Branch | None:
    if isinstance(value, (type, tuple, Set)):  # whose items are no fields
        return None
    if is_dataclass(value):
        names = [field.name for field in fields(value) if hasattr(value, field.name)]
    elif isinstance(value, SimpleNamespace):
        names = list(vars(value))
    else:
        return None
    children = [getattr(value, name) for name in names]
    return Branch(names, children, lambda new: _with_fields(copy(value), names, new))


def _with_values(mapping: Value, names: Sequence[Value], contents: Sequence[Value]) -> Value:
    for name, child in zip(names, contents, strict=True):
        mapping[name] = child
    return mapping


def _with_maps(chain: ChainMap[Value, Value], maps: list[Value]) -> Value:
    chain.maps = maps
    return chain


def _with_fields(record: Value, names: Sequence[Value], contents: Sequence[Value]) -> Value:
    for name, child in zip(names, contents, strict=True):
        object.__setattr__(record, name, child)  # also if the dataclass is frozen
    return record


def _open_tuple(value: Value) -> Branch | None:
    """Open a tuple; rebuilding a named one skips its initialiser, because torch's packed refuse."""
    kind: Any = type(value)
    if not isinstance(value, tuple):
        return None
    if hasattr(kind, "_make"):
        return Branch(kind._fields, list(value), kind._make)
    if hasattr(kind, "n_sequence_fields"):  # made by C
        return Branch(range(len(value)), list(value), kind)
    return None


#: Python's own containers of items one after the other, and all those that `copy` copies.
_ROWS = (list, UserList, deque)
_DERIVED = (*_ROWS, dict, UserDict)

#: The functions that open values of these very types.
_EXACT_OPENERS: dict[type, Callable[[Value], _Opened]] = {
    dict: _open_dict,
    list: lambda value: (range(len(value)), value, list),
    tuple: lambda value: (range(len(value)), value, tuple),
    MappingProxyType: _open_proxy,
}


def _open_foreign(value: Value) -> Branch | None:
    """Open a tuple, or what is asked by keys, of a type that nobody has registered.

    It is made anew by its own means: a copy of it is given other items.
    """
    kind = type(value)
    if isinstance(value, tuple):
        return Branch(range(len(value)), list(value), partial(_with_elements, value))
    if not isinstance(value, Mapping) and not is_like_mapping(kind):
        return None
    names = list(value.keys())
    children = [value[name] for name in names]
    return Branch(names, children, partial(_with_items, value, names))


def _can_be_copied(value: Value) -> bool:
    """Return whether a container that nobody has registered has the means to be made anew.

    Unless its class says how it is copied, a copy may hold its items in the same place. A weak
    mapping would lose what nothing else refers to.
    """
    kind = type(value)
    copies = hasattr(kind, "__copy__") or callable(getattr(kind, "copy", None))
    takes = hasattr(kind, "__setitem__") and not issubclass(kind, WeakValueDictionary)
    return isinstance(value, tuple) or (copies and takes)


def _with_elements(value: Value, children: list[Value]) -> Value:
    """Return a tuple of the type and with the attributes of another; it is not initialised."""
    new = tuple.__new__(type(value), children)
    if hasattr(value, "__dict__"):
        vars(new).update(vars(value))
    return new


def _with_items(value: Value, names: Sequence[Value], children: Sequence[Value]) -> Value:
    """Return a copy of a container, by its own method, with other items."""
    kind: Any = type(value)
    try:
        is_own = isinstance(value, _DERIVED) or hasattr(kind, "__copy__")
        new = copy(value) if is_own else value.copy()
        if type(new) is not kind or new is value:
            msg = (
                "its copy is itself" if new is value else f"its copy is a {type(new).__qualname__}"
            )
            raise TypeError(msg)
        fill = _refilled if isinstance(value, _ROWS) else _with_values
        return fill(new, names, children)
    except Exception as error:  # it may want items of one kind, or none
        way = "list(x)" if isinstance(value, _ROWS) else "dict(x)"
        msg = (
            f"{kind.__qualname__} does not take what its items are converted to "
            f"({type(error).__name__}: {error}); pass {way}."
        )
        raise BadRequestError(msg) from error


def _not_made_anew(value: Value, path: tuple[Any, ...]) -> BadRequestError:
    kind = type(value)
    way = "tuple(x)" if isinstance(value, tuple) else "dict(x)"
    problem = BadRequestError(
        f"{kind.__qualname__} cannot be made anew around other contents, because it has no copy "
        f"that takes items; pass {way}, or register an interop.plugin.Container for it."
    )
    problem.locate(joined(path))
    return problem


def _unread(value: Value, path: tuple[Any, ...], error: BaseException) -> InteropError:
    reason = f"{type(error).__name__}: {error}"
    msg = (
        f"the {type(value).__qualname__} does not give what it holds ({reason}); make a dict of it."
    )
    problem = (DoesNotFitError if isinstance(error, MemoryError) else HandOffError)(msg)
    problem.locate(joined(path))
    return problem
