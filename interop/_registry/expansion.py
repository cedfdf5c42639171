"""Expansion: the conversions that a format declares as unary steps."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import fields
from typing import Any

from interop._model.conversion import Conversion, Result
from interop._model.format import Format
from interop._model.unary import Cast, Copy, Drop, Move, Unary, UnaryStep

_HOST, _TRACED = frozenset({"cpu"}), frozenset({"traced"})

#: The fields that unary steps and conversions have in common.
_SHARED = frozenset(field.name for field in fields(UnaryStep)) & {*Conversion._fields}


def unary_conversions(format_: Format) -> Iterator[Conversion]:
    """Yield the conversions of a format's unary steps, which have yet to be validated."""
    for step in format_.unary:
        yield from _conversions(format_, step)


def _conversions(format_: Format, step: Unary) -> Iterator[Conversion]:
    conversion = _conversion(format_, step)
    if step.device_cost is None:
        yield conversion
        return
    devices = frozenset(format_.devices if step.devices is None else step.devices)
    if devices & _HOST:
        yield conversion._replace(devices=devices & _HOST)
    if devices - _HOST:
        yield conversion._replace(devices=devices - _HOST, cost=step.device_cost)


def _conversion(format_: Format, step: Unary) -> Conversion:
    shared = {name: getattr(step, name) for name in _SHARED}
    if step.takes is None:
        shared["takes"] = format_.carries - _TRACED - step.blocked
    if step.devices is None:
        shared["devices"] = _everywhere(format_)
    fields_of_kind = shared | _fields_of_kind(step)
    return Conversion(format_.name, format_.name, replaces=format_.replaces, **fields_of_kind)


def _everywhere(format_: Format) -> Set[str] | None:
    """Return the devices of a format; None, for any, if it lives on the host and elsewhere."""
    devices = frozenset(format_.devices)
    return None if devices > _HOST else devices


def _fields_of_kind(step: Unary) -> dict[str, Any]:
    """Return the fields of a conversion that follow from the kind of step."""
    match step:
        case Drop(trait, function, effect):
            return {
                "function": function,
                "requires": step.requires | {trait},
                "drops": step.drops | {trait},
                "effects": {effect} if effect else frozenset(),
            }
        case Copy(function):
            return {"function": function, "effects": {"copy"}}
        case Cast(function, to):
            change = {"changes": {"dtype"}, "effects": {"copy"}, "result": Result(dtypes=to)}
        case Move(function, to):
            change = {"changes": {"device"}, "result": Result(devices=to)}
    return {"function": function, **change}
