"""Classes: the formats of the instances of imported classes.

Formats name their types by string. A string stands for a class once its module is imported. As in
`functools.singledispatch`, the nearest class in the method resolution order counts, whoever named
it. Abstract base classes and protocols stand for the classes that derive from them, and for no
others.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TypeVar
from weakref import WeakKeyDictionary

from interop._model.format import Format

_Kept = TypeVar("_Kept")

#: As many types are kept, so that a program that makes classes does not fill the memory.
_MOST_TYPES = 4096


class ByType(dict[type, _Kept]):
    """What was found of types.

    Its items are those of types that are there for good, because their modules have them. Others,
    such as a class that a function makes, are held weakly: they may hold much.
    """

    def __init__(self) -> None:
        self._others: WeakKeyDictionary[type, _Kept] = WeakKeyDictionary()

    def found(self, type_: type) -> _Kept | None:
        """Return what was found of a type; None if nothing was."""
        kept = self.get(type_)
        return self._others.get(type_) if kept is None else kept

    def keep(self, type_: type, found: _Kept) -> _Kept:
        """Keep what was found of a type, and return it; a full table starts over."""
        if imported(f"{type_.__module__}:{type_.__qualname__}") is not type_:
            self._others[type_] = found
            return found
        if len(self) >= _MOST_TYPES:
            self.clear()
        self[type_] = found
        return found


def format_of_class(class_: type, formats: Iterable[Format]) -> Format | None:
    """Return the format of the instances of a class, or None if no format names it or a base."""
    named: dict[type, Format] = {}
    for format_ in formats:
        for name in format_.types if format_.describe or format_.wrapper else ():
            base = imported(name)
            if isinstance(base, type):
                named.setdefault(base, format_)
    return next((named[base] for base in class_.__mro__ if base in named), None)


def imported(name: str) -> object:
    """Return what ``"module:attribute"`` names if its module is imported, else None."""
    module, _, attributes = name.partition(":")
    value: object = sys.modules.get(module)
    try:
        for attribute in attributes.split("."):
            value = getattr(value, attribute, None)
    # A module may raise anything for an attribute, for example if an extra is missing.
    except Exception:  # noqa: BLE001 - `interop check` reports it
        return None
    return value
