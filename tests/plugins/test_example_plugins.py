"""The small plugins in ``examples/plugins``: their own tests, with their libraries."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

FOLDERS = sorted((Path(__file__).parents[2] / "examples" / "plugins").iterdir())


def _case(folder: Path) -> object:
    """Return the case of a plugin, which needs the library that its entry point is named after."""
    (name,) = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["entry-points"][
        "interop"
    ]
    return pytest.param(folder, id=folder.name, marks=pytest.mark.extra(name))


@pytest.mark.slow
@pytest.mark.parametrize("folder", [*map(_case, FOLDERS)])
def test_its_own_tests_pass(folder: Path) -> None:
    """Registered in a process of its own, the plugin passes the tests that it ships."""
    module = folder.name.replace("-", "_")
    code = (
        f"import sys; sys.path.insert(0, {str(folder)!r})\n"
        f"import interop, {module}, pytest\n"
        f"interop.register(*{module}.interop_declarations())\n"
        "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', 'tests']))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout + run.stderr
