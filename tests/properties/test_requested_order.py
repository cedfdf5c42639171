"""The order of elements that callers ask for, for every dense target and many layouts.

The array that NumPy's `asarray` gives for the same ``order=`` says what is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr

import interop
from interop.errors import RefusedError
from tests.cases import together
from tests.plugins.test_dlpack import Producer

pa = pytest.importorskip("pyarrow")

ORDERS = ("C", "F")


def _cube() -> np.ndarray:
    return np.arange(24.0).reshape(2, 3, 4)


#: Arrays by their layouts.
LAYOUTS: dict[str, Callable[[], np.ndarray]] = {
    "C": _cube,
    "F": lambda: np.asfortranarray(_cube()),
    "channels last": lambda: np.ascontiguousarray(_cube().transpose(1, 2, 0)).transpose(2, 0, 1),
    "with gaps": lambda: _cube()[:, :2, ::2],
    "F with gaps": lambda: np.asfortranarray(_cube())[:, :2],
    "repeated": lambda: _cube()[:1].repeat(2, 0).transpose(0, 2, 1),
    "vector": lambda: _cube()[0, 0],
    "vector with gaps": lambda: _cube()[0, 0, ::2],
    "row": lambda: _cube()[0, :1],
    "column": lambda: np.ascontiguousarray(_cube()[0, :, :1]),
    "column of a table": lambda: _cube()[0, :, :1],
    "scalar": lambda: np.array(3.0),
    "empty": lambda: _cube()[:0],
    "empty in F": lambda: np.asfortranarray(_cube())[:, :0],
}

#: Values over the memory of an array, and arrays over the memory of a result.
SOURCES: dict[str, Callable[[np.ndarray], Any]] = {
    "numpy": lambda array: array,
    "torch": torch.from_numpy,
    "pyarrow.tensor": pa.Tensor.from_numpy,
    "numpy.ma": lambda array: np.ma.MaskedArray(array, copy=False),
    "xarray.variable": lambda array: xr.Variable([f"x{n}" for n in range(array.ndim)], array),
    "dlpack": Producer,
}
TARGETS: dict[str, Callable[[Any], np.ndarray]] = {
    "numpy": lambda result: result,
    "torch": torch.Tensor.numpy,
    "pyarrow.tensor": lambda result: result.to_numpy(),
    "numpy.ma": lambda result: result.data,
    "xarray.variable": lambda result: result.data,
}


def _lies(array: np.ndarray, order: str) -> bool:
    return bool(array.flags.c_contiguous if order == "C" else array.flags.f_contiguous)


def _cases() -> Iterator[tuple[str, str, str, str]]:
    return product(SOURCES, LAYOUTS, TARGETS, ORDERS)


@together("source, layout, target, order", _cases())
def test_results_lie_as_asked_and_are_copied_only_if_they_did_not(
    source: str, layout: str, target: str, order: Any
) -> None:
    """A result lies in the order; it shares memory exactly if what lies as it may does so."""
    array = LAYOUTS[layout]()
    value, read = SOURCES[source](array), TARGETS[target]
    free = read(interop.convert(value, to=target))
    result = interop.convert(value, to=target, order=order)
    lying = read(result)
    assert _lies(lying, order)
    assert interop.spec(result).format == target
    assert (lying.shape, lying.dtype) == (array.shape, array.dtype)
    np.testing.assert_array_equal(lying, np.asarray(array, order=order))
    shares = np.shares_memory(free, array) and _lies(free, order)
    assert np.shares_memory(lying, array) == shares
    plan = interop.plan(value, to=target, order=order)
    assert plan.aliases == (shares or not array.size)
    assert ("copy" in plan.effects) == (not plan.aliases)
    assert interop.spec(result).traits == plan.result.traits


@together("source, layout, target, order", _cases())
def test_copy_false_permits_what_lies_as_asked(
    source: str, layout: str, target: str, order: Any
) -> None:
    """``copy=False`` shares what lies in the order, and refuses all else by naming ``order``."""
    array = LAYOUTS[layout]()
    value, read = SOURCES[source](array), TARGETS[target]
    if _lies(read(interop.convert(value, to=target)), order):
        result = read(interop.convert(value, to=target, order=order, copy=False))
        assert np.shares_memory(result, array) or not array.size
    else:
        word = order if array.squeeze().ndim > 1 else "C"  # which is the same there
        with pytest.raises(RefusedError, match=f"leave out order='{word}'"):
            interop.convert(value, to=target, order=order, copy=False)


@together("source, layout, target, order", _cases())
@together("request_", [{"copy": True}, {"dtype": "float32"}])
def test_fresh_memory_lies_as_asked(
    source: str, layout: str, target: str, order: Any, request_: dict[str, Any]
) -> None:
    """``copy=True`` and a cast hold together with ``order=``, and keep the numbers."""
    array = LAYOUTS[layout]()
    value, read = SOURCES[source](array), TARGETS[target]
    result = read(interop.convert(value, to=target, order=order, **request_))
    assert _lies(result, order)
    assert not np.shares_memory(result, array)
    assert result.dtype == request_.get("dtype", "float64")
    np.testing.assert_array_equal(result, array.astype(result.dtype))
