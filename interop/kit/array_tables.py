"""Arrays of NumPy's that become columns and tables: numbers with their nulls, text and dates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from functools import partial

from interop._model.conversion import Conversion, Cost
from interop._model.spec import MEMORY_TRAITS
from interop._model.typing import Value

from .arrays import COPY, EMPTY, TEXTS
from .cast_errors import text_elements
from .reference import Reference, referred

_MASKED, _NOT_NUMBERS = frozenset({"masked"}), frozenset({"not_numbers"})


def array_columns(
    series: str,
    table: str,
    *,
    numbers: Callable[..., Value],
    elements: Callable[[Value], Value],
    texts: Reference,
    columns: Callable[[dict[int, Value], int], Value],
    held: Set[str],
    dates: Set[str],
    shared: Set[str] = EMPTY,
    shareable: Set[str] = EMPTY,
    adds: Set[str] = EMPTY,
    layout: Set[str] | None = None,
    bits: Set[str],
    kinds: Set[str],
    cost: Cost,
) -> Iterator[Conversion]:
    """Yield the conversions of arrays of one axis to columns, and of two axes to tables.

    Tables are written anew. Numbers of one axis become columns by conversions of the library's own.

    Parameters
    ----------
    series, table : str
        The names of the formats.
    numbers : callable
        ``numbers(array, nulls)`` returns a column over an array of one axis, with nulls where an
        array of bools says so, which may be None.
    elements : callable
        ``elements(array)`` returns a column of text, bytes or dates, and raises `Declined` if the
        library does not hold all of them. The array is in the machine's order of bytes.
    texts : function
        ``texts(list)`` returns a column of text or bytes, with nulls for None.
    columns : callable
        ``columns({number: column}, rows)`` returns a table; there may be no columns.
    held : set of str
        The dtypes of numbers of which there are columns.
    dates : set of str
        The dates and spans of which there are columns, such as ``"datetime64[ms]$"``.
    shared, shareable : set of str
        Those of them that lie in the array's memory, and the traits that it may have for that.
    adds : set of str
        The traits of all results, such as ``immutable``.
    layout : set of str or None
        Those of a table of numbers; None if the library makes such tables by itself.
    bits : set of str
        The kinds of columns of a table of bools, or of numbers with nulls.
    kinds : set of str
        Those of a table of text or dates.
    cost : Cost
        How long it takes to write the columns of a table.
    """
    memory, library = frozenset(MEMORY_TRAITS), series.partition(".")[0]
    written = partial(_written, elements)
    make = partial(Conversion, "numpy", effects=COPY, cost=Cost(2e-5, 2e8), takes=memory)
    vector = partial(make, series, adds=adds | _NOT_NUMBERS, ndims={1})
    if shared:
        view = partial(vector, elements, dtypes=shared, takes=shareable, effects=EMPTY)
        yield view(cost=Cost(1e-5), name="share_dates")
    yield vector(written, dtypes=dates | TEXTS, name=f"elements_to_{library}")
    objects = partial(_of_objects, texts)
    takes, name = memory | _NOT_NUMBERS, f"objects_to_{library}"
    yield vector(objects, dtypes={"object$"}, takes=takes, name=name)
    frame = partial(make, table, ndims={2})
    tabled = partial(_tabled, written, columns)
    adds_kinds, name = adds | _NOT_NUMBERS | kinds, f"elements_to_{library}_columns"
    yield frame(tabled, dtypes=dates | TEXTS, adds=adds_kinds, name=name)
    columns_of = partial(_table_of_numbers, numbers, columns)
    frame = partial(frame, columns_of, takes=memory - {"byteswapped"}, cost=cost)
    apart = adds | bits | {"scattered"}
    if layout is not None:
        name = f"array_to_{library}_columns"
        yield frame(dtypes=held - {"bool"}, adds=adds | layout, name=name)
        yield frame(dtypes={"bool"}, adds=apart, name=f"bools_to_{library}_columns")
    masked = frame(dtypes=held, adds=apart, requires=_MASKED, name=f"masked_to_{library}_columns")
    yield masked._replace(source="numpy.ma")


def _written(elements: Callable[[Value], Value], array: Value) -> Value:
    """Return a column of text or dates, which may lie in the other order of bytes."""
    is_plain = array.dtype.isnative and array.flags.aligned
    return elements(array if is_plain else array.astype(array.dtype.newbyteorder("=")))


def _of_objects(texts: Reference, array: Value) -> Value:
    """Return a column of text or bytes, with nulls for what is missing."""
    return referred(texts)(text_elements(array))


def _tabled(
    column: Callable[..., Value], columns: Callable[..., Value], array: Value, *masks: Value
) -> Value:
    """Return a table of the columns of an array in memory of their own."""
    import numpy as np

    blocks = [np.array(part.T, order="C", copy=True) for part in (array, *masks)]
    return columns(dict(enumerate(map(column, *blocks))), len(array))


def _table_of_numbers(
    numbers: Callable[..., Value], columns: Callable[..., Value], array: Value
) -> Value:
    """Return a table with a copy of an array, with nulls in masked places."""
    import numpy as np

    data = np.ma.getdata(array, subok=False)
    masks: Iterable[Value] = ()
    if isinstance(array, np.ma.MaskedArray):
        masks = (np.ma.getmaskarray(array),)
    column = numbers if masks else partial(numbers, nulls=None)
    return _tabled(column, columns, data, *masks)
