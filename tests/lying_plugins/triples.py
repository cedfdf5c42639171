"""A small class of sparse matrices for lying plugins, and an honest plugin for it."""

from __future__ import annotations

from typing import Any

from interop.kit import COPY, extents, memory_traits
from interop.plugin import (
    Components,
    Conversion,
    Cost,
    Declaration,
    Format,
    Parts,
    Result,
    Samples,
    Spec,
)

__all__ = ["Triples", "describe", "made", "pack", "triples_format", "twice", "unpack"]

#: Traits of the memory that a matrix may lie in.
LAYOUT = frozenset({"readonly", "noncontiguous", "negative_strides", "broadcast", "unaligned"})


class Triples:
    """A matrix by the rows, the columns and the numbers of its elements."""

    def __init__(self, shape: Any, rows: Any, columns: Any, numbers: Any) -> None:
        self.shape, self.rows, self.columns, self.numbers = shape, rows, columns, numbers


def describe(value: Triples) -> Spec:
    """Return what is known of a matrix. It does not know whether its elements are in order."""
    rows, columns, numbers = value.rows, value.columns, value.numbers
    return Spec(
        "triples",
        numbers.dtype.name,
        "cpu",
        value.shape,
        memory_traits(numbers, rows, columns) | {"uncoalesced"},
        nbytes=rows.nbytes + columns.nbytes + numbers.nbytes,
        nnz=numbers.size,
        index_dtype=rows.dtype.name,
    )


def memory(value: Triples) -> tuple[tuple[int, int], ...]:
    """Return where the arrays of a matrix lie."""
    return extents((value.numbers, value.rows, value.columns))


def unpack(value: Triples) -> Parts:
    """Return the arrays of a matrix, under the names that the layout has for them."""
    arrays = {"values": value.numbers, "indices_0": value.rows, "indices_1": value.columns}
    return Parts(value.shape, arrays, {"canonical": False})


def pack(parts: Parts) -> Triples:
    """Return a matrix over given arrays."""
    arrays = parts.arrays
    return Triples(parts.shape, arrays["indices_0"], arrays["indices_1"], arrays["values"])


def made(dense: Any) -> Triples:
    """Return a matrix as the library makes it."""
    import numpy as np

    rows, columns = map(np.ascontiguousarray, np.nonzero(dense))
    return Triples(dense.shape, rows, columns, dense[rows, columns])


def filled(value: Triples) -> Any:
    """Return the dense array."""
    import numpy as np

    dense = np.zeros(value.shape, value.numbers.dtype)
    np.add.at(dense, (value.rows, value.columns), value.numbers)
    return dense


def twice(value: Triples) -> Triples:
    """Return a matrix that holds its first element twice, the second time with a zero."""
    import numpy as np

    rows, columns, numbers = value.rows, value.columns, value.numbers
    more = np.append(numbers, np.zeros(1, numbers.dtype))
    return Triples(value.shape, np.append(rows, rows[:1]), np.append(columns, columns[:1]), more)


def triples_format(samples: Samples | None = None, **changes: Any) -> list[Declaration]:
    """Return the honest declaration, with some fields and some fields of its components changed."""
    fields = {name: changes.pop(name) for name in Format._fields if name in changes}
    components = Components(
        layout="coo",
        format="numpy",
        roles={"values": "dtype", "indices": "index_dtype"},
        unpack=unpack,
        pack=pack,
        unpack_keeps={"uncoalesced"},
    )
    honest = Format(
        "triples",
        types=("tests.lying_plugins.triples:Triples",),
        describe=describe,
        dtypes={"float32", "float64"},
        index_dtypes={"int32", "int64"},
        carries={"uncoalesced", *LAYOUT},
        ndims={2},
        memory=memory,
        components=components._replace(**changes),
        samples=Samples(make=made, variants={"uncoalesced": twice}) if samples is None else samples,
    )
    return [
        honest._replace(**fields),
        Conversion(
            *("triples", "numpy", filled),
            takes={"uncoalesced", *LAYOUT},
            drops={"uncoalesced"},
            cost=Cost(5e-5, 8e9),
        ),
        Conversion(
            *("numpy", "triples", made),
            adds={"uncoalesced"},
            result=Result(index_dtype="int64"),
            effects=COPY,
            cost=Cost(5e-5, 2e9),
        ),
    ]
