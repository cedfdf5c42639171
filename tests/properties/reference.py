"""A small model of what `docs/explanation/routes.md` says, to hold the planner to.

It shares no code with the planner: it makes every sequence of steps up to a length, keeps those
that are permitted and arrive, and takes the least by the order of preference. The worlds it works
on are drawn at random: a few formats, a few conversions between them, a spec and a request.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from random import Random
from typing import Any, NamedTuple

from interop import Conversion, Cost, Format, Interop, Spec
from interop.plugin import Limits, Result, make_spec
from interop.plugin.advanced import Advanced

COPYING = {"copy", "transfer", "gather", "densify", "dequantize"}
LOSING = {"detach", "densify", "dequantize", "narrow", "drop_mask"}
ALLOWED = COPYING | {"detach", "materialize", "alias_immutable"}
MEMORY = {"readonly", "immutable", "noncontiguous"}
BYTES = {"bfloat16": 2, "uint16": 2, "float32": 4, "float64": 8, "int64": 8}
KINDS = {"bfloat16": "f", "uint16": "i", "float32": "f", "float64": "f", "int64": "i"}
DIGITS = {"bfloat16": 8, "uint16": 16, "float32": 24, "float64": 53, "int64": 63}
#: Which other dtypes hold all numbers of one, the one to be preferred first.
WIDER = {
    "bfloat16": ["float32", "float64"],
    "uint16": ["int64", "float32", "float64"],
    "float32": ["float64"],
    "float64": [],
    "int64": [],
}
#: What a step takes beside its own, in seconds, and the bytes that count as lying in the caches.
EACH, CACHED = 2e-6, 2**21


class World(NamedTuple):
    """What is registered, a value and a request."""

    formats: tuple[Format, ...]
    conversions: tuple[Conversion, ...]
    spec: Spec
    to: tuple[str, ...]
    keywords: dict[str, Any]

    def plan(self, order: Sequence[int] = ()) -> Any:
        """Return the planner's route, with the declarations registered in some order."""
        instance = Interop(plugins=False)
        declarations = (*self.formats, *self.conversions)
        instance.register(*(declarations[n] for n in order or range(len(declarations))))
        return instance.plan(self.spec, to=list(self.to), **self.keywords)


class Move(NamedTuple):
    """What one step does: the conversion's name, and what the caller can see of the result."""

    name: str
    format: str
    dtype: str
    device: str
    carrier: str | None
    strided: bool


class Way(NamedTuple):
    """A route as far as it goes."""

    spec: Spec
    fresh: bool = False
    copied: bool = False
    was_on_device: bool = False
    readonly_source: bool = False
    via_unrequested: bool = False
    lost: int = 0
    #: Of its result, among the formats of the framework that is asked for.
    place: int = 0
    breaks_sharing: bool = False
    imports: int = 0
    reorders: int = 0
    seconds: float = 0.0
    moves: tuple[Move, ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """The order of preference."""
        by_detour = self.copied and self.via_unrequested and not self.fresh
        names = tuple(move.name for move in self.moves)
        breaks_sharing = 2 if by_detour else int(self.breaks_sharing)
        seconds = round(self.seconds, 12)
        first = (self.lost, self.place, self.copied, breaks_sharing, self.imports, self.reorders)
        return (*first, seconds, len(names), names)


class Reference:
    """The model of one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.formats = {format_.name: format_ for format_ in world.formats}
        keywords = world.keywords
        self.copy, self.dtype = keywords.get("copy"), keywords.get("dtype")
        permitted = (ALLOWED | set(keywords.get("allow", ()))) - set(keywords.get("forbid", ()))
        self.permitted = permitted - (COPYING if self.copy is False else set())
        self.goals = dict(filter(None, map(self._goal, world.to)))
        self.dtypes = {dtype for dtype, _ in self.goals.values()}
        self.devices = {device for _, device in self.goals.values()} | {"cpu"}
        own_first = sorted(self.goals, key=lambda name: name != world.spec.format)
        is_one_framework = len({*map(_framework, self.goals)}) == 1
        self.places = {name: n for n, name in enumerate(own_first) if is_one_framework}
        self.requested = {_framework(name) for name in (world.spec.format, *self.goals)}

    def _goal(self, name: str) -> tuple[str, tuple[str, str]] | None:
        """Return what a result of one format must be: its dtype and device."""
        spec, target = self.world.spec, self.formats[name]
        device = self.world.keywords.get("device")
        if device is None:
            can_stay = _kind(spec.device) in target.devices
            device = spec.device if can_stay else target.devices[0]
        holds = target.dtypes - target.limits.unsupported.get(_kind(device), frozenset())
        dtype = self.dtype
        if dtype is None:
            stays = name == spec.format and _is_at(spec.device, device)
            dtype = spec.dtype if spec.dtype in holds or stays else _nearest(spec.dtype, holds)
        unchanged = name == spec.format and dtype == spec.dtype
        if _kind(device) not in target.devices or not (unchanged or dtype in holds):
            return None
        assert dtype is not None
        return name, (dtype, device)

    def best(self, most: int, limit: int = 40_000) -> Way | None:
        """Return the best of all routes of at most so many steps, or None.

        Raises
        ------
        OverflowError
            There are more than `limit`.
        """
        ways = [way for way in self._every(self._candidates(), most, limit) if self.arrives(way)]
        return min(ways, key=lambda way: way.key, default=None)

    def _candidates(self) -> set[str]:
        """Return the formats a route may visit: hubs, and those of the requested frameworks."""
        ends = {self.world.spec.format, *self.goals}
        needed = {"", *(self.formats[name].requires for name in ends)}
        return ends | {
            name
            for name, format_ in self.formats.items()
            if (format_.advanced.hub or _framework(name) in self.requested)
            and (format_.requires in needed or find_spec(format_.requires))
        }

    def _every(self, candidates: set[str], most: int, limit: int) -> Iterator[Way]:
        """Yield every permitted route that visits nothing twice; it ends in the preferred format."""
        rim = [(Way(self.world.spec), frozenset({(self.world.spec, False)}))]
        count = 0
        for _ in range(most + 1):
            following = []
            for way, visited in rim:
                yield way
                if self.arrives(way) and not way.place:
                    continue
                for after in self.steps(way):
                    place = (after.spec, after.fresh)
                    if after.spec.format in candidates and place not in visited:
                        following.append((after, visited | {place}))
                        count += 1
                        if count > limit:
                            raise OverflowError
            rim = following

    def arrives(self, way: Way) -> bool:
        """Tell whether a route ends in what was asked for."""
        spec = way.spec
        if spec.format not in self.goals or spec.carrier:
            return False
        dtype, device = self.goals[spec.format]
        fresh = way.fresh and "readonly" not in spec.traits
        return (
            spec.dtype == dtype
            and _is_at(spec.device, device)
            and spec.traits <= self.formats[spec.format].carries
            and (fresh or not (self.copy or way.fresh))
        )

    def steps(self, way: Way) -> Iterator[Way]:
        """Yield every way that is one permitted step longer."""
        for conversion in self.world.conversions:
            if self._takes(conversion, way.spec):
                for spec in self._results(conversion, way.spec):
                    after, effects = self._extended(conversion, way, spec)
                    # What changes nothing is worth a step only for memory of one's own.
                    if (spec != way.spec or self.copy) and effects <= self.permitted:
                        yield after

    def _takes(self, conversion: Conversion, spec: Spec) -> bool:
        element = spec.carrier or spec.dtype
        source = self.formats[conversion.source]
        return (
            conversion.source == spec.format
            and element in source.dtypes
            and (conversion.dtypes is None or element in conversion.dtypes)
            and (conversion.devices is None or _kind(spec.device) in conversion.devices)
            and conversion.requires <= spec.traits <= conversion.takes | conversion.requires
        )

    def _results(self, conversion: Conversion, spec: Spec) -> Iterator[Spec]:
        target, changes = self.formats[conversion.target], conversion.changes
        within = conversion.source == conversion.target
        devices = {spec.device}
        if "device" in changes:
            devices = {d for d in self.devices if not _is_at(spec.device, d)}
        dtypes: set[tuple[Any, Any]] = {(spec.dtype, spec.carrier)}
        if conversion.result.bits == "carry":
            dtypes = {(spec.dtype, "uint16")} if not spec.carrier else set()
            dtypes = dtypes if spec.dtype == "bfloat16" else set()
        elif conversion.result.bits == "restore":
            dtypes = {(spec.dtype, None)} if spec.carrier else set()
        elif "dtype" in changes and not spec.carrier:
            final = "drop_mask" in conversion.effects and self.dtypes & target.dtypes
            dtypes = {(dtype, None) for dtype in self.dtypes | (set() if final else {spec.dtype})}
        for device in devices:
            unsupported = target.limits.unsupported.get(_kind(device), frozenset())
            for dtype, carrier in dtypes:
                element = carrier or dtype
                supported = element not in unsupported or (within and dtype == spec.dtype)
                if element in target.dtypes and supported and _kind(device) in target.devices:
                    nbytes = spec.size * BYTES[element]
                    yield from (
                        Spec(
                            target.name, dtype, device, spec.shape, traits, nbytes, carrier=carrier
                        )
                        for traits in self._layouts(conversion, spec)
                    )

    def _layouts(self, conversion: Conversion, spec: Spec) -> set[frozenset[str]]:
        """Return the traits of the results: in C order, or in that of the value."""
        traits, keeps = self._traits(conversion, spec), conversion.result.orders
        if "order" not in conversion.changes:
            return {traits}
        kept = {traits | (spec.traits & {"noncontiguous"})} if keeps is None else set()
        return {traits} | kept

    def _traits(self, conversion: Conversion, spec: Spec) -> frozenset[str]:
        traits = set(spec.traits - conversion.drops)
        carries = self.formats[conversion.target].carries
        if not _aliases(conversion):
            traits -= MEMORY
        else:
            between = _framework(conversion.source) != _framework(conversion.target)
            if "immutable" in traits and "readonly" in carries and between:
                traits.add("readonly")
            traits -= {"readonly", "immutable"} - carries
        return frozenset(traits | conversion.adds)

    def _extended(self, conversion: Conversion, way: Way, spec: Spec) -> tuple[Way, set[str]]:
        before, effects = way.spec, set(conversion.effects)
        aliases, target = _aliases(conversion), self.formats[spec.format]
        if spec.dtype != before.dtype and spec.dtype not in WIDER[str(before.dtype)]:
            effects |= set() if self.dtype else {"narrow"}
        flags = before.traits & {"readonly", "immutable"}
        readonly_source = aliases and (way.readonly_source or flags == {"readonly"})
        if aliases and flags and not target.carries & {"readonly", "immutable"}:
            shared = "immutable" in flags and not readonly_source
            effects.add("alias_immutable" if shared else "share_readonly")
        if way.was_on_device and before.device == "cpu" and spec.device != "cpu":
            effects.add("host_round_trip")
        unrequested = _framework(spec.format) not in self.requested
        imports = unrequested and target.requires and target.requires not in sys.modules
        copies = bool(effects & COPYING)
        strided = "noncontiguous" in spec.traits
        place = spec.format, str(spec.dtype), spec.device, spec.carrier, strided
        move, cost = Move(conversion.name, *place), conversion.cost
        if "order" in conversion.changes and "noncontiguous" in before.traits and not strided:
            cost = conversion.across or cost
        after = Way(
            spec,
            fresh=way.fresh or not aliases,
            copied=way.copied or copies,
            was_on_device=way.was_on_device or (before.device != "cpu" and spec.device == "cpu"),
            readonly_source=readonly_source,
            via_unrequested=way.via_unrequested or unrequested,
            lost=way.lost + len(effects & LOSING),
            place=self.places.get(spec.format, 0),
            breaks_sharing=way.breaks_sharing or not aliases,
            imports=way.imports + bool(imports),
            reorders=way.reorders + ("noncontiguous" in before.traits - spec.traits),
            seconds=way.seconds + _seconds(cost, before.nbytes + spec.nbytes) + EACH,
            moves=(*way.moves, move),
        )
        return after, effects

    def replayed(self, moves: Sequence[Move]) -> Way | None:
        """Return the way that some moves make, or None if one of them is not permitted."""
        way = Way(self.world.spec)
        for move in moves:
            longer = [after for after in self.steps(way) if after.moves[-1] == move]
            if len(longer) != 1:
                return None
            way = longer[0]
        return way


def _aliases(conversion: Conversion) -> bool:
    return not conversion.effects & COPYING if conversion.shares is None else conversion.shares


def moves_of(route: Any) -> tuple[Move, ...]:
    """Return what the steps of a planner's route do."""
    return tuple(
        Move(
            s.label,
            s.after.format,
            s.after.dtype,
            s.after.device,
            s.after.carrier,
            "noncontiguous" in s.after.traits,
        )
        for s in route.steps
    )


def _seconds(cost: Cost, nbytes: int) -> float:
    if cost.bandwidth is None:
        return cost.latency
    if cost.cached is None:
        return cost.latency + nbytes / cost.bandwidth
    few = min(nbytes, CACHED)
    return cost.latency + few / cost.cached + (nbytes - few) / cost.bandwidth


def _nearest(dtype: Any, holds: frozenset[str]) -> str | None:
    """Return the dtype of a result when the target does not know the value's own."""
    wider = [other for other in WIDER[dtype] if other in holds]
    if wider:
        return wider[0]
    alike = [other for other in holds if KINDS[other] == KINDS[dtype]]
    signed = [other for other in alike if (other == "uint16") == (dtype == "uint16")]
    return max(signed or alike, key=lambda other: DIGITS[other], default=None)


def _framework(name: str) -> str:
    return name.partition(".")[0]


def _kind(device: str) -> str:
    return device.partition(":")[0]


def _is_at(device: str, place: str) -> bool:
    return place in (device, _kind(device))


# ---------------------------------------------------------------------- worlds at random

_NAMES = ("a", "b", "c", "d", "d.e")
_TRAITS = ("readonly", "immutable", "noncontiguous", "grad", "odd")
#: Seconds and bytes per second of which sums are exact, and between which there are ties.
_LATENCIES = (2.0**-20, 2.0**-20, 2.0**-16, 2.0**-10)
_SPEEDS = (None, 2.0**30, 2.0**33, 2.0**36)


def world(rng: Random) -> World:
    """Return a world, drawn at random."""
    names = _NAMES[: rng.randint(2, len(_NAMES))]
    formats = tuple(_format(rng, name) for name in names)
    lossy = rng.choice((0.05, 0.3))
    conversions = [_conversion(rng, names, n, lossy) for n in range(rng.randint(2, 12))]
    starts = [c.source for c in conversions]
    start = rng.choice(starts)
    source = next(f for f in formats if f.name == start)
    dtype = rng.choice(sorted(source.dtypes))
    nbytes = 4 << (4 * rng.randint(1, 6))  # what stands for its class when a route is chosen
    kind = rng.choice(source.devices)
    device = "cpu" if kind == "cpu" else f"{kind}:0"
    shape = (nbytes // BYTES[dtype],)
    spec = make_spec(
        source.name, dtype, device=device, shape=shape, traits=_some(rng, _TRAITS, 0.12)
    )
    ends = [c.target for c in conversions]
    to = tuple(dict.fromkeys(rng.choice(ends) for _ in range(rng.choice((1, 1, 2)))))
    return World(formats, tuple(conversions), spec, to, _keywords(rng))


def _keywords(rng: Random) -> dict[str, Any]:
    keywords: dict[str, Any] = {}
    if rng.random() < 0.25:
        keywords["dtype"] = rng.choice(sorted(BYTES))
    if rng.random() < 0.25:
        keywords["device"] = rng.choice(("cpu", "cuda", "cuda:0"))
    keywords["copy"] = rng.choice((None, None, True, False))
    extra = ("narrow", "share_readonly", "host_round_trip", "drop_mask")
    keywords["allow"] = tuple(sorted(_some(rng, extra, 0.3)))
    keywords["forbid"] = tuple(sorted(_some(rng, ("detach", "alias_immutable", "transfer"), 0.1)))
    return keywords


def _format(rng: Random, name: str) -> Format:
    devices = rng.choice((("cpu",), ("cpu", "cuda"), ("cpu", "cuda"), ("cuda", "cpu"), ("cuda",)))
    unsupported = {"cuda": _some(rng, BYTES, 0.5)} if rng.random() < 0.2 else {}
    return Format(
        name,
        dtypes=_some(rng, BYTES, 0.85) or frozenset({"float32"}),
        devices=devices,
        limits=Limits(unsupported=unsupported),
        carries=_some(rng, _TRAITS, 0.4),
        # One of Python's own that nobody has imported, and one that is not there.
        requires=rng.choice(("",) * 7 + ("this", "this", "no_such_framework")),
        advanced=Advanced(hub=rng.random() < 0.85),
    )


def _conversion(rng: Random, names: Sequence[str], number: int, lossy: float) -> Conversion:
    source, target = rng.choice(names), rng.choice(names)
    changes = frozenset(x for x in ("dtype", "device") if rng.random() < 0.25)
    effects = set()
    if "device" in changes:
        effects.add("transfer")
    if "dtype" in changes or (not changes and rng.random() < 0.3):
        effects.add("copy")
    lays = "copy" in effects and rng.random() < 0.4
    for effect in ("detach", "densify", "drop_mask"):
        if rng.random() < lossy:
            effects.add(effect)
    bits = rng.choice(("carry", "restore")) if not changes and rng.random() < 0.2 else None
    return Conversion(
        source,
        target,
        print,
        dtypes=(_some(rng, BYTES, 0.8) or None) if rng.random() < 0.2 else None,
        devices=rng.choice((None, None, None, frozenset({"cpu"}), frozenset({"cuda"}))),
        takes=_some(rng, _TRAITS, 0.8),
        requires=_some(rng, _TRAITS, 0.04),
        drops=_some(rng, _TRAITS, 0.2),
        adds=_some(rng, ("readonly",) if lays else ("noncontiguous", "readonly"), 0.05),
        changes=changes | {"order"} if lays else changes,
        across=Cost(rng.choice(_LATENCIES), rng.choice(_SPEEDS), None) if lays else None,
        result=Result(bits=bits, orders=rng.choice((None, frozenset("CF"))) if lays else None),
        effects=frozenset(effects),
        # Of what is changed nothing is shared; what a plugin copies may be shared all the same.
        shares=rng.choice((None, None, None, True))
        if effects == {"copy"} and not changes and not lays
        else None,
        cost=Cost(rng.choice(_LATENCIES), rng.choice(_SPEEDS), None),
        name=f"step{number}",
    )


def _some(rng: Random, items: Any, chance: float) -> frozenset[str]:
    return frozenset(item for item in sorted(items) if rng.random() < chance)
