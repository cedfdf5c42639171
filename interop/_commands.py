"""What can follow the name of the command ``interop``; only imported with the extra ``cli``."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from . import _costs
from ._calibration import Calibration
from ._calibration import calibrate as measure
from ._interop import Interop
from ._version import __version__

__all__ = ["calibrate"]

_FILE = typer.Option("--file", help="Where to store it instead of the user's cache.")
_JSON = typer.Option("--json", help="Print what was measured as JSON.")
_SECONDS = typer.Option("--seconds", min=1, help="How long to measure at most, about.")


def calibrate(
    file: Annotated[Path | None, _FILE] = None,
    as_json: Annotated[bool, _JSON] = False,
    seconds: Annotated[float, _SECONDS] = 50,
) -> None:
    """Measure what each conversion costs on this machine, and store it for later processes.

    What is stored decides which of several ways a conversion takes, never what comes out.
    """
    path = (
        file
        or _costs.default_file()
        or _fail("INTEROP_CALIBRATION says that no file is to be used; unset it, or pass --file.")
    )
    _check_writable(path)
    with _bar(hidden=as_json) as progress:
        found = measure(Interop(costs={}), progress, budget=seconds)
    if not found.costs:
        _fail("nothing could be measured; see 'interop.plugins()' for what is loaded.")
    text = _costs.encoded(found.costs, **_record(found))
    try:
        _costs.write(path, text)
    except OSError as error:
        _fail(_unwritable(path, error))
    if as_json:
        typer.echo(json.dumps({"file": str(path), **json.loads(text)}, indent=1))
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
    console = Console(soft_wrap=True, highlight=False)
    console.print(
        f"measured {len(found.costs)} costs in {found.seconds:.0f} s and stored them in {path}",
        markup=False,
    )
    late = sum("no time" in reason for reason in found.skipped.values())
    if late:
        console.print(f"{late} were left out for want of time; pass a larger --seconds.")
    if _busy():
        console.print(
            "The machine was busy meanwhile, which makes steps on several threads look slow; "
            "calibrate again when it is idle."
        )


def _busy() -> bool:
    """Tell whether others have kept the machine's cores from us."""
    try:
        return os.getloadavg()[0] > (os.cpu_count() or 1)
    except (AttributeError, OSError):
        return False


@contextmanager
def _bar(*, hidden: bool) -> Iterator[Callable[[int, int, str], None]]:
    """Show a progress bar on standard error, if that is a terminal."""
    console = Console(stderr=True)
    columns = (
        TextColumn("calibrating"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} {task.description}"),
        TimeElapsedColumn(),
    )
    quiet = hidden or not console.is_terminal
    with Progress(*columns, console=console, disable=quiet, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total, what: bar.update(
            task, completed=done, total=total, description=what
        )


def _check_writable(path: Path) -> None:
    """Find out before the measurement whether its result can be stored."""
    if path.is_dir():
        _fail(f"{path} is a folder; pass --file with the name of a file.")
    probe = path.with_name(f"{path.name}.probe")
    try:
        _costs.write(probe, "")
        probe.unlink()
    except OSError as error:
        _fail(_unwritable(path, error))


def _unwritable(path: Path, error: OSError) -> str:
    said = error.strerror or error
    return f"{path} cannot be written ({said}); pass --file, or set INTEROP_CALIBRATION."


def _fail(reason: str) -> NoReturn:
    typer.echo(f"interop: {reason}", err=True)
    raise typer.Exit(1)
