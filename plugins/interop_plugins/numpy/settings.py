"""NumPy's settings for the whole thread: what it does about numbers that do not fit."""

from __future__ import annotations

from typing import Any


def read() -> dict[str, Any]:
    """Return what becomes of errors in floating point, by kind."""
    import numpy as np

    return {**np.geterr()}


def put_back(settings: dict[str, Any]) -> None:
    """Set what `read` has returned."""
    import numpy as np

    np.seterr(**settings)
