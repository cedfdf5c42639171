"""The plugin as a whole: it loads, imports no framework, and copes where one is missing."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

from interop._model.conversion import Conversion, Cost
from interop._model.effect import DERIVED, WRITING
from interop._model.extension import Container, Declaration, NoTrace
from interop._model.format import Format, package
from interop._model.provenance import Provenance
from interop._recognition.installed import importable
from interop._registry.plugins import declarations_of
from interop._registry.precedence import declared_by, without_conflicts
from interop.errors import DeviceError, NotInstalledError, RefusedError

from ._notes import Notes
from ._process import Say, Worker, WorkerEnded
from ._subject import Bench, Promise, Subject, load_module, name_of
from ._table import PLUGIN, Untried, check, judge
from ._truth import hub

#: Seconds for a process that loads the plugin.
_PATIENCE = 120.0


class PluginCase(NamedTuple):
    """A plugin as a whole."""

    bench: Bench
    activity: str = ""


def try_plugin(bench: Bench, promise: Promise, notes: Notes) -> None:
    """Try what the plugin promises as a whole, and note what becomes of it."""
    if bench.problem:
        notes.failed("loading", f"the plugin does not load: {bench.problem}")
        notes.skipped("the plugin does not load")
    else:
        judge(PLUGIN, PluginCase(bench), notes, promise.name)


@check(PLUGIN, "the plugin loads beside all others, and its declarations are well-formed")
def loading(case: PluginCase) -> str:
    return _problem_of_declarations(case.bench)


@check(PLUGIN, "importing it and reading its declarations imports no framework")
def imports(case: PluginCase) -> str:
    bench, own = case.bench, package(case.bench.subject.module)
    formats = bench.registry.formats.values()
    modules = {name for format_ in formats for name in _modules(format_)} - {own}
    problem, imported = _in_fresh_process(say_imports.__name__, bench, modules)
    if not imported:
        return problem
    names = ", ".join(imported)
    return f"importing {bench.subject.module} imports {names}; import it inside functions"


@check(PLUGIN, "it loads where a framework is missing, and converting says how to install that")
def absence(case: PluginCase) -> str:
    bench = case.bench
    required = {package(format_.requires) for format_ in bench.formats()}
    # The suite cannot read values without these, or find the plugin itself.
    required -= {
        package(bench.subject.module),
        "",
        bench.registry.formats[hub(bench.interop)].requires,
    }
    required = {name for name in required if importable(name)}
    if not required:
        return Untried("its formats require no module beside its own")
    problem, problems = _in_fresh_process(say_problems_without.__name__, bench, required)
    return f"without {', '.join(sorted(required))} {problems[0]}" if problems else problem


def _problem_of_declarations(bench: Bench) -> str:
    """Say which declaration contradicts itself, or repeats another; "" if none does."""
    subject = bench.subject
    origin = Provenance(subject.name, subject.distribution or subject.name, "")
    declared = declared_by(declarations_of(load_module(subject), origin), origin)
    used = {id(entry) for entry in without_conflicts(declared)[0]}
    seen: list[Declaration] = []
    for entry in declared:
        what = entry.declaration
        name = name_of(entry) if isinstance(what, Conversion) else repr(what)
        if problem := contradiction(what):
            return f"{name} is declared with {problem}"
        if isinstance(what, Conversion):
            what = what._replace(cost=Cost(), name="")
        if id(entry) not in used or what in seen:
            return f"{name} is declared twice; leave one of them out"
        seen.append(what)
    return ""


def contradiction(declaration: Declaration) -> str:
    """Say what no declaration of its kind should say, though it can be planned with; or ""."""
    if (
        isinstance(declaration, Container)
        and package(declaration.requires) in sys.stdlib_module_names
    ):
        return f"requires={declaration.requires!r}, which every program may have imported"
    if isinstance(declaration, Conversion):
        if derived := sorted(declaration.effects & DERIVED):
            return (
                f"the effect {derived[0]!r}, which follows from the specs of the values on the "
                "way: interop adds it to every step that has it, so leave it out"
            )
        writes = declaration.effects & WRITING or "device" in declaration.changes
        if declaration.shares is False and not writes:
            return "shares=False and no effect that writes bytes"
    return ""


def _modules(format_: Format) -> set[str]:
    """Return the packages of the types and the module that a format names."""
    names = {package(name) for name in (*format_.types, format_.requires)}
    return names - {"", "interop", *sys.stdlib_module_names}


def _in_fresh_process(function: str, bench: Bench, modules: Iterable[str]) -> tuple[str, list[str]]:
    """Call a function of this module in a fresh process; return a problem and its answer."""
    with Worker(f"{__name__}:{function}") as worker:
        worker.send({"subject": bench.subject, "modules": sorted(modules)})
        try:
            answer = worker.answer(_PATIENCE)
            worker.finish(_PATIENCE)
        except WorkerEnded as end:
            return f"loading the plugin in a process of its own fails: {end}", []
    return "", answer


# ---------------------------------------------------------------------- in the fresh process


def say_imports(question: dict[str, Any], say: Say) -> None:
    """Load a plugin and its declarations, and send the names of the modules that this imported."""
    before = set(sys.modules)
    module = load_module(Subject(*question["subject"]))
    hook = getattr(module, "interop_declarations", list)
    for declaration in hook():
        if isinstance(declaration, NoTrace):  # which is asked while plugins are loaded
            declaration.mark(lambda: None)
    say(sorted((set(sys.modules) - before) & set(question["modules"])))


def say_problems_without(question: dict[str, Any], say: Say) -> None:
    """Load a plugin where some modules cannot be imported, and send the problems."""
    absent = frozenset(question["modules"])
    sys.meta_path.insert(0, _Absent(absent))
    bench = Bench(Subject(*question["subject"]))
    if bench.problem:
        say([f"the plugin does not load: {bench.problem}"])
        return
    formats = [format_ for format_ in bench.formats() if package(format_.requires) in absent]
    say([problem for format_ in formats for problem in _problems_without(bench, format_)])


class _Absent:
    """Hides some packages from the import system.

    Parameters
    ----------
    packages : frozenset of str
    """

    def __init__(self, packages: frozenset[str]) -> None:
        self._packages = packages

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse a module of these packages; called by the import system."""
        if package(name) in self._packages:
            msg = f"No module named {name!r}"
            raise ModuleNotFoundError(msg, name=name)


def _problems_without(bench: Bench, format_: Format) -> Iterable[str]:
    """Yield the problems of a format whose framework is missing."""
    name, module = format_.name, format_.requires
    if not format_.install:
        yield f"format {name} does not say in install= which command installs {module}"
    try:
        bench.interop.convert([1.0], name)
    except (DeviceError, NotInstalledError, RefusedError):
        pass
    except Exception as error:  # noqa: BLE001 - whatever is raised instead is the finding
        yield f"converting to {name} raises {type(error).__name__}: {error}"
    else:
        yield f"format {name} can be made, although it requires {module}"
