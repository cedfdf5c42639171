"""Unary steps: conversions within one format, whose open fields that format fills in.

`Drop`, `Copy`, `Cast`, `CastColumns` and `Move` are functions that read as declarations.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any, TypedDict, Unpack

from interop._model.typing import Value

from .conversion import BUS, Conversion, Cost, Result
from .format import Format

#: What an open `Conversion.takes` holds in the place of the traits that the format carries.
_CARRIED, _TRACED = frozenset({"*"}), frozenset({"traced"})
_NONE: frozenset[str] = frozenset()
_HOST = frozenset({"cpu"})


class StepFields(TypedDict, total=False):
    """The fields of a `Conversion` that a step within a format may state."""

    takes: Set[str]
    requires: Set[str]
    drops: Set[str]
    adds: Set[str]
    checked: bool
    across: Cost | None
    dtypes: Set[str] | None
    devices: Set[str] | None
    ndims: Set[int] | None
    cost: Cost
    shares: bool | None
    stream: bool
    into: Callable[[Any, Any], None] | None
    batch: Callable[..., list[Any]] | None
    name: str


def Drop(  # noqa: N802 - it reads as a declaration
    trait: str, function: Callable[..., Value], effect: str = "", **fields: Unpack[StepFields]
) -> Conversion:
    """Return a step for values with a certain trait, which the result does not have.

    Parameters
    ----------
    trait : str
        The trait.
    function : callable
        ``function(value) -> value``.
    effect : str
        The effect of the step: ``"copy"``, ``"detach"`` …; "" if it only shares memory.
    **fields
        Fields of `Conversion`. What the step takes, and where, follows from the format by default.
    """
    step = _step(function, {effect} - {""}, fields)
    return step._replace(requires={trait, *step.requires}, drops={trait, *step.drops})


def Copy(  # noqa: N802
    function: Callable[..., Value], orders: Set[str] = _NONE, **fields: Unpack[StepFields]
) -> Conversion:
    """Return a step that writes the same numbers into fresh memory.

    Parameters
    ----------
    function : callable
        ``function(value) -> value``, or ``function(value, *, order="C") -> value`` with `orders`.
    orders : set of str
        The orders it can lay elements out in, of ``"C"``, ``"F"`` and ``"K"`` (see `Result`).
    **fields
        Fields of `Conversion`. What the step takes, and where, follows from the format by default.
    """
    return _ordered(_step(function, {"copy"}, fields), orders)


def Cast(  # noqa: N802
    function: Callable[..., Value],
    to: Set[str] | None = None,
    orders: Set[str] = _NONE,
    **fields: Unpack[StepFields],
) -> Conversion:
    """Return a step that writes the numbers in another dtype.

    Parameters
    ----------
    function : callable
        ``function(value, *, dtype) -> value``, with ``order=`` as well where there are `orders`.
    to : set of str or None
        The dtypes it can change to; None: all that the format holds.
    orders : set of str
        The orders it can lay elements out in, of ``"C"``, ``"F"`` and ``"K"`` (see `Result`).
    **fields
        Fields of `Conversion`. What the step takes, and where, follows from the format by default.
    """
    step = _step(function, {"copy"}, fields)._replace(changes={"dtype"}, result=Result(dtypes=to))
    return _ordered(step, orders)


def CastColumns(  # noqa: N802
    function: Callable[..., Value], **fields: Unpack[StepFields]
) -> Conversion:
    """Return a step that casts columns of a table, and keeps the others as they are.

    Parameters
    ----------
    function : callable
        ``function(value, *, columns) -> value``: `columns` is a mapping of dtypes by those of the
        columns that are cast. Objects and decimals, which may be numbers, have ``"untyped"``.
    **fields
        Fields of `Conversion`. What the step takes, and where, follows from the format by default.
    """
    step = _step(function, {"copy"}, {"shares": True, **fields})
    return step._replace(changes={"columns"})


def Move(  # noqa: N802
    function: Callable[..., Value], to: Set[str] | None = None, **fields: Unpack[StepFields]
) -> Conversion:
    """Return a step to another device, which takes as long as the bus does if no cost is stated.

    Parameters
    ----------
    function : callable
        ``function(value, *, device) -> value``.
    to : set of str or None
        The device types it can move to; None: all where the format can live.
    **fields
        Fields of `Conversion`. What the step takes, and where, follows from the format by default.
    """
    step = _step(function, set(), {"cost": BUS, **fields})
    return step._replace(changes={"device"}, result=Result(devices=to))


def _step(function: Callable[..., Value], effects: Set[str], fields: StepFields) -> Conversion:
    stated: StepFields = {"takes": _CARRIED, "devices": None, **fields}
    return Conversion("", "", function, effects=effects, **stated)


def _ordered(step: Conversion, orders: Set[str]) -> Conversion:
    """Return a step that lays elements out in the order asked for, if it can."""
    if not orders:
        return step
    return step._replace(
        changes={*step.changes, "order"}, result=step.result._replace(orders=orders)
    )


def within(format_: Format, step: Conversion) -> Conversion:
    """Return a step of a format's `unary` with its open fields filled in.

    It takes what the format carries, but nothing traced, wherever the format can live. A format
    that lives on the host and elsewhere leaves the devices open: any.
    """
    takes, devices = step.takes, step.devices
    if takes == _CARRIED:
        takes = format_.carries - _TRACED
    if devices is None and not frozenset(format_.devices) > _HOST:
        devices = frozenset(format_.devices)
    name, replaces = format_.name, format_.replaces
    return step._replace(source=name, target=name, takes=takes, devices=devices, replaces=replaces)
