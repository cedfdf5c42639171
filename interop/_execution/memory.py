"""Memory: how much of it the host has left, and how much was needed."""

from __future__ import annotations

import os

_MEMINFO = "/proc/meminfo"
#: Bytes of such a file; it has some 1,500.
_MOST = 2**16
_STATUS, _RESET = "/proc/self/status", "/proc/self/clear_refs"


def available_memory() -> int | None:
    """Return the bytes that the host can still hand out without swapping; None if unknown.

    On Linux this is ``MemAvailable`` of ``/proc/meminfo``, which counts caches that can be
    dropped; elsewhere the free pages that POSIX ``sysconf`` reports.
    """
    available = _size_in(_MEMINFO, "MemAvailable")
    if available is not None:
        return available
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def give_back() -> None:
    """Give the C library's free memory back to the system, where the library can."""
    import ctypes  # slow to import, and needed where times are measured

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


class PeakMeter:
    """Measures by how much this process's resident memory rises above where it was, at most.

    It reads the high-water mark that Linux keeps (``VmHWM``), and sets it back when the measurement
    starts. The mark counts the memory of every library and thread of the process, on the host
    alone. Other systems do not let it be set back, so that there is no answer.
    """

    def __init__(self) -> None:
        self._before: int | None = None
        try:
            with open(_RESET, "w", encoding="ascii") as reset:
                reset.write("5")
        except OSError:
            return
        self._before = _size_in(_STATUS, "VmHWM")

    def rise(self) -> int | None:
        """Return the bytes of the rise so far; None if unknown."""
        now = _size_in(_STATUS, "VmHWM")
        return None if self._before is None or now is None else max(0, now - self._before)


def _size_in(path: str, name: str) -> int | None:
    """Return a size from a line of one of Linux's status files, in bytes, if it is there."""
    try:
        with open(path, "rb", buffering=0) as file:  # a buffer would take as long as the reading
            lines = file.read(_MOST)
    except OSError:
        return None
    number = lines.partition(b"%s:" % name.encode())[2].partition(b"kB")[0]
    return int(number) * 1024 if number else None
