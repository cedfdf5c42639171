"""How much memory is left, and how bytes are written."""

from __future__ import annotations

import builtins
import subprocess
import sys
from typing import Any

import pytest

from interop._execution import memory as _memory


def test_available_memory_is_plausible() -> None:
    """More than nothing and less than an exabyte."""
    available = _memory.available_memory()
    assert available is None or 2**20 < available < 2**60


def test_without_meminfo_sysconf_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other systems than Linux are asked through POSIX, and none at all gives None."""
    real = builtins.open

    def no_meminfo(path: Any, *args: Any, **keywords: Any) -> Any:
        if path == "/proc/meminfo":
            raise FileNotFoundError(path)
        return real(path, *args, **keywords)

    monkeypatch.setattr(builtins, "open", no_meminfo)
    monkeypatch.setattr(_memory.os, "sysconf", {"SC_AVPHYS_PAGES": 10, "SC_PAGE_SIZE": 4096}.get)
    assert _memory.available_memory() == 40960
    monkeypatch.delattr(_memory.os, "sysconf")
    assert _memory.available_memory() is None


@pytest.mark.parametrize(
    ("nbytes", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2**50, "1024.0 TiB")]
)
def test_bytes_are_readable(nbytes: int, text: str) -> None:
    """Binary units, one decimal."""
    assert _memory.readable(nbytes) == text


def test_the_meter_sees_memory_that_was_used_and_given_back() -> None:
    """The rise is that of the peak, not of what is left."""
    code = (
        "from interop import _memory\n"
        "meter = _memory.PeakMeter()\n"
        "before = meter.rise()\n"
        "block = bytearray(2**24)\n"
        "for place in range(0, len(block), 4096): block[place] = 1\n"
        "del block\n"
        "print(before if before is None else meter.rise() - before)"
    )
    # In a process of its own, in which no memory lies about that could be used again.
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    if ran.stdout == "None\n":
        pytest.skip("this system keeps no mark of the peak that can be set back")
    assert 2**24 * 0.9 < int(ran.stdout) < 2**24 * 1.5


def test_where_the_mark_cannot_be_set_back_there_is_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither an unreadable nor an unwritable file makes a number up."""
    monkeypatch.setattr(_memory, "_RESET", "/nowhere/at/all")
    assert _memory.PeakMeter().rise() is None
    monkeypatch.undo()
    meter = _memory.PeakMeter()
    monkeypatch.setattr(_memory, "_STATUS", "/nowhere/at/all")
    assert meter.rise() is None
