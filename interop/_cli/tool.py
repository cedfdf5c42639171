"""Tools: the programs of others that the command runs."""

from __future__ import annotations

import base64
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

from interop._text import excerpt
from interop.testing._process import Say, Worker, WorkerEnded


class ToolFailed(Exception):  # noqa: N818 - it says what a program did
    """A program did not do what it was run for. The text says why."""


class Tool(NamedTuple):
    """A program of the search path.

    Parameters
    ----------
    name : str
    path : str
    """

    name: str
    path: str

    @classmethod
    def named(cls, name: str) -> Self | None:
        """Return the program of a name, unless it is in the working directory.

        Windows looks there first.
        """
        path = shutil.which(name)
        if path is None or Path(path).absolute().parent == Path.cwd():
            return None
        return cls(name, path)

    def output(self, arguments: Sequence[str], text: str = "", *, patience: float) -> bytes:
        """Run it on a text, and return what it writes.

        A worker runs it, so that it ends with this process.

        Parameters
        ----------
        arguments : sequence of str
        text : str
        patience : float
            Seconds after which it is given up.

        Raises
        ------
        ToolFailed
        """
        with Worker(f"{__name__}:{run.__name__}") as worker:
            worker.send([[self.path, *arguments], text])
            try:
                status, output, reason = worker.answer(patience)
            except WorkerEnded as end:
                msg = f"{self.name}: {end}"
                raise ToolFailed(msg) from None
        if status is None:
            msg = f"{self.name} could not be run: {reason}"
            raise ToolFailed(msg)
        if status:
            msg = f"{self.name} ended with {status}: {excerpt(reason)}"
            raise ToolFailed(msg)
        return base64.b64decode(output)


# ---------------------------------------------------------------------- in the other process


def run(question: tuple[list[str], str], say: Say) -> None:
    """Run a program on a text, and send its status, its output and what went wrong."""
    command, text = question
    try:
        process = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    except OSError as error:
        say((None, "", str(error)))
        return
    reason = (process.stderr or process.stdout).decode(errors="replace")
    say((process.returncode, base64.b64encode(process.stdout).decode(), reason))
