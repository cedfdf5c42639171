"""The pictures: ratios as points on one logarithmic axis, by alternative and row by row."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from .catalogue import module_of
from .table import Result, Table

__all__ = ["draw", "overview", "pyplot"]

#: Colours that people with any colour vision tell apart (M. Okabe and K. Ito, 2008); the markers
#: differ as well. The best call by hand stands apart from the calls for every value.
_STYLES = (
    *(("#0072B2", "o"), ("#D55E00", "D"), ("#009E73", "s"), ("#CC79A7", "^"), ("#E69F00", "v")),
    *(("#56B4E9", "P"), ("#000000", "X"), ("#8B6F00", "<"), ("#5B4FA0", ">"), ("#666666", "h")),
)
_BY_HAND = {"facecolors": "white", "edgecolors": "#000000", "marker": "o", "linewidths": 1.3}
_TITLES = {
    "zero_copy": "Small arrays, nothing copied, against the best call by hand",
    "universal": "Small arrays, nothing copied, against the universal idioms",
    "instead": "Small arrays, against what people call instead (right results only)",
    "copies": "64 MiB and more that must be written, against the documented recipe",
    "sparse_formats": "Dense and sparse formats, 1000×1000, against sparseconverter",
    "choices": "The planner's choice against fixed orders of the steps",
    "gpu": "On a CUDA device",
}
#: What a line of the overview is called, where its column in the tables says it too briefly.
_LINES = {
    "convert, by hand": "convert(x, to=…)",
    "a converter, by hand": "a converter, made once",
    "by hand": "the best call for that value",
    "universal idiom": "….numpy() or torch.as_tensor(x)",
    "from_dlpack": "from_dlpack(x)",
    "documented recipe": "the recipe of the libraries' docs",
    "the best by hand": "np.empty, and copy_ into it",
    "all of these, 1 MiB": "the three above, at 1 MiB",
}
_INK, _GRID, _BETTER, _WORSE = "#222222", "#dddddd", "#0072B2", "#B34700"
_AXIS = "time of interop ÷ time of the alternative (logarithmic)"
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


class _Series(NamedTuple):
    """The ratios to one alternative."""

    label: str
    points: dict[str, float]
    mean: float


class _Panel(NamedTuple):
    title: str
    rows: list[str]
    series: list[_Series]

    @property
    def inches(self) -> float:
        return 0.72 + 0.185 * max(len(self.rows), len(self.series) + 1)


def overview(tables: Iterable[Result], file: Path) -> None:
    """Draw a line for each alternative: all its ratios, their geometric mean, and the worst.

    Parameters
    ----------
    tables : iterable of Table or Listing
    file : Path
        Its suffix decides the kind of picture.
    """
    plt = pyplot()
    panels = _panels(tables)
    if not panels:
        return
    count = sum(len(panel.series) + 1.35 for panel in panels)
    with plt.rc_context({"font.size": 8.5, "text.color": _INK}):
        figure, axis = plt.subplots(figsize=(9.5, 0.215 * count + 0.8), layout="constrained")
        least, most = _limits(panels)
        _frame(axis, (least, most * 3))  # with room for the names of the worst
        y, ticks = -0.65, {}
        for panel in panels:
            y += 1.35
            inside = {"xycoords": ("axes fraction", "data"), "fontweight": "bold", "va": "center"}
            axis.annotate(panel.title, (0.008, y - 0.1), **inside)
            for series in panel.series:
                y += 1
                _strip(axis, series, y)
                ticks[y] = _LINES.get(series.label, series.label)
        axis.set_ylim(y + 0.6, 0)
        axis.set_yticks(list(ticks), list(ticks.values()))
        axis.annotate("mean", (1.01, 1.005), xycoords="axes fraction", va="bottom")
        _head(axis, 1.005)
        axis.set_xlabel(_AXIS)
        figure.savefig(file, dpi=120, metadata={"Software": None})
        plt.close(figure)


def _strip(axis: Any, series: _Series, y: float) -> None:
    values = list(series.points.values())
    colour = _BETTER if series.mean <= 1 else _WORSE
    axis.scatter(values, [y] * len(values), s=15, color="#888888", alpha=0.55, lw=0, zorder=3)
    axis.scatter([series.mean], [y], s=46, marker="D", color=colour, ec="white", lw=0.7, zorder=4)
    axis.annotate(
        f"{series.mean:.2f}",
        (1.01, y),
        xycoords=("axes fraction", "data"),
        va="center",
        color=colour,
        fontweight="bold",
    )
    worst = max(series.points, key=series.points.__getitem__)
    if series.points[worst] > 1.5 and len(values) > 1:
        at = (series.points[worst], y)
        style = {"textcoords": "offset points", "fontsize": 7, "color": "#666666"}
        if at[0] < axis.get_xlim()[1] / 6:
            axis.annotate(f"slowest: {worst}", at, (5, 0), va="center", **style)
        else:  # no room on the right
            axis.annotate(f"slowest: {worst}", at, (0, 4), ha="center", **style)


def draw(tables: Iterable[Result], file: Path) -> None:
    """Draw every ratio on the line of its input, with a panel for each module.

    Parameters
    ----------
    tables : iterable of Table or Listing
    file : Path
        Its suffix decides the kind of picture.
    """
    plt = pyplot()
    panels = _panels(tables)
    if not panels:
        return
    heights = [panel.inches for panel in panels]
    with plt.rc_context({"font.size": 8.5, "axes.titlesize": 9.5, "text.color": _INK}):
        figure, axes = plt.subplots(
            len(panels),
            figsize=(9.5, sum(heights) + 0.4),
            height_ratios=heights,
            squeeze=False,
            layout="constrained",
        )
        limits = _limits(panels)
        for panel, axis in zip(panels, axes[:, 0], strict=True):
            _fill(axis, panel, limits)
        _head(axes[0, 0], -0.13)
        figure.supxlabel(_AXIS, fontsize=9.5)
        figure.savefig(file, dpi=120, metadata={"Software": None})
        plt.close(figure)


def pyplot() -> Any:
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    return plt


def _panels(tables: Iterable[Result]) -> list[_Panel]:
    shown = [table for table in tables if isinstance(table, Table) and table.ratios()]
    panels = []
    for module, members in groupby(shown, key=lambda table: module_of(table.key)):
        group = list(members)
        together = _panel(group, _TITLES.get(module, group[0].title))
        if len(together.series) <= len(_STYLES):
            panels.append(together)
        else:  # more series than styles, so they could not be told apart
            panels += [_panel([table], table.title) for table in group]
    return panels


def _panel(group: list[Table], title: str) -> _Panel:
    series = [line for table in group for line in _series(table, len(group) > 1)]
    drawn = {name for line in series for name in line.points}
    rows = dict.fromkeys(line.name for table in group for line in table.lines)
    return _Panel(title, [name for name in rows if name in drawn], series)


def _series(table: Table, several: bool) -> list[_Series]:
    """Return a series for each alternative, also named after the table if there are several."""
    marks = []
    for column in table.columns:
        points = {
            line.name: cell.ratio
            for line in table.lines
            for cell in line.cells
            if cell.column == column and cell.ratio is not None
        }
        short = table.short or table.key.rpartition(".")[2]
        label = f"{column}, {short}" if several else column
        label = short if several and len(table.columns) == 1 else label
        if points:
            marks.append(_Series(label, points, table.mean(column) or 1.0))
    return marks


def _limits(panels: list[_Panel]) -> tuple[float, float]:
    values = [v for panel in panels for series in panel.series for v in series.points.values()]
    return min(0.2, *values) / 1.3, max(3.0, *values) * 1.3


def _fill(axis: Any, panel: _Panel, limits: tuple[float, float]) -> None:
    rows = {name: number for number, name in enumerate(panel.rows)}
    styles = iter(_STYLES)
    for series in panel.series:
        if series.label == "by hand":
            style = dict(_BY_HAND)
        else:
            colour, marker = next(styles)
            style = {"facecolors": colour, "edgecolors": "white", "marker": marker}
            style["linewidths"] = 0.4
        ys = [rows[name] for name in series.points]
        label = f"{series.label}: {series.mean:.2f}"
        axis.scatter(list(series.points.values()), ys, s=32, label=label, zorder=3, **style)
    _dress(axis, panel, limits)
    axis.legend(
        title="against: geometric mean",
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        borderaxespad=0.1,
        frameon=False,
        handletextpad=0.2,
        alignment="left",
    )


def _dress(axis: Any, panel: _Panel, limits: tuple[float, float]) -> None:
    axis.set_title(panel.title, loc="left", color=_INK, fontweight="bold")
    _frame(axis, limits)
    axis.set_yticks(range(len(panel.rows)), panel.rows)
    axis.set_ylim(len(panel.rows) - 0.4, -0.6)


def _frame(axis: Any, limits: tuple[float, float]) -> None:
    """Set up the axis of ratios, with the better side tinted."""
    axis.set_xscale("log")
    axis.set_xlim(*limits)
    ticks = [tick for tick in _TICKS if limits[0] < tick < limits[1]]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_xticks([], minor=True)
    axis.tick_params(length=2)
    axis.axvspan(limits[0], 1, color=_BETTER, alpha=0.06, lw=0, zorder=0)
    axis.axvline(1, color=_INK, lw=1.1, zorder=1)
    axis.grid(color=_GRID, lw=0.6, zorder=0)
    for side in axis.spines.values():
        side.set_visible(False)


def _head(axis: Any, height: float) -> None:
    """Say at the top which side is which."""
    style = {"fontsize": 8.5, "va": "bottom", "xycoords": ("data", "axes fraction")}
    axis.annotate("interop is faster  ◀ ", (1, height), ha="right", color=_BETTER, **style)
    axis.annotate(" ▶  interop is slower", (1, height), ha="left", color="#555555", **style)
