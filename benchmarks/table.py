"""Tables: measured times as data that can be shown, stored and compared."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from .timing import Row

__all__ = [
    "RIGHT",
    "Cell",
    "Line",
    "Listing",
    "Ratio",
    "Result",
    "Table",
    "duration",
    "from_rows",
    "thawed",
]

#: The verdicts on right results; the times of others are not worth comparing.
RIGHT = frozenset({"shares", "copies", ""})


class Ratio(NamedTuple):
    """A ratio of times, which does not depend on the machine's speed.

    Parameters
    ----------
    value : float
        interop's time divided by the other's.
    spread : float
        The factor by which the ratios of the rounds differ from it.
    """

    value: float
    spread: float = 1.0


class Cell(NamedTuple):
    """The result of one alternative for one input.

    Parameters
    ----------
    column : str
        The alternative.
    verdict : str
        ``"shares"`` or ``"copies"`` if the result is right; else the fault in it.
    seconds : float or None
    ratio : float or None
        interop's time divided by the alternative's; None if one of them gives no result.
    spread : float
    """

    column: str
    verdict: str = ""
    seconds: float | None = None
    ratio: float | None = None
    spread: float = 1.0


class Line(NamedTuple):
    """The results of interop and of the alternatives for one input."""

    name: str
    verdict: str
    seconds: float | None
    cells: tuple[Cell, ...]


class Table(NamedTuple):
    """Comparisons of one kind.

    Parameters
    ----------
    key : str
        Its name on the command line and in the store.
    title, note : str
        The note says how to read the table.
    lines : tuple of Line
    times : bool
        Whether the lines' own times and verdicts are worth a column.
    pooled : bool
        Whether the mean of all ratios is meaningful.
    short : str
        Its name in the picture, beside the other tables of its module.
    limit : str
        The column of the machine's limit, which is no alternative and in no mean of all ratios; ""
        if there is none.
    """

    key: str
    title: str
    note: str
    lines: tuple[Line, ...]
    times: bool = True
    pooled: bool = True
    short: str = ""
    limit: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The alternatives, in the order of their first appearance."""
        columns = dict.fromkeys(cell.column for _, cell in self._measured())
        return tuple(column for column in columns if column != self.limit)

    def ratios(self) -> dict[str, Ratio]:
        """Return the ratios to store, by the names of line and column."""
        return {
            f"{line.name} | {cell.column}": Ratio(cell.ratio, cell.spread)
            for line, cell in self._measured()
            if cell.ratio is not None
        }

    def verdicts(self) -> dict[str, str]:
        """Return the verdicts on interop's results, by line."""
        return {line.name: line.verdict for line in self.lines if line.verdict}

    def _measured(self) -> Iterator[tuple[Line, Cell]]:
        return ((line, cell) for line in self.lines for cell in line.cells)

    def compared(self, column: str | None = None) -> list[float]:
        """Return the ratios to an alternative, or to all."""
        columns = self.columns if column is None else (column,)
        return [
            cell.ratio
            for _, cell in self._measured()
            if cell.ratio is not None and cell.column in columns
        ]

    def mean(self, column: str | None = None) -> float | None:
        """Return the geometric mean of the ratios to an alternative, or to all."""
        ratios = self.compared(column)
        return statistics.geometric_mean(ratios) if ratios else None

    def grid(self) -> tuple[list[str], list[list[str]]]:
        """Return the heads and the rows of cells, as text."""
        single = len(self.columns) == 1
        heads = ["", *(["interop"] if self.times else [])]
        heads += [*self.columns, "ratio"] if single else self.columns
        heads += [self.limit, "ratio to it"] if self.limit else []
        rows = [self._row(line, single) for line in self.lines]
        return heads, [*rows, self._means(single)]

    def _row(self, line: Line, single: bool) -> list[str]:
        cells = {cell.column: cell for cell in line.cells}
        texts = [line.name, *([_outcome(line.seconds, line.verdict)] if self.times else [])]
        if single:
            texts += _apart(cells[self.columns[0]])
        else:
            texts += [_beside(cells.get(column)) for column in self.columns]
        return [*texts, *(_apart(cells.get(self.limit)) if self.limit else [])]

    def _means(self, single: bool) -> list[str]:
        texts = ["geometric mean", *([""] if self.times else [])]
        means = [_number(self.mean(column)) for column in self.columns]
        texts += ["", *means] if single else means
        return [*texts, *(["", _number(self.mean(self.limit))] if self.limit else [])]


class Listing(NamedTuple):
    """Facts other than a comparison of calls, and the ratios among them that are worth keeping.

    Parameters
    ----------
    key, title, note : str
    heads : tuple of str
    rows : tuple of tuple of str
    kept : mapping of str to Ratio
    """

    key: str
    title: str
    note: str
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    kept: Mapping[str, Ratio] = {}

    def ratios(self) -> dict[str, Ratio]:
        """Return the ratios to store."""
        return dict(self.kept)

    def verdicts(self) -> dict[str, str]:
        """Return nothing: a listing judges no results."""
        return {}

    def grid(self) -> tuple[list[str], list[list[str]]]:
        """Return the heads and the rows of cells."""
        return list(self.heads), [list(row) for row in self.rows]


Result = Table | Listing


def from_rows(rows: Iterable[Row], column: str, limit: str = "") -> tuple[Line, ...]:
    """Return lines with one alternative each, and with the limit if it was measured."""
    return tuple(
        Line(row.name, "", row.ours, tuple(_cells({column: row, limit: row.limit}))) for row in rows
    )


def _cells(comparisons: Mapping[str, Row | None]) -> Iterator[Cell]:
    for column, row in comparisons.items():
        if row is not None:
            yield Cell(column, "", row.theirs, row.ratio, row.spread)


def thawed(stored: dict[str, Any]) -> Result:
    """Return a table or listing from its stored form."""
    if "lines" not in stored:
        kept = {name: Ratio(*ratio) for name, ratio in stored["kept"].items()}
        rows = tuple(tuple(row) for row in stored["rows"])
        return Listing(**{**stored, "heads": tuple(stored["heads"]), "rows": rows, "kept": kept})
    lines = tuple(
        Line(name, verdict, seconds, tuple(Cell(*cell) for cell in cells))
        for name, verdict, seconds, cells in stored["lines"]
    )
    return Table(**{**stored, "lines": lines})


def duration(seconds: float | None) -> str:
    """Return a time with three digits and a suitable unit."""
    if seconds is None:
        return ""
    scale, name = next((s, n) for s, n in _UNITS if seconds >= s or n == "ns")
    number = seconds / scale
    return f"{number:.0f} {name}" if number >= 100 else f"{number:.3g} {name}"


_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def _outcome(seconds: float | None, verdict: str) -> str:
    return ", ".join(text for text in (duration(seconds), verdict) if text)


def _apart(cell: Cell | None) -> list[str]:
    """Return a cell as two texts, its time and its ratio."""
    if cell is None:
        return ["—", ""]
    return [_outcome(cell.seconds, cell.verdict), _number(cell.ratio)]


def _beside(cell: Cell | None) -> str:
    if cell is None:
        return "—"
    return ", ".join(text for text in (_number(cell.ratio), cell.verdict) if text)


def _number(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"
