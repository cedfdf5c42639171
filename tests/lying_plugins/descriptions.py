"""Liars that describe their values, and say where they lie, wrongly."""

from __future__ import annotations

import time
from typing import Any

from interop import Spec
from tests.lying_plugins.classes import Caught, Contained, Liar, Unseen, table
from tests.lying_plugins.grid import (
    Grid,
    changed,
    conversions,
    describe,
    grid_format,
    grid_to_numpy,
    memory,
)

_KEPT: dict[int, Spec] = {}


def _slow_if_large(grid: Grid) -> Spec:
    if grid.numbers.nbytes > 1_000_000:
        time.sleep(0.002)
    return describe(grid)


def _reads_everything(grid: Grid) -> Spec:
    for _ in range(20):
        grid.numbers.sum()
    return describe(grid)


def _up_to_four_axes(grid: Grid) -> Any:
    return describe(grid) if grid.numbers.ndim < 5 else None


def _kept_by_id(grid: Grid) -> Spec:
    return _KEPT.setdefault(id(grid), describe(grid))


def _without(*traits: str) -> Any:
    return lambda grid: describe(grid)._replace(traits=describe(grid).traits - {*traits})


def _always(**fields: Any) -> Any:
    return lambda grid: describe(grid)._replace(**fields)


def _int64_as_int32(grid: Grid) -> Spec:
    spec = describe(grid)
    return spec._replace(dtype="int32") if spec.dtype == "int64" else spec


def _shape_reversed(grid: Grid) -> Spec:
    return describe(grid)._replace(shape=grid.numbers.shape[::-1])


def _dtype_object(grid: Grid) -> Spec:
    return describe(grid)._replace(dtype=grid.numbers.dtype)


def _traits_as_a_set(grid: Grid) -> Any:
    traits: Any = {"masked"}
    return describe(grid)._replace(traits=traits)


def _answers_none(grid: Grid) -> Any:
    return None


def _beside(grid: Grid) -> tuple[tuple[int, int], ...]:
    return tuple((address + 4, nbytes) for address, nbytes in memory(grid))


def _half(grid: Grid) -> tuple[tuple[int, int], ...]:
    return tuple((address, nbytes // 2) for address, nbytes in memory(grid))


def _nowhere(grid: Grid) -> tuple[tuple[int, int], ...]:
    return ((0, grid.numbers.nbytes),)


def _of_the_object(grid: Grid) -> tuple[tuple[int, int], ...]:
    return ((id(grid), grid.numbers.nbytes),)


def _sleeps_when_huge(grid: Grid) -> Spec:
    if grid.numbers.nbytes > 2**31:
        time.sleep(1.0)
    return describe(grid)


def _described(name: str, lie: str, function: Any, text: str, check: str = "describe") -> Liar:
    fate = Caught("format grid", check, text)
    return Liar(name, lie, fate, lambda: [grid_format(describe=function), *conversions()])


def _contained(name: str, lie: str, function: Any, text: str) -> Liar:
    import numpy as np

    fate = Contained(lambda mine: mine.convert(Grid(np.ones(3)), "numpy"), text)
    return Liar(name, lie, fate, lambda: [grid_format(describe=function), *conversions()])


def _lies_at(name: str, lie: str, function: Any, text: str) -> Liar:
    fate = Caught("format grid", "memory", text)
    return Liar(name, lie, fate, lambda: [grid_format(memory=function), *conversions()])


LIARS = table(
    __name__,
    _described("slow_if_large", "Sleeps for large values.", _slow_if_large, "20 times as long"),
    _described("reads_everything", "Reads all numbers.", _reads_everything, "20 times as long"),
    _described("up_to_four_axes", "Knows no fifth axis.", _up_to_four_axes, "describe of format"),
    _described("no_masks", "Says nothing of masks.", _without("masked"), "'masked'", "variants"),
    _described(
        "no_locks", "Says nothing of locks.", _without("readonly"), "'readonly'", "variants"
    ),
    _described("no_graphs", "Says nothing of graphs.", _without("grad"), "'grad'", "variants"),
    _described("counts_once", "Says 8 bytes of all.", _always(nbytes=8), "says 8 bytes"),
    _described("one_dtype", "Calls all float32.", _always(dtype="float32"), "float32"),
    Liar(
        "int64_as_int32",
        "Calls int64 int32.",
        Caught("numpy → grid: numpy_to_grid", "dtype", "describe of format grid is wrong"),
        lambda: [grid_format(describe=_int64_as_int32), *conversions()],
    ),
    _described("reversed_shape", "Reverses shapes.", _shape_reversed, "grid float32 4x3"),
    _contained("dtype_object", "Gives a dtype object for a name.", _dtype_object, "grid"),
    _contained("traits_as_a_set", "Gives a set of traits.", _traits_as_a_set, "grid"),
    _contained("answers_none", "Has no answer.", _answers_none, "grid"),
    _lies_at("four_bytes_off", "Reports memory four bytes off.", _beside, "beside its numbers"),
    _lies_at("half_of_it", "Reports half of the memory.", _half, "of the 48 bytes"),
    _lies_at("nowhere", "Reports no address.", _nowhere, "where nothing can lie"),
    _lies_at("of_the_object", "Reports where the object lies.", _of_the_object, ""),
    Liar(
        "slow_if_huge",
        "Sleeps for values of 2 GiB.",
        Unseen("Sizes beyond its samples"),
        lambda: [grid_format(describe=_sleeps_when_huge), *conversions()],
    ),
    Liar(
        "device_that_is_not_there",
        "Has a device that no machine has.",
        Unseen("Missing devices"),
        lambda: [grid_format(devices=("cpu", "accelerator", "abacus")), *conversions()],
    ),
    Liar(
        "keeps_specs_by_id",
        "Keeps specs by the addresses of objects.",
        Caught("format grid", "variants", ""),
        lambda: [grid_format(describe=_kept_by_id), *conversions()],
    ),
    Liar(
        "narrow_takes",
        "Takes no layout but the plain one, although it could.",
        Unseen("Modesty"),
        lambda: [
            grid_format(),
            *changed("grid_to_numpy", function=grid_to_numpy, takes=frozenset({"readonly"})),
        ],
    ),
)
