"""Python itself: numbers, and lists, tuples and ranges of numbers or of arrays.

The records of libraries that have no arrays stand here, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from interop.kit import COPY, CPU, DTYPE, NATIVE
from interop.plugin import (
    DTYPES,
    Cast,
    Components,
    Container,
    Conversion,
    Cost,
    Declaration,
    Drop,
    Format,
    Limits,
    Result,
    Samples,
    hookimpl,
)
from interop.plugin.advanced import Advanced

from . import arrays, numbers, ragged, records
from .describe import describe, fast_key

#: The dtypes whose numbers become an equal bool, int, float or complex. Python's floats are less
#: precise than longdouble, so another dtype has to be requested for those.
_DTYPES = frozenset(DTYPES) - {"complex32", "longdouble", "clongdouble"}
#: The dtypes that a framework may give to numbers of each kind, by the name of the step. Integers
#: may become floats; floats become integers, and complex numbers floats, by `to_dtype` alone.
_DEFAULTS = [
    (f"to_default_{dtype}", dtype, frozenset(name for name in DTYPES if DTYPES[name].kind in kinds))
    for dtype, kinds in (
        *(("bool", "b"), ("int64", "uifc"), ("uint64", "uifc")),
        *(("float64", "fc"), ("complex128", "c")),
    )
]
_LABELLED = frozenset({"labelled"})
_KEPT = (
    "Its rows differ in length; to='torch.jagged', 'tensorflow.ragged', 'pyarrow.list' or "
    "'awkward' keeps them as they are."
)
#: The traits of rows of several lengths, and of those whose elements are arrays themselves.
_RAGGED = frozenset({"nested", "hybrid"})


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats of numbers and sequences, the ways to and from NumPy, and records."""
    return [
        *_formats(),
        *_conversions(),
        Container("attr", records.open_attrs, records.make_attrs),
        Container("pydantic:BaseModel", records.open_pydantic, records.make_pydantic),
        Container("msgspec:Struct", records.open_msgspec, records.make_msgspec),
        Container("h5py:Group", records.open_h5py),
        Container("zarr:Group", records.open_zarr),
        Container("optree:tree_flatten_with_path", records.open_optree, records.make_optree),
    ]


def _formats() -> Iterable[Format]:
    return [
        Format(
            "python",
            types=tuple(
                f"builtins:{name}"
                for name in ("bool", "int", "float", "complex", "list", "tuple", "range")
            ),
            describe=describe,
            dtypes=_DTYPES,
            carries=numbers.WEAK | numbers.UNTYPED | numbers.MIXED,
            ndims=frozenset(range(numbers.MAX_AXES + 1)),
            # The type of a result depends on the array: a number, a list, or a list of lists.
            target_types=(),
            aliases=("list",),
            advanced=Advanced(not_recoverable={"dtype", "shape"}, fast_key=fast_key),
        ),
        Format(
            "python.arrays",
            types=("builtins:list", "builtins:tuple"),
            target_types=(),
            describe=describe,
            dtypes=frozenset(DTYPES),
            devices=arrays.DEVICES,
            carries=arrays.CARRIES,
            ndims=frozenset(range(1, 65)),
            samples=Samples(make=arrays.sample, source="numpy"),
            advanced=Advanced(fast_key=fast_key),
        ),
        Format(
            "python.ragged",
            types=("builtins:list", "builtins:tuple"),
            target_types=(),
            describe=describe,
            dtypes=frozenset(DTYPES) - {"float8_e8m0fnu"},  # which has no zero
            index_dtypes={"int32", "int64"},
            devices=("cpu", "cuda", "rocm"),
            carries=arrays.CARRIES | numbers.WEAK | _RAGGED,
            ndims=frozenset(range(2, 65)),
            components=Components(
                "ragged",
                "numpy",
                {"values": "dtype", "offsets": "index_dtype"},
                ragged.unpack,
                ragged.pack,
                unpack_keeps=_RAGGED,
                unpack_copies=frozenset({"values", "offsets"}),
                pack_requires=frozenset({"nested"}),
                pack_seconds=2e-5,
            ),
            unary=tuple(_ragged_steps()),
            limits=Limits(refusal_hints={"pad": _KEPT}),
            samples=Samples(make=ragged.sample, source="numpy"),
        ),
    ]


def _ragged_steps() -> Iterable[Conversion]:
    """Yield the steps that give a dtype to rows of Python's numbers, which have none."""
    yield Drop("grad", ragged.detached, "detach", takes=_RAGGED | _LABELLED)
    # It costs more than the casts: that of an array would let integers wrap around.
    yield Drop("weak", ragged.to_arrays, "copy", takes=_RAGGED, cost=Cost(1e-4, 5e7))
    mixed = partial(Cast, takes=_RAGGED | _LABELLED, requires=numbers.MIXED, drops=numbers.MIXED)
    yield mixed(ragged.cast, cost=Cost(1e-5, 3e8))
    # It costs more than the casts: an integer might be rounded on the way to its own dtype.
    dear = Cost(1e-3, 5e7)
    yield Drop("mixed", ragged.cast_to_common, "copy", takes=_RAGGED | _LABELLED, cost=dear)
    weak = partial(Cast, takes=_RAGGED, requires=numbers.WEAK, drops=numbers.WEAK)
    for name, dtype, targets in _DEFAULTS:
        yield weak(
            ragged.to_default,
            targets - {dtype},
            dtypes={dtype},
            checked=True,
            cost=Cost(1.2e-6, 2e8),
            name=name,
        )
    yield weak(ragged.to_dtype, cost=Cost(1.5e-6, 2e8))


def _conversions() -> Iterable[Conversion]:
    from_numbers = partial(Conversion, "python", "numpy", drops=numbers.WEAK, effects=COPY)
    # These are slow, because every element is a Python object.
    return [
        Conversion(
            "python.arrays",
            "numpy",
            arrays.stack,
            devices=CPU,
            takes=_LABELLED | numbers.MIXED,
            drops=_LABELLED | numbers.MIXED,
            changes=DTYPE,
            effects=COPY,
            # As torch's: no array is stacked there on its way to NumPy, and none here to torch.
            cost=Cost(1.5e-5, 5e8),
            fast_path=arrays.numpy_fast_path,
        ),
        Conversion(
            "python.ragged",
            "numpy",
            ragged.padded,
            devices=CPU,
            takes=_LABELLED | {"hybrid"},
            requires={"nested"},
            drops=_LABELLED | _RAGGED,
            effects=COPY | {"pad"},
            cost=Cost(3e-5, 3e8),
            name="pad_rows",
        ),
        from_numbers(
            numbers.to_numpy,
            takes=numbers.WEAK,
            cost=Cost(1e-6, 2e8),
            fast_path=numbers.numpy_fast_path,
        ),
        *(
            from_numbers(
                numbers.to_default,
                requires=numbers.WEAK,
                dtypes={dtype},
                changes=DTYPE,
                result=Result(dtypes=targets),
                checked=True,
                cost=Cost(1.2e-6, 2e8),
                fast_path=numbers.numpy_fast_path,
                name=name,
            )
            for name, dtype, targets in _DEFAULTS
        ),
        # A cast of an array would let integers wrap around; this conversion does not.
        from_numbers(
            numbers.to_dtype,
            dtypes=frozenset({"bool", "int64", "uint64", "float64", "complex128"}),
            takes=numbers.WEAK,
            changes=DTYPE,
            cost=Cost(1.1e-6, 2e8),
            fast_path=numbers.numpy_fast_path,
        ),
        *(
            from_numbers(
                numbers.to_dtype,
                requires=trait,
                drops=trait,
                changes=DTYPE,
                cost=Cost(5e-6, 5e7),
                name=name,
            )
            for trait, name in (
                (numbers.UNTYPED, "to_dtype_of_objects"),
                (numbers.MIXED, "to_dtype_of_wide_integers"),
            )
        ),
        Conversion(
            "numpy",
            "python",
            numbers.from_numpy,
            dtypes=_DTYPES,
            # ml_dtypes misreads the single elements of a byte-swapped array.
            takes=NATIVE,
            effects=COPY,
            cost=Cost(5e-7, 1e9),
            fast_path=numbers.python_fast_path,
        ),
    ]
