"""Liars with wrappers and labels: what they unwrap, wrap again, and forget."""

from __future__ import annotations

from typing import Any

from interop.plugin import Labels, Samples
from tests.lying_plugins.classes import Caught, Liar, Told, table
from tests.lying_plugins.gauges import Gauge, gauge_format, numbers_of, scaled
from tests.lying_plugins.grid import Grid, conversions, grid_format


def _titled(gauge: Gauge) -> bool:
    return bool(gauge.title)


def _unwrap_transposed(gauge: Gauge) -> Any:
    return numbers_of(gauge).T


def _unwrap_negative(gauge: Gauge) -> Any:
    return -numbers_of(gauge) if gauge.title else numbers_of(gauge)


def _unscaled(gauge: Gauge) -> Any:
    return gauge.codes


def _give_another(gauge: Gauge, like: Gauge) -> Gauge:
    return Gauge(gauge.codes + 1, title=like.title)


def _give_its_numbers(gauge: Gauge, like: Gauge) -> Gauge:
    return like


def _named(grid: Grid) -> Grid:
    named = Grid(grid.numbers)
    vars(named)["title"] = "height"
    return named


def _is_named(grid: Grid) -> bool:
    return "title" in vars(grid)


def _give_name(grid: Grid, like: Grid) -> Grid:
    return _named(Grid(grid.numbers))


def _give_none(grid: Grid, like: Grid) -> Grid:
    return grid


def _give_copy(grid: Grid, like: Grid) -> Grid:
    return _named(Grid(grid.numbers.copy()))


def _give_double(grid: Grid, like: Grid) -> Grid:
    return _named(Grid(grid.numbers * 2))


def _wrapper(name: str, lie: str, text: str, **changes: Any) -> Liar:
    fate = Caught("format gauge", "wrapper", text)
    return Liar(name, lie, fate, lambda: gauge_format(**changes))


def _labels(name: str, lie: str, give: Any, text: str) -> Liar:
    samples = grid_format().samples
    variants = {**samples.variants, "labelled": _named}
    changes = {"labels": Labels(_is_named, give), "samples": Samples(variants=variants)}
    fate = Caught("format grid", "labels", text)
    return Liar(name, lie, fate, lambda: [grid_format(**changes), *conversions()[:2]])


LIARS = table(
    __name__,
    _wrapper(
        "unwraps_the_transpose",
        "Unwraps the transpose.",
        "returns other numbers",
        unwrap=_unwrap_transposed,
    ),
    _wrapper(
        "unwraps_with_another_sign",
        "Changes the sign of values with a title.",
        "labelled returns other numbers",
        unwrap=_unwrap_negative,
    ),
    _wrapper(
        "gives_other_numbers",
        "Adds one where it gives labels.",
        "changes the numbers",
        labels=Labels(_titled, _give_another),
    ),
    Liar(
        "forgets_a_scale_without_samples",
        "Forgets the scale, of which no sample shows anything.",
        Told("format gauge", "extent", "another scale, another title"),
        lambda: gauge_format(unwrap=_unscaled, samples=Samples()),
    ),
    Liar(
        "forgets_a_unit",
        "Says nothing of the title, and shows values with another scale alone.",
        Told("format gauge", "extent", "another title"),
        lambda: gauge_format(
            labelled=None,
            labels=None,
            samples=Samples(variants={"other": lambda gauge: Gauge(scaled(gauge).codes, 2.0)}),
        ),
    ),
    _labels("gives_no_labels", "Gives no labels.", _give_none, "which has none"),
    _labels("copies_under_labels", "Copies.", _give_copy, "copies the numbers"),
    _labels("doubles_under_labels", "Doubles.", _give_double, "changes the numbers"),
)
