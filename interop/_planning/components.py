"""Composite formats: values made of dense arrays, handed over array by array.

Two formats of one layout (``csr``, ``affine`` …) hold the same component arrays, so that a value
passes from one to the other when each of its arrays does. Each array takes a route of its own,
under the same policy; moves, casts and copies of a composite value are moves, casts and copies of
its arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from interop._model.device import matches
from interop._model.dtype import DTYPES, itemsize, preserves
from interop._model.format import PLAIN_DTYPES, Components, Format, Parts
from interop._model.spec import (
    MEMORY_TRAITS,
    Spec,
    representative,
    spec_class,
    spec_kind,
    trait_text,
)
from interop._model.suggestion import listed
from interop._model.typing import Value, ValueFunction
from interop._registry.declared import Provenance
from interop._registry.registry import Registry
from interop.errors import Declined

from .cache import PlanCache
from .derived import LOCKED, derived_effects, shared_traits
from .plan import Plan
from .policy import Policy
from .request import Request
from .step import Step, Targets

if TYPE_CHECKING:
    from .planner import Planner

_FindFastPath = Callable[[tuple[Step, ...]], ValueFunction | None]


class _RoleRoute(NamedTuple):
    """The route of one role's arrays."""

    role: str
    steps: tuple[Step, ...]
    seconds: float

    @property
    def writes(self) -> bool:
        """Whether bytes are written."""
        return any(step.writes for step in self.steps)

    @property
    def aliases(self) -> bool:
        """Whether the result shares the array's memory."""
        return all(step.aliases for step in self.steps)


class ComponentTransfers:
    """The steps between composite formats of one layout."""

    def __init__(self, registry: Registry, planner: Planner, cache: PlanCache) -> None:
        self._registry = registry
        self._planner = planner
        self._cache = cache

    def targets(self, spec: Spec, names: frozenset[str]) -> list[Format]:
        """Return the formats to which a composite value can be handed over by its components."""
        source = self._registry.formats[spec.format]
        components = source.components
        if components is None or not spec.traits <= MEMORY_TRAITS | components.unpack_keeps:
            return []
        axes = len(spec.shape)
        alike = (other for other in self._planner.graph.alike(source) if other.name in names)
        return [
            other
            for other in alike
            if other is source or other.ndims is None or axes in other.ndims
        ]

    def steps(
        self,
        spec: Spec,
        targets: Targets,
        request: Request,
        target: Format,
        *,
        writing: bool = True,
    ) -> Iterator[Step]:
        """Yield every transfer, move, cast and copy of a composite value to one of its targets.

        Without `writing`, those are left out that write bytes in any case.
        """
        source, carries = self._registry.formats[spec.format], self._registry.carries(target)
        for device in dict.fromkeys((spec.device, *targets.devices)):
            for dtype in dict.fromkeys((spec.dtype, *targets.dtypes)):
                for copy in (None, True) if request.copy else (None,):
                    change = Change(dtype, device, copy, targets.consented)
                    transfer = ComponentTransfer(source, target, spec, change, carries)
                    if writing or not transfer.writes():
                        yield from self._step(transfer, request)

    def _step(self, transfer: ComponentTransfer, request: Request) -> Iterator[Step]:
        if not transfer.is_possible():
            return
        routes = []
        for role in transfer.unpacking.roles:
            if role not in transfer.packing.roles:
                continue  # a value that had it would have a trait that says so
            route = self._role_route(transfer, role, request)
            if route is None:
                return
            routes.append(route)
        provenance = self._registry.provenance[transfer.target.name]
        yield transfer.step(routes, provenance, self._planner.fast_path)

    def _role_route(
        self, transfer: ComponentTransfer, role: str, request: Request
    ) -> _RoleRoute | None:
        spec, change = transfer.component_spec(role), transfer.change
        component = transfer.packing.format
        dtype = _role_dtype(transfer.packing.roles[role], transfer.after())
        policy = Policy(request.policy.permitted)  # each array is told its dtype
        inner = Request((component,), dtype, change.device, change.copy, policy)
        table = self._cache.table(inner)
        routes = table.component_routes
        # A route that writes nothing is the one for every size.
        kind, size_class = table.key(spec_kind(spec)), table.key(spec_class(spec))
        steps = routes.get(kind)
        if steps is None and size_class in routes:
            steps = routes[size_class]
        elif steps is None:
            route = self._planner.route(representative(spec), inner, dense=True)
            steps = None if route is None else tuple(route[1])
            copies = steps is None or any(step.writes for step in steps)
            self._cache.keep(routes, size_class if copies else kind, steps)
        return None if steps is None else _RoleRoute(role, steps, _seconds(spec, steps))


def objection(spec: Spec, target: Format) -> str | None:
    """Say why a value cannot be handed over to another format of its layout, or return None."""
    packing = target.components
    assert packing is not None
    carried = (MEMORY_TRAITS | target.carries) - packing.pack_refuses
    if not spec.traits <= carried:
        trait = min(spec.traits - carried)
        return f"it does not take values with the trait {trait_text(trait)}"
    if not packing.pack_requires <= spec.traits:
        return f"it is for values that are {trait_text(min(packing.pack_requires - spec.traits))}"
    if spec.code_dtype and packing.code_dtypes and spec.code_dtype not in packing.code_dtypes:
        return f"it takes codes of {listed(sorted(packing.code_dtypes))}, not of {spec.code_dtype}"
    return None


def transfer_name(source: Format, target: Format) -> str:
    """Return what the step from one format of a layout to another is called."""
    return f"{source.name}_to_{target.name}".replace(".", "_")


class Change(NamedTuple):
    """What a transfer is to make of the value on the way."""

    dtype: str | None
    device: str
    copy: bool | None
    consented: bool


class ComponentTransfer(NamedTuple):
    """One composite value's way into another format, or to another dtype, device or memory."""

    source: Format
    target: Format
    spec: Spec
    change: Change
    carries: frozenset[str]

    @property
    def unpacking(self) -> Components:
        """How the value is unpacked."""
        assert self.source.components is not None
        return self.source.components

    @property
    def packing(self) -> Components:
        """How the result is packed."""
        assert self.target.components is not None
        return self.target.components

    def _copied_roles(self) -> frozenset[str]:
        return frozenset(self.unpacking.unpack_copies | self.packing.pack_copies)

    def _changes_arrays(self) -> bool:
        """Tell whether the arrays are given another dtype, device or memory."""
        return (
            self.change.copy is True
            or self.change.dtype != self.spec.dtype
            or not matches(self.spec.device, self.change.device)
        )

    def writes(self) -> bool:
        """Tell whether bytes are written in any case."""
        return self._changes_arrays() or bool(self._copied_roles())

    def is_possible(self) -> bool:
        """Tell whether the result differs from the value, and the target can hold it."""
        return (
            (self._changes_arrays() or self.source is not self.target)
            and self.change.dtype in self.target.holds(self.change.device)
            and self.target.home(self.change.device) == self.change.device
            and self._is_carried()
            and (self.change.dtype == self.spec.dtype or self._may_cast())
        )

    def _is_carried(self) -> bool:
        if self.source is self.target:  # whatever has been packed can be packed again
            return (self.spec.traits - MEMORY_TRAITS) <= self.target.carries
        return objection(self.spec, self.target) is None

    def _may_cast(self) -> bool:
        """Tell whether to cast the values, array by array, is to cast the numbers they stand for.

        Codes are not those numbers, and what stands twice has to be summed before it is cast.
        """
        return not self.spec.code_dtype and "uncoalesced" not in self.spec.traits

    def component_spec(self, role: str) -> Spec:
        """Return the spec of the component arrays of one role."""
        dtype = _role_dtype(self.unpacking.roles[role], self.spec)
        traits = self.spec.traits & MEMORY_TRAITS
        length = self.spec.size if self.spec.nnz is None else self.spec.nnz
        # Small next to the values; their true lengths would not change any choice.
        shape = (length,) if role in ("values", "indices", "codes") else (1,)
        nbytes = shape[0] * itemsize(dtype)
        return Spec(self.unpacking.format, dtype, self.spec.device, shape, traits, nbytes)

    def after(self) -> Spec:
        """Return the spec of the result, but for traits of memory."""
        spec = self.spec
        stored = spec.size if spec.nnz is None else spec.nnz
        widened = stored * (itemsize(self.change.dtype) - itemsize(spec.dtype))
        return spec._replace(
            format=self.target.name,
            dtype=self.change.dtype,
            device=self.change.device,
            index_dtype=self._index_dtype(),
            nbytes=spec.nbytes + (0 if spec.code_dtype else widened),
        )

    def _index_dtype(self) -> str | None:
        index, possible = self.spec.index_dtype, self.target.index_dtypes
        if index and possible and index not in possible:
            return max(possible, key=itemsize)
        return index

    def step(
        self, routes: list[_RoleRoute], provenance: Provenance, find_fast_path: _FindFastPath
    ) -> Step:
        """Return the transfer as a step of a route."""
        copied = self._copied_roles()
        aliases = any(route.aliases for route in routes if route.role not in copied)
        writes = any(route.writes for route in routes) or bool(copied)
        packing = self.unpacking.pack_seconds + self.packing.pack_seconds
        traits = shared_traits(self.spec.traits, self.carries)
        # Fresh memory may still be that of a library whose arrays never change.
        arrived = (route.steps[-1].after.traits for route in routes if route.steps)
        locked = LOCKED & self.carries & frozenset().union(*arrived)
        after = self.after()._replace(
            traits=(traits if aliases else traits - MEMORY_TRAITS) | locked
        )
        return Step(
            transfer_name(self.source, self.target),
            provenance,
            self.spec,
            after,
            self._effects(routes, after, writes),
            packing + sum(route.seconds for route in routes),
            packing + sum(step.latency for route in routes for step in route.steps),
            writes,
            aliases,
            self._call(routes),
            ("stream",) * any(step.wants for route in routes for step in route.steps),
            (self.source.name, self.target.name, self.change),
            self._fast_path(routes, find_fast_path),
        )

    def _effects(self, routes: list[_RoleRoute], after: Spec, writes: bool) -> frozenset[str]:
        """Return the effects of the arrays' routes, and those that the whole value has by them."""
        effects = {effect for route in routes for step in route.steps for effect in step.effects}
        # The dtype of each array was requested; the caller may have requested none.
        effects.discard("narrow")
        effects |= derived_effects(
            self.spec,
            after,
            self.target,
            consented=self.change.consented,
            aliases=False,  # what sharing comes to was derived array by array
        )
        if writes and not effects & {"copy", "transfer"}:
            effects.add("copy")
        return frozenset(effects)

    def _fast_path(
        self, routes: list[_RoleRoute], find_fast_path: _FindFastPath
    ) -> ValueFunction | None:
        """Return a fast path made of those of the components, if every one has one."""
        fast_unpack = self.unpacking.fast_unpack
        if fast_unpack is None or not self._serves_plain_values():
            return None
        paths: dict[str, ValueFunction] = {}
        for route in routes:
            if route.steps:
                path = find_fast_path(route.steps)
                if path is None:
                    return None
                paths[route.role] = path
        return _fast_transfer(fast_unpack, paths, self.packing.pack)

    def _serves_plain_values(self) -> bool:
        """Tell whether every value that can be unpacked fast goes this way."""
        indices = self.source.index_dtypes <= self.target.index_dtypes
        unchanged = self.change.dtype == self.spec.dtype and self.change.copy is None
        plain = PLAIN_DTYPES & self.source.dtypes <= self.target.dtypes
        codes, possible = self.unpacking.code_dtypes, self.packing.code_dtypes
        any_codes = not possible or (bool(codes) and codes <= possible)
        return indices and unchanged and plain and any_codes and not self.spec.traits

    def _call(self, routes: list[_RoleRoute]) -> Callable[..., Value]:
        plans = {route.role: Plan(route.steps) for route in routes if route.steps}
        index, after = self.spec.index_dtype, self._index_dtype()
        digits = None if preserves(index, after) else DTYPES[after or "int32"].digits
        return partial(_transfer, self.unpacking, self.packing, plans, digits)


def _fast_transfer(
    fast_unpack: Callable[[Value], Parts],
    paths: dict[str, ValueFunction],
    pack: Callable[[Parts], Value],
) -> ValueFunction:
    pairs = tuple(paths.items())

    def fast_path(value: Value) -> Value:
        parts = fast_unpack(value)
        if parts is NotImplemented:
            return NotImplemented
        arrays = parts.arrays
        for role, path in pairs:
            array = arrays[role] = path(arrays[role])
            if array is NotImplemented:
                return NotImplemented
        try:
            return pack(parts)
        except Declined:  # the planned route knows what to do about it
            return NotImplemented

    return fast_path


def _seconds(spec: Spec, steps: tuple[Step, ...]) -> float:
    """Return the time of steps that were chosen for another spec of the same class."""
    if not steps:
        return 0.0
    scale = spec.nbytes / max(1, steps[0].before.nbytes)
    return sum(step.latency + (step.seconds - step.latency) * scale for step in steps)


def _role_dtype(dtype: str, spec: Spec) -> str | None:
    """Return the dtype that a role names: a field of the spec, or itself."""
    fields = {"dtype": spec.dtype, "index_dtype": spec.index_dtype, "code_dtype": spec.code_dtype}
    return fields.get(dtype, dtype)


def _lengths(parts: Parts) -> tuple[int, ...]:
    """Return the lengths into which the indices and the pointers of a sparse value point."""
    stored = parts.arrays["values"].shape[:1] if "pointers" in parts.arrays else ()
    return (*parts.shape, *stored)


def _transfer(
    unpacking: Components,
    packing: Components,
    plans: dict[str, Plan],
    digits: int | None,
    value: Value,
    **given: object,
) -> Value:
    parts = unpacking.unpack(value)
    if digits is not None and any(length >= 2**digits for length in _lengths(parts)):
        msg = f"indices into {_lengths(parts)} do not fit in {digits + 1} bits"
        raise Declined(msg)
    arrays = dict(parts.arrays)
    for name, array in arrays.items():
        plan = plans.get(name) or plans.get(name.partition("_")[0])
        if plan is not None and array is not None:
            arrays[name] = plan(array, given)
    return packing.pack(Parts(parts.shape, arrays, parts.facts))
