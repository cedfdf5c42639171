"""The plugin: rings, to every framework and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interop.kit import dense_format
from interop.plugin import Conversion, Cost, Declaration, Declined, hookimpl

if TYPE_CHECKING:
    from interop_example.ring import Ring

INTEROP_API = 1  # the version of interop.plugin that this was written for


def rotate(ring: Ring) -> Ring:
    """Return a rotated ring of the same numbers."""
    import numpy as np

    from interop_example.ring import Ring

    if len(ring) < 2:
        raise Declined("a ring needs two numbers to be rotated")
    return Ring(np.roll(ring.numbers, 1), oldest=1)


RING = dense_format(
    "interop_example.ring:Ring",
    name="ring",
    from_dlpack="interop_example.ring:from_dlpack",
    dtypes={"float32", "float64"},
    ndims={1},
    carries=(),
    traits={"rotated": "oldest"},
    variants={"rotated": rotate},
)


def unroll(ring: Ring) -> Ring:
    """Copy a ring into one that is not rotated."""
    import numpy as np

    from interop_example.ring import Ring

    return Ring(np.roll(ring.numbers, -ring.oldest))


@hookimpl
def interop_declarations() -> list[Declaration]:
    """Return everything this plugin declares."""
    return [
        *RING,
        Conversion(
            "ring",
            "ring",
            unroll,
            requires={"rotated"},
            drops={"rotated"},
            effects={"copy"},
            cost=Cost(latency=1e-5, bandwidth=8e9),
        ),
    ]
