"""The public surface is the one that is stored."""

from __future__ import annotations

import difflib
import re
from importlib import import_module
from pathlib import Path

import pytest

from tests import surface

PAGE = Path(__file__).parents[1] / "docs/reference/stability.md"


def test_the_public_surface_is_the_stored_one() -> None:
    """No name, keyword, default, field, effect or class of error changes without a line in a diff."""
    pytest.importorskip("typer")
    stored, present = surface.FILE.read_text("utf-8"), surface.surface()
    if stored != present:
        lines = difflib.unified_diff(stored.splitlines(), present.splitlines(), lineterm="", n=0)
        pytest.fail("python -m tests.surface --store, if it is meant\n" + "\n".join(lines))


@pytest.mark.parametrize(
    ("line", "section"),
    [
        ("convert(x, /, to=None, *, like=None, dtype=None", "interop"),
        ("EFFECTS['narrow']: refused by default", "interop"),
        ("class RefusedError(InteropError, ValueError)", "interop.errors"),
        ("    .effects", "interop"),
        ("    Labels(present, give)", "interop.plugin"),
        ("itemsize(dtype)", "interop.plugin"),
        ("check(plugin, *, progress=None)", "interop.testing"),
    ],
)
def test_the_surface_has_what_callers_write(line: str, section: str) -> None:
    """Signatures, effects, bases of errors, attributes, fields and functions stand in it."""
    text = surface.FILE.read_text("utf-8")
    part = text.partition(f"# {section} (")[2].partition("\n# ")[0]
    assert f"\n{line}" in part


def test_the_page_gives_every_public_name_a_status() -> None:
    """Nothing that `interop` exports is left out of the page."""
    page = PAGE.read_text("utf-8")
    words = set(re.findall(r"`(?:interop\.)?(\w+)(?:\(\))?`", page))
    fields = {"default", "errors", "InteropError", "TRAITS", "__version__"}
    assert set(import_module("interop").__all__) - words - fields == set()
    assert all(f"`{name}`" in page for name in surface.MODULES if name != "interop")
