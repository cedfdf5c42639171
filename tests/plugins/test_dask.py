"""dask: chunks of every format, converted without computing, and arrays computed to any other."""

from __future__ import annotations

import pickle
import tracemalloc

import cloudpickle
import dask
import dask.array as da
import dask.local
import ml_dtypes
import numpy as np
import pytest
import scipy.sparse as sp
import sparse
import torch

import interop
from interop.errors import BadRequestError, DensifyMemoryError, HandOffError, RefusedError
from interop_plugins import dask as dask_plugin
from interop_plugins.dask import _CHUNK_DTYPES
from tests.cases import together

KINDS = ["numpy", "torch", "scipy.csr", "scipy.csc", "scipy.coo", "sparse.coo"]
TYPES = {
    "numpy": np.ndarray,
    "torch": torch.Tensor,
    "scipy.csr": sp.csr_array,
    "scipy.csc": sp.csc_array,
    "scipy.coo": sp.coo_array,
    "sparse.coo": sparse.COO,
}
NUMBERS = np.where(np.arange(48) % 3, 0, np.arange(48)).reshape(8, 6).astype("f4")


def name(kind):
    return "dask" if kind == "numpy" else f"dask.{kind}"


def array(kind="numpy", numbers=NUMBERS, chunks=(3, 4)):
    """Return a dask array of 3 by 2 chunks, the last of each axis smaller than the others."""
    from_numpy = da.from_array(numbers, chunks=chunks)
    return from_numpy if kind == "numpy" else interop.convert(from_numpy, to=name(kind))


def plain(value):
    """Return the numbers of a chunk or a result by its library's own means."""
    if isinstance(value, torch.Tensor):
        return value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy()
    if isinstance(value, sparse.COO):
        return value.todense()
    return value.toarray() if sp.issparse(value) else np.asarray(value)


def chunks_of(x):
    """Return the computed chunks of an array, each as it is."""
    return list(dask.compute(*x.to_delayed().ravel().tolist()))


def starts(value):
    """Return the addresses of the memory a value lies in."""
    if isinstance(value, torch.Tensor):
        return {value.data_ptr()}
    names = ("data", "indices", "indptr", "row", "col", "coords")
    parts = [value] if isinstance(value, np.ndarray) else [getattr(value, n, None) for n in names]
    arrays = [p for part in parts for p in (part if isinstance(part, tuple) else (part,))]
    return {a.__array_interface__["data"][0] for a in arrays if isinstance(a, np.ndarray)}


def never(chunk):
    raise AssertionError("a chunk was computed")


@pytest.fixture(params=["threads", "sync", "elsewhere"])
def scheduler(request):
    """Let dask compute in threads, here, or on copies, as in another process."""

    def elsewhere(graph, keys, **options):
        copied = pickle.loads(cloudpickle.dumps(graph))
        return pickle.loads(cloudpickle.dumps(dask.local.get_sync(copied, keys)))

    with dask.config.set(scheduler=elsewhere if request.param == "elsewhere" else request.param):
        yield request.param


# ------------------------------------------------------------------ describing


@pytest.mark.parametrize("kind", list(_CHUNK_DTYPES))
def test_the_dtypes_are_those_of_the_chunks_format(kind):
    """A dask array can hold what its chunks can, but for complex32, which NumPy lacks."""
    formats = {entry.name: entry.format for entry in interop.formats()}
    assert formats[name(kind)].dtypes == formats[kind].dtypes - {"complex32"}


def test_named_by_its_type():
    """dask's array type, its module's name and ``like=`` name the formats."""
    assert isinstance(interop.convert(NUMBERS, to=da.Array), da.Array)
    assert interop.spec(interop.convert(NUMBERS, to=da.Array)).format == "dask"
    assert interop.spec(interop.convert(NUMBERS, like=array("torch"))).format == "dask.torch"
    assert interop.spec(interop.convert(array(), to="dask.scipy")).format.startswith("dask.scipy.")


def test_nothing_is_computed():
    """Describing, planning and converting from chunks to chunks compute no chunk."""
    x = array().map_blocks(never, dtype="f4", meta=np.empty((0, 0), "f4"))
    for kind in KINDS:
        converted = interop.convert(x, to=name(kind), dtype="float64")
        assert interop.spec(converted).dtype == "float64"
        assert interop.plan(converted, to="numpy").effects >= {"materialize"}
        interop.convert(converted, to=name(kind), copy=True)
    with pytest.raises(interop.errors.HandOffError):
        interop.convert(x, to="numpy")


# ------------------------------------------------------------------ from chunks to chunks


@together("dtype", sorted(_CHUNK_DTYPES["torch"]))
@pytest.mark.parametrize("target", ["dask.torch", "torch"])
def test_every_dtype_of_torchs(dtype, target, scheduler):
    """Chunks of every dtype, also bfloat16, become torch's and one tensor, bit for bit."""
    numbers = np.array([[0, 1, 2], [1, 0, 2]]).astype(getattr(ml_dtypes, dtype, dtype))
    x = interop.convert(array(numbers=numbers, chunks=(1, 2)), to=target)
    assert interop.spec(x).dtype == dtype
    back = interop.convert(x, to="numpy")
    assert (back.dtype, back.tobytes()) == (numbers.dtype, numbers.tobytes())


def test_narrower_dtypes_are_refused():
    """A dtype that the target lacks is refused before a chunk is computed, or cast if asked."""
    x = array(numbers=NUMBERS.astype("longdouble"))
    with pytest.raises(RefusedError):
        interop.convert(x, to="dask.torch")
    converted = interop.convert(x, to="dask.torch", dtype="float16")
    assert chunks_of(converted)[0].dtype == torch.float16
    with pytest.raises(RefusedError):
        interop.convert(da.ones(3), to="dask.scipy.csr")


def test_odd_memory_of_chunks(scheduler):
    """Chunks that torch cannot share, because of flags or strides, are copied."""
    for x in (da.ones((4, 4), chunks=2), da.from_array(np.arange(16.0).reshape(4, 4)[::-1], 2)):
        for chunk in chunks_of(interop.convert(x, to="dask.torch")):
            chunk.add_(1)
        expected = x.compute()
        assert (plain(interop.convert(x, to="torch")) == expected).all()
        tensor = interop.convert(interop.convert(x, to="dask.torch"), to="torch")
        assert (plain(tensor) == expected).all()


def test_big_endian_chunks():
    """Chunks of swapped bytes arrive with their numbers."""
    x = array(numbers=NUMBERS.astype(">f4"))
    assert interop.spec(x).dtype == "float32"
    for to in ("dask.torch", "numpy"):
        result = interop.convert(interop.convert(x, to=to), to="numpy")
        assert result.dtype.isnative
        assert (result == NUMBERS).all()
    converted = interop.convert(NUMBERS.astype(">f4"), to="dask.torch")
    assert (chunks_of(converted)[0].numpy() == NUMBERS).all()


def test_sparse_matrices_as_chunks():
    """SciPy's matrices, for which `*` has another meaning, become arrays in every other format.

    Within their own they stay what they are, as outside of dask, and plans say so.
    """
    meta = sp.csr_matrix((0, 0), dtype="f4")
    x = array().map_blocks(sp.csr_matrix, dtype="f4", meta=meta)
    assert interop.spec(x).traits == {"matrix"}
    assert interop.convert(x, to="dask.scipy.csr") is x
    for target in KINDS:
        for keywords in ({}, {"copy": True}, {"dtype": "float64"}):
            converted = interop.convert(x, to=name(target), **keywords)
            expected = sp.csr_matrix if target == "scipy.csr" else TYPES[target]
            assert {type(chunk) for chunk in (converted._meta, *chunks_of(converted))} == {expected}
            planned = interop.plan(x, to=name(target), **keywords).result
            assert planned.traits == interop.spec(converted).traits
        for whole in (x, x.rechunk(-1)):
            result = interop.convert(whole, to=target)
            assert type(result) is TYPES[target]
            assert (plain(result) == NUMBERS).all()


def test_fill_values():
    """Arrays with another fill value than zero stay what they are, or become dense."""
    full = sparse.COO.from_numpy(np.eye(4, dtype="f4"), fill_value=np.float32(2))
    x = interop.convert(full, to="dask.sparse.coo")
    assert interop.spec(x).traits == {"fill_value"}
    assert (interop.convert(x, to="sparse.coo").todense() == np.eye(4)).all()
    assert (interop.convert(x, to="dask").compute() == np.eye(4)).all()
    with pytest.raises(RefusedError):
        interop.convert(x, to="dask.scipy.csr", forbid="densify")


def test_duplicates_in_chunks():
    """The elements of coordinates that a chunk holds twice are summed."""
    twice = sp.coo_array(([1.0, 2.0, 4.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    expected = np.array([[0, 3], [4, 0]])
    x = interop.convert(twice, to="dask.scipy.coo")
    x = da.concatenate([x, x])
    for target in KINDS:
        result = interop.convert(x, to=target)
        assert (plain(result) == np.vstack([expected, expected])).all()
        assert "uncoalesced" not in interop.spec(result).traits
        assert (plain(chunks_of(interop.convert(x, to=name(target)))[1]) == expected).all()


def test_an_older_scipy_has_no_coo_arrays_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where SciPy cannot cut coo arrays they go into dask as others, and the reason is told."""
    coo = sp.coo_array(np.eye(4))
    monkeypatch.setattr(dask_plugin, "version", {"scipy": "1.16.3"}.__getitem__)
    dask_plugin._uncut.cache_clear()
    try:
        with pytest.raises(RefusedError, match=r"from 1\.17 on"):
            interop.convert(coo, to="dask.scipy.coo")
        for target in ("dask.scipy.csr", "dask.scipy.csc", "dask.sparse.coo", "dask"):
            formats = {step.after.format for step in interop.plan(coo, to=target).steps}
            assert "dask.scipy.coo" not in formats
            assert np.array_equal(
                interop.convert(interop.convert(coo, to=target), to="numpy"), np.eye(4)
            )
    finally:
        dask_plugin._uncut.cache_clear()


@pytest.mark.parametrize("kind", KINDS[2:])
@pytest.mark.parametrize("chunks", [-1, 4])
def test_indices_are_of_the_dtype_that_was_planned(kind, chunks):
    """The result has the index dtype that was planned, whatever the chunks have."""
    wide = sp.csr_array(NUMBERS)
    wide.indices, wide.indptr = wide.indices.astype("i8"), wide.indptr.astype("i8")
    x = interop.convert(interop.convert(wide, to="dask.scipy.csr").rechunk(chunks), to=name(kind))
    result = interop.convert(x, to=kind)
    planned = interop.plan(x, to=kind).result.index_dtype
    assert interop.spec(result).index_dtype == planned == interop.spec(x).index_dtype
    assert (plain(result) == NUMBERS).all()
    assert wide.indices.dtype == "i8"


def test_indices_that_are_too_wide():
    """An axis longer than indices of 32 bits can count is refused when it is computed."""
    long = sp.coo_array(([1.0], ([0], [2**33])), shape=(1, 2**33 + 1))
    x = interop.convert(long, to="dask.scipy.coo")
    with pytest.raises(HandOffError):
        interop.convert(x, to="scipy.coo")


@together("make", [np.zeros, lambda n: np.zeros(n, "f4"), torch.zeros])
def test_out_of_an_array_of_unknown_length(make):
    """It is computed first, then written into an `out=` of its shape, and no other takes it."""
    x = da.from_array(np.arange(10.0), 4)
    out = make(6)
    assert interop.convert(x[x > 3], out=out) is out
    assert out.tolist() == [4, 5, 6, 7, 8, 9]
    for length in (0, 5):
        with pytest.raises(BadRequestError):
            interop.convert(x[x > 3], out=make(length))


def test_lengths_that_are_not_known():
    """Chunks of unknown lengths are converted as others are, and counted once computed."""
    numbers = np.arange(10.0)
    x = da.from_array(numbers, 4)
    x = x[x > 3]
    assert np.isnan(x.shape[0])
    spec = interop.spec(x)
    assert (spec.shape, spec.traits) == ((0,), {"unknown_shape"})
    for target in ("numpy", "torch", "sparse.coo"):
        converted = interop.convert(x, to=name(target))
        assert np.isnan(converted.shape[0])
        assert [len(chunk) for chunk in chunks_of(converted)] == [0, 4, 2]
        for value in (x, converted):
            assert (plain(interop.convert(value, to=target)) == numbers[4:]).all()
    rows = da.from_array(NUMBERS, (3, 4))
    rows = rows[rows[:, 0] >= 0]
    for target in KINDS:
        assert (plain(interop.convert(rows, to=target)) == NUMBERS).all()


def test_travels_by_pickle():
    """A lazy conversion can be pickled, and computed elsewhere."""
    for kind in KINDS:
        copied = pickle.loads(cloudpickle.dumps(array(kind)))
        assert interop.spec(copied).format == name(kind)
        assert (plain(interop.convert(copied, to=kind)) == NUMBERS).all()


# ------------------------------------------------------------------ computing


@pytest.mark.parametrize("kind", KINDS)
@together("keywords", [{}, {"copy": True}, {"copy": False}])
@together("chunks", [-1, (3, 4)])
def test_results_share_no_memory(kind, keywords, chunks, scheduler):
    """A result shares memory neither with the only chunk nor with the source."""
    numbers = NUMBERS.copy()
    wrapped = interop.convert(interop.convert(numbers, to=kind), to=name(kind))
    persisted = array(kind, numbers, chunks).persist(scheduler="sync")
    for x in (wrapped, persisted):
        before = set().union(*(starts(chunk) for chunk in chunks_of(x)))
        result = interop.convert(x, to=kind, **keywords)
        assert type(result) is TYPES[kind]
        if scheduler != "elsewhere":
            assert not before & starts(result)
        part = result if kind in ("numpy", "torch") else result.data
        part += 1  # the result can be written
        assert (plain(interop.convert(x, to=kind)) == NUMBERS).all()
    assert (numbers == NUMBERS).all()


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1, 1, 1), (5, 4, 3)])
def test_shapes(shape, scheduler):
    """Arrays of no axes, of no elements and of three axes keep their shape and numbers."""
    numbers = np.arange(float(np.prod(shape))).reshape(shape)
    x = da.from_array(numbers, chunks=2)
    for target in ("numpy", "torch", *(["sparse.coo"] if shape and numbers.size else [])):
        for value in (x, interop.convert(x, to=name(target))):
            result = interop.convert(value, to=target)
            assert result.shape == shape
            assert (plain(result) == numbers).all()
        back = interop.convert(interop.convert(numbers, to=name(target)), to="numpy")
        assert (back.shape, back.tolist()) == (shape, numbers.tolist())


@pytest.mark.parametrize("shape", [(0,), (0, 4), (3, 0), (3, 4)])
def test_one_number_broadcast(shape):
    """A number that stands for all elements, or for none, becomes views of that number."""
    numbers = np.broadcast_to(np.float32(1.5), shape)
    x = interop.convert(numbers, to="dask")
    assert (x.shape, x.dtype) == (shape, np.float32)
    assert all(np.may_share_memory(chunk, numbers) for chunk in chunks_of(x) if chunk.size)
    assert interop.convert(x, to="numpy").tolist() == numbers.tolist()


def test_reductions_to_a_scalar():
    """The chunk of a sum is a scalar, not an array, and becomes an array of no axes."""
    x = array().sum()
    assert interop.convert(x, to="numpy").shape == ()
    assert interop.convert(interop.convert(x, to="dask.torch"), to="torch").item() == NUMBERS.sum()


def test_narrow_dtypes_are_computed(scheduler):
    """Arrays of ml_dtypes, whose dtypes distributed mistakes, are put together bit for bit."""
    for dtype in ("bfloat16", "int4", "float8_e5m2", "float8_e8m0fnu"):
        numbers = np.ones((4, 4)).astype(getattr(ml_dtypes, dtype))
        result = interop.convert(da.from_array(numbers, 3), to="numpy")
        assert (result.dtype, result.tobytes()) == (numbers.dtype, numbers.tobytes())


def test_memory_never_holds_two_results():
    """Computing takes the memory of the result and of a few chunks, not twice the result."""
    x = da.zeros((64, 2**17), chunks=(1, 2**17))  # of 64 MiB
    x = x.map_blocks(np.array, dtype=x.dtype, meta=x._meta)
    interop.convert(x[:1], to="numpy")
    for _ in range(2):
        tracemalloc.start()
        with dask.config.set(scheduler="sync"):
            result = interop.convert(x, to="numpy")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert result.nbytes == 2**26
    assert peak < 1.25 * 2**26


def test_larger_than_memory():
    """What cannot fit is refused before it is computed; chunk by chunk it need not fit."""
    x = da.ones((10**6, 10**6))
    with pytest.raises(DensifyMemoryError):
        interop.convert(x, to="torch")
    converted = interop.convert(interop.convert(x, to="dask.scipy.csr"), to="dask")
    assert (interop.convert(converted[:2, :2], to="numpy") == 1).all()


# ------------------------------------------------------------------ what is not as it says


def lying(change, **declared):
    return array().map_blocks(change, **{"dtype": "f4", "meta": np.empty((0, 0), "f4"), **declared})


@pytest.mark.parametrize(
    "x",
    [
        lying(lambda c: c.astype("f8")),
        lying(lambda c: np.ma.masked_greater(c, 3)),
        lying(torch.from_numpy),
        lying(sp.csr_array),
        lying(lambda c: c.tolist()),
        lying(
            lambda c: torch.tensor(c, requires_grad=True),
            dtype=torch.float32,
            meta=torch.empty((0, 0)),
        ),
    ],
    ids=["dtype", "mask", "torch", "sparse", "list", "grad"],
)
@pytest.mark.parametrize("to", ["numpy", "dask.scipy.csr", "scipy.csr"])
def test_chunks_that_are_not_what_they_are_said_to_be(x, to, scheduler):
    """dask believes what it is told about chunks; they are checked where they are computed."""
    with pytest.raises(HandOffError):
        dask.compute(interop.convert(x, to=to))


@pytest.mark.parametrize("to", ["numpy", "torch", "scipy.csr", "sparse.coo"])
def test_chunks_of_another_shape(to, scheduler):
    """A chunk of another shape than dask was told is refused, not repeated to fill its place."""
    x = lying(lambda c: c[:1])
    with pytest.raises(HandOffError):
        interop.convert(x, to=to)


def test_masked_arrays():
    """dask's masked arrays keep their mask or are refused, and the refusal says what to do."""
    x = da.ma.masked_greater(array(), 5)
    for to in ("numpy", "dask.torch", "torch"):
        with pytest.raises(RefusedError):
            interop.convert(x, to=to, allow="drop_mask")
    assert interop.convert(da.ma.filled(x, 0), to="numpy").max() == 3
    expected = x.compute()
    result = interop.convert(x, to="numpy.ma")
    assert type(result) is np.ma.MaskedArray
    assert result.dtype == x.dtype
    assert result.mask.tolist() == expected.mask.tolist()
    assert result.filled(0).tolist() == expected.filled(0).tolist()
    assert interop.plan(x, to="numpy.ma").effects == {"materialize"}


@pytest.mark.parametrize("chunks", [2, 4])
def test_a_masked_result_is_not_the_chunk_of_the_graph(chunks):
    """A write into the result does not reach what dask computes the next time."""
    x = da.from_array(np.ma.array([1, 2, 3, 4], mask=[0, 1, 0, 0]), chunks=chunks)
    result = interop.convert(x, to="numpy.ma")
    result[0], result[2] = 9, np.ma.masked
    again = interop.convert(x, to="numpy.ma")
    assert again.filled(0).tolist() == [1, 0, 3, 4]
    assert interop.convert(x.sum(), to="numpy.ma").tolist() == 8


def test_masked_chunks_of_another_dtype_are_refused():
    """A dask array that does not know its chunks is refused in the words of dask."""
    x = da.from_array(np.ma.array([1, 2], mask=[0, 1]), chunks=1)
    lie = x.map_blocks(lambda c: c.astype("f4"), dtype=x.dtype, meta=x._meta)
    with pytest.raises(HandOffError):
        interop.convert(lie, to="numpy.ma")


def test_chunks_of_other_libraries():
    """Chunks of no supported format, or in an autograd graph, are refused with the reason."""
    import jax.numpy as jnp

    x = array().map_blocks(jnp.asarray, dtype="f4", meta=jnp.empty((0, 0), "f4"))
    with pytest.raises(RefusedError):
        interop.convert(x, to="numpy")
    meta = torch.empty((0, 0), requires_grad=True)
    x = array().map_blocks(torch.from_numpy, dtype=torch.float32, meta=meta)
    with pytest.raises(RefusedError):
        interop.convert(x, to="numpy")
    for numbers in (np.array(["a"]), np.array([None]), np.zeros(2, "M8[s]"), np.zeros(2, "i4,f4")):
        with pytest.raises(RefusedError):
            interop.convert(da.from_array(numbers, -1), to="torch")


# ------------------------------------------------------------------ policy


def test_computing_can_be_forbidden():
    """``forbid={"materialize"}`` refuses to compute, and allows what computes nothing."""
    x = array()
    for to in ("numpy", "torch", "scipy.csr"):
        with pytest.raises(RefusedError):
            interop.convert(x, to=to, forbid="materialize")
    assert isinstance(interop.convert(x, to="dask.torch", forbid="materialize"), da.Array)


def test_no_copies_from_chunk_to_chunk():
    """Only the worker knows whether a chunk can be shared, so ``copy=False`` refuses."""
    x = array()
    for kind in KINDS[1:]:
        with pytest.raises(RefusedError):
            interop.convert(x, to=name(kind), copy=False)
    assert interop.convert(x, to="dask", copy=False) is x
    assert interop.convert(x, to="torch", copy=False).shape == (8, 6)


# ------------------------------------------------------------------ into dask


def test_chunks_are_shared_where_they_can_be():
    """torch's chunk shares NumPy's memory; with ``copy=True`` it does not."""
    x = array(chunks=-1).persist()
    (chunk,) = chunks_of(x)
    (shared,) = chunks_of(interop.convert(x, to="dask.torch"))
    assert starts(shared) == starts(chunk)
    for to in ("dask.torch", "dask"):
        (copied,) = chunks_of(interop.convert(x, to=to, copy=True))
        assert starts(copied) != starts(chunk)
        copied += 1
    assert (chunk == NUMBERS).all()


def test_chunk_sizes_are_dasks_option():
    """dask's option says how large the chunks are; a sparse array is one chunk."""
    numbers = np.arange(4096.0).reshape(64, 64)
    with dask.config.set({"array.chunk-size": "8 KiB"}):
        for kind, count in (("numpy", (2, 2)), ("torch", (2, 2)), ("scipy.csr", (1, 1))):
            value = interop.convert(numbers, to=kind)
            assert interop.convert(value, to=name(kind)).numblocks == count
    assert interop.convert(numbers, to="dask").numblocks == (1, 1)


@pytest.mark.parametrize("kind", ["numpy", "scipy.csr"])
def test_wrapped_arrays_are_told_apart(kind):
    """Two arrays in memory never get the same name in a graph, whatever is in them."""
    first, other = (interop.convert(interop.convert(NUMBERS * n, kind), name(kind)) for n in (1, 3))
    assert (plain((first + other).compute()) == NUMBERS * 4).all()


def test_a_wrapped_sparse_array_can_be_cut():
    """dask can cut the one chunk of a sparse array into several."""
    x = interop.convert(sp.csr_array(NUMBERS), to="dask.scipy.csr").rechunk((3, 6))
    assert interop.spec(x).format == "dask.scipy.csr"
    assert (interop.convert(interop.convert(x, to="dask.torch"), to="numpy") == NUMBERS).all()


# ------------------------------------------------------------------ devices


def test_cupy_without_a_device(in_subprocess):
    """If no device is found, the conversion says so, not the later computation."""
    in_subprocess(
        """
        import dask.array as da, interop
        try:
            interop.convert(da.ones(3), to="dask.cupy")
        except RuntimeError as error:
            assert "finds no device" in str(error), error
        else:
            raise AssertionError
        """,
        CUDA_VISIBLE_DEVICES="",
    )


# ------------------------------------------------------------------ a cluster

CLUSTER = """
    import logging, os, resource, sys, tempfile

    import dask, numpy as np, dask.array as da
    from distributed import Client, LocalCluster

    import interop

    LIMIT = 10**9

    def peak():
        return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def main(client):
        assert len(set(client.run(os.getpid).values()) - {os.getpid()}) == 2
BODY

    if __name__ == "__main__":
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        with (
            tempfile.TemporaryDirectory() as scratch,
            dask.config.set({"temporary-directory": scratch}),
            LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, memory_limit=LIMIT,
                host="127.0.0.1", dashboard_address=None,
            ) as cluster,
            Client(cluster) as client,
        ):
            main(client)
"""


def on_cluster(in_subprocess, body):
    """Run a program with a cluster of two worker processes, in a subprocess."""
    body = "\n".join(f"        {line}" for line in body.strip("\n").splitlines())
    return in_subprocess(CLUSTER.replace("BODY", body))


@pytest.mark.slow
@pytest.mark.extra("distributed")
def test_more_data_than_a_worker_may_hold(in_subprocess):
    """Chunks become torch's and SciPy's in the workers, which never hold all of them."""
    on_cluster(
        in_subprocess,
        """
def numbers(block_info=None):
    block = np.zeros(block_info[None]["chunk-shape"])
    block[:, ::50] = block_info[None]["chunk-location"][0] + np.arange(0, columns, 50)
    return block

count, rows, columns = 130, 1_000, 1_000
x = da.map_blocks(numbers, chunks=((rows,) * count, (columns,)), dtype="f8", meta=np.empty((0, 0)))
assert x.nbytes > LIMIT, x.nbytes
expected = np.zeros(columns)
expected[::50] = rows * (count * np.arange(0, columns, 50) + sum(range(count)))
sums = {"dtype": "f8", "chunks": ((1,) * x.numblocks[0], (columns,)), "meta": np.empty((0, 0))}

def of_tensor(chunk):
    import torch
    assert type(chunk) is torch.Tensor
    return chunk.sum(0, keepdim=True).numpy()

def of_rows(chunk):
    import scipy.sparse
    assert type(chunk) is scipy.sparse.csr_array
    return np.asarray(chunk.sum(0))[None]

for target, total in (("dask.torch", of_tensor), ("dask.scipy.csr", of_rows)):
    chunked = interop.convert(x, to=target)
    assert interop.spec(chunked).format == target
    result = interop.convert(chunked.map_blocks(total, **sums).sum(axis=0), to="numpy")
    assert np.array_equal(result, expected), target
assert all(bytes_ < LIMIT for bytes_ in client.run(peak).values()), client.run(peak)
""",
    )


@pytest.mark.slow
@pytest.mark.extra("distributed")
def test_chunks_travel_between_processes(in_subprocess):
    """Chunks arrive from other processes with their numbers, whatever the dtype and format."""
    on_cluster(
        in_subprocess,
        """
import ml_dtypes, torch
values = np.where(np.arange(64) % 3, 0, np.arange(64) % 8).reshape(8, 8).astype("f4")
for dtype in ("float32", "bfloat16", "float8_e5m2", "complex64", "int64", "bool"):
    expected = values.astype(getattr(ml_dtypes, dtype, dtype))
    x = interop.convert(da.from_array(values, 3), to="dask", dtype=dtype)
    for target in ("dask", "dask.torch"):
        for result in ("numpy", "torch"):
            computed = interop.convert(interop.convert(x, to=target), to=result)
            array = interop.convert(computed, to="numpy")
            assert (array.dtype, array.tobytes()) == (expected.dtype, expected.tobytes()), dtype
for target in ("scipy.csr", "scipy.csc", "scipy.coo", "sparse.coo"):
    chunked = interop.convert(da.from_array(values, 3), to=f"dask.{target}")
    assert np.array_equal(interop.convert(interop.convert(chunked, to=target), to="numpy"), values)
sent = interop.convert(torch.tensor(values), to="dask.torch")
assert torch.equal(interop.convert(sent, to="torch"), torch.tensor(values))
wrong = da.from_array(values, 3).map_blocks(
    lambda c: np.ma.masked_greater(c, 3), dtype="f4", meta=np.empty((0, 0), "f4"))
for chunked in (wrong, interop.convert(wrong, to="dask.torch")):
    try:
        interop.convert(chunked, to="numpy")
    except interop.errors.HandOffError as error:
        assert "masked" in str(error)
    else:
        raise AssertionError
""",
    )


@together("kind", ["frame", "series", "index"])
def test_frames_are_not_computed_for_their_array(kind: str) -> None:
    """A frame of dask's would lose nulls and wide integers in its array, and is refused unread."""
    import dask.dataframe as dd
    import pandas as pd

    def computed(part: pd.DataFrame) -> pd.DataFrame:
        raise AssertionError("computed")

    numbers = pd.DataFrame({"a": pd.array([2**53 + 1, None], "Int64"), "b": [0.5, 1.0]})
    frame = dd.from_pandas(numbers, npartitions=1).map_partitions(computed, meta=numbers)
    value = {"frame": frame, "series": frame["a"], "index": frame.index}[kind]
    for call in (interop.plan, interop.convert):
        with pytest.raises(HandOffError):
            call(value, to="numpy")
