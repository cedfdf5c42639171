"""The conformance suite as a class of tests; pytest is imported only when they run."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from ._promises import work_of
from ._report import FAILED, NOT_EXERCISED, PASSED, Finding
from ._session import Session
from ._subject import Promise, Subject

if TYPE_CHECKING:
    import pytest


class PluginTests:
    """Everything that a plugin promises, as tests for pytest: one for each check.

    What cannot be tried on this machine is skipped, with the reason.

    Attributes
    ----------
    plugin : str or module
        What to test; see :func:`interop.testing.check`.
    expected_failures : mapping of str to str
        By the names of findings (``"cost of grid → numpy: grid_to_numpy"``), why a promise is not
        kept. The test of a promise that is kept after all fails, so that the list stays true.

    Examples
    --------
    >>> class TestGrid(PluginTests):
    ...     plugin = "interop_grid"
    """

    plugin: ClassVar[str | ModuleType] = ""
    expected_failures: ClassVar[Mapping[str, str]] = {}

    # Each class has its own promises, findings and process.
    _work: ClassVar[dict[str, tuple[Subject, int, Promise]] | None] = None
    _findings: ClassVar[dict[str, list[Finding]]]
    _session: ClassVar[Session]

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        cls._work, cls._findings, cls._session = None, {}, Session()

    @classmethod
    def _promises(cls) -> dict[str, tuple[Subject, int, Promise]]:
        """Return the promises by names that tell the plugins of one distribution apart."""
        if cls._work is None:
            work = work_of(cls.plugin)
            is_one = len({subject for subject, _, _ in work}) == 1
            cls._work = {
                entry[2].name if is_one else f"{entry[0].name}: {entry[2].name}": entry
                for entry in work
            }
        return cls._work

    @classmethod
    def pytest_generate_tests(cls, metafunc: pytest.Metafunc) -> None:
        """Make a test of every check; called by pytest."""
        if "promise" not in metafunc.fixturenames:
            return
        pairs = [
            (name, check)
            for name, (_, _, promise) in cls._promises().items()
            for check in promise.checks
        ]
        names = [f"{check} of {name}".replace("→", "to") for name, check in pairs]
        metafunc.parametrize(("promise", "check"), pairs, ids=names)

    @classmethod
    def teardown_class(cls) -> None:
        """End the process that has tried the promises; called by pytest."""
        cls._session.close()

    def test_promise(self, promise: str, check: str) -> None:
        """The plugin keeps its promise."""
        import pytest

        finding = self._finding(promise, check)
        excuse = self.expected_failures.get(finding.name)
        if finding.outcome == NOT_EXERCISED:
            pytest.skip(f"not exercised: {finding.reason}")
        if finding.outcome == FAILED and excuse is not None:
            pytest.xfail(f"{excuse}: {finding.reason}")
        if finding.outcome == FAILED:
            pytest.fail(finding.reason, pytrace=False)
        if excuse is not None:
            text = (
                f"{finding.name} was expected to fail ({excuse}) but passes; take it off the list"
            )
            pytest.fail(text, pytrace=False)
        assert finding.outcome == PASSED

    def test_expected_failures_exist(self) -> None:
        """Every name among the expected failures is that of a check."""
        names = {
            f"{check} of {promise.name}"
            for _, _, promise in self._promises().values()
            for check in promise.checks
        }
        assert set(self.expected_failures) <= names

    def _finding(self, promise: str, check: str) -> Finding:
        if promise not in self._findings:
            self._findings[promise] = self._session.findings(*self._promises()[promise])
        return next(finding for finding in self._findings[promise] if finding.check == check)
