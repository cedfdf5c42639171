"""Pickling: what is sent to another process is the request, which is resolved again there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from interop._registry.registry import Registry
from interop._request.keywords import Keywords
from interop._request.naming import named_device, named_dtype
from interop._request.policy import Opening, Policy


def reduced(
    make: Callable[..., object],
    arguments: tuple[object, ...],
    registry: Registry,
    keywords: Keywords,
    policy: Policy,
) -> tuple[Any, ...]:
    """Return what `__reduce__` has to for what ``make(*arguments, keywords)`` makes.

    Parameters
    ----------
    make : callable
        A function, which is pickled by name.
    arguments : tuple
        An instance, which is pickled by name, and others.
    registry : Registry
        That of the instance.
    keywords : Keywords
        The value in ``like=`` is sent whole.
    policy : Policy
        The one that was in force when it was made.

    Raises
    ------
    TypeError
        The keywords name a stream.
    """
    if keywords.stream is not None:
        msg = "stream= names a stream of this process; make what uses it in the other process."
        raise TypeError(msg)
    device = keywords.device
    words = keywords._replace(
        to=_by_name(keywords.to),
        dtype=_named(registry, keywords.dtype),
        device=None if device is None else named_device(registry, device),
    )
    return _made, (make, arguments, words, policy)


def _made(
    make: Callable[..., object], arguments: tuple[object, ...], keywords: Keywords, policy: Policy
) -> object:
    """Make anew what was pickled, under the policy that was in force then."""
    if isinstance(keywords.to, tuple):
        keywords = keywords._replace(to=tuple(map(_imported, keywords.to)))
    keywords = keywords._replace(to=_imported(keywords.to))
    with Opening(lambda outer: outer._replace(policy=policy), lambda inner: inner.policy):
        return make(*arguments, keywords)


class _Module(str):
    """The name of a module, which cannot be pickled itself."""

    __slots__ = ()


def _by_name(to: Any) -> Any:
    if isinstance(to, (list, tuple, set, frozenset)):
        return tuple(map(_by_name, to))
    return _Module(to.__name__) if isinstance(to, ModuleType) else to


def _imported(target: Any) -> Any:
    return import_module(target) if isinstance(target, _Module) else target


def _named(registry: Registry, dtype: Any) -> Any:
    """Return a dtype by name; in a mapping of dtypes, every one of them."""
    if isinstance(dtype, Mapping):
        return {_named(registry, name): _named(registry, target) for name, target in dtype.items()}
    return dtype if dtype is None or isinstance(dtype, str) else named_dtype(registry, dtype)
