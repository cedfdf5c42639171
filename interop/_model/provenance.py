"""Provenance: the plugin and the distribution that a declaration comes from."""

from __future__ import annotations

import re
from collections.abc import Iterable
from shlex import quote
from typing import NamedTuple


class Provenance(NamedTuple):
    """Where a declaration comes from.

    Parameters
    ----------
    plugin : str
        Name of the entry point; ``"run time"`` for what was registered by a call.
    distribution, version : str
    """

    plugin: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}".strip()

    @property
    def remedy(self) -> str:
        """The advice to give if a declaration is wrong."""
        if self == HERE:
            return "correct what was registered at run time."
        return (
            f"report it to {self.distribution}, or leave that plugin out with "
            f"INTEROP_DISABLE_PLUGINS={self.plugin}."
        )


def normal(name: str) -> str:
    """Return the name of a distribution or a plugin as package indices compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


#: The distribution that interop and the bundled plugins are installed by.
OWN = "array-interop"

#: Provenance of what is registered by a call rather than by a plugin.
HERE = Provenance("run time", "run time", "")


def how_to_install(extra: str = "", *, anew: bool = False) -> str:
    """Return the advice to install this distribution with an extra, from where it came here.

    It names no index, on which anyone may have taken the name. Where it is not known what this
    distribution was installed from, the advice is to install what the extra requires.

    Parameters
    ----------
    extra : str
    anew : bool
        Whether files of it are to be replaced.
    """
    source = _source(f"[{extra}]" if extra else "")
    if source:
        return f"pip install {'--force-reinstall --no-deps ' * anew}{source}"
    needs = [] if anew else _requirements(extra)
    if needs:
        return f"pip install {' '.join(map(quote, needs))}"
    return f"install {OWN} again from where it came, a clone or a wheel"


def _source(extra: str) -> str:
    """Return what pip installed this distribution from, as its command line takes it, or ""."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from pathlib import Path
    from urllib.parse import unquote, urlsplit

    try:
        origin = json.loads(distribution(OWN).read_text("direct_url.json") or "{}")
        url, is_editable = str(origin["url"]), origin.get("dir_info", {}).get("editable", False)
    except (PackageNotFoundError, AttributeError, KeyError, OSError, TypeError, ValueError):
        return ""  # installed from an index, or by something else than pip
    scheme = urlsplit(url).scheme
    if not scheme:
        return ""
    if scheme != "file":
        commit = origin.get("vcs_info", {})
        place = f"{commit.get('vcs')}+{url}@{commit.get('commit_id')}" if commit else url
        return quote(f"{OWN}{extra} @ {place}")
    path = unquote(urlsplit(url).path)
    if not Path(path).exists():
        return ""
    return ("-e " if is_editable else "") + quote(path + extra)


def _requirements(extra: str) -> list[str]:
    """Return what this distribution requires with an extra only."""
    from importlib.metadata import PackageNotFoundError, requires

    marker = re.compile(rf"extra\s*==\s*['\"]{re.escape(extra)}['\"]")
    try:
        lines = requires(OWN) or []
    except PackageNotFoundError:
        return []
    parts = (line.partition(";") for line in lines)
    return [needed.strip() for needed, _, condition in parts if marker.search(condition)]


def rival(distributions: Iterable[str]) -> str:
    """Say which of the distributions that install a package `interop` is another; "" if none is."""
    from importlib.metadata import version

    others = sorted({*distributions} - {OWN})
    if not others:
        return ""
    name = others[0]
    return (
        f"the distribution {name!r} {version(name)} installs a package 'interop', as {OWN!r} "
        "does, and the one installed later replaces files of the other; keep them in separate "
        f"environments (here: pip uninstall {name}, then {how_to_install(anew=True)})."
    )
