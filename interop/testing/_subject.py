"""The subject: a plugin under test, and what it has promised, as work that can be numbered.

Everything here follows from declarations, so that two processes number it alike.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from types import ModuleType
from typing import NamedTuple

from interop._api.interop import Interop
from interop._model.format import Format
from interop._planning.step import ResolvedConversion
from interop._registry.declared import Declared, Provenance
from interop._registry.discovery import GROUP, enlist
from interop._registry.registry import Registry
from interop.errors import PluginError

__all__ = ["CHECKS", "Bench", "Promise", "Subject", "found"]

#: What is checked, and what each means.
CHECKS: dict[str, str] = {
    "loading": "the plugin can be loaded beside all others, and what it declares is well-formed",
    "imports": "importing it, and asking it for its declarations, imports no framework",
    "absence": "where a framework is missing it loads, and converting says how to install that",
    "describe": "specs are those of the values: format, dtype, shape, device and bytes",
    "memory": "the addresses told are where the numbers lie",
    "variants": "odd values can be made, are described as such, and hold the same numbers",
    "identity": "the shortcut for values that are finished returns them as they are",
    "copy": "copy=True gives memory of its own, and copy=False a view or a refusal",
    "components": "a value taken apart and put together, or handed over by components, is the same",
    "fill": "writing into out= writes the numbers that were given",
    "values": "results hold the numbers that were given, whatever the dtype, shape and layout",
    "dtype": "results have the dtype that is promised",
    "shape": "results have the shape that is promised",
    "device": "results are on the device that is promised",
    "traits": "what is said to be kept is kept, and what is said to be dropped is gone",
    "effects": "what happens is what is declared: a lost graph or mask, a move, a dense result",
    "source": "the argument is as it was, even if the conversion declined it",
    "sharing": "a view shares memory and a copy does not, by addresses and by writing there",
    "readonly": "what is read-only stays so, and what was copied can be written",
    "lifetime": "results outlive their sources, and sources their results",
    "refusals": "what it does not declare to take, it is not offered",
    "threads": "several threads can call it at once, and results are not used again",
    "cost": "it takes about as long as is declared, within an order of magnitude or so",
    "shortcut": "the shortcut does what the planned route does, or leaves it alone",
    "into": "writing into memory that is there already writes the same numbers",
}
OF_PLUGIN = ("loading", "imports", "absence")
OF_FORMAT = ("describe", "memory", "variants", "identity", "copy", "components", "fill")
OF_CONVERSION = (
    "values", "dtype", "shape", "device", "traits", "effects", "source", "sharing", "readonly",
    "lifetime", "copy", "refusals", "threads", "cost", "shortcut", "into",
)  # fmt: skip


class Subject(NamedTuple):
    """A plugin, named so that another process can load it.

    Parameters
    ----------
    name : str
        Of its entry point, or of its module.
    module : str
    file : str
        Where the module is, if it cannot be imported by its name; else "".
    distribution : str
        Of the entry point; "" for a module that is none.
    """

    name: str
    module: str
    file: str = ""
    distribution: str = ""


class Promise(NamedTuple):
    """Something that makes promises: the plugin as a whole, a format or a conversion.

    Parameters
    ----------
    name : str
    checks : tuple of str
        The promises it makes.
    format : Format or None
    edge : ResolvedConversion or None
    """

    name: str
    checks: tuple[str, ...]
    format: Format | None = None
    edge: ResolvedConversion | None = None


def found(plugin: str | ModuleType) -> list[Subject]:
    """Return the plugins that a name or a module stands for.

    Raises
    ------
    PluginError
        There is no such plugin.
    """
    if isinstance(plugin, ModuleType):
        return [_of_module(plugin.__name__, getattr(plugin, "__file__", None) or "")]
    entries = list(entry_points(group=GROUP))
    subjects = [_of_entry(one) for one in entries if plugin in (one.name, one.value)]
    if not subjects:
        wanted = _normal(plugin)
        subjects = [_of_entry(one) for one in entries if _normal(_owner(one)) == wanted]
    if subjects:
        return sorted(subjects, key=lambda one: one.name)
    if not _importable(plugin):
        msg = (
            f"{plugin!r} is neither a plugin's entry point, nor a distribution with one, nor a "
            "module that can be imported; see interop.plugins() for the names of those installed."
        )
        raise PluginError(msg)
    return [_of_module(plugin, "")]


def _of_entry(entry: EntryPoint) -> Subject:
    return Subject(entry.name, entry.module, "", _owner(entry))


def _of_module(name: str, file: str) -> Subject:
    for entry in entry_points(group=GROUP):
        if entry.module == name:
            return _of_entry(entry)
    if name == "__main__":
        msg = "a program that is run as __main__ cannot be loaded again; pass a module's name."
        raise PluginError(msg)
    return Subject(name, name, "" if _importable(name) else file)


def _importable(name: str) -> bool:
    """Tell whether another process can import a module by its name."""
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _owner(entry: EntryPoint) -> str:
    return entry.dist.metadata["Name"] if entry.dist else ""


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


class Bench:
    """A subject, loaded into an instance of its own beside all installed plugins.

    Parameters
    ----------
    subject : Subject

    Attributes
    ----------
    face : Interop
    registry : Registry
    problem : str
        Why it could not be loaded; "" if it was.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.face = Interop(costs={})
        self.registry: Registry = self.face._loaded()
        self.problem = ""
        if subject.distribution:
            own = [p for p in self.face.plugins() if p.name == subject.name]
            mine = [p for p in own if p.distribution == subject.distribution]
            self.problem = next((p.reason or p.state for p in mine if p.state != "loaded"), "")
        else:
            self._enlist(subject)

    def _enlist(self, subject: Subject) -> None:
        origin = Provenance(subject.name, subject.name, "")
        try:
            module = loaded(subject)
            formats, conversions = enlist(module, origin, self.registry)
            if not formats + conversions:
                self.problem = "it declares no format and no conversion"
        # Whatever a foreign module raises is a finding about that module.
        except Exception as error:  # noqa: BLE001
            self.problem = f"{type(error).__name__}: {error}"

    def promises(self) -> list[Promise]:
        """Return all that the plugin has promised, in a fixed order."""
        if self.problem:
            return [Promise(f"plugin {self.subject.name}", OF_PLUGIN)]
        promises = [
            Promise(f"plugin {self.subject.name}", OF_PLUGIN),
            *(self._of_format(one) for one in self.formats()),
            *(self._of_edge(edge, name) for name, edge in self._edges()),
        ]
        return list(_told_apart(promises))

    def formats(self) -> list[Format]:
        """Return the formats it declares."""
        formats = self.registry.formats.values()
        return [one for one in formats if self._mine(self.registry.provenance[one.name])]

    def _mine(self, origin: Provenance) -> bool:
        subject = self.subject
        return origin.plugin == subject.name and origin.distribution in (
            subject.distribution,
            subject.name,
        )

    def _of_format(self, one: Format) -> Promise:
        has = {
            "describe": one.describe is not None,
            "memory": one.memory is not None,
            "variants": bool(one.variants),
            "identity": one.identity is not None,
            "components": one.unpack is not None,
            "fill": one.fill is not None,
            "copy": one.describe is not None,
        }
        return Promise(f"format {one.name}", tuple(c for c in OF_FORMAT if has[c]), one)

    def _of_edge(self, edge: ResolvedConversion, name: str) -> Promise:
        one = edge.conversion
        lacks = {"shortcut": one.shortcut is None, "into": one.into is None}
        # A shortcut that was written for strangers does not serve this format's values.
        lacks["shortcut"] |= one.source != edge.source.name
        return Promise(name, tuple(c for c in OF_CONVERSION if not lacks.get(c)), None, edge)

    def _edges(self) -> Iterator[tuple[str, ResolvedConversion]]:
        formats = self.registry.formats
        for declared in self.registry.conversions:
            one = declared.conversion
            mine = self._mine(declared.provenance)
            if one.target not in formats:
                continue
            if mine and one.source in formats:
                yield (
                    _name(declared),
                    ResolvedConversion(declared, formats[one.source], formats[one.target]),
                )
            for speaker in formats.values():
                # What others declare for a protocol holds for the formats of this plugin, too.
                own = self._mine(self.registry.provenance[speaker.name])
                if one.source in speaker.speaks and (own or (mine and one.source not in formats)):
                    edge = ResolvedConversion(declared, speaker, formats[one.target])
                    yield _name(declared, speaker.name), edge


def loaded(subject: Subject) -> ModuleType:
    """Import the module of a subject, by its name or from its file."""
    if not subject.file:
        return import_module(subject.module)
    if subject.module in sys.modules:
        return sys.modules[subject.module]
    spec = spec_from_file_location(subject.module, subject.file)
    if spec is None or spec.loader is None:
        msg = f"{subject.file} is no module that Python can load; pass a module's name."
        raise PluginError(msg)
    module = sys.modules[subject.module] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _name(declared: Declared, speaker: str = "") -> str:
    """Return what findings call a conversion."""
    one = declared.conversion
    name = f"{speaker or one.source} → {one.target}: {one.label}"
    if speaker:
        name += f" by {one.source}"
    if one.devices is not None and one.devices != frozenset({"cpu"}):
        name += f" on {', '.join(sorted(one.devices))}"
    return name + (f" if {', '.join(sorted(one.requires))}" if one.requires else "")


def _told_apart(promises: Iterable[Promise]) -> Iterator[Promise]:
    """Yield the promises, those of the same name with numbers."""
    counted: Counter[str] = Counter()
    for one in promises:
        counted[one.name] += 1
        number = counted[one.name]
        yield one if number == 1 else one._replace(name=f"{one.name} ({number})")
