"""The report: the findings of the suite about a plugin or a library."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from interop._model.text import listed

PASSED, FAILED, NOT_EXERCISED = "passed", "failed", "not exercised"
#: The outcomes of rules of a standard that permits an error, or demands nothing.
REFUSED, ADVICE = "refused", "not as recommended"
#: All outcomes, the worst first.
_OUTCOMES = (FAILED, ADVICE, REFUSED, NOT_EXERCISED, PASSED)
#: How many checks of a conversion a line names.
_MOST_CHECKS = 3
#: The beginning of reasons that name declared traits and dtypes which no sample has.
UNTRIED = "no value was tried that is or has: "


class Finding(NamedTuple):
    """The outcome of one check.

    Parameters
    ----------
    plugin : str
        Name of the plugin's entry point, or of its module; of a library its module.
    conversion : str
        What made the promise: ``"numpy → grid: numpy_to_grid"`` for a conversion,
        ``"format grid"`` for a format, ``"plugin grid"`` for the plugin as a whole; of a library
        ``"producer"``, ``"consumer"``, or ``"interface"`` for what is no DLPack.
    check : str
        Which promise it is: one of :data:`interop.testing.CHECKS`; of a library a check, and the
        layout or dtype that it was tried with: ``"no copies (transposed)"``.
    outcome : str
        ``"passed"``, ``"failed"`` or ``"not exercised"``; of a library also ``"refused"``, by an
        error, which the standard permits, and ``"not as recommended"``.
    reason : str
        What is untrue, or why it could not be tried; "" if it passed.
    rule : str
        What a standard asks of a library, in our words, and where it says so.
    """

    plugin: str
    conversion: str
    check: str
    outcome: str
    reason: str = ""
    rule: str = ""

    @property
    def name(self) -> str:
        """Its name in ``expected_failures``: ``"cost of numpy → grid: numpy_to_grid"``."""
        return f"{self.check} of {self.conversion}"

    def __str__(self) -> str:
        return f"{self.name}: {self.outcome}" + (f": {self.reason}" if self.reason else "")


class Report(NamedTuple):
    """All findings. It prints as text.

    Parameters
    ----------
    subject : str
        What was checked.
    findings : tuple of Finding
    seconds : float
    """

    subject: str
    findings: tuple[Finding, ...]
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether nothing failed, and something passed that a declaration promises."""
        return self._is_tried and not self.failed

    @property
    def _is_tried(self) -> bool:
        """Whether any promise was tried beyond those of the plugin as a whole."""
        return any(not finding.conversion.startswith("plugin ") for finding in self.of(PASSED))

    @property
    def failed(self) -> tuple[Finding, ...]:
        """The promises that are not kept."""
        return self.of(FAILED)

    @property
    def not_exercised(self) -> tuple[Finding, ...]:
        """The promises that could not be tried, and why."""
        return self.of(NOT_EXERCISED)

    def of(self, outcome: str) -> tuple[Finding, ...]:
        """Return the findings with an outcome."""
        return tuple(finding for finding in self.findings if finding.outcome == outcome)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain dicts and lists, ready for JSON."""
        return {
            "subject": self.subject,
            "ok": self.ok,
            "seconds": round(self.seconds, 3),
            "counts": self._counts(),
            "findings": [finding._asdict() for finding in self.findings],
        }

    def as_markdown(self) -> str:
        """Return all that did not pass as a table in Markdown, the worst first."""
        rows = [
            "| " + " | ".join(map(_cell, finding[1:])) + " |"
            for outcome in _OUTCOMES[:-1]
            for finding in self.of(outcome)
        ]
        heads = Finding._fields[1:]
        head = "| " + " | ".join(heads) + " |\n" + "| --- " * len(heads) + "|"
        return "\n".join([f"# {self._title()}", "", head, *rows, ""])

    def _counts(self) -> dict[str, int]:
        counts = Counter(finding.outcome for finding in self.findings)
        always = (PASSED, FAILED, NOT_EXERCISED)
        return {o: counts[o] for o in (*always, REFUSED, ADVICE) if o in always or counts[o]}

    def _title(self) -> str:
        counts = ", ".join(f"{number} {outcome}" for outcome, number in self._counts().items())
        return f"{self.subject}: {counts}"

    def __str__(self) -> str:
        nothing = "" if self._is_tried else "; nothing that it declares could be tried"
        return "\n".join([f"{self._title()}{nothing}{self._untried()}", *self._lines()])

    def _untried(self) -> str:
        """Return the part of the first line that names traits and dtypes which no sample has.

        A dtype that one conversion was not tried with may have been tried with all others.
        """
        reasons = (f.reason for f in self.not_exercised if f.reason.startswith(UNTRIED))
        counts = Counter(name for reason in reasons for name in reason[len(UNTRIED) :].split(", "))
        total = sum(finding.check == "extent" for finding in self.findings)
        names = ", ".join(f"{name} (in {counts[name]} of {total})" for name in sorted(counts))
        return f"; declared and never tried: {names}" if names else ""

    def _lines(self) -> Iterator[str]:
        for outcome in (FAILED, ADVICE):
            # One rule is often broken by many layouts and dtypes.
            alike: dict[Finding, list[str]] = {}
            for finding in self.of(outcome):
                key = finding._replace(check="") if finding.rule else finding
                alike.setdefault(key, []).append(finding.check)
            start = "FAILED" if outcome == FAILED else f"{outcome}:"
            for finding, checks in alike.items():
                name = f"{listed(checks, _MOST_CHECKS)} of {finding.conversion}"
                yield f"{start} {name}: {finding.reason}"
                if finding.rule:
                    yield f"  the standard: {finding.rule}"
        for outcome in (REFUSED, NOT_EXERCISED):
            # One reason often holds for all checks of many conversions.
            reasons: dict[str, dict[str, list[str]]] = {}
            for finding in self.of(outcome):
                conversions = reasons.setdefault(finding.reason, {})
                conversions.setdefault(finding.conversion, []).append(finding.check)
            for reason, conversions in reasons.items():
                # A reason may be a sentence, or announce a list and hold only its first item.
                yield f"{outcome}: {reason.rstrip('.:')}:"
                for conversion, checks in conversions.items():
                    yield f"  {conversion} ({listed(checks, _MOST_CHECKS)})"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
