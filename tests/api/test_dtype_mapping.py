"""A mapping as ``dtype=``: dtypes of results by the dtypes of values."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import interop
from interop._execution.converter import Converter
from interop._model.dtype import DTYPES, KINDS, dtypes_of_kind
from interop.errors import BadRequestError, RefusedError
from tests.kit import library
from tests.kit.library import Array
from tests.kit.library_plugin import with_library

#: A habit of libraries that were written before torch had unsigned integers.
SIGNED = {"uint16": "int32", "uint32": "int64"}


#: What most models want.
BY_KIND = {"real floating": "float32", "integral": "int64"}


@pytest.mark.parametrize(
    ("mapping", "dtype", "expected"),
    [
        (SIGNED, "uint16", np.int32),
        (SIGNED, "uint32", np.int64),
        (SIGNED, "uint8", np.uint8),
        (BY_KIND, "float16", np.float32),
        (BY_KIND, "float64", np.float32),
        (BY_KIND, "uint8", np.int64),
        (BY_KIND, "int32", np.int64),
        (BY_KIND, "bool", np.bool_),
        (BY_KIND, "complex64", np.complex64),
    ],
)
def test_every_entrance_follows_a_mapping(mapping: Any, dtype: str, expected: Any) -> None:
    """Values of a dtype or kind that is named are cast as it says, and all others are not."""
    array = np.array([0, 1], dtype)
    for _ in range(4):  # cold and warm
        results = [
            interop.convert(array, to="numpy", dtype=mapping),
            interop.converter("numpy", dtype=mapping)(array),
            interop.convert_tree({"a": [array]}, to="numpy", dtype=mapping)["a"][0],
            interop.plan(array, to="numpy", dtype=mapping)(array),
            interop.convert(array, like=np.zeros(1), dtype=mapping),
        ]
        for result in results:
            assert result.dtype == expected
            assert result.tolist() == [0, 1]

    @interop.accepts("numpy", dtype=mapping)
    def dtype_of(x: np.ndarray) -> Any:
        return x.dtype

    assert dtype_of(array) == expected


def test_values_of_dtypes_that_a_mapping_lacks_are_shared() -> None:
    """A value of another dtype goes the way it goes without a mapping."""
    array = np.arange(3, dtype="uint8")
    result = interop.convert(array, to="numpy", dtype=SIGNED)
    assert result is array
    with pytest.raises(RefusedError):
        interop.convert(array.astype("uint16"), to="numpy", dtype=SIGNED, copy=False)


def test_a_mapping_takes_every_spelling_and_is_consent() -> None:
    """Both sides may be framework objects, and a cast that is named may narrow."""
    mapping = {np.float64: library.float32, library.int64: "i4"}
    tree = [np.array([1 / 3]), Array(np.array([2**40])), np.ones(1, "float16")]
    reals, integers, halves = with_library().convert_tree(tree, to="numpy", dtype=mapping)
    assert (reals.dtype, integers.dtype, halves.dtype) == (np.float32, np.int32, np.float16)
    assert reals[0] == np.float32(1 / 3)


def test_a_converter_keeps_the_policy_in_which_its_mapping_was_given() -> None:
    """As with one dtype, a converter is resolved where it is made."""
    with interop.policy(forbid="copy"):
        convert = interop.converter("numpy", dtype=SIGNED)
    with pytest.raises(RefusedError):
        convert(np.ones(1, "uint16"))


def test_warm_calls_with_a_mapping_take_fast_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """For each dtype the path is kept that its own request has; a registration forgets them all."""
    mine = interop.Interop()
    words: dict[str, Any] = {"to": "numpy", "dtype": {"float64": "float32", "float16": None}}
    names = ("float64", "float32", "float16", "int64")
    arrays = [np.arange(3, dtype=name) for name in names]
    convert = mine.converter(**words)

    def dtypes() -> list[list[Any]]:
        results = [[call(array) for array in arrays] for call in (convert, through)]
        assert all(result.tolist() == [0, 1, 2] for row in results for result in row)
        return [[result.dtype for result in row] for row in results]

    def through(array: Any) -> Any:
        return mine.convert(array, **words)

    expected = [np.float32, np.float32, np.float16, np.int64]
    for _ in range(3):
        assert dtypes() == [expected, expected]
    with monkeypatch.context() as patched:
        patched.setattr(Converter, "plan", None)
        assert dtypes() == [expected, expected]
        with interop.trace(), pytest.raises(TypeError):  # a receipt is for the full way
            convert(arrays[0])
        with interop.policy(forbid="narrow"), pytest.raises(TypeError):
            through(arrays[0])
    mine.register(interop.Format("other"))
    with monkeypatch.context() as patched:
        patched.setattr(Converter, "plan", None)
        for call in (convert, through):
            with pytest.raises(TypeError):
                call(arrays[0])
    assert dtypes() == [expected, expected]


def test_a_mapping_that_changes_between_calls_counts_as_it_is() -> None:
    """Warm calls look at what the mapping says now, in whatever kind of mapping it stands."""
    array = np.ones(2)
    for kind in (dict, OrderedDict):
        mapping = kind(float64="float32")
        for dtype in (np.float32, np.float16, np.float32):
            mapping["float64"] = dtype
            for _ in range(3):
                assert interop.convert(array, to="numpy", dtype=mapping).dtype == dtype


def test_kinds_are_those_of_the_array_api_standard() -> None:
    """Each word stands for the dtypes that isdtype says are of that kind."""
    names = [name for name in DTYPES if hasattr(np, name)]
    assert len(names) > 10
    for kind in KINDS:
        own = {name for name in names if np.isdtype(np.dtype(name), kind)}
        assert own == set(dtypes_of_kind(kind)) & set(names)
    assert {"bfloat16", "float8_e4m3fn"} <= set(dtypes_of_kind("real floating"))


def test_the_narrower_of_two_keys_counts() -> None:
    """A dtype comes before its kind, and a kind before one that holds it, in whatever order they stand."""
    entries = [
        ("float16", None),
        ("unsigned integer", "int16"),
        ("integral", "int64"),
        ("numeric", "float32"),
        ("real floating", "float64"),
    ]
    for mapping in (dict(entries), dict(reversed(entries))):
        tree = {
            name: np.ones(1, name) for name in ("float16", "uint8", "int8", "float32", "complex64")
        }
        result = interop.convert_tree(tree, to="numpy", dtype=mapping, allow="narrow")
        dtypes = {name: array.dtype.name for name, array in result.items()}
        assert dtypes == {
            "float16": "float16",
            "uint8": "int16",
            "int8": "int64",
            "float32": "float64",
            "complex64": "float32",
        }


@pytest.mark.parametrize("mapping", [{"uint61": "int8"}, {"uint16": "intt8"}])
@pytest.mark.parametrize("call", ["convert", "converter", "plan", "convert_tree", "accepts"])
def test_a_dtype_that_does_not_exist_is_refused(call: str, mapping: Any) -> None:
    """A mistake on either side shows in the call that has it, whatever the value is."""
    arguments = ("numpy",) if call in {"converter", "accepts"} else (np.ones(1), "numpy")
    with pytest.raises(BadRequestError):
        getattr(interop, call)(*arguments, dtype=mapping)
