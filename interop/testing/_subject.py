"""The subject: a plugin under test, and its promises, numbered.

The promises follow from declarations alone, so that two processes number them alike.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import EntryPoint
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from types import ModuleType
from typing import NamedTuple

from interop._api.inspection import Inspection
from interop._api.interop import Interop
from interop._model.extension import (
    Autodiff,
    Container,
    Declaration,
    DtypeNames,
    Namespaces,
    NoTrace,
    Problems,
)
from interop._model.format import Format
from interop._model.provenance import Provenance, normal
from interop._model.text import suggestion
from interop._planning.conversion import ResolvedConversion
from interop._registry.declared import Declared
from interop._registry.plugins import declarations_of, found, provenance_of
from interop.errors import PluginError

from ._trial import variants_of

#: The checks, each with the statement that it tests.
CHECKS: dict[str, str] = {
    "loading": "the plugin loads beside all others, and its declarations are well-formed",
    "imports": "importing it and reading its declarations imports no framework",
    "absence": "it loads where a framework is missing, and converting says how to install that",
    "describe": "specs match the values: format, dtype, shape, device and bytes",
    "memory": "the numbers lie at the addresses that it reports",
    "variants": "odd values can be made, are described as such, and hold the same numbers",
    "fast_path": "the fast path, and a batch, return what the planned route does, or nothing",
    "fast_key": "values with the same key have the same plans, and odd ones have no key",
    "copy": "copy=True gives memory of its own, and copy=False a view or a refusal",
    "components": "a value unpacked and packed again, or rebuilt from its components, is the same",
    "wrapper": "what is unwrapped holds the numbers, and wrapped again it has the same labels",
    "labels": "a value that is given the labels of another has them, and its own numbers",
    "fill": "writing into out= writes the numbers that were given",
    "values": "results hold the numbers that were given, whatever the dtype, shape and layout",
    "dtype": "results have the promised dtype",
    "shape": "results have the promised shape",
    "device": "results are on the promised device",
    "traits": "traits that it keeps are there, and traits that it drops are gone",
    "effects": "what happens is what is declared: a lost graph or mask, a move, a dense result",
    "source": "the argument is unchanged, even if the conversion declined it",
    "sharing": "a view shares memory and a copy does not, by the addresses and by writing",
    "readonly": "read-only memory stays read-only, and copies can be written",
    "lifetime": "results outlive their sources, and sources their results",
    "refusals": "it is not offered what it does not declare to take",
    "threads": "several threads can call it at once, and it never reuses the memory of a result",
    "cost": "it takes about as long as declared, within an order of magnitude or so",
    "into": "writing into existing memory writes the same numbers",
    "state": "a call changes nothing of its process, and prints and warns of nothing",
    "leaks": "when its result is gone, no value, thread or open file stays behind",
    "dtype_names": "the dtypes of values have the names that it gives, and nothing else has one",
    "container": "it opens its containers, rebuilds them in order, and leaves all else alone",
    "namespaces": "it claims no module that makes no arrays",
    "autodiff": "gradients are those of the function, and of the pullback that a caller attaches",
    "no_trace": "functions of every kind can be marked, and still do what they did",
    "problems": "it finds problems with formats that exist, and says how to fix them",
    "extent": "every trait and dtype that is declared has been tried on some value",
}
OF_PLUGIN = ("loading", "imports", "absence")
OF_FORMAT = (
    "describe", "memory", "variants", "fast_path", "fast_key", "copy", "components", "wrapper",
    "labels", "fill", "extent",
)  # fmt: skip
OF_CONVERSION = (
    "values", "dtype", "shape", "device", "traits", "effects", "source", "sharing", "readonly",
    "lifetime", "copy", "refusals", "threads", "cost", "fast_path", "into", "state", "leaks",
    "extent",
)  # fmt: skip

#: The checks of other declarations, each with the field that tells two of a kind apart.
OF_EXTENSIONS: dict[type, tuple[str, str]] = {
    DtypeNames: ("dtype_names", "type"),
    Container: ("container", "requires"),
    Namespaces: ("namespaces", ""),
    Autodiff: ("autodiff", "format"),
    NoTrace: ("no_trace", ""),
    Problems: ("problems", ""),
}


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
    """

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.interop = Interop(costs={})
        self.registry = Inspection(self.interop).registry
        self.problem = ""
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
        if not conversions and not formats and not list(self._of_extensions()):
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

    def promises(self) -> list[Promise]:
        """Return all promises of the plugin, in a fixed order."""
        promises = [Promise(f"plugin {self.subject.name}", OF_PLUGIN)]
        if not self.problem:
            promises += (self._of_format(format_) for format_ in self.formats())
            promises += (self._of_conversion(*fields) for fields in self._conversions())
            promises += self._of_extensions()
        return list(_numbered(promises))

    def formats(self) -> list[Format]:
        """Return the formats it declares."""
        provenance = self.registry.provenance
        formats = self.registry.formats.values()
        return [format_ for format_ in formats if self.declares(provenance[format_.name])]

    def _of_extensions(self) -> Iterator[Promise]:
        for extension, origin in self.registry.extensions():
            if self.declares(origin) and type(extension) in OF_EXTENSIONS:
                check, field = OF_EXTENSIONS[type(extension)]
                words = check.replace("_", " ")
                name = f"{words} {getattr(extension, field)}" if field else words
                yield Promise(name, (check,), extension=extension)

    def declares(self, origin: Provenance) -> bool:
        """Return whether a declaration is one of this plugin's."""
        subject = self.subject
        return origin.plugin == subject.name and origin.distribution in (
            subject.distribution,
            subject.name,
        )

    def _of_format(self, format_: Format) -> Promise:
        is_described = format_.describe is not None or format_.wrapper is not None
        has = {
            "describe": is_described,
            "memory": format_.memory is not None,
            "variants": bool(variants_of(self.registry, format_)),
            "fast_path": format_.fast_path is not None,
            "fast_key": format_.fast_key is not None,
            "components": format_.components is not None,
            "wrapper": format_.wrapper is not None,
            # Those of a wrapper are tried with what it wraps.
            "labels": format_.labels is not None and format_.wrapper is None,
            "fill": format_.fill is not None,
            "copy": is_described,
            "extent": is_described,
        }
        checks = tuple(check for check in OF_FORMAT if has[check])
        return Promise(f"format {format_.name}", checks, format_)

    def _of_conversion(self, name: str, declared: Declared, source: Format) -> Promise:
        conversion, target = declared.conversion, self.registry.formats[declared.conversion.target]
        resolved = ResolvedConversion(declared, source, target)
        has = {
            "fast_path": resolved.fast_path is not None or conversion.batch is not None,
            "into": conversion.into is not None,
        }
        checks = tuple(check for check in OF_CONVERSION if has.get(check, True))
        return Promise(name, checks, None, resolved)

    def _conversions(self) -> Iterator[tuple[str, Declared, Format]]:
        """Yield the plugin's conversions, with their names and the formats they start from."""
        formats, provenance = self.registry.formats, self.registry.provenance
        for declared in self.registry.conversions:
            name = declared.conversion.source
            is_own = self.declares(declared.provenance)
            if declared.conversion.target not in formats:
                continue
            if is_own and name in formats:
                yield name_of(declared), declared, formats[name]
            for exporter in formats.values():
                if exporter.name == declared.conversion.target:
                    continue  # no route leads by a protocol to the format itself
                # What others declare for a protocol holds for the formats of this plugin, too.
                is_concerned = self.declares(provenance[exporter.name])
                if name in exporter.exports and (is_concerned or (is_own and name not in formats)):
                    yield name_of(declared, exporter.name), declared, exporter


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


def _numbered(promises: Iterable[Promise]) -> Iterator[Promise]:
    """Yield the promises; names that occur again get a number."""
    counts: Counter[str] = Counter()
    for promise in promises:
        counts[promise.name] += 1
        count = counts[promise.name]
        yield promise if count == 1 else promise._replace(name=f"{promise.name} ({count})")
