"""What other libraries' own tests found with `interop` in the place of their conversions.

Each test stands for one finding or one wish, with values such as those tests made.
"""

from __future__ import annotations

import warnings
import weakref
from types import ModuleType
from typing import Any

import array_api_compat
import array_api_compat.numpy
import array_api_compat.torch
import array_api_strict
import dask.array as da
import jax.numpy as jnp
import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
import sparse
import torch

import interop
from interop.errors import BadRequestError, RefusedError, UnknownTargetError
from tests.cases import marked

TARGETS = ["numpy", "torch", "jax", "tensorflow", "mlx", "python", "scipy.csr", "sparse.coo"]


class Producer:
    """A wrapper that any array can be in, as those of NumPy's and torch's tests."""

    def __init__(self, array: Any, *, legacy: bool = False) -> None:
        self.array = array
        self.legacy = legacy

    def __dlpack__(self, **keywords: Any) -> Any:
        if self.legacy and keywords.keys() - {"stream"}:
            raise TypeError("__dlpack__() got an unexpected keyword argument")
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self.array.__dlpack_device__()


# ---------------------------------------------------------------------- B1: protocols of instances


def test_a_protocol_set_on_an_instance_counts_everywhere() -> None:
    """`convert`, `convert_tree` and `accepts` see what only the instance offers."""

    class Pointer:
        pass

    numbers, pointer = np.arange(3.0), Pointer()
    pointer.__array_interface__ = numbers.__array_interface__  # type: ignore[attr-defined]
    pointer.owner = numbers  # type: ignore[attr-defined]
    assert interop.convert(pointer, to="torch").data_ptr() == numbers.ctypes.data
    assert type(interop.convert_tree({"x": pointer}, to="torch")["x"]) is torch.Tensor
    assert interop.accepts("numpy")(lambda array: type(array).__name__)(pointer) == "ndarray"


def test_a_proxy_that_delegates_everything_is_an_array() -> None:
    """What `__getattr__` finds counts as the value's own."""

    class Proxy:
        def __init__(self, array: Any) -> None:
            self.__dict__["array"] = array

        def __getattr__(self, name: str) -> Any:
            return getattr(self.__dict__["array"], name)

    numbers = np.arange(3.0)
    assert interop.convert(Proxy(numbers), to="numpy").ctypes.data == numbers.ctypes.data


def test_a_protocol_that_is_not_there_now_is_passed_over() -> None:
    """Of several protocols the next is tried where one raises AttributeError."""

    class Host:
        def __init__(self) -> None:
            self.array = np.arange(3.0)

        @property
        def __cuda_array_interface__(self) -> Any:
            raise AttributeError("only on the device")

        @property
        def __array_interface__(self) -> Any:
            return self.array.__array_interface__

    host = Host()
    assert interop.convert(host, to="numpy").ctypes.data == host.array.ctypes.data


# ---------------------------------------------------------------------- B2 to B8


@pytest.mark.parametrize("to", marked(TARGETS))
def test_numpy_integers_in_a_shape(to: str) -> None:
    """A reduction of PyData sparse, whose shape holds them, goes wherever others do."""
    summed = sparse.random((7, 143), density=0.1, format="gcxs", random_state=3).sum(axis=0)
    assert [type(length) for length in summed.shape] == [np.intp]  # which is what is tried
    expected = summed.todense().tolist()
    if to == "scipy.csr":
        summed, expected = summed.reshape((1, 143)), [expected]
    result = interop.convert(summed, to=to, allow="narrow")
    back = result if to == "python" else interop.convert(result, to="python")
    assert np.array_equal(np.asarray(back, "float32"), np.asarray(expected, "float32"))


@pytest.mark.parametrize("first", [False, True])
def test_one_value_of_a_wrapper_does_not_change_what_the_next_gives(first: bool) -> None:
    """Read-only memory comes through as such, whichever kind of value came before."""

    class Mine(Producer):
        pass

    locked = np.arange(3.0)
    locked.flags.writeable = False
    if first:
        interop.convert(Mine(torch.arange(3.0), legacy=True), to="numpy")
    result = interop.convert(Mine(locked), to="numpy")
    assert result.ctypes.data == locked.ctypes.data
    assert not result.flags.writeable


@pytest.mark.parametrize(
    ("array", "type_"),
    [
        (np.ones(2), np.ndarray),
        (torch.ones(2), torch.Tensor),
        (jnp.ones(2), type(jnp.ones(2))),
        (da.ones(2), da.Array),
        (array_api_strict.ones(2), type(array_api_strict.ones(2))),
    ],
    ids=["numpy", "torch", "jax", "dask", "strict"],
)
def test_a_namespace_that_array_api_compat_returns_is_a_target(array: Any, type_: type) -> None:
    """What `array_namespace(x)` gives can be asked for, and is what `x` is."""
    namespace: ModuleType = array_api_compat.array_namespace(array)
    assert isinstance(interop.convert([1.0, 2.0], to=namespace), type_)


def test_lists_keep_their_integers_or_are_refused() -> None:
    """No column of a list is rounded silently."""
    for numbers in ([2**53 + 1, 0.5], [2**64 - 1, -1]):
        with pytest.raises(BadRequestError, match="exactly"):
            interop.convert(numbers, to="numpy")


def test_a_namespace_of_a_device_that_is_missing_is_a_target_of_plans() -> None:
    """Which format a namespace stands for is known without making an array."""
    compat = pytest.importorskip("array_api_compat.cupy", reason="CuPy is not installed")
    assert interop.plan(np.ones(2), to=compat).request.formats == ("cupy",)


def test_the_mask_of_any_subclass_counts() -> None:
    """A mask such as astropy's is refused, or dropped where that is allowed."""

    class MaskedNDArray(np.ndarray[Any, Any]):
        @property
        def mask(self) -> Any:
            return np.array([False, True, False])

        @property
        def unmasked(self) -> Any:
            return np.asarray(self)

    masked = np.arange(3.0).view(MaskedNDArray)
    with pytest.raises(RefusedError, match="mask"):
        interop.convert(masked, to="torch")
    assert interop.convert(masked, to="torch", allow="drop_mask").tolist() == [0.0, 1.0, 2.0]


def test_the_first_value_of_a_legacy_type_is_freed_with_its_result() -> None:
    """Nothing keeps it until a collection."""

    class Legacy(Producer):
        pass

    producer = Legacy(np.arange(3.0), legacy=True)
    gone = weakref.ref(producer)
    interop.convert(producer, to="numpy")
    del producer
    assert gone() is None


def test_numbers_that_were_misnamed() -> None:
    """An integer of 65 bits, bytes of NumPy's, and frames of several dtypes."""
    assert interop.convert(2**64, to="numpy", dtype="float64") == 2.0**64
    with pytest.raises(RefusedError, match=r"\|S4 is not a dtype of numbers"):
        interop.convert(np.bytes_(b"1234"), to="numpy")
    frame = pd.DataFrame({"a": np.array([1, 2], "int32"), "b": [0.5, 1.5]})
    assert interop.spec(frame).dtype == "float64"
    result = interop.convert(frame, to="numpy")
    assert (result.dtype, result.tolist()) == (np.float64, [[1.0, 0.5], [2.0, 1.5]])


# ---------------------------------------------------------------------- wishes


@pytest.mark.parametrize("to", ["numpy", "torch", "jax"])
def test_lists_of_arrays_and_ranges_become_one_array(to: str) -> None:
    """They are a planned copy."""
    ones, zeros = np.ones(2, "float32"), np.zeros(2, "float32")
    for values in ([torch.ones(2), torch.zeros(2)], (ones, zeros)):
        assert interop.convert(values, to=to).tolist() == [[1.0, 1.0], [0.0, 0.0]]
        assert "copy" in interop.plan(values, to=to).effects
    assert interop.convert(range(2, 8, 3), to=to).tolist() == [2, 5]


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
def test_a_matrix_class_of_scipys_names_the_format_beside_it(kind: str) -> None:
    """`convert` makes SciPy's sparse arrays; the class makes a matrix of one without a copy."""
    matrix = getattr(sp, f"{kind}_matrix")
    array = sp.random_array((4, 5), density=0.4, rng=np.random.default_rng(5))
    with pytest.raises(UnknownTargetError, match=f"did you mean 'scipy.{kind}'"):
        interop.convert(array, to=matrix)
    result = matrix(interop.convert(array, to=f"scipy.{kind}"))
    assert np.array_equal(result.toarray(), array.toarray())


@pytest.mark.parametrize(
    ("source", "target"),
    [("sparse_csr", "torch.sparse_csc"), ("sparse_csc", "torch.sparse_csr")],
)
@pytest.mark.parametrize("dense_axes", [0, 1])
def test_hybrid_and_batched_torch_layouts(source: str, target: str, dense_axes: int) -> None:
    """CSR and CSC become one another with axes before, and after, those of the matrix."""
    dense = torch.arange(24.0).reshape(2, 3, 4) % 3
    layout = getattr(torch, source)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta")
        value = dense.to_sparse(layout=layout, dense_dim=dense_axes or None)
    result = interop.convert(value, to=target)
    assert result.layout is getattr(torch, target.partition(".")[2])
    assert torch.equal(result.to_dense(), dense)


@pytest.mark.parametrize("to", ["torch.sparse_csr", "torch.sparse_csc"])
def test_dense_arrays_of_more_axes_become_batches(to: str) -> None:
    """The axes before the last two are those of the batch."""
    dense = np.arange(24.0).reshape(2, 3, 4) % 3
    assert np.array_equal(interop.convert(dense, to=to).to_dense().numpy(), dense)


def test_columns_of_arrays_of_polars() -> None:
    """A column of arrays of one shape is an array of two axes, and shares its memory."""
    series = pl.Series([[1.0, 2.0], [3.0, 4.0]], dtype=pl.Array(pl.Float64, 2))
    result = interop.convert(series, to="numpy", copy=False)
    assert (result.shape, result.dtype, result.flags.writeable) == ((2, 2), np.float64, False)
    assert result.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    numbers = series.reshape((4,)).to_numpy()
    assert result.ctypes.data == numbers.ctypes.data
    assert interop.plan(series, to="numpy").zero_copy


@pytest.mark.parametrize(
    "frame", [pd.DataFrame({"a": [1.0, 2.0]}), pl.DataFrame({"a": [1.0, 2.0]})]
)
def test_a_frame_of_one_column_shares(frame: Any) -> None:
    """It need not be copied."""
    result = interop.convert(frame, to="numpy", copy=False)
    assert (result.shape, result.dtype) == ((2, 1), np.float64)
    assert result.tolist() == [[1.0], [2.0]]
    assert result.ctypes.data == frame["a"].to_numpy().ctypes.data


def test_copy_writable_copies_only_what_is_read_only() -> None:
    """`copy="writable"` shares what may be written, and copies what may not."""
    numbers = np.arange(3.0)
    assert interop.convert(numbers, to="torch", copy="writable").data_ptr() == numbers.ctypes.data
    array = jnp.arange(3.0)
    result = interop.convert(array, to="numpy", copy="writable")
    assert result.flags.writeable
    result[0] = 7.0
    assert array.tolist() == [0.0, 1.0, 2.0]


def test_a_view_that_cannot_be_is_a_value_error_as_of_asarray() -> None:
    """`convert` is the standard's ``asarray``, and not its ``from_dlpack``, about ``copy=False``."""
    narrow = torch.arange(3.0).to(torch.bfloat16)
    with pytest.raises(ValueError, match="copy=False"):
        interop.convert(narrow, to="numpy", dtype="float32", copy=False)
