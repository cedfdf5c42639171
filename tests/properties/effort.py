"""How much the suite tries: the same cases every time, or for a long run others, and more."""

from __future__ import annotations

import os
import random

from hypothesis import HealthCheck, settings

#: How many times as much is to be tried, with other cases every time: ``INTEROP_PROPERTIES=50``.
TIMES = int(os.environ.get("INTEROP_PROPERTIES", "0"))

#: What is added to every seed: another number every time, or ``INTEROP_SEED``, to try cases again.
SEED = int(os.environ.get("INTEROP_SEED") or random.SystemRandom().getrandbits(32)) if TIMES else 0


def count(usual: int) -> int:
    """Return how many cases to try where a usual run tries so many."""
    return usual * max(TIMES, 1)


def cases(usual: int) -> settings:
    """Return the settings of a property that a usual run tries on so many cases."""
    return settings(
        max_examples=count(usual),
        deadline=None,
        derandomize=not TIMES,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
