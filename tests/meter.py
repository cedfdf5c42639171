"""The meter: by how much memory rises at most, for tests that run in processes of their own."""

from __future__ import annotations

from pathlib import Path

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class PeakMeter:
    """Measures by how much this process's resident memory rises above where it was, at most.

    It reads the high-water mark that Linux keeps, and sets it back when the measurement starts.
    """

    def __init__(self) -> None:
        self._before: int | None = None
        if _RESET.exists():
            _RESET.write_text("5")
            self._before = _high_water()

    def rise(self) -> int | None:
        """Return the bytes of the rise so far; None where the mark cannot be set back."""
        return None if self._before is None else max(0, _high_water() - self._before)


def _high_water() -> int:
    number = _STATUS.read_text().partition("VmHWM:")[2].partition("kB")[0]
    return int(number) * 1024
