"""JAX's options that change what code of others computes."""

from __future__ import annotations

from typing import Any

_OPTIONS = ("jax_enable_x64", "jax_default_device", "jax_default_matmul_precision")


def read() -> dict[str, Any]:
    """Return the options by name."""
    import jax

    return {name: getattr(jax.config, name) for name in _OPTIONS}


def put_back(settings: dict[str, Any]) -> None:
    """Set the options to what `read` has returned."""
    import jax

    for name, value in settings.items():
        jax.config.update(name, value)  # type: ignore[no-untyped-call]
