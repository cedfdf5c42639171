"""Work that is cut up among threads."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from interop import _threads
from interop.plugin import heed, spread

LARGE = 2**26


@pytest.fixture(autouse=True)
def three_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be three cores and no limit."""
    monkeypatch.setattr(_threads.os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    monkeypatch.setattr(_threads, "_limits", [])
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 1000])
def test_every_unit_is_done_once(count: int) -> None:
    """The parts cover the whole range, each unit once, and none of them is empty."""
    done: list[int] = []

    def work(start: int, stop: int) -> None:
        assert start < stop
        done.extend(range(start, stop))

    spread(work, count, LARGE)
    assert sorted(done) == list(range(count))


def test_small_work_stays_in_one_call() -> None:
    """What is not worth a thread is done here, in one call."""
    calls: list[tuple[int, int, int]] = []
    spread(lambda start, stop: calls.append((start, stop, threading.get_ident())), 100, 2**20)
    assert calls == [(0, 100, threading.get_ident())]


def test_large_work_is_done_side_by_side() -> None:
    """As many parts run at the same time as there are cores."""
    together = threading.Barrier(3, timeout=20)
    spread(lambda start, stop: together.wait() and None, 3, LARGE)


@pytest.mark.parametrize(("told", "expected"), [("2", 2), ("2,4", 2), ("9", 3), ("", 3), ("x", 3)])
def test_the_environment_limits_threads(
    monkeypatch: pytest.MonkeyPatch, told: str, expected: int
) -> None:
    """OMP_NUM_THREADS is heeded, and anything else it might say is not."""
    monkeypatch.setenv("OMP_NUM_THREADS", told)
    assert _threads.threads() == expected


def test_frameworks_limit_threads() -> None:
    """What a framework was told counts, and None is no limit."""
    heed(lambda: None)
    assert _threads.threads() == 3
    heed(lambda: 1)
    assert _threads.threads() == 1


def test_an_error_in_any_part_is_raised() -> None:
    """An exception in a thread is raised where the work was called for, after all have ended."""

    def work(start: int, stop: int) -> None:
        if stop == 300:
            msg = "the last part"
            raise KeyError(msg)

    with pytest.raises(KeyError, match="the last part"):
        spread(work, 300, LARGE)
    assert all(not thread.name.startswith("interop") for thread in threading.enumerate())


def test_work_is_done_where_no_thread_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the system gives no thread, all of the work is done here."""

    def refuse(self: threading.Thread) -> None:
        msg = "can't start new thread"
        raise RuntimeError(msg)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    done: list[int] = []
    spread(lambda start, stop: done.extend(range(start, stop)), 10, LARGE)
    assert done == list(range(10))


def test_a_forked_child_and_an_exiting_interpreter_copy(
    in_subprocess: Callable[[str], str],
) -> None:
    """A large array is copied after a fork, and while Python exits."""
    program = """
        import atexit, os
        import numpy as np
        import interop

        a = np.arange(4e6)
        assert (interop.convert(a, "numpy", copy=True) == a).all()
        child = os.fork()
        atexit.register(lambda: print((interop.convert(a, "numpy", copy=True) == a).all()))
        if child:
            assert os.waitpid(child, 0)[1] == 0
    """
    assert in_subprocess(program).split() == ["True", "True"]


def test_torch_limits_threads(in_subprocess: Callable[[str], str]) -> None:
    """torch.set_num_threads counts for copies that NumPy makes."""
    program = """
        import interop, torch
        from interop._threads import threads
        interop.plugins()
        torch.set_num_threads(1)
        print(threads())
    """
    assert in_subprocess(program).strip() == "1"
