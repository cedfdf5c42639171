"""Costs: how long a step is expected to take."""

from __future__ import annotations

from typing import NamedTuple

from .spec import Spec

#: Bytes, read and written, that are assumed to stay in the caches.
CACHED = 2**21


class Cost(NamedTuple):
    """How long a step is expected to take: ``latency + (bytes read + bytes written) / bandwidth``.

    Bytes that fit in the caches go faster than those that need fresh memory, often by four times.
    Where `cached` is given, the first :data:`CACHED` bytes are counted with it.

    Parameters
    ----------
    latency : float, in seconds
        The time for a value without elements.
    bandwidth : float or None, in bytes per second
        Bytes read and written alike; None for a step that touches no bytes.
    cached : float or None, in bytes per second
        The speed of the first :data:`CACHED` bytes, which are 2 MiB; None: that of all others.
    """

    latency: float = 1e-6
    bandwidth: float | None = None
    cached: float | None = None

    def seconds(self, before: Spec, after: Spec) -> float:
        """Return the seconds expected for a step from `before` to `after`."""
        return self.latency + self.moving(before.nbytes + after.nbytes)

    def moving(self, nbytes: int) -> float:
        """Return the part of the seconds that is due to bytes, read and written."""
        if self.bandwidth is None:
            return 0.0
        if self.cached is None:
            return nbytes / self.bandwidth
        few = min(nbytes, CACHED)
        return few / self.cached + (nbytes - few) / self.bandwidth


#: Between the host and a device, from pageable memory or into it. On an H200 the driver alone
#: copies 2 to 9 GB/s of what is large and 8 to 10 of 1 MiB; in stages, two threads copy 6 to 13 of
#: the former, and eight 14 to 34.
BUS = Cost(1.8e-5, 1.2e10, 2e10)
