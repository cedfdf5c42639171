"""The machine: the facts that are needed to read a time that was measured on it."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

__all__ = ["cupy_finds", "device", "machine", "torch_finds"]

_PACKAGES = [
    *("array-interop", "numpy", "ml_dtypes", "scipy", "torch", "cupy-cuda13x"),
    *("autoray", "keras", "eagerpy", "array-api-compat", "scikit-learn"),
    *("sparseconverter", "sparse", "jax"),
]


def machine() -> dict[str, str]:
    """Return the facts about this machine and its software, by name."""
    return {
        "processor": f"{_processor()}, {_cores()} cores",
        "memory": _memory(),
        "huge pages": _huge_pages(),
        "CUDA device": device(),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "packages": ", ".join(_versions()),
    }


def device() -> str:
    """Return the name of the CUDA device that torch sees, or "none"."""
    try:
        import torch
    except ImportError:
        return "none"
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "none"


def torch_finds() -> str:
    """Return "" if torch sees a CUDA device, else why it does not."""
    try:
        import torch
    except ImportError as error:
        return f"torch cannot be imported ({error})"
    if torch.cuda.is_available():
        return ""
    built = torch.version.cuda
    return f"torch {torch.__version__} " + ("sees no device" if built else "is built without CUDA")


def cupy_finds() -> str:
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


def _versions() -> list[str]:
    lines = []
    for name in _PACKAGES:
        try:
            lines.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return lines


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    for line in _lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> str:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemTotal"):
            return f"{int(line.split()[1]) / 2**20:.0f} GiB"
    return "unknown"


def _huge_pages() -> str:
    for line in _lines("/sys/kernel/mm/transparent_hugepage/enabled"):
        return line.partition("[")[2].partition("]")[0]
    return "unknown"


def _lines(file: str) -> list[str]:
    path = Path(file)
    return path.read_text().splitlines() if path.exists() else []
