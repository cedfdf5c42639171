"""What is registered: formats, conversions and dtype families, and who declared them.

Declaring an equal value again is harmless. Another value in the same place is a conflict, settled
by the larger `priority` of the two conversions, or else refused with the names of both.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

from interop._model.conversion import Conversion
from interop._model.cost import Cost
from interop._model.effect import EFFECTS
from interop._model.extension import Autodiff, Container, DtypeFamily
from interop._model.format import Format
from interop._model.spec import MEMORY_TRAITS, Spec
from interop.errors import ConflictError, PluginError, UnknownValueError

from .declared import HERE, Declared, Provenance
from .validation import flaw

_Function = TypeVar("_Function", bound=Callable[..., Any])

__all__ = ["Registry"]


#: Types whose descriptions are kept; a program that makes classes as it goes starts over.
_MOST_TYPES = 4096


class Registry:
    """Formats and conversions by name, and the recognition of values by type."""

    def __init__(self) -> None:
        self._costs: Mapping[str, Cost] = {}
        #: Counts changes, so that whoever caches knows when to forget.
        self.version = 0
        self.forget()

    def forget(self) -> None:
        """Forget all declarations."""
        self.formats: dict[str, Format] = {}
        self.provenance: dict[str, Provenance] = {}
        self.families: list[DtypeFamily] = []
        self.containers: list[Container] = []
        self.autodiffs: list[Autodiff] = []
        self.shields: list[Callable[[Any], None]] = []
        self._conversions: dict[tuple[object, ...], Declared] = {}
        self._describers: dict[type, Callable[[Any], Spec]] = {}
        self.version += 1

    @property
    def conversions(self) -> tuple[Declared, ...]:
        """All conversions in force, in the order of registration."""
        return tuple(self._priced(declared) for declared in self._conversions.values())

    def shield(self, function: _Function) -> _Function:
        """Keep the frameworks' compilers from tracing into a function, which is returned."""
        inner = getattr(function, "func", function)  # of a partial one
        if hasattr(inner, "__code__"):  # there is nothing to trace into in a built-in one
            for one in self.shields:
                one(inner)
        return function

    def price(self, costs: Mapping[str, Cost]) -> None:
        """Take the costs of a table in the place of those that were declared.

        Parameters
        ----------
        costs : mapping of str to Cost
            By `Declared.key`; the latency of a format's name is its `handling`. What is not in it
            keeps the cost that was declared.
        """
        self._costs = dict(costs)
        self.formats = {name: self._handled(one) for name, one in self.formats.items()}
        self.version += 1

    def _priced(self, declared: Declared) -> Declared:
        cost = self._costs.get(declared.key) if self._costs else None
        if cost is None:
            return declared
        return declared._replace(conversion=declared.conversion._replace(cost=cost))

    def _handled(self, one: Format) -> Format:
        cost = self._costs.get(one.name)
        return one if cost is None else one._replace(handling=cost.latency)

    def add(
        self,
        formats: Iterable[Format] = (),
        conversions: Iterable[Conversion] = (),
        families: Iterable[DtypeFamily] = (),
        provenance: Provenance = HERE,
        *,
        containers: Iterable[Container] = (),
        autodiffs: Iterable[Autodiff] = (),
        shields: Iterable[Callable[[Any], None]] = (),
    ) -> None:
        """Register declarations, all or none of them.

        Raises
        ------
        PluginError
            A declaration is malformed.
        ConflictError
            Another distribution has declared something else in the same place.
        """
        new_formats, new_conversions = list(formats), list(conversions)
        new_families = list(families)
        for one in new_formats:
            self._check_format(one, provenance)
        for each in new_conversions:
            _check_conversion(each, provenance)
        for family in new_families:
            _check(family, f"{provenance} declared the dtype family {family!r}")
        places = self._places(new_conversions, provenance)
        # New tables take the places of the old ones, through which other threads may be going.
        self.provenance = {**self.provenance, **{one.name: provenance for one in new_formats}}
        self.formats = {**self.formats, **{one.name: self._handled(one) for one in new_formats}}
        self._conversions = {**self._conversions, **places}
        self.families = [*self.families, *(f for f in new_families if f not in self.families)]
        self.containers = [*self.containers, *(c for c in containers if c not in self.containers)]
        self.autodiffs = [*self.autodiffs, *(a for a in autodiffs if a not in self.autodiffs)]
        self.shields = [*self.shields, *(s for s in shields if s not in self.shields)]
        self.version += 1
        self._describers = {}

    def _check_format(self, one: object, provenance: Provenance) -> None:
        if not isinstance(one, Format) or not one.name:
            msg = f"{provenance} declared {one!r}, which is not a named Format; return Formats."
            raise PluginError(msg)
        _check(one, f"{provenance} declared the format {one.name!r}")
        bad = [t for t in (*one.types, *named_by(one)) if ":" not in t]
        if bad:
            msg = f"format {one.name!r} names the type {bad[0]!r}; write it as 'module:Class'."
            raise PluginError(msg)
        if one.layout and not (one.components and one.take_apart and one.assemble):
            msg = (
                f"format {one.name!r} has the layout {one.layout!r} but lacks components, "
                "take_apart or assemble; declare all three."
            )
            raise PluginError(msg)
        known = self.formats.get(one.name)
        if known is not None and known._replace(handling=one.handling) != one:
            msg = (
                f"format {one.name!r} is declared by {self.provenance[one.name]} and, "
                f"differently, by {provenance}; rename one, or block one of them with "
                "INTEROP_DISABLE_PLUGINS."
            )
            raise ConflictError(msg)

    def _places(
        self, new: list[Conversion], provenance: Provenance
    ) -> dict[tuple[object, ...], Declared]:
        places: dict[tuple[object, ...], Declared] = {}
        for one in new:
            place = _place(one)
            known = places.get(place) or self._conversions.get(place)
            if known is None or known.conversion == one:
                places[place] = known or Declared(one, provenance)
            elif known.conversion.priority == one.priority:
                raise ConflictError(_conflict(known, one, provenance))
            elif known.conversion.priority < one.priority:
                places[place] = Declared(one, provenance)
        return places

    def describe(self, value: object) -> Spec:
        """Return the spec of `value`.

        Types are looked up among the modules that are already imported: a value of a framework
        can only exist if its framework is.

        Raises
        ------
        UnknownValueError
            No format and no protocol recognises the type.
        """
        describers = self._describers
        describe = describers.get(type(value))
        if describe is None:
            if len(describers) >= _MOST_TYPES:
                describers.clear()
            one = self.recognise(type(value))
            if one.inside is not None:
                describe = describers[type(value)] = partial(self._described_inside, one)
                return describe(value)
            if one.describe is None:
                msg = f"values of format {one.name!r} cannot be described; declare its describe."
                raise PluginError(msg)
            describe = describers[type(value)] = one.describe
        return describe(value)

    def _described_inside(self, one: Format, value: Any) -> Spec:
        """Return the spec of a holder: that of what is inside, with the holder's name."""
        assert one.inside is not None
        inner = one.inside(value)
        if inner is None and one.describe is not None:
            return one.describe(value)
        spec = self.describe(inner)
        if spec.inside:
            msg = (
                f"a {type(value).__qualname__} that holds a {type(inner).__qualname__} is not "
                "opened twice; convert what is inside of the latter."
            )
            raise UnknownValueError(msg)
        return spec._replace(format=one.name, inside=spec.format)

    def opened(self, value: Any) -> Any:
        """Return what is inside of a holder; any other value as it is."""
        inside = self.formats[self.describe(value).format].inside
        inner = None if inside is None else inside(value)
        return value if inner is None else inner

    def is_plain(self, type_: type, one: Format) -> bool:
        """Tell whether a type is one of a format's own, rather than a subclass of one.

        Of a protocol every type is its own.
        """
        return bool(one.protocol) or any(imported(name) is type_ for name in one.types)

    def recognise(self, type_: type) -> Format:
        """Return the format of which values of a type are, or of the first that shares it.

        Raises
        ------
        UnknownValueError
            No format and no protocol recognises the type.
        """
        known = self._imported_types()
        for base in type_.__mro__:
            if base in known:
                return known[base]
        for base, one in known.items():
            if issubclass(type_, base):  # abstract types, which do not stand in the MRO
                return one
        for one in self.formats.values():
            if one.protocol and hasattr(type_, one.protocol):
                return one
        msg = (
            f"no format recognises a {type_.__module__}.{type_.__qualname__}, and it offers no "
            "array protocol; register a Format for it, or give it __dlpack__ or __array__."
        )
        raise UnknownValueError(msg)

    def _imported_types(self) -> dict[type, Format]:
        known: dict[type, Format] = {}
        for one in self.formats.values():
            for name in one.types if one.describe or one.inside else ():
                found = imported(name)
                if isinstance(found, type):
                    known.setdefault(found, one)
        return known

    def carries(self, one: Format) -> frozenset[str]:
        """Return the traits a finished value of a format may have.

        Those of memory a composite has from its component arrays.
        """
        components = self.formats.get(one.components or "")
        if components is None:
            return one.carries
        return one.carries | (components.carries & MEMORY_TRAITS)

    def named_by_type(self, type_: type) -> tuple[str, ...]:
        """Return the formats that a type names in ``to=``: its framework's dense one, if any."""
        names = [
            one.name
            for one in self.formats.values()
            if any(imported(name) is type_ for name in named_by(one))
        ]
        dense = [name for name in names if "." not in name]
        return tuple(dense or names)

    def named(self, name: str) -> tuple[str, ...]:
        """Return the formats that a name stands for: itself, or all whose names begin with it."""
        if name in self.formats:
            return (name,)
        return tuple(one for one in self.formats if one.startswith(f"{name}."))

    def dtype_name(self, dtype: object) -> str | None:
        """Return the name of a framework's dtype object, or None if no family knows it."""
        for family in self.families:
            kind = imported(family.type)
            if isinstance(kind, type) and isinstance(dtype, kind):
                try:
                    return family.name(dtype)
                except TypeError:
                    continue
        return None


def named_by(one: Format) -> tuple[str, ...]:
    """Return the types that name a format in ``to=``."""
    return one.types if one.named_by is None else one.named_by


def imported(name: str) -> object:
    """Return what ``"module:attribute"`` names if its module is imported, else None."""
    module, _, attributes = name.partition(":")
    found: object = sys.modules.get(module)
    for attribute in attributes.split("."):
        found = getattr(found, attribute, None)
    return found


def _place(one: Conversion) -> tuple[object, ...]:
    """Return what makes two conversions the same: what they take, and what they make of it."""
    return (
        one.source,
        one.target,
        one.dtypes,
        one.devices,
        one.requires,
        one.ndims,
        one.index_dtypes,
        one.changes,
        one.to_dtypes,
        one.to_devices,
        one.bits,
        one.effects,
        one.name,
    )


def _conflict(known: Declared, one: Conversion, provenance: Provenance) -> str:
    return (
        f"the conversion {one.source} → {one.target} is declared by {known.provenance} "
        f"({known.conversion.label}) and by {provenance} ({one.label}) with the same priority "
        f"{one.priority}; give one a larger priority, or block one of them with "
        "INTEROP_DISABLE_PLUGINS."
    )


def _check_conversion(one: object, provenance: Provenance) -> None:
    if not isinstance(one, Conversion):
        msg = f"{provenance} declared {one!r}, which is not a Conversion; return Conversions."
        raise PluginError(msg)
    what = f"{provenance} declared the conversion {one.source} → {one.target} with"
    function: object = one.function
    if not callable(function):
        msg = f"{what} the function {function!r}, which cannot be called; give a callable."
        raise PluginError(msg)
    _check(one, what.removesuffix(" with"))
    unknown = sorted(one.effects - EFFECTS.keys())
    if unknown:
        msg = f"{what} the effect {unknown[0]!r}; the effects are {', '.join(EFFECTS)}."
        raise PluginError(msg)
    if one.changes - {"dtype", "device"} or one.bits not in (None, "pack", "unpack"):
        msg = f"{what} changes={sorted(one.changes)}, bits={one.bits!r}; see the reference."
        raise PluginError(msg)


def _check(one: object, what: str) -> None:
    """Refuse a declaration that cannot be planned with."""
    found = flaw(one)
    if found:
        msg = f"{what} with {found}; see the reference of interop.plugin for what it must be."
        raise PluginError(msg)
