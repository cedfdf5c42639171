"""pandas: Series, DataFrames, Indexes and the arrays inside them.

Labels (indexes, names, attributes) are not part of an array: they are dropped when it leaves pandas
(the effect `drop_labels`), and kept from Series to Series and from DataFrame to DataFrame.

Numbers that lie one after the other in NumPy's or Arrow's memory are shared, read-only: pandas
shares memory between its own objects until one of them is written to. Columns of several dtypes
become one array only if their common dtype in NumPy holds the numbers of each exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from interop.kit import (
    COMPLEX,
    COPY,
    DTYPE,
    INTEGERS,
    NATIVE,
    REALS,
    ROW_TRAITS,
    SEVERAL_DTYPES,
    column_formats,
    list_columns,
)
from interop.plugin import (
    COLUMN_TRAITS,
    DTYPES,
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

from . import arrays, describe, elements, frames, labels, tables
from .columns import READER
from .describe import LAYOUT, UNKNOWN_DTYPE

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]
    #: A function that may return `NotImplemented`.
    FastPath: TypeAlias = Callable[..., Any]

_READONLY, _NONCONTIGUOUS = frozenset({"readonly"}), frozenset({"noncontiguous"})
_FORTRAN = _NONCONTIGUOUS | {"fortran"}
_MASKED, _MIXED = frozenset({"masked"}), frozenset({"mixed"})
_SCATTERED, _NOT_NUMBERS = frozenset({"scattered"}), frozenset({"not_numbers"})
#: The traits of objects and decimals.
_UNTYPED = _NOT_NUMBERS | {"untyped"}
_SPARSE = frozenset({"sparse"})
_ZERO_FILLED = _SPARSE | {"zero_fill"}

_NUMBERS = INTEGERS | REALS | COMPLEX | {"bool"}
_LONG = frozenset({"longdouble", "clongdouble"})
_DTYPES = _NUMBERS | _LONG
#: The dtypes in which nulls can be filled: with NaN in floats, with 0 in others.
_FILLED = _DTYPES | frozenset(d for d in DTYPES if d.startswith(("bfloat", "float8")))
#: The traits of a DataFrame whose common dtype in NumPy does not hold the numbers of each column.
_SEVERAL = _MIXED | SEVERAL_DTYPES

#: The kinds of columns that pandas copies, and those of which it shares some memory.
_COPIED_KINDS = frozenset(
    {"bit_columns", "category_columns", "chunked_columns", "text_columns", "view_columns"}
    | {"zoned_columns"}
)
_SHARED_KINDS = frozenset(
    {"block_columns", "large_text_columns", "list_columns", "second_columns", "text_columns"}
    | {"zoned_columns"}
)
#: The traits of columns of several dtypes, and of others than numbers.
_ODD_COLUMNS = SEVERAL_DTYPES | {"unknown_dtype"} | _UNTYPED
#: The trait of a DataFrame with an index that is a column elsewhere.
_INDEXED = frozenset({"indexed"})
#: The traits of columns that have one dtype once they are cast.
_KINDS = COLUMN_TRAITS | SEVERAL_DTYPES
_LABELLED = frozenset({"labelled"})
#: The traits of rows in a Series: of lists, of arrays, and of lists in Arrow's memory.
_OF_ROWS = ROW_TRAITS | _MASKED | {"immutable", "readonly", "unaligned", "weak", "hybrid", "grad"}
_NULL_ROWS = (
    "some of its rows are missing, or elements of rows of several lengths; x.dropna() leaves out "
    "rows that are missing, and to='pyarrow.list' keeps them as nulls."
)

#: The traits of NumPy's memory that pandas can compute with.
_COMPUTABLE = NATIVE - {"unaligned"}
_CARRIED = _COMPUTABLE | LAYOUT | _MASKED | _SCATTERED | _UNTYPED | _ZERO_FILLED

#: The traits that a copy takes: all that numbers may have.
_COPIED = NATIVE | _MASKED | _SCATTERED | _SEVERAL | UNKNOWN_DTYPE
_COPIED |= _ZERO_FILLED

#: The cost of writing numbers once. It is the same for every dtype, so that no route out of pandas
#: starts with a cast within pandas.
_GATHER = Cost(3e-5, 1e10)
#: Lies between the costs of a few long columns and of many short ones.
_COLUMNS = Cost(3e-5, 1e9)

_NULL_HINTS = {
    "drop_mask": "x.fillna(...) says what nulls become, and to='numpy.ma' keeps them; so do "
    "pyarrow.array(x) and polars.from_pandas(x). With drop_mask nulls become NaN in floats, but 0 "
    "in integers and False in bools, as if that had been measured.",
}
_FRAME_HINTS = {
    **_NULL_HINTS,
    "geometry": "x.to_wkb() makes bytes of geometries, x.to_arrow() a table of Arrow's, and the "
    "get_coordinates() of its column a frame of numbers.",
    "not_numbers": "these are not plain numbers; choose columns of numbers "
    "(x.select_dtypes(['number', 'bool'], exclude='timedelta')), or turn the others into numbers "
    "in pandas first, column by column (pandas.to_numeric, astype, cat.codes). A column of rows "
    "converts by itself (x['a']).",
}


_UNITS = "x.astype('int64') counts its units; NaT is the least integer."
_OBJECTS_HINT = (
    "pandas.to_numeric(x) reads the numbers in text, x.dropna() leaves out what is missing, and "
    "x.tolist() makes a list."
)


def _hints(categorical: str) -> dict[str, str]:
    """Return the hints for one column; `categorical` is where a value has its codes."""
    owner = "x" if categorical == "x" else "x.array"
    return {
        **_NULL_HINTS,
        "geometry": "x.to_wkb() makes bytes of them, x.get_coordinates() a frame of numbers, and "
        "x.to_arrow() an array of Arrow's.",
        "interval": f"{owner}.left and {owner}.right are the ends of its intervals.",
        "category": f"{categorical}.codes are the places of its values among the categories, -1 "
        f"if one is missing; x.astype({categorical}.categories.dtype) makes numbers of categories "
        "that are numbers.",
        **dict.fromkeys(("datetime64", "timedelta64", "period"), _UNITS),
        **dict.fromkeys(("object", "str"), _OBJECTS_HINT),
        "not_numbers": "these are not plain numbers; make numbers of them in pandas first "
        "(x.astype(...)), or convert the list that x.tolist() makes.",
    }


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    *vectors, frame, rows = _formats()
    return [
        *column_formats(
            frame,
            series=tuple(vectors),
            reader=READER,
            from_arrow=tables.from_table,
            arrow={
                "copies": _COPIED_KINDS,
                "shares": _SHARED_KINDS,
                "adds": {"byte_columns"},
                "cost": Cost(2e-3),
            },
            has_index=True,
            cost=_GATHER,
        ),
        rows,
        *_from_vectors(),
        *_from_frames(),
        *_from_numpy(),
        *_from_arrow(),
        *_lists(),
        *_objects_with_gaps(),
        *elements.conversions(),
    ]


def _lists() -> Iterable[Conversion]:
    """Yield the conversions of lists, and by themselves those of truth values, which are bits."""
    make = partial(list_columns, "pandas.rows", tables.from_arrow)
    yield from make(dtypes=_NUMBERS - COMPLEX - {"bool"})
    for step in make(dtypes={"bool"}, adds={"bits"}):
        yield step._replace(name=step.name.replace("lists", "bools"))


def _objects_with_gaps() -> Iterable[Conversion]:
    """Yield the conversions of objects that are lists, where some of them or some elements lack."""
    taken = _OF_ROWS - {"immutable", "readonly", "unaligned"}
    make = partial(Conversion, "pandas.rows", takes=taken, effects=COPY, cost=_COLUMNS)
    for odd in ("null_rows", "masked"):
        yield make("pyarrow.list", describe.rows_of, requires={odd}, adds={"immutable"})
    make = partial(make, takes={"bits"}, requires=_MASKED)
    yield make("numpy.ma", tables.rows_to_masked, drops={"bits"})
    yield make(
        "numpy",
        tables.fill_rows,
        drops=_MASKED | {"bits"},
        effects=COPY | {"drop_mask"},
        changes=DTYPE,
        result=Result(dtypes=_NUMBERS),
    )


def _formats() -> Iterable[Format]:
    """Return the formats of labelled arrays, and of the arrays inside them."""
    common = partial(
        Format,
        dtypes=_DTYPES,
        carries=_CARRIED,
        requires="pandas",
        install="pip install pandas",
        labels=Labels(labels.present, labels.give),
    )
    vector = partial(common, memory=arrays.memory, ndims={1})
    return [
        vector(
            "pandas.series",
            types=("pandas:Series",),
            aliases=("pd",),
            describe=describe.describe,
            limits=Limits(refusal_hints=_hints("x.cat")),
            unary=tuple(_copy_and_casts(arrays.copy_series, arrays.cast_series)),
            exports={"arrow_c_array": _NUMBERS - COMPLEX},
            advanced=Advanced(export={"arrow_c_array": tables.Exported}),
        ),
        vector(
            "pandas.index",
            types=("pandas:Index",),
            describe=describe.describe_index,
            limits=Limits(refusal_hints=_hints("x")),
            dtypes=_DTYPES - _LONG - {"float16"},
            unary=tuple(_copy_and_casts(arrays.copy_index)),
        ),
        vector(
            "pandas.array",
            types=("pandas.api.extensions:ExtensionArray",),
            describe=describe.describe,
            limits=Limits(refusal_hints=_hints("x")),
            unary=tuple(_copy_and_casts(arrays.copy_array)),
        ),
        common(
            "pandas.dataframe",
            types=("pandas:DataFrame",),
            describe=describe.describe_frame,
            limits=Limits(refusal_hints=_FRAME_HINTS),
            carries=_CARRIED | _SEVERAL | COLUMN_TRAITS | _ODD_COLUMNS | _INDEXED,
            unary=tuple(_frame_steps()),
            memory=frames.frame_memory,
            ndims={2},
            exports={"arrow_c_stream": _NUMBERS - COMPLEX},
            # pandas' own export makes nulls of NaN.
            advanced=Advanced(
                export={"arrow_c_stream": tables.to_table}, fast_key=describe.frame_fast_key
            ),
        ),
        common(
            "pandas.rows",
            types=("pandas:Series", "pandas.api.extensions:ExtensionArray"),
            describe=describe.describe,
            dtypes=frozenset(DTYPES),
            devices=("cpu", "cuda", "rocm", "metal", "tpu", "oneapi"),
            carries=_OF_ROWS,
            ndims={2},  # this is for results; rows of matrices have more axes
            wrapper=Wrapper(describe.rows_of, 1e-5),
            limits=Limits(refusal_hints={"null_rows": _NULL_ROWS}),
            unary=(Copy(arrays.copy_rows, takes=_OF_ROWS, cost=_COLUMNS),),
            exports={"arrow_c_array": _NUMBERS - COMPLEX},
            advanced=Advanced(
                export={"arrow_c_array": tables.Exported}, fast_key=describe.fast_key
            ),
            samples=Samples(make=arrays.sample_of_rows, source="numpy"),
        ),
    ]


def _from_vectors() -> Iterable[Conversion]:
    """Yield the conversions of Series, Indexes and arrays: numbers, nulls, sparse and others."""
    for name, latency in (("series", 2e-6), ("index", 4e-6), ("array", 4e-6)):
        make = partial(Conversion, f"pandas.{name}", takes=LAYOUT | {"immutable"}, adds=_READONLY)
        fast_path = arrays.series_fast_path if name == "series" else None
        yield make("numpy", arrays.to_numpy, cost=Cost(latency), fast_path=fast_path)
        yield make("numpy.ma", tables.to_masked, requires=_MASKED, cost=Cost(8e-6))
        yield from elements.to_numpy(f"pandas.{name}")
        others = partial(make, "pyarrow", tables.to_arrow, takes=LAYOUT | _UNTYPED | _SCATTERED)
        others = partial(others, adds={"immutable"}, effects=COPY, shares=True)
        for traits in (_MASKED, _NOT_NUMBERS, _UNTYPED | _MASKED):
            yield others(requires=traits, drops=_SCATTERED, cost=Cost(5e-5, 2e10))
        dense, coo = _densified(f"pandas.{name}"), _compressed(f"pandas.{name}")
        yield dense(READER.vector, takes={"zero_fill"}, drops=_ZERO_FILLED)
        yield coo("scipy.coo", arrays.to_coo)


def _from_arrow() -> Iterable[Conversion]:
    """Yield the conversions of Arrow's arrays to Series."""
    make = partial(Conversion, "arrow_c_array", "pandas.series", tables.from_arrow, shares=True)
    taken = _LABELLED | {"immutable", "readonly"}
    yield make(takes=taken, dtypes=INTEGERS | REALS, cost=Cost(6e-5), name="share_stream")
    taken |= LAYOUT - {"unaligned"} | _MASKED
    copy = partial(make, effects=COPY, cost=Cost(8e-5, 2e10), name="stream_to_series")
    chunked, joined = frozenset({"chunked"}), partial(copy, shares=False)
    yield copy(takes=taken | _UNTYPED, dtypes=INTEGERS | REALS)
    yield copy(takes=taken | _UNTYPED, requires=chunked | _NOT_NUMBERS, drops=chunked)
    bools = partial(joined, dtypes={"bool"}, name="bools_to_series")
    yield bools(takes=taken | _SCATTERED | chunked, drops=_SCATTERED | chunked)
    for pieces in (_SCATTERED, chunked):
        dtypes, half = INTEGERS | REALS, frozenset({"float16"})
        yield joined(takes=taken - _MASKED, requires=pieces, drops=pieces, dtypes=dtypes)
        masked = {"takes": taken, "requires": pieces | _MASKED}
        yield joined(**masked, drops=pieces, adds=_READONLY, dtypes=dtypes - half)
        # pandas has no nullable float16, so that the series keeps Arrow's chunks.
        locks = _READONLY | {"immutable"}
        chunks = partial(copy, drops=pieces | locks, adds=_SCATTERED, name="chunks_to_series")
        yield chunks(**masked, dtypes=half)


def _densified(source: str) -> Callable[..., Conversion]:
    """Return what declares a dense array of sparse columns."""
    dense = partial(Conversion, source, "numpy", requires=_SPARSE, effects=COPY | {"densify"})
    return partial(dense, cost=_GATHER, changes=DTYPE, result=Result(dtypes=_DTYPES))


def _compressed(source: str) -> Callable[..., Conversion]:
    """Return what declares a sparse array of columns that zeros fill up."""
    drops, result = _ZERO_FILLED | _SCATTERED, Result(index_dtype="int32")
    sparse = partial(Conversion, source, requires=_ZERO_FILLED, drops=drops, result=result)
    return partial(sparse, effects=COPY, cost=Cost(5e-5, 2e9))


def _from_frames() -> Iterable[Conversion]:
    """Yield the conversions of DataFrames to arrays that share memory, and of sparse columns."""
    kinds, layout = COLUMN_TRAITS | _INDEXED, LAYOUT | {"immutable"}
    share = partial(Conversion, "pandas.dataframe", "numpy", frames.frame_to_numpy, cost=Cost(4e-6))
    share = partial(share, adds=_READONLY, fast_path=frames.frame_fast_path)
    yield share(takes=layout | kinds, drops=kinds)
    drops = _ZERO_FILLED | _SCATTERED | _KINDS | _INDEXED
    csc = _compressed("pandas.dataframe")
    yield csc("scipy.csc", frames.to_csc, takes=drops - _ZERO_FILLED, drops=drops)
    drops |= _SEVERAL | _MASKED
    dense = partial(_densified("pandas.dataframe"), READER.table, drops=drops, adds=_FORTRAN)
    yield dense(
        takes=drops | LAYOUT,
        requires=_SPARSE | _MASKED,
        effects=COPY | {"densify", "drop_mask"},
        result=Result(dtypes=_FILLED),
        name="densify_and_fill_nulls",
    )
    taken = drops - _MASKED | LAYOUT
    yield dense(takes=taken, name="densify_dataframe")
    yield Conversion(
        "pandas.dataframe",
        "numpy",
        READER.table_if_exact,
        takes=taken,
        requires=_MIXED | _SPARSE,
        drops=drops,
        adds=_FORTRAN,
        effects=COPY | {"densify"},
        checked=True,
        cost=Cost(6e-5, 5e9),
        name="densify_if_exact",
    )


def _from_numpy() -> Iterable[Conversion]:
    share = partial(Conversion, "numpy", takes=_COMPUTABLE)
    yield share("pandas.series", arrays.to_series, cost=Cost(1.3e-5))
    frame = partial(share, "pandas.dataframe", frames.to_frame, cost=Cost(1.1e-5))
    # Whether they are its rows or its columns is not known before.
    either = frozenset({"block_columns", "strided_columns"})
    yield frame(dtypes=_DTYPES - {"bool"}, adds=either)
    yield frame(dtypes={"bool"}, adds={"byte_columns"}, name="to_frame_of_bools")
    # These cost more than the others, so that `to="pandas"` prefers a Series or a DataFrame.
    numbers = (INTEGERS | REALS | {"bool"}) - {"float16"}
    masked = partial(Conversion, "numpy.ma", takes=_COMPUTABLE, requires=_MASKED, dtypes=numbers)
    yield masked("pandas.series", tables.from_masked, cost=Cost(2e-5))
    copy = partial(share, effects=COPY, cost=Cost(2.5e-5, 1.8e10))
    yield copy("pandas.index", arrays.to_index)
    yield copy("pandas.array", arrays.to_array)


def _copy_and_casts(
    copy: Callable[..., Any], cast: Callable[..., Any] | None = None
) -> Iterable[Conversion]:
    """Yield the copy and the casts of a vector, which keep the labels and the nulls."""
    yield Copy(copy, takes=_COPIED | _ODD_COLUMNS, cost=Cost(5e-6, 2e10))
    if cast:
        drops = _SCATTERED | _UNTYPED
        taken = LAYOUT | UNKNOWN_DTYPE | drops
        make = partial(Cast, cast, takes=taken, drops=drops, cost=_GATHER)
        yield make(_NUMBERS)
        yield make(_NUMBERS - COMPLEX, requires=_MASKED)


def _frame_steps() -> Iterable[Conversion]:
    """Yield the copies and the cast of frames, which keep labels, nulls and columns of any kind."""
    taken = _COPIED | _ODD_COLUMNS | _KINDS | _INDEXED
    # Columns of elements that are repeated are copied as rows.
    repeated, rows = frozenset({"broadcast"}), _NONCONTIGUOUS | {"strided_columns"}
    quick, copy = Cost(5e-6, 2e10), frames.copy_frame
    yield Copy(copy, takes=taken, requires=repeated, adds=rows, cost=quick, name="copy_repeated")
    yield Copy(copy, takes=taken - repeated, adds=_NONCONTIGUOUS, cost=quick)
    adds = _SCATTERED | {"block_columns", "byte_columns"}
    cast = partial(CastColumns, frames.cast_columns, drops=LAYOUT, adds=adds, cost=_COLUMNS)
    yield cast(takes=(taken | LAYOUT) - _ZERO_FILLED)
