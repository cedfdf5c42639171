"""Misfits: what plugins answer in the place of a spec."""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType

from interop._model.spec import Spec

#: The types of the fields for which a framework's own objects, lists and sets are often given.
_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("format", "device"), (str,)),
    **dict.fromkeys(("dtype", "index_dtype", "code_dtype"), (str, NoneType)),
    "shape": (tuple,),
    "traits": (frozenset,),
}


def misfit(spec: object) -> str:
    """Say what keeps a spec that a plugin gives from being one; "" if nothing does."""
    if not isinstance(spec, Spec):
        return f"answered {spec!r}, which is no Spec"
    for name, types in _TYPES.items():
        value = getattr(spec, name)
        if not isinstance(value, types):
            kinds = " or ".join(kind.__name__ for kind in types)
            return f"answered with {name}={value!r}, which has to be of type {kinds}"
    return ""
