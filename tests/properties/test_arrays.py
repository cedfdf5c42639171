"""Random requests between all installed formats: every bit arrives as planned, or a refusal."""

from __future__ import annotations

from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import note

import interop
from interop._execution.trace import shares_memory
from interop.errors import Declined, RefusedError
from tests.properties.outcomes import outcomes_of
from tests.properties.readers import DECLARED, FRAMEWORKS, calm, dtype_of, read, same

pytestmark = pytest.mark.slow

__all__ = ["calm"]  # a fixture

DTYPES = (
    "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 bfloat16 float32 float64 "
    "complex64 complex128 float8_e4m3fn float8_e5m2 float8_e4m3b11fnuz float8_e3m4 float8_e8m0fnu "
    "float6_e2m3fn float4_e2m1fn int4 uint2 longdouble"
).split()
#: Those of which some bits of an element mean nothing, and the bits that do.
BITS = {"float6_e2m3fn": 6, "float4_e2m1fn": 4, "int4": 4, "uint2": 2}
#: Where zeros are not stored, so that they may lose their signs.
SPARSE = ("scipy.", "sparse", "jax.bc", "torch.", "cupy.", "tensorflow.", "quantized", "torchao")

#: Types of C's beside those that NumPy prefers for their width: equal dtypes of other type numbers.
TWINS = {"int64": np.longlong, "uint64": np.ulonglong}


def array(rng: Random, source: str) -> np.ndarray:
    """Return an array of any dtype, shape and strides, of bits at random and of extremes."""
    format_ = DECLARED[source]
    dtype = dtype_of(rng.choice(sorted(format_.dtypes & set(DTYPES)) or DTYPES))
    ndim = rng.choice(sorted((format_.ndims or frozenset(range(4))) & set(range(5))))
    shape = tuple(rng.choice((0, 1, 1, 2, 3, 4)) for _ in range(ndim))
    size = int(np.prod(shape, initial=1))
    flat: np.ndarray = np.frombuffer(rng.randbytes(size * dtype.itemsize), dtype).copy()
    if dtype.kind == "b":
        flat = np.frombuffer(rng.randbytes(size), "u1") < 128
    elif dtype.name in BITS:
        codes = np.frombuffer(rng.randbytes(size), "u1") >> 8 - BITS[dtype.name]
        signed = dtype.name.startswith("int")
        flat = (((codes ^ 8) - 8) if signed else codes).view(dtype)  # the sign fills the byte
    elif dtype.char == "g":
        flat = np.array([rng.gauss(0, 1e300) for _ in range(size)], dtype)
    for place in range(size if dtype.name not in BITS else 0):
        if rng.random() < 0.4:
            flat[place] = rng.choice(_extremes(dtype))
    if dtype.name in TWINS and rng.random() < 0.2:
        flat = flat.view(TWINS[dtype.name])
    result = flat.reshape(shape)
    if rng.random() < 0.3 and result.ndim:
        result = result.transpose(rng.sample(range(result.ndim), result.ndim))
    if rng.random() < 0.2 and result.ndim:
        result = result[:: rng.choice((-1, 2, -2))]
    if rng.random() < 0.1 and result.ndim and dtype.kind in "fiuc":
        result = result.astype(dtype.newbyteorder())
    if rng.random() < 0.2:
        result = result.view()
        result.flags.writeable = False
    return result


def _extremes(dtype: np.dtype) -> list[Any]:
    if dtype.kind == "b":
        return [True, False]
    if dtype.kind in "iu":
        return [0, 1, np.iinfo(dtype).max, np.iinfo(dtype).min]
    if dtype.char == "g":
        return [0.0, -0.0, float("nan"), float("inf"), 1.5]
    info = ml_dtypes.finfo(dtype)
    if dtype.name == "float8_e8m0fnu":
        return [float("nan"), float(info.max), 1.0]
    numbers = [0.0, -0.0, float("nan"), float(info.max), float(info.smallest_subnormal), 1.0]
    if dtype.isbuiltin == 1:  # of the others not all have infinities
        numbers.append(float("inf"))
    if dtype.kind == "c":
        numbers += [complex(float(info.max), -0.0), complex(0.0, float("inf"))]
        numbers += [complex(float("inf"), 1.0), complex(-0.0, float("nan"))]
    return numbers


def cast(array: np.ndarray, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Return an array cast by NumPy, and of which elements the cast is defined."""
    target = dtype_of(dtype)
    if array.dtype.kind == "c" and target.kind not in "cb":
        array = array.real
    with np.errstate(all="ignore"):
        wide = np.asarray(array.real, "longdouble")
        if array.dtype.isbuiltin != 1 and target.isbuiltin != 1 and array.dtype != target:
            array = array.astype("f4")  # some of ml_dtypes have no cast to others
        result = array.astype(target)
    if "int" not in dtype:
        return result, np.ones(array.shape, bool)
    limits = ml_dtypes.iinfo(target) if target.isbuiltin != 1 else np.iinfo(target)
    return result, (wide > float(limits.min) - 1) & (wide < float(limits.max))


def check(rng: Random, source: str, target: str) -> str:
    """Convert one array from a format to another, and tell what has become of it."""
    drawn = array(rng, source)
    before = drawn.copy()
    facts = drawn.dtype, drawn.shape, drawn.strides
    note(f"{source} → {target}: {facts}\n{drawn!r}")
    zeros = any(name.removeprefix("dask.").startswith(SPARSE) for name in (source, target))
    try:
        value = interop.convert(drawn, to=source)
    except RefusedError:
        return "no value"
    numbers = read(value).copy()
    assert same(numbers, before, zeros=zeros), f"numpy → {source}: {numbers!r}"
    request = {"to": target, "copy": rng.choice((None, None, True, False))}
    if rng.random() < 0.3:
        request["dtype"] = rng.choice(DTYPES)
    note(f"{request}")
    try:
        route = interop.plan(value, **request)
    except RefusedError:
        with pytest.raises(RefusedError):
            interop.convert(value, **request)
        return "refused"
    try:
        result = interop.convert(value, **request)
    except RefusedError as refusal:
        by_a_step = isinstance(refusal.__cause__, Declined) or hasattr(refusal, "__notes__")
        if not by_a_step:
            raise
        return "declined"  # the step found out from the numbers what no spec tells
    assert drawn.tobytes() == before.tobytes()
    assert repr(read(value)) == repr(numbers), "the source has changed"
    expected = numbers
    numbers_after = read(result)
    if "dtype" in request:
        expected, defined = cast(numbers if numbers.dtype != object else before, request["dtype"])
        if numbers_after.dtype != object and numbers_after.shape == expected.shape:
            expected, numbers_after = expected[defined], numbers_after[defined]
        elif not defined.all():
            return "undefined"
    assert same(numbers_after, expected, zeros=zeros), f"{expected!r} became {numbers_after!r}"
    check_plan(route, value, result)
    return "right"


def check_plan(route: interop.Route, value: Any, result: Any) -> None:
    """Compare a result with what was planned: what it is, and whether it shares memory."""
    planned, actual = route.result, interop.spec(result)
    assert (actual.format, actual.device) == (planned.format, planned.device)
    if planned.format == "python":
        return
    assert actual.shape == planned.shape
    assert actual.dtype == planned.dtype or "unknown_dtype" in actual.traits
    shared = shares_memory(interop.default._registry, value, result)
    # What is made of several arrays may share some of them, and of those some are empty.
    composite = any(spec.nnz is not None or spec.code_dtype for spec in (route.spec, actual))
    if result is not value and actual.size and shared is not None:
        assert shared == route.aliases or (composite and not shared)
    assert route.request.copy is not True or "readonly" not in actual.traits


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_bit_arrives_or_an_error(framework: str) -> None:
    """Every conversion from a framework is exact or refused, and leaves its source as it was."""
    assert "right" in outcomes_of(framework, check) or framework in ("torchao", "quantized")
