"""Arrow's types: which of them hold numbers, and how the numbers of a row lie in memory.

Three types are made of others: lists of one length, tensors of one shape, and truth values of a
byte each (`bool8`). All others (timestamps, decimals, dictionaries, strings, lists of several
lengths …) keep Arrow's name as their dtype, which no conversion takes.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from interop.kit import EMPTY, INTEGERS, REALS

if TYPE_CHECKING:
    import pyarrow as pa

#: The dtypes whose bytes are the same in Arrow and in NumPy.
NUMBERS = INTEGERS | REALS
DTYPES = NUMBERS | {"bool"}
#: The traits of decimals.
UNTYPED = frozenset({"not_numbers", "untyped"})


class ElementLayout(NamedTuple):
    """The facts about the numbers of an array that its type tells.

    Parameters
    ----------
    dtype : str
        Their dtype; where there are no numbers, Arrow's name of the type.
    width : int, in bytes
        Size of one of them in other frameworks.
    stored_shape : tuple of int
        Lengths of the axes of one row, as they lie in memory.
    order : tuple of int
        The axes of `stored_shape`, numbered from 0, in the order that the type gives them.
    bits : bool
        Whether they are truth values of one bit each.
    """

    dtype: str
    width: int = 8
    stored_shape: tuple[int, ...] = ()
    order: tuple[int, ...] = ()
    bits: bool = False

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Lengths of the axes of one row, in the order that the type gives them."""
        return tuple(self.stored_shape[axis] for axis in self.order)

    @property
    def permuted(self) -> bool:
        """Whether the axes of a row lie in memory in another order."""
        return self.order != tuple(range(len(self.order)))


@cache
def number_types() -> dict[int, tuple[str, int]]:
    """Return the dtype and the bytes of each type of numbers, by Arrow's id of the type."""
    import pyarrow as pa

    types = {name: arrow_type(name) for name in NUMBERS}
    sizes = {type_.id: (name, type_.bit_width // 8) for name, type_ in types.items()}
    return sizes | {pa.bool_().id: ("bool", 1)}


@cache
def arrow_type(dtype: str) -> pa.DataType:
    """Return the Arrow type of a dtype."""
    import pyarrow as pa

    return getattr(pa, "bool_" if dtype == "bool" else dtype)()


def dtype_name(type_: pa.DataType) -> str:
    """Return the dtype of an Arrow type, or Arrow's name of a type without one."""
    number_type = number_types().get(type_.id)
    if number_type is not None:
        return number_type[0]
    return "bool" if getattr(type_, "extension_name", None) == "arrow.bool8" else str(type_)


def traits_of(dtype: str) -> frozenset[str]:
    """Return the traits of elements of a type, by its name; decimals are numbers of no dtype."""
    if dtype in DTYPES:
        return EMPTY
    return UNTYPED if dtype.startswith("decimal") else frozenset({"not_numbers"})


def element_layout(type_: pa.DataType) -> ElementLayout:
    """Return what a type tells about the numbers in an array of that type."""
    number_type = number_types().get(type_.id)
    if number_type is None:
        return _nested_layout(type_) if _is_hashable(type_) else ElementLayout(str(type_))
    return ElementLayout(*number_type, bits=number_type[0] == "bool")


def _is_hashable(type_: pa.DataType) -> bool:
    """Tell whether a type can be looked up: most extension types written in Python cannot."""
    try:
        hash(type_)
    except TypeError:
        return False
    return True


@lru_cache(maxsize=256)
def _nested_layout(type_: pa.DataType) -> ElementLayout:
    import pyarrow as pa

    leaf, shape, order = type_, [], []
    if isinstance(type_, pa.FixedShapeTensorType):
        leaf, shape = type_.value_type, list(type_.shape)
        order = list(type_.permutation or range(len(shape)))
    else:
        while pa.types.is_fixed_size_list(leaf):
            shape.append(leaf.list_size)
            leaf = leaf.value_type
    name = dtype_name(leaf)
    if name not in DTYPES:
        return ElementLayout(str(type_))
    number_type = number_types().get(leaf.id, (name, 1))
    order = order or list(range(len(shape)))
    return ElementLayout(*number_type, tuple(shape), tuple(order), bits=leaf.equals(pa.bool_()))
