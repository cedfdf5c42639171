"""Validity: whether a declaration can be planned with, told before anything is made of it.

A field of the wrong type would otherwise show up much later, in the plans of other plugins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from interop._model.conversion import Conversion
from interop._model.cost import Cost
from interop._model.effect import WRITING
from interop._model.extension import DtypeFamily
from interop._model.format import Format

__all__ = ["flaw"]

_Check = Callable[[Any], bool]

#: Sets that were found to hold nothing but strings: most are declared many times.
_sound: set[frozenset[Any]] = set()


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_set(value: Any) -> bool:
    if not isinstance(value, frozenset):
        return False
    if value not in _sound:
        if not all(isinstance(item, str) for item in value):
            return False
        _sound.add(value)
    return True


def _is_names(value: Any) -> bool:
    return isinstance(value, tuple) and all(map(_is_text, value))


def _is_counts(value: Any) -> bool:
    return isinstance(value, frozenset) and all(type(item) is int for item in value)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return type(value) is int


def _is_time(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value) and value >= 0


def _is_speed(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and value > 0)


def _is_cost(value: Any) -> bool:
    return (
        isinstance(value, Cost)
        and _is_time(value.latency)
        and _is_speed(value.bandwidth)
        and _is_speed(value.cached)
    )


def _table(of: _Check) -> _Check:
    """Return the check of a mapping from strings to what another check takes."""
    return lambda value: (
        isinstance(value, Mapping)
        and all(_is_text(key) and of(item) for key, item in value.items())
    )


def _or_none(check: _Check) -> _Check:
    return lambda value: value is None or check(value)


_call, _maybe_call, _maybe_text = callable, _or_none(callable), _or_none(_is_text)
_maybe_set, _maybe_counts = _or_none(_is_set), _or_none(_is_counts)

_CONVERSION: dict[str, _Check] = {
    **dict.fromkeys(("source", "target", "name"), _is_text),
    **dict.fromkeys(("dtypes", "devices", "to_dtypes", "to_devices", "index_dtypes"), _maybe_set),
    **dict.fromkeys(("takes", "requires", "drops", "adds", "changes", "effects"), _is_set),
    **dict.fromkeys(("index_dtype", "bits"), _maybe_text),
    **dict.fromkeys(("shortcut", "into"), _maybe_call),
    "function": _call,
    "ndims": _maybe_counts,
    "shares": _or_none(_is_flag),
    "stream": _is_flag,
    "priority": _is_number,
    "cost": _is_cost,
}

_FORMAT: dict[str, _Check] = {
    **dict.fromkeys(("name", "requires", "install"), _is_text),
    **dict.fromkeys(("protocol", "layout", "components"), _maybe_text),
    **dict.fromkeys(("dtypes", "carries", "apart", "restacks", "unstacks", "forgets"), _is_set),
    **dict.fromkeys(("describe", "lacks_now", "take_apart", "assemble", "glance"), _maybe_call),
    **dict.fromkeys(("memory", "fill", "identity", "sample", "inside"), _maybe_call),
    **dict.fromkeys(("passable", "lazy", "labelled"), _is_flag),
    **dict.fromkeys(("lacks", "speaks"), _table(_is_set)),
    **dict.fromkeys(("obstacles", "roles"), _table(_is_text)),
    "index_dtypes": _is_set,
    "types": _is_names,
    "devices": _is_names,
    "named_by": _or_none(_is_names),
    "variants": _table(_call),
    "handling": _is_time,
    "ndims": _maybe_counts,
}

_FAMILY: dict[str, _Check] = {"type": _is_text, "name": _call}


def flaw(one: object) -> str:
    """Say what of a declaration cannot be planned with; "" if nothing.

    Parameters
    ----------
    one : Conversion, Format or DtypeFamily
    """
    if isinstance(one, Conversion):
        return _misfit(one, _CONVERSION) or _contradiction(one)
    if isinstance(one, Format):
        return _misfit(one, _FORMAT) or _impossibility(one)
    if isinstance(one, DtypeFamily):
        return _misfit(one, _FAMILY)
    return f"{one!r}, which is no declaration"


def _misfit(one: Any, checks: Mapping[str, _Check]) -> str:
    for name, check in checks.items():
        value = getattr(one, name)
        if not check(value):
            return f"{name}={value!r}"
    return ""


def _contradiction(one: Conversion) -> str:
    """Name effects that a conversion must have, since it cannot do without writing bytes."""
    if one.effects & WRITING:
        return ""
    if one.changes:
        return f"changes={sorted(one.changes)} and no effect that writes bytes"
    return "shares=False and no effect that writes bytes" if one.shares is False else ""


def _impossibility(one: Format) -> str:
    """Name what no format can have."""
    if not one.devices:
        return "no devices"
    if "builtins:object" in one.types:
        return "the type builtins:object, of which everything is"
    if one.lacks_now is not None and not _is_set(one.lacks_now()):
        return f"lacks_now() of {one.lacks_now()!r}"
    return ""
