"""The probe: imports a plugin's frameworks in a process of its own, and says what it saw.

A framework that ends the process or hangs when it is imported is a finding, and not the end of the
one who asks. Run as a program, this module reads what to import from standard input, and prints
one line of JSON behind a mark, whatever else the frameworks print.
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from collections.abc import Mapping
from importlib import import_module
from time import perf_counter
from typing import Any, NamedTuple

from interop._model.extension import Problem

__all__ = ["MARK", "Probed", "how_it_ended", "probe"]

#: What the lines begin with that are meant for the one who asks.
MARK = "interop reports: "

#: Categories of warnings on import that tell of a framework that does not work. The others are
#: about the code of whoever imports it.
_TELLING = (UserWarning, RuntimeWarning, ImportWarning)


class Probed(NamedTuple):
    """What became of the frameworks of one plugin.

    Parameters
    ----------
    seconds : dict of str to float
        For each module that could be imported, how long that took.
    versions : dict of str to str
        The ``__version__`` of each.
    errors : dict of str to str
        For each that could not be imported, why.
    warnings : tuple of str
        What was warned of meanwhile.
    troubles : tuple of Problem
        What the plugin says is wrong.
    ended : str
        How the process has ended before it could say anything of this; "" if it could.
    """

    seconds: dict[str, float]
    versions: dict[str, str]
    errors: dict[str, str]
    warnings: tuple[str, ...] = ()
    troubles: tuple[Problem, ...] = ()
    ended: str = ""


def probe(
    distribution: str, plugin: str, modules: Mapping[str, list[str]], timeout: float
) -> Probed:
    """Import frameworks, and ask a plugin what is wrong with them, in another process.

    Parameters
    ----------
    distribution, plugin : str
    modules : mapping of str to list of str
        Of each framework the module, with those of its modules that hold its types.
    timeout : float
    """
    asked = json.dumps({"distribution": distribution, "plugin": plugin, "modules": modules})
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            input=asked,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Probed({}, {}, {}, ended=f"it did not come to an end in {timeout:.0f} s")
    said = [line for line in done.stdout.splitlines() if line.startswith(MARK)]
    if not said:
        return Probed({}, {}, {}, ended=how_it_ended(done.returncode, done.stderr))
    fields = json.loads(said[-1].removeprefix(MARK))
    troubles = (Problem(*_frozen(each)) for each in fields.pop("troubles"))
    return Probed(**{**fields, "warnings": tuple(fields["warnings"])}, troubles=tuple(troubles))


def _frozen(fields: list[Any]) -> list[Any]:
    problem, fix, formats, others, devices = fields
    devices = None if devices is None else frozenset(devices)
    return [problem, fix, tuple(formats), None if others is None else tuple(others), devices]


def how_it_ended(code: int, stderr: str) -> str:
    """Return how a process ended, by its exit status and what it said last."""
    last = stderr.strip().rpartition("\n")[2]
    if code >= 0:
        return f"it ended the process with status {code}" + (f": {last}" if last else "")
    from signal import Signals

    try:
        name = Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"it ended the process with {name}"


def _main() -> None:
    asked = json.loads(sys.stdin.read())
    seconds: dict[str, float] = {}
    versions: dict[str, str] = {}
    errors: dict[str, str] = {}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for name, parts in asked["modules"].items():
            start = perf_counter()
            try:
                module = import_module(name)
                for part in parts:
                    _import_if_there(part)
            # Whatever a foreign module raises when it is imported is what was asked for.
            except Exception as error:  # noqa: BLE001
                errors[name] = f"{type(error).__name__}: {_one_line(error)}"
            else:
                seconds[name] = perf_counter() - start
                versions[name] = str(getattr(module, "__version__", ""))
    told = [_one_line(one.message) for one in said if issubclass(one.category, _TELLING)]
    troubles = [] if errors else _troubles(asked["distribution"], asked["plugin"])
    found = {
        "seconds": seconds,
        "versions": versions,
        "errors": errors,
        "warnings": list(dict.fromkeys(told)),
        "troubles": [_plain(one) for one in troubles],
    }
    print(f"\n{MARK}{json.dumps(found)}", flush=True)


def _import_if_there(name: str) -> None:
    """Import a module that a framework may lack, in this version or for good."""
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if not f"{name}.".startswith(f"{error.name}."):
            raise


def _troubles(distribution: str, plugin: str) -> list[Problem]:
    from interop._registry.discovery import troubles

    return troubles(distribution, plugin)


def _plain(one: Problem) -> list[Any]:
    return [*one[:4], None if one.devices is None else sorted(one.devices)]


def _one_line(said: object) -> str:
    return " ".join(str(said).split())


if __name__ == "__main__":
    _main()
