"""Declared conversions between two registered formats, made ready for planning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import partial
from itertools import filterfalse

from interop._model.conversion import ORDERS, Cost
from interop._model.device import PAGE_LOCKED, device_type, is_host_part, matches, ordinary
from interop._model.dtype import bit_carrier, itemsize, preserves
from interop._model.effect import LOSSES, WRITING
from interop._model.format import Format
from interop._model.provenance import Provenance
from interop._model.spec import (
    ATTRIBUTES,
    FORTRAN,
    LABELLED,
    MEMORY_TRAITS,
    NOMINAL,
    ORDERED,
    Spec,
    cast_dtypes,
    column_dtypes,
    in_any_order,
    trait_text,
    with_columns,
)
from interop._model.text import counted_axes
from interop._model.typing import Value, ValueFunction
from interop._registry.declared import Declared

from .derived import complete, derived_effects, shared_traits
from .question import Question
from .step import Step, exported, hand_off

_COPY = frozenset({"copy"})
#: The only component that is shared if the offsets or indices are built anew.
_VALUES = frozenset({"values"})


class ResolvedConversion:
    """A declared conversion between two registered formats.

    If its declared source is a protocol, `source` is a format that exports this protocol.
    """

    # A graph has hundreds of conversions, and a search looks at dozens. So the fields that the
    # graph needs are worked out at once, and the others when one of them is first read.
    __slots__ = (
        *("conversion", "devices", "provenance", "source", "target"),
        *("aliases", "arrives", "effects", "latency", "losses", "requires", "roles", "writes"),
        *(
            "bits",
            "drops",
            "dtypes",
            "elements",
            "is_sparse",
            "ndims",
            "orders",
            "takes",
        ),
    )
    bits: str | None
    drops: Set[str]
    dtypes: Set[str]
    elements: tuple[str, ...]
    is_sparse: bool
    ndims: Set[int] | None
    orders: Set[str]
    takes: Set[str]

    def __init__(self, declared: Declared, source: Format, target: Format) -> None:
        conversion = complete(declared.conversion, source, target)
        self.conversion = conversion
        self.provenance = declared.provenance
        self.source = source
        self.target = target
        self.devices = conversion.devices
        self.requires = conversion.requires
        across = conversion.across or conversion.cost
        self.latency = min(conversion.cost.latency, across.latency)
        self.effects = effects = frozenset(conversion.effects)
        self.losses = 0 if effects.isdisjoint(LOSSES) else len(effects & LOSSES)
        self.writes = not effects.isdisjoint(WRITING)
        self.aliases = conversion.aliases
        #: The devices that it moves values to; None if it does not.
        self.arrives: Iterable[str] | None = None
        if "device" in conversion.changes:
            self.arrives = conversion.result.devices or target.devices
        self.roles = self._shared_roles() if self.aliases else None

    def _shared_roles(self) -> frozenset[str] | None:
        """Return the roles of the component arrays that are shared; None: all there are."""
        source, target = self.source, self.target
        if target.components is None:
            loses_rows = source.layout == "ragged" and "nested" not in target.carries
            return _VALUES if loses_rows else None
        if source.components is None and self.conversion.result.index_dtype:
            return _VALUES  # the indices are made for it
        if not self.writes:
            return None
        roles = target.components.roles.keys() - target.components.pack_copies
        if source.components is not None:  # what the source does not have is made
            roles &= source.components.roles.keys() - source.components.unpack_copies
        cast = _VALUES if "dtype" in self.conversion.changes else frozenset()
        return frozenset(roles - cast)

    def __getattr__(self, name: str) -> object:
        """Work out all the fields that only a search reads, when it first reads one of them."""
        if name not in self.__slots__:
            raise AttributeError(name)
        conversion, source, target = self.conversion, self.source, self.target
        exports = source.exports.get(conversion.source, source.dtypes)
        self.dtypes = exports if conversion.dtypes is None else exports & conversion.dtypes
        self.elements = elements_named(conversion.dtypes or ())
        self.ndims = _intersection(conversion.ndims, target.ndims)
        takes = in_any_order(conversion.takes | conversion.requires)
        drops = in_any_order(conversion.drops)
        # Conversions need not name labels. A step within a framework keeps them, and a step out of
        # it loses them unless it names them. A step that drops a subclass loses what that keeps in
        # its attributes, which counts as labels; a masked array is such a subclass.
        if "subclass" in drops or (source.labels is None and "masked" in takes | drops):
            takes, drops = takes | LABELLED, drops | LABELLED
        elif source.labels is not None:
            takes |= LABELLED | ATTRIBUTES
            if target.framework != source.framework:
                drops |= ATTRIBUTES - conversion.takes
            is_within = target.framework == source.framework or conversion.takes >= LABELLED
            if target.labels is None or not is_within:
                drops |= LABELLED
        self.takes, self.drops = takes, drops
        self.is_sparse = not target.is_dense and not source.is_dense
        self.bits = conversion.result.bits
        changes_order = "order" in conversion.changes
        self.orders = (conversion.result.orders or ORDERS) if changes_order else frozenset()
        return getattr(self, name)

    @property
    def label(self) -> str:
        """The name of its steps."""
        return self.conversion.label

    def takes_value(self, spec: Spec) -> bool:
        """Return whether it takes a value."""
        index_dtypes = self.conversion.index_dtypes
        return (
            self.requires <= spec.traits <= self.takes
            and (spec.element in self.dtypes or self._takes_any_dtype(spec))
            and (
                self.devices is None
                or device_type(spec.device) in self.devices
                or spec.device in self.devices
            )
            and (self.ndims is None or len(spec.shape) in self.ndims or self._takes_rows(spec))
            and (index_dtypes is None or spec.index_dtype in index_dtypes)
        )

    def _takes_rows(self, spec: Spec) -> bool:
        """Return whether it takes a table whose rows are arrays, which have more axes."""
        return len(spec.shape) > 2 and self.source.is_table and self.target.is_table

    def _takes_any_dtype(self, spec: Spec) -> bool:
        """Return whether the dtype of a value does not matter, since it is only nominal.

        A cast makes numbers of what has no dtype only if that is what it is for.
        """
        if self.elements:
            return f"{spec.dtype}$".startswith(self.elements)
        if "dtype" in self.conversion.changes:
            return "untyped" in self.requires
        return not NOMINAL.isdisjoint(spec.traits)

    def objection(self, spec: Spec) -> str | None:
        """Say why `takes_value` is false, or return None."""
        dtype, axes, index_dtypes = spec.element, len(spec.shape), self.conversion.index_dtypes
        if not self.requires <= spec.traits:
            return f"it is for values that are {trait_text(min(self.requires - spec.traits))}"
        if not spec.traits <= self.takes:
            trait = min(spec.traits - self.takes)
            return f"it does not take values with the trait {trait_text(trait)}"
        if dtype not in self.dtypes and not self._takes_any_dtype(spec):
            return f"it does not take {dtype}"
        devices = self.devices
        if devices is not None and devices.isdisjoint({spec.device, device_type(spec.device)}):
            return f"it takes data on {', '.join(sorted(devices))}, not on {spec.device}"
        if not (self.ndims is None or axes in self.ndims or self._takes_rows(spec)):
            return f"it does not take arrays of {counted_axes(axes)}"
        if index_dtypes is not None and spec.index_dtype not in index_dtypes:
            return f"it does not take indices of {spec.index_dtype}"
        return None

    def steps(self, spec: Spec, question: Question) -> Iterator[Step]:
        """Yield the steps that it can make of a value that it takes."""
        divided = question.request.like if self.target.name in question.goals else frozenset()
        division = divided & self.conversion.like
        if self.conversion.like and not division:
            return
        if "columns" in self.conversion.changes:
            yield from self._casts_of_columns(spec, question)
            return
        wrapped = question.formats.get(spec.wrapped or "") if self.target.wrapper else None
        for device in self._devices(spec, question):
            unsupported = self.target.unsupported(device)
            for dtype, carrier in self._elements(spec, question):
                # A value proves that its format can hold its dtype, whatever is declared.
                unchanged = self.source is self.target and dtype == spec.dtype
                is_held = wrapped is None or dtype == spec.dtype or dtype in wrapped.holds(device)
                if unchanged or ((carrier or dtype) not in unsupported and is_held):
                    for order in self._orders(spec, question) if self.orders else (None,):
                        after = self._after(spec, dtype, carrier, device, order)
                        if division:
                            after = after._replace(traits=after.traits | division)
                        yield self._step(spec, after, order, question)

    def _devices(self, spec: Spec, question: Question) -> Iterable[str]:
        if PAGE_LOCKED in (self.devices or ()) and PAGE_LOCKED not in question.devices:
            return ()  # who wants page-locked memory names it
        if "device" not in self.conversion.changes:
            # Fresh memory of the host is ordinary memory.
            home = self.target.home(ordinary(spec.device) if self.writes else spec.device)
            return () if home is None else (home,)
        possible = self.conversion.result.devices or self.target.devices
        return [
            device
            for device in question.devices
            if (device if device == PAGE_LOCKED else device_type(device)) in possible
            and self.target.home(device) == device
            and not matches(spec.device, device)
        ]

    def _elements(self, spec: Spec, question: Question) -> Iterator[tuple[str | None, str | None]]:
        """Yield the pairs of dtype and carrier that the result may have."""
        if self.bits == "carry":
            carrier = None if spec.carrier else bit_carrier(spec.dtype)
            if carrier in self.target.dtypes:
                yield spec.dtype, carrier
        elif self.bits == "restore":
            if spec.carrier and spec.dtype in self.target.dtypes:
                yield spec.dtype, None
        elif "dtype" not in self.conversion.changes or spec.carrier:
            # The number that stands for a null depends on the dtype: another one that is asked for
            # is left to a conversion that changes it, and needs no check.
            asked = question.request.dtype
            is_checked_fill = self.conversion.checked and "drop_mask" in self.effects
            if is_checked_fill and asked not in {None, spec.dtype}:
                return
            holds = (spec.carrier or spec.dtype) in self.target.dtypes
            is_nominal = bool(self.elements) or not NOMINAL.isdisjoint(spec.traits - self.drops)
            if holds or is_nominal:
                yield spec.dtype, spec.carrier
        else:
            possible = self.conversion.result.dtypes or self.target.dtypes
            # For the same reason nulls are filled in the dtype of the result and in no other.
            final = "drop_mask" in self.effects and not possible.isdisjoint(question.dtypes)
            for dtype in dict.fromkeys(
                question.dtypes if final else (spec.dtype, *question.dtypes)
            ):
                if dtype in possible:
                    yield dtype, None

    def _orders(self, spec: Spec, question: Question) -> Iterable[str]:
        """Return the orders that the elements of the result may lie in."""
        traits = spec.traits if self.source.is_dense else frozenset()
        # Broadcast elements have no order to keep.
        keeps = "K" if "noncontiguous" in traits and "broadcast" not in traits else "C"
        turned = question.request.order == "F" and not ("K" in self.orders and traits >= FORTRAN)
        possible = (keeps, "C", "F") if turned else (keeps, "C")
        return [order for order in dict.fromkeys(possible) if order in self.orders]

    def _casts_of_columns(self, spec: Spec, question: Question) -> Iterator[Step]:
        """Yield the step that casts those columns of a table whose dtypes are asked for."""
        request, before = question.request, column_dtypes(spec)
        cast = cast_dtypes(before, request.by_column)
        if not cast or spec.wrapped:
            return
        after = with_columns(spec, cast)
        after = after._replace(traits=self._traits(after))
        safe = request.consents or all(preserves(own, new) for own, new in cast.items())
        # Columns that are not cast are shared; of those that are, nothing is.
        aliases = cast.keys() != before or "not_numbers" in spec.traits
        effects = self.effects if safe else self.effects | {"narrow"}
        # Where others are no numbers, only the function sees whether objects are some.
        objects = {own: new for own, new in request.by_column.items() if own == "untyped"}
        keywords: dict[str, object] = {"columns": cast | objects}
        yield self._made(spec, after, effects, keywords, self.conversion.cost, aliases=aliases)

    def _step(self, spec: Spec, after: Spec, order: str | None, question: Question) -> Step:
        """Return the step to a spec, with the effects and the keywords that it has."""
        conversion, device = self.conversion, after.device
        derived = derived_effects(
            spec,
            after,
            self.target,
            safe=conversion.checked or question.request.consents,
            aliases=self._shares(spec),
        )
        effects = self.effects
        if not conversion.copies.isdisjoint(spec.traits):
            effects |= _COPY
        if "transfer" in effects and is_host_part(device) and device_type(spec.device) == "cpu":
            effects = effects - {"transfer"} | {"copy"}  # the bytes stay on the host
        keywords: dict[str, object] = {}
        if "dtype" in conversion.changes or self.bits:
            keywords["dtype"] = after.element
        if "device" in conversion.changes:
            keywords["device"] = device
        cost = conversion.cost
        if order is not None:
            if order != "C":  # which is the default
                keywords["order"] = order
            crosses = order == "F" or (order == "C" and "noncontiguous" in spec.traits)
            cost = (conversion.across or cost) if crosses else cost
        effects = effects | derived if derived else effects
        return self._made(spec, after, effects, keywords, cost)

    def _made(
        self,
        spec: Spec,
        after: Spec,
        effects: frozenset[str],
        keywords: dict[str, object],
        cost: Cost,
        *,
        aliases: bool | None = None,
    ) -> Step:
        """Return the step with some effects and keywords; None: it shares memory as declared."""
        conversion = self.conversion
        handed_off = self._handed_off(keywords)
        function, batch = self._function(), conversion.batch
        return Step(
            conversion.label,
            self.provenance,
            spec,
            after,
            effects,
            cost.seconds(spec, after),
            cost.latency,
            not effects.isdisjoint(WRITING),
            self._shares(spec) if aliases is None else aliases,
            partial(function, **keywords) if keywords else function,
            ("stream",) * conversion.stream + ("like",) * bool(conversion.like),
            self,
            self.fast_path,
            conversion.into,
            bool(conversion.replaces),
            self.roles,
            handed_off,
            batch and partial(batch, **keywords),
        )

    def _function(self) -> Callable[..., Value]:
        """Return its function, for what exports by the protocol in the value's place."""
        export = self.source.advanced.export.get(self.conversion.source)
        function = self.conversion.function
        return function if export is None else exported(function, export)

    def _handed_off(self, keywords: Mapping[str, object]) -> ValueFunction | None:
        """Return how the target adopts what the source offers by the protocol, if both can."""
        adopt, offers = self.conversion.adopt, self.source.advanced.offers
        if adopt is None or self.conversion.source not in offers:
            return None
        adopt = partial(adopt, **keywords) if keywords else adopt
        return hand_off(adopt, offers[self.conversion.source])

    @property
    def fast_path(self) -> ValueFunction | None:
        """Return the fast path that serves the source: its own, or a hand-off."""
        # One that was written for a protocol does not know the traits of this format.
        if self.conversion.fast_path and self.conversion.source == self.source.name:
            return self.conversion.fast_path
        # A copy is for the values that a view does not take, and it is not offered them.
        return None if self.writes else self._handed_off({})

    def _after(
        self, spec: Spec, dtype: str | None, carrier: str | None, device: str, order: str | None
    ) -> Spec:
        traits, element = self._traits(spec, order), carrier or dtype
        if self.target.wrapper is not None:
            return self._wrapped(spec, dtype, device)._replace(traits=traits)
        if self.target.is_dense:
            nbytes = spec.size * itemsize(element)
            name = self.target.name
            return Spec(name, dtype, device, spec.shape, traits, nbytes, carrier=carrier)
        nnz = spec.nnz
        if not self.is_sparse:
            nnz = None if self.target.layout == "affine" else spec.size if nnz is None else nnz
        return Spec(
            self.target.name,
            dtype,
            device,
            spec.shape,
            traits,
            _sparse_bytes(spec, element),
            nnz,
            self.conversion.result.index_dtype or spec.index_dtype,
            spec.code_dtype if self.is_sparse else None,
            carrier,
        )

    def _wrapped(self, spec: Spec, dtype: str | None, device: str) -> Spec:
        """Return the spec of the result in a wrapper: of the value, or of what the value wraps."""
        wrapped = spec.wrapped if self.source.wrapper is not None else self.source.name
        nbytes = spec.nbytes if dtype == spec.dtype else spec.size * itemsize(dtype)
        return spec._replace(
            format=self.target.name, wrapped=wrapped, dtype=dtype, device=device, nbytes=nbytes
        )

    def _shares(self, spec: Spec) -> bool:
        """Return whether the result of a value shares memory with it."""
        kinds = self.conversion.shares_only
        # What a table wraps is shared, whatever kinds its columns are.
        return self.aliases and bool(not kinds or spec.wrapped or kinds & spec.traits)

    def _traits(self, spec: Spec, order: str | None = None) -> frozenset[str]:
        traits = spec.traits - self.drops
        if not self._shares(spec):
            traits -= MEMORY_TRAITS
        else:
            within = self.source.framework == self.target.framework
            traits = shared_traits(traits, self.target.carries, within=within)
        if order in {"F", "K"}:
            traits |= ORDERED if order == "F" else spec.traits & ORDERED
        return traits | self.conversion.adds


def unwrapped(spec: Spec, source: Format, provenance: Provenance) -> Step:
    """Return the step from a value of a wrapper to the one that it wraps."""
    wrapper = source.wrapper
    assert wrapper is not None
    labels = LABELLED | ATTRIBUTES
    return Step(
        f"unwrap_{source.name.replace('.', '_')}",
        provenance,
        spec,
        spec._replace(format=str(spec.wrapped), traits=spec.traits - labels, wrapped=None),
        effects=frozenset() if labels.isdisjoint(spec.traits) else frozenset({"drop_labels"}),
        seconds=wrapper.seconds,
        latency=wrapper.seconds,
        writes=False,
        aliases=True,
        call=wrapper.unwrap,
        origin=(source.name, "wrapper"),
    )


def elements_named(dtypes: Iterable[str]) -> tuple[str, ...]:
    """Return the beginnings of names of dtypes that are not of numbers, in a set of dtypes."""
    return tuple(filterfalse(str.isidentifier, dtypes))


def _intersection(ndims: Set[int] | None, others: Set[int] | None) -> Set[int] | None:
    """Return the numbers of axes in both sets; None stands for all numbers."""
    if ndims is None or others is None:
        return others if ndims is None else ndims
    return ndims & others


def _sparse_bytes(spec: Spec, element: str | None) -> int:
    if spec.nnz is None:
        return spec.nbytes
    return spec.nbytes + spec.nnz * (itemsize(element) - itemsize(spec.element))
