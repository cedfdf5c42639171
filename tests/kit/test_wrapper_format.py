"""Wrappers by the short form: labels, copies, casts and the way back, on a toy and on pint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from interop import Interop
from interop.errors import RefusedError
from interop.kit import wrapper_format
from interop.testing import check
from tests.kit.library import Quantity
from tests.kit.library_plugin import interop_declarations


@pytest.fixture
def mine(loaded: Interop) -> Interop:
    """An instance to which the library is declared."""
    loaded.register(*interop_declarations())
    return loaded


def test_a_wrapper_is_unwrapped_without_a_copy(mine: Interop) -> None:
    """It is described as its array, and the labels that are dropped are an effect."""
    numbers = np.arange(3.0)
    for unit, traits in (("", set()), ("km", {"labelled"})):
        quantity = Quantity(numbers, unit)
        spec = mine.spec(quantity)
        assert (spec.format, spec.wrapped, spec.dtype) == ("quantity", "numpy", "float64")
        assert (spec.shape, spec.traits, spec.nbytes) == ((3,), traits, 24)
        plan = mine.plan(quantity, to="torch")
        assert ("drop_labels" in plan.effects, plan.zero_copy) == (bool(unit), True)
        assert plan(quantity).data_ptr() == numbers.ctypes.data
    with pytest.raises(RefusedError):
        mine.convert(Quantity(numbers, "km"), to="torch", forbid={"drop_labels"})


@pytest.mark.parametrize("layout", [lambda x: x, np.transpose, lambda x: x[::-1, ::2]])
def test_copies_and_casts_keep_the_labels(mine: Interop, layout: Callable[[Any], Any]) -> None:
    """The array in the result is fresh, in C order and of the dtype that was asked for."""
    numbers = layout(np.arange(6.0).reshape(2, 3))
    requests: list[dict[str, Any]] = [{"copy": True}, {"dtype": "float32"}, {"dtype": "complex64"}]
    for request in requests:
        result: Any = mine.convert(Quantity(numbers, "km"), to="quantity", **request)
        inner = result.magnitude
        assert (type(result), result.unit) == (Quantity, "km")
        assert (inner.dtype.name, inner.shape) == (request.get("dtype", "float64"), numbers.shape)
        assert np.array_equal(inner, numbers)
        assert inner.flags.c_contiguous
        assert not np.shares_memory(inner, numbers)


def test_wrapper_format_refuses_dtypes_outside_its_declaration(mine: Interop) -> None:
    """A dtype outside of the declaration is refused, not rounded."""
    with pytest.raises(RefusedError):
        mine.convert(Quantity(np.ones(2), "km"), to="quantity", dtype="bfloat16")


def test_results_come_back_under_the_labels_of_the_argument(mine: Interop) -> None:
    """A function written for another framework gives quantities for quantities."""

    @mine.accepts("torch")
    def doubled(x: Any) -> Any:
        assert type(x) is torch.Tensor
        return 2 * x

    result: Any = doubled(Quantity(np.array([1.0, 2.0]), "km"))
    assert (type(result), result.unit) == (Quantity, "km")
    assert (result.magnitude.dtype, result.magnitude.tolist()) == (np.float64, [2.0, 4.0])
    assert doubled(Quantity(np.array([3]))).unit == ""


def test_a_bare_array_is_wrapped_without_labels(mine: Interop) -> None:
    """By the type itself, over the same memory; `like` gives it labels."""
    numbers = np.arange(3.0)
    plain: Any = mine.convert(numbers, to=Quantity)
    assert (plain.unit, plain.magnitude.ctypes.data) == ("", numbers.ctypes.data)
    named: Any = mine.convert(torch.from_numpy(numbers), like=Quantity(np.ones(3), "km"))
    assert (named.unit, named.magnitude.ctypes.data) == ("km", numbers.ctypes.data)


def test_wrapper_format_takes_functions_of_the_author(loaded: Interop) -> None:
    """Functions of the author's take the place of those that are derived."""

    def wrap(array: Any) -> Quantity:
        return Quantity(array, "one")

    def cast(array: Any, *, dtype: str) -> Any:
        return array.astype(dtype) + 1

    loaded.register(
        *wrapper_format(
            "tests.kit.library:Quantity",
            name="quantity",
            unwrap=lambda quantity: quantity.magnitude,
            rewrap=lambda array, like: Quantity(array, like.unit),
            labelled=lambda quantity: quantity.unit not in ("", "one"),
            wraps={"numpy"},
            wrap=wrap,
            cast=cast,
        )
    )
    assert loaded.convert(np.ones(1), "quantity").unit == "one"
    result: Any = loaded.convert(Quantity(np.ones(1), "km"), "quantity", dtype="int64")
    assert (result.unit, result.magnitude.dtype, result.magnitude.tolist()) == ("km", "int64", [2])


def test_a_wrapper_without_samples_is_reported_as_not_tried() -> None:
    """Nothing leads to it and nothing makes one: nothing fails, and nothing can be said to hold."""
    report = check("tests.lying_plugins.wraps_in_secret")
    assert report.failed == ()
    assert not report.ok
    assert "nothing that it declares could be tried" in str(report)
    names = {finding.name for finding in report.not_exercised}
    assert {"wrapper of format gauge", "describe of format gauge", "copy of format gauge"} <= names


def test_pint_in_ten_lines(loaded: Interop) -> None:
    """A real library of units, in both directions."""
    pint = pytest.importorskip("pint", reason="pint is not installed")
    loaded.register(
        *wrapper_format(
            "pint:Quantity",
            unwrap="magnitude",
            rewrap=lambda array, like: type(like)(array, like.units),
            labelled=lambda quantity: not quantity.unitless,
            wraps={"numpy"},
            install="pip install pint",
        )
    )
    numbers = np.array([1.0, 2.0])
    length = numbers * pint.UnitRegistry().kilometer
    tensor: Any = loaded.convert(length, to="torch")
    assert tensor.data_ptr() == length.magnitude.ctypes.data
    cast: Any = loaded.convert(length, to="pint", dtype="float32")
    assert (cast.units, cast.magnitude.dtype) == (length.units, np.float32)
    doubled: Any = loaded.accepts("torch")(lambda x: 2 * x)(length)
    assert doubled.units == length.units
    assert doubled.magnitude.tolist() == [2.0, 4.0]
    assert loaded.convert(numbers, to="pint").unitless
