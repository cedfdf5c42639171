"""Workers: functions in a process of their own, which may print, crash, hang or never end."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator

import pytest

from interop.testing._process import Say, Worker, WorkerEnded, how_it_ended
from tests.processes import comes_true, lives


def obey(order: str, say: Say) -> None:
    """Do what is asked; run in the worker."""
    if order == "leave":
        os._exit(7)  # before it prints anything
    print("frameworks print what they like")
    if order == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif order == "hang":
        time.sleep(600)
    elif order == "raise":
        raise ValueError("nothing\nlast line")
    elif order == "exit":
        raise SystemExit(4)
    elif order == "mutter":
        print("an earlier complaint", file=sys.stderr)
    elif order == "warn":
        warnings.warn("nobody wants to know", stacklevel=1)
    elif order == "stay":
        threading.Thread(target=time.sleep, args=(600,)).start()
    elif order == "breed":
        say(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid)
    elif order == "read":
        say(sys.stdin.read())
    elif order == "path":
        say(sys.path)
    elif order == "setting":
        say(os.environ.get("INTEROP_TEST_SETTING"))
    say(os.getpid())


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    """A worker that obeys, in the environment of most users, where Python buffers what it prints."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with Worker("tests.testing.test_process:obey") as worker:
        yield worker


def _asked(worker: Worker, order: str, patience: float = 60) -> object:
    worker.send(order)
    return worker.answer(patience)


def test_one_process_answers_all_questions(worker: Worker) -> None:
    """It is another process than this one, and its prints and warnings disturb nobody."""
    number = _asked(worker, "nothing")
    assert isinstance(number, int)
    assert number != os.getpid()
    assert _asked(worker, "warn") == number


@pytest.mark.parametrize(
    ("order", "patience", "text", "status"),
    [
        ("crash", 60, "the process died of SIGSEGV", -signal.SIGSEGV),
        ("raise", 60, "the process exited with status 1: last line", 1),
        ("exit", 60, "the process exited with status 4: frameworks print what they like", 4),
        ("hang", 2, "timed out after 2 s", None),
    ],
)
def test_a_worker_that_ends_is_replaced_and_its_end_explained(
    worker: Worker, order: str, patience: float, text: str, status: int | None
) -> None:
    """However the process ends, the text says how, and the next question starts another."""
    first = _asked(worker, "nothing")
    with pytest.raises(WorkerEnded) as caught:
        _asked(worker, order, patience)
    assert str(caught.value) == text
    assert caught.value.status == status
    assert _asked(worker, "nothing") != first


def test_an_end_is_not_explained_by_what_an_earlier_question_printed(worker: Worker) -> None:
    """Only the last line since the question counts."""
    assert _asked(worker, "mutter")
    with pytest.raises(WorkerEnded) as caught:
        _asked(worker, "leave")
    assert str(caught.value) == "the process exited with status 7"


def test_a_worker_may_finish_by_itself(worker: Worker) -> None:
    """One that ends well says nothing; one that goes on for good is ended."""
    assert _asked(worker, "nothing")
    worker.finish(60)
    assert _asked(worker, "stay")
    with pytest.raises(WorkerEnded, match="timed out after 1 s"):
        worker.finish(1)


def test_a_worker_sees_the_same_modules_and_its_own_settings() -> None:
    """It imports from where this process does, and has variables of its own."""
    settings = {"INTEROP_TEST_SETTING": "some"}
    with Worker("tests.testing.test_process:obey", settings) as worker:
        assert _asked(worker, "path") == sys.path
        assert worker.answer(60)
        assert _asked(worker, "setting") == "some"


def test_a_worker_ends_with_what_it_has_started(worker: Worker) -> None:
    """Its processes end when it is closed, and when it has finished by itself."""
    for ending in (worker.close, lambda: worker.finish(60)):
        child = _asked(worker, "breed")
        assert isinstance(child, int)
        worker.answer(60)
        os.kill(child, 0)
        ending()
        assert comes_true(lambda child=child: not lives(child), 20)


def test_a_function_reads_no_questions(worker: Worker) -> None:
    """Its standard input is empty, so that no framework reads what it is asked."""
    assert _asked(worker, "read") == ""


def test_a_function_that_cannot_be_imported_is_told() -> None:
    """The last line of the traceback says what is wrong."""
    target, text = (
        "tests.testing.no_such_module:f",
        "No module named 'tests.testing.no_such_module'",
    )
    with Worker(target) as worker, pytest.raises(WorkerEnded, match=re.escape(text)):
        _asked(worker, "nothing")


def test_signals_without_a_name_are_numbered() -> None:
    """An exit status that is no known signal is still told."""
    assert how_it_ended(-11, "") == "the process died of SIGSEGV"
    assert how_it_ended(-99, "") == "the process died of signal 99"
    assert how_it_ended(1, "a\nlast line\n") == "the process exited with status 1: last line"
    assert how_it_ended(0, "") == "the process exited with status 0"
