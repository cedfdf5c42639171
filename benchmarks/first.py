"""The first conversion of a process: where its time goes."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from .table import Listing, Ratio, duration
from .timing import against

__all__ = ["tables"]

#: A program that reports where its time goes. It wraps the functions to be timed before their use.
_PROGRAM = """
import gc, json, sys
from time import perf_counter as now

times = {}

def timed(name, call):
    start = now()
    result = call()
    times[name] = times.get(name, 0.0) + now() - start
    return result

def wrap(owner, attribute, name):
    function = getattr(owner, attribute)
    def wrapped(*args, **words):
        return timed(name(*args), lambda: function(*args, **words))
    setattr(owner, attribute, wrapped)

def use(name, module):
    timed(name, lambda: __import__(module))

framework = json.loads(sys.argv[1])
for module in framework:
    use(module, module)
gc.collect()  # a collection that the imports have made due is theirs
use("import interop", "interop")
import interop
timed("first name", lambda: interop.convert)
def modules():
    import importlib.metadata, pluggy
timed("modules of the loader", modules)
def loader():
    import interop._registry.plugins
timed("loader", loader)
import importlib.metadata, interop._registry.plugins
wrap(interop._registry.plugins, "entry_points", lambda *a, **w: "entry points")
names = {e.module: e.name for e in importlib.metadata.entry_points(group="interop")}
package = "the package of the plugins"
wrap(interop._registry.plugins, "import_module", lambda m: "import " + names.get(m, package))
wrap(interop._registry.plugins, "declared_by", lambda declarations, o: "add " + o.plugin)
timed("plugins", lambda: interop.spec(1.0))
if framework:
    import torch
    t = torch.ones(3, 4)
    timed("first", lambda: interop.convert(t, to="numpy"))
    timed("second", lambda: interop.convert(t, to="numpy"))
    timed("third", lambda: interop.convert(t, to="numpy"))
print(json.dumps(times))
"""
_ALONE = """
import json
from time import perf_counter as now
start = now()
import {0}
print(json.dumps({{"import": now() - start}}))
"""
_NOTE = (
    "Medians over fresh processes, bytecode cached. On the left a process that has imported NumPy "
    "and torch, as any process with a tensor has: many modules of the standard library are loaded "
    "by then. On the right one that has imported nothing. The shares of the loader and of the "
    "plugins are parts of `loading the plugins`. Garbage is collected after the imports, since a "
    "full collection, 100 ms with torch loaded, would otherwise fall due anywhere. The plugins of "
    "frameworks that are neither imported nor asked for wait, and are not loaded."
)
_PARTS = (
    ("import interop", "`import interop`"),
    ("first name", "the first name used: importing the core"),
    ("loading", "loading the plugins, of which"),
    ("modules of the loader", "· importing `importlib.metadata` and `pluggy`"),
    ("loader", "· importing interop's loader"),
    ("entry points", "· finding the entry points"),
)


def _run(program: str, *arguments: str, folder: str) -> dict[str, float]:
    """Return the times that a fresh process reports; its bytecode is cached in `folder`."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
    command = [sys.executable, "-c", program, *arguments]
    root = Path(__file__).parent.parent
    process = subprocess.run(command, capture_output=True, check=True, env=environment, cwd=root)
    seconds: dict[str, float] = json.loads(process.stdout)
    return seconds


def _medians(runs: list[dict[str, float]]) -> dict[str, float]:
    medians = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    medians["loading"] = sum(medians[n] for n in ("modules of the loader", "loader", "plugins"))
    names = [name.removeprefix("add ") for name in medians if name.startswith("add ")]
    for name in names:
        medians[f"plugin {name}"] = medians[f"import {name}"] + medians[f"add {name}"]
    listed = sum(medians[f"plugin {name}"] for name in names) + medians["entry points"]
    medians["hooks"] = medians["plugins"] - listed
    return medians


def _rows(warm: dict[str, float], bare: dict[str, float]) -> list[tuple[str, ...]]:
    labels = list(_PARTS)
    plugins = sorted(name for name in warm if name.startswith("plugin "))
    labels += [(name, f"· {name}: import and declarations") for name in plugins]
    labels += [
        ("hooks", "· metadata and hooks"),
        ("first", "the first conversion: planned, and its result checked against the plan"),
        ("second", "the second conversion"),
        ("third", "the third"),
    ]
    rows = [(label, duration(warm.get(key)), duration(bare.get(key))) for key, label in labels]
    parts = ("import interop", "first name", "loading", "first")
    total = duration(sum(warm[part] for part in parts))
    imports = duration(warm["numpy"] + warm["torch"])
    return [
        *rows,
        ("all that interop adds to the first", total, ""),
        ("(NumPy and torch)", imports, ""),
    ]


def tables(only: Collection[str] | None = None, rounds: int = 9) -> list[Listing]:
    """Return the whole breakdown; `only` has no effect."""
    rounds = min(rounds, 9)
    frameworks = json.dumps(["numpy", "torch"]), json.dumps([])
    with tempfile.TemporaryDirectory() as folder:
        for framework in frameworks:  # writes the bytecode
            _run(_PROGRAM, framework, folder=folder)
        warm = [_run(_PROGRAM, frameworks[0], folder=folder) for _ in range(min(rounds, 5))]
        bare, numpy = [], []
        for _ in range(rounds):
            bare.append(_run(_PROGRAM, frameworks[1], folder=folder))
            numpy.append(_run(_ALONE.format("numpy"), folder=folder)["import"])
    totals = {
        "import interop | import numpy": _kept([run["import interop"] for run in bare], numpy),
        "first name | import numpy": _kept([run["first name"] for run in bare], numpy),
        "loading the plugins | import numpy": _kept([run["plugins"] for run in bare], numpy),
    }
    rows = _rows(_medians(warm), _medians(bare))
    heads = ("", "after NumPy and torch", "in a bare process")
    title = "the first conversion of a process, a small tensor to NumPy"
    return [Listing("first", title, _NOTE, heads, tuple(rows), totals)]


def _kept(ours: list[float], theirs: list[float]) -> Ratio:
    row = against("", ours, theirs)
    return Ratio(row.ratio, row.spread)
