"""Notes: what is found out about one promise, check by check, while it is tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ._report import FAILED, NOT_EXERCISED, PASSED, Finding

__all__ = ["Notes"]

_RANK = {NOT_EXERCISED: 0, PASSED: 1, FAILED: 2}


class Notes:
    """The worst that was found of each check; of like outcomes, what was found first.

    Parameters
    ----------
    checks : iterable of str
    tell : callable
        ``tell(check, what)`` is called before what could end the process.
    """

    def __init__(self, checks: Iterable[str], tell: Callable[[str, str], None]) -> None:
        self._found: dict[str, tuple[str, str]] = dict.fromkeys(checks, (NOT_EXERCISED, ""))
        self.tell = tell

    def wants(self, check: str) -> bool:
        """Tell whether a check is one of this promise, and has not failed already."""
        return check in self._found and self._found[check][0] != FAILED

    def passed(self, *checks: str) -> None:
        """Note that what was promised is so."""
        for check in checks:
            self._note(check, PASSED, "")

    def failed(self, check: str, reason: str) -> None:
        """Note a promise that is not kept."""
        self._note(check, FAILED, reason)

    def skipped(self, reason: object, *checks: str) -> None:
        """Note why something could not be tried."""
        for check in checks or self._found:
            self._note(check, NOT_EXERCISED, _sentence(reason))

    def judge(self, check: str, problem: str) -> bool:
        """Note a failure if there is a problem, else that the promise is kept."""
        self._note(check, FAILED if problem else PASSED, problem)
        return not problem

    def _note(self, check: str, outcome: str, reason: str) -> None:
        if check not in self._found:
            return
        before, said = self._found[check]
        if _RANK[outcome] > _RANK[before] or (outcome == before and not said):
            self._found[check] = outcome, reason

    def findings(self, plugin: str, name: str) -> list[Finding]:
        """Return what was found."""
        return [
            Finding(plugin, name, check, outcome, reason or _unsaid(outcome))
            for check, (outcome, reason) in self._found.items()
        ]


def _unsaid(outcome: str) -> str:
    return "there was nothing to try it on" if outcome == NOT_EXERCISED else ""


def _sentence(reason: object) -> str:
    """Return the first line of what was said."""
    lines = str(reason).strip().splitlines()
    return lines[0] if lines else type(reason).__name__
