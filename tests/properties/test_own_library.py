"""What a value knows of itself stays within its own library, whatever the keywords."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
import xarray as xr

import interop
from tests.plugins.values import memory

NUMBERS = np.arange(6.0).reshape(2, 3)
KEYWORDS: list[dict[str, Any]] = [
    {},
    {"copy": True},
    {"copy": "writable"},
    {"copy": False},
    {"order": "C"},
    {"order": "F"},
    {"dtype": "float32"},
    {"dtype": "float32", "copy": True},
    {"device": "cpu"},
]


class Length(np.ndarray):
    """An array with a unit, as astropy and unyt have them."""

    def __array_finalize__(self, other: Any) -> None:
        self.unit = getattr(other, "unit", None)


class Column(np.ma.MaskedArray):  # type: ignore[type-arg]
    """A masked array with a name, as astropy's tables have them."""

    def __array_finalize__(self, other: Any) -> None:
        super().__array_finalize__(other)
        self.column = getattr(other, "column", None)


class Boxes(torch.Tensor):
    """A tensor with metadata that its own functions keep, by the protocol of torchvision's.

    torchvision itself wants another torch than the one that is tested with.
    """

    canvas: Any = None
    KEPT = (torch.Tensor.clone, torch.Tensor.to, torch.Tensor.detach, torch.Tensor.requires_grad_)

    @classmethod
    def wrap(cls, tensor: torch.Tensor, canvas: Any) -> Boxes:
        """Return a tensor as boxes on a canvas."""
        boxes = tensor.as_subclass(cls)
        boxes.canvas = canvas
        return boxes

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        with torch._C.DisableTorchFunctionSubclass():
            output = function(*args, **(kwargs or {}))
        if function in cls.KEPT and isinstance(args[0], cls):
            return cls.wrap(output, args[0].canvas)
        return output


class Image(Boxes):
    """A tensor whose class alone says what it is."""


class Library(NamedTuple):
    """A value, what it knows of itself, and how its own library copies and casts it."""

    make: Callable[[], Any]
    knows: Callable[[Any], Any]
    numbers: Callable[[Any], Any] = np.asarray
    copy: Callable[[Any], Any] = lambda x: x.copy()
    cast: Callable[[Any, str], Any] = lambda x, dtype: x.astype(dtype)
    ordered: bool = False


def masked(kind: Any = np.ma.MaskedArray) -> Any:
    """Return a masked array with a fill value and a hard mask."""
    array = kind(NUMBERS.copy(), mask=NUMBERS == 1, fill_value=-99.0, hard_mask=True)
    if kind is Column:
        array.column = "depth"
    return array


def length() -> Length:
    """Return an array with a unit."""
    array = NUMBERS.copy().view(Length)
    array.unit = "m"
    return array


def described(value: Any) -> Any:
    """Return a value with attributes of its library's."""
    value.attrs["unit"] = "m"
    return value


def with_parameter(layout: Any) -> Any:
    """Return an array of Awkward's with a parameter and an attribute."""
    import awkward as ak

    return described(ak.with_parameter(ak.Array(layout), "unit", "m"))


def known_of_masked(array: Any) -> Any:
    """Return what a masked array knows beside its numbers."""
    return array.fill_value, array.hardmask, array.mask.tolist(), getattr(array, "column", None)


TORCH: dict[str, Any] = {
    "numbers": lambda x: x.as_subclass(torch.Tensor).numpy(),
    "copy": lambda x: x.clone(),
    "cast": lambda x, dtype: x.to(getattr(torch, dtype)),
}


def of_awkward(x: Any) -> Any:
    """Return the module of an array of Awkward's, which only some environments have."""
    return sys.modules[type(x).__module__.partition(".")[0]]


AWKWARD: dict[str, Any] = {
    "knows": lambda x: (of_awkward(x).parameters(x), dict(x.attrs)),
    "numbers": lambda x: np.asarray(of_awkward(x).flatten(x, axis=None)),
    "copy": lambda x: of_awkward(x).copy(x),
    "cast": lambda x, dtype: of_awkward(x).values_astype(x, dtype),
}

POLARS: dict[str, Any] = {
    "copy": lambda x: x.clone(),
    "cast": lambda x, dtype: x.cast(getattr(pl, dtype.capitalize())),
}
ARROW: dict[str, Any] = {
    "numbers": lambda x: np.asarray(x.drop_null()),
    "copy": lambda x: x,
    "cast": lambda x, dtype: x.cast(dtype),
}

LIBRARIES: dict[str, Library] = {
    "numpy.ma": Library(masked, known_of_masked, np.ma.getdata, ordered=True),
    "a column of a table": Library(
        lambda: masked(Column),
        known_of_masked,
        np.ma.getdata,
        copy=lambda x: x.astype(x.dtype),  # NumPy's own copy of a masked array asks no subclass
        ordered=True,
    ),
    "an array with a unit": Library(length, lambda x: x.unit, ordered=True),
    "boxes": Library(
        lambda: Boxes.wrap(torch.tensor(NUMBERS), (4, 6)),
        lambda x: x.canvas,
        **TORCH,
    ),
    "an image": Library(
        lambda: torch.tensor(NUMBERS).as_subclass(Image), lambda x: x.canvas, **TORCH
    ),
    "a Series": Library(
        lambda: described(pd.Series(NUMBERS[0], name="depth", index=[3, 4, 5])),
        lambda x: (x.attrs, x.name, x.index.tolist()),
    ),
    "a DataFrame": Library(
        lambda: described(pd.DataFrame(NUMBERS, columns=["a", "b", "c"])),
        lambda x: (x.attrs, x.columns.tolist()),
    ),
    "a DataFrame of two dtypes": Library(
        lambda: described(pd.DataFrame({"a": [0.5], "b": np.ones(1, "float16")})), lambda x: x.attrs
    ),
    "a Series with nulls": Library(
        lambda: pd.Series([0.5, None, 3], name="depth", index=[3, 4, 5], dtype="Float64"),
        lambda x: (x.name, x.index.tolist(), x.isna().tolist()),
        lambda x: x.dropna().to_numpy(),
        cast=lambda x, dtype: x.astype(dtype.capitalize()),
    ),
    "a Series of Polars": Library(
        lambda: pl.Series("depth", NUMBERS[0]), lambda x: x.name, np.array, **POLARS
    ),
    "a DataFrame of Polars": Library(
        lambda: pl.DataFrame({"a": [1.0, 2], "b": [3.0, 4]}), lambda x: x.columns, **POLARS
    ),
    "nulls of Arrow": Library(
        lambda: pa.array([1.0, None, 3.0])[1:], lambda x: x.is_null().to_pylist(), **ARROW
    ),
    "nulls of Arrow in chunks": Library(
        lambda: pa.chunked_array([[1.0, None], [3.0]]), lambda x: x.is_null().to_pylist(), **ARROW
    ),
    "a DataArray": Library(
        lambda: described(xr.DataArray(NUMBERS, dims=("t", "x"), name="depth")),
        lambda x: (x.attrs, x.dims, x.name),
    ),
    "a Variable": Library(
        lambda: described(xr.Variable(("t", "x"), NUMBERS)), lambda x: (x.attrs, x.dims)
    ),
    "numbers of Awkward": Library(lambda: with_parameter(NUMBERS[0]), **AWKWARD),
    "rows of Awkward": Library(lambda: with_parameter(NUMBERS), **AWKWARD),
    "ragged rows of Awkward": Library(lambda: with_parameter([[1.0, 2.0], [3.0]]), **AWKWARD),
    "optional numbers of Awkward": Library(
        lambda: with_parameter([1.0, None]),
        lambda x: (*AWKWARD["knows"](x), of_awkward(x).is_none(x).tolist()),
        lambda x: np.asarray(of_awkward(x).drop_none(x)),
        AWKWARD["copy"],
        AWKWARD["cast"],
    ),
    **{
        f"a {layout}_matrix": Library(
            lambda layout=layout: getattr(sp, f"{layout}_matrix")(NUMBERS),
            type,
            lambda x: x.toarray(),
        )
        for layout in ("csr", "csc", "bsr", "coo", "dia", "lil", "dok")
    },
}


#: What its library lets nobody write into.
NEVER_WRITTEN = {name for name in LIBRARIES if re.search("Polars|Arrow", name)}
#: What `memory` knows the addresses of, for their numbers here are no views.
COLUMNS = {*NEVER_WRITTEN, "a Series with nulls"}


def expected(library: Library, keywords: dict[str, Any]) -> Any:
    """Return what a value's own library makes of it."""
    value = library.make()
    if "dtype" in keywords:
        return library.cast(value, keywords["dtype"])
    return library.copy(value)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.extra("awkward") if "Awkward" in name else ())
        for name in LIBRARIES
    ],
)
def test_a_value_knows_what_its_own_library_s_copy_knows(name: str) -> None:
    """No keyword takes from a value what the library's own copy or cast leaves it."""
    library = LIBRARIES[name]
    for keywords in KEYWORDS:
        if "order" in keywords and not library.ordered:
            continue
        if keywords == {"copy": "writable"} and name in NEVER_WRITTEN:
            continue
        value, own = library.make(), expected(library, keywords)
        target, case = interop.spec(value).format, f"{name} {keywords}"
        results = [
            interop.convert(value, to=target, **keywords),
            interop.convert(value, to=target, **keywords),
            interop.converter(target, **keywords)(value),
        ]
        if "device" not in keywords:
            results.append(interop.convert(value, like=value, **keywords))
        if target != "scipy.dok":  # which trees open as a dict
            tree = interop.convert_tree({"x": [value]}, to=target, **keywords)
            results.append(tree["x"][0])
        for result in results:
            assert type(result) is type(own), case
            assert library.knows(result) == library.knows(own), case
            numbers = library.numbers(result)
            np.testing.assert_array_equal(numbers, library.numbers(own), err_msg=case)
            assert numbers.dtype == library.numbers(own).dtype, case
            if keywords.get("copy") is True:
                assert not np.shares_memory(numbers, library.numbers(value)), case
                if name in COLUMNS:
                    column, copied = (
                        x["a"] if hasattr(x, "columns") else x for x in (value, result)
                    )
                    assert memory(copied) != memory(column), case
            if not {"copy", "dtype"} & keywords.keys() and keywords.get("order") != "F":
                assert result is value, case
        assert library.knows(value) == library.knows(library.make())


@pytest.mark.parametrize("layout", ["csr", "csc", "bsr", "coo", "dia", "lil", "dok"])
def test_what_is_made_like_a_matrix_is_one(layout: str) -> None:
    """`like=` a sparse matrix makes one of arrays, tensors and other sparse arrays."""
    like = getattr(sp, f"{layout}_matrix")(NUMBERS)
    array = getattr(sp, f"{layout}_array")(NUMBERS)
    for value in (array, NUMBERS, torch.tensor(NUMBERS), sp.csr_array(NUMBERS)):
        for keywords in ({}, {"copy": True}, {"dtype": "float32"}):
            result = interop.convert(value, like=like, **keywords)
            assert type(result) is type(like)
            assert (result.toarray() == NUMBERS).all()
    assert type(interop.convert(NUMBERS, like=array)) is type(array)
    if layout in {"csr", "csc", "bsr", "coo"}:
        assert np.shares_memory(interop.convert(array, like=like, copy=False).data, array.data)


def test_a_class_whose_code_gives_plain_tensors_gives_way_to_them(
    convert: Callable[..., Any],
) -> None:
    """Where a class does not make its own kind, the numbers are right all the same."""

    class Careless(Boxes):
        KEPT = ()

    careless = Careless.wrap(torch.tensor(NUMBERS), (4, 6))
    for keywords in ({"copy": True}, {"dtype": "float32"}):
        result = convert(careless, to="torch", **keywords)
        assert type(result) is torch.Tensor
        assert result.tolist() == NUMBERS.tolist()
    assert interop.convert(careless, to="torch") is careless


def test_functions_that_accept_a_framework_get_its_labelled_tensors() -> None:
    """Boxes reach a function that accepts torch as boxes."""
    boxes = Boxes.wrap(torch.tensor(NUMBERS), (4, 6))
    assert interop.accepts("torch")(lambda x: (type(x), x.canvas))(boxes) == (Boxes, (4, 6))


def test_numbers_of_boxes_are_cast_as_numpy_casts_them() -> None:
    """A cast by the class's own code gives the numbers that any other way gives."""
    numbers = torch.tensor([[0.5, -1.5, 300.0, float("nan")]])
    boxes = Boxes.wrap(numbers, (4, 6))
    for dtype in ("int64", "uint8", "int8", "float16", "bool"):
        result = interop.convert(boxes, to="torch", dtype=dtype)
        plain = interop.convert(numbers, to="torch", dtype=dtype)
        assert type(result) is Boxes
        assert result.canvas == (4, 6)
        np.testing.assert_array_equal(result.as_subclass(torch.Tensor).numpy(), plain.numpy())


def test_lists_of_labelled_arrays_are_stacked_as_their_numbers() -> None:
    """A stack has no class, unit or metadata of its own."""
    boxes = [Boxes.wrap(torch.tensor(NUMBERS), (4, 6))] * 2
    stacked = interop.convert(boxes, to="torch")
    assert type(stacked) is torch.Tensor
    assert stacked.tolist() == [NUMBERS.tolist()] * 2
    for target in ("numpy", "torch"):
        result = interop.convert([length(), length()], to=target)
        assert type(result) in {np.ndarray, torch.Tensor}
        assert result.tolist() == [NUMBERS.tolist()] * 2
