"""The diagnosis: frameworks that misbehave are found out, named, and outlived."""

from __future__ import annotations

import json
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from interop import Interop
from interop._cli import diagnosis
from interop._cli.diagnosis import Diagnosis, Finding, diagnose
from interop._cli.probe import how_it_ended
from tests.strange import FRAMEWORK, install


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Install a strange framework and diagnose what is there."""

    def found(*, timeout: float = 60, **words: str) -> Diagnosis:
        install(tmp_path, monkeypatch, **words)
        return diagnose(Interop(costs={}), timeout=timeout)

    return found


def _of(found: Diagnosis, module: str) -> Any:
    return next(one for one in found.frameworks if one.module == module)


def test_a_framework_that_works_is_ready(odd: Any) -> None:
    """Its version and the time of its import are known, and nothing is wrong."""
    found = odd()
    one = _of(found, "odd")
    assert (one.state, one.version, one.distribution) == ("ready", "1.5", "odd")
    assert (one.plugin, one.formats) == ("odd", ("odd",))
    assert one.seconds > 0
    assert found.findings == ()
    assert _of(found, "numpy").state == "ready"
    assert found.machine["python"] == sys.version.split()[0]
    assert json.loads(json.dumps(found.as_dict()))["frameworks"]


@pytest.mark.parametrize(
    ("framework", "reason"),
    [
        ("import os; os.abort()", "it ended the process with SIGABRT"),
        ("import os; os._exit(3)", "it ended the process with status 3"),
        ("raise SystemExit(4)", "it ended the process with status 4"),
        ("raise ImportError('libodd.so: cannot open')", "ImportError: libodd.so: cannot open"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("import time; time.sleep(600)", "it did not come to an end in 8 s"),
    ],
)
def test_what_breaks_at_import_is_a_finding(odd: Any, framework: str, reason: str) -> None:
    """However it breaks, there is a sentence, a line that mends it, and what is disabled by it."""
    found = odd(framework=framework, timeout=8)
    assert _of(found, "odd").state == "broken"
    assert found.broken == {"odd"}
    (finding,) = found.findings
    assert finding.problem == f"odd cannot be imported: {reason}"
    assert finding.fix == "pip install --force-reinstall odd"
    assert finding.disables == (
        "interop-odd: odd → numpy: to_python",
        "interop-odd: numpy → odd: from_python",
    )


def test_a_plugin_says_what_is_wrong_with_its_framework(odd: Any) -> None:
    """What the hook returns is shown in its words, with the conversions that it disables."""
    trouble = "return [Problem('odd is even.', 'pip install odd==3', ('odd',), ('numpy',))]"
    found = odd(troubles=trouble)
    assert _of(found, "odd").state == "troubled"
    (finding,) = found.findings
    assert finding[:3] == ("odd", "odd is even.", "pip install odd==3")
    assert len(finding.disables) == 2
    assert found.broken == frozenset()


def test_what_a_framework_warns_of_at_import_is_noted(odd: Any) -> None:
    """Warnings about itself are passed on; those about the code of who imports it are not."""
    framework = (
        "import warnings\nwarnings.warn('built for another numpy')\n"
        "warnings.warn('old name', DeprecationWarning)\nprint('hello')\n" + FRAMEWORK
    )
    assert odd(framework=framework).notes == ("odd: built for another numpy",)


def test_a_version_that_the_plugin_is_not_made_for_is_a_finding(odd: Any) -> None:
    """The extra of the plugin's name says which versions it is made for."""
    found = odd(needs="odd>=2,<3")
    (finding,) = found.findings
    assert finding.problem == ("odd 1.5 is not a version that interop-odd is made for (<3,>=2)")
    assert finding.fix == "pip install 'odd<3,>=2'"


def test_a_plugin_that_is_not_loaded_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named with the reason and with the variable that blocks it."""
    install(tmp_path, monkeypatch)
    (tmp_path / "interop_odd.py").write_text("raise ValueError('spoilt')")
    found = diagnose(Interop(costs={}))
    (finding,) = found.findings
    assert finding.about == "interop-odd"
    assert "the plugin 'odd' is not loaded: ValueError: spoilt" in finding.problem
    assert "INTEROP_DISABLE_PLUGINS=odd" in finding.fix


def test_a_missing_framework_is_not_wrong(odd: Any, tmp_path: Path) -> None:
    """It is listed with the line that installs it, and is no finding."""
    install_ = odd
    found = install_(framework="")
    assert _of(found, "odd").state == "ready"
    (tmp_path / "odd.py").unlink()
    for one in (tmp_path / "odd-1.5.dist-info").iterdir():
        one.unlink()
    (tmp_path / "odd-1.5.dist-info").rmdir()
    diagnosis.importable.__globals__["_found"].clear()
    found = diagnose(Interop(costs={}))
    assert _of(found, "odd")[2:] == ("", "", "missing", None, "pip install odd", ("odd",))
    assert found.findings == ()


@pytest.mark.parametrize(
    ("script", "state", "said"),
    [
        ("echo 'NVIDIA X1, 580.1, 8192 MiB'", "ready", "NVIDIA X1, 580.1, 8192 MiB"),
        ("echo 'driver/library mismatch'; exit 18", "failed", "ended with 18: driver/library"),
    ],
)
def test_the_driver_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, state: str, said: str
) -> None:
    """Its tool's answer is passed on, and its failure is a finding."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    driver = diagnosis._driver()
    assert driver.state == state
    assert said in (driver.devices[0] if driver.devices else driver.reason)
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    assert diagnosis._driver().state == "absent"


def test_a_failing_driver_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has a line of its own that says what to do."""
    failed = diagnosis.Driver("nvidia-smi", "failed", reason="nvidia-smi ended with 9: gone")
    monkeypatch.setattr(diagnosis, "_driver", lambda: failed)
    found = diagnose(Interop(plugins=False))
    fix = "load the driver again, or reinstall it and restart the machine"
    assert found.findings == (Finding("nvidia-smi", "nvidia-smi ended with 9: gone", fix),)


def test_signals_without_a_name_are_numbered() -> None:
    """An exit status that is no known signal is still told."""
    assert how_it_ended(-11, "") == "it ended the process with SIGSEGV"
    assert how_it_ended(-99, "") == "it ended the process with signal 99"
    assert how_it_ended(1, "a\nlast line\n") == "it ended the process with status 1: last line"
