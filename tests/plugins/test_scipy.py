"""scipy.sparse: every layout to every other and to dense, without touching what was given."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import interop
from interop.errors import HandOffError, RefusedError
from interop.plugin import DTYPES, Parts
from interop_plugins import scipy as plugin
from interop_plugins.scipy import components as by_components
from interop_plugins.scipy import dense as dense_steps
from interop_plugins.scipy.describe import memory
from tests.cases import together
from tests.plugins.values import start

LAYOUTS = ("coo", "csr", "csc", "bsr", "dia", "lil", "dok")
BY_COMPONENTS = ("coo", "csr", "csc", "bsr")
NAMES = sorted(plugin._DTYPES)
SHAPE = (6, 8)


def components(value):
    """Return the arrays that a sparse array is made of."""
    if value.format in ("csr", "csc", "bsr"):
        return [value.data, value.indices, value.indptr]
    if value.format == "coo":
        return [value.data, *value.coords]
    return [value.data, value.offsets] if value.format == "dia" else []


def state(value):
    """Return all that must not change: which arrays, and every element."""
    if value.format == "lil":
        return [list(map(list, value.rows)), list(map(list, value.data))]
    if value.format == "dok":
        return list(value.items())
    return [(id(array), array.tolist()) for array in components(value)]


def sample(layout, dtype="float64", index="int32", *, canonical=True):
    """Return a sparse array with explicit zeros and, unless canonical, duplicates out of order."""
    rng = np.random.default_rng(7)
    rows, columns = rng.integers(0, 6, 30), rng.integers(0, 8, 30)
    numbers = rng.integers(0, 4, 30).astype(dtype)
    numbers[:4] = 0
    value = sp.coo_array((numbers, (rows.astype(index), columns.astype(index))), shape=SHAPE)
    if canonical:
        value.sum_duplicates()
    if layout in ("csr", "csc"):
        return _compressed(layout, value, index)
    if layout == "bsr":
        return _blocks(dtype, index, canonical)
    if layout in ("lil", "dok"):
        value.sum_duplicates()
    return value.asformat(layout)


def _compressed(layout, value, index):
    major, minor = value.coords if layout == "csr" else value.coords[::-1]
    order = np.argsort(major, kind="stable")
    length = SHAPE[0] if layout == "csr" else SHAPE[1]
    pointers = np.searchsorted(major[order], np.arange(length + 1)).astype(index)
    arrays = (value.data[order], minor[order].copy(), pointers)
    return getattr(sp, f"{layout}_array")(arrays, shape=SHAPE)


def _blocks(dtype, index, canonical):
    numbers = (np.arange(16) % 3).reshape(4, 2, 2).astype(dtype)
    indices = np.array([0, 1, 0, 3] if canonical else [1, 0, 3, 3], index)
    return sp.bsr_array((numbers, indices, np.array([0, 2, 4, 4], index)), shape=SHAPE)


def truly_canonical(value):
    """Find out, whatever flags say, whether a sparse array is sorted and has no duplicates."""
    if value.format == "coo":
        place = np.ravel_multi_index(value.coords, value.shape)
        return bool((np.diff(place) > 0).all())
    fresh = type(value)(tuple(a.copy() for a in components(value)), shape=value.shape)
    return bool(fresh.has_canonical_format)


# ------------------------------------------------------------------ between layouts


@pytest.mark.parametrize("source", ["coo", "csr", "csc", "lil", "dok"])
@together("target", ["coo", "csr", "csc", "lil", "dok"])
def test_explicit_zeros_are_kept(source, target):
    """A zero that is stored stays stored."""
    value = sample(source)
    stored = value.nnz
    assert stored > value.count_nonzero()
    assert interop.convert(value, to=f"scipy.{target}").nnz == stored


def test_csr_to_coo_shares_what_it_can():
    """The values and columns of a csr array are those of the coo array, and that is told."""
    value = sample("csr")
    route = interop.plan(value, to="scipy.coo")
    assert not route.zero_copy
    result = route(value)
    assert start(result.data) == start(value.data)
    assert result.has_canonical_format


def test_dok_is_not_taken_for_sorted():
    """The order of a dictionary is not that of coordinates, although SciPy says so."""
    value = sp.dok_array((3, 3))
    value[2, 0], value[0, 1], value[1, 1] = 1.0, 2.0, 3.0
    coo = interop.convert(value, to="scipy.coo")
    assert not coo.has_canonical_format
    csr = interop.convert(value, to="scipy.csr")
    assert csr.toarray().tolist() == [[0, 2, 0], [0, 3, 0], [1, 0, 0]]


def test_wide_diagonals_do_not_warn():
    """More than a hundred diagonals are converted without SciPy's warning."""
    value = sp.coo_array(np.eye(300)[::-1])
    result = interop.convert(value, to="scipy.dia")
    assert len(result.offsets) == 300
    assert (result.toarray() == value.toarray()).all()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_nothing_stored(layout):
    """Arrays that store nothing, and arrays without rows or columns, pass through all layouts."""
    for shape in ((3, 4), (0, 3), (3, 0)):
        value = sp.coo_array(shape, dtype="float32").asformat(layout)
        for target in LAYOUTS:
            result = interop.convert(value, to=f"scipy.{target}")
            assert (result.shape, result.dtype) == (shape, "float32")
        assert interop.convert(value, to="numpy").shape == shape


# ------------------------------------------------------------------ matrices and oddities


def test_matrix_with_wide_indices():
    """The int64 indices that a matrix was given afterwards are kept, and shared."""
    value = sp.csr_matrix(sample("csr"))
    value.indices, value.indptr = value.indices.astype("int64"), value.indptr.astype("int64")
    result = interop.convert(value, to="scipy.csr", copy=False)
    assert (result.indices.dtype, result.indptr.dtype) == ("int64", "int64")
    assert start(result.indices) == start(value.indices)


def test_blocks_that_are_not_square_store_as_many_numbers_as_they_hold():
    """The stored numbers of a bsr array are its blocks, times their rows, times their columns."""
    value = sp.bsr_array(np.ones((4, 6)), blocksize=(2, 3))
    assert interop.spec(value).nnz == value.nnz == 24


@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("layout", BY_COMPONENTS)
def test_mixed_index_dtypes(convert, layout, kind):
    """Index arrays of two dtypes become two of the wider; values stay shared."""
    value = getattr(sp, f"{layout}_{kind}")(sample(layout))
    if layout == "coo":
        value.coords = (value.coords[0], value.coords[1].astype("int64"))
    else:
        value.indptr = value.indptr.astype("int64")
    before = state(value)
    result = convert(value, to=f"scipy.{layout}")
    assert {str(array.dtype) for array in components(result)[1:]} == {"int64"}
    assert start(result.data) == start(value.data)
    assert (result.toarray() == value.toarray()).all()
    assert state(value) == before
    with pytest.raises(RefusedError):
        interop.convert(value, to=f"scipy.{layout}", copy=False)


def test_more_room_than_elements():
    """What lies in the arrays behind the last element is not part of the value."""
    value = sample("csr")
    value.data = np.append(value.data, [99.0, 99.0])
    value.indices = np.append(value.indices, np.array([0, 0], "int32"))
    dense = value.toarray()
    assert interop.spec(value).nnz == value.nnz
    for target in ("coo", "csc"):
        assert (interop.convert(value, to=f"scipy.{target}").toarray() == dense).all()
    copied = interop.convert(value, to="scipy.csr", copy=True)
    assert len(copied.data) == value.nnz


# ------------------------------------------------------------------ other numbers of axes


def test_arrays_of_one_axis_convert_and_keep_the_source():
    """Coo and csr arrays of one axis convert, and SciPy's sorting does not reach the source."""
    arrays = np.array([1.0, 2.0, 3.0]), (np.array([3, 1, 3], "int32"),)
    value = sp.coo_array(arrays, shape=(5,))
    before = state(value)
    assert interop.convert(value, to="numpy").tolist() == [0, 2, 0, 4, 0]
    csr = interop.convert(value, to="scipy.csr")
    assert (csr.shape, csr.toarray().tolist()) == ((5,), [0, 2, 0, 4, 0])
    assert interop.convert(value, to="scipy.dok").toarray().tolist() == [0, 2, 0, 4, 0]
    assert state(value) == before
    back = interop.convert(csr, to="scipy.coo")
    assert (back.shape, back.toarray().tolist()) == ((5,), [0, 2, 0, 4, 0])
    assert interop.convert(csr, to="numpy").tolist() == [0, 2, 0, 4, 0]
    copied = interop.convert(csr, to="scipy.csr", copy=True, dtype="float32")
    assert copied.toarray().tolist() == [0, 2, 0, 4, 0]


def test_three_axes():
    """Coo arrays of three axes become dense and canonical, and nothing of two axes."""
    coords = tuple(np.array(axis) for axis in ([0, 1, 1], [1, 0, 0], [2, 3, 3]))
    value = sp.coo_array((np.array([1.0, 2.0, 3.0]), coords), shape=(2, 2, 4))
    assert interop.spec(value).traits == {"uncoalesced"}
    dense = interop.convert(value, to="numpy")
    assert (dense[0, 1, 2], dense[1, 0, 3], np.count_nonzero(dense)) == (1, 5, 2)
    with pytest.raises(RefusedError):
        interop.convert(value, to="scipy.csr")


# ------------------------------------------------------------------ dense


def test_coordinates_of_three_axes_stay_narrow_and_shared():
    """SciPy would copy them as int64, of which no plan speaks."""
    dense = np.zeros((2, 3, 4), "float32")
    dense[1, 2, 3] = 5
    made = interop.convert(dense, "scipy.coo")
    assert [axis.dtype.name for axis in made.coords] == ["int32"] * 3
    packed = by_components.pack_coo(by_components.unpack_coo(made))
    for axis, given in zip(packed.coords, made.coords, strict=True):
        assert np.shares_memory(axis, given)
    assert np.array_equal(packed.toarray(), dense)


@pytest.mark.parametrize("small", [0, dense_steps._SMALL])
@pytest.mark.parametrize("own_kernels", [True, False])
@pytest.mark.parametrize("name", ["bool", "int8", "float32", "complex128"])
@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_every_kernel_gives_the_dense_array(layout, name, own_kernels, small, monkeypatch):
    """Duplicates are summed and spare room is not read, with and without SciPy's own kernels."""
    value = sample(layout, name, canonical=False)
    expected = value.copy().toarray()
    roomy = sp.csr_array if layout == "csr" else sp.csc_array
    arrays = (np.append(value.data, value.data), np.append(value.indices, value.indices * 0 + 99))
    room = roomy((0, 0), dtype=value.dtype)
    room.data, room.indices, room.indptr, room._shape = *arrays, value.indptr, value.shape
    monkeypatch.setattr(dense_steps, "_SMALL", small)
    if not own_kernels:
        monkeypatch.setattr(dense_steps, "_kernel", lambda name: None)
    assert (dense_steps.to_dense(value) == expected).all()
    assert (dense_steps.to_dense(room) == expected).all()


@pytest.mark.parametrize("layout", LAYOUTS)
@together("name", NAMES)
def test_from_dense(name, layout):
    """A dense array of every dtype SciPy knows becomes sparse, its zeros not stored."""
    dense = sample("csr", name).toarray()
    for odd in (dense, np.asfortranarray(dense), dense[::-1, ::2], dense[:0]):
        result = interop.convert(odd, to=f"scipy.{layout}")
        assert type(result) is getattr(sp, f"{layout}_array")
        assert (result.dtype, result.shape) == (odd.dtype, odd.shape)
        assert (result.toarray() == odd).all()
        if layout not in ("bsr", "dia"):
            assert result.nnz == np.count_nonzero(odd)
        if layout in ("coo", "csr", "csc"):
            assert {str(a.dtype) for a in components(result)[1:]} == {"int32"}
            assert truly_canonical(result)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_from_dense_in_pieces(layout, monkeypatch):
    """Searched piece by piece and by several threads, a large array has the same elements."""
    monkeypatch.setattr(dense_steps, "_PIECE", 700)
    dense = np.arange(3000 * 1000.0).reshape(3000, 1000)
    dense[dense % 97 != 5] = 0
    dense[:40] = 0
    for odd in (dense, dense.T, dense[:7, :3], dense[::-1, ::2]):
        result = interop.convert(odd, to=f"scipy.{layout}")
        expected = getattr(sp, f"{layout}_array")(odd)
        for mine, theirs in zip(components(result), components(expected), strict=True):
            assert (mine == theirs).all()
        assert truly_canonical(result)


def test_from_dense_special_numbers():
    """NaN and infinities are stored, and dtypes that SciPy lacks are widened."""
    value = interop.convert(np.array([[np.nan, 0], [0, -np.inf]]), to="scipy.csr")
    assert value.nnz == 2
    assert np.isnan(value.toarray()[0, 0])
    assert interop.convert(np.eye(2, dtype="float16"), to="scipy.csr").dtype == "float32"
    assert interop.convert(np.eye(2), to="scipy").toarray().tolist() == [[1, 0], [0, 1]]


def test_from_dense_of_any_axes():
    """A dense array of one or three axes becomes coo, and csr only with two."""
    dense = np.zeros((2, 3, 4))
    dense[1, 2, 3] = 5
    value = interop.convert(dense, to="scipy.coo")
    assert (value.shape, value.nnz, value.has_canonical_format) == ((2, 3, 4), 1, True)
    assert interop.convert(np.array([0, 7]), to="scipy.coo").coords[0].tolist() == [1]
    with pytest.raises(RefusedError):
        interop.convert(dense, to="scipy.csr")


@pytest.mark.parametrize("dtype", ["O", "U1", "M8[s]"])
def test_csr_arrays_of_objects_are_refused(dtype):
    """A csr array of objects or strings, which SciPy lets pass, is refused."""
    numbers = np.ones(2, "int8").astype(dtype)
    value = sp.csr_array((numbers, np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
    assert interop.spec(value).dtype not in DTYPES
    with pytest.raises(RefusedError):
        interop.convert(value, to="numpy")


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize("dtype", ["float16", ">f4"])
def test_dtypes_that_only_csr_holds(dtype, layout):
    """float16 and foreign byte order, which SciPy cannot compute with, still become dense."""
    value = sample(layout, "float32")
    value.data = value.data.astype(dtype)
    result = interop.convert(value, to="numpy", dtype="float32")
    assert (result == sample(layout, "float32").toarray()).all()


# ------------------------------------------------------------------ memory


def test_memory_of_a_scipy_array_is_that_of_its_components():
    """The memory of a sparse array is that of its component arrays."""
    for layout in (*BY_COMPONENTS, "dia"):
        value = sample(layout)
        assert memory(value) == tuple((start(a), a.nbytes) for a in components(value))
        for address, nbytes in memory(value):
            assert len(ctypes.string_at(address, nbytes)) == nbytes
    assert memory(sample("lil")) == memory(sample("dok")) == ()


@pytest.mark.parametrize("layout", ["csr", "csc"])
@pytest.mark.parametrize(
    ("pointers", "stored"),
    [([1, 1, 2, 3], 3), ([0, 1, 2, 4], 3), ([0, 1, 2], 3), ([0, 1, 2, 3], 2)],
    ids=["begin late", "lead beyond the end", "too few", "more indices than values"],
)
def test_components_that_do_not_fit_together_are_refused(layout, pointers, stored):
    """Arrays that do not fit together are refused, although their elements are not checked."""
    arrays = {
        "values": np.ones(stored),
        "indices": np.zeros(3, "int32"),
        "pointers": np.array(pointers, "int32"),
    }
    with pytest.raises(HandOffError):
        by_components.pack_compressed(layout, Parts((3, 3), arrays))


@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_arrays_made_from_their_state_are_like_constructed_ones(layout):
    """What is packed without the constructor has the same state as what the constructor makes."""
    constructed = sp.random_array((4, 5), density=0.5, format=layout, rng=0)
    constructed.has_canonical_format = True
    arrays = {
        "values": constructed.data,
        "indices": constructed.indices,
        "pointers": constructed.indptr,
    }
    parts = Parts(constructed.shape, arrays, {"canonical": True})
    packed = by_components.pack_compressed(layout, parts)
    assert type(packed) is type(constructed)
    assert vars(packed).keys() == vars(constructed).keys()
    assert all(vars(packed)[name] is value for name, value in vars(constructed).items())
    assert (packed @ np.ones(5) == constructed @ np.ones(5)).all()


def test_a_number_has_no_coordinates() -> None:
    """A value without axes is refused by SciPy's layouts in words of interop's own."""
    torch = pytest.importorskip("torch")
    number = torch.tensor(2.0).to_sparse()
    with pytest.raises(interop.errors.RefusedError):
        interop.convert(number, to="scipy.coo", copy=False)


def test_blocks_keep_their_axes_whatever_steps_cost():
    """No route of the values of blocks leads through what has one axis alone, which would lose two."""
    for library in ("pyarrow", "polars", "jax", "mlx.core"):  # a route leads through what is there
        pytest.importorskip(library)
    declared = interop.Interop()
    names = [one.key for one in declared.conversions()] + [one.name for one in declared.formats()]
    value = sp.bsr_array(np.eye(4, dtype="uint8"), blocksize=(2, 2))
    for seed in range(12):
        rng = random.Random(seed)
        costs = {n: (1e-6 * 100 ** rng.random(), 1e8 * 10 ** (3 * rng.random())) for n in names}
        own = interop.Interop(costs={name: interop.Cost(*cost) for name, cost in costs.items()})
        result = own.convert(value, to="scipy.bsr", dtype="int32")
        assert (result.blocksize, result.dtype) == ((2, 2), np.int32)
        assert (result.toarray() == np.eye(4)).all()


def test_a_sparse_scalar_goes_round_scipy() -> None:
    """SciPy has no sparse arrays without axes, so that no route leads through one."""
    scalar = torch.sparse_coo_tensor(
        torch.empty((0, 1), dtype=torch.int64), torch.tensor([3]), (), check_invariants=True
    )
    for target in ("numpy", "dask"):
        steps = interop.plan(scalar, to=target).steps
        assert not any(step.after.format.startswith("scipy") for step in steps)
        result = interop.convert(scalar, to=target)
        assert int(result) == 3


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("shape", [(0, 10), (6, 0), (3, 4)])
@pytest.mark.parametrize("layout", ["csr", "csc"])
def test_an_array_of_no_elements_keeps_its_index_dtype(layout, shape, index):
    """The indices of an empty COO array stay as wide as they are, as those of any other do."""
    empty = sp.coo_array(shape, dtype="float32")
    empty.coords = tuple(axis.astype(index) for axis in empty.coords)
    result = interop.convert(empty, to=f"scipy.{layout}")
    assert (result.indices.dtype, result.indptr.dtype) == (index, index)
    assert (result.shape, result.nnz, result.dtype) == (shape, 0, np.float32)
    assert result.has_canonical_format
    assert (result.toarray() == 0).all()


@pytest.mark.parametrize(("side", "is_planned"), [(128, False), (129, True)])
def test_only_small_matrices_are_made_dense_without_a_plan(side: int, is_planned: bool) -> None:
    """A larger dense array is planned, so that the memory that is left is looked at before."""
    matrix = sp.csr_array(np.eye(side))
    assert (dense_steps.numpy_fast_path(matrix) is NotImplemented) == is_planned
    np.testing.assert_array_equal(interop.convert(matrix, to="numpy"), np.eye(side))


@together("layout", LAYOUTS)
@together("kind", ["array", "matrix"])
def test_every_layout_is_an_array_in_a_tree(layout: str, kind: str) -> None:
    """So is a dict of elements by their places, which is no container of theirs."""
    value = getattr(sp, f"{layout}_{kind}")(sp.coo_array(np.eye(2)))
    double = interop.accepts("torch")(lambda x: x["x"].sum() * 2)
    for tree in ({"x": value, "n": 1}, {"x": value}):
        result = interop.convert_tree(tree, to="torch")["x"].to_dense()
        np.testing.assert_array_equal(result, np.eye(2))
        assert double(tree).item() == 4
    np.testing.assert_array_equal(interop.convert_tree(value, to="torch").to_dense(), np.eye(2))


@pytest.mark.parametrize("layout", ["lil", "dok"])
def test_a_layout_of_pythons_objects_counts_as_its_numbers_and_indices(layout: str) -> None:
    """Its bytes are those of the values and of two indices of 32 bits for each of them."""
    value = sp.csr_array(np.eye(3, dtype="float32")).asformat(layout)
    spec = interop.spec(value)
    assert (spec.nnz, spec.index_dtype, spec.nbytes) == (3, "int32", 3 * (4 + 2 * 4))


@pytest.mark.parametrize("name", ["csr_todense", "coo_todense"])
def test_scipy_has_the_kernels_that_fill_dense_arrays(name: str) -> None:
    """Without them its public methods are used, which take one thread, or sort first."""
    assert dense_steps._kernel(name) is not None


@together("words", [{"copy": True}, {"dtype": "float32"}, {"copy": True, "dtype": "float32"}])
@together("to", ["scipy.csr", "scipy.coo", "torch.sparse_coo", "sparse.coo", "numpy"])
def test_rows_of_one_axis_take_the_route_that_is_planned(words: dict[str, Any], to: str) -> None:
    """The plan for a compressed array of one axis and its receipt name the same steps and memory."""
    row = sp.csr_array(np.array([1.0, 0, 2]))
    assert row.shape == (3,)
    plan = interop.plan(row, to=to, **words)
    with interop.trace() as receipts:
        result = interop.convert(row, to=to, **words)
    assert receipts[0].steps == tuple(step.label for step in plan.steps)
    assert receipts[0].aliased in {plan.aliases, None}
    assert interop.convert(result, to="numpy").tolist() == [1, 0, 2]
    assert interop.spec(result).dtype == words.get("dtype", "float64")
