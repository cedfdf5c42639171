"""Memory: how much of it the host has left."""

from __future__ import annotations

import os

__all__ = ["available_memory", "readable"]

_MEMINFO = "/proc/meminfo"


def available_memory() -> int | None:
    """Return the bytes the host can still hand out without swapping, or None if it won't say.

    On Linux this is ``MemAvailable`` of ``/proc/meminfo``, which counts caches that can be
    dropped; elsewhere the free pages that POSIX ``sysconf`` reports.
    """
    try:
        with open(_MEMINFO, encoding="ascii") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if "MemAvailable" in line)
    except (OSError, StopIteration):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


def readable(nbytes: float) -> str:
    """Return a number of bytes as people write it.

    Examples
    --------
    >>> readable(64 * 2**20)
    '64.0 MiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(nbytes) < 1024:
            return f"{nbytes:.0f} B" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    return f"{nbytes:.1f} TiB"
