"""polars: Series and DataFrames.

Names are not part of an array: they are dropped when it leaves polars (the effect `drop_labels`),
and kept from polars to polars. A Series never changes. Its memory is shared, read-only, if it holds
numbers in one chunk without nulls; truth values are bits in polars. An array of one aligned block
becomes the memory of a Series. The columns of a DataFrame lie side by side only by chance, so they
are copied; a single column is shared like a Series.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version

from interop.kit import (
    COPY,
    EMPTY,
    NATIVE,
    ROW_TRAITS,
    SEVERAL_DTYPES,
    column_formats,
    list_columns,
)
from interop.plugin import (
    COLUMN_TRAITS,
    Cast,
    CastColumns,
    Conversion,
    Copy,
    Cost,
    Declaration,
    Format,
    Labels,
    Limits,
    Result,
    Samples,
    Wrapper,
    hookimpl,
)
from interop.plugin.advanced import Advanced

from . import dense, describe, elements, labels, tables
from .columns import READER
from .describe import SHARED

_READONLY, _NONCONTIGUOUS = frozenset({"readonly"}), frozenset({"noncontiguous"})
_FORTRAN = _NONCONTIGUOUS | {"fortran"}
_IMMUTABLE, _MASKED = frozenset({"immutable"}), frozenset({"masked"})
_SCATTERED, _NOT_NUMBERS = frozenset({"scattered"}), frozenset({"not_numbers"})
_MIXED, _NESTED = frozenset({"mixed"}), frozenset({"nested"})
#: The traits of decimals.
_UNTYPED = _NOT_NUMBERS | {"untyped"}
#: The trait of lists some of which are null.
_NULL_ROWS = frozenset({"null_rows"})

_CARRIED = _IMMUTABLE | _MASKED | _SCATTERED | _UNTYPED

_BOOL, _BITS = frozenset({"bool"}), _IMMUTABLE | _SCATTERED
_DTYPES = SHARED | _BOOL
#: The traits of a DataFrame whose common dtype in NumPy does not hold the numbers of each column.
_SEVERAL = _MIXED | SEVERAL_DTYPES

#: The kinds of columns that Polars copies, and those of which it shares some memory.
_SHARED_KINDS = frozenset({"bit_columns", "block_columns", "view_columns", "zoned_columns"})
_COPIED_KINDS = COLUMN_TRAITS - _SHARED_KINDS | {"chunked", "lists", "nested"}
_SHARED_KINDS |= {"text_columns", "large_text_columns", "list_columns"}
_ODD_COLUMNS = SEVERAL_DTYPES | _UNTYPED
_LABELLED, _HYBRID = frozenset({"labelled"}), frozenset({"hybrid"})
#: The traits of a DataFrame with columns of any kind.
_ANY_COLUMNS = _CARRIED | _SEVERAL | {"unknown_dtype"} | _FORTRAN | COLUMN_TRAITS
_ANY_COLUMNS |= _ODD_COLUMNS | {"indexed"}
_GATHER = Cost(2e-5, 8e9)
#: Lies between the costs of a few long columns and of many short ones, since polars makes each.
_COLUMNS = Cost(3e-5, 8e8)

_REFUSAL_HINTS = {
    "not_numbers": "these are not numbers; turn them into numbers in polars first: x.cast(float) "
    "of text, x.to_physical() of dates, spans and categories, x.explode() of lists.",
    "null_rows": "some of its rows are null, or elements of rows of several lengths; leave null "
    "rows out (drop_nulls), or make empty rows of them (fill_null([])), and fill the elements.",
    "drop_mask": "x.fill_null(...) says what nulls become, and to='numpy.ma' keeps them; so do "
    "x.to_arrow() and x.to_pandas(use_pyarrow_extension_array=True). With drop_mask nulls "
    "become NaN in floats, but 0 in integers and False in bools, as if that had been measured.",
}
_SERIES_HINTS = {
    **_REFUSAL_HINTS,
    "Int128": "x.cast(polars.Int64) makes integers of 64 bits, if all of them fit.",
    "Struct": "x.struct.unnest() makes a DataFrame of its fields.",
    "Object": "x.to_list() makes a list of its objects, and x.to_pandas() a Series of them.",
}
_FRAME_HINTS = {
    **_REFUSAL_HINTS,
    "not_numbers": "these are not numbers; choose columns of numbers "
    "(x.select(polars.selectors.numeric())), or turn the others into numbers in polars first "
    "(x.cast(float), or column by column). A column of arrays converts by itself (x['a']).",
}


@cache
def _unsupported(device: str) -> frozenset[str]:
    """Return the dtypes that the installed polars does not have; float16 came with 1.36."""
    try:
        major, minor = version("polars").split(".")[:2]
    except PackageNotFoundError:  # it was installed under another name
        return EMPTY
    return frozenset({"float16"}) if (int(major), int(minor)) < (1, 36) else EMPTY


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    series, frame, lists = _formats()
    return [
        *column_formats(
            frame,
            series=(series,),
            reader=READER,
            from_arrow=tables.from_table,
            arrow={
                "copies": _COPIED_KINDS,
                "shares": _SHARED_KINDS,
                "adds": {"bit_columns", "immutable"},
                "refuses": {"odd_columns"},
                "offered": tables.frame_of,
            },
            cost=_COLUMNS,
            untyped_cost=_COLUMNS,
        ),
        lists,
        *_views(),
        *_from_numpy(),
        *_lists(),
        *list_columns(
            "polars.list",
            tables.lists_from_stream,
            dtypes=_DTYPES,
            only={"nested", "null_rows", "masked"},
            adds=_IMMUTABLE,
        ),
        *_series_of_arrow(),
        *elements.conversions(),
    ]


def _formats() -> list[Format]:
    limits = Limits(unsupported_now=_unsupported, refusal_hints=_REFUSAL_HINTS)
    rows = _IMMUTABLE | _MASKED | _NESTED | _HYBRID | _NULL_ROWS | _SCATTERED
    common = partial(
        Format,
        carries=_CARRIED,
        requires="polars",
        install="pip install polars",
        labels=Labels(labels.present, labels.give),
    )
    return [
        common(
            "polars.series",
            types=("polars:Series",),
            describe=describe.describe,
            dtypes=_DTYPES,
            unary=tuple(_series_casts()),
            memory=describe.memory,
            ndims={1},  # this is for results; a Series of fixed-size arrays has more axes
            exports={"arrow_c_array": _DTYPES},
            advanced=Advanced(export={"arrow_c_array": tables.without_objects}),
            limits=limits._replace(refusal_hints=_SERIES_HINTS),
        ),
        common(
            "polars.dataframe",
            # A LazyFrame is recognised so that the refusal gives the reason.
            types=("polars:DataFrame", "polars:LazyFrame"),
            target_types=("polars:DataFrame",),
            aliases=("pl",),
            describe=describe.describe_frame,
            carries=_ANY_COLUMNS,
            dtypes=_DTYPES,
            unary=tuple(_frame_casts()),
            limits=limits._replace(refusal_hints=_FRAME_HINTS),
            memory=describe.frame_memory,
            wrapper=Wrapper(describe.only_column_of_rows, 1e-5),
            ndims={2},
            exports={"arrow_c_stream": _DTYPES},
            # Its own export has views of texts, which few functions of PyArrow's take.
            advanced=Advanced(
                export={"arrow_c_stream": tables.to_pyarrow},
                offers={"arrow_c_stream": tables.offer},
                fast_key=describe.frame_fast_key,
            ),
        ),
        common(
            "polars.list",
            types=("polars:Series",),
            describe=describe.describe,
            carries=_CARRIED | _NESTED | _HYBRID | _NULL_ROWS,
            dtypes=_DTYPES,
            wrapper=Wrapper(describe.to_arrays, 1e-5),
            exports={"arrow_c_array": _DTYPES},
            unary=(Copy(tables.copy_lists, takes=rows, adds=_IMMUTABLE, cost=_GATHER),),
            limits=limits,
            ndims=frozenset(range(2, 65)),
            samples=Samples(make=dense.lists_of, source="numpy"),
        ),
    ]


def _series_of_arrow() -> Iterable[Conversion]:
    """Yield the conversions of Series to Arrow's arrays and back, which keep nulls and texts.

    Series of other libraries keep their names on the way.
    """
    out = partial(Conversion, "polars.series", "pyarrow", tables.elements_to_pyarrow)
    out = partial(out, adds=_IMMUTABLE | _READONLY, takes=_CARRIED, drops=_SCATTERED)
    out = partial(out, shares=True, cost=Cost(2e-5, 2e10))
    yield out(takes=_IMMUTABLE, dtypes=SHARED, requires=_MASKED, name="share_with_nulls")
    for traits in (_MASKED, _NOT_NUMBERS):
        yield out(requires=traits, effects=COPY, name="series_to_pyarrow")
    back = partial(Conversion, "arrow_c_array", "polars.series", tables.from_stream)
    locks = _IMMUTABLE | _READONLY
    drops = _READONLY | _FORTRAN | {"chunked", "unaligned"}
    back = partial(back, adds=_IMMUTABLE, drops=drops, shares=True)
    yield back(takes=locks | _LABELLED, dtypes=SHARED, cost=Cost(3e-5), name="share_stream")
    copied = partial(back, effects=COPY, cost=Cost(4e-5, 2e10), adds=_IMMUTABLE | _SCATTERED)
    copied = partial(copied, name="stream_to_series")
    chunked = frozenset({"chunked"})
    anything = (_CARRIED | drops | _LABELLED) - chunked - _FORTRAN - _SCATTERED
    numbers = anything - _UNTYPED
    yield copied(takes=anything, dtypes=SHARED)
    yield copied(takes=anything, requires=chunked | _NOT_NUMBERS)
    for pieces in (_NONCONTIGUOUS, _SCATTERED):
        yield copied(takes=numbers, requires=pieces, dtypes=SHARED, shares=False)
    yield copied(takes=numbers, requires=chunked, shares=False)
    # Truth values are bits in Arrow's memory, and bytes elsewhere.
    bools = partial(copied, dtypes=_BOOL, name="bools_to_series")
    yield bools(takes=numbers, requires=_IMMUTABLE)
    yield bools(takes=numbers - _IMMUTABLE, requires=_SCATTERED)
    yield bools(takes=numbers - _IMMUTABLE | _NONCONTIGUOUS, shares=False)
    yield Conversion(
        "pyarrow",
        "polars.series",
        tables.from_stream,
        dtypes=SHARED,
        takes=locks,
        requires=_MASKED,
        drops=_READONLY,
        adds=_IMMUTABLE,
        cost=Cost(3e-5),
        name="share_array_with_nulls",
    )


def _lists() -> Iterable[Conversion]:
    """Yield the conversions of lists to PyArrow's and back; those of one length are arrays."""
    make = partial(Conversion, "polars.list", "pyarrow.list", tables.to_pyarrow, cost=Cost(2e-5))
    takes = _IMMUTABLE | _MASKED | _NESTED | _HYBRID | _NULL_ROWS
    # A library without such a flag, as PyTorch, is to copy what may be mapped memory.
    make = partial(make, dtypes=SHARED, drops=_IMMUTABLE, adds=_READONLY)
    make = partial(make, result=Result(index_dtype="int64"))
    # Of more axes only rows of vectors are lists there: others are arrays.
    for vectors, ndims in ((EMPTY, {2}), (_HYBRID, range(3, 65))):
        rows = partial(make, takes=takes - _HYBRID, ndims=frozenset(ndims))
        name = "vectors_to_pyarrow" if vectors else "to_pyarrow"
        yield rows(requires=vectors, name=name)
        scattered = vectors | _SCATTERED
        yield rows(
            effects=COPY, name=f"{name}_joined", requires=scattered, drops=_SCATTERED | _IMMUTABLE
        )
    yield Conversion(
        "pyarrow.list",
        "polars.list",
        tables.from_pyarrow,
        dtypes=SHARED,
        takes=takes | _READONLY,
        adds=_IMMUTABLE,
        cost=Cost(2e-5),
    )


def _views() -> Iterable[Conversion]:
    """Yield the conversions to NumPy that share memory."""
    # What never changes could be shared with PyTorch, which has no lock. The memory of a Series may
    # also be that of a file that is mapped, where a write ends the process: Polars does not tell.
    share = partial(Conversion, target="numpy", function=dense.to_numpy, drops=_IMMUTABLE)
    share = partial(share, dtypes=SHARED, adds=_READONLY)
    yield share(
        "polars.series",
        takes=_IMMUTABLE,
        cost=Cost(1.5e-6),
        fast_path=dense.series_fast_path,
        name="series_to_numpy",
    )
    kinds = _IMMUTABLE | _FORTRAN | COLUMN_TRAITS
    yield share(
        "polars.dataframe",
        takes=kinds,
        drops=COLUMN_TRAITS | _IMMUTABLE,
        cost=Cost(4e-6),
        fast_path=dense.frame_fast_path,
        name="block_to_numpy",
    )
    yield Conversion(
        "polars.series",
        "numpy.ma",
        dense.series_to_masked,
        requires=_MASKED,
        effects=COPY,
        takes=_IMMUTABLE,
        dtypes=SHARED,
        adds=_READONLY,
        shares=True,
        cost=Cost(2e-5, 2e10),
    )


def _from_numpy() -> Iterable[Conversion]:
    make = partial(Conversion, "numpy", adds=_IMMUTABLE)
    shareable = frozenset({"readonly", "immutable"})
    yield make("polars.series", dense.to_series, dtypes=SHARED, takes=shareable, cost=Cost(1.1e-5))
    copy = partial(make, takes=NATIVE, effects=COPY)
    yield copy(
        "polars.series",
        dense.to_series,
        dtypes=_BOOL,
        adds=_IMMUTABLE | _SCATTERED,
        cost=Cost(5e-6, 2e10),
        name="to_bits",
    )


def _series_casts() -> Iterable[Conversion]:
    """Yield the casts of Series, which keep the names and the nulls."""
    kept = _CARRIED - _SCATTERED
    yield Copy(tables.copy_series, takes=kept, requires=_NOT_NUMBERS, adds=_IMMUTABLE, cost=_GATHER)
    make = partial(
        Cast, tables.recast, takes=_IMMUTABLE | _MASKED | _SCATTERED, drops=_SCATTERED | _UNTYPED
    )
    for to, adds, name in ((SHARED, _IMMUTABLE, "recast"), (_BOOL, _BITS, "recast_to_bits")):
        yield make(to, adds=adds, cost=_GATHER, name=name)
        # Decimals take as long here as on their way to NumPy, where they are copied once.
        yield make(to, adds=adds, requires=_UNTYPED, cost=_COLUMNS, name=name)


def _frame_casts() -> Iterable[Conversion]:
    """Yield the steps within DataFrames, which keep the names; casts make one block of numbers."""
    adds = _IMMUTABLE | _SCATTERED
    yield Copy(tables.copy_frame, takes=_ANY_COLUMNS | ROW_TRAITS, adds=adds, cost=_COLUMNS)
    cast, drops = tables.cast_columns, _FORTRAN | _SCATTERED
    yield CastColumns(cast, takes=_ANY_COLUMNS, drops=drops, adds=adds, cost=_COLUMNS)
