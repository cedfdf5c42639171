"""Arrays drawn at random, between every pair of installed formats: every bit arrives, or an error."""

from __future__ import annotations

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
from interop.errors import Declined, HandOffError, InteropError, RefusedError, UnknownValueError
from tests.kit.capsules import bounds
from tests.properties.outcomes import outcomes_of
from tests.properties.readers import DECLARED, FRAMEWORKS, calm, dtype_of, read, same

pytestmark = pytest.mark.slow

__all__ = ["calm"]  # a fixture

#: An instance that has planned nothing yet, as often as its cache is cleared.
COLD = Interop()
#: NumPy has no complex32, and of the bits of a longdouble some are nobody's.
DTYPES = interop.plugin.DTYPES.keys() - {"complex32", "longdouble", "clongdouble"}


def array(rng: Random, source: str) -> np.ndarray:
    """Return an array of any dtype, shape and strides, of bits at random and of extremes."""
    format_ = DECLARED[source]
    dtype = dtype_of(rng.choice(sorted(format_.dtypes & DTYPES) or sorted(DTYPES)))
    ndim = rng.choice(sorted((format_.ndims or frozenset(range(4))) & set(range(5))))
    # An empty frame forgets its dtype.
    shape = tuple(rng.choice((0, 1, 1, 2, 3, 4)) for _ in range(ndim))
    result = laid_out(rng, numbers(rng, dtype, int(np.prod(shape, initial=1))).reshape(shape))
    if rng.random() < 0.2:
        result = result.view()
        result.flags.writeable = False
    return result


def numbers(rng: Random, dtype: np.dtype, size: int) -> np.ndarray:
    """Return numbers of bits at random, among them zeros of both signs, NaN and extremes."""
    bits = np.frombuffer(rng.randbytes(size * dtype.itemsize), "u1")
    if dtype.kind == "b":
        flat = bits < 128
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
    if interop.plugin.DTYPES[dtype.name].kind in "iu":
        return [0, ml_dtypes.iinfo(dtype).max, ml_dtypes.iinfo(dtype).min]
    info = ml_dtypes.finfo(dtype)
    most = float(info.max) if dtype.kind != "c" else complex(float(info.max), -0.0)
    least = float(info.smallest_subnormal)
    if dtype.name == "float8_e8m0fnu":
        return [float("nan"), most, least, 1.0]
    return [0.0, -0.0, float("nan"), most, least, 1.0]


def attempted(instance: Interop, value: Any, target: str, copy: bool | None = None) -> Any:
    """Return what a value becomes, or the refusal; a step that fails or lies is neither."""
    try:
        return instance.convert(value, to=target, copy=copy)
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


def check(rng: Random, source: str, target: str) -> str:
    """Convert arrays from a format to another, and tell what has become of them.

    The first is converted by an instance that knows no plan, the second by one that has planned.
    """
    drawn = array(rng, source)
    zeros = any("." in name for name in (source, target))  # sparse arrays do not store them
    copy, seed, outcomes = rng.choice((None, None, True, False)), rng.random(), []
    COLD._cache.clear()
    for instance, numbers in ((COLD, drawn), (interop.default, drawn), (COLD, another(rng, drawn))):
        before = numbers.copy()
        note(f"{source} → {target}, {copy=}: {numbers.dtype, numbers.strides}\n{numbers!r}")
        value = attempted(instance, numbers, source)
        if isinstance(value, InteropError):
            return "no value"
        assert same(read(value), before, zeros=zeros), f"numpy → {source}: {read(value)!r}"
        value, expected = made_lazy(Random(seed), value, read(value).copy())
        result = attempted(instance, value, target, copy)
        assert numbers.tobytes() == before.tobytes()
        assert same(read(value), expected, zeros=False), "the source has changed"
        if not isinstance(result, InteropError):
            check_result(value, result, expected, copy, zeros=zeros)
        if not isinstance(getattr(result, "__cause__", None), Declined):  # for the numbers' sake
            outcomes.append(facts(value, result))
    # Of Python's numbers the dtype is that of the least that holds them.
    assert len(set(outcomes)) <= 1 or "python" in (source, target), outcomes
    return "refused" if isinstance(result, InteropError) else "right"


def check_result(
    value: Any, result: Any, expected: np.ndarray, copy: bool | None, *, zeros: bool
) -> None:
    """Hold a result to its source's numbers and to what ``copy=`` promises."""
    actual = read(result)
    assert same(actual, expected, zeros=zeros), f"{expected!r} became {actual!r}"
    shared = shares_memory(interop.default._registry, value, result)
    if copy is True and interop.spec(result).format != "python":  # one True is all Trues
        assert not shared
        assert "readonly" not in interop.spec(result).traits
    stores = expected.size and interop.spec(value).nnz != 0
    if copy is False and stores and shared is not None and result is not value:
        assert shared


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_every_bit_arrives_cold_and_warm_or_an_error(framework: str) -> None:
    """Every conversion from a framework is exact or refused, and leaves its source as it was."""
    assert "right" in outcomes_of(framework, check) or framework in ("torchao", "quantized")
