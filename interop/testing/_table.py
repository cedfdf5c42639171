"""The table of checks: each is a function with a sentence, and one loop judges them all.

A check gets a case, which says what is tried and what is known of it. It answers "" if that is as
it should be, a problem if not, and `Untried` if it could not tell; or it yields several answers, of
which the worst counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from interop.errors import Declined

from ._notes import Notes
from ._report import UNTRIED
from ._sample import REFUSALS, NoSample, first_line

#: What a check is about: a plugin as a whole, a format, a conversion, one call of it or the result
#: of one; or arrays of a library, as DLPack or else, and its consumer. All others are about
#: declarations of a class.
PLUGIN, FORMAT, CONVERSION = "plugin", "format", "conversion"
CALL, RESULT = "call", "result"
PRODUCER, CONSUMER, INTERFACE = "producer", "consumer", "interface"

_Answers = str | Iterable[str] | None


class Untried(str):
    """Why a check could not be made."""

    __slots__ = ()


class Refused(NoSample):
    """A conversion could not be tried on a value; the text says why."""


class Check(NamedTuple):
    """A check.

    Parameters
    ----------
    name : str
    sentence : str
        What is true if it passes; "" for that of the check of formats that has its name.
    about : str or type
    function : callable
        ``function(case)``.
    applies : callable
        ``applies(declaration, registry)`` returns whether a declaration promises what it is about.
    source : str
        Of a check of a library: where the standard says so.
    must : bool
        Whether the standard demands it, or recommends it.
    cases : tuple of str
        The layouts and dtypes of the library's arrays that it is made with; () for one block.
    """

    name: str
    sentence: str
    about: str | type
    function: Callable[[Any], _Answers]
    applies: Callable[[Any, Any], object]
    source: str = ""
    must: bool = True
    cases: tuple[str, ...] = ()


#: All checks, in the order in which they are made.
TABLE: list[Check] = []


def check(
    about: str | type,
    sentence: str = "",
    applies: Callable[[Any, Any], object] = lambda declaration, registry: True,
    **fields: Any,
) -> Callable[[Callable[[Any], _Answers]], Callable[[Any], _Answers]]:
    """Put a function into the table, under its name."""

    def register(function: Callable[[Any], _Answers]) -> Callable[[Any], _Answers]:
        name = function.__name__.lstrip("_")
        TABLE.append(Check(name, sentence, about, function, applies, **fields))
        return function

    return register


def names(about: str | type) -> tuple[str, ...]:
    """Return the names of the checks of a kind."""
    return tuple(check.name for check in TABLE if check.about == about)


def judge(about: str | type, case: Any, notes: Notes, name: str, *, excused: bool = False) -> None:
    """Make all checks of a kind that are wanted, and note their answers.

    Parameters
    ----------
    about : str or type
    case : object
        Its `activity` is told before each check, which may end the process.
    notes : Notes
    name : str
        What the case is called in findings.
    excused : bool
        Whether errors are found elsewhere, so that a check that raises one was not made.
    """
    for check_ in TABLE:
        if check_.about != about or not notes.wants(check_.name):
            continue
        notes.check = check_.name
        if case.activity:
            notes.tell(check_.name, case.activity)
        try:
            answers = check_.function(case)
            for answer in [answers] if isinstance(answers, str) else answers or ():
                note(notes, check_.name, answer)
        except (NoSample, Declined) as reason:
            notes.skipped(reason, check_.name)
        except REFUSALS as error:
            text = f"{check_.name} of {name} fails: {type(error).__name__}: {error}"
            note(
                notes, check_.name, Untried(f"it failed: {error}") if excused else first_line(text)
            )


def note(notes: Notes, name: str, answer: str) -> None:
    """Note one answer of a check."""
    if isinstance(answer, Untried):
        notes.skipped(answer, name)
    else:
        notes.judge(name, answer)


def untried(declared: Iterable[str]) -> str:
    """Return the answer about declared traits and dtypes that no sample had."""
    words = ", ".join(sorted(declared))
    return Untried(f"{UNTRIED}{words}") if words else ""
