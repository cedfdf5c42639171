"""One law for casts to the narrow floats on the host, whatever the frameworks and the route."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import ml_dtypes  # noqa: F401 - whose dtypes NumPy knows by name from then on
import numpy as np
import pytest
import torch

import interop
from interop.errors import NotInstalledError, RefusedError
from tests.cases import marked

#: Numbers that fit, that round, that overflow, and that some of the dtypes do not have.
_NUMBERS = np.array(
    [
        *(0.0, -0.0, 0.3, -3.0, 1e-9, 448, 449, 463, 464, 465, 480, 1000, -1000, 57344, 7e4),
        *(np.inf, -np.inf, np.nan),
    ],
    "float32",
)
_DTYPES = (
    "bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz float8_e8m0fnu".split()
)


def _same(result: object, expected: np.ndarray) -> bool:
    """Tell whether numbers are the same, the signs of zeros included, and NaN where NaN is."""
    found = interop.convert(result, to="numpy")
    nan = np.isnan(expected.astype("float32"))
    bits = f"u{expected.dtype.itemsize}"
    return (
        found.dtype == expected.dtype
        and (np.isnan(found.astype("float32")) == nan).all()
        and (found.view(bits) == expected.view(bits))[~nan].all()
    )


@pytest.mark.parametrize("dtype", _DTYPES)
@pytest.mark.parametrize("source", ["numpy", "torch", "jax", "python"])
@pytest.mark.parametrize("target", ["numpy", "torch", "jax"])
@pytest.mark.parametrize("repeats", [1, 2**16])
def test_a_cast_follows_ml_dtypes(dtype: str, source: str, target: str, repeats: int) -> None:
    """The numbers are those of NumPy's `astype`, between any two frameworks and at any size."""
    numbers = np.tile(_NUMBERS, 1 if source == "python" else repeats)  # lists are short
    value = interop.convert(numbers, to=source)
    with np.errstate(all="ignore"):
        expected = numbers.astype(dtype)
        assert _same(interop.convert(value, to=target, dtype=dtype), expected)
        if source == "torch":
            tracked = value.detach().clone().requires_grad_()
            assert _same(interop.convert(tracked, to=target, dtype=dtype), expected)
        if target == "torch":
            out = torch.empty(numbers.shape, dtype=getattr(torch, dtype))
            interop.convert(value, out=out)
            assert _same(out, expected)


def test_torch_casts_by_another_law() -> None:
    """What the page says of torch's own casts is so; where it is not, the page has to change."""
    overflow = torch.tensor([465.0, -1000.0, torch.inf]).to(torch.float8_e4m3fn).float()
    assert overflow.tolist() == [448, -448, 448]
    powers = torch.tensor([0.0, -2.0]).to(torch.float8_e8m0fnu).float()
    assert powers.tolist() == [2.0**-127, 2.0]


_IMAGINARY: dict[str, Callable[[], Any]] = {
    "python": lambda: [1j, 0j],
    "numpy": lambda: np.array([1j, 0]),
    "numpy's numbers": lambda: [np.complex64(1j), np.complex64(0)],
    "torch": lambda: torch.tensor([1j, 0]),
    "torch, conjugate": lambda: torch.tensor([1j, 0]).conj(),
}


@pytest.mark.parametrize("source", _IMAGINARY)
def test_an_imaginary_number_is_true(source: str) -> None:
    """A bool tells whether a number is zero, its imaginary part included."""
    for target in ("numpy", "torch", "python"):
        result = interop.convert(_IMAGINARY[source](), to=target, dtype="bool")
        assert list(result) == [True, False], target
    for out in (np.zeros(2, bool), torch.zeros(2, dtype=torch.bool)):
        assert interop.convert(_IMAGINARY[source](), out=out) is out
        assert list(out) == [True, False]


_HOLDERS = ("numpy", "torch", "jax", "tensorflow", "xarray", "dask", "mlx", "onnxruntime", "python")


@pytest.mark.parametrize("target", marked(_HOLDERS))
def test_a_bool_of_any_byte_is_one_or_zero(target: str) -> None:
    """A byte of bools that is neither 0 nor 1 is True, and so 1, in every dtype and library."""
    every_byte, converted = np.arange(256, dtype="uint8"), 0
    for length, dtype in itertools.product((5, 256), (*_DTYPES, "int4", "float16", "int8")):
        read = every_byte[:length]
        expected = (read != 0).astype("int8").astype(dtype)
        for value in (read.view(bool), torch.from_numpy(read).view(torch.bool)):
            try:
                result = interop.convert(value, to=target, dtype=dtype)
            except (RefusedError, NotInstalledError):
                continue
            if target == "python":
                result = np.array(result, dtype)
            assert _same(result, expected), f"{length} bytes to {dtype}"
            converted += 1
    assert converted or target != "numpy"
    for dtype in _DTYPES:
        out = torch.empty(256, dtype=getattr(torch, dtype))
        interop.convert(every_byte.view(bool), out=out)
        assert _same(out, (every_byte != 0).astype(dtype)), dtype
