"""Torch's defaults for the whole process."""

from __future__ import annotations

from typing import Any


def read() -> dict[str, Any]:
    """Return the defaults that change what code of others computes."""
    import torch

    return {
        "default dtype": torch.get_default_dtype(),
        "default device": torch.get_default_device(),
        "grad": torch.is_grad_enabled(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "threads": torch.get_num_threads(),
    }


def put_back(settings: dict[str, Any]) -> None:
    """Set the defaults to what `read` has returned."""
    import torch

    device = settings["default device"]
    torch.set_default_dtype(settings["default dtype"])
    # A default device costs time in every call, even if it is the host.
    torch.set_default_device(None if device.type == "cpu" else device)
    torch.set_grad_enabled(settings["grad"])
    torch.use_deterministic_algorithms(settings["deterministic"])
    torch.set_num_threads(settings["threads"])
