"""Provenance: how this distribution is installed, by what is known of where it came from."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from interop._model.provenance import how_to_install

REQUIRED = ["numpy>=2", "rich>=13; extra == 'tree'", 'optree>=0.14 ; extra == "tree"']


class _Installed:
    """A distribution with a record of where pip found it."""

    def __init__(self, record: str | None) -> None:
        self._record = record
        self.requires = REQUIRED

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return self._record


def _install(monkeypatch: pytest.MonkeyPatch, origin: object) -> None:
    record = origin if origin is None or isinstance(origin, str) else json.dumps(origin)
    monkeypatch.setattr(metadata, "distribution", lambda _: _Installed(record))


def test_it_is_installed_from_where_it_came(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A clone, a wheel, a repository and an address are named with the extra."""
    clone, wheel = tmp_path / "a clone", tmp_path / "array_interop-1.0-py3-none-any.whl"
    clone.mkdir()
    wheel.touch()
    hub, commit = "https://example.org/interop.git", "1" * 40
    origins: list[tuple[dict[str, Any], str, str]] = [
        (
            {"url": clone.as_uri(), "dir_info": {"editable": True}},
            f"-e '{clone}[tree]'",
            f"-e '{clone}'",
        ),
        ({"url": clone.as_uri(), "dir_info": {}}, f"'{clone}[tree]'", f"'{clone}'"),
        ({"url": wheel.as_uri(), "archive_info": {}}, f"'{wheel}[tree]'", str(wheel)),
        (
            {"url": hub, "vcs_info": {"vcs": "git", "commit_id": commit}},
            f"'array-interop[tree] @ git+{hub}@{commit}'",
            f"'array-interop @ git+{hub}@{commit}'",
        ),
    ]
    for origin, with_extra, again in origins:
        _install(monkeypatch, origin)
        assert how_to_install("tree") == f"pip install {with_extra}"
        assert how_to_install(anew=True) == f"pip install --force-reinstall --no-deps {again}"


def test_where_it_came_from_nowhere_known_its_requirements_are_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its own name is not, which stands on no index."""
    gone = {"url": (tmp_path / "gone.whl").as_uri(), "archive_info": {}}
    for origin in (None, "", "[]", "no JSON", {}, {"url": 3}, gone):
        _install(monkeypatch, origin)
        monkeypatch.setattr(metadata, "requires", lambda _: REQUIRED)
        assert how_to_install("tree") == "pip install 'rich>=13' 'optree>=0.14'"
        assert how_to_install(anew=True) == (
            "install array-interop again from where it came, a clone or a wheel"
        )
