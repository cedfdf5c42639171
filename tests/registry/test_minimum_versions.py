"""Plugins whose framework is older than their distribution requires."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import interop
from interop._registry.minimum_versions import too_old

MODULE = """
from interop.plugin import Format, hookimpl

@hookimpl
def interop_declarations():
    return [Format("lathe")]
"""


def _distribution(folder: Path, name: str, version: str, *lines: str) -> Path:
    """Write the metadata of an installed distribution, and return the folder they are in."""
    metadata = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    metadata.mkdir()
    head = ("Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}")
    (metadata / "METADATA").write_text("\n".join((*head, *lines, "")))
    return metadata


def _plugin(folder: Path, *lines: str) -> None:
    """Install a plugin named lathe."""
    metadata = _distribution(folder, "interop-lathe", "1.0", *lines)
    (metadata / "entry_points.txt").write_text("[interop]\nlathe = lathe_plugin\n")
    (folder / "lathe_plugin.py").write_text(MODULE)
    sys.modules.pop("lathe_plugin", None)  # that of another test, in another folder


@pytest.mark.parametrize(
    ("installed", "state"),
    [("1.9.5", "outdated"), ("2.1", "loaded"), ("2.10.0rc1", "loaded"), (None, "loaded")],
)
def test_a_plugin_disables_itself_below_its_floor(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    installed: str | None,
    state: str,
) -> None:
    """A framework older than its plugin's extra requires is named in one line, with the remedy."""
    _plugin(tmp_path, "Requires-Dist: lathe>=2.1; extra == 'lathe'")
    if installed:
        _distribution(tmp_path, "lathe", installed)
    monkeypatch.syspath_prepend(str(tmp_path))
    instance = interop.Interop()
    (plugin,) = (plugin for plugin in instance.plugins() if plugin.name == "lathe")
    assert plugin.state == state
    assert ("lathe" in {format_.name for format_ in instance.formats()}) == (state == "loaded")
    reason = "lathe 1.9.5 is older than 2.1: pip install 'lathe>=2.1'"
    lines = [record.getMessage() for record in caplog.records]
    if state == "loaded":
        assert (plugin.reason, lines) == ("", [])
        return
    assert plugin.reason == reason
    assert lines == [f"plugin 'lathe' of interop-lathe 1.0 is disabled ({reason})"]
    with pytest.raises(interop.errors.UnknownTargetError, match=r"not loaded \(lathe 1\.9\.5 is"):
        instance.plan([1.0], to="lathe")


@pytest.mark.parametrize(
    ("line", "installed", "is_too_old"),
    [
        ('Lathe_CPU[all] <4,>=2 ; extra == "lathe-cpu"', ("lathe-cpu", "1.0"), True),
        ("lathe>=2.0.0; extra == 'lathe'", ("lathe", "2"), False),
        ("lathe>=2.10; extra == 'lathe'", ("lathe", "2.9"), True),
        ("lathe>=2.9; extra == 'lathe'", ("lathe", "2.9+cpu"), False),
        ("lathe==2; extra == 'lathe'", ("lathe", "1"), False),
        # Of other extras, with further conditions, and what a plugin merely works better with.
        ("lathe>=2; extra == 'test'", ("lathe", "1"), False),
        ("lathe>=2; extra == 'lathework'", ("lathe", "1"), False),
        ("lathe>=2; python_version < '3' and extra == 'lathe'", ("lathe", "1"), False),
        ("chuck>=2; extra == 'lathe'", ("chuck", "1"), False),
    ],
)
def test_floors_are_those_of_the_extras_named_after_the_plugin(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    installed: tuple[str, str],
    is_too_old: bool,
) -> None:
    """Releases are compared by number; only an extra's own distribution can disable a plugin."""
    _distribution(tmp_path, *installed)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert bool(too_old([line], "lathe")) == is_too_old


def test_the_extras_of_bundled_plugins_have_floors() -> None:
    """Every framework that a bundled plugin requires is looked for under its extra."""
    from importlib.metadata import requires

    from interop._registry.minimum_versions import _minimum_versions

    lines = requires("array-interop") or []
    frameworks = {
        declared.provenance.plugin
        for declared in interop.formats()
        if declared.format.requires not in {"", "numpy"}
        and declared.provenance.distribution == "array-interop"
    }
    without = {plugin for plugin in frameworks if not list(_minimum_versions(lines, plugin))}
    # The values are interop's own, of a namespace without releases to choose from, or of libraries
    # that another plugin has the extra of.
    assert without <= {"dlpack", "protocols", "quantized"}
