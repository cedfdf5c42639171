"""The diagnosis: frameworks that misbehave are found out, named, and outlived."""

from __future__ import annotations

import json
import shutil
import stat
import sys
from collections.abc import Callable
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import interop
from interop import Interop
from interop._cli import doctor
from interop._cli.doctor import Diagnosis, Fault, Framework, diagnose
from interop._model.provenance import OWN, Provenance
from interop._recognition import installed
from tests.strange import FRAMEWORK, install, install_plugin

#: A plugin that needs the others before they are there.
HOOK_THAT_CALLS = """
from interop.plugin import hookimpl
@hookimpl
def interop_declarations():
    import interop
    return interop.Interop().formats()
"""

#: ``diagnose_odd(**options)`` installs an odd framework and diagnoses what is there.
DiagnoseOdd = Callable[..., Diagnosis]


@pytest.fixture
def diagnose_odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiagnoseOdd:
    """Install an odd framework and diagnose what is there."""

    def diagnosed(*, timeout: float = 60, **options: str) -> Diagnosis:
        install(tmp_path, monkeypatch, **options)
        return diagnose(Interop(costs={}), timeout=timeout)

    return diagnosed


def _of(diagnosis: Diagnosis, module: str) -> Framework:
    return next(framework for framework in diagnosis.frameworks if framework.module == module)


def test_a_framework_that_works_is_ready(diagnose_odd: DiagnoseOdd) -> None:
    """Its version and the time of its import are known, and nothing is wrong."""
    result = diagnose_odd()
    framework = _of(result, "odd")
    assert (framework.state, framework.version, framework.distribution) == ("ready", "1.5", "odd")
    assert (framework.plugin, framework.formats) == ("odd", ("odd",))
    assert framework.seconds is not None
    assert framework.seconds > 0
    assert result.findings == ()
    assert _of(result, "numpy").state == "ready"
    assert result.machine["python"] == sys.version.split()[0]
    assert json.loads(json.dumps(result.as_dict()))["frameworks"]


@pytest.mark.parametrize(
    ("framework", "reason"),
    [
        ("import os; os.abort()", "the process died of SIGABRT"),
        ("import os; os._exit(3)", "the process exited with status 3"),
        ("raise SystemExit(4)", "the process exited with status 4"),
        (
            "print('Welcome to odd'); raise SystemExit('odd: no licence found')",
            "the process exited with status 1: odd: no licence found",
        ),
        ("raise ImportError('libodd.so: cannot open')", "ImportError: libodd.so: cannot open"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        pytest.param("import time; time.sleep(600)", "timed out after 8 s", marks=pytest.mark.slow),
    ],
)
def test_a_framework_that_breaks_at_import_is_a_finding(
    diagnose_odd: DiagnoseOdd, framework: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it breaks, there is a sentence, a command that fixes it, and what it disables."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)  # as most users have it
    result = diagnose_odd(framework=framework, timeout=8)
    assert _of(result, "odd").state == "broken"
    assert result.broken == {"odd"}
    (finding,) = result.findings
    assert finding.problem == f"odd cannot be imported: {reason}"
    assert finding.fix == "pip install --force-reinstall odd"
    assert finding.disables == (
        "interop-odd: odd → numpy: to_python",
        "interop-odd: numpy → odd: from_python",
    )


def test_a_plugin_says_what_is_wrong_with_its_framework(diagnose_odd: DiagnoseOdd) -> None:
    """What it declares is shown in its words, with the conversions that it disables."""
    even = "Problem('odd is even.', 'pip install odd==3', ('odd',), ('numpy',))"
    blind = "Problem('odd is blind.', 'see to it', ('odd',), None, {'cuda'})"
    result = diagnose_odd(problems=f"return [{even}, {blind}]")
    assert _of(result, "odd").state == "degraded"
    finding, other = result.findings
    told = "interop-odd 2.0 says: odd is even."
    assert other == ("odd", "interop-odd 2.0 says: odd is blind.", "see to it", ())
    assert finding[:3] == ("odd", told, "pip install odd==3")
    assert len(finding.disables) == 2
    assert result.broken == frozenset()


@pytest.mark.parametrize(
    ("problems", "reason"),
    [
        ("raise OSError('disk')", "OSError: disk"),
        ("return ['odd is even']", "TypeError: it answered 'odd is even', which is no Problem"),
    ],
)
def test_a_plugin_that_cannot_tell_blames_no_framework(
    diagnose_odd: DiagnoseOdd, problems: str, reason: str
) -> None:
    """Its framework is ready all the same, and the finding is about the plugin."""
    result = diagnose_odd(problems=problems)
    assert _of(result, "odd").state == "ready"
    (finding,) = result.findings
    text = f"interop-odd 2.0 says: the Problems of plugin 'odd' cannot tell: {reason}"
    assert finding == Fault("odd", text, "report it to interop-odd")


def test_warnings_of_a_framework_about_itself_are_noted(diagnose_odd: DiagnoseOdd) -> None:
    """Warnings about itself are passed on; those about the code of who imports it are not."""
    framework = (
        "import warnings\nwarnings.warn('built for another numpy')\n"
        "warnings.warn('old name', DeprecationWarning)\nprint('hello')\n" + FRAMEWORK
    )
    assert diagnose_odd(framework=framework).notes == ("odd: built for another numpy",)


def test_a_build_under_another_name_is_compared_with_the_extra_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The extra `odd-cpu` states the versions of the distribution odd-cpu."""
    install(tmp_path, monkeypatch)
    with (tmp_path / "interop_odd-2.0.dist-info" / "METADATA").open("a") as metadata:
        metadata.write('Provides-Extra: odd-cpu\nRequires-Dist: Odd_CPU>=2; extra == "odd-cpu"\n')
    framework = Framework("odd", "odd", "odd-cpu", "1.5", "ready", 0.1, "", ())
    (finding,) = doctor._outdated(Provenance("odd", "interop-odd", "2.0"), framework)
    assert finding.problem == "interop-odd does not support Odd_CPU 1.5: it needs >=2"


@pytest.mark.parametrize(
    ("needs", "problem", "fix"),
    [
        ("odd<1", "interop-odd does not support odd 1.5: it needs <1", "odd<1"),
        ("odd>=2", "interop-odd does not support odd 1.5: it needs >=2", "odd>=2"),
    ],
)
def test_a_version_that_the_plugin_does_not_support_is_a_finding(
    diagnose_odd: DiagnoseOdd, needs: str, problem: str, fix: str
) -> None:
    """The extra of the plugin's name says which versions it supports."""
    (finding,) = diagnose_odd(needs=needs).findings
    assert (finding.problem, finding.fix) == (problem, f"pip install '{fix}'")


def test_the_extras_of_bundled_plugins_state_minimum_versions() -> None:
    """Every framework that a bundled plugin requires has a minimum version in an extra of its own."""
    requirements = [Requirement(line) for line in requires(OWN) or []]
    stated = {
        str(requirement.marker).partition("==")[2].strip(' "').partition("-")[0]
        for requirement in requirements
        if any(specifier.operator == ">=" for specifier in requirement.specifier)
    }
    plugins = {
        declared.provenance.plugin
        for declared in interop.formats()
        if declared.format.requires not in {"", "numpy"} and declared.provenance.distribution == OWN
    }
    # The values are interop's own, of a namespace without releases to choose from, or of libraries
    # that another plugin has the extra of.
    assert plugins - stated <= {"dlpack", "protocols", "quantized"}


@pytest.mark.parametrize(
    ("needs", "problem"),
    [
        ("odd>=2", "interop-odd does not support odd 1.5: it needs >=2"),
        ("lost>=2", "lost is not installed, and interop-odd needs it"),
        ("odd>=1; python_version>='3'", ""),
        ("lost>=2; python_version<'3'", ""),
    ],
)
def test_requirements_without_an_extra_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs: str, problem: str
) -> None:
    """A requirement without an extra that is not met is a finding with the line that meets it."""
    install(tmp_path, monkeypatch)
    metadata = tmp_path / "interop_odd-2.0.dist-info" / "METADATA"
    metadata.write_text(
        f"Metadata-Version: 2.1\nName: interop-odd\nVersion: 2\nRequires-Dist: {needs}\n"
    )
    findings = list(doctor._unmet(Interop(costs={})))
    name = needs.partition(">")[0]
    assert findings == ([Fault(name, problem, f"pip install '{needs}'")] if problem else [])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("raise ValueError('spoilt')", "ValueError: spoilt"),
        (
            HOOK_THAT_CALLS,
            "PluginError: plugin 'odd' of interop-odd 2.0 calls interop while it is being loaded",
        ),
    ],
)
def test_a_plugin_that_is_not_loaded_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    """It is named with the reason and with the variable that blocks it."""
    install(tmp_path, monkeypatch)
    (tmp_path / "interop_odd.py").write_text(text)
    (finding,) = diagnose(Interop(costs={})).findings
    assert finding.about == "interop-odd"
    assert f"the plugin 'odd' is not loaded: {reason}" in finding.problem
    assert "INTEROP_DISABLE_PLUGINS=odd" in finding.fix


def test_a_missing_framework_is_not_wrong(
    diagnose_odd: DiagnoseOdd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is listed with the command that installs it, and is no finding."""
    assert _of(diagnose_odd(framework=""), "odd").state == "ready"
    (tmp_path / "odd.py").unlink()
    shutil.rmtree(tmp_path / "odd-1.5.dist-info")
    monkeypatch.setattr(installed, "_importable", {})  # forget that it was there
    result = diagnose(Interop(costs={}))
    assert _of(result, "odd")[2:] == ("", "", "missing", None, "pip install odd", ("odd",))
    assert result.findings == ()


@pytest.mark.parametrize(
    ("script", "state", "text"),
    [
        ("echo 'NVIDIA X1, 580.1, 8192 MiB'", "ready", "NVIDIA X1, 580.1, 8192 MiB"),
        ("echo 'driver/library mismatch'; exit 18", "failed", "ended with 18: driver/library"),
    ],
)
def test_the_driver_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, state: str, text: str
) -> None:
    """Its tool's answer is passed on, and its failure is a finding."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    driver = doctor._driver()
    assert driver.state == state
    assert text in (driver.devices[0] if driver.devices else driver.reason)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert doctor._driver()[1:] == ("absent", (), "nvidia-smi is not on PATH")


def test_a_failing_driver_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a line of its own that says what to do."""
    failed = doctor.Driver("nvidia-smi", "failed", reason="nvidia-smi ended with 9: gone")
    monkeypatch.setattr(doctor, "_driver", lambda: failed)
    findings = diagnose(Interop(plugins=False)).findings
    fix = "reload the driver, or reinstall it and restart the machine"
    assert findings == (Fault("nvidia-smi", "nvidia-smi ended with 9: gone", fix),)


def test_what_a_plugin_replaces_is_noted(diagnose_odd: DiagnoseOdd, tmp_path: Path) -> None:
    """A stated replacement is a note, and what is left out in a conflict a finding that names both."""
    text = """
from interop.plugin import *
def sevens(value):
    return value
@hookimpl
def interop_declarations():
    return [Conversion({ends}, sevens, effects={{"copy"}}, replaces={replaces})]
"""
    for name, ends, replaces in (
        ("loud", "'odd', 'numpy'", {"interop-odd"}),
        ("sly", "'numpy', 'odd'", ()),
    ):
        install_plugin(tmp_path, name, text.format(ends=ends, replaces=replaces))
    result = diagnose_odd()
    place = "the conversion odd → numpy (sevens) of interop-odd"
    assert result.notes == (f"loud: loud replaces {place}",)
    (finding,) = result.findings
    assert finding.about == "sly"
    assert "the plugin 'sly' is at fault: the conversion numpy → odd is" in finding.problem
    assert "by interop-odd 2.0 (from_python) and by sly 1.0" in finding.problem
    assert "INTEROP_DISABLE_PLUGINS=sly" in finding.fix


def test_a_misspelt_name_of_a_plugin_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that blocks nothing is reported, with the one that was meant."""
    monkeypatch.setenv("INTEROP_DISABLE_PLUGINS", "nunpy, numpy")
    *_, finding = doctor._plugin_findings(Interop(costs={}))
    problem = finding.problem
    assert finding.about == "INTEROP_DISABLE_PLUGINS"
    assert problem.startswith("INTEROP_DISABLE_PLUGINS names 'nunpy', which is neither")
    assert problem.endswith("did you mean 'numpy'?")
    monkeypatch.setenv("INTEROP_DISABLE_PLUGINS", " numpy , array-interop,")
    assert list(doctor._plugin_findings(Interop(costs={}))) == []
