"""Fast trees: plain containers whose arrays all take fast paths, walked without a plan."""

from __future__ import annotations

import builtins
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

from interop._model.typing import Value, ValueFunction
from interop._planning.cache import NO_PATH, FastPath, Paths, TreePath, TreePaths
from interop.errors import InteropError

_BUILTINS = frozenset(kind for kind in vars(builtins).values() if isinstance(kind, type))
#: The types whose values pass through trees as they are.
_PASSED: frozenset[type] = frozenset({int, float, complex, bool, str, bytes, type(None)})
#: The types that pass, by the fate of leaves that are not arrays.
PASSED: Mapping[str, frozenset[type]] = {
    "keep": _PASSED,
    "convert": frozenset({str, bytes, type(None)}),
    "refuse": frozenset({type(None)}),
}
#: The types of the containers that are opened here.
_OPENED = frozenset({dict, list, tuple, OrderedDict})

#: Stands for the result of an array that is converted once the tree is known to be plain.
_LEFT = object()


class _NotPlain(Exception):  # noqa: N818 - nothing is wrong
    """A value in a tree has no fast path."""


def leaf_path(kind: type, paths: Paths) -> FastPath:
    """Return the fast path of a type inside a tree.

    It is None if values pass as they are, and `NotImplemented` for containers and for types without
    a fast path. Numbers and memory of Python's own count as arrays only outside of trees.
    """
    if kind in _BUILTINS:
        return None if kind in _PASSED else NotImplemented
    return paths.get(kind, NO_PATH)[0]


def fast_leaf(value: Value, path: FastPath) -> Value:
    """Return the result of a fast path for a value, or `NotImplemented`."""
    if path is None:
        return value
    if path is NotImplemented:
        return NotImplemented
    try:
        return path(value)
    except InteropError:  # raised again by code that can say where in the tree it came up
        return NotImplemented


def fast_tree(
    tree: Value,
    paths: TreePaths,
    converted: dict[int, tuple[Value, Value]],
    *,
    tied: bool = False,
    passed: frozenset[type] = _PASSED,
    in_full: ValueFunction | None = None,
) -> Value:
    """Return a tree of plain containers, with the arrays in it converted by their fast paths.

    Parameters
    ----------
    tree : object
    paths : mapping of type to fast path
        For the types whose values count as arrays inside a tree. Where the path depends on the
        dtype as well, a mapping of dtype to path stands in its place.
    converted : dict
        Takes up every array and its result, in order. The keys are the arrays' `id`, so that an
        array that occurs twice is converted once.
    tied : bool, default False
        Whether arrays that are the same elements in the same memory get one copy.
    passed : frozenset of type, default those of "keep" in `PASSED`
        The types whose values pass as they are.
    in_full : callable, optional
        Converts an array that its fast path leaves out, such as a large one. It is called for what
        is to be copied in a tree that is plain otherwise.

    Returns
    -------
    object
        `NotImplemented` if anything in the tree is not plain.
    """
    # An error is raised again by code that can say where in the tree it came up.
    try:
        walk = _Walk(paths, converted, tied, passed, in_full is not None)
        result = walk.grown((tree,))[0]
        if walk.left and in_full is not None:
            walk.complete(in_full)
            result = walk.grown((tree,))[0]
        return result
    except (_NotPlain, KeyError, RuntimeError, InteropError):  # a tree may be too deep
        return NotImplemented


def _is_same(array: Value, other: Value) -> bool:
    """Tell whether two arrays at one address, each in one block, have the same elements."""
    shape = array.shape
    return 0 not in shape and (array.dtype, shape) == (other.dtype, other.shape)


class _Walk:
    """One walk through a tree."""

    __slots__ = (
        *("_converted", "_leaves_out", "_passed", "_paths", "_tied", "_ways", "_written"),
        "left",
    )

    def __init__(
        self,
        paths: TreePaths,
        converted: dict[int, tuple[Value, Value]],
        tied: bool,
        passed: frozenset[type],
        leaves_out: bool,
    ) -> None:
        self._paths = paths
        self._passed = passed
        self._tied = tied
        self._converted = converted
        #: By type, the path of arrays.
        self._ways: dict[type, TreePath | Mapping[object, TreePath]] = {}
        #: By address, the first array whose result was written, and that result.
        self._written: dict[int, tuple[Value, Value]] = {}
        self._leaves_out = leaves_out
        #: By address, the arrays that are to be converted in full.
        self.left: list[tuple[int, Value]] = []

    def grown(self, values: Iterable[Value]) -> list[Value]:
        """Return the values of a container with all arrays converted."""
        ways, tied, passed, results = self._ways, self._tied, self._passed, []
        converted, written = self._converted, self._written
        for value in values:
            kind = type(value)
            way = ways.get(kind)
            if way is None:
                if kind in passed or kind in _OPENED:
                    results.append(value if kind in passed else self._opened(kind, value))
                    continue
                way = ways[kind] = self._way(kind)
            path, address_of = way if isinstance(way, tuple) else way[value.dtype]
            met, key = converted, id(value)
            if address_of is not None and tied:
                met, key = written, address_of(value)
            pair = met.get(key)
            if pair is None or pair[0] is not value:
                result = value if path is None else path(value)
                if result is NotImplemented:
                    result = self._put_off(key, value, pair, met)
                if pair and (pair[1] is _LEFT or not _is_same(value, pair[0])):
                    raise _NotPlain
                if pair is None:
                    pair = met[key] = value, result
            results.append(pair[1])
        return results

    def _put_off(self, key: int, value: Value, pair: object, met: object) -> Value:
        """Remember an array whose fast path has left it out, if it shares its place with none."""
        if not self._leaves_out or pair or met is not self._written:
            raise _NotPlain
        self.left.append((key, value))
        return _LEFT

    def complete(self, in_full: ValueFunction) -> None:
        """Convert what was left, so that another walk finds the results."""
        self._written |= {key: (value, in_full(value)) for key, value in self.left}

    def _way(self, kind: type) -> TreePath | Mapping[object, TreePath]:
        """Return the path of the arrays of a type, which is looked for once."""
        way = NO_PATH if kind in _BUILTINS else self._paths.get(kind, NO_PATH)
        if isinstance(way, tuple) and isinstance(way[0], tuple):
            way = way[0]  # what the first way leaves out may be written, and would not stay tied
        if way is NO_PATH or (self._tied and NotImplemented in way):
            raise _NotPlain
        return way

    def _opened(self, kind: type, value: Any) -> Value:
        if kind is dict:
            return dict(zip(value, self.grown(value.values()), strict=True))
        if kind is not OrderedDict:
            return kind(self.grown(value))
        new = copy(value)  # with the attributes that a state dict has
        for name, child in zip(value, self.grown(value.values()), strict=True):
            new[name] = child
        return new
