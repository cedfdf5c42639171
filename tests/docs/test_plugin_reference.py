"""The reference of `interop.plugin`: complete, and never out of date."""

from __future__ import annotations

import difflib
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from docs import declarations
from docs.declarations import DECLARATIONS, GROUPS, HOOKS, PAGE, PAGES, TOOLS
from interop import plugin
from tests.cases import together

TEXT = PAGE.read_text("utf-8")
TEXTS = "\n".join(page.read_text("utf-8") for page in PAGES)


@pytest.mark.parametrize(("path", "module"), PAGES.items(), ids=("plugin", "advanced", "kit"))
def test_the_page_is_what_the_declarations_say(path: Path, module: ModuleType) -> None:
    """Made again from docstrings and defaults, a page is the one in the repository."""
    text = path.read_text("utf-8")
    page = declarations.rendered(text, module)
    if page != text:
        lines = difflib.unified_diff(text.splitlines(), page.splitlines(), lineterm="", n=0)
        pytest.fail("python -m docs.declarations --store\n" + "\n".join(lines))


def test_a_page_without_a_part_is_refused() -> None:
    """A declaration that the page leaves out is an error, and so is one that does not exist."""
    for page in (
        TEXT.replace("<!-- begin Format -->", ""),
        TEXT.replace("Wrapper -->", "Coat -->"),
    ):
        with pytest.raises(ValueError, match="the text and what is made differ"):
            declarations.rendered(page)


@together("name", [*DECLARATIONS, *TOOLS])
def test_every_declaration_and_function_has_a_section(name: str) -> None:
    """It has a heading of its own, and a row for each of its fields."""
    section = re.search(
        rf"^####? {name}\n\n<!-- begin {name} -->\n(.*?)<!-- end", TEXTS, re.MULTILINE | re.DOTALL
    )
    assert section is not None
    tables = re.findall(r"(?:^\|.*\n)+", section[1], re.MULTILINE)
    rows = [re.split(r"(?<!\\)\|", line) for table in tables for line in table.splitlines()]
    assert all(
        len({line.replace("\\|", "").count("|") for line in table.splitlines()}) == 1
        for table in tables
    )
    if name in DECLARATIONS:
        assert len(rows) == 2 * len(tables) + len(DECLARATIONS[name].__annotations__)


@together("name", DECLARATIONS)
def test_every_field_is_documented(name: str) -> None:
    """It has a type and a meaning, and no docstring describes a field that does not exist."""
    fields = declarations.fields(DECLARATIONS[name])
    assert sorted(field.name for field in fields) == sorted(DECLARATIONS[name].__annotations__)
    assert [field.name for field in fields if not (field.type and field.meaning)] == []


@together("name", GROUPS)
def test_groups_are_of_every_field(name: str) -> None:
    """Where the fields are divided into tables, each is in one of them."""
    grouped = " ".join(GROUPS[name].values()).split()
    assert sorted(grouped) == sorted(DECLARATIONS[name]._fields)


def test_tables_say_the_default_the_unit_and_what_is_required() -> None:
    """A number has a unit, a field with a default shows it, and any other is required."""
    cost = declarations.fields_table(plugin.Cost).splitlines()
    (latency,) = [line for line in cost if line.startswith("| `latency` |")]
    assert latency.startswith("| `latency` | float | seconds | `1e-06` |")
    (name,) = [field for field in declarations.fields(plugin.Format) if field.name == "name"]
    assert (name.type, name.unit, name.default) == ("str", "", "")
    assert "| `name` | str | required |" in TEXT
    assert _default(plugin.Conversion, "devices") == "{'cpu'}"
    assert _default(plugin.Format, "limits") == "Limits()"


def _default(declaration: Any, name: str) -> str:
    (field,) = [field for field in declarations.fields(declaration) if field.name == name]
    return field.default


def test_every_public_name_is_on_the_page() -> None:
    """Whatever authors can import has a place there; `hookspec` is for the core."""
    for path, module in PAGES.items():
        text = path.read_text("utf-8")
        assert [name for name in module.__all__ if not re.search(rf"\b{name}\b", text)] == []
    assert all(f"| `{hook}` | `" in TEXT for hook in HOOKS)


@together("name", DECLARATIONS)
def test_every_number_has_a_unit(name: str) -> None:
    """Where a field is a number, or holds several, its documented type says of what."""
    hints = DECLARATIONS[name].__annotations__
    numbers = {
        field
        for field, hint in hints.items()
        if re.search(r"\b(?:int|float)\b", str(hint)) and "Callable" not in str(hint)
    }
    assert {
        field.name for field in declarations.fields(DECLARATIONS[name]) if field.unit
    } == numbers


def test_the_page_says_which_version_this_is() -> None:
    """The number on the page is that of the module."""
    assert f"whole number `API_VERSION`. It is {plugin.API_VERSION}." in TEXT
