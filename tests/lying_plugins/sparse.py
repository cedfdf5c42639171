"""Liars with sparse matrices: what they unpack, pack and describe."""

from __future__ import annotations

from typing import Any

from interop.plugin import Parts, Samples, Spec
from tests.lying_plugins.classes import Caught, Liar, table
from tests.lying_plugins.triples import (
    Triples,
    describe,
    made,
    pack,
    triples_format,
    unpack,
)


def _swapped(parts: Parts) -> Parts:
    arrays = parts.arrays
    axes = {"indices_0": arrays["indices_1"], "indices_1": arrays["indices_0"]}
    return parts._replace(arrays={**arrays, **axes})


def _unpack_swapped(value: Triples) -> Parts:
    return _swapped(unpack(value))


def _pack_swapped(parts: Parts) -> Triples:
    return pack(_swapped(parts))


def _without_duplicates(value: Triples, keep: int) -> Triples:
    """Keep one element of each coordinate, the first or the last."""
    import numpy as np

    places = {(r, c): n for n, (r, c) in enumerate(zip(value.rows, value.columns, strict=True))}
    if keep == 0:
        places = {}
        for n, place in enumerate(zip(value.rows, value.columns, strict=True)):
            places.setdefault(place, n)
    chosen = np.array(sorted(places.values()), int)
    return Triples(value.shape, value.rows[chosen], value.columns[chosen], value.numbers[chosen])


def _pack_drops(parts: Parts) -> Triples:
    return _without_duplicates(pack(parts), 0)


def _unpack_drops(value: Triples) -> Parts:
    return unpack(_without_duplicates(value, -1))


def _unpack_canonical(value: Triples) -> Parts:
    return unpack(value)._replace(facts={"canonical": True})


def _describe_canonical(value: Triples) -> Spec:
    return describe(value)._replace(traits=frozenset())


def _in_16_bits(parts: Parts) -> Triples:
    value = pack(parts)
    wide = value.rows.dtype
    value.rows = value.rows.astype("int16").astype(wide)
    value.columns = value.columns.astype("int16").astype(wide)
    return value


def _in_32_bits(parts: Parts) -> Triples:
    value = pack(parts)
    wide = value.rows.dtype
    value.columns = value.columns.astype("int32").astype(wide)
    return value


def _described(**fields: Any) -> Any:
    return lambda value: describe(value)._replace(**fields)


def _unpack_in_float32(value: Triples) -> Parts:
    parts = unpack(value)
    return parts._replace(arrays={**parts.arrays, "values": value.numbers.astype("float32")})


def _unpack_by_columns(value: Triples) -> Parts:
    """Sort the coordinates by columns, and leave the numbers as they were."""
    import numpy as np

    order = np.lexsort((value.rows, value.columns))
    parts = unpack(value)
    indices = {"indices_0": value.rows[order], "indices_1": value.columns[order]}
    return parts._replace(arrays={**parts.arrays, **indices})


def _unpack_from_one(value: Triples) -> Parts:
    parts = unpack(value)
    axes = {role: array + 1 for role, array in parts.arrays.items() if role != "values"}
    return parts._replace(arrays={**parts.arrays, **axes})


def _pack_forgets_the_shape(parts: Parts) -> Triples:
    value = pack(parts)
    lengths = (int(axis.max(initial=0)) + 1 for axis in (value.rows, value.columns))
    value.shape = tuple(lengths)
    return value


def _pack_drops_zeros(parts: Parts) -> Triples:
    value = pack(parts)
    keep = abs(value.numbers) > 0.6
    return Triples(value.shape, value.rows[keep], value.columns[keep], value.numbers[keep])


def _liar(name: str, lie: str, text: str, **changes: Any) -> Liar:
    fate = Caught("format triples", "components", text)
    return Liar(name, lie, fate, lambda: triples_format(**changes))


LIARS = table(
    __name__,
    _liar(
        "swapped",
        "Takes rows for columns, both when it unpacks and when it packs.",
        "unpack of triples gives",
        unpack=_unpack_swapped,
        pack=_pack_swapped,
    ),
    _liar(
        "swapped_when_unpacked",
        "Takes rows for columns when it unpacks.",
        "unpack of triples gives",
        unpack=_unpack_swapped,
    ),
    _liar(
        "swapped_when_packed",
        "Takes rows for columns when it packs.",
        "pack and unpack of triples change the elements at one coordinate",
        pack=_pack_swapped,
    ),
    _liar(
        "without_samples",
        "Swaps them both times, and shows no value of the library's.",
        "triples is tested only against itself",
        unpack=_unpack_swapped,
        pack=_pack_swapped,
        samples=Samples(),
    ),
    _liar(
        "drops_duplicates_when_packed",
        "Keeps the first of the elements at one coordinate, instead of their sum.",
        "pack and unpack of triples change the elements at one coordinate",
        pack=_pack_drops,
    ),
    _liar(
        "drops_duplicates_when_unpacked",
        "Keeps the last of the elements at one coordinate, instead of their sum.",
        "unpack of triples gives other numbers",
        unpack=_unpack_drops,
    ),
    _liar(
        "canonical_when_unpacked",
        "Says that no coordinate is stored twice.",
        "unpack of triples says that the coordinates are canonical",
        unpack=_unpack_canonical,
    ),
    _liar(
        "canonical_as_described",
        "Describes all values as canonical.",
        "does not say 'uncoalesced'",
        describe=_describe_canonical,
        samples=Samples(make=made),
    ),
    _liar(
        "indices_of_16_bits",
        "Cuts indices to 16 bits, and calls them int64.",
        "change a coordinate of 70000 (int32 indices)",
        pack=_in_16_bits,
    ),
    _liar(
        "indices_of_32_bits",
        "Cuts indices to 32 bits, and calls them int64.",
        "change a coordinate of 2147483655 (int64 indices)",
        pack=_in_32_bits,
    ),
    _liar(
        "says_four_stored",
        "Says of every value that it stores four elements.",
        "that 4 elements are stored",
        describe=_described(nnz=4),
    ),
    _liar(
        "counts_all_bytes",
        "Counts the bytes of the dense array.",
        "bytes of triples",
        describe=_described(nbytes=8 * 2 * 40_000),
    ),
    _liar("counts_no_bytes", "Counts no bytes.", "says 0 bytes", describe=_described(nbytes=0)),
    _liar(
        "unpacks_another_dtype",
        "Hands out float32 of what it describes as float64.",
        "unpack of triples gives values as float32, not float64",
        unpack=_unpack_in_float32,
        dtypes={"float64"},
    ),
    _liar(
        "says_narrow_indices",
        "Describes indices of 64 bits as ones of 32.",
        "unpack of triples gives indices_0 as int64, not int32",
        describe=_described(index_dtype="int32"),
    ),
    _liar(
        "sorts_the_coordinates_alone",
        "Sorts the coordinates, and not the numbers with them.",
        "unpack of triples gives other numbers",
        unpack=_unpack_by_columns,
    ),
    _liar(
        "counts_from_one",
        "Counts rows and columns from one.",
        "unpack of triples gives arrays that make no value",
        unpack=_unpack_from_one,
    ),
    _liar(
        "forgets_the_shape",
        "Takes the largest coordinates for the shape.",
        "pack of triples makes the shape",
        pack=_pack_forgets_the_shape,
    ),
    _liar(
        "drops_small_numbers",
        "Stores no number below 0.6.",
        "pack and unpack of triples change the elements at one coordinate",
        pack=_pack_drops_zeros,
    ),
)
