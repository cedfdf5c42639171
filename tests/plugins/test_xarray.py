"""xarray: the array inside is converted whatever it is, and names stay within xarray."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask.array as da
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sparse
import torch
import xarray as xr

import interop
from interop.errors import RefusedError, UnknownValueError

KINDS = [xr.Variable, xr.DataArray]
enable_x64 = jax.enable_x64 if hasattr(jax, "enable_x64") else jax.experimental.enable_x64


def labelled(kind: type, array: Any) -> Any:
    names = ["x", "y", "z"][: np.ndim(array)]
    return xr.Variable(names, array) if kind is xr.Variable else xr.DataArray(array, dims=names)


def sample() -> np.ndarray:
    return np.arange(6.0).reshape(2, 3)


# ------------------------------------------------------------------ out


@pytest.mark.parametrize("kind", KINDS)
def test_a_sparse_array_inside(kind):
    """A sparse array inside stays sparse on the way to other sparse formats."""
    array = sparse.COO(sample())
    value = labelled(kind, array)
    assert (interop.spec(value).wrapped, interop.spec(value).nnz) == ("sparse.coo", 5)
    assert interop.convert(value, to="sparse.coo") is array
    result = interop.convert(value, to="scipy.coo", copy=False)
    assert isinstance(result, scipy.sparse.coo_array)
    assert np.shares_memory(result.data, array.data)
    assert interop.plan(value, to="numpy").effects == {"densify", "drop_labels"}
    assert np.array_equal(interop.convert(value, to="numpy"), sample())
    with pytest.raises(RefusedError):
        interop.convert(value, to="numpy", forbid="densify")


@pytest.mark.parametrize("kind", KINDS)
def test_a_dask_array_inside(kind):
    """A dask array inside is computed only for a target that needs it."""
    computed = []

    def double(block: np.ndarray) -> np.ndarray:
        computed.append(block.shape)
        return block * 2

    array = da.from_array(sample(), chunks=(1, 3)).map_blocks(double, meta=np.empty((0, 0)))
    value = labelled(kind, array)
    assert interop.convert(value, to="dask") is array
    route = interop.plan(value, to="torch")
    assert "materialize" in route.effects
    assert interop.convert(value, to=kind) is value
    assert computed == []
    assert interop.convert(value, to="torch").tolist() == (sample() * 2).tolist()
    assert sorted(computed) == [(1, 3)] * 2
    with pytest.raises(RefusedError):
        interop.convert(value, to="numpy", forbid="materialize")


@pytest.mark.parametrize("data", [pd.Series([1, None], dtype="Int64"), pd.array([1.5, None])])
def test_nulls_inside(data):
    """A nullable pandas array inside is refused like any other array with nulls."""
    value = xr.Variable("x", data)
    with pytest.raises(RefusedError):
        interop.convert(value, to="numpy")
    filled = interop.convert(value, to="numpy", allow="drop_mask")
    assert filled.dtype == ("int64" if data.dtype == "Int64" else "float64")
    assert filled[0] == data[0]
    assert filled[1] == 0 or np.isnan(filled[1])


def test_coordinates():
    """The labels of an index are shared, read-only."""
    value = xr.DataArray(np.ones(3), coords={"x": [3, 1, 2]}, dims="x")
    result = interop.convert(value.x, to="numpy")
    assert (result.tolist(), result.flags.writeable) == ([3, 1, 2], False)
    tensor = interop.convert(value.x, to="torch")
    tensor += 1
    assert value.x.values.tolist() == [3, 1, 2]


@pytest.mark.parametrize(
    "array", [["a", "b"], np.array(["2020"], "M8[ns]"), np.array([1, None]), pd.Categorical(["a"])]
)
def test_refusals_of_texts_times_and_objects_name_the_dtype(array):
    """A refusal of texts, times and objects names the dtype."""
    value = xr.Variable("x", array)
    name = str(interop.spec(value).dtype)
    with pytest.raises(RefusedError) as caught:
        interop.convert(value, to="torch")
    assert name in str(caught.value)
    assert interop.convert(value, to=xr.Variable) is value


def test_several_arrays():
    """The refusal of a Dataset or a DataTree says what to do, whatever its variables are called."""
    array = np.ones(2)
    dataset = xr.Dataset({"variable": ("x", array), "data": ("x", array)})
    for value in (dataset, xr.DataTree(dataset)):
        with pytest.raises(UnknownValueError):
            interop.convert(value, to="numpy")
    assert interop.convert(dataset["data"], to="numpy") is array


# ------------------------------------------------------------------ files


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "numbers.nc"
    xr.Dataset({"a": (("x", "y"), sample())}).to_netcdf(path, engine="scipy")
    return path


@pytest.mark.parametrize("cache", [True, False])
@pytest.mark.parametrize("kind", ["variable", "dataarray"])
def test_files_are_loaded_when_needed(file, cache, kind):
    """Describing and planning load nothing; converting has the effect ``materialize``."""
    with xr.open_dataset(file, engine="scipy", cache=cache) as dataset:
        value = dataset["a"] if kind == "dataarray" else dataset["a"].variable
        spec = interop.spec(value)
        assert (spec.dtype, spec.shape) == ("float64", (2, 3))
        assert "unloaded" in spec.traits
        assert interop.plan(value, to="torch").effects == {"materialize", "drop_labels"}
        assert interop.convert(value, to=f"xarray.{kind}") is value
        for keywords in ({"copy": True}, {"dtype": "float32"}):
            assert "materialize" in interop.plan(value, to=f"xarray.{kind}", **keywords).effects
        with pytest.raises(RefusedError):
            interop.convert(value, to="numpy", forbid="materialize")
        assert interop.spec(value) == spec  # still not loaded
        copied = interop.convert(value, to="numpy", copy=True)
        copied[...] = 7
        assert interop.convert(value, to="torch").tolist() == sample().tolist()
        assert ("unloaded" in interop.spec(value).traits) is not cache
        named = interop.convert(value, to=f"xarray.{kind}", dtype="float32")
        assert (named.dims, named.dtype) == (("x", "y"), np.float32)


def test_files_in_chunks_are_dask_arrays(file):
    """dask computes what xarray opens in chunks."""
    with xr.open_dataset(file, engine="scipy", chunks={"x": 1}) as dataset:
        assert interop.spec(dataset["a"]).wrapped == "dask"
        assert interop.convert(dataset["a"], to="numpy").tolist() == sample().tolist()


# ------------------------------------------------------------------ into xarray


def test_into_xarray_from_others():
    """xarray wraps an array as it is if it can; others arrive as NumPy's, or as sparse arrays."""
    tensor = torch.arange(3.0)
    value = interop.convert(tensor, to=xr.DataArray, copy=False)
    assert value.data.ctypes.data == tensor.data_ptr()
    coo = sparse.COO(sample())
    assert interop.convert(coo, to=xr.Variable).data is coo
    lazy = da.ones((2, 2))
    assert interop.convert(lazy, to="xarray.dataarray").data is lazy
    assert interop.convert([1, 2], to="xarray.variable").data.tolist() == [1, 2]
    spec = interop.make_spec("cupy", "float32", device="cuda:0", shape=(2, 2))
    route = interop.plan(spec, to="xarray.dataarray")
    assert (route.zero_copy, route.result.wrapped) == (True, "cupy")


# ------------------------------------------------------------------ within xarray


def test_names_stay_within_xarray():
    """From xarray to xarray, copied or cast, names, coordinates and attributes stay."""
    value = xr.DataArray(
        sample(), coords={"x": [1, 2]}, dims=("x", "y"), name="n", attrs={"unit": "m"}
    )
    for keywords in ({"copy": True}, {"dtype": "float32"}, {"dtype": "bfloat16"}):
        result = interop.convert(value, to=xr.DataArray, **keywords)
        assert (result.name, result.attrs, result.dims) == ("n", {"unit": "m"}, ("x", "y"))
        assert result.x.values.tolist() == [1, 2]
        assert not np.shares_memory(result.data, value.data)
        assert str(result.dtype) == keywords.get("dtype", "float64")
        assert np.array_equal(np.asarray(result, float), sample())
    tiny = interop.convert(value, to=xr.DataArray, dtype="int4")
    result = interop.convert(tiny, to=xr.DataArray, dtype="uint4")  # ml_dtypes has no such cast
    assert (str(result.dtype), result.values.astype(float).tolist()) == ("uint4", sample().tolist())
    variable = interop.convert(value, to=xr.Variable, copy=False)
    assert variable.data is value.data
    again = interop.convert(variable, to=xr.DataArray, copy=False)
    assert (again.dims, again.data is value.data) == (("x", "y"), True)


INSIDE = {
    "jax": lambda: jnp.arange(6, dtype="int32").reshape(2, 3),
    "dask": lambda: da.arange(6, chunks=2, dtype="int32").reshape(2, 3),
    "sparse.coo": lambda: sparse.COO(np.arange(6, dtype="int32").reshape(2, 3)),
}


def test_a_dask_array_stays_lazy_within_xarray():
    """A copy and a cast compute nothing, and what a copy computes to is nobody else's memory."""
    source, computed = sample(), []

    def counted(block: np.ndarray) -> np.ndarray:
        computed.append(block.shape)
        return block

    array = da.from_array(source, chunks=(1, 3)).map_blocks(counted, meta=np.empty((0, 0)))
    value = xr.DataArray(array, dims=("x", "y"))
    cast = interop.convert(value, to=xr.DataArray, dtype="int8")
    copied = interop.convert(value, to=xr.Variable, copy=True)
    assert (computed, cast.dtype) == ([], np.int8)
    assert cast.data.compute().tolist() == source.astype("int8").tolist()
    assert not np.shares_memory(copied.data.blocks[0].compute(), source)


@pytest.mark.parametrize("keywords", [{"copy": True}, {"dtype": "float32"}])
def test_labels_that_are_copied_become_a_plain_variable(keywords):
    """The labels of an index never change, so a copy of them, which may, is an index no more."""
    labels = xr.DataArray([4, 2], coords={"x": [4, 2]}, dims="x").x
    for value, kind in ((labels, xr.DataArray), (labels.variable, xr.Variable)):
        result = interop.convert(value, to=kind, **keywords)
        assert not isinstance(getattr(result, "variable", result), xr.IndexVariable)
        assert (result.dims, result.values.tolist()) == (("x",), [4, 2])
        assert not np.shares_memory(result.values, value.values)
        result[0] = 7
        assert (result.values.tolist(), value.values.tolist()) == ([7, 2], [4, 2])


@pytest.mark.parametrize("kind", KINDS)
def test_dtypes_follow_what_the_array_inside_can_hold_now(kind):
    """float64 over JAX is refused by the plan and for the same reason, but while JAX has it."""
    value = xr.DataArray(INSIDE["jax"](), dims=("x", "y"))
    for _ in range(2):
        for call in (interop.plan, interop.convert):
            with pytest.raises(RefusedError):
                call(value, to=kind, dtype="float64")
        with enable_x64(True):
            route = interop.plan(value, to=kind, dtype="float64")
            result = interop.convert(value, to=kind, dtype="float64")
            assert route.result.wrapped == interop.spec(result).wrapped == "jax"
            assert (result.dtype, result.values.tolist()) == ("float64", [[0, 1, 2], [3, 4, 5]])


@pytest.mark.parametrize(
    ("framework", "dtype"),
    [("sparse.coo", "bfloat16"), ("jax", "longdouble"), ("sparse.coo", "complex32")],
)
def test_a_dtype_that_the_array_inside_cannot_have_is_refused(framework, dtype):
    """What stays in xarray has a dtype of its own framework, which the plan knows, too."""
    value = xr.Variable(("x", "y"), INSIDE[framework]())
    for call in (interop.plan, interop.convert):
        with pytest.raises(RefusedError, match=f"does not hold {dtype}|is not a dtype"):
            call(value, to=xr.Variable, dtype=dtype)
    if dtype != "complex32":  # outside of it any array will do
        assert interop.convert(value, to="numpy", dtype=dtype).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_out_takes_the_numbers_of_the_array_inside():
    """``out=`` takes the numbers of the array inside."""
    out = np.zeros((2, 3))
    interop.convert(xr.DataArray(sparse.COO(sample())), out=out)
    assert out.tolist() == sample().tolist()


def test_nothing_more_is_imported(in_subprocess):
    """No framework is imported that xarray does not import by itself."""
    in_subprocess(
        """
        import sys, numpy as np, xarray as xr
        value = xr.DataArray(np.ones((2, 3)))
        value.variable.data  # it looks for dask, sparse and CuPy by itself
        before = set(sys.modules)
        import interop
        interop.convert(value, to="numpy")
        interop.convert(np.ones(2), to="xarray.dataarray")
        new = {name.partition(".")[0] for name in set(sys.modules) - before}
        assert not new & {"dask", "sparse", "cupy", "torch", "jax", "pyarrow", "polars"}, new
        """
    )


@pytest.mark.parametrize("to", ["xarray.variable", "xarray.dataarray"])
def test_the_wrapped_format_decides_which_casts_follow(to: str) -> None:
    """An array whose own format lacks a dtype is cast before it is wrapped, as the plan says."""
    value = sparse.COO(np.array([[3, 0]], "int16"))
    route = interop.plan(value, to=to, dtype="int4")
    assert [step.after.format for step in route.steps] == ["numpy", "numpy", to]
    result = interop.convert(value, to=to, dtype="int4")
    assert (result.dtype.name, result.values.astype(int).tolist()) == ("int4", [[3, 0]])


def test_a_lazy_value_leaves_one_receipt() -> None:
    """A chunked array that is cast, and labelled sparse values, leave one receipt each."""
    matrix = labelled(xr.DataArray, sparse.COO.from_numpy(np.eye(2)))
    with interop.trace() as receipts:
        interop.convert(np.arange(4.0), to="dask", dtype="float32")
        interop.convert(da.arange(4, chunks=2), to="torch", dtype="float32")
        interop.convert(matrix, to="numpy")
        interop.convert(matrix, to="xarray", dtype="float32")
    assert [receipt.source.format for receipt in receipts] == [
        "numpy",
        "dask",
        *["xarray.dataarray"] * 2,
    ]
