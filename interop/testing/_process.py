"""Processes: a `Worker` calls a function in another process, which may crash or hang.

Foreign code is run that way. Findings and reports repeat the worker's words for how a process
ended.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import IO, Any

#: ``say(answer)`` sends an answer to the process that asked; it must fit into JSON.
Say = Callable[[object], None]

#: The program of the worker. It imports nothing before its path is that of this process: another
#: path may begin with the working directory, and modules there must not replace those installed.
_PROGRAM = f"import sys; sys.path[:] = {{path}}; from {__name__} import main; main()"
#: What is written after the last question; JSON is never empty.
_NO_MORE = b"\n"
#: Seconds for a process to end once it can no longer answer.
_GRACE = 5.0


class WorkerEnded(Exception):  # noqa: N818 - it is what foreign code may do
    """A worker has ended or timed out; the text says how.

    Attributes
    ----------
    status : int or None
        Exit status of the process, the negative number of a signal; None if it timed out.
    """

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


class Worker:
    """Calls one function in a process of its own, which starts with the first question.

    If that process ends or is too slow, the next question starts another. It ends with this process
    at the latest, however that ends. The processes that it has started end with it, unless they
    have left its group. Use it as a context manager.

    Parameters
    ----------
    target : str
        ``"module:function"``. It is called as ``function(question, say)``, once for each question,
        with a `Say` to answer by.
    settings : mapping of str to str
        Further environment variables of the process.
    """

    def __init__(self, target: str, settings: Mapping[str, str] | None = None) -> None:
        self._target = target
        self._settings = settings or {}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, question: object) -> None:
        """Send a question, which must fit into JSON."""
        if self._process is None:
            self._start()
        # Not `seek`, which would move where the process writes.
        self._printed = os.fstat(self._stderr.fileno()).st_size
        self._write(json.dumps(question).encode() + b"\n")

    def _start(self) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        program = _PROGRAM.format(path=ascii(list(map(str, sys.path))))
        self._process = subprocess.Popen(
            # Without buffers, so that what the process says last stands last. `-P` keeps the
            # working directory out of the path.
            [sys.executable, "-u", "-P", *_flags(), "-c", program, self._target],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            env={**os.environ, **self._settings},
            start_new_session=True,  # so that there is a group to end
        )
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        arguments = (self._process.stdout, self._answers)
        threading.Thread(target=_pass_on, args=arguments, daemon=True).start()

    def _write(self, line: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        with suppress(OSError):  # `answer` reports that the process is gone
            self._process.stdin.write(line)
            self._process.stdin.flush()

    def answer(self, patience: float) -> Any:
        """Return the next answer.

        Parameters
        ----------
        patience : float
            Seconds after which the process is given up.

        Raises
        ------
        WorkerEnded
        """
        try:
            line = self._answers.get(timeout=patience)
        except queue.Empty:
            raise self._timeout(patience) from None
        if line is None:
            raise self._ended(_GRACE)
        return json.loads(line)

    def finish(self, patience: float) -> None:
        """Let the process end by itself, now that there are no more questions.

        Raises
        ------
        WorkerEnded
            It did not, or not with status 0.
        """
        self._write(_NO_MORE)
        ended = self._ended(patience)
        if ended.status != 0:
            raise ended

    def _timeout(self, patience: float) -> WorkerEnded:
        self.close()
        return WorkerEnded(f"timed out after {patience:.0f} s")

    def _ended(self, patience: float) -> WorkerEnded:
        """Wait for the process to end, and return how it ended."""
        assert self._process is not None
        try:
            status = self._process.wait(patience)
        except subprocess.TimeoutExpired:
            return self._timeout(patience)
        self._stderr.seek(self._printed)  # earlier lines belong to earlier questions
        text = how_it_ended(status, self._stderr.read().decode(errors="replace"))
        self.close()
        return WorkerEnded(text, status)

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        _kill(process)
        process.wait()
        self._stderr.close()
        for stream in (process.stdin, process.stdout):
            if stream:
                with suppress(OSError):
                    stream.close()


def how_it_ended(status: int, stderr: str) -> str:
    """Say how a process ended, by its exit status and the last line that it wrote."""
    if status >= 0:
        last = stderr.strip().rpartition("\n")[2]
        return f"the process exited with status {status}" + (f": {last}" if last else "")
    try:
        name = signal.Signals(-status).name
    except ValueError:
        name = f"signal {-status}"
    return f"the process died of {name}"


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its group. Its number stays that of the group while that has members."""
    if sys.platform == "win32":
        process.kill()
        return
    with suppress(ProcessLookupError, PermissionError):  # macOS's word for a group of zombies
        os.killpg(process.pid, signal.SIGKILL)


def _flags() -> list[str]:
    """Return the options of this process that decide what Python imports as it starts."""
    flags = {"-E": "ignore_environment", "-s": "no_user_site", "-S": "no_site"}
    return [flag for flag, name in flags.items() if getattr(sys.flags, name)]


def _pass_on(lines: IO[bytes] | None, answers: queue.SimpleQueue[bytes | None]) -> None:
    with suppress(ValueError):  # a process that is given up has its stream closed
        for line in lines or ():
            answers.put(line)
    answers.put(None)


# ---------------------------------------------------------------------- in the other process


def main() -> None:
    """Answer questions until there are no more; run in the worker's process."""
    # What frameworks print must not get among the answers, nor what they read among the questions.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    source = os.dup(sys.stdin.fileno())
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())
    warnings.simplefilter("ignore")
    questions: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(source, questions), daemon=True).start()
    module, _, name = sys.argv[1].partition(":")
    function: Callable[[object, Say], None] = getattr(import_module(module), name)

    def say(answer: object) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    while line := questions.get().strip():
        function(json.loads(line), say)


def _receive(source: int, questions: queue.SimpleQueue[bytes]) -> None:
    """Put every line of a pipe into a queue; once the pipe is closed, end this process.

    The asking process never closes it before this one has ended, so that it has ended itself. This
    thread notices while foreign code hangs in the main one. It reads no buffered stream, since
    Python cannot end while a thread waits for one.
    """
    begun = b""
    while part := os.read(source, 2**16):
        *lines, begun = (begun + part).split(b"\n")
        for line in lines:
            questions.put(line)
    if sys.platform == "win32":
        os._exit(1)
    os.killpg(0, signal.SIGKILL)
