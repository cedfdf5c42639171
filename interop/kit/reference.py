"""References: what belongs to a framework, named by string and looked up when it is needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from operator import attrgetter
from typing import TypeAlias

from interop._model.typing import Value

#: A function, ``"module:function"``, or the name of an attribute of the value.
Reference: TypeAlias = str | Callable[..., Value]


def referred(reference: Reference) -> Callable[..., Value]:
    """Return the function that a reference stands for, without importing anything.

    A name with a colon is a function of a module. A bare name is an attribute of the value that
    the function is called with, or a method of it without arguments.
    """
    if not isinstance(reference, str):
        return reference
    return partial(_call if ":" in reference else _attribute, reference)


def _call(name: str, *values: Value, **keywords: object) -> Value:
    return _function(name)(*values, **keywords)


@cache
def _function(name: str) -> Callable[..., Value]:
    module, _, path = name.partition(":")
    function: Callable[..., Value] = attrgetter(path)(import_module(module))
    return function


def _attribute(name: str, value: Value) -> Value:
    attribute = getattr(value, name)
    return attribute() if callable(attribute) else attribute
