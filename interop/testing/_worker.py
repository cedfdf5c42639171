"""The worker: a process that tries promises, so that what ends it is a finding and not the end.

It reads one JSON object a line, ``{"subject": …, "promise": number, "skip": [checks]}``, and
answers ``{"at": [check, what]}`` before what could end it and ``{"findings": […]}`` in the end.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
from typing import Any, TextIO

from ._formats import try_format
from ._notes import Notes
from ._plugin import try_plugin
from ._report import Finding
from ._stages import try_conversion
from ._subject import Bench, Promise, Subject

__all__ = ["main"]


def main() -> None:
    """Answer until there are no more questions."""
    # Frameworks print; what they say must not get among the answers.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    warnings.simplefilter("ignore")
    benches: dict[Subject, tuple[Bench, list[Promise]]] = {}
    sys.path[:] = json.loads(sys.stdin.readline())
    for line in sys.stdin:
        asked = json.loads(line)
        subject = Subject(*asked["subject"])
        if subject not in benches:
            bench = Bench(subject)
            benches[subject] = bench, bench.promises()
        bench, promises = benches[subject]
        findings = _tried(bench, promises[asked["promise"]], frozenset(asked["skip"]), answers)
        _say(answers, {"findings": findings})


def _tried(bench: Bench, promise: Promise, skip: frozenset[str], answers: TextIO) -> list[Finding]:
    at = [promise.checks[0]]

    def tell(check: str, what: str) -> None:
        at[0] = check
        _say(answers, {"at": [check, what]})

    notes = Notes([check for check in promise.checks if check not in skip], tell)
    one: Any = try_plugin
    if promise.edge is not None:
        one = try_conversion
    elif promise.format is not None:
        one = try_format
    try:
        one(bench, promise, notes, skip)
    # This is where a plugin's failure of any kind becomes a finding about that plugin.
    except Exception as error:  # noqa: BLE001
        said = f"{type(error).__name__}: {error}".partition("\n")[0]
        notes.failed(at[0], f"{promise.name} raises {said}")
    return notes.findings(bench.subject.name, promise.name)


def _say(answers: TextIO, what: dict[str, Any]) -> None:
    answers.write(json.dumps(what) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
