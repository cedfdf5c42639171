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
from docs.declarations import PAGE
from interop._model.provenance import OWN, Provenance
from interop._registry import plugins as discovery
from interop._registry.registry import Registry
from interop.plugin import Conversion, Format, hookimpl
from interop.plugin.advanced import NoTrace
from tests.processes import python_path
from tests.strange import install_plugin

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

    @hookimpl
    def interop_declarations() -> Any:  # any iterable of declarations will do
        yield from (Conversion("x", "y", print), Format("x"), NoTrace(lambda f: None), Format("y"))

    installed(good={"interop_declarations": interop_declarations})
    registry = Registry(plugins=True)
    (plugin,) = _plugins(registry)
    assert (plugin.state, plugin.formats, plugin.conversions) == ("loaded", 2, 1)
    assert set(registry.formats) == {"x", "y"}
    assert registry.provenance["x"].plugin == "good"


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
    declared = "@hookimpl\ndef interop_declarations(): return [Format('late')]\n"
    install_plugin(tmp_path, "late", f"from interop.plugin import *\n{declared}")
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

        @mine.accepts("fake", grad=True)
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
    installed: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """INTEROP_DISABLE_PLUGINS names entry points and distributions, as indices compare names."""
    installed(one=_formats("x"), two_three=_formats("y"))
    monkeypatch.setenv("INTEROP_DISABLE_PLUGINS", " Two-Three ,")
    registry = Registry(plugins=True)
    one, two = _plugins(registry)
    assert (one.name, one.state, one.formats, one.conversions) == ("one", "loaded", 1, 0)
    assert (two.name, two.state, two.formats, two.conversions) == ("two_three", "blocked", 0, 0)
    assert set(registry.formats) == {"x"}
    assert caplog.text == ""


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


def test_a_plugin_for_another_version_reads_what_the_page_shows(
    installed: Callable[..., None],
) -> None:
    """It is not loaded, for the reason that the page shows; one for this version, or none, is."""
    installed(odd={"INTEROP_API": 2}, this=_formats("x") | {"INTEROP_API": 1}, none=_formats("y"))
    plugins = {plugin.name: plugin for plugin in _plugins(Registry(plugins=True))}
    states = {name: plugin.state for name, plugin in plugins.items()}
    assert states == {"odd": "failed", "this": "loaded", "none": "loaded"}
    assert f"```text\n{plugins['odd'].reason}\n```" in PAGE.read_text("utf-8")


def test_a_field_of_another_version_disables_one_plugin(installed: Callable[..., None]) -> None:
    """What this version does not have is a failure of that plugin alone, which names it."""

    @hookimpl
    def interop_declarations() -> list[Format]:
        return [Format("odd", smell="sweet")]  # type: ignore[call-arg]

    installed(odd={"interop_declarations": interop_declarations}, good=_formats("good"))
    good, odd = sorted(_plugins(Registry(plugins=True)))
    assert (odd.state, "smell" in odd.reason, good.state) == ("failed", True, "loaded")


#: A plugin that declares nothing.
SOUND = """
from interop.plugin import hookimpl
@hookimpl
def interop_declarations():
    return []
"""

#: What breaks the metadata of a distribution, and the file that it stands in.
BROKEN: dict[str, tuple[str, bytes]] = {
    "bytes that are no UTF-8": ("entry_points.txt", b"[interop]\nbroken = broken_plugin\xff\n"),
    "a line without =": ("entry_points.txt", b"[interop]\nbroken\n"),
    "a line without = elsewhere": ("entry_points.txt", b"[console_scripts]\nbroken\n"),
    "a name that is no UTF-8": ("METADATA", b"Metadata-Version: 2.1\nName: broken\xff\n"),
}


@pytest.mark.parametrize("file", BROKEN)
def test_a_distribution_with_broken_metadata_disables_itself_alone(
    file: str, tmp_path: Path, in_subprocess: Callable[..., str]
) -> None:
    """All others work, and what cannot be read is named by its distribution; blocked, nothing is said."""
    install_plugin(tmp_path, "sound", SOUND)
    install_plugin(tmp_path, "broken", SOUND)
    name, data = BROKEN[file]
    (tmp_path / "broken-1.0.dist-info" / name).write_bytes(data)
    program = """
        import interop, logging, numpy, sys
        logging.basicConfig(stream=sys.stdout)
        assert interop.convert(numpy.ones(2), to="python") == [1.0, 1.0]
        for plugin in interop.plugins():
            if plugin.distribution != "array-interop":
                print(plugin.name, plugin.distribution, plugin.state, plugin.reason[:36])
    """
    path = {"PYTHONPATH": python_path(tmp_path)}
    *told, first, second = in_subprocess(program, **path).splitlines()
    lines = sorted([first, second])
    if name == "METADATA":
        assert lines == ["broken an unknown distribution loaded ", "sound sound loaded "]
        return
    assert "plugin 'broken' of broken 1.0 is disabled" in told[0], told
    assert lines == [
        "broken broken failed its entry_points.txt cannot be read:",
        "sound sound loaded ",
    ]
    blocked = in_subprocess(program, INTEROP_DISABLE_PLUGINS="broken", **path)
    assert "broken broken blocked" in blocked
    assert "is disabled" not in blocked


def test_metadata_that_call_themselves_ours_fail_as_any_plugin_does(
    tmp_path: Path, in_subprocess: Callable[..., str]
) -> None:
    """A distribution of our name, whose module is a stranger's, is reported."""
    install_plugin(tmp_path, "stranger", "raise OSError('no')", "array-interop")
    program = """
        import interop
        (plugin,) = interop.plugins()
        print(plugin.name, plugin.state, plugin.reason)
    """
    shown = in_subprocess(program, PYTHONPATH=python_path(tmp_path))
    assert shown == "stranger failed OSError: no\n"


def test_a_name_that_blocks_nothing_is_told_once(
    installed: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plugin that was to be left out is imported, so the log says so, and which name was meant."""
    installed(evil={"interop_declarations": _formats("evil")["interop_declarations"]})
    for words, told in (
        ("evil", ""),
        ("evli, Evil", "'evli'"),
        ("evil;torch", "'evil;torch'"),
        (" ,", ""),
    ):
        monkeypatch.setenv("INTEROP_DISABLE_PLUGINS", words)
        caplog.clear()
        for _ in range(2):
            _plugins(Registry(plugins=True))
        records = [r.getMessage() for r in caplog.records if "which is neither" in r.getMessage()]
        assert len(records) == bool(told)
        assert told in "".join(records)
    monkeypatch.setenv("INTEROP_DISABLE_PLUGINS", "evvil")
    assert discovery.blocking_nothing(["evil"])[0].endswith("did you mean 'evil'?")
