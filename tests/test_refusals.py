"""Refusals and errors say what is stored."""

from __future__ import annotations

import difflib

import pytest

from tests import refusals


@pytest.mark.parametrize(
    "section",
    [
        pytest.param(section, id=section.title, marks=[pytest.mark.core] * section.of_the_core)
        for section in refusals.sections()
    ],
)
def test_refusals_say_what_is_stored(section: refusals.Section) -> None:
    """No text changes without a line in a diff, and the second call says what the first says."""
    if section.missing:
        pytest.skip(f"not installed: {', '.join(section.missing)}")
    answered = section.answered()
    if section.text != answered:
        lines = difflib.unified_diff(section.text.splitlines(), answered.splitlines(), n=3)
        pytest.fail("python -m tests.refusals --store, if it is meant\n" + "\n".join(lines))
