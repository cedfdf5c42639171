"""Arrays of codes, whose class keeps beside them what they stand for."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from inspect import Parameter, signature
from types import FunctionType, ModuleType
from typing import Any

from interop.errors import RefusedError

#: How attributes and types are named that belong to a quantization.
_QUANT = re.compile(r"quant(?!it[yi]|um|ile|al)|qtype", re.IGNORECASE)
_NO_HOLDERS = (type, ModuleType, FunctionType, Mapping)


def refuse_codes(value: Any, base: type, plain: str) -> None:
    """Refuse an array of codes: its class keeps their scale, or their type.

    Parameters
    ----------
    value : array
        Of integers or narrow floats, and of a subclass of `base`.
    base : type
        The framework's own array type.
    plain : str
        The call that gives the codes alone: ``"x.view(numpy.ndarray)"``.

    Raises
    ------
    RefusedError
        An attribute of the value is an array, holds arrays or is named after a quantization. The
        message names the method or the function of its library that dequantizes it.
    """
    kind = type(value)
    names = [name for name, part in _attributes(value) if _tells_of_codes(name, part)]
    if names:
        msg = (
            f"{kind.__module__}.{kind.__qualname__} holds codes, and {names[0]} tells what they "
            f"stand for; convert what {_dequantizer(kind, base)} returns, or {plain} for the codes "
            "alone."
        )
        raise RefusedError(msg)


def _attributes(value: object) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that a value itself has, by name."""
    yield from getattr(value, "__dict__", {}).items()
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            yield name, getattr(value, name, None)


def _tells_of_codes(name: str, part: Any) -> bool:
    """Return whether an attribute is a part of a quantization: an array, or what is named so."""
    if part is None or part is False:
        return False
    if _QUANT.search(name) or _QUANT.search(type(part).__name__) or _is_array(part):
        return True
    inside = {} if isinstance(part, _NO_HOLDERS) else getattr(part, "__dict__", {})
    return any(map(_is_array, inside.values()))


def _is_array(part: object) -> bool:
    return not isinstance(part, type) and hasattr(part, "dtype") and hasattr(part, "shape")


def _dequantizer(kind: type, base: type) -> str:
    """Return the call that dequantizes values of a type, by its own method or its module's."""
    for name in dir(kind):
        method = getattr(kind, name)
        if _dequantizes(name) and callable(method) and method is not getattr(base, name, None):
            return f"x.{name}({_rest(method)})"
    module = sys.modules.get(kind.__module__)
    for name, function in vars(module).items() if module else ():
        if _dequantizes(name) and isinstance(function, FunctionType):
            return f"{kind.__module__}.{name}({', '.join(filter(None, ('x', _rest(function))))})"
    return f"the function of {kind.__module__.partition('.')[0]} that dequantizes it"


def _dequantizes(name: str) -> bool:
    return "dequant" in name.lower() and not name.startswith("_")


def _rest(function: Any) -> str:
    """Return ``...`` for a function that needs more than its first argument."""
    _, *others = signature(function).parameters.values()
    kinds = {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}
    needed = [p for p in others if p.default is p.empty and p.kind not in kinds]
    return "..." if needed else ""
