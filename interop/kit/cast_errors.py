"""Cast errors: numbers that do not fit, noted in any thread and told in the caller's."""

from __future__ import annotations

import numbers
import sys
from collections.abc import Callable, Iterable, Mapping
from contextvars import Context, ContextVar
from functools import cache
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

from interop._model.blame import warn_caller
from interop._model.dtype import DTYPES, DtypeFacts
from interop._model.typing import Value
from interop.errors import Declined, RefusedError

from .arrays import dtype_name, null_number

P = ParamSpec("P")
R = TypeVar("R")

#: The keyword of `numpy.errstate` for each error, by the name of the error in NumPy's messages.
_STATES = {"overflow": "over", "invalid value": "invalid", "divide by zero": "divide"}

#: How many integers are looked at together.
_PIECE = 2**16

#: The errors of a context, with the status flags of the processor that NumPy gives with each.
_noted: ContextVar[dict[str, int]] = ContextVar("noted")


class CastErrors:
    """The errors that NumPy finds while numbers are cast: overflows and invalid values.

    Each thread has its own setting for NumPy's errors, and a warning given in a plugin's thread
    does not point to a line of the user. Errors are therefore noted where they occur. They are told
    once, afterwards, in the way that the caller has set with `numpy.errstate`.

    Examples
    --------
    >>> import numpy as np
    >>> errors = CastErrors()
    >>> array = errors.run(np.array([1e300, 1.0]).astype, "float32")
    >>> with np.errstate(over="raise"):
    ...     errors.tell()
    Traceback (most recent call last):
        ...
    FloatingPointError: overflow encountered in cast
    """

    __slots__ = ("_kinds", "_np")

    def __init__(self) -> None:
        import numpy as np

        self._np = np
        self._kinds: dict[str, int] = {}

    def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function that casts, in any thread, and note the errors.

        The function runs in a context of its own, without the caller's context variables.

        Parameters
        ----------
        function : callable
        *args, **kwargs : object
            Its arguments.

        Returns
        -------
        object
            What it returns.
        """
        context = _noting(self._np).copy()
        try:
            return context.run(function, *args, **kwargs)
        finally:
            kinds = context.get(_noted)
            if kinds:
                self._kinds.update(kinds)

    def tell(self) -> None:
        """Tell in the caller's thread what was noted.

        Raises
        ------
        FloatingPointError
            Something was noted that the caller has asked NumPy to raise.
        """
        _tell_all(self._np, self._kinds)


def checked_cast(array: Value, dtype: object, order: str = "K") -> Value:
    """Return a copy of a NumPy array in another dtype, and tell of numbers that do not fit.

    It is `CastErrors` for one call in one thread.

    Parameters
    ----------
    array : numpy.ndarray or numpy.generic
    dtype : numpy.dtype
    order : {"K", "C"}
        The order of the result's elements in memory: as in `array`, or by their indices.

    Returns
    -------
    numpy.ndarray or numpy.generic
        ``array.astype(dtype, order)``.

    Raises
    ------
    FloatingPointError
        A number does not fit, and the caller has asked NumPy to raise.
    """
    import numpy as np

    # A `CastErrors` would take as long again as the cast of a small array.
    context = _noting(np).copy()
    result = context.run(array.astype, dtype, order)
    kinds = context.get(_noted)
    if kinds:
        _tell_all(np, kinds)
    return result


def misfit(array: Value, dtype: str) -> str:
    """Name the first integer of a NumPy array that a dtype does not hold exactly.

    It is for conversions that are `checked`: they raise `Declined` with the answer.

    Parameters
    ----------
    array : numpy.ndarray
        If its numbers are no integers, nothing is checked.
    dtype : str
        A dtype of integers, or of real or complex numbers.

    Returns
    -------
    str
        Which integer it is and why it does not fit; "" if all fit.

    Examples
    --------
    >>> import numpy as np
    >>> misfit(np.array([1, 2**53 + 1]), "float64")
    '9007199254740993 would be rounded in float64'
    >>> misfit(np.array([1, 300]), "uint8")
    '300 does not fit in uint8, which holds 0 to 255'
    """
    import numpy as np

    if array.dtype.kind not in "iu" or not array.size:
        return ""
    facts = DTYPES[dtype]
    low, high = int(array.min()), int(array.max())
    if facts.kind in "iu":
        least, most = -(2**facts.digits) if facts.kind == "i" else 0, 2**facts.digits - 1
        if least <= low and high <= most:
            return ""
        wrong = array < least if low < least else np.zeros(array.shape, bool)
        wrong = wrong | (array > most) if high > most else wrong
        return f"{int(array[wrong][0])} does not fit in {dtype}, which holds {least} to {most}"
    if max(-low, high) <= 2**facts.digits:
        return ""
    for start in range(0, array.size, _PIECE):
        piece = array.flat[start : start + _PIECE]
        wrong = _rounded(np, piece, facts)
        if wrong.any():
            return f"{int(piece[wrong][0])} would be rounded in {dtype}"
    return ""


def _rounded(np: ModuleType, integers: Value, facts: DtypeFacts) -> Value:
    """Tell which integers have more digits than a floating-point dtype, or are out of its range."""
    sizes = np.where(integers < 0, -integers, integers).astype(np.uint64)
    odd = sizes // np.maximum(sizes & (~sizes + np.uint64(1)), np.uint64(1))
    largest = min(int((2 - 2.0 ** (1 - facts.digits)) * 2.0**facts.high), 2**64 - 1)
    return (odd >= np.uint64(2**facts.digits)) | (sizes > np.uint64(largest))


def cast_objects(objects: Value, dtype: Any, *, fill_nulls: bool = False) -> Value:
    """Return an array of numbers for a NumPy array of objects that all are numbers.

    It is for conversions of values with the trait ``untyped``. Numbers are those of Python and of
    NumPy, `Decimal` and `Fraction`.

    Parameters
    ----------
    objects : numpy.ndarray
        Of the dtype ``object``.
    dtype : numpy.dtype
    fill_nulls : bool, optional
        Whether None stands for a null, whose place NaN takes, or 0 where the dtype has no NaN.

    Returns
    -------
    numpy.ndarray
        In the order of C. Reals are cast as NumPy casts arrays of them.

    Raises
    ------
    RefusedError
        An element is no number, or is one that does not fit. The error names the first.

    Examples
    --------
    >>> import numpy as np
    >>> from decimal import Decimal
    >>> cast_objects(np.array([1, Decimal("2.5")]), np.dtype("float32"))
    array([1. , 2.5], dtype=float32)
    """
    import numpy as np

    elements = objects.ravel().tolist()
    if fill_nulls:
        null = null_number(dtype)
        elements = [null if element is None else element for element in elements]
    is_complex = dtype.kind == "c"
    kinds = {kind: _are_numbers(np, kind, is_complex) for kind in set(map(type, elements))}
    if not all(kinds.values()):
        number = next(n for n, element in enumerate(elements) if not kinds[type(element)])
        kind, what = type(elements[number]).__qualname__, "number" if is_complex else "real number"
        problem = f"of type {kind}, which is no {what}; leave it out, or put a number in its place"
        raise _unfit(np, objects, number, problem)
    if any(issubclass(kind, np.generic) for kind in kinds):  # NumPy lets them wrap around
        elements = [_plain(np, element) for element in elements]
    try:
        return _cast(np, elements, dtype).reshape(objects.shape)
    except (MemoryError, Warning, FloatingPointError):  # the caller's own settings ask for them
        raise
    except Exception as error:  # noqa: BLE001 - a number of another class may raise anything
        causes = enumerate(_refusal(np, element, dtype) for element in elements)
        number, cause = next(((n, cause) for n, cause in causes if cause), (0, error))
        name = dtype_name(dtype)
        if isinstance(cause, (OverflowError, ValueError)):
            raise _unfit(np, objects, number, f"which does not fit in {name}") from None
        reason = f"which gives no {name} ({type(cause).__name__}: {cause})"
        problem = f"{reason}; leave it out, or put a number in its place"
        raise _unfit(np, objects, number, problem) from cause


def cast_digits(words: Value, scale: int, dtype: Any, nulls: Value | None = None) -> Value | None:
    """Return an array of numbers for the digits of decimals, where these are few enough.

    It does at once what `cast_objects` does one by one.

    Parameters
    ----------
    words : numpy.ndarray
        A row for each decimal: its digits as an integer, in words of 64 bits, the lowest first.
    scale : int
        How many of the digits come after the point.
    dtype : numpy.dtype
    nulls : numpy.ndarray or None
        Which are null: NaN takes their places, or 0 where the dtype has no NaN.

    Returns
    -------
    numpy.ndarray or None
        None if a number may be rounded twice, or does not fit.

    Examples
    --------
    >>> import numpy as np
    >>> cast_digits(np.array([[125], [-399]]), 2, np.dtype("float32"))
    array([ 1.25, -3.99], dtype=float32)
    """
    import numpy as np

    digits, signs = words[:, 0], words[:, 1:]
    if nulls is not None:
        digits = np.where(nulls, 0, digits)
        signs = np.where(nulls[:, np.newaxis], 0, signs)
    most = 18 if dtype.kind in "iu" else 22
    if (
        dtype.char in "gG"
        or not 0 <= scale <= most
        or (signs.size and (signs != (digits < 0)[:, np.newaxis] * -1).any())
    ):
        return None
    if dtype == np.bool_:
        return digits != 0
    kind = DTYPES[dtype_name(dtype)].kind
    if kind in "iu":
        unit = 10**scale
        wide = digits // unit  # which rounds down
        wide += (wide < 0) & (wide * unit != digits)
    elif misfit(digits, "float64"):
        return None
    else:  # both are exact, so that their quotient is rounded once
        wide = digits / 10.0**scale
    if misfit(wide, dtype_name(dtype)):
        return None
    numbers = wide if wide.dtype == dtype else checked_cast(wide, dtype)
    if nulls is not None:
        numbers[nulls] = null_number(dtype)
    return numbers


def text_elements(objects: Value) -> list[Any]:
    """Return the objects of an array that are all text or all bytes; None for a missing one.

    Parameters
    ----------
    objects : numpy.ndarray
        Of the dtype ``object``, of one axis. NaN is missing, too.

    Returns
    -------
    list

    Raises
    ------
    Declined
        There are other objects, or none.
    """
    elements = [None if element != element else element for element in objects.tolist()]  # noqa: PLR0124 - NaN alone
    kinds = {type(element) for element in elements if element is not None}
    if not kinds or not any(all(issubclass(own, kind) for own in kinds) for kind in (str, bytes)):
        names = ", ".join(sorted(kind.__name__ for kind in kinds)) or "none"
        msg = f"its objects are not all text, or all bytes, but {names}"
        raise Declined(msg)
    return elements


def _are_numbers(np: ModuleType, kind: type, is_complex: bool) -> bool:
    """Return whether the values of a type are real numbers, or complex ones."""
    if issubclass(kind, np.generic) and kind.__module__ != np.__name__:  # those of ml_dtypes
        return np.dtype(kind).name in DTYPES
    is_real = issubclass(kind, numbers.Real) or not issubclass(kind, numbers.Complex)
    return issubclass(kind, (numbers.Number, np.bool_)) and (is_real or is_complex)


def _plain(np: ModuleType, element: Any) -> Any:
    """Return a NumPy scalar as a Python number, where there is one."""
    if not isinstance(element, np.generic):
        return element
    return element.item() if element.dtype.isbuiltin == 1 else float(element)


def _cast(np: ModuleType, elements: Iterable[Any], dtype: Any) -> Value:
    """Return numbers as an array; those of ml_dtypes are made of the widest of their kind."""
    objects = np.empty(len(elements := list(elements)), object)
    objects[:] = elements
    if dtype.isbuiltin == 1:
        return checked_cast(objects, dtype)
    kind = DTYPES[dtype.name].kind
    wide = objects.astype(kind + ("16" if kind == "c" else "8"))
    if reason := misfit(wide, dtype.name):
        raise OverflowError(reason)
    return checked_cast(wide, dtype)


def _refusal(np: ModuleType, element: Any, dtype: Any) -> Exception | None:
    """Return the error with which one number is not cast, or None."""
    try:
        _cast(np, (element,), dtype)
    except Exception as error:  # noqa: BLE001 - it is told by the caller
        return error
    return None


def _unfit(np: ModuleType, objects: Value, number: int, problem: str) -> RefusedError:
    """Return the error that names an element of an array of objects by its number in order of C."""
    index = tuple(map(int, np.unravel_index(number, objects.shape)))
    shown = str(index[0] if len(index) == 1 else index)
    try:
        element = f"{objects[index]!r:.40}"
    except ValueError:  # Python writes no integer of thousands of digits
        element = "an integer of thousands of digits"
    return RefusedError(f"element {shown} is {element}, {problem}.")


@cache
def _noting(np: ModuleType) -> Context:
    """Return a context in which NumPy notes errors; to be copied, as only one thread may enter it.

    To copy a context and run a function in it takes a tenth of the time of `numpy.errstate`.
    """
    context = Context()
    context.run(np.seterr, under="ignore", over="call", invalid="call", divide="call")
    context.run(np.seterrcall, _note)
    return context


def _note(kind: str, flag: int) -> None:
    _noted.set({**_noted.get({}), kind: flag})


def _tell_all(np: ModuleType, kinds: Mapping[str, int]) -> None:
    for kind, flag in kinds.items():
        _tell(kind, flag, np.geterr()[_STATES[kind]], np.geterrcall())


def _tell(kind: str, flag: int, mode: str, handler: object) -> None:
    """Tell of an error as NumPy does, in its words."""
    text = f"{kind} encountered in cast"
    if mode == "warn":
        warn_caller(RuntimeWarning(text))
    elif mode == "raise":
        raise FloatingPointError(text)
    elif mode == "print":
        print(f"Warning: {text}", file=sys.stderr)
    elif mode == "call" and callable(handler):
        handler(kind, flag)
    elif mode == "log" and handler is not None and hasattr(handler, "write"):
        handler.write(f"Warning: {text}\n")
