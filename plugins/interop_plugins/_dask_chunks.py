"""Chunks: what those of a dask array are, and how each is converted where it is computed."""

from __future__ import annotations

from functools import partial
from math import isnan, prod
from typing import Any, NamedTuple

import interop
from interop.errors import HandOffError
from interop.plugin import Spec, itemsize

__all__ = ["DENSE", "INDEX_DTYPES", "Facts", "checked", "describe", "facts", "map_chunks", "wrap"]

_NONE: frozenset[str] = frozenset()

#: The format of a chunk by the root of its type's module, and its type.
_KINDS = {
    ("numpy", "ndarray"): "numpy",
    ("numpy", "MaskedArray"): "numpy",
    ("torch", "Tensor"): "torch",
    ("cupy", "ndarray"): "cupy",
    **{
        ("scipy", f"{layout}_{kind}"): f"scipy.{layout}"
        for layout in ("csr", "csc", "coo")
        for kind in ("array", "matrix")
    },
    ("sparse", "COO"): "sparse.coo",
}
DENSE = frozenset({"numpy", "torch", "cupy"})

#: The dtype of the indices of what the chunks of a sparse format are put together to.
INDEX_DTYPES = {
    "scipy.csr": "int32",
    "scipy.csc": "int32",
    "scipy.coo": "int32",
    "sparse.coo": "int64",
}

_LONG_NUMBERS = {13: "longdouble", 16: "clongdouble"}


class Facts(NamedTuple):
    """What matters of a chunk, and of the meta that speaks for all of them.

    Parameters
    ----------
    kind : str
        Its format, "" if it is none of those that dask arrays are made of here.
    dtype : str
    traits : frozenset of str
    """

    kind: str
    dtype: str
    traits: frozenset[str]

    def __str__(self) -> str:
        notes = f" ({', '.join(sorted(self.traits))})" if self.traits else ""
        return f"{self.kind or 'of no known format'} {self.dtype}{notes}"


def describe(value: Any) -> Spec:
    """Return the spec of a dask array, from its chunk sizes and its meta; nothing is computed.

    Parameters
    ----------
    value : dask.array.Array

    Returns
    -------
    Spec
        Lengths that are not known before it is computed are given as zero, and the trait
        ``unknown_shape`` says so. What does not fit in memory counts with all its bytes.
    """
    known = facts(value._meta)
    traits, shape = known.traits, value.shape
    if any(isnan(length) for length in shape):
        shape = tuple(0 if isnan(length) else int(length) for length in shape)
        traits |= {"unknown_shape"}
    return Spec(
        "dask" if known.kind in ("numpy", "") else f"dask.{known.kind}",
        known.dtype,
        f"cuda:{value._meta.device.id}" if known.kind == "cupy" else "cpu",
        shape,
        traits,
        prod(shape) * itemsize(known.dtype),
        index_dtype=INDEX_DTYPES.get(known.kind),
    )


def facts(chunk: Any) -> Facts:
    """Return what matters of a chunk or of a meta."""
    name = (type(chunk).__module__.partition(".")[0], type(chunk).__qualname__)
    kind = _KINDS.get(name) or ("numpy" if _is_scalar(chunk) else "")
    traits = {
        "foreign_chunks": not kind,
        "masked": name[1] == "MaskedArray",
        "matrix": name[1].endswith("_matrix"),
    }
    if kind == "torch":
        traits["grad"] = chunk.requires_grad
        if str(chunk.layout) != "torch.strided" or chunk.device.type != "cpu":
            kind, traits["foreign_chunks"] = "", True
    elif kind == "sparse.coo":
        traits["fill_value"] = bool(chunk.fill_value != 0)
    present = frozenset(trait for trait, holds in traits.items() if holds)
    return Facts(kind, _dtype_name(getattr(chunk, "dtype", None)), present)


def _is_scalar(chunk: Any) -> bool:
    """Tell whether it is what NumPy's reductions leave of an array of no axes."""
    import numpy as np

    return isinstance(chunk, np.generic)


def _dtype_name(dtype: Any) -> str:
    if not hasattr(dtype, "num"):
        return str(dtype).removeprefix("torch.")
    return str(dtype) if dtype.names else _LONG_NUMBERS.get(dtype.num) or str(dtype.name)


def checked(chunk: Any, expected: Facts) -> Any:
    """Return a chunk, if it is what the meta of its array says.

    Raises
    ------
    HandOffError
        It is not. dask takes both on trust, and would cast or misread it.
    """
    found = facts(chunk)
    same = found[:2] == expected[:2] and found.traits - {"matrix"} <= expected.traits
    if not same:
        msg = (
            f"a chunk is {found}, although the meta of its dask array says {expected}; tell dask "
            "what the chunks are (map_blocks(..., dtype=, meta=)), or make them so."
        )
        raise HandOffError(msg)
    return chunk


def convert_chunk(chunk: Any, *, to: str, expected: Facts, **words: Any) -> Any:
    """Return a chunk in another format; this is what runs in the workers."""
    return interop.convert(checked(chunk, expected), to, **words)


def map_chunks(
    value: Any, *, to: str, dtype: str | None = None, device: str | None = None, copy: Any = None
) -> Any:
    """Return a dask array whose chunks are of another format, dtype or device, or are copies.

    Nothing is computed: each chunk is converted when it is, and where it is.

    Parameters
    ----------
    value : dask.array.Array
    to : str
        Format of the chunks.
    dtype, device : str, optional
    copy : bool, optional
    """
    expected = facts(value._meta)
    words: dict[str, Any] = {"device": device, "copy": copy}
    if dtype not in (None, expected.dtype):  # to name it is consent to a cast, so only for one
        words["dtype"] = dtype
    words = {word: said for word, said in words.items() if said is not None}
    meta = interop.convert(value._meta, to, **words)
    convert_each = partial(convert_chunk, to=to, expected=expected, **words)
    return value.map_blocks(convert_each, dtype=meta.dtype, meta=meta)


def wrap(value: Any) -> Any:
    """Return a dask array over an array, whose chunks are views of it.

    They are as large as dask's option ``array.chunk-size`` says. A sparse array is one chunk.
    """
    import numpy as np
    from dask.array import Array
    from dask.array.core import normalize_chunks, slices_from_chunks

    known = facts(value)
    shape = tuple(value.shape)
    # A slice of a sparse array is a copy, and how large one should be its shape does not say.
    size = "auto" if known.kind in DENSE else -1
    chunks = normalize_chunks(size, shape, dtype=np.dtype(f"V{value.dtype.itemsize}"))
    name = f"{known.kind}-{_token()}"
    places = np.ndindex(*map(len, chunks))
    views = (value[(*place, ...)] for place in slices_from_chunks(chunks))
    parts = views if known.kind in DENSE else iter([value])
    graph = {(name, *place): part for place, part in zip(places, parts, strict=True)}
    return Array(graph, name, chunks, dtype=value.dtype, meta=value)  # which is cut to nothing


def _token() -> str:
    """Return a name of its own: to hash the elements would be to read them."""
    from uuid import uuid4

    return uuid4().hex
