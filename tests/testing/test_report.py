"""The report: text, a dict for JSON, and what counts as success."""

from __future__ import annotations

import json

from interop.testing import Finding, Report


def test_a_report_in_text_and_as_a_dict() -> None:
    """Text names every failure and every reason; the dict survives JSON."""
    findings = (
        Finding("p", "a → b: c", "values", "passed"),
        Finding("p", "a → b: c", "cost", "failed", "c takes an hour"),
        Finding("p", "a → b: d", "values", "not exercised", "there is no device"),
        *(
            Finding("p", "a → b: e", check, "not exercised", "there is no device")
            for check in ("values", "dtype", "shape", "source")
        ),
    )
    report = Report("p", findings, 1.5)
    assert str(report).splitlines() == [
        "p: 1 passed, 1 failed, 5 not exercised",
        "FAILED cost of a → b: c: c takes an hour",
        "not exercised: there is no device:",
        "  a → b: d (values)",
        "  a → b: e (values, dtype, shape and 1 more)",
    ]
    again = json.loads(json.dumps(report.as_dict()))
    assert again["counts"] == {"passed": 1, "failed": 1, "not exercised": 5}
    assert again["findings"][1] == {
        "plugin": "p", "conversion": "a → b: c", "check": "cost",
        "outcome": "failed", "reason": "c takes an hour", "rule": "",
    }  # fmt: skip
    assert again["ok"] is report.ok is False


def test_a_reason_is_followed_by_one_colon() -> None:
    """Neither a sentence nor what announces a list ends in two marks before the conversions."""
    reasons = ("register one.", "no conversion takes it:", "there is no device")
    findings = (
        Finding("p", f"a → b: {n}", "values", "not exercised", r) for n, r in enumerate(reasons)
    )
    lines = str(Report("p", tuple(findings))).splitlines()
    assert [line for line in lines if line.startswith("not")] == [
        "not exercised: register one:",
        "not exercised: no conversion takes it:",
        "not exercised: there is no device:",
    ]


def test_the_first_line_says_what_was_declared_and_never_tried() -> None:
    """Traits and dtypes that no sample had are named once each, with how many declare them so."""
    reason = "no value was tried that is or has: "
    findings = (
        Finding("p", "a → b: c", "values", "passed"),
        Finding("p", "a → b: c", "extent", "not exercised", f"{reason}grad, masked"),
        Finding("p", "format a", "extent", "not exercised", f"{reason}bfloat16, masked"),
    )
    first = str(Report("p", findings)).partition("\n")[0]
    assert first == (
        "p: 1 passed, 0 failed, 2 not exercised; declared and never tried: bfloat16 (in 1 of 2), "
        "grad (in 1 of 2), masked (in 2 of 2)"
    )


def test_nothing_exercised_is_not_success() -> None:
    """A report without a single promise kept is not ok."""
    assert not Report("p", (Finding("p", "c", "values", "not exercised", "why"),)).ok
    assert not Report("p", ()).ok
    assert Report("p", (Finding("p", "c", "values", "passed"),)).ok
