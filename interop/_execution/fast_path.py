"""The fast path: plain values, which end here.

A conversion that shares memory takes a few hundred nanoseconds, so that a dozen of Python's
instructions before it are felt.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from copy import copy
from functools import wraps
from types import ModuleType
from typing import Any

from interop._model.typing import TargetLike, Value, ValueFunction
from interop._planning.cache import FastPath
from interop.errors import InteropError

__all__ = ["NAMING", "fast_tree", "with_fast_paths", "with_fast_paths_to"]

#: The types of what names one target, by which its fast paths are kept.
NAMING = (str, type, ModuleType)
#: What passes through trees as it is.
_PASSED = frozenset({int, float, complex, bool, str, bytes, type(None)})


class _NotPlain(Exception):  # noqa: N818 - nothing is wrong
    """Something in a tree has no fast path."""


def with_fast_paths(
    full: Callable[..., Value],
    tables: dict[Any, dict[type, FastPath]],
    block: ContextVar[Any],
) -> Callable[..., Value]:
    """Return `full` behind the fast paths of every target.

    State in cells is what is cheapest to reach. `block` holds None where the default policy is in
    force and no trace is open.
    """

    @wraps(full)
    def convert(x: Value, /, to: TargetLike | None = None, **keywords: Any) -> Value:
        if not keywords and block.get() is None:
            try:
                fast_path = tables[to][type(x)]
            except (KeyError, TypeError):
                pass  # converted below, so that no KeyError stands in the traceback of what follows
            else:
                if fast_path is None:
                    return x
                result = fast_path(x)
                if result is not NotImplemented:
                    return result
        return full(x, to, **keywords)

    return convert


def with_fast_paths_to(
    full: ValueFunction, table: dict[type, FastPath], block: ContextVar[Any]
) -> ValueFunction:
    """Return `full`, which takes a value alone, behind the fast paths of its target."""

    def converted(x: Value, /) -> Value:
        if block.get() is None:
            try:
                fast_path = table[type(x)]
            except KeyError:
                pass
            else:
                if fast_path is None:
                    return x
                result = fast_path(x)
                if result is not NotImplemented:
                    return result
        return full(x)

    return converted


def fast_tree(
    tree: Value, paths: Mapping[type, FastPath], converted: dict[int, tuple[Value, Value]]
) -> Value:
    """Return a tree of plain containers, with the arrays in it converted by their fast paths.

    Parameters
    ----------
    tree : object
    paths : mapping of type to FastPath
        Of types whose values count as arrays inside a tree.
    converted : dict
        Takes up every array and its result, in order. The keys are the arrays' `id`, by which an
        array that occurs twice is converted once.

    Returns
    -------
    object
        `NotImplemented` if anything in the tree is not plain; no array is copied then.
    """

    def grown(value: Value) -> Value:
        kind = type(value)
        path = paths.get(kind, NotImplemented)
        if path is NotImplemented:
            return value if kind in _PASSED else opened(kind, value)
        address = id(value)
        if address in converted:
            return converted[address][1]
        result = value if path is None else path(value)
        if result is NotImplemented:
            raise _NotPlain
        converted[address] = value, result
        return result

    def opened(kind: type, value: Value) -> Value:
        if kind is dict:
            return {name: grown(child) for name, child in value.items()}
        if kind is list or kind is tuple:
            return kind([grown(child) for child in value])
        if kind is not OrderedDict:
            raise _NotPlain
        new = copy(value)  # with the attributes that a state dict has
        for name, child in value.items():
            new[name] = grown(child)
        return new

    # What goes wrong does so again for whoever can say where in the tree it does.
    try:
        return grown(tree)
    except (_NotPlain, RecursionError, InteropError):
        return NotImplemented
