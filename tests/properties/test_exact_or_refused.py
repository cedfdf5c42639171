"""Any array and any request: the result is exact, or the request is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import interop
from interop._execution.trace import shares_memory
from interop._model.dtype import preserves
from tests.inside import forget

from .effort import cases

#: An instance in which nothing is planned yet.
FRESH = interop.Interop()

DTYPES = "bool int8 uint8 int16 int32 int64 float16 float32 float64 complex64 complex128".split()


@st.composite
def arrays(draw: st.DrawFn) -> np.ndarray:
    """Draw an array of any dtype, shape, byte order and strides."""
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    if draw(st.booleans()):
        dtype = dtype.newbyteorder()
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
    array = draw(hnp.arrays(dtype, shape))
    if array.ndim:
        array = array[draw(hnp.basic_indices(array.shape, allow_ellipsis=True))]
        array = np.asarray(array).transpose(draw(st.permutations(range(np.ndim(array)))))
    if draw(st.booleans()):
        array = array.view()
        array.flags.writeable = False
    return array


requests = st.fixed_dictionaries(
    {"to": st.sampled_from(["numpy", "torch", ["torch", "numpy"]])},
    optional={
        "dtype": st.sampled_from(DTYPES),
        "copy": st.sampled_from([True, False, None]),
        "forbid": st.sampled_from(["copy", "detach", "alias_immutable"]),
        "allow": st.sampled_from(["narrow", "share_readonly"]),
    },
)


def _numbers(value: Any) -> np.ndarray:
    return value.numpy() if isinstance(value, torch.Tensor) else value


def _cast(array: np.ndarray, dtype: str) -> np.ndarray:
    """Return what a cast gives; asking for a real dtype is asking for the real parts."""
    real = array.dtype.kind == "c" and not dtype.startswith("complex") and dtype != "bool"
    with np.errstate(all="ignore"):
        return (array.real if real else array).astype(dtype)


def _defined(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Tell of which elements a cast is defined: no integer is NaN or beyond its range."""
    if array.dtype.kind not in "fc" or dtype.kind not in "iu":
        return np.ones(array.shape, bool)
    real = array.real.astype("float64")
    return (real > np.iinfo(dtype).min) & (real < np.iinfo(dtype).max)


@cases(200)
@given(arrays(), requests)
def test_exact_or_refused(array: np.ndarray, request: dict[str, Any]) -> None:
    """The numbers are those that a cast by NumPy gives, or the request is refused."""
    before = array.copy()
    try:
        result = interop.convert(array, **request)
    except interop.errors.RefusedError as refusal:
        assert refusal.effects or "copy" in request or "forbid" in request  # noqa: PT017
        return
    expected = _cast(before, request["dtype"]) if "dtype" in request else before
    defined = _defined(before, expected.dtype)
    numbers = _numbers(result)[defined]
    # torch rounds float64 to float16 by way of float32.
    tolerance = 2**-10 if expected.dtype == np.float16 else 0
    np.testing.assert_allclose(numbers, expected[defined], rtol=tolerance, atol=tolerance / 16384)
    assert numbers.dtype.name == expected.dtype.name
    np.testing.assert_array_equal(array, before)
    shared = shares_memory(interop.default._registry, array, result)
    if request.get("copy") is False and array.size:
        assert shared
    if request.get("copy") is True:
        assert not shared
        assert "readonly" not in interop.spec(result).traits
    if "dtype" not in request:
        assert preserves(interop.spec(array).dtype, interop.spec(result).dtype)


@cases(100)
@given(arrays(), requests)
def test_the_plan_is_what_happens(array: np.ndarray, request: dict[str, Any]) -> None:
    """Planned anew the route is the same, and the result shares memory exactly as the route says."""
    try:
        route = interop.plan(array, **request)
    except interop.errors.RefusedError:
        with pytest.raises(interop.errors.RefusedError):
            interop.convert(array, **request)
        return
    forget(FRESH)
    again = FRESH.plan(array, **request)
    assert [s.label for s in again.steps] == [s.label for s in route.steps]
    result = route(array)
    spec = interop.spec(result)
    assert (spec.format, spec.dtype) == (route.result.format, route.result.dtype)
    if array.size:
        assert shares_memory(interop.default._registry, array, result) == route.aliases
