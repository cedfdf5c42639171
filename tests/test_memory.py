"""How much memory is left, and how bytes are written."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

from interop import _memory


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
