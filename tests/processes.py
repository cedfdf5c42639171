"""Processes that tests start: where they import from, whether they live, and what memory they take."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import interop

_PLUGINS = find_spec("interop_plugins")
#: The folders of the code that is tested here, which need not be those of an editable install.
_TESTED = [
    str(Path(package).parent)
    for package in (
        Path(interop.__file__).parent,
        *((_PLUGINS and _PLUGINS.submodule_search_locations) or []),
    )
]


def python_path(*folders: str | Path) -> str:
    """Return a PYTHONPATH of some folders, and after them of the code that is tested here."""
    return os.pathsep.join(dict.fromkeys([*filter(None, map(str, folders)), *_TESTED]))


def comes_true(condition: Callable[[], bool], patience: float) -> bool:
    """Wait for a condition, and tell whether it came true."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.1)
    return False


def lives(number: int) -> bool:
    """Tell whether a process runs; one that has ended and that nobody has asked after does not."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{number}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


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
