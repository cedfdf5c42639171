"""A step: a conversion at its place in a route, and what it does to the spec there."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from interop._model.device import device_type, matches
from interop._model.dtype import bit_carrier, itemsize, preserves
from interop._model.effect import LOSING, WRITING
from interop._model.format import Format
from interop._model.spec import MEMORY_TRAITS, Spec
from interop._registry.declared import Declared, Provenance

__all__ = ["Edge", "Step", "Wants", "opening", "sharing_effects"]

_NOTHING: frozenset[str] = frozenset()


class Wants(NamedTuple):
    """The dtypes and devices that a step may usefully change to, for one request.

    Parameters
    ----------
    dtypes, devices : tuple of str
    consented : bool
        Whether the caller named the dtype, so that a cast to it is no loss.
    """

    dtypes: tuple[str, ...]
    devices: tuple[str, ...]
    consented: bool


class Step(NamedTuple):
    """A conversion at its place in a route.

    Parameters
    ----------
    label : str
        Name of the conversion.
    provenance : Provenance
        Who declared it.
    before, after : Spec
    effects : frozenset of str
    seconds : float
        Estimated time.
    latency : float
        The part of it that does not depend on the size.
    writes : bool
        Whether bytes are written.
    aliases : bool
        Whether the result shares memory with the value.
    call : callable
        ``call(value)``; with ``stream=`` if `stream` is set.
    stream : bool
    place : object
        What to leave out when this step has declined.
    shortcut : callable or None
    into : callable or None
        ``into(out, value)`` writes the result where it is wanted.
    """

    label: str
    provenance: Provenance
    before: Spec
    after: Spec
    effects: frozenset[str]
    seconds: float
    latency: float
    writes: bool
    aliases: bool
    call: Callable[..., Any]
    stream: bool = False
    place: object = None
    shortcut: Callable[[Any], Any] | None = None
    into: Callable[[Any, Any], None] | None = None


class Edge:
    """A declared conversion between two registered formats, made ready for planning."""

    __slots__ = (
        "aliases",
        "bits",
        "conversion",
        "dense",
        "devices",
        "dtypes",
        "effects",
        "keeps",
        "losses",
        "ndims",
        "provenance",
        "requires",
        "same",
        "source",
        "takes",
        "target",
        "writes",
    )

    def __init__(self, declared: Declared, source: Format, target: Format) -> None:
        conversion = declared.conversion
        exports = source.speaks.get(conversion.source, source.dtypes)
        self.conversion = conversion
        self.provenance = declared.provenance
        self.source = source
        self.target = target
        self.dtypes = exports if conversion.dtypes is None else exports & conversion.dtypes
        self.devices = conversion.devices
        self.ndims = _both(conversion.ndims, target.ndims)
        self.requires = conversion.requires
        self.takes = conversion.takes | conversion.requires
        self.effects = conversion.effects
        self.losses = len(conversion.effects & LOSING)
        self.dense = target.is_dense
        self.same = not target.is_dense and not source.is_dense
        self.aliases = conversion.aliases
        self.writes = bool(conversion.effects & WRITING)
        self.bits = conversion.bits
        # A cast that keeps what it requires, such as an order, is no copy: copies are in C order.
        casts = source is target and conversion.changes == {"dtype"}
        self.keeps = casts and bool(conversion.requires & conversion.adds)

    def takes_value(self, spec: Spec) -> bool:
        """Tell whether the conversion takes a value of `spec`."""
        return (
            (spec.carrier or spec.dtype) in self.dtypes
            and spec.traits <= self.takes
            and self.requires <= spec.traits
            and (self.devices is None or device_type(spec.device) in self.devices)
            and (self.ndims is None or len(spec.shape) in self.ndims)
            and self._takes_indices(spec)
        )

    def _takes_indices(self, spec: Spec) -> bool:
        holds = self.conversion.index_dtypes
        return holds is None or spec.index_dtype in holds

    def objection(self, spec: Spec) -> str | None:
        """Say why the conversion does not take a value of `spec`, or return None."""
        missing = sorted(self.requires - spec.traits)
        foreign = sorted(spec.traits - self.takes)
        if missing:
            return f"it is for values that are {missing[0]!r}"
        if foreign:
            return f"it cannot take a value with the trait {foreign[0]!r}"
        if (spec.carrier or spec.dtype) not in self.dtypes:
            return f"it does not take {spec.carrier or spec.dtype}"
        if self.devices is not None and device_type(spec.device) not in self.devices:
            return f"it takes data on {', '.join(sorted(self.devices))}, not on {spec.device}"
        if self.ndims is not None and len(spec.shape) not in self.ndims:
            return f"it does not take arrays of {len(spec.shape)} axes"
        if not self._takes_indices(spec):
            return f"it does not take indices of {spec.index_dtype}"
        return None

    def steps(self, spec: Spec, wants: Wants) -> Iterator[Step]:
        """Yield the steps this conversion can make of a value it takes."""
        for device in self._devices(spec, wants):
            lacking = self.target.lacking(device)
            for dtype, carrier in self._elements(spec, wants):
                # What a value has already, its format can hold after all.
                kept = self.source is self.target and dtype == spec.dtype
                if kept or (carrier or dtype) not in lacking:
                    yield self._step(spec, dtype, carrier, device, wants)

    def _devices(self, spec: Spec, wants: Wants) -> Iterable[str]:
        allowed = self.conversion.to_devices or self.target.devices
        if "device" not in self.conversion.changes:
            return (spec.device,) if device_type(spec.device) in self.target.devices else ()
        return [
            d for d in wants.devices if device_type(d) in allowed and not matches(spec.device, d)
        ]

    def _elements(self, spec: Spec, wants: Wants) -> Iterator[tuple[str | None, str | None]]:
        """Yield the pairs of dtype and carrier that the result may have."""
        if self.bits == "pack":
            carrier = None if spec.carrier else bit_carrier(spec.dtype)
            if carrier in self.target.dtypes:
                yield spec.dtype, carrier
        elif self.bits == "unpack":
            if spec.carrier and spec.dtype in self.target.dtypes:
                yield spec.dtype, None
        elif "dtype" not in self.conversion.changes or spec.carrier:
            if (spec.carrier or spec.dtype) in self.target.dtypes and not self.keeps:
                yield spec.dtype, spec.carrier
        else:
            castable = self.conversion.to_dtypes or self.target.dtypes
            for dtype in dict.fromkeys((spec.dtype, *wants.dtypes)):
                if dtype in castable and not (self.keeps and dtype == spec.dtype):
                    yield dtype, None

    def _step(
        self, spec: Spec, dtype: str | None, carrier: str | None, device: str, wants: Wants
    ) -> Step:
        conversion = self.conversion
        after = self._after(spec, dtype, carrier, device)
        effects = self.effects
        if dtype != spec.dtype and not wants.consented and not preserves(spec.dtype, dtype):
            effects |= {"narrow"}
        if self.aliases:
            effects |= sharing_effects(spec, self.target)
        keywords: dict[str, object] = {}
        if "dtype" in conversion.changes or self.bits:
            keywords["dtype"] = after.element
        if "device" in conversion.changes:
            keywords["device"] = device
        return Step(
            conversion.label,
            self.provenance,
            spec,
            after,
            effects,
            conversion.cost.seconds(spec, after),
            conversion.cost.latency,
            self.writes,
            self.aliases,
            partial(conversion.function, **keywords) if keywords else conversion.function,
            conversion.stream,
            self,
            # One that was written for strangers knows nothing of this format's traits.
            conversion.shortcut if conversion.source == self.source.name else None,
            conversion.into,
        )

    def _after(self, spec: Spec, dtype: str | None, carrier: str | None, device: str) -> Spec:
        traits, element = self._traits(spec), carrier or dtype
        if self.target.inside is not None:
            return self._held(spec, dtype, device)._replace(traits=traits)
        if self.dense:
            nbytes = spec.size * itemsize(element)
            name = self.target.name
            return Spec(name, dtype, device, spec.shape, traits, nbytes, carrier=carrier)
        nnz = spec.nnz
        if not self.same:
            nnz = None if self.target.layout == "affine" else spec.size if nnz is None else nnz
        return Spec(
            self.target.name,
            dtype,
            device,
            spec.shape,
            traits,
            _sparse_bytes(spec, element),
            nnz,
            self.conversion.index_dtype or spec.index_dtype,
            spec.code_dtype if self.same else None,
            carrier,
        )

    def _held(self, spec: Spec, dtype: str | None, device: str) -> Spec:
        """Return the spec of a holder of the value, or of what the value holds."""
        inside = spec.inside if self.source.inside is not None else self.source.name
        nbytes = spec.nbytes if dtype == spec.dtype else spec.size * itemsize(dtype)
        return spec._replace(
            format=self.target.name, inside=inside, dtype=dtype, device=device, nbytes=nbytes
        )

    def _traits(self, spec: Spec) -> frozenset[str]:
        traits = spec.traits - self.conversion.drops
        if not self.aliases:
            traits -= MEMORY_TRAITS
        else:
            within = self.source.framework == self.target.framework
            traits = shared_traits(traits, self.target.carries, within=within)
        return traits | self.conversion.adds


def opening(spec: Spec, holder: Format, provenance: Provenance) -> Step:
    """Return the step that takes out what a value of a holder's format has inside."""
    assert holder.inside is not None
    return Step(
        f"open_{holder.name.replace('.', '_')}",
        provenance,
        spec,
        spec._replace(format=spec.inside or "", inside=None),
        _NOTHING,
        holder.handling,
        holder.handling,
        False,
        True,
        holder.inside,
        place=(holder.name, "inside"),
    )


def _both(one: frozenset[int] | None, other: frozenset[int] | None) -> frozenset[int] | None:
    """Return what two sets have in common, None being the set of everything."""
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _sparse_bytes(spec: Spec, element: str | None) -> int:
    if spec.nnz is None:
        return spec.nbytes
    return spec.nbytes + spec.nnz * (itemsize(element) - itemsize(spec.element))


def sharing_effects(spec: Spec, target: Format) -> frozenset[str]:
    """Return the effects of letting `target` share the memory of a value of `spec`."""
    if "readonly" in target.carries or "immutable" in target.carries:
        return _NOTHING
    if "immutable" in spec.traits:
        return frozenset({"alias_immutable"})
    return frozenset({"share_readonly"}) if "readonly" in spec.traits else _NOTHING


def shared_traits(
    traits: frozenset[str], carries: frozenset[str], *, within: bool = False
) -> frozenset[str]:
    """Return `traits` as they stand when a target that can carry some shares the memory.

    What never changes is flagged read-only where the target can say so, and the flags that the
    target cannot carry are gone: whether that is permitted is the policy's business. Within one
    framework memory is flagged as it was.
    """
    if "immutable" in traits and "readonly" in carries and not within:
        traits |= {"readonly"}
    return traits - (frozenset({"readonly", "immutable", "pinned"}) - carries)
