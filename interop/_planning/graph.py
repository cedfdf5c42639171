"""The graph of formats: which conversions start where, and which formats routes may visit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Set
from itertools import product

from interop._model.format import Format
from interop._model.spec import Spec
from interop._registry.declared import HERE, OWN
from interop._registry.registry import Registry

from .bound import Candidates, Edges, distances, grouped
from .conversion import ResolvedConversion
from .step import Step, unwrap_step

#: How many hand-offs longer than the shortest a route may be.
SLACK = 2

#: The most candidate sets that are cached.
_MOST = 512


class Graph:
    """The registered conversions, by the formats they start from.

    Of frameworks that nobody requested, routes lead only through those that are `available`. The
    others belong to whoever asks: to plan from or to a framework that is not there is allowed.
    """

    def __init__(self, registry: Registry, available: Callable[[str], bool]) -> None:
        self._registry = registry
        self._available = available
        self._version = -1
        self._conversions: dict[str, list[ResolvedConversion]] = {}
        self._layouts: dict[str, list[Format]] = {}
        self._candidates: dict[tuple[object, ...], Candidates] = {}
        self._forward: dict[str, set[str]] = {}
        self._reverse: dict[str, set[str]] = {}
        self._edges: dict[frozenset[str], Edges] = {}
        self._sharing_writers: list[ResolvedConversion] = []

    def refresh(self) -> None:
        """Rebuild if the registry changed."""
        version = self._registry.version  # read first: what comes later is found the next time
        if self._version == version:
            return
        self._candidates.clear()
        self._edges = {}
        self._conversions = self._resolved_conversions()
        self._layouts = {}
        for format_ in self._registry.formats.values():
            components = self._registry.formats.get(format_.component_format)
            # Of what is not there, or is composite itself, nothing can be put together.
            if format_.layout and components is not None and components.is_dense:
                self._layouts.setdefault(format_.layout, []).append(format_)
        self._connect()
        self._version = version

    def _resolved_conversions(self) -> dict[str, list[ResolvedConversion]]:
        formats = self._registry.formats
        exporters: dict[str, list[Format]] = {name: [formats[name]] for name in formats}
        for format_ in formats.values():
            for protocol in format_.exports:
                if protocol != format_.name:
                    exporters.setdefault(protocol, []).append(format_)
        resolved: dict[str, list[ResolvedConversion]] = {name: [] for name in formats}
        for declared in self._registry.conversions:
            target = formats.get(declared.conversion.target)
            if target is None:
                continue
            for source in exporters.get(declared.conversion.source, ()):
                resolved[source.name].append(ResolvedConversion(declared, source, target))
        for conversions in resolved.values():
            # The search looks at those first that give up less.
            conversions.sort(key=lambda item: (item.losses, item.writes, not item.aliases))
        return resolved

    def _every(self) -> Iterator[ResolvedConversion]:
        return (item for conversions in self._conversions.values() for item in conversions)

    def _connect(self) -> None:
        every = list(self._every())
        pairs = {(item.source.name, item.target.name) for item in every}
        pairs |= {(source.name, target.name) for source, target in self._alike_pairs()}
        pairs = {(source, target) for source, target in pairs if source != target}
        self._forward = grouped(pairs)
        self._reverse = grouped((target, source) for source, target in pairs)
        self._sharing_writers = [item for item in every if item.writes and item.aliases]

    def _alike_pairs(self) -> Iterator[tuple[Format, Format]]:
        return (pair for alike in self._layouts.values() for pair in product(alike, alike))

    def _edges_on(self, devices: frozenset[str]) -> Edges:
        """Return the edges of which a route may be made that touches devices of some types."""
        edges = self._edges.get(devices)
        if edges is None:
            edges = self._edges[devices] = Edges(self._every(), self._alike_pairs(), devices)
        return edges

    def conversions(self, name: str) -> list[ResolvedConversion]:
        """Return the declared conversions that start at a format."""
        return self._conversions.get(name, [])

    def divides(self, name: str, division: Set[str]) -> bool:
        """Tell whether a way into a format divides the result after another value of it."""
        ways = (item for item in self._every() if item.target.name == name)
        return bool(division) and any(item.conversion.like & division for item in ways)

    def needs_like(self, name: str) -> bool:
        """Tell whether every way into a format divides the result after another of its values."""
        ways = [item for item in self._every() if item.target.name == name != item.source.name]
        return bool(ways) and all(item.conversion.like for item in ways)

    def sources(self, names: Iterable[str]) -> list[str]:
        """Return the formats from which one step leads to some others."""
        return sorted({source for name in names for source in self._reverse.get(name, ())})

    def unwrap_steps(self, spec: Spec, names: frozenset[str]) -> Iterator[Step]:
        """Yield the step that unwraps a wrapper, if it leads to one of some formats."""
        if spec.wrapped in names:
            format_ = self._registry.formats[spec.format]
            yield unwrap_step(spec, format_, self._registry.provenance[format_.name])

    def alike(self, format_: Format) -> list[Format]:
        """Return the formats of the same layout, itself among them."""
        alike = self._layouts.get(format_.layout or "", [])
        return alike if format_ in alike else []

    def candidates(
        self,
        start: str,
        goals: Iterable[str],
        devices: frozenset[str] = frozenset({"cpu"}),
        *,
        everywhere: bool = False,
        dense: bool = False,
    ) -> Candidates:
        """Return the formats that routes from a format to some others may visit.

        They touch devices of some types only. With `everywhere` there is no limit on hand-offs;
        with `dense` they stay among dense formats.
        """
        key = (start, *goals, devices, everywhere, dense)
        candidates = self._candidates.get(key)
        if candidates is None:
            if len(self._candidates) >= _MOST:
                self._candidates.clear()
                self._edges.clear()
            names, distance = self._near(start, tuple(goals), everywhere, dense)
            edges = self._edges_on(devices)
            writers = [
                item for item in self._sharing_writers if self._is_usable(item, names, devices)
            ]
            formats = self._registry.formats
            wrappers = (name for name in names if formats[name].wrapper is not None)
            candidates = self._candidates[key] = Candidates(
                names,
                distance,
                frozenset(distances(goals, edges.uncopied, names)),
                frozenset(distances(goals, edges.shared, names)),
                bool(writers),
                any("materialize" in item.effects for item in writers),
                (*goals, *wrappers),
                edges,
                {},
                {},
            )
        return candidates

    def _near(
        self, start: str, goals: tuple[str, ...], everywhere: bool, dense: bool
    ) -> tuple[frozenset[str], dict[str, int]]:
        """Return the formats on routes of few hand-offs, and the distance of each from a goal."""
        distance = distances(goals, self._reverse)
        steps = distances((start,), self._forward)
        limit = min((steps[name] for name in goals if name in steps), default=0) + SLACK
        unrequested = self.unrequested(steps, (start, *goals))
        visited = {
            name
            for name, count in steps.items()
            if name in distance
            and (everywhere or count + distance[name] <= limit)
            and (not dense or self._registry.formats[name].is_dense)
            and (name not in unrequested or self._is_transit(name, everywhere))
            and self._is_installed(name, (start, *goals))
            # The steps after it need to know all of its spec.
            and not self._registry.formats[name].not_recoverable
        }
        return frozenset(visited | {start, *goals}), distance

    def _is_transit(self, name: str, everywhere: bool) -> bool:
        """Tell whether a route between other frameworks may lead through a format.

        Never through a lazy one: computing a value that is already in memory is a copy.
        """
        format_ = self._registry.formats[name]
        return not format_.lazy and (everywhere or format_.transit)

    def _is_installed(self, name: str, ends: Iterable[str]) -> bool:
        """Tell whether a format needs nothing that is missing, but for what the ends need, too."""
        formats = self._registry.formats
        format_ = formats[name]
        if not format_.requires or self._available(format_.requires):
            return True
        # One package may have several modules.
        installs = format_.install or format_.requires
        return installs in (formats[end].install or formats[end].requires for end in ends)

    def _is_usable(
        self, conversion: ResolvedConversion, names: frozenset[str], devices: frozenset[str]
    ) -> bool:
        """Tell whether a route through some formats may have a step of a conversion."""
        ends = conversion.source.name in names and conversion.target.name in names
        return ends and (conversion.devices is None or bool(conversion.devices & devices))

    def not_imported(self, names: Iterable[str], requested: Iterable[str]) -> frozenset[str]:
        """Return the formats whose framework nobody requested and is not imported."""
        formats = (self._registry.formats[name] for name in self.unrequested(names, requested))
        return frozenset(
            format_.name
            for format_ in formats
            if format_.requires and format_.requires not in sys.modules
        )

    def familiar(self, requested: Iterable[str]) -> frozenset[str]:
        """Return the distributions whose steps no route between some formats has to avoid."""
        origins = self._registry.provenance
        owners = (origins[name].distribution for name in requested)
        return frozenset({OWN, HERE.distribution, *owners})

    def unrequested(self, names: Iterable[str], requested: Iterable[str]) -> frozenset[str]:
        """Return those of some formats whose framework nobody requested."""
        formats = self._registry.formats
        frameworks = {formats[name].framework for name in requested}
        return frozenset(name for name in names if formats[name].framework not in frameworks)

    def unavailable(self, start: str, goals: Iterable[str]) -> list[Format]:
        """Return the formats of missing frameworks that could lead to a goal, the nearest first."""
        steps, distance = distances((start,), self._forward), distances(goals, self._reverse)
        formats = (self._registry.formats[name] for name in steps if name in distance)
        return sorted(
            (item for item in formats if item.requires and not self._available(item.requires)),
            key=lambda item: steps[item.name] + distance[item.name],
        )
