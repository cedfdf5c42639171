"""Rules: the standards that libraries keep, and how a check says that one does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interop.testing._table import check

SPECIFICATION = "Python specification for DLPack"
HEADER = "dlpack.h"
STANDARD = "array API standard 2024.12"
NOTES, MAX_VERSION = f"{STANDARD}, __dlpack__, notes", f"{STANDARD}, __dlpack__, max_version"
COPY, DL_DEVICE = f"{STANDARD}, __dlpack__, copy", f"{STANDARD}, __dlpack__, dl_device"
STRIDES, DATA = f"{HEADER}, DLTensor.strides", f"{HEADER}, DLTensor.data"
READ_ONLY_FLAG = f"{HEADER}, DLPACK_FLAG_BITMASK_READ_ONLY"


def rule(
    role: str, sentence: str, source: str, *cases: str, must: bool = True
) -> Callable[..., Callable[[Any], Any]]:
    """Put a function into the table of checks, as that of a sentence of a standard."""
    return check(role, sentence, source=source, must=must, cases=cases)


class UntrueError(Exception):
    """The sentence is not true of the library; the text says what is in its place."""


def expect(condition: object, problem: str) -> None:
    """Raise if a sentence is not true."""
    if not condition:
        raise UntrueError(problem)


def shown(error: BaseException) -> str:
    """Return an error in one line: its type and the beginning of its text."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}" if text else type(error).__name__
