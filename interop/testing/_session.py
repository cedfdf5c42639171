"""The session: a worker tries one promise after the other, and is replaced if it crashes."""

from __future__ import annotations

from ._process import Worker, WorkerEnded
from ._report import FAILED, Finding
from ._subject import Promise, Subject

__all__ = ["Session"]

#: Seconds that the worker may be silent. Some frameworks compile for every shape.
_PATIENCE = 120.0

#: Plans use the declared costs. Waiting threads do not keep processors busy, so that costs can be
#: measured on a busy machine as well.
_SETTINGS = {"INTEROP_CALIBRATION": "off", "OMP_WAIT_POLICY": "PASSIVE"}


class Session:
    """Tries promises in a process of its own, and starts another if that one ends.

    Use it as a context manager.
    """

    def __init__(self) -> None:
        self._worker = Worker("interop.testing._worker:answer", _SETTINGS)

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
        fatal: dict[str, Finding] = {}
        while len(fatal) < len(promise.checks):
            check, activity = promise.checks[0], "it started"
            self._worker.send({"subject": subject, "promise": number, "skip": list(fatal)})
            try:
                while "findings" not in (answer := self._worker.answer(_PATIENCE)):
                    check, activity = answer["at"]
            except WorkerEnded as end:
                if check in fatal:
                    check = next(name for name in promise.checks if name not in fatal)
                reason = f"{end} when {activity}"
                fatal[check] = Finding(subject.name, promise.name, check, FAILED, reason)
            else:
                return [*(Finding(*fields) for fields in answer["findings"]), *fatal.values()]
        return list(fatal.values())
