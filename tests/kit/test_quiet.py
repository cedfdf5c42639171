"""Quiet calls: a warning that comes once is not heard, and nothing else changes."""

from __future__ import annotations

import warnings

import pytest

from interop.kit import quiet, quietly


@pytest.fixture(autouse=True)
def nothing_silenced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing have been provoked before."""
    monkeypatch.setattr(quiet, "_silenced", set())


def test_a_warning_is_provoked_once_and_not_heard() -> None:
    """The first call makes the value, without the warning; later calls make nothing."""
    made: list[str] = []

    def make() -> None:
        made.append("made")
        warnings.warn("Only beta, as yet", UserWarning, stacklevel=2)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = list(warnings.filters)
        quietly("Only beta", make)
        quietly("Only beta", make)
        assert warnings.filters == before
    assert made == ["made"]


def test_other_warnings_are_heard() -> None:
    """Only the message that is named is kept back, and the filters are restored after an error."""
    before = list(warnings.filters)
    with pytest.warns(UserWarning, match="Another"):
        quietly("Only beta", lambda: warnings.warn("Another", UserWarning, stacklevel=2))
    with pytest.raises(ZeroDivisionError):
        quietly("Broken", lambda: 1 / 0)
    assert warnings.filters == before
