"""Unary steps: what a framework does to a value within one format, declared with the format."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, field
from typing import Any

from interop._model.typing import Value

from .cost import BUS, Cost

#: The cost of a step whose author states none.
_COST = Cost()


@dataclass(frozen=True, kw_only=True)
class UnaryStep:
    """A step within one format: the fields that `Drop`, `Copy`, `Cast` and `Move` have in common.

    Registration makes a `Conversion` of each, from the format to itself. Whatever is left out
    follows from the format.

    Parameters
    ----------
    takes : set of str or None
        Traits the value may have; None: those that the format `carries`, without ``traced`` and
        without `blocked`.
    blocked : set of str
        Traits that the format carries and the step does not take.
    requires : set of str
        Traits the value must have.
    drops : set of str
        Traits the result no longer has. Fresh memory has no traits of memory anyway.
    adds : set of str
        Traits the result has although the value may not.
    checked : bool
        Whether it raises `Declined` if the dtype of the result does not hold a number of the value.
    dtypes : set of str or None
        Element dtypes it takes; None: all that the format holds.
    devices : set of str or None
        Device types it takes; None: all where the format can live.
    ndims : set of int or None, in axes
        Numbers of axes it takes; None: all.
    cost : Cost
        How long it takes.
    device_cost : Cost or None
        How long it takes on other devices than the host, which the planner then knows as a step of
        its own; None: as long as on the host.
    shares : bool or None
        Whether the result shares memory with the value. None: it does unless an effect writes.
    stream : bool
        Whether the function wants the consumer's stream.
    into : callable or None
        ``into(out, value)`` writes the result into a finished value of the format.
    batch : callable or None
        ``batch(values)`` converts several values at once, as that of a `Conversion`.
    name : str
        Names the step; by default the function's name.
    """

    takes: Set[str] | None = None
    blocked: Set[str] = frozenset()
    requires: Set[str] = frozenset()
    drops: Set[str] = frozenset()
    adds: Set[str] = frozenset()
    checked: bool = False
    dtypes: Set[str] | None = None
    devices: Set[str] | None = None
    ndims: Set[int] | None = None
    cost: Cost = _COST
    device_cost: Cost | None = None
    shares: bool | None = None
    stream: bool = False
    into: Callable[[Any, Any], None] | None = None
    batch: Callable[..., list[Any]] | None = None
    name: str = ""


@dataclass(frozen=True)
class Drop(UnaryStep):
    """A step for values with a certain trait, which the result does not have.

    Parameters
    ----------
    trait : str
        The trait.
    function : callable
        ``function(value) -> value``.
    effect : str
        The effect of the step: ``"copy"``, ``"detach"`` …; "" if it only shares memory.
    """

    trait: str
    function: Callable[..., Value]
    effect: str = ""


@dataclass(frozen=True)
class Copy(UnaryStep):
    """A step that writes the same numbers into fresh memory.

    Parameters
    ----------
    function : callable
        ``function(value) -> value``.
    """

    function: Callable[..., Value]


@dataclass(frozen=True)
class Cast(UnaryStep):
    """A step that writes the numbers in another dtype.

    Parameters
    ----------
    function : callable
        ``function(value, *, dtype) -> value``.
    to : set of str or None
        The dtypes it can change to; None: all that the format holds.
    """

    function: Callable[..., Value]
    to: Set[str] | None = None


@dataclass(frozen=True)
class Move(UnaryStep):
    """A step to another device.

    Parameters
    ----------
    function : callable
        ``function(value, *, device) -> value``.
    to : set of str or None
        The device types it can move to; None: all where the format can live.
    cost : Cost
        How long it takes, by default at the speed of the bus.
    """

    function: Callable[..., Value]
    to: Set[str] | None = None
    cost: Cost = field(default=BUS, kw_only=True)


#: The kinds of steps in `Format.unary`.
Unary = Drop | Copy | Cast | Move
