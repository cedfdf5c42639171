"""Sequences of arrays of one shape, stacked into one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import interop
from interop.errors import Declined
from interop.plugin import EMPTY

from .numbers import numpy_dtype

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: Where arrays that are stacked may lie.
DEVICES = ("cpu", "cuda", "rocm", "metal", "tpu", "oneapi")

#: The traits of arrays that their stack can have, too, or can go without.
CARRIES = EMPTY | {"grad", "labelled"}


def stack(value: Sequence[Any], *, dtype: str) -> NDArray[Any]:
    """Return a NumPy array of the elements of a sequence, which are converted one by one."""
    import numpy as np

    shape = interop.spec(value[0]).shape
    result = np.empty((len(value), *shape), numpy_dtype(dtype))
    convert = interop.converter("numpy")
    for n, element in enumerate(value):
        row = convert(element)
        same = row.dtype == result.dtype
        result[n, ...] = row if same else interop.convert(row, "numpy", dtype=result.dtype)
    return result


def sample(value: np.ndarray[Any, Any]) -> list[Any]:
    """Return the rows of an array in a list."""
    if not value.size:
        msg = "a sequence without elements holds no array"
        raise Declined(msg)
    return [value[n, ...] for n in range(len(value))]
