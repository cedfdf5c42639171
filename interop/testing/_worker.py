"""The worker: tries promises in another process, so that a crash is a finding and not the end.

A question is ``{"subject": …, "promise": number, "name": …, "checks": […], "skip": [checks]}``; the
promise's name is for the case that it is none here. The answers are
``{"at": [check, activity]}`` before anything that could end the process, and ``{"findings": […]}``.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

from ._notes import Notes
from ._process import Say
from ._promises import promises, trier
from ._report import NOT_EXERCISED, Finding
from ._sample import first_line
from ._subject import Bench, Promise, Subject


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
