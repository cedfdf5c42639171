"""Liars with sparse matrices: what they unpack, pack and describe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from interop.kit import memory_traits
from interop.plugin import (
    Components,
    Conversion,
    Declaration,
    Format,
    Parts,
    Samples,
    Spec,
)
from tests.lying_plugins import Caught, Liar, table
from tests.lying_plugins.triples import (
    LAYOUT,
    Triples,
    describe,
    filled,
    made,
    pack,
    triples_format,
    unpack,
)


def _lies(field: str, text: str, **changes: Any) -> Callable[[Callable[..., Any]], Liar]:
    """Make a liar of a function that stands in a field of the format or of its components."""
    fate = Caught("format triples", "components", text)

    def liar(function: Callable[..., Any]) -> Liar:
        return Liar.of(function, fate, lambda: triples_format(**{field: function}, **changes))

    return liar


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


def _rounded_trip(value: Triples, dtype: str, *names: str) -> Triples:
    """Store indices in a narrow dtype for a moment."""
    for name in names:
        indices = getattr(value, name)
        setattr(value, name, indices.astype(dtype).astype(indices.dtype))
    return value


# ---------------------------------------------------------------------- unpack


@_lies("unpack", "unpack of triples gives")
def swapped_when_unpacked(value: Triples) -> Parts:
    """Takes rows for columns when it unpacks."""
    return _unpack_swapped(value)


@_lies("unpack", "unpack of triples gives other numbers")
def drops_duplicates_when_unpacked(value: Triples) -> Parts:
    """Keeps the last of the elements at one coordinate, instead of their sum."""
    return unpack(_without_duplicates(value, -1))


@_lies("unpack", "unpack of triples says that the coordinates are canonical")
def canonical_when_unpacked(value: Triples) -> Parts:
    """Reports that no coordinate is stored twice."""
    return unpack(value)._replace(facts={"canonical": True})


@_lies("unpack", "unpack of triples gives values as float32, not float64", dtypes={"float64"})
def unpacks_another_dtype(value: Triples) -> Parts:
    """Hands out float32 of what it describes as float64."""
    parts = unpack(value)
    return parts._replace(arrays={**parts.arrays, "values": value.numbers.astype("float32")})


@_lies("unpack", "unpack of triples gives other numbers")
def sorts_the_coordinates_alone(value: Triples) -> Parts:
    """Sorts the coordinates, and not the numbers with them."""
    import numpy as np

    order = np.lexsort((value.rows, value.columns))
    parts = unpack(value)
    indices = {"indices_0": value.rows[order], "indices_1": value.columns[order]}
    return parts._replace(arrays={**parts.arrays, **indices})


@_lies("unpack", "unpack of triples gives arrays that make no value")
def counts_from_one(value: Triples) -> Parts:
    """Counts rows and columns from one."""
    parts = unpack(value)
    axes = {role: array + 1 for role, array in parts.arrays.items() if role != "values"}
    return parts._replace(arrays={**parts.arrays, **axes})


# ---------------------------------------------------------------------- pack


@_lies("pack", "pack and unpack of triples change the elements at one coordinate")
def swapped_when_packed(parts: Parts) -> Triples:
    """Takes rows for columns when it packs."""
    return _pack_swapped(parts)


@_lies("pack", "pack and unpack of triples change the elements at one coordinate")
def drops_duplicates_when_packed(parts: Parts) -> Triples:
    """Keeps the first of the elements at one coordinate, instead of their sum."""
    return _without_duplicates(pack(parts), 0)


@_lies("pack", "pack and unpack of triples change the elements at one coordinate")
def drops_small_numbers(parts: Parts) -> Triples:
    """Stores no number below 0.6."""
    value = pack(parts)
    keep = abs(value.numbers) > 0.6
    return Triples(value.shape, value.rows[keep], value.columns[keep], value.numbers[keep])


@_lies("pack", "change a coordinate of 70000 (int32 indices)")
def indices_of_16_bits(parts: Parts) -> Triples:
    """Cuts indices to 16 bits, and calls them int64."""
    return _rounded_trip(pack(parts), "int16", "rows", "columns")


@_lies("pack", "change a coordinate of 2147483655 (int64 indices)")
def indices_of_32_bits(parts: Parts) -> Triples:
    """Cuts indices to 32 bits, and calls them int64."""
    return _rounded_trip(pack(parts), "int32", "columns")


@_lies("pack", "pack of triples makes the shape")
def forgets_the_shape(parts: Parts) -> Triples:
    """Takes the largest coordinates for the shape."""
    value = pack(parts)
    value.shape = tuple(int(axis.max(initial=0)) + 1 for axis in (value.rows, value.columns))
    return value


# ---------------------------------------------------------------------- describe


@_lies("describe", "does not say 'uncoalesced'", samples=Samples(make=made))
def canonical_as_described(value: Triples) -> Spec:
    """Describes all values as canonical."""
    spec = describe(value)
    return spec._replace(traits=spec.traits - {"uncoalesced"})


@_lies("describe", "does not say 'uncoalesced'", samples=Samples(make=made))
def overlooks_the_last_place(value: Triples) -> Spec:
    """Looks at the order of all elements but the last."""
    spec, places = describe(value), [*zip(value.rows, value.columns, strict=True)][:-1]
    in_order = all(before < after for before, after in pairwise(places))
    return spec._replace(traits=spec.traits - {"uncoalesced"}) if in_order else spec


@_lies("describe", "does not say that a value is 'readonly'")
def forgets_its_lock(value: Triples) -> Spec:
    """Says nothing of memory that may not be written."""
    spec = describe(value)
    return spec._replace(traits=spec.traits - {"readonly"})


@_lies("describe", "that 4 elements are stored")
def reports_four_stored(value: Triples) -> Spec:
    """Reports of every value that it stores four elements."""
    return describe(value)._replace(nnz=4)


@_lies("describe", "bytes of triples")
def counts_all_bytes(value: Triples) -> Spec:
    """Counts the bytes of the dense array."""
    return describe(value)._replace(nbytes=8 * 2 * 40_000)


@_lies("describe", "says 0 bytes")
def counts_no_bytes(value: Triples) -> Spec:
    """Counts no bytes."""
    return describe(value)._replace(nbytes=0)


@_lies("describe", "unpack of triples gives indices_0 as int64, not int32")
def describes_narrow_indices(value: Triples) -> Spec:
    """Describes indices of 64 bits as ones of 32."""
    return describe(value)._replace(index_dtype="int32")


# ---------------------------------------------------------------------- nothing stored, and copies


@_lies("unpack", "describe of format triples says that 0 elements are stored; there are 1")
def stores_a_zero(value: Triples) -> Parts:
    """Unpacks one element of a matrix that stores none."""
    import numpy as np

    if value.numbers.size:
        return unpack(value)
    one = np.zeros(1, int)
    return unpack(Triples(value.shape, one, one, np.zeros(1, value.numbers.dtype)))


@_lies("pack", "fails: IndexError: nothing")
def cannot_pack_nothing(parts: Parts) -> Triples:
    """Fails on a matrix that stores nothing."""
    if not parts.arrays["values"].size:
        msg = "nothing"
        raise IndexError(msg)
    return pack(parts)


@_lies("pack", "pack of triples declares that it shares values, and does not")
def copies_when_packed(parts: Parts) -> Triples:
    """Copies what it packs, and declares that it shares."""
    return pack(parts._replace(arrays={r: array.copy() for r, array in parts.arrays.items()}))


@_lies(
    "unpack",
    "unpack of triples declares that it copies values, and does not",
    unpack_copies={"values"},
)
def shares_when_unpacked(value: Triples) -> Parts:
    """Declares that it copies what it unpacks, and shares."""
    return unpack(value)


@_lies("describe", "bytes of triples")
def counts_thrice(value: Triples) -> Spec:
    """Counts all bytes three times."""
    return describe(value)._replace(nbytes=3 * describe(value).nbytes)


def _step(label: str, check: str, text: str) -> Callable[[Callable[..., Any]], Liar]:
    """Make a liar of a function that stands in the place of a conversion."""

    def liar(function: Callable[..., Any]) -> Liar:
        names = {"made": "numpy → triples", "filled": "triples → numpy"}
        fate = Caught(f"{names[label]}: {label}", check, text)
        return Liar.of(function, fate, lambda: [*_changed(label, function)])

    return liar


def _changed(label: str, function: Callable[..., Any]) -> Iterator[Any]:
    for item in triples_format():
        is_it = isinstance(item, Conversion) and item.label == label
        yield item._replace(function=function, name=label) if is_it else item


@_step("filled", "values", "(nothing but zeros): IndexError")
def cannot_fill_nothing(value: Triples) -> Any:
    """Fails on a matrix that stores nothing."""
    value.numbers[0]
    return filled(value)


@_step("made", "shape", "returns the shape (0, 0) for (3, 4)")
def loses_the_shape_of_nothing(dense: Any) -> Triples:
    """Makes a matrix without rows of one that holds zeros alone."""
    value = made(dense)
    return (
        value if value.numbers.size else Triples((0, 0), value.rows, value.columns, value.numbers)
    )


@_step("made", "dtype", "returns int32 indices for int64 indices")
def narrows_its_indices(dense: Any) -> Triples:
    """Makes indices of 32 bits, and declares ones of 64."""
    value = made(dense)
    axes = (axis.astype("int32") for axis in (value.rows, value.columns))
    return Triples(value.shape, *axes, value.numbers)


# ---------------------------------------------------------------------- quantized


class Coded:
    """Codes under one scale."""

    def __init__(self, codes: Any, scale: Any, zero_point: Any) -> None:
        self.codes, self.scale, self.zero_point = codes, scale, zero_point


def _describe_coded(value: Coded) -> Spec:
    codes = value.codes
    traits, nbytes = memory_traits(codes), codes.nbytes + 5
    return Spec("coded", "float32", "cpu", codes.shape, traits, nbytes, code_dtype=codes.dtype.name)


def _unpack_coded(value: Coded) -> Parts:
    arrays = {"codes": value.codes, "scale": value.scale, "zero_point": value.zero_point}
    return Parts(value.codes.shape, arrays)


def _coded_format() -> list[Declaration]:
    roles = {"codes": "code_dtype", "scale": "dtype", "zero_point": "code_dtype"}
    components = Components(
        layout="affine",
        format="numpy",
        roles=roles,
        unpack=_unpack_coded,
        pack=lambda parts: Coded(*(parts.arrays[role] for role in roles)),
        code_dtypes={"int8", "uint8"},
    )
    return [
        Format(
            "coded",
            types=(f"{__name__}:Coded",),
            describe=_describe_coded,
            dtypes={"float32"},
            carries=LAYOUT,
            components=components,
        )
    ]


def _negated(value: Triples) -> Triples:
    return Triples(value.shape, value.rows, value.columns, -value.numbers)


def _negating() -> list[Any]:
    """Return a plugin whose two conversions lie alike."""
    format_, out, into = triples_format()
    return [
        format_,
        out._replace(function=lambda value: -filled(value), name="filled"),
        into._replace(function=lambda dense: _negated(made(dense)), name="made"),
    ]


LIARS = table(
    globals(),
    Liar(
        "negates_there_and_back",
        "Stores numbers with the other sign, and takes it off where they are read.",
        Caught("numpy → triples: made", "values", "made returns other numbers", "other numbers"),
        _negating,
    ),
    Liar(
        "without_facts",
        "Says nothing of the axis and the dtype of what it unpacks.",
        Caught(
            *("format coded", "components"),
            "unpack of coded gives no axis, block_size, dtype among its facts",
        ),
        _coded_format,
    ),
    Liar(
        "swaps_rows_and_columns",
        "Takes rows for columns, both when it unpacks and when it packs.",
        Caught("format triples", "components", "unpack of triples gives arrays that make no value"),
        lambda: triples_format(unpack=_unpack_swapped, pack=_pack_swapped),
    ),
    Liar(
        "of_any_axes",
        "Declares to hold arrays of any number of axes, and holds matrices.",
        Caught("format triples", "describe", "axes, which ndims of triples does not leave out"),
        lambda: triples_format(ndims=None),
    ),
    Liar(
        "without_samples",
        "Swaps them both times, and shows no value of the library's own.",
        Caught("format triples", "components", "triples is tested only against itself"),
        lambda: triples_format(Samples(), unpack=_unpack_swapped, pack=_pack_swapped),
    ),
)
