"""Checks of the indices of sparse values, made before a kernel reads them.

Kernels of sparse libraries take indices on trust: one that lies outside reads or writes memory that
belongs to something else. Each check makes one pass, or looks at the ends of an array alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from weakref import ref

from interop.errors import HandOffError

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

_Outcome = TypeVar("_Outcome")

#: By the bytes of integers, the unsigned ones of NumPy, which takes longer to read other names.
_UNSIGNED = {1: "B", 2: "H", 4: "I", 8: "Q"}


def check_coordinates(what: str, coords: Iterable[Any], shape: tuple[int, ...]) -> None:
    """Refuse coordinates outside of a shape.

    Parameters
    ----------
    what : str
        The value, for the message: ``"a scipy.coo array"``.
    coords : iterable of numpy.ndarray
        The indices along each axis.
    shape : tuple of int, in elements
        The shape of the value, or the part of it that has coordinates.

    Raises
    ------
    HandOffError
        There are some.
    """
    for axis, (indices, length) in enumerate(zip(coords, shape, strict=True)):
        if _reach_outside(indices, length):
            _refuse(what, f"has coordinates outside of axis {axis} of its shape {shape}")


def check_ends(what: str, pointers: Any, lines: int, stored: int, *, exact: bool = False) -> None:
    """Refuse pointers of a compressed value that do not start at 0, or end beyond its elements.

    Only their number and their ends are looked at.

    Parameters
    ----------
    what : str
        The value, for the message.
    pointers : numpy.ndarray
        Where each line starts, and where the last one ends.
    lines : int
        Rows of a value that is compressed by rows, columns of one that is compressed by columns.
    stored : int, in elements
        The elements, or blocks, for which the value has indices and numbers.
    exact : bool
        Whether the last line must end where they do. SciPy allows room behind them, torch does not.

    Raises
    ------
    HandOffError
        There are some.
    """
    if len(pointers) != lines + 1:
        _refuse(what, f"has {len(pointers)} pointers for {lines} lines, which takes {lines + 1}")
    first, last = pointers.item(0), pointers.item(-1)
    if first:
        _refuse(what, f"has pointers that start at {first} and not at 0")
    if not 0 <= last <= stored or (exact and last != stored):
        _refuse(what, f"has pointers that end at {last}, but stores {stored} elements")


def check_lines(
    what: str,
    indices: Any,
    pointers: Any,
    shape: tuple[int, int],
    stored: int,
    *,
    exact: bool = False,
) -> None:
    """Refuse pointers that decrease or lead outside, and indices outside of their lines.

    Parameters
    ----------
    what : str
        The value, for the message.
    indices : numpy.ndarray
        The indices of the elements in their lines.
    pointers : numpy.ndarray
        Where each line starts, and where the last one ends.
    shape : tuple of int
        The number of lines, and their length.
    stored : int, in elements
        The elements, or blocks, for which the value has indices and numbers.
    exact : bool
        Whether the last line must end where they do.

    Raises
    ------
    HandOffError
        There are some.
    """
    lines, length = shape
    check_ends(what, pointers, lines, stored, exact=exact)
    if lines and _largest(pointers[1:] < pointers[:-1]):
        _refuse(what, "has pointers that decrease")
    if _reach_outside(indices[: pointers.item(-1)], length):
        _refuse(what, f"has indices outside of its lines, which are {length} long")


def check_offsets(what: str, ends: tuple[int, int], shortest: int, stored: int) -> None:
    """Refuse offsets of ragged rows that decrease, or lead outside of the numbers.

    Parameters
    ----------
    what : str
        The value, for the message.
    ends : tuple of int, in elements
        The first offset and the last.
    shortest : int, in elements
        The length of the shortest row.
    stored : int, in elements
        How many numbers the rows are made of.

    Raises
    ------
    HandOffError
        They do.
    """
    if shortest < 0:
        _refuse(what, "has offsets that decrease")
    if ends[0] < 0 or ends[1] > stored:
        _refuse(what, f"has offsets from {ends[0]} to {ends[1]}, but stores {stored} numbers")


def rising(coords: Any) -> Any:
    """Tell of each element but the first whether it comes after the one before.

    If all do, the coordinates are sorted, and none are given twice.

    Parameters
    ----------
    coords : sequence of numpy.ndarray
        The indices along each axis, of which there is at least one.

    Returns
    -------
    numpy.ndarray
        Of bool, one shorter than the elements.
    """
    is_after = coords[-1][1:] > coords[-1][:-1]
    for indices in coords[-2::-1]:
        is_after &= indices[1:] == indices[:-1]
        is_after |= indices[1:] > indices[:-1]
    return is_after


def inspect_once(
    kept: dict[int, Any], owner: object, key: Hashable, inspect: Callable[[], _Outcome]
) -> _Outcome:
    """Return the outcome of an inspection, which is made once for an object and a key.

    Parameters
    ----------
    kept : dict
        The outcomes so far, by the ids of their owners. They are forgotten with these.
    owner : object
        What is inspected, or owns it. It needs weak references, but no hash.
    key : hashable
        What else the outcome depends on: if it is another one, the inspection is made again.
    inspect : callable
        It takes no arguments.

    Returns
    -------
    object
        What `inspect` returned.
    """
    identity = id(owner)
    entry = kept.get(identity)
    if entry is not None and entry[0]() is owner and entry[1] == key:
        kept_outcome: _Outcome = entry[2]
        return kept_outcome
    outcome = inspect()
    kept[identity] = ref(owner, lambda _: kept.pop(identity, None)), key, outcome
    return outcome


def _reach_outside(indices: Any, length: int) -> bool:
    """Return whether some indices are negative, or as large as the length of their axis."""
    if not indices.size:
        return False
    dtype = indices.dtype
    if dtype.isnative and length <= 2 ** (8 * dtype.itemsize - 1):
        # As unsigned integers, negative numbers are larger than all others.
        return _largest(indices.view(_UNSIGNED[dtype.itemsize])) >= length
    return bool(indices.min() < 0 or indices.max() >= length)


def _largest(array: Any) -> int:
    """Return the largest element; NumPy's `max` and `any` take a microsecond longer."""
    largest: int = array.item(array.argmax())
    return largest


def _refuse(what: str, problem: str) -> NoReturn:
    msg = f"{what} {problem}; make it anew from correct indices."
    raise HandOffError(msg)
