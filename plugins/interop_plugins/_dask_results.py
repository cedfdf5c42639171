"""Results: a dask array computed, and its chunks put together.

dask itself can put together neither torch's tensors nor, in their own layout, sparse arrays. And
it holds all chunks beside the whole: here each is written into it as soon as it is there.
"""

from __future__ import annotations

from functools import partial
from math import isnan, prod
from typing import Any

import interop
from interop.errors import HandOffError

from ._dask_chunks import DENSE, INDEX_DTYPES, Facts, checked, facts, map_chunks

__all__ = ["compute", "compute_tensor"]


def compute(value: Any) -> Any:
    """Return what a dask array stands for, in memory of its own.

    Parameters
    ----------
    value : dask.array.Array

    Returns
    -------
    array
        Of the format of its chunks. It shares memory with none of them, not even with the only
        one, which may lie in the graph or in a worker.

    Raises
    ------
    HandOffError
        The chunks are not what the array's meta and chunk sizes say.
    """
    expected = facts(value._meta)
    if expected.kind not in DENSE:
        return _sparse(value, expected)
    if _is_known(value) and _in_this_process(value):
        return _written_there(value, expected)
    chunks = _received(value, expected)
    lengths = _lengths(value, chunks)
    out = _empty(value._meta, expected.kind, tuple(map(sum, lengths)))
    for place in reversed(_slices(lengths)):
        # Each is let go of once it is written, so that the whole is not in memory twice.
        _write(out, expected, place, chunks.pop())
    return out


def compute_tensor(value: Any) -> Any:
    """Return what a dask array of torch's tensors stands for; it is put together by NumPy.

    Of tensors, distributed sends only those of dtypes that NumPy has by itself.
    """
    return interop.convert(compute(map_chunks(value, to="numpy")), "torch")


def _in_this_process(value: Any) -> bool:
    """Tell whether its tasks will run in this process, where they can write into its memory."""
    import dask.local
    import dask.threaded
    from dask.base import get_scheduler

    here = (dask.threaded.get, dask.local.get_sync)
    return get_scheduler(collections=[value]) in here


def _written_there(value: Any, expected: Facts) -> Any:
    """Let the tasks write their chunks into the result."""
    import dask.base
    from dask.delayed import delayed

    out = _empty(value._meta, expected.kind, value.shape)
    writes = [
        delayed(partial(_write, out, expected, place), pure=False)(block)
        for place, block in zip(
            _slices(value.chunks), value.to_delayed().ravel().tolist(), strict=True
        )
    ]
    dask.base.compute(*writes)
    return out


def _empty(meta: Any, kind: str, shape: tuple[int, ...]) -> Any:
    if kind == "cupy":
        import cupy

        return cupy.empty(shape, meta.dtype)
    import numpy as np

    return np.empty(shape, meta.dtype.newbyteorder("="))


def _write(out: Any, expected: Facts, place: tuple[slice, ...], chunk: Any) -> None:
    _check_shape(checked(chunk, expected), place)
    out[place] = chunk


def _check_shape(chunk: Any, place: tuple[slice, ...]) -> None:
    """Refuse a chunk that is not as large as its place: NumPy would repeat a lesser one."""
    found, expected = tuple(chunk.shape), tuple(part.stop - part.start for part in place)
    if found != expected:
        msg = (
            f"a chunk has the shape {found}, where its dask array says {expected}; tell dask how "
            "large the chunks are (map_blocks(..., chunks=))."
        )
        raise HandOffError(msg)


def _chunks(value: Any, expected: Facts) -> list[Any]:
    """Return the computed chunks, the last axis running first."""
    import dask.base

    chunks = dask.base.compute(*value.to_delayed().ravel().tolist())
    return [checked(chunk, expected) for chunk in chunks]


def _received(value: Any, expected: Facts) -> list[Any]:
    """Return the computed chunks, from other processes perhaps.

    distributed sends arrays of ml_dtypes as what it takes them for, so that they travel as bits.
    """
    dtype = value.dtype
    if expected.kind == "cupy" or dtype.isbuiltin == 1 or not dtype.isnative:
        return _chunks(value, expected)
    bits = value.map_blocks(partial(_bits, expected=expected), dtype=dtype, meta=value._meta)
    carried = Facts("numpy", f"uint{8 * dtype.itemsize}", frozenset())
    return [chunk.view(dtype) for chunk in _chunks(bits, carried)]


def _bits(chunk: Any, *, expected: Facts) -> Any:
    return checked(chunk, expected).view(f"u{chunk.dtype.itemsize}")


def _is_known(value: Any) -> bool:
    return not any(isnan(length) for length in value.shape)


def _lengths(value: Any, chunks: list[Any]) -> tuple[tuple[int, ...], ...]:
    """Return the lengths of the chunks along each axis, if need be from those at its edge."""
    counts = value.numblocks
    if _is_known(value):
        known: tuple[tuple[int, ...], ...] = value.chunks
        return known
    return tuple(
        tuple(int(chunks[n * prod(counts[axis + 1 :])].shape[axis]) for n in range(count))
        for axis, count in enumerate(counts)
    )


def _slices(lengths: tuple[tuple[int, ...], ...]) -> list[tuple[slice, ...]]:
    from dask.array.core import slices_from_chunks

    places: list[tuple[slice, ...]] = slices_from_chunks(lengths)
    return places


def _sparse(value: Any, expected: Facts) -> Any:
    chunks, counts = _chunks(value, expected), value.numblocks
    lengths = _lengths(value, chunks)
    for chunk, place in zip(chunks, _slices(lengths), strict=True):
        _check_shape(chunk, place)
    dtype = INDEX_DTYPES[expected.kind]
    _check_indices(tuple(map(sum, lengths)), sum(chunk.nnz for chunk in chunks), dtype)
    library, _, layout = expected.kind.partition(".")
    if len(chunks) == 1:
        joined = interop.convert(chunks[0], expected.kind, copy=True)
    elif library == "scipy":
        joined = _blocks(chunks, counts, layout)
    else:
        joined = _concatenated(chunks, counts)
    if library == "scipy":
        joined.sum_duplicates()  # in memory that nobody else has
    return _with_indices(joined, dtype)


def _check_indices(shape: tuple[int, ...], stored: int, dtype: str) -> None:
    """Refuse what the indices that later steps were planned for cannot count."""
    import numpy as np

    if max(stored, *shape) > np.iinfo(dtype).max:
        msg = (
            f"an array of shape {shape} with {stored} stored elements needs indices of 64 bits; "
            "compute it in parts (x[:n], x[n:])."
        )
        raise HandOffError(msg)


def _blocks(chunks: list[Any], counts: tuple[int, int], layout: str) -> Any:
    import scipy.sparse

    rows, columns = counts
    grid = [chunks[row * columns : (row + 1) * columns] for row in range(rows)]
    return scipy.sparse.block_array(grid, format=layout)


def _concatenated(chunks: list[Any], counts: tuple[int, ...]) -> Any:
    import sparse

    for axis in reversed(range(len(counts))):
        count = counts[axis]
        chunks = [
            sparse.concatenate(chunks[start : start + count], axis)
            for start in range(0, len(chunks), count)
        ]
    return chunks[0]


def _with_indices(joined: Any, dtype: str) -> Any:
    """Give a sparse array, which is nobody else's, indices of the dtype that was planned."""
    import numpy as np

    for name in ("indices", "indptr"):
        if hasattr(joined, name):
            setattr(joined, name, getattr(joined, name).astype(dtype, copy=False))
    if hasattr(joined, "coords"):
        same = [row.astype(dtype, copy=False) for row in joined.coords]
        joined.coords = tuple(same) if isinstance(joined.coords, tuple) else np.stack(same)
    return joined
