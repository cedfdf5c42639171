"""Declares labels, and no step that copies values with any."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, Samples, hookimpl
from tests.lying_plugins.volumes import conversions, stored_along_xyz, volume_format

#: Who lies, in which check, and what the finding says.
LIE = (
    "format volume",
    "copy",
    "and no step there copies them; register Conversion('volume', 'volume', …, effects={'copy'})",
)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and its ways to NumPy and back."""
    samples = Samples(variants={"xyz_order": stored_along_xyz})
    return [volume_format(samples=samples), *conversions()[:2]]
