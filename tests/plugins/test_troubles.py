"""What the bundled plugins say is wrong with their frameworks."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import cupy
import pytest
import torch

from interop._registry.discovery import troubles


def test_a_torch_without_numpy_says_so(in_subprocess: Callable[..., str]) -> None:
    """Where torch cannot see NumPy, as if built for another, its conversions with it are named."""
    program = """
        import json, sys, warnings
        sys.modules["numpy"] = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of it when it is imported
            import torch
        del sys.modules["numpy"]
        from interop._registry.discovery import troubles
        print(json.dumps([[*one] for one in troubles("array-interop", "torch")]))
    """
    ((problem, fix, formats, others, devices),) = json.loads(in_subprocess(program))
    assert "cannot hand memory to NumPy: Numpy is not available" in problem
    assert fix == "pip install --upgrade torch numpy"
    assert (formats, others, devices) == (["torch"], ["numpy"], None)


def test_a_torch_that_works_says_nothing() -> None:
    """A build for the host alone is not in trouble because there is no device."""
    assert troubles("array-interop", "torch") == []


def test_torchs_reason_for_finding_no_device_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What torch warns of when it looks for a device is the problem, on that device alone."""

    def unavailable() -> bool:
        warnings.warn("The NVIDIA driver on your system\n is too old", stacklevel=1)
        return False

    monkeypatch.setattr(torch.cuda, "is_available", unavailable)
    (found,) = troubles("array-interop", "torch")
    assert found.problem.endswith(
        "finds no CUDA device: The NVIDIA driver on your system is too old"
    )
    assert found.devices == {"cuda"}


@pytest.mark.parametrize("count", [0, 1, None])
def test_cupy_says_why_it_has_no_device(monkeypatch: pytest.MonkeyPatch, count: int | None) -> None:
    """Neither a missing driver nor a machine without a device goes unsaid; one device is enough."""
    runtime: Any = cupy.cuda.runtime

    def counted() -> int:
        if count is None:
            raise runtime.CUDARuntimeError(35)
        return count

    monkeypatch.setattr(runtime, "getDeviceCount", counted)
    found = troubles("array-interop", "cupy")
    assert len(found) == (0 if count else 1)
    for one in found:
        assert one.formats == ("cupy",)
        said = "finds no device" if count == 0 else "cudaErrorInsufficientDriver"
        assert said in one.problem


def test_plugins_without_the_hook_have_nothing_to_say() -> None:
    """Neither have those that there are not."""
    assert troubles("array-interop", "numpy") == []
    assert troubles("array-interop", "nonsense") == []
    assert troubles("nonsense", "torch") == []
