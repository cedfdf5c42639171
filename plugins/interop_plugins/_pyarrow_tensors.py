"""Tensors of Arrow's, which have strides, and tables and record batches, which have columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interop.plugin import Spec

from ._pyarrow_arrays import device, fill_value, invalid, memory_of_chunks, to_numpy
from ._pyarrow_arrays import memory as memory_of_array
from ._pyarrow_types import DTYPES, dtype_name, kind_of

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

__all__ = [
    "describe_batch",
    "describe_table",
    "describe_tensor",
    "fill_tensor",
    "memory_of_columns",
    "memory_of_tensor",
    "stacked",
    "tensor_fast_path",
    "tensor_from_numpy",
    "tensor_to_numpy",
]

_IMMUTABLE = frozenset({"immutable"})

#: NumPy's codes of the integers and reals that Arrow holds; it takes bools for bytes.
_CODES = "bBhHiIlLqQefd"
#: Of NumPy's `flags.num`: one C-ordered block, and aligned.
_BLOCK = 0x0001 | 0x0100

#: Bytes of a column that are written at a time, so that a part of every column stays in the caches.
_BYTES = 2**16
#: How many types, and columns of one type, a refusal names.
_NAMED = 3


def describe_tensor(value: Any) -> Spec:
    """Return the spec of a tensor, from the flags of NumPy's view of it."""
    array = value.to_numpy()
    flags = array.flags
    traits = set()
    if not value.is_mutable:
        traits.add("readonly")
    if not flags.aligned:
        traits.add("unaligned")
    if not flags.c_contiguous:
        traits.add("noncontiguous")
        if any(not s and n > 1 for n, s in zip(array.shape, array.strides, strict=True)):
            traits.add("broadcast")
    name = dtype_name(value.type)
    return Spec("pyarrow.tensor", name, "cpu", array.shape, frozenset(traits), array.nbytes)


def memory_of_tensor(value: Any) -> tuple[tuple[int, int], ...]:
    """Return the address and length of the memory of a tensor."""
    import numpy as np

    low, high = np.lib.array_utils.byte_bounds(value.to_numpy())
    return ((low, high - low),) if value.size else ()


def tensor_to_numpy(value: Any) -> Array:
    """Return an array over the memory of a tensor, writable if that is."""
    array: Array = value.to_numpy()
    return array


def tensor_from_numpy(value: Array) -> Any:
    """Return a tensor over the memory of an array."""
    import pyarrow as pa

    if min(value.strides, default=0) < 0:  # along an axis that is never walked
        value = value[tuple(slice(None, None, -1 if step < 0 else 1) for step in value.strides)]
    return pa.Tensor.from_numpy(value)


def tensor_fast_path(value: Array) -> Any:
    """Share a plain array with a tensor, or answer `NotImplemented`."""
    flags = value.flags.num
    if value.dtype.char not in _CODES or not value.dtype.isnative or flags & _BLOCK != _BLOCK:
        return NotImplemented
    return tensor_from_numpy(value)


def fill_tensor(out: Any, value: Any) -> None:
    """Write the numbers of a tensor into another."""
    import numpy as np

    with np.errstate(all="ignore"):
        np.copyto(out.to_numpy(), value.to_numpy(), casting="unsafe")


# ---------------------------------------------------------------------- columns


def describe_table(value: Any) -> Spec:
    """Return the spec of a table: rows and columns of one type, or columns of several."""
    return _describe_columns("pyarrow.table", value)


def describe_batch(value: Any) -> Spec:
    """Return the spec of a record batch, as of a table."""
    return _describe_columns("pyarrow.record_batch", value)


def _describe_columns(name: str, value: Any) -> Spec:
    types = value.schema.types
    traits = set(_IMMUTABLE)
    if not types:
        traits.add("no_columns")
        dtype = "of no dtype"
    elif any(each != types[0] for each in types[1:]):
        traits.add("mixed_columns")
        dtype = _mixture(value.schema)
    else:
        dtype = dtype_name(types[0])
    there = "cpu" if value.is_cpu else device(value.column(0))
    if there == "cpu" and any(column.null_count for column in value.columns):
        traits.add("masked")
    width = kind_of(types[0]).width if dtype in DTYPES else 0
    nbytes = value.num_rows * value.num_columns * width
    return Spec(name, dtype, there, value.shape, frozenset(traits), nbytes)


def _mixture(schema: Any) -> str:
    """Say which columns are of which type."""
    by_type: dict[str, list[str]] = {}
    for field in schema:
        by_type.setdefault(str(field.type), []).append(repr(field.name))
    return _listed([f"{kind} ({_listed(names)})" for kind, names in by_type.items()], " / ")


def _listed(names: list[str], between: str = ", ") -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return between.join(names[:_NAMED]) + more


def memory_of_columns(value: Any) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory of all columns."""
    return tuple(
        extent
        for column in value.columns
        for extent in (
            memory_of_chunks(column) if hasattr(column, "chunks") else memory_of_array(column)
        )
    )


def stacked(value: Any) -> Array:
    """Return the columns side by side in one block, with NaN, 0 or False for nulls."""
    import numpy as np

    out = np.empty(value.shape, dtype_name(value.schema.types[0]))
    done = 0
    for batch in value.to_batches() if hasattr(value, "to_batches") else [value]:
        _write(out[done : done + batch.num_rows], batch.columns)
        done += batch.num_rows
    return out


def _write(out: Array, columns: list[Any]) -> None:
    """Write columns side by side, some rows of each at a time; bits are unpacked as they go."""
    import numpy as np

    fill, bits = fill_value(out.dtype.name), out.dtype == np.bool_
    sources = columns if bits else [to_numpy(column) for column in columns]
    masked = [bool(column.null_count) for column in columns]
    count = _BYTES // out.itemsize
    for start in range(0, len(out), count):
        rows = slice(start, start + count)
        for place, source in enumerate(sources):
            out[rows, place] = to_numpy(source[rows]) if bits else source[rows]
            nulls = invalid(columns[place][rows]) if masked[place] else None
            if nulls is not None:
                np.copyto(out[rows, place], fill, where=nulls)
