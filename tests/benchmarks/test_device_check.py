"""The device check: its rows, its steps and its page, without a device."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks import device_check
from benchmarks.aims import RATES, RATIOS
from benchmarks.device_check import Outcome
from tests.cases import together

ROOT = Path(__file__).parents[2]


def test_the_page_is_the_stored_check() -> None:
    """The tables on the page are those of the last check, or say by row that there was none."""
    text = device_check.page(device_check.load())
    assert device_check.PAGE.read_text() == text
    if not device_check.load():
        assert text.count("**not yet run**") == len(RATIOS) + len(RATES)


def test_every_row_with_an_aim_is_measured() -> None:
    """Each aim has its statement or its transfer."""
    gpu = pytest.importorskip("benchmarks.gpu", reason="torch is not installed here")
    assert {name for name, _ in gpu._rates()} == {*RATES}
    source = (ROOT / "benchmarks" / "gpu.py").read_text()
    assert [name for name in RATIOS if f'"{name}"' not in source] == []


@together(
    "name, value, short",
    [
        ("torch → cupy", 0.4, False),
        ("torch → cupy", 0.41, False),
        ("torch → cupy", 0.42, True),
        ("torch → cupy", None, True),
        ("torch → numpy, 1 GiB", 16.0, False),
        ("torch → numpy, 1 GiB", 15.0, True),
        ("torch → numpy, 1 GiB", 30.0, False),
    ],
)
def test_a_row_is_short_of_its_aim(name: str, value: float | None, short: bool) -> None:
    """A ratio may be 3 % above its aim, and a speed as much below; a row that failed is short."""
    assert Outcome(name, value).is_short is short


def test_a_machine_without_a_device_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is measured, nothing is stored, and nothing falls short."""
    monkeypatch.setattr(device_check, "torch_finds", lambda: "torch sees no device")
    monkeypatch.setattr(device_check, "STORE", tmp_path / "device.json")
    command = ["--only", "tables", "--only", "memcheck", "--store", "--out", str(tmp_path / "out")]
    assert device_check.main(command) == 0
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert report["tables"] == {"skipped": "there is no CUDA device: torch sees no device"}
    assert not (tmp_path / "device.json").exists()
    assert "tables: skipped there is no CUDA device" in capsys.readouterr().out
    assert device_check.main([*command, "--limit", "10"]) == 0
    assert "it needs 30" in capsys.readouterr().out


def test_the_rows_of_a_device_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page has the card, the versions, the date and what each row has shown."""
    gpu = pytest.importorskip("benchmarks.gpu", reason="torch is not installed here")
    rows = [
        Outcome("torch → cupy", 0.25, 1.8e-5),
        Outcome("jax → torch", None, error="RuntimeError: no"),
        Outcome("torch → numpy, 1 GiB", 12.5, 1.5),
    ]
    facts = {"CUDA device": "One Card", "processor": "P", "Python": "3", "packages": "torch 9"}
    monkeypatch.setattr(gpu, "outcomes", lambda: iter(rows))
    monkeypatch.setattr(device_check, "machine", lambda: facts)
    monkeypatch.setattr(device_check, "_ROOT", tmp_path)
    for finds in ("torch_finds", "cupy_finds"):
        monkeypatch.setattr(device_check, finds, lambda: "")
    monkeypatch.setattr(device_check, "STORE", tmp_path / "device.json")
    monkeypatch.setattr(device_check, "PAGE", tmp_path / "_device.md")
    command = ["--only", "tables", "--store", "--out", str(tmp_path / "out")]
    assert device_check.main(command) == 1
    out = capsys.readouterr().out
    assert "tables: 1 of 3 rows reach their aims" in out
    assert re.findall(r"short: (\S+ → \S+)", out) == ["jax → torch", "torch → numpy,"]
    text = (tmp_path / "_device.md").read_text()
    assert re.search(
        r"Measured on 2\d{3}-\d\d-\d\d with one One Card \(P; Python 3; torch 9\)", text
    )
    assert "| torch → cupy | 0.25 | 0.4 |" in text
    assert "| jax → torch | RuntimeError: no | 0.7 |" in text
    assert "| torch → numpy, 1 GiB | 12.50 | 16 |" in text
    assert "| cupy → torch | **not yet run** | 0.5 |" in text
    assert text == device_check.page(device_check.load())


#: What pytest writes with several workers and with one, and whether it came to its end.
_WITH_WORKERS = """
[gw0] [ 50%] PASSED tests/gpu/a.py::x
[gw1] [ 60%] FAILED tests/gpu/a.py::y
worker 'gw1' crashed while running
= 1 failed, 1 passed in 3s =
"""
_WITH_ONE = """
tests/gpu/a.py::x PASSED [ 50%]
tests/gpu/a.py::y ERROR [100%]
"""


@together("text, is_finished", [(_WITH_WORKERS, True), (_WITH_ONE, False)])
def test_the_outcomes_of_tests_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, is_finished: bool
) -> None:
    """With several workers and with one, whether pytest came to its end or not."""
    monkeypatch.setattr(device_check, "_run", lambda *given: (text, 1))
    outcome: dict[str, Any] = device_check._tests(tmp_path, 10, 2)
    assert outcome["passed"] == 1
    assert outcome["failures"] == ["tests/gpu/a.py::y"]
    assert outcome["finished"] is is_finished
    assert outcome["crashed workers"] == text.count("crashed")


def test_a_step_ends_with_its_time(tmp_path: Path) -> None:
    """A command that takes too long is interrupted, and what it wrote is read."""
    import sys

    program = "import time; print('begun', flush=True); time.sleep(60)"
    text, status = device_check._run([sys.executable, "-c", program], tmp_path / "log", 2)
    assert text.startswith("begun")
    assert status != 0
