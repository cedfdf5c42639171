"""Steps: conversions at their places in a route, and the specs before and after them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from interop._model.blame import is_signal
from interop._model.provenance import Provenance
from interop._model.spec import LABELLED, MEMORY_TRAITS, Spec
from interop._model.typing import Value, ValueFunction
from interop.errors import ConversionError


class Step(NamedTuple):
    """A conversion at its place in a route.

    Parameters
    ----------
    label : str
        Name of the conversion.
    provenance : Provenance
        Where the conversion comes from.
    before, after : Spec
        The specs of the value and of the result.
    effects : frozenset of str
        The effects that the step has here, declared and derived.
    seconds : float, in seconds
        Estimated time.
    latency : float, in seconds
        The part of the estimated time that does not depend on the size.
    writes : bool
        Whether bytes are written.
    aliases : bool
        Whether the result shares memory with the value.
    call : callable
        ``call(value)``, with those of the keywords in `wants` that the caller has given.
    wants : tuple of str
        The keywords that `call` takes: ``"stream"``, that of the consumer, and ``"like"``.
    origin : object
        Stands for the step when the planner is to leave it out, after it has declined.
    fast_path : callable or None
        That of the `Conversion`, or its `hand_off` if that writes nothing.
    hand_off : callable or None
        What `call` does, with no keyword but ``stream=``, by an offer that the conversion adopts,
        or `NotImplemented`.
    batch : callable or None
        That of the `Conversion`, with the keywords of `call`.
    into : callable or None
        ``into(out, value)`` writes the result into `out`.
    replaces : bool
        Whether the `Conversion` says that it comes in the place of others.
    roles : frozenset of str or None
        The component arrays that the result of a composite format shares with the value, by their
        roles; None: all that there are.
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
    fast_path: Callable[..., Value] | None = None
    into: Callable[[Any, Any], None] | None = None
    replaces: bool = False
    roles: frozenset[str] | None = None
    hand_off: Callable[..., Value] | None = None
    batch: Callable[[list[Value]], list[Value]] | None = None

    def still_shared(self, shared: frozenset[str] | None) -> frozenset[str] | None:
        """Return the roles that its result shares with a value of which it got some; None: all.

        Two steps of which each shares something may share nothing together.
        """
        if not self.aliases:
            return frozenset()
        if self.roles is None:
            return shared
        return self.roles if shared is None else self.roles & shared


def without_dropped(spec: Spec, steps: Sequence[Step]) -> Spec:
    """Return the spec of what some steps gave, without the traits that they have dropped.

    A second look at a result may find a trait again that `describe` assumes of all values on a
    device, because to look there would cost too much. Memory and labels are seen for what they are.
    """
    if not steps:
        return spec
    had = frozenset().union(*(step.before.traits for step in steps))
    dropped = had - steps[-1].after.traits - MEMORY_TRAITS - LABELLED
    return spec._replace(traits=spec.traits - dropped)


def batch(steps: Sequence[Step]) -> Callable[[list[Value]], Any] | None:
    """Return what carries out some steps on several values, if one of the steps takes all at once.

    It answers `NotImplemented` if that step does, or if one fails.
    """
    if all(step.batch is None for step in steps):
        return None
    calls = [step.batch or partial(_each, step.call) for step in steps]

    def convert(values: list[Value]) -> Any:
        taken = 0
        try:
            for call in calls:
                results = call(values)
                if results is NotImplemented:
                    return results
                results = [*results] if isinstance(results, Iterable) else []
                if len(results) != len(values):
                    break
                values, taken = results, taken + 1
            else:
                return values
        except BaseException as error:
            if is_signal(error):
                raise
            return NotImplemented  # the plan, which is called then, says which step fails
        step, counts = steps[taken], f"{len(results)} results for {len(values)} values"
        msg = f"{step.label} gave {counts}; {step.provenance.remedy}"
        raise ConversionError(msg, step.label, step.provenance.distribution)

    return convert


def _each(call: ValueFunction, values: list[Value]) -> list[Value]:
    return [*map(call, values)]


@lru_cache(maxsize=256)
def hand_off(adopt: Callable[..., Value], offer: Callable[..., Any]) -> Callable[..., Value]:
    """Return the function that lets a conversion adopt what a format offers."""

    def path(value: Value, **keywords: object) -> Value:
        try:
            return adopt(offer, value, **keywords)
        except BaseException as error:
            if is_signal(error):
                raise
            return NotImplemented  # the plan, which is called then, says which step fails

    return path


def handed_off(step: Step, **keywords: object) -> ValueFunction:
    """Return the call of a step, which is made where its hand-off does not serve."""
    hand_off, call = step.hand_off, partial(step.call, **keywords) if keywords else step.call
    if hand_off is None:
        return call

    def convert(value: Value) -> Value:
        result = hand_off(value, **keywords)
        return call(value) if result is NotImplemented else result

    return convert


@lru_cache(maxsize=256)
def exported(function: Callable[..., Value], export: ValueFunction) -> Callable[..., Value]:
    """Return the function that converts what exports by a protocol in a value's place."""

    def convert(value: Value, **keywords: Any) -> Value:
        return function(export(value), **keywords)

    return convert


def fast_path(
    steps: tuple[Step, ...],
    rival_pairs: frozenset[tuple[str, str]],
    **dtype: Any,
) -> ValueFunction | None:
    """Return the fast path that stands for a route, if no other distribution has a say.

    Every hand-off among the steps must declare one. No pair of formats on the way may be
    `rival_pairs`: conversions of another distribution might be preferred for some values. What
    makes arrays of numbers without a dtype gets keywords that tell the `dtype`.
    """
    between = [step for step in steps if step.before.format != step.after.format]
    paths = tuple(step.fast_path for step in between if step.fast_path is not None)
    whole = steps[0].before.format, steps[-1].after.format
    pairs = {whole, *((step.before.format, step.after.format) for step in between)}
    if not paths or len(paths) < len(between) or not rival_pairs.isdisjoint(pairs):
        return None
    if dtype:
        paths = (_of_dtype(paths[0], **dtype), *paths[1:])
    return paths[0] if len(paths) == 1 else _in_turn(paths)


@lru_cache(maxsize=256)  # so that equal routes have one path
def _of_dtype(path: ValueFunction, **dtype: Any) -> ValueFunction:
    return partial(path, **dtype)


@lru_cache(maxsize=256)
def _in_turn(paths: tuple[ValueFunction, ...]) -> ValueFunction:
    return partial(_one_after_another, paths)


def _one_after_another(paths: tuple[ValueFunction, ...], value: Value) -> Value:
    """Return what fast paths make of a value in turn; `NotImplemented` as soon as one does."""
    for path in paths:
        value = path(value)
        if value is NotImplemented:
            break
    return value
