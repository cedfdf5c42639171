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

from interop import Conversion, Cost, Format, Interop, Spec, make_spec
from interop.plugin import Limits, Result

COPYING = {"copy", "transfer", "densify", "dequantize"}
LOSING = {"detach", "densify", "dequantize", "narrow", "drop_mask"}
ALLOWED = COPYING | {"detach", "materialize", "alias_immutable"}
MEMORY = {"readonly", "immutable", "noncontiguous", "pinned"}
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
    words: dict[str, Any]

    def plan(self, order: Sequence[int] = ()) -> Any:
        """Return the planner's route, with the declarations registered in some order."""
        face = Interop(plugins=False)
        declared = (*self.formats, *self.conversions)
        face.register(*(declared[n] for n in order or range(len(declared))))
        return face.plan(self.spec, to=list(self.to), **self.words)


class Move(NamedTuple):
    """What one step does: the conversion's name, and what the caller can see of the result."""

    name: str
    format: str
    dtype: str
    device: str
    carrier: str | None


class Way(NamedTuple):
    """A route as far as it goes."""

    spec: Spec
    fresh: bool = False
    copied: bool = False
    hosted: bool = False
    locked: bool = False
    third: bool = False
    lost: int = 0
    parted: bool = False
    imports: int = 0
    turned: int = 0
    seconds: float = 0.0
    moves: tuple[Move, ...] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """The order of preference."""
        by_the_way = self.copied and self.third and not self.fresh
        names = tuple(move.name for move in self.moves)
        parted = 2 if by_the_way else int(self.parted)
        seconds = round(self.seconds, 12)
        first = (self.lost, self.copied, parted, self.imports, self.turned)
        return (*first, seconds, len(names), names)


class Reference:
    """The model of one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.formats = {one.name: one for one in world.formats}
        words = world.words
        self.copy, self.dtype = words.get("copy"), words.get("dtype")
        permitted = (ALLOWED | set(words.get("allow", ()))) - set(words.get("forbid", ()))
        self.permitted = permitted - (COPYING if self.copy is False else set())
        self.goals = dict(filter(None, map(self._goal, world.to)))
        self.dtypes = {dtype for dtype, _ in self.goals.values()}
        self.devices = {device for _, device in self.goals.values()} | {"cpu"}
        self.asked = {_framework(name) for name in (world.spec.format, *self.goals)}

    def _goal(self, name: str) -> tuple[str, tuple[str, str]] | None:
        """Return what a result of one format must be: its dtype and device."""
        spec, one = self.world.spec, self.formats[name]
        device = self.world.words.get("device")
        if device is None:
            there = _kind(spec.device) in one.devices
            device = spec.device if there else one.devices[0]
        holds = one.dtypes - one.lacks.get(_kind(device), frozenset())
        dtype = self.dtype
        if dtype is None:
            stays = name == spec.format and _is_at(spec.device, device)
            dtype = spec.dtype if spec.dtype in holds or stays else _nearest(spec.dtype, holds)
        same = name == spec.format and dtype == spec.dtype
        if _kind(device) not in one.devices or not (same or dtype in holds):
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
        for everywhere in (False, True):
            near = self._near(everywhere)
            found = [way for way in self._all(near, most, limit) if self.arrives(way)]
            if found:
                return min(found, key=lambda way: way.key)
        return None

    def _near(self, everywhere: bool) -> set[str]:
        """Return the formats a route may visit: no more than two hand-offs out of the way."""
        links = {(c.source, c.target) for c in self.world.conversions if c.source != c.target}
        start, goals = self.world.spec.format, set(self.goals)
        there = _distances({start}, links)
        back = _distances(goals, {(b, a) for a, b in links})
        shortest = min((there[name] for name in goals if name in there), default=0)
        ends = {start, *goals}
        return ends | {
            name
            for name in there.keys() & back.keys()
            if (everywhere or there[name] + back[name] <= shortest + 2)
            and (everywhere or self.formats[name].passable or _framework(name) in self.asked)
            and (not self.formats[name].requires or find_spec(self.formats[name].requires))
        }

    def _all(self, near: set[str], most: int, limit: int) -> Iterator[Way]:
        """Yield every permitted route that visits nothing twice; it ends where it arrives."""
        rim = [(Way(self.world.spec), frozenset({(self.world.spec, False)}))]
        made = 0
        for _ in range(most + 1):
            following = []
            for way, seen in rim:
                yield way
                if self.arrives(way):
                    continue
                for after in self.steps(way):
                    place = (after.spec, after.fresh)
                    if after.spec.format in near and place not in seen:
                        following.append((after, seen | {place}))
                        made += 1
                        if made > limit:
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
        for one in self.world.conversions:
            if self._takes(one, way.spec):
                for spec in self._results(one, way.spec):
                    after, effects = self._taken(one, way, spec)
                    # What changes nothing is worth a step only for memory of one's own.
                    if (spec != way.spec or self.copy) and effects <= self.permitted:
                        yield after

    def _takes(self, one: Conversion, spec: Spec) -> bool:
        element = spec.carrier or spec.dtype
        source = self.formats[one.source]
        return (
            one.source == spec.format
            and element in source.dtypes
            and (one.dtypes is None or element in one.dtypes)
            and (one.devices is None or _kind(spec.device) in one.devices)
            and one.requires <= spec.traits <= one.takes | one.requires
        )

    def _results(self, one: Conversion, spec: Spec) -> Iterator[Spec]:
        target = self.formats[one.target]
        devices = {spec.device}
        if "device" in one.changes:
            devices = {d for d in self.devices if not _is_at(spec.device, d)}
        dtypes: set[tuple[Any, Any]] = {(spec.dtype, spec.carrier)}
        if one.bits == "pack":
            dtypes = {(spec.dtype, "uint16")} if not spec.carrier else set()
            dtypes = dtypes if spec.dtype == "bfloat16" else set()
        elif one.bits == "unpack":
            dtypes = {(spec.dtype, None)} if spec.carrier else set()
        elif "dtype" in one.changes and not spec.carrier:
            dtypes = {(dtype, None) for dtype in {spec.dtype, *self.dtypes}}
        if one.source == one.target and one.changes == {"dtype"} and one.requires & one.adds:
            dtypes = {(dtype, carrier) for dtype, carrier in dtypes if dtype != spec.dtype}
        aliases = not one.effects & COPYING if one.shares is None else one.shares
        for device in devices:
            for dtype, carrier in dtypes:
                element = carrier or dtype
                lacking = target.lacks.get(_kind(device), frozenset())
                kept = one.source == one.target and dtype == spec.dtype
                holds = element in target.dtypes and (kept or element not in lacking)
                if holds and _kind(device) in target.devices:
                    traits = self._traits(one, spec, aliases)
                    nbytes = spec.size * BYTES[element]
                    yield Spec(
                        one.target, dtype, device, spec.shape, traits, nbytes, carrier=carrier
                    )

    def _traits(self, one: Conversion, spec: Spec, aliases: bool) -> frozenset[str]:
        traits = set(spec.traits - one.drops)
        carries = self.formats[one.target].carries
        if not aliases:
            traits -= MEMORY
        else:
            between = _framework(one.source) != _framework(one.target)
            if "immutable" in traits and "readonly" in carries and between:
                traits.add("readonly")
            traits -= {"readonly", "immutable", "pinned"} - carries
        return frozenset(traits | one.adds)

    def _taken(self, one: Conversion, way: Way, spec: Spec) -> tuple[Way, set[str]]:
        before, effects = way.spec, set(one.effects)
        aliases = not one.effects & COPYING if one.shares is None else one.shares
        if spec.dtype != before.dtype and spec.dtype not in WIDER[str(before.dtype)]:
            effects |= set() if self.dtype else {"narrow"}
        flags = before.traits & {"readonly", "immutable"}
        owned = flags == {"readonly"}
        locked = aliases and (way.locked or owned)
        if aliases and flags and not self.formats[one.target].carries & {"readonly", "immutable"}:
            shared = "immutable" in flags and not locked
            effects.add("alias_immutable" if shared else "share_readonly")
        came, went = before.device, spec.device
        if way.hosted and came == "cpu" and went != "cpu":
            effects.add("host_round_trip")
        name = str(one.name)
        visited = self.formats[spec.format]
        third = _framework(spec.format) not in self.asked
        foreign = third and visited.requires and visited.requires not in sys.modules
        after = Way(
            spec,
            way.fresh or not aliases,
            way.copied or bool(effects & COPYING),
            way.hosted or (came != "cpu" and went == "cpu"),
            locked,
            way.third or third,
            way.lost + len(effects & LOSING),
            way.parted or not aliases,
            way.imports + bool(foreign),
            way.turned + bool(effects & COPYING and "noncontiguous" in before.traits - spec.traits),
            way.seconds + _seconds(one.cost, before.nbytes + spec.nbytes) + EACH,
            (*way.moves, Move(name, spec.format, str(spec.dtype), spec.device, spec.carrier)),
        )
        return after, effects

    def replayed(self, moves: Sequence[Move]) -> Way | None:
        """Return the way that some moves make, or None if one of them is not permitted."""
        way = Way(self.world.spec)
        for move in moves:
            after = [one for one in self.steps(way) if one.moves[-1] == move]
            if len(after) != 1:
                return None
            way = after[0]
        return way


def moves_of(route: Any) -> tuple[Move, ...]:
    """Return what the steps of a planner's route do."""
    return tuple(
        Move(s.label, s.after.format, s.after.dtype, s.after.device, s.after.carrier)
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
    wider = [one for one in WIDER[dtype] if one in holds]
    if wider:
        return wider[0]
    same = [one for one in holds if KINDS[one] == KINDS[dtype]]
    signed = [one for one in same if (one == "uint16") == (dtype == "uint16")]
    return max(signed or same, key=lambda one: DIGITS[one], default=None)


def _distances(start: set[str], links: set[tuple[str, str]]) -> dict[str, int]:
    found, rim = dict.fromkeys(start, 0), set(start)
    for distance in range(1, len(links) + 1):
        rim = {b for a, b in links if a in rim and b not in found}
        found.update(dict.fromkeys(rim, distance))
    return found


def _framework(name: str) -> str:
    return name.partition(".")[0]


def _kind(device: str) -> str:
    return device.partition(":")[0]


def _is_at(device: str, wanted: str) -> bool:
    return device == wanted or _kind(device) == wanted


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
    one = next(f for f in formats if f.name == start)
    dtype = rng.choice(sorted(one.dtypes))
    nbytes = 4 << (4 * rng.randint(1, 6))  # what stands for its class when a route is chosen
    kind = rng.choice(one.devices)
    device = "cpu" if kind == "cpu" else f"{kind}:0"
    shape = (nbytes // BYTES[dtype],)
    spec = make_spec(one.name, dtype, device=device, shape=shape, traits=_some(rng, _TRAITS, 0.12))
    ends = [c.target for c in conversions]
    to = tuple(dict.fromkeys(rng.choice(ends) for _ in range(rng.choice((1, 1, 2)))))
    return World(formats, tuple(conversions), spec, to, _words(rng))


def _words(rng: Random) -> dict[str, Any]:
    words: dict[str, Any] = {}
    if rng.random() < 0.25:
        words["dtype"] = rng.choice(sorted(BYTES))
    if rng.random() < 0.25:
        words["device"] = rng.choice(("cpu", "cuda", "cuda:0"))
    words["copy"] = rng.choice((None, None, True, False))
    extra = ("narrow", "share_readonly", "host_round_trip", "drop_mask")
    words["allow"] = tuple(sorted(_some(rng, extra, 0.3)))
    words["forbid"] = tuple(sorted(_some(rng, ("detach", "alias_immutable", "transfer"), 0.1)))
    return words


def _format(rng: Random, name: str) -> Format:
    devices = rng.choice((("cpu",), ("cpu", "cuda"), ("cpu", "cuda"), ("cuda", "cpu"), ("cuda",)))
    lacks = {"cuda": _some(rng, BYTES, 0.5)} if rng.random() < 0.2 else {}
    return Format(
        name,
        dtypes=_some(rng, BYTES, 0.85) or frozenset({"float32"}),
        devices=devices,
        limits=Limits(unsupported=lacks),
        carries=_some(rng, _TRAITS, 0.4),
        # One of Python's own that nobody has imported, and one that is not there.
        requires=rng.choice(("",) * 7 + ("this", "this", "no_such_framework")),
        transit=rng.random() < 0.85,
    )


def _conversion(rng: Random, names: Sequence[str], number: int, lossy: float) -> Conversion:
    source, target = rng.choice(names), rng.choice(names)
    changes = frozenset(x for x in ("dtype", "device") if rng.random() < 0.25)
    effects = set()
    if "device" in changes:
        effects.add("transfer")
    if "dtype" in changes or (not changes and rng.random() < 0.3):
        effects.add("copy")
    for effect in ("detach", "densify", "drop_mask"):
        if rng.random() < lossy:
            effects.add(effect)
    bits = rng.choice(("pack", "unpack")) if not changes and rng.random() < 0.2 else None
    return Conversion(
        source,
        target,
        print,
        dtypes=_some(rng, BYTES, 0.8) if rng.random() < 0.2 else None,
        devices=rng.choice((None, None, None, frozenset({"cpu"}), frozenset({"cuda"}))),
        takes=_some(rng, _TRAITS, 0.8),
        requires=_some(rng, _TRAITS, 0.04),
        drops=_some(rng, _TRAITS, 0.2),
        adds=_some(rng, ("noncontiguous", "readonly"), 0.05),
        changes=changes,
        result=Result(bits=bits),
        effects=frozenset(effects),
        # Of what is changed nothing is shared; what a plugin copies may be shared all the same.
        shares=rng.choice((None, None, None, True))
        if effects == {"copy"} and not changes
        else None,
        cost=Cost(rng.choice(_LATENCIES), rng.choice(_SPEEDS), None),
        name=f"step{number}",
    )


def _some(rng: Random, items: Any, chance: float) -> frozenset[str]:
    return frozenset(item for item in sorted(items) if rng.random() < chance)
