"""Taichi's ndarrays and fields of numbers, as they are with the architecture `ti.cpu`."""

from __future__ import annotations

from typing import Any

from interop.plugin import (
    Conversion,
    Cost,
    Declaration,
    Declined,
    Format,
    Spec,
    hookimpl,
    make_spec,
)

INTEROP_API = 1  # the version of interop.plugin that this was written for

#: The names of Taichi's dtypes, by NumPy's.
NAMES = {
    "bool": "u1",
    **{
        f"{sign}int{bits}": f"{sign or 'i'}{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
    },
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
}
_DTYPES = {taichi: numpy for numpy, taichi in NAMES.items()}


def describe(value: Any) -> Spec:
    """Return the spec of an ndarray or of a field."""
    name = "taichi.field" if "field" in type(value).__module__ else "taichi"
    return make_spec(name, _DTYPES[str(value.dtype)], shape=tuple(value.shape))


def to_numpy(value: Any) -> Any:
    """Return a NumPy array with a copy of the numbers."""
    return value.to_numpy()


def from_numpy(value: Any) -> Any:
    """Return an ndarray with a copy of the numbers."""
    import taichi as ti

    if 0 in value.shape:
        raise Declined("Taichi has no ndarrays without elements")
    array = ti.ndarray(getattr(ti, NAMES[value.dtype.name]), value.shape)
    array.from_numpy(value)
    return array


@hookimpl
def interop_declarations() -> list[Declaration]:
    """Return the formats, and the ways to NumPy and back, from where all others go on."""
    cost = Cost(latency=1e-4, bandwidth=1e9)
    common = {"describe": describe, "dtypes": set(NAMES), "requires": "taichi"}
    return [
        Format("taichi", types=("taichi.lang._ndarray:ScalarNdarray",), aliases=("ti",), **common),
        Format("taichi.field", types=("taichi.lang.field:ScalarField",), **common),
        Conversion("taichi", "numpy", to_numpy, effects={"copy"}, cost=cost),
        Conversion("taichi.field", "numpy", to_numpy, effects={"copy"}, cost=cost),
        Conversion("numpy", "taichi", from_numpy, effects={"copy"}, cost=cost),
    ]
