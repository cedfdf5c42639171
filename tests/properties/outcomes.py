"""Outcomes: what random requests from a framework to every format come to."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tests.properties.effort import cases
from tests.properties.readers import FORMATS

__all__ = ["outcomes_of"]


def outcomes_of(framework: str, check: Callable[[Random, str, str], str]) -> list[str]:
    """Return what `check` answers for random conversions from a framework."""
    # No array becomes a list of arrays, or of rows of several lengths.
    sources = [
        name
        for name in FORMATS
        if name.partition(".")[0] == framework and name not in ("python.arrays", "python.ragged")
    ]
    outcomes = []

    @cases(40 if framework == "dask" else 120)
    @given(st.randoms(use_true_random=False), st.sampled_from(sources), st.sampled_from(FORMATS))
    def tried(rng: Random, source: str, target: str) -> None:
        outcomes.append(check(rng, source, target))

    tried()
    return outcomes
