"""Memory: how much the host has left, and how much was needed."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import pytest

from interop._execution import memory


def test_available_memory_is_plausible() -> None:
    """More than nothing is available, and less than an exabyte."""
    available = memory.available_memory()
    assert available is None or 2**20 < available < 2**60


def test_without_meminfo_sysconf_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Systems other than Linux are asked through POSIX; where that is missing, nothing is known."""
    real = builtins.open

    def no_meminfo(path: Any, *args: Any, **keywords: Any) -> Any:
        if path == "/proc/meminfo":
            raise FileNotFoundError(path)
        return real(path, *args, **keywords)

    monkeypatch.setattr(builtins, "open", no_meminfo)
    monkeypatch.setattr(memory.os, "sysconf", {"SC_AVPHYS_PAGES": 10, "SC_PAGE_SIZE": 4096}.get)
    assert memory.available_memory() == 40960
    monkeypatch.delattr(memory.os, "sysconf")
    assert memory.available_memory() is None


def test_the_meter_sees_memory_that_was_used_and_given_back(
    in_subprocess: Callable[[str], str],
) -> None:
    """The meter reports the rise of the peak, and not what is left of it."""
    # In a process of its own, in which no memory lies about that could be used again.
    program = """
        from interop._execution.memory import PeakMeter
        meter = PeakMeter()
        before = meter.rise()
        block = bytearray(2**24)
        for place in range(0, len(block), 4096): block[place] = 1
        del block
        print(before if before is None else meter.rise() - before)
    """
    rise = in_subprocess(program).strip()
    if rise == "None":
        pytest.skip("this system keeps no mark of the peak that can be set back")
    assert 2**24 * 0.9 < int(rise) < 2**24 * 1.5


def test_where_the_mark_cannot_be_set_back_there_is_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If the file of the mark cannot be read or written, no number is made up."""
    monkeypatch.setattr(memory, "_RESET", "/nowhere/at/all")
    assert memory.PeakMeter().rise() is None
    monkeypatch.undo()
    meter = memory.PeakMeter()
    monkeypatch.setattr(memory, "_STATUS", "/nowhere/at/all")
    assert meter.rise() is None
