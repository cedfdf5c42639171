"""Measured costs: the table of this machine, the file that keeps it, and the checks of that file.

A file that cannot be used is ignored, with one warning a process: without a measured cost a route
may be slower, but never wrong.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

from interop._model.cost import Cost

#: Version of what the file holds.
LAYOUT = 1
#: The environment variable that names another file, or none.
VARIABLE = "INTEROP_CALIBRATION"
#: Its settings that mean that no file is read.
_NONE = ("", "off")

#: No table of costs is larger, so a larger file is something else.
_MOST_BYTES = 2**24
#: Seconds and bytes per second beyond which a number is no measurement.
_LIMITS = {"latency": (0.0, 60.0), "bandwidth": (1e2, 1e15), "cached": (1e2, 1e15)}

_log = logging.getLogger("interop")
_warned: set[str] = set()


class UnusableTable(Exception):  # noqa: N818 - it says what is wrong with a file
    """A table of costs cannot be used. The text says why."""


def machine() -> dict[str, object]:
    """Return the facts that identify this machine; costs hold for one machine."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": f"{sys.implementation.name} {sys.version_info[0]}.{sys.version_info[1]}",
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:  # stops at the first core: reading about all of them takes long
                name, _, text = line.partition(":")
                if name.strip() in ("model name", "CPU part"):
                    return text.strip()
    except OSError:
        pass
    return platform.processor()


def default_file() -> Path | None:
    """Return the file that is read at load, or None if there is to be none.

    It is named after the machine, because several machines may share a home directory.
    """
    setting = os.environ.get(VARIABLE)
    if setting is not None:
        return None if setting.lower() in _NONE else Path(setting)
    try:
        from platformdirs import user_cache_path
    except ImportError:
        return None
    mark = crc32(json.dumps(machine(), sort_keys=True).encode())
    return user_cache_path("interop", appauthor=False) / f"costs-{mark:08x}.json"


def stored() -> Mapping[str, Cost]:
    """Return the costs that were measured on this machine, as far as there are any."""
    costs, problem = _examined()
    if problem and problem not in _warned:
        _warned.add(problem)
        # A log record and not a warning, as for plugins that fail: see the page on the design.
        _log.warning(
            "%s; run 'interop calibrate' to measure anew, or set %s=off to go without",
            problem,
            VARIABLE,
        )
    return costs


def problem() -> str:
    """Say which file of costs is ignored, and why; "" if none is."""
    return _examined()[1]


def usable(path: Path) -> Mapping[str, Cost]:
    """Return the costs in a file, or none if it cannot be used."""
    try:
        return decoded(_read(path))
    except (OSError, UnusableTable):
        return {}


def _examined() -> tuple[Mapping[str, Cost], str]:
    """Return the costs in the file, and why it is ignored; "" if it is not."""
    path = default_file()
    if path is None:
        return {}, ""
    try:
        return decoded(_read(path)), ""
    except FileNotFoundError:
        if os.environ.get(VARIABLE) is None:
            return {}, ""  # nobody has calibrated here yet
        reason = "there is no such file"
    except OSError as error:
        reason = f"it cannot be read ({error.strerror or error})"
    except UnusableTable as error:
        reason = str(error)
    return {}, f"the calibration in {path} is ignored: {reason}"


def _read(path: Path) -> str:
    status = os.stat(path)
    if not stat.S_ISREG(status.st_mode):
        msg = "it is not a file"
        raise UnusableTable(msg)
    if status.st_size > _MOST_BYTES:
        msg = f"its {status.st_size} bytes are too many for a table of costs"
        raise UnusableTable(msg)
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError as error:
        msg = f"it is not text ({error.reason})"
        raise UnusableTable(msg) from error


def encoded(costs: Mapping[str, Cost], **facts: object) -> str:
    """Return the text of a file with some costs of this machine, and further facts on record."""
    content = {
        "layout": LAYOUT,
        "machine": machine(),
        **facts,
        "costs": {key: cost._asdict() for key, cost in sorted(costs.items())},
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def decoded(text: str) -> dict[str, Cost]:
    """Return the costs in the text of a file, or raise `UnusableTable`."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        msg = f"it is not JSON ({error})"
        raise UnusableTable(msg) from error
    if not isinstance(content, dict) or "layout" not in content:
        msg = "it is not a table of costs"
        raise UnusableTable(msg)
    if content["layout"] != LAYOUT:
        msg = f"its layout is version {content['layout']!r}, and {LAYOUT} is the one that is read"
        raise UnusableTable(msg)
    _check_machine(content.get("machine"))
    costs = content.get("costs")
    if not isinstance(costs, dict):
        msg = "it holds no costs"
        raise UnusableTable(msg)
    return {key: _cost(key, entry) for key, entry in costs.items()}


def _check_machine(recorded: object) -> None:
    current = machine()
    if recorded == current:
        return
    if not isinstance(recorded, dict):
        msg = "it does not say on which machine it was measured"
        raise UnusableTable(msg)
    # A fact may be null there and missing here.
    gone = object()
    facts = (*current, *recorded)
    other = next(f for f in facts if recorded.get(f, gone) != current.get(f, gone))
    msg = f"it is of another machine ({other} {recorded.get(other)!r}, here {current.get(other)!r})"
    raise UnusableTable(msg)


def _cost(key: str, entry: Any) -> Cost:
    is_cost = isinstance(entry, dict) and not entry.keys() - _LIMITS.keys()
    if not is_cost or entry.get("latency") is None:
        msg = f"{key!r} has {entry!r} for a cost"
        raise UnusableTable(msg)
    numbers = {name: number for name, number in entry.items() if number is not None}
    for name, number in numbers.items():
        low, high = _LIMITS[name]
        if type(number) not in (int, float) or not low <= number <= high:
            msg = f"{key!r} has {number!r} for a number of seconds, or of bytes per second"
            raise UnusableTable(msg)
    return Cost(**{name: float(number) for name, number in numbers.items()})


def write(path: Path, text: str) -> None:
    """Write a file whole, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not a temporary file of Python's, which nobody but its owner may read.
    draft = path.with_name(f"{path.name}.{os.urandom(4).hex()}")
    with open(draft, "x", encoding="utf-8") as file:
        try:
            file.write(text)
            file.close()
            os.replace(draft, path)
        except BaseException:
            os.unlink(draft)
            raise
