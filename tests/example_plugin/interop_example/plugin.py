"""The plugin of `interop_example`: its array class to and from NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interop.plugin import Conversion, Cost, Format, Spec, hookimpl, make_spec

if TYPE_CHECKING:
    import numpy as np

    from interop_example import Track

INTEROP_API = 1

TRACK = "example"


def describe(track: Track) -> Spec:
    """Return what is known of a track."""
    return make_spec(TRACK, "float64", shape=(len(track.samples),))


def memory(track: Track) -> tuple[tuple[int, int], ...]:
    """Return where its samples lie."""
    address, length = track.samples.buffer_info()
    return ((address, length * track.samples.itemsize),)


def track_to_numpy(track: Track) -> np.ndarray[Any, Any]:
    """View the samples as an array."""
    import numpy as np

    return np.frombuffer(track.samples)


def numpy_to_track(samples: np.ndarray[Any, Any]) -> Track:
    """Copy an array into a track, which owns its samples."""
    from array import array

    from interop_example import Track

    return Track(array("d", samples.tobytes()))


@hookimpl
def interop_formats() -> list[Format]:
    """Return the one format of this plugin."""
    return [
        Format(
            TRACK,
            types=("interop_example:Track",),
            describe=describe,
            dtypes=frozenset({"float64"}),
            memory=memory,
            requires="interop_example",
        )
    ]


@hookimpl
def interop_conversions() -> list[Conversion]:
    """Return its two conversions."""
    return [
        Conversion(TRACK, "numpy", track_to_numpy, cost=Cost(latency=1e-6)),
        Conversion(
            "numpy",
            TRACK,
            numpy_to_track,
            ndims=frozenset({1}),
            takes=frozenset({"readonly", "noncontiguous", "broadcast", "negative_strides"}),
            effects=frozenset({"copy"}),
            cost=Cost(latency=1e-6, bandwidth=5e9),
        ),
    ]
