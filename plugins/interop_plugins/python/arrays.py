"""Sequences of arrays of one shape, stacked into one."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import interop
from interop.errors import Declined
from interop.kit import EMPTY

from .numbers import ODD_NUMBERS, numpy_dtype

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_DTYPE = attrgetter("dtype")
#: Where arrays that are stacked may lie.
DEVICES = ("cpu", "cuda", "rocm", "metal", "tpu", "oneapi")

#: Bytes from which on the planner asks first how much memory is left.
_SMALL = 2**24

#: The traits of arrays that their stack can have, too, or can go without.
CARRIES = EMPTY | {"grad", "labelled", "mixed"}
#: The trait of arrays of several dtypes, whose numbers no dtype holds together.
MIXED = frozenset({"mixed"})


def stack(value: Sequence[Any], *, dtype: str) -> NDArray[Any]:
    """Return a NumPy array of the elements of a sequence, which are converted one by one."""
    import numpy as np

    target = numpy_dtype(dtype)
    rows = [row if type(row) is np.ndarray else interop.convert(row, "numpy") for row in value]
    dtypes = {row.dtype for row in rows}
    if dtypes == {target}:
        return np.array(rows)  # which is faster than `stack`
    if len(dtypes) == 1 and rows[0].nbytes * len(rows) < _SMALL:
        stacked: NDArray[Any] = interop.convert(np.array(rows), "numpy", dtype=target)
        return stacked
    result = np.empty((len(rows), *rows[0].shape), target)
    for n, row in enumerate(rows):
        same = row.dtype == target
        result[n, ...] = row if same else interop.convert(row, "numpy", dtype=target)
    return result


def numpy_fast_path(value: Any) -> Any:
    """Return the stack of small, plain NumPy arrays of one dtype and shape; else pass."""
    import numpy as np

    if not value or type(value[0]) is not np.ndarray or {*map(type, value)} != {np.ndarray}:
        return NotImplemented
    if value[0].nbytes * len(value) >= _SMALL:
        return NotImplemented
    dtypes = {*map(_DTYPE, value)}
    dtype = dtypes.pop()
    if dtypes or dtype.num >= ODD_NUMBERS or not dtype.isnative:
        return NotImplemented
    try:
        return np.array(value)
    except ValueError:  # they differ in shape
        return NotImplemented


def sample(value: np.ndarray[Any, Any]) -> list[Any]:
    """Return the rows of an array in a list."""
    if not value.size:
        msg = "a sequence without elements holds no array"
        raise Declined(msg)
    return [value[n, ...] for n in range(len(value))]
