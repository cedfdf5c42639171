"""Notes: the outcome of each check while a promise is being tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from ._report import FAILED, NOT_EXERCISED, PASSED, Finding
from ._sample import first_line

#: The beginning of activities in which other conversions are at work than the one under test.
READ_BY = "a value was read by "

#: The reason where nothing has given one.
_DEFAULTS = {NOT_EXERCISED: "there was nothing to try it on"}
_RANK = {NOT_EXERCISED: 0, PASSED: 1, FAILED: 2}


class Notes:
    """The worst outcome of each check; of equal outcomes, the first.

    Parameters
    ----------
    checks : iterable of str, optional
    tell : callable, optional
        ``tell(check, activity)`` is called before anything that could end the process.
    """

    def __init__(
        self,
        checks: Iterable[str] = (),
        tell: Callable[[str, str], None] = lambda check, activity: None,
    ) -> None:
        self._outcomes: dict[str, tuple[str, str]] = dict.fromkeys(checks, (NOT_EXERCISED, ""))
        self._tell = tell
        self._at = ("", "")
        #: The check that is being made.
        self.check = ""

    def tell(self, check: str, activity: str) -> None:
        """Tell what is about to be done, which may end the process."""
        self._at = check, activity
        self._tell(check, activity)

    @contextmanager
    def reading(self, readers: str) -> Iterator[None]:
        """Tell that some conversions read a result inside the block."""
        self._tell(self._at[0], f"{READ_BY}{readers}")
        try:
            yield
        finally:
            self._tell(*self._at)

    def wants(self, check: str) -> bool:
        """Return whether a check is to be tried, and has not failed yet."""
        return check in self._outcomes and self._outcomes[check][0] != FAILED

    def failed(self, check: str, reason: str) -> None:
        """Note that a check has failed."""
        self._note(check, FAILED, reason)

    def skipped(self, reason: object, *checks: str) -> None:
        """Note why some checks, or all of them, could not be tried."""
        for check in checks or self._outcomes:
            self._note(check, NOT_EXERCISED, first_line(reason) or type(reason).__name__)

    def judge(self, check: str, problem: str) -> bool:
        """Note a failure if there is a problem, or else that the check has passed."""
        self._note(check, FAILED if problem else PASSED, problem)
        return not problem

    def _note(self, check: str, outcome: str, reason: str) -> None:
        if check not in self._outcomes:
            return
        earlier, earlier_reason = self._outcomes[check]
        if _RANK[outcome] > _RANK[earlier] or (outcome == earlier and not earlier_reason):
            self._outcomes[check] = outcome, reason

    def findings(self, plugin: str, name: str) -> list[Finding]:
        """Return a finding for each check."""
        return [
            Finding(plugin, name, check, outcome, reason or _DEFAULTS.get(outcome, ""))
            for check, (outcome, reason) in self._outcomes.items()
        ]
