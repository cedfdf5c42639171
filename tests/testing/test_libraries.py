"""`check_dlpack` finds what breaks the DLPack standard, and nothing in what keeps it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interop.testing import Report, check_dlpack
from interop.testing._conformance.capsule import managed
from tests.testing import lying_libraries

_HERE = lying_libraries.__name__

#: Each lie of a producer, and the checks that find it.
PRODUCERS = {
    "OtherDevice": {"device"},
    "NoKeywords": {"keywords"},
    "AlwaysVersioned": {"capsules for old consumers", "versions before 1"},
    "OtherShape": {"numbers"},
    "OtherDtype": {"dtypes"},
    "ForgetsOffset": {"numbers"},
    "NoStrides": {"strides"},
    "SharesCopies": {"copies"},
    "FlagsNoCopy": {"copies"},
    "AlwaysCopies": {"no copies"},
    "AnyDevice": {"to an unknown device"},
    "AnyStream": {"streams on the host"},
    "Writable": {"read only"},
    "Leaks": {"unused capsules let go", "used capsules let go"},
    "Forgets": {"memory outlives the array"},
    "TypeErrors": {"errors"},
}
#: Each lie of a consumer, and the checks that find it.
CONSUMERS = {
    "ignores_offset": {"byte offset"},
    "ignores_strides": {"numbers", "broadcast"},
    "asks_as_of_old": {"asks for version 1"},
    "keeps_the_name": {"lifetime"},
    "deletes_early": {"lifetime"},
    "deletes_twice": {"lifetime"},
    "never_deletes": {"lifetime"},
    "takes_everything": {"later major versions", "refused capsules", "foreign devices"},
    "writes_to_read_only": {"read only"},
    "hides_errors": {"errors of producers"},
    "raises_type_errors": {"objects without dlpack"},
    "shares_copies": {"copy keyword"},
    "leaks_what_it_refuses": {"refused capsules"},
    "shares_copies_of_aligned": {"copy keyword"},
    "has_no_copy": {"copy keyword"},
    "knows_new_producers_alone": {"old producers"},
}
#: What the honest array, which is NumPy's in a wrapper, does not do as recommended.
NUMPY = {"no address without elements"}


def _found(report: Report, role: str) -> set[str]:
    """Return the checks of a role that found something, a refusal of the everyday case included."""
    findings = (finding for finding in report.findings if finding.conversion == role)
    checks = [(*finding.check[:-1].split(" ("), finding.outcome) for finding in findings]
    faults = ("failed", "not as recommended")
    found = {name for name, _, outcome in checks if outcome in faults}
    return found | {name for name, *facts in checks if facts == ["one block", "refused"]}


def test_what_a_capsule_manages_lives_while_it_is_read() -> None:
    """A structure, or a part of it, keeps the capsule whose end would free it."""
    array = np.ones((2, 3))
    count = sys.getrefcount(array)
    tensor = managed(array.__dlpack__()).tensor
    assert sys.getrefcount(array) == count + 1
    assert tensor.ndim == 2
    del tensor
    assert sys.getrefcount(array) == count


@pytest.mark.slow
@pytest.mark.parametrize("name", PRODUCERS)
def test_a_fault_of_a_producer_is_found(name: str) -> None:
    """A producer with one fault is told by the check of that fault."""
    report = check_dlpack(_HERE, make=f"{_HERE}:{name}", from_dlpack=f"{_HERE}:honest")
    assert PRODUCERS[name] <= _found(report, "producer")
    assert not _found(report, "consumer")


@pytest.mark.slow
@pytest.mark.parametrize("name", CONSUMERS)
def test_a_fault_of_a_consumer_is_found(name: str) -> None:
    """A consumer with one fault is told by the check of that fault."""
    report = check_dlpack(_HERE, make=f"{_HERE}:Array", from_dlpack=f"{_HERE}:{name}")
    assert CONSUMERS[name] <= _found(report, "consumer")
    assert _found(report, "producer") == NUMPY


def test_an_honest_library_keeps_the_standard() -> None:
    """Of arrays and a consumer that keep the standard nothing is wrong, and most is tried."""
    make, consumer = lying_libraries.Array, f"{_HERE}:honest"
    report = check_dlpack(lying_libraries, make=make, from_dlpack=consumer)
    assert report.ok
    assert not report.failed
    assert _found(report, "producer") == NUMPY
    assert _found(report, "consumer") == set()
    assert len(report.of("passed")) > 100
    document = report.as_dict()
    assert document["ok"]
    assert sum(document["counts"].values()) == len(document["findings"]) == len(report.findings)
    assert report.as_markdown().count("\n| ") == len(report.findings) - len(report.of("passed")) + 2


def test_what_another_process_cannot_find_is_refused() -> None:
    """What no other process could import is refused, and the error says what to name."""
    with pytest.raises(ValueError, match="is not held by a module"):
        check_dlpack("numpy", make=lambda array: array)
    with pytest.raises(ValueError, match="name the module of a library"):
        check_dlpack()
    array: Any = lying_libraries.Array(np.ones(3))
    with pytest.raises(ValueError, match=f"Array is no library; name its module .'{_HERE}'"):
        check_dlpack(array)


#: A library as its author has it: not installed, without a version, and with two faults.
NEW = """
import numpy as np

class Matrix:
    def __init__(self, array): self.array = array
    def __dlpack__(self, **keywords): return self.array.__dlpack__(**keywords)
    def __dlpack_device__(self): return 1, 0

def asarray(array): return Matrix(np.asarray(array) + 1)
def from_dlpack(producer): return np.from_dlpack(producer)
"""


def test_a_library_that_is_being_written_is_checked_where_it_stands(tmp_path: Path) -> None:
    """The command finds a module in its folder, and says each fault once, with its cases."""
    (tmp_path / "matrices.py").write_text(NEW)
    command = [sys.executable, "-P", "-m", "interop", "check", "matrices", "--dlpack"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    lines = run.stdout.splitlines()
    assert run.returncode == 1, run.stderr
    assert re.match(r"matrices: \d+ passed, \d+ failed, ", lines[0])
    faults = [line for line in lines if line.startswith("FAILED ")]
    assert faults[-1].startswith("FAILED copy keyword (one block) of consumer: it does not know")
    assert any(re.match(r"FAILED numbers \(int8\), .* and 5 more of producer", f) for f in faults)
    assert len(faults) == len({fault.partition("er: ")[2] for fault in faults})


def test_a_library_is_named_by_what_makes_its_arrays() -> None:
    """Without a module the library is that of `make`, which may be a class."""
    report = check_dlpack(make=lying_libraries.Array, from_dlpack=f"{_HERE}:honest")
    assert (report.subject.split()[0], report.ok) == (_HERE, True)


def test_a_library_that_ends_the_process_is_reported() -> None:
    """A consumer that crashes is a finding, and the checks after it are tried all the same."""
    crash = check_dlpack("numpy", make=f"{_HERE}:Array", from_dlpack=f"{_HERE}:crashes")
    assert {finding.conversion for finding in crash.failed} == {"consumer"}
    assert "the process died of SIGABRT" in str(crash)
    assert not crash.ok
