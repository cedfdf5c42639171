"""The grid: whatever a value is, a request for it is answered by a result or by an error of ours."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import interop
from interop.errors import ConversionError, Declined, InteropError, PluginError
from interop.plugin import DTYPES
from tests.cases import marked
from tests.properties.effort import SEED, TIMES
from tests.properties.grid import LIBRARIES, REQUESTS, TARGETS, kinds
from tests.properties.readers import calm, dtype_of, read
from tests.properties.test_kept_promises import judged

pytestmark = pytest.mark.slow

__all__ = ["calm"]  # a fixture

#: Errors that say that interop, or a plugin, is wrong.
_FAULTS = ConversionError, Declined, PluginError
#: What makes other numbers of those of a value, if it is permitted.
_CHANGING = frozenset({"pad", "drop_mask"})
#: Formats that keep approximations of numbers, or objects.
_INEXACT = ("torchao", "quantized", "torch.quantized", "python", "awkward", "dlpack")


def _cases(library: str) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield values of each kind with two requests of every target, or with all in a long run."""
    drawn = random.Random(f"{library} {SEED}")
    for name, make in kinds(library).items():
        for target in TARGETS:
            for request in REQUESTS if TIMES else drawn.sample(REQUESTS, 2):
                words = {"to": target, **request}
                yield f"{library}, {name}: {words}", make, words


def _numbers(value: Any) -> np.ndarray | None:
    """Return the numbers of a value as its own framework shows them, if it is one of numbers."""
    spec = interop.spec(value)
    if "no_storage" in spec.traits:
        return None  # whoever reads it, reads what is not its own
    if spec.format == "torch.sparse_coo":
        value = value.detach().coalesce()  # the sums of what is stored for one index
    try:
        numbers = read(value)
        if isinstance(value, np.ma.MaskedArray):
            numbers = value.astype(np.result_type(value, "f4")).filled(np.nan)
    except Exception:  # noqa: BLE001 - the value is none that its framework shows as an array
        return None
    return (
        numbers if numbers.dtype.name != "object" and numbers.dtype.kind not in "MmSUTO" else None
    )


def _check_numbers(case: str, expected: np.ndarray, result: Any) -> None:
    """Compare the numbers of a result with NumPy's cast of those that the value had."""
    spec, actual = interop.spec(result), _numbers(result)
    if spec.format.startswith(_INEXACT) or not expected.size or spec.dtype not in DTYPES:
        return
    if actual is None:
        return  # dask cannot compute its torch arrays by itself
    if expected.dtype == bool:  # ml_dtypes would cast the byte, which may be any
        expected = expected.view("u1") != 0
    with np.errstate(all="ignore"):
        cast = expected.astype(dtype_of(spec.dtype)).astype("c16")
    assert actual.size == cast.size, case
    wide = actual.astype("c16").reshape(cast.shape)
    if "masked" in spec.traits:
        cast[np.isnan(expected)] = np.nan
    assert np.array_equal(wide, cast, equal_nan=True), case


def _judge(case: str, make: Any, words: dict[str, Any]) -> bool:
    """Judge one case, and tell whether there was a result that is as it should be."""
    value = make()
    try:
        spec = interop.spec(value)
    except InteropError:
        interop.convert(value, **words)
        return True
    if "slice" in case and spec.index_dtype and "dtype" in words:
        return False  # whose offsets are counted anew, of which no plan knows: see ragged-rows.md
    before = _numbers(value)
    before = None if before is None else before.copy()
    told: list[Any] = [case]
    try:
        outcome, result = judged(value, words, told.append)
    except AssertionError as error:
        error.add_note("; ".join(map(str, told)))
        raise
    if before is not None:
        after = _numbers(value)
        assert after is not None, case
        assert after.tobytes() == before.tobytes(), case
        # The labels of rows may become columns of numbers, too.
        is_comparable = outcome == "right" and "indexed" not in spec.traits
        if is_comparable and _CHANGING.isdisjoint(words.get("allow", ())):
            _check_numbers(case, before, result)
    return outcome == "right"


@pytest.mark.parametrize("library", marked(LIBRARIES))
def test_every_kind_of_value_becomes_what_was_planned_or_meets_an_error_of_ours(
    library: str,
) -> None:
    """Steps, effects, sharing and result are the plan's, the numbers NumPy's, the source as before.

    No value and no request meets an error of a framework, or one that says to report it.
    """
    right = 0
    for case, make, words in _cases(library):
        try:
            right += _judge(case, make, words)
        except Exception as error:
            is_ours = isinstance(error, InteropError) and not isinstance(error, _FAULTS)
            if not is_ours:
                error.add_note(case)
                raise
    assert right
