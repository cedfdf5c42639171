"""A step: a conversion at its place in a route, and what it does to the spec there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Any, NamedTuple

from interop._model.format import Format
from interop._model.spec import LABELLED, Spec
from interop._model.typing import Value, ValueFunction
from interop._registry.declared import Provenance


class Targets(NamedTuple):
    """The dtypes and devices that a step may usefully change to, for one request."""

    dtypes: tuple[str, ...]
    devices: tuple[str, ...]
    consented: bool  # the caller named the dtype, so that a cast to it is no loss
    like: Mapping[str, Set[str]] = {}  # by formats, how the value that is given as like= is divided
    formats: Mapping[str, Format] = {}  # of which one holds what a wrapper wraps


class Step(NamedTuple):
    """A conversion at its place in a route.

    Parameters
    ----------
    label : str
        Name of the conversion.
    provenance : Provenance
        Who declared it.
    before, after : Spec
        What is known of the value before and after it.
    effects : frozenset of str
        Those it has here, declared and derived.
    seconds : float
        Estimated time.
    latency : float
        The part of it that does not depend on the size, in seconds.
    writes : bool
        Whether bytes are written.
    aliases : bool
        Whether the result shares memory with the value.
    call : callable
        ``call(value)``; with a keyword for each of `wants` that the caller has given.
    wants : tuple of str
        ``"stream"``, the consumer's, and ``"like"``.
    origin : object
        What to leave out when this step has declined.
    fast_path : callable or None
        As of `Conversion`.
    into : callable or None
        ``into(out, value)`` writes the result into `out`.
    priority : int, without unit
        As of `Conversion`.
    """

    label: str
    provenance: Provenance
    before: Spec
    after: Spec
    effects: frozenset[str]
    seconds: float
    latency: float
    writes: bool
    aliases: bool
    call: Callable[..., Value]
    wants: tuple[str, ...] = ()
    origin: object = None
    fast_path: ValueFunction | None = None
    into: Callable[[Any, Any], None] | None = None
    priority: int = 0


def unwrap_step(spec: Spec, format_: Format, provenance: Provenance) -> Step:
    """Return the step that unwraps a value of a wrapper's format."""
    assert format_.wrapper is not None
    labelled = not LABELLED.isdisjoint(spec.traits)
    return Step(
        f"unwrap_{format_.name.replace('.', '_')}",
        provenance,
        spec,
        spec._replace(format=spec.wrapped or "", traits=spec.traits - LABELLED, wrapped=None),
        effects=frozenset({"drop_labels"} if labelled else ()),
        seconds=format_.wrapper.seconds,
        latency=format_.wrapper.seconds,
        writes=False,
        aliases=True,
        call=format_.wrapper.unwrap,
        origin=(format_.name, "wrapper"),
    )
