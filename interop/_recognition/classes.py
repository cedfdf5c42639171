"""Classes: the formats of the instances of imported classes.

Formats name their types by string. A string stands for a class once its module is imported. As in
`functools.singledispatch`, the nearest class in the method resolution order counts, whoever named
it. Abstract base classes and protocols stand for the classes that derive from them, and for no
others.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from interop._model.format import Format


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
