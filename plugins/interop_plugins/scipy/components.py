"""SciPy's coordinate and compressed arrays by their component arrays."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from interop.errors import HandOffError
from interop.plugin import Parts

from .checks import checked
from .describe import INDEX_CODES

if TYPE_CHECKING:
    from typing import Any

    from .describe import Array, Sparse

#: NumPy's codes of bool, the integers from int8 to int64, uint8, and the floats and complexes.
_PLAIN_CODES = "?bhilqBfdFD"

#: The length from which on indices need the wider of their dtypes.
_SHORT = 2**31

_CANONICAL = {"canonical": True}

#: The attributes of a compressed array beside its arrays and its shape, in known versions.
_FLAGS = frozenset({"maxprint", "_has_canonical_format", "_has_sorted_indices"})


def unpack_compressed(value: Sparse) -> Parts:
    """Return the arrays of a csr, csc or bsr array, which share its memory."""
    stored = int(value.indptr[-1])
    arrays = {
        "values": value.data[:stored],  # SciPy allows more room than there are elements
        "indices": value.indices[:stored],
        "pointers": value.indptr,
    }
    return Parts(value.shape, arrays, {"canonical": bool(value.has_canonical_format)})


def fast_unpack_compressed(value: Sparse) -> Any:
    """Return the arrays of a plain csr, csc or bsr array, or `NotImplemented`."""
    data, indices, pointers = value.data, value.indices, value.indptr
    if (
        not (data.flags.carray and indices.flags.carray and pointers.flags.carray)
        or data.dtype.char not in _PLAIN_CODES
        or indices.dtype is not pointers.dtype  # two equal objects take the long way
        or indices.dtype.char not in INDEX_CODES
        or not len(data) == len(indices) == pointers.item(-1)
        or pointers.item(0)
        or len(shape := value.shape) != 2
        or not value.has_canonical_format
    ):
        return NotImplemented
    return Parts(shape, {"values": data, "indices": indices, "pointers": pointers}, _CANONICAL)


def unpack_coo(value: Sparse) -> Parts:
    """Return the arrays of a coo array, which share its memory.

    All other libraries copy the coordinates, so that one more look at them takes little time.
    """
    checked(value)
    roles = {f"indices_{axis}": indices for axis, indices in enumerate(value.coords)}
    return Parts(
        value.shape,
        {"values": value.data, **roles},
        {"canonical": bool(value.has_canonical_format)},
    )


def pack_compressed(layout: str, parts: Parts) -> Sparse:
    """Return a csr, csc or bsr array over given arrays."""
    arrays = parts.arrays
    values, canonical = arrays["values"], bool(parts.facts.get("canonical"))
    components = (values, arrays["indices"], arrays["pointers"])
    if layout == "bsr":
        value = _constructed(layout, components, parts.shape, blocksize=values.shape[1:])
    elif len(parts.shape) < 2:  # which only SciPy has
        value = _constructed(layout, components, parts.shape)
    elif (state := _state(layout, canonical)) and _is_sound(layout, parts.shape, *components):
        value = state.cls.__new__(state.cls)
        arguments = (*components, parts.shape, *state.values)
        value.__dict__ = dict(zip(state.names, arguments, strict=True))
        return value
    else:
        value = _constructed(layout, components, parts.shape)
    return flagged(value, canonical)


def _constructed(
    layout: str, components: tuple[Array, ...], shape: tuple[int, ...], **block: Any
) -> Sparse:
    """Return what SciPy's constructor makes of arrays, or refuse those that do not fit together."""
    try:
        return array_type(layout)(components, shape=shape, **block)
    except ValueError as error:
        msg = f"SciPy makes no {layout} array of these arrays ({error}); correct their indices."
        raise HandOffError(msg) from None


def _is_sound(
    layout: str, shape: tuple[int, ...], values: Array, indices: Array, pointers: Array
) -> bool:
    """Tell whether SciPy's constructor would take csr or csc arrays as they are."""
    rows, columns = shape if layout == "csr" else shape[::-1]
    dtype = indices.dtype
    return bool(
        values.ndim == indices.ndim == pointers.ndim == 1
        and dtype is pointers.dtype
        and dtype.char in INDEX_CODES
        and values.dtype.char in _PLAIN_CODES
        and dtype.isnative
        and values.dtype.isnative
        and len(pointers) == rows + 1
        and len(values) == len(indices) == pointers.item(-1)
        and pointers.item(0) == 0
        and max(rows, columns) < _SHORT
    )


class _State(NamedTuple):
    """A class, the names of what a pickle of an instance holds, and the values that never vary."""

    cls: Any
    names: tuple[str, ...]
    values: tuple[object, ...]


@cache
def _state(layout: str, canonical: bool) -> _State | None:
    """Return the state of a layout's arrays.

    SciPy's constructor takes ten times as long as the rest of a transfer, only to find out what is
    known here. An array can be restored from its state instead, as from a pickle. None stands for
    a state that differs from that of the versions that were looked at.
    """
    import numpy as np

    indices = np.zeros(1, "int32"), np.array([0, 1], "int32")
    template = flagged(array_type(layout)((np.ones(1), *indices), shape=(1, 1)), canonical)
    state = dict(vars(template))
    arrays = [state.pop(name, None) for name in ("data", "indices", "indptr", "_shape")]
    if any(array is None for array in arrays) or not _FLAGS.issuperset(state):
        return None
    names = ("data", "indices", "indptr", "_shape", *state)
    return _State(type(template), names, tuple(state.values()))


def pack_coo(parts: Parts) -> Sparse:
    """Return a coo array over given arrays."""
    coords = tuple(parts.arrays[f"indices_{axis}"] for axis in range(len(parts.shape)))
    return coo_array(
        parts.arrays["values"], coords, parts.shape, bool(parts.facts.get("canonical"))
    )


def coo_array(values: Any, coords: Any, shape: tuple[int, ...], canonical: bool) -> Sparse:
    """Return a coo array over coordinates, which SciPy would copy as int64 if there are three."""
    value = array_type("coo")((values, coords), shape=shape)
    if len(shape) > 2:
        value.coords = coords
    return flagged(value, canonical)


@cache
def array_type(layout: str) -> Any:
    """Return the class of a layout's arrays."""
    import scipy.sparse

    return getattr(scipy.sparse, f"{layout}_array")


def flagged(value: Sparse, canonical: bool) -> Sparse:
    """Tell SciPy that an array is canonical: it would read the indices to find out."""
    if canonical:
        value.has_canonical_format = True
    return value
