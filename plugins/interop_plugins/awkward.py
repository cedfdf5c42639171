"""Awkward Array: arrays of numbers whose rows may differ in length.

An array of a regular type is NumPy's over the same memory. Rows whose type allows several lengths
are handed over by their values and offsets, also if all have one length. Records, strings, unions
and lists of ragged lists have no counterpart in other frameworks.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from interop.kit import (
    COMPLEX,
    COPY,
    EMPTY,
    INTEGERS,
    NATIVE,
    REALS,
    check_offsets,
    dtype_name,
    extents,
)
from interop.plugin import (
    MEMORY_TRAITS,
    Cast,
    Components,
    Conversion,
    Copy,
    Cost,
    Declaration,
    Declined,
    Drop,
    Format,
    Limits,
    Parts,
    Result,
    Samples,
    Spec,
    Wrapper,
    hookimpl,
)

if TYPE_CHECKING:
    import awkward as ak
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]

_DTYPES = INTEGERS | (REALS - {"bfloat16"}) | COMPLEX | {"bool"}
_HYBRID = frozenset({"hybrid"})
_NESTED, _SCATTERED = frozenset({"nested"}), frozenset({"scattered"})
_MASKED = frozenset({"masked"})
#: The traits of arrays that Awkward copies and casts itself, other than rows of several lengths.
_EVEN = NATIVE | _SCATTERED | _MASKED
_ODD = frozenset({"not_numbers", "missing", "lists_of_lists", "reordered", "elsewhere"})

_TEXT = "awkward.strings_astype(x, 'float64') reads the numbers in the text."
_REFUSAL_HINTS = {
    **dict.fromkeys(("string", "var * string"), _TEXT),
    "not_numbers": "only arrays and lists of numbers can be handed over; convert its fields "
    "(x['name'], or ak.unzip) one by one.",
    "drop_mask": "awkward.fill_none(x, ...) says what stands for what is missing, "
    "awkward.drop_none(x) leaves it out, and to='numpy.ma' keeps the mask. With drop_mask nulls "
    "become NaN in floats, but 0 in integers and False in bools, as if that had been measured.",
    "missing": "some of its elements may be missing; fill them (ak.fill_none), leave them out "
    "(ak.drop_none), or make a masked array (ak.to_numpy).",
    "lists_of_lists": "its rows are lists of lists of several lengths, also within them; flatten "
    "one level first (ak.flatten).",
    "reordered": "its elements are chosen by an index; put them in order first (ak.to_packed).",
    "elsewhere": "its buffers are those of another library; bring them to NumPy first "
    "(ak.to_backend(x, 'cpu')).",
}


def describe(array: ak.Array) -> Spec:
    """Return the spec of an array that is not NumPy's as it is."""
    layout = array.layout
    if layout.backend.name != "cpu":
        return _odd(array, "elsewhere")
    if layout.is_option and layout.content.is_numpy and layout.content.data.ndim == 1:
        name, lacks = (
            dtype_name(layout.content.data.dtype),
            layout.mask_as_bool(valid_when=False).any(),
        )
        traits = _MASKED if lacks else _SCATTERED
        return Spec("awkward", name, "cpu", (len(array),), traits, array.nbytes)
    if layout.is_option or (layout.is_list and layout.content.is_option):
        return _odd(array, "missing")
    if not layout.is_list or layout.parameter("__array__") is not None:
        return _odd(array, "reordered" if layout.is_indexed else "not_numbers")
    content, values = layout.content, _vectors(layout.content)
    if values is None:
        return _odd(array, "lists_of_lists" if content.is_list else "not_numbers")
    starts, stops = layout.starts.data, layout.stops.data
    lengths = stops - starts
    stored, longest = int(lengths.sum()), int(lengths.max(initial=0))
    if hasattr(layout, "offsets") and len(lengths):
        ends = int(starts[0]), int(stops[-1])
        check_offsets("an awkward.Array", ends, int(lengths.min()), len(values))
    traits, inner = EMPTY if (lengths == longest).all() else _NESTED, values.shape[1:]
    if inner:
        traits |= _HYBRID
    if not hasattr(layout, "offsets"):  # the lists begin and end anywhere
        traits |= _SCATTERED
    nbytes = stored * prod(inner) * values.itemsize + (len(array) + 1) * starts.itemsize
    return Spec(
        "awkward",
        dtype_name(values.dtype),
        "cpu",
        (len(array), longest, *inner),
        traits,
        nbytes,
        stored,
        dtype_name(starts.dtype),
    )


def _vectors(content: Any) -> Array | None:
    """Return the numbers, or the vectors of one length, in rows, as NumPy has them in place."""
    import awkward as ak

    if not _is_block(content):
        return None
    numbers: Array = content.data if content.is_numpy else ak.to_numpy(ak.Array(content))
    return numbers


def _odd(array: ak.Array, trait: str) -> Spec:
    return Spec(
        "awkward", str(array.type.content), "cpu", (len(array),), frozenset({trait}), array.nbytes
    )


def to_numpy(array: ak.Array) -> Array | None:
    """Return an array of one block as NumPy's over the same memory; None if it is none.

    Rows of numbers that have offsets are none: a copy of them has offsets as well.
    """
    if _has_offsets(array.layout) or not _is_block(array.layout):
        return None
    return regular(array)


def regular(array: ak.Array) -> Array:
    """Return rows of one length as NumPy's over the same memory."""
    import awkward as ak

    return ak.to_numpy(array, allow_missing=False)  # type: ignore[no-any-return]


def to_masked(array: ak.Array) -> np.ma.MaskedArray[Any, Any]:
    """Return numbers of which some may be missing as a masked array of its own memory."""
    import awkward as ak
    import numpy as np

    masked: np.ma.MaskedArray[Any, Any] = np.ma.array(ak.to_numpy(array), copy=True)
    return masked


def fill_nulls(array: ak.Array, dtype: str | None = None) -> np.ndarray[Any, Any]:
    """Return numbers with NaN in the place of missing ones, or zero if the dtype has no NaN."""
    import numpy as np

    masked = to_masked(array)
    wanted = masked.dtype if dtype is None else np.dtype(dtype)
    numbers = np.asarray(masked.data, wanted)
    numbers[np.ma.getmaskarray(masked)] = np.nan if wanted.kind in "fc" else 0
    return numbers


def _has_offsets(layout: Any) -> bool:
    """Tell whether rows of numbers are told apart by offsets."""
    return hasattr(layout, "offsets") and not layout.is_regular and layout.content.is_numpy


def _is_block(layout: Any) -> bool:
    """Tell whether rows are of one length at every level, and lie in one block."""
    if layout.backend.name != "cpu" or layout.parameter("__array__") is not None:
        return False
    if layout.is_numpy:
        return True
    if not layout.is_list or not hasattr(layout, "offsets"):
        return False
    lengths = layout.offsets.data[1:] - layout.offsets.data[:-1]
    return bool((lengths == lengths[:1]).all()) and _is_block(layout.content)


def from_numpy(array: Array) -> ak.Array:
    """Return an array over NumPy's memory."""
    import awkward as ak

    return ak.from_numpy(array)


def unpack(array: ak.Array) -> Parts:
    """Return the values and the offsets of ragged rows, which share its memory.

    Offsets that do not begin with zero, as those of a slice, are counted anew.

    Raises
    ------
    Declined
        It has no offsets: it is one block, or its rows lie anywhere.
    """
    layout = array.layout
    values = _vectors(layout.content) if hasattr(layout, "offsets") else None
    if layout.is_regular or values is None:
        msg = f"an array of the type {array.type} has no offsets of rows of numbers"
        raise Declined(msg)
    offsets = layout.offsets.data
    first, last = int(offsets[0]), int(offsets[-1])
    if first:
        offsets = offsets - first
    shape = (len(array), int((offsets[1:] - offsets[:-1]).max(initial=0)), *values.shape[1:])
    arrays = {"values": values[first:last], "offsets": offsets}
    return Parts(shape, arrays, {"awkward": array})


def pack(parts: Parts) -> ak.Array:
    """Return an array over values and offsets; Awkward itself checks the offsets.

    What Awkward knew of the rows before, it knows of them again.
    """
    import awkward as ak

    values, offsets = parts.arrays["values"], parts.arrays["offsets"]
    layout = ak.contents.ListOffsetArray(ak.index.Index(offsets), ak.contents.NumpyArray(values))
    before = parts.facts.get("awkward")
    if before is None:
        return ak.Array(layout)
    content = layout.content.copy(parameters=before.layout.content.parameters)
    layout = layout.copy(content=content, parameters=before.layout.parameters)
    return ak.Array(layout, behavior=before.behavior, attrs=before.attrs)


def copy(array: ak.Array) -> ak.Array:
    """Return a copy of an array with its parameters, and without what a slice has left out."""
    import awkward as ak

    return ak.copy(ak.to_packed(array))


def cast(array: ak.Array, *, dtype: str) -> ak.Array:
    """Return a copy of an array of real numbers in another dtype, its parameters among it."""
    import awkward as ak
    import numpy as np

    with np.errstate(invalid="ignore", over="ignore"):  # the caller asked for what becomes of them
        return ak.values_astype(copy(array), dtype)


def join(array: ak.Array) -> ak.Array:
    """Return an array with the same rows, or numbers, one after another in new memory."""
    import awkward as ak

    return ak.from_numpy(joined(array)) if array.layout.is_option else ak.to_packed(array)


def joined(array: ak.Array) -> Array:
    """Return rows of one length that lie anywhere as the rows of a new array."""
    import awkward as ak
    import numpy as np

    return np.array(ak.to_numpy(array, allow_missing=False))


def padded(array: ak.Array) -> Array:
    """Return the rows one below the other in a new array, with zeros after the shorter ones."""
    import numpy as np

    parts = unpack(array)
    values, offsets = parts.arrays["values"], parts.arrays["offsets"]
    out = np.zeros(parts.shape, values.dtype)
    lengths = offsets[1:] - offsets[:-1]
    out[np.arange(parts.shape[1]) < lengths[:, np.newaxis]] = values
    return out


def memory(array: ak.Array) -> tuple[tuple[int, int], ...]:
    """Return the addresses and the lengths of the numbers and of what tells the rows apart."""
    layout, arrays = array.layout, []
    while layout.is_list:
        if hasattr(layout, "starts") and not layout.is_regular:
            arrays += [layout.starts.data, layout.stops.data]  # of offsets, these are views
        layout = layout.content
    if layout.is_numpy:
        arrays.append(layout.data)
    return extents(arrays)


def _without_an_element(array: ak.Array) -> ak.Array:
    """Return ragged rows: those of an array, but the last element of the first."""
    import awkward as ak
    import numpy as np

    dense = ak.to_numpy(array)
    rows, length = dense.shape
    offsets = np.arange(rows + 1) * length
    offsets[1:] -= 1
    parts = {"values": np.delete(dense.reshape(-1), length - 1), "offsets": offsets}
    return pack(Parts(dense.shape, parts))


def _without_the_first(array: ak.Array) -> ak.Array:
    """Return the numbers of an array, of which the first is missing."""
    import awkward as ak
    import numpy as np

    numbers = ak.to_numpy(array)
    if numbers.ndim != 1:
        msg = "an element of an array of one axis may be missing"
        raise Declined(msg)
    return ak.mask(array, np.arange(len(numbers)) > 0)


def _copies_of_elements() -> Iterable[Conversion]:
    """Yield the copies of what is no array or list of numbers: dates, text, records, options."""
    make = partial(Copy, copy, cost=Cost(5e-5, 1e9), name="copy_elements")
    yield make(takes=MEMORY_TRAITS, dtypes={"datetime64[", "timedelta64["})
    yield make(requires={"not_numbers"})
    for trait in ("missing", "lists_of_lists", "reordered"):
        yield make(requires={trait}, dtypes=_DTYPES | {"?", "var * "}, name=f"copy_{trait}")


def _casts() -> Iterable[Conversion]:
    """Yield the casts that keep parameters; Awkward would drop imaginary parts with a warning."""
    make = partial(Cast, cast, takes=_EVEN, cost=Cost(1e-4, 4e9))
    yield make(dtypes=_DTYPES - COMPLEX)
    yield make(COMPLEX, dtypes=COMPLEX, name="cast_complex")


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    components = Components(
        "ragged",
        "numpy",
        {"values": "dtype", "offsets": "index_dtype"},
        unpack,
        pack,
        unpack_keeps=_NESTED | _HYBRID,
        pack_seconds=5e-5,
    )
    yield Format(
        "awkward",
        types=("awkward:Array",),
        aliases=("ak",),
        describe=describe,
        dtypes=_DTYPES,
        index_dtypes={"int32", "int64"},
        carries=MEMORY_TRAITS | _NESTED | _HYBRID | _SCATTERED | _MASKED | _ODD,
        memory=memory,
        wrapper=Wrapper(to_numpy, 3e-5),
        components=components,
        ndims=frozenset(range(1, 65)),  # NumPy has arrays of at most 64 axes
        unary=(
            Drop("scattered", join, "copy", takes=_NESTED | _HYBRID, cost=Cost(1e-4, 1e9)),
            Copy(copy, takes=_EVEN, cost=Cost(3e-5, 1e10)),
            *_copies_of_elements(),
            *_casts(),
        ),
        requires="awkward",
        install="pip install awkward",
        limits=Limits(refusal_hints=_REFUSAL_HINTS),
        samples=Samples(variants={"nested": _without_an_element, "masked": _without_the_first}),
    )
    yield Conversion(
        "awkward", "numpy.ma", to_masked, requires=_MASKED, effects=COPY, cost=Cost(5e-5, 1e9)
    )
    yield Conversion(
        "awkward",
        "numpy",
        fill_nulls,
        requires=_MASKED,
        drops=_MASKED,
        changes={"dtype"},
        result=Result(dtypes=_DTYPES),
        effects=COPY | {"drop_mask"},
        cost=Cost(6e-5, 1e9),
    )
    yield Conversion("numpy", "awkward", from_numpy, takes=NATIVE, cost=Cost(2e-5))
    make = partial(Conversion, "awkward", "numpy", cost=Cost(5e-5, 1e9))
    make = partial(make, takes=_HYBRID)
    yield make(regular, drops=_HYBRID, cost=Cost(1.5e-5), name="regular_rows")
    scattered = _SCATTERED | _HYBRID
    yield make(joined, requires=_SCATTERED, drops=scattered, effects=COPY, name="join_rows")
    effects, nested = COPY | {"pad"}, _NESTED | _HYBRID
    yield make(padded, requires=_NESTED, drops=nested, effects=effects, name="pad_rows")
