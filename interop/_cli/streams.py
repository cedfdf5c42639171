"""Streams: the standard streams as the command needs them, whatever they are connected to.

Where an encoding lacks a character, ASCII stands for it. What cannot be written ends the command:
silently, and with 0, once nobody reads it any more, as behind ``| head``; else with a sentence.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

#: What stands for a character that an encoding lacks. All others are escaped.
_PLAIN = {"→": "->", "—": "-", "–": "-", "µ": "u", "×": "x", "…": "...", "·": ".", "✗": "x"}
#: How encoding does that, by its name among the handlers of Python's codecs.
PLAINLY = "interop.plainly"

#: Exit code of what was interrupted.
INTERRUPTED = 130


class _CannotWrite(Exception):  # noqa: N818 - it says what is wrong with a stream
    """A standard stream does not take what is written. The text says why."""


class _Descriptor(FileIO):
    """A file whose errors on writing differ from those of all other files."""

    def write(self, data: ReadableBuffer, /) -> Any:
        """Write bytes."""
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise _CannotWrite(error.strerror or str(error)) from None


def claim_standard_streams() -> None:
    """Keep the standard streams for what the command prints.

    Python's streams become copies of their own. Compiled code that prints to standard output then
    reaches standard error, even if it keeps its output until the process ends.
    """
    if sys.stderr is None:  # it is closed, and nothing else may get its number
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 2)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)
    if sys.stdout is None:
        raise SystemExit("interop: cannot write: standard output is closed")
    sys.stdout, sys.stderr = _copy(sys.stdout), _copy(sys.stderr)
    os.dup2(2, 1)


def _copy(stream: TextIO) -> TextIO:
    descriptor = BufferedWriter(_Descriptor(os.dup(stream.fileno()), "w"))
    return TextIOWrapper(descriptor, stream.encoding, PLAINLY, line_buffering=True)


def _plainly(error: UnicodeError) -> tuple[str, int]:
    """Return what stands for characters that an encoding lacks, and where they end."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacked = error.object[error.start : error.end]
    plain = (_PLAIN.get(c) or c.encode("ascii", "backslashreplace").decode() for c in lacked)
    return "".join(plain), error.end


codecs.register_error(PLAINLY, _plainly)


@contextmanager
def ends_in_order() -> Iterator[None]:
    """End the process with a code, and a sentence at most, if it cannot write or is interrupted."""
    try:
        yield
    except BrokenPipeError:
        _write_nowhere()
        raise SystemExit(0) from None
    except _CannotWrite as error:
        with suppress(_CannotWrite, BrokenPipeError):
            print(f"interop: cannot write: {error}", file=sys.stderr, flush=True)
        _write_nowhere()
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        print("interop: interrupted", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None


def _write_nowhere() -> None:
    """Lose what is still written as the process ends."""
    with open(os.devnull, "wb") as nothing:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nothing.fileno(), stream.fileno())
