"""Threads: several call a conversion at once, and take turns at every line of the plugin."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

from interop._model.typing import Value

from ._subject import Subject

if TYPE_CHECKING:
    from _typeshed import TraceFunction

_CALLS = 3
#: Lines in one call at which a thread lets the others go first. Long loops are not followed to the
#: end.
_TURNS = 300


class Task(NamedTuple):
    """A call of a conversion, and a function that says what is wrong with its result."""

    call: Callable[[], Value]
    problem_of: Callable[[Value], str]


def problem_of_threads(label: str, tasks: list[Task], subject: Subject) -> str:
    """Say what goes wrong when several threads call a conversion; "" if nothing does.

    Parameters
    ----------
    label : str
    tasks : list of Task
        Calls with different numbers.
    subject : Subject
        The plugin in whose lines threads take turns.
    """
    results = [task.call() for task in tasks]
    for task, result in zip(tasks, results, strict=True):
        if problem := task.problem_of(result):
            return f"a later call of {label} changes the result of an earlier one: {problem}"
    problems: list[str] = []
    barrier = threading.Barrier(len(tasks))
    threads = [
        threading.Thread(target=_carry_out, args=(task, barrier, subject.module, problems))
        for task in tasks
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return f"{label} is not safe to call from several threads: {problems[0]}" if problems else ""


def _carry_out(task: Task, barrier: threading.Barrier, module: str, problems: list[str]) -> None:
    turns = _Turns(module)
    for _ in range(_CALLS):
        barrier.wait()
        turns.remaining = _TURNS
        try:
            sys.settrace(turns)
            try:
                result = task.call()
            finally:
                sys.settrace(None)
            problem = task.problem_of(result)
        # Any error that one thread alone does not get is a finding.
        except Exception as error:  # noqa: BLE001
            problem = f"{type(error).__name__}: {error}"
        if problem:
            problems.append(problem)


class _Turns:
    """Lets other threads go first before every line of a plugin's modules."""

    def __init__(self, module: str) -> None:
        self._package = module.partition(".")[0]
        self.remaining = 0

    def __call__(self, frame: FrameType, event: str, arg: object) -> TraceFunction | None:
        name = frame.f_globals.get("__name__", "")
        return self._line if name.partition(".")[0] == self._package else None

    def _line(self, frame: FrameType, event: str, arg: object) -> TraceFunction:
        if event == "line" and self.remaining:
            self.remaining -= 1
            time.sleep(1e-6)  # sleep(0) would not switch threads
        return self._line
