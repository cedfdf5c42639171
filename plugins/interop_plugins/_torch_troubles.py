"""What can be wrong with an installed torch."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from interop.plugin import Problem

__all__ = ["found"]


def found() -> list[Problem]:
    """Return what is wrong here."""
    return [*_numpy(), *_cuda()]


def _numpy() -> Iterable[Problem]:
    """Find out whether torch can see NumPy, which it cannot if it was built for another one."""
    import torch

    try:
        torch.zeros(1).numpy()
    except RuntimeError as error:
        yield Problem(
            f"torch {torch.__version__} cannot hand memory to NumPy: {error}",
            "pip install --upgrade torch numpy",
            ("torch",),
            others=("numpy",),
        )


def _cuda() -> Iterable[Problem]:
    """Find out whether a torch that was built for CUDA says why it has no device."""
    import torch

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        there = torch.cuda.is_available()
    if not there and said:
        yield Problem(
            f"torch {torch.__version__} finds no CUDA device: "
            + " ".join(str(said[0].message).split()),
            "update the NVIDIA driver, or install a torch built for the CUDA version it supports",
            ("torch",),
            devices=frozenset({"cuda"}),
        )
