"""Memory: how much the host has left."""

from __future__ import annotations

import builtins
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import interop
from interop._execution import memory
from interop.errors import ConversionError, DoesNotFitError
from tests.cases import marked
from tests.processes import python_path
from tests.toys import Box, toy


def test_linux_says_what_is_available(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is what can be had without swapping, caches included: not what is free, nor all there is."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 64 kB\nMemFree: 4 kB\nMemAvailable: 32 kB\nCached: 28 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", str(meminfo))
    assert memory.available_memory() == 32 * 1024


def test_available_memory_is_plausible() -> None:
    """More than nothing is available here, and less than an exabyte."""
    available = memory.available_memory()
    assert available is None or 2**20 < available < 2**60


def test_without_meminfo_sysconf_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Systems other than Linux are asked through POSIX; where that is missing, nothing is known."""
    real = builtins.open

    def no_meminfo(path: Any, *args: Any, **keywords: Any) -> Any:
        if path == "/proc/meminfo":
            raise FileNotFoundError(path)
        return real(path, *args, **keywords)

    monkeypatch.setattr(builtins, "open", no_meminfo)
    monkeypatch.setattr(memory.os, "sysconf", {"SC_AVPHYS_PAGES": 10, "SC_PAGE_SIZE": 4096}.get)
    assert memory.available_memory() == 40960
    monkeypatch.delattr(memory.os, "sysconf")
    assert memory.available_memory() is None


#: What asks a framework for far more memory than any machine has.
TOO_MUCH = {
    "jax": lambda jax: jax.numpy.zeros(2**45, "uint8"),
    "numpy": lambda numpy: numpy.empty(2**58, "uint8"),
    "onnxruntime": lambda ort: ort.OrtValue.ortvalue_from_shape_and_type([2**45], "u1", "cpu"),
    "pyarrow": lambda pyarrow: pyarrow.allocate_buffer(2**58),
    "tensorflow": lambda tensorflow: tensorflow.zeros([2**20, 2**25], "uint8"),
    "torch": lambda torch: torch.empty(2**58, dtype=torch.uint8),
}


def _failing(empty: interop.Interop, step: Callable[[Box], Box]) -> Exception:
    empty.register(toy("a"), toy("b"), interop.Conversion("a", "b", step))
    with pytest.raises((ConversionError, MemoryError)) as caught:
        empty.convert(Box("a", [1.0]), to="b")
    return caught.value


@pytest.mark.slow
@pytest.mark.parametrize("framework", marked(TOO_MUCH))
def test_a_framework_without_memory_is_a_memory_error(
    framework: str, empty: interop.Interop
) -> None:
    """Whatever a framework raises that runs out of memory arrives as a MemoryError."""
    library = pytest.importorskip(framework)
    error = _failing(empty, lambda box: TOO_MUCH[framework](library))
    assert isinstance(error, MemoryError)


def test_other_errors_are_not_taken_for_a_want_of_memory(empty: interop.Interop) -> None:
    """Only words that say so do."""

    def step(box: Box) -> Box:
        msg = "cannot share memory"
        raise RuntimeError(msg)

    error = _failing(empty, step)
    assert isinstance(error, ConversionError)
    assert not isinstance(error, DoesNotFitError)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["lists", "arrays"])
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit is Linux's")
def test_under_a_limit_of_the_system_all_that_does_not_fit_is_told_so(kind: str) -> None:
    """Lists and arrays, cold calls and warm ones, raise DoesNotFitError and never a bare MemoryError."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.properties.shortage", kind],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": python_path()},
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    raised = json.loads(result.stdout)
    assert len(raised) >= 10
    assert {name: kind for name, kind in raised.items() if kind != "DoesNotFitError"} == {}


#: Converts a tree of arrays twice, without and with `consume`; prints peaks over the tree's bytes.
TREE_PROGRAM = """
    import json
    import numpy as np
    import interop

    def status(key):
        lines = open("/proc/self/status").read().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))

    leaf, count = 2**26, 6

    def peak(**keywords):
        before = status("VmRSS")
        tree = {"layers": [np.ones(leaf // 4, 'f4') for _ in range(count)]}
        open("/proc/self/clear_refs", "w").write("5")
        result = interop.convert_tree(tree, to="numpy", copy=True, **keywords)
        assert [array.sum() for array in result["layers"]] == [leaf // 4] * count
        return (status("VmHWM") - before) / (leaf * count)

    interop.convert(np.ones(2**20), to="numpy", copy=True)
    print(json.dumps([peak(), peak(consume=True)]))
"""


@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="only Linux resets the peak of memory"
)
def test_a_consumed_tree_takes_its_own_memory_and_a_leaf(
    in_subprocess: Callable[[str], str],
) -> None:
    """With `consume` a tree that is copied takes a leaf beside its own bytes, and not twice those.

    So a tree of half the memory has room, and some to spare.
    """
    kept, consumed = json.loads(in_subprocess(TREE_PROGRAM))
    assert 1.9 < kept < 2.15
    assert 1.05 < consumed < 1.3
