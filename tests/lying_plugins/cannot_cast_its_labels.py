"""Declares labels, and no step that casts values with any."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, hookimpl
from tests.lying_plugins.volumes import conversions, volume_format

#: Who lies, in which check, and what the finding says.
LIE = ("format volume", "copy", "no step there casts them; register Conversion('volume', 'volume'")


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions but `cast`."""
    return [volume_format(), *(item for item in conversions() if item.label != "cast")]
