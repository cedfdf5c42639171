"""Layouts and dtypes: every source converted to every target on the host, as planned.

Of each conversion it is asserted what the plan promises: the values, dtype, shape and device,
whether memory is shared (by address), that ``copy=True`` never shares and ``copy=False`` never
copies, that a second conversion (which may take a fast path) is like the first, and that the source
is unchanged.

Cases are pairwise: each layout meets each dtype and each target, and each dtype meets each target;
but a layout, a dtype and a target do not all meet.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sparse
import torch

import interop
from interop._execution.trace import extents, shares_memory
from interop.errors import BadRequestError, NotInstalledError, RefusedError
from tests.properties.grid import ByDlpack, ByInterface
from tests.properties.readers import FORMATS, dtype_of, read

NUMBERS = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 "
    "complex64 complex128 bfloat16 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz "
    "float8_e8m0fnu"
).split()
SPARSE_DTYPES = "bool int8 int32 int64 float32 float64 complex64 complex128".split()
LAYOUTS = ("coo", "csr", "csc", "bsr")
TORCH_LAYOUTS = ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")

#: For each more, its library compiles anew.
PYDATA_DTYPES = ("float32", "complex128")
PYDATA_LAYOUTS = ("coo", "gcxs.csr", "gcxs.csc", "dok")

Maker = Callable[[np.ndarray], Any]


def _sample(dtype: str) -> np.ndarray:
    """Return a (4, 6) array of small distinct numbers that every dtype can hold."""
    if dtype == "float8_e8m0fnu":
        return (2.0 ** np.arange(24).reshape(4, 6)).astype(dtype_of(dtype))
    numbers = np.arange(24).reshape(4, 6) % 14
    if dtype.startswith("complex"):
        return (numbers + 1j * (numbers % 5)).astype(dtype)
    return numbers.astype(dtype_of(dtype))


def _readonly(a: np.ndarray) -> np.ndarray:
    b = a.copy()
    b.flags.writeable = False
    return b


def _unaligned(a: np.ndarray) -> np.ndarray:
    raw = np.zeros(a.nbytes + 1, "u1")[1:]
    b = raw.view(a.dtype).reshape(a.shape)
    b[...] = a
    return b


NUMPY: dict[str, Maker] = {
    "plain": lambda a: a.copy(),
    "fortran": np.asfortranarray,
    "transposed": lambda a: a.copy().T,
    "sliced": lambda a: a.copy()[1:, ::2],
    "backwards": lambda a: a.copy()[::-1, ::-1],
    "broadcast": lambda a: np.broadcast_to(a[0].copy(), (3, 6)),
    "readonly": _readonly,
    "unaligned": _unaligned,
    "byteswapped": lambda a: a.astype(a.dtype.newbyteorder()),
    "scalar_array": lambda a: a[1, 2].reshape(()).copy(),
    "empty": lambda a: a[:0].copy(),
    "one_axis_of_one": lambda a: a.copy()[:1, ::-1][:, :1],
}


def _tensor(a: np.ndarray) -> torch.Tensor:
    if a.dtype.kind == "V" or a.dtype.name.startswith("float8"):
        dtype = getattr(torch, a.dtype.name)
        return torch.from_numpy(a.copy().view(f"u{a.dtype.itemsize}")).view(dtype)
    return torch.from_numpy(a.copy())


TORCH: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "plain": lambda t: t,
    "transposed": lambda t: t.t(),
    "sliced": lambda t: t[1:, ::2],
    "expanded": lambda t: t[:1].expand(3, 6),
    "scalar": lambda t: t[1, 2].clone(),
    "empty": lambda t: t[:0],
    "grad": lambda t: t.requires_grad_(),
    "non_leaf": lambda t: t.requires_grad_() * 1,
    "parameter": torch.nn.Parameter,
    "conj": lambda t: t.conj(),
    "neg": lambda t: t.conj().imag,
}


def _is_possible(dtype: str, layout: str) -> bool:
    """Tell whether an array of some dtype can have a layout."""
    if layout == "byteswapped":
        return dtype_of(dtype).itemsize > 1 and dtype in np.sctypeDict
    if layout in ("grad", "non_leaf", "parameter"):
        return dtype.startswith(("float16", "float32", "float64", "bfloat", "complex"))
    return layout not in ("conj", "neg") or dtype.startswith("complex")


def _dense_cases(*targets: str) -> Iterator[Any]:
    """Yield a third of all cases: those of each layout and dtype go to a target in turn."""
    turn = ("numpy", "torch", "python")
    for framework, layouts in (("numpy", NUMPY), ("torch", TORCH)):
        for row, dtype in enumerate(NUMBERS):
            for column, layout in enumerate(layouts):
                # Lazy tensors have two dtypes, which would not meet three targets.
                goals = turn if layout in ("conj", "neg") else (turn[(row + column) % 3],)
                for target in goals if _is_possible(dtype, layout) else ():
                    if target in targets:
                        case = framework, dtype, layout, target
                        yield pytest.param(*case, id="-".join(case))


def _dense(framework: str, dtype: str, layout: str) -> tuple[Any, np.ndarray]:
    """Return a value and, computed by other means, the numbers it stands for."""
    sample = _sample(dtype)
    if framework == "numpy":
        value = NUMPY[layout](sample)
        return value, np.array(value, dtype_of(dtype))
    tensor = TORCH[layout](_tensor(sample))
    return tensor, _numbers(tensor)


def _numbers(value: Any) -> np.ndarray:
    """Return the numbers of a result by a way that is not interop's."""
    return read(value).copy()


def _bits(a: np.ndarray) -> tuple[Any, ...]:
    native = a.astype(a.dtype.newbyteorder("=")) if a.dtype.byteorder == ">" else a
    return native.shape, native.dtype.name, np.ascontiguousarray(native).tobytes()


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    """Let every type that has a fast path get it from a plain value, before any odd one comes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = [np.ones((4, 6)), torch.ones(4, 6), torch.nn.Parameter(torch.ones(4, 6))]
        plain += [_sparse(layout, "float64", "int32") for layout in LAYOUTS]
        plain += [_torch_sparse(layout, "float64", "int64") for layout in TORCH_LAYOUTS]
        for value in plain:
            for target in (*SPARSE_TARGETS, *PYDATA_TARGETS):
                interop.convert(value, to=target)
                interop.convert(value, to=target)


def _check(value: Any, target: str, expected: np.ndarray) -> None:
    registry = interop.default._registry
    before = _bits(_numbers(value))
    route = interop.plan(value, to=target)
    # Of numbers that lie at no address, as those of lists do, and of none, nothing is told.
    lies = [extents(registry, x, None) for x in (value, interop.convert(value, to=target))]
    untold = set() if all(lies) else {None}
    for _ in range(3):  # from the second time on it may take a fast path
        result = interop.convert(value, to=target)
        spec = interop.spec(result)
        assert (spec.format, spec.device) == (target, "cpu")
        assert (spec.dtype, spec.shape) == (route.result.dtype, expected.shape)
        assert _bits(_numbers(result)) == _bits(expected)
        if expected.size:
            assert shares_memory(registry, value, result) in {route.aliases, *untold}
    copied = interop.convert(value, to=target, copy=True)
    assert _bits(_numbers(copied)) == _bits(expected)
    assert shares_memory(registry, value, copied) in {False, *untold}
    assert not interop.spec(copied).traits & {"readonly", "immutable"}
    if route.zero_copy:
        shared = interop.convert(value, to=target, copy=False)
        assert _bits(_numbers(shared)) == _bits(expected)
    else:
        with pytest.raises(interop.errors.RefusedError):
            interop.convert(value, to=target, copy=False)
    assert _bits(_numbers(value)) == before


@pytest.mark.parametrize(
    ("framework", "dtype", "layout", "target"), list(_dense_cases("numpy", "torch"))
)
def test_dense(framework: str, dtype: str, layout: str, target: str) -> None:
    """A dense value arrives bit for bit, shared exactly where the plan says so."""
    value, expected = _dense(framework, dtype, layout)
    _check(value, target, expected)


@pytest.mark.parametrize(("framework", "dtype", "layout", "target"), list(_dense_cases("python")))
def test_dense_to_python(framework: str, dtype: str, layout: str, target: str) -> None:
    """Python's numbers equal the array's, nested as its axes are."""
    value, expected = _dense(framework, dtype, layout)
    result = interop.convert(value, to=target)
    assert result == expected.tolist()
    leaf = result
    while isinstance(leaf, list) and leaf:
        leaf = leaf[0]
    assert isinstance(leaf, (bool, int, float, complex, list))


def _sparse(layout: str, dtype: str, index: str) -> Any:
    """Return a canonical SciPy array of some layout with a few stored elements."""
    dense = np.zeros((4, 6), dtype)
    dense[0, 1], dense[1, 0], dense[3, 4], dense[3, 5] = 1, 2, 3, 4
    array = getattr(scipy.sparse, f"{layout}_array")(dense)
    if layout == "bsr":
        array = scipy.sparse.csr_array(dense).tobsr((2, 2))
    if layout == "coo":
        array.coords = tuple(c.astype(index) for c in array.coords)
        array.sum_duplicates()
    elif layout in ("csr", "csc", "bsr"):
        array.indices, array.indptr = array.indices.astype(index), array.indptr.astype(index)
        array.sum_duplicates()
    return array


def _torch_sparse(layout: str, dtype: str, index: str) -> torch.Tensor:
    dense = torch.from_numpy(_sparse("csr", dtype, "int32").toarray())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch announces its compressed layouts once
        if layout == "sparse_coo":
            return dense.to_sparse().coalesce()
        if layout in ("sparse_bsr", "sparse_bsc"):
            tensor = getattr(dense, f"to_{layout}")((2, 2))
        else:
            tensor = getattr(dense, f"to_{layout}")()
        if index == "int64":
            return tensor
        rows = layout in ("sparse_csr", "sparse_bsr")
        names = ("crow_indices", "col_indices") if rows else ("ccol_indices", "row_indices")
        parts = [getattr(tensor, name)().to(torch.int32) for name in names]
        return torch.sparse_compressed_tensor(
            *parts, tensor.values(), tensor.shape, layout=getattr(torch, layout)
        )


def _pydata(layout: str, dtype: str, index: str) -> sparse.SparseArray:
    dense = _sparse("csr", dtype, "int32").toarray()
    if layout == "coo":
        coo = sparse.COO.from_numpy(dense)
        return sparse.COO(coo.coords.astype(index), coo.data, coo.shape)
    if layout == "dok":
        return sparse.DOK.from_numpy(dense)
    axes = (0,) if layout == "gcxs.csr" else (1,)
    gcxs = sparse.GCXS.from_numpy(dense, compressed_axes=axes)
    arrays = gcxs.data, gcxs.indices.astype(index), gcxs.indptr.astype(index)
    return sparse.GCXS(arrays, gcxs.shape, axes)


SPARSE_TARGETS = [
    "numpy",
    "torch",
    *(f"scipy.{layout}" for layout in (*LAYOUTS, "dia", "lil", "dok")),
    *(f"torch.{layout}" for layout in TORCH_LAYOUTS),
]
PYDATA_TARGETS = [f"sparse.{layout}" for layout in PYDATA_LAYOUTS]

#: How the values of each framework are made, and in which layouts.
SPARSE_SOURCES: list[tuple[str, Callable[..., Any], str]] = [
    *(("sparse", _pydata, layout) for layout in PYDATA_LAYOUTS),
    *(("scipy", _sparse, layout) for layout in (*LAYOUTS, "dia", "lil", "dok")),
    *(("torch", _torch_sparse, layout) for layout in TORCH_LAYOUTS),
]


def _kinds(framework: str, layout: str, dtypes: Sequence[str]) -> list[tuple[str, str]]:
    """Return the dtypes and index dtypes that values of a layout can have."""
    if framework == "sparse":
        dtypes = PYDATA_DTYPES
    if layout in ("sparse_bsr", "sparse_bsc"):
        dtypes = [dtype for dtype in dtypes if dtype != "bool"]  # torch makes no blocks of bool
    indices = ("int32", "int64")
    if layout == "sparse_coo" or (framework, layout) == ("sparse", "dok"):
        indices = ("int64",)
    elif layout in ("dia", "lil", "dok"):
        indices = ("int32",)
    return [(dtype, index) for dtype in dtypes for index in indices]


def _sparse_cases(targets: Sequence[str], dtypes: Sequence[str]) -> Iterator[Any]:
    """Yield two cases for each source layout and target: the kinds of values take turns.

    The second is a slow one.
    """
    for row, (framework, make, layout) in enumerate(SPARSE_SOURCES):
        kinds = _kinds(framework, layout, dtypes)
        for column, target in enumerate(targets):
            first = row + column
            for dtype, index in dict.fromkeys(kinds[n % len(kinds)] for n in (first, first + 4)):
                name = f"{framework}-{layout}-{dtype}-{index}-{target}"
                marks = [pytest.mark.slow] * ((dtype, index) != kinds[first % len(kinds)])
                yield pytest.param(make, layout, dtype, index, target, id=name, marks=marks)


@pytest.mark.parametrize(
    ("make", "layout", "dtype", "index", "target"),
    [*_sparse_cases(SPARSE_TARGETS, SPARSE_DTYPES), *_sparse_cases(PYDATA_TARGETS, PYDATA_DTYPES)],
)
def test_sparse(make: Callable[..., Any], layout: str, dtype: str, index: str, target: str) -> None:
    """A sparse value arrives with its numbers, shared exactly where the plan says so."""
    value = make(layout, dtype, index)
    _check(value, target, _numbers(value))


@pytest.mark.extra
@pytest.mark.parametrize("ndim", [63, 64])
def test_as_many_axes_as_numpy_has(ndim: int) -> None:
    """An array of so many axes is converted to whatever holds them, and else refused."""
    array = np.full((1,) * ndim, 2, np.float32)
    arrived = set()
    for target in FORMATS:
        try:
            result = interop.convert(array, to=target)
        except (RefusedError, BadRequestError):
            continue
        assert interop.spec(result).shape == array.shape
        arrived.add(target)
    assert arrived >= {"numpy", "torch", "jax", "xarray.dataarray", "scipy.coo", "torch.sparse_coo"}


# ------------------------------------------------------- complex numbers at half of their alignment


def _off(array: np.ndarray) -> np.ndarray:
    """Return a complex array that NumPy takes to be aligned, at half an element past its size."""
    memory = np.zeros(array.nbytes + 32, np.uint8)
    first = -memory.ctypes.data % 16 + array.itemsize // 2
    result = memory[first : first + array.nbytes].view(array.dtype).reshape(array.shape)
    result[...] = array
    assert result.flags.carray
    return result


def _field(array: np.ndarray) -> np.ndarray:
    """Return a column of records, every other element of which is off its size."""
    half = f"f{array.itemsize // 2}"
    records = np.zeros(array.shape, [("number", array.dtype), ("other", half)])
    records["number"] = array
    return records["number"]


def _off_in_torch(array: np.ndarray) -> torch.Tensor:
    tensor = torch.frombuffer(array.data.cast("B"), dtype=getattr(torch, array.dtype.name))
    return tensor.reshape(array.shape)


def _off_in_csr(array: np.ndarray) -> scipy.sparse.csr_array:
    plain = scipy.sparse.csr_array(array)
    plain.data = _off(plain.data)
    return plain


def _off_in_coo(array: np.ndarray) -> sparse.COO:
    plain = sparse.COO.from_numpy(array)
    plain.data = _off(plain.data)
    return plain


def _off_in_torch_csr(array: np.ndarray) -> torch.Tensor:
    plain = torch.from_numpy(array).to_sparse_csr()
    values = _off_in_torch(_off(plain.values().numpy()))
    places = plain.crow_indices(), plain.col_indices()
    return torch.sparse_csr_tensor(*places, values, plain.shape, check_invariants=True)


#: Each way to complex numbers that lie at half of their size, which NumPy alone takes for aligned.
OFF: dict[str, Callable[[np.ndarray], Any]] = {
    "numpy": _off,
    "numpy field": _field,
    "torch": lambda array: _off_in_torch(_off(array)),
    "pandas": lambda array: pd.Series(_off(array[1]), copy=False),
    "frame": lambda array: pd.DataFrame(_off(array).T, copy=False),
    "buffer": lambda array: memoryview(_off(array)),
    "interface": lambda array: ByInterface(_off(array)),
    "producer": lambda array: ByDlpack(_off(array)),
    "csr": _off_in_csr,
    "coo": _off_in_coo,
    "torch csr": _off_in_torch_csr,
}


@pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta")
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("source", OFF)
def test_plans_know_complex_numbers_at_half_of_their_size(source: str, dtype: str) -> None:
    """They are shared exactly where the plan says so, after fast paths were learnt as before."""
    array = np.array([[0, 2 - 1j, 0], [3, 0, 4j]], dtype)
    value = OFF[source](array)
    expected = array[1] if source == "pandas" else array.T if source == "frame" else array
    targets = ["numpy", "torch", "torch.sparse_coo", "scipy.coo", "jax"]
    if expected.ndim == 2:
        targets += ["torch.sparse_csr", "scipy.csr", "sparse.gcxs.csr", "pandas.dataframe"]
    else:
        targets += ["pandas.series"]
    if source == "numpy field":
        assert value.strides[-1] % value.itemsize
    for target in targets:
        policy = {"allow": "narrow"} if target == "jax" else {}
        plan = interop.plan(value, to=target, **policy)
        for _ in range(3):
            with interop.trace() as receipts:
                result = interop.convert(value, to=target, **policy)
            (receipt,) = receipts
            assert receipt.steps == tuple(step.label for step in plan.steps), target
            assert shares_memory(interop.default._registry, value, result) in {plan.aliases, None}
            result = interop.convert(value, to=target, **policy)
            assert shares_memory(interop.default._registry, value, result) in {plan.aliases, None}
            numbers = interop.convert(result, to="numpy")
            assert np.array_equal(numbers, expected.astype(numbers.dtype)), target
            if plan.zero_copy:
                interop.convert(value, to=target, copy=False, **policy)
                continue
            with pytest.raises(RefusedError):
                interop.plan(value, to=target, copy=False, **policy)
            with pytest.raises(RefusedError):
                interop.convert(value, to=target, copy=False, **policy)


@pytest.mark.parametrize("source", ["torch", "jax"])
def test_more_axes_than_numpy_has_are_refused(source: str) -> None:
    """Whatever leads through NumPy takes 64 axes, and no more, cold and warm."""
    make = torch.zeros if source == "torch" else pytest.importorskip("jax.numpy").zeros
    for target in "numpy torch jax tensorflow mlx dask xarray pyarrow.tensor".split():
        for axes in (64, 65) if target != source else ():
            try:
                interop.convert(make((1,) * axes), to=target)
            except (RefusedError, NotInstalledError):
                continue
            assert axes == 64, target
