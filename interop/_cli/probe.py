"""The probe: imports a plugin's frameworks in a process of its own, and says how that went.

A framework that crashes or hangs when it is imported is a finding, and not the end of the command.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib import import_module
from time import perf_counter
from typing import Any, NamedTuple

from interop._model.extension import Problem
from interop.testing._process import Say, Worker, WorkerEnded

#: Categories of warnings on import that tell of a framework that does not work. The others are
#: about the code of whoever imports it.
_TELLING = (UserWarning, RuntimeWarning, ImportWarning)


class Probed(NamedTuple):
    """How it went to import the frameworks of one plugin.

    Parameters
    ----------
    seconds : dict of str to float
        For each module that could be imported, how long that took.
    versions : dict of str to str
        The ``__version__`` of each.
    errors : dict of str to str
        For each that could not be imported, why.
    warnings : tuple of str
        What they warned of meanwhile.
    problems : tuple of Problem
        What the plugin says is wrong.
    ended : str
        How the process has ended before it could say anything of this; "" if it could.
    """

    seconds: dict[str, float]
    versions: dict[str, str]
    errors: dict[str, str]
    warnings: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    ended: str = ""


def probe(
    distribution: str, plugin: str, modules: Mapping[str, list[str]], timeout: float
) -> Probed:
    """Import frameworks, and ask a plugin what is wrong with them, in another process.

    Parameters
    ----------
    distribution, plugin : str
    modules : mapping of str to list of str
        For the module of each framework, those of its modules that hold its types.
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
            # What crashes at the end has been imported all the same.
            if not fields or end.status is None:
                return Probed({}, {}, {}, ended=str(end))
    problems = tuple(_problem(*problem) for problem in fields.pop("problems"))
    return Probed(**{**fields, "warnings": tuple(fields["warnings"])}, problems=problems)


def _problem(
    problem: str,
    fix: str,
    formats: list[str],
    others: list[str] | None,
    devices: list[str] | None,
) -> Problem:
    """Return a problem as it was before it was sent as JSON."""
    return Problem(
        problem,
        fix,
        tuple(formats),
        None if others is None else tuple(others),
        None if devices is None else frozenset(devices),
    )


# ---------------------------------------------------------------------- in the other process


def say_how_imports_went(question: dict[str, Any], say: Say) -> None:
    """Import frameworks, and say what became of it."""
    seconds: dict[str, float] = {}
    versions: dict[str, str] = {}
    errors: dict[str, str] = {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for name, parts in question["modules"].items():
            start = perf_counter()
            try:
                module = import_module(name)
                for part in parts:
                    _import_if_there(part)
            # Whatever a foreign module raises when it is imported is what was asked for.
            except Exception as error:  # noqa: BLE001
                errors[name] = f"{type(error).__name__}: {_one_line(error)}"
            else:
                seconds[name] = perf_counter() - start
                versions[name] = str(getattr(module, "__version__", ""))
    telling = [warning.message for warning in caught if issubclass(warning.category, _TELLING)]
    say(
        {
            "seconds": seconds,
            "versions": versions,
            "errors": errors,
            "warnings": list(dict.fromkeys(map(_one_line, telling))),
            "problems": [] if errors else _problems(question["distribution"], question["plugin"]),
        }
    )


def _import_if_there(name: str) -> None:
    """Import a module that a framework may lack, in this version or for good."""
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise


def _problems(distribution: str, plugin: str) -> list[tuple[object, ...]]:
    """Return what a plugin says is wrong, of what JSON can hold."""
    from interop._registry.discovery import problems

    return [
        (*problem[:4], None if problem.devices is None else sorted(problem.devices))
        for problem in problems(distribution, plugin)
    ]


def _one_line(text: object) -> str:
    return " ".join(str(text).split())
