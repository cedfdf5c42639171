"""Results: a dask array computed, and its chunks put together.

dask itself can put together neither torch's tensors nor sparse arrays in their own layouts. And it
holds all chunks beside the result: here each is written into the result once it is computed.

dask sends functions of this module to its workers by module and name.
"""

from __future__ import annotations

from functools import partial
from math import isnan, prod
from typing import TYPE_CHECKING, Any, TypeAlias, cast

import interop
from interop.errors import HandOffError

from .chunks import checked, map_chunks
from .describe import DENSE, INDEX_DTYPES, Facts, inspect_chunk

if TYPE_CHECKING:
    import numpy as np
    import torch
    from dask.array import Array as DaskArray

    from .describe import Chunk

    #: The lengths of the chunks along each axis.
    Lengths: TypeAlias = tuple[tuple[int, ...], ...]
    #: Where a chunk lies in the result.
    Place: TypeAlias = tuple[slice, ...]


def compute(array: DaskArray) -> Chunk:
    """Return the array that a dask array stands for, in new memory.

    Parameters
    ----------
    array : dask.array.Array

    Returns
    -------
    array
        Of the format of the chunks. It shares memory with none of them, not even with the only
        one, which may lie in the graph or in a worker.

    Raises
    ------
    HandOffError
        The chunks are not what the array's meta and chunk sizes say.
    """
    expected = inspect_chunk(array._meta)
    if expected.format not in DENSE:
        return _sparse(array, expected)
    if _has_known_shape(array) and _runs_in_this_process(array):
        return _written_by_tasks(array, expected)
    chunks = _received(array, expected)
    lengths = _lengths(array, chunks)
    out = _empty(array._meta, expected.format, tuple(map(sum, lengths)))
    for place in reversed(_places(lengths)):
        # Each chunk is released once it is written, so that memory never holds two results.
        _write(out, expected, place, chunks.pop())
    return out


def compute_tensor(array: DaskArray) -> torch.Tensor:
    """Return the tensor that a dask array of tensors stands for; NumPy puts it together.

    distributed sends tensors only of the dtypes that NumPy has by itself.
    """
    return interop.convert(compute(map_chunks(array, to="numpy")), "torch")


def compute_masked(array: DaskArray) -> np.ma.MaskedArray[Any, Any]:
    """Return the masked array that a dask array stands for; dask itself joins the masks."""
    import numpy as np

    computed = array.compute()
    if getattr(computed, "dtype", array.dtype) != array.dtype:
        msg = (
            f"the chunks are of dtype {computed.dtype}, where their dask array says {array.dtype}; "
            "tell dask what they are (map_blocks(..., dtype=))."
        )
        raise HandOffError(msg)
    # The only chunk may lie in the graph or in a worker.
    return np.ma.array(computed, dtype=array.dtype, copy=array.npartitions == 1)


# ---------------------------------------------------------------------- dense


def _runs_in_this_process(array: DaskArray) -> bool:
    """Tell whether the tasks will run in this process, where they can write into its memory."""
    import dask.local
    import dask.threaded
    from dask.base import get_scheduler

    return get_scheduler(collections=[array]) in (dask.threaded.get, dask.local.get_sync)


def _written_by_tasks(array: DaskArray, expected: Facts) -> Chunk:
    """Let the tasks write their chunks into the result."""
    import dask.base
    from dask.delayed import delayed

    out = _empty(array._meta, expected.format, array.shape)
    blocks = array.to_delayed().ravel().tolist()
    writes = [
        delayed(partial(_write, out, expected, place), pure=False)(block)
        for place, block in zip(_places(array.chunks), blocks, strict=True)
    ]
    dask.base.compute(*writes)
    return out


def _empty(meta: Chunk, format_: str, shape: tuple[int, ...]) -> Chunk:
    if format_ == "cupy":
        import cupy

        return cupy.empty(shape, meta.dtype)
    import numpy as np

    return np.empty(shape, meta.dtype.newbyteorder("="))


def _write(out: Chunk, expected: Facts, place: Place, chunk: Chunk) -> None:
    _check_shape(checked(chunk, expected), place)
    out[place] = chunk


def _check_shape(chunk: Chunk, place: Place) -> None:
    """Refuse a chunk that is not as large as its place: NumPy would repeat a smaller one."""
    shape, expected = tuple(chunk.shape), tuple(part.stop - part.start for part in place)
    if shape != expected:
        msg = (
            f"a chunk has the shape {shape}, where its dask array says {expected}; tell dask how "
            "large the chunks are (map_blocks(..., chunks=))."
        )
        raise HandOffError(msg)


def _computed(array: DaskArray, expected: Facts) -> list[Chunk]:
    """Return the computed chunks, the last axis running first."""
    import dask.base

    chunks = dask.base.compute(*array.to_delayed().ravel().tolist())
    return [checked(chunk, expected) for chunk in chunks]


def _received(array: DaskArray, expected: Facts) -> list[Chunk]:
    """Return the computed chunks, which may come from other processes.

    distributed mistakes the dtypes of ml_dtypes for others, so arrays of them travel as bits.
    """
    from dask.array import map_blocks

    dtype = array.dtype
    if expected.format == "cupy" or dtype.isbuiltin == 1 or not dtype.isnative:
        return _computed(array, expected)
    bits = map_blocks(partial(_bits, expected=expected), array, dtype=dtype, meta=array._meta)
    carrier = Facts("numpy", f"uint{8 * dtype.itemsize}", frozenset())
    return [chunk.view(dtype) for chunk in _computed(bits, carrier)]


def _bits(chunk: Chunk, *, expected: Facts) -> Chunk:
    return checked(chunk, expected).view(f"u{chunk.dtype.itemsize}")


# ---------------------------------------------------------------------- places


def _has_known_shape(array: DaskArray) -> bool:
    return not any(isnan(length) for length in array.shape)


def _lengths(array: DaskArray, chunks: list[Chunk]) -> Lengths:
    """Return the lengths of the chunks along each axis, from the chunks if dask does not know."""
    if _has_known_shape(array):
        lengths: Lengths = array.chunks
        return lengths
    counts = array.numblocks
    return tuple(
        tuple(int(chunks[n * prod(counts[axis + 1 :])].shape[axis]) for n in range(count))
        for axis, count in enumerate(counts)
    )


def _places(lengths: Lengths) -> list[Place]:
    from dask.array.core import slices_from_chunks

    places: list[Place] = slices_from_chunks(lengths)
    return places


# ---------------------------------------------------------------------- sparse


def _sparse(array: DaskArray, expected: Facts) -> Chunk:
    chunks, counts = _computed(array, expected), array.numblocks
    lengths = _lengths(array, chunks)
    for chunk, place in zip(chunks, _places(lengths), strict=True):
        _check_shape(chunk, place)
    dtype = INDEX_DTYPES[expected.format]
    _check_indices(tuple(map(sum, lengths)), sum(chunk.nnz for chunk in chunks), dtype)
    library, _, layout = expected.format.partition(".")
    if library == "scipy":
        joined = _blocks(chunks, counts, layout)
        joined.sum_duplicates()  # in place, as nobody else has its memory
    elif len(chunks) == 1:
        joined = interop.convert(chunks[0], cast("Any", expected.format), copy=True)
    else:
        joined = _concatenated(chunks, counts)
    return _with_indices(joined, dtype)


def _check_indices(shape: tuple[int, ...], nnz: int, dtype: str) -> None:
    """Refuse an array that needs wider indices than the route was planned with."""
    import numpy as np

    if max(nnz, *shape) > np.iinfo(dtype).max:
        msg = (
            f"an array of shape {shape} with {nnz} stored elements needs indices of 64 bits; "
            "compute it in parts (x[:n], x[n:])."
        )
        raise HandOffError(msg)


def _blocks(chunks: list[Chunk], counts: tuple[int, ...], layout: str) -> Chunk:
    """Put sparse matrices or arrays together into a new array of SciPy's."""
    import scipy.sparse

    if len(chunks) == 1:  # SciPy would return an array that is the only block as it is
        return getattr(scipy.sparse, f"{layout}_array")(chunks[0], copy=True)
    rows, columns = counts
    grid = [chunks[row * columns : (row + 1) * columns] for row in range(rows)]
    return scipy.sparse.block_array(grid, format=layout)


def _concatenated(chunks: list[Chunk], counts: tuple[int, ...]) -> Chunk:
    import sparse

    for axis in reversed(range(len(counts))):
        count = counts[axis]
        chunks = [
            sparse.concatenate(chunks[start : start + count], axis)
            for start in range(0, len(chunks), count)
        ]
    return chunks[0]


def _with_indices(joined: Chunk, dtype: str) -> Chunk:
    """Give a sparse array, which nobody else has, indices of the dtype that was planned."""
    import numpy as np

    for name in ("indices", "indptr"):
        if hasattr(joined, name):
            setattr(joined, name, getattr(joined, name).astype(dtype, copy=False))
    if hasattr(joined, "coords"):
        rows = [row.astype(dtype, copy=False) for row in joined.coords]
        joined.coords = tuple(rows) if isinstance(joined.coords, tuple) else np.stack(rows)
    return joined
