"""Misfits: what plugins answer in the place of a spec."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interop._model.spec import Spec


def misfit(spec: object) -> str:
    """Say what keeps a spec that a plugin gives from being one; "" if nothing does."""
    if not isinstance(spec, Spec):
        return f"answered {spec!r}, which is no Spec"
    for name, value in zip(Spec._fields, spec, strict=True):
        wanted, holds = _OF_SPEC.get(name, ("text, or None", _is_text_or_none))
        if not holds(value):
            return f"answered with {name}={value!r}, which has to be {wanted}"
    return ""


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_text_or_none(value: object) -> bool:
    return value is None or isinstance(value, str)


def _is_count(value: Any) -> bool:
    """Tell whether a value is a number of elements or bytes; it may be one of NumPy's."""
    return hasattr(value, "__index__") and value >= 0


#: What a field of a spec has to be, and whether a value is that. All others are text, or None.
_OF_SPEC: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "format": ("text", _is_text),
    "device": ("text", _is_text),
    "dtype": ("the name of a dtype", _is_text_or_none),
    "shape": (
        "a tuple of lengths",
        lambda shape: type(shape) is tuple and all(map(_is_count, shape)),
    ),
    "traits": (
        "a frozenset of text",
        lambda traits: isinstance(traits, frozenset) and all(map(_is_text, traits)),
    ),
    "nbytes": ("a number of bytes", _is_count),
    "nnz": ("a number of elements, or None", lambda nnz: nnz is None or _is_count(nnz)),
}
