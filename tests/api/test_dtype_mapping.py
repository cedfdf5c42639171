"""A mapping as ``dtype=``: dtypes of results by the dtypes of values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import interop
from interop.errors import BadRequestError, RefusedError

#: A habit of libraries that were written before torch had unsigned integers.
SIGNED = {"uint16": "int32", "uint32": "int64"}


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("uint16", torch.int32), ("uint32", torch.int64), ("uint8", torch.uint8)],
)
def test_every_entrance_follows_a_mapping(dtype: str, expected: torch.dtype) -> None:
    """Values of a dtype that is named are cast as it says, and all others are not."""
    array = np.array([0, 7], dtype)
    results = [
        interop.convert(array, to="torch", dtype=SIGNED),
        interop.converter("torch", dtype=SIGNED)(array),
        interop.convert_tree([array], to="torch", dtype=SIGNED)[0],
        interop.plan(array, to="torch", dtype=SIGNED)(array),
        interop.convert(array, like=torch.zeros(1), dtype=SIGNED),
    ]
    for result in results:
        assert result.dtype == expected
        assert result.tolist() == [0, 7]

    @interop.accepts("torch", dtype=SIGNED)
    def dtype_of(x: torch.Tensor) -> torch.dtype:
        return x.dtype

    assert dtype_of(array) == expected


def test_what_a_mapping_does_not_name_is_shared() -> None:
    """A value of another dtype goes the way it goes without a mapping."""
    array = np.arange(3, dtype="uint8")
    result = interop.convert(array, to="torch", dtype=SIGNED)
    assert result.data_ptr() == array.ctypes.data
    with pytest.raises(RefusedError, match="copy=False"):
        interop.convert(array.astype("uint16"), to="torch", dtype=SIGNED, copy=False)


def test_a_mapping_takes_every_spelling_and_is_consent() -> None:
    """Both sides may be framework objects, and a cast that is named may narrow."""
    mapping = {np.float64: torch.float32, torch.int64: "i4"}
    tree = [np.array([1 / 3]), torch.tensor([2**40]), np.ones(1, "float16")]
    reals, integers, halves = interop.convert_tree(tree, to="numpy", dtype=mapping)
    assert (reals.dtype, integers.dtype, halves.dtype) == (np.float32, np.int32, np.float16)
    assert reals[0] == np.float32(1 / 3)


def test_a_converter_keeps_the_policy_in_which_its_mapping_was_given() -> None:
    """As with one dtype, a converter is resolved where it is made."""
    with interop.policy(forbid="copy"):
        convert = interop.converter("torch", dtype=SIGNED)
    with pytest.raises(RefusedError):
        convert(np.ones(1, "uint16"))


@pytest.mark.parametrize("mapping", [{"uint61": "int8"}, {"uint16": "intt8"}])
@pytest.mark.parametrize("call", ["convert", "converter", "plan", "convert_tree", "accepts"])
def test_a_dtype_that_does_not_exist_is_refused(call: str, mapping: Any) -> None:
    """A mistake on either side shows in the call that has it, whatever the value is."""
    arguments = ("torch",) if call in {"converter", "accepts"} else (np.ones(1), "torch")
    with pytest.raises(BadRequestError, match="is not a dtype"):
        getattr(interop, call)(*arguments, dtype=mapping)
