"""NumPy: dense arrays on the host, of every dtype of NumPy and ml_dtypes.

Arrays are described from their flags and strides alone. The steps that write memory are declared
in groups of like speed, because the planner can only choose by what is declared.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from interop.kit import EMPTY, NATIVE, STRIDED, TEXTS, address
from interop.plugin import (
    DTYPES,
    Cast,
    Container,
    Conversion,
    Copy,
    Cost,
    Declaration,
    Drop,
    DtypeNames,
    Format,
    Limits,
    Result,
    Samples,
    Wrapper,
    hookimpl,
)
from interop.plugin.advanced import Advanced

from . import subclasses
from .containers import open_container
from .dense import (
    as_array,
    as_bits,
    cast,
    cast_if_exact,
    copy,
    copy_elements,
    copy_to_native,
    drop_mask,
    fill,
    from_bits,
    from_scalar,
    list_of_rows,
    objects_to_numbers,
    unless_objects,
)
from .describe import describe, fast_key, memory
from .dlpack import (
    dlpack_fast_path,
    from_dlpack,
    from_locked_dlpack,
    from_locked_narrow_dlpack,
    from_narrow_dlpack,
)
from .dtypes import HELD, NARROW_REALS, ONLY_ML_DTYPES, PLAIN, class_name, requested_name
from .samples import VARIANTS, mask_first, rows_of

if TYPE_CHECKING:
    from typing import Any

_SWAPPED = frozenset({"byteswapped"})
_ORDERS, _C_OR_F = frozenset("CFK"), frozenset("CF")
#: The beginnings of the names of dtypes of text, of dates and of records.
_ELEMENTS = TEXTS | {"datetime64[", "timedelta64[", "[(", "{'", "|V"}
_NOT_NUMBERS = frozenset({"not_numbers"})
_UNTYPED, _MASKED = frozenset({"untyped"}), frozenset({"masked"})
#: The traits of arrays of a class to which others have added attributes, such as a unit.
_ATTRIBUTED = frozenset({"subclass", "labelled"})
_MEMORY = NATIVE | _SWAPPED
_TEXT = "x.astype(float) reads the numbers in the text."
_RECORDS = "interop.convert_tree(x, ...) makes one array of each field; x['name'] is one field."
_IMAGE = (
    "Pillow's images are only read; PIL.Image.fromarray(interop.convert(x, to='numpy')) makes one."
)
_HINTS = {
    "drop_mask": "x.filled(...) says what stands for what is masked, and to='pandas' keeps the "
    "mask. The numbers under the mask count as others do with drop_mask.",
    **dict.fromkeys(("<U", ">U", "|S", "StringDType"), _TEXT),
    "datetime64": "x.astype('int64') counts its units from 1970 on; NaT is the least integer.",
    "timedelta64": "x.astype('int64') counts its units; NaT is the least integer.",
    **dict.fromkeys(("[(", "{'names'", "(numpy.record"), _RECORDS),
    "[('float0'": "it is a gradient of integers, which is zero; numpy.zeros(x.shape) has numbers.",
    "|V2": "x.view(ml_dtypes.bfloat16) makes numbers of bfloat16, which .npz files call void.",
    **dict.fromkeys(("PIL.Image:Image", "pillow:Image"), _IMAGE),
    "not_numbers": "its elements are objects and no numbers; x.astype(float) reads the numbers in "
    "text, and x.tolist() makes a list.",
}


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format, the conversions, and how dtypes are named."""
    return [
        _format(),
        _masked(),
        _rows(),
        *_masks(),
        *_bits(),
        *_hand_offs(),
        DtypeNames("numpy:dtype", requested_name),
        DtypeNames("builtins:type", class_name),
        Container("numpy", open_container),
    ]


def _format() -> Format:
    return Format(
        "numpy",
        # A `numpy.bytes_` is an instance of Python's `bytes` as well, which offers a buffer.
        types=("numpy:ndarray", "numpy:generic", "numpy:bytes_"),
        target_types=("numpy:ndarray",),
        aliases=("np",),
        describe=describe,
        dtypes=HELD,
        ndims=frozenset(range(65)),
        carries=_MEMORY | _UNTYPED | _NOT_NUMBERS,
        # Arrays have other protocols, too, but no route needs them.
        exports={"dlpack": PLAIN},
        unary=tuple(_steps()),
        limits=Limits(refusal_hints=_HINTS),
        requires="numpy",
        install="pip install numpy",
        memory=memory,
        fill=fill,
        fast_path=unless_objects,
        advanced=Advanced(hub=True, fast_key=fast_key, address=address, page_locked=True),
        samples=Samples(variants=VARIANTS),
    )


def _masked() -> Format:
    """Return the format of NumPy's own masked arrays, which keep what is under the mask."""
    return Format(
        "numpy.ma",
        types=("numpy:ndarray",),
        target_types=("numpy.ma:MaskedArray",),
        describe=describe,
        dtypes=HELD,
        carries=_MEMORY | _MASKED | _UNTYPED | _NOT_NUMBERS,
        unary=tuple(_steps_of_subclasses(_MASKED)),
        limits=Limits(refusal_hints=_HINTS),
        requires="numpy",
        install="pip install numpy",
        memory=memory,
        fill=fill,
        samples=Samples(variants={"masked": mask_first}),
        # No route leads through it: what lies under a mask is not what fills nulls.
        advanced=Advanced(not_recoverable={"nnz"}),
    )


def _steps_of_subclasses(
    traits: frozenset[str], requires: frozenset[str] = frozenset()
) -> Iterable[Conversion]:
    """Yield the steps that keep the class of an array, and what the class knows of it."""
    yield Copy(
        subclasses.copy,
        _C_OR_F,
        takes=_MEMORY | traits,
        requires=requires,
        cost=Cost(5e-6, 1e10),
        across=Cost(8e-6, 7.5e9),
    )
    yield from _copies_of_elements(traits) if traits == _MASKED else ()
    takes = NATIVE | traits
    yield Cast(subclasses.cast, takes=takes, requires=requires, cost=Cost(8e-6, 1e10))


def _rows() -> Format:
    """Return the format of arrays of lists or of arrays, which are what the list of these is."""
    return Format(
        "numpy.rows",
        types=("numpy:ndarray",),
        target_types=(),
        describe=describe,
        dtypes=frozenset(DTYPES),
        devices=("cpu", "cuda", "rocm", "metal", "tpu", "oneapi"),
        carries={"nested"},
        wrapper=Wrapper(list_of_rows, 1e-6),
        requires="numpy",
        install="pip install numpy",
        advanced=Advanced(fast_key=fast_key),
        samples=Samples(make=rows_of, source="numpy"),
    )


def _masks() -> Iterable[Conversion]:
    """Yield the views of masked arrays as plain ones, and of plain ones as masked ones."""
    make = partial(Conversion, "numpy.ma", "numpy", drop_mask, cost=Cost(3e-7))
    taken = _MEMORY | _UNTYPED
    yield make(takes=taken, drops=_MASKED, name="masked_to_numpy")
    yield make(takes=taken, requires=_MASKED, drops=_MASKED, effects={"drop_mask"})
    # Worse than all that keep a mask.
    yield Conversion("numpy", "numpy.ma", subclasses.to_masked, takes=taken, cost=Cost(5e-6))


def _steps() -> Iterable[Conversion]:
    """Yield the steps within NumPy, in groups of dtypes with similar speed."""
    yield from _checked_casts()
    yield from _copies_of_elements()
    yield Cast(
        objects_to_numbers,
        takes=NATIVE | {"subclass"},
        requires=_UNTYPED,
        drops=_UNTYPED | {"subclass"},
        cost=Cost(5e-6, 5e7),
    )
    yield from _steps_of_subclasses(_ATTRIBUTED, _ATTRIBUTED)
    yield Drop("subclass", as_array, cost=Cost(2e-7))
    yield Drop("masked", drop_mask, "drop_mask")
    yield Drop("scalar", from_scalar, "copy", takes=EMPTY, cost=Cost(5e-7))
    turned = Cost(5e-7, 7.5e9, 1.5e10)
    yield Copy(copy, _ORDERS, takes=NATIVE, cost=Cost(5e-7, 1.9e10, 1.2e11), across=turned)
    native = partial(Copy, copy_to_native, _C_OR_F, requires=_SWAPPED)
    yield native(cost=Cost(1e-6, 1.4e10, 6e10), across=turned)
    # NumPy computes narrow floats one by one.
    half, narrow = frozenset({"float16"}), ONLY_ML_DTYPES - {"bfloat16", "int4", "uint4"}
    fast, brief = HELD - half - narrow, frozenset({"bfloat16"})
    for name, source, target, cost in (
        ("cast", fast, fast - brief, Cost(1.5e-6, 1.9e10, 6e10)),
        ("cast_to_bfloat16", fast, brief, Cost(1.5e-6, 1.1e10)),
        ("cast_to_half", fast, half, Cost(1.5e-6, 3e9)),
        ("cast_half", half, fast | half, Cost(1.5e-6, 4e9)),
        ("cast_narrow", narrow, HELD, Cost(1.5e-6, 8e9)),
        ("cast_to_narrow", fast | half, narrow, Cost(1.5e-6, 1.5e9)),
    ):
        # The speed is the same for all strides, so that a route gains nothing by copying first.
        yield Cast(cast, target, _ORDERS, dtypes=source, cost=cost, name=name)


def _copies_of_elements(traits: frozenset[str] = frozenset()) -> Iterable[Conversion]:
    """Yield the copies of what is no array of numbers: text, dates, records, objects."""
    make = partial(Copy, copy_elements, _C_OR_F, takes=NATIVE | traits, cost=Cost(5e-7, 2e9))
    yield make(dtypes=_ELEMENTS)
    # As NumPy's own copy does, this keeps the order of bytes.
    yield make(dtypes=_ELEMENTS, requires=_SWAPPED, adds=_SWAPPED)
    for kind in (_UNTYPED, _NOT_NUMBERS):
        yield make(requires=kind)


def _checked_casts() -> Iterable[Conversion]:
    """Yield the casts of integers for targets without 64 bits."""
    for name in ("int", "uint"):
        yield Cast(
            cast_if_exact,
            {f"{name}32"},
            dtypes={f"{name}64"},
            checked=True,
            cost=Cost(4e-6, 8e9),
            name=f"cast_{name}_if_exact",
        )


def _bits() -> Iterable[Conversion]:
    """Yield the views of elements as unsigned integers of the same width, and back."""
    view = partial(Conversion, "numpy", "numpy", takes=NATIVE, cost=Cost(3e-7))
    yield view(as_bits, dtypes=NARROW_REALS, result=Result(bits="carry"))
    yield view(from_bits, dtypes={"uint8", "uint16"}, result=Result(bits="restore"))


def _hand_offs() -> Iterable[Conversion]:
    """Return the ways from DLPack."""
    declare = partial(Conversion, "dlpack", "numpy")
    writable = STRIDED | {"unaligned"}
    readonly, immutable = frozenset({"readonly"}), frozenset({"immutable"})
    plain: dict[str, Any] = {"dtypes": PLAIN, "cost": Cost(4e-6)}
    narrow: dict[str, Any] = {"dtypes": ONLY_ML_DTYPES, "cost": Cost(8e-6)}
    return [
        declare(from_dlpack, takes=writable, fast_path=dlpack_fast_path, **plain),
        declare(from_locked_dlpack, takes=writable | immutable, requires=readonly, **plain),
        declare(from_locked_dlpack, takes=writable, requires=immutable, **plain),
        declare(from_narrow_dlpack, takes=writable | readonly, **narrow),
        declare(from_locked_narrow_dlpack, takes=writable | readonly, requires=immutable, **narrow),
    ]
