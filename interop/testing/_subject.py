"""The subject: a plugin under test, and what it declares."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import EntryPoint
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from types import ModuleType
from typing import NamedTuple

from interop._api.inspection import Inspection
from interop._api.interop import Interop
from interop._model.extension import Declaration
from interop._model.format import Format
from interop._model.provenance import Provenance, normal
from interop._model.text import suggestion
from interop._planning.conversion import ResolvedConversion
from interop._registry.declared import Declared
from interop._registry.plugins import declarations_of, found, provenance_of
from interop.errors import PluginError


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
    """Something that makes promises: the plugin as a whole, or one of its declarations.

    Parameters
    ----------
    name : str
    checks : tuple of str
        The promises it makes.
    format : Format or None
    conversion : ResolvedConversion or None
    extension : Declaration or None
    """

    name: str
    checks: tuple[str, ...]
    format: Format | None = None
    conversion: ResolvedConversion | None = None
    extension: Declaration | None = None


def subjects_of(plugin: str | ModuleType) -> list[Subject]:
    """Return the plugins that a name or a module stands for.

    Raises
    ------
    PluginError
        There is no such plugin.
    """
    if isinstance(plugin, ModuleType):
        return [_of_module(plugin.__name__, getattr(plugin, "__file__", None) or "")]
    entries = [entry for entry, _ in found()]
    subjects = [of_entry(entry) for entry in entries if plugin in (entry.name, entry.value)]
    if not subjects:
        distribution = normal(plugin)
        subjects = [
            of_entry(entry) for entry in entries if normal(_distribution(entry)) == distribution
        ]
    if subjects:
        return sorted(subjects, key=lambda subject: subject.name)
    if not _is_importable(plugin):
        names = {name for e in entries for name in (e.name, _distribution(e))}
        move = suggestion(plugin, names, "interop.plugins() lists the plugins.")
        msg = (
            f"{plugin!r} is not the name of a plugin, of a distribution with one, or of a module "
            f"that can be imported; {move}"
        )
        raise PluginError(msg)
    return [_of_module(plugin, "")]


def of_entry(entry: EntryPoint) -> Subject:
    """Return the plugin of an entry point."""
    return Subject(entry.name, entry.module, "", _distribution(entry))


def _of_module(name: str, file: str) -> Subject:
    for entry, _ in found():
        if entry.module == name:
            return of_entry(entry)
    if name == "__main__":
        msg = "a program that runs as __main__ cannot be loaded again; pass a module's name."
        raise PluginError(msg)
    return Subject(name, name, "" if _is_importable(name) else file)


def _is_importable(name: str) -> bool:
    """Return whether another process can import a module by its name."""
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _distribution(entry: EntryPoint) -> str:
    return provenance_of(entry).distribution


class Bench:
    """A subject, loaded into an instance of its own beside all installed plugins.

    Parameters
    ----------
    subject : Subject

    Attributes
    ----------
    interop : Interop
    registry : Registry
    problem : str
        Why it could not be loaded; "" if it was.
    faults : dict of str to str
        By format, what is wrong with its components, as far as they were tried; "" if nothing is.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.interop = Interop(costs={})
        self.registry = Inspection(self.interop).registry
        self.problem = ""
        self.faults: dict[str, str] = {}
        if subject.distribution:
            names = subject.name, subject.distribution
            for plugin in self.interop.plugins():
                if (plugin.name, plugin.distribution) == names:
                    self.problem = plugin.reason
        else:
            self._register(subject)
        self.problem = self.problem or self._problem_of_names()

    def _problem_of_names(self) -> str:
        """Say what the declarations name that nobody declares, or that they declare nothing."""
        conversions = [d for d in self.registry.conversions if self.declares(d.provenance)]
        formats = self.formats()
        if not conversions and not formats and not self.extensions():
            return (
                "it declares no format and no conversion; is its hook marked with @hookimpl, and "
                "called interop_declarations?"
            )
        for declared in conversions:
            conversion = declared.conversion
            name = name_of(declared)
            if conversion.source not in self.registry.sources:
                return f"{name} starts from {conversion.source!r}, which nobody declares"
            if conversion.target not in self.registry.formats:
                return f"{name} leads to {conversion.target!r}, which nobody declares"
        return ""

    def _register(self, subject: Subject) -> None:
        origin = Provenance(subject.name, subject.name, "")
        try:
            self.registry.register(declarations_of(load_module(subject), origin), origin)
        # Whatever a foreign module raises is a finding about that module.
        except Exception as error:  # noqa: BLE001
            self.problem = f"{type(error).__name__}: {error}"

    def formats(self) -> list[Format]:
        """Return the formats it declares."""
        provenance = self.registry.provenance
        formats = self.registry.formats.values()
        return [format_ for format_ in formats if self.declares(provenance[format_.name])]

    def extensions(self) -> list[Declaration]:
        """Return what it declares beside formats and conversions."""
        return [
            extension for extension, origin in self.registry.extensions() if self.declares(origin)
        ]

    def declares(self, origin: Provenance) -> bool:
        """Return whether a declaration is one of this plugin's."""
        subject = self.subject
        return origin.plugin == subject.name and origin.distribution in (
            subject.distribution,
            subject.name,
        )

    def conversions(self) -> Iterator[tuple[str, ResolvedConversion]]:
        """Yield the plugin's conversions from each format they start from, with their names."""
        formats, provenance = self.registry.formats, self.registry.provenance
        for declared in self.registry.conversions:
            name = declared.conversion.source
            is_own = self.declares(declared.provenance)
            if declared.conversion.target not in formats:
                continue
            if is_own and name in formats:
                yield name_of(declared), self._resolved(declared, formats[name])
            for exporter in formats.values():
                if exporter.name == declared.conversion.target:
                    continue  # no route leads by a protocol to the format itself
                # What others declare for a protocol holds for the formats of this plugin, too.
                is_concerned = self.declares(provenance[exporter.name])
                if name in exporter.exports and (is_concerned or (is_own and name not in formats)):
                    yield name_of(declared, exporter.name), self._resolved(declared, exporter)

    def _resolved(self, declared: Declared, source: Format) -> ResolvedConversion:
        return ResolvedConversion(
            declared, source, self.registry.formats[declared.conversion.target]
        )


def load_module(subject: Subject) -> ModuleType:
    """Import the module of a subject, by its name or from its file."""
    if not subject.file:
        return import_module(subject.module)
    if subject.module in sys.modules:
        return sys.modules[subject.module]
    spec = spec_from_file_location(subject.module, subject.file)
    if spec is None or spec.loader is None:
        msg = f"{subject.file} is not a module that Python can load; pass a module's name."
        raise PluginError(msg)
    module = sys.modules[subject.module] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def name_of(declared: Declared, exporter: str = "") -> str:
    """Return the name of a conversion in findings; `exporter` exports by its source."""
    conversion = declared.conversion
    name = f"{exporter or conversion.source} → {conversion.target}: {conversion.label}"
    if exporter:
        name += f" by {conversion.source}"
    if conversion.devices is not None and conversion.devices != frozenset({"cpu"}):
        name += f" on {', '.join(sorted(conversion.devices))}"
    return name + (f" if {', '.join(sorted(conversion.requires))}" if conversion.requires else "")
