"""Trouble: which conversions it disables."""

from __future__ import annotations

from typing import Any

import pytest

from interop.plugin import Conversion, Trouble

SAY: tuple[str, str] = ("It is broken.", "mend it")


@pytest.mark.parametrize(
    ("trouble", "pair", "fields", "disabled"),
    [
        (Trouble(*SAY, ("grid",)), ("grid", "numpy"), {}, True),
        (Trouble(*SAY, ("grid",)), ("numpy", "grid.csr"), {}, True),
        (Trouble(*SAY, ("grid",)), ("numpy", "gridlock"), {}, False),
        (Trouble(*SAY, ("grid.csr",)), ("numpy", "grid"), {}, False),
        (Trouble(*SAY, ("grid",), ("numpy",)), ("numpy", "grid"), {}, True),
        (Trouble(*SAY, ("grid",), ("numpy",)), ("grid", "dlpack"), {}, False),
        (Trouble(*SAY, ("grid",), ("numpy",)), ("grid", "grid"), {}, False),
        (Trouble(*SAY, ("grid",), None, frozenset({"cuda"})), ("grid", "grid"), {}, False),
        (
            Trouble(*SAY, ("grid",), None, frozenset({"cuda"})),
            ("grid", "grid"),
            {"to_devices": frozenset({"cuda"})},
            True,
        ),
        (
            Trouble(*SAY, ("grid",), None, frozenset({"cuda"})),
            ("grid", "grid"),
            {"devices": None},
            False,
        ),
        (
            Trouble(*SAY, ("grid",), None, frozenset({"cuda"})),
            ("grid", "grid"),
            {"devices": frozenset({"cpu", "cuda"})},
            False,
        ),
    ],
)
def test_what_is_concerned_is_disabled_and_nothing_else(
    trouble: Trouble, pair: tuple[str, str], fields: dict[str, Any], disabled: bool
) -> None:
    """Formats, those at the other end, and devices narrow it down."""
    assert trouble.disables(Conversion(*pair, print, **fields)) is disabled
