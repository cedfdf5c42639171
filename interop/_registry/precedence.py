"""Precedence: which distribution owns a place that several want.

A *place* is something that callers or the planner look up: a word or an object that stands for a
format, a protocol's attribute, a kind of step from one format to another, the class of dtype
objects. One distribution owns it: the one that states the largest `priority`, else a bundled
plugin, else the one whose name comes first. The order of loading does not matter. A declaration
that loses one of its places is left out whole. A message names both distributions, unless the one
that won has stated a priority: then the listing of plugins shows what it has stated it for. Within
one distribution, declarations may share a place.

Classes are no places, because they are not known before their modules are imported: see `classes`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from interop._model.conversion import Conversion
from interop._model.extension import Autodiff, Container, Declaration, DtypeNames
from interop._model.format import Format

from .declared import HERE, OWN, Declared, Provenance
from .expansion import unary_conversions
from .validation import frozen, validated


class Conflict(NamedTuple):
    """A place that two declarations want, and which of them loses it."""

    place: str
    owner: Declared
    loser: Declared

    @property
    def is_override(self) -> bool:
        """Whether the owner has the place by a larger priority."""
        return _stated(self.owner) > _stated(self.loser)

    def __str__(self) -> str:
        owner, loser = self.owner, self.loser
        priorities = (
            f"whose priority {_stated(loser)} is less than {_stated(owner)}"
            if self.is_override
            else f"with the same priority {_stated(owner)}"
        )
        return (
            f"{self.place} is declared by {owner.provenance}{_label(owner)} and, differently, by "
            f"{loser.provenance}{_label(loser)} {priorities}; that of {owner.provenance} counts. "
            "Give one a larger priority, or block one of them with INTEROP_DISABLE_PLUGINS."
        )


def rank(declaration: Declaration, origin: Provenance) -> tuple[int, bool]:
    """Return the stated priority of a declaration and whether it is bundled: the larger wins.

    Negative priorities count as none. Otherwise a declaration could lose on purpose, as if it were
    overridden, and nobody would be told of the conflict.
    """
    return max(0, getattr(declaration, "priority", 0)), origin.distribution == OWN


def declared_by(declarations: Iterable[Declaration], origin: Provenance) -> list[Declared]:
    """Return declarations, and the unary steps of the formats among them, or refuse them.

    All declarations, those of plugins and those of programs, are validated here and nowhere else,
    but for the bundled ones.
    """
    sound = frozen if origin.distribution == OWN else partial(validated, origin=origin)
    declared = []
    for unchecked in declarations:
        declaration = sound(unchecked)
        declared.append(Declared(declaration, origin))
        if isinstance(declaration, Format):
            declared += [
                Declared(sound(step), origin, part_of=declaration.name)
                for step in unary_conversions(declaration)
            ]
    return declared


def settle(declared: Iterable[Declared]) -> tuple[list[Declared], list[Conflict]]:
    """Return the declarations that own all of their places, and the conflicts that others lose."""
    kept: dict[Hashable, Declared] = {}
    owners: dict[str, Declared] = {}
    conflicts = []
    for entry in sorted(declared, key=_precedence):
        whole = kept.get((Format, entry.part_of))
        if entry.part_of and (whole is None or whole.provenance != entry.provenance):
            continue  # its format is left out
        key, places = _key(entry.declaration), [*_places(entry)]
        twin = kept.get(key)
        if twin is not None and twin.declaration == entry.declaration:
            continue  # declaring the same twice is harmless
        lost = [place for place in places if _is_lost(place, entry, owners)]
        if lost:
            conflicts.append(Conflict(min(lost), owners[min(lost)], entry))
        elif twin is not None:
            conflicts.append(Conflict(min({*places} & {*_places(twin)}), twin, entry))
        else:
            kept[key] = entry
            for place in places:
                owners.setdefault(place, entry)
    return list(kept.values()), conflicts


def overrides(declared: Iterable[Declared]) -> Iterator[str]:
    """Yield texts that name the declarations with a stated priority."""
    for entry in declared:
        if _stated(entry):
            yield f"{min(_places(entry))}{_label(entry)}, with priority {_stated(entry)}"


def _stated(entry: Declared) -> int:
    """Return the stated priority."""
    return rank(entry.declaration, entry.provenance)[0]


def _label(entry: Declared) -> str:
    label = getattr(entry.declaration, "label", "")
    return f" ({label})" if label else ""


def _precedence(entry: Declared) -> tuple[object, ...]:
    origin = entry.provenance
    priority, is_bundled = rank(entry.declaration, origin)
    return -priority, not is_bundled, origin == HERE, origin.distribution


def _is_lost(place: str, entry: Declared, owners: dict[str, Declared]) -> bool:
    owner = owners.get(place)
    return owner is not None and owner.provenance.distribution != entry.provenance.distribution


def _key(declaration: Declaration) -> Hashable:
    """Return what different declarations must not share, even within one distribution."""
    if isinstance(declaration, Format):
        return Format, declaration.name
    if not isinstance(declaration, Conversion):
        return declaration
    return (
        declaration.source,
        declaration.target,
        declaration.dtypes,
        declaration.devices,
        declaration.requires,
        declaration.ndims,
        declaration.index_dtypes,
        declaration.changes,
        declaration.result._replace(index_dtype=None),
        declaration.effects,
        declaration.name,
    )


def _places(entry: Declared) -> Iterator[str]:
    """Yield the places of a declaration, as messages name them."""
    declaration = entry.declaration
    if isinstance(declaration, Format):
        yield from _places_of_format(declaration, entry.provenance)
    elif isinstance(declaration, Conversion):
        yield _place_of_conversion(declaration)
    elif isinstance(declaration, DtypeNames):
        yield f"the names of {declaration.type} objects"
    elif isinstance(declaration, Autodiff):
        yield f"the differentiation of {declaration.format}"
    elif isinstance(declaration, Container):
        yield f"the containers of {declaration.requires}"


def _places_of_format(format_: Format, origin: Provenance) -> Iterator[str]:
    words = {format_.name, *format_.aliases}
    if origin != HERE:  # a program may add layouts to the framework of a plugin
        words.add(format_.framework)
    for word in {*words, *format_.types, *format_.naming_types}:
        yield f"the object {word}" if ":" in word else f"the name {word!r}"
    if format_.protocol:
        yield f"the protocol {format_.protocol}"


def _place_of_conversion(conversion: Conversion) -> str:
    """Return the place of a conversion: its formats, what it changes and which traits it requires.

    Dtypes, devices and numbers of axes are not part of it: the owner decides which it takes.
    """
    place = f"the conversion {conversion.source} → {conversion.target}"
    if conversion.changes:
        place += f" to another {' and '.join(sorted(conversion.changes))}"
    if conversion.requires:
        place += f" of {' and '.join(sorted(conversion.requires))} values"
    return place
