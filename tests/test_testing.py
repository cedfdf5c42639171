"""The conformance suite: every lie of the zoo is caught and named, and the bundled plugins tell none."""

from __future__ import annotations

import importlib
import json
import sys
import textwrap
from collections.abc import Callable, Iterator
from itertools import pairwise
from math import prod
from pathlib import Path
from time import sleep
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

import interop.testing
from interop._api.interop import Interop
from interop._calibration.sample import axes_of
from interop.errors import PluginError
from interop.testing import CHECKS, Finding, PluginTests, Report, _pace, check
from interop.testing._session import Session
from interop.testing._subject import Bench, found
from interop.testing._trial import main_trial

ZOO = Path(__file__).parent / "zoo"
ANIMALS = sorted(p.stem for p in ZOO.glob("*.py") if p.stem not in ("cage", "honest"))


def animal(name: str) -> ModuleType:
    """Return a plugin of the zoo, or one written for a single test."""
    return importlib.import_module(f"tests.zoo.{name}")


# ---------------------------------------------------------------------- the zoo


def test_the_zoo_is_large_enough() -> None:
    """There are at least fifteen lies, no two of which are the same."""
    lies = [animal(name).LIE for name in ANIMALS if name != "imports_its_framework"]
    assert len(ANIMALS) >= 15
    assert len(set(lies)) == len(lies)


@pytest.mark.parametrize("name", ANIMALS)
def test_a_lie_is_caught_and_named(name: str) -> None:
    """The one who lies is found out in the check that the lie belongs to, and nobody else is blamed."""
    conversion, broken, said = _lie_of(name)
    report = check(f"tests.zoo.{name}")
    assert not report.ok
    caught = [f for f in report.failed if (f.conversion, f.check) == (conversion, broken)]
    assert len(caught) == 1, str(report)
    assert said in caught[0].reason
    # What others say fails only if they name the one who lies: a copy is made by `copy`.
    label = conversion.partition(": ")[2].partition(" if ")[0] or conversion
    blamed = [f for f in report.failed if f.conversion != conversion and label not in f.reason]
    assert blamed == []


def _lie_of(name: str) -> tuple[str, str, str]:
    """Return the lie without importing what may import a framework."""
    text = (ZOO / f"{name}.py").read_text()
    space: dict[str, tuple[str, str, str]] = {}
    exec(text[text.index("\nLIE = ") :].split("\n\n", 1)[0], space)
    return space["LIE"]


def test_the_honest_plugin_passes_everything() -> None:
    """Nothing fails, and every check that applies is carried out on some conversion."""
    report = check("tests.zoo.honest")
    assert report.ok, str(report)
    assert report.failed == ()
    passed = {one.check for one in report.of("passed")}
    # It has no module to require, no components and no shortcuts.
    assert set(CHECKS) - passed == {"absence", "components", "identity", "shortcut"}


def test_one_finding_for_each_promise() -> None:
    """Nothing is left out and nothing is said twice, whether it ends the process or not."""
    for name in ("honest", "ends_the_process"):
        promises = Bench(found(f"tests.zoo.{name}")[0]).promises()
        report = check(f"tests.zoo.{name}")
        assert sorted((f.conversion, f.check) for f in report.findings) == sorted(
            (promise.name, each) for promise in promises for each in promise.checks
        )
        assert {f.outcome for f in report.findings} <= {"passed", "failed", "not exercised"}
        assert all(bool(f.reason) == (f.outcome != "passed") for f in report.findings)


# ---------------------------------------------------------------------- the bundled plugins


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    """One process for all bundled plugins, so that each framework is imported once."""
    with Session() as one:
        yield one


OWN = sorted(p.name for p in interop.plugins() if p.distribution == "array-interop")

#: What is not so, and why it stays.
KNOWN: dict[str, str] = {}


@pytest.mark.parametrize("name", OWN)
def test_a_bundled_plugin_keeps_its_promises(name: str, session: Session) -> None:
    """Whatever can be tried here passes, and what cannot says why."""
    (subject,) = found(name)
    promises = Bench(subject).promises()
    findings = [
        finding
        for number, promise in enumerate(promises)
        for finding in session.findings(subject, number, promise)
    ]
    report = Report(name, tuple(findings))
    assert [str(one) for one in report.failed if one.name not in KNOWN] == []
    assert all(one.reason for one in report.not_exercised)


# ---------------------------------------------------------------------- what to check


def test_what_is_tried_has_elements() -> None:
    """The main trial of every bundled conversion is of many elements, unless there is but one."""
    for name in OWN:
        for promise in Bench(found(name)[0]).promises():
            trial = promise.edge and main_trial(promise.edge)
            if trial and axes_of(promise.edge) != {0}:
                assert prod(trial.wanted.shape) > 1, promise.name


def test_large_results_are_judged_in_fresh_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before each timed call on the largest value, and no other, free memory goes back."""
    events: list[Any] = []
    monkeypatch.setattr(_pace, "give_back", lambda: events.append("back"))
    largest = _pace._SIDES[-1]

    def call(side: int) -> None:
        events.append(side)
        sleep(1e-3)

    def prepared(shape: tuple[int, ...]) -> Any:
        seconds = 1.0 if shape[0] == largest else 1e-3
        step = {"call": call, "seconds": seconds, "aliases": False, "writes": True, "before": "it"}
        return shape[0], SimpleNamespace(**step)

    said = _pace.judged_cost("copy", prepared)
    assert "copy takes a" in said
    assert "of its declared cost" in said
    after = [b for a, b in pairwise(events) if a == "back"]
    assert set(after) == {largest}
    assert len(after) >= 3 * _pace._ROUNDS
    # The others are the first of each attempt, and that by which the rounds are laid out.
    assert events.count(largest) - len(after) == 6


def test_a_plugin_is_named_in_four_ways() -> None:
    """The name of the entry point, of the distribution, of the module, or the module itself."""
    from interop_plugins import python

    by_entry, by_module = found("python"), found("interop_plugins.python")
    assert by_entry == by_module == found(python)
    assert by_entry[0].distribution == "array-interop"
    assert by_entry[0] in found("array-interop")
    assert found("Array_Interop") == found("array-interop")
    assert len(found("array-interop")) == len(OWN)


@pytest.mark.parametrize("name", ["nonsense", "nonsense.module", "__main__"])
def test_what_is_no_plugin(name: str) -> None:
    """A name that means nothing is an error that says what would."""
    with pytest.raises(PluginError, match=r"see interop.plugins\(\)|pass a module's name"):
        check(name)


def test_a_module_that_declares_nothing() -> None:
    """It is not taken for a plugin that keeps every promise."""
    report = check("textwrap")
    assert not report.ok
    assert "declares no format and no conversion" in report.failed[0].reason


def test_a_module_known_by_its_file_only(tmp_path: Path) -> None:
    """A module that no other process could import by name is loaded from where it is."""
    file = tmp_path / "lost.py"
    file.write_text((ZOO / "honest.py").read_text())
    spec = importlib.util.spec_from_file_location("lost", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["lost"] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules["lost"]
    report = check(module)
    # It does import something of its format's that is not its own: the module of the zoo's array.
    assert [one.check for one in report.failed] == ["imports"]
    assert "loading" in {one.check for one in report.of("passed")}


# ---------------------------------------------------------------------- the report


def test_a_report_in_text_and_as_a_dict() -> None:
    """Text names every failure and every reason; the dict survives JSON."""
    findings = (
        Finding("p", "a → b: c", "values", "passed"),
        Finding("p", "a → b: c", "cost", "failed", "c takes an hour"),
        Finding("p", "a → b: d", "values", "not exercised", "there is no device"),
        Finding("p", "a → b: e", "values", "not exercised", "there is no device"),
    )
    report = Report("p", findings, 1.5)
    assert str(report).splitlines() == [
        "p: 1 passed, 1 failed, 2 not exercised",
        "FAILED cost of a → b: c: c takes an hour",
        "not exercised: there is no device:",
        "  a → b: d",
        "  a → b: e",
    ]
    again = json.loads(json.dumps(report.as_dict()))
    assert again["counts"] == {"passed": 1, "failed": 1, "not exercised": 2}
    assert again["findings"][1] == {
        "plugin": "p", "conversion": "a → b: c", "check": "cost",
        "outcome": "failed", "reason": "c takes an hour",
    }  # fmt: skip
    assert again["ok"] is report.ok is False


def test_nothing_exercised_is_not_success() -> None:
    """A report without a single promise kept is not ok."""
    assert not Report("p", (Finding("p", "c", "values", "not exercised", "why"),)).ok
    assert not Report("p", ()).ok
    assert Report("p", (Finding("p", "c", "values", "passed"),)).ok


def test_progress_is_told() -> None:
    """A caller learns of every promise before it is tried, and of the end."""
    told: list[tuple[int, int, str]] = []
    report = check("tests.zoo.honest", progress=lambda *words: told.append(words))
    names = list(dict.fromkeys(f.conversion for f in report.findings))
    assert [what for _, _, what in told] == [*names, ""]
    assert told[-1][:2] == (len(names), len(names))


# ---------------------------------------------------------------------- the class for pytest


@pytest.fixture
def ran(tmp_path: Path, in_subprocess: Callable[..., str]) -> Callable[[str], dict[str, str]]:
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
            seen = Outcomes()
            pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", {str(file)!r}],
                        plugins=[seen])
            print("\\n" + json.dumps(seen.all))
        """
        return json.loads(in_subprocess(program).splitlines()[-1])

    return run


def test_the_class_needs_one_line(ran: Callable[[str], dict[str, str]]) -> None:
    """There is a test for every promise, named by conversion and check."""
    outcomes = ran("""
        from interop.testing import PluginTests

        class TestGrid(PluginTests):
            plugin = "tests.zoo.copies_in_silence"
    """)
    failed = [name for name, outcome in outcomes.items() if outcome == "failed"]
    prefix = "TestGrid::test_promise["
    assert f"{prefix}sharing of grid to numpy: grid_to_numpy]" in failed
    assert all("grid_to_numpy]" in name for name in failed)
    assert outcomes[f"{prefix}values of grid to numpy: grid_to_numpy]"] == "passed"
    assert outcomes[f"{prefix}absence of plugin tests.zoo.copies_in_silence]"] == "skipped"
    assert len(outcomes) == 1 + sum(
        len(one.checks) for one in Bench(found("tests.zoo.copies_in_silence")[0]).promises()
    )


def test_expected_failures_are_strict(ran: Callable[[str], dict[str, str]]) -> None:
    """One that fails is expected to; one that passes fails; one that does not exist fails."""
    outcomes = ran("""
        from interop.testing import PluginTests

        class TestGrid(PluginTests):
            plugin = "tests.zoo.miscounts"
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


class TestPython(PluginTests):
    """The class as an author uses it, on a bundled plugin."""

    plugin = "python"


# ---------------------------------------------------------------------- the house


def test_importing_the_suite_imports_no_framework(in_subprocess: Callable[..., str]) -> None:
    """Neither a framework nor pytest is imported until something is checked."""
    program = """
        import sys, interop.testing
        print([name for name in ("numpy", "torch", "pytest", "ml_dtypes") if name in sys.modules])
    """
    assert in_subprocess(program).strip() == "[]"


def test_checks_are_those_that_are_made() -> None:
    """The table of checks names all that the promises of all plugins are tried for."""
    made = {
        each
        for name in ("honest", "copies_in_silence")
        for promise in Bench(found(f"tests.zoo.{name}")[0]).promises()
        for each in promise.checks
    }
    made |= {c for p in Bench(found("numpy")[0]).promises() for c in p.checks}
    made |= {c for p in Bench(found("scipy")[0]).promises() for c in p.checks}
    assert made == set(CHECKS)


def test_a_private_instance_is_used() -> None:
    """A plugin under test is not registered for anyone else."""
    check("tests.zoo.honest")
    assert "grid" not in {one.name for one in interop.formats()}
    assert "grid" not in {one.name for one in Interop().formats()}
