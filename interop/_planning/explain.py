"""Explanations: why there is no route, why others were not taken, and which would be better."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice, product
from operator import itemgetter

from interop._model.dtype import DTYPES, common_first
from interop._model.effect import EFFECTS
from interop._model.spec import ATTRIBUTES, DIVISIONS, LABELLED, TRAITS, Spec, spec_kind, summary
from interop._model.text import counted_axes, keyword, keywords, listed
from interop._recognition.installed import not_installed
from interop._request.keywords import WRITABLE
from interop._request.policy import adjusted
from interop._request.request import Request
from interop._text import lines
from interop.errors import RefusedError

from .components import Composite
from .conversion import ResolvedConversion
from .goals import goals, held, labels_confine
from .graph import Graph
from .planner import Planner
from .search import Search, first
from .step import Step

#: Why no conversion takes a value with a trait, and what to do about it, for plugins that have no
#: text of their own.
_HINTS = {
    trait: f"{TRAITS[trait]}; {move}."
    for trait, move in {
        "meta": "give it data first (in its own framework, or build it on a real device)",
        "traced": "convert outside the trace or transform",
        "nested": "convert its rows one by one, or pad it to one shape first",
        "no_storage": "unwrap it in its own framework first, or give it memory again",
        "hybrid": "make it dense in its own framework first",
        "batched": "convert its matrices one by one, or make it dense",
    }.items()
}
_HINTS["untyped"] = (
    "interop.convert's dtype='float64' makes numbers of objects and decimals that all are numbers."
)

#: How many refused routes a message names, and how many conversions with their objections.
_ROUTES, _OBJECTIONS = 3, 5

#: How many searches are made for one refused route.
_MOST_SEARCHES = 3

#: A message names the only formats from which a target is reached if they are at most so many.
_MOST_SOURCES = 8

#: A refused route, and the effects that stop it.
Refused = tuple[list[Step], frozenset[str]]


def nearest_refused(
    searches: list[Search], request: Request, without: frozenset[object] = frozenset()
) -> Iterator[Refused]:
    """Yield the nearest routes that are refused, with the effects that stop each.

    Each does without a keyword of every nearer one. So none is named that needs the same keywords
    as a nearer one, or these and more.
    """
    refused = frozenset(EFFECTS) - request.permitted
    needs: list[list[frozenset[str]]] = []
    for _ in range(_ROUTES):
        # A route that needs something else does without some keyword of each nearer one.
        spared = islice(product(*needs), _MOST_SEARCHES)
        waivers = (refused.difference(*groups) for groups in spared)
        routes = (first(searches, without, waived) for waived in waivers if waived)
        nearest = min(filter(None, routes), key=itemgetter(0), default=None)
        if nearest is None:
            return
        steps = nearest[1]
        effects = frozenset(effect for step in steps for effect in step.effects & refused)
        needs.append(_groups(effects, request))
        yield steps, effects


def _groups(effects: frozenset[str], request: Request) -> list[frozenset[str]]:
    """Group refused effects by the keyword that refuses them."""
    by_copy = request.forbidden_by_copy & request.policy.permitted
    groups = [frozenset({effect}) for effect in sorted(effects - by_copy)]
    return [*groups, by_copy] if effects & by_copy else groups


def _described(nearest: Iterable[Refused], request: Request) -> list[str]:
    """Return one line for each of the nearest refused routes.

    Where nulls would become zeros, ways to keep or to fill them stand before the keyword.
    """
    lines = []
    for steps, effects in nearest:
        names = " → ".join(step.label for step in steps) + ": " if len(steps) > 1 else ""
        stops = [
            f"{step.label} has the effect {effect!r} ({EFFECTS[effect].meaning})"
            for step in steps
            for effect in sorted(step.effects & effects)
        ]
        stops += [] if _makes_zeros(steps) and request.dtype else [_advice(effects, request, steps)]
        lines.append(f"{names}{'; '.join(stops)}")
    return lines


def refused_routes(planner: Planner, spec: Spec, request: Request, result: Spec) -> str:
    """Return the nearest refused routes as text; "" if there are none.

    A route that goes in a circle is no alternative to the one that was taken, and neither is one
    to the same result without a look at the numbers.
    """
    searches = planner.searches(spec, request)
    taken = spec_kind(result)
    nearest = [
        (steps, effects)
        for steps, effects in nearest_refused(searches, request)
        if not _returns(steps)
        and not (effects == {"narrow"} and spec_kind(steps[-1].after) == taken)
    ]
    routes = _described(nearest, request)
    return lines(["Refused:", *(f"  - {route}" for route in routes)]) if routes else ""


def _returns(steps: list[Step]) -> bool:
    """Return whether a route comes back to a format, or within a format to a device."""
    specs = [steps[0].before, *(step.after for step in steps)]
    formats = [name for name, _ in groupby(spec.format for spec in specs)]
    stops = [stop for stop, _ in groupby((spec.format, spec.device) for spec in specs)]
    return len({*formats}) < len(formats) or len({*stops}) < len(stops)


def _advice(effects: frozenset[str], request: Request, steps: list[Step]) -> str:
    """Name the keywords that would permit a route, and those that forbid it."""
    moves = []
    if effects & request.forbidden_by_copy:
        moves.append(f"leave out {keyword('copy', request.copy)}")
        effects -= request.forbidden_by_copy & request.policy.permitted
    if forbidden := effects & request.forbid:
        word = forbidden if len(forbidden) > 1 else min(forbidden)
        moves.append(f"leave out {keyword('forbid', word)}")
    # Without forbid= they need no allow= if permitted around the call, or consented to by dtype=.
    consented = {"narrow"} if request.dtype else set()
    effects -= request.around | (request.forbid & consented)
    if effects:
        moves.append(f"pass {keywords(allow=effects, **_dtype_of_nulls(request, steps))}")
    if effects == {"narrow"} and steps and not request.dtype:
        moves[-1] += f" or {keyword('dtype', steps[-1].after.dtype)}"
    return " and ".join(moves)


def _dtype_of_nulls(request: Request, steps: list[Step]) -> dict[str, object]:
    """Return a dtype with NaN to ask for, where a step writes zeros for nulls."""
    return {"dtype": "float64"} if _makes_zeros(steps) and not request.dtype else {}


def _makes_zeros(steps: list[Step]) -> bool:
    """Return whether a step writes zeros for nulls.

    A step that shares memory leaves the numbers under the mask as they are.
    """
    facts = DTYPES.get(steps[-1].after.dtype or "")
    fills = any(step.writes and "drop_mask" in step.effects for step in steps)
    return fills and facts is not None and facts.kind in "bui"


def refusal(spec: Spec, request: Request, reason: RefusedError) -> RefusedError:
    """Return the error to raise for a value, given the reason that holds for all of its class."""
    first_line, *others = str(reason).split("\n")
    subject = f"cannot convert {summary(spec)} to {request}"
    return RefusedError(lines([f"{subject}{first_line}", *others]), reason.effects)


def explanation(
    planner: Planner, spec: Spec, request: Request, nearest: list[Refused]
) -> RefusedError:
    """Return the reason why there is no route, or none but the `nearest` refused ones.

    Its text continues that of `refusal`.
    """
    if nearest:
        routes = (f"  - {line}" for line in _described(nearest, request))
        steps, effects = nearest[0]
        text = ["; the nearest routes are refused:", *routes]
        hints = _hints(planner.graph, spec)
        others = [hints[effect] for effect in sorted(effects & hints.keys())]
        is_cast = not request.dtype and steps[-1].after.dtype != spec.dtype
        if is_cast or "narrow" in effects:
            for name in request.formats:
                hint = planner.graph.formats[name].limits.refusal_hints.get(spec.dtype or "")
                others += [hint] if hint else []
        moves = [
            f"To permit the nearest, {_advice(effects, request, steps)}.",
            *others,
        ]
        if "drop_mask" in effects:  # zeros for nulls come last
            moves = [*others, moves[0]]
        needs_copy = request.order and effects & request.forbidden_by_copy
        if needs_copy and first(planner.searches(spec, request._replace(order=None))):
            order = keyword("order", request.order)
            moves.append(f"Or leave out {order}, without which nothing is copied.")
        # A copy gives nothing up, whatever the nearest route may.
        safe = [route for route in nearest if route[1] <= request.forbidden_by_copy]
        if safe and nearest[0] not in safe:
            move = _advice(safe[0][1], request, safe[0][0])
            moves.append(f"The safe way is another: {move}.")
        return RefusedError(lines([*text, *moves]), effects)
    obstacle = _without_labels(planner, spec, request) or _obstacle(planner, spec, request)
    return RefusedError(lines(f": {obstacle}".split("\n")))


def _without_labels(planner: Planner, spec: Spec, request: Request) -> str:
    """Say that no route keeps the labels of a value if one does that leaves them behind."""
    policy = adjusted(request.policy, "drop_labels", ())
    route = planner.route(spec, request._replace(policy=policy))
    if route is None or LABELLED.isdisjoint(spec.traits):
        return ""
    lost = " → ".join(step.label for step in route[1])
    move = f"To permit that, pass {keywords(allow={'drop_labels'})}."
    return f"no route keeps its names or index; {lost} leaves them behind. {move}"


def _hints(graph: Graph, spec: Spec) -> dict[str, str]:
    """Return the refusal hints for a value: of its format, of what it wraps, and of all formats."""
    formats = [graph.formats[name] for name in (spec.wrapped, spec.format) if name]
    hints = [format_.limits.refusal_hints for format_ in formats]
    return {key: hint for mapping in (_HINTS, *hints) for key, hint in mapping.items()}


def _obstacle(planner: Planner, spec: Spec, request: Request) -> str:
    """Say what stands in the way, if no permission would make a route, and what to do about it.

    There is one rule: leave out one keyword at a time and plan again; what then works is the
    advice. Otherwise a hint says what keeps the value in its format, or the target what it holds,
    and another format of the target's framework is tried. What is left are the objections of the
    conversions.
    """
    graph = planner.graph
    for name in ("order", "copy", "device", "dtype"):
        word = getattr(request, name)
        if word is not None:
            without = request._replace(**{name: None})  # type: ignore[arg-type]
            if _leads(planner.searches(spec, without)):
                return _standing_in_the_way(graph, spec, request, name)
            request = without if word == WRITABLE else request
    hint = _hint(graph, spec, request)
    if not hint and goals(graph, spec, request):
        return _missing_conversion(graph, spec, request)
    others = _other_formats(planner, spec, request)
    if hint:
        return f"{hint} Or ask for {keyword('to', others[0])}, which takes it." if others else hint
    return _limit(graph, spec, request, others)


def _standing_in_the_way(graph: Graph, spec: Spec, request: Request, name: str) -> str:
    """Say why there is no route with a keyword, though there is one without it."""
    word, names = getattr(request, name), " or ".join(request.formats)
    if name == "dtype" and not goals(graph, spec, request):
        return _limit(graph, spec, request)
    target, move = graph.formats[request.formats[0]], f"leave out {keyword(name, word)}"
    if name == "order":
        reason = f"{names} values cannot lie in {'Fortran' if word == 'F' else 'C'} order"
    elif word == WRITABLE:
        reason = f"{names} arrays cannot be written to"
    elif name == "device" and target.home(word) != word:
        reason = f"{target.name} cannot be on {word}, only on {' or '.join(target.devices)}"
    else:
        verb = {"copy": "copies it", "device": "moves it to", "dtype": "casts it to"}[name]
        reason = f"nothing {verb}" if name == "copy" else f"nothing {verb} {word}"
        # What keeps the value as it is comes first: without the keyword it only stays so.
        if hint := _hint(graph, spec, request):
            return f"{reason}: {hint} Or {move}."
        ways = [way for way in graph.conversions(spec.format) if name in way.conversion.changes]
        if objections := _objections(spec, ways):
            return f"{reason}:{objections}\nChange the value, or {move}."
    return f"{reason}; {move}."


def _hint(graph: Graph, spec: Spec, request: Request) -> str:
    """Say what keeps a value from leaving its format, and what to do about it; "" if nothing.

    Plugins say it, of a trait or of dtypes whose names begin so.
    """
    hints = _hints(graph, spec)
    words = [name for name in ("untyped",) if name in spec.traits and not request.dtype]
    hinted = (spec.traits & hints.keys()) - {"untyped"}
    traits = sorted(hinted, key=lambda trait: (trait in _HINTS, trait))[:1]
    reason = ""
    if spec.dtype not in DTYPES:
        starts = [key for key in hints if str(spec.dtype).startswith(key)]
        starts = [max(starts, key=len)] if starts else starts
        if starts or (words and not traits):
            traits, reason = starts, f"{spec.dtype} is not a dtype of numbers; "
        elif not traits and request.dtype not in DTYPES:
            return (
                f"{spec.dtype} is not a dtype of numbers that the target can hold; make numbers of "
                "it in its own framework first."
            )
    return reason + " ".join(hints[key] for key in (*traits, *words)) if traits or reason else ""


def _other_formats(planner: Planner, spec: Spec, request: Request) -> list[str]:
    """Return the other formats of the targets' frameworks to which there is a route.

    Those are left out to which it is refused, unless it is to all.
    """
    graph = planner.graph
    names = {
        format_.name: planner.searches(spec, request._replace(formats=(format_.name,), copy=None))
        for framework in dict.fromkeys(graph.framework_of[name] for name in request.formats)
        for format_ in graph.framework(framework)
        if format_.name not in request.formats
    }
    for waived in (frozenset[str](), frozenset(EFFECTS)):
        if reached := [name for name in names if first(names[name], waived=waived)]:
            return reached
    return []


def _leads(searches: list[Search]) -> bool:
    """Return whether there is a route, be it a refused one."""
    return any(first(searches, waived=waived) for waived in (frozenset[str](), frozenset(EFFECTS)))


def _missing_conversion(graph: Graph, spec: Spec, request: Request) -> str:
    """Name what stopped each conversion that leads towards the goal."""
    if labels_confine(graph, spec, request.formats):
        return _missing_within(graph, spec)
    names, distance = graph.visited(spec, request.formats), graph.distances(request.formats)
    if spec.wrapped in names:
        spec = spec._replace(
            format=spec.wrapped, traits=spec.traits - LABELLED - ATTRIBUTES, wrapped=None
        )
    if distance.keys().isdisjoint(way.target.name for way in graph.ways(spec.format)):
        return _unreachable(graph, spec, request)
    if any(goal.requires & DIVISIONS for goal in goals(graph, spec, request).values()):
        return (
            "nothing divides it as the value given as like= is; pass to= instead, and "
            "divide the result in its own framework."
        )
    target, names = " or ".join(request.formats), names & distance.keys()
    if not request.like and all(map(graph.needs_like, request.formats)):
        return f"{target} values are sharded; pass one as like= to shard the result the same way."
    towards = [way for way in graph.conversions(spec.format) if way.target.name in names]
    towards.sort(key=lambda way: (distance[way.target.name], *_sacrifice(way)))
    transfers = [way for way in graph.composites(spec.format) if way.target.name in request.formats]
    if objections := _objections(spec, [*transfers, *towards]):
        move = "Change the value so that one of them does, or register a conversion that takes it."
        return f"no conversion takes it:{objections}\n{move}"
    sources = [name for name in _few_sources(graph, request) if name != spec.format]
    lack = "every route lacks a step; register the missing conversion with interop.register."
    if sources:
        lack = f"{target} is made from {listed(sources)}; convert the value to one of these first."
    unavailable = graph.unavailable(spec.format, request.formats)
    return next(filter(None, map(not_installed, unavailable)), lack)


def _objections(spec: Spec, ways: Sequence[ResolvedConversion | Composite]) -> str:
    """Return a line for each of the first ways that do not take a value, with the reason."""
    lines = [
        f"\n  - {way.label}: {reason}"
        for way in ways
        if way.target.name != spec.format and (reason := way.objection(spec))
    ]
    return "".join(lines[:_OBJECTIONS])


def _sacrifice(conversion: ResolvedConversion) -> tuple[int, bool, bool]:
    """Return a sort key: conversions that give up less come first."""
    return conversion.losses, conversion.writes, not conversion.aliases


def _missing_within(graph: Graph, spec: Spec) -> str:
    """Say that no conversion of its framework serves a value whose labels keep it there."""
    framework = graph.framework_of[spec.format]
    within = [way for way in graph.conversions(spec.format) if way.target.framework == framework]
    within = [way for way in within if way.requires <= spec.traits]
    within.sort(key=_sacrifice)
    objections = _objections(spec, within)
    return (
        f"its labels keep it within {framework}, where no conversion does this"
        f"{f':{objections}' if objections else '.'}\n"
        "Convert it to another framework first, which leaves the labels behind, or register a "
        f"conversion within {framework}."
    )


def _unreachable(graph: Graph, spec: Spec, request: Request) -> str:
    target = " or ".join(request.formats)
    if graph.formats[spec.format].is_read_once:
        return f"{spec.format} is read before all else; plan from the spec of what it gives."
    if all(graph.formats[name].protocol for name in request.formats):
        return f"{target} is a protocol by which values are read and not made; name a framework."
    if all(graph.formats[name].is_read_once for name in request.formats):
        return f"values of {target} are read and not made; name another format."
    sources = _few_sources(graph, request)
    move = "register one with interop.register"
    if sources:
        move = f"only {listed(sources)} {'do' if len(sources) > 1 else 'does'}"
    return f"no conversion from {spec.format} leads to {target}; {move}."


def _few_sources(graph: Graph, request: Request) -> list[str]:
    """Return the formats from which one step leads to those asked for, if they are few."""
    sources = [name for name in graph.sources(request.formats) if name not in request.formats]
    return sources if len(sources) <= _MOST_SOURCES else []


def _limit(graph: Graph, spec: Spec, request: Request, others: Iterable[str] = ()) -> str:
    """Say what the targets can hold, and what to ask for, such as `others`."""
    name, targets = request.formats[0], [graph.formats[name] for name in request.formats]
    target, device, axes = targets[0], request.device, len(spec.shape)
    if device and target.home(device) != device:
        return (
            f"{name} cannot be on {device}; ask for device "
            f"{' or '.join(map(repr, target.devices))}, or for another format."
        )
    counts = [target.ndims for target in targets]
    if not any(ndims is None or axes in ndims for ndims in counts):
        least, most = (of(of(ndims or ()) for ndims in counts) for of in (min, max))
        possible = f"{least} to {most} axes" if least < most else counted_axes(least)
        name = name if len(targets) == 1 else " or ".join({t.framework: None for t in targets})
        names = " or ".join(others)
        move = f"ask for {names}" if names else "reshape it first"
        return f"{name} holds arrays of {possible}, not of {axes}; {move}."
    dtype = request.dtype or spec.dtype
    holder = graph.formats[spec.wrapped] if spec.wrapped and target.wrapper else target
    if dtype is not None and dtype in holder.limits.refusal_hints:
        return holder.limits.refusal_hints[dtype]
    dtypes = held(graph, spec, target, device or target.home(spec.device) or target.devices[0])
    names = listed(common_first(dtypes)) if dtypes else "none"
    return f"{name} does not hold {dtype}; ask for one of these with dtype=: {names}."
