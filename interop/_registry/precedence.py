"""Precedence: which distribution owns a place that several want.

A *place* is something that callers or the planner look up: a word or an object that stands for a
format, a protocol's attribute, a kind of step from one format to another, the class of dtype
objects. One distribution owns it: the one that states the largest `priority`, else a bundled
plugin, else the one whose name comes first. The order of loading does not matter. A declaration
that loses one of its places is left out whole. A message names both distributions, unless the one
that won has stated a priority: then the listing of plugins shows what it has stated it for. Within
one distribution, declarations may share a place.

Classes are places, too, but are not known before their modules are imported: see `classes`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from interop._model.conversion import Conversion
from interop._model.extension import Autodiff, Container, Declaration, DtypeNames
from interop._model.format import Format

from .declared import HERE, OWN, Provenance
from .expansion import unary_conversions
from .validation import frozen, validated


class Entry(NamedTuple):
    """A valid declaration, and where it comes from.

    Parameters
    ----------
    declaration : Declaration
    origin : Provenance
    key : hashable
        Different declarations with one key exclude each other, even within one distribution.
    places : frozenset of str
        Its places, as messages name them.
    part_of : str
        The format of which it is a unary step; "" for all other declarations.
    """

    declaration: Declaration
    origin: Provenance
    key: Hashable
    places: frozenset[str]
    part_of: str = ""

    @property
    def priority(self) -> int:
        """The stated priority."""
        return rank(self.declaration, self.origin)[0]

    @property
    def _label(self) -> str:
        label = getattr(self.declaration, "label", "")
        return f" ({label})" if label else ""


class Conflict(NamedTuple):
    """A place that two entries want, and which of them loses it."""

    place: str
    owner: Entry
    loser: Entry

    @property
    def is_override(self) -> bool:
        """Whether the owner has the place by a larger priority."""
        return self.owner.priority > self.loser.priority

    def __str__(self) -> str:
        owner, loser = self.owner, self.loser
        priorities = (
            f"whose priority {loser.priority} is less than {owner.priority}"
            if self.is_override
            else f"with the same priority {owner.priority}"
        )
        return (
            f"{self.place} is declared by {owner.origin}{owner._label} and, differently, by "
            f"{loser.origin}{loser._label} {priorities}; that of {owner.origin} counts. Give one a "
            "larger priority, or block one of them with INTEROP_DISABLE_PLUGINS."
        )


def rank(declaration: Declaration, origin: Provenance) -> tuple[int, bool]:
    """Return the stated priority of a declaration and whether it is bundled: the larger wins.

    Negative priorities count as none. Otherwise a declaration could lose on purpose, as if it were
    overridden, and nobody would be told of the conflict.
    """
    return max(0, getattr(declaration, "priority", 0)), origin.distribution == OWN


def entries_of(declarations: Iterable[Declaration], origin: Provenance) -> list[Entry]:
    """Return the entries of declarations and of the unary steps among them, or refuse them.

    All declarations, those of plugins and those of programs, are validated here and nowhere else,
    but for the bundled ones.
    """
    sound = frozen if origin.distribution == OWN else partial(validated, origin=origin)
    entries = []
    for unchecked in declarations:
        declaration = sound(unchecked)
        entries.append(_entry(declaration, origin))
        if isinstance(declaration, Format):
            steps = map(sound, unary_conversions(declaration))
            entries += [_entry(step, origin)._replace(part_of=declaration.name) for step in steps]
    return entries


def _entry(declaration: Declaration, origin: Provenance) -> Entry:
    places = frozenset(_places(declaration, origin))
    return Entry(declaration, origin, _key(declaration), places)


def settle(entries: Iterable[Entry]) -> tuple[list[Entry], list[Conflict]]:
    """Return the entries that own all of their places, and the conflicts that the others lose."""
    entries = list(entries)
    kept: dict[Hashable, Entry] = {}
    owners: dict[str, Entry] = {}
    conflicts = []
    for entry in sorted(entries, key=_precedence):
        whole = kept.get((Format, entry.part_of))
        if entry.part_of and (whole is None or whole.origin != entry.origin):
            continue  # its format is left out
        twin = kept.get(entry.key)
        if twin is not None and twin.declaration == entry.declaration:
            continue  # declaring the same twice is harmless
        lost = [place for place in entry.places if _is_lost(place, entry, owners)]
        if lost:
            conflicts.append(Conflict(min(lost), owners[min(lost)], entry))
        elif twin is not None:
            conflicts.append(Conflict(min(entry.places & twin.places), twin, entry))
        else:
            kept[entry.key] = entry
            for place in entry.places:
                owners.setdefault(place, entry)
    return [entry for entry in entries if kept.get(entry.key) is entry], conflicts


def overrides(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield texts that name the entries with a stated priority."""
    for entry in entries:
        if entry.priority:
            yield f"{min(entry.places)}{entry._label}, with priority {entry.priority}"


def _precedence(entry: Entry) -> tuple[object, ...]:
    origin = entry.origin
    priority, is_bundled = rank(entry.declaration, origin)
    return -priority, not is_bundled, origin == HERE, origin.distribution


def _is_lost(place: str, entry: Entry, owners: dict[str, Entry]) -> bool:
    owner = owners.get(place)
    return owner is not None and owner.origin.distribution != entry.origin.distribution


def _key(declaration: Declaration) -> Hashable:
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


def _places(declaration: Declaration, origin: Provenance) -> Iterator[str]:
    if isinstance(declaration, Format):
        yield from _places_of_format(declaration, origin)
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
