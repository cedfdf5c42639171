"""Finding, loading, blocking and isolating plugins."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import interop
from interop._model.provenance import OWN, Provenance
from interop._registry import discovery
from interop._registry.registry import Registry
from interop.plugin import Conversion, Format, hookimpl
from interop.plugin.advanced import NoTrace

#: What stands in a module.
Attributes = dict[str, Any]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Pretend that some modules, made of given attributes, are installed as plugins."""

    def install(**modules: Attributes) -> None:
        entries = []
        for name, attributes in modules.items():
            module = ModuleType(f"fake_{name}")
            vars(module).update(attributes)
            monkeypatch.setitem(sys.modules, module.__name__, module)
            entries.append(EntryPoint(name, module.__name__, "interop"))
        monkeypatch.setattr(discovery, "entry_points", lambda group: entries)

    return install


class Fake:
    """The type of a format."""


def _declaring(*declarations: Any) -> Attributes:
    @hookimpl
    def interop_declarations() -> list[Any]:
        return list(declarations)

    return {"interop_declarations": interop_declarations}


def _formats(*names: str) -> Attributes:
    return _declaring(*map(Format, names))


def _plugins(registry: Registry) -> tuple[discovery.Plugin, ...]:
    """Load the plugins into a registry, and return what became of them."""
    registry.loader.load_all()
    return registry.loader.plugins


def test_a_good_plugin_is_loaded_and_counted(installed: Callable[..., None]) -> None:
    """What it declares, in whatever order, is registered and counted in its state."""
    conversion = Conversion("x", "y", print)
    installed(good=_declaring(conversion, Format("x"), NoTrace(lambda function: None), Format("y")))
    registry = Registry(plugins=True)
    (plugin,) = _plugins(registry)
    assert (plugin.state, plugin.formats, plugin.conversions) == ("loaded", 2, 1)
    assert set(registry.formats) == {"x", "y"}
    assert registry.provenance["x"].plugin == "good"


def test_a_hook_may_be_a_generator(installed: Callable[..., None]) -> None:
    """Any iterable of declarations will do."""

    @hookimpl
    def interop_declarations() -> Any:
        yield Format("x")
        yield Format("y")

    installed(good={"interop_declarations": interop_declarations})
    registry = Registry(plugins=True)
    assert _plugins(registry)[0].state == "loaded"
    assert set(registry.formats) == {"x", "y"}


def _raising() -> Attributes:
    @hookimpl
    def interop_declarations() -> list[Format]:
        raise ZeroDivisionError("oops")

    return {"interop_declarations": interop_declarations}


def _malformed() -> Attributes:
    return _declaring(Conversion("a", "b", print, effects=frozenset({"explode"})))


def _misspelt() -> Attributes:
    @hookimpl
    def interop_declaration() -> list[Format]:
        return []

    return {"interop_declaration": interop_declaration}


def _returning_none() -> Attributes:
    @hookimpl
    def interop_declarations() -> None:
        return None

    return {"interop_declarations": interop_declarations}


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (_raising(), "ZeroDivisionError: oops"),
        (_malformed(), "effect 'explode'"),
        (_misspelt(), "interop_declaration'"),
        (_returning_none(), "TypeError: 'NoneType' object is not iterable"),
        (_declaring("nonsense"), "'nonsense', which is not a declaration"),
        (_declaring(NoTrace(lambda: None)), "TypeError"),
        ({"INTEROP_API": 99}, "version 99"),
    ],
)
def test_a_broken_plugin_is_reported_and_disables_only_itself(
    installed: Callable[..., None],
    broken: Attributes,
    reason: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The others load; the broken one is named, with the reason, in the log and its state."""
    installed(aaa=broken, good=_formats("x"))
    registry = Registry(plugins=True)
    plugins = {plugin.name: plugin for plugin in _plugins(registry)}
    assert "plugin 'aaa'" in caplog.text
    assert reason in caplog.text
    assert plugins["aaa"].state == "failed"
    assert reason in plugins["aaa"].reason
    assert plugins["good"].state == "loaded"
    assert set(registry.formats) == {"x"}


def test_a_plugin_that_cannot_be_imported_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """An ImportError at load is a failed plugin, not a failed program."""
    entries = [EntryPoint("gone", "no_such_module", "interop")]
    monkeypatch.setattr(discovery, "entry_points", lambda group: entries)
    (plugin,) = _plugins(Registry(plugins=True))
    assert plugin.state == "failed"
    assert "no_such_module" in plugin.reason


def test_a_name_that_one_distribution_declares_twice_is_the_last_ones(
    installed: Callable[..., None],
) -> None:
    """Plugins of one distribution overwrite what it has declared before, in the order of names."""
    installed(one=_declaring(Format("x")), two=_declaring(Format("x", requires="y"), Format("z")))
    registry = Registry(plugins=True)
    plugins = {plugin.name: plugin for plugin in _plugins(registry)}
    assert {name: plugin.formats for name, plugin in plugins.items()} == {"one": 0, "two": 2}
    assert registry.formats["x"].requires == "y"
    assert plugins["two"].reason == ""


def test_two_entry_points_may_name_one_module(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An old name that is kept for a module declares the same again, which is harmless."""
    module = ModuleType("fake_twice")
    vars(module).update(_formats("x"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    entries = [EntryPoint(name, module.__name__, "interop") for name in ("new", "old")]
    monkeypatch.setattr(discovery, "entry_points", lambda group: entries)
    registry = Registry(plugins=True)
    plugins = _plugins(registry)
    assert [(p.name, p.state, p.reason) for p in plugins] == [
        ("new", "loaded", ""),
        ("old", "loaded", ""),
    ]
    assert set(registry.formats) == {"x"}
    assert caplog.text == ""


def test_a_hook_runs_once_in_a_process(
    installed: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Further instances share what it declared and nothing else; what has changed is asked anew."""
    calls: list[str] = []

    def module(name: str) -> Attributes:
        @hookimpl
        def interop_declarations() -> list[Format]:
            calls.append(name)
            return [Format(name)]

        return {"interop_declarations": interop_declarations}

    first = module("one")
    installed(one=first)
    instances = [interop.Interop() for _ in range(3)]
    for instance in instances:
        assert [format_.name for format_ in instance.formats()] == ["one"]
    assert calls == ["one"]
    instances[0].register(Format("mine"))
    assert [len(instance.formats()) for instance in instances] == [2, 1, 1]
    monkeypatch.setenv("INTEROP_DISABLE_PLUGINS", "one")
    assert interop.Interop().formats() == ()
    monkeypatch.delenv("INTEROP_DISABLE_PLUGINS")
    installed(one=module("another"), two=module("two"))
    assert [format_.name for format_ in interop.Interop().formats()] == ["another", "two"]
    assert calls == ["one", "another", "two"]


def test_later_instances_see_plugins_of_folders_added_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An instance made after a change of `sys.path` has the plugins that are there then."""

    def formats() -> set[str]:
        return {declared.name for declared in interop.Interop().formats()}

    before = formats()
    metadata = tmp_path / "late-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: late\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[interop]\nlate = late_plugin\n")
    (tmp_path / "late_plugin.py").write_text(
        "from interop.plugin import *\n"
        "@hookimpl\ndef interop_declarations(): return [Format('late')]\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert formats() == before | {"late"}
    monkeypatch.undo()
    assert formats() == before


def test_the_record_of_a_plugin_that_failed_is_one_line_with_a_way_out(
    installed: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """An error of several lines stays one, and the variable that leaves the plugin out is named."""

    @hookimpl
    def interop_declarations() -> Any:
        raise ValueError("first\nsecond")

    installed(torn={"interop_declarations": interop_declarations})
    (plugin,) = _plugins(Registry(plugins=True))
    assert plugin.reason == "ValueError: first second"
    (record,) = (r.getMessage() for r in caplog.records if "'torn'" in r.getMessage())
    assert record.endswith("(ValueError: first second); INTEROP_DISABLE_PLUGINS=torn leaves it out")


def test_a_plugin_that_failed_is_tried_again(installed: Callable[..., None]) -> None:
    """Nothing is kept of it, so that an instance made later may find it repaired."""
    answers: list[Any] = [None, [Format("x")]]

    @hookimpl
    def interop_declarations() -> Any:
        return answers.pop(0)

    installed(odd={"interop_declarations": interop_declarations})
    states = [_plugins(Registry(plugins=True))[0].state for _ in range(3)]
    assert states == ["failed", "loaded", "loaded"]


def test_the_package_of_a_plugin_may_decorate_its_functions(
    installed: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`accepts` waits for the plugins that are being loaded; a call of such a function does not."""
    decorated: dict[str, Any] = {}

    @hookimpl
    def interop_declarations() -> list[Any]:
        mine = decorated["mine"]

        @mine.accepts("fake")
        def doubled(x: Any) -> Any:
            """Return twice `x`."""
            return x * 2

        @mine.accepts
        def halved(x: Fake) -> Any:
            return x / 2

        decorated.update(doubled=doubled, halved=halved)
        return [Format("fake", types=(f"{__name__}:Fake",))]

    installed(fake={"interop_declarations": interop_declarations})
    monkeypatch.setenv("INTEROP_DISABLE_PLUGINS", "")
    mine = decorated["mine"] = interop.Interop()
    assert [(p.name, p.state) for p in mine.plugins()] == [("fake", "loaded")]
    doubled, halved = decorated["doubled"], decorated["halved"]
    assert (doubled.__name__, doubled.__doc__) == ("doubled", "Return twice `x`.")
    assert doubled(3) == 6
    assert halved(3) == 1.5


def test_bundled_plugins_come_first() -> None:
    """They are loaded and listed before those of others, whatever these are called."""
    pairs = [
        (EntryPoint(name, name, "interop"), Provenance(name, distribution, "1"))
        for name, distribution in (("b", "aaa"), ("z", OWN), ("a", "zzz"), ("a", OWN), ("a", "aaa"))
    ]
    ordered = sorted(pairs, key=discovery._order)
    assert [(origin.distribution, point.name) for point, origin in ordered] == [
        (OWN, "a"), (OWN, "z"), ("aaa", "a"), ("aaa", "b"), ("zzz", "a")
    ]  # fmt: skip


def test_plugins_are_blocked_by_name(
    installed: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """INTEROP_DISABLE_PLUGINS blocks entry points and distributions by name."""
    installed(one=_formats("x"), two=_formats("y"))
    monkeypatch.setenv("INTEROP_DISABLE_PLUGINS", " two , other")
    registry = Registry(plugins=True)
    one, two = _plugins(registry)
    assert (one.name, one.state, one.formats, one.conversions) == ("one", "loaded", 1, 0)
    assert (two.name, two.state, two.formats, two.conversions) == ("two", "blocked", 0, 0)
    assert set(registry.formats) == {"x"}


def test_a_blocked_plugin_is_named_where_its_format_is_asked_for(
    installed: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Asking for what is blocked says so."""
    installed(first=_formats("x"), two=_formats("two"), odd={"INTEROP_API": 0})
    monkeypatch.setenv("INTEROP_DISABLE_PLUGINS", "two")
    instance = interop.Interop()
    for to, reason in (
        ("two", r"its plugin is not loaded \(disabled by INTEROP_DISABLE_PLUGINS\)"),
        ("two.csr", "disabled by INTEROP_DISABLE_PLUGINS"),
        ("odd", r"its plugin is not loaded \(PluginError: "),
    ):
        with pytest.raises(interop.errors.UnknownTargetError, match=reason):
            instance.plan([1.0], to=to)


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


#: What Python says of an empty name.
_NO_NAME = "ValueError: Empty module name"


@pytest.mark.parametrize("value", ["fake_one:P", "a b c", ""])
def test_an_entry_point_names_a_module(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """A plugin whose entry point names a class, or is no name at all, has failed."""
    monkeypatch.setattr(
        discovery, "entry_points", lambda group: [EntryPoint("p", value, "interop")]
    )
    (plugin,) = _plugins(Registry(plugins=True))
    assert plugin.state == "failed"
    assert plugin.reason in {f"ModuleNotFoundError: No module named {value!r}", _NO_NAME}


def test_plugins_are_blocked_as_indices_compare_names(
    installed: Callable[..., None], monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    """Case counts as little as whether a hyphen, an underscore or a dot stands between words."""
    installed(one_two=_formats("x"), three=_formats("y"))
    monkeypatch.setenv("INTEROP_DISABLE_PLUGINS", "One-Two")
    plugins = _plugins(Registry(plugins=True))
    assert {plugin.name: plugin.state for plugin in plugins} == {
        "one_two": "blocked",
        "three": "loaded",
    }
    assert caplog.text == ""
