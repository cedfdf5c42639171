"""The front: what runs first in `Interop.convert` and `Interop.convert_tree`, look-ups alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any, TypeVar, cast

from interop._execution.converter import Among, Converters
from interop._execution.fast import Fast
from interop._model.blame import is_misuse, misuse, shortened
from interop._model.typing import SCALARS, TargetLike, Value
from interop._request.keywords import Keywords, checked
from interop._request.policy import Block, block
from interop.errors import InteropError

from .fill import write

_Function = TypeVar("_Function", bound=Callable[..., Any])

#: Stands for no argument. Keyword-only parameters would say that there is none, but their defaults
#: are looked up by name at every call: a third of the time of a warm call.
_NONE = object()
#: Python 3.11 makes a bound method of `block.get` at each call, because `block` is imported.
_innermost = block.get
#: The keyword that has fast functions of its own, if no other is given.
_OUT = {"out"}
#: The keyword that a hand-off takes.
_STREAM = {"stream"}
#: The keywords that the function does not name.
_OTHERS = {*Keywords._fields} - {"to", "like", "dtype", "device", "copy"}
#: The keywords that take objects, which cannot be looked up.
_UNKEYED = frozenset({"out", "stream"})
#: The types of effects that stand in a key.
_EFFECTS = frozenset({str, tuple, set, frozenset})
#: The types of the words for ``copy=``; 1 equals True.
_COPIES = frozenset({type(None), bool, str})
#: The keywords of `convert_tree` that the converter of a call stands for.
_TREE = {"dtype", "device", "copy", "cast_all"}
#: The types of containers that are walked here, the most children that one of them has, and how
#: deep they stand.
_CONTAINERS = frozenset({dict, list, tuple})
_FEW = 16
_DEPTH = 8


def fast_first(full: _Function) -> _Function:
    """Decorate `Interop.convert`, so that warm calls look up what was learnt and call that.

    The key of a call is its target alone; its target, dtype, device and copy; what `likes` tell of
    the value in ``like=``; or the `_longer_key` of all its keywords and the policy of the block
    around it.
    """

    @wraps(full)
    def convert(  # noqa: PLR0912, PLR0917 - any function that it called would be noticeable
        self: Any,
        x: Value = _NONE,
        /,
        to: TargetLike | None = None,
        excess: Any = _NONE,
        dtype: Any = None,
        device: Any = None,
        copy: Any = None,
        like: Any = None,
        *more: Any,
        **others: Any,
    ) -> Value:
        try:
            key: Any = to
            innermost = _innermost()
            if (
                dtype is not None
                or like is not None
                or copy is not None
                or device is not None
                or others
                or innermost is not None
                or excess is not _NONE
            ):
                if excess is not _NONE:
                    __tracebackhide__ = True
                    raise misuse(full, (self, x, to, excess, *more), others)
                # A dict does not hash, so its items stand in the key.
                named = dtype if type(dtype) is not dict else (dict, *dtype.items())
                if not others and innermost is like is None and type(copy) in _COPIES:
                    key = to, named, device, copy
                elif not others and innermost is to is dtype is device is copy is None:
                    try:
                        key = self._likes[type(like)](like)
                    except (KeyError, RuntimeError):  # it has no memory, or is of another format
                        key = None
                elif (
                    others.keys() == _OUT
                    and innermost is to is like is dtype is device is copy is None
                ):
                    out = others["out"]
                    fill = self._fills.get((type(x), type(out)))
                    if fill is not None and fill(x, out):
                        return out
                    key = None
                elif (
                    others.keys() == _STREAM
                    and innermost is like is dtype is device is copy is None
                ):
                    return _on_stream(self._converters, x, to, others)
                elif (
                    like is None
                    and type(copy) in _COPIES
                    and "out" not in others
                    and "stream" not in others
                ):
                    policy = innermost and innermost.policy
                    key = (to, named, device, copy, policy, *_hashable(others))
                    if innermost is not None and innermost.traces:
                        key = None
                else:
                    key = to, named, device, copy
                    key = _longer_key(key, like, self._likes, innermost, others)
            try:
                fast = self._calls[key].fast[type(x)]
            except (KeyError, TypeError):
                pass  # converted below: no KeyError is to stand in the traceback of a later error
            else:
                if fast is None:
                    return x
                result = fast(x)
                if result is not NotImplemented:
                    return result
            if x is _NONE or not others.keys() <= _OTHERS:
                __tracebackhide__ = True
                raise misuse(full, (self,) if x is _NONE else (self, x), others)
            keywords = Keywords(to, like, dtype, device, copy, **others)
            return converted(self._converters, x, keywords, key)
        except InteropError as error:
            __tracebackhide__ = True
            raise shortened(error)  # noqa: B904 - it is the same error

    convert.__qualname__ = convert.__name__  # Python's own message about `to` given twice has it
    return cast(_Function, convert)


def _longer_key(
    key: tuple[object, ...],
    like: Any,
    likes: Mapping[type, Callable[[Any], Any]],
    innermost: Block | None,
    others: Mapping[str, Any],
) -> tuple[object, ...] | None:
    """Return the key of a call with rarer keywords or in a block, or None if it has no fast paths.

    In the place of the value in ``like=`` stands what decides the request: its type, dtype and
    device.
    """
    if innermost is not None and innermost.traces:
        return None
    if type(key[-1]) not in _COPIES or not _UNKEYED.isdisjoint(others):
        return None
    if like is not None:
        try:
            likeness = likes[type(like)](like)
        except (KeyError, RuntimeError):  # it has no memory, or is of another format
            return None
        if likeness is None:
            return None
        key += likeness
    return (*key, innermost and innermost.policy, *_hashable(others))


def _hashable(keywords: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """Return keywords with their values, of which sets of effects stand in a key as frozen ones."""
    if set not in map(type, keywords.values()):
        return keywords.items()
    return [(name, frozenset(v) if type(v) is set else v) for name, v in keywords.items()]


def converted(converters: Converters, x: Value, given: Keywords, key: object = None) -> Value:
    """Convert without a fast path, and let calls with the same `key` find those there are."""
    keywords = checked(given)
    if keywords.out is not None:
        return write(converters, x, keywords)
    # No key for a call whose effects came from an iterator, which `checked` has used up.
    is_kept = {type(given.allow), type(given.forbid)} <= _EFFECTS
    return converters.convert(x, keywords, key if is_kept else None)


def _on_stream(converters: Converters, x: Value, to: Any, stream: dict[str, Any]) -> Value:
    """Convert for a stream, by a hand-off if one was learnt."""
    try:
        result = converters.calls[to].learnt[type(x)].on_stream(x, **stream)
    except (KeyError, TypeError):  # there is none, or `to` does not hash
        result = NotImplemented
    if result is NotImplemented:
        result = converted(converters, x, Keywords(to, **stream), to)
    return result


def small_first(full: _Function) -> _Function:
    """Decorate `Interop.convert_tree`, so that small trees that copy nothing are walked once."""

    @wraps(full)
    def convert_tree(
        self: Any,
        tree: Value = _NONE,
        /,
        to: TargetLike | None = None,
        *excess: Any,
        **keywords: Any,
    ) -> Value:
        try:
            key: Any = None
            innermost = _innermost()
            if (
                type(tree) in _CONTAINERS
                and len(tree) <= _FEW
                and not excess
                and (innermost is None or not innermost.traces)
            ):
                if innermost is None and not keywords:
                    key = to
                elif keywords.keys() <= _TREE and type(keywords.get("copy")) in _COPIES:
                    policy = innermost and innermost.policy
                    key = (convert_tree, policy, to, *_hashable(keywords))
            if key is None:
                args = (self,) if tree is _NONE else (self, tree, to)
                return full(*args, *excess, **keywords)
            try:
                leaves = self._calls[key].leaves
            except KeyError:
                leaves = None
            except TypeError:  # it does not hash
                return full(self, tree, to, **keywords)
            if leaves is not None:
                result = _walked(tree, leaves, {}, _DEPTH)
                if result is not NotImplemented:
                    return result
            result = full(self, tree, to, **keywords)
            if leaves is None:
                _link_tree(self._converters, key, to, **keywords)
            return result
        except InteropError as error:
            __tracebackhide__ = True
            raise shortened(error)  # noqa: B904 - it is the same error
        except TypeError as error:
            __tracebackhide__ = True
            if not is_misuse(error):
                raise
            given = (self,) if tree is _NONE else (self, tree)
            raise misuse(full, (*given, to, *excess) if excess else given, keywords) from None

    convert_tree.__qualname__ = convert_tree.__name__
    return cast(_Function, convert_tree)


def _link_tree(
    converters: Converters, key: object, to: Any, *, cast_all: bool = False, **keywords: Any
) -> None:
    """Let trees with the same `key` find the converter of their arrays."""
    version, among = converters.registry.version, among_of(cast_all)
    converter = converters.converter(Keywords(to, **keywords), among=among)
    converters.link(key, converter, version)


def among_of(cast_all: bool) -> Among:
    """Return the values of a tree for which its ``dtype=`` is."""
    return "numbers" if cast_all else "kind"


def _walked(tree: Any, leaves: Mapping[type, Fast], made: dict[int, Value], depth: int) -> Any:
    """Return a small tree with its arrays converted, or `NotImplemented` if that has to be planned.

    Nothing is copied, so that what is made twice costs little. One array at two places is one in
    the result.
    """
    kind = type(tree)
    if len(tree) > _FEW or not depth:
        return NotImplemented
    children = []
    for child in tree.values() if kind is dict else tree:
        own = type(child)
        if own in leaves:
            result = made.get(id(child), NotImplemented)
            if result is NotImplemented:
                share = leaves[own].sharing
                if share is NotImplemented:
                    return NotImplemented
                try:
                    result = child if share is None else share(child)
                except InteropError:  # raised again by code that can say where it came up
                    return NotImplemented
                if result is NotImplemented:
                    return NotImplemented
                made[id(child)] = result
            children.append(result)
        elif own in SCALARS:
            children.append(child)
        elif own in _CONTAINERS:
            result = _walked(child, leaves, made, depth - 1)
            if result is NotImplemented:
                return NotImplemented
            children.append(result)
        else:
            return NotImplemented
    if kind is dict:
        return dict(zip(tree, children, strict=True))
    return children if kind is list else tuple(children)
