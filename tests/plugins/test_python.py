"""Python's numbers and nested lists: read as NumPy reads them, written as ``tolist`` writes them."""

from __future__ import annotations

import functools
import math
import random
from collections import Counter
from collections.abc import Callable
from enum import IntEnum
from typing import Any

import dask.array as da
import ml_dtypes
import numpy as np
import pytest
import scipy.sparse
import torch

import interop
from interop.errors import (
    BadRequestError,
    ComplexWarning,
    RefusedError,
    UnknownValueError,
)
from tests.cases import together
from tests.inside import forget, outcome


class Colour(IntEnum):
    RED = 3


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def leaves(value):
    if isinstance(value, list):
        return [leaf for element in value for leaf in leaves(element)]
    return [value]


# ------------------------------------------------------------------ from python


@together(
    "value, dtype, shape",
    [
        (True, "bool", ()),
        (3, "int64", ()),
        (-(2**63), "int64", ()),
        (2**63, "uint64", ()),
        (Colour.RED, "int64", ()),
        (1.5, "float64", ()),
        (math.inf, "float64", ()),
        (2j, "complex128", ()),
        ([], "float64", (0,)),
        ([[], []], "float64", (2, 0)),
        ([1, 2.5], "float64", (2,)),
        ([True, 2], "int64", (2,)),
        ((1, 2j), "complex128", (2,)),
        ([(1, 2), (3, 4)], "int64", (2, 2)),
        ([[[1.0]]], "float64", (1, 1, 1)),
        ([np.float32(1), np.float32(2)], "float32", (2,)),
        ([ml_dtypes.bfloat16(1)], "bfloat16", (1,)),
    ],
)
def test_to_numpy(value, dtype, shape):
    """Numbers and nested lists become arrays of the dtype and shape that NumPy gives them."""
    spec = interop.spec(value)
    assert (spec.format, spec.dtype, spec.shape) == ("python", dtype, shape)
    assert spec.traits <= {"weak"}
    result = interop.convert(value, to="numpy")
    assert type(result) is np.ndarray
    assert (result.dtype, result.shape) == (dtype_of(dtype), shape)
    assert np.array_equal(result, np.array(value))
    assert result.flags.carray


def test_a_dtype_is_a_cast():
    """A dtype that is asked for is cast to, and one that values might not survive is not guessed."""
    result = interop.convert([1.5, math.nan], to="numpy", dtype="bfloat16")
    assert result.dtype == ml_dtypes.bfloat16
    with pytest.warns(ComplexWarning):
        assert interop.convert([1 + 2j], to="numpy", dtype="float16").tolist() == [1.0]


@together(
    "number, dtype",
    [
        (300, "uint8"),
        (-1, "uint64"),
        (-129, "int8"),
        (2**40, "int32"),
        (2**63, "int64"),
        (8, "int4"),
        (2**64, "int64"),
        (2**64, "int8"),
    ],
)
def test_an_integer_that_does_not_fit_is_refused(number: int, dtype: str) -> None:
    """Python's integers never wrap around, whatever takes them; NumPy's arrays do, as in NumPy."""
    out = np.zeros((), getattr(ml_dtypes, dtype, dtype))
    for value in (number, [0, number], [0.5, number], range(number, number + 1)):
        with pytest.raises(RefusedError):
            interop.convert(value, to="numpy", dtype=dtype)
    with pytest.raises(RefusedError):
        interop.convert(number, out=out)
    assert out == 0


NUMBERS = [0.1, [1.0, 2], [[1.5], [2.5]], [], 3, [1, 2], range(3), 2j, [1, 0.5, 1j], [True], True]


@pytest.mark.parametrize("default", ["float32", "float64"])
@together("numbers", NUMBERS)
def test_numbers_take_the_dtype_that_torch_gives_them(
    convert: Callable[..., Any], numbers: Any, default: str
) -> None:
    """Python's numbers become what `torch.tensor` makes of them, cold and warm."""
    previous = torch.get_default_dtype()
    torch.set_default_dtype(getattr(torch, default))
    try:
        expected = torch.tensor(numbers)
        result = convert(numbers, to="torch")
        assert result.dtype == expected.dtype
        assert torch.equal(result, expected)
    finally:
        torch.set_default_dtype(previous)


def test_a_new_default_dtype_counts_at_once() -> None:
    """A program that changes torch's default dtype gets it, whatever it has converted before."""
    numbers = [[0.1, 2.0], [3.0, 4.0]]
    previous = torch.get_default_dtype()
    try:
        for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16) * 2:
            torch.set_default_dtype(dtype)
            for value in (numbers, numbers[0], 0.1):
                for keywords in ({}, {"copy": True}):
                    result = interop.convert(value, to="torch", **keywords)
                    assert result.dtype == dtype
                    assert torch.equal(result, torch.tensor(value))
    finally:
        torch.set_default_dtype(previous)


@pytest.mark.parametrize(
    ("to", "dtypes"),
    [
        ("numpy", "bool int64 float64 complex128"),
        ("array_api_strict", "bool int64 float64 complex128"),
        ("jax", "bool int32 float32 complex64"),
        pytest.param(
            "tensorflow", "bool int32 float32 complex128", marks=pytest.mark.extra("tensorflow")
        ),
        ("mlx", "bool int32 float32 complex64"),
    ],
)
def test_numbers_take_the_default_dtypes_of_a_framework(
    convert: Callable[..., Any], to: str, dtypes: str
) -> None:
    """Each kind of number gets the dtype that the framework gives it, alone and in lists."""
    pytest.importorskip({"mlx": "mlx.core"}.get(to, to))
    for number, dtype in zip((True, 1, 0.5, 1j), dtypes.split(), strict=True):
        for value in (number, [number, number], [[number]]):
            result = convert(value, to=to)
            assert interop.spec(result).dtype == dtype
            assert interop.convert(result, to="python") == value


def test_the_numbers_of_others_keep_their_dtype() -> None:
    """A NumPy scalar has a dtype, and beside an array numbers have that of NumPy's."""
    assert interop.convert([np.float64(1)], to="torch").dtype == torch.float64
    assert interop.convert(np.float64(1), to="torch").dtype == torch.float64
    assert interop.convert([torch.ones(()), 0.1], to="torch").dtype == torch.float64
    assert interop.convert([torch.ones((), dtype=torch.float16), 2], to="torch").dtype == (
        torch.float16
    )
    assert interop.convert([torch.ones((), dtype=torch.int8), 0.5], to="numpy").dtype == np.float64


@pytest.mark.parametrize(
    "number",
    [1e300, -1e300, 1e-320, complex(float("inf"), 1e300), complex(1e300, float("inf")), 1e300j],
)
def test_a_real_out_of_range_is_refused(convert: Callable[..., Any], number: complex) -> None:
    """A number that would become infinite or lose its digits is refused, cold and warm."""
    for value in (number, [number], [[0.5, number]]):
        with pytest.raises(RefusedError):
            convert(value, to="torch")
    kind = torch.complex128 if isinstance(number, complex) else torch.float64
    dtype = str(kind).removeprefix("torch.")
    assert interop.convert([number], to="torch", dtype=dtype).tolist() == [number]


def test_integers_among_narrow_reals_are_exact() -> None:
    """Integers of NumPy beside a narrow real keep their value in the dtype that NumPy chooses."""
    for real in (np.float16, np.float32, np.complex64):
        for whole in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32):
            ends = np.iinfo(whole).min, np.iinfo(whole).max
            result = interop.convert([real(0.5), *map(whole, ends)], to="numpy")
            assert result.dtype == np.result_type(real, whole)
            assert [complex(n) for n in result] == [0.5, *ends]


def test_an_integer_among_reals_is_not_rounded() -> None:
    """An integer that the dtype of the floats beside it would round is refused with its name."""
    assert interop.convert([2**24, 0.5], to="torch").tolist() == [2.0**24, 0.5]
    with pytest.raises(RefusedError):
        interop.convert([2**24 + 1, 0.5], to="torch")
    assert interop.convert([2**24 + 1, 0.5], to="numpy").tolist() == [2.0**24 + 1, 0.5]


def test_an_integer_that_jax_has_no_room_for_is_refused(convert: Callable[..., Any]) -> None:
    """allow="narrow" permits no other number, and the dtype that holds it needs an option."""
    for keywords in ({}, {"allow": "narrow"}):
        with pytest.raises(RefusedError):
            convert(2**40, to="jax", **keywords)
    with pytest.raises(RefusedError):
        interop.convert(2**40, to="jax", dtype="int64")


def test_to_python_returns_python_as_it_is():
    """What is Python's already is returned as it is."""
    for value in ([1, [2.0]][0:1], (1, 2), 1.5, True, 3, [[1.0], [2.0]]):
        assert interop.convert(value, to="python") is value


def _endless():
    endless = []
    endless.append(endless)
    return endless


#: Lists that are no array of numbers.
NO_ARRAYS = [
    *([[1], 2], [1, [2]], [[[1, 2], [3]], [[4]]]),  # rows that differ in depth, or are ragged
    *([1.0, np.ma.masked], [[1.0, 2.0], [np.ma.masked, 3.0]], [1, np.ma.array(2, mask=True)]),
    [[1.0, 2.0], np.ma.array([1.0, 2.0], mask=[False, True])],
    *(
        value
        for leaf in ({}, object(), scipy.sparse.eye_array(2), da.ones(2))
        for value in ([leaf], (leaf, leaf), [[leaf]])
    ),
    *(_endless(), functools.reduce(lambda deep, _: [deep], range(70), 1)),  # deeper than arrays go
]


@together("value", NO_ARRAYS)
def test_lists_that_are_no_array_are_refused(value):
    """Rows of several depths, masked elements, what is no dense array, and lists without end."""
    with pytest.raises((BadRequestError, UnknownValueError)):
        interop.convert(value, to="numpy")


@together("value", [["a"], (1, "a"), [b"a"], [1, None], [None, 1], [[1], ["a"]]])
def test_lists_with_text_or_none_are_refused_by_the_first_such_element(value):
    """Lists with text or None among the numbers are refused, and the first such element is named."""
    with pytest.raises(UnknownValueError) as caught:
        interop.convert(value, to="numpy")
    leaf, kind = next((repr(x), type(x).__name__) for x in _flat(value) if not isinstance(x, int))
    assert f"that holds {leaf}, of type {kind}, is not an array of numbers" in str(caught.value)


def _flat(value):
    return [x for item in value for x in (_flat(item) if isinstance(item, list) else [item])]


def test_ranges_are_sequences_of_numbers():
    """A range, alone or among lists, converts as the list of its numbers does."""
    for value, same in ((range(1, 9, 3), [1, 4, 7]), ([range(2), (2, 3)], [[0, 1], [2, 3]])):
        result = interop.convert(value, to="numpy")
        assert result.dtype == np.int64
        assert result.tolist() == same
        assert interop.spec(value) == interop.spec(same)
    assert interop.convert(range(0), to="numpy").shape == (0,)


WHOLE = (0, 1, -1, 2**24 + 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**63, 2**64 - 1)
WHOLE += (2**64, 2**64 + 1, -(2**70), 10**400, True, np.int8(-1), np.uint64(2**64 - 1))
INEXACT = (0.5, math.inf, 1e300, 1j, np.float32(0.5), np.float16(2))


def nested(rng, leaves, count):
    """Return random numbers as a list, as a list of lists or, if there is but one, as it is."""
    numbers = [rng.choice(leaves) for _ in range(count)]
    if count == 1 and rng.random() < 0.5:
        return numbers[0]
    return [numbers[: count // 2], numbers[count // 2 :]] if count % 2 == 0 else tuple(numbers)


@together("leaves", [WHOLE, WHOLE[:11], WHOLE + INEXACT, WHOLE[:6] + INEXACT[:3]])
def test_every_number_is_exact_or_refused(leaves):
    """Whatever is mixed in a list, no integer of it is rounded without a word."""
    rng = random.Random(7)
    outcomes = Counter()
    for _ in range(600):
        value = nested(rng, leaves, rng.choice((1, 2, 3, 4)))
        try:
            result = interop.convert(value, to="numpy")
        except RefusedError as error:
            outcomes[error.effects == {"narrow"}] += 1
            if str(10**400) not in str(value):  # which no float is near to
                assert interop.convert(value, to="numpy", allow="narrow").dtype.kind in "fc"
        else:
            assert interop.spec(value).dtype == result.dtype.name
            expected = np.array(value, dtype=object).reshape(-1)
            assert [*map(plain, result.reshape(-1))] == [*map(plain, expected)], value
            outcomes["exact"] += 1
    assert not outcomes[False]
    assert min(outcomes[True], outcomes["exact"]) > 20


def plain(number):
    return number.item() if isinstance(number, np.generic) else number


def test_integers_too_wide_for_int64():
    """Integers of which one needs uint64 become that, and wider ones a float64 if it is exact."""
    for value in ([2**64 - 1, 0], [True, 2**63], [np.int8(1), 2**63]):
        result = interop.convert(value, to="numpy", dtype="uint64")
        assert (result.dtype, result.tolist()) == (np.uint64, value)
        assert interop.convert(value, to="numpy").dtype == np.uint64
    assert interop.convert(2**64, to="numpy", dtype="float64") == 2.0**64
    with pytest.raises(RefusedError):
        interop.convert(2**64 + 1, to="numpy")
    assert interop.convert(2**64 + 1, to="numpy", dtype="float64") == 2.0**64


# ------------------------------------------------------------------ to python


def test_special_numbers():
    """NaN, infinities, the sign of zero and the widest integers survive."""
    result = interop.convert(np.array([np.nan, np.inf, -0.0], "float16"), to="python")
    assert math.isnan(result[0])
    assert result[1] == math.inf
    assert math.copysign(1, result[2]) == -1
    assert interop.convert(np.array([2**64 - 1], "uint64"), to="python") == [2**64 - 1]


def test_a_dtype_for_python():
    """A dtype that is asked for is cast to before the numbers become Python's."""
    assert interop.convert(np.array([1.7, 2.2]), to="python", dtype="int32") == [1, 2]
    assert interop.convert(np.array([0.1]), to="python", dtype="float32") == [
        float(np.float32(0.1))
    ]
    array = np.ones(2, "longdouble")
    assert interop.convert(array, to="python", dtype="float64") == [1.0, 1.0]


@together(
    "plain, strange",
    [
        ([1, 2], [2**64 - 1, 0]),
        ([1, 2], [2**53 + 1, 0.5]),
        ([1.5], [1.5, np.ma.masked]),
        ([1.5], [[1.5], [1.5, 2.5]]),
        ([1], [True, 1]),
        ([1], ["1"]),
        (1, 2**64),
        (1.5, 2**63),
    ],
)
def test_a_plain_value_changes_nothing_for_a_strange_one(plain: Any, strange: Any) -> None:
    """After the fast path has served plain numbers, others get what they get at first."""
    warm, cold = interop.Interop(), interop.Interop()
    for _ in range(2):
        assert warm.convert(plain, to="numpy").tolist() == plain
    told, expected = (
        outcome(mine, strange, functools.partial(mine.convert, to="numpy"))[1]
        for mine in (warm, cold)
    )
    assert told == expected


def test_arrays_become_python_numbers_by_the_fast_path_as_without() -> None:
    """Wide, byte-swapped and odd dtypes are told apart from the plain ones before them."""
    warm = interop.Interop()
    for _ in range(2):
        assert warm.convert(np.arange(3), to="python") == [0, 1, 2]
    for dtype in (">i4", "float16", "bfloat16", "int4", "complex64", "bool"):
        array = np.array([0, 1], "u1").astype(interop.convert(0, to="numpy", dtype="uint8").dtype)
        array = interop.convert(array, to="numpy", dtype=dtype.strip(">"))
        array = array.astype(dtype) if ">" in dtype else array
        assert warm.convert(array, to="python") == interop.Interop().convert(array, to="python")
    with pytest.raises(RefusedError):
        warm.convert(np.array([1], "longdouble"), to="python")


#: Lists that are almost such as take the fast path, and some that do.
LISTS = [
    [[1.0, 2.0], [3.0, 4.0]],
    [[1, 2], [3, 4]],
    [[True], [False]],
    [[1j], [2.0 + 0j]],
    [[1.0], [2.0, 3.0]],
    [[1.0], [[2.0]]],
    [[1.0], 2.0],
    [[]],
    [[], []],
    [[1.0], []],
    [[1], [2.0]],
    [[1], [True]],
    [[2**62], [2**63]],
    [[1], [2**64]],
    [[2**53 + 1], [0.5]],
    [(1.0,), (2.0,)],
    [["a"], ["b"]],
    [[None], [1.0]],
    [[[[1.0]]], [[[2.0]]]],
    [[[[[[1.0]]]]]],
    [True, False],
    [1j],
    [256, 2**64],
    [2**63 - 1],
    [0.5, True],
    [128, -129],
    ((1, 2), (3, 4)),
    (2.5, -3.5),
    3,
    [1e300, 3.5e38, -65520.0],
    [1e-50, 1e-310, -0.0],
    [[math.nan], [math.inf]],
    [complex(1e300, 1e-50)],
    [1.5, None],
    [2**24 + 1, *range(80)],
]


@together(
    "to, keywords",
    [
        ("numpy", {}),
        ("torch", {}),
        *(
            ("numpy", {"dtype": name})
            for name in (
                *("float16", "float32", "float64", "bfloat16", "complex64"),
                *("int4", "int8", "int64", "uint64", "bool"),
            )
        ),
        ("numpy.ma", {"dtype": "int64"}),
        *(("torch", {"dtype": name}) for name in ("float32", "float64", "uint8", "bfloat16")),
        ("numpy", {"copy": True}),
        ("torch", {"copy": True}),
        ("python", {}),
        ("awkward", {}),
    ],
)
def test_nested_lists_are_the_same_cold_and_warm(to: str, keywords: dict[str, Any]) -> None:
    """Value, dtype, shape and refusals do not depend on what a process has converted before."""

    def told(mine: interop.Interop, numbers: Any) -> Any:
        try:
            result = mine.convert(numbers, to=to, **keywords)
        except interop.InteropError as error:
            return type(error).__name__, str(error)
        return repr(result), *(str(getattr(result, name, "")) for name in ("dtype", "shape"))

    warm, cold = interop.Interop(), interop.Interop()
    plain = [[[1.0]], [[1]], [[True]], [[1j]], [1.0], 2.0]
    for _ in range(3):
        outcomes = {str(numbers): told(warm, numbers) for numbers in (*plain, *LISTS)}
    for numbers in (*plain, *LISTS):
        forget(cold)
        assert outcomes[str(numbers)] == told(cold, numbers), numbers


RANGES = [
    range(5),
    range(0),
    range(5, 0, -2),
    range(2**63 - 3, 2**63),
    range(-(2**63), 2**63 - 1, 2**63),
    range(0, 2**63, 2**61),
    range(2**63, 2**63 + 4),
    range(-5, 2**31 + 1, 2**30),
]


@together("numbers", RANGES)
def test_the_numbers_of_a_range(numbers):
    """A range has a dtype of integers that holds all its numbers, even where its step does not fit."""
    spec, array = interop.spec(numbers), interop.convert(numbers, to="numpy")
    assert (str(array.dtype), array.shape) == (spec.dtype, spec.shape)
    assert array.tolist() == list(numbers)
    assert spec.dtype == ("uint64" if max(numbers, default=0) >= 2**63 else "int64")
    assert ("weak" in spec.traits) is (spec.dtype == "int64")


def test_a_long_range_is_not_read():
    """Of a range that no memory holds the spec is known at once, and it is refused as too large."""
    for numbers in (range(10**12), range(-(2**63), 2**63 - 1)):
        assert interop.spec(numbers).shape == (numbers.stop - numbers.start,)
        with pytest.raises(MemoryError):
            interop.convert(numbers, to="torch")
    with pytest.raises(BadRequestError):
        interop.convert(range(10**30), to="numpy")
