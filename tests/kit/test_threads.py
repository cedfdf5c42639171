"""Threads: large work is divided among the cores that are free, and each part is done once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from interop.kit import limit_threads, parallel_for
from interop.kit import threads as _threads

LARGE = 2**26


@pytest.fixture(autouse=True)
def three_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be three cores and no limit."""
    monkeypatch.setattr(_threads.os, "sched_getaffinity", lambda _: {0, 1, 2}, raising=False)
    monkeypatch.setattr(_threads, "_limits", [])
    monkeypatch.setattr(_threads, "idle_cores", lambda: 3)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 1000])
def test_every_unit_is_done_once(count: int) -> None:
    """The parts cover the whole range, each unit once, and none of them is empty."""
    units: list[int] = []

    def work(start: int, stop: int) -> None:
        assert start < stop
        units.extend(range(start, stop))

    parallel_for(work, count, LARGE)
    assert sorted(units) == list(range(count))


def test_small_work_stays_in_one_call() -> None:
    """Work that is not worth a thread is done in the caller, in one call."""
    calls: list[tuple[int, int, int]] = []
    parallel_for(lambda start, stop: calls.append((start, stop, threading.get_ident())), 100, 2**20)
    assert calls == [(0, 100, threading.get_ident())]


def test_large_work_is_done_side_by_side() -> None:
    """As many parts run at a time as there are cores."""
    together = threading.Barrier(3, timeout=20)
    parallel_for(lambda start, stop: together.wait() and None, 3, LARGE)


@pytest.mark.parametrize(("cores", "several"), [(3, False), (4, True)])
def test_fresh_memory_is_touched_by_one_or_by_many(
    monkeypatch: pytest.MonkeyPatch, cores: int, several: bool
) -> None:
    """Work that is little more than page faults is divided only among four threads or more."""
    monkeypatch.setattr(_threads, "threads", lambda: cores)
    monkeypatch.setattr(_threads, "idle_cores", lambda: cores)
    parts: list[tuple[int, int]] = []
    parallel_for(lambda start, stop: parts.append((start, stop)), 100, LARGE, touching=True)
    assert (len(parts) > 1) == several
    assert sum(stop - start for start, stop in parts) == 100


@pytest.mark.parametrize(
    ("value", "expected"),
    [("2", 2), ("2,4", 2), ("9", 3), ("", 3), ("x", 3), ("٢", 3), ("²", 3), ("9" * 5000, 3)],
)
def test_the_environment_limits_threads(
    monkeypatch: pytest.MonkeyPatch, value: str, expected: int
) -> None:
    """A number in OMP_NUM_THREADS is a limit, and any other text is none."""
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert _threads.threads() == expected


def test_frameworks_limit_threads() -> None:
    """A framework's own limit counts, and None is no limit."""
    limit_threads(lambda: None)
    assert _threads.threads() == 3
    limit_threads(lambda: 1)
    assert _threads.threads() == 1


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        ("0.1 0.2 0.3 1/95 7", 4),
        ("0.1 0.2 0.3 3/95 7", 2),
        ("9 9 9 12/95 7", 1),
        ("", 8),
        ("?", 8),
        (None, 8),
    ],
)
def test_busy_cores_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, load: str | None, expected: int
) -> None:
    """No thread is started for a core that another program uses; a load that is missing or unreadable is none."""
    monkeypatch.undo()
    if load is not None:
        (tmp_path / "loadavg").write_text(load)
    monkeypatch.setattr(_threads, "_LOAD", str(tmp_path / "loadavg"))
    monkeypatch.setattr(_threads, "threads", lambda: 8)
    monkeypatch.setattr(_threads.os, "cpu_count", lambda: 4)
    started: list[object] = []
    monkeypatch.setattr(_threads, "start_new_thread", lambda *args: started.append(args))
    parallel_for(lambda start, stop: None, 100, LARGE)
    assert len(started) == expected - 1


def test_an_error_in_any_part_is_raised() -> None:
    """An exception in a thread is raised in the caller, after all threads have ended."""

    def work(start: int, stop: int) -> None:
        if stop == 300:
            msg = "the last part"
            raise KeyError(msg)

    with pytest.raises(KeyError, match="the last part"):
        parallel_for(work, 300, LARGE)
    assert all(not thread.name.startswith("interop") for thread in threading.enumerate())


def test_work_is_done_where_no_thread_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no thread can be started, the caller does all the work."""

    def refuse(*_: object) -> None:
        msg = "can't start new thread"
        raise RuntimeError(msg)

    monkeypatch.setattr(_threads, "start_new_thread", refuse)
    units: list[int] = []
    parallel_for(lambda start, stop: units.extend(range(start, stop)), 10, LARGE)
    assert units == list(range(10))


def test_a_late_helper_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that starts after the work is done is not waited for, and does nothing."""
    late: list[Callable[[], None]] = []
    monkeypatch.setattr(
        _threads, "start_new_thread", lambda help_, args: late.append(lambda: help_(*args))
    )
    units: list[int] = []
    parallel_for(lambda start, stop: units.extend(range(start, stop)), 100, LARGE)
    assert units == list(range(100))
    assert len(late) == 2
    for helper in late:
        helper()
    assert units == list(range(100))


def test_a_helper_at_work_is_waited_for() -> None:
    """The call returns when the last part is done, whichever thread has taken it."""
    caller, begun, starts = threading.get_ident(), threading.Event(), []

    def work(start: int, stop: int) -> None:
        if threading.get_ident() == caller:
            begun.wait(20)  # until somebody else has taken a part
        else:
            begun.set()
            threading.Event().wait(0.05)
        starts.append(start)

    parallel_for(work, 3, LARGE)
    assert sorted(starts) == [0, 1, 2]


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
        from interop.kit.threads import threads
        interop.plugins()
        torch.set_num_threads(1)
        print(threads())
    """
    assert in_subprocess(program).strip() == "1"
