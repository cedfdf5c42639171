"""A framework that is installed and cannot be imported is named, with the reason, at every entry."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import python_path

#: What the import raises, by the text of the reason.
FAULTS = {
    "ImportError: undefined symbol: cuInit": "raise ImportError('undefined symbol: cuInit')",
    "OSError: libcudart.so.13: cannot open": "raise OSError('libcudart.so.13: cannot open')",
    "RuntimeError: built for another NumPy": "raise RuntimeError('built for another NumPy')",
    "AttributeError: module 'os' has no attribute 'cuda'": "import os; os.cuda",
    "ModuleNotFoundError: No module named 'no_such_part'": "import no_such_part",
}
FRAMEWORKS = (
    "torch", "jax", "tensorflow", "mlx", "pandas", "polars", "pyarrow", "xarray", "scipy", "sparse",
)  # fmt: skip

PROGRAM = """
import builtins, json, sys
import numpy as np
import interop

x = np.ones((2, 2), "float32")
TARGETS = {"scipy": "scipy.csr", "pandas": "pandas.dataframe", "polars": "polars.dataframe",
           "pyarrow": "pyarrow.tensor"}
def accepted(to):
    return interop.accepts(to)(lambda array: array)(x)
ENTRIES = {
    "convert": lambda to: interop.convert(x, to=to),
    "a list": lambda to: interop.convert([[1.0, 2.0]], to=to, dtype="float32"),
    "accepts": accepted,
    "tree": lambda to: interop.convert_tree({"a": x}, to=to),
    "plan": lambda to: interop.plan(x, to=to)(x),
    "converter": lambda to: interop.converter(to)(x),
}
for fault in json.loads(sys.argv[1]):
    builtins.FAULT = fault
    for framework in json.loads(sys.argv[2]):
        for name, entry in ENTRIES.items():
            try:
                entry(TARGETS.get(framework, framework))
            except BaseException as error:
                notes = getattr(error, "__notes__", [])
                text = "\\n".join([str(error), *notes])
                print(json.dumps([fault, framework, name, type(error).__name__, text]))
            else:
                print(json.dumps([fault, framework, name, "", "nothing is raised"]))
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """What is raised: the fault, the framework, the entry, the class of the error and its text."""
    folder = tmp_path_factory.mktemp("broken")
    for framework in FRAMEWORKS:
        package = folder / framework
        package.mkdir()
        (package / "__init__.py").write_text("import builtins\nexec(builtins.FAULT)\n")
    words = json.dumps(list(FAULTS.values())), json.dumps(FRAMEWORKS)
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        env={**os.environ, "PYTHONPATH": python_path(Path(folder))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    return [json.loads(line) for line in process.stdout.splitlines()]


def test_a_broken_framework_is_named_with_the_reason(outcomes: list[list[str]]) -> None:
    """One error says which framework, why, and what looks into it; it asks nobody to install it."""
    reasons = {fault: reason for reason, fault in FAULTS.items()}
    wrong = [
        (framework, entry, kind, text)
        for fault, framework, entry, kind, text in outcomes
        if kind != "NotInstalledError"
        or f"{framework} is installed, but importing it fails" not in text
        or reasons[fault] not in text
        or "interop doctor" not in text
        or "install it" in text
        or "report it to" in text
    ]
    assert len(outcomes) == len(FAULTS) * len(FRAMEWORKS) * 6
    assert wrong == []
