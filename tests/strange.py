"""An odd plugin, installed into a folder, whose framework misbehaves as a test wants it to."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.processes import python_path

#: The plugins whose frameworks take long to import, or say something when they are.
HEAVY = ",".join(
    sorted(
        {entry.name for entry in entry_points(group="interop")} - {"numpy", "protocols", "python"}
    )
)

#: The plugin. Its framework is ``odd``, in a module of that name.
PLUGIN = """
from interop.plugin import Conversion, Cost, Format, hookimpl, make_spec
from interop.plugin.advanced import Problem, Problems

def describe(box):
    return make_spec("odd", "float32", shape=(len(box.numbers),))

def to_python(box):
    {to_python}

def from_python(numbers):
    import odd
    return odd.Box(numbers)

@hookimpl
def interop_declarations():
    return [*_formats(), *_conversions(), Problems(_find_problems)]

def _formats():
    dtypes = {{"float32"}}
    return [Format("odd", types=("odd:Box",), describe=describe, dtypes=dtypes, requires="odd",
                   install="pip install odd", ndims={{1}},
                   memory=lambda box: ())]

def _conversions():
    effects = {{"copy"}}
    return [
        Conversion("odd", "numpy", to_python, effects=effects, cost=Cost(1e-6, 1e9)),
        Conversion("numpy", "odd", from_python, effects=effects, cost=Cost(1e-6, 1e9),
                   takes={{"readonly", "noncontiguous", "immutable"}}),
    ]

def _find_problems():
    {problems}
"""

#: A framework as it should be.
FRAMEWORK = """
__version__ = "1.5"
class Box:
    def __init__(self, numbers):
        self.numbers = [float(n) for n in numbers]
"""

TO_PYTHON = "import numpy; return numpy.array(box.numbers, 'float32')"


def install_plugin(folder: Path, name: str, text: str, distribution: str = "") -> None:
    """Install a plugin, the module ``<name>_plugin``, as a distribution of its own of version 1.0."""
    distribution = distribution or name
    metadata = folder / f"{distribution.replace('-', '_')}-1.0.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n"
    )
    (metadata / "entry_points.txt").write_text(f"[interop]\n{name} = {name}_plugin\n")
    (metadata / "RECORD").write_text(f"{name}_plugin.py,,\n")
    (folder / f"{name}_plugin.py").write_text(text)


def install(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    framework: str = FRAMEWORK,
    to_python: str = TO_PYTHON,
    problems: str = "return []",
    needs: str = "odd>=1",
) -> None:
    """Install the plugin ``odd`` of the distribution ``interop-odd``, also for other processes."""
    metadata = folder / "interop_odd-2.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: interop-odd\nVersion: 2.0\n"
        f'Provides-Extra: odd\nRequires-Dist: {needs}; extra == "odd"\n'
    )
    (metadata / "entry_points.txt").write_text("[interop]\nodd = interop_odd\n")
    (folder / "interop_odd.py").write_text(PLUGIN.format(to_python=to_python, problems=problems))
    (folder / "odd.py").write_text(framework)
    framework_metadata = folder / "odd-1.5.dist-info"
    framework_metadata.mkdir()
    (framework_metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: odd\nVersion: 1.5\n")
    (framework_metadata / "top_level.txt").write_text("odd\n")
    (framework_metadata / "RECORD").write_text("odd.py,,\n")
    monkeypatch.setenv("PYTHONPATH", python_path(folder))
    monkeypatch.syspath_prepend(folder)
    for name in ("odd", "interop_odd"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    # Load only the bundled plugins that the trial needs: the others take long to import.
    monkeypatch.setenv("INTEROP_DISABLE_PLUGINS", HEAVY)
    # Forget which modules were looked for before.
    from interop._recognition import installed

    monkeypatch.setattr(installed, "_importable", {})
