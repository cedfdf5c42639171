"""The session: a worker tries one promise after the other, and is replaced if it crashes.

A question is ``{"subject": …, "promise": number, "name": …, "checks": […], "skip": [checks]}``; the
promise's name is for the case that it is none there. The answers are
``{"at": [check, activity]}`` before anything that could end the process, and ``{"findings": […]}``.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

from ._notes import READ_BY, Notes
from ._process import Say, Worker, WorkerEnded
from ._promises import promises, trier
from ._report import FAILED, NOT_EXERCISED, Finding
from ._sample import first_line
from ._subject import Bench, Promise, Subject

#: Seconds that the worker may be silent. Some frameworks compile for every shape.
_PATIENCE = 120.0

#: Seconds once it has been silent for too long. All imports were made by then.
_LESS_PATIENCE = 20.0

#: Checks of one promise that may end the process before the others are left out.
_CRASHES = 2

#: Waiting threads do not keep processors busy, so that costs can be measured on a busy machine.
_SETTINGS = {"OMP_WAIT_POLICY": "PASSIVE"}


#: The checks of a format on which all its conversions depend: nothing made of a value that is
#: described, placed, unpacked or unwrapped wrongly can be compared with a declaration.
_BASIC = frozenset({"describe", "memory", "variants", "components", "wrapper"})


class Session:
    """Tries promises in a process of its own, and starts another if that one ends.

    Use it as a context manager.

    Parameters
    ----------
    patience : float
        Seconds that the process may be silent.
    """

    def __init__(self, patience: float = _PATIENCE) -> None:
        self._worker = Worker(f"{__name__}:answer", _SETTINGS)
        self._patience = patience
        #: The first check of each format that failed, and that conversions depend on.
        self._faults: dict[tuple[Subject, str], str] = {}

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker."""
        self._worker.close()

    def findings(self, subject: Subject, number: int, promise: Promise) -> list[Finding]:
        """Return the findings about one promise.

        Parameters
        ----------
        subject : Subject
        number : int
            The position of the promise among those of the subject.
        promise : Promise
        """
        findings = self._outcomes(subject, number, promise)
        if promise.format is not None:
            failed = [f for f in findings if f.outcome == FAILED and f.check in _BASIC]
            if failed:
                self._faults[subject, promise.format.name] = failed[0].name
        if promise.conversion is None:
            return findings
        ends = (promise.conversion.source.name, promise.conversion.target.name)
        fault = next(filter(None, (self._faults.get((subject, name)) for name in ends)), "")
        return [_without_blame(finding, fault) for finding in findings]

    def _outcomes(self, subject: Subject, number: int, promise: Promise) -> list[Finding]:
        fatal: dict[str, Finding] = {}
        while len(fatal) < len(promise.checks):
            check, activity = promise.checks[0], "it started"
            question = {"subject": subject, "promise": number, "skip": list(fatal)}
            self._worker.send(question | {"name": promise.name, "checks": promise.checks})
            try:
                while "findings" not in (answer := self._worker.answer(self._patience)):
                    check, activity = answer["at"]
            except WorkerEnded as end:
                if check in fatal:
                    check = next(name for name in promise.checks if name not in fatal)
                reason = f"{end} when {activity}"
                # A reader that hangs is to blame where it is tried itself.
                is_excused = end.status is None and activity.startswith(READ_BY)
                outcome = NOT_EXERCISED if is_excused else FAILED
                fatal[check] = Finding(subject.name, promise.name, check, outcome, reason)
                if end.status is None:
                    self._patience = min(self._patience, _LESS_PATIENCE)
                # What has hung once, or crashed twice, would do so in every other check, too.
                if end.status is None or len(fatal) >= _CRASHES:
                    return [*fatal.values(), *_left_out(subject, promise, fatal, check)]
            else:
                return [*(Finding(*fields) for fields in answer["findings"]), *fatal.values()]
        return list(fatal.values())


def _left_out(
    subject: Subject, promise: Promise, fatal: Collection[str], last: str
) -> list[Finding]:
    """Return findings about the checks that are left out, since others ended the process."""
    reason = f"{last} of {promise.name} ended the process, and nothing else of it was tried"
    checks = [check for check in promise.checks if check not in fatal]
    return [Finding(subject.name, promise.name, c, NOT_EXERCISED, reason) for c in checks]


def _without_blame(finding: Finding, fault: str) -> Finding:
    """Return a finding about a conversion; a failure that a format may have caused is none."""
    if not fault or finding.outcome != FAILED:
        return finding
    reason = f"fix {fault} first, which failed"
    return finding._replace(outcome=NOT_EXERCISED, reason=reason)


# ---------------------------------------------------------------------- in the other process


def answer(question: dict[str, Any], say: Say) -> None:
    """Try one promise; called for each question that a `Session` sends."""
    bench, promised = _bench(Subject(*question["subject"]))
    number, skip = question["promise"], question["skip"]
    if number < len(promised):
        promise = promised[number]._replace(checks=tuple(question["checks"]))
        say({"findings": findings_of(bench, promise, say, skip)})
    else:  # a framework that is imported here alone shows what is wrong with the plugin
        name, reason = bench.subject.name, f"the plugin could not be loaded: {bench.problem}"
        checks = [check for check in question["checks"] if check not in skip]
        findings = [Finding(name, question["name"], c, NOT_EXERCISED, reason) for c in checks]
        say({"findings": findings})


@cache
def _bench(subject: Subject) -> tuple[Bench, list[Promise]]:
    bench = Bench(subject)
    return bench, promises(bench)


def findings_of(
    bench: Bench,
    promise: Promise,
    say: Say = lambda answer: None,
    skip: Collection[str] = (),
) -> list[Finding]:
    """Try one promise in this process, leaving out some checks."""
    checks = [check for check in promise.checks if check not in skip]
    current = promise.checks[0]

    def tell(check: str, activity: str) -> None:
        nonlocal current
        current = check
        say({"at": [check, activity]})

    notes = Notes(checks, tell)
    try:
        trier(promise)(bench, promise, notes)
    # Any failure of a plugin becomes a finding about that plugin here.
    except Exception as error:  # noqa: BLE001
        reason = first_line(f"{type(error).__name__}: {error}")
        notes.failed(current, f"{promise.name} raises {reason}")
    return notes.findings(bench.subject.name, promise.name)
