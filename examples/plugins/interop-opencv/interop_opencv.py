"""OpenCV's `UMat`, whose numbers lie where OpenCL wants them; its other arrays are NumPy's."""

from __future__ import annotations

from typing import Any

from interop.kit import INTEGERS, REALS
from interop.plugin import Declaration, Format, Wrapper, hookimpl

INTEROP_API = 1  # the version of interop.plugin that this was written for


def read(value: Any) -> Any:
    """Return a NumPy array with a copy of the numbers."""
    return value.get()


@hookimpl
def interop_declarations() -> list[Declaration]:
    """Return the format of a source: only reading tells what a `UMat` holds."""
    return [
        Format(
            "opencv.umat",
            types=("cv2:UMat",),
            target_types=(),
            dtypes=INTEGERS | REALS | {"bool"},
            wrapper=Wrapper(read, 1e-5, first=lambda value: True),
            requires="cv2",
            install="pip install opencv-python-headless",
        )
    ]
