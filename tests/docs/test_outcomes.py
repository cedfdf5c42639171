"""The picture of twelve cases of the table of DLPack."""

from __future__ import annotations

import pytest

from docs import dlpack, outcomes


@pytest.mark.slow
def test_the_outcomes_are_those_that_the_picture_shows() -> None:
    """Each array, tried again, meets the fate that is stored."""
    tried = [
        pair
        for producer in dict.fromkeys(producer for producer, _, _ in outcomes.TWELVE)
        for pair in dlpack.pairs(
            producer,
            {consumer for name, consumer, _ in outcomes.TWELVE if name == producer},
            {array: None for name, _, array in outcomes.TWELVE if name == producer},
        )
    ]
    shown = outcomes.chosen(tried)
    assert outcomes.table(shown) == outcomes.STORED.read_text("utf-8")
    # Without a fault there would be nothing to show, and interop has none.
    assert {outcome.by_dlpack for outcome in shown} == set(dlpack.OUTCOMES)
    assert {outcome.by_interop for outcome in shown} == {dlpack.RIGHT, dlpack.REFUSED}
