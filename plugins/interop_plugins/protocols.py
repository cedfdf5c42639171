"""The other protocols by which strangers show arrays, and the way from each to NumPy.

``__cuda_array_interface__``, ``__array_interface__``, the buffer protocol and ``__array__``, in the
order in which a type that has several is recognised. What an interface says is checked before NumPy
acts on it, so that a NULL pointer, a negative length or an extent beyond all memory is refused. An
address that looks like one and is wrong cannot be told from a right one: whoever publishes it
vouches for it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from functools import lru_cache
from math import gcd, prod
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from interop.errors import HandOffError
from interop.plugin import (
    ADDRESSES,
    DTYPES,
    MEMORY_TRAITS,
    Conversion,
    Cost,
    Declaration,
    Declined,
    Format,
    Samples,
    Spec,
    hookimpl,
    itemsize,
)

if TYPE_CHECKING:
    import numpy as np

__all__ = ["interop_declarations"]

_NONE: frozenset[str] = frozenset()
_READONLY = frozenset({"readonly"})
_MASKED = frozenset({"masked"})
_COPY = frozenset({"copy"})

_PLAIN = frozenset(
    {"bool", "float16", "float32", "float64", "complex64", "complex128"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
_LONG = frozenset({"longdouble", "clongdouble"})
_NUMBERS = _PLAIN | _LONG
_CARRIES = MEMORY_TRAITS | {"masked"}

_KINDS = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}
_LONG_KINDS = {"f": "longdouble", "c": "clongdouble"}
#: How types are written in buffers: of each code its kind. Sizes are the buffer's own.
_CODES = {
    "?": "b",
    **dict.fromkeys("bhilqn", "i"),
    **dict.fromkeys("BHILQN", "u"),
    **dict.fromkeys("efdg", "f"),
    **dict.fromkeys(("Zf", "Zd", "Zg", "F", "D", "G"), "c"),
}

_TYPESTR = re.compile(r"([<>|=])([biufc])(\d+)")
_MAX_BYTES = 2**63 - 1
_MAX_AXES = 64
_PAGE = 4096
_FOREIGN_ORDER = ">!" if sys.byteorder == "little" else "<"

#: What a value may raise that refuses to show itself; never MemoryError.
_REFUSALS = (
    AttributeError,
    BufferError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
    AssertionError,
)


class _Interface(NamedTuple):
    """What an array interface says, checked."""

    dtype: str
    typestr: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    address: int
    traits: frozenset[str]
    low: int
    high: int
    data: Any
    offset: int


def _numpy_interface(value: Any) -> _Interface:
    """Return what ``value.__array_interface__`` says.

    Raises
    ------
    HandOffError
        It contradicts itself or cannot be true.
    """
    said = _said(value, "__array_interface__")
    data = said.get("data")
    if isinstance(data, tuple):
        return _checked(value, said)
    buffer = value if data is None else data
    offset = said.get("offset", 0)
    if not isinstance(offset, int) or offset < 0:
        _refuse(value, f"gives offset={offset!r}, which is not a number of bytes")
    try:
        with memoryview(buffer) as view:
            return _checked(value, said, buffer, offset, view)
    except HandOffError:
        raise
    except (BufferError, TypeError, ValueError) as error:
        raise _problem(value, f"gives no pointer and no buffer as data: {error}") from error


def _cuda_interface(value: Any) -> _Interface:
    """Return what ``value.__cuda_array_interface__`` says.

    Raises
    ------
    HandOffError
        It contradicts itself or cannot be true.
    """
    said = _said(value, "__cuda_array_interface__")
    if said.get("version") not in (2, 3):
        _refuse(value, f"gives version={said.get('version')!r}; 2 and 3 are known")
    stream = said.get("stream")
    if stream is not None and (type(stream) is not int or stream == 0):
        _refuse(value, f"gives stream={stream!r}, which is not a stream")
    return _checked(value, said)


def _said(value: Any, attribute: str) -> dict[str, Any]:
    try:
        said = getattr(value, attribute)
    except _REFUSALS as error:
        raise _problem(value, f"does not give its {attribute}: {error}") from error
    if not isinstance(said, dict):
        _refuse(value, f"has an {attribute} of type {type(said).__name__}, which is no dict")
    return said


def _checked(
    value: Any, said: dict[str, Any], buffer: Any = None, offset: int = 0, view: Any = None
) -> _Interface:
    """Check what an interface says, whose memory is at a pointer or in a `view` of a buffer."""
    dtype, size, swapped, typestr = _typestr(value, said.get("typestr"))
    shape = _lengths(value, said.get("shape"))
    strides = _steps(value, said.get("strides"), len(shape))
    low, high, traits, divisor = _layout(shape, strides, size)
    if high - low > _MAX_BYTES or prod(shape) * size > _MAX_BYTES:
        _refuse(value, f"has a shape {shape} and strides {strides} beyond all memory")
    if view is None:
        address, readonly = _pointer(value, said.get("data"), low, high)
    else:
        address, readonly = _inside(value, view, offset, low, high), view.readonly
    present = {
        "readonly": readonly,
        "byteswapped": swapped,
        "masked": said.get("mask") is not None,
        "unaligned": bool(high) and _unaligned(address, divisor, dtype, size),
    }
    traits |= {trait for trait, holds in present.items() if holds}
    data = (address, readonly) if view is None else buffer
    return _Interface(dtype, typestr, shape, strides, address, traits, low, high, data, offset)


def _typestr(value: Any, typestr: Any) -> tuple[str, int, bool, str]:
    """Return the dtype's name, its bytes and whether it is of the other byte order."""
    if not isinstance(typestr, str):
        _refuse(value, f"gives typestr={typestr!r}, which is no string")
    found = _TYPESTR.fullmatch(typestr)
    name = _name(found[2], int(found[3])) if found else ""
    if found is None or name not in DTYPES:
        other = _other_dtype(value, typestr)
        return str(other), int(other.itemsize), False, typestr
    swapped = found[1] in _FOREIGN_ORDER and int(found[3]) > 1
    return name, int(found[3]), swapped, typestr


def _name(kind: str, size: int) -> str:
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


def _other_dtype(value: Any, typestr: str) -> Any:
    """Return the dtype of what are no numbers, or not whole ones, for its name."""
    import numpy as np

    try:
        return np.dtype(typestr)
    except (TypeError, ValueError) as error:
        raise _problem(value, f"gives typestr={typestr!r}, which is no type") from error


def _lengths(value: Any, shape: Any) -> tuple[int, ...]:
    lengths = _integers(shape)
    if lengths is None or min(lengths, default=0) < 0:
        _refuse(value, f"gives shape={shape!r}, which is no tuple of lengths")
    if len(lengths) > _MAX_AXES:
        _refuse(value, f"has {len(lengths)} axes")
    return lengths


def _steps(value: Any, strides: Any, ndim: int) -> tuple[int, ...] | None:
    if strides is None:
        return None
    steps = _integers(strides)
    if steps is None:
        _refuse(value, f"gives strides={strides!r}, which is no tuple of bytes")
    if len(steps) != ndim:
        _refuse(value, f"gives {len(steps)} strides for {ndim} axes")
    return steps


def _integers(items: Any) -> tuple[int, ...] | None:
    """Return a tuple of integers of any kind, NumPy's too, as Python's; None for anything else."""
    if not isinstance(items, tuple):
        return None
    try:
        return tuple(map(index, items))
    except TypeError:
        return None


@lru_cache(maxsize=256)
def _layout(
    shape: tuple[int, ...], strides: tuple[int, ...] | None, size: int
) -> tuple[int, int, frozenset[str], int]:
    """Return the bytes reached before and after the first, what is unusual, and a common divisor.

    The divisor is of all the strides that count: 0 if there are none.
    """
    if strides is None or 0 in shape:
        return 0, prod(shape) * size, _NONE, 0
    counting = [(n, s) for n, s in zip(shape, strides, strict=True) if n > 1]
    low = sum((n - 1) * s for n, s in counting if s < 0)
    high = sum((n - 1) * s for n, s in counting if s > 0) + size
    expected, contiguous = size, True
    for n, s in reversed(counting):
        contiguous = contiguous and s == expected
        expected *= n
    present = {
        "noncontiguous": not contiguous,
        "negative_strides": low < 0,
        "broadcast": any(s == 0 for _, s in counting),
    }
    traits = frozenset(trait for trait, holds in present.items() if holds)
    return low, high, traits, gcd(*(s for _, s in counting))


def _pointer(value: Any, data: Any, low: int, high: int) -> tuple[int, bool]:
    said = _integers(data)
    if said is None or len(said) != 2:
        _refuse(value, f"gives data={data!r}, which is not (address, readonly)")
    address, readonly = said
    if high and (address < _PAGE or address + low < 0 or address + high > ADDRESSES):
        _refuse(value, f"lies at {address:#x}, where no memory can be")
    return address, bool(readonly)


def _inside(value: Any, view: Any, offset: int, low: int, high: int) -> int:
    """Return an address in a buffer, whose length bounds the array's extent."""
    if not view.c_contiguous:
        _refuse(value, "gives a buffer that is not one block")
    if high and not 0 <= offset + low <= offset + high <= view.nbytes:
        _refuse(value, f"reaches beyond its buffer of {view.nbytes} bytes")
    return (_buffer_address(view) if view.nbytes else 0) + offset


def _buffer_address(view: memoryview) -> int:
    import numpy as np

    return int(np.frombuffer(view, np.uint8).__array_interface__["data"][0])


def _unaligned(address: int, divisor: int, dtype: str, size: int) -> bool:
    known = DTYPES.get(dtype)
    alignment = size // 2 if known and known.kind == "c" else size
    return known is not None and bool(address % alignment or divisor % alignment)


def describe_array_interface(value: Any) -> Spec:
    """Return the spec of a value with ``__array_interface__``."""
    return _spec("array_interface", "cpu", _numpy_interface(value))


def describe_cuda_array_interface(value: Any) -> Spec:
    """Return the spec of a value with ``__cuda_array_interface__``.

    The interface does not say on which of several devices the memory is.
    """
    return _spec("cuda_array_interface", "cuda", _cuda_interface(value))


def _spec(name: str, device: str, found: _Interface) -> Spec:
    nbytes = prod(found.shape) * itemsize(found.dtype)
    return Spec(name, found.dtype, device, found.shape, found.traits, nbytes)


def describe_buffer(value: Any) -> Spec:
    """Return the spec of a value that has the buffer protocol.

    Raises
    ------
    HandOffError
        The value does not give its buffer.
    """
    kind = type(value)
    if kind is bytes or kind is bytearray:
        length = len(value)
        traits = _READONLY if kind is bytes else _NONE
        return Spec("buffer", "uint8", "cpu", (length,), traits, length)
    try:
        with memoryview(value) as view:
            return _describe_view(view)
    except _REFUSALS as error:
        raise _problem(value, f"does not give its buffer: {error}") from error


def _describe_view(view: memoryview) -> Spec:
    dtype, swapped = _format(view.format, view.itemsize)
    shape = view.shape or ()
    _, _, traits, _ = _layout(shape, view.strides, view.itemsize)
    present = {
        "readonly": view.readonly,
        "byteswapped": swapped,
        "unaligned": view.itemsize > 1 and dtype in _NUMBERS and _view_unaligned(view),
    }
    traits |= {trait for trait, holds in present.items() if holds}
    return Spec("buffer", dtype, "cpu", shape, traits, view.nbytes)


@lru_cache(maxsize=64)
def _format(code: str, size: int) -> tuple[str, bool]:
    """Return the dtype of a buffer's format and whether it is of the other byte order."""
    order, letters = (code[0], code[1:]) if code[:1] in tuple("@=<>!") else ("@", code)
    kind = _CODES.get(letters)
    name = _name(kind, size) if kind else ""
    if name not in DTYPES:
        return f"buffer format {code!r}", False
    return name, order in _FOREIGN_ORDER and size > 1


def _view_unaligned(view: memoryview) -> bool:
    import numpy as np

    return not np.asarray(view).flags.aligned


def describe_array(value: Any) -> Spec:
    """Return the spec of a value with ``__array__``, from its dtype and shape if it has them.

    Otherwise the array has to be asked for.

    Raises
    ------
    HandOffError
        The value does not give an array.
    """
    said = _said_of_itself(value)
    if said is not None:
        dtype, shape = said
        return Spec("array", dtype, "cpu", shape, _NONE, prod(shape) * itemsize(dtype))
    array = _array(value)
    return Spec("array", _dtype_name(array.dtype), "cpu", array.shape, _NONE, array.nbytes)


def _said_of_itself(value: Any) -> tuple[str, tuple[int, ...]] | None:
    """Return the dtype and the shape a value says it has, if they read as NumPy's."""
    import numpy as np

    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if isinstance(dtype, str) or (isinstance(dtype, type) and issubclass(dtype, np.generic)):
        try:
            dtype = np.dtype(dtype)
        except TypeError:
            return None
    if not isinstance(dtype, np.dtype):
        return None
    lengths = _integers(shape)
    if lengths is None or min(lengths, default=0) < 0:
        return None
    return _dtype_name(dtype), lengths


def _dtype_name(dtype: Any) -> str:
    """Return the name of a NumPy dtype; of what are no numbers, one that nothing takes."""
    longs = {13: "longdouble", 16: "clongdouble"}
    name = longs.get(dtype.num, dtype.name)
    return name if name in DTYPES and dtype.names is None else str(dtype)


def _array(value: Any) -> Any:
    import numpy as np

    try:
        # Asked without NumPy in between, which would warn of signatures without `copy`.
        array = value.__array__()
    except _REFUSALS as error:
        raise _problem(value, f"does not give its array: {error}") from error
    if not isinstance(array, np.ndarray):
        _refuse(value, f"answers __array__ with an object of type {type(array).__name__}")
    return array


class _Memory:
    """Memory that an interface names, kept alive by its owner; NumPy makes it an array's base."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, interface: dict[str, Any], owner: Any) -> None:
        self.__array_interface__ = interface
        self._owner = owner


def from_array_interface(value: Any) -> np.ndarray[Any, Any]:
    """Return an array over the memory that ``__array_interface__`` names.

    NumPy is shown what was checked, not the value, which might say something else when asked again.
    """
    import numpy as np

    found = _numpy_interface(value)
    interface = {
        "version": 3,
        "shape": found.shape,
        "typestr": found.typestr,
        "strides": found.strides,
        "data": found.data,
    }
    if found.offset:
        interface["offset"] = found.offset
    return np.asarray(_Memory(interface, value))


def from_buffer(value: Any) -> np.ndarray[Any, Any]:
    """Return an array over the memory of a buffer, of its shape, dtype and writability."""
    import numpy as np

    array: np.ndarray[Any, Any] = np.asarray(memoryview(value))
    return array


def from_array(value: Any) -> np.ndarray[Any, Any]:
    """Return what ``__array__`` returns, copied if it is not a plain, writable, C-ordered array.

    Whether a plain one shares the value's memory is not known.
    """
    import numpy as np

    said = _said_of_itself(value)
    array = _array(value)
    _check_answer(value, array, said)
    flags = array.flags
    plain = type(array) is np.ndarray and array.dtype.isnative
    if not (plain and flags.c_contiguous and flags.writeable and flags.aligned):
        array = np.array(array, dtype=array.dtype.newbyteorder("="), order="C", subok=False)
    result: np.ndarray[Any, Any] = array
    return result


def _check_answer(value: Any, array: Any, said: tuple[str, tuple[int, ...]] | None) -> None:
    """Decline an answer to ``__array__`` that is not the array its value was described as."""
    name = _dtype_name(array.dtype)
    who = type(value).__qualname__
    if name not in DTYPES:
        msg = f"{who}.__array__ returns elements of dtype {name}, which are no numbers"
        raise Declined(msg)
    if said is not None and said != (name, array.shape):
        msg = f"{who} says it is {said[0]} {said[1]}, but its array is {name} {array.shape}"
        raise Declined(msg)
    masked = sys.modules.get("numpy.ma")
    if masked and isinstance(array, masked.MaskedArray) and array.mask is not masked.nomask:
        msg = f"{who}.__array__ returns a masked array; convert that array itself"
        raise Declined(msg)


def interface_memory(value: Any) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory that an array interface names."""
    found = _numpy_interface(value)
    return _extent(found)


def cuda_memory(value: Any) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory that a CUDA array interface names."""
    return _extent(_cuda_interface(value))


def _extent(found: _Interface) -> tuple[tuple[int, int], ...]:
    return ((found.address + found.low, found.high - found.low),) if found.high else ()


def buffer_memory(value: Any) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory of a buffer."""
    import numpy as np

    with memoryview(value) as view:
        if not view.nbytes:
            return ()
        low, high = np.lib.array_utils.byte_bounds(np.asarray(view))
    return ((low, high - low),)


def buffer_with_gaps(view: memoryview) -> memoryview:
    """Return every other element of a buffer of one axis twice as long: a sample of such memory."""
    if view.ndim != 1 or len(view) < 2:
        msg = f"Python makes no gaps in a buffer of shape {view.shape}"
        raise Declined(msg)
    code, step = view.format, view.itemsize
    wide = memoryview(bytearray(2 * view.nbytes)).cast("B")
    for start in range(step):
        wide[start :: 2 * step] = view.cast("B")[start::step]
    return wide.cast(code)[::2]  # type: ignore[call-overload, no-any-return]


def masked_stranger(value: Any) -> Any:
    """Return a stranger that says of another's memory that some of it is masked: a sample."""
    said = {**value.__array_interface__, "mask": value}
    shown = {"__array_interface__": property(lambda self: said), "owner": value}
    return type("Stranger", (), shown)()


#: Before Python 3.12 a type does not show that it has the buffer protocol.
_BUFFERS = (
    "builtins:bytes",
    "builtins:bytearray",
    "builtins:memoryview",
    "array:array",
    "mmap:mmap",
    "_ctypes:Array",
    "pickle:PickleBuffer",
)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> Iterable[Format]:
    """Return a format for each protocol; the order is that of recognition."""
    return [*_interfaces(), _buffer(), _answer()]


def _interfaces() -> Iterable[Format]:
    return [
        Format(
            "cuda_array_interface",
            describe=describe_cuda_array_interface,
            dtypes=_PLAIN,
            devices=("cuda",),
            carries=_CARRIES,
            protocol="__cuda_array_interface__",
            memory=cuda_memory,
        ),
        Format(
            "array_interface",
            describe=describe_array_interface,
            dtypes=_NUMBERS,
            carries=_CARRIES,
            protocol="__array_interface__",
            memory=interface_memory,
            samples=Samples(variants={"masked": masked_stranger}),
        ),
    ]


def _buffer() -> Format:
    return Format(
        "buffer",
        types=_BUFFERS,
        describe=describe_buffer,
        dtypes=_NUMBERS,
        carries=MEMORY_TRAITS,
        protocol="__buffer__",
        memory=buffer_memory,
        samples=Samples(
            variants={"noncontiguous": buffer_with_gaps, "readonly": memoryview.toreadonly}
        ),
    )


def _answer() -> Format:
    return Format(
        "array",
        describe=describe_array,
        dtypes=frozenset(DTYPES) - {"complex32"},
        protocol="__array__",
    )


def _conversions() -> Iterable[Conversion]:
    """Return the way from each protocol of the host to NumPy."""
    return [
        _to_numpy("array_interface", from_array_interface, cost=Cost(4e-6)),
        _to_numpy(
            "array_interface",
            from_array_interface,
            requires=_MASKED,
            drops=_MASKED,
            effects=frozenset({"drop_mask"}),
            cost=Cost(4e-6),
            name="from_masked_array_interface",
        ),
        _to_numpy("buffer", from_buffer, cost=Cost(4e-7)),
        Conversion("array", "numpy", from_array, effects=_COPY, shares=True, cost=Cost(4e-6, 8e9)),
    ]


def _to_numpy(source: str, function: Callable[..., Any], **fields: Any) -> Conversion:
    return Conversion(source, "numpy", function, dtypes=_NUMBERS, takes=MEMORY_TRAITS, **fields)


def _refuse(value: Any, problem: str) -> NoReturn:
    raise _problem(value, problem)


def _problem(value: Any, problem: str) -> HandOffError:
    kind = type(value)
    move = "Correct what it says, or give interop a plain array instead."
    return HandOffError(f"{kind.__module__}.{kind.__qualname__} {problem}. {move}")
