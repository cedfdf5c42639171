"""Inputs: values that people really have at hand, and the right result of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import scipy.sparse
import torch

__all__ = ["INPUTS", "Input", "make"]

Array = np.ndarray[Any, Any]


class Input(NamedTuple):
    """A value, a target, and the right result.

    Parameters
    ----------
    name : str
    make : callable
        Returns the value.
    to : str
        The target.
    by_hand : str
        The framework's own call for this very value ``x``, as an expert would write it; "" if
        there is none.
    expected : callable or None
        ``expected(value)`` returns the right numbers, read off without any conversion that is
        compared. None if the value cannot be handed over without loss, so that refusing is right.
    """

    name: str
    make: Callable[[], Any]
    to: str
    by_hand: str
    expected: Callable[[Any], Array] | None


class Foreign:
    """An array of an unknown framework that exports DLPack."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def __dlpack__(self, **keywords: Any) -> Any:
        return self._array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()


def _a() -> Array:
    return np.arange(12.0).reshape(3, 4)


def _t() -> torch.Tensor:
    return torch.arange(12.0).reshape(3, 4)


def _z() -> torch.Tensor:
    return torch.complex(_t(), _t() + 1)


def _read_only() -> Array:
    array = _a()
    array.flags.writeable = False
    return array


def _csr() -> scipy.sparse.csr_array:
    return scipy.sparse.csr_array(
        (_a()[0, 1:], np.array([1, 2, 0]), np.array([0, 1, 2, 3])), (3, 4)
    )


def _torch_csr() -> torch.Tensor:
    s = _csr()
    return torch.sparse_csr_tensor(
        torch.from_numpy(s.indptr), torch.from_numpy(s.indices), torch.from_numpy(s.data), (3, 4)
    )


def _numbers(dtype: Any = np.float32) -> Callable[[Any], Array]:
    return lambda x: np.arange(12.0).reshape(3, 4).astype(dtype)


def _same(x: Any) -> Array:
    return np.array(x)


def _dense(x: Any) -> Array:
    array = np.zeros((3, 4))
    array[0, 1], array[1, 2], array[2, 0] = 1, 2, 3
    return array


def _conjugate(x: Any) -> Array:
    values = np.arange(12.0, dtype=np.float32).reshape(3, 4)
    return (values - 1j * (values + 1)).astype(np.complex64)


def _negated(x: Any) -> Array:
    return -(np.arange(12.0, dtype=np.float32).reshape(3, 4) + 1)


_BITS = "x.view(torch.uint16).numpy().view(bfloat16)"
_BITS_BACK = "torch.from_numpy(x.view(np.uint16)).view(torch.bfloat16)"
_CSR = (
    "torch.sparse_csr_tensor(torch.from_numpy(x.indptr), torch.from_numpy(x.indices), "
    "torch.from_numpy(x.data), size=x.shape, check_invariants=False)"
)
_QUANTIZED = "x.dequantize().numpy()"
_BF16 = ml_dtypes.bfloat16

INPUTS = (
    Input("torch", _t, "numpy", "x.numpy()", _numbers()),
    Input(
        "torch, requires grad",
        lambda: _t().requires_grad_(),
        "numpy",
        "x.detach().numpy()",
        _numbers(),
    ),
    Input("torch, transposed", lambda: _t().t(), "numpy", "x.numpy()", lambda x: _numbers()(x).T),
    Input("torch, bfloat16", lambda: _t().bfloat16(), "numpy", _BITS, _numbers(_BF16)),
    Input(
        "torch, lazy conjugate",
        lambda: _z().conj(),
        "numpy",
        "x.resolve_conj().numpy()",
        _conjugate,
    ),
    Input(
        "torch, lazy negation",
        lambda: _z().conj().imag,
        "numpy",
        "x.resolve_neg().numpy()",
        _negated,
    ),
    Input("torch, CSR", _torch_csr, "numpy", "x.to_dense().numpy()", _dense),
    Input(
        "torch, quantized",
        lambda: torch.quantize_per_tensor(_t(), 0.5, 3, torch.quint8),
        "numpy",
        _QUANTIZED,
        _numbers(),
    ),
    Input("scipy CSR", _csr, "numpy", "x.toarray()", _dense),
    Input("exports DLPack", lambda: Foreign(_a()), "numpy", "np.from_dlpack(x)", _numbers(float)),
    Input("nested list", lambda: _a().tolist(), "numpy", "np.array(x)", _same),
    Input("numpy", _a, "torch", "torch.from_numpy(x)", _same),
    Input("numpy, bfloat16", lambda: _a().astype(_BF16), "torch", _BITS_BACK, _same),
    Input("numpy, read-only", _read_only, "torch", "torch.from_numpy(x.copy())", _same),
    Input(
        "numpy, negative strides",
        lambda: _a()[::-1],
        "torch",
        "torch.from_numpy(x.copy())",
        _same,
    ),
    Input(
        "numpy, big-endian",
        lambda: _a().astype(">f8"),
        "torch",
        "torch.from_numpy(x.astype('f8'))",
        lambda x: _a(),
    ),
    Input("numpy, masked", lambda: np.ma.masked_greater(_a(), 5), "torch", "", None),
    Input("scipy CSR", _csr, "torch.sparse_csr", _CSR, _dense),
    Input(
        "exports DLPack", lambda: Foreign(_a()), "torch", "torch.from_dlpack(x)", _numbers(float)
    ),
    Input(
        "memoryview", lambda: memoryview(_a()), "torch", "torch.from_numpy(np.asarray(x))", _same
    ),
)


def make(input_: Input) -> dict[str, Any]:
    """Return an input's value, and the modules that hand-written statements use, by name."""
    return {"x": input_.make(), "np": np, "torch": torch, "bfloat16": _BF16}
