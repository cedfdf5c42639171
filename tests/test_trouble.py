"""Problem: which conversions it disables."""

from __future__ import annotations

from typing import Any

import pytest

from interop.plugin import Conversion, Problem

SAY: tuple[str, str] = ("It is broken.", "mend it")


@pytest.mark.parametrize(
    ("trouble", "pair", "fields", "disabled"),
    [
        (Problem(*SAY, ("grid",)), ("grid", "numpy"), {}, True),
        (Problem(*SAY, ("grid",)), ("numpy", "grid.csr"), {}, True),
        (Problem(*SAY, ("grid",)), ("numpy", "gridlock"), {}, False),
        (Problem(*SAY, ("grid.csr",)), ("numpy", "grid"), {}, False),
        (Problem(*SAY, ("grid",), ("numpy",)), ("numpy", "grid"), {}, True),
        (Problem(*SAY, ("grid",), ("numpy",)), ("grid", "dlpack"), {}, False),
        (Problem(*SAY, ("grid",), ("numpy",)), ("grid", "grid"), {}, False),
        (Problem(*SAY, ("grid",), None, frozenset({"cuda"})), ("grid", "grid"), {}, False),
        (
            Problem(*SAY, ("grid",), None, frozenset({"cuda"})),
            ("grid", "grid"),
            {"to_devices": frozenset({"cuda"})},
            True,
        ),
        (
            Problem(*SAY, ("grid",), None, frozenset({"cuda"})),
            ("grid", "grid"),
            {"devices": None},
            False,
        ),
        (
            Problem(*SAY, ("grid",), None, frozenset({"cuda"})),
            ("grid", "grid"),
            {"devices": frozenset({"cpu", "cuda"})},
            False,
        ),
    ],
)
def test_what_is_concerned_is_disabled_and_nothing_else(
    trouble: Problem, pair: tuple[str, str], fields: dict[str, Any], disabled: bool
) -> None:
    """Formats, those at the other end, and devices narrow it down."""
    assert trouble.disables(Conversion(*pair, print, **fields)) is disabled
