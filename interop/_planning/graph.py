"""The graph of formats: which ways lead from one to another, and which a route may visit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import cache, lru_cache
from itertools import chain
from typing import Any

from interop._model.format import Format
from interop._model.provenance import HERE, OWN
from interop._model.spec import ATTRIBUTES, LABELLED, MEMORY_TRAITS, Spec, in_any_order
from interop._registry.registry import Registry

from .bounds import Least, Links, links, rest
from .components import Composite
from .conversion import ResolvedConversion, unwrapped
from .derived import WRITE_LOCKS
from .step import Step

#: How many bounds are kept, and for how many ends the formats that routes visit.
_MOST = 1024


class Graph:
    """The formats and conversions of one version of the registry.

    Routes lead through frameworks that nobody requested only if these are `available`. The
    frameworks of the source and the target may be missing: plans are made for them all the same.
    """

    def __init__(self, registry: Registry, available: Callable[[str], bool]) -> None:
        # Read first: if something is registered meanwhile, the version shows that this is outdated.
        self.version = registry.version
        self.formats = registry.formats
        self._provenance = registry.provenance
        self._available = available
        self.layout_of = {name: format_.layout for name, format_ in self.formats.items()}
        self._hubs = [format_ for format_ in self.formats.values() if format_.hub]
        self._frameworks: dict[str, list[Format]] = {}
        self.framework_of: dict[str, str] = {}
        #: The modules that formats are of; "sys", which is always there, for those of none.
        self._modules = {name: f.requires or "sys" for name, f in self.formats.items()}
        for name, format_ in self.formats.items():
            self.framework_of[name] = format_.framework
            self._frameworks.setdefault(format_.framework, []).append(format_)
        self._wrappers = {name for name in self.formats if self.formats[name].wrapper is not None}
        self._conversions = self._resolved(registry)
        #: The routes for arrays of composite values, by request, dtypes that the target cannot hold
        #: now, and class of spec. A route that writes nothing serves all sizes: it is kept by kind
        #: of spec.
        self.array_routes: dict[Any, tuple[Any, ...] | None] = {}
        #: The pairs between which several distributions declare conversions.
        self.rival_pairs = _rival_pairs(self._every())
        self._arriving: dict[str, list[ResolvedConversion]] = {}
        for way in self._every():
            self._arriving.setdefault(way.target.name, []).append(way)
        self._layouts = self._composed()
        self.composites: Callable[[str], list[Composite]] = cache(self._composites)
        self.is_locked: Callable[[str], bool] = cache(self._is_locked)
        self.towards: Callable[[str], Mapping[str, Sequence[ResolvedConversion | Composite]]]
        self.towards = cache(self._towards)
        self.computes = cache(self._computes)
        self.links: Callable[[str], Links] = cache(self._links)
        self.rest = lru_cache(_MOST)(self._rest)
        self.stops = lru_cache(_MOST)(self._stops)
        self.preferences = lru_cache(_MOST)(self._preferences)
        self.first_parties = lru_cache(_MOST)(self._first_parties)
        self._is_stop = cache(self._may_be_stop)
        self._is_there = cache(self._is_available)

    def _resolved(self, registry: Registry) -> dict[str, list[ResolvedConversion]]:
        formats = self.formats
        exporters: dict[str, list[Format]] = {name: [formats[name]] for name in formats}
        for format_ in formats.values():
            for protocol in format_.exports:
                if protocol != format_.name:
                    exporters.setdefault(protocol, []).append(format_)
        resolved: dict[str, list[ResolvedConversion]] = {name: [] for name in formats}
        for declared in registry.conversions:
            target = formats.get(declared.conversion.target)
            if target is not None and not target.is_read_once:
                for source in exporters.get(declared.conversion.source, ()):
                    # By a protocol, a value would only come back to its own format.
                    if source is not target or declared.conversion.source == target.name:
                        resolved[source.name].append(ResolvedConversion(declared, source, target))
        return resolved

    def is_of(self, registry: Registry) -> bool:
        """Return whether this is the graph of a registry as it is now.

        Whoever sees a new format finds its conversions. The formats are replaced last, but before
        the change is counted, and a graph may have been made while the conversions were.
        """
        return self.version == registry.version and self.formats is registry.formats

    def _composed(self) -> dict[str, list[Format]]:
        """Return composite formats by layout, if the format of their arrays is known and dense."""
        layouts: dict[str, list[Format]] = {}
        for format_ in self.formats.values():
            components = self.formats.get(format_.component_format)
            if format_.layout and components is not None and components.is_dense:
                layouts.setdefault(format_.layout, []).append(format_)
        return layouts

    def _every(self) -> Iterator[ResolvedConversion]:
        return (way for conversions in self._conversions.values() for way in conversions)

    def _into(self, name: str) -> list[ResolvedConversion]:
        return self._arriving.get(name, [])

    def carries(self, format_: Format) -> frozenset[str]:
        """Return the traits that a finished value of a format may have.

        A composite value also has the memory traits of its component arrays.
        """
        traits = in_any_order(format_.carries)
        traits |= LABELLED | ATTRIBUTES if format_.labels else frozenset()
        components = self.formats.get(format_.component_format)
        return traits if components is None else traits | (components.carries & MEMORY_TRAITS)

    def framework(self, name: str) -> list[Format]:
        """Return the formats of a framework."""
        return self._frameworks.get(name, [])

    def conversions(self, name: str) -> list[ResolvedConversion]:
        """Return the declared conversions that start at a format."""
        return self._conversions.get(name, [])

    def _composites(self, name: str) -> list[Composite]:
        """Return the ways from a composite format to those of its layout, itself among them."""
        source = self.formats[name]
        members = self._layouts.get(source.layout or "", [])
        return [
            Composite(
                source,
                target,
                carries=self.carries(target),
                provenance=self._provenance[target.name],
                rival_pairs=self.rival_pairs,
            )
            for target in (members if source in members else ())
        ]

    def ways(self, name: str) -> list[ResolvedConversion | Composite]:
        """Return the ways that start at a format, without unwrapping, which depends on a value."""
        return [*self.conversions(name), *self.composites(name)]

    def _towards(self, name: str) -> dict[str, list[ResolvedConversion | Composite]]:
        """Return the ways that start at a format, by their targets."""
        towards: dict[str, list[ResolvedConversion | Composite]] = {}
        for way in self.ways(name):
            towards.setdefault(way.target.name, []).append(way)
        return towards

    def _computes(self, source: str, target: str) -> bool:
        """Return whether a way computes lazy values: what that leads to is no detour."""
        ways = self.towards(source).get(target, ())
        return any("materialize" in way.effects for way in ways)

    def _links(self, name: str) -> Links:
        """Return the least that a step into a format takes, by its source and by what it needs."""
        target = self.formats[name]
        members = self._layouts.get(target.layout or "", [])
        return links(self._into(name), target, members if target in members else [])

    def _rest(
        self,
        names: frozenset[str],
        goals: tuple[str, ...],
        possible: frozenset[str],
        devices: frozenset[str],
        imports: frozenset[str],
        *,
        wraps: bool,
    ) -> dict[str, dict[str, Least]]:
        """Return the least that the rest of a route to a goal takes (`bounds.rest`).

        It does not depend on the value. If that `wraps` another, wrappers are ends, too: what leads
        on from them is not known.
        """
        ends = (*goals, *(names & self._wrappers)) if wraps else goals
        return rest(self.links, names, ends, possible=possible, devices=devices, imports=imports)

    def unwrapped(self, spec: Spec) -> Step:
        """Return the step from a value of a wrapper to the one that it wraps."""
        return unwrapped(spec, self.formats[spec.format], self._provenance[spec.format])

    def divides(self, name: str, division: Set[str]) -> bool:
        """Return whether a way into a format divides its result as another value of it is."""
        return bool(division) and any(way.conversion.like & division for way in self._into(name))

    def keeps_labels(self, source: str, target: str) -> bool:
        """Return whether a conversion keeps labels from one framework to another."""
        if self.formats[source].framework == self.formats[target].framework:
            return False
        ways = (way for way in self.conversions(source) if way.target.name == target)
        return any(way.conversion.takes - way.conversion.drops >= LABELLED for way in ways)

    def names(self, name: str, dtype: str) -> bool:
        """Return whether a way into a format names a dtype that is not one of numbers."""
        return any(f"{dtype}$".startswith(way.elements) for way in self._into(name))

    def needs_like(self, name: str) -> bool:
        """Return whether every way into a format needs a value of it, to divide the result."""
        ways = [way for way in self._into(name) if way.source is not way.target]
        return bool(ways) and all(way.conversion.like for way in ways)

    def _is_locked(self, name: str) -> bool:
        """Return whether no way into a format gives a result that may be written to."""
        ways = list(self._into(name))
        component = self.formats[name].component_format
        reached = self.is_locked(component) if component in self.formats else bool(ways)
        return reached and all(
            not WRITE_LOCKS.isdisjoint(way.conversion.adds)
            or (way.source is way.target and way.aliases)
            for way in ways
        )

    def sources(self, names: Iterable[str]) -> list[str]:
        """Return the formats from which one step leads to some others."""
        return sorted({source for name in names for source in self.links(name)})

    def distances(self, goals: Iterable[str]) -> dict[str, int]:
        """Return the least number of hand-offs to a goal, from each format that leads to one."""
        return _distances(goals, self.links)

    def _preferences(self, start: str, goals: tuple[str, ...]) -> dict[str, int]:
        """Return how many formats of a framework are preferred to each; several have no order."""
        formats = self.formats
        if len({formats[name].framework for name in goals}) > 1:
            return {}
        source = formats[start]

        def distance(name: str) -> tuple[bool, bool, bool]:
            target = formats[name]
            is_kept = target.layout is not None and target.layout == source.layout
            is_ragged = "nested" in target.carries
            return target is not source, not is_kept, is_ragged != ("nested" in source.carries)

        return {name: number for number, name in enumerate(sorted(goals, key=distance))}

    def ragged(self, start: str, goals: tuple[str, ...]) -> frozenset[str]:
        """Return the formats of ragged rows that one name means beside others of a framework.

        A value that never has such rows becomes one of the others, whatever it costs.
        """
        if "nested" in self.formats[start].carries or not self.preferences(start, goals):
            return frozenset()
        return frozenset(name for name in goals if "nested" in self.formats[name].carries)

    def visited(self, spec: Spec, goals: Iterable[str]) -> frozenset[str]:
        """Return the formats that a route for a value may visit."""
        return self.stops(spec.wrapped or spec.format, tuple(goals), None, dense=False)

    def _stops(
        self, start: str, goals: tuple[str, ...], devices: frozenset[str] | None, *, dense: bool
    ) -> frozenset[str]:
        """Return the hubs and the formats of the requested frameworks, but for missing ones.

        A missing one counts as there if it is installed together with a requested format.
        """
        requested = {start, *goals}
        frameworks = {self.framework_of[name] for name in requested}
        installs = {_package(self.formats[name]) for name in requested}
        visited = {
            format_.name
            for format_ in chain(self._hubs, *map(self.framework, frameworks))
            if self._is_stop(format_.name, dense)
            and (devices is None or not devices.isdisjoint(format_.devices))
            and (self._is_there(format_.name) or _package(format_) in installs)
        }
        return frozenset(visited | requested)

    def not_imported(self, names: frozenset[str], requested: Set[str]) -> frozenset[str]:
        """Return the formats of frameworks that nobody requested, and that are not imported yet."""
        modules, framework_of = self._modules, self.framework_of
        return frozenset(
            {
                name
                for name in names
                if framework_of[name] not in requested and modules[name] not in sys.modules
            }
        )

    def _may_be_stop(self, name: str, dense: bool) -> bool:
        """Return whether routes may lead through a format.

        Later steps need the whole spec, and values that are not recoverable do not keep all of it.
        """
        format_ = self.formats[name]
        return (not dense or format_.is_dense) and not format_.not_recoverable

    def _first_parties(self, requested: tuple[str, ...]) -> frozenset[str]:
        """Return the distributions that are no third parties in a route between some formats."""
        owners = (self._provenance[name].distribution for name in requested)
        return frozenset({OWN, HERE.distribution, *owners})

    def unavailable(self, start: str, goals: Iterable[str]) -> list[Format]:
        """Return the formats of missing frameworks on the shortest ways to a goal.

        They are those through which a route could lead, were they there.
        """
        distance = self.distances(goals)
        shortest = rim = {start: None} if start in distance else {}
        while rim:
            rim = {
                way.target.name: None
                for name in rim
                for way in self.ways(name)
                if distance.get(way.target.name) == distance[name] - 1
            }
            shortest = shortest | rim
        frameworks = {self.framework_of[name] for name in (start, *goals)}
        formats = (self.formats[name] for name in shortest)
        return [
            format_
            for format_ in formats
            if not self._is_there(format_.name) and (format_.framework in frameworks or format_.hub)
        ]

    def _is_available(self, name: str) -> bool:
        module = self.formats[name].requires
        return not module or self._available(module)


def _package(format_: Format) -> str | None:
    return format_.install or format_.requires


def _rival_pairs(conversions: Iterable[ResolvedConversion]) -> frozenset[tuple[str, str]]:
    owners: dict[tuple[str, str], set[str]] = {}
    for conversion in conversions:
        pair = conversion.source.name, conversion.target.name
        owners.setdefault(pair, set()).add(conversion.provenance.distribution)
    return frozenset(pair for pair, distributions in owners.items() if len(distributions) > 1)


def _distances(start: Iterable[str], links: Callable[[str], Iterable[str]]) -> dict[str, int]:
    """Return the least number of links to every name that can be reached."""
    steps = dict.fromkeys(start, 0)
    rim, distance = set(steps), 0
    while rim:
        distance += 1
        reached: set[str] = set().union(*map(links, rim))
        rim = reached - steps.keys()
        steps.update(dict.fromkeys(rim, distance))
    return steps
