"""BCOO and BCSR arrays of `jax.experimental.sparse`: what they are, apart and put together.

Both may hold more elements than count: BCOO has coordinates outside of the shape there, BCSR more
elements than its pointers reach. They say of themselves whether they are sorted and without
duplicates, and say no unless told; so on the host their indices are looked through, once for each
array, since they never change.
"""

from __future__ import annotations

from math import prod
from typing import Any
from weakref import ref

from interop.plugin import Parts, Spec

from . import _jax_dense as dense

__all__ = [
    "canonicalize",
    "describe_bcoo",
    "describe_bcsr",
    "from_dense",
    "memory",
    "pack_bcoo",
    "pack_bcsr",
    "to_bcoo",
    "to_bcsr",
    "to_dense",
    "unpack_bcoo",
    "unpack_bcsr",
    "without_padding",
]

_UNCOALESCED, _PADDED = frozenset({"uncoalesced"}), frozenset({"padded"})
_INVALID = frozenset({"invalid_indices"})

#: Of each array of indices looked through: itself, and the traits that were found.
_looked_through: dict[int, tuple[ref[Any], frozenset[str]]] = {}


def describe_bcoo(value: Any) -> Spec:
    """Return the spec of a BCOO array."""
    return _spec("jax.bcoo", value, (value.indices,))


def describe_bcsr(value: Any) -> Spec:
    """Return the spec of a BCSR array."""
    return _spec("jax.bcsr", value, (value.indices, value.indptr))


def _spec(name: str, value: Any, indices: tuple[Any, ...]) -> Spec:
    data = dense.describe(value.data)
    traits = data.traits - {"noncontiguous"}
    for each in indices:
        traits |= dense.describe(each).traits - {"noncontiguous"}
    shaped = {"batched": bool(value.n_batch), "hybrid": bool(value.n_dense)}
    traits |= {trait for trait, holds in shaped.items() if holds}
    if not traits - {"immutable"}:
        traits |= _index_traits(value, data.device)
    return Spec(
        name,
        data.dtype,
        data.device,
        tuple(value.shape),
        traits,
        data.nbytes + sum(prod(each.shape) * each.dtype.itemsize for each in indices),
        prod(value.data.shape),
        str(value.indices.dtype),
    )


def _index_traits(value: Any, device: str) -> frozenset[str]:
    """Return whether an array of plain shape may be padded, or may be out of order."""
    if device != "cpu":  # not worth a look: what may be is reported as if it were
        sure = value.indices_sorted and value.unique_indices
        return _PADDED if sure else _PADDED | _UNCOALESCED
    key = id(value.indices)
    known = _looked_through.get(key)
    if known is not None and known[0]() is value.indices:
        return known[1]
    look = _look_at_rows if hasattr(value, "indptr") else _look_at_coordinates
    found = look(value)
    _looked_through[key] = (
        ref(value.indices, lambda _: _looked_through.pop(key, None)),
        found,
    )
    return found


def _look_at_coordinates(value: Any) -> frozenset[str]:
    import numpy as np

    coords = np.asarray(value.indices)
    if coords.size and coords.min() < 0:
        return _INVALID
    inside = _inside(value)
    padded = not inside.all()
    coords = coords[inside] if padded else coords
    rising = np.zeros(max(len(coords) - 1, 0), bool)
    for axis in reversed(range(len(value.shape))):
        one, other = coords[:-1, axis], coords[1:, axis]
        rising = (other > one) | ((other == one) & rising)
    return _found(padded=padded, canonical=bool(rising.all()))


def _inside(value: Any) -> Any:
    """Return for each element whether its coordinates are inside of the shape."""
    import numpy as np

    return (np.asarray(value.indices) < np.array(value.shape, np.int64)).all(axis=1)


def _look_at_rows(value: Any) -> frozenset[str]:
    import numpy as np

    pointers = np.asarray(value.indptr)
    stored = int(pointers[-1])
    indices = np.asarray(value.indices)[:stored]
    valid = not pointers[0] and (pointers[1:] >= pointers[:-1]).all() and stored == len(indices)
    if not valid or (stored and not 0 <= indices.min() <= indices.max() < value.shape[1]):
        return _INVALID
    rising = indices[1:] > indices[:-1]
    starts = pointers[1:-1]
    rising[starts[(starts > 0) & (starts < stored)] - 1] = True
    return _found(padded=stored < len(value.indices), canonical=bool(rising.all()))


def _found(*, padded: bool, canonical: bool) -> frozenset[str]:
    traits = _PADDED if padded else frozenset[str]()
    return traits if canonical else traits | _UNCOALESCED


def _facts(value: Any) -> dict[str, Any]:
    sure = value.indices_sorted and value.unique_indices
    known = _looked_through.get(id(value.indices))
    looked = known is not None and known[0]() is value.indices and not known[1]
    return {"canonical": bool(sure or looked)}


def unpack_bcoo(value: Any) -> Parts:
    """Return the values of a BCOO array, and copies of its columns of coordinates."""
    rows = {f"indices_{axis}": _column(value.indices, axis) for axis in range(len(value.shape))}
    return Parts(tuple(value.shape), {"values": value.data, **rows}, _facts(value))


def _column(indices: Any, axis: int) -> Any:
    """Return one column of coordinates, of which JAX has no views."""
    import numpy as np

    if not _by_numpy(indices):
        return indices[:, axis]
    return dense.from_numpy(np.asarray(indices)[:, axis])


def _by_numpy(array: Any) -> bool:
    """Tell whether to leave the work to NumPy: JAX compiles every step for every shape."""
    known = dense.describe(array)
    return known.device == "cpu" and known.dtype not in dense.unsupported_now()


def unpack_bcsr(value: Any) -> Parts:
    """Return the arrays of a BCSR array."""
    arrays = {"values": value.data, "indices": value.indices, "pointers": value.indptr}
    return Parts(tuple(value.shape), arrays, _facts(value))


def pack_bcoo(parts: Parts) -> Any:
    """Return a BCOO array over given values; the coordinates are copied into one array."""
    from jax.experimental.sparse import BCOO

    rows = [parts.arrays[f"indices_{axis}"] for axis in range(len(parts.shape))]
    given = (parts.arrays["values"], _stacked(rows))
    return BCOO(given, shape=parts.shape, **_flags(parts))


def _stacked(rows: list[Any]) -> Any:
    import jax.numpy as jnp
    import numpy as np

    if not all(_by_numpy(row) for row in rows):
        return jnp.stack(rows, axis=1)
    return dense.from_numpy(np.stack([np.asarray(row) for row in rows], axis=1))


def pack_bcsr(parts: Parts) -> Any:
    """Return a BCSR array over given arrays."""
    from jax.experimental.sparse import BCSR

    given = tuple(parts.arrays[role] for role in ("values", "indices", "pointers"))
    return BCSR(given, shape=parts.shape, **_flags(parts))


def _flags(parts: Parts) -> dict[str, bool]:
    canonical = bool(parts.facts.get("canonical"))
    return {"indices_sorted": canonical, "unique_indices": canonical}


def memory(value: Any) -> tuple[tuple[int, int], ...]:
    """Return where the component arrays lie."""
    arrays = [value.data, value.indices, getattr(value, "indptr", None)]
    return tuple(each for array in arrays if array is not None for each in dense.memory(array))


def without_padding(value: Any) -> Any:
    """Return a copy without the elements that do not count."""
    import numpy as np

    if hasattr(value, "indptr"):
        pointers: tuple[Any, ...] = (dense.copy(value.indptr),)
        chosen: Any = slice(int(value.indptr[-1]))
    else:
        pointers = ()
        chosen = np.flatnonzero(_inside(value))
    given = (_chosen(value.data, chosen), _chosen(value.indices, chosen), *pointers)
    flags = {"indices_sorted": value.indices_sorted, "unique_indices": value.unique_indices}
    return type(value)(given, shape=value.shape, **flags)


def _chosen(array: Any, chosen: Any) -> Any:
    import numpy as np

    return dense.from_numpy(np.asarray(array)[chosen]) if _by_numpy(array) else array[chosen]


def canonicalize(value: Any) -> Any:
    """Return a BCOO array that is sorted and holds every coordinate once; duplicates are summed."""
    made = _summable(value).sum_duplicates()
    given = (_as_it_was(made.data, value), made.indices)
    return type(value)(given, shape=value.shape, indices_sorted=True, unique_indices=True)


def _summable(value: Any) -> Any:
    """Return a sparse array that JAX can add up, which it cannot if it is bool."""
    return value if value.dtype != bool else _with_data(value, value.data.astype("int32"))


def _with_data(value: Any, data: Any) -> Any:
    """Return a sparse array like another, with other data in its places."""
    indices = (value.indices, value.indptr) if hasattr(value, "indptr") else (value.indices,)
    flags = {"indices_sorted": value.indices_sorted, "unique_indices": value.unique_indices}
    return type(value)((data, *indices), shape=value.shape, **flags)


def _as_it_was(array: Any, value: Any) -> Any:
    """Return an array in the dtype of a value that was made summable."""
    return array if array.dtype == value.dtype else array.astype(value.dtype)


def to_dense(value: Any) -> Any:
    """Return the dense array; duplicates are summed, and what is outside of the shape left out."""
    import jax.numpy as jnp
    from jax import lax

    if not (value.unique_indices and jnp.issubdtype(value.dtype, jnp.inexact)):
        return _as_it_was(_summable(value).todense(), value)
    if jnp.issubdtype(value.dtype, jnp.complexfloating):
        real, imag = (
            to_dense(_with_data(value, part(value.data))) for part in (jnp.real, jnp.imag)
        )
        return lax.complex(real, imag)
    # XLA takes numbers below the normal ones for zeros when it adds. Bits it leaves as they are.
    bits = lax.bitcast_convert_type(value.data, f"uint{8 * value.dtype.itemsize}")
    return lax.bitcast_convert_type(_with_data(value, bits).todense(), value.dtype)


def from_dense(value: Any) -> Any:
    """Return the elements of an array that are not zero, as BCOO."""
    import jax.numpy as jnp
    import numpy as np
    from jax.experimental.sparse import BCOO

    if _by_numpy(value):
        array = np.asarray(value)
        places: tuple[Any, ...] = np.nonzero(array != 0)
        coords = np.stack(places, axis=1).astype(np.int32)
        given = (dense.from_numpy(array[places]), dense.from_numpy(coords))
    else:
        places = jnp.nonzero(value)
        given = (value[places], jnp.stack(places, axis=1).astype(jnp.int32))
    return BCOO(given, shape=value.shape, indices_sorted=True, unique_indices=True)


def to_bcsr(value: Any) -> Any:
    """Return a canonical BCOO array of two axes as BCSR."""
    from jax.experimental.sparse import BCOO, BCSR

    told: dict[str, Any] = {"shape": value.shape, "indices_sorted": True, "unique_indices": True}
    # Unless it is told, JAX would sort a copy.
    made = BCSR.from_bcoo(BCOO((value.data, value.indices), **told))
    return BCSR((made.data, made.indices, made.indptr), **told)


def to_bcoo(value: Any) -> Any:
    """Return a BCSR array as BCOO; whether it is canonical, its spec knows and it does not."""
    return value.to_bcoo()
