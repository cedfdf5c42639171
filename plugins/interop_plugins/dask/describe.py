"""The specs of dask arrays, and the facts about their chunks."""

from __future__ import annotations

from math import isnan, prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from interop.kit import dtype_name
from interop.plugin import Spec, itemsize

if TYPE_CHECKING:
    from dask.array import Array as DaskArray

    #: A NumPy array, a tensor, a sparse array: what a task of dask's returns, or a meta.
    Chunk: TypeAlias = Any

#: The format of a chunk by the root of its type's module, and its type.
_FORMATS = {
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

#: The dtype of the indices of the array to which sparse chunks are put together.
INDEX_DTYPES = {
    "scipy.csr": "int32",
    "scipy.csc": "int32",
    "scipy.coo": "int32",
    "sparse.coo": "int64",
}


class Facts(NamedTuple):
    """The facts about a chunk, or about the meta that stands for all chunks.

    Parameters
    ----------
    format : str
        Its format; "" if dask arrays of such chunks are not supported.
    dtype : str
    traits : frozenset of str
    """

    format: str
    dtype: str
    traits: frozenset[str]

    def __str__(self) -> str:
        notes = f" ({', '.join(sorted(self.traits))})" if self.traits else ""
        return f"{self.format or 'of no known format'} {self.dtype}{notes}"


def describe(array: DaskArray) -> Spec:
    """Return the spec of a dask array, from its chunk sizes and its meta; nothing is computed.

    Parameters
    ----------
    array : dask.array.Array

    Returns
    -------
    Spec
        Lengths that are not known before the array is computed are given as zero, and the trait
        ``unknown_shape`` says so. An array larger than memory counts with all its bytes.
    """
    facts = inspect_chunk(array._meta)
    traits, shape = facts.traits, array.shape
    if any(isnan(length) for length in shape):
        shape = tuple(0 if isnan(length) else int(length) for length in shape)
        traits |= {"unknown_shape"}
    return Spec(
        "dask" if facts.format in ("numpy", "") else f"dask.{facts.format}",
        facts.dtype,
        f"cuda:{array._meta.device.id}" if facts.format == "cupy" else "cpu",
        shape,
        traits,
        prod(shape) * itemsize(facts.dtype),
        index_dtype=INDEX_DTYPES.get(facts.format),
    )


def inspect_chunk(chunk: Chunk) -> Facts:
    """Return the facts about a chunk or a meta."""
    type_name = (type(chunk).__module__.partition(".")[0], type(chunk).__qualname__)
    format_ = _FORMATS.get(type_name) or ("numpy" if _is_scalar(chunk) else "")
    traits = {
        "foreign_chunks": not format_,
        "masked": type_name[1] == "MaskedArray",
        "matrix": type_name[1].endswith("_matrix"),
    }
    if format_ == "torch":
        traits["grad"] = chunk.requires_grad
        if str(chunk.layout) != "torch.strided" or chunk.device.type != "cpu":
            format_, traits["foreign_chunks"] = "", True
    elif format_ == "sparse.coo":
        traits["fill_value"] = bool(chunk.fill_value != 0)
    present = frozenset(trait for trait, holds in traits.items() if holds)
    return Facts(format_, _dtype_name(getattr(chunk, "dtype", None)), present)


def _is_scalar(chunk: Chunk) -> bool:
    """Tell whether a chunk is a NumPy scalar, which a reduction to no axes leaves."""
    import numpy as np

    return isinstance(chunk, np.generic)


def _dtype_name(dtype: Any) -> str:
    return dtype_name(dtype) if hasattr(dtype, "num") else str(dtype).removeprefix("torch.")
