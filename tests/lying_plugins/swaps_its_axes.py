"""Describes volumes that are stored along x, y and z by that order."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, Spec, hookimpl
from tests.lying_plugins.volumes import Volume, conversions, describe, volume_format

#: Who lies, in which check, and what the finding says.
LIE = (
    "format volume",
    "variants",
    "returned shape 6x4x2, as describe has it, for a sample of 2x4x6; a variant keeps the shape",
)


def lie(volume: Volume) -> Spec:
    """Return a spec with the shape as the numbers are stored."""
    return describe(volume)._replace(shape=volume.numbers.shape)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [volume_format(describe=lie), *conversions()]
