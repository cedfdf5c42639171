"""The picture of what becomes of common values."""

from __future__ import annotations

from docs import outcomes


def test_the_outcomes_are_those_that_the_picture_shows() -> None:
    """Each value, tried again, meets the fate that is stored."""
    tried = outcomes.outcomes()
    assert outcomes.table(tried) == outcomes.STORED.read_text("utf-8")
    # Without a loss or an error by hand there would be nothing to show.
    assert len({outcome.by_hand for outcome in tried}) == 5
    assert {outcome.with_interop for outcome in tried} == {"shares", "copies", "refuses, says why"}
