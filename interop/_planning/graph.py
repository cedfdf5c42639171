"""The graph of formats: which ways lead from one to another, and which a route may visit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from functools import cache, lru_cache
from itertools import chain

from interop._model.device import device_type, is_host_part
from interop._model.format import Format
from interop._model.provenance import HERE, OWN
from interop._model.spec import Spec
from interop._registry.registry import Registry

from .components import Composite
from .conversion import ResolvedConversion, Unwrapping
from .derived import WRITE_LOCKS
from .question import Question, Scope, Way

#: How many scopes are kept, and for how many kinds of values the ways that take them.
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
        self._registry = registry
        self._available = available
        self._modules = frozenset(format_.requires for format_ in self.formats.values())
        self._hubs = [format_ for format_ in self.formats.values() if format_.hub]
        self._frameworks: dict[str, list[Format]] = {}
        for format_ in self.formats.values():
            self._frameworks.setdefault(format_.framework, []).append(format_)
        self._conversions = self._resolved(registry)
        #: The pairs between which several distributions declare conversions.
        self.contested = _contested(self._every())
        self._layouts = self._composed()
        self.composites: Callable[[str], list[Composite]] = cache(self._composites)
        self.unwrapping: Callable[[str, str], Unwrapping] = cache(self._unwrapping)
        self.is_locked: Callable[[str], bool] = cache(self._is_locked)
        self._kept_takers = lru_cache(_MOST)(self._takers)
        self._kept_scope = lru_cache(_MOST)(self._scope)
        pairs = {(way.source.name, way.target.name) for way in self._every()}
        for members in self._layouts.values():
            pairs.update((source.name, target.name) for source in members for target in members)
        self._reverse = _grouped((target, source) for source, target in pairs if source != target)

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
        """Tell whether this is the graph of a registry as it is now.

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

    def _into(self, name: str) -> Iterator[ResolvedConversion]:
        return (way for way in self._every() if way.target.name == name)

    def carries(self, format_: Format) -> frozenset[str]:
        """Return the traits that a finished value of a format may have."""
        return self._registry.carries(format_)

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
                contested=self.contested,
            )
            for target in (members if source in members else ())
        ]

    def ways(self, name: str) -> list[ResolvedConversion | Composite]:
        """Return the ways that start at a format, without unwrapping, which depends on a value."""
        return [*self.conversions(name), *self.composites(name)]

    def _unwrapping(self, name: str, wrapped: str) -> Unwrapping:
        """Return the way from a wrapper to the format that one of its values wraps."""
        return Unwrapping(self.formats[name], self.formats[wrapped], self._provenance[name])

    def takers(self, spec: Spec) -> Collection[Way]:
        """Return the ways that take a value, in the order of their declaration."""
        # The ways look at the number of axes, and at no length.
        shape = (1,) * len(spec.shape)
        return self._kept_takers(spec._replace(shape=shape, nbytes=0, nnz=None))

    def _takers(self, kind: Spec) -> Mapping[Way, None]:
        ways: list[Way] = [way for way in self.ways(kind.format) if way.takes_value(kind)]
        if kind.wrapped in self.formats:
            ways.append(self.unwrapping(kind.format, kind.wrapped))
        return dict.fromkeys(ways)

    def divides(self, name: str, division: Set[str]) -> bool:
        """Tell whether a way into a format divides its result as another value of it is divided."""
        return bool(division) and any(way.conversion.like & division for way in self._into(name))

    def needs_like(self, name: str) -> bool:
        """Tell whether every way into a format needs a value of it, to divide the result as it."""
        ways = [way for way in self._into(name) if way.source is not way.target]
        return bool(ways) and all(way.conversion.like for way in ways)

    def _is_locked(self, name: str) -> bool:
        """Tell whether no way into a format gives a result that may be written to."""
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
        return sorted({source for name in names for source in self._reverse.get(name, ())})

    def distances(self, goals: Iterable[str]) -> dict[str, int]:
        """Return the least number of hand-offs to a goal, from each format that leads to one."""
        return _distances(goals, self._reverse)

    def visited(self, spec: Spec, goals: Iterable[str]) -> frozenset[str]:
        """Return the formats that a route for a value may visit."""
        return self._visited(spec.wrapped or spec.format, tuple(goals), dense=False)

    def scope(self, question: Question) -> Scope:
        """Return the formats that routes may visit, and how much the rest takes from each."""
        spec, request = question.spec, question.request
        devices = (spec.device, *question.devices)
        return self._kept_scope(
            (spec.format, spec.wrapped) if spec.wrapped else (spec.format,),
            tuple(question.goals),
            frozenset({*map(device_type, devices), *filter(is_host_part, devices)}),
            request.permitted,
            question.waived,
            bool(request.like),
            question.dense,
            question.within,
            frozenset(module for module in self._modules if module in sys.modules),
        )

    def _scope(  # noqa: PLR0917 - called in one place
        self,
        ends: tuple[str, ...],
        goals: tuple[str, ...],
        devices: frozenset[str],
        permitted: frozenset[str],
        waived: frozenset[str],
        divided: bool,
        dense: bool,
        within: str,
        imported: frozenset[str],
    ) -> Scope:
        requested = (*ends, *goals)
        names = self._visited(ends[-1], goals, dense)
        if within:
            names = (names | {ends[0]}) & {format_.name for format_ in self.framework(within)}
        unrequested = self._unrequested(names, requested)

        def ways(name: str) -> Iterator[Way]:
            # A hub may have a thousand ways, of which few lead to formats that are visited.
            return (
                way
                for way in self.ways(name)
                if way.target.name in names
                and way.is_possible(devices)
                and (divided or not way.needs_like)
            )

        # These steps compute a lazy value, and may return memory that its library still holds.
        computing = (
            way
            for name in names
            for way in self.conversions(name)
            if way.target.name in names
            and "materialize" in way.conversion.effects
            and way.writes
            and way.aliases
        )
        wrappers = (name for name in names if self.formats[name].wrapper is not None)
        return Scope(
            names,
            (*goals, *wrappers),
            goals,
            ways,
            places=self.places(ends[0], goals),
            unrequested=unrequested,
            not_imported=frozenset(
                name
                for name in unrequested
                if (module := self.formats[name].requires) and module not in imported
            ),
            familiar=self._familiar(requested),
            computes=any(True for _ in computing),
            permitted=permitted,
            waived=waived,
        )

    def places(self, start: str, goals: tuple[str, ...]) -> dict[str, int]:
        """Return the places of one framework's formats by preference; others have none."""
        formats = self.formats
        if len({formats[name].framework for name in goals}) > 1:
            return {}
        source = formats[start]

        def distance(name: str) -> tuple[bool, bool, bool]:
            target = formats[name]
            is_kept = target.layout is not None and target.layout == source.layout
            is_ragged = "nested" in target.carries
            return target is not source, not is_kept, is_ragged != ("nested" in source.carries)

        return {name: place for place, name in enumerate(sorted(goals, key=distance))}

    def ragged(self, start: str, goals: tuple[str, ...]) -> frozenset[str]:
        """Return the formats of ragged rows that one name means beside others of a framework.

        A value that never has such rows becomes one of the others, whatever it costs.
        """
        if "nested" in self.formats[start].carries or not self.places(start, goals):
            return frozenset()
        return frozenset(name for name in goals if "nested" in self.formats[name].carries)

    def _visited(self, start: str, goals: tuple[str, ...], dense: bool) -> frozenset[str]:
        """Return the hubs and the formats of the requested frameworks, but for missing ones.

        Formats that are not recoverable are no stops: later steps need the whole spec, and such
        values do not keep all of it.
        """
        requested = {start, *goals}
        frameworks = {self.formats[name].framework for name in requested}
        visited = {
            format_.name
            for format_ in chain(self._hubs, *map(self.framework, frameworks))
            if (not dense or format_.is_dense)
            and self._is_installed(format_, requested)
            and not format_.not_recoverable
        }
        return frozenset(visited | requested)

    def _is_installed(self, format_: Format, requested: Iterable[str]) -> bool:
        """Tell whether a format is installed, or missing together with a requested format."""
        if self._is_there(format_):
            return True
        # One package may have several modules.
        installs = format_.install or format_.requires
        formats = (self.formats[name] for name in requested)
        return any(installs == (other.install or other.requires) for other in formats)

    def _familiar(self, requested: Iterable[str]) -> frozenset[str]:
        """Return the distributions that are no bystanders in a route between some formats."""
        owners = (self._provenance[name].distribution for name in requested)
        return frozenset({OWN, HERE.distribution, *owners})

    def _unrequested(self, names: Iterable[str], requested: Iterable[str]) -> frozenset[str]:
        """Return the formats among `names` whose framework nobody requested."""
        frameworks = {self.formats[name].framework for name in requested}
        return frozenset(name for name in names if self.formats[name].framework not in frameworks)

    def unavailable(self, start: str, goals: Iterable[str]) -> list[Format]:
        """Return the formats of missing frameworks on the shortest ways to a goal.

        They are those through which a route could lead, were they there.
        """
        requested, distance = (start, *goals), self.distances(goals)
        shortest = rim = {start: None} if start in distance else {}
        while rim:
            rim = {
                way.target.name: None
                for name in rim
                for way in self.ways(name)
                if distance.get(way.target.name) == distance[name] - 1
            }
            shortest = shortest | rim
        unrequested = self._unrequested(shortest, requested)
        formats = (self.formats[name] for name in shortest)
        return [
            format_
            for format_ in formats
            if not self._is_there(format_) and (format_.name not in unrequested or format_.hub)
        ]

    def _is_there(self, format_: Format) -> bool:
        return not format_.requires or self._available(format_.requires)


def _contested(conversions: Iterable[ResolvedConversion]) -> frozenset[tuple[str, str]]:
    owners: dict[tuple[str, str], set[str]] = {}
    for conversion in conversions:
        pair = conversion.source.name, conversion.target.name
        owners.setdefault(pair, set()).add(conversion.provenance.distribution)
    return frozenset(pair for pair, distributions in owners.items() if len(distributions) > 1)


def _grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Group pairs by their first item."""
    groups: dict[str, set[str]] = {}
    for first, second in pairs:
        groups.setdefault(first, set()).add(second)
    return groups


def _distances(start: Iterable[str], links: Mapping[str, set[str]]) -> dict[str, int]:
    """Return the least number of links to every name that can be reached."""
    steps = dict.fromkeys(start, 0)
    rim, distance = set(steps), 0
    while rim:
        distance += 1
        reached: set[str] = set().union(*(links[name] for name in rim if name in links))
        rim = reached - steps.keys()
        steps.update(dict.fromkeys(rim, distance))
    return steps
