"""Takes rows for columns, both when it unpacks and when it packs."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin import Declaration, Parts, hookimpl
from tests.lying_plugins import triples

#: Who lies, in which check, and what the finding says.
LIE = ("format triples", "components", "unpack of triples gives arrays that make no value of")


def _swapped(parts: Parts) -> Parts:
    arrays = parts.arrays
    axes = {"indices_0": arrays["indices_1"], "indices_1": arrays["indices_0"]}
    return parts._replace(arrays={**arrays, **axes})


def _unpack(value: triples.Triples) -> Parts:
    return _swapped(triples.unpack(value))


def _pack(parts: Parts) -> triples.Triples:
    return triples.pack(_swapped(parts))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return a format whose two mistakes make up for each other."""
    return triples.triples_format(unpack=_unpack, pack=_pack)
