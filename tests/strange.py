"""A strange plugin, installed into a folder: a framework that misbehaves as a test wants it to."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

#: The plugins whose frameworks take long to import, or say something when they are.
HEAVY = ",".join(
    sorted({one.name for one in entry_points(group="interop")} - {"numpy", "protocols", "python"})
)

#: The plugin. Its framework is ``odd``, in a module of that name.
PLUGIN = """
from interop.plugin import Conversion, Cost, Format, Problem, Problems, hookimpl, make_spec

def describe(box):
    return make_spec("odd", "float32", shape=(len(box.numbers),))

def to_python(box):
    {to_python}

def from_python(numbers):
    import odd
    return odd.Box(numbers)

@hookimpl
def interop_declarations():
    return [*_formats(), *_conversions(), Problems(_troubles)]


def _formats():
    one = frozenset({{"float32"}})
    return [Format("odd", types=("odd:Box",), describe=describe, dtypes=one, requires="odd",
                   install="pip install odd", ndims=frozenset({{1}}),
                   memory=lambda box: ())]

def _conversions():
    effects = frozenset({{"copy"}})
    return [
        Conversion("odd", "numpy", to_python, effects=effects, cost=Cost(1e-6, 1e9)),
        Conversion("numpy", "odd", from_python, effects=effects, cost=Cost(1e-6, 1e9),
                   takes=frozenset({{"readonly", "noncontiguous", "immutable"}})),
    ]

def _troubles():
    {troubles}
"""

#: A framework as it should be.
FRAMEWORK = """
__version__ = "1.5"
class Box:
    def __init__(self, numbers):
        self.numbers = [float(n) for n in numbers]
"""

TO_PYTHON = "import numpy; return numpy.array(box.numbers, 'float32')"


def install(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    framework: str = FRAMEWORK,
    to_python: str = TO_PYTHON,
    troubles: str = "return []",
    needs: str = "odd>=1",
) -> None:
    """Install the plugin ``odd`` of the distribution ``interop-odd``, for other processes, too."""
    metadata = folder / "interop_odd-2.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: interop-odd\nVersion: 2.0\n"
        f'Provides-Extra: odd\nRequires-Dist: {needs}; extra == "odd"\n'
    )
    (metadata / "entry_points.txt").write_text("[interop]\nodd = interop_odd\n")
    (folder / "interop_odd.py").write_text(PLUGIN.format(to_python=to_python, troubles=troubles))
    (folder / "odd.py").write_text(framework)
    own = folder / "odd-1.5.dist-info"
    own.mkdir()
    (own / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.5\n")
    (own / "top_level.txt").write_text("odd\n")
    (own / "RECORD").write_text("odd.py,,\n")
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.syspath_prepend(folder)
    for name in ("odd", "interop_odd"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    # Of the bundled plugins only what the trial needs: the others take long to import.
    monkeypatch.setenv("INTEROP_DISABLE_PLUGINS", HEAVY)
    # What was looked for before is forgotten.
    from interop._execution import engine as _engine

    monkeypatch.setattr(_engine, "_found", {})
