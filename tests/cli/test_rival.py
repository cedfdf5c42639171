"""The rival: what is installed beside this package, under its name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import interop
from interop._model.provenance import OWN
from tests.processes import python_path

ADVICE = (
    "the distribution 'rival' 1.9 installs a package 'interop', as 'array-interop' does, and the "
    "one installed later replaces files of the other; keep them in separate environments"
)


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder with the metadata of another distribution that has a package of this name."""
    metadata = tmp_path / "rival-1.9.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: rival\nVersion: 1.9\n")
    (metadata / "top_level.txt").write_text("interop\n")
    return tmp_path


def _python(site: Path, program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": python_path(site)},
        cwd=site,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("start", ["from interop.core import *", None], ids=["other", "none"])
def test_the_command_says_that_the_package_was_replaced(site: Path, start: str | None) -> None:
    """The other distribution has put its start of the package there, or has taken it along."""
    package = Path(interop.__file__).parent
    shutil.copytree(package, site / "interop", ignore=shutil.ignore_patterns("__pycache__"))
    if start is None:
        (site / "interop" / "__init__.py").unlink()
        shutil.rmtree(site / "rival-1.9.dist-info")
    else:
        (site / "interop" / "__init__.py").write_text(start)
        (site / "interop" / "core.py").touch()
    elsewhere = f"import sys; sys.path.remove({str(package.parent)!r})"
    result = _python(site, f"{elsewhere}; from interop._cli.cli import main; main()")
    line, *others = result.stderr.splitlines()
    assert (result.returncode, result.stdout, others) == (2, "", [])
    assert line.startswith("interop: ")
    assert (ADVICE if start else f"files of {OWN} are missing: ") in line


def test_the_doctor_finds_the_other_distribution(site: Path) -> None:
    """It is a finding with what fixes it, although everything works at present."""
    program = """
from importlib.metadata import packages_distributions
from interop._cli.doctor import _rivalry
print(*_rivalry(packages_distributions()))
"""
    assert ADVICE.partition("; ")[0] in _python(site, program).stdout
