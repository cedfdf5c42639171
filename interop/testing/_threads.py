"""Threads: a conversion called by several at once, which take turns at every line of the plugin."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from ._subject import Subject

__all__ = ["problem_of_threads"]

#: A call of a conversion, and what tells what is wrong with its result.
Piece = tuple[Callable[[], Any], Callable[[Any], str]]

_CALLS = 3
#: Lines at which a thread lets the others go first, in one call; loops need not be followed to
#: their ends.
_TURNS = 300


def problem_of_threads(label: str, pieces: list[Piece], subject: Subject) -> str:
    """Say what goes wrong when a conversion is called more than once at a time; "" if nothing does.

    Parameters
    ----------
    label : str
    pieces : list
        Calls with different numbers.
    subject : Subject
        In whose lines threads are to take turns.
    """
    results = [call() for call, _ in pieces]
    for (_, wrong), result in zip(pieces, results, strict=True):
        if wrong(result):
            return f"a later call of {label} changes the result of an earlier one: {wrong(result)}"
    found: list[str] = []
    gate = threading.Barrier(len(pieces))
    threads = [
        threading.Thread(target=_calls, args=(piece, gate, subject.module, found))
        for piece in pieces
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return f"{label} is not safe to call from several threads: {found[0]}" if found else ""


def _calls(piece: Piece, gate: threading.Barrier, module: str, found: list[str]) -> None:
    call, wrong = piece
    turns = _Turns(module)
    for _ in range(_CALLS):
        gate.wait()
        turns.left = _TURNS
        try:
            sys.settrace(turns)
            try:
                result = call()
            finally:
                sys.settrace(None)
            problem = wrong(result)
        # Whatever goes wrong only in company is a finding.
        except Exception as error:  # noqa: BLE001
            problem = f"{type(error).__name__}: {error}"
        if problem:
            found.append(problem)


class _Turns:
    """Lets other threads go first before every line of a plugin's modules."""

    def __init__(self, module: str) -> None:
        self._package = module.partition(".")[0]
        self.left = 0

    def __call__(self, frame: FrameType, event: str, arg: object) -> Any:
        name = frame.f_globals.get("__name__", "")
        return self._line if name.partition(".")[0] == self._package else None

    def _line(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "line" and self.left:
            self.left -= 1
            time.sleep(1e-6)  # to sleep for no time at all would not let them
        return self._line
