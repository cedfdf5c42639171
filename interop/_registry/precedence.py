"""Precedence: which distribution owns a place that several want.

A *place* is something that callers or the planner look up: a word or an object that stands for a
format, a protocol's attribute, a kind of step from one format to another, the class of dtype
objects. One distribution owns it: a bundled plugin, or else the one whose name comes first, unless
another says that it `replaces` that distribution. The order of loading does not matter. A
declaration that loses one of its places is dropped entirely, and a message names both.
Within one distribution, declarations may share a place, and a repeated one overwrites the earlier.

Classes are no places, because they are not known before their modules are imported: see `classes`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Set
from functools import partial
from typing import NamedTuple

from interop._model.conversion import Conversion
from interop._model.extension import Autodiff, Container, Declaration, DtypeNames
from interop._model.format import Format
from interop._model.provenance import HERE, OWN, Provenance, normal
from interop._model.unary import within

from .declared import Declared
from .validation import frozen, validated


class Conflict(NamedTuple):
    """A place that two declarations want, and which of them loses it."""

    place: str
    owner: Declared
    loser: Declared

    def __str__(self) -> str:
        owner, loser = self.owner.provenance, self.loser.provenance
        move = "Block"
        if hasattr(self.loser.declaration, "replaces"):
            move = f"Say replaces={{{owner.distribution!r}}} in the other declaration, or block"
        return (
            f"{self.place} is declared by {owner}{_label(self.owner)} and by "
            f"{loser}{_label(self.loser)}; that of {owner} counts. {move} one of them with "
            "INTEROP_DISABLE_PLUGINS."
        )


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
                Declared(sound(within(declaration, step)), origin, part_of=declaration)
                for step in declaration.unary
            ]
    return declared


def without_conflicts(declared: Iterable[Declared]) -> tuple[list[Declared], list[Conflict]]:
    """Return the declarations that own all of their places, and the conflicts that others lose."""
    latest: dict[Hashable, Declared] = {}
    for entry in sorted(declared, key=_precedence):
        latest.pop(_key(entry), None)  # a unary step has to come after its format
        latest[_key(entry)] = entry
    kept: list[Declared] = []
    formats: set[int] = set()  # those that are kept, by identity
    owners: dict[str, Declared] = {}
    conflicts = []
    for entry in latest.values():
        if not _is_whole(entry, formats):
            continue
        places = [*_places(entry)]
        rivals = {
            place: owner
            for place in places
            if (owner := owners.get(place)) is not None and _are_of_two(owner, entry)
        }
        lost = [place for place, rival in rivals.items() if not _replaces(entry, rival)]
        if lost:
            conflict = Conflict(min(lost), rivals[min(lost)], entry)
            if not _replaces(conflict.owner, entry):
                conflicts.append(conflict)
            continue
        if rivals:
            kept = _without(kept, entry, rivals.keys())
            formats = _formats(kept)
            owners = {place: other for other in kept for place in _places(other)}
        kept.append(entry)
        formats.add(id(entry.declaration))
        owners.update(dict.fromkeys(places, entry))
    return kept, conflicts


def _formats(kept: list[Declared]) -> set[int]:
    return {id(entry.declaration) for entry in kept}


def _is_whole(entry: Declared, kept: Set[int]) -> bool:
    """Return whether the format that a unary step is part of is kept; true of all other entries."""
    return entry.part_of is None or id(entry.part_of) in kept


def _are_of_two(entry: Declared, other: Declared) -> bool:
    """Return whether two declarations are of different distributions."""
    return entry.provenance.distribution != other.provenance.distribution


def _replaces(entry: Declared, other: Declared) -> bool:
    """Return whether one of two declarations says that it replaces the other's, and not both do."""
    return _names(entry, other) and not _names(other, entry)


def _names(entry: Declared, other: Declared) -> bool:
    replaced: Iterable[str] = getattr(entry.declaration, "replaces", ())
    return normal(other.provenance.distribution) in map(normal, replaced)


def _without(kept: list[Declared], entry: Declared, places: Set[str]) -> list[Declared]:
    """Return the declarations that remain beside one that replaces those in some places."""
    beside = [
        other for other in kept if not _replaces(entry, other) or places.isdisjoint(_places(other))
    ]
    formats = _formats(beside)
    return [other for other in beside if _is_whole(other, formats)]


def replacements(declared: Iterable[Declared]) -> Iterator[str]:
    """Yield texts that name the declarations which say that they replace others'."""
    for entry in declared:
        replaced = getattr(entry.declaration, "replaces", ())
        if replaced and entry.part_of is None:
            yield f"{min(_places(entry))}{_label(entry)} of {', '.join(sorted(replaced))}"


def _label(entry: Declared) -> str:
    label = getattr(entry.declaration, "label", "")
    return f" ({label})" if label else ""


def _precedence(entry: Declared) -> tuple[bool, bool, str]:
    origin = entry.provenance
    return origin.distribution != OWN, origin == HERE, origin.distribution


def _key(entry: Declared) -> Hashable:
    """Return what a declaration shares with those of its distribution that it overwrites."""
    declaration = entry.declaration
    what: Hashable = declaration[0]
    if isinstance(declaration, Conversion):
        what = (
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
            declaration.label,
        )
    return entry.provenance.distribution, type(declaration), what


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
