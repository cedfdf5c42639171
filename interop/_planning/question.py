"""What a search asks of the ways: the result, and what their steps may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from interop._model.effect import EFFECTS
from interop._model.format import Format
from interop._model.spec import Spec
from interop._request.request import Request

from .step import Step


class Goal(NamedTuple):
    """The result that is asked for, in one acceptable format."""

    dtype: str | None
    device: str
    carries: frozenset[str]
    requires: frozenset[str] = frozenset()


class Question(NamedTuple):
    """What decides, beside a value, which steps a way makes of it.

    Parameters
    ----------
    request : Request
    goals : mapping of str to Goal
        By acceptable format.
    dtypes, devices : tuple of str
        The dtypes and devices that a step may change to.
    formats : mapping of str to Format
        All that are registered.
    route_of : callable
        Returns the steps that the planner prefers for the arrays of a composite value.
    effects : frozenset of str
        The effects that a step may have.
    """

    request: Request
    goals: Mapping[str, Goal]
    dtypes: tuple[str, ...]
    devices: tuple[str, ...]
    formats: Mapping[str, Format]
    route_of: Callable[[Spec, Request], tuple[Step, ...] | None]
    effects: frozenset[str] = frozenset(EFFECTS)
