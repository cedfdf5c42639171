"""The types of the functions, for static type checkers: they name what is registered."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import interop
from interop._model.effect import EFFECTS
from interop._model.typing import EffectName
from interop_plugins import signatures


def test_the_signatures_name_every_format() -> None:
    """Whatever names a bundled format in to= stands in the signatures, and nothing else does."""
    registry = interop.default._loaded()
    names: set[str] = set()
    for format_ in registry.formats.values():
        if (
            registry.provenance[format_.name].distribution == "array-interop"
            and not format_.protocol
            and (format_.naming_types or format_.aliases)  # others are sources alone
        ):
            parts = format_.name.split(".")
            names |= {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
            names |= {alias for alias in format_.aliases if ":" not in alias}
    assert set(_strings(signatures.Name)) == names
    text = Path(signatures.__file__).read_text(encoding="utf-8")
    named = {name for name in names if f'"{name}"' in text.split("class Convert")[1]}
    for union in ("Torch", "Dask", "Quantized", "Others"):
        named |= set(_strings(getattr(signatures, union)))
    assert named == names


def _strings(union: Any) -> list[str]:
    """Return the strings of a union of literals."""
    return (
        [union]
        if isinstance(union, str)
        else [s for item in get_args(union) for s in _strings(item)]
    )


def test_the_names_of_effects_are_those_that_there_are() -> None:
    """A type checker knows every effect."""
    assert get_args(EffectName) == tuple(EFFECTS)


def test_the_protocols_of_modules_tell_them_apart() -> None:
    """Of each framework's module the protocols find the type of its dense array, or none."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import torch

    def result(module: ModuleType) -> Any:
        if hasattr(module, "ndarray"):
            return module.ndarray
        if hasattr(module, "Tensor") and hasattr(module, "matmul"):
            return module.Tensor
        return module.Array if hasattr(module, "Array") and hasattr(module, "jit") else None

    for module, type_ in (
        (np, np.ndarray),
        (torch, torch.Tensor),
        (jnp, jax.Array),
        (jax, jax.Array),
    ):
        assert result(module) is type_
        assert isinstance(interop.convert([1.0], to=module, dtype="float32"), type_)
    assert [result(module) for module in (pd, pl, pa)] == [None] * 3
