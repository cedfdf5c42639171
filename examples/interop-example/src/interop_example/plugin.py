"""The plugin: rings, to NumPy and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interop.plugin import (
    Conversion,
    Cost,
    Declaration,
    Declined,
    Format,
    Samples,
    Spec,
    hookimpl,
    make_spec,
)

if TYPE_CHECKING:
    import numpy as np

    from interop_example.ring import Ring

INTEROP_API = 1  # the version of interop.plugin that this was written for


def describe(ring: Ring) -> Spec:
    """Return what is known of a ring without touching its numbers."""
    traits = {"rotated"} if ring.oldest else set()
    return make_spec("ring", ring.numbers.dtype.name, shape=ring.numbers.shape, traits=traits)


def memory(ring: Ring) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of its memory."""
    return ((ring.numbers.ctypes.data, ring.numbers.nbytes),)


def rotate(ring: Ring) -> Ring:
    """Return a rotated ring of the same numbers."""
    import numpy as np

    from interop_example.ring import Ring

    if len(ring) < 2:
        raise Declined("a ring needs two numbers to be rotated")
    return Ring(np.roll(ring.numbers, 1), oldest=1)


RING = Format(
    "ring",
    types=("interop_example.ring:Ring",),
    describe=describe,
    dtypes={"float32", "float64"},
    ndims={1},
    carries={"rotated"},
    memory=memory,
    samples=Samples(variants={"rotated": rotate}),
)


def ring_to_numpy(ring: Ring) -> np.ndarray[Any, Any]:
    """View the numbers of a ring as an array."""
    return ring.numbers


def numpy_to_ring(numbers: np.ndarray[Any, Any]) -> Ring:
    """Make a ring over an array."""
    from interop_example.ring import Ring

    return Ring(numbers)


def unroll(ring: Ring) -> np.ndarray[Any, Any]:
    """Copy the numbers of a ring into an array, from the oldest to the newest."""
    import numpy as np

    return np.roll(ring.numbers, -ring.oldest)


@hookimpl
def interop_declarations() -> list[Declaration]:
    """Return everything this plugin declares."""
    return [
        RING,
        Conversion("ring", "numpy", ring_to_numpy, cost=Cost(latency=2e-7)),
        Conversion("numpy", "ring", numpy_to_ring, cost=Cost(latency=1e-6)),
        Conversion(
            "ring",
            "numpy",
            unroll,
            requires={"rotated"},
            drops={"rotated"},
            effects={"copy"},
            cost=Cost(latency=1e-5, bandwidth=8e9),
        ),
    ]
