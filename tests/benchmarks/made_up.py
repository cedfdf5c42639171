"""Tables of made-up ratios, so that no test depends on times."""

from __future__ import annotations

from benchmarks.table import Cell, Line, Table


def table(
    ratio: float | None = 0.5, spread: float = 1.05, verdict: str = "shares", cell: str = "shares"
) -> Table:
    """Return a table of one ratio."""
    line = Line("torch → numpy", verdict, 1e-6, (Cell("by hand", cell, 2e-6, ratio, spread),))
    return Table("zero_copy.convert", "a title", "a note", (line,))
