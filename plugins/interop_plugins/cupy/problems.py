"""Problems that keep CuPy from the device."""

from __future__ import annotations

from collections.abc import Iterable

from interop.plugin.advanced import Problem


def find_problems() -> Iterable[Problem]:
    """Return what keeps CuPy from the device, without which it can make no array."""
    import cupy

    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        problem = f"CuPy {cupy.__version__} cannot reach a device: {error}"
    else:
        problem = "" if count else f"CuPy {cupy.__version__} finds no device."
    fix = "install or update the driver of the device; nvidia-smi says which one is in use"
    return [Problem(problem, fix, ("cupy",))] if problem else []
