"""Python itself: numbers, and nested lists and tuples of them."""

from __future__ import annotations

import numbers
from collections.abc import Iterable
from typing import TYPE_CHECKING

from interop.errors import BadRequestError, UnknownValueError
from interop.plugin import (
    COPY,
    DTYPES,
    EMPTY,
    MEMORY_TRAITS,
    Conversion,
    Cost,
    Declaration,
    Format,
    Spec,
    hookimpl,
)

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]
    Number: TypeAlias = bool | int | float | complex
    #: A number, or lists and tuples of numbers to any depth.
    Nested: TypeAlias = Number | list["Nested"] | tuple["Nested", ...]

__all__ = ["interop_declarations"]

#: The dtypes whose numbers become an equal bool, int, float or complex. Python has no number of the
#: precision of longdouble, so that another dtype has to be asked for.
_DTYPES = frozenset(DTYPES) - {"longdouble", "clongdouble"}

_NUMBERS: dict[type, tuple[str, int]] = {
    bool: ("bool", 1),
    float: ("float64", 8),
    complex: ("complex128", 16),
}

#: More than any array has; a list that contains itself ends here.
_MAX_AXES = 64


def describe(value: Nested) -> Spec:
    """Return the spec of the array that NumPy would make of a number or of nested lists.

    Python's lists do not say what they hold, so they are read. Only here is a value described by
    its elements.

    Raises
    ------
    UnknownValueError
        The leaves are not numbers, or are arrays.
    BadRequestError
        The rows differ in length.
    """
    name_and_size = _NUMBERS.get(type(value))
    if name_and_size is not None:
        return Spec("python", name_and_size[0], "cpu", (), EMPTY, name_and_size[1])
    if type(value) is int and -(2**63) <= value < 2**63:
        return Spec("python", "int64", "cpu", (), EMPTY, 8)
    array = _array(value)
    return Spec("python", str(array.dtype.name), "cpu", array.shape, EMPTY, array.nbytes)


def _array(value: Nested) -> Array:
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
        reason = str(error).rstrip(".")
        msg = (
            f"NumPy cannot make an array of this {type(value).__name__} ({reason}); "
            "pad its rows to one length, or convert each separately."
        )
        raise BadRequestError(msg) from error


def _first_leaf(value: Nested) -> object:
    """Return the first element that is not a list or tuple, or None if there is none."""
    for _ in range(_MAX_AXES + 1):
        if not isinstance(value, (list, tuple)):
            return value
        if not value:
            return None
        value = value[0]
    msg = f"this {type(value).__name__} is nested more than {_MAX_AXES} deep; flatten it first."
    raise BadRequestError(msg)


def to_numpy(value: Nested) -> Array:
    """Return a number or nested lists as an array of the dtype that NumPy gives them."""
    import numpy as np

    return np.array(value)


def from_numpy(value: Array) -> Nested:
    """Return a 0-d array as a number, others as nested lists."""
    result: Nested = value.tolist()
    return result


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format of Python's own numbers and lists, and the ways to and from NumPy."""
    return [*_formats(), *_conversions()]


def _formats() -> Iterable[Format]:
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
    # Every element is an object of its own in Python, hence the speed.
    return [
        Conversion("python", "numpy", to_numpy, effects=COPY, cost=Cost(1e-6, 2e8)),
        Conversion(
            "numpy",
            "python",
            from_numpy,
            dtypes=_DTYPES,
            # ml_dtypes misreads the single elements of a byte-swapped array.
            takes=MEMORY_TRAITS - {"pinned", "byteswapped"},
            effects=COPY,
            cost=Cost(5e-7, 1e9),
        ),
    ]
