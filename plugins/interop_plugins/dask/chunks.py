"""Chunks: how each is converted where it is computed, and how an array is cut into some.

dask sends functions of this module to its workers by module and name.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, cast
from uuid import uuid4

import interop
from interop.errors import HandOffError

from .describe import DENSE, Facts, inspect_chunk

if TYPE_CHECKING:
    from typing import Unpack

    from dask.array import Array as DaskArray

    from .describe import Chunk


class _Request(TypedDict, total=False):
    """The keywords with which a chunk is converted, beside its format."""

    dtype: Any  # type checkers take known names only
    device: Any
    copy: bool


def checked(chunk: Chunk, expected: Facts) -> Chunk:
    """Return a chunk if it is what the meta of its array says.

    Raises
    ------
    HandOffError
        It is not. dask compares neither, and would cast or misread the chunk.
    """
    facts = inspect_chunk(chunk)
    same_numbers = (facts.format, facts.dtype) == (expected.format, expected.dtype)
    if not (same_numbers and facts.traits - {"matrix"} <= expected.traits):
        msg = (
            f"a chunk is {facts}, although the meta of its dask array says {expected}; tell dask "
            "what the chunks are (map_blocks(..., dtype=, meta=)), or make them so."
        )
        raise HandOffError(msg)
    return chunk


def convert_chunk(chunk: Chunk, *, to: str, expected: Facts, **request: Unpack[_Request]) -> Chunk:
    """Return a chunk in another format. This runs in the workers."""
    return interop.convert(checked(chunk, expected), cast("Any", to), **request)


def map_chunks(
    array: DaskArray,
    *,
    to: str,
    dtype: str | None = None,
    device: str | None = None,
    copy: bool | None = None,
) -> DaskArray:
    """Return a dask array whose chunks are of another format, dtype or device, or are copies.

    Nothing is computed: each chunk is converted when and where it is computed.

    Parameters
    ----------
    array : dask.array.Array
    to : str
        Format of the chunks.
    dtype, device : str, optional
    copy : bool, optional
    """
    from dask.array import map_blocks

    expected = inspect_chunk(array._meta)
    request: _Request = {}
    if dtype is not None and dtype != expected.dtype:  # to name a dtype is to allow a cast
        request["dtype"] = dtype
    if device is not None:
        request["device"] = device
    if copy is not None:
        request["copy"] = copy
    meta = interop.convert(array._meta, cast("Any", to), **request)
    convert = partial(convert_chunk, to=to, expected=expected, **request)
    mapped: DaskArray = map_blocks(convert, array, dtype=meta.dtype, meta=meta)
    return mapped


def wrap(array: Chunk) -> DaskArray:
    """Return a dask array over an array, whose chunks are views of it.

    dask's option ``array.chunk-size`` says how large they are. A sparse array is one chunk.
    """
    import numpy as np
    from dask.array import Array as DaskArray
    from dask.array.core import normalize_chunks, slices_from_chunks

    facts = inspect_chunk(array)
    shape = tuple(array.shape)
    # A slice of a sparse array is a copy, and its shape does not tell how large it is. dask cannot
    # tell how large the chunks of an array of no elements should be.
    size = "auto" if facts.format in DENSE and 0 not in shape else -1
    chunks = normalize_chunks(size, shape, dtype=np.dtype(f"V{array.dtype.itemsize}"))
    # A unique name: dask itself would make one of the elements, and read them all.
    name = f"{facts.format}-{uuid4().hex}"
    places = np.ndindex(*map(len, chunks))
    views = (array[(*place, ...)] for place in slices_from_chunks(chunks))
    parts = views if facts.format in DENSE else iter([array])
    graph = {(name, *place): part for place, part in zip(places, parts, strict=True)}
    return DaskArray(graph, name, chunks, dtype=array.dtype, meta=array)  # dask cuts it to nothing
