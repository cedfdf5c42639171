"""Sparse values that break their own invariants are refused, before a kernel reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sparse
import torch

import interop
from interop.errors import DoesNotFitError, HandOffError, RefusedError
from tests.cases import together

#: Makes a value of each kind, with what SciPy notes of its order already noted.
_MAKE = """
import sys, warnings
import numpy as np, scipy.sparse as sp, sparse, torch, interop
from interop.errors import HandOffError

warnings.simplefilter("ignore")  # torch's compressed layouts are in beta
DENSE = np.kron(np.array([[1.0, 2, 0], [0, 3, 0], [4, 0, 5]]), np.ones((2, 2)))
FAR = 10**8


def scipy(layout, *, noted=True):
    value = getattr(sp, f"{layout}_array")(DENSE)
    if noted and layout in ("csr", "csc", "bsr"):
        value.has_canonical_format
    else:
        vars(value).pop("_has_canonical_format", None)
        vars(value).pop("_has_sorted_indices", None)
    return value


def tensor(layout):
    dense = torch.from_numpy(DENSE)
    blocks = {"blocksize": (2, 2)} if layout in ("sparse_bsr", "sparse_bsc") else {}
    return dense.to_sparse(layout=getattr(torch, layout), **blocks)


def put(array, place, number):
    array[place] = number


def check(name, value, *targets):
    for target in targets:
        for request in ({}, {"copy": True}, {"dtype": "float32"}):
            print(name, target, request, file=sys.stderr, flush=True)  # before it could end
            try:
                interop.convert(value, to=target, **request)
            except HandOffError:
                continue
            raise AssertionError("converted")


"""
_ALL = "'numpy', 'torch', 'scipy.csc', 'scipy.coo', 'scipy.dok', 'sparse.coo', 'torch.sparse_coo'"


def test_compressed_values_of_scipys_that_lead_outside(in_fork: Callable[[str], str]) -> None:
    """Indices outside, pointers that decrease, and pointers whose ends are wrong are refused."""
    in_fork(
        _MAKE
        + f"""
EDITS = [
    ("indices", 0, FAR), ("indices", -1, -FAR), ("indptr", 0, 1), ("indptr", 0, -FAR),
    ("indptr", 1, FAR), ("indptr", 1, -FAR), ("indptr", -1, FAR), ("indptr", -1, -1),
]
for layout in ("csr", "csc", "bsr"):
    targets = [target for target in ({_ALL}, "scipy.csr") if target != f"scipy.{{layout}}"]
    for noted in (True, False):
        for array, place, number in EDITS:
            value = scipy(layout, noted=noted)
            put(getattr(value, array), place, number)
            check((layout, array, place, number), value, *targets)
        value = scipy(layout, noted=noted)
        value.indptr = value.indptr[:-1]
        check((layout, "short"), value, *targets)
"""
    )


def test_other_values_of_scipys_that_lead_outside(in_fork: Callable[[str], str]) -> None:
    """Coordinates and keys outside of the shape are refused, as are lists that lead outside."""
    in_fork(
        _MAKE
        + f"""
for axis in range(2):
    for number in (FAR, -FAR, 6, -1):
        value = scipy("coo")
        put(value.coords[axis], 0, number)
        check(("coo", axis, number), value, {_ALL.replace("'scipy.coo', ", "")}, "scipy.dia")
value = scipy("coo")
value.coords = (value.coords[0][:2], value.coords[1])
check("lengths", value, {_ALL})
value = scipy("dok")
value._dict[FAR, 0] = 1.0
check("dok", value, {_ALL.replace("'scipy.dok', ", "")})
for key in (("a", 0), 3, (0, 2**70), (None, 1), (1, 1, 1), (0,)):
    value = scipy("dok")
    value._dict[key] = 1.0
    check(("dok", key), value, {_ALL.replace("'scipy.dok', ", "")})
value = scipy("lil")
value.rows[0] = [FAR] * len(value.rows[0])
check("lil", value, {_ALL})
"""
    )


def test_arrays_that_do_not_belong_together(in_fork: Callable[[str], str]) -> None:
    """Components of other lengths or numbers of axes than the layout has are refused."""
    in_fork(
        _MAKE
        + f"""
def offsets(value): value.offsets = value.offsets[:-1]
def more_offsets(value): value.offsets = np.arange(99, dtype="i4")
def flat_diagonals(value): value.data = value.data[0]
def longer_row(value): value.rows[1].append(1)
def no_row(value): value.rows[1] = None
def fewer_rows(value): value.rows = value.rows[:2]
def axes(value): value.data = value.data[:, None]

for layout, edits in [
    ("dia", (offsets, more_offsets, flat_diagonals)),
    ("lil", (longer_row, no_row, fewer_rows)),
    ("csr", (axes,)), ("csc", (axes,)), ("bsr", (axes,)),
]:
    targets = [target for target in ({_ALL}, "scipy.csr") if target != f"scipy.{{layout}}"]
    for edit in edits:
        value = scipy(layout)
        edit(value)
        check((layout, edit.__name__), value, *targets)

def shorter(value): value.coords = value.coords[:, :-1]
def fewer_axes(value): value.coords = value.coords[:1]
def fewer_numbers(value): value.data = value.data[1:]

for edit in (shorter, fewer_axes, fewer_numbers):
    value = sparse.COO.from_numpy(DENSE)
    edit(value)
    check(("sparse.coo", edit.__name__), value, "numpy", "torch", "scipy.csr", "torch.sparse_coo")
"""
    )


@together("place", [-1, 4, 2**30])
def test_places_outside_of_a_sparse_column_are_refused(place: int) -> None:
    """pandas would take a negative one for a place at the end."""
    array = pd.arrays.SparseArray([0, 5, 0, 0])
    array.sp_index.indices[0] = place
    for value in (array, pd.Series(array), pd.DataFrame({"a": array, "b": array})):
        for target in ("numpy", "scipy.coo", "torch.sparse_coo", "python"):
            with pytest.raises(HandOffError):
                interop.convert(value, to=target)


def test_tensors_that_lead_outside(in_fork: Callable[[str], str]) -> None:
    """torch makes such tensors without a look at them, unless its invariants are switched on."""
    in_fork(
        _MAKE
        + """
COO = [("_indices", (0, 0), FAR), ("_indices", (1, 0), -FAR), ("_indices", (1, 1), 6)]
EDITS = [(0, 0, FAR), (0, -1, -FAR), (1, 0, 1), (1, 1, FAR), (1, 1, -FAR), (1, -1, FAR)]
ROWS, COLUMNS = ("col_indices", "crow_indices"), ("row_indices", "ccol_indices")
for layout in ("sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"):
    names = COLUMNS if layout in ("sparse_csc", "sparse_bsc") else ROWS
    other = "scipy.csc" if layout == "sparse_csr" else "scipy.csr"
    for part, place, number in COO if layout == "sparse_coo" else EDITS:
        value = tensor(layout)
        name = part if layout == "sparse_coo" else names[part]
        put(getattr(value, name)(), place, number)
        check((layout, name, place, number), value, "numpy", "torch", "sparse.coo", other)
"""
    )


@pytest.mark.filterwarnings("ignore:Sparse .* tensor support is in beta")
@together("layout", ["sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"])
def test_a_tensor_that_stores_more_than_its_pointers_reach_has_one_meaning(layout: str) -> None:
    """torch's own kernels differ about it: it is refused, or means what it means to SciPy."""
    blocks = {"blocksize": (1, 1)} if "bs" in layout else {}
    value = torch.eye(3).to_sparse(layout=getattr(torch, layout), **blocks)
    pointers = value.ccol_indices() if layout.endswith("sc") else value.crow_indices()
    pointers[-1] = 2
    converted = []
    for target in (*_SUMMING, "scipy.coo", "torch.sparse_coo", "torch"):
        try:
            result = interop.convert(value, to=target)
        except HandOffError:
            continue
        assert (_dense(result) == np.diag([1, 1, 0])).all(), target
        converted.append(target)
    assert set(converted) < {"numpy", "torch", "scipy.csr", "scipy.csc", "scipy.bsr", "sparse.gcxs"}


@together("graph", [False, True])
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_a_tensor_that_is_not_in_the_order_it_states_keeps_its_rows(*, graph: bool) -> None:
    """torch compresses the rows of a tensor flagged as coalesced as if they rose."""
    value = torch.sparse_coo_tensor(
        [[2, 1, 0], [1, 1, 0]], [1.0, 2.0, 4.0], (3, 2), is_coalesced=True, check_invariants=False
    ).requires_grad_(graph)
    expected = [[4, 0], [0, 2], [0, 1]]
    for target in _SUMMING[: 1 if graph else None]:
        assert (_dense(interop.convert(value, to=target)) == expected).all(), target
    result = interop.convert(value, to="torch.sparse_csr")
    assert result.to_dense().tolist() == expected
    assert result.requires_grad is graph


def test_arrays_of_sparse_that_lead_outside(in_fork: Callable[[str], str]) -> None:
    """GCXS arrays of any number of axes are looked at before a kernel reads them."""
    in_fork(
        _MAKE
        + """
for array, place, number in [
    ("indices", 0, FAR), ("indices", -1, -1), ("indptr", 0, 1), ("indptr", 1, FAR),
    ("indptr", 1, -FAR), ("indptr", -1, FAR),
]:
    for axes, dense in [((0,), DENSE), ((1,), DENSE), ((0,), DENSE.reshape(3, 4, 3))]:
        value = sparse.GCXS.from_numpy(dense, compressed_axes=axes)
        put(getattr(value, array), place, number)
        check((array, place, number), value, "numpy", "torch", "sparse.coo")
"""
    )


@together("layout", ["coo", "csr", "csc"])
def test_a_stale_note_of_scipys_loses_no_duplicate(layout: str) -> None:
    """Where indices were written to after SciPy had a look, places given twice are summed."""
    value = getattr(sp, f"{layout}_array")(np.array([[1.0, 2, 0], [0, 3, 0]]))
    if layout == "coo":
        value.sum_duplicates()
        value.coords[1][0] = 1
    else:
        assert value.has_canonical_format
        value.indices[0] = 1
    assert value.has_canonical_format
    dense = value.toarray()
    for target in _SUMMING:
        assert (_dense(interop.convert(value, to=target)) == dense).all(), target


_SUMMING = (
    *("numpy", "torch", "sparse.coo", "sparse.gcxs", "sparse.dok"),
    *(f"scipy.{layout}" for layout in ("csr", "csc", "bsr", "dok", "dia", "lil")),
)


def _dense(value: Any) -> np.ndarray:
    """Return the dense array that a value's own library makes of it."""
    makes = ("todense",) if isinstance(value, sparse.SparseArray) else ("toarray",)
    return np.asarray(
        next((getattr(value, name)() for name in makes if hasattr(value, name)), value)
    )


@together("layout", ["sparse_coo", "sparse_csr"])
@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support is in beta")
def test_a_wrong_note_of_torchs_loses_no_duplicate(layout: str) -> None:
    """A tensor flagged as coalesced that holds a place twice is summed, and not shared."""
    rows, columns, numbers = [0, 0, 1], [1, 1, 0], [1.0, 2.0, 4.0]
    if layout == "sparse_coo":
        indices = torch.tensor([rows, columns])
        value = torch.sparse_coo_tensor(
            indices, numbers, (2, 2), is_coalesced=True, check_invariants=False
        )
    else:
        value = torch.sparse_csr_tensor([0, 2, 3], columns, numbers, (2, 2), check_invariants=False)
    for target in _SUMMING:
        assert (_dense(interop.convert(value, to=target)) == [[0, 3], [4, 0]]).all(), target
    if layout == "sparse_coo":
        with pytest.raises(RefusedError):
            interop.convert(value, to="sparse.coo", copy=False)


def test_a_dictionary_in_order_is_canonical() -> None:
    """The coordinates of a dok array are noted as canonical exactly if they are in order."""
    value = sp.dok_array(np.array([[1, 2], [0, 3]]))
    assert interop.convert(value, to="scipy.coo").has_canonical_format
    value[1, 0] = 4  # comes after the others in the dictionary
    result = interop.convert(value, to="scipy.coo")
    assert not result.has_canonical_format
    assert (result.toarray() == [[1, 2], [4, 3]]).all()


@pytest.mark.parametrize("shape", [(2**40, 2**40), (2**30, 2**30, 2**30)])
def test_shapes_that_torch_cannot_count_are_refused(shape: tuple[int, ...]) -> None:
    """Few stored elements fit anywhere, but torch counts all the others, too."""
    coords = np.arange(2 * len(shape)).reshape(len(shape), 2)
    value = sparse.COO(coords, np.ones(2), shape, sorted=True, has_duplicates=False)
    for source in (value, interop.convert(value, to="scipy.coo")):
        with pytest.raises(HandOffError):
            interop.convert(source, to="torch.sparse_coo")
    copied = interop.convert(value, to="sparse.coo", copy=True)
    assert (copied.coords == coords).all()
    assert copied.shape == shape


def _tall() -> Any:
    """Return a coo array of very many rows that holds one place twice, and nothing in order."""
    coords = np.array([2**39, 0, 2**39]), np.array([1, 0, 1])
    return sp.coo_array(([2.0, 1.0, 4.0], coords), shape=(2**40, 4))


@pytest.mark.parametrize("source", ["scipy.coo", "sparse.coo", "torch.sparse_coo"])
def test_more_lines_than_memory_has_room_for_are_refused_before_a_kernel_tries(source: str) -> None:
    """A compressed layout has a pointer for each line, however few elements are stored."""
    value = interop.convert(_tall(), to=source)
    for target in ("scipy.csr", "sparse.gcxs.csr", "torch.sparse_csr", "scipy.lil"):
        for call in (interop.convert, lambda x, to: interop.plan(x, to=to)(x)):
            with pytest.raises(DoesNotFitError):
                call(value, to=target)


@together("target", ["scipy.csc", "scipy.dok", "scipy.coo", "sparse.coo", "torch.sparse_coo"])
def test_few_elements_of_very_many_lines_take_little_memory(target: str) -> None:
    """What has no pointers, or few, is made without any on the way; duplicates are summed."""
    value = interop.convert(_tall(), to=target, copy=True)
    elements = interop.convert(interop.convert(value, to="sparse.coo"), to="scipy.coo")
    assert elements.shape == (2**40, 4)
    assert [indices.tolist() for indices in elements.coords] == [[0, 2**39], [0, 1]]
    assert elements.data.tolist() == [1.0, 6.0]


def test_many_duplicates_are_summed_as_they_are_stored() -> None:
    """NumPy's own sums of runs go by pairs, and round otherwise than a dense array would."""
    numbers = np.random.default_rng(1).normal(size=50).astype(np.float32)
    expected = np.zeros(1, np.float32)
    np.add.at(expected, np.zeros(50, int), numbers)
    places = np.zeros(50, int)
    for axes in (1, 2):
        for length in (1, 10_000):
            value = sp.coo_array((numbers, (places,) * axes), shape=(length,) * axes)
            for target in ("scipy.dok", "sparse.coo", "numpy"):
                result = _dense(interop.convert(value, to=target))
                assert result[(0,) * axes] == expected, (axes, length, target)
