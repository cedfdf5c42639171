"""``__array_interface__`` and ``__cuda_array_interface__``, checked before NumPy acts on them."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from interop.kit import ADDRESSES, MemoryAt
from interop.plugin import DTYPES, Spec, itemsize

from .common import (
    FOREIGN_ORDER,
    integers,
    layout_of,
    name_of_kind,
    problem_of,
    refuse,
    unread,
)

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    import numpy as np
    from numpy.typing import NDArray

    from .common import Foreign, Unchecked

    Entries: TypeAlias = dict[str, Any]

_TYPESTR = re.compile(r"([<>|=])([biufc])([0-9]{1,18})")
_MAX_BYTES = 2**63 - 1
_MAX_AXES = 64
#: No memory lies in the first page.
LEAST_ADDRESS = 4096


def describe_array_interface(value: Foreign) -> Spec:
    """Return the spec of a value with ``__array_interface__``."""
    return _spec("array_interface", "cpu", _numpy_interface(value))


class Offer:
    """What a value says of itself by ``__array_interface__``, asked for once.

    The value may work its memory out for the occasion, as an image does.
    """

    __slots__ = ("interface", "owner")

    def __init__(self, value: Foreign) -> None:
        self.owner = value
        self.interface = _numpy_interface(value)


def is_unread(value: Foreign) -> bool:
    """Tell whether a value has yet to be asked for its interface."""
    return type(value) is not Offer


def offer_of(value: Foreign) -> Offer | None:
    """Return what a value says of itself; None for what one has said."""
    return Offer(value) if is_unread(value) else None


def describe_cuda_array_interface(value: Foreign) -> Spec:
    """Return the spec of a value with ``__cuda_array_interface__``.

    The interface does not say on which of several devices the memory is.
    """
    return _spec("cuda_array_interface", "cuda", cuda_interface(value)[1])


def _spec(name: str, device: str, interface: _Interface) -> Spec:
    nbytes = prod(interface.shape) * itemsize(interface.dtype)
    return Spec(name, interface.dtype, device, interface.shape, interface.traits, nbytes)


def from_array_interface(value: Foreign) -> NDArray[Any]:
    """Return an array over the memory that ``__array_interface__`` names.

    NumPy is given what was checked, not the value, which might say something else the second time.
    """
    import numpy as np

    interface = _numpy_interface(value)
    entries = {
        "version": 3,
        "shape": interface.shape,
        "typestr": interface.typestr,
        "strides": interface.strides,
        "data": interface.data,
    }
    if interface.offset:
        entries["offset"] = interface.offset
    return np.asarray(MemoryAt(entries, value.owner if type(value) is Offer else value))


def interface_memory(value: Foreign) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory that an array interface names."""
    return _extent(_numpy_interface(value))


def cuda_memory(value: Foreign) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory that a CUDA array interface names."""
    return _extent(cuda_interface(value)[1])


def _extent(interface: _Interface) -> tuple[tuple[int, int], ...]:
    low, high = interface.low, interface.high
    return ((interface.address + low, high - low),) if high else ()


class _Interface(NamedTuple):
    """The checked entries of an array interface, and what follows from them."""

    dtype: str
    typestr: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    address: int
    traits: frozenset[str]
    low: int
    high: int
    data: object
    offset: int


def _numpy_interface(value: Foreign) -> _Interface:
    """Return what ``value.__array_interface__`` says.

    Raises
    ------
    HandOffError
        It contradicts itself or cannot be true.
    """
    if type(value) is Offer:
        return value.interface
    entries = _entries(value, "__array_interface__")
    data = entries.get("data")
    if isinstance(data, tuple):
        return checked(value, entries)
    buffer = value if data is None else data
    offset = entries.get("offset", 0)
    if not isinstance(offset, int) or offset < 0:
        refuse(value, f"gives offset={offset!r}, which is not a number of bytes")
    try:
        view = memoryview(buffer)
    except (BufferError, TypeError, ValueError) as error:
        raise problem_of(value, f"gives no pointer and no buffer as data: {error}") from error
    # Whoever holds the buffer alone does not keep its owner from closing, shrinking or moving it.
    return checked(value, entries, view, offset)


def cuda_interface(value: Foreign) -> tuple[Entries, _Interface]:
    """Return what ``value.__cuda_array_interface__`` says, as it is and checked.

    Raises
    ------
    HandOffError
        It contradicts itself or cannot be true.
    """
    entries = _entries(value, "__cuda_array_interface__")
    if entries.get("version") not in (2, 3):
        refuse(value, f"gives version={entries.get('version')!r}; only 2 and 3 are supported")
    stream = entries.get("stream")
    if stream is not None and (type(stream) is not int or stream == 0):
        refuse(value, f"gives stream={stream!r}, which is not a stream")
    return entries, checked(value, entries)


def _entries(value: Foreign, attribute: str) -> Entries:
    try:
        entries = getattr(value, attribute)
    except (MemoryError, Warning):
        raise
    # The code of a value may raise anything.
    except Exception as error:
        raise unread(value, attribute, error) from error
    if not isinstance(entries, dict):
        refuse(value, f"has an {attribute} of type {type(entries).__name__}, which is not a dict")
    return entries


def checked(
    value: Foreign | None, entries: Entries, view: memoryview | None = None, offset: int = 0
) -> _Interface:
    """Check the entries of an interface whose memory is at a pointer or in a `view` of a buffer."""
    dtype, size, swapped, typestr = _typestr(value, entries.get("typestr"))
    shape = _lengths(value, entries.get("shape"))
    strides = _steps(value, entries.get("strides"), len(shape))
    low, high, traits, divisor = layout_of(shape, strides, size)
    if high - low > _MAX_BYTES or prod(shape) * size > _MAX_BYTES:
        refuse(value, f"has a shape {shape} and strides {strides} beyond all memory")
    if view is None:
        address, readonly = _pointer(value, entries.get("data"), low, high)
    else:
        address, readonly = _address_in(value, view, offset, low, high), view.readonly
    present = {
        "readonly": readonly,
        "byteswapped": swapped,
        "masked": entries.get("mask") is not None,
        "unaligned": bool(high) and _unaligned(address, divisor, dtype, size),
    }
    traits |= {trait for trait, holds in present.items() if holds}
    data = (address, readonly) if view is None else view
    return _Interface(dtype, typestr, shape, strides, address, traits, low, high, data, offset)


def _typestr(value: Foreign, typestr: Unchecked) -> tuple[str, int, bool, str]:
    """Return a dtype's name, its bytes, whether its byte order is the other, and the string."""
    if not isinstance(typestr, str):
        refuse(value, f"gives typestr={typestr!r}, which is not a string")
    match = _TYPESTR.fullmatch(typestr)
    name = name_of_kind(match[2], int(match[3])) if match else ""
    if match is None or name not in DTYPES:
        other = _other_dtype(value, typestr)
        return str(other), int(other.itemsize), False, typestr
    swapped = match[1] in FOREIGN_ORDER and int(match[3]) > 1
    return name, int(match[3]), swapped, typestr


def _other_dtype(value: Foreign, typestr: str) -> np.dtype[Any]:
    """Return the dtype of what are not numbers, or of parts of numbers, for its name."""
    import numpy as np

    try:
        return np.dtype(typestr)
    except (TypeError, ValueError) as error:
        raise problem_of(value, f"gives typestr={typestr!r}, which is not a type") from error


def _lengths(value: Foreign, shape: Unchecked) -> tuple[int, ...]:
    lengths = integers(shape)
    if lengths is None or min(lengths, default=0) < 0:
        refuse(value, f"gives shape={shape!r}, which is not a tuple of lengths")
    if len(lengths) > _MAX_AXES:
        refuse(value, f"has {len(lengths)} axes")
    return lengths


def _steps(value: Foreign, strides: Unchecked, ndim: int) -> tuple[int, ...] | None:
    if strides is None:
        return None
    steps = integers(strides)
    if steps is None:
        refuse(value, f"gives strides={strides!r}, which is not a tuple of bytes")
    if len(steps) != ndim:
        refuse(value, f"gives {len(steps)} strides for {ndim} axes")
    return steps


def _pointer(value: Foreign, data: Unchecked, low: int, high: int) -> tuple[int, bool]:
    pair = integers(data)
    if pair is None or len(pair) != 2:
        refuse(value, f"gives data={data!r}, which is not (address, readonly)")
    address, readonly = pair
    if high and (address < LEAST_ADDRESS or address + low < 0 or address + high > ADDRESSES):
        refuse(value, f"lies at {address:#x}, where no memory can be")
    return address, bool(readonly)


def _address_in(value: Foreign, view: memoryview, offset: int, low: int, high: int) -> int:
    """Return the address of an offset in a buffer that holds the whole array."""
    if not view.c_contiguous:
        refuse(value, "gives a buffer that is not one block")
    if high and not 0 <= offset + low <= offset + high <= view.nbytes:
        refuse(value, f"reaches beyond its buffer of {view.nbytes} bytes")
    return (_buffer_address(view) if view.nbytes else 0) + offset


def _buffer_address(view: memoryview) -> int:
    import numpy as np

    return int(np.frombuffer(view, np.uint8).__array_interface__["data"][0])


def _unaligned(address: int, divisor: int, dtype: str, size: int) -> bool:
    alignment = min(size, 16)  # of clongdouble, too, whose two numbers are aligned one by one
    return dtype in DTYPES and bool(address % alignment or divisor % alignment)
