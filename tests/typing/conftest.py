"""What the tests of types share."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

OURS = ("interop", "interop_plugins")


@pytest.fixture(scope="session")
def numpy_alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that sees NumPy and this package alone."""
    folder = tmp_path_factory.mktemp("numpy_alone") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    for name in (*OURS, "numpy", "ml_dtypes"):
        (file,) = import_module(name).__path__
        if name in OURS:  # pyright says of what is elsewhere that it has no types
            shutil.copytree(file, packages / name)
        else:
            (packages / name).symlink_to(file)
    return folder / "bin" / "python"
