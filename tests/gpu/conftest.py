"""Tests that need a CUDA device: without one they are skipped, and say what was looked for."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.machine import cupy_finds, torch_finds

_HERE = Path(__file__).parent


@cache
def missing() -> str:
    """Return why there is no CUDA device to test with, "" if there is one."""
    with warnings.catch_warnings():
        # What the frameworks warn of when they look for a device is not what is tested here.
        warnings.simplefilter("ignore")
        reasons = [torch_finds(), cupy_finds()]
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
    if torch_finds():
        pytest.skip(torch_finds())
    import torch

    return torch


@pytest.fixture
def cupy() -> Any:
    """Return CuPy, if it sees the device."""
    if cupy_finds():
        pytest.skip(cupy_finds())
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
