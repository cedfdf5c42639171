"""What the bundled plugins report as wrong with their frameworks."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import cupy
import pytest
import torch

from interop._cli.probe import problems


def test_a_torch_without_numpy_says_so(in_subprocess: Callable[..., str]) -> None:
    """If torch cannot use NumPy, as if built for another version, the conversions are named."""
    program = """
        import json, sys, warnings
        sys.modules["numpy"] = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of it when it is imported
            import torch
        del sys.modules["numpy"]
        from interop._cli.probe import problems
        print(json.dumps([[*problem] for problem in problems("array-interop", "torch")]))
    """
    ((problem, fix, formats, others, devices),) = json.loads(in_subprocess(program))
    assert "cannot hand memory to NumPy: Numpy is not available" in problem
    assert fix == "pip install --upgrade torch numpy"
    assert (formats, others, devices) == (["torch"], ["numpy"], None)


def test_a_torch_that_works_says_nothing() -> None:
    """It is not a problem that a build for the host has no device."""
    assert problems("array-interop", "torch") == []


def test_torchs_reason_for_finding_no_device_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What torch warns of when it looks for a device is the problem, and only with that device."""

    def unavailable() -> bool:
        warnings.warn("The NVIDIA driver on your system\n is too old", stacklevel=1)
        return False

    monkeypatch.setattr(torch.cuda, "is_available", unavailable)
    (problem,) = problems("array-interop", "torch")
    assert problem.problem.endswith(
        "finds no CUDA device: The NVIDIA driver on your system is too old"
    )
    assert problem.devices == {"cuda"}


@pytest.mark.parametrize("count", [0, 1, None])
def test_cupy_says_why_it_has_no_device(monkeypatch: pytest.MonkeyPatch, count: int | None) -> None:
    """A missing driver and a machine without a device are reported; one device is enough."""
    runtime: Any = cupy.cuda.runtime

    def counted() -> int:
        if count is None:
            raise runtime.CUDARuntimeError(35)
        return count

    monkeypatch.setattr(runtime, "getDeviceCount", counted)
    reported = problems("array-interop", "cupy")
    assert len(reported) == (0 if count else 1)
    for problem in reported:
        assert problem.formats == ("cupy",)
        reason = "finds no device" if count == 0 else "cudaErrorInsufficientDriver"
        assert reason in problem.problem


def test_plugins_that_declare_none_have_no_problems() -> None:
    """Neither have plugins that do not exist."""
    assert problems("array-interop", "numpy") == []
    assert problems("array-interop", "nonsense") == []
    assert problems("nonsense", "torch") == []
