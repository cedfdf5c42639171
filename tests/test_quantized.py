"""QuantizedArray: construction and checks."""

from __future__ import annotations

import numpy as np
import pytest

import interop
from interop import QuantizedArray


def test_nothing_is_copied_or_computed() -> None:
    """The components are the very objects that were given."""
    codes, scale, zero = np.zeros((2, 3), "u1"), np.ones(3), np.zeros(3, int)
    q = QuantizedArray(codes, scale, zero, axis=1)
    assert q.codes is codes
    assert q.scale is scale
    assert q.zero_point is zero
    assert (q.shape, q.ndim) == ((2, 3), 2)
    assert "along axis 1" in repr(q)


@pytest.mark.parametrize(
    ("scale", "facts", "said"),
    [
        (np.ones(2), {}, r"need \(\); reshape"),
        (np.ones(2), {"axis": 1}, r"need \(4,\); reshape"),
        (np.ones((2, 2)), {"axis": 1, "block_size": 3}, None),
        (np.ones((2, 1)), {"axis": 1, "block_size": 3}, r"need \(2, 2\); reshape"),
        (np.ones(4), {"axis": 2}, "not an axis"),
        (np.ones(4), {"axis": 1, "block_size": 0}, "1 or more"),
    ],
)
def test_shapes_are_checked(scale: np.ndarray, facts: dict[str, int], said: str | None) -> None:
    """Scale and zero point must fit the scheme, and the message says what would."""
    codes = np.zeros((2, 4), "i1")
    if said is None:
        assert QuantizedArray(codes, scale, **facts).block_size == 3
    else:
        with pytest.raises(interop.errors.BadRequestError, match=said):
            QuantizedArray(codes, scale, **facts)
