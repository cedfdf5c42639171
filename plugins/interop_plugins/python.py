"""Python itself: numbers, and nested lists and tuples of them."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from interop.errors import BadRequestError, UnknownValueError
from interop.plugin import (
    DTYPES,
    MEMORY_TRAITS,
    Conversion,
    Cost,
    Declaration,
    Format,
    Spec,
    hookimpl,
)

if TYPE_CHECKING:
    import numpy as np

__all__ = ["interop_declarations"]

_NONE: frozenset[str] = frozenset()

#: What becomes a Python bool, int, float or complex that is equal to it. Python has no number of
#: the precision of longdouble, so a dtype has to be asked for.
_DTYPES = frozenset(DTYPES) - {"longdouble", "clongdouble"}

_NUMBERS: dict[type, tuple[str, int]] = {
    bool: ("bool", 1),
    float: ("float64", 8),
    complex: ("complex128", 16),
}

#: Deeper than any array; a list that holds itself ends here.
_MAX_AXES = 64


def describe(value: Any) -> Spec:
    """Return the spec of the array that NumPy would make of a number or of nested lists.

    Python's lists do not know what they hold, so they are read. That is the one place where a
    value is described by its elements.

    Raises
    ------
    UnknownValueError
        The leaves are not numbers, or are arrays.
    BadRequestError
        The rows differ in length.
    """
    known = _NUMBERS.get(type(value))
    if known is not None:
        return Spec("python", known[0], "cpu", (), _NONE, known[1])
    if type(value) is int and -(2**63) <= value < 2**63:
        return Spec("python", "int64", "cpu", (), _NONE, 8)
    array = _array(value)
    return Spec("python", str(array.dtype.name), "cpu", array.shape, _NONE, array.nbytes)


def _array(value: Any) -> np.ndarray[Any, Any]:
    import numpy as np

    leaf = _first_leaf(value)
    if leaf is not None and not isinstance(leaf, (numbers.Number, str, bytes, np.generic)):
        kind = type(leaf)
        msg = (
            f"a {type(value).__name__} of {kind.__module__}.{kind.__qualname__} is not one array; "
            "convert each element, or stack them with their framework first."
        )
        raise UnknownValueError(msg)
    try:
        return np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:  # an element's own refusal among them
        msg = (
            f"NumPy can make no array of this {type(value).__name__} ({str(error).rstrip('.')}); "
            "pad its rows to one length, or convert each by itself."
        )
        raise BadRequestError(msg) from error


def _first_leaf(value: Any) -> Any:
    """Return the first element that is not a list or tuple, or None if there is none."""
    for _ in range(_MAX_AXES + 1):
        if not isinstance(value, (list, tuple)):
            return value
        if not value:
            return None
        value = value[0]
    msg = f"this {type(value).__name__} is nested more than {_MAX_AXES} deep; flatten it first."
    raise BadRequestError(msg)


def to_numpy(value: Any) -> np.ndarray[Any, Any]:
    """Return a number or nested lists as an array of the dtype that NumPy gives them."""
    import numpy as np

    return np.array(value)


def from_numpy(value: Any) -> Any:
    """Return a 0-d array as a number, others as nested lists."""
    return value.tolist()


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> Iterable[Format]:
    """Return the one format of Python's own numbers and lists."""
    return [
        Format(
            "python",
            types=tuple(
                f"builtins:{name}" for name in ("bool", "int", "float", "complex", "list", "tuple")
            ),
            describe=describe,
            dtypes=_DTYPES,
            # One array may come out as a number, as a list, or as a list of lists.
            target_types=(),
            not_recoverable=frozenset({"dtype", "shape"}),
        )
    ]


def _conversions() -> Iterable[Conversion]:
    """Return the ways to and from NumPy."""
    effects = frozenset({"copy"})
    # Every element is an object of its own in Python, hence the speed.
    return [
        Conversion("python", "numpy", to_numpy, effects=effects, cost=Cost(1e-6, 2e8)),
        Conversion(
            "numpy",
            "python",
            from_numpy,
            dtypes=_DTYPES,
            # ml_dtypes reads the elements of a byte-swapped array wrong, one by one.
            takes=MEMORY_TRAITS - {"pinned", "byteswapped"},
            effects=effects,
            cost=Cost(5e-7, 1e9),
        ),
    ]
