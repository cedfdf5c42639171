"""The session: asks a worker about one promise after the other, and outlives it."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any

from ._report import FAILED, Finding
from ._subject import Promise, Subject

__all__ = ["Session"]

#: Seconds that the worker may be silent: some frameworks compile for every shape.
_PATIENCE = 120.0


#: Costs are to be those that are declared, and threads that wait are not to keep processors busy,
#: so that they can be measured on a busy machine, too.
_SETTINGS = {"INTEROP_CALIBRATION": "off", "OMP_WAIT_POLICY": "PASSIVE"}


class Session:
    """Tries promises in a process of its own, and starts another when that one dies.

    Use it as a context manager.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._said: IO[bytes] | None = None
        self._answers: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the worker."""
        process, self._process = self._process, None
        if process is not None:
            if process.stdin:
                with suppress(OSError):
                    process.stdin.close()
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()
        if self._said is not None:
            self._said.close()
            self._said = None

    def findings(self, subject: Subject, number: int, promise: Promise) -> list[Finding]:
        """Return what is found out about one promise.

        Parameters
        ----------
        subject : Subject
        number : int
            Of the promise, among those of the subject.
        promise : Promise
        """
        deadly: dict[str, Finding] = {}
        while len(deadly) < len(promise.checks):
            question = {"subject": subject, "promise": number, "skip": list(deadly)}
            at = [promise.checks[0], "it began"]
            for answer in self._asked(question):
                if "findings" in answer:
                    found = [Finding(*one) for one in answer["findings"]]
                    return [*found, *deadly.values()]
                at = answer["at"]
            check = at[0] if at[0] not in deadly else self._other(promise, deadly)
            reason = f"{promise.name} {self._end()} when {at[1]}"
            deadly[check] = Finding(subject.name, promise.name, check, FAILED, reason)
        return list(deadly.values())

    @staticmethod
    def _other(promise: Promise, deadly: dict[str, Finding]) -> str:
        return next(check for check in promise.checks if check not in deadly)

    def _asked(self, question: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the answers to a question, until it is answered or the worker dies."""
        process = self._process or self._started()
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
        except OSError:
            return
        while True:
            try:
                line = self._answers.get(timeout=_PATIENCE)
            except queue.Empty:
                return
            if line is None:
                return
            answer = json.loads(line)
            yield answer
            if "findings" in answer:
                return

    def _started(self) -> subprocess.Popen[str]:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the process
        process = self._process = subprocess.Popen(
            [sys.executable, "-m", "interop.testing._worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._said,
            text=True,
            encoding="utf-8",
            env={
                **os.environ,
                **_SETTINGS,
                "PYTHONPATH": os.pathsep.join(_path()),
            },
        )
        assert process.stdin is not None
        self._answers = queue.SimpleQueue()
        threading.Thread(
            target=_passed_on, args=(process.stdout, self._answers), daemon=True
        ).start()
        process.stdin.write(json.dumps(sys.path) + "\n")
        return process

    def _end(self) -> str:
        """Say how the worker ended, and forget it."""
        process = self._process
        assert process is not None
        try:
            code: int | None = process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            code = None
        last = self._last_words()
        self.close()
        if code is None:
            return f"did not come back within {_PATIENCE:.0f} s"
        if code < 0:
            return f"ended the process with {signal.Signals(-code).name}"
        return f"ended the process with exit code {code}{last}"

    def _last_words(self) -> str:
        if self._said is None:
            return ""
        self._said.seek(0)
        lines = self._said.read().decode(errors="replace").strip().splitlines()
        return f" ({lines[-1]})" if lines else ""


def _path() -> list[str]:
    """Return where modules are found, as far as the environment can say."""
    return [os.path.abspath(entry) for entry in sys.path if entry] or [os.getcwd()]


def _passed_on(lines: IO[str] | None, answers: queue.SimpleQueue[str | None]) -> None:
    with suppress(ValueError):
        for line in lines or ():
            answers.put(line)
    answers.put(None)
