"""Types of Arrow's: which are of numbers, and what stands between an array's rows and its numbers.

Three types are made of others: lists of one length, tensors of one shape, and truth values of a
byte each (`bool8`). Whatever else there is (timestamps, decimals, dictionaries, strings, lists that
differ in length …) is named as Arrow names it, which no conversion takes.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any, NamedTuple

__all__ = ["DTYPES", "NUMBERS", "Kind", "arrow_type", "dtype_name", "kind_of", "numbers"]

#: What has its bytes in common with NumPy.
NUMBERS = frozenset(
    {"float16", "float32", "float64"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
DTYPES = NUMBERS | {"bool"}


class Kind(NamedTuple):
    """What the type of an array says of its numbers.

    Parameters
    ----------
    dtype : str
        Their dtype; of what are no numbers, the type as Arrow writes it.
    width : int
        Bytes of one of them, as others lay them out.
    inner : tuple of int
        Lengths of the axes of one row, as they lie in memory.
    order : tuple of int
        The axes of a row, numbered from 0 as in `inner`, in the order in which they are meant.
    bits : bool
        Whether they are truth values of one bit each.
    """

    dtype: str
    width: int = 8
    inner: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    bits: bool = False

    @property
    def row(self) -> tuple[int, ...]:
        """Lengths of the axes of one row, in the order in which they are meant."""
        return tuple(self.inner[axis] for axis in self.order)

    @property
    def moved(self) -> bool:
        """Whether the axes are meant in another order than that in which they lie."""
        return self.order != tuple(range(len(self.order)))


@cache
def numbers() -> dict[int, tuple[str, int]]:
    """Return dtype and bytes of the types of numbers, by Arrow's number of the type."""
    import pyarrow as pa

    return {arrow_type(name).id: (name, arrow_type(name).bit_width // 8) for name in NUMBERS} | {
        pa.bool_().id: ("bool", 1)
    }


@cache
def arrow_type(dtype: str) -> Any:
    """Return the type of the numbers of a dtype."""
    import pyarrow as pa

    return getattr(pa, "bool_" if dtype == "bool" else dtype)()


def dtype_name(type_: Any) -> str:
    """Return the dtype that one of Arrow's types stands for, or how Arrow writes it."""
    known = numbers().get(type_.id)
    if known is not None:
        return known[0]
    return "bool" if getattr(type_, "extension_name", None) == "arrow.bool8" else str(type_)


def kind_of(type_: Any) -> Kind:
    """Return what a type says of the numbers in an array of that type."""
    known = numbers().get(type_.id)
    return _composed(type_) if known is None else Kind(*known, bits=known[0] == "bool")


@lru_cache(maxsize=256)
def _composed(type_: Any) -> Kind:
    import pyarrow as pa

    leaf, inner, order = type_, [], []
    if isinstance(type_, pa.FixedShapeTensorType):
        leaf, inner = type_.value_type, list(type_.shape)
        order = list(type_.permutation or range(len(inner)))
    else:
        while pa.types.is_fixed_size_list(leaf):
            inner.append(leaf.list_size)
            leaf = leaf.value_type
    name = dtype_name(leaf)
    if name not in DTYPES:
        return Kind(str(type_))
    known = numbers().get(leaf.id, (name, 1))
    order = order or list(range(len(inner)))
    return Kind(*known, tuple(inner), tuple(order), bits=leaf.equals(pa.bool_()))
