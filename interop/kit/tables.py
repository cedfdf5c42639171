"""Tables in one call: all that a library of columns declares, derived from how one is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from functools import partial
from typing import Any

from interop._model.conversion import Conversion, Cost
from interop._model.dtype import DTYPES
from interop._model.extension import Declaration
from interop._model.format import Format, Labels, Samples, package
from interop._model.spec import COLUMN_TRAITS, MEMORY_TRAITS, Spec, make_spec
from interop._model.typing import Value
from interop._model.unary import Cast, CastColumns, Copy
from interop.errors import Declined

from .arrays import COPY, EMPTY, INTEGERS, REALS, extents, extents_of_all, memory_traits
from .column_reader import ColumnReader
from .columns import (
    ANY_DTYPES,
    FORTRAN_ORDER,
    GATHER,
    GATHER_COLUMNS,
    INDEXED,
    OBJECTS,
    describe_columns,
    gathered,
    streamed,
)
from .reference import Reference, referred

_MASKED = frozenset({"masked"})
#: The traits of all tables: what others make of one over the memory that it exports is read-only.
_APART = frozenset({"scattered", "immutable"})
_SCATTERED = frozenset({"scattered"})
_NOT_NUMBERS, _UNTYPED = frozenset({"not_numbers"}), frozenset({"not_numbers", "untyped"})
_NUMBERS = INTEGERS | REALS | {"bool"}
#: What the memory of arrays may be that columns are made of.
_MEMORY = MEMORY_TRAITS - {"byteswapped", "unaligned"}
#: The kinds of columns in NumPy's memory.
_KINDS = frozenset({"block_columns", "byte_columns", "strided_columns", "object_columns"})
_OF_TABLES = _MASKED | _APART | ANY_DTYPES | INDEXED | {"readonly"} | _KINDS


def column_formats(
    table: str | Format | tuple[Format, ...],
    *,
    series: str | tuple[Format, ...] = (),
    columns: Reference = "",
    numbers: Reference = "",
    nulls: Reference = "",
    reader: ColumnReader | None = None,
    make_table: Reference = "",
    make_series: Reference = "",
    from_arrow: Reference = "",
    arrow: Mapping[str, Any] | None = None,
    filled: Set[str] | None = None,
    has_index: bool = False,
    cost: Cost = GATHER_COLUMNS,
    series_cost: Cost = GATHER,
    untyped_cost: Cost = OBJECTS,
    **fields: Any,
) -> list[Declaration]:
    """Return what makes a framework of a library of tables, from what reads one of its columns.

    The numbers of a table are written into one array, in the dtype that NumPy gives to all columns,
    if that holds every number, or in that which is asked for. Nulls become NaN or zero where the
    caller permits that, and stay in a masked array. Tables of other libraries come by Arrow's
    stream, under their names.

    Where types are given for formats, values are described by what reads their columns. They leave
    by the ``__arrow_c_stream__`` that tables then have. Arrays become columns and tables, and
    these are copied and cast.

    Functions are given as such, as ``"module:function"``, which is imported at the first call, or
    as the name of an attribute of the value or of a method without arguments.

    Parameters
    ----------
    table : str, Format or tuple of Format
        The public name of the type of tables, as ``"module:Class"``, or formats of them, the first
        of which is made of streams. They have a `shape`.
    series : str or tuple of Format
        The type of a column by itself, or the formats of such; () if there is none.
    columns : function
        ``columns(table)`` returns a pair for each column: its name, and its values.
    numbers : function
        ``numbers(column)`` returns them as an array of NumPy's over their memory, with anything in
        the places of nulls.
    nulls : function
        ``nulls(column)`` returns an array of bools that says which are null; None if none is.
    reader : ColumnReader or None
        What reads columns and makes them, in place of these three and of `make_series`, where they
        lie in chunks or are decimals.
    make_table : function
        ``make_table({name: column})`` returns a table.
    make_series : function
        ``make_series(numbers, nulls)`` returns a column over arrays of NumPy's; nulls may be None.
    from_arrow : function
        ``from_arrow(value)`` returns a table of what exports an Arrow stream.
    arrow : mapping of str to object
        What a table has of a stream: the kinds of columns that it ``copies`` and ``shares``, the
        traits that it ``adds``, ``keeps`` and ``refuses``; ``cost`` as of `Conversion`; what reads
        it if it is ``offered``. None: some memory may be shared, and some copied.
    filled : set of str or None
        The dtypes in which nulls are filled. None: all that NumPy holds.
    has_index : bool
        Whether tables have labels of rows, as pandas' have. From tables that have some others get
        them as columns.
    cost : Cost
        How long it takes to write the columns of a table.
    series_cost : Cost
        The same for one column.
    untyped_cost : Cost
        How long it takes to write decimals or objects.
    **fields
        Fields of the `Format` that is made for tables (``name=``, ``install=``), in place of what
        is derived; ``name=``, ``requires=`` and ``install=`` count for columns, too.

    Returns
    -------
    list of declarations
        Formats and Conversions, for a plugin's hook, or `interop.register`.

    Examples
    --------
    >>> column_formats(  # doctest: +ELLIPSIS
    ...     "mylib:Frame", columns="items", numbers="values", make_table="mylib:Frame"
    ... )
    [Format('mylib', 12 dtypes on cpu), ...]
    """
    if reader is None:
        places = partial(_places, referred(nulls)) if nulls else ""
        reader = ColumnReader(columns=columns, numbers=numbers, nulls=places, make=make_series)
    made: list[Conversion] = []
    if isinstance(table, str):
        maker = _Maker(reader, referred(make_table))
        name = fields.pop("name", "") or package(table)
        if isinstance(series, str):
            series = (maker.series(f"{name}.series", series, fields),)
            made += maker.conversions_of_series(series[0].name)
        table = maker.table(name, table, fields)
        made += maker.conversions_of_tables(table.name)
    tables = (table,) if isinstance(table, Format) else table
    if from_arrow:
        unknown = {"copies": COLUMN_TRAITS, "shares": COLUMN_TRAITS, "adds": {"immutable"}}
        made += streamed(tables[0], referred(from_arrow), **(arrow or unknown))
    for vector in series:
        assert isinstance(vector, Format)
        made += gathered(
            vector,
            reader.vector,
            with_nulls=reader.vector_with_nulls,
            filled=filled,
            cost=series_cost,
            untyped_cost=untyped_cost,
        )
    for format_ in tables:
        made += gathered(
            format_,
            reader.table,
            if_exact=reader.table_if_exact,
            with_nulls=reader.table_with_nulls,
            filled=filled,
            adds=EMPTY if reader.by_rows else FORTRAN_ORDER,
            orders={"C", "F"} if reader.by_rows else EMPTY,
            has_index=has_index,
            cost=cost,
            untyped_cost=untyped_cost,
        )
    return [*series, *tables, *made]


def _places(nulls: Callable[[Value], Value | None], column: Value) -> Value | None:
    """Return the places of nulls, or None if no element is null."""
    places = nulls(column)
    return places if places is not None and places.any() else None


class _Maker:
    """Describes a library's tables and columns by what reads them, and makes others of these."""

    def __init__(self, reader: ColumnReader, make_table: Callable[[Any], Value]) -> None:
        self._reader = reader
        self._make_table = make_table

    def table(self, name: str, type_: str, fields: Mapping[str, Any]) -> Format:
        """Return the format of tables."""
        taken: Any = {"takes": _OF_TABLES, "adds": _APART, "cost": GATHER_COLUMNS}
        format_ = Format(
            name,
            types=(type_,),
            describe=partial(self.describe_table, name),
            dtypes=_NUMBERS,
            carries=self._carried(_OF_TABLES),
            exports={"arrow_c_stream": _NUMBERS},
            memory=self.memory_of_table,
            ndims={2},
            unary=(Copy(self.copy_table, **taken), CastColumns(self.cast_columns, **taken)),
            labels=Labels(self.are_named, self.named),
            samples=Samples(variants=self._samples_of_tables()),
            requires=package(type_),
        )
        return format_._replace(**fields)

    def series(self, name: str, type_: str, fields: Mapping[str, Any]) -> Format:
        """Return the format of columns by themselves."""
        shared = {field: fields[field] for field in ("requires", "install") if field in fields}
        takes = _MEMORY | _MASKED
        format_ = Format(
            name,
            types=(type_,),
            describe=partial(self.describe_series, name),
            dtypes=_NUMBERS,
            carries=self._carried(takes | (_UNTYPED if self._reader.has_untyped else EMPTY)),
            memory=self.memory,
            ndims={1},
            samples=Samples(variants={"masked": self._masked} if self._reader.has_nulls else {}),
            unary=(
                Copy(self.copy, takes=takes | _UNTYPED, cost=GATHER),
                Cast(self._reader.cast, takes=takes, cost=GATHER),
            ),
            requires=package(type_),
        )
        return format_._replace(**shared)

    def conversions_of_tables(self, name: str) -> Iterator[Conversion]:
        """Yield the conversions of NumPy's arrays."""
        make = partial(Conversion, target=name, takes=_MEMORY, dtypes=_NUMBERS, effects=COPY)
        make = partial(make, adds=_APART | {"block_columns", "byte_columns"}, ndims={2})
        for source in ("numpy", "numpy.ma"):
            masked = EMPTY if source == "numpy" else _MASKED
            yield make(source, function=self.table_of, requires=masked, cost=GATHER_COLUMNS)

    def conversions_of_series(self, name: str) -> Iterator[Conversion]:
        """Yield the conversions of NumPy's arrays, which share memory, and back."""
        make = partial(Conversion, takes=_MEMORY, dtypes=_NUMBERS, cost=Cost(1e-5))
        yield make("numpy", name, self.series_of)
        yield make("numpy.ma", name, self.series_of, requires=_MASKED)
        yield make(name, "numpy", self._reader.numbers, name="numbers")

    def _carried(self, traits: frozenset[str]) -> frozenset[str]:
        """Return those of some traits that values can have, by what reads them."""
        reader = self._reader
        lacking = EMPTY if reader.has_nulls else _MASKED
        return traits - lacking - (EMPTY if reader.has_untyped else _UNTYPED - _NOT_NUMBERS)

    # ------------------------------------------------------------------ describing

    def describe_series(self, name: str, column: Value) -> Spec:
        """Return the spec of a column."""
        dtype, traits = self._facts(column)
        return make_spec(name, dtype, shape=(len(column),), traits=traits - COLUMN_TRAITS)

    def describe_table(self, name: str, table: Value) -> Spec:
        """Return the spec of a table."""
        facts = [(name, *self._facts(column)) for name, column in self._reader.columns(table)]
        dtype, several = describe_columns((dtype, name) for name, dtype, _ in facts)
        traits = _APART.union(*(traits for *_, traits in facts)) - _UNTYPED
        kept = traits & _OF_TABLES | several
        return make_spec(name, dtype, shape=tuple(table.shape), traits=kept)

    def _facts(self, column: Value) -> tuple[str, frozenset[str]]:
        """Return the dtype of a column, and its traits, that of its kind among them."""
        dtype, chunks = self._reader.dtype(column), [*self._reader.chunks(column)]
        traits = _SCATTERED if len(chunks) != 1 else EMPTY
        if any(self._reader.nulls(chunk) is not None for chunk in chunks):
            traits |= _MASKED | {"byte_columns"}
        if dtype not in DTYPES:
            others = _UNTYPED if dtype == "untyped" else _NOT_NUMBERS
            return dtype, traits | others | {"object_columns"}
        layout = memory_traits(self._reader.numbers(chunks[0])) if chunks else EMPTY
        kind = "strided_columns" if "noncontiguous" in layout else "block_columns"
        return dtype, traits | layout | {"byte_columns" if dtype == "bool" else kind}

    def memory(self, column: Value) -> tuple[tuple[int, int], ...]:
        """Return the addresses and lengths of the memory of a column."""
        chunks = [*self._reader.chunks(column)]
        if self._reader.dtype(column) not in DTYPES:
            return ()
        arrays = [array for chunk in chunks for array in self._arrays(chunk) if array is not None]
        return extents(arrays)

    def _arrays(self, chunk: Value) -> tuple[Value, Value | None]:
        return self._reader.numbers(chunk), self._reader.nulls(chunk)

    def memory_of_table(self, table: Value) -> tuple[tuple[int, int], ...]:
        """Return the addresses and lengths of the memory of all columns; () if one is unknown."""
        return extents_of_all(self.memory(column) for _, column in self._reader.columns(table))

    def are_named(self, table: Value) -> bool:
        """Tell whether columns have names other than their numbers."""
        return not are_numbered([name for name, _ in self._reader.columns(table)])

    def named(self, table: Value, like: Value) -> Value:
        """Return a table under the names of another of its type and shape."""
        if type(table) is not type(like) or table.shape != like.shape:
            return table
        names = [name for name, _ in self._reader.columns(like)]
        columns = [column for _, column in self._reader.columns(table)]
        return self._make_table(dict(zip(names, columns, strict=True)))

    # ------------------------------------------------------------------ making

    def series_of(self, array: Value) -> Value:
        """Return a column over an array, with nulls in the places that are masked."""
        import numpy as np

        is_masked = isinstance(array, np.ma.MaskedArray)
        mask = np.ma.getmaskarray(array) if is_masked else None
        return self._reader.make(np.ma.getdata(array, subok=False), mask)

    def table_of(self, array: Value) -> Value:
        """Return a table with a copy of an array, whose columns are named by their numbers."""
        columns = {str(n): self.series_of(array[:, n].copy()) for n in range(array.shape[1])}
        return self._make_table(columns)

    def copy(self, column: Value) -> Value:
        """Return a copy of a column."""
        numbers, nulls = self._arrays(column)
        return self._reader.make(numbers.copy(), None if nulls is None else nulls.copy())

    def copy_table(self, table: Value) -> Value:
        """Return a table of copies of all columns."""
        columns = self._reader.columns(table)
        return self._make_table({name: self.copy(column) for name, column in columns})

    def cast_columns(self, table: Value, *, columns: Mapping[str, str]) -> Value:
        """Return a table whose columns of some dtypes have others."""
        names = [name for name, _ in self._reader.columns(table)]
        cast = self._reader.cast_columns(table, columns)
        return self._make_table(dict(zip(names, cast, strict=True)))

    # ------------------------------------------------------------------ samples

    def _samples_of_tables(self) -> dict[str, Callable[[Value], Value]]:
        """Return what makes tables with traits, to try conversions out."""
        samples: dict[str, Callable[[Value], Value]] = {
            "mixed": self._mixed,
            "labelled": self._named,
        }
        return samples | ({"masked": self._masked_table} if self._reader.has_nulls else {})

    def _masked(self, column: Value) -> Value:
        """Return a column whose last element is null."""
        import numpy as np

        numbers = self._reader.numbers(column)
        if not len(numbers):
            msg = "no element is there that could be null"
            raise Declined(msg)
        nulls = np.zeros(len(numbers), bool)
        nulls[-1:] = True
        return self._reader.make(numbers, nulls)

    def _masked_table(self, table: Value) -> Value:
        columns = self._reader.columns(table)
        return self._make_table({name: self._masked(column) for name, column in columns})

    def _named(self, table: Value) -> Value:
        columns = self._reader.columns(table)
        return self._make_table({f"name {name}": column for name, column in columns})

    def _mixed(self, table: Value) -> Value:
        """Return a table of floats that has integers, too, of which floats do not hold all."""
        columns = dict(self._reader.columns(table))
        if len(columns) < 2 or {*map(self._reader.dtype, columns.values())} != {"float64"}:
            msg = "integers keep the dtype of a table of float64 alone"
            raise Declined(msg)
        first = next(iter(columns))
        return self._make_table(columns | {first: self._reader.cast(columns[first], dtype="int64")})


def are_numbered(names: list[Any]) -> bool:
    """Tell whether columns have the names that libraries give to those without any.

    Parameters
    ----------
    names : list

    Returns
    -------
    bool
        Arrow has their numbers, and Polars writes a word before these.
    """
    if names and names[0] not in {"0", "column_0"}:
        return False
    return names in ([f"{form}{n}" for n in range(len(names))] for form in ("", "column_"))
