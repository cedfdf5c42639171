"""Memory: how much of it the host has left."""

from __future__ import annotations

import os

_MEMINFO = "/proc/meminfo"
#: Bytes of such a file; it has some 1,500.
_MOST = 2**16


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


def _size_in(path: str, name: str) -> int | None:
    """Return a size from a line of one of Linux's status files, in bytes, if it is there."""
    try:
        with open(path, "rb", buffering=0) as file:  # a buffer would take as long as the reading
            lines = file.read(_MOST)
    except OSError:
        return None
    number = lines.partition(b"%s:" % name.encode())[2].partition(b"kB")[0]
    return int(number) * 1024 if number else None
