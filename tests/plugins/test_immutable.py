"""JAX, MLX and TensorFlow: their arrays never change, so what shares their memory is locked."""

from __future__ import annotations

from contextlib import nullcontext

import jax
import numpy as np
import pytest

import interop
from interop_plugins.jax import describe as jax_plugin
from tests.cases import together
from tests.plugins.immutable import DTYPES, SHARED_WITH_TORCH, Framework, framework
from tests.plugins.promises import NAMES, check_arrivals, check_departures
from tests.plugins.values import numbers, same, start

SHAPES = [(3, 4), (), (0, 3), (70, 500)]
# Its place before JAX 0.8.
enable_x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64


def marked(*values):
    """Return a case, which needs TensorFlow if a value names it."""
    marks = [pytest.mark.extra("tensorflow")] if "tensorflow" in values else []
    return pytest.param(*values, marks=marks)


def cases(dtypes):
    return [marked(name, dtype) for name in dtypes for dtype in sorted(dtypes[name])]


def of(name: str, dtype: str) -> Framework:
    """Return a framework, if its installed release has a dtype."""
    found = framework(name)
    if dtype in found.unsupported:
        pytest.skip(f"this release of {name} has no {dtype}")
    return found


@together("shape", SHAPES)
@pytest.mark.parametrize(("name", "dtype"), cases(DTYPES))
def test_described(name, dtype, shape):
    """The spec states dtype, shape, device and bytes, and that the memory never changes."""
    spec = interop.spec(of(name, dtype).make(dtype, shape))
    assert (spec.format, spec.dtype, spec.device) == (name, dtype, "cpu")
    assert (spec.shape, spec.traits) == (shape, {"immutable"})
    assert spec.nbytes == numbers(dtype, shape).nbytes


@together("shape", SHAPES)
@pytest.mark.parametrize(("name", "dtype"), cases(DTYPES))
def test_to_numpy(name, dtype, shape):
    """NumPy shares the memory, read-only, unless elements are packed; a copy is its own."""
    given = of(name, dtype)
    value, packed = given.make(dtype, shape), dtype in given.packed
    for _ in range(3):  # the third by a fast path
        result = interop.convert(value, to="numpy")
        assert isinstance(result, np.ndarray)
        assert same(result, numbers(dtype, shape))
        assert result.flags.writeable == packed
        assert packed or not result.size or start(result) == given.address(value)
    assert interop.plan(value, to="numpy").zero_copy != packed
    copied = interop.convert(value, to="numpy", copy=True)
    assert copied.flags.writeable
    copied[...] = 0 if dtype != "float8_e8m0fnu" else 4
    assert same(interop.convert(value, to="numpy"), numbers(dtype, shape))


@together("shape", SHAPES)
@pytest.mark.parametrize(("name", "dtype"), cases(SHARED_WITH_TORCH))
def test_to_torch(name, dtype, shape):
    """torch shares the memory unless that is forbidden."""
    given = of(name, dtype)
    value = given.make(dtype, shape)
    for _ in range(3):
        result = interop.convert(value, to="torch")
        assert (str(result.dtype), tuple(result.shape)) == (f"torch.{dtype}", shape)
        assert not result.numel() or result.data_ptr() == given.address(value)
        assert same(interop.convert(result, to="numpy"), numbers(dtype, shape))
    assert interop.plan(value, to="torch").effects == {"alias_immutable"}
    for keywords in ({"copy": True}, {"forbid": "alias_immutable"}):
        copied = interop.convert(value, to="torch", **keywords)
        assert not copied.numel() or copied.data_ptr() != given.address(value)
        copied.zero_()
    assert same(interop.convert(value, to="numpy"), numbers(dtype, shape))


@pytest.mark.extra  # TensorFlow is one of the targets
@pytest.mark.parametrize(("name", "dtype"), cases(DTYPES))
def test_every_number_leaves(name, dtype):
    """Every number arrives elsewhere as it is, in whatever dtype, or its dtype is refused."""
    given = of(name, dtype)
    with enable_x64(True):
        check_departures(given.of_numpy, dtype)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dtype", "x64"),
    [
        *(marked(name, dtype, False) for name in DTYPES for dtype in NAMES),
        *(("jax", dtype, True) for dtype in sorted(jax_plugin.WIDE)),
    ],
)
def test_every_number_arrives(name, dtype, x64):
    """What a framework cannot hold arrives in a wider dtype, or is refused, cold and warm."""
    framework(name)
    with enable_x64(x64) if name == "jax" else nullcontext():
        lacking = jax_plugin.unsupported_now() if name == "jax" else frozenset()
        check_arrivals(name, dtype, DTYPES[name] - lacking)


@pytest.mark.parametrize("name", [marked(name) for name in DTYPES])
@pytest.mark.parametrize("size", [6, 1100])
@together(
    "odd",
    [
        lambda a: a.T,
        lambda a: a[::-1, ::-2],
        lambda a: np.broadcast_to(a[0], a.shape),
        lambda a: a.astype(">f4"),
        lambda a: np.frombuffer(a.tobytes(), "f4"),
        lambda a: np.frombuffer(b"x" + a.tobytes(), "f4", offset=1),
        lambda a: a[0, 0],
        lambda a: a.view(np.matrix),
    ],
)
def test_memory_of_every_kind(name, size, odd):
    """Transposed, reversed, repeated, swapped, read-only and unaligned memory arrives in order."""
    framework(name)
    value = odd(np.arange(size * size, dtype="f4").reshape(size, size))
    result = interop.convert(value, to=name)
    assert interop.spec(result).traits == {"immutable"}
    arrived = interop.convert(result, to="numpy")
    assert same(arrived, np.ascontiguousarray(value, "f4").reshape(value.shape))
    assert name != "tensorflow" or start(arrived) % 64 == 0
