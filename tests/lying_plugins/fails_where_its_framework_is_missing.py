"""Cannot be loaded where its framework is not installed."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from interop.plugin import Declaration, Format, hookimpl
from tests.lying_plugins.grid import conversions, grid_format

#: Who lies, in which check, and what the finding says.
LIE = (
    "plugin tests.lying_plugins.fails_where_its_framework_is_missing",
    "absence",
    "without scipy the plugin does not load",
)


def formats() -> list[Format]:
    """Return the one format, if there is anything to use it with."""
    if find_spec("scipy") is None:
        msg = "SciPy is not here"
        raise RuntimeError(msg)
    return [grid_format(requires="scipy", install="pip install scipy")]


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [*formats(), *conversions()]
