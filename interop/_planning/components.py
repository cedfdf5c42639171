"""Composite formats: values made of dense arrays, handed over array by array.

Two formats of one layout (``csr``, ``affine`` …) hold the same component arrays, so that a value
passes from one to the other when each of its arrays does. Each array takes a route of its own,
under the same policy; moves, casts and copies of a composite value are moves, casts and copies of
its arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol

from interop._execution.runner import Runner
from interop._model.device import matches
from interop._model.dtype import DTYPES, itemsize, preserves
from interop._model.format import PLAIN_DTYPES, Format, Parts
from interop._model.spec import MEMORY_TRAITS, Spec, representative, spec_class, spec_kind
from interop._registry.declared import Provenance
from interop._registry.registry import Registry
from interop.errors import Declined

from .graph import Graph
from .request import Request
from .step import Step, Wants, shared_traits

__all__ = ["Composites"]

_LOCKED = frozenset({"readonly", "immutable"})

_Shortcut = Callable[[Any], Any]
_ShortcutOf = Callable[[tuple[Step, ...]], _Shortcut | None]


class RouteFinder(Protocol):
    """Who finds the routes of component arrays: the planner, of which this is a part."""

    graph: Graph

    def route(
        self, spec: Spec, request: Request, *, dense: bool = False
    ) -> tuple[Any, list[Step]] | None:
        """Return the preferred route, staying among dense formats if so told."""

    def shortcut(self, steps: tuple[Step, ...]) -> _Shortcut | None:
        """Return the shortcut that stands for a route."""


class _PartRoute(NamedTuple):
    """The route of one role's arrays."""

    role: str
    steps: tuple[Step, ...]
    seconds: float

    @property
    def copies(self) -> bool:
        """Whether bytes are written."""
        return any(step.writes for step in self.steps)


class Composites:
    """The hand-offs between composite formats of one layout."""

    def __init__(self, registry: Registry, finder: RouteFinder) -> None:
        self._registry = registry
        self._finder = finder
        self._routes: dict[tuple[object, ...], tuple[Step, ...] | None] = {}
        self._views: dict[tuple[object, ...], tuple[Step, ...]] = {}

    def forget(self) -> None:
        """Forget the routes of component arrays, because something was registered."""
        self._routes.clear()
        self._views.clear()

    def targets(self, spec: Spec, near: frozenset[str]) -> list[Format]:
        """Return the formats to which a composite value can be handed over by its components."""
        source = self._registry.formats[spec.format]
        if source.layout is None or not spec.traits <= MEMORY_TRAITS | source.apart:
            return []
        return [one for one in self._finder.graph.alike(source) if one.name in near]

    def steps(
        self, spec: Spec, wants: Wants, request: Request, target: Format, *, writing: bool = True
    ) -> Iterator[Step]:
        """Yield every hand-off, move, cast and copy of a composite value to a format.

        Parameters
        ----------
        spec : Spec
        wants : Wants
        request : Request
        target : Format
            One of `targets`.
        writing : bool
            Whether to yield those, too, that write bytes in any case.
        """
        source, carries = self._registry.formats[spec.format], self._registry.carries(target)
        for device in dict.fromkeys((spec.device, *wants.devices)):
            for dtype in dict.fromkeys((spec.dtype, *wants.dtypes)):
                for copy in (None, True) if request.copy else (None,):
                    way = _Way(dtype, device, copy, wants.consented)
                    hand_over = _HandOver(source, target, spec, way, carries)
                    if writing or not hand_over.writes():
                        yield from self._step(hand_over, request)

    def _step(self, hand_over: _HandOver, request: Request) -> Iterator[Step]:
        if not hand_over.changes_something() or not hand_over.possible():
            return
        routes = []
        for role in hand_over.source.roles:
            if role not in hand_over.target.roles:
                continue  # a value that had it would have a trait that says so
            found = self._part_route(hand_over, role, request)
            if found is None:
                return
            routes.append(found)
        provenance = self._registry.provenance[hand_over.target.name]
        yield hand_over.step(routes, provenance, self._finder.shortcut)

    def _part_route(self, hand_over: _HandOver, role: str, request: Request) -> _PartRoute | None:
        spec, target = hand_over.part_spec(role), hand_over.target
        wanted = (target.components, hand_over.part_dtype(role), hand_over.way.device)
        now = self._registry.formats[target.components or ""].lacks_now
        rest = (wanted, hand_over.way.copy, request.policy, now and now())
        # A route that writes nothing is the one for every size.
        steps = self._views.get((spec_kind(spec), rest))
        if steps is None:
            key = (spec_class(spec), rest)
            if key not in self._routes:
                formats = (target.components or "",)
                sub = Request(formats, wanted[1], wanted[2], hand_over.way.copy, request.policy)
                found = self._finder.route(representative(spec), sub, dense=True)
                self._routes[key] = None if found is None else tuple(found[1])
            steps = self._routes[key]
            if steps is not None and not any(step.writes for step in steps):
                self._views[spec_kind(spec), rest] = steps
        return None if steps is None else _PartRoute(role, steps, _seconds(spec, steps))


class _Way(NamedTuple):
    """What a hand-over is to make of the value on the way."""

    dtype: str | None
    device: str
    copy: bool | None
    consented: bool


class _HandOver(NamedTuple):
    """One composite value's way into another format, or to another dtype, device or memory."""

    source: Format
    target: Format
    spec: Spec
    way: _Way
    carries: frozenset[str]

    def writes(self) -> bool:
        """Tell whether bytes are written in any case."""
        return (
            self.way.copy is True
            or self.way.dtype != self.spec.dtype
            or bool(self.source.unstacks | self.target.restacks)
            or not matches(self.spec.device, self.way.device)
        )

    def changes_something(self) -> bool:
        """Tell whether the result would differ from the value."""
        return (
            self.source is not self.target
            or self.way.dtype != self.spec.dtype
            or not matches(self.spec.device, self.way.device)
            or self.way.copy is True
        )

    def possible(self) -> bool:
        """Tell whether the target can hold the dtype, the device and what the value carries."""
        return (
            self.way.dtype in self.target.holds(self.way.device)
            and self.way.device.partition(":")[0] in self.target.devices
            and (self.spec.traits - MEMORY_TRAITS) <= self.target.carries
            and (not self.spec.code_dtype or self.way.dtype == self.spec.dtype)
        )

    def part_spec(self, role: str) -> Spec:
        """Return the spec of the component arrays of one role."""
        dtype = _named(self.source.roles[role], self.spec)
        traits = self.spec.traits & MEMORY_TRAITS
        length = self.spec.size if self.spec.nnz is None else self.spec.nnz
        # Small next to the values; their true lengths would not change any choice.
        shape = (length,) if role in ("values", "indices", "codes") else (1,)
        nbytes = shape[0] * itemsize(dtype)
        components = self.source.components or ""
        return Spec(components, dtype, self.spec.device, shape, traits, nbytes)

    def part_dtype(self, role: str) -> str | None:
        """Return the dtype that the component arrays of one role must have in the target."""
        return _named(self.target.roles[role], self.after())

    def after(self) -> Spec:
        """Return the spec of the result, but for traits of memory."""
        spec = self.spec
        stored = spec.size if spec.nnz is None else spec.nnz
        widened = stored * (itemsize(self.way.dtype) - itemsize(spec.dtype))
        return spec._replace(
            format=self.target.name,
            dtype=self.way.dtype,
            device=self.way.device,
            index_dtype=self._index_dtype(),
            nbytes=spec.nbytes + (0 if spec.code_dtype else widened),
        )

    def _index_dtype(self) -> str | None:
        index, holds = self.spec.index_dtype, self.target.index_dtypes
        return max(holds, key=itemsize) if index and holds and index not in holds else index

    def step(
        self, routes: list[_PartRoute], provenance: Provenance, shortcut_of: _ShortcutOf
    ) -> Step:
        """Return the hand-over as a step of a route."""
        restacked = self.source.unstacks | self.target.restacks
        aliases = any(_aliases(route) for route in routes if route.role not in restacked)
        writes = any(route.copies for route in routes) or bool(restacked)
        handling = self.source.handling + self.target.handling
        kept = shared_traits(self.spec.traits, self.carries)
        # Fresh memory may still be that of a library whose arrays never change.
        locked = _LOCKED & self.carries & _ends(routes)
        return Step(
            f"{self.source.name}_to_{self.target.name}".replace(".", "_"),
            provenance,
            self.spec,
            self.after()._replace(traits=(kept if aliases else kept - MEMORY_TRAITS) | locked),
            self._effects(routes, writes),
            handling + sum(route.seconds for route in routes),
            handling + sum(step.latency for route in routes for step in route.steps),
            writes,
            aliases,
            self._call(routes),
            any(step.stream for route in routes for step in route.steps),
            (self.source.name, self.target.name, self.way),
            self._shortcut(routes, shortcut_of),
        )

    def _effects(self, routes: list[_PartRoute], writes: bool) -> frozenset[str]:
        effects = {e for route in routes for step in route.steps for e in step.effects}
        effects.discard("narrow")  # each array was told its dtype; the caller may not have
        if not self.way.consented and not preserves(self.spec.dtype, self.way.dtype):
            effects.add("narrow")
        if writes and not effects & {"copy", "transfer"}:
            effects.add("copy")
        return frozenset(effects)

    def _shortcut(self, routes: list[_PartRoute], shortcut_of: _ShortcutOf) -> _Shortcut | None:
        """Return a shortcut made of those of the components, if every one has one."""
        glance, assemble = self.source.glance, self.target.assemble
        if glance is None or assemble is None or not self._serves_plain_values():
            return None
        shortcuts: dict[str, _Shortcut] = {}
        for route in routes:
            found = shortcut_of(route.steps) if route.steps else None
            if route.steps and found is None:
                return None
            if found is not None:
                shortcuts[route.role] = found
        return _by_glance(glance, shortcuts, assemble)

    def _serves_plain_values(self) -> bool:
        """Tell whether every value that can be taken apart at a glance goes this way."""
        indices = self.source.index_dtypes <= self.target.index_dtypes
        same = self.way.dtype == self.spec.dtype and self.way.copy is None
        plain = PLAIN_DTYPES & self.source.dtypes <= self.target.dtypes
        return indices and same and plain and not self.spec.traits

    def _call(self, routes: list[_PartRoute]) -> Callable[..., Any]:
        calls = {route.role: Runner(route.steps) for route in routes if route.steps}
        index, after = self.spec.index_dtype, self._index_dtype()
        limit = None if preserves(index, after) else DTYPES[after or "int32"].digits
        return partial(_hand_over, self.source, self.target, calls, limit)


def _by_glance(
    glance: Callable[[Any], Parts],
    shortcuts: dict[str, _Shortcut],
    assemble: Callable[[Parts], Any],
) -> _Shortcut:
    pairs = tuple(shortcuts.items())

    def shortcut(value: Any) -> Any:
        parts = glance(value)
        if parts is NotImplemented:
            return NotImplemented
        arrays = parts.arrays
        for role, hand_over in pairs:
            array = arrays[role] = hand_over(arrays[role])
            if array is NotImplemented:
                return NotImplemented
        try:
            return assemble(parts)
        except Declined:  # the planned route knows what to do about it
            return NotImplemented

    return shortcut


def _seconds(spec: Spec, steps: tuple[Step, ...]) -> float:
    """Return the time of steps that were chosen for another spec of the same class."""
    if not steps:
        return 0.0
    scale = spec.nbytes / max(1, steps[0].before.nbytes)
    return sum(step.latency + (step.seconds - step.latency) * scale for step in steps)


def _ends(routes: list[_PartRoute]) -> frozenset[str]:
    """Return the traits with which the arrays of any role arrive."""
    return frozenset().union(*(route.steps[-1].after.traits for route in routes if route.steps))


def _aliases(route: _PartRoute) -> bool:
    return all(step.aliases for step in route.steps)


def _named(dtype: str, spec: Spec) -> str | None:
    """Return the dtype that a role names: a field of the spec, or itself."""
    if dtype in ("dtype", "index_dtype", "code_dtype"):
        named: str | None = getattr(spec, dtype)
        return named
    return dtype


def _counted(parts: Parts) -> tuple[int, ...]:
    """Return the lengths into which the indices and the pointers of a sparse value point."""
    pointed = parts.arrays["values"].shape[:1] if "pointers" in parts.arrays else ()
    return (*parts.shape, *pointed)


def _hand_over(
    source: Format,
    target: Format,
    calls: dict[str, Runner],
    limit: int | None,
    value: Any,
    *,
    stream: int | None = None,
) -> Any:
    assert source.take_apart is not None  # the registry checks composites
    assert target.assemble is not None
    parts = source.take_apart(value)
    if limit is not None and any(length >= 2**limit for length in _counted(parts)):
        msg = f"indices into {_counted(parts)} do not fit in {limit + 1} bits"
        raise Declined(msg)
    arrays = dict(parts.arrays)
    for name, array in arrays.items():
        call = calls.get(name) or calls.get(name.partition("_")[0])
        if call is not None and array is not None:
            arrays[name] = call(array, stream)
    return target.assemble(Parts(parts.shape, arrays, parts.facts))
