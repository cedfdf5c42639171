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

from tests.processes import python_path
from tests.strange import HEAVY, install_plugin

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
        Conversion("dlpack", "ring", seven, **FAST),
        Conversion("numpy", "numpy", seven, effects={"copy"}, **FAST),
        Conversion("numpy", "python", seven, dtypes={"float64"}, effects={"copy"}, **FAST),
        Conversion("numpy", "way", seven, **FAST),
        Conversion("way", "python", seven, **FAST),
        Conversion("ring", "way", seven, **FAST),
        Conversion("way", "numpy", seven, **FAST),
    ]
"""

#: Who replaces another on purpose, and says so.
EXPLICIT = """
from interop.plugin import *

def viewed(ring):
    return ring.numbers.view()

@hookimpl
def interop_declarations():
    return [Conversion("ring", "numpy", viewed, cost=Cost(1e-9), replaces={"interop-example"})]
"""

#: What every program begins and ends with.
HEAD = """
import json, logging
import numpy as np
import interop
records = []
handler = logging.Handler()
handler.emit = lambda record: records.append(record.getMessage())
logging.getLogger("interop").addHandler(handler)
array = np.array([4.0, 5.0, 6.0])
"""
TAIL = """
plugins = {p.distribution: (p.state, p.reason, p.replaces) for p in interop.plugins()}
print(json.dumps([results, plugins, records]))
"""

PROGRAM = """
from interop_example.ring import Ring
ring = Ring(np.array([1.0, 2.0, 3.0]))
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
"""


def _run(wheel: Path | None, folder: Path, program: str = PROGRAM, **plugins: str) -> Any:
    """Install the wheel and some plugins into a folder, and run a program beside them."""
    if wheel is not None:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    for name, text in plugins.items():
        install_plugin(folder, name, text)
    process = subprocess.run(
        [sys.executable, "-W", "error", "-c", HEAD + program + TAIL],
        env={**os.environ, "PYTHONPATH": python_path(folder), "INTEROP_DISABLE_PLUGINS": HEAVY},
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


def test_an_unrelated_distribution_changes_no_number(
    wheel: Path, alone: Any, tmp_path: Path
) -> None:
    """Every result is as without it, and the log and its state say what is left out of it."""
    results, plugins, records = _run(wheel, tmp_path, zzz_hostile=HOSTILE)
    assert results == alone
    state, reason, replaces = plugins["zzz_hostile"]
    assert (state, replaces) == ("loaded", [])
    assert plugins["interop-example"] == ["loaded", "", []]
    for place in (
        "the conversion dlpack → ring",
        "the conversion numpy → python",
        "the name 'ring'",
        "the name 'numpy'",
        "the name 'python'",
        "the object interop_example.ring:Ring",
        "the object numpy:ndarray",
    ):
        assert f"{place} is declared by " in reason
    for distribution in ("interop-example 1.0", "array-interop", "zzz_hostile 1.0"):
        assert distribution in reason
    assert len(records) == reason.count(" is declared by ")


#: The part of `PROGRAM` that only bundled plugins have to do with.
BUNDLED = """
results = {
    "numpy to python": interop.convert(array, to="python"),
    "to the type": interop.convert([1.0], to=np.ndarray).tolist(),
    "to the nickname": interop.convert([1.0], to="np").tolist(),
    "a copy": interop.convert(array, to="numpy", copy=True).tolist(),
    "spec": str(interop.spec(array)),
}
"""


def test_distributions_in_conflict_are_ranked_by_name_and_both_named(
    wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Bundled plugins lose nothing to it; another distribution does, and its state names both."""
    alone, _, records = _run(wheel, tmp_path_factory.mktemp("without"), BUNDLED)
    assert records == []
    folder = tmp_path_factory.mktemp("with")
    results, plugins, records = _run(wheel, folder, BUNDLED, aaa_hostile=HOSTILE)
    assert results == alone
    reason = plugins["interop-example"][1]
    for place in ("the name 'ring'", "the conversion dlpack → ring"):
        assert f"{place} is declared by aaa_hostile 1.0" in reason
    assert "the name 'ring'" not in plugins["aaa_hostile"][1]
    assert "the name 'numpy' is declared by array-interop" in plugins["aaa_hostile"][1]
    reasons = "".join(reason for _, reason, _ in plugins.values())
    assert len(records) == reasons.count(" is declared by ")


def test_a_plugin_replaces_what_it_says_that_it_replaces(
    wheel: Path, alone: Any, tmp_path: Path
) -> None:
    """Its conversion is taken, and its state says in whose place."""
    results, plugins, records = _run(wheel, tmp_path, aaa_explicit=EXPLICIT)
    assert results["ring to numpy"] == [1.0, 2.0, 3.0]
    assert results["steps"][0] == "viewed" != alone["steps"][0]
    replaces = ["the conversion ring → numpy (viewed) of interop-example"]
    assert plugins["aaa_explicit"] == ["loaded", "", replaces]
    assert records == []


# ---------------------------------------------------------------------- squatters

#: A format of a plugin's own, which lays claim to more in one field.
SQUATTER = """
from typing import Protocol, runtime_checkable
from interop.plugin import *

class Box:
    shape = (1,)

class ArrayLike(Protocol):
    shape: tuple

@runtime_checkable
class Long(Protocol):
    def __len__(self): ...

def __getattr__(name):
    if name == "Lazy":
        raise ImportError("pip install box[lazy]")
    raise AttributeError(name)

def describe(value):
    return make_spec("box", "float64", shape=(1,))

def to_box(array):
    return Box()

@hookimpl
def interop_declarations():
    fields = dict(types=("{name}_plugin:Box",), describe=describe, dtypes={{"float64"}})
    fields |= dict({field})
    return [
        Format("box", **fields),
        Conversion("numpy", "box", to_box, takes=set(TRAITS), effects={{"copy"}}, cost=Cost(1e-9)),
        Conversion("box", "numpy", lambda box: None, cost=Cost(1e-9)),
    ]
"""

UNRELATED = """
class Foreign:
    def __init__(self): self.array = np.arange(2.0)
    @property
    def __array_interface__(self): return self.array.__array_interface__
    def __len__(self): return 2

def told(call):
    try:
        value = call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return f"{type(value).__name__} {np.asarray(value).tolist()}"

masked = np.ma.masked_array([1.0, 2.0], mask=[True, False])
results = {
    "by name": told(lambda: interop.convert([1.0], to="numpy")),
    "by nickname": told(lambda: interop.convert([1.0], to="np")),
    "by class": told(lambda: interop.convert([1.0], to=np.ndarray)),
    "masked": told(lambda: interop.convert(masked, to="python")),
    "unmasked": told(lambda: interop.convert(masked, to="python", allow="drop_mask")),
    "by protocol": told(lambda: interop.convert(Foreign(), to="numpy")),
    "unknown": told(lambda: interop.convert({1: 2}.items(), to="numpy")),
}
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What calls that have nothing to do with a plugin answer without it."""
    results, _, records = _run(None, tmp_path_factory.mktemp("undisturbed"), UNRELATED)
    assert results["by name"] == results["by nickname"] == results["by class"] == "ndarray [1.0]"
    assert results["masked"].startswith("RefusedError")
    assert results["unmasked"] == "list [1.0, 2.0]"
    assert results["by protocol"] == "ndarray [0.0, 1.0]"
    assert records == []
    return results


@pytest.mark.parametrize("name", ["aaa_squatter", "zzz_squatter"])
@pytest.mark.parametrize(
    ("field", "reason"),
    [
        ("aliases=('numpy', 'python')", "the name 'numpy' is declared by array-interop"),
        ("aliases=('np',)", "the name 'np' is declared by array-interop"),
        ("aliases=('numpy:ndarray',)", "the object numpy:ndarray is declared by array-interop"),
        ("types=('collections.abc:Sized',)", "type collections.abc:Sized, which everything"),
    ],
    ids=["name", "nickname", "object", "abstract"],
)
def test_squatters_change_no_unrelated_call_and_are_told_why(
    undisturbed: Any, tmp_path: Path, name: str, field: str, reason: str
) -> None:
    """Whatever a format lays claim to, unrelated calls answer as without it; its state says why."""
    text = SQUATTER.format(name=name, field=field.format(name=name))
    results, plugins, records = _run(None, tmp_path, UNRELATED, **{name: text})
    assert results == undisturbed
    assert reason in plugins[name][1]
    assert name in plugins[name][1]
    assert [record for record in records if reason in record and name in record]


@pytest.mark.parametrize("type_", ["ArrayLike", "Long", "Lazy", "Bax"])
def test_a_type_that_is_no_class_of_values_recognises_none(
    undisturbed: Any, tmp_path: Path, type_: str
) -> None:
    """Protocols, what cannot be imported and what is misspelt: unrelated calls are as without it."""
    text = SQUATTER.format(name="odd", field=f"types=('odd_plugin:{type_}',)")
    results, plugins, records = _run(None, tmp_path, UNRELATED, odd=text)
    assert results == undisturbed
    assert plugins["odd"] == ["loaded", "", []]
    assert records == []


def test_a_distribution_without_metadata_breaks_nothing(undisturbed: Any, tmp_path: Path) -> None:
    """It was removed in part, and its plugin still loads, of an unknown distribution."""
    torn = SQUATTER.format(name="torn", field="")
    whole = SQUATTER.format(name="whole", field="").replace('"box"', '"crate"')
    _run(None, tmp_path, UNRELATED, torn=torn, whole=whole)
    (tmp_path / "torn-1.0.dist-info" / "METADATA").unlink()
    results, plugins, _ = _run(None, tmp_path, UNRELATED)
    assert results == undisturbed
    assert plugins["an unknown distribution"][:2] == ["loaded", ""]
    assert plugins["whole"][:2] == ["loaded", ""]
