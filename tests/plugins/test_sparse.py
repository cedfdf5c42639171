"""PyData sparse: COO, GCXS and DOK arrays, in and out, sharing what can be shared."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import scipy.sparse as sp
import sparse
import torch

import interop
from interop.errors import HandOffError, RefusedError
from interop_plugins.sparse import canonical, layouts
from tests.cases import together
from tests.plugins.values import start

DENSE = np.array([[0, 1, 0, 4], [2, 0, 0, 0], [0, 3, 5, 0]])
FORMATS = ("coo", "gcxs.csr", "gcxs.csc", "dok")
DTYPES = ("bool", "int8", "int64", "uint16", "float32", "float64", "complex64")


def make(layout, dense=DENSE):
    """Return a sparse array, made by the library itself."""
    if layout == "coo":
        return sparse.COO.from_numpy(dense)
    if layout == "dok":
        return sparse.DOK.from_coo(sparse.COO.from_numpy(dense))
    axes = {"gcxs.csr": (0,), "gcxs.csc": (1,)}.get(layout)
    return sparse.GCXS.from_numpy(dense, compressed_axes=axes)


def foreign(name, dense=DENSE):
    """Return a sparse array of another library."""
    library, layout = name.split(".")
    if library == "scipy":
        return getattr(sp, f"{layout}_array")(dense)
    tensor = torch.from_numpy(dense.copy())
    return interop.convert(tensor, to=name)


def components(value):
    """Return the arrays that a sparse array of any library is made of, as NumPy's."""
    if isinstance(value, torch.Tensor):
        if value.layout is torch.strided:
            return [value.numpy()]
        if value.layout is torch.sparse_coo:
            return [value._values().numpy(), value._indices().numpy()]
        rows = value.layout is torch.sparse_csr
        names = ("crow_indices", "col_indices") if rows else ("ccol_indices", "row_indices")
        return [value.values().numpy(), *(getattr(value, name)().numpy() for name in names)]
    names = ("data", "coords", "indices", "indptr")
    parts = [getattr(value, name) for name in names if hasattr(value, name)]
    arrays = [a for part in parts for a in (part if isinstance(part, tuple) else (part,))]
    return [a for a in arrays if isinstance(a, np.ndarray)]


def numbers(value):
    """Return the dense array by the library's own means."""
    if isinstance(value, torch.Tensor):
        return value.to_dense().numpy() if value.layout is not torch.strided else value.numpy()
    if isinstance(value, np.ndarray):
        return value
    return value.toarray() if sp.issparse(value) else value.todense()


def shared(value, result):
    """Return how many of the components of a result share memory with those of a value."""
    return sum(any(np.shares_memory(a, b) for a in components(value)) for b in components(result))


# ------------------------------------------------------------------ describing


def test_order_is_checked_once_for_a_value():
    """Coordinates are checked once, and again when they are replaced; the value is not kept alive."""
    value = make("coo")
    before = len(canonical._inspected)
    assert interop.spec(value).traits == set()
    assert len(canonical._inspected) == before + 1
    value.coords[0, 0] = 2  # no longer sorted, which nobody can notice
    assert interop.spec(value).traits == set()
    value.coords = value.coords.copy()
    assert interop.spec(value).traits == {"uncoalesced"}
    del value
    gc.collect()
    assert len(canonical._inspected) == before


# ------------------------------------------------------------------ to and from others

TARGETS = (
    *(f"sparse.{layout}" for layout in FORMATS),
    *(f"scipy.{layout}" for layout in ("coo", "csr", "csc", "dok")),
    *(f"torch.sparse_{layout}" for layout in ("coo", "csr", "csc")),
    "numpy",
    "torch",
)


@pytest.mark.parametrize("index", ["int8", "uint16", "int32", "uint64"])
def test_narrow_coordinates_are_widened_for_torch(index):
    """torch gets a copy of the coordinates in 64 bits, and shares the values all the same."""
    narrow = make("coo", DENSE.astype("float64"))
    value = sparse.COO(narrow.coords.astype(index), narrow.data, narrow.shape)
    result = interop.convert(value, to="torch.sparse_coo")
    assert result._indices().dtype == torch.int64
    assert result._values().data_ptr() == start(value.data)
    assert (numbers(result) == DENSE).all()
    with pytest.raises(RefusedError):
        interop.convert(value, to="torch.sparse_coo", copy=False)
    assert (numbers(interop.convert(value, to="scipy.csr")) == DENSE).all()
    assert (numbers(interop.convert(value, to="sparse.gcxs")) == DENSE).all()


def test_pointers_do_not_overflow_narrow_coordinates():
    """More elements than the dtype of the coordinates can count still have right pointers."""
    dense = np.ones((100, 100))
    coo = sparse.COO.from_numpy(dense)
    value = sparse.COO(coo.coords.astype("int8"), coo.data, coo.shape)
    for target in ("sparse.gcxs.csr", "sparse.gcxs.csc", "scipy.csr"):
        assert (numbers(interop.convert(value, to=target)) == dense).all()


def test_named_targets():
    """``"sparse"`` is any of its formats, ``"sparse.gcxs"`` any GCXS, and types name them too."""
    for source, expected in (("csr", "gcxs.csr"), ("csc", "gcxs.csc"), ("coo", "coo")):
        theirs = foreign(f"scipy.{source}")
        assert interop.spec(interop.convert(theirs, to="sparse")).format == f"sparse.{expected}"
    columns = interop.convert(foreign("scipy.csc"), to=sparse.GCXS, copy=False)
    assert columns.compressed_axes == (1,)
    assert type(interop.convert(columns, to=sparse.COO)) is sparse.COO
    assert interop.convert(columns, to="sparse.gcxs") is columns
    assert type(interop.convert(columns, to=sparse)) is sparse.GCXS
    assert interop.spec(interop.convert(columns, to="sparse.gcxs.csr")).format == "sparse.gcxs.csr"


def test_explicit_zeros_are_kept():
    """A zero that is stored stays stored, in every layout and in SciPy."""
    value = sparse.COO(np.array([[0, 1], [1, 0]]), np.array([0.0, 2.0]), (2, 2))
    for target in (*TARGETS[:7], "torch.sparse_csr"):
        result = interop.convert(value, to=target)
        assert interop.spec(result).nnz == 2


@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4), (0, 3), (1, 1)])
@pytest.mark.parametrize("layout", ["coo", "gcxs", "dok"])
def test_any_number_of_axes(layout, shape):
    """Arrays of no, one and three axes, and empty ones, go round all formats."""
    dense = np.arange(np.prod(shape, dtype=int)).reshape(shape) + 1.0
    value = make(layout, dense)
    for target in ("sparse.coo", "sparse.gcxs", "sparse.dok", "numpy", "torch"):
        for copy in (None, True):
            result = interop.convert(value, to=target, copy=copy)
            assert numbers(result).shape == shape
            assert (numbers(result) == dense).all()
            assert not (copy and shared(value, result))
    for target in ("scipy.coo", "torch.sparse_coo") if shape else ("torch.sparse_coo",):
        result = interop.convert(value, to=target)
        assert (numbers(result) == dense).all()
        assert (numbers(interop.convert(result, to="sparse.coo")) == dense).all()


def test_dtypes_that_numba_does_not_know():
    """Half precision lives in COO and DOK; for GCXS it is widened, without a loss."""
    value = make("coo", DENSE.astype("float16"))
    assert interop.convert(value, to="sparse.dok").dtype == "float16"
    assert interop.convert(value, to="numpy").dtype == "float16"
    assert interop.convert(value, to="sparse.gcxs").dtype == "float32"
    with pytest.raises(RefusedError):
        interop.convert(make("coo", DENSE.astype(object)), to="numpy")


def test_a_canonical_copy_of_what_is_in_order_shares_nothing():
    """A step that sorts copies what it finds in order, since who asked for it may write to the result."""
    value = make("coo")
    result = layouts.canonicalize(value)
    assert (result.todense() == DENSE).all()
    assert not shared(value, result)


# ------------------------------------------------------------------ fill values


@pytest.mark.parametrize("layout", FORMATS)
@pytest.mark.parametrize("fill", [1.5, np.nan, np.inf])
def test_fill_values(layout, fill):
    """What is not stored and not zero fills the dense array, and is refused by other libraries."""
    value = interop.convert(make("coo", DENSE.astype("float64")), to=f"sparse.{layout}", copy=True)
    value.fill_value = np.float64(fill)
    expected = value.todense()
    assert (interop.spec(value).traits, np.isnan(expected).sum()) == (
        {"fill_value"},
        7 * np.isnan(fill),
    )
    for target in ("numpy", "torch", *TARGETS[:4]):
        result = interop.convert(value, to=target)
        np.testing.assert_array_equal(numbers(result), expected)
        copied = interop.convert(value, to=target, copy=True)
        np.testing.assert_array_equal(numbers(copied), expected)
    for target in ("scipy.coo", "scipy.csr", "torch.sparse_coo", "torch.sparse_csr"):
        with pytest.raises(RefusedError):
            interop.convert(value, to=target, forbid="densify")


def test_filled_arrays_may_go_by_way_of_dense_ones():
    """Unless densifying is forbidden, a filled array becomes SciPy's with every element stored."""
    value = make("coo", DENSE.astype("float64"))
    value.fill_value = np.float64(2)
    result = interop.convert(value, to="scipy.csr")
    assert result.nnz == 12
    assert (result.toarray() == value.todense()).all()


def test_negative_zero_is_no_fill_value():
    """The negative of an array, whose fill is -0.0, is an ordinary sparse array."""
    value = -make("coo", DENSE.astype("float64"))
    assert np.signbit(value.fill_value)
    assert (interop.convert(value, to="scipy.csr", copy=None).toarray() == -DENSE).all()
    for layout in FORMATS:
        filled = make(layout, DENSE.astype("float64"))
        filled.fill_value = np.float64(-0.0)
        for to in ("numpy", "torch"):
            dense = np.asarray(interop.convert(filled, to=to))
            assert np.array_equal(np.signbit(dense), DENSE == 0), (layout, to)


def test_fill_values_are_cast():
    """A cast of the values is a cast of the fill value."""
    value = make("coo", DENSE.astype("complex64"))
    value.fill_value = np.complex64(2.5 + 1j)
    result = interop.convert(value, to="sparse.coo", dtype="float32")
    assert (result.fill_value, result.fill_value.dtype) == (2.5, "float32")
    dense = interop.convert(value, to="numpy", dtype="int32")
    assert dense[0].tolist() == [2, 1, 2, 4]


# ------------------------------------------------------------------ bad input


def lying(coords, data, shape=(3, 4)):
    """Return a COO array that the library believes to be sorted and without duplicates."""
    arrays = np.array(coords), np.array(data, "float64")
    return sparse.COO(*arrays, shape, has_duplicates=False, sorted=True)


@together("axis", [0, 1])
@together(
    "indices, pointers, traits",
    [
        ([0, 3, 0], [0, 0, 1, 3], {"uncoalesced"}),
        ([3, 0, 0], [0, 0, 1, 3], {"uncoalesced"}),
        ([0, 3, 0], [0, 0, 2, 3], set()),
        ([3, 0, 3], [0, 1, 3, 3], set()),
        ([3, 0, 3], [0, 2, 3, 3], {"uncoalesced"}),
    ],
)
def test_the_order_within_rows_counts_alone(indices, pointers, traits, axis):
    """A row may start anywhere, also the first that is not empty, and must rise to its end."""
    arrays = np.ones(3), np.array(indices), np.array(pointers)
    value = sparse.GCXS(arrays, shape=(3, 4) if axis == 0 else (4, 3), compressed_axes=(axis,))
    assert interop.spec(value).traits == traits


def test_unsorted_and_uncoalesced_values_are_sorted_in_a_copy():
    """SciPy's unsorted rows, and torch's uncoalesced tensors, become sorted arrays; not in place."""
    arrays = np.array([1.0, 2, 3]), np.array([2, 0, 0]), np.array([0, 3, 3])
    for value in (
        sp.csr_array(arrays, shape=(2, 3)),
        torch.sparse_coo_tensor(
            [[0, 0, 0], [2, 0, 0]], [1.0, 2.0, 3.0], (2, 3), check_invariants=False
        ),
    ):
        for target in ("sparse.coo", "sparse.gcxs.csr", "sparse.gcxs.csc", "sparse.dok"):
            result = interop.convert(value, to=target)
            assert (numbers(result) == [[5, 0, 1], [0, 0, 0]]).all()
            # torch's coalesced coordinates are part of a larger block
            assert interop.spec(result).traits <= {"noncontiguous"}
    assert arrays[1].tolist() == [2, 0, 0]


def test_coordinates_outside_of_the_shape(in_subprocess):
    """Coordinates outside of the shape, with which torch writes where it must not, are refused."""
    for coords in ([[0, 9], [1, 0]], [[-1, 0], [1, 0]]):
        value = lying(coords, [1, 2])
        with pytest.raises(HandOffError):
            interop.convert(value, to="torch.sparse_coo")
    dok = sparse.DOK((2, 2), {(0, 0): 1.0})
    dok.data[5, 0] = 1.0
    with pytest.raises(HandOffError):
        interop.convert(dok, to="sparse.coo")
    in_subprocess("""
        import numpy as np, sparse, interop
        value = sparse.COO(np.array([[0, 2**40], [0, 2**40]]), np.ones(2), (2, 2),
                           has_duplicates=False, sorted=True)
        for target in ("torch", "torch.sparse_coo", "torch.sparse_csr", "numpy", "scipy.csr"):
            try:
                interop.convert(value, to=target)
            except BufferError:
                continue
            raise AssertionError(target)
    """)


def test_room_behind_the_elements_is_left_out():
    """Elements behind the last pointer are not part of the array."""
    arrays = np.array([1.0, 2, 9]), np.array([0, 1, 0]), np.array([0, 1, 2])
    value = sparse.GCXS(arrays, (2, 3), (0,))
    for target in ("scipy.csr", "numpy", "torch.sparse_csr", "sparse.coo"):
        assert (numbers(interop.convert(value, to=target)) == [[1, 0, 0], [0, 2, 0]]).all()


def test_too_large_to_be_dense():
    """Shapes beyond memory are refused when dense, and pass from layout to layout."""
    places = np.array([[0, 2**40], [2**41, 1], [3, 4]])
    value = lying(places, [1, 2], (2**42,) * 3)
    assert interop.convert(interop.convert(value, to="sparse.dok"), to="sparse.coo").nnz == 2
    with pytest.raises(MemoryError):
        interop.convert(value, to="numpy")
    lies = lying(places[:, ::-1], [2, 1], (2**42,) * 3)  # a flat index would overflow
    assert (interop.convert(lies, to="sparse.coo").coords == places).all()


def _of_numpy_integers(layout):
    shape = tuple(map(np.int64, DENSE.shape))
    if layout == "dok":
        value = sparse.DOK(DENSE.shape)
        value.shape = shape
        value[0, 1] = 3.0
        return value
    if layout == "coo":
        value = make("coo", DENSE.astype(float))
        value.shape = shape
        return value
    if layout == "sum":
        return sparse.random((7, 143), format="gcxs").sum(axis=0)
    value = make(layout, DENSE.astype(float))
    components = (value.data, value.indices, value.indptr)
    return sparse.GCXS(components, shape=shape, compressed_axes=value.compressed_axes)


@together(
    "target", ["numpy", "torch", "scipy.coo", "scipy.csr", "sparse.coo", "torch.sparse_coo", "jax"]
)
@pytest.mark.parametrize("layout", [*FORMATS, "sum"])
def test_shapes_of_numpy_integers(layout, target):
    """The library leaves NumPy's integers in a shape; specs and results have Python's."""
    value = _of_numpy_integers(layout)
    assert {type(length) for length in value.shape} == {np.int64}
    spec = interop.spec(value)
    assert {type(number) for number in (*spec.shape, spec.nbytes, spec.nnz)} == {int}
    result = interop.convert(value, to=target, allow="narrow")
    assert {type(length) for length in interop.spec(result).shape} == {int}
    assert np.allclose(
        interop.convert(result, to="numpy"), interop.convert(value, to="numpy"), rtol=1e-6
    )


def test_sorted_arrays_stay_known_to_be_sorted():
    """An array that a step has sorted is known to be sorted, the first time and later."""
    rows = interop.convert(np.eye(3), to="sparse.gcxs.csr")
    for _ in range(3):
        assert interop.convert(rows, to="scipy.coo").has_canonical_format
        assert interop.convert(
            interop.convert(rows, to="sparse.dok"), "scipy.coo"
        ).has_canonical_format


@pytest.mark.parametrize("dtype", [None, "float32"])
@pytest.mark.parametrize("target", ["sparse.coo", "sparse.dok", "sparse.gcxs.nd", "numpy"])
@pytest.mark.parametrize("numbers", [[], [1.0], [1.0, 2.0]])
@pytest.mark.parametrize("library", ["sparse", "torch", "jax"])
def test_a_value_of_no_axes(library, numbers, target, dtype):
    """A COO array of no axes holds one number, however many are stored, and reaches every format."""
    coords = np.zeros((0, len(numbers)), "int64")
    data = np.array(numbers, "float64")
    if library == "sparse":
        value = sparse.COO(coords, data, shape=(), has_duplicates=False, sorted=True)
    elif library == "torch":
        arrays = torch.from_numpy(coords), torch.from_numpy(data)
        value = torch.sparse_coo_tensor(*arrays, (), check_invariants=False)
    else:
        jax_sparse = pytest.importorskip("jax.experimental.sparse")
        value = jax_sparse.BCOO((data.astype("float32"), coords.T), shape=())
    result = interop.convert(value, to=target, dtype=dtype)
    assert interop.spec(result).shape == ()
    assert interop.convert(result, to="numpy") == sum(numbers)


def test_a_cast_is_forbidden_by_name_as_a_dense_one_is():
    """The values of a sparse array are not narrowed against forbid=; its indices may be."""
    matrix = sp.csr_array(np.eye(3))
    with pytest.raises(RefusedError):
        interop.convert(matrix, to="torch.sparse_csr", dtype="float32", forbid="narrow")
    result = interop.convert(matrix, to="torch.sparse_csr", forbid="narrow")
    assert result.values().tolist() == [1.0] * 3
