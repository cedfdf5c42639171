"""Columns read by NumPy: numbers, nulls and chunks of any library's tables, in one array."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from interop._model.dtype import DTYPES, preserves
from interop._model.typing import Value
from interop.errors import Declined, RefusedError

from .arrays import dtype_name, null_number, real_part
from .cast_errors import CastErrors, misfit
from .columns import common_dtype
from .reference import Reference, referred

#: Bytes of each column that are written at a time where rows lie one after the other.
_BYTES = 2**16


class ColumnReader:
    """Writes columns of a library into arrays of NumPy's.

    Functions are given as in `column_formats`.

    Parameters
    ----------
    columns : function
        ``columns(table)`` returns a pair for each column: its name, and what the others read.
    numbers : function
        ``numbers(chunk)`` returns them as an array of NumPy's, with anything in the places of
        nulls.
    nulls : function
        ``nulls(chunk)`` returns an array of bools that says which are null; None if none is.
    chunks : function
        ``chunks(column)`` returns the parts of one block each; "" if a column is one itself.
    dtype : function
        ``dtype(column)`` returns the dtype of its numbers, ``untyped`` for decimals and objects,
        or the library's name of another; "" for that of `numbers`.
    untyped : function
        ``untyped(column, dtype=name)`` returns the numbers of decimals or objects.
    stack : callable or None
        ``stack(table, dtype=name)`` returns a new array of its columns by a call of the library,
        or `NotImplemented` where that makes another than NumPy would. Without a name it is the
        dtype that NumPy gives to all columns. With `by_rows` it takes ``order="F"``, too.
    mask : callable or None
        ``mask(table)`` returns a new array of the places of nulls in all columns, by such a call.
    make : function
        ``make(numbers, nulls)`` returns a column over arrays of NumPy's; nulls may be None.
    by_rows : bool
        Whether rows lie one after the other in arrays that are made of tables, and not columns.
    """

    def __init__(
        self,
        *,
        columns: Reference,
        numbers: Reference,
        nulls: Reference = "",
        chunks: Reference = "",
        dtype: Reference = "",
        untyped: Reference = "",
        stack: Callable[..., Any] | None = None,
        mask: Callable[[Any], Any] | None = None,
        make: Reference = "",
        by_rows: bool = False,
    ) -> None:
        self.columns: Callable[..., Any] = referred(columns)
        self.numbers: Callable[..., Any] = referred(numbers)
        self.nulls: Callable[..., Any] = referred(nulls) if nulls else _none
        self.dtype: Callable[..., Any] = referred(dtype) if dtype else self._dtype_of_numbers
        self.chunks: Callable[..., Any] = referred(chunks) if chunks else _whole
        self._untyped: Callable[..., Any] = referred(untyped)
        self.make: Callable[..., Any] = referred(make)
        self._stack: Callable[..., Any] | None = stack
        self._mask_of_table: Callable[[Any], Any] | None = mask
        self.has_nulls: bool = bool(nulls)
        self.has_untyped: bool = bool(untyped)
        self.by_rows: bool = by_rows

    def vector(self, vector: Value, *, dtype: str) -> Value:
        """Return the numbers of a vector in a new array, with NaN or zero for nulls."""
        import ml_dtypes  # noqa: F401 - whose dtypes NumPy knows by name from then on
        import numpy as np

        if self.dtype(vector) == "untyped":
            return self._untyped(vector, dtype=dtype)
        chunks = [*self.chunks(vector)]
        inner_shape = self.numbers(chunks[0]).shape[1:] if chunks else ()
        out, errors = np.empty((len(vector), *inner_shape), dtype), CastErrors()
        self._write(out, chunks, errors)
        errors.tell()
        return out

    def vector_with_nulls(self, vector: Value, *, dtype: str) -> Value:
        """Return the numbers of a vector in a new array, with a mask in the places of nulls."""
        import numpy as np

        numbers = self.vector(vector, dtype=dtype)
        return np.ma.MaskedArray(numbers, mask=self._mask(vector, np.zeros(numbers.shape, bool)))

    def table(self, table: Value, *, dtype: str, order: str = "C") -> Value:
        """Return the columns side by side in a new array, with NaN or zero for nulls.

        The order is that of `by_rows`, but for Fortran order.
        """
        import ml_dtypes  # noqa: F401 - whose dtypes NumPy knows by name from then on
        import numpy as np

        if (array := self._stacked(table, dtype, order)) is not NotImplemented:
            return array
        (rows, width), by_rows = table.shape, self.by_rows and order == "C"
        out, errors = np.empty((width, rows), np.dtype(dtype)), CastErrors()
        if by_rows:
            out = out.reshape(rows, width)
        parts = []
        for index, (name, column) in enumerate(self.columns(table)):
            try:
                if by_rows:
                    parts.append(self._joined(column, dtype, errors))
                else:
                    self._write_column(out[index], column, errors)
            except RefusedError as error:  # of an object that is no number, for one
                error.locate(f"column {name!r}")
                raise
        if by_rows:
            _interleave(out, parts, errors)
        errors.tell()
        return out if by_rows else out.T

    def table_if_exact(self, table: Value, *, order: str = "C") -> Value:
        """Return what `table` does if the common dtype holds every integer of the columns."""
        columns = self.columns(table)
        if (array := self._stacked(table, None, order)) is NotImplemented:
            columns = [*columns]
            dtype, _ = common_dtype(frozenset(self.dtype(column) for _, column in columns))
            array = self.table(table, dtype=dtype, order=order)
        if _are_small(array):
            return array
        dtype = dtype_name(array.dtype)
        for name, column in columns:
            for chunk in self.chunks(column):
                numbers, nulls = self.numbers(chunk), self.nulls(chunk)
                if reason := misfit(numbers if nulls is None else numbers[~nulls], dtype):
                    msg = f"column {name!r}: {reason}"
                    raise Declined(msg)
        return array

    def table_with_nulls(self, table: Value, *, dtype: str) -> Value:
        """Return the columns side by side in a new array, with a mask in the places of nulls."""
        import numpy as np

        numbers = self.table(table, dtype=dtype)
        if self._mask_of_table is not None:
            return np.ma.MaskedArray(numbers, mask=self._mask_of_table(table))
        mask = np.zeros(numbers.shape, np.bool_, order="C" if self.by_rows else "F")
        for index, (_, column) in enumerate(self.columns(table)):
            self._mask(column, mask[:, index])
        return np.ma.MaskedArray(numbers, mask=mask)

    def cast(self, column: Value, *, dtype: str) -> Value:
        """Return a column of another dtype with the same nulls, cast as NumPy casts."""
        numbers = self.vector_with_nulls(column, dtype=dtype)
        return self.make(numbers.data, numbers.mask if numbers.mask.any() else None)

    def cast_columns(self, table: Value, columns: Mapping[str, str]) -> list[Value]:
        """Return the columns of a table, of which those of some dtypes have others.

        Parameters
        ----------
        table : table
        columns : mapping of str to str
            The dtypes that those of some dtypes get, as of `CastColumns`.

        Returns
        -------
        list
            Casts are without names.
        """
        pairs = [(column, self.dtype(column)) for _, column in self.columns(table)]
        return [
            self.cast(column, dtype=columns[own]) if own in columns else column
            for column, own in pairs
        ]

    def _stacked(self, table: Value, dtype: str | None, order: str) -> Value:
        """Return what the library's call makes of a table, or `NotImplemented`."""
        keywords = {} if order == "C" else {"order": order}
        return (
            NotImplemented if self._stack is None else self._stack(table, dtype=dtype, **keywords)
        )

    def _dtype_of_numbers(self, column: Value) -> str:
        dtype = self.numbers(column).dtype
        name = dtype_name(dtype)
        return name if name in DTYPES else str(dtype)

    def _joined(self, column: Value, dtype: str, errors: CastErrors) -> Value:
        """Return the numbers of a column in one block, without nulls."""
        import numpy as np

        if self.dtype(column) != "untyped":
            chunks = [*self.chunks(column)]
            if len(chunks) == 1 and self.nulls(chunks[0]) is None:
                return self.numbers(chunks[0])
        part = np.empty(len(column), dtype)
        self._write_column(part, column, errors)
        return part

    def _write_column(self, out: Value, column: Value, errors: CastErrors) -> None:
        if self.dtype(column) == "untyped":
            out[...] = self._untyped(column, dtype=dtype_name(out.dtype))
        else:
            self._write(out, self.chunks(column), errors)

    def _write(self, out: Value, chunks: Iterable[Value], errors: CastErrors) -> None:
        """Write the numbers of chunks into an array of any dtype, cast as NumPy casts.

        A real dtype keeps the real part of a complex number.
        """
        import numpy as np

        start, unseen = 0, CastErrors()
        for chunk in chunks:
            numbers, nulls = self.numbers(chunk), self.nulls(chunk)
            part = out[start : start + len(numbers)]
            start += len(numbers)
            if _is_held(numbers.dtype, out.dtype):
                np.copyto(part, numbers)
            else:
                # Null positions hold arbitrary values.
                noting = errors if nulls is None else unseen
                noting.run(np.copyto, part, real_part(numbers, out.dtype), "unsafe")
            if nulls is not None:
                part[nulls] = null_number(out.dtype)

    def _mask(self, column: Value, mask: Value) -> Value:
        """Return a mask, in which the places of nulls of a column are set."""
        start = 0
        for chunk in self.chunks(column):
            nulls, length = self.nulls(chunk), len(chunk)
            if nulls is not None:
                mask[start : start + length] = nulls
            start += length
        return mask


@lru_cache(maxsize=1024)
def _is_held(own: Any, dtype: Any) -> bool:
    """Return whether a dtype of NumPy's holds all numbers of another, and is cast safely to."""
    import numpy as np

    names = dtype_name(own), dtype_name(dtype)
    return np.can_cast(own, dtype, "same_kind") and DTYPES.keys() >= {*names} and preserves(*names)


def _are_small(array: Value) -> bool:
    """Return whether all numbers of an array are such that no integer was rounded to one of them.

    Of the integers that floats do not hold each is rounded to one at least as large as these.
    """
    import numpy as np

    name, real = dtype_name(array.dtype), array.real
    if name not in DTYPES or not real.size:
        return False
    limit = 2 ** DTYPES[name].digits
    return bool(-limit < np.fmin.reduce(real, None) and np.fmax.reduce(real, None) < limit)


def _interleave(out: Value, columns: list[Value], errors: CastErrors) -> None:
    """Write columns side by side into an array whose rows lie one after the other."""
    import numpy as np

    # Some rows of each at a time, so that a part of every column stays in the caches.
    count = max(_BYTES // out.itemsize, 1)
    are_held = [_is_held(column.dtype, out.dtype) for column in columns]
    for start in range(0, len(out), count):
        rows = slice(start, start + count)
        for index, column in enumerate(columns):
            if are_held[index]:
                out[rows, index] = column[rows]
            else:
                errors.run(np.copyto, out[rows, index], column[rows], "unsafe")


def _none(_: Value) -> None:
    """Return that no element of a column is null."""


def _whole(column: Value) -> tuple[Value]:
    return (column,)
