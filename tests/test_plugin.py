"""The authors' interface: what may not change within a version, and how versions are told apart."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

from docs.declarations import DECLARATIONS, HOOKS, PAGE, fields
from interop import kit, plugin
from interop._registry import discovery
from interop._registry.discovery import Plugin
from interop._registry.registry import Registry
from interop.plugin import Format, advanced, hookimpl

TEXT = PAGE.read_text("utf-8")

#: What version 1 of the interface has. Until it is released a line may be taken out or changed;
#: after that, only together with `API_VERSION`. New lines may be added at any time.
VERSION_1 = {
    "Advanced": (
        "fast_key=None address=None hub=False not_recoverable=frozenset() divides_host=False unwritable=None"
    ),
    "Autodiff": "format vjp attach",
    "Branch": "names children rebuild",
    "Components": (
        "layout format roles unpack pack fast_unpack=None unpack_keeps=frozenset() "
        "unpack_copies=frozenset() pack_copies=frozenset() pack_seconds=2e-06"
    ),
    "Container": "requires open",
    "Conversion": (
        "source target function takes=frozenset() effects=frozenset() "
        "cost=Cost(latency=1e-06,bandwidth=None,cached=None) dtypes=None devices={'cpu'} "
        "requires=frozenset() drops=frozenset() adds=frozenset() changes=frozenset() "
        "result=Result() ndims=None index_dtypes=None shares=None stream=False replaces=frozenset() "
        "fast_path=None into=None name=''"
    ),
    "Cost": "latency=1e-06 bandwidth=None cached=None",
    "DtypeNames": "type name",
    "Effect": "name allowed loses meaning derived=False",
    "Export": (
        "dtype shape strides device readonly copied versioned data bits device_type "
        "backwards contiguous"
    ),
    "Format": (
        "name types=() describe=None dtypes=frozenset() devices=('cpu',) carries=frozenset() "
        "exports={} memory=None requires='' install='' ndims=None fill=None fast_path=None "
        "target_types=None aliases=() index_dtypes=frozenset() components=None wrapper=None "
        "limits=Limits() samples=Samples() protocol=None labels=None lazy=False unary=() "
        "advanced=Advanced()"
    ),
    "Labels": "present give",
    "Limits": "unsupported={} unsupported_now=None refusal_hints={}",
    "Namespaces": "declare",
    "NoTrace": "mark",
    "Parts": "shape arrays facts={}",
    "Problem": "problem fix formats others=None devices=None",
    "Problems": "find",
    "Result": "dtypes=None devices=None index_dtype=None bits=None",
    "Samples": "make=None variants={}",
    "Spec": (
        "format dtype=None device='cpu' shape=() traits=frozenset() nbytes=0 nnz=None "
        "index_dtype=None code_dtype=None carrier=None wrapped=None"
    ),
    "Wrapper": "unwrap seconds=2e-06",
}
HOOKS_1 = {"interop_declarations"}
NAMES_1 = (
    "API_VERSION DTYPES EFFECTS MEMORY_TRAITS TRAITS Autodiff BUS Branch Cast Components "
    "Container Conversion Copy Cost Declaration Declined Drop DtypeNames Effect Format Labels "
    "Limits Move Parts Result Samples Spec Wrapper hookimpl itemsize itself make_spec preserves "
    "size_class"
)
ADVANCED_1 = "Advanced Namespaces NoTrace Problem Problems"
KIT_1 = (
    "ADDRESSES COMPLEX COPY CPU CheckedProducer DEVICE DTYPE EMPTY Export INTEGERS MemoryAt "
    "REALS checked_export export extents limit_threads parallel_for transfer"
)


@pytest.mark.parametrize("name", VERSION_1)
def test_version_1_keeps_its_fields(name: str) -> None:
    """No field or default of version 1 is gone or another, and no new field is required."""
    assert plugin.API_VERSION == 1, "begin a new list"
    now, before = _surface(DECLARATIONS[name]), VERSION_1[name].split()
    assert [field for field in before if field not in now] == []
    assert [field for field in now if field not in before and "=" not in field] == []


def test_version_1_keeps_its_hooks_and_names() -> None:
    """No hook and no name is gone, and every declaration has a list of its fields."""
    assert set(HOOKS) >= HOOKS_1
    assert set(NAMES_1.split()) <= set(plugin.__all__)
    assert set(ADVANCED_1.split()) <= set(advanced.__all__)
    assert set(KIT_1.split()) <= set(kit.__all__)
    assert set(DECLARATIONS) == set(VERSION_1)


def _surface(declaration: Any) -> list[str]:
    """Return the fields of a declaration, with their defaults, without spaces."""
    defaults = {field.name: field.default.replace(" ", "") for field in fields(declaration)}
    return [f"{name}={default}" if default else name for name, default in defaults.items()]


@pytest.mark.parametrize("name", DECLARATIONS)
def test_every_number_has_a_unit(name: str) -> None:
    """Where a field is a number, or holds several, its documented type says of what."""
    hints = DECLARATIONS[name].__annotations__
    numbers = {
        field
        for field, hint in hints.items()
        if re.search(r"\b(?:int|float)\b", str(hint)) and "Callable" not in str(hint)
    }
    assert {field.name for field in fields(DECLARATIONS[name]) if field.unit} == numbers


# ---------------------------------------------------------------------- versions


def test_the_page_says_which_version_this_is() -> None:
    """The number on the page is that of the module."""
    assert f"whole number `API_VERSION`. It is {plugin.API_VERSION}." in TEXT


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Plugin]]:
    """Load a module made of some attributes beside a good one, as if both were installed."""

    def run(**attributes: Any) -> dict[str, Plugin]:
        modules = {"odd": attributes, "good": {"interop_declarations": _declarations}}
        for name, space in modules.items():
            module = ModuleType(f"page_{name}")
            vars(module).update(space)
            monkeypatch.setitem(sys.modules, module.__name__, module)
        entries = [EntryPoint(name, f"page_{name}", "interop") for name in modules]
        monkeypatch.setattr(discovery, "entry_points", lambda group: entries)
        registry = Registry(plugins=True)
        registry.loader.load_all()
        return {loaded.name: loaded for loaded in registry.loader.plugins}

    return run


@hookimpl
def _declarations() -> Iterable[Format]:
    return [Format("good")]


def test_a_plugin_for_another_version_reads_what_the_page_shows(
    load: Callable[..., dict[str, Plugin]],
) -> None:
    """It is not loaded, for the reason that the page shows, and disables nothing else."""
    plugins = load(INTEROP_API=2)
    assert (plugins["odd"].state, plugins["good"].state) == ("failed", "loaded")
    assert f"```text\n{plugins['odd'].reason}\n```" in TEXT


@pytest.mark.parametrize("attributes", [{}, {"INTEROP_API": 1}])
def test_a_plugin_for_this_version_loads(
    attributes: dict[str, int], load: Callable[..., dict[str, Plugin]]
) -> None:
    """A plugin for this version loads, whether it names the version or not."""
    assert load(**attributes)["odd"].state == "loaded"


def test_what_this_version_does_not_have_disables_one_plugin(
    load: Callable[..., dict[str, Plugin]],
) -> None:
    """A field or a hook of another version is a failure of that plugin alone, which names it."""

    @hookimpl
    def interop_declarations() -> Iterable[Format]:
        return [Format("odd", smell="sweet")]  # type: ignore[call-arg]

    @hookimpl
    def interop_smells() -> Iterable[str]:
        return ["sweet"]

    for attributes, word in (
        ({"interop_declarations": interop_declarations}, "smell"),
        ({"interop_smells": interop_smells}, "interop_smells"),
    ):
        plugins = load(**attributes)
        assert plugins["odd"].state == "failed"
        assert word in plugins["odd"].reason
        assert plugins["good"].state == "loaded"
