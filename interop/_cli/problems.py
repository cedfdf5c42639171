"""Problems: what plugins say is wrong with their frameworks, and what that disables."""

from __future__ import annotations

from collections.abc import Set
from importlib import import_module

from interop._model.blame import error_text
from interop._model.conversion import Conversion
from interop._model.extension import Problem, Problems
from interop._model.provenance import Provenance
from interop._registry.plugins import declarations_of, found


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


def disables(problem: Problem, conversion: Conversion) -> bool:
    """Return whether a conversion cannot be used because of a problem."""
    ends = conversion.source, conversion.target
    source, target = (_is_among(name, problem.formats) for name in ends)
    concerned = source or target
    if problem.others is not None:
        other_source, other_target = (_is_among(name, problem.others) for name in ends)
        concerned = (source and other_target) or (target and other_source)
    return concerned and (
        problem.devices is None
        or _needs(problem.devices, conversion.devices)
        or _needs(problem.devices, conversion.result.devices)
    )


def _needs(devices: Set[str], possible: Set[str] | None) -> bool:
    """Return whether what runs on the possible devices needs one that has a problem."""
    return bool(possible and devices & possible and "cpu" not in possible)


def _is_among(name: str, formats: tuple[str, ...]) -> bool:
    return any(name == format_ or name.startswith(f"{format_}.") for format_ in formats)
