"""The columns of tables: what their dtypes say together, and how they come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from functools import lru_cache, partial
from typing import Any

from interop._model.conversion import Conversion, Cost, Result
from interop._model.dtype import DTYPES, preserves
from interop._model.format import Format
from interop._model.spec import COLUMN_TRAITS, LABELLED, MEMORY_TRAITS, NO_COLUMNS, NOMINAL
from interop._model.typing import Value

from .arrays import COPY, DTYPE, EMPTY, dtype_name
from .arrow_memory import arrow_dtype

#: The traits of a table whose columns of numbers have several dtypes: one names each of them.
SEVERAL_DTYPES = frozenset({"several_dtypes"}) | {
    f"{dtype} columns" for dtype in (*DTYPES, "longdouble", "clongdouble")
}
#: The traits of a table whose columns have any dtypes.
ANY_DTYPES = SEVERAL_DTYPES | NOMINAL | {"mixed"}


@lru_cache(maxsize=1024)
def common_dtype(numbers: frozenset[str], others: str = "") -> tuple[str, frozenset[str]]:
    """Return the dtype of a table, and the traits that say which dtypes its columns have.

    Parameters
    ----------
    numbers : frozenset of str
        The dtypes of its columns of numbers.
    others : str
        The other columns in words; "" if there are none.

    Returns
    -------
    tuple
        The dtype that NumPy gives to all, or the words for columns that are no numbers. Where
        columns of numbers have several dtypes, a trait names each; ``mixed`` says that the common
        one does not hold the numbers of each exactly.
    """
    import numpy as np

    names = frozenset(f"{dtype} columns" for dtype in numbers)
    if others:
        return others, names
    if not numbers:
        return "float64", frozenset({"unknown_dtype"})
    if len(numbers) == 1:
        return next(iter(numbers)), frozenset()
    common = dtype_name(np.result_type(*map(np.dtype, numbers)))
    mixed = () if all(preserves(dtype, common) for dtype in numbers) else ("mixed",)
    return common, names | {"several_dtypes", *mixed}


def describe_columns(columns: Iterable[tuple[str, object]]) -> tuple[str, frozenset[str]]:
    """Return the dtype of a table, and the traits that say which dtypes its columns have.

    Parameters
    ----------
    columns : iterable of tuple
        The dtype of each, or the library's name of one without numbers, and its name. Decimals,
        ``object`` and ``untyped`` may be numbers.

    Returns
    -------
    tuple
        As of `common_dtype`. Columns that are no numbers are named in words, one for each dtype.

    Examples
    --------
    >>> describe_columns([("int8", "a"), ("String", "b"), ("String", "c")])[0]
    "String (column 'b')"
    """
    numbers: set[str] = set()
    others: dict[str, object] = {}
    for dtype, name in columns:
        if dtype in DTYPES:
            numbers.add(dtype)
        else:
            others.setdefault(dtype, name)
    words = ", ".join(f"{dtype} (column {name!r})" for dtype, name in others.items())
    common, traits = common_dtype(frozenset(numbers), words)
    if others:
        are_untyped = all(map(_is_untyped, others))
        traits |= _UNTYPED if are_untyped else frozenset({"not_numbers"})
    return common, traits


def _is_untyped(dtype: str) -> bool:
    """Tell whether elements of a dtype may be numbers, by a library's name of it."""
    return dtype in {"object", "untyped"} or dtype.lower().startswith("decimal")


# ---------------------------------------------------------------------- declarations

_MASKED, _MIXED = frozenset({"masked"}), frozenset({"mixed"})
_SCATTERED, FORTRAN_ORDER = frozenset({"scattered"}), frozenset({"noncontiguous", "fortran"})
_UNTYPED = frozenset({"not_numbers", "untyped"})
#: The trait of a table whose rows have labels, or of one that has got them as columns.
INDEXED = frozenset({"indexed"})
#: Traits that say how numbers lie, and nothing of what they are.
_LAYOUT = MEMORY_TRAITS | COLUMN_TRAITS | SEVERAL_DTYPES
_LAYOUT |= INDEXED | {"scattered", "chunked", "lists", "bits", "deep", "unknown_dtype"}
#: The traits of the only column of a table if its rows are lists.
ROW_TRAITS = frozenset(
    {
        "one_column",
        "lists",
        "nested",
        "chunked",
        "null_rows",
        "lists_of_lists",
        "bits",
        "deep",
        "noncontiguous",
    }
)
#: The traits of any table, by whose names and kinds of columns nothing is lost.
_ANY_TABLE = _LAYOUT | ANY_DTYPES | ROW_TRAITS | LABELLED | _MASKED
#: The dtypes of NumPy and ml_dtypes, in which nulls, objects and decimals are written.
_HELD = frozenset(DTYPES) - {"complex32"}

#: The beginnings of Arrow's names of times that pandas has in NumPy's memory.
_TIMES = ("timestamp", "duration")
#: The units of time, and the decimals, that Polars has not.
_UNITS = ("[s", "time32", "time64[us]", "decimal32", "decimal64")
#: What Arrow's names of types say that few other libraries have.
_ODD = ("decimal256", "union<", "month_day_nano_interval")
#: The traits of memory that must not be written to.
_LOCKS = frozenset({"immutable", "readonly"})
#: The kinds of columns that stay what they are on the way to another table.
_KEPT_KINDS = frozenset({"block_columns", "bit_columns"})

#: The cost of writing numbers once. It is the same for every dtype, so that no route to an array
#: starts with a cast within a library.
GATHER = Cost(3e-5, 1e10)
#: The same for columns: it lies between the costs of a few long ones and of many short ones.
GATHER_COLUMNS = Cost(3e-5, 1e9)
#: The cost of a table whose columns are shared, or of which some are copied. Each column takes as
#: long as many of its bytes, so that this lies between a few long ones and many short ones.
SHARE_COLUMNS = Cost(4e-4, 1e11, 5e8)
#: The cost of looking at every object.
OBJECTS = Cost(3e-5, 5e7)


def gathered(
    source: Format,
    gather: Callable[..., Any],
    *,
    if_exact: Callable[[Any], Any] | None = None,
    with_nulls: Callable[..., Any] | None = None,
    filled: Set[str] | None = None,
    adds: Set[str] | None = None,
    orders: Set[str] = EMPTY,
    has_index: bool = False,
    cost: Cost = GATHER,
    untyped_cost: Cost = OBJECTS,
) -> Iterator[Conversion]:
    """Yield the conversions that write the numbers of columns into a new array of NumPy's.

    Parameters
    ----------
    source : Format
        That of a column or of a table: the traits that it carries decide what is declared. Those
        whose numbers lie apart are ``scattered`` or ``chunked``.
    gather : callable
        ``gather(value, *, dtype)`` returns the numbers in a new array. Nulls become NaN, or
        zero if the dtype has none.
    if_exact : callable or None
        ``if_exact(table)`` does the same in the common dtype if that holds every number, and else
        raises `Declined`.
    with_nulls : callable or None
        ``with_nulls(value, *, dtype)`` returns a masked array of NumPy's.
    filled : set of str or None
        The dtypes in which nulls are filled. None: all that NumPy holds.
    adds : set of str or None
        The traits of the result. None: that of Fortran order, of a table.
    orders : set of str
        The orders in which the first two functions can write a table, with ``order=`` if it is not
        C order, which then is that of calls without one.
    has_index : bool
        Whether its tables have labels of rows. To others these have come as columns, of which no
        array may be made.
    cost, untyped_cost : Cost
    """
    carries, kind = frozenset(source.carries), source.name.rpartition(".")[2]
    carries -= EMPTY if has_index else INDEXED
    if adds is None:
        adds = FORTRAN_ORDER if source.is_table else EMPTY
    make = partial(Conversion, source.name, adds=adds, effects=COPY, cost=cost)
    make = partial(make, takes=carries & _LAYOUT, drops=carries - MEMORY_TRAITS)
    ordered = {"order"} if orders else EMPTY
    write = partial(make, "numpy", gather, changes=DTYPE | ordered)
    result = partial(Result, orders=orders or None)
    own = result(dtypes=source.dtypes)
    losing = COPY | {"drop_mask"}
    fill = partial(write, effects=losing, result=result(dtypes=_HELD if filled is None else filled))
    for apart in sorted(carries & {"scattered", "chunked"}):  # alike in every process
        yield write(requires={apart}, result=own, name=f"gather_{kind}")
    yield fill(requires=_MASKED, name=f"fill_{kind}_nulls")
    if carries >= _UNTYPED:
        held = partial(write, result=result(dtypes=_HELD), cost=untyped_cost)
        yield held(requires=_UNTYPED, name=f"cast_{kind}_of_objects")
        nulls = _UNTYPED | _MASKED
        yield held(requires=nulls, effects=losing, name=f"fill_{kind}_nulls_of_objects")
    if if_exact is not None:
        yield write(requires=_MIXED, result=own, name="gather_mixed")
        yield fill(requires=_MIXED | _MASKED, name="fill_mixed_nulls")
        exact = partial(make, "numpy", if_exact, checked=True, cost=Cost(6e-5, 5e8))
        exact = partial(exact, changes=ordered, result=result())
        yield exact(requires=_MIXED, name="gather_if_exact")
        yield exact(requires=_MIXED | _MASKED, effects=losing, name="fill_if_exact")
    if with_nulls is not None:
        taken = carries & (_LAYOUT | _MIXED)
        masked = partial(make, "numpy.ma", with_nulls, takes=taken, changes=DTYPE)
        masked = partial(masked, result=Result(dtypes=source.dtypes))
        yield masked(requires=_MASKED, drops=carries - MEMORY_TRAITS - _MASKED)


def streamed(
    target: Format,
    read: Callable[[Any], Any],
    *,
    copies: Set[str],
    shares: Set[str],
    adds: Set[str] = EMPTY,
    keeps: Set[str] = EMPTY,
    refuses: Set[str] = EMPTY,
    cost: Cost = SHARE_COLUMNS,
    offered: Callable[[Any], Any] | None = None,
) -> Iterator[Conversion]:
    """Yield the conversions of tables that export an Arrow stream: names, dtypes and nulls stay.

    No cast is made, so that it is never `narrow`.

    Parameters
    ----------
    target : Format
        That of tables.
    read : callable
        ``read(value)`` returns the table of a value that exports an Arrow stream.
    copies : set of str
        The kinds of columns, of `COLUMN_TRAITS`, of which some memory is copied.
    shares : set of str
        The kinds of which some memory is shared.
    adds : set of str
        The kinds that its own columns have where others have none of them.
    keeps : set of str
        Other traits that stay, such as ``attributes``.
    refuses : set of str
        The traits of tables that it does not have. Where these are tables without columns, an index
        makes columns of its own.
    cost : Cost
    offered : callable or None
        ``offered(value)`` returns the table of what a value offers by that protocol.
    """
    carries = frozenset(target.carries)
    gone = (_ANY_TABLE - carries) | COLUMN_TRAITS - adds - _KEPT_KINDS
    stream = Conversion(
        "arrow_c_stream",
        target.name,
        read,
        takes=_ANY_TABLE - refuses | keeps,
        drops=gone - LABELLED - INDEXED - (carries & FORTRAN_ORDER),
        adds=_SCATTERED | adds,
        copies=copies,
        shares_only=shares,
        checked=True,
        ndims={2},
        cost=cost,
        adopt=None if offered is None else partial(_adopted, offered),
        name=f"columns_to_{target.framework}",
    )
    yield stream
    if refuses >= NO_COLUMNS:
        stream = stream._replace(takes=_ANY_TABLE | keeps, requires=NO_COLUMNS | INDEXED)
        index = f"index_to_{target.framework}"
        yield stream._replace(drops=NO_COLUMNS, adopt=None, name=index)


def _adopted(read: Callable[[Any], Any], offer: Callable[[Any], Any], value: Value) -> Value:
    """Return the table of what a value offers."""
    table = offer(value)
    return table if table is NotImplemented else read(table)


def list_columns(
    target: str,
    read: Callable[[Any], Any],
    *,
    dtypes: Set[str],
    only: Set[str] = EMPTY,
    adds: Set[str] = EMPTY,
    cost: Cost = SHARE_COLUMNS,
) -> Iterator[Conversion]:
    """Yield the conversions of lists that export an Arrow stream: their name and nulls stay.

    Parameters
    ----------
    target : str
        The format of columns of lists.
    read : callable
        ``read(value)`` returns the column of a value that exports an Arrow stream.
    dtypes : set of str
        The dtypes of numbers in its lists.
    only : set of str
        The traits of which its lists have one, where others arrive in another way; by default it
        takes all lists.
    adds : set of str
        The traits of all results, such as ``immutable``.
    cost : Cost
    """
    takes = ROW_TRAITS | LABELLED | _LOCKS | {"scattered", "masked", "hybrid"}
    name = f"lists_to_{target.partition('.')[0]}"
    drops = frozenset({"scattered", "chunked", "lists", "bits", "deep", "readonly"}) - adds
    make = partial(Conversion, "arrow_c_array", target, read, dtypes=dtypes, adds=adds, cost=cost)
    for traits in [frozenset({trait}) for trait in sorted(only)] or [EMPTY]:
        share = make(takes=takes, requires=traits | {"immutable"}, drops=drops, checked=True)
        yield share._replace(name=name, shares=True)
        # The objects of a list are not immutable, and are written one by one.
        taken, gone = takes - _LOCKS | {"weak"}, drops | {"weak"}
        copy = share._replace(takes=taken, requires=traits, drops=gone, effects=COPY)
        yield copy._replace(cost=OBJECTS, name=f"objects_{name}")


def kinds_of_column(column: Value) -> frozenset[str]:
    """Return the kinds, of `COLUMN_TRAITS`, of an array or a chunked array of Arrow's.

    Parameters
    ----------
    column : array
        With a ``type`` and a ``null_count``. An extension type is what it stores.

    Returns
    -------
    frozenset of str
        As of `kinds_of_type`.
    """
    type_ = column.type
    name = str(getattr(type_, "storage_type", type_))
    return kinds_of_type(name, getattr(column, "num_chunks", 1), bool(column.null_count))


@lru_cache(maxsize=4096)
def kinds_of_type(type_: str, chunks: int, has_nulls: bool) -> frozenset[str]:
    """Return the kinds, of `COLUMN_TRAITS`, of a column by Arrow's name of its type.

    Parameters
    ----------
    type_ : str
        Arrow's name of its type.
    chunks : int
        The number of its chunks.
    has_nulls : bool

    Returns
    -------
    frozenset of str
        They say what other libraries copy, and whether there is something that they share.
    """
    kinds = {"chunked_columns"} if chunks != 1 else set()
    if type_ == "null":
        return frozenset(kinds)
    if any(word in type_ for word in _ODD):
        return frozenset(kinds | {"odd_columns", "block_columns"})
    if "dictionary" in type_:
        return frozenset(kinds | {"category_columns"})
    is_number = arrow_dtype(type_) in DTYPES
    if type_ == "bool" or (has_nulls and (is_number or type_.startswith(_TIMES))):
        kinds.add("bit_columns")
    if "view" in type_:
        kinds.add("view_columns")
    elif "string" in type_ or "binary" in type_:
        is_short = "string" in type_ and "large_string" not in type_
        kinds.add("text_columns" if is_short else "large_text_columns")
    elif "tz=" in type_:
        kinds.add("zoned_columns")
    if ("list<" in type_ and "large_list<" not in type_) or "map<" in type_:
        kinds.add("list_columns")
    is_converted = any(unit in type_ for unit in _UNITS)
    if is_converted:
        kinds.add("second_columns")
    # Numbers and times in chunks are joined, and times with nulls written anew, by pandas.
    joined = chunks != 1 and (is_number or type_ == "bool" or type_.startswith(_TIMES))
    unshared = type_ == "bool" or "tz=" in type_ or is_converted
    if not (joined or unshared or (has_nulls and type_.startswith(_TIMES))):
        kinds.add("block_columns")
    return frozenset(kinds)
