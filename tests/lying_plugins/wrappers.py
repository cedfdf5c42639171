"""Liars with wrappers and labels: what they unwrap, wrap again, copy, cast, and forget."""

from __future__ import annotations

from typing import Any

from interop.plugin import Labels, Samples
from tests.lying_plugins import Caught, Liar, Told, table
from tests.lying_plugins import volumes as honest
from tests.lying_plugins.gauges import Gauge, gauge_format, numbers_of, scaled
from tests.lying_plugins.grid import Grid, conversions, grid_format


def _named(grid: Grid) -> Grid:
    named = Grid(grid.numbers)
    vars(named)["title"] = "height"
    return named


def _swapped(volume: honest.Volume) -> Any:
    return honest.describe(volume)._replace(shape=volume.numbers.shape)


def _wrapper(name: str, lie: str, text: str, **changes: Any) -> Liar:
    fate = Caught("format gauge", "wrapper", text)
    return Liar(name, lie, fate, lambda: gauge_format(**changes))


def _given(name: str, lie: str, text: str, give: Any) -> Liar:
    labels = Labels(lambda gauge: bool(gauge.title), give)
    return _wrapper(name, lie, f"give of the labels of a value of gauge {text}", labels=labels)


def _labels(name: str, lie: str, text: str, give: Any) -> Liar:
    variants = {**grid_format().samples.variants, "labelled": _named}
    labels = Labels(lambda grid: "title" in vars(grid), give)
    changed = grid_format(labels=labels, samples=Samples(variants=variants))
    fate = Caught("format grid", "labels", text)
    return Liar(name, lie, fate, lambda: [changed, *conversions()[:2]])


LIARS = table(
    globals(),
    _wrapper(
        "unwraps_the_transpose",
        "Unwraps the transpose.",
        "returns other numbers",
        unwrap=lambda gauge: numbers_of(gauge).T,
    ),
    _wrapper(
        "unwraps_with_another_sign",
        "Changes the sign of values with a title.",
        "labelled returns other numbers",
        unwrap=lambda gauge: -numbers_of(gauge) if gauge.title else numbers_of(gauge),
    ),
    _wrapper(
        "forgets_the_scale",
        "Unwraps what is stored, and not the numbers that it stands for.",
        "unwrap of a value of gauge that is labelled returns other numbers",
        unwrap="codes",
    ),
    Liar(
        "forgets_a_scale_without_samples",
        "Forgets the scale, of which no sample shows anything.",
        Told("format gauge", "extent", "another scale, another title"),
        lambda: gauge_format(unwrap=lambda gauge: gauge.codes, samples=Samples()),
    ),
    Liar(
        "forgets_a_unit",
        "Declares no title, and shows values with another scale alone.",
        Told("format gauge", "extent", "another title"),
        lambda: gauge_format(
            labelled=None,
            labels=None,
            samples=Samples(variants={"other": lambda gauge: Gauge(scaled(gauge).codes, 2.0)}),
        ),
    ),
    _given(
        "forgets_its_labels",
        "Gives a value no labels, although it is asked to.",
        "that is labelled makes gauge float32 3x4 on cpu (of",
        lambda gauge, like: gauge,
    ),
    _given(
        "rescales_what_it_labels",
        "Gives a value the scale of another together with its labels.",
        "that is labelled changes the numbers",
        lambda gauge, like: Gauge(gauge.codes, like.scale, like.title),
    ),
    _given(
        "gives_other_numbers",
        "Adds one where it gives labels.",
        "that is labelled changes the numbers",
        lambda gauge, like: Gauge(gauge.codes + 1, title=like.title),
    ),
    _labels("gives_no_labels", "Gives no labels.", "which has none", lambda grid, like: grid),
    _labels(
        "copies_under_labels",
        "Copies.",
        "copies the numbers",
        lambda grid, like: _named(Grid(grid.numbers.copy())),
    ),
    _labels(
        "doubles_under_labels",
        "Doubles.",
        "changes the numbers",
        lambda grid, like: _named(Grid(grid.numbers * 2)),
    ),
    Liar(
        "cannot_cast_its_labels",
        "Declares labels, and no step that casts values with any.",
        Caught(
            "format volume",
            "copy",
            "no step there casts them; register Conversion('volume', 'volume'",
        ),
        lambda: [
            honest.volume_format(),
            *(item for item in honest.conversions() if item.label != "cast"),
        ],
    ),
    Liar(
        "cannot_copy_its_labels",
        "Declares labels, and no step that copies values with any.",
        Caught(
            "format volume",
            "copy",
            "and no step there copies them; "
            "register Conversion('volume', 'volume', …, effects={'copy'})",
        ),
        lambda: [
            honest.volume_format(samples=Samples(variants={"xyz_order": honest.stored_along_xyz})),
            *honest.conversions()[:2],
        ],
    ),
    Liar(
        "swaps_its_axes",
        "Describes volumes that are stored along x, y and z by that order.",
        Caught(
            "format volume",
            "variants",
            "returned shape 6x4x2, as describe has it, for a sample of 2x4x6; "
            "a variant keeps the shape",
        ),
        lambda: [honest.volume_format(describe=_swapped), *honest.conversions()],
    ),
)
