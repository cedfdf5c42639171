"""Random requests between all installed formats: every bit arrives as planned, or a refusal."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import note

import interop
import interop.plugin
from interop import Interop
from interop._execution.trace import shares_memory
from interop.errors import HandOffError, InteropError, RefusedError, UnknownValueError
from tests.inside import forget
from tests.kit.capsules import bounds
from tests.properties.outcomes import outcomes_of
from tests.properties.readers import DECLARED, FRAMEWORKS, calm, dtype_of, read, same

pytestmark = pytest.mark.slow

__all__ = ["calm"]  # a fixture

_INF, _NAN = float("inf"), float("nan")

#: An instance that has planned nothing yet, as often as its cache is cleared.
COLD = Interop()
#: NumPy has no complex32, and of the bits of a clongdouble some are nobody's.
DTYPES = interop.plugin.DTYPES.keys() - {"complex32", "clongdouble"}
#: Where zeros are not stored, so that they may lose their signs.
SPARSE = ("scipy.", "sparse", "jax.bc", "torch.", "cupy.", "tensorflow.", "quantized", "torchao")
#: Types of C's beside those that NumPy prefers for their width: equal dtypes of other type numbers.
TWINS = {"int64": np.longlong, "uint64": np.ulonglong}


def array(rng: Random, source: str) -> np.ndarray:
    """Return an array of any dtype, shape and strides, of bits at random and of extremes."""
    format_ = DECLARED[source]
    dtype = dtype_of(rng.choice(sorted(format_.dtypes & DTYPES) or sorted(DTYPES)))
    ndim = rng.choice(sorted((format_.ndims or frozenset(range(4))) & set(range(5))))
    # An empty frame forgets its dtype.
    shape = tuple(rng.choice((0, 1, 1, 2, 3, 4)) for _ in range(ndim))
    flat = numbers(rng, dtype, int(np.prod(shape, initial=1)))
    if dtype.name in TWINS and rng.random() < 0.2:
        flat = flat.view(TWINS[dtype.name])
    result = laid_out(rng, flat.reshape(shape))
    if rng.random() < 0.2:
        result = result.view()
        result.flags.writeable = False
    return result


def numbers(rng: Random, dtype: np.dtype, size: int) -> np.ndarray:
    """Return numbers of bits at random, among them zeros of both signs, NaN and extremes."""
    bits = np.frombuffer(rng.randbytes(size * dtype.itemsize), "u1")
    if dtype.kind == "b":
        flat = bits < 128
    elif dtype.char == "g":  # of its bits some mean nothing
        flat = np.array([rng.gauss(0, 1e300) for _ in range(size)], dtype)
    elif dtype.name.strip("uint") in ("1", "2", "4"):
        flat = bits.view("i1").astype(dtype)  # one to a byte, of which it has the lowest bits
    elif dtype.name.startswith(("float4", "float6")):
        flat = (bits & (0x0F if dtype.name.startswith("float4") else 0x3F)).view(dtype)
    else:
        flat = bits.view(dtype).copy()
    for place in range(size):
        if rng.random() < 0.4:
            flat[place] = rng.choice(_extremes(dtype))
    return flat


def laid_out(rng: Random, result: np.ndarray) -> np.ndarray:
    """Return an array of the same dtype with its axes, strides, bytes and address at random."""
    if result.ndim:
        if rng.random() < 0.3:
            result = result.transpose(rng.sample(range(result.ndim), result.ndim))
        if rng.random() < 0.3:
            steps = (slice(None, None, rng.choice((1, 1, -1, 2, -2))) for _ in result.shape)
            result = result[tuple(steps)]
        if rng.random() < 0.1:
            result = np.repeat(result[:1], 1, 0)
            result = np.broadcast_to(result, (3, *result.shape[1:])) if len(result) else result
        if rng.random() < 0.1 and result.dtype.kind in "fiuc" and result.dtype.isbuiltin == 1:
            result = result.astype(result.dtype.newbyteorder())
    if rng.random() < 0.1 and result.size:
        memory = np.zeros(result.nbytes + 1, "u1")[1:].view(result.dtype).reshape(result.shape)
        memory[...] = result
        result = memory
    return result


def another(rng: Random, like: np.ndarray) -> np.ndarray:
    """Return other numbers that lie as those of an array do."""
    low, high = bounds(like)
    start = low % 16  # as far from what every dtype is aligned to
    memory = np.zeros(high - low + 32, "u1")
    start += -memory.ctypes.data % 16
    first = start + like.ctypes.data - low if like.size else start
    other = np.ndarray(like.shape, like.dtype, memory, first, like.strides)
    other[...] = numbers(rng, like.dtype.newbyteorder("="), like.size).reshape(like.shape)
    other.flags.writeable = like.flags.writeable
    return other


def _extremes(dtype: np.dtype) -> list[Any]:
    if dtype.kind == "b":
        return [True, False]
    if dtype.char == "g":
        return [0.0, -0.0, _NAN, _INF, 1.5]
    if interop.plugin.DTYPES[dtype.name].kind in "iu":
        return [0, ml_dtypes.iinfo(dtype).max, ml_dtypes.iinfo(dtype).min]
    info = ml_dtypes.finfo(dtype)
    most, least = float(info.max), float(info.smallest_subnormal)
    if dtype.name == "float8_e8m0fnu":
        return [_NAN, most, least, 1.0]
    extremes = [0.0, -0.0, _NAN, most, least, 1.0]
    if dtype.isbuiltin == 1:  # of the others not all have infinities
        extremes.append(_INF)
    if dtype.kind == "c":
        parts = ((most, -0.0), (0.0, _INF), (_INF, 1.0), (-0.0, _NAN))
        return [*extremes, *(complex(*pair) for pair in parts)]
    return extremes


def attempted(call: Callable[..., Any], *args: Any, **request: Any) -> Any:
    """Return what a call returns, or the refusal; a step that fails or lies is neither."""
    try:
        return call(*args, **request)
    except (RefusedError, HandOffError, UnknownValueError) as refusal:
        return refusal


def made_lazy(rng: Random, value: Any, numbers: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return a tensor, and its numbers, with a conjugation or negation that is not carried out."""
    import torch

    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided:
        return value, numbers
    if value.is_complex() and rng.random() < 0.5:
        value, numbers = value.conj(), numbers.conj()
        if rng.random() < 0.3:
            value, numbers = value.imag, numbers.imag
    if (value.is_complex() or value.dtype in (torch.float32, torch.float64)) and rng.random() < 0.3:
        value, numbers = torch._neg_view(value), -numbers
    return value, numbers


def facts(source: Any, result: Any) -> Any:
    """Return what is to be the same for every value of a class."""
    if isinstance(result, InteropError):
        return type(result)
    spec = interop.spec(result)
    kind = spec.format, spec.dtype, spec.device, result is source
    if spec.nnz is not None:  # how much it stores, and by which indices, depends on the numbers
        return *kind, "uncoalesced" in spec.traits
    # Whether Python's numbers fit in 32 bits depends on them.
    return *kind, spec.traits - {"weak"}, shares_memory(interop.default._registry, source, result)


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
    """Convert arrays from a format to another, and tell what has become of them.

    The first is converted by an instance that knows no plan, the second by one that has planned.
    """
    drawn = array(rng, source)
    zeros = any(name.removeprefix("dask.").startswith(SPARSE) for name in (source, target))
    request: dict[str, Any] = {"to": target, "copy": rng.choice((None, None, True, False))}
    if rng.random() < 0.3:
        request["dtype"] = rng.choice(sorted(DTYPES))
    seed, outcomes = rng.random(), []
    forget(COLD)
    for instance, numbers in ((COLD, drawn), (interop.default, drawn), (COLD, another(rng, drawn))):
        before = numbers.copy()
        note(f"{source} → {request}: {numbers.dtype, numbers.strides}\n{numbers!r}")
        value = attempted(instance.convert, numbers, source)
        if isinstance(value, InteropError):
            return "no value"
        assert same(read(value), before, zeros=zeros), f"numpy → {source}: {read(value)!r}"
        value, expected = made_lazy(Random(seed), value, read(value).copy())
        result = attempted(instance.convert, value, **request)
        route = attempted(instance.plan, value, **request)
        assert numbers.tobytes() == before.tobytes()
        assert same(read(value), expected, zeros=False), "the source has changed"
        # A step may find out from the numbers what no spec tells.
        by_a_step = isinstance(result, RefusedError) and " declined: " in str(result)
        if not isinstance(result, InteropError):
            expected = before if expected.dtype == object else expected
            check_result(value, result, expected, request, zeros=zeros)
            check_plan(route, value, result)
        elif isinstance(route, interop.Plan):
            assert by_a_step or hasattr(result, "__notes__"), result
        if not by_a_step:
            outcomes.append(facts(value, result))
    # Of Python's numbers the dtype is that of the least that holds them.
    assert len(set(outcomes)) <= 1 or "python" in (source, target), outcomes
    return "refused" if isinstance(result, InteropError) else "right"


def check_result(
    value: Any, result: Any, expected: np.ndarray, request: dict[str, Any], *, zeros: bool
) -> None:
    """Hold a result to its source's numbers and to what ``dtype=`` and ``copy=`` promise."""
    actual, copy = read(result), request["copy"]
    if "dtype" in request:
        expected, defined = cast(expected, request["dtype"])
        if actual.dtype != object and actual.shape == expected.shape:
            expected, actual = expected[defined], actual[defined]
    if "dtype" not in request or actual.dtype != object or defined.all():
        assert same(actual, expected, zeros=zeros), f"{expected!r} became {actual!r}"
    shared = shares_memory(interop.default._registry, value, result)
    if copy is True and interop.spec(result).format != "python":  # one True is all Trues
        assert not shared
        assert "readonly" not in interop.spec(result).traits
    stores = expected.size and interop.spec(value).nnz != 0
    if copy is False and stores and shared is not None and result is not value:
        assert shared


def check_plan(route: interop.Plan, value: Any, result: Any) -> None:
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


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_bit_arrives_cold_and_warm_or_an_error(framework: str) -> None:
    """Every conversion from a framework is exact and as planned, or refused, and spares its source."""
    assert "right" in outcomes_of(framework, check) or framework in ("torchao", "quantized")
