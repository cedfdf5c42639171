"""Cannot be loaded where its framework is not installed."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from interop.plugin import Conversion, Declaration, Format, hookimpl
from tests.zoo.cage import conversions, format_

#: Who lies, in which check, and how that is said.
LIE = (
    "plugin tests.zoo.fails_where_its_framework_is_missing",
    "absence",
    "without scipy the plugin does not load",
)


def formats() -> list[Format]:
    """Return the one format, if there is anything to use it with."""
    if find_spec("scipy") is None:
        msg = "SciPy is not here"
        raise RuntimeError(msg)
    return [format_(requires="scipy", install="pip install scipy")]


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the one format."""
    return formats()


def _conversions() -> list[Conversion]:
    """Return the conversions."""
    return conversions()
