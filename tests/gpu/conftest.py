"""Tests that need a CUDA device: without one they are skipped, and say what was looked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_HERE = Path(__file__).parent


def _torch_finds() -> str:
    """Return "" if torch sees a CUDA device, else why it does not."""
    try:
        import torch
    except ImportError as error:
        return f"torch cannot be imported ({error})"
    if torch.cuda.is_available():
        return ""
    built = torch.version.cuda
    return f"torch {torch.__version__} " + ("sees no device" if built else "is built without CUDA")


def _cupy_finds() -> str:
    """Return "" if CuPy sees a CUDA device, else why it does not."""
    try:
        import cupy
    except ImportError as error:
        return f"CuPy cannot be imported ({error})"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        return f"CuPy {cupy.__version__} sees no device ({error})"
    return "" if count else f"CuPy {cupy.__version__} sees no device"


@cache
def missing() -> str:
    """Return why there is no CUDA device to test with, "" if there is one."""
    with warnings.catch_warnings():
        # What the frameworks warn of when they look for a device is not what is tested here.
        warnings.simplefilter("ignore")
        reasons = [_torch_finds(), _cupy_finds()]
    return "" if "" in reasons else "no CUDA device: " + "; ".join(reasons)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of this folder, and skip them where there is no device."""
    for item in items:
        if _HERE not in item.path.parents:
            continue
        item.add_marker(pytest.mark.gpu)
        # The frameworks' own warnings differ by version; interop's are tested where it runs.
        item.add_marker(pytest.mark.filterwarnings("default"))
        if missing():
            item.add_marker(pytest.mark.skip(reason=missing()))


@pytest.fixture
def torch() -> Any:
    """Return torch, if it sees the device."""
    if _torch_finds():
        pytest.skip(_torch_finds())
    import torch

    return torch


@pytest.fixture
def cupy() -> Any:
    """Return CuPy, if it sees the device."""
    if _cupy_finds():
        pytest.skip(_cupy_finds())
    import cupy

    return cupy


@pytest.fixture
def second_device(cupy: Any) -> str:
    """Return the name of a device that is not the current one."""
    if cupy.cuda.runtime.getDeviceCount() < 2:
        pytest.skip("there is one CUDA device, and this needs two")
    return "cuda:1"


@pytest.fixture
def keep_busy(torch: Any, cupy: Any) -> Callable[[Any], None]:
    """Queue about half a second of work on a torch stream, without waiting for it.

    The kernels that the tests queue behind it are compiled here, which could take longer.
    """
    for dtype in ("float32", "int32"):
        array = cupy.zeros(1 << 22, "float32").astype(dtype)
        array.fill(1)
        int(array.sum()), float(array.min())

    def busy(stream: Any) -> None:
        with torch.cuda.stream(stream):
            torch.cuda._sleep(1_000_000_000)

    return busy
