"""The probe: imports a plugin's frameworks in another process, and reports how that went.

A framework that crashes or hangs on import is then a finding, and not the end of the command.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from time import perf_counter
from typing import Any, NamedTuple

from interop._model.blame import error_text
from interop._model.extension import Problem, Problems
from interop._model.provenance import Provenance
from interop._registry.plugins import declarations_of, found
from interop._text import excerpt
from interop.testing._process import Say, Worker, WorkerEnded

#: Categories of warnings on import that may mean that a framework does not work. Others are about
#: the importing code.
_TELLING = (UserWarning, RuntimeWarning, ImportWarning)


class Probed(NamedTuple):
    """The outcome of importing the frameworks of one plugin.

    Parameters
    ----------
    seconds : dict of str to float
        How long each import took; the modules that could not be imported are missing.
    versions : dict of str to str
        The ``__version__`` of each imported module.
    errors : dict of str to str
        Why the other modules could not be imported.
    warnings : tuple of str
        The warnings that were given meanwhile.
    problems : tuple of Problem
        The problems that the plugin reports.
    ended : str
        How the process ended before it could report anything; "" if it did report.
    """

    seconds: dict[str, float]
    versions: dict[str, str]
    errors: dict[str, str]
    warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    ended: str = ""


def probe(distribution: str, plugin: str, modules: Sequence[str], timeout: float) -> Probed:
    """Import frameworks, and ask a plugin what is wrong with them, in another process.

    Parameters
    ----------
    distribution, plugin : str
    modules : sequence of str
        The module of each framework.
    timeout : float
    """
    question = {"distribution": distribution, "plugin": plugin, "modules": modules}
    fields: dict[str, Any] = {}
    with Worker(f"{__name__}:{say_how_imports_went.__name__}") as worker:
        worker.send(question)
        try:
            fields = worker.answer(timeout)
            worker.finish(timeout)
        except WorkerEnded as end:
            # A crash at exit comes after the import, which went well.
            if not fields or end.status is None:
                return Probed({}, {}, {}, ended=str(end))
    problems = tuple(
        Problem(text, fix, formats, others, None if devices is None else frozenset(devices))
        for text, fix, formats, others, devices in fields.pop("problems")
    )
    return Probed(**{**fields, "warnings": tuple(fields["warnings"])}, problems=problems)


# ---------------------------------------------------------------------- in the other process


def say_how_imports_went(question: dict[str, Any], say: Say) -> None:
    """Import frameworks, and send a report."""
    seconds: dict[str, float] = {}
    versions: dict[str, str] = {}
    errors: dict[str, str] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name in question["modules"]:
            start = perf_counter()
            try:
                module = import_module(name)
            # Any error of a foreign module on import is a finding.
            except Exception as error:  # noqa: BLE001
                errors[name] = error_text(error)
            else:
                seconds[name] = perf_counter() - start
                versions[name] = str(getattr(module, "__version__", ""))
    telling = [warning.message for warning in caught if issubclass(warning.category, _TELLING)]
    say(
        {
            "seconds": seconds,
            "versions": versions,
            "errors": errors,
            "warnings": list(dict.fromkeys(map(excerpt, map(str, telling)))),
            "problems": [] if errors else _problems(question["distribution"], question["plugin"]),
        }
    )


def _problems(distribution: str, plugin: str) -> list[tuple[object, ...]]:
    """Return the problems that a plugin reports, ready for JSON."""
    return [
        (*problem[:4], None if problem.devices is None else sorted(problem.devices))
        for problem in problems(distribution, plugin)
    ]


def problems(distribution: str, name: str) -> list[Problem]:
    """Load one plugin, and return what it says is wrong with its framework."""
    for point, origin in found():
        if (origin.distribution, origin.plugin) == (distribution, name):
            declared = declarations_of(import_module(point.value), origin)
            finders = [finder for finder in declared if isinstance(finder, Problems)]
            return [problem for finder in finders for problem in _found_by_plugin(finder, origin)]
    return []


def _found_by_plugin(finder: Problems, origin: Provenance) -> list[Problem]:
    """Return what a plugin says is wrong with its framework, or that it cannot tell."""
    try:
        answers = list(finder.find())
        if others := [answer for answer in answers if not isinstance(answer, Problem)]:
            msg = f"it answered {others[0]!r}, which is no Problem"
            raise TypeError(msg)
        return answers
    except Exception as error:  # noqa: BLE001
        text = f"the Problems of plugin {origin.plugin!r} cannot tell: {error_text(error)}"
        return [Problem(text, f"report it to {origin.distribution}", ())]
