"""Finding, loading, blocking and isolating plugins."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import Any

import pytest

import interop
from interop._registry.registry import Registry
from interop._registry.registry import discovery as _plugins
from interop.plugin import Conversion, Format, hookimpl


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Pretend that some modules, made of given attributes, are installed as plugins."""

    def install(**modules: dict[str, Any]) -> None:
        entries = []
        for name, attributes in modules.items():
            module = ModuleType(f"fake_{name}")
            vars(module).update(attributes)
            monkeypatch.setitem(sys.modules, module.__name__, module)
            entries.append(EntryPoint(name, module.__name__, "interop"))
        monkeypatch.setattr(_plugins, "entry_points", lambda group: entries)

    return install


def _formats(*names: str) -> dict[str, Any]:
    @hookimpl
    def interop_formats() -> list[Format]:
        return [Format(name) for name in names]

    return {"interop_formats": interop_formats}


def test_a_good_plugin_is_loaded_and_counted(installed: Callable[..., None]) -> None:
    """What it declares is registered, and its state says so."""
    installed(good=_formats("x", "y"))
    registry = Registry()
    (found,) = _plugins.load(registry)
    assert (found.state, found.formats, found.conversions) == ("loaded", 2, 0)
    assert set(registry.formats) == {"x", "y"}
    assert registry.provenance["x"].plugin == "good"


def _raising() -> Any:
    @hookimpl
    def interop_formats() -> list[Format]:
        raise ZeroDivisionError("oops")

    return {"interop_formats": interop_formats}


def _malformed() -> Any:
    @hookimpl
    def interop_conversions() -> list[Any]:
        return [Conversion("a", "b", print, effects=frozenset({"explode"}))]

    return {"interop_conversions": interop_conversions}


def _misspelt() -> Any:
    @hookimpl
    def interop_fromats() -> list[Format]:
        return []

    return {"interop_fromats": interop_fromats}


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (_raising(), "ZeroDivisionError: oops"),
        (_malformed(), "effect 'explode'"),
        (_misspelt(), "interop_fromats"),
        ({"INTEROP_API": 99}, "version 99"),
    ],
)
def test_a_broken_plugin_is_reported_and_disables_only_itself(
    installed: Callable[..., None],
    broken: dict[str, Any],
    said: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The others load; the broken one is named, with the reason, in the log and its state."""
    installed(aaa=broken, good=_formats("x"))
    registry = Registry()
    states = {p.name: p for p in _plugins.load(registry)}
    assert "plugin 'aaa'" in caplog.text
    assert said in caplog.text
    assert states["aaa"].state == "failed"
    assert said in states["aaa"].reason
    assert states["good"].state == "loaded"
    assert set(registry.formats) == {"x"}


def test_a_plugin_that_cannot_be_imported_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ImportError at load is a failed plugin, not a failed program."""
    entries = [EntryPoint("gone", "no_such_module", "interop")]
    monkeypatch.setattr(_plugins, "entry_points", lambda group: entries)
    (found,) = _plugins.load(Registry())
    assert found.state == "failed"
    assert "no_such_module" in found.reason


def test_conflicting_plugins_are_settled_in_favour_of_the_first(
    installed: Callable[..., None],
) -> None:
    """The later of two conflicting plugins is disabled, and the reason names both."""

    def plugin(**facts: Any) -> dict[str, Any]:
        @hookimpl
        def interop_formats() -> list[Format]:
            return [Format("x", **facts)]

        return {"interop_formats": interop_formats}

    installed(one=plugin(), two=plugin(requires="y"))
    states = {p.name: p for p in _plugins.load(Registry())}
    assert {name: p.state for name, p in states.items()} == {"one": "loaded", "two": "failed"}
    assert "declared by" in states["two"].reason


def test_plugins_are_blocked_by_name(
    installed: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """INTEROP_DISABLE_PLUGINS blocks entry points and distributions by name."""
    installed(one=_formats("x"), two=_formats("y"))
    monkeypatch.setenv("INTEROP_DISABLE_PLUGINS", " two , other")
    registry = Registry()
    states = {p.name: p.state for p in _plugins.load(registry)}
    assert states == {"one": "loaded", "two": "blocked"}
    assert set(registry.formats) == {"x"}


def test_no_plugin_at_all_says_that_the_metadata_is_missing(
    installed: Callable[..., None],
) -> None:
    """An empty group is never taken for a graph without routes."""
    installed()
    with pytest.raises(interop.errors.PluginError, match=r"pip install -e \."):
        interop.Interop().formats()


def test_blocking_a_bundled_plugin_takes_its_conversions_away(
    in_subprocess: Callable[..., str],
) -> None:
    """Without the scipy plugin its formats are unknown, and everything else works."""
    program = """
        import interop
        print(interop.convert([1, 2], to="numpy").tolist())
        try:
            interop.convert([1, 2], to="scipy.csr")
        except interop.errors.UnknownTargetError as error:
            print("refused")
    """
    assert in_subprocess(program, INTEROP_DISABLE_PLUGINS="scipy").split("\n")[:2] == [
        "[1, 2]",
        "refused",
    ]
