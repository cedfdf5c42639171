"""The conformance suite as a class of pytest's, which is imported only when it runs."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from ._report import FAILED, NOT_EXERCISED, PASSED, Finding
from ._session import Session
from ._subject import Bench, Promise, Subject, found

if TYPE_CHECKING:
    import pytest

__all__ = ["PluginTests"]


class PluginTests:
    """Everything that a plugin promises, as tests of pytest's: one for each promise.

    A promise that cannot be tried on this machine is skipped, with the reason.

    Attributes
    ----------
    plugin : str or module
        What to test; see :func:`interop.testing.check`.
    expected_failures : mapping of str to str
        By the names of findings (``"cost of grid → numpy: grid_to_numpy"``), why a promise is known
        not to be kept. One that is kept after all fails, so that the list stays true.

    Examples
    --------
    >>> class TestGrid(PluginTests):
    ...     plugin = "interop_grid"
    """

    plugin: ClassVar[str | ModuleType] = ""
    expected_failures: ClassVar[Mapping[str, str]] = {}

    # Of one class: its plugins, their promises, and what was found out already.
    _work: ClassVar[dict[str, tuple[Subject, int, Promise]] | None] = None
    _found: ClassVar[dict[str, list[Finding]]]
    _session: ClassVar[Session]

    def __init_subclass__(cls, **words: Any) -> None:
        super().__init_subclass__(**words)
        cls._work, cls._found, cls._session = None, {}, Session()

    @classmethod
    def _promises(cls) -> dict[str, tuple[Subject, int, Promise]]:
        """Return what is promised, by names that tell plugins of one distribution apart."""
        if cls._work is None:
            subjects = found(cls.plugin)
            cls._work = {
                f"{subject.name}: {promise.name}" if len(subjects) > 1 else promise.name: (
                    subject,
                    number,
                    promise,
                )
                for subject in subjects
                for number, promise in enumerate(Bench(subject).promises())
            }
        return cls._work

    @classmethod
    def pytest_generate_tests(cls, metafunc: pytest.Metafunc) -> None:
        """Make a test of every promise; called by pytest."""
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
        """End the process in which promises were tried; called by pytest."""
        cls._session.close()

    def test_promise(self, promise: str, check: str) -> None:
        """What the plugin declares is so."""
        import pytest

        one = self._finding(promise, check)
        known = self.expected_failures.get(one.name)
        if one.outcome == NOT_EXERCISED:
            pytest.skip(f"not exercised: {one.reason}")
        if one.outcome == FAILED and known is not None:
            pytest.xfail(f"{known}: {one.reason}")
        if one.outcome == FAILED:
            pytest.fail(one.reason, pytrace=False)
        if known is not None:
            text = f"{one.name} is expected to fail ({known}), and passes; take it off the list"
            pytest.fail(text, pytrace=False)
        assert one.outcome == PASSED

    def test_expected_failures_exist(self) -> None:
        """Every name among the expected failures is that of a promise."""
        names = {
            f"{check} of {promise.name}"
            for _, _, promise in self._promises().values()
            for check in promise.checks
        }
        assert set(self.expected_failures) <= names

    def _finding(self, promise: str, check: str) -> Finding:
        found_already = self._found
        if promise not in found_already:
            found_already[promise] = self._session.findings(*self._promises()[promise])
        return next(one for one in found_already[promise] if one.check == check)
