"""Explanations: why there is no route, why others were not taken, and which would be better."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from interop._model.device import device_type
from interop._model.dialect import keyword, reworded
from interop._model.display import counted_axes
from interop._model.dtype import DTYPES, common_first, unknown_dtype
from interop._model.effect import EFFECTS
from interop._model.format import Format
from interop._model.spec import TRAITS, Spec
from interop._model.suggestion import listed
from interop._registry.installed import not_installed
from interop.errors import RefusedError

from .components import objection, transfer_name
from .conversion import ResolvedConversion
from .planner import Planner
from .request import WRITABLE, Request
from .step import Step

#: What to do about values that no conversion takes, by the trait that stands in the way.
_MOVES = {
    "meta": "give it data first (in its own framework, or build it on a real device)",
    "traced": "convert outside the trace or transform",
    "nested": "convert its rows one by one, or pad it to one shape first",
    "no_storage": "unwrap it with its own method first (dequantize, full_tensor, get_data …)",
    "hybrid": "make it dense in its own framework first",
    "batched": "convert its matrices one by one, or make it dense",
}

#: How many refused routes are named, and how many conversions with what keeps them from serving.
_MOST, _FEW = 3, 5

#: How many formats a message names as the only ones from which a target is reached.
_MOST_SOURCES = 8

#: A refused route, and the effects that stop it.
Refused = tuple[list[Step], frozenset[str]]


def nearest_refused(
    planner: Planner,
    spec: Spec,
    request: Request,
    without: frozenset[object] = frozenset(),
    *,
    nearby: bool = False,
) -> Iterator[Refused]:
    """Yield the nearest routes that are refused, with the effects that stop each.

    Of routes that the same keyword would permit, only the nearest; none that needs what a nearer
    one needs, and more.
    """
    moves: set[str] = set()
    needs: list[frozenset[str]] = []
    permitted = request.permitted
    for _ in range(2 * _MOST):
        route = planner.route(spec, request, without, relaxed=True, nearby=nearby)
        if route is None:
            return
        _, steps = route
        stopped = [step for step in steps if step.effects - permitted]
        effects = frozenset(effect for step in stopped for effect in step.effects - permitted)
        move = _move(effects, request, steps)
        if move not in moves and len(needs) < _MOST and not any(need <= effects for need in needs):
            needs.append(effects)
            yield steps, effects
        moves.add(move)
        without |= {step.origin for step in stopped}


def _described(nearest: Iterable[Refused], request: Request) -> list[str]:
    """Return one line for each of the nearest refused routes."""
    lines = []
    for steps, effects in nearest:
        names = " → ".join(step.label for step in steps) + ": " if len(steps) > 1 else ""
        stops = [
            f"{step.label} has the effect {effect!r} ({EFFECTS[effect].meaning})"
            for step in steps
            for effect in sorted(step.effects & effects)
        ]
        lines.append(f"{names}{'; '.join(stops)}; {_move(effects, request, steps)}")
    return lines


def refused_routes(planner: Planner, spec: Spec, request: Request) -> str:
    """Return the nearest refused routes as text; "" if there are none."""
    # Beside a route that was taken, one by a long way round is no alternative.
    with planner.lock:
        nearest = list(nearest_refused(planner, spec, request, nearby=True))
    lines = _described((item for item in nearest if not _returns(item[0])), request)
    return "\n".join(["Refused:", *(f"  - {line}" for line in lines)]) if lines else ""


def _returns(steps: list[Step]) -> bool:
    """Tell whether a route comes back to a format that it has left, or to a place of one."""
    specs = [steps[0].before, *(step.after for step in steps)]
    formats = [name for name, _ in groupby(spec.format for spec in specs)]
    places = [place for place, _ in groupby((spec.format, spec.device) for spec in specs)]
    return len({*formats}) < len(formats) or len({*places}) < len(places)


def _move(effects: frozenset[str], request: Request, steps: list[Step]) -> str:
    """Name the keywords that would permit a route, and those that forbid it."""
    moves = []
    if effects & request.forbidden_by_copy:
        moves.append(f"leave out {keyword('copy', request.copy)}")
        effects -= request.forbidden_by_copy & request.policy.permitted
    if forbidden := effects & request.forbid:
        word = forbidden if len(forbidden) > 1 else min(forbidden)
        moves.append(f"leave out {keyword('forbid', word)}")
    # Without that word they are allowed, or those that dtype= is consent to.
    consented = {"narrow"} if request.dtype else set()
    effects -= {e for e in request.forbid if EFFECTS[e].allowed or e in consented}
    if effects:
        moves.append(f"pass {keyword('allow', effects)}")
    if effects == {"narrow"} and steps and not request.dtype:
        moves[-1] += f" or {keyword('dtype', steps[-1].after.dtype)}"
    return " and ".join(moves)


def explanation(
    planner: Planner, spec: Spec, request: Request, nearest: list[Refused]
) -> RefusedError:
    """Return the error to raise when there is no route but the `nearest`, which are refused."""
    request_text = f"cannot convert {spec} to {request}"
    if nearest:
        routes = "\n".join(f"  - {line}" for line in _described(nearest, request))
        steps, effects = nearest[0]
        text = f"{request_text}; the nearest routes are refused:\n{routes}\n"
        hints = _hints(planner, spec)
        others = [hints[effect] for effect in sorted(effects & hints.keys())]
        if "narrow" in effects:
            for name in request.formats:
                hint = planner.format(name).limits.refusal_hints.get(spec.dtype or "")
                others += [reworded(hint)] if hint else []
        moves = [f"To permit the nearest, {_move(effects, request, steps)}.", *others]
        return RefusedError(text + "\n".join(moves), effects)
    with planner.lock:  # the graph must not change meanwhile
        planner.graph.refresh()
        return RefusedError(f"{request_text}: {_obstacle(planner, spec, request)}")


def _hints(planner: Planner, spec: Spec) -> dict[str, str]:
    """Return what formats say of refusals, for a value of which one may wrap another."""
    hints = {
        **(planner.format(spec.wrapped).limits.refusal_hints if spec.wrapped else {}),
        **planner.format(spec.format).limits.refusal_hints,
    }
    return {name: reworded(hint) for name, hint in hints.items()}


def _obstacle(planner: Planner, spec: Spec, request: Request) -> str:
    """Say what no keyword would permit, and what to do about it."""
    for trait in sorted(spec.traits & _MOVES.keys()):
        return f"{TRAITS[trait]}; {_MOVES[trait]}."
    hints = _hints(planner, spec)
    for trait in sorted(spec.traits & hints.keys()):
        return hints[trait]
    if spec.dtype not in DTYPES:
        return (
            f"{spec.dtype} is not a dtype of numbers that the target can hold; make numbers of it "
            "in its own framework first."
        )
    if request.dtype and request.dtype not in DTYPES:
        return f"{request.dtype!r} is not a dtype; {unknown_dtype(request.dtype)}"
    if not planner.goals(spec, request):
        return _impossible_goal(planner, spec, request)
    shared = request._replace(copy=None)
    if request.copy == WRITABLE and any(
        planner.route(spec, shared, relaxed=relaxed) for relaxed in (False, True)
    ):
        names = " or ".join(request.formats)
        return f"{names} arrays cannot be written to; leave out {keyword('copy', WRITABLE)}."
    return _missing_conversion(planner, spec, request)


def _missing_conversion(planner: Planner, spec: Spec, request: Request) -> str:
    """Name what stopped each conversion that leads towards the goal."""
    if planner.labels_confine(spec, request.formats):
        return _missing_within(planner, spec)
    graph = planner.graph
    candidates = graph.candidates(spec.wrapped or spec.format, request.formats)
    for step in graph.unwrap_steps(spec, candidates.names):
        spec = step.after
    conversions = graph.conversions(spec.format)
    transfers = list(_transfer_objections(planner, spec, request))
    leads_there = any(item.target.name in candidates.distance for item in conversions)
    if not transfers and not leads_there:
        return _unreachable(planner, spec, request)
    if any(goal.requires for goal in planner.goals(spec, request).values()):
        return (
            f"nothing divides it as the value given as like= is; pass {keyword('to')} instead, and "
            "divide the result in its own framework."
        )
    if not request.like and all(map(graph.needs_like, request.formats)):
        target = " or ".join(request.formats)
        return (
            f"{target} values are sharded; pass one as {keyword('like')} to shard the result the "
            "same way."
        )
    towards_goal = [item for item in conversions if item.target.name in candidates.names]
    towards_goal.sort(key=lambda item: candidates.distance.get(item.target.name, 0))
    return _objections(planner, spec, request, towards_goal, transfers)


def _missing_within(planner: Planner, spec: Spec) -> str:
    """Say that no conversion of its framework serves a value whose labels keep it there."""
    framework = planner.format(spec.format).framework
    objections = [
        f"\n  - {item.conversion.label}: {reason}"
        for item in planner.graph.conversions(spec.format)
        if item.target.framework == framework
        and item.requires <= spec.traits
        and (reason := item.objection(spec))
    ]
    return (
        f"its labels keep it within {framework}, where no conversion does this"
        f"{':' if objections else '.'}{''.join(objections[:_FEW])}\n"
        "Convert it to another framework first, which leaves the labels behind, or register a "
        f"conversion within {framework}."
    )


def _unreachable(planner: Planner, spec: Spec, request: Request) -> str:
    target = " or ".join(request.formats)
    if all(planner.format(name).protocol for name in request.formats):
        return f"{target} is a read-only protocol; name a framework."
    sources = [
        name for name in planner.graph.sources(request.formats) if name not in request.formats
    ]
    move = "register one with interop.register"
    if 0 < len(sources) <= _MOST_SOURCES:
        move = f"only {listed(sources)} {'do' if len(sources) > 1 else 'does'}"
    return f"no conversion from {spec.format} leads to {target}; {move}."


def _objections(
    planner: Planner,
    spec: Spec,
    request: Request,
    conversions: Iterable[ResolvedConversion],
    transfers: Iterable[str],
) -> str:
    """Say why no transfer and none of some conversions takes a value."""
    objections = [*transfers]
    objections += [
        f"  - {item.conversion.label}: {reason}"
        for item in conversions
        if item.target.name != spec.format and (reason := item.objection(spec))
    ]
    if not objections:
        unavailable = planner.graph.unavailable(spec.format, request.formats)
        lack = "every route lacks a step; register the missing conversion with interop.register."
        return next(filter(None, map(not_installed, unavailable)), lack)
    return (
        "no conversion takes it:\n"
        + "\n".join(objections[:_FEW])
        + "\nChange the value so that one of them does, or register a conversion that takes it."
    )


def _transfer_objections(planner: Planner, spec: Spec, request: Request) -> Iterator[str]:
    """Yield why the formats asked for do not take the arrays of a composite value."""
    source = planner.format(spec.format)
    for target in planner.graph.alike(source):
        if target.name in request.formats and target is not source:
            reason = objection(spec, target)
            if reason:
                yield f"  - {transfer_name(source, target)}: {reason}"


def _impossible_goal(planner: Planner, spec: Spec, request: Request) -> str:
    name = request.formats[0]
    target = planner.format(name)
    if request.device and target.home(request.device) != request.device:
        return (
            f"{name} cannot be on {request.device}; ask for device "
            f"{' or '.join(map(repr, target.devices))}, or for another format."
        )
    targets = [planner.format(format_) for format_ in request.formats]
    if not any(item.ndims is None or len(spec.shape) in item.ndims for item in targets):
        return _other_axes(planner, spec, targets)
    dtype = request.dtype or spec.dtype
    holder = planner.format(spec.wrapped) if spec.wrapped and target.wrapper else target
    if dtype is not None and dtype in holder.limits.refusal_hints:
        return reworded(holder.limits.refusal_hints[dtype])
    dtypes = planner.holds(spec, target, request.device or target.devices[0])
    names = listed(common_first(dtypes)) if dtypes else "none"
    return f"{name} does not hold {dtype}; ask for one of these with {keyword('dtype')}: {names}."


def _other_axes(planner: Planner, spec: Spec, targets: list[Format]) -> str:
    """Name the formats of the targets' frameworks that have as many axes as the value."""
    axes = len(spec.shape)
    frameworks = dict.fromkeys(target.framework for target in targets)
    others = [
        format_.name
        for framework in frameworks
        for format_ in planner.formats(framework)
        if (format_.ndims is None or axes in format_.ndims)
        and spec.dtype in format_.dtypes
        and not planner.graph.needs_like(format_.name)
        and spec.format in planner.graph.candidates(spec.format, (format_.name,)).distance
    ]
    counts = set[int]().union(*(target.ndims or () for target in targets))
    least, most = min(counts), max(counts)
    possible = f"{least} to {most} axes" if least < most else counted_axes(least)
    move = f"ask for {' or '.join(others)}" if others else "reshape it first"
    name = targets[0].name if len(targets) == 1 else " or ".join(frameworks)
    return f"{name} holds arrays of {possible}, not of {axes}; {move}."


def round_trip_warning(
    planner: Planner, spec: Spec, request: Request, steps: Iterable[Step]
) -> str:
    """Return what to warn of if bytes go through the host for nothing; "" if they do not.

    The same request is planned again without `dtype` or `copy`, which can be had on the device as
    well: by casting or copying what comes out. Another device is never called needless: whoever
    names one wants it. The text does not name sizes, so that it is the same for all values of a
    kind.
    """
    if not any("host_round_trip" in step.effects for step in steps):
        return ""
    for word, verb, relaxed in _relaxed(request):
        route = planner.route(spec, relaxed)
        if route is None:
            continue
        if all(device_type(step.after.device) != "cpu" for step in route[1]):
            result = route[1][-1].after if route[1] else spec
            return (
                f"{spec.format} {spec.dtype} on {spec.device} goes to {request} through the "
                f"host's memory and back; without {word} it would not, and come out as "
                f"{result.format} {result.dtype} on {result.device}. Leave {word} out and "
                f"{verb} there, or silence this with warnings.filterwarnings."
            )
    return ""


def _relaxed(request: Request) -> Iterator[tuple[str, str, Request]]:
    """Yield the request with one keyword left out, and what to do in its place."""
    if request.dtype is not None:
        yield keyword("dtype", request.dtype), "cast", request._replace(dtype=None)
    if request.copy is not None:
        yield keyword("copy", request.copy), "copy", request._replace(copy=None)
