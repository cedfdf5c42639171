"""What other libraries' own tests found with `interop` in the place of their conversions.

Each test stands for one finding or one wish, with values such as those tests made.
"""

from __future__ import annotations

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
import polars as pl
import pytest
import scipy.sparse as sp
import torch

import interop
from interop.errors import UnknownTargetError


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


# ---------------------------------------------------------------------- B2 to B8


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


def test_a_namespace_of_a_device_that_is_missing_is_a_target_of_plans() -> None:
    """Which format a namespace stands for is known without making an array."""
    compat = pytest.importorskip("array_api_compat.cupy", reason="CuPy is not installed")
    assert interop.plan(np.ones(2), to=compat).request.formats == ("cupy",)


def test_the_first_value_of_a_legacy_type_is_freed_with_its_result() -> None:
    """Nothing keeps it until a collection."""

    class Legacy(Producer):
        pass

    producer = Legacy(np.arange(3.0), legacy=True)
    gone = weakref.ref(producer)
    interop.convert(producer, to="numpy")
    del producer
    assert gone() is None


# ---------------------------------------------------------------------- wishes


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia", "lil", "dok"])
def test_a_matrix_class_of_scipys_names_the_format_beside_it(kind: str) -> None:
    """`convert` makes SciPy's sparse arrays; the class makes a matrix of one without a copy."""
    matrix = getattr(sp, f"{kind}_matrix")
    array = sp.random_array((4, 5), density=0.4, rng=np.random.default_rng(5))
    with pytest.raises(UnknownTargetError, match=f"did you mean 'scipy.{kind}'"):
        interop.convert(array, to=matrix)
    result = matrix(interop.convert(array, to=f"scipy.{kind}"))
    assert np.array_equal(result.toarray(), array.toarray())


def test_columns_of_arrays_of_polars() -> None:
    """A column of arrays of one shape is an array of two axes, and shares its memory."""
    series = pl.Series([[1.0, 2.0], [3.0, 4.0]], dtype=pl.Array(pl.Float64, 2))
    result = interop.convert(series, to="numpy", copy=False)
    assert (result.shape, result.dtype, result.flags.writeable) == ((2, 2), np.float64, False)
    assert result.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    numbers = series.reshape((4,)).to_numpy()
    assert result.ctypes.data == numbers.ctypes.data
    assert interop.plan(series, to="numpy").zero_copy


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
    with pytest.raises(ValueError):  # noqa: PT011 - that it is one is the claim
        interop.convert(narrow, to="numpy", dtype="float32", copy=False)
