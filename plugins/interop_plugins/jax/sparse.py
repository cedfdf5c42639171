"""The sparse arrays of `jax.experimental`, BCOO and BCSR: described, unpacked, packed, converted.

Both may store more elements than count. In a BCOO array the rest have coordinates outside the
shape; in a BCSR array they come after the last that the pointers reach. Flags say whether an array
is sorted and without duplicates, and are off unless they were set. So on the host the indices
are inspected, once for each array, since they never change. On other devices that would cost too
much, and an array that no step of these has made counts as padded.

JAX computes what has no elements on its default device, wherever the argument lies, so the steps
name the device.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import prod
from typing import TYPE_CHECKING, Any

from interop.kit import EMPTY, inspect_once, rising
from interop.plugin import Declined, Parts, Spec

from . import dense
from .describe import GAPS, IMMUTABLE, describe, unsupported_now
from .describe import memory as dense_memory

if TYPE_CHECKING:
    import numpy as np
    from jax import Array
    from jax.experimental.sparse import BCOO, BCSR

    NumpyArray = np.ndarray[Any, Any]

UNCOALESCED, PADDED = frozenset({"uncoalesced"}), frozenset({"padded"})
INVALID = frozenset({"invalid_indices"})

#: Longer axes than this need indices of 64 bits.
_MOST = 2**31

#: The traits that inspected arrays of indices give their owners.
_inspected: dict[int, Any] = {}


# ---------------------------------------------------------------------- described


def describe_bcoo(value: BCOO) -> Spec:
    """Return the spec of a BCOO array."""
    return _spec("jax.bcoo", value, (value.indices,))


def describe_bcsr(value: BCSR) -> Spec:
    """Return the spec of a BCSR array."""
    return _spec("jax.bcsr", value, (value.indices, value.indptr))


def _spec(name: str, value: BCOO | BCSR, indices: tuple[Array, ...]) -> Spec:
    data = describe(value.data)
    traits = data.traits.union(*(describe(array).traits for array in indices)) - GAPS
    if value.n_batch:
        traits |= {"batched"}
    if value.n_dense:
        traits |= {"hybrid"}
    if not traits - IMMUTABLE:
        traits |= _index_traits(value, data.device)
    return Spec(
        name,
        data.dtype,
        data.device,
        tuple(value.shape),
        traits,
        data.nbytes + sum(prod(array.shape) * array.dtype.itemsize for array in indices),
        prod(value.data.shape),
        str(value.indices.dtype),
    )


def _index_traits(value: BCOO | BCSR, device: str) -> frozenset[str]:
    """Return whether an array of plain shape may be padded, or may be out of order."""
    if device.startswith("cpu"):
        inspect: Any = _inspect_rows if hasattr(value, "indptr") else _inspect_coordinates
        return _noted(value, lambda: inspect(value))
    padded = _noted(value, lambda: PADDED)
    return padded if _is_flagged(value) else padded | UNCOALESCED


def _noted(value: BCOO | BCSR, inspect: Callable[[], frozenset[str]]) -> frozenset[str]:
    """Return what is known of the indices of an array, which is found out once."""
    key = tuple(value.shape), id(getattr(value, "indptr", None))
    return inspect_once(_inspected, value.indices, key, inspect)


def _without_padding_on_device(value: Any) -> Any:
    """Return an array of which the step that made it knows that all of its elements count."""
    if not describe(value.data).device.startswith("cpu"):
        _noted(value, lambda: EMPTY)
    return value


def _is_flagged(value: BCOO | BCSR) -> bool:
    """Tell whether an array says of itself that it is sorted and without duplicates."""
    return bool(value.indices_sorted and value.unique_indices)


def _inspect_coordinates(value: BCOO) -> frozenset[str]:
    import numpy as np

    coords = np.asarray(value.indices)
    if coords.size and coords.min() < 0:
        return INVALID
    inside = _inside_shape(value)
    padded = not inside.all()
    coords = coords[inside] if padded else coords
    in_order = rising(coords.T).all() if value.shape else len(coords) < 2
    return _layout_traits(padded=padded, canonical=bool(in_order))


def _inside_shape(value: BCOO) -> NumpyArray:
    """Return for each element whether its coordinates are inside the shape."""
    import numpy as np

    inside: Any = np.asarray(value.indices) < np.array(value.shape, np.int64)
    rows: NumpyArray = inside.all(axis=1)
    return rows


def _inspect_rows(value: BCSR) -> frozenset[str]:
    import numpy as np

    pointers = np.asarray(value.indptr)
    stored = int(pointers[-1])
    indices = np.asarray(value.indices)[:stored]
    valid = not pointers[0] and (pointers[1:] >= pointers[:-1]).all() and stored == len(indices)
    if not valid or (stored and not 0 <= indices.min() <= indices.max() < value.shape[1]):
        return INVALID
    is_after = indices[1:] > indices[:-1]
    starts = pointers[1:-1]
    is_after[starts[(starts > 0) & (starts < stored)] - 1] = True  # a new row may start anywhere
    return _layout_traits(padded=stored < len(value.indices), canonical=bool(is_after.all()))


def _layout_traits(*, padded: bool, canonical: bool) -> frozenset[str]:
    return (PADDED if padded else EMPTY) | (EMPTY if canonical else UNCOALESCED)


def memory(value: BCOO | BCSR) -> tuple[tuple[int, int], ...]:
    """Return where the component arrays lie."""
    arrays = (value.data, value.indices, getattr(value, "indptr", None))
    return tuple(extent for array in arrays if array is not None for extent in dense_memory(array))


def _where_it_lies(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a step whose result is on the device of its argument, and whose elements all count."""

    @wraps(function)
    def step(value: Any) -> Any:
        import jax

        source: Array = value.data if hasattr(value, "indices") else value
        devices = source.devices()
        if len(devices) > 1:
            return function(value)
        (device,) = devices
        with jax.default_device(device):
            result = function(value)
            # JAX would move what is not committed when it next computes with it. Before 0.5 nothing
            # tells.
            if getattr(source, "committed", True):
                result = jax.tree.map(lambda a: jax.device_put(a, device), result)
        return _without_padding_on_device(result) if hasattr(result, "indices") else result

    return step


# ---------------------------------------------------------------------- components


def unpack_bcoo(value: BCOO) -> Parts:
    """Return the values of a BCOO array, and copies of its columns of coordinates."""
    columns = {f"indices_{axis}": _column(value.indices, axis) for axis in range(len(value.shape))}
    return Parts(tuple(value.shape), {"values": value.data, **columns}, _facts(value))


def unpack_bcsr(value: BCSR) -> Parts:
    """Return the arrays of a BCSR array."""
    arrays = {"values": value.data, "indices": value.indices, "pointers": value.indptr}
    return Parts(tuple(value.shape), arrays, _facts(value))


def _facts(value: BCOO | BCSR) -> dict[str, bool]:
    return {
        "canonical": _is_flagged(value)
        or _index_traits(value, describe(value.data).device) == EMPTY
    }


def _column(indices: Array, axis: int) -> Array:
    """Return a copy of one column of coordinates; JAX has no views."""
    import numpy as np

    if not _is_for_numpy(indices):
        return indices[:, axis]
    return dense.from_numpy(np.asarray(indices)[:, axis])


def _is_for_numpy(array: Array) -> bool:
    """Tell whether NumPy does the work on an array: JAX compiles every step for every shape."""
    spec = describe(array)
    return spec.device == "cpu" and spec.dtype not in unsupported_now()


def pack_bcoo(parts: Parts) -> BCOO:
    """Return a BCOO array over given values; the coordinates are copied into one array."""
    from jax.experimental.sparse import BCOO

    columns = [parts.arrays[f"indices_{axis}"] for axis in range(len(parts.shape))]
    buffers = (parts.arrays["values"], _stack(columns))
    value = BCOO(buffers, shape=parts.shape)
    _note_order(value, parts)
    return value


def _stack(columns: list[Array]) -> Array:
    import jax.numpy as jnp
    import numpy as np

    if not all(_is_for_numpy(column) for column in columns):
        return jnp.stack(columns, axis=1)
    return dense.from_numpy(np.stack([np.asarray(column) for column in columns], axis=1))


def pack_bcsr(parts: Parts) -> BCSR:
    """Return a BCSR array over given arrays."""
    from jax.experimental.sparse import BCSR

    arrays = parts.arrays
    buffers = (arrays["values"], arrays["indices"], arrays["pointers"])
    value = BCSR(buffers, shape=parts.shape)
    _note_order(value, parts)
    return value


def _note_order(value: BCOO | BCSR, parts: Parts) -> None:
    """Set the flags of an array of given parts, if it is in order.

    What another library has noted of its indices may be out of date: where JAX believes that no
    place is given twice, it loses one of the numbers.
    """
    canonical = bool(parts.facts.get("canonical"))
    if canonical and _is_for_numpy(value.data):
        canonical = _index_traits(value, "cpu").isdisjoint(INVALID | UNCOALESCED)
    value.indices_sorted = value.unique_indices = canonical
    _without_padding_on_device(value)


# ---------------------------------------------------------------------- conversions


@_where_it_lies
def without_padding(value: Any) -> Any:
    """Return a copy without the elements that do not count."""
    import numpy as np

    pointers: tuple[Array, ...] = ()
    if hasattr(value, "indptr"):
        pointers = (dense.copy(value.indptr),)
        counted: slice | NumpyArray = slice(int(value.indptr[-1]))
    else:
        counted = np.flatnonzero(_inside_shape(value))
    buffers = (_select(value.data, counted), _select(value.indices, counted), *pointers)
    return _like(value, buffers)


def _select(array: Array, selection: slice | NumpyArray) -> Array:
    import numpy as np

    if _is_for_numpy(array):
        return dense.from_numpy(np.asarray(array)[selection])
    selected = array[selection]
    # Of all elements JAX gives the array itself, and the step promises a copy.
    return dense.copy(array) if selected.shape == array.shape else selected


def _like(value: Any, buffers: tuple[Array, ...]) -> Any:
    """Return a sparse array of the type, shape and flags of another."""
    flags = {"indices_sorted": value.indices_sorted, "unique_indices": value.unique_indices}
    return type(value)(buffers, shape=value.shape, **flags)


@_where_it_lies
def canonicalize(value: BCOO) -> BCOO:
    """Return a BCOO array that is sorted and holds every coordinate once; duplicates are summed."""
    summed = _summable(value).sum_duplicates()
    buffers = (_with_dtype_of(summed.data, value), summed.indices)
    return type(value)(buffers, shape=value.shape, indices_sorted=True, unique_indices=True)


def _summable(value: Any) -> Any:
    """Return a sparse array that JAX can add up, which it cannot if it is bool."""
    return value if value.dtype != bool else _with_data(value, value.data.astype("int32"))


def _with_data(value: Any, data: Array) -> Any:
    """Return a sparse array with the indices of another, and other values."""
    indices = (value.indices, value.indptr) if hasattr(value, "indptr") else (value.indices,)
    return _like(value, (data, *indices))


def _with_dtype_of(array: Array, value: BCOO | BCSR) -> Array:
    """Return an array in the dtype of a value that was made summable."""
    return array if array.dtype == value.dtype else array.astype(value.dtype)


@_where_it_lies
def to_dense(value: BCOO | BCSR) -> Array:
    """Return the dense array; duplicates are summed, and what is outside the shape is left out."""
    import jax.numpy as jnp
    from jax import lax

    if not (value.unique_indices and jnp.issubdtype(value.dtype, jnp.inexact)):
        return _with_dtype_of(_summable(value).todense(), value)
    if jnp.issubdtype(value.dtype, jnp.complexfloating):
        real, imag = (
            to_dense(_with_data(value, part(value.data))) for part in (jnp.real, jnp.imag)
        )
        return lax.complex(real, imag)
    # When XLA adds, it takes subnormal numbers for zeros. Integers of the same bits survive.
    bits = lax.bitcast_convert_type(value.data, f"uint{8 * value.dtype.itemsize}")
    return lax.bitcast_convert_type(_with_data(value, bits).todense(), value.dtype)


@_where_it_lies
def from_dense(value: Array) -> BCOO:
    """Return the elements of an array that are not zero, as BCOO with narrow indices."""
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental.sparse import BCOO

    if max(value.shape) >= _MOST:
        raise Declined(f"indices into {tuple(value.shape)} do not fit in 32 bits")
    if _is_for_numpy(value):
        array = np.asarray(value)
        with np.errstate(invalid="ignore"):  # which a signalling NaN is to ml_dtypes
            places = np.nonzero(array != 0)
        coords = np.stack(places, axis=1).astype(np.int32)
        buffers = (dense.from_numpy(array[places]), dense.from_numpy(coords))
    else:
        axes = jnp.nonzero(value)
        buffers = (value[axes], jnp.stack(axes, axis=1).astype(jnp.int32))
    return BCOO(buffers, shape=value.shape, indices_sorted=True, unique_indices=True)


@_where_it_lies
def to_bcsr(value: BCOO) -> BCSR:
    """Return a canonical BCOO array of two axes as BCSR."""
    from jax.experimental.sparse import BCOO, BCSR

    flags = {"indices_sorted": True, "unique_indices": True}
    # Without the flags JAX would sort a copy.
    rows = BCSR.from_bcoo(BCOO((value.data, value.indices), shape=value.shape, **flags))
    return BCSR((rows.data, rows.indices, rows.indptr), shape=value.shape, **flags)


@_where_it_lies
def to_bcoo(value: BCSR) -> BCOO:
    """Return a BCSR array as BCOO; if neither says that it is canonical, only its spec knows."""
    result = value.to_bcoo()
    result.indices_sorted, result.unique_indices = value.indices_sorted, value.unique_indices
    return result
