"""DataFrames: which dtype holds the numbers of all columns, and how they become one array."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interop.plugin import Declined, preserves

from ._pandas_arrays import Look, bare, bounds, extents, layout, look, number_name, write

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

__all__ = ["fast_path", "gather", "locked", "look_at_frame", "memory"]

#: The one dtype that has a place for the numbers of columns that have no dtype in common. No array
#: is made of it: it says what would be lost.
_WIDEST = {"f": "longdouble", "c": "clongdouble"}


def look_at_frame(frame: Any) -> Look:
    """Return what is known of a DataFrame without touching its numbers, but for masks."""
    import numpy as np

    block = single_block(frame)
    if isinstance(block, np.ndarray):
        name = number_name(block.dtype)
        return Look(name, layout(block)) if name else _no_numbers(frame)
    names = [number_name(dtype) for dtype in frame.dtypes]
    if not all(names):
        return _no_numbers(frame)
    name, mixed = _common(frozenset(names))
    traits = {"scattered", *mixed}
    for array in _arrays(frame):
        traits |= look(array).traits & {"masked"}
    return Look(name, frozenset(traits))


def single_block(frame: Any) -> Any:
    """Return the one array in which the columns of a DataFrame lie, or None."""
    blocks = frame._mgr.blocks
    return blocks[0].values.T if len(blocks) == 1 else None


def _no_numbers(frame: Any) -> Look:
    """Name the columns that are not of numbers, one for each dtype."""
    first: dict[str, Any] = {}
    for column, dtype in frame.dtypes.items():
        if not number_name(dtype):
            first.setdefault(str(dtype), column)
    named = ", ".join(f"{dtype} (column {column!r})" for dtype, column in first.items())
    return Look(named, frozenset({"not_numbers"}))


def _common(names: frozenset[str]) -> tuple[str, frozenset[str]]:
    """Return the dtype that NumPy finds for some, and ``mixed`` if it cannot hold all of each."""
    import numpy as np

    if len(names) < 2:
        return next(iter(names), "float64"), frozenset()
    found = np.result_type(*map(np.dtype, names))
    name = number_name(found)
    if all(preserves(one, name) for one in names):
        return name, frozenset()
    return _WIDEST["c" if found.kind == "c" else "f"], frozenset({"mixed"})


def _arrays(frame: Any) -> Any:
    """Return the arrays of the columns, whose names may not be distinct."""
    return (bare(column) for _, column in frame.items())


def locked(frame: Any) -> Array:
    """Return a read-only array over the memory of a DataFrame of one block."""
    import numpy as np

    block = single_block(frame)
    if not isinstance(block, np.ndarray):
        msg = "its columns do not lie in one array"
        raise Declined(msg)
    view = block.view()
    view.flags.writeable = False
    return view


def fast_path(frame: Any) -> Any:
    """Return a read-only array over a DataFrame of one block of NumPy's numbers."""
    blocks = frame._mgr.blocks
    dtype = blocks[0].dtype if len(blocks) == 1 else None
    if type(dtype).__module__ != "numpy.dtypes" or not number_name(dtype):
        return NotImplemented
    view = blocks[0].values.T.view()
    view.flags.writeable = False
    return view


def gather(frame: Any, *, dtype: str) -> Array:
    """Return the columns side by side in a new array, in pandas' order: each is one block."""
    import numpy as np

    rows, columns = frame.shape
    out = np.empty((columns, rows), dtype)
    for part, array in zip(out, _arrays(frame), strict=True):
        write(part, array)
    return out.T


def memory(frame: Any) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory of a DataFrame of numbers."""
    import numpy as np

    block = single_block(frame)
    if isinstance(block, np.ndarray):
        return bounds(block)
    return tuple(extent for array in _arrays(frame) for extent in extents(array))
