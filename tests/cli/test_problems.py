"""Problems: what a problem that a plugin reports disables."""

from __future__ import annotations

from typing import Any

import pytest

from interop._cli.doctor import disables
from interop.plugin import Conversion, Result
from interop.plugin.advanced import Problem

TEXTS: tuple[str, str] = ("It is broken.", "fix it")


@pytest.mark.parametrize(
    ("problem", "pair", "fields", "disabled"),
    [
        (Problem(*TEXTS, ("grid",)), ("grid", "numpy"), {}, True),
        (Problem(*TEXTS, ("grid",)), ("numpy", "grid.csr"), {}, True),
        (Problem(*TEXTS, ("grid",)), ("numpy", "gridlock"), {}, False),
        (Problem(*TEXTS, ("grid.csr",)), ("numpy", "grid"), {}, False),
        (Problem(*TEXTS, ("grid",), ("numpy",)), ("numpy", "grid"), {}, True),
        (Problem(*TEXTS, ("grid",), ("numpy",)), ("grid", "dlpack"), {}, False),
        (Problem(*TEXTS, ("grid",), ("numpy",)), ("grid", "grid"), {}, False),
        (Problem(*TEXTS, ("grid",), None, frozenset({"cuda"})), ("grid", "grid"), {}, False),
        (
            Problem(*TEXTS, ("grid",), None, frozenset({"cuda"})),
            ("grid", "grid"),
            {"result": Result(devices=frozenset({"cuda"}))},
            True,
        ),
        (
            Problem(*TEXTS, ("grid",), None, frozenset({"cuda"})),
            ("grid", "grid"),
            {"devices": None},
            False,
        ),
        (
            Problem(*TEXTS, ("grid",), None, frozenset({"cuda"})),
            ("grid", "grid"),
            {"devices": frozenset({"cpu", "cuda"})},
            False,
        ),
    ],
)
def test_a_problem_disables_only_what_it_concerns(
    problem: Problem, pair: tuple[str, str], fields: dict[str, Any], disabled: bool
) -> None:
    """Its formats, the formats at the other end and the devices narrow down what it disables."""
    assert disables(problem, Conversion(*pair, print, **fields)) is disabled
