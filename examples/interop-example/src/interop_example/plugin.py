"""The plugin: rings, to NumPy and back."""

from __future__ import annotations

from collections.abc import Iterable
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

WRAPPED = frozenset({"wrapped"})  # its oldest number is not at the beginning of its memory


def describe(ring: Ring) -> Spec:
    """Return what is known of a ring without touching its numbers."""
    traits = WRAPPED if ring.oldest else frozenset[str]()
    return make_spec("ring", ring.numbers.dtype.name, shape=ring.numbers.shape, traits=traits)


def memory(ring: Ring) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of its memory."""
    return ((ring.numbers.ctypes.data, ring.numbers.nbytes),)


def wrap(ring: Ring) -> Ring:
    """Return a ring of the same numbers that is wrapped."""
    import numpy as np

    from interop_example.ring import Ring

    if len(ring) < 2:
        raise Declined("it takes two numbers to be wrapped")
    return Ring(np.roll(ring.numbers, 1), oldest=1)


RING = Format(
    "ring",
    types=("interop_example.ring:Ring",),
    describe=describe,
    dtypes=frozenset({"float32", "float64"}),
    ndims=frozenset({1}),
    carries=WRAPPED,
    memory=memory,
    samples=Samples(variants={"wrapped": wrap}),
    requires="interop_example",
    install="pip install interop-example",
    transit=False,
)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> list[Format]:
    """Return the formats of this plugin."""
    return [RING]


def ring_to_numpy(ring: Ring) -> np.ndarray[Any, Any]:
    """View the numbers of a ring as an array."""
    return ring.numbers


def numpy_to_ring(numbers: np.ndarray[Any, Any]) -> Ring:
    """Make a ring over an array."""
    from interop_example.ring import Ring

    return Ring(numbers)


CONVERSIONS = [
    Conversion("ring", "numpy", ring_to_numpy, cost=Cost(latency=2e-7)),
    Conversion("numpy", "ring", numpy_to_ring, cost=Cost(latency=1e-6)),
]


def _conversions() -> list[Conversion]:
    """Return the conversions of this plugin."""
    return CONVERSIONS


def unroll(ring: Ring) -> np.ndarray[Any, Any]:
    """Copy the numbers of a ring into an array, from the oldest to the newest."""
    import numpy as np

    return np.roll(ring.numbers, -ring.oldest)


CONVERSIONS.append(
    Conversion(
        "ring",
        "numpy",
        unroll,
        requires=WRAPPED,
        drops=WRAPPED,
        effects=frozenset({"copy"}),
        cost=Cost(latency=1e-5, bandwidth=8e9),
    )
)
