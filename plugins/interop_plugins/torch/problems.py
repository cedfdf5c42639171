"""Problems with an installed torch."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from interop.plugin.advanced import Problem


def find() -> Iterable[Problem]:
    """Return what is wrong with torch as it is installed here."""
    return [*_numpy(), *_cuda()]


def _numpy() -> Iterable[Problem]:
    """Report a torch that cannot see NumPy, because it was built for another version."""
    import torch

    try:
        torch.zeros(1, device="cpu").numpy()
    except RuntimeError as error:
        yield Problem(
            f"torch {torch.__version__} cannot hand memory to NumPy: {error}",
            "pip install --upgrade torch numpy",
            ("torch",),
            others=("numpy",),
        )


def _cuda() -> Iterable[Problem]:
    """Report why a torch that was built for CUDA finds no device, if it gives a reason."""
    import torch

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        available = torch.cuda.is_available()
    if not available and caught:
        yield Problem(
            f"torch {torch.__version__} finds no CUDA device: "
            + " ".join(str(caught[0].message).split()),
            "update the NVIDIA driver, or install a torch built for the CUDA version it supports",
            ("torch",),
            devices=frozenset({"cuda"}),
        )
