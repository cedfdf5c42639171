"""Minimum versions: the oldest releases of the frameworks that a plugin works with.

The metadata of the plugin's distribution state them as extras: ``torch>=2.6`` in the extra
``torch``. Only extras that are named both after the plugin and after what they install count.
Builds that are distributed under longer names have extras of their own, such as ``torch-cpu``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution

#: A line of Requires-Dist: the distribution, its oldest version and the extra.
_LINE = re.compile(r"""([\w.-]+)[^;]*>=\s*(\d[\w.]*)[^;]*;\s*extra\s*==\s*['"]([\w.-]+)['"]\s*""")

#: The version in metadata. It stands near the top, long before the description.
_VERSION = re.compile(r"^Version: *(\S+)", re.MULTILINE)


def too_old(requirements: Iterable[str], plugin: str) -> str:
    """Say which framework is older than its plugin's distribution requires; "" if none is."""
    for name, minimum in _minimum_versions(requirements, plugin):
        try:
            installed = _version(name)
        except PackageNotFoundError:
            continue
        if installed and _release(installed) < _release(minimum):
            return f"{name} {installed} is older than {minimum}: pip install '{name}>={minimum}'"
    return ""


def _version(name: str) -> str:
    """Return the installed version of a distribution, or "" if its metadata are missing."""
    installed = distribution(name)
    match = _VERSION.search(installed.read_text("METADATA") or "")  # parsing it all takes long
    return match[1] if match else installed.version or ""


def _minimum_versions(requirements: Iterable[str], plugin: str) -> Iterator[tuple[str, str]]:
    """Yield the distributions of a plugin's frameworks, with their minimum versions."""
    plugin = normal(plugin)
    for name, minimum, extra in _stated(tuple(requirements)):
        if extra == plugin or extra.startswith(f"{plugin}-"):
            yield name, minimum


@lru_cache(maxsize=64)  # many plugins share a distribution
def _stated(requirements: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """Return the distributions in extras of their names, their minimum versions, and the extras."""
    matches = (match.groups() for match in map(_LINE.fullmatch, requirements) if match)
    stated = [(name, minimum, normal(extra)) for name, minimum, extra in matches]
    return [line for line in stated if line[2] == normal(line[0])]


def normal(name: str) -> str:
    """Return the name of a distribution or a plugin as package indices compare names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _release(text: str) -> tuple[int, ...]:
    """Return the numbers of a version, without the zeros at its end."""
    match = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, re.sub(r"(\.0)+$", "", match[0]).split("."))) if match else ()
