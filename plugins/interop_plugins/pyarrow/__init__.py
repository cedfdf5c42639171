"""PyArrow: arrays with their nulls, chunked arrays, tensors, and the columns of tables.

Arrow's arrays never change, so results that share their memory are read-only where the consumer can
mark them so. An array over a buffer that is flagged read-only (mapped from a file, say) is
``readonly``, too, and stays so in every framework that takes it from NumPy.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from interop import plugin
from interop.kit import ANY_DTYPES, COPY, DTYPE, EMPTY, ROW_TRAITS, column_formats
from interop.plugin import (
    COLUMN_TRAITS,
    MEMORY_TRAITS,
    Cast,
    CastColumns,
    Components,
    Conversion,
    Copy,
    Cost,
    Declaration,
    DtypeNames,
    Format,
    Labels,
    Limits,
    Result,
    Samples,
    Wrapper,
    hookimpl,
    itself,
)
from interop.plugin.advanced import Advanced

from . import dense, describe, elements, lists, samples, tables, tensors
from .dtypes import DTYPES, NUMBERS, UNTYPED, dtype_name

_BOOL = frozenset({"bool"})
#: The dtypes of NumPy and ml_dtypes, in which nulls and decimals are written.
_HELD = frozenset(plugin.DTYPES) - {"complex32"}
_IMMUTABLE, _READONLY = frozenset({"immutable"}), frozenset({"readonly"})
_MASKED, _CHUNKED = frozenset({"masked"}), frozenset({"chunked"})
_NESTED, _LISTS = frozenset({"nested"}), frozenset({"lists"})
#: The traits of lists without component arrays: of truth values, which are bits, and of lists.
_WHOLE = frozenset({"bits", "deep"})
#: The trait of rows whose elements are vectors.
_HYBRID = frozenset({"hybrid"})
_NONCONTIGUOUS, _UNALIGNED = frozenset({"noncontiguous"}), frozenset({"unaligned"})

#: The traits that the memory of an Arrow array can have.
_MEMORY = _IMMUTABLE | _READONLY | _UNALIGNED
#: The traits of a chunked array, also of lists.
_CHUNKS = _MEMORY | _MASKED | _CHUNKED | _LISTS | _NESTED | _WHOLE | lists.ODD | UNTYPED
_CHUNKS |= _HYBRID
#: The trait of a table whose only column lies in one block.
_ONE_COLUMN = frozenset({"one_column"})
_ODD_COLUMNS = ANY_DTYPES | {"indexed"}
#: Those that an Arrow table has.
_KEPT_KINDS = COLUMN_TRAITS - {"byte_columns", "object_columns", "strided_columns"}
#: The kinds of columns that others export by copying them, and those of which they share some.
_COPIED_KINDS = frozenset(
    {"byte_columns", "category_columns", "object_columns", "strided_columns", "view_columns"}
)
_SHARED_KINDS = COLUMN_TRAITS - _COPIED_KINDS | {"category_columns"}
#: The traits of NumPy's memory that an Arrow array can share, and those that a tensor can share.
_BLOCK = _IMMUTABLE | _READONLY
_STRIDED = _BLOCK | _NONCONTIGUOUS | {"broadcast"}

_INTEGER_NAMES = tuple(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64))
#: The types of arrays of numbers, which have fast paths.
_NUMBER_ARRAYS = tuple(
    f"pyarrow:{name}Array" for name in ("HalfFloat", "Float", "Double", *_INTEGER_NAMES)
)

#: The cost of casting decimals, most of which have few digits.
_DECIMALS = Cost(3e-5, 1e9)

#: The casts that make numbers of elements of other types, by the beginnings of Arrow's names.
_COUNTED = "cast the column (x.cast('int64') counts its units from 1970 or midnight on)."
_CASTS = {
    **dict.fromkeys(("string", "large_string"), "cast the column (x.cast('float64'))."),
    **dict.fromkeys(("timestamp", "duration", "date64", "time64"), _COUNTED),
    **dict.fromkeys(("date32", "time32"), _COUNTED.replace("int64", "int32")),
    "dictionary": "its codes are numbers (x.indices of each chunk), and so may its values be "
    "(x.dictionary_decode()).",
    "run_end_encoded": "pyarrow.compute.run_end_decode(x) makes a plain array of it.",
    **dict.fromkeys(("list_view", "large_list_view"), "x.to_pylist() makes a list of its rows."),
    "struct": "x.flatten() makes a list of its fields, each an array.",
    "null": "all of its elements are null; x.cast('float64') gives them a dtype.",
}
_FILLED = (
    ".fill_null(...) says what nulls become, and to='numpy.ma' keeps them; so does "
    "polars.from_arrow(x). With drop_mask nulls become NaN in floats, but 0 in integers and False "
    "in bools, as if that had been measured."
)
_REFUSAL_HINTS = {
    **lists.REFUSAL_HINTS,
    **_CASTS,
    "drop_mask": f"x{_FILLED}",
}
#: What tables say: they are filled and cast column by column.
_TABLE_HINTS = {
    **lists.REFUSAL_HINTS,
    "drop_mask": f"x['a']{_FILLED}",
    "not_numbers": "these are not numbers; choose columns of numbers (x.select(['a'])), or turn "
    "the others into numbers first, column by column (x['a'].cast('float64')). A column of arrays "
    "converts by itself (x['a']).",
}


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats, the conversions and the names of dtypes."""
    return [
        *column_formats(
            tuple(_table_formats()),
            series=tuple(_array_formats()),
            reader=tables.READER,
            from_arrow=tables.from_stream,
            arrow={
                "copies": _COPIED_KINDS,
                "shares": _SHARED_KINDS,
                "adds": _IMMUTABLE | {"bit_columns"},
                "keeps": {"attributes"},
                "refuses": {"unknown_dtype"},
                "offered": tables.from_stream,
            },
            cost=Cost(2e-5, 1e9),
            series_cost=Cost(5e-6, 3e10),  # as to join chunks, so that no route starts with that
            untyped_cost=Cost(2e-5, 1e9),
        ),
        _lists(),
        _rows(),
        *_other_formats(),
        *_conversions(),
        DtypeNames("pyarrow:DataType", dtype_name),
    ]


_format = partial(
    Format,
    requires="pyarrow",
    install="pip install pyarrow",
    fast_path=itself,
    limits=Limits(refusal_hints=_REFUSAL_HINTS),
)


def _array_formats() -> Iterable[Format]:
    flat = partial(_format, dtypes=DTYPES, ndims={1})
    # Both keep nulls.
    taken = _MEMORY | _MASKED | UNTYPED
    copy = Copy(dense.copy, takes=taken, adds=_IMMUTABLE, cost=Cost(5e-6, 3e10))
    cast = partial(Cast, tables.READER.cast, adds=_IMMUTABLE)
    casts = (
        cast(requires=_MASKED, cost=Cost(1e-5, 4e9)),
        cast(requires=UNTYPED, drops=UNTYPED, cost=_DECIMALS),
    )
    yield flat(
        "pyarrow",
        types=(*_NUMBER_ARRAYS, "pyarrow:Array"),
        target_types=("pyarrow:Array",),
        aliases=("pa",),
        describe=describe.describe,
        carries=_MEMORY | _MASKED | UNTYPED,
        unary=(copy, *casts),
        memory=describe.memory,
        samples=Samples(variants=samples.VARIANTS),
        exports={"arrow_c_array": DTYPES},
        advanced=Advanced(hub=True),  # arrays with nulls of other libraries meet here
    )
    yield flat(
        "pyarrow.chunked_array",
        types=("pyarrow:ChunkedArray",),
        describe=lists.describe_chunks,
        carries=_CHUNKS,
        exports={"arrow_c_array": DTYPES},
        memory=describe.memory,
        samples=Samples(variants=samples.CHUNKED_VARIANTS),
    )
    nested = partial(
        _format,
        dtypes=DTYPES,
        carries=_MEMORY | _MASKED | _NONCONTIGUOUS | {"not_numbers"},
        unary=(copy,),
        memory=describe.memory,
        ndims=frozenset(range(2, 65)),  # NumPy has arrays of at most 64 axes
    )
    yield nested(
        "pyarrow.fixed_shape_tensor",
        types=("pyarrow:FixedShapeTensorArray",),
        describe=partial(describe.describe_rows, "pyarrow.fixed_shape_tensor"),
    )
    yield nested(
        "pyarrow.fixed_size_list",
        types=("pyarrow:FixedSizeListArray",),
        describe=partial(describe.describe_rows, "pyarrow.fixed_size_list"),
    )


def _rows() -> Format:
    """Return the format of one row of an array of lists or tensors, which is an array itself."""
    scalars = ("FixedShapeTensor", "FixedSizeList", "List", "LargeList")
    return _format(
        "pyarrow.row",
        types=tuple(f"pyarrow:{name}Scalar" for name in scalars),
        describe=lists.describe_null_row,
        dtypes=DTYPES,
        carries={"null_rows"},
        wrapper=Wrapper(lists.elements),
        fast_path=None,
        samples=Samples(make=samples.row, source="pyarrow"),
    )


def _lists() -> Format:
    """Return the format of lists, whose lengths are in their offsets."""
    components = Components(
        "ragged",
        "numpy",
        {"values": "dtype", "offsets": "index_dtype"},
        lists.unpack,
        lists.pack,
        unpack_keeps=_NESTED | _HYBRID,
        packed_dtypes=_BOOL,
        pack_adds=_IMMUTABLE,
        pack_seconds=2e-5,
    )
    # Of lists of text there are no components.
    taken = _MEMORY | _MASKED | _NESTED | _WHOLE | _HYBRID | lists.ODD
    copy = Copy(
        dense.copy,
        takes=taken,
        dtypes=DTYPES | {"list<", "large_list<", "map<"},
        adds=_IMMUTABLE,
        cost=Cost(1e-5, 1e10),
    )
    return _format(
        "pyarrow.list",
        types=("pyarrow:ListArray", "pyarrow:LargeListArray"),
        describe=lists.describe,
        dtypes=DTYPES,
        index_dtypes={"int32", "int64"},
        carries=taken,
        memory=lists.memory,
        unary=(copy,),
        exports={"arrow_c_array": DTYPES},
        ndims=frozenset(range(2, 65)),
        components=components,
        advanced=Advanced(hub=True),  # the other formats share memory with less than NumPy does
        fast_path=None,
        samples=Samples(variants={"nested": samples.ragged}),
    )


def _other_formats() -> Iterable[Format]:
    yield _format(
        "pyarrow.scalar",
        types=("pyarrow:Scalar",),
        describe=describe.describe_scalar,
        dtypes=DTYPES,
        carries=_MASKED | UNTYPED,
        ndims={0},
    )
    yield _format(
        "pyarrow.tensor",
        types=("pyarrow:Tensor",),
        describe=tensors.describe_tensor,
        dtypes=NUMBERS,
        carries=_READONLY | _NONCONTIGUOUS | _UNALIGNED | {"broadcast"},
        memory=tensors.memory_of_tensor,
        fill=tensors.fill_tensor,
    )


def _table_formats() -> Iterable[Format]:
    anything = _MASKED | {"scattered"} | _ONE_COLUMN | _ODD_COLUMNS | UNTYPED | _MEMORY
    make = partial(
        _format,
        dtypes=DTYPES,
        carries=anything | _KEPT_KINDS,
        memory=tables.memory_of_columns,
        wrapper=Wrapper(tables.tensor_column, 1e-5),
        ndims={2},
        labels=Labels(tables.are_labelled, tables.named),
        exports={"arrow_c_stream": DTYPES},
        limits=Limits(refusal_hints=_TABLE_HINTS),
    )
    taken = anything | COLUMN_TRAITS
    yield make(
        "pyarrow.table",
        types=("pyarrow:Table",),
        describe=partial(tables.describe, "pyarrow.table"),
        unary=(
            Copy(tables.copy, takes=taken | ROW_TRAITS, adds=_IMMUTABLE, cost=Cost(1e-4, 3e9)),
            CastColumns(tables.cast_columns, takes=taken, adds=_IMMUTABLE, cost=Cost(5e-5, 1e9)),
        ),
        samples=Samples(make=samples.table_of_tensors),
        advanced=Advanced(offers={"arrow_c_stream": tables.offer}, fast_key=tables.fast_key),
    )
    yield make(
        "pyarrow.record_batch",
        types=("pyarrow:RecordBatch",),
        describe=partial(tables.describe, "pyarrow.record_batch"),
        samples=Samples(make=samples.batch_of_tensors),
        advanced=Advanced(fast_key=tables.fast_key),
    )


def _conversions() -> Iterable[Conversion]:
    """Return the conversions to and from NumPy and torch, and those of chunks and tables."""
    return [
        *_arrays_to_numpy(),
        *_others_to_numpy(),
        *_from_numpy(),
        *_chunks(),
        *_lists_to_others(),
        *elements.conversions(_CHUNKS - UNTYPED),
    ]


def _arrays_to_numpy() -> Iterable[Conversion]:
    """Yield the conversions of arrays, which lie in one block or in several chunks."""
    for source, to_numpy in (
        ("pyarrow", dense.to_numpy),
        ("pyarrow.chunked_array", dense.chunk_to_numpy),
        ("pyarrow.fixed_shape_tensor", dense.to_numpy),
        ("pyarrow.fixed_size_list", dense.to_numpy),
    ):
        shareable = _IMMUTABLE | _UNALIGNED | _NONCONTIGUOUS
        make = partial(Conversion, source, "numpy", to_numpy, takes=shareable)
        share = partial(make, dtypes=NUMBERS, cost=Cost(1e-6))
        yield share(fast_path=dense.numpy_fast_path if source == "pyarrow" else None)
        # A policy may let immutable memory be shared as writable, but not read-only memory.
        yield share(requires=_READONLY, drops=_IMMUTABLE)
        readable = shareable | _READONLY
        cost = Cost(2e-6, 4e10)
        yield make(takes=readable, dtypes=_BOOL, effects=COPY, cost=cost, name="unpack_bits")
    yield Conversion(
        "pyarrow",
        "torch",
        dense.to_torch,
        dtypes=NUMBERS,
        takes=_IMMUTABLE,
        cost=Cost(1e-6),
        fast_path=dense.torch_fast_path,
    )


def _others_to_numpy() -> Iterable[Conversion]:
    """Yield the conversions of tensors, scalars and columns."""
    yield Conversion(
        "pyarrow.tensor",
        "numpy",
        tensors.tensor_to_numpy,
        takes=_READONLY | _NONCONTIGUOUS | _UNALIGNED | {"broadcast"},
        cost=Cost(2e-7),
        fast_path=tensors.tensor_to_numpy,
    )
    scalar = partial(Conversion, "pyarrow.scalar", "numpy", dense.scalar_to_numpy, cost=Cost(1e-6))
    yield scalar(effects=COPY)
    for traits in (_MASKED, UNTYPED, UNTYPED | _MASKED):
        yield scalar(
            requires=traits,
            drops=traits,
            changes=DTYPE,
            result=Result(dtypes=_HELD),
            effects=COPY | {"drop_mask"} if traits >= _MASKED else COPY,
            name="fill_scalar" if traits >= _MASKED else "cast_scalar",
        )
    for source in ("pyarrow.table", "pyarrow.record_batch"):
        share = partial(Conversion, source, "numpy", tables.column_to_numpy, dtypes=NUMBERS)
        kinds = COLUMN_TRAITS
        share = partial(share, takes=_IMMUTABLE | _UNALIGNED | kinds, cost=Cost(5e-6))
        yield share(requires=_ONE_COLUMN, drops=kinds | _ONE_COLUMN)
        locked = _ONE_COLUMN | _READONLY
        yield share(requires=locked, drops=kinds | _ONE_COLUMN | _IMMUTABLE)


def _from_numpy() -> Iterable[Conversion]:
    for target, function in (
        ("pyarrow", dense.flat_array),
        ("pyarrow.fixed_shape_tensor", dense.to_tensors),
        ("pyarrow.fixed_size_list", dense.to_lists),
    ):
        make = partial(Conversion, "numpy", target, function, adds=_IMMUTABLE)
        fast_path = dense.array_fast_path if target == "pyarrow" else None
        yield make(dtypes=NUMBERS, takes=_BLOCK, cost=Cost(2e-6), fast_path=fast_path)
        cost = Cost(3e-6, 7e10)
        yield make(dtypes=_BOOL, takes=MEMORY_TRAITS, effects=COPY, cost=cost, name="pack_bits")
    for source in ("numpy", "numpy.ma"):
        make = partial(Conversion, source, "pyarrow", requires=_MASKED, effects=COPY)
        # The numbers are shared, and the mask is packed into bits.
        masked = partial(make, adds=_IMMUTABLE)
        cost = Cost(5e-6, 2e10)
        yield masked(dense.from_masked, dtypes=NUMBERS, takes=_BLOCK, shares=True, cost=cost)
        copied = Cost(1e-5, 8e9)
        yield masked(dense.copy_masked, dtypes=DTYPES, takes=MEMORY_TRAITS, cost=copied)
    back = partial(Conversion, target="numpy.ma", effects=COPY)
    # The numbers are shared, and the bits of the nulls are unpacked.
    back = partial(back, requires=_MASKED, takes=_MEMORY, shares=True, cost=Cost(5e-6, 2e10))
    for source in ("pyarrow", "pyarrow.fixed_shape_tensor", "pyarrow.fixed_size_list"):
        yield back(source, function=dense.to_masked)
    yield Conversion(
        "numpy",
        "pyarrow.tensor",
        tensors.tensor_from_numpy,
        takes=_STRIDED,
        cost=Cost(1e-6),
        fast_path=tensors.tensor_fast_path,
    )
    yield Conversion(
        "numpy",
        "pyarrow.scalar",
        dense.scalar_from_numpy,
        takes=_STRIDED | _UNALIGNED,
        effects=COPY,
        cost=Cost(5e-6),
    )


def _chunks() -> Iterable[Conversion]:
    """Yield the steps from chunked arrays and to them. All keep nulls."""
    anything, chunked = _MEMORY | _MASKED | UNTYPED, "pyarrow.chunked_array"
    yield Conversion("pyarrow", chunked, dense.to_chunks, takes=anything, cost=Cost(1e-6))
    of_lists = _MEMORY | _MASKED | _NESTED | _WHOLE | _HYBRID
    for target, taken, kind in (("pyarrow", anything, EMPTY), ("pyarrow.list", of_lists, _LISTS)):
        name = f"chunks_to_{target.replace('.', '_')}"
        make = partial(Conversion, chunked, target, takes=taken, name=name)
        yield make(function=dense.all_chunks, requires=kind, drops=kind, cost=Cost(2e-7))
        yield make(
            function=dense.all_chunks,
            requires=_CHUNKED | kind,
            drops=_CHUNKED | kind,
            adds=_IMMUTABLE,
            effects=COPY,
            cost=Cost(5e-6, 3e10),
            name=f"joined_{name}",
        )


def _lists_to_others() -> Iterable[Conversion]:
    """Yield the steps from lists and to them."""
    rows, fixed = "pyarrow.list", "pyarrow.fixed_size_list"
    # The numbers are where they were; only offsets are read, or written.
    make = partial(Conversion, takes=_MEMORY, cost=Cost(1e-5))
    whole = _WHOLE | _HYBRID
    yield make(rows, fixed, lists.regular, takes=_MEMORY | _MASKED | whole, drops=whole)
    yield make(
        fixed, rows, lists.to_lists, dtypes=NUMBERS, ndims={2}, result=Result(index_dtype="int32")
    )
    yield Conversion(
        rows,
        "numpy",
        lists.padded,
        takes=_MEMORY | whole,
        requires=_NESTED,
        drops=_NESTED | whole,
        effects=COPY | {"pad"},
        cost=Cost(3e-5, 1e9),
        name="pad_rows",
    )
