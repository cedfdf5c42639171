"""The command ``calibrate``; only imported with the extra ``cli``."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from interop._api.interop import Interop
from interop._calibration.measure import Calibration
from interop._calibration.measure import calibrate as measure
from interop._registry import costs as _costs
from interop._version import __version__

from .output import JSON, bar, fail, line, show_json, told

__all__ = ["calibrate"]

_FILE = typer.Option("--file", help="Where to store it instead of the user's cache.")
_SECONDS = typer.Option("--seconds", min=1, help="How long to measure at most, about.")


@told
def calibrate(
    file: Annotated[Path | None, _FILE] = None,
    as_json: Annotated[bool, JSON] = False,
    seconds: Annotated[float, _SECONDS] = 50,
) -> None:
    """Measure what each conversion costs on this machine, and store it for later processes.

    What is stored decides which of several ways a conversion takes, never what comes out.
    """
    path = (
        file
        or _costs.default_file()
        or fail("INTEROP_CALIBRATION says that no file is to be used; unset it, or pass --file.")
    )
    _check_writable(path)
    with bar("calibrating", hidden=as_json) as progress:
        found = measure(Interop(costs={}), progress, budget=seconds)
    if not found.costs:
        fail("nothing could be measured; see 'interop.plugins()' for what is loaded.")
    text = _costs.encoded(found.costs, **_record(found))
    try:
        _costs.write(path, text)
    except OSError as error:
        fail(_unwritable(path, error))
    if as_json:
        show_json({"file": str(path), **json.loads(text)})
    else:
        _report(path, found)


def _record(found: Calibration) -> dict[str, object]:
    """Return what is kept beside the costs, for people to read."""
    return {
        "interop": __version__,
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(found.seconds, 1),
        "skipped": found.skipped,
    }


def _report(path: Path, found: Calibration) -> None:
    line(f"measured {len(found.costs)} costs in {found.seconds:.0f} s and stored them in {path}")
    late = sum("no time" in reason for reason in found.skipped.values())
    if late:
        line(f"{late} were left out for want of time; pass a larger --seconds.")
    if _busy():
        line(
            "The machine was busy meanwhile, which makes steps on several threads look slow; "
            "calibrate again when it is idle."
        )


def _busy() -> bool:
    """Tell whether others have kept the machine's cores from us."""
    try:
        return os.getloadavg()[0] > (os.cpu_count() or 1)
    except (AttributeError, OSError):
        return False


def _check_writable(path: Path) -> None:
    """Find out before the measurement whether its result can be stored."""
    if path.is_dir():
        fail(f"{path} is a folder; pass --file with the name of a file.")
    probe = path.with_name(f"{path.name}.probe")
    try:
        _costs.write(probe, "")
        probe.unlink()
    except OSError as error:
        fail(_unwritable(path, error))


def _unwritable(path: Path, error: OSError) -> str:
    said = error.strerror or error
    return f"{path} cannot be written ({said}); pass --file, or set INTEROP_CALIBRATION."
