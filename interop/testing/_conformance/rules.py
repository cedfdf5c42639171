"""Rules: a sentence of the standard, and a function that checks whether a library keeps it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

SPECIFICATION = "Python specification for DLPack"
HEADER = "dlpack.h"
STANDARD = "array API standard 2024.12"


class Rule(NamedTuple):
    """A rule, and the check of it.

    Parameters
    ----------
    name : str
    sentence : str
        What a library does that keeps the standard, in our words.
    source : str
        Where the standard says so.
    must : bool
        Whether the standard demands it, or recommends it.
    run : callable
        ``run(case)`` returns nothing if the sentence is true; it raises one of the errors below.
    cases : tuple of str
        The names of the cases that it is run with.
    """

    name: str
    sentence: str
    source: str
    must: bool
    run: Callable[[Any], None]
    cases: tuple[str, ...]


class UntrueError(Exception):
    """The sentence is not true of the library; the text says what is in its place."""


class RefusalError(Exception):
    """The library refuses the case by an error; the text is that error's."""


class NotTriedError(Exception):
    """The case does not exist in the library, or on this machine."""


#: Checks by role (``"producer"``, ``"consumer"``, ``"interface"``) and name.
RULES: dict[str, dict[str, Rule]] = {"producer": {}, "consumer": {}, "interface": {}}


def rule(
    role: str, sentence: str, source: str, *cases: str, must: bool = True
) -> Callable[[Callable[[Any], None]], Callable[[Any], None]]:
    """Register the function below as the check of a rule; it is named after the function."""

    def register(function: Callable[[Any], None]) -> Callable[[Any], None]:
        name = function.__name__.replace("_", " ").strip()
        RULES[role][name] = Rule(name, sentence, source, must, function, cases)
        return function

    return register


def shown(error: BaseException) -> str:
    """Return an error in one line: its type and the beginning of its text."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}" if text else type(error).__name__


def expect(condition: bool, problem: str) -> None:
    """Raise if a sentence is not true."""
    if not condition:
        raise UntrueError(problem)
