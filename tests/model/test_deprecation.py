"""Names on their way out: they work, warn the line that uses them, and name what to write."""

from __future__ import annotations

import warnings

import pytest

import interop
from interop._model.deprecation import Renamed
from interop._planning import keywords


@pytest.fixture(autouse=True)
def renamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """One keyword that had another name in a former release."""
    monkeypatch.setitem(keywords.RENAMED, "as_dtype", Renamed("dtype", "0.2", "0.4"))


@pytest.mark.parametrize("call", ["convert", "plan", "converter", "convert_tree", "accepts"])
def test_a_renamed_keyword_works_and_warns_the_caller(call: str) -> None:
    """Every call takes the former name as it takes the present one, however often."""
    function = getattr(interop, call)
    arguments = ["numpy"] if call in ("converter", "accepts") else [[1.0, 2.0], "numpy"]
    text = f"as_dtype= of {call}() is called dtype= since 0.2; 0.4 drops the old name"
    for _ in range(3):
        with pytest.warns(DeprecationWarning, match="drops the old name") as caught:
            result = function(*arguments, as_dtype="float32")
        assert [(str(w.message), w.filename) for w in caught] == [(text, __file__)]
    if call == "convert":
        assert (result.dtype, result.tolist()) == ("float32", [1.0, 2.0])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert interop.convert([1.0], "numpy", dtype="float32").dtype == "float32"


def test_both_names_at_once_are_refused() -> None:
    """Which of the two values is meant nobody can tell."""
    with pytest.raises(TypeError, match="got 'dtype' twice, once by its former name 'as_dtype'"):
        interop.convert([1.0], "numpy", dtype="float64", as_dtype="float32")


def test_a_name_that_there_never_was_is_refused_as_ever() -> None:
    """Only what stands in the table is taken for a former name."""
    with pytest.raises(TypeError, match="unexpected keyword argument 'asdtype'"):
        interop.convert([1.0], "numpy", asdtype="float32")
