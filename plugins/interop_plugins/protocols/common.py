"""Helpers that the protocols share: names of dtypes, strides, and refusals."""

from __future__ import annotations

import sys
from functools import lru_cache
from math import gcd, prod
from operator import index
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from interop.errors import HandOffError
from interop.kit import COMPLEX, EMPTY, INTEGERS, REALS, overlaps, stride_traits

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    #: A value of no registered type that offers a protocol.
    Foreign: TypeAlias = Any
    #: An answer of a foreign value, of any type until it is checked.
    Unchecked: TypeAlias = Any

PLAIN = INTEGERS | REALS | COMPLEX | {"bool"}
NUMBERS = PLAIN | {"longdouble", "clongdouble"}
#: The marks of the byte order that is not the machine's.
FOREIGN_ORDER = ">!" if sys.byteorder == "little" else "<"

_KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}
_LONG_KINDS = {"f": "longdouble", "c": "clongdouble"}


def name_of_kind(kind: str, size: int) -> str:
    """Return the name of the dtype of a kind and a number of bytes; "" if there is none."""
    if kind == "b":
        return "bool" if size == 1 else ""
    if kind in _LONG_KINDS and size > 8 * (1 + (kind == "c")):
        return _long_name(kind, size)
    return f"{_KINDS[kind]}{8 * size}"


@lru_cache(maxsize=16)
def _long_name(kind: str, size: int) -> str:
    import numpy as np

    name = _LONG_KINDS[kind]
    return name if np.dtype(name).itemsize == size else ""


def integers(items: Unchecked) -> tuple[int, ...] | None:
    """Return a tuple of integers of any kind as Python's integers; None for anything else."""
    if not isinstance(items, tuple):
        return None
    try:
        return tuple(map(index, items))
    except TypeError:
        return None


class Layout(NamedTuple):
    """The memory that an array of some strides reaches.

    Attributes
    ----------
    low, high : int, in bytes
        Where it starts and ends, counted from the first element.
    traits : frozenset of str
        The unusual facts about it.
    divisor : int, in bytes
        The greatest common divisor of the strides of axes longer than 1; 0 if there are none.
    """

    low: int
    high: int
    traits: frozenset[str]
    divisor: int


@lru_cache(maxsize=256)
def layout_of(shape: tuple[int, ...], strides: tuple[int, ...] | None, size: int) -> Layout:
    """Return the layout of an array of elements of `size` bytes; no strides mean C order."""
    if strides is None or 0 in shape:
        return Layout(0, prod(shape) * size, EMPTY, 0)
    # An axis of length 1 is never stepped along, whatever its stride.
    axes = [(length, step) for length, step in zip(shape, strides, strict=True) if length > 1]
    low = sum((length - 1) * step for length, step in axes if step < 0)
    high = sum((length - 1) * step for length, step in axes if step > 0) + size
    expected, contiguous = size, True
    for length, step in reversed(axes):
        contiguous = contiguous and step == expected
        expected *= length
    present = {
        "noncontiguous": not contiguous,
        "fortran": not contiguous and "fortran" in stride_traits(shape, strides, size),
        "negative_strides": low < 0,
        "broadcast": not contiguous and overlaps(shape, strides, size),
    }
    traits = frozenset(trait for trait, holds in present.items() if holds)
    return Layout(low, high, traits, gcd(*(step for _, step in axes)))


def refuse(value: Foreign, problem: str) -> NoReturn:
    """Raise the refusal of a value that has a problem."""
    raise problem_of(value, problem)


def unread(value: Foreign, what: str, error: Exception) -> HandOffError:
    """Return the refusal of a value whose own code has raised an error."""
    move = "Open what it reads from"
    return problem_of(value, f"does not give its {what}: {type(error).__name__}: {error}", move)


def problem_of(value: Foreign, problem: str, move: str = "Correct what it says") -> HandOffError:
    """Return the refusal of a value that has a problem."""
    kind = type(value)
    move = f"{move}, or give interop a plain array instead."
    return HandOffError(f"{kind.__module__}.{kind.__qualname__} {problem}. {move}")
