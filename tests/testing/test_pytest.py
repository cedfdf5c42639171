"""The class of tests that a plugin's author subclasses."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from interop.testing import PluginTests
from interop.testing._promises import promises
from interop.testing._subject import Bench, subjects_of


@pytest.fixture
def outcomes_of(
    tmp_path: Path, in_subprocess: Callable[..., str]
) -> Callable[[str], dict[str, str]]:
    """Run a file of tests, and return the outcome of each by its id."""

    def run(source: str) -> dict[str, str]:
        file = tmp_path / "test_mine.py"
        file.write_text(textwrap.dedent(source))
        program = f"""
            import json, sys, pytest
            sys.path[:] = {sys.path!r}
            class Outcomes:
                def __init__(self): self.all = {{}}
                def pytest_runtest_logreport(self, report):
                    if report.when == "call" or report.outcome != "passed":
                        xfail = hasattr(report, "wasxfail")
                        outcome = "xfailed" if xfail else report.outcome
                        self.all[report.nodeid.partition("::")[2]] = outcome
            outcomes = Outcomes()
            pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", {str(file)!r}],
                        plugins=[outcomes])
            print("\\n" + json.dumps(outcomes.all))
        """
        return json.loads(in_subprocess(program).splitlines()[-1])

    return run


def test_the_class_needs_one_line(outcomes_of: Callable[[str], dict[str, str]]) -> None:
    """There is a test for every promise, named by conversion and check."""
    plugin = "tests.lying_plugins.views.copies_in_silence"
    outcomes = outcomes_of(f"""
        from interop.testing import PluginTests

        class TestGrid(PluginTests):
            plugin = "{plugin}"
    """)
    failed = [name for name, outcome in outcomes.items() if outcome == "failed"]
    prefix = "TestGrid::test_promise["
    assert f"{prefix}sharing of grid to numpy: grid_to_numpy]" in failed
    assert all("grid_to_numpy]" in name for name in failed), failed
    assert outcomes[f"{prefix}values of grid to numpy: grid_to_numpy]"] == "passed"
    assert outcomes[f"{prefix}absence of plugin {plugin}]"] == "skipped"
    promised = promises(Bench(subjects_of(plugin)[0]))
    assert len(outcomes) == 1 + sum(len(promise.checks) for promise in promised)


def test_expected_failures_are_strict(outcomes_of: Callable[[str], dict[str, str]]) -> None:
    """One that fails is expected to; one that passes fails; one that does not exist fails."""
    outcomes = outcomes_of("""
        from interop.testing import PluginTests

        class TestGrid(PluginTests):
            plugin = "tests.lying_plugins.descriptions.miscounts"
            expected_failures = {
                "describe of format grid": "bytes are counted later",
                "fill of format grid": "this is not so",
                "nonsense of format grid": "there is no such check",
            }
    """)
    prefix = "TestGrid::test_promise["
    assert outcomes[f"{prefix}describe of format grid]"] == "xfailed"
    assert outcomes[f"{prefix}fill of format grid]"] == "failed"
    assert outcomes["TestGrid::test_expected_failures_exist"] == "failed"


@pytest.mark.slow
class TestPython(PluginTests):
    """The class as an author uses it, on a bundled plugin."""

    plugin = "python"
