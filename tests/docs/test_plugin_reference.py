"""The reference of `interop.plugin`: complete, and never out of date."""

from __future__ import annotations

import difflib
import re
from typing import Any

import pytest

from docs import declarations
from docs.declarations import DECLARATIONS, HOOKS, PAGE, TOOLS
from interop import plugin
from tests.cases import together

TEXT = PAGE.read_text("utf-8")


def test_the_page_is_what_the_declarations_say() -> None:
    """Made again from docstrings and defaults, the page is the one in the repository."""
    page = declarations.rendered(TEXT)
    if page != TEXT:
        lines = difflib.unified_diff(TEXT.splitlines(), page.splitlines(), lineterm="", n=0)
        pytest.fail("python -m docs.declarations --store\n" + "\n".join(lines))


def test_a_page_without_a_part_is_refused() -> None:
    """A declaration that the page leaves out is an error, and so is one that does not exist."""
    for page in (
        TEXT.replace("<!-- begin Format -->", ""),
        TEXT.replace("Wrapper -->", "Coat -->"),
    ):
        with pytest.raises(ValueError, match="the page and the interface differ"):
            declarations.rendered(page)


@together("name", [*DECLARATIONS, *TOOLS])
def test_every_declaration_and_function_has_a_section(name: str) -> None:
    """It has a heading of its own, and a table of as many rows as it has fields."""
    section = re.search(
        rf"^### {name}\n\n<!-- begin {name} -->\n(.*?)<!-- end", TEXT, re.MULTILINE | re.DOTALL
    )
    assert section is not None
    rows = [re.split(r"(?<!\\)\|", line) for line in section[1].splitlines() if line[:1] == "|"]
    assert len({len(row) for row in rows}) <= 1
    if name in DECLARATIONS:
        assert len(rows) == 2 + len(DECLARATIONS[name]._fields)


@pytest.mark.parametrize("name", DECLARATIONS)
def test_every_field_is_documented(name: str) -> None:
    """It has a type and a meaning, and no docstring describes a field that does not exist."""
    fields = declarations.fields(DECLARATIONS[name])
    assert sorted(field.name for field in fields) == sorted(DECLARATIONS[name]._fields)
    assert [field.name for field in fields if not (field.type and field.meaning)] == []


def test_tables_say_the_default_the_unit_and_what_is_required() -> None:
    """A number has a unit, a field with a default shows it, and any other is required."""
    cost = declarations.fields_table(plugin.Cost).splitlines()
    (latency,) = [line for line in cost if line.startswith("| `latency` |")]
    assert latency.startswith("| `latency` | float | seconds | `1e-06` |")
    (name,) = [field for field in declarations.fields(plugin.Format) if field.name == "name"]
    assert (name.type, name.unit, name.default) == ("str", "", "")
    assert "| `name` | str |  | required |" in TEXT
    assert _default(plugin.Conversion, "devices") == "{'cpu'}"
    assert _default(plugin.Format, "limits") == "Limits()"


def _default(declaration: Any, name: str) -> str:
    (field,) = [field for field in declarations.fields(declaration) if field.name == name]
    return field.default


def test_every_public_name_is_on_the_page() -> None:
    """Whatever authors can import has a place there; `hookspec` is for the core."""
    missing = {name for name in plugin.__all__ if not re.search(rf"\b{name}\b", TEXT)}
    assert missing <= {"hookspec"}
    assert all(f"| `{hook}` | `" in TEXT for hook in HOOKS)
