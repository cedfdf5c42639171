"""Refusals: why there is no route, or why other routes were not taken, in words."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator

from interop._model.device import device_type
from interop._model.dtype import DTYPES
from interop._model.effect import COPYING, EFFECTS
from interop._model.format import Format
from interop._model.spec import TRAITS, Spec
from interop.errors import NeedlessCopyWarning, RefusedError

from .planner import Planner
from .request import Request
from .step import Step

__all__ = ["alternatives", "refusal", "refused_ways"]

#: What to do about values that no conversion takes, by the trait that stands in the way.
_ADVICE = {
    "meta": "give it data first (in its own framework, or build it on a real device)",
    "traced": "convert outside the trace or transform",
    "nested": "convert its rows one by one, or pad it to one shape first",
    "no_storage": "unwrap it with its own method first (dequantize, full_tensor, get_data …)",
    "hybrid": "make it dense in its own framework first",
    "batched": "convert its matrices one by one, or make it dense",
}


def alternatives(
    planner: Planner,
    spec: Spec,
    request: Request,
    without: frozenset[object] = frozenset(),
    most: int = 3,
    *,
    nearby: bool = False,
) -> Iterator[tuple[list[Step], frozenset[str]]]:
    """Yield the nearest routes that are refused, with the effects that stop each.

    Of routes that the same keyword would permit, only the nearest.
    """
    seen: set[str] = set()
    for _ in range(2 * most):
        found = planner.route(spec, request, without, relaxed=True, nearby=nearby)
        if found is None:
            return
        _, steps = found
        stopped = [step for step in steps if step.effects - request.permitted]
        effects = frozenset(e for s in stopped for e in s.effects - request.permitted)
        keyword = _keyword(effects, request, steps)
        if keyword not in seen and len(seen) < most:
            yield steps, effects
        seen.add(keyword)
        without |= {step.place for step in stopped}


def described(nearest: list[tuple[list[Step], frozenset[str]]], request: Request) -> list[str]:
    """Return one line for each of the nearest refused routes."""
    lines = []
    for steps, effects in nearest:
        names = " → ".join(step.label for step in steps)
        stops = [
            f"{step.label} has the effect {effect!r} ({EFFECTS[effect].meaning})"
            for step in steps
            for effect in sorted(step.effects & effects)
        ]
        lines.append(f"{names}: {'; '.join(stops)}; {_keyword(effects, request, steps)}")
    return lines


def refused_ways(planner: Planner, spec: Spec, request: Request) -> str:
    """Return the nearest refused routes as text."""
    # Beside a route that was taken, one by a long way round is no alternative.
    lines = described(list(alternatives(planner, spec, request, nearby=True)), request)
    if not lines:
        return "No other route was refused."
    return "\n".join(["Refused:", *(f"  - {line}" for line in lines)])


def _keyword(effects: frozenset[str], request: Request, steps: list[Step]) -> str:
    """Name the keyword that would permit a route."""
    words = []
    if request.copy is False and effects & COPYING:
        words.append("leave out copy=False")
    rest = sorted(effects - COPYING if request.copy is False else effects)
    if rest:
        words.append(f"pass allow={{{', '.join(map(repr, rest))}}}")
    if rest == ["narrow"] and steps:
        words[-1] += f" or dtype={steps[-1].after.dtype!r}"
    return " and ".join(words)


def refusal(
    planner: Planner,
    spec: Spec,
    request: Request,
    nearest: list[tuple[list[Step], frozenset[str]]],
) -> RefusedError:
    """Return the error to raise when there is no route but the `nearest`, which are refused."""
    asked = f"cannot convert {spec} to {request}"
    if nearest:
        routes = "\n".join(f"  - {line}" for line in described(nearest, request))
        steps, effects = nearest[0]
        text = f"{asked}; the nearest routes are refused:\n{routes}\n"
        move = _keyword(effects, request, steps)
        return RefusedError(f"{text}To permit the nearest, {move}.", effects)
    return RefusedError(f"{asked}: {_obstacle(planner, spec, request)}")


def _obstacle(planner: Planner, spec: Spec, request: Request) -> str:
    """Say what no keyword would permit, and what to do about it."""
    for trait in sorted(spec.traits & _ADVICE.keys()):
        return f"{TRAITS[trait]}; {_ADVICE[trait]}."
    own = {
        **(planner.format(spec.inside).obstacles if spec.inside else {}),
        **planner.format(spec.format).obstacles,
    }
    for trait in sorted(spec.traits & own.keys()):
        return own[trait]
    if spec.dtype not in DTYPES:
        return (
            f"{spec.dtype} is not a dtype of numbers that the target can hold; convert it to one "
            "in its own framework first."
        )
    if request.dtype and request.dtype not in DTYPES:
        return f"{request.dtype!r} is not a dtype; the dtypes are {', '.join(DTYPES)}."
    if not planner.goals(spec, request):
        return _unreachable_goal(planner, spec, request)
    outlook = planner.graph.outlook(spec.inside or spec.format, request.formats)
    for step in planner.graph.openings(spec, outlook.near):
        spec = step.after
    near = [edge for edge in planner.graph.edges(spec.format) if edge.target.name in outlook.near]
    near.sort(key=lambda edge: outlook.hops.get(edge.target.name, 0))
    objections = [
        f"  - {edge.conversion.label}: {reason}"
        for edge in near
        if edge.target.name != spec.format and (reason := edge.objection(spec))
    ]
    if not outlook.hops.keys() & {edge.target.name for edge in planner.graph.edges(spec.format)}:
        return f"no conversion leads there from {spec.format}; register one with interop.register."
    if not objections:
        return "each way there lacks a step; register the missing one with interop.register."
    return (
        "no conversion takes it:\n"
        + "\n".join(objections[:5])
        + ("\nChange the value so that one of them does, or register a conversion that takes it.")
    )


def _unreachable_goal(planner: Planner, spec: Spec, request: Request) -> str:
    name = request.formats[0]
    target = planner.format(name)
    if request.device and request.device.partition(":")[0] not in target.devices:
        return (
            f"{name} does not live on {request.device}; ask for device "
            f"{' or '.join(map(repr, target.devices))}, or for another format."
        )
    if target.ndims is not None and len(spec.shape) not in target.ndims:
        return _other_axes(planner, spec, target)
    dtype = request.dtype or spec.dtype
    if dtype is not None and dtype in target.obstacles:
        return target.obstacles[dtype]
    known = target.holds(request.device or target.devices[0])
    holds = ", ".join(sorted(known, key=list(DTYPES).index)) if known else "none"
    return f"{name} does not hold {dtype}; ask for one of these with dtype=: {holds}."


def _other_axes(planner: Planner, spec: Spec, target: Format) -> str:
    """Name the formats of a framework that have as many axes as the value."""
    assert target.ndims is not None
    axes = len(spec.shape)
    others = [
        one.name
        for one in planner.formats(target.framework)
        if (one.ndims is None or axes in one.ndims)
        and spec.dtype in one.dtypes
        and spec.format in planner.graph.outlook(spec.format, (one.name,)).hops
    ]
    least, most = min(target.ndims), max(target.ndims)
    held = f"{least} to {most} axes" if least < most else _axes(least)
    move = f"ask for {' or '.join(others)}" if others else "reshape it first"
    return f"{target.name} holds arrays of {held}, not of {axes}; {move}."


def _axes(count: int) -> str:
    return {0: "no axes", 1: "1 axis"}.get(count, f"{count} axes")


def advice(planner: Planner, spec: Spec, request: Request, steps: Iterable[Step]) -> str:
    """Return what to say to those who take a route, or "" if there is nothing to say.

    It does not name sizes, so that it is the same for all values of a kind.
    """
    if not any("host_round_trip" in step.effects for step in steps):
        return ""
    for keyword, instead, relaxed in _relaxed(request):
        found = planner.route(spec, relaxed)
        if found is not None and not _reaches_host(found[1]):
            made = found[1][-1].after if found[1] else spec
            return (
                f"{spec.format} {spec.dtype} on {spec.device} goes to {request} through the "
                f"host's memory and back; without {keyword} it would not, and come out as "
                f"{made.format} {made.dtype} on {made.device}. Leave {keyword} out and {instead} "
                "there, or silence this with warnings.filterwarnings."
            )
    return ""


def _relaxed(request: Request) -> Iterator[tuple[str, str, Request]]:
    """Yield the request with one keyword left out, and what to do in its place."""
    formats, dtype, device, copy, policy = request.key
    if dtype is not None:
        yield f"dtype={dtype!r}", "cast", Request(formats, None, device, copy, policy)
    if copy is not None:
        yield f"copy={copy}", "copy", Request(formats, dtype, device, None, policy)


def _reaches_host(steps: Iterable[Step]) -> bool:
    return any(device_type(step.after.device) == "cpu" for step in steps)


def advise(text: str) -> None:
    """Warn the line outside of this package that has asked for a conversion.

    Python's usual filter shows a warning once for each line.
    """
    level = 1
    while _is_ours(sys._getframe(level).f_globals.get("__name__", "")):
        level += 1
    warnings.warn(text, NeedlessCopyWarning, stacklevel=level + 1)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == __name__.partition(".")[0]
