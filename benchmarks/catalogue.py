"""The catalogue: which tables there are, and which module measures them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

from .table import Cell, Line, Listing, Result, Table, from_rows
from .timing import Row

__all__ = ["MODULES", "measure", "module_of"]

#: The modules, in the order in which their tables are shown.
MODULES = [
    *("zero_copy", "everyday", "universal", "instead", "copies", "busy", "sparse_formats"),
    *("frames", "columns", "choices", "predictions", "scale", "first", "gpu"),
]

#: The key of each table, its title, its name in the picture, and the statement of ours.
_ZERO_COPY = (
    (
        "zero_copy.convert",
        "convert(x, to=…), small arrays, nothing copied",
        "convert, by hand",
        "convert(x, to=to)",
    ),
    (
        "zero_copy.converter",
        "converter(…)(x), the same",
        "a converter, by hand",
        "converter(x)",
    ),
)
#: By function that yields cases: key, title, and name in the picture.
_COPIES = {
    "cases": (
        "copies",
        "conversions that write 64 MiB or more, against the documented recipe",
        "documented recipe",
    ),
    "numpy_cases": (
        "copies.numpy",
        "the same, where the recipe is NumPy's or SciPy's own copy",
        "NumPy's and SciPy's own copy",
    ),
    "expert_cases": (
        "copies.expert",
        "the same, against the best by hand: `np.empty`, and `copy_` into it",
        "the best by hand",
    ),
    "middle_cases": (
        "copies.middle",
        "all of these, about 1 MiB of memory that was used before",
        "all of these, 1 MiB",
    ),
}
_COPIES_NOTE = "A ratio of 0.33 is three times as fast."
_LIMIT = "the machine's limit"
_LIMIT_NOTE = (
    "The machine's limit is the fastest copy that can be made here of as many bytes as the row "
    "reads and writes: by one thread or by several, into fresh memory in huge pages (of `out=`, "
    "into memory that was used before). 1 is as fast as the machine. A row can come out below: "
    "zeros that the system has cleared are written once and not twice, and of a value that is "
    "shared in part, or repeated, less is read than it holds."
)


def module_of(key: str) -> str:
    """Return the module that measures a table."""
    return key.partition(".")[0]


def measure(
    name: str, only: Collection[str] | None = None, rounds: int | None = None
) -> list[Result]:
    """Return the tables of one module.

    Parameters
    ----------
    name : str
    only : collection of str, optional
        The lines to measure. Tables that are measured as a whole keep the others.
    rounds : int, optional
        How often to measure, instead of the table's own number.
    """
    module = import_module(f".{name}", __package__)
    if hasattr(module, "tables"):
        keywords = {} if rounds is None else {"rounds": rounds}
        return list(module.tables(only, **keywords))
    if name == "zero_copy":
        return list(_zero_copy(module, only, rounds or 21))
    if name == "copies":
        return list(_copies(module, only))
    if name == "choices":
        return list(_choices(module))
    return [_predictions(module)]


def _zero_copy(module: ModuleType, only: Collection[str] | None, rounds: int) -> Iterator[Table]:
    note = "Against the best call that an expert would write for that very value."
    for key, title, short, statement in _ZERO_COPY:
        lines = from_rows(module.rows(statement, only, rounds), "by hand")
        yield Table(key, title, note, lines, short=short)


def _copies(module: ModuleType, only: Collection[str] | None) -> Iterator[Table]:
    """Yield a table for each function of the module that yields cases."""
    for name, cases in list(vars(module).items()):  # a case may import into the module
        if name.endswith("cases") and callable(cases):
            chosen = (case for case in cases() if only is None or case[0] in only)
            key, title, short = _COPIES.get(name) or _unnamed(name, cases)
            fresh = key != "copies.middle"
            lines = from_rows(module.rows(chosen, fresh=fresh), "recipe", _LIMIT)
            note, limit = (f"{_COPIES_NOTE} {_LIMIT_NOTE}", _LIMIT) if fresh else (_COPIES_NOTE, "")
            if lines:
                yield Table(key, title, note, lines, short=short, limit=limit)


def _unnamed(name: str, cases: Any) -> tuple[str, str, str]:
    """Return key, title and name of a table that is not in `_COPIES`."""
    subject = name.removesuffix("_cases")
    title = (cases.__doc__ or subject).partition(".")[0].removeprefix("Yield ")
    return f"copies.{subject}", title, subject.replace("_", " ")


def _choices(module: ModuleType) -> Iterator[Table]:
    """Yield a table at each size."""
    note = "The time of the planner's choice divided by that of each fixed order of the steps."
    for side in (500, 2900):
        title = f"the planner's choice against fixed orders, {side}×{side}"
        key, short, lines = f"choices.{side}", f"{side}×{side}", _side_by_side(module.rows(side))
        yield Table(key, title, note, lines, times=False, pooled=False, short=short)


def _side_by_side(tables: Mapping[str, list[Row]]) -> tuple[Line, ...]:
    """Return lines with a cell for each alternative."""
    names = dict.fromkeys(row.name for rows in tables.values() for row in rows)
    cells: dict[str, list[Cell]] = {name: [] for name in names}
    for column, rows in tables.items():
        for row in rows:
            cells[row.name].append(Cell(column, "", row.theirs, row.ratio, row.spread))
    return tuple(Line(name, "", None, tuple(cells[name])) for name in names)


def _predictions(module: ModuleType, most: int = 100) -> Listing:
    """Return how well the declared costs predict times."""
    summary = module.summary(module.rows(most))
    numbers = (f"{summary.rank_correlation:.3f}", f"{summary.median_ratio:.1f}")
    worst = f"{summary.worst_ratio:.0f} ({summary.worst})"
    heads = ("routes", "rank correlation", "off by, in the median", "at worst")
    note = "Routes between installed formats, drawn at random."
    title = "predicted against measured time of routes"
    row = (str(summary.count), *numbers, worst)
    return Listing("predictions", title, note, heads, (row,))
