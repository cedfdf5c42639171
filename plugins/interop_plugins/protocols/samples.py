"""Odd foreign values with the numbers of a plain one, to try conversions out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interop.plugin import Declined

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from .common import Foreign


class Answer:
    """A value that says its dtype and its shape, and shows its array by ``__array__`` alone."""

    def __init__(self, array: NDArray[Any]) -> None:
        self._array = array
        self.dtype, self.shape = array.dtype, array.shape

    def __array__(self, dtype: object = None, copy: bool | None = None) -> NDArray[Any]:
        return self._array.copy() if copy else self._array


class Interface:
    """A value that shows the memory of another by ``__array_interface__`` alone."""

    def __init__(self, value: Foreign, **changes: Any) -> None:
        self._value, self._changes = value, changes

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {**self._value.__array_interface__, **self._changes}


class ArrowArray:
    """A value of a library that exports its array by Arrow's interface, and in no other way."""

    def __init__(self, array: Foreign) -> None:
        self._array = array

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self._array.__arrow_c_array__(requested_schema)


def buffer_with_gaps(view: memoryview) -> memoryview:
    """Return a buffer with gaps: every other element of one of one axis that is twice as long."""
    if view.ndim != 1 or len(view) < 2:
        msg = f"Python cannot make gaps in a buffer of shape {view.shape}"
        raise Declined(msg)
    code, step = view.format, view.itemsize
    wide = memoryview(bytearray(2 * view.nbytes)).cast("B")
    for start in range(step):
        wide[start :: 2 * step] = view.cast("B")[start::step]
    return wide.cast(code)[::2]  # type: ignore[call-overload, no-any-return]


def masked_interface(value: Foreign) -> Interface:
    """Return a value that shows the memory of another, and says that some of it is masked."""
    return Interface(value, mask=value)
