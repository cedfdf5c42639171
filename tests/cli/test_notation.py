"""Notation: what a word on the command line says."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse
import xarray as xr

import interop
from interop import Interop
from interop._cli.notation import Description, read, read_spec
from interop.errors import BadRequestError
from interop.plugin import Wrapper, make_spec
from tests.cases import together
from tests.toys import toy, view


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("torch", Description("torch")),
        ("torch:cuda", Description("torch", "cuda")),
        ("torch:cuda:1", Description("torch", "cuda:1")),
        ("torch:cuda:1:7", Description("torch", "cuda:1", None, (7,))),
        ("torch:float32:7", Description("torch", None, "float32", (7,))),
        ("torch:scalar", Description("torch", None, None, ())),
        (
            "torch:cuda:float32:4096x4096:grad:noncontiguous",
            Description(
                "torch", "cuda", "float32", (4096, 4096), frozenset({"grad", "noncontiguous"})
            ),
        ),
        ("torch:0x3:bfloat16", Description("torch", None, "bfloat16", (0, 3))),
    ],
)
def test_words_stand_for_device_dtype_shape_and_traits(text: str, description: Description) -> None:
    """Each word is told by what it is, and a number behind a device is the device's."""
    assert read(interop.default, text) == description


@pytest.mark.parametrize(
    ("text", "name", "shape"),
    [
        ("pandas", "pandas.series", (2**20,)),
        ("np", "numpy", (1024, 1024)),
        ("pd:100x3", "pandas.dataframe", (100, 3)),
        ("pandas:100x3", "pandas.dataframe", (100, 3)),
        ("xarray:2x3x4", "xarray.variable", (2, 3, 4)),
    ],
)
def test_a_framework_stands_for_its_first_dense_format_of_that_many_axes(
    text: str, name: str, shape: tuple[int, ...]
) -> None:
    """A framework without a format of its own name is a value as it is a target."""
    spec = read_spec(interop.default, text)
    assert (spec.format, spec.shape) == (name, shape)


def _csr() -> scipy.sparse.csr_array:
    return scipy.sparse.random_array((1024, 1024), density=0.01, format="csr", dtype="f4", rng=0)


@pytest.mark.parametrize(
    ("text", "make"),
    [
        ("numpy:float64:3x5", lambda: np.zeros((3, 5))),
        ("numpy:float32", lambda: np.zeros((1024, 1024), "f4")),
        ("scipy.csr", _csr),
        ("scipy.coo", lambda: _csr().tocoo()),
        ("torch.sparse_coo", lambda: interop.convert(_csr(), to="torch.sparse_coo")),
        ("xarray.variable", lambda: xr.Variable(("dim_0", "dim_1"), np.zeros((1024, 1024), "f4"))),
        ("xarray.dataarray", lambda: xr.DataArray(np.zeros((1024, 1024), "f4"))),
    ],
)
def test_a_spec_is_that_of_a_real_value(text: str, make: Callable[[], object]) -> None:
    """What is read from a text is what is known of such a value, byte for byte."""
    assert read_spec(interop.default, text) == interop.spec(make())


def test_a_sparse_array_stores_the_share_that_is_said() -> None:
    """Elements and bytes follow from the density."""
    sparse = read_spec(interop.default, "scipy.csr:float64:100x50", density=0.5)
    assert (sparse.nnz, sparse.nbytes) == (2500, 2500 * (8 + 4) + 101 * 4)


def test_omitted_words_default_to_what_the_format_holds(empty: Interop) -> None:
    """Device, dtype, axes and what is wrapped are the format's own where nothing is said."""
    empty.register(
        toy("a", devices=("npu",), dtypes=frozenset({"int64"}), ndims=frozenset({1})),
        toy("b", ndims=frozenset({3})),
        *(toy(name, wrapper=Wrapper(lambda box: box)) for name in ("v", "w")),
        *(view(*ends) for ends in ("ab", "vw", "bw")),
    )
    assert read_spec(empty, "a") == make_spec("a", "int64", device="npu", shape=(2**20,))
    assert read_spec(empty, "b").shape == (102, 102, 102)
    assert (read_spec(empty, "v").wrapped, read_spec(empty, "w").wrapped) == (None, "b")
    assert read_spec(empty, "w").shape == (102, 102, 102)


@together("words", ["numpy:float32:1x", "torch:cuda:"])
def test_numbers_of_thousands_of_digits_are_refused(words: str) -> None:
    """Python reads no number that long, which is an error of the word's all the same."""
    with pytest.raises(BadRequestError):
        read_spec(interop.default, words + 5000 * "9")
