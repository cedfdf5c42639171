"""The plugin as a whole: that it loads, what that imports, and what happens where things lack."""

from __future__ import annotations

import json
import subprocess
import sys

from interop._registry.installed import importable

from ._notes import Notes
from ._subject import Bench, Promise

__all__ = ["try_plugin"]

_PATIENCE = 120.0

#: Run in a process of its own, where nothing is imported yet.
_IMPORTS = """
import json, sys
path, subject, watched = json.loads(sys.argv[1])
sys.path[:] = path
from interop.testing._subject import Subject, loaded
import interop.plugin
before = set(sys.modules)
module = loaded(Subject(*subject))
hooks = ("interop_formats", "interop_conversions", "interop_dtypes")
for hook in hooks:
    if hasattr(module, hook):
        list(getattr(module, hook)())
print(json.dumps(sorted((set(sys.modules) - before) & set(watched))))
"""

#: Run where the modules that formats require are not to be found.
_ABSENCE = """
import json, sys
path, subject, missing = json.loads(sys.argv[1])
sys.path[:] = path
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Nothing())
from interop.testing._subject import Bench, Subject
from interop.errors import NotInstalledError, RefusedError
bench = Bench(Subject(*subject))
said = []
if bench.problem:
    said.append(f"the plugin does not load: {bench.problem}")
for one in [] if bench.problem else bench.formats():
    if one.requires.partition(".")[0] not in missing:
        continue
    if not one.install:
        said.append(f"format {one.name} requires {one.requires} and has no line that installs it")
    try:
        bench.face.convert([1.0], one.name)
    except (NotInstalledError, RefusedError):
        continue
    except Exception as error:
        said.append(f"converting to {one.name} raises {type(error).__name__}: {error}")
    else:
        said.append(f"format {one.name} requires {one.requires}, and can be made without it")
print(json.dumps(said))
"""


def try_plugin(bench: Bench, promise: Promise, notes: Notes, skip: frozenset[str]) -> None:
    """Try what the plugin promises as a whole.

    Parameters
    ----------
    bench : Bench
    promise : Promise
    notes : Notes
    skip : frozenset of str
        Checks that have ended the process before.
    """
    if bench.problem:
        notes.failed("loading", f"the plugin does not load: {bench.problem}")
        notes.skipped("the plugin does not load")
        return
    notes.passed("loading")
    own = bench.subject.module.partition(".")[0]
    named = {name for one in bench.registry.formats.values() for name in _modules(one)} - {own}
    problem, imported = _asked(_IMPORTS, bench, sorted(named))
    if imported:
        problem = f"importing {bench.subject.module} imports {', '.join(imported)}"
        problem += "; import it inside functions"
    notes.judge("imports", problem)
    missing = {one.requires.partition(".")[0] for one in bench.formats() if one.requires}
    # Without these nothing at all can be read, nor the plugin be found.
    missing -= {own, "", _hub_module(bench)}
    missing = {name for name in missing if importable(name)}
    if not missing:
        notes.skipped("its formats require no module beside its own", "absence")
        return
    problem, said = _asked(_ABSENCE, bench, sorted(missing))
    without = f"without {', '.join(sorted(missing))} "
    notes.judge("absence", problem or (without + said[0] if said else ""))


def _modules(one: object) -> set[str]:
    types = {name.partition(":")[0].partition(".")[0] for name in getattr(one, "types", ())}
    requires = getattr(one, "requires", "").partition(".")[0]
    standard = sys.stdlib_module_names
    return {name for name in types | {requires} if name and name not in standard} - {"interop"}


def _hub_module(bench: Bench) -> str:
    from ._truth import hub

    return bench.registry.formats[hub(bench.face)].requires


def _asked(program: str, bench: Bench, names: list[str]) -> tuple[str, list[str]]:
    """Run a program in a process of its own; return what went wrong, and what it found."""
    given = json.dumps([sys.path, list(bench.subject), names])
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", program, given],
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"loading the plugin takes longer than {_PATIENCE:.0f} s", []
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return f"loading the plugin in a process of its own fails: {last}", []
    found: list[str] = json.loads(done.stdout.strip().splitlines()[-1])
    return "", found
