"""Checks of indices: at the ends of axes, of every width, in order, and once for each array."""

from __future__ import annotations

import gc
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from interop.errors import HandOffError
from interop.kit import check_coordinates, inspect_once, rising
from tests.cases import together


@together("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i2", ">u4"])
def test_an_index_is_inside_of_its_axis_or_refused(dtype: str) -> None:
    """Zero and the last are inside; the next one and what is negative are not, however long it is."""
    facts, bits = np.iinfo(dtype), 8 * np.dtype(dtype).itemsize
    for length in (1, 5, *(2**n + m for n in (bits - 1, bits) for m in (-1, 0, 1))):
        for index in (0, length - 1, length, -1, facts.min, facts.max):
            if not facts.min <= index <= facts.max:
                continue
            indices = np.array([0, index], dtype)
            if 0 <= index < length:
                check_coordinates("an array", [indices], (length,))
            else:
                with pytest.raises(HandOffError):
                    check_coordinates("an array", [indices], (length,))


@together("axes", [1, 2, 3])
def test_elements_rise_as_the_tuples_of_their_indices(axes: int) -> None:
    """An element comes after the one before exactly if its indices do, the first axis first."""
    for stored in (0, 1, 2, 50):
        coords = np.random.default_rng(stored).integers(0, 3, (axes, stored))
        expected = [
            before < after for before, after in pairwise(zip(*coords.tolist(), strict=True))
        ]
        assert rising([*coords]).tolist() == expected


def test_an_inspection_is_made_once_for_an_object_and_a_key() -> None:
    """Another key or object has its own, be it of the same id; it is forgotten with the object."""

    class Owner:
        __hash__ = None  # type: ignore[assignment]

    kept: dict[int, Any] = {}
    outcomes = iter(range(9))
    owner, other = Owner(), Owner()
    made = [inspect_once(kept, owner, key, lambda: next(outcomes)) for key in "aabba"]
    assert made == [0, 0, 1, 1, 2]
    kept[id(other)] = kept[id(owner)]
    assert inspect_once(kept, other, "a", lambda: next(outcomes)) == 3
    del owner, other
    gc.collect()
    assert not kept
