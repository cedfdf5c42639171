"""The command ``calibrate``."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from interop._api.interop import Interop
from interop._registry import costs as _costs
from interop._version import __version__
from interop.testing._calibration import Calibration
from interop.testing._calibration import calibrate as measure

from .output import JSON, bar, check_file, fail, line, quiet, reports_errors, show_json

_FILE = typer.Option(
    "--file", metavar="FILE", help="Where to store it instead of the user's cache."
)
_SECONDS = typer.Option(
    "--seconds", metavar="SECONDS", min=1, help="About how long to measure at most."
)


@reports_errors
def calibrate(
    file: Annotated[Path | None, _FILE] = None,
    as_json: Annotated[bool, JSON] = False,
    seconds: Annotated[float, _SECONDS] = 50,
) -> None:
    """Measure what conversions cost on this machine.

    The costs are stored for later processes. They decide which of several routes a
    conversion takes, never what comes out.
    """
    if file is not None:
        check_file(file)
    path = (
        file
        or _costs.default_file()
        or fail("INTEROP_CALIBRATION says not to use a file; unset it, or pass --file.")
    )
    _check_writable(path)
    with bar("calibrating", hidden=as_json) as progress, quiet():
        calibration = measure(Interop(costs={}), progress, budget=seconds)
    if not calibration.costs:
        fail("nothing could be measured; see 'interop plugins' for what is loaded.")
    kept = _costs.usable(path)
    text = _costs.encoded({**kept, **calibration.costs}, **_record(calibration))
    try:
        _costs.write(path, text)
    except OSError as error:
        fail(_unwritable(path, error))
    if as_json:
        show_json({"file": str(path), **json.loads(text)})
    else:
        _report(path, calibration, len(kept.keys() - calibration.costs.keys()))


def _record(calibration: Calibration) -> dict[str, object]:
    """Return what people may want to know of the costs, to be stored beside them."""
    return {
        "interop": __version__,
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(calibration.seconds, 1),
        "skipped": calibration.skipped,
    }


def _report(path: Path, calibration: Calibration, kept: int) -> None:
    count, seconds = len(calibration.costs), calibration.seconds
    line(f"costs measured in {seconds:.0f} s and stored in {path}: {count}")
    if kept:
        line(f"costs kept from an earlier calibration: {kept}")
    late = sum("no time" in reason for reason in calibration.skipped.values())
    if late:
        line(f"left out because time ran out: {late}; pass a larger --seconds.")
    if _busy():
        line(
            "The machine was busy in the meantime, which makes steps on several threads look slow; "
            "calibrate again when it is idle."
        )


def _busy() -> bool:
    try:
        return os.getloadavg()[0] > (os.cpu_count() or 1)
    except (AttributeError, OSError):
        return False


def _check_writable(path: Path) -> None:
    """Fail before the measurement, not after it, if its result cannot be stored."""
    if path.is_dir():
        fail(f"{path} is a folder; pass --file with the name of a file.")
    probe = path.with_name(f"{path.name}.probe")
    try:
        _costs.write(probe, "")
        probe.unlink()
    except OSError as error:
        fail(_unwritable(path, error))


def _unwritable(path: Path, error: OSError) -> str:
    reason = error.strerror or error
    return f"{path} cannot be written ({reason}); pass --file, or set INTEROP_CALIBRATION."
