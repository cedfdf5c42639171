"""Neighbours: distributions installed beside each other, the template's wheel among them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.strange import HEAVY

#: It wants everything that the template and the bundled plugins have, and gives sevens.
HOSTILE = """
from interop.plugin import *

def describe(value):
    return make_spec("ring", "float64", shape=(3,))

def seven(value, **keywords):
    import numpy as np
    return np.full(3, 7.0)

FREE = Cost(1e-9)
FAST = dict(cost=FREE, takes={"readonly", "noncontiguous", "immutable", "rotated"})

@hookimpl
def interop_declarations():
    return [
        Format("ring", types=("interop_example.ring:Ring",), describe=describe, dtypes={"float64"}),
        Format("loot", types=("interop_example.ring:Ring",), describe=describe, dtypes={"float64"}),
        Format("numpy", types=("numpy:ndarray",), describe=describe, dtypes={"float64"}),
        Format("python.loot", dtypes={"float64"}),
        Format("hole", dtypes={"float32", "float64"}, target_types=("numpy:ndarray",)),
        Format("way", dtypes={"float32", "float64", "int64"}),
        Conversion("ring", "numpy", seven, **FAST),
        Conversion("ring", "numpy", seven, name="another", dtypes={"float64"}, **FAST),
        Conversion("numpy", "ring", seven, **FAST),
        Conversion("numpy", "numpy", seven, effects={"copy"}, **FAST),
        Conversion("numpy", "python", seven, dtypes={"float64"}, effects={"copy"}, **FAST),
        Conversion("numpy", "way", seven, **FAST),
        Conversion("way", "python", seven, **FAST),
        Conversion("ring", "way", seven, **FAST),
        Conversion("way", "numpy", seven, **FAST),
    ]
"""

#: Who overrides others on purpose, and says so.
EXPLICIT = """
from interop.plugin import *

def minus(ring):
    return -ring.numbers

@hookimpl
def interop_declarations():
    return [Conversion("ring", "numpy", minus, effects={"copy"}, cost=Cost(1e-9), priority=1)]
"""

PROGRAM = """
import json, logging
import numpy as np
import interop
records = []
handler = logging.Handler()
handler.emit = lambda record: records.append(record.getMessage())
logging.getLogger("interop").addHandler(handler)
from interop_example.ring import Ring
ring, array = Ring(np.array([1.0, 2.0, 3.0])), np.array([4.0, 5.0, 6.0])
results = {
    "ring to numpy": (r := interop.convert(ring, to="numpy")).tolist(),
    "it is a view": bool(r.ctypes.data == ring.numbers.ctypes.data),
    "to the type": interop.convert(ring, to=np.ndarray).tolist(),
    "to float32": interop.convert(ring, to="numpy", dtype="float32").tolist(),
    "ring to python": interop.convert(ring, to="python"),
    "numpy to ring": interop.convert(array, to="ring").numbers.tolist(),
    "numpy to python": interop.convert(array, to="python"),
    "a copy": interop.convert(array, to="numpy", copy=True).tolist(),
    "steps": [s.label for s in interop.plan(ring, to="python").steps],
    "specs": [str(interop.spec(ring)), str(interop.spec(array))],
}
plugins = {p.distribution: (p.state, p.reason, p.overrides) for p in interop.plugins()}
print(json.dumps([results, plugins, records]))
"""


def _run(wheel: Path, folder: Path, program: str = PROGRAM, **plugins: str) -> Any:
    """Install the wheel and some plugins into a folder, and run a program beside them."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    for name, text in plugins.items():
        metadata = folder / f"{name}-1.0.dist-info"
        metadata.mkdir(exist_ok=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[interop]\n{name} = {name}_plugin\n")
        (metadata / "RECORD").write_text(f"{name}_plugin.py,,\n")
        (folder / f"{name}_plugin.py").write_text(text)
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**os.environ, "PYTHONPATH": str(folder), "INTEROP_DISABLE_PLUGINS": HEAVY},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout)


@pytest.fixture(scope="module")
def alone(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the template and the bundled plugins do with nobody beside them."""
    results, _, records = _run(wheel, tmp_path_factory.mktemp("alone"))
    assert results["ring to numpy"] == results["to the type"] == [1.0, 2.0, 3.0]
    assert records == []
    return results


@pytest.mark.parametrize("name", ["aaa_hostile", "zzz_hostile"])
def test_an_unrelated_distribution_changes_no_number(
    wheel: Path, alone: Any, tmp_path: Path, name: str
) -> None:
    """Whether its name comes first or last, every result is as without it, and doctor is told."""
    results, plugins, records = _run(wheel, tmp_path, **{name: HOSTILE})
    assert results == alone
    state, reason, overrides = plugins[name]
    assert (state, overrides) == ("loaded", [])
    assert plugins["interop-example"] == ["loaded", "", []]
    for place in (
        "the conversion ring → numpy",
        "the conversion numpy → python",
        "format 'ring'",
        "format 'numpy'",
        "the type numpy:ndarray",
        "the framework 'python'",
    ):
        assert f"{place} is declared by " in reason
    for distribution in ("interop-example 1.0", "array-interop", f"{name} 1.0"):
        assert distribution in reason
    assert len(records) == reason.count(" is declared by ")


def test_who_overrides_another_is_heard_and_shown(wheel: Path, tmp_path: Path) -> None:
    """A stated priority counts, and the plugin's state says what it replaces."""
    results, plugins, records = _run(wheel, tmp_path, aaa_explicit=EXPLICIT)
    assert results["ring to numpy"] == [-1.0, -2.0, -3.0]
    overrides = ["the conversion ring → numpy (minus), with priority 1"]
    assert plugins["aaa_explicit"] == ["loaded", "", overrides]
    assert records == []
