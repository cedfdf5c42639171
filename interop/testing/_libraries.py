"""Libraries: whether one keeps what the DLPack standard asks of its producer and its consumer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

from interop._model.text import listed

from ._conformance import consumer, interfaces, producer  # they register their checks
from ._conformance.library import Library
from ._conformance.rules import UntrueError, shown
from ._process import Say, Worker, WorkerEnded
from ._sample import NoSample
from ._table import CONSUMER, INTERFACE, PRODUCER, TABLE, Check, Refused

#: Seconds that one check may take, the library's import included.
_PATIENCE = 120.0
#: How many cases of one reason a line names.
_MOST = 6
#: What the checks of a library are about, and what makes a case of each.
_MAKE: dict[str | type, Callable[[Library, str], Any]] = {
    PRODUCER: producer.Produced,
    CONSUMER: consumer.Consumed,
    INTERFACE: interfaces.Offered,
}
#: The checks of a library, each with the cases that it is made with.
_WORK = [
    (check, case)
    for role in _MAKE
    for check in TABLE
    if check.about == role
    for case in check.cases or ("one block",)
]

RIGHT, REFUSED, ADVICE, WRONG = "right", "refused", "not as recommended", "wrong"
ENDS, NOT_TRIED = "ends the process", "not tried"
#: What can come of a check, the worst last.
OUTCOMES = (NOT_TRIED, RIGHT, REFUSED, ADVICE, WRONG, ENDS)


class LibraryFinding(NamedTuple):
    """What came of one check of a library.

    Parameters
    ----------
    role : str
        ``"producer"``, ``"consumer"``, or ``"interface"`` for what is no DLPack.
    check : str
        Name of the check.
    case : str
        The layout or the dtype it was tried with.
    outcome : str
        ``"right"``; ``"refused"``, by an error, which the standard permits; ``"not as
        recommended"``; ``"wrong"``; ``"ends the process"``; ``"not tried"``.
    reason : str
        What is in the place of what the sentence says, or why it was not tried.
    sentence : str
        What the standard asks, in our words.
    source : str
        Where the standard says so.
    """

    role: str
    check: str
    case: str
    outcome: str
    reason: str
    sentence: str
    source: str

    def __str__(self) -> str:
        reason = f": {self.reason}" if self.reason else ""
        return f"{self.outcome}: {self.role}, {self.check} ({self.case}){reason}"


class LibraryReport(NamedTuple):
    """All findings about a library. It prints as text.

    Parameters
    ----------
    library, version : str
        Name and version of what was looked at.
    findings : tuple of LibraryFinding
    """

    library: str
    version: str
    findings: tuple[LibraryFinding, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong or ends the process, and something is right."""
        outcomes = {finding.outcome for finding in self.findings}
        return RIGHT in outcomes and not outcomes & {WRONG, ENDS}

    def of(self, outcome: str) -> tuple[LibraryFinding, ...]:
        """Return the findings with an outcome."""
        return tuple(finding for finding in self.findings if finding.outcome == outcome)

    def counts(self) -> dict[str, int]:
        """Return how often each outcome occurs."""
        counts = Counter(finding.outcome for finding in self.findings)
        return {outcome: counts[outcome] for outcome in reversed(OUTCOMES) if counts[outcome]}

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain dicts and lists, ready for JSON."""
        return {
            "library": self.library,
            "version": self.version,
            "ok": self.ok,
            "counts": self.counts(),
            "findings": [finding._asdict() for finding in self.findings],
        }

    def as_markdown(self) -> str:
        """Return the report as a table in Markdown, the worst first."""
        rows = [
            "| " + " | ".join(_cell(text) for text in (*f[:5], f.sentence, f.source)) + " |"
            for outcome in (ENDS, WRONG, ADVICE, REFUSED, NOT_TRIED)
            for f in self.of(outcome)
        ]
        heads = "role", "check", "case", "outcome", "instead", "what the standard asks", "source"
        head = "| " + " | ".join(heads) + " |\n" + "| --- " * len(heads) + "|"
        return "\n".join([f"# {self._title()}", "", head, *rows, ""])

    def _title(self) -> str:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in self.counts().items())
        return f"{' '.join(filter(None, (self.library, self.version)))}: {counts}"

    def __str__(self) -> str:
        return "\n".join([self._title(), *self._lines()])

    def _lines(self) -> Iterator[str]:
        # One reason often holds for many cases.
        for outcome in (ENDS, WRONG, ADVICE):
            alike: dict[LibraryFinding, list[str]] = {}
            for finding in self.of(outcome):
                alike.setdefault(finding._replace(case=""), []).append(finding.case)
            for finding, cases in alike.items():
                yield str(finding._replace(case=listed(cases, _MOST)))
                yield f"  the standard: {finding.sentence} ({finding.source})"
        for outcome in (REFUSED, NOT_TRIED):
            reasons: dict[str, list[str]] = {}
            for finding in self.of(outcome):
                reasons.setdefault(finding.reason, []).append(f"{finding.check} ({finding.case})")
            for reason, cases in reasons.items():
                yield f"{outcome}: {reason}"
                yield f"  {listed(cases, _MOST)}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def check_dlpack(
    library: str | ModuleType = "",
    *,
    make: str | Callable[..., Any] = "",
    from_dlpack: str | Callable[..., Any] = "",
    progress: Callable[[int, int, str], None] | None = None,
) -> LibraryReport:
    """Try whether a library keeps what the DLPack standard asks of it.

    No plugin is needed, and nothing else of `interop`. Each check runs in another process, so that
    what ends it is a finding. Memory on devices is not tried.

    Parameters
    ----------
    library : str or module
        The module whose arrays are looked at (``"torch"``, ``"jax.numpy"``); by default that of
        `make`.
    make : str or callable, optional
        What makes an array of a `numpy.ndarray`; by default the library's ``asarray`` or
        ``array``. As ``"module:function"``, or a function that its module holds.
    from_dlpack : str or callable, optional
        The library's consumer; by default its ``from_dlpack``.
    progress : callable, optional
        ``progress(done, total, what)``, called before each check and at the end.

    Returns
    -------
    LibraryReport
        It prints as text; ``as_markdown()`` and ``as_dict()`` are the same for pages and programs.

    Raises
    ------
    ValueError
        No library is named; or a function is not held by a module, so that no other process finds
        it.

    Examples
    --------
    >>> report = check_dlpack("numpy")
    >>> report.of("ends the process")
    ()
    """
    functions = _reference(make), _reference(from_dlpack)
    name = _module(library) or functions[0].partition(":")[0]
    if not name:
        raise ValueError("name the module of a library, or what makes its arrays as make=")
    subject = Library(name, *functions)
    findings = []
    with Worker(f"{__name__}:answer") as worker:
        for number, (check, case) in enumerate(_WORK):
            names = str(check.about), check.name.replace("_", " ")
            if progress:
                progress(number, len(_WORK), ": ".join(names))
            outcome = _outcome(worker, subject, number)
            findings.append(LibraryFinding(*names, case, *outcome, check.sentence, check.source))
    if progress:
        progress(len(_WORK), len(_WORK), "")
    return LibraryReport(name, _version(name), tuple(findings))


def _outcome(worker: Worker, library: Library, number: int) -> tuple[str, str]:
    worker.send([library, number])
    try:
        outcome, reason = worker.answer(_PATIENCE)
    except WorkerEnded as end:
        return ENDS, str(end)
    return (ADVICE if outcome == WRONG and not _WORK[number][0].must else outcome), reason


def answer(question: list[Any], say: Say) -> None:
    """Make one check in this process; called for each question that `check_dlpack` sends."""
    fields, number = question
    say(_made(Library(*fields), *_WORK[number]))


def _made(library: Library, check: Check, case: str) -> tuple[str, str]:
    try:
        subject = _MAKE[check.about](library, case)
    # Of a library that is looked at: whatever keeps it from making the case.
    except Exception as error:  # noqa: BLE001
        return NOT_TRIED, f"no such array could be made: {shown(error)}"
    try:
        check.function(subject)
    except UntrueError as error:
        return WRONG, str(error)
    except Refused as error:
        return REFUSED, str(error)
    except NoSample as error:
        return NOT_TRIED, str(error)
    # Whatever else a library raises where the standard has no error is a finding about it.
    except Exception as error:  # noqa: BLE001
        return WRONG, shown(error)
    return RIGHT, ""


def _module(library: object) -> str:
    """Return the name of a module."""
    if isinstance(library, str):
        return library
    if isinstance(library, ModuleType):
        return library.__name__
    kind = type(library)
    raise ValueError(
        f"a {kind.__qualname__} is no library; name its module ({kind.__module__!r}), and what "
        "makes such arrays as make="
    )


def _reference(function: str | Callable[..., Any]) -> str:
    """Return ``"module:function"``."""
    if isinstance(function, str):
        return function
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    if module in (None, "__main__") or "<" in name or not name:
        raise ValueError(
            f"{name or function!r} is not held by a module, and checks run in another process; "
            'name it as "module:function"'
        )
    return f"{module}:{name}"


@cache
def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, packages_distributions, version

    module = name.partition(".")[0]
    for distribution in packages_distributions().get(module, (module,)):
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return ""
