"""JAX, MLX and TensorFlow: their arrays never change, so what shares their memory is locked."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial

import jax
import numpy as np
import pytest
import torch

import interop
from interop.errors import RefusedError
from interop_plugins.jax import describe as jax_plugin
from interop_plugins.tensorflow import describe as tensorflow_plugin
from tests.cases import together
from tests.plugins.immutable import DTYPES, SHARED_WITH_TORCH, Framework, framework
from tests.plugins.promises import (
    LARGE_CASTS,
    NAMES,
    check_arrivals,
    check_departures,
    large,
    peak_of,
)
from tests.plugins.values import numbers, numpy_dtype, same, start

SHAPES = [(3, 4), (), (0, 3), (70, 500)]
#: By framework, the dtypes that it holds without an option, and those of them that torch has.
HELD = DTYPES | {"jax": jax_plugin.DTYPES - jax_plugin.WIDE}
#: By framework, a shape of so many elements that its plugin copies them in another way.
MANY = {"jax": (300, 500), "mlx": (70, 500), "tensorflow": (1100, 1000)}
#: By framework, dtypes of which a large array is copied by the framework itself, and not before.
COPIED_BY_ITSELF = {
    "jax": jax_plugin.PACKED,
    "tensorflow": tensorflow_plugin.NARROW - {"bfloat16"},
}
#: Frameworks that share memory which their plugin allocates.
ALIGNING = [name for name in DTYPES if name != "mlx"]
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
@pytest.mark.parametrize(("name", "dtype"), cases(SHARED_WITH_TORCH))
def test_torch_shares_the_memory_unless_forbidden(convert, name, dtype, shape):
    """torch shares the memory unless that is forbidden."""
    given = of(name, dtype)
    value = given.make(dtype, shape)
    result = convert(value, to="torch")
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


# ---------------------------------------------------------------------- into the framework


@pytest.mark.parametrize("name", [marked(name) for name in DTYPES])
def test_the_module_and_the_class_name_the_format(name):
    """A request may name the dense format by its module or its class, and a value stays itself."""
    for target in framework(name).names:
        value = interop.convert(np.ones(2, "f4"), to=target)
        assert interop.spec(value).format == name
        assert interop.convert(value, to=target) is value
    assert interop.spec(interop.convert([1.0], like=value, dtype="float32")).format == name


@together("shape", [*SHAPES, "many"])
@pytest.mark.parametrize(("name", "dtype"), cases(HELD))
def test_arrays_of_numpy_are_copied_however_they_are_aligned(name, dtype, shape):
    """A framework gets a copy of the elements, so that nobody can change its array."""
    given = of(name, dtype)
    expected = numbers(dtype, MANY[name] if shape == "many" else shape)
    for offset in range(0, 64, 16):
        raw = np.empty(expected.nbytes + 128, "u1")
        raw = raw[-start(raw) % 64 + offset :]
        source = raw[: expected.nbytes].view(expected.dtype).reshape(expected.shape)
        source[...] = expected
        result = interop.convert(source, to=name)
        source[...] = 0 if dtype != "float8_e8m0fnu" else 4
        assert same(given.read(result), expected)
        spec = interop.spec(result)
        assert (spec.dtype, spec.traits) == (dtype, {"immutable"})
    route = interop.plan(source, to=name)
    assert (route.effects, route.aliases) == ({"copy"}, False)
    with pytest.raises(RefusedError):
        interop.convert(source, to=name, copy=False)


@pytest.mark.parametrize("name", [marked(name) for name in DTYPES])
def test_graphs_and_lazy_tensors_are_resolved_and_masks_refused(name):
    """A tensor's graph, conjugation and negation are resolved on the way, and no mask is lost."""
    read = framework(name).read
    assert read(interop.convert(torch.ones(3, requires_grad=True), to=name)).tolist() == [1, 1, 1]
    conjugate = torch.tensor([1 + 2j, 3 - 1j]).conj()
    assert read(interop.convert(conjugate, to=name)).tolist() == [1 - 2j, 3 + 1j]
    assert read(interop.convert(conjugate.imag, to=name)).tolist() == [-2, 1]
    zeros = torch._efficientzerotensor(3)  # of which nothing is stored
    assert read(interop.convert(zeros, to=name)).tolist() == [0, 0, 0]
    with pytest.raises(RefusedError):
        interop.convert(np.ma.array([1.0, 2], dtype="f4", mask=[0, 1]), to=name)
    with pytest.raises(RefusedError):
        interop.convert(torch.empty(3, device="meta"), to=name)


@pytest.mark.parametrize("name", [marked(name) for name in DTYPES])
@pytest.mark.parametrize("size", [6, 1100])
@together("dtype", ["float32", "bfloat16", "int32", "complex64"])
@together(
    "odd",
    [
        lambda a: a.T,
        lambda a: a[::-1, ::-2],
        lambda a: np.broadcast_to(a[0], a.shape),
        lambda a: a.astype(a.dtype.newbyteorder(">")) if a.dtype.isbuiltin == 1 else a,
        lambda a: np.frombuffer(a.tobytes(), a.dtype),
        lambda a: np.frombuffer(b"x" + a.tobytes(), a.dtype, offset=1),
        lambda a: a[0, 0],
        lambda a: a.view(np.matrix),
    ],
)
def test_memory_of_every_kind_arrives_in_order(name, size, dtype, odd):
    """Transposed, reversed, repeated, swapped, read-only and unaligned memory arrives in order."""
    framework(name)
    numpys = numpy_dtype(dtype)
    value = odd(np.arange(size * size).reshape(size, size).astype(numpys))
    result = interop.convert(value, to=name)
    assert interop.spec(result).traits == {"immutable"}
    arrived = interop.convert(result, to="numpy")
    assert same(arrived, np.ascontiguousarray(value, numpys).reshape(value.shape))
    assert name != "tensorflow" or start(arrived) % 64 == 0


# ---------------------------------------------------------------------- casts and copies


@pytest.mark.parametrize("size", [5, 1_500_000])
@together("source", ["numpy", "torch", "itself"])
@pytest.mark.parametrize("name", [marked(name) for name in DTYPES])
def test_casts_are_numpys(name, source, size):
    """The result has the requested dtype and NumPy's numbers; complex numbers give real parts."""
    read = framework(name).read
    array = np.arange(size, dtype="f4") % 100
    value = interop.convert(array, to=name if source == "itself" else source)
    for dtype in ("int8", "float16", "bfloat16", "uint32", "complex64", "float64", "bool"):
        if dtype in HELD[name]:
            result = interop.convert(value, to=name, dtype=dtype)
            assert same(read(result), array.astype(numpy_dtype(dtype)))
    complex_ = interop.convert(array + 1j, to=name, dtype="complex64")
    assert same(read(interop.convert(complex_, to=name, dtype="float32")), array)
    assert same(interop.convert(value, to="numpy"), array)


@pytest.mark.parametrize(("source", "target"), LARGE_CASTS)
@pytest.mark.parametrize("name", [marked(name) for name in ALIGNING])
def test_a_large_cast_takes_the_memory_of_its_result_once(name, source, target, monkeypatch):
    """Elements are cast while they are copied to where the framework has them, without a copy."""
    given = framework(name)
    for value in large(source):
        convert = partial(interop.convert, value, to=name, dtype=target)
        result, peak = peak_of(convert)
        assert peak < 1.1 * interop.spec(result).nbytes
        assert same(given.read(result), value.real.astype(numpy_dtype(target)))
    module, function = given.aligned
    written, allocate = [], getattr(module, function)

    def recorded(*arguments):
        written.append(allocate(*arguments))
        return written[-1]

    monkeypatch.setattr(module, function, recorded)
    assert [given.address(convert())] == [start(array) for array in written]


@pytest.mark.parametrize(
    ("source", "target"),
    [("float64", "float32"), ("int64", "int32"), ("int64", "float32"), ("complex128", "complex64")],
)
@pytest.mark.parametrize("name", [marked(name) for name in ALIGNING])
def test_a_large_tensor_is_cast_on_the_way(name, source, target):
    """torch's tensors, too, are written once."""
    framework(name)
    value = torch.ones(2**20, dtype=getattr(torch, source))
    route = interop.plan(value, to=name, dtype=target)
    assert [step.writes for step in route.steps].count(True) == 1
    result, peak = peak_of(lambda: interop.convert(value, to=name, dtype=target))
    assert peak < 1.1 * interop.spec(result).nbytes


@pytest.mark.parametrize(("name", "dtype"), cases(COPIED_BY_ITSELF))
def test_large_arrays_that_the_framework_copies_are_copied_once(name, dtype):
    """A large array of a dtype that a framework packs, or never shares, is not copied before."""
    of(name, dtype)
    value = numbers(dtype, (2**20,))
    result, peak = peak_of(lambda: interop.convert(value, to=name))
    assert same(interop.convert(result, "numpy"), value)
    assert peak < 1.1 * value.nbytes
