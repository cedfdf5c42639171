"""The reference of `interop.plugin`, and what may not change in it within one version."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from interop import plugin
from interop._registry.registry import Registry
from interop._registry.registry import discovery as _plugins
from interop.plugin import Format, hookimpl

DOCS = Path(__file__).parent.parent / "docs"
PAGE = (DOCS / "reference" / "plugin.md").read_text("utf-8")


def _tables() -> ModuleType:
    """Load what the tables of the page are made by."""
    spec = importlib.util.spec_from_file_location("declarations", DOCS / "declarations.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TABLES = _tables()
DECLARATIONS: dict[str, Any] = TABLES.DECLARATIONS

#: What version 1 of the plugin API has. Until it is released a line may be taken out or changed;
#: after that, only together with `API_VERSION`. New lines may be added at any time.
VERSION_1 = {
    "Autodiff": "format vjp attach",
    "Branch": "names children rebuild",
    "Container": "requires open",
    "Conversion": (
        "source target function dtypes=None devices={'cpu'} takes=frozenset() "
        "requires=frozenset() ndims=None drops=frozenset() adds=frozenset() "
        "changes=frozenset() to_dtypes=None to_devices=None index_dtype=None bits=None "
        "effects=frozenset() shares=None cost=Cost(latency=1e-06,bandwidth=None,cached=None) "
        "stream=False priority=0 shortcut=None name='' index_dtypes=None into=None"
    ),
    "Cost": "latency=1e-06 bandwidth=None cached=None",
    "DtypeNames": "type name",
    "Effect": "name allowed loses meaning",
    "Export": (
        "dtype shape strides device readonly copied versioned data bits alignment device_type "
        "backwards contiguous"
    ),
    "Format": (
        "name types=() describe=None dtypes=frozenset() devices=('cpu',) lacks={} "
        "unsupported_now=None obstacles={} carries=frozenset() speaks={} protocol=None requires='' "
        "install='' layout=None components=None roles={} apart=frozenset() unpack=None "
        "pack=None fast_unpack=None restacks=frozenset() unstacks=frozenset() "
        "index_dtypes=frozenset() memory=None fill=None named_by=None identity=None "
        "handling=2e-06 forgets=frozenset() passable=True sample=None variants={} ndims=None "
        "lazy=False inside=None labelled=False"
    ),
    "Parts": "shape arrays facts={}",
    "Spec": (
        "format dtype=None device='cpu' shape=() traits=frozenset() nbytes=0 nnz=None "
        "index_dtype=None code_dtype=None carrier=None inside=None"
    ),
    "Problem": "problem fix formats others=None devices=None",
}
HOOKS_1 = (
    "interop_formats interop_conversions interop_dtypes interop_containers interop_troubles "
    "interop_autodiffs interop_shields "
)
NAMES_1 = (
    "API_VERSION DTYPES EFFECTS MEMORY_TRAITS PACKED TRAITS Autodiff Branch CheckedProducer "
    "Container Conversion Cost Declined DtypeNames Effect Export Format Parts QuantizedArray "
    "Spec Problem checked_export convert export limit_threads hookimpl hookspec itemsize itself "
    "make_spec preserves parallel_for "
)


# ---------------------------------------------------------------------- the reference


@pytest.mark.parametrize("name", DECLARATIONS)
def test_every_field_is_documented(name: str) -> None:
    """Each has a type and a meaning, and there is none that does not exist."""
    described = TABLES.fields(DECLARATIONS[name])
    assert sorted(one.name for one in described) == sorted(DECLARATIONS[name]._fields)
    assert [one.name for one in described if not (one.type and one.meaning)] == []


@pytest.mark.parametrize("name", DECLARATIONS)
def test_every_number_has_a_unit(name: str) -> None:
    """Where a field is a number, or several, its type says of what."""
    hints = DECLARATIONS[name].__annotations__
    numbers = {
        field
        for field, hint in hints.items()
        if re.search(r"\b(?:int|float)\b", str(hint)) and "Callable" not in str(hint)
    }
    assert {one.name for one in TABLES.fields(DECLARATIONS[name]) if one.unit} == numbers


@pytest.mark.parametrize("name", DECLARATIONS)
def test_the_page_has_the_table_of_every_declaration(name: str) -> None:
    """It is put in by its name, and has a row of as many cells for each field."""
    assert f"### {name}\n\n{{{{ {name}_fields }}}}\n" in PAGE
    lines = TABLES.fields_table(DECLARATIONS[name]).splitlines()
    rows = [re.split(r"(?<!\\)\|", line) for line in lines if line.startswith("|")]
    assert len({len(row) for row in rows}) == 1
    assert len(rows) == 2 + len(DECLARATIONS[name]._fields)


def test_tables_say_the_default_the_unit_and_what_is_required() -> None:
    """Three rows of different kinds, in full."""
    cost = TABLES.fields_table(plugin.Cost).splitlines()
    assert "| `latency` | float | seconds | `1e-06` | What a value of no size takes. |" in cost
    (name,) = [one for one in TABLES.fields(Format) if one.name == "name"]
    assert (name.type, name.unit, name.default) == ("str", "", "")
    (devices,) = [one for one in TABLES.fields(plugin.Conversion) if one.name == "devices"]
    assert devices.default == "{'cpu'}"


def test_every_hook_and_every_public_name_is_on_the_page() -> None:
    """Whatever can be imported by authors is said to be there."""
    table = TABLES.hooks_table()
    assert [name for name in TABLES.HOOKS if f"| `{name}` | `" not in table] == []
    names = [name for name in plugin.__all__ if not re.search(rf"\b{name}\b", PAGE)]
    assert set(names) <= {"hookspec"}  # which is for the core
    assert "{{ hooks_table }}" in PAGE


# ---------------------------------------------------------------------- versions


def test_the_page_says_which_version_this_is() -> None:
    """Its number is that of the module."""
    assert f"whole number `API_VERSION`. It is {plugin.API_VERSION}." in PAGE


@pytest.mark.parametrize("name", VERSION_1)
def test_version_1_keeps_its_fields(name: str) -> None:
    """No field or default of version 1 is gone or another, and no new one must be given."""
    assert plugin.API_VERSION == 1, "begin a new list"
    now = _surface(DECLARATIONS[name])
    before = VERSION_1[name].split()
    assert [one for one in before if one not in now] == []
    assert [one for one in now if one not in before and "=" not in one] == []


def test_version_1_keeps_its_hooks_and_names() -> None:
    """None of them is gone."""
    assert set(HOOKS_1.split()) <= set(TABLES.HOOKS)
    assert set(NAMES_1.split()) <= set(plugin.__all__)


def _surface(declaration: Any) -> list[str]:
    """Return the fields of a declaration, with their defaults, without spaces."""
    found = {one.name: one.default.replace(" ", "") for one in TABLES.fields(declaration)}
    return [f"{name}={found[name]}" if found[name] else name for name in declaration._fields]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, _plugins.Plugin]]:
    """Load modules made of some attributes beside a good one, as if they were installed."""

    def run(**attributes: Any) -> dict[str, _plugins.Plugin]:
        modules = {"odd": attributes, "good": {"interop_formats": _formats}}
        for name, space in modules.items():
            module = ModuleType(f"page_{name}")
            vars(module).update(space)
            monkeypatch.setitem(sys.modules, module.__name__, module)
        entries = [EntryPoint(name, f"page_{name}", "interop") for name in modules]
        monkeypatch.setattr(_plugins, "entry_points", lambda group: entries)
        return {one.name: one for one in _plugins.load(Registry())}

    return run


@hookimpl
def _formats() -> Iterable[Format]:
    return [Format("good")]


def test_a_plugin_for_another_version_reads_what_the_page_shows(
    load: Callable[..., dict[str, _plugins.Plugin]],
) -> None:
    """It is not loaded, is told why in the words of the page, and disables nothing else."""
    found = load(INTEROP_API=2)
    assert (found["odd"].state, found["good"].state) == ("failed", "loaded")
    assert f"```text\n{found['odd'].reason}\n```" in PAGE


@pytest.mark.parametrize("said", [{}, {"INTEROP_API": 1}])
def test_a_plugin_for_this_version_loads(
    said: dict[str, int], load: Callable[..., dict[str, _plugins.Plugin]]
) -> None:
    """It does, whether it says so or says nothing."""
    assert load(**said)["odd"].state == "loaded"


def test_what_this_version_does_not_know_disables_one_plugin(
    load: Callable[..., dict[str, _plugins.Plugin]],
) -> None:
    """A field or a hook of a later release is a failure of that plugin, which names it."""

    @hookimpl
    def interop_formats() -> Iterable[Format]:
        return [Format("odd", smell="sweet")]  # type: ignore[call-arg]

    @hookimpl
    def interop_smells() -> Iterable[str]:
        return ["sweet"]

    for attributes, word in (
        ({"interop_formats": interop_formats}, "smell"),
        ({"interop_smells": interop_smells}, "interop_smells"),
    ):
        found = load(**attributes)
        assert found["odd"].state == "failed"
        assert word in found["odd"].reason
        assert found["good"].state == "loaded"
