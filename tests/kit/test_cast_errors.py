"""Casts tell of numbers that do not fit as NumPy does: in the caller's thread and way."""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import interop
from interop.errors import ComplexWarning
from interop.kit import CastErrors, misfit
from interop.plugin import DTYPES
from tests.cases import marked

#: By framework, a cast of a value in which NumPy makes the numbers.
CASTS: dict[str, Callable[[np.ndarray, str], Any]] = {
    "numpy": lambda array, dtype: interop.convert(array, to="numpy", dtype=dtype),
    "to torch": lambda array, dtype: interop.convert(array, to="torch", dtype=dtype),
    "to jax": lambda array, dtype: interop.convert(array, to="jax", dtype=dtype),
    "to tensorflow": lambda array, dtype: interop.convert(array, to="tensorflow", dtype=dtype),
    "out": lambda array, dtype: interop.convert(array, out=np.zeros(array.shape, dtype)),
    "tree": lambda array, dtype: interop.convert_tree(
        [array], to="numpy", dtype=dtype, cast_all=True
    ),
}


@pytest.mark.parametrize("name", marked(CASTS))
def test_overflow_and_nan_are_told(name: str) -> None:
    """A number too large, and NaN that becomes an integer, give NumPy's warnings."""
    cast = CASTS[name]
    with pytest.warns(RuntimeWarning, match="^overflow encountered in cast$"):
        cast(np.array([1e300, 1.0]), "float32")
    with pytest.warns(RuntimeWarning, match="^invalid value encountered in cast$"):
        cast(np.array([np.nan, 1.0]), "int32")


@pytest.mark.parametrize("name", marked(CASTS))
def test_a_discarded_imaginary_part_is_told(name: str) -> None:
    """A cast of complex numbers to floats is warned of, one to bools is not."""
    cast = CASTS[name]
    with pytest.warns(ComplexWarning, match="discards the imaginary part"):
        cast(np.array([1 + 2j]), "float32")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cast(np.array([1 + 2j]), "complex64")
        cast(np.array([1 + 2j]), "bool")


@pytest.mark.parametrize("name", marked(CASTS))
def test_nan_and_infinity_are_cast_without_a_warning(name: str) -> None:
    """NaN and infinity are numbers of every floating-point dtype that has them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CASTS[name](np.array([np.nan, np.inf, 0.1, 1e-300]), "float32")
        CASTS[name](np.array([300, -1]), "int16")


def test_the_line_of_the_caller_is_named() -> None:
    """The warning points to the line that has asked for the conversion, not into a plugin."""
    with pytest.warns(RuntimeWarning) as caught:
        interop.convert(np.array([1e300]), to="numpy", dtype="float32")
    with pytest.warns(ComplexWarning) as complex_:
        interop.convert(np.array([1j]), to="torch", dtype="float32")
    assert [warning.filename for warning in (*caught, *complex_)] == [__file__] * 2


def test_the_state_of_the_caller_decides() -> None:
    """With `numpy.errstate` an error is ignored, raised or handed to a function, as NumPy does."""
    array = np.array([1e300])
    calls = []
    with np.errstate(over="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert interop.convert(array, to="numpy", dtype="float32")[0] == np.inf
    with (
        np.errstate(over="raise"),
        pytest.raises(FloatingPointError, match=r"^overflow encountered"),
    ):
        interop.convert(array, to="numpy", dtype="float32")
    for mode in ("ignore", "call"):
        with np.errstate(over=mode, call=lambda kind, flag: calls.append(kind)):
            interop.convert(array, to="numpy", dtype="float32")
        assert calls == (["overflow"] if mode == "call" else [])


def test_an_error_is_printed_as_numpy_prints_it(capfd: pytest.CaptureFixture[str]) -> None:
    """With ``errstate(over="print")`` the text goes where NumPy's own goes."""
    array = np.array([1e300])
    with np.errstate(over="print"):
        array.astype("float32")
        by_numpy = capfd.readouterr()
        interop.convert(array, to="numpy", dtype="float32")
    assert capfd.readouterr() == by_numpy == ("", "Warning: overflow encountered in cast\n")


def test_an_error_is_logged_as_numpy_logs_it() -> None:
    """With ``errstate(over="log")`` the object of `seterrcall` gets NumPy's text."""
    array, by_numpy, log = np.array([1e300]), io.StringIO(), io.StringIO()
    with np.errstate(over="log", call=by_numpy):
        array.astype("float32")
    with np.errstate(over="log", call=log):
        interop.convert(array, to="numpy", dtype="float32")
    assert log.getvalue() == by_numpy.getvalue() == "Warning: overflow encountered in cast\n"


def test_a_warning_turned_into_an_error_is_that_error() -> None:
    """Under a filter that raises, the caller gets the warning itself, and the next call works."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning, match="overflow encountered in cast"):
            interop.convert(np.array([1e300]), to="numpy", dtype="float32")
        with pytest.raises(ComplexWarning):
            interop.convert(np.array([1j]), to="numpy", dtype="float32")
    assert interop.convert(np.array([1.5]), to="numpy", dtype="float32").tolist() == [1.5]


def test_nulls_are_not_taken_for_numbers() -> None:
    """What stands in the place of a null is nobody's number, and nothing is said of it."""
    import pandas as pd

    values = pd.array([1.0, 1e300], dtype="Float64")
    values[1] = pd.NA
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = interop.convert(pd.Series(values), to="numpy", dtype="float32", allow="drop_mask")
    assert result[0] == 1.0


def test_errors_of_several_threads_are_told_once() -> None:
    """An error of several threads is told once, in the thread that asks."""
    errors = CastErrors()

    def cast() -> None:
        errors.run(np.array([1e300]).astype, "float32")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        threads = [threading.Thread(target=cast) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert caught == []
        errors.tell()
    assert [str(warning.message) for warning in caught] == ["overflow encountered in cast"]


@pytest.mark.parametrize("target", ["int32", "uint32", "float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("source", ["int64", "uint64"])
def test_the_first_misfit_is_named(source: str, target: str) -> None:
    """Of random and extreme integers exactly those are named that do not come back from the dtype."""
    limits = np.iinfo(source)
    powers = [2**n + k for n in range(65) for k in (-1, 0, 1)]
    numbers = [
        n for n in (*powers, *(-n for n in powers), 65504, 65520) if limits.min <= n <= limits.max
    ]
    facts = DTYPES[target]
    for number in numbers:
        if facts.kind in "iu":
            fits = np.iinfo(target).min <= number <= np.iinfo(target).max
        else:
            odd = abs(number) // (abs(number) & -abs(number) or 1)
            largest = (2 - 2.0 ** (1 - facts.digits)) * 2.0**facts.high
            fits = odd < 2**facts.digits and abs(number) <= largest
        for array in (np.array([0, number], source), np.array([[number], [1]], source).T):
            text = misfit(array, target)
            assert bool(text) is not fits, number
            assert not text or text.startswith(f"{number} ")
    several = np.array([1, *([3] * 70_000), limits.max, limits.max - 1], source)
    assert misfit(several, target).startswith(f"{limits.max} ")
    assert not misfit(np.array([], source), target)
    assert not misfit(np.array([0.5]), target)
