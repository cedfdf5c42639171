"""Composite formats: values made of dense arrays, handed over array by array.

Two formats of one layout (``csr``, ``affine`` …) hold the same component arrays, so a value can
pass from one to the other if each of its arrays can. Each array takes a route of its own under the
same policy. A composite value is moved, cast or copied by moving, casting or copying its arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import partial
from itertools import chain

from interop._model.device import matches
from interop._model.dtype import DTYPES, itemsize, preserves
from interop._model.format import PLAIN_DTYPES, Components, Format, Parts
from interop._model.provenance import Provenance
from interop._model.spec import MEMORY_TRAITS, Spec, representative, trait_text
from interop._model.text import listed
from interop._model.typing import Value, ValueFunction
from interop._request.policy import Policy
from interop._request.request import Request
from interop.errors import Declined

from .derived import WRITE_LOCKS, derived_effects, shared_traits
from .plan import run
from .question import Question
from .step import Step, fast_path


class Composite:
    """The way between two formats of one layout, by their component arrays.

    If both are the same format, its steps are moves, casts and copies within that format.
    """

    effects: frozenset[str] = frozenset()  # none is certain: they depend on the arrays' routes
    losses = 0

    def __init__(
        self,
        source: Format,
        target: Format,
        *,
        carries: frozenset[str],
        provenance: Provenance,
        rival_pairs: frozenset[tuple[str, str]],
    ) -> None:
        assert source.components is not None
        assert target.components is not None
        self.source = source
        self.target = target
        self.unpacking = source.components
        self.packing = target.components
        self.carries = carries
        self.provenance = provenance
        self.rival_pairs = rival_pairs
        #: The roles that both have. A value with an array in another role has a trait that says so.
        self.roles = frozenset(self.unpacking.roles.keys() & self.packing.roles.keys())
        self.copied_roles = frozenset(self.unpacking.unpack_copies | self.packing.pack_copies)
        self.writes = bool(self.copied_roles)
        self.aliases = bool(self.roles - self.copied_roles)
        self.latency = self.unpacking.pack_seconds + self.packing.pack_seconds

    def steps(self, spec: Spec, question: Question) -> Iterator[Step]:
        """Yield every transfer, move, cast and copy of a value for whose arrays there are routes.

        The routes are those of the class of the value, so that a plan shows what will be done.
        """
        request = question.request
        for device in dict.fromkeys((spec.device, *question.devices)):
            for dtype in dict.fromkeys((spec.dtype, *question.dtypes)):
                for copy in (None, True) if request.copy else (None,):
                    if self._is_possible(spec, dtype, device, copy):
                        after = self._after(spec, dtype, device)
                        routes = self._routes(spec, after, copy, question)
                        if routes is not None:
                            yield self._step(spec, after, copy, routes, request.consents)

    @property
    def label(self) -> str:
        """The name of its steps."""
        return f"{self.source.name}_to_{self.target.name}".replace(".", "_")

    def objection(self, spec: Spec) -> str | None:
        """Say why a value cannot be handed over to another format of its layout, or return None."""
        packing = self.packing
        carried = (MEMORY_TRAITS | self.target.carries) - packing.pack_refuses
        if not spec.traits <= carried:
            trait = min(spec.traits - carried)
            return f"it does not take values with the trait {trait_text(trait)}"
        if not packing.pack_requires <= spec.traits:
            trait = min(packing.pack_requires - spec.traits)
            return f"it is for values that are {trait_text(trait)}"
        if spec.code_dtype and packing.code_dtypes and spec.code_dtype not in packing.code_dtypes:
            codes = listed(sorted(packing.code_dtypes))
            return f"it takes codes of {codes}, not of {spec.code_dtype}"
        return None

    def takes_value(self, spec: Spec) -> bool:
        """Return whether it takes a value."""
        if not spec.traits <= MEMORY_TRAITS | self.unpacking.unpack_keeps:
            return False
        if spec.carrier:  # each component array has its own way, on which its bits may be carried
            return False
        if not (spec.index_dtype or spec.code_dtype):  # a dense one, of a format that has both
            return False
        ndims = self.target.ndims
        return self.source is self.target or ndims is None or len(spec.shape) in ndims

    def _is_possible(self, spec: Spec, dtype: str | None, device: str, copy: bool | None) -> bool:
        """Return whether a result differs from the value, and the target can hold it."""
        is_cast, is_within = dtype != spec.dtype, self.source is self.target
        return (
            (not is_within or copy is True or is_cast or not matches(spec.device, device))
            and dtype in self.target.holds(device)
            and self.target.home(device) == device
            and self._is_carried(spec)
            # Casting the array of values must cast the numbers that they stand for. Codes stand for
            # other numbers; values at the same coordinate have to be summed before, not after.
            and not (is_cast and (spec.code_dtype or "uncoalesced" in spec.traits))
        )

    def _is_carried(self, spec: Spec) -> bool:
        if self.source is self.target:  # whatever has been packed can be packed again
            return (spec.traits - MEMORY_TRAITS) <= self.target.carries
        return self.objection(spec) is None

    def _routes(
        self, spec: Spec, after: Spec, copy: bool | None, question: Question
    ) -> dict[str, tuple[Step, ...]] | None:
        """Return the routes of the arrays by their roles, or None if one has none."""
        routes: dict[str, tuple[Step, ...]] = {}
        for role in self.unpacking.roles:
            if role in self.roles:
                typical = self._role_spec(role, representative(spec))
                request = self._role_request(role, after, copy, question.request.policy)
                steps = question.route_of(typical, request)
                if steps is None:
                    return None
                routes[role] = steps
                if self.source.layout == "ragged" and not self._shared(spec, after, routes):
                    copy = True  # new values get new offsets, as those of a slice always do
        return routes

    def _shared(
        self, spec: Spec, after: Spec, routes: Mapping[str, tuple[Step, ...]]
    ) -> frozenset[str]:
        """Return the roles whose arrays the result shares with the value."""
        copied = self.copied_roles
        if spec.dtype in self.unpacking.packed_dtypes or after.dtype in self.packing.packed_dtypes:
            copied |= {"values"}
        return frozenset(role for role, steps in routes.items() if _all_alias(steps)) - copied

    def _role_request(self, role: str, after: Spec, copy: bool | None, policy: Policy) -> Request:
        dtype = _role_dtype(self.packing.roles[role], after)
        # An array has to arrive in this dtype even if the caller forbids to narrow: `_effects`
        # judges narrowing for the value as a whole.
        inner = Policy(policy.permitted)
        return Request((self.packing.format,), dtype, after.device, copy, inner)

    def _role_spec(self, role: str, spec: Spec) -> Spec:
        """Return the spec of the component arrays of one role of a value."""
        dtype = _role_dtype(self.unpacking.roles[role], spec)
        traits = spec.traits & MEMORY_TRAITS
        length = spec.size if spec.nnz is None else spec.nnz
        # All other arrays are small next to these: their true lengths would not change any choice.
        shape: tuple[int, ...] = (length,) if role in ("values", "indices", "codes") else (1,)
        if role == "values":  # what takes one axis alone would lose the others
            shape += (1,) * (_axes_of_values(self.unpacking.layout, len(spec.shape)) - 1)
        nbytes = shape[0] * itemsize(dtype)
        return Spec(self.unpacking.format, dtype, spec.device, shape, traits, nbytes)

    def _after(self, spec: Spec, dtype: str | None, device: str) -> Spec:
        """Return the spec of the result, still with the traits of the value."""
        stored = spec.size if spec.nnz is None else spec.nnz
        widened = stored * (itemsize(dtype) - itemsize(spec.dtype))
        index, possible = spec.index_dtype, self._index_dtypes(device)
        if index and possible and index not in possible:
            index = max(possible, key=itemsize)
        return spec._replace(
            format=self.target.name,
            wrapped=None,  # the value may be a wrapper, and the result is none
            dtype=dtype,
            device=device,
            index_dtype=index,
            # Codes are not cast. A spec that does not say how many elements are stored may have
            # fewer bytes than a narrower dtype would spare.
            nbytes=max(spec.nbytes + widened, 0),
        )

    def _index_dtypes(self, device: str) -> Set[str]:
        """Return the dtypes that indices can have at this moment where a result lies."""
        return self.target.index_dtypes - self.target.unsupported(device)

    def _step(
        self,
        spec: Spec,
        after: Spec,
        copy: bool | None,
        routes: Mapping[str, tuple[Step, ...]],
        consented: bool,
    ) -> Step:
        """Return the step to a spec, given the routes of the arrays by their roles."""
        shared = self._shared(spec, after, routes)
        aliases = bool(shared)
        steps = [*chain.from_iterable(routes.values())]
        writes = len(shared) < len(routes) or any(step.writes for step in steps)
        traits = shared_traits(spec.traits, self.carries)
        # Even fresh arrays are locked if their library never changes its arrays.
        arrived = (route[-1].after.traits for route in routes.values() if route)
        locked = WRITE_LOCKS & self.carries & frozenset().union(*arrived)
        traits = (traits if aliases else traits - MEMORY_TRAITS) | locked
        result = after._replace(traits=traits | self.packing.pack_adds)
        return Step(
            self.label,
            self.provenance,
            spec,
            result,
            self._effects(spec, result, steps, writes=writes, consented=consented),
            self.latency + sum(_seconds(self._role_spec(r, spec), routes[r]) for r in routes),
            self.latency + sum(step.latency for step in steps),
            writes,
            aliases,
            self._call(spec, after, routes),
            ("stream",) * any(step.wants for step in steps),
            (self.source.name, self.target.name, (after.dtype, after.device, copy, consented)),
            self._fast_path(spec, after, routes) if copy is None else None,
            roles=None if len(shared) == len(routes) else shared,
        )

    def _effects(
        self, spec: Spec, after: Spec, steps: Iterable[Step], *, writes: bool, consented: bool
    ) -> frozenset[str]:
        """Return the effects of the arrays' steps, and those that follow for the whole value."""
        effects = {effect for step in steps for effect in step.effects}
        # Whether numbers are narrowed is judged below, by the dtype of the whole value. The effects
        # of sharing were derived array by array.
        effects.discard("narrow")
        effects |= derived_effects(spec, after, self.target, safe=consented, aliases=False)
        if writes and not effects & {"copy", "transfer"}:
            effects.add("copy")
        return frozenset(effects)

    def _fast_path(
        self, spec: Spec, after: Spec, routes: Mapping[str, tuple[Step, ...]]
    ) -> ValueFunction | None:
        """Return a fast path made of those of the arrays, or None if an array has none."""
        fast_unpack = self.unpacking.fast_unpack
        if fast_unpack is None or not self._serves_plain_values(spec, after):
            return None
        paths: dict[str, ValueFunction] = {}
        for role, steps in routes.items():
            if steps:
                path = fast_path(steps, self.rival_pairs)
                if path is None:
                    return None
                paths[role] = path
        return _fast_transfer(fast_unpack, paths, self.packing.pack)

    def _serves_plain_values(self, spec: Spec, after: Spec) -> bool:
        """Return whether the step to a spec is right for every value that `fast_unpack` takes."""
        indices = self.source.index_dtypes <= self._index_dtypes(after.device)
        plain = PLAIN_DTYPES & self.source.dtypes <= self.target.dtypes
        codes, possible = self.unpacking.code_dtypes, self.packing.code_dtypes
        any_codes = not possible or (bool(codes) and codes <= possible)
        unchanged = after.dtype == spec.dtype
        return indices and unchanged and plain and any_codes and not spec.traits

    def _call(
        self, spec: Spec, after: Spec, routes: Mapping[str, tuple[Step, ...]]
    ) -> Callable[..., Value]:
        calls = {role: partial(run, steps) for role, steps in routes.items() if steps}
        index = after.index_dtype
        # Narrower indices may be too small for a value, so each value is checked.
        digits = None if preserves(spec.index_dtype, index) else DTYPES[index or "int32"].digits
        return partial(_transfer, self.unpacking, self.packing, calls, digits)


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
        except Declined:  # converted in full, the value gets another plan
            return NotImplemented

    return fast_path


def _all_alias(steps: Iterable[Step]) -> bool:
    """Return whether the result of some steps shares the value's memory."""
    return all(step.aliases for step in steps)


def _seconds(spec: Spec, steps: tuple[Step, ...]) -> float:
    """Return the time that steps take for a spec; they were planned for another size."""
    if not steps:
        return 0.0
    scale = spec.nbytes / max(1, steps[0].before.nbytes)
    return sum(step.latency + (step.seconds - step.latency) * scale for step in steps)


def _axes_of_values(layout: str, axes: int) -> int:
    """Return how many axes stored values have, with those of blocks, rows and batches."""
    if layout in {"bsr", "bsc"}:
        return axes + 1
    return max(1, axes - 1) if layout in {"csr", "csc", "ragged"} else 1


def _role_dtype(dtype: str, spec: Spec) -> str | None:
    """Return the dtype that a role names: a field of the spec, or itself."""
    fields = {"dtype": spec.dtype, "index_dtype": spec.index_dtype, "code_dtype": spec.code_dtype}
    return fields.get(dtype, dtype)


def _lengths(parts: Parts) -> tuple[int, ...]:
    """Return the lengths that the indices, the pointers and the offsets of a value stay below."""
    counted = parts.arrays.keys() & {"pointers", "offsets"}
    stored = parts.arrays["values"].shape[:1] if counted else ()
    return (*parts.shape, *stored)


def _transfer(
    unpacking: Components,
    packing: Components,
    calls: Mapping[str, Callable[..., Value]],
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
        # "indices_0" and "indices_1" have the role "indices".
        call = calls.get(name) or calls.get(name.partition("_")[0])
        if call is not None and array is not None:
            arrays[name] = call(array, given)
    return packing.pack(Parts(parts.shape, arrays, parts.facts))
