"""An honest plugin for volumes: three axes, in one of two orders, and perhaps a name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.kit import COPY, DTYPE, extents, memory_traits
from interop.plugin import (
    Conversion,
    Cost,
    Declaration,
    Format,
    Labels,
    Samples,
    Spec,
    hookimpl,
    make_spec,
)

__all__ = ["Volume", "conversions", "describe", "stored_along_xyz", "volume_format"]

_XYZ = frozenset({"xyz_order"})
_LAYOUT = frozenset(
    {"readonly", "unaligned", "noncontiguous", "fortran", "negative_strides", "broadcast"}
)


class Volume:
    """Numbers along z, y and x, which may be stored along x, y and z, and perhaps a name."""

    def __init__(self, numbers: Any, *, is_xyz: bool = False, name: str = "") -> None:
        self.numbers = numbers
        self.is_xyz = is_xyz
        self.name = name


def describe(volume: Volume) -> Spec:
    """Return what is known of a volume without touching its numbers."""
    numbers = volume.numbers
    shape = numbers.shape[::-1] if volume.is_xyz else numbers.shape
    traits = memory_traits(numbers) | (_XYZ if volume.is_xyz else frozenset())
    return make_spec("volume", numbers.dtype.name, shape=shape, traits=traits)


def memory(volume: Volume) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory it lies in."""
    return extents((volume.numbers,))


def give(volume: Volume, like: Volume) -> Volume:
    """Return a volume under the name of another."""
    return Volume(volume.numbers, is_xyz=volume.is_xyz, name=like.name)


def stored_along_xyz(volume: Volume) -> Volume:
    """Return the same volume, stored along x, y and z."""
    return Volume(volume.numbers.T.copy(), is_xyz=True)


def named(volume: Volume) -> Volume:
    """Return a volume with a name."""
    return Volume(volume.numbers, name="a volume")


def to_numpy(volume: Volume) -> Any:
    """Return the array inside."""
    return volume.numbers


def to_volume(array: Any) -> Volume:
    """Return a volume over an array."""
    return Volume(array)


def to_zyx(volume: Volume) -> Volume:
    """Return a volume that is stored along z, y and x."""
    return Volume(volume.numbers.T.copy(), name=volume.name)


def copy(volume: Volume) -> Volume:
    """Return a volume with numbers of its own."""
    return Volume(volume.numbers.copy(), is_xyz=volume.is_xyz, name=volume.name)


def cast(volume: Volume, *, dtype: str) -> Volume:
    """Return a volume of another dtype."""
    return Volume(volume.numbers.astype(dtype, order="C"), is_xyz=volume.is_xyz, name=volume.name)


def volume_format(**changes: Any) -> Format:
    """Return the honest format, with some fields changed."""
    honest = Format(
        "volume",
        types=("tests.lying_plugins.volumes:Volume",),
        describe=describe,
        dtypes={"float32", "float64"},
        ndims={3},
        carries=_XYZ | _LAYOUT,
        memory=memory,
        labels=Labels(lambda volume: bool(volume.name), give),
        samples=Samples(variants={"xyz_order": stored_along_xyz, "labelled": named}),
    )
    return honest._replace(**changes)


def conversions() -> list[Conversion]:
    """Return the honest conversions."""
    within = Conversion(
        "volume", "volume", copy, takes=_XYZ | _LAYOUT, effects=COPY, cost=Cost(1e-6, 1e10)
    )
    return [
        Conversion("volume", "numpy", to_numpy, takes=_LAYOUT, cost=Cost(2e-7)),
        Conversion("numpy", "volume", to_volume, takes=_LAYOUT, cost=Cost(2e-7)),
        within,
        within._replace(function=cast, changes=DTYPE, cost=Cost(2e-6, 5e9)),
        within._replace(
            function=to_zyx, takes=_XYZ, requires=_XYZ, drops=_XYZ, cost=Cost(2e-6, 2e9)
        ),
    ]


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format and the conversions."""
    return [volume_format(), *conversions()]
