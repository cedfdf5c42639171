"""CuPy: sparse layouts that sizes and axes decide about, and its descriptions, which need no device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import interop
from interop import Spec
from interop.plugin import Parts, make_spec
from interop_plugins.cupy import dense as cupy_dense
from interop_plugins.cupy import hand_offs
from interop_plugins.cupy import sparse as cupy_sparse
from interop_plugins.cupy.describe import memory
from interop_plugins.cupy.sparse import compressed_memory, coo_memory, unpack_coo
from tests.cases import together
from tests.plugins.values import numpy_dtype

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
]
LARGE = (4096, 4096)


def dense(
    name: str,
    dtype: str = "float32",
    *,
    device: str = "cuda:0",
    shape: tuple[int, ...] = LARGE,
    traits: frozenset[str] | set[str] = frozenset(),
) -> Spec:
    return make_spec(name, dtype, device=device, shape=shape, traits=traits)


def sparse(
    name: str,
    dtype: str = "float32",
    *,
    nnz: int = 10_000,
    shape: tuple[int, int] = LARGE,
    index: str = "int32",
    traits: frozenset[str] | set[str] = frozenset(),
) -> Spec:
    nbytes = nnz * (np.dtype(dtype).itemsize + np.dtype(index).itemsize)
    return Spec(name, dtype, "cuda:0", shape, frozenset(traits), nbytes, nnz, index)


# ---------------------------------------------------------------------- sparse


def test_sparse_densifies_on_the_far_side() -> None:
    """An array that is sparse enough crosses as components and is made dense on the host."""
    pytest.importorskip("scipy.sparse", reason="SciPy makes it dense; cupyx imports it")
    route = interop.plan(sparse("cupy.csr", nnz=1000), to="numpy")
    crossing = next(step for step in route.steps if "transfer" in step.effects)
    assert crossing.after.nnz is not None
    assert route.steps[-1].effects >= {"densify"}


def test_sparse_densifies_on_the_device_when_it_is_full() -> None:
    """An array that is larger sparse than dense is made dense before it crosses."""
    route = interop.plan(sparse("cupy.csr", nnz=4096 * 4096), to="numpy")
    assert "densify" in route.steps[0].effects
    assert "transfer" in route.steps[-1].effects


def test_a_sparse_vector_is_coo_to_others() -> None:
    """Only cupyx has a CSR array of one axis; other libraries get it as COO."""
    vector = sparse("cupy.csr", traits={"vector"})._replace(shape=(4096,))
    assert interop.plan(vector, to="scipy.coo").result.format == "scipy.coo"
    with pytest.raises(interop.errors.RefusedError):
        interop.plan(vector, to="torch.sparse_csr")


@pytest.mark.parametrize("source", ["numpy", "scipy.csr", "scipy.coo", "torch", "cupy"])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "dia"])
@pytest.mark.parametrize("shape", [(4096,), (4, 8, 16)])
def test_a_plan_knows_how_many_axes_cupyx_takes(
    shape: tuple[int, ...], layout: str, source: str
) -> None:
    """What `pack` would decline is refused by the plan; only COO arrays may be vectors."""
    device = "cpu" if source in ("numpy", "scipy.csr", "scipy.coo") else "cuda:0"
    value = (sparse if "." in source else dense)(source)._replace(shape=shape, device=device)
    if (layout, len(shape)) == ("coo", 1):
        assert interop.plan(value, to="cupy.coo").result.shape == shape
        return
    with pytest.raises(interop.errors.RefusedError):
        interop.plan(value, to=f"cupy.{layout}")


@pytest.mark.parametrize("kind", ["csr_array", "coo_array"])
@together("facts", [{}, {"canonical": True}, {"canonical": False}])
def test_cupyx_is_told_what_is_known_of_the_order(
    monkeypatch: pytest.MonkeyPatch, kind: str, facts: dict[str, Any]
) -> None:
    """It need not look it up on the device, and holds the very components; else it has to look."""
    monkeypatch.setattr(cupy_sparse, "_class", lambda name: partial(made, name))

    def made(name: str, components: Any, *, shape: Any, copy: bool) -> Any:
        return SimpleNamespace(made=(name, components, shape, copy))

    values, first, second = SimpleNamespace(device=nullcontext()), object(), object()
    arrays: dict[str, Any] = {"values": values}
    if kind == "coo_array":
        arrays |= {"indices_0": first, "indices_1": second}
        result = cupy_sparse.pack_coo(Parts((3, 4), arrays, facts))
        components: Any = (values, (first, second))
    else:
        arrays |= {"indices": first, "pointers": second}
        result = cupy_sparse.pack_compressed(kind, Parts((3, 4), arrays, facts))
        components = (values, first, second)
    assert result.made == (kind, components, (3, 4), False)
    assert getattr(result, "has_canonical_format", None) is facts.get("canonical")


# ---------------------------------------------------------------------- what is refused


def has_device() -> bool:
    cupy = pytest.importorskip("cupy")
    try:
        return bool(cupy.cuda.runtime.getDeviceCount())
    except cupy.cuda.runtime.CUDARuntimeError:
        return False


def test_says_that_there_is_no_device() -> None:
    """Without a device, converting to CuPy is an error that says so, and the source is unchanged."""
    if has_device():
        pytest.skip("there is a CUDA device on this machine")
    value = np.arange(6.0).reshape(2, 3)
    with pytest.raises(interop.InteropError, match="no device that it can use"):
        interop.convert(value, to="cupy")
    assert np.array_equal(value, np.arange(6.0).reshape(2, 3))


# ---------------------------------------------------------------------- streams, and order


@pytest.mark.parametrize("stream", [None, 7])
def test_a_small_array_is_fetched_on_the_stream_that_is_named(
    monkeypatch: pytest.MonkeyPatch, stream: int | None
) -> None:
    """CuPy's own `get` uses the current stream, which has not waited for a named one."""
    used: list[Any] = []
    monkeypatch.setattr(hand_offs, "working", lambda device, stream: nullcontext(stream))
    monkeypatch.setattr(hand_offs, "fetch", lambda out, value, stream: used.append(stream))
    data = SimpleNamespace(device=nullcontext())
    value = SimpleNamespace(shape=(2,), dtype="float32", nbytes=8, data=data)
    value.get = lambda: used.append("the current one")
    hand_offs.to_numpy(value, device="cpu", stream=stream)
    assert used == [stream or "the current one"]


def test_turns_elements_on_the_consumers_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy in either order is made on the consumer's stream."""
    read = []

    @contextmanager
    def reading(value: Any, stream: Any) -> Iterator[None]:
        read.append((value.shape, stream))
        yield

    monkeypatch.setattr(cupy_dense, "reading", reading)
    array = np.arange(24.0).reshape(2, 3, 4)  # which has the same methods
    for order in ("C", "F"):
        result = cupy_dense.copy(array, order=order, stream=7)
        assert read.pop() == ((2, 3, 4), 7)
        assert result.flags.c_contiguous if order == "C" else result.flags.f_contiguous
        assert not np.shares_memory(result, array)
        np.testing.assert_array_equal(result, array)


# ---------------------------------------------------------------------- casts


@together("target", DTYPES)
@together("source", DTYPES)
def test_casts_lose_no_digit_on_the_way(
    monkeypatch: pytest.MonkeyPatch, source: str, target: str
) -> None:
    """Numbers are those of NumPy's cast, although some kernels have no bfloat16."""
    monkeypatch.setattr(cupy_dense, "reading", lambda value, stream: nullcontext())
    before, after = (numpy_dtype(name) for name in (source, target))
    numbers = np.array([0, 1, 3, 120]).astype(before)  # NumPy's arrays have the same methods
    if before.kind in "iu":
        numbers = np.append(numbers, np.iinfo(before).max - np.arange(2, dtype=before))
    elif before.kind in "fcV":
        numbers[3] = np.float64(1 / 3)
    kept = numbers if after.kind in "cb" else numbers.real
    with np.errstate(all="ignore"):
        result = cupy_dense.cast(numbers, dtype=target)
        np.testing.assert_array_equal(result, kept.astype(after))
    assert result.dtype == after


# ---------------------------------------------------------------------- descriptions


@pytest.fixture
def array() -> Callable[..., Any]:
    """Make CuPy arrays over an address that is never read: describing them needs no device."""
    cupy = pytest.importorskip("cupy")

    def make(shape: tuple[int, ...], dtype: Any = "float32", device: int = 0) -> Any:
        memory = cupy.cuda.UnownedMemory(0x7F0000000000, 1 << 20, None, device)
        return cupy.ndarray(shape, dtype, cupy.cuda.MemoryPointer(memory, 0))

    return make


@pytest.mark.parametrize("dtype", DTYPES)
def test_describes_dtypes(array: Callable[..., Any], dtype: str) -> None:
    """A CuPy array is described with its dtype, shape, device and size."""
    dtype_object = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    spec = interop.spec(array((3, 4), dtype_object, 1))
    assert spec == make_spec("cupy", dtype, device="cuda:1", shape=(3, 4))


def test_describes_layouts(array: Callable[..., Any]) -> None:
    """Strides of an array show as traits; an axis of length 1 does not count."""
    cupy = pytest.importorskip("cupy")
    plain = array((3, 4))
    wide = cupy.lib.stride_tricks.as_strided(plain, (5, 4), (0, 4))
    assert interop.spec(plain).traits == frozenset()
    assert interop.spec(plain.T).traits == {"noncontiguous", "fortran"}
    assert interop.spec(plain[:, 1:]).traits == {"noncontiguous"}
    assert interop.spec(plain[::-1]).traits == {"noncontiguous", "negative_strides"}
    assert interop.spec(wide).traits == {"noncontiguous", "broadcast"}
    assert interop.spec(array((1, 4))[::-1]).traits == frozenset()
    assert interop.spec(array((0, 4)).T).traits == frozenset()


def test_describes_subclasses(array: Callable[..., Any]) -> None:
    """An array of a subclass says so, and is made plain before anything else is done."""
    cupy = pytest.importorskip("cupy")

    class Mine(cupy.ndarray):  # type: ignore[misc]
        pass

    spec = interop.spec(array((3,)).view(Mine))
    assert spec.traits == {"subclass"}
    assert interop.plan(spec, to="torch").zero_copy


def test_says_where_memory_lies(array: Callable[..., Any]) -> None:
    """The memory of an array is all that its strides reach."""
    plain = array((3, 4))
    assert memory(plain) == ((0x7F0000000000, 48),)
    assert memory(plain[::-1]) == ((0x7F0000000000, 48),)
    assert memory(plain[:, 1:2]) == ((0x7F0000000004, 36),)
    assert memory(array((0, 4))) == ()


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("canonical", [True, False])
def test_describes_compressed(
    array: Callable[..., Any], layout: str, kind: str, canonical: bool
) -> None:
    """A compressed array says what it stores, of what dtypes, and whether it is in order."""
    module = pytest.importorskip("cupyx.scipy.sparse")
    class_ = getattr(module, f"{layout}_{kind}")
    value = class_.__new__(class_)
    value.data, value.indices = array((5,), "complex64"), array((5,), "int64")
    value.indptr, value._shape = array((4,), "int64"), (3, 3)
    value._has_canonical_format = canonical
    traits = frozenset() if canonical else frozenset({"uncoalesced"})
    nbytes = 5 * 8 + 5 * 8 + 4 * 8
    assert interop.spec(value) == Spec(
        f"cupy.{layout}", "complex64", "cuda:0", (3, 3), traits, nbytes, 5, "int64"
    )
    assert [length for _, length in compressed_memory(value)] == [5 * 8, 5 * 8, 4 * 8]


@pytest.mark.parametrize("shape", [(3, 3), (9,)])
def test_describes_coo(array: Callable[..., Any], shape: tuple[int, ...]) -> None:
    """A COO array of one or two axes unpacks into one index array for each."""
    module = pytest.importorskip("cupyx.scipy.sparse")
    value = module.coo_array.__new__(module.coo_array)
    value.data, value.row, value.col = array((5,)), array((5,), "int32"), array((5,), "int32")
    value._shape, value.has_canonical_format = shape, False
    spec = interop.spec(value)
    assert (spec.format, spec.shape, spec.nnz, spec.index_dtype) == ("cupy.coo", shape, 5, "int32")
    assert spec.traits == {"uncoalesced"}
    assert spec.nbytes == 20 + 20 * len(shape)
    assert [length for _, length in coo_memory(value)] == [20, 20, 20]
    parts = unpack_coo(value)
    assert parts.arrays["values"] is value.data
    assert parts.arrays[f"indices_{len(shape) - 1}"] is value.col
    assert len(parts.arrays) == 1 + len(shape)
