"""A divided host that JAX's plugin takes for a host and a TPU; for a process of its own.

What the plugin does with arrays on a device is then tried without one. Import it before all else.
"""

from __future__ import annotations

import os
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"

import jax

from interop_plugins.jax import dense, describe

HOST, TPU = jax.devices("cpu")
_DEVICES = {"cpu": HOST, "tpu": TPU, "tpu:0": TPU}


def _device_name(device: Any) -> str:
    return "tpu:0" if device == TPU else "cpu"


describe._device_name = _device_name
dense._device = _DEVICES.__getitem__  # type: ignore[assignment]
