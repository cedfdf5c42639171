"""The buffer protocol."""

from __future__ import annotations

from array import array as numbers
from functools import cache, lru_cache
from mmap import mmap
from typing import TYPE_CHECKING

from interop.kit import EMPTY, extents, memory_traits
from interop.plugin import DTYPES, Spec

from .common import FOREIGN_ORDER, NUMBERS, layout_of, name_of_kind, unread

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable
    from typing import Any

    from numpy.typing import NDArray

    from .common import Foreign

_READONLY = frozenset({"readonly"})
#: The types of which a view costs nothing and raises nothing but ValueError, once they are closed.
_BLOCKS = frozenset({numbers, mmap, memoryview})

#: The kind that each code of a buffer's format stands for. The buffer itself gives the size.
_CODES = {
    "?": "b",
    **dict.fromkeys("bhilqn", "i"),
    **dict.fromkeys("BHILQN", "u"),
    **dict.fromkeys("efdg", "f"),
    **dict.fromkeys(("Zf", "Zd", "Zg", "F", "D", "G"), "c"),
}
#: Those of numbers in the machine's own order that every framework has.
_OWN_CODES = frozenset("?bhilqBHILQefd")


#: Before Python 3.12 a type does not show that it has the buffer protocol. Those that are not named
#: here are asked last, and each value anew.
BUFFERS = (
    "builtins:bytes",
    "builtins:bytearray",
    "builtins:memoryview",
    "array:array",
    "mmap:mmap",
    "_ctypes:Array",
)


def describe_buffer(value: Foreign) -> Spec:
    """Return the spec of a value that has the buffer protocol.

    Raises
    ------
    HandOffError
        The value does not give its buffer.
    """
    kind = type(value)
    if kind is bytes or kind is bytearray:
        length = len(value)
        traits = _READONLY if kind is bytes else EMPTY
        return Spec("buffer", "uint8", "cpu", (length,), traits, length)
    try:
        with memoryview(value) as view:
            return _describe_view(view)
    except (MemoryError, Warning):
        raise
    # The code of a value may raise anything.
    except Exception as error:
        raise unread(value, "buffer", error) from error


def _describe_view(view: memoryview) -> Spec:
    dtype, swapped = _format(view.format, view.itemsize)
    shape = view.shape or ()
    traits = layout_of(shape, view.strides, view.itemsize).traits
    present = {
        "readonly": view.readonly,
        "byteswapped": swapped,
        "unaligned": view.itemsize > 1 and dtype in NUMBERS and _view_unaligned(view),
    }
    traits |= {trait for trait, holds in present.items() if holds}
    return Spec("buffer", dtype, "cpu", shape, traits, view.nbytes)


@lru_cache(maxsize=64)
def _format(code: str, size: int) -> tuple[str, bool]:
    """Return the dtype of a buffer's format, and whether its byte order is the other."""
    order, letters = (code[0], code[1:]) if code[:1] in tuple("@=<>!") else ("@", code)
    kind = _CODES.get(letters)
    name = name_of_kind(kind, size) if kind else ""
    if name not in DTYPES:
        return f"buffer format {code!r}", False
    return name, order in FOREIGN_ORDER and size > 1


def _view_unaligned(view: memoryview) -> bool:
    import numpy as np

    return "unaligned" in memory_traits(np.asarray(view))


def from_buffer(value: Foreign) -> NDArray[Any]:
    """Return an array over the memory of a buffer, of its shape, dtype and writability."""
    import numpy as np

    array: NDArray[Any] = np.asarray(memoryview(value))
    return array


def buffer_fast_path(value: Foreign) -> Any:
    """Share bytes, or a block of numbers, with NumPy; all other buffers have to be described."""
    kind = type(value)
    if kind is bytes or kind is bytearray:
        return _asarray()(memoryview(value))
    if kind not in _BLOCKS:
        return NotImplemented
    try:
        view = value if kind is memoryview else memoryview(value)
        if view.format not in _OWN_CODES or not view.c_contiguous:
            return NotImplemented
    except ValueError:  # it is released
        return NotImplemented
    array = _asarray()(view)
    return array if array.flags.aligned else NotImplemented


@cache
def _asarray() -> Callable[[memoryview], NDArray[Any]]:
    import numpy as np

    return np.asarray


def buffer_key(value: Foreign) -> tuple[Hashable, ...] | None:
    """Return what tells one block of bytes from another, or None for all other buffers."""
    kind = type(value)
    if kind is bytes or kind is bytearray:
        return kind, len(value).bit_length() >> 1  # its `size_class`, without a call
    try:
        if kind is memoryview and value.format == "B" and value.c_contiguous:
            return value.readonly, value.ndim, value.nbytes.bit_length() >> 1
    except ValueError:  # it is released
        pass
    return None


def buffer_memory(value: Foreign) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory of a buffer."""
    import numpy as np

    with memoryview(value) as view:
        return extents((np.asarray(view),)) if view.nbytes else ()
