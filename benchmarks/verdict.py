"""Verdicts: whether a result is right, and whether it shares the value's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse
import torch

__all__ = ["judge", "outcome"]

Array = np.ndarray[Any, Any]


def outcome(call: Callable[[], Any], value: Any, to: str, expected: Array | None) -> str:
    """Return the verdict on the result of a call.

    Parameters
    ----------
    call : callable
        Does the conversion.
    value : object
    to : str
        The target.
    expected : ndarray or None
        The right numbers; None if refusing is right.
    """
    try:
        result = call()
    # It may raise anything: the finding is that it gives no result.
    except Exception:  # noqa: BLE001
        return "refuses"
    return judge(value, result, to, expected)


def judge(value: Any, result: Any, to: str, expected: Array | None) -> str:
    """Return the verdict on a result: ``"shares"`` and ``"copies"`` are right."""
    if expected is None:
        return "loses the mask"
    if not _is(result, to):
        objects = isinstance(result, np.ndarray) and result.dtype == object
        return "an array of objects" if objects else f"gives a {type(result).__name__}"
    numbers, dtype = _numbers(result)
    if numbers.shape != expected.shape or not np.array_equal(_wide(numbers), _wide(expected)):
        return "wrong numbers"
    if dtype != expected.dtype.newbyteorder("=").name:
        return f"as {dtype}"
    if not _overlap(value, result):
        return "copies"
    return "shares read-only" if _read_only(value) and not _read_only(result) else "shares"


def _is(result: Any, to: str) -> bool:
    if to == "numpy":
        return isinstance(result, np.ndarray) and result.dtype != object
    layout = torch.sparse_csr if to == "torch.sparse_csr" else torch.strided
    return isinstance(result, torch.Tensor) and result.layout is layout


def _numbers(result: Any) -> tuple[Array, str]:
    """Return the numbers of a result, and the name of its dtype."""
    if isinstance(result, np.ndarray):
        return result, result.dtype.name
    dense = result.detach().to_dense() if result.layout is not torch.strided else result.detach()
    wide = dense.resolve_conj().resolve_neg()
    if not wide.is_complex():
        wide = wide.double()
    return wide.numpy(), str(result.dtype).removeprefix("torch.")


def _wide(numbers: Array) -> Array:
    return numbers.astype(complex)


def _read_only(value: Any) -> bool:
    return isinstance(value, np.ndarray) and not value.flags.writeable


def _overlap(value: Any, result: Any) -> bool:
    extents = list(_places(result))
    return any(a < d and c < b for a, b in _places(value) for c, d in extents)


def _places(value: Any) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each block of memory that a value lies in."""
    if isinstance(value, np.ndarray):
        yield np.lib.array_utils.byte_bounds(value)
    elif isinstance(value, torch.Tensor):
        if value.layout is torch.sparse_csr:
            yield from _places(value.values())
        else:
            storage = value.untyped_storage()
            yield storage.data_ptr(), storage.data_ptr() + storage.nbytes()
    elif scipy.sparse.issparse(value):
        yield from _places(value.data)
    elif isinstance(value, memoryview):
        yield from _places(np.asarray(value))
    elif hasattr(value, "unsafe_buffer_pointer"):  # JAX's; NumPy does not take all its dtypes
        yield value.unsafe_buffer_pointer(), value.unsafe_buffer_pointer() + value.nbytes
    elif hasattr(value, "__dlpack__"):
        yield from _places(np.from_dlpack(value))
