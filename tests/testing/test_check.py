"""The conformance suite: it catches and names every lie, and the bundled plugins tell none."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import interop
from interop import Conversion, Format, Interop
from interop._model.effect import DERIVED
from interop._registry.validation import validated
from interop.plugin import Container
from interop.testing import CHECKS, Report, check
from interop.testing._plugin import contradiction
from interop.testing._promises import promises
from interop.testing._session import Session
from interop.testing._subject import Bench, subjects_of
from interop.testing._table import TABLE
from tests.cases import together
from tests.testing.bundled import BUNDLED

_EXPAND = "runs → numpy: expand"
_FOLDER = Path(__file__).parent.parent / "lying_plugins"

# ---------------------------------------------------------------------- honest and lying plugins


def test_the_honest_plugin_passes_everything() -> None:
    """Nothing fails, and every check that applies is carried out on some conversion."""
    report = check("tests.lying_plugins.honest")
    assert report.ok, str(report)
    assert report.failed == ()
    passed = {finding.check for finding in report.of("passed")}
    # It has no module to require, no components, no labels, wraps nothing, and
    # declares formats and conversions alone.
    of_extensions = {check.name for check in TABLE if isinstance(check.about, type)}
    missing = {"absence", "components", "labels", "wrapper"} | of_extensions
    assert set(CHECKS) - passed == missing


@pytest.mark.slow
def test_an_honest_sparse_plugin_passes_everything() -> None:
    """Values of the library's own, with elements stored twice and far out, are found to be right."""
    report = check("tests.lying_plugins.honest_triples")
    assert report.ok, str(report)
    assert "components of format triples" in {finding.name for finding in report.of("passed")}


def test_a_format_that_nothing_leads_to_is_tried_by_its_samples() -> None:
    """A plugin that only hands its values over is tried, with values that `Samples.make` makes."""
    report = check("tests.lying_plugins.only_exports")
    assert report.ok, str(report)
    passed = {finding.check for finding in report.of("passed")}
    assert {"describe", "memory", "fast_key", "values", "sharing", "lifetime", "cost"} <= passed


def test_a_format_whose_values_nobody_reads_is_tried_all_the_same() -> None:
    """Its descriptions, its memory and its keys are, and what has to be read counts as unknown."""
    report = check("tests.lying_plugins.only_imports")
    assert report.ok, str(report)
    passed = {finding.check for finding in report.of("passed")}
    assert {"describe", "memory", "fast_key", "variants", "device"} <= passed


def test_memory_that_is_overwritten_never_asks_for_more() -> None:
    """Lengths of runs that the suite overwrites do not grow, and the checks that do so are tried."""
    report = check("tests.lying_plugins.runs")
    assert report.ok, str(report)
    assert {f.name for f in report.not_exercised} & {f"threads of {_EXPAND}"} == set()
    assert "allocate" not in str(report)


def test_arrays_on_a_device_that_pretends_are_tried_in_full() -> None:
    """Their format, moves to the device, off it and along it are tried, with `make` or without.

    Whether a move along it shares memory is seen where the format can be written into.
    """
    for name in ("honest", "honest_with_make", "honest_with_fill"):
        report = check(f"tests.lying_plugins.distant.{name}")
        assert report.ok, str(report)
        untried = {f.name for f in report.not_exercised}
        blind = {"sharing of far → far: move on oneapi"} if name != "honest_with_fill" else set()
        assert untried == {f"absence of plugin tests.lying_plugins.distant.{name}", *blind}


def test_formats_without_values_of_two_axes_are_tried_as_well() -> None:
    """All variants of a format of three axes are made, so that nothing counts as never tried."""
    report = check("tests.lying_plugins.volumes")
    assert report.ok, str(report)
    assert "never tried" not in str(report)
    passed = {finding.name for finding in report.of("passed")}
    assert {"variants of format volume", "extent of format volume"} <= passed


def test_labels_that_no_sample_has_count_as_never_tried() -> None:
    """Whoever declares labels and no way to make any learns that they were not tried."""
    report = check("tests.lying_plugins.wrappers.cannot_copy_its_labels")
    first = str(report).partition("\n")[0]
    assert re.search(r"; declared and never tried: labelled \(in 1 of \d\)$", first)


@pytest.mark.slow
def test_one_finding_for_each_promise() -> None:
    """Nothing is left out and nothing is said twice, whether it ends the process or not."""
    for name in ("honest", "copies.ends_the_process"):
        promised = promises(Bench(subjects_of(f"tests.lying_plugins.{name}")[0]))
        report = check(f"tests.lying_plugins.{name}")
        assert sorted((f.conversion, f.check) for f in report.findings) == sorted(
            (promise.name, check_) for promise in promised for check_ in promise.checks
        )
        assert {f.outcome for f in report.findings} <= {"passed", "failed", "not exercised"}
        assert all(bool(f.reason) == (f.outcome != "passed") for f in report.findings)


# ---------------------------------------------------------------------- the bundled plugins


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    """One process for all bundled plugins, so that each framework is imported once."""
    with Session() as session:
        yield session


@pytest.mark.slow
@pytest.mark.parametrize("name", BUNDLED)
def test_a_bundled_plugin_keeps_its_promises(name: str, session: Session) -> None:
    """Whatever can be tried here passes, and what cannot says why."""
    (subject,) = subjects_of(name)
    promised = promises(Bench(subject))
    findings = [
        finding
        for number, promise in enumerate(promised)
        for finding in session.findings(subject, number, promise)
    ]
    report = Report(name, tuple(findings))
    assert [str(finding) for finding in report.failed] == []
    assert all(finding.reason for finding in report.not_exercised)


# ---------------------------------------------------------------------- what to check


def test_a_module_that_declares_nothing() -> None:
    """It is not taken for a plugin that keeps every promise."""
    report = check("textwrap")
    assert not report.ok
    assert "declares no format and no conversion" in report.failed[0].reason


def test_a_module_known_by_its_file_only(tmp_path: Path) -> None:
    """A module that no other process could import by name is loaded from where it is."""
    file = tmp_path / "unlisted.py"
    file.write_text((_FOLDER / "honest.py").read_text())
    spec = importlib.util.spec_from_file_location("unlisted", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["unlisted"] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules["unlisted"]
    report = check(module)
    # It does import something of its format's that is not its own: the module of the array's type.
    assert [finding.check for finding in report.failed] == ["imports"]
    assert "loading" in {finding.check for finding in report.of("passed")}


@together(
    "declaration, problem",
    [
        (Format("a", types=("b:C",)), ""),
        (Container("sys", id), "requires='sys', which every program may have imported"),  # type: ignore[arg-type]
        (Conversion("a", "b", id, shares=False), "shares=False and no effect that writes"),
        (Conversion("a", "b", id, shares=False, effects={"copy"}), ""),
        *((Conversion("a", "b", id, effects={name}), f"the effect {name!r}") for name in DERIVED),
    ],
)
def test_declarations_that_contradict_themselves(declaration: Any, problem: str) -> None:
    """What can be planned with, but no author should say, is found by the suite."""
    found = contradiction(validated(declaration, "a plugin"))
    assert problem in found
    assert bool(problem) == bool(found)


def test_progress_is_told() -> None:
    """A caller learns of every promise before it is tried, and of the end."""
    calls: list[tuple[int, int, str]] = []
    report = check("tests.lying_plugins.honest", progress=lambda *call: calls.append(call))
    names = list(dict.fromkeys(finding.conversion for finding in report.findings))
    assert [name for _, _, name in calls] == [*names, ""]
    assert calls[-1][:2] == (len(names), len(names))


def test_a_private_instance_is_used() -> None:
    """A plugin under test is not registered for anyone else."""
    check("tests.lying_plugins.honest")
    assert "grid" not in {declared.name for declared in interop.formats()}
    assert "grid" not in {declared.name for declared in Interop().formats()}


def test_importing_the_suite_imports_no_framework(in_subprocess: Callable[..., str]) -> None:
    """Neither a framework nor pytest is imported until something is checked."""
    program = """
        import sys, interop.testing
        print([name for name in ("numpy", "torch", "pytest", "ml_dtypes") if name in sys.modules])
    """
    assert in_subprocess(program).strip() == "[]"
