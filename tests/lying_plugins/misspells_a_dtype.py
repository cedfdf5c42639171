"""Names a dtype that does not exist."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.grid import changed, grid_format

#: Who lies, in which check, and what the finding says.
LIE = (
    "plugin tests.lying_plugins.misspells_a_dtype",
    "loading",
    "'flaot32' in dtypes; did you mean 'float32'?",
)


DTYPES = {"float64", "flaot32"}


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [grid_format(), *changed("copy", dtypes=DTYPES)]
