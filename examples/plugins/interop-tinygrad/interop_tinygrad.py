"""tinygrad's tensors, which are computed when their numbers are asked for."""

from __future__ import annotations

from typing import Any

from interop.kit import INTEGERS, REALS
from interop.plugin import (
    Conversion,
    Cost,
    Declaration,
    Format,
    Spec,
    hookimpl,
    make_spec,
)

INTEROP_API = 1  # the version of interop.plugin that this was written for

#: The names of tinygrad's dtypes, by NumPy's and ml_dtypes'.
NAMES = {
    **{name: name for name in INTEGERS | REALS | {"bool", "bfloat16"}},
    "float8_e4m3fn": "fp8e4m3",
    "float8_e5m2": "fp8e5m2",
    "float8_e4m3fnuz": "fp8e4m3fnuz",
    "float8_e5m2fnuz": "fp8e5m2fnuz",
}
_HOST = {"CPU", "PYTHON", "NPY", "None"}  # a constant has no device


def describe(value: Any) -> Spec:
    """Return the spec of a tensor, without computing it."""
    from tinygrad import dtypes

    dtype = _dtype(value)
    name = next(name for name, own in NAMES.items() if getattr(dtypes, own) == dtype)
    kinds = {str(device).partition(":")[0] for device in _devices(value)}
    device = "cpu" if kinds <= _HOST else "+".join(sorted(kinds)).lower()
    return make_spec("tinygrad", name, device=device, shape=tuple(value.shape))


def _dtype(value: Any) -> Any:
    """Return the dtype of a tensor, or the one that a constant gets where nothing else tells."""
    from tinygrad.dtype import strong_dtype

    return strong_dtype(value.dtype)


def _devices(value: Any) -> tuple[Any, ...]:
    return value.device if isinstance(value.device, tuple) else (value.device,)


def to_numpy(value: Any) -> Any:
    """Return a NumPy array with a copy of the numbers, which are computed now."""
    import ml_dtypes  # noqa: F401 - NumPy knows bfloat16 by it
    import numpy as np
    from tinygrad import Device

    spec = describe(value)
    if 0 in spec.shape:
        return np.empty(spec.shape, spec.dtype)
    result = value.cast(_dtype(value)).contiguous()
    first, *others = _devices(value)
    if first is None or others:  # there is no buffer, or there are several
        result = result.clone(first or Device.DEFAULT)
    # The method `numpy` makes float32 of bfloat16.
    numbers = result.realize().uop.buffer.as_memoryview()
    return np.frombuffer(numbers, spec.dtype).reshape(spec.shape)


def from_numpy(value: Any) -> Any:
    """Return a tensor with a copy of the numbers."""
    from tinygrad import Tensor, dtypes

    if value.dtype.isbuiltin == 1:
        flat = Tensor(value.reshape(-1))
    else:  # one of ml_dtypes', which no buffer of Python's can have
        flat = Tensor(value.tobytes(), dtype=getattr(dtypes, NAMES[value.dtype.name]))
    return flat.reshape(value.shape).realize()  # before the caller changes the array


@hookimpl
def interop_declarations() -> list[Declaration]:
    """Return the format, and the ways to NumPy and back, from where all others go on."""
    return [
        Format(
            "tinygrad",
            types=("tinygrad.tensor:Tensor",),
            describe=describe,
            dtypes=set(NAMES),
            lazy=True,
            requires="tinygrad",
            install="pip install tinygrad",
        ),
        Conversion("tinygrad", "numpy", to_numpy, effects={"copy"}, cost=Cost(2e-4, 8e9)),
        Conversion("numpy", "tinygrad", from_numpy, effects={"copy"}, cost=Cost(1e-3, 8e9)),
    ]
