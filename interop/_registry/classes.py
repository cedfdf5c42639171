"""Classes: the formats of the instances of imported classes.

Formats name their types by string. A string stands for a class once its module is imported, so two
rules of precedence are applied then. A format needs a larger priority if its class, or a base of
it, belongs to another distribution's format. It also needs a priority if its class is abstract, so
that unrelated classes may match it. A type without the priority that it needs is passed over, as if
the format did not name it.
"""

from __future__ import annotations

import sys
from abc import ABCMeta
from collections.abc import Mapping
from functools import partial, reduce

from interop._model.foreign import error_text
from interop._model.format import Format, package

from .declared import Provenance
from .precedence import rank


class Classes:
    """The imported classes that some formats name.

    Parameters
    ----------
    formats : mapping of str to Format
    origins : mapping of str to Provenance
        Who declared each format.

    Attributes
    ----------
    problems : dict of str to str
        Why types are passed over, by the text that says so, and the formats that name them. Some
        are found when a class is looked up; `check` finds all.
    """

    def __init__(self, formats: Mapping[str, Format], origins: Mapping[str, Provenance]) -> None:
        self._origins = origins
        self._formats: dict[type, Format] = {}
        self.problems: dict[str, str] = {}
        for format_ in formats.values():
            for name in format_.types if format_.describe or format_.wrapper else ():
                self._add(name, format_)

    def _add(self, name: str, format_: Format) -> None:
        try:
            class_ = looked_up(name)
        # A module may raise anything for an attribute, for example if an extra is missing.
        except Exception as error:  # noqa: BLE001
            self._pass_over(name, format_, f"looking it up raised {error_text(error)}")
            return
        if not isinstance(class_, type):
            if class_ is None and self._is_misspelt(name, format_):
                self._pass_over(name, format_, "its module has no such class")
            return
        if _matches_others(class_) and self._needs_priority(format_):
            reason = "classes of others may match it, so it needs a stated priority"
            self._pass_over(name, format_, reason)
            return
        # Formats of one distribution may share a class, which the first of them has.
        other = self._formats.setdefault(class_, format_)
        if not self._are_of_one_distribution(format_, other):
            self._formats[class_] = self._owner(class_, format_, other)

    def _is_misspelt(self, name: str, format_: Format) -> bool:
        """Tell whether the module of a type is there and lacks it.

        Bundled plugins name types that some releases of a framework lack.
        """
        module = sys.modules.get(name.partition(":")[0])
        is_whole = not getattr(getattr(module, "__spec__", None), "_initializing", False)
        return module is not None and is_whole and not any(self._rank(format_))

    def format_of(self, class_: type) -> Format | None:
        """Return the format of the instances of a class, or None if no type has them."""
        named = [self._formats[base] for base in class_.__mro__ if base in self._formats]
        if named:
            return reduce(partial(self._owner, class_), named)
        for base, format_ in self._formats.items():
            try:
                if issubclass(class_, base):  # an abstract base, which does not stand in the MRO
                    return format_
            # The base may answer by code of its own.
            except Exception as error:  # noqa: BLE001
                name = f"{base.__module__}:{base.__qualname__}"
                reason = f"asking it for subclasses raised {error_text(error)}"
                self._pass_over(name, format_, reason)
        return None

    def check(self) -> dict[str, str]:
        """Return the problems of all imported types."""
        for class_ in self._formats:
            self.format_of(class_)
        return self.problems

    def _are_of_one_distribution(self, format_: Format, other: Format) -> bool:
        origins = self._origins
        return origins[format_.name].distribution == origins[other.name].distribution

    def _rank(self, format_: Format) -> tuple[int, bool]:
        return rank(format_, self._origins[format_.name])

    def _owner(self, class_: type, format_: Format, other: Format) -> Format:
        """Return the format that gets a class; `other` has the class, or a base of it, already."""
        if self._are_of_one_distribution(format_, other) or self._rank(format_) > self._rank(other):
            return format_
        self._pass_over(
            f"{class_.__module__}:{class_.__qualname__}",
            format_,
            f"it is, or derives from, a type of format {other.name!r}, declared by "
            f"{self._origins[other.name]}, so it needs a larger priority",
        )
        return other

    def _needs_priority(self, format_: Format) -> bool:
        return not any(self._rank(format_))

    def _pass_over(self, name: str, format_: Format, reason: str) -> None:
        owner = f"format {format_.name!r}, declared by {self._origins[format_.name]}"
        self.problems[f"the type {name} of {owner}, is passed over: {reason}."] = format_.name


def _matches_others(class_: type) -> bool:
    """Tell whether classes that do not derive from a class may count as its subclasses."""
    is_abstract = (
        isinstance(class_, ABCMeta) and package(class_.__module__) in sys.stdlib_module_names
    )
    return is_abstract or bool(getattr(class_, "_is_protocol", False))


def looked_up(name: str) -> object:
    """Return what ``"module:attribute"`` names if its module is imported, else None."""
    module, _, attributes = name.partition(":")
    value: object = sys.modules.get(module)
    for attribute in attributes.split("."):
        value = getattr(value, attribute, None)
    return value


def imported(name: str) -> object:
    """Return what `looked_up` returns, or None if looking it up raises."""
    try:
        return looked_up(name)
    except Exception:  # noqa: BLE001 - `Classes` reports it, with the format that names the type
        return None
