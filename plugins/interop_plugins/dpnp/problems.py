"""Problems that keep dpnp from a device."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from interop.plugin.advanced import Problem


def find_problems() -> Iterable[Problem]:
    """Return what keeps dpnp from a device, without which it can make no array."""
    import dpctl

    if dpctl.get_devices():
        return []
    problem = f"dpctl {dpctl.__version__} finds no SYCL device"
    # The runtime for processors lies beside Python's libraries, where no loader of OpenCL looks.
    runtime = Path(sys.prefix, "lib", "libintelocl.so")
    if "OCL_ICD_FILENAMES" not in os.environ and runtime.exists():
        return [Problem(problem, f"export OCL_ICD_FILENAMES={runtime}", ("dpnp",))]
    fix = "install the driver of the device; python -m dpctl --full shows what dpctl sees"
    return [Problem(problem, fix, ("dpnp",))]
