"""NumPy: dense arrays on the host, of every dtype that NumPy and ml_dtypes know.

Arrays are described from their flags and strides alone. The steps that write memory are declared
in groups of like speed, because the planner can only choose by what is declared.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from interop.errors import BadRequestError
from interop.plugin import (
    DTYPES,
    Conversion,
    Cost,
    Declaration,
    DtypeNames,
    Format,
    Result,
    Samples,
    Spec,
    checked_export,
    export,
    hookimpl,
    itself,
)

from ._numpy_copies import write, written
from ._numpy_samples import VARIANTS

if TYPE_CHECKING:
    import numpy as np

__all__ = ["interop_declarations"]

_NONE: frozenset[str] = frozenset()
_SCALAR = frozenset({"scalar"})
_COPY = frozenset({"copy"})

#: complex32 is left out: torch's would otherwise be expected as an ml_dtypes array, which NumPy
#: can do next to nothing with.
_DTYPES = frozenset(DTYPES) - {"complex32"}
#: What NumPy itself can name in DLPack and in its own protocols.
_PLAIN_DTYPES = frozenset(
    {"bool", "float16", "float32", "float64", "complex64", "complex128"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
_LONG = frozenset({"longdouble", "clongdouble"})
#: What only ml_dtypes can hold.
_ML_DTYPES = _DTYPES - _PLAIN_DTYPES - _LONG
#: The reals of 8 or 16 bits whose bits other frameworks can carry as unsigned integers.
_PACKABLE = frozenset(d for d in _ML_DTYPES if DTYPES[d].kind == "f")

_LAYOUT = frozenset({"noncontiguous", "negative_strides", "broadcast"})
_FLAGS = frozenset({"readonly", "immutable", "unaligned"})
_VIEWABLE = _LAYOUT | _FLAGS
_GAPS, _SWAPPED = frozenset({"noncontiguous"}), frozenset({"byteswapped"})
_MEMORY = _VIEWABLE | _SWAPPED

# The bits of `flags.num`, which is one attribute where the flags by name are three.
_CONTIGUOUS, _ALIGNED, _WRITEABLE = 0x0001, 0x0100, 0x0400
_ORDINARY = _CONTIGUOUS | _ALIGNED | _WRITEABLE

#: What NumPy or a producer raises when there is nothing to hand over.
_REFUSALS = (BufferError, ValueError, RuntimeError, TypeError, AssertionError, AttributeError)

# Numbers of dtypes; their characters would not do, because ml_dtypes use some of them again.
_LONG_NUMBERS = {13: "longdouble", 16: "clongdouble"}

#: Filled on first use: numpy.from_dlpack, numpy.ndarray, and the name and traits of each dtype met.
_from_dlpack: list[Callable[[Any], Any]] = []
_plain_types: set[type] = set()
_known_dtypes: dict[Any, tuple[str, frozenset[str]]] = {}


def describe(value: Any) -> Spec:
    """Return the spec of an array or array scalar, from its flags, shape and strides.

    Parameters
    ----------
    value : numpy.ndarray or numpy.generic

    Returns
    -------
    Spec
        A dtype that is not one of numbers is named as NumPy names it, so that nothing takes it.
    """
    dtype = value.dtype
    name, traits = _known_dtypes.get(dtype) or _know(dtype)
    if type(value) not in _plain_types:
        return _describe_other(value, name, traits)
    flags = value.flags.num
    if flags & _ORDINARY != _ORDINARY:
        traits = traits | _memory_traits(value, flags)
    return Spec("numpy", name, "cpu", value.shape, traits, value.nbytes)


def _know(dtype: Any) -> tuple[str, frozenset[str]]:
    swapped = _NONE if dtype.isnative else _SWAPPED
    known = _known_dtypes[dtype] = (_name(dtype), swapped)
    return known


def _name(dtype: Any) -> str:
    if dtype.names:
        return str(dtype)
    # The bits that NumPy counts in "float128" are padding, so interop names it as C does.
    return _LONG_NUMBERS.get(dtype.num) or str(dtype.name)


def _describe_other(value: Any, name: str, traits: frozenset[str]) -> Spec:
    """Describe what is not exactly a numpy.ndarray, or the first array that is."""
    import numpy as np

    if type(value) is np.ndarray:
        _plain_types.add(np.ndarray)
        return describe(value)
    if isinstance(value, np.generic):
        return Spec("numpy", name, "cpu", value.shape, _SCALAR, value.nbytes)
    masked = sys.modules.get("numpy.ma")
    hidden = masked and isinstance(value, masked.MaskedArray) and _mask(value) is not None
    traits = traits | {"masked" if hidden else "subclass"}
    return Spec(
        "numpy",
        name,
        "cpu",
        value.shape,
        traits | _memory_traits(value, value.flags.num),
        value.nbytes,
    )


def _mask(value: Any) -> Any:
    """Return the mask of a masked array, or None if it has none."""
    import numpy as np

    mask = np.ma.getmask(value)
    return None if mask is np.ma.nomask else mask


def _memory_traits(value: Any, flags: int) -> set[str]:
    traits = set()
    if not flags & _WRITEABLE:
        traits.add("readonly")
    if not flags & _ALIGNED:
        traits.add("unaligned")
    if not flags & _CONTIGUOUS:
        traits.add("noncontiguous")
        # An axis of length 1 is never stepped along, whatever its stride.
        steps = [s for n, s in zip(value.shape, value.strides, strict=True) if n > 1]
        if min(steps) < 0:
            traits.add("negative_strides")
        if 0 in steps:
            traits.add("broadcast")
    return traits


@cache
def _dtype(name: str) -> Any:
    """Return the dtype object of a name."""
    import ml_dtypes
    import numpy as np

    if name not in _ML_DTYPES:
        return np.dtype(name)
    scalar = getattr(ml_dtypes, name, None)
    if scalar is None:
        msg = f"ml_dtypes {ml_dtypes.__version__} has no {name}; install a newer ml_dtypes."
        raise BadRequestError(msg)
    return np.dtype(scalar)


def as_array(value: Any) -> np.ndarray[Any, Any]:
    """Return the memory of an array of a subclass (matrix, memmap …) as a plain array."""
    import numpy as np

    return np.asarray(value)


def from_scalar(value: Any) -> np.ndarray[Any, Any]:
    """Return an array scalar as a 0-d array."""
    import numpy as np

    return np.array(value)


def drop_mask(value: Any) -> np.ndarray[Any, Any]:
    """Return the data of a masked array as a plain array that shares its memory.

    What lies under the mask is whatever the masked array had stored there.
    """
    import numpy as np

    data: np.ndarray[Any, Any] = np.ma.getdata(value, subok=False)
    return data.view(np.ndarray)


def copy(value: Any) -> np.ndarray[Any, Any]:
    """Return a C-ordered, native, writable copy."""
    dtype = value.dtype
    return written(value, dtype if dtype.isnative else dtype.newbyteorder("="))


def cast(value: Any, *, dtype: str) -> np.ndarray[Any, Any]:
    """Return a C-ordered copy of another dtype.

    Numbers that the dtype cannot hold become what NumPy makes of them, without a warning: the
    caller asked. Of complex numbers a real dtype keeps the real part.
    """
    return written(value, _dtype(dtype))


def cast_in_order(value: Any, *, dtype: str) -> np.ndarray[Any, Any]:
    """Return what `cast` does, its elements in the order in which they lie in memory."""
    return written(value, _dtype(dtype), "K")


def as_bits(value: Any, *, dtype: str) -> np.ndarray[Any, Any]:
    """Return a view of a narrow real array as unsigned integers of the same width."""
    bits: np.ndarray[Any, Any] = value.view(_dtype(dtype))
    return bits


def from_bits(value: Any, *, dtype: str) -> np.ndarray[Any, Any]:
    """Return a view of unsigned integers as the narrow reals whose bits they are."""
    reals: np.ndarray[Any, Any] = value.view(_dtype(dtype))
    return reals


class _Held:
    """A capsule that was already asked for, as a producer: it gives away what was looked at."""

    __slots__ = ("_capsule",)

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class _Memory:
    """Memory at an address, kept alive by its owner; NumPy makes it the base of the array."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, interface: dict[str, Any], owner: Any) -> None:
        self.__array_interface__ = interface
        self._owner = owner


def from_dlpack(value: Any) -> np.ndarray[Any, Any]:
    """Return an array over a DLPack producer's memory, writable unless that is flagged read-only.

    A capsule of the first kind cannot carry the flag. NumPy then assumes the worst and locks the
    array; that its memory is not to be written is for the producer's format to say.
    """
    import numpy as np

    held = _Held(export(value))
    found = checked_export(held)
    array: np.ndarray[Any, Any] = np.from_dlpack(held)
    if not _from_dlpack:
        _from_dlpack.append(np.from_dlpack)
    if found.versioned or array.flags.writeable:
        return array
    interface = dict(array.__array_interface__)
    interface["data"] = (interface["data"][0], False)
    return np.asarray(_Memory(interface, array))


def from_locked_dlpack(value: Any) -> np.ndarray[Any, Any]:
    """Return a read-only array over the memory of a producer that is known not to be written."""
    array = from_dlpack(value)
    array.flags.writeable = False
    return array


def dlpack_fast_path(value: Any) -> Any:
    """Return the array of a producer on the host whose memory is writable and says so.

    NumPy's own checks serve as the guard: it refuses other versions, devices and dtypes, locks what
    is or may be read-only, and looks at no element. What it gets wrong is seen in the result: for a
    NULL pointer it makes memory of its own, full of garbage.
    """
    try:
        array = _from_dlpack[0](value)
    except (*_REFUSALS, IndexError):
        return NotImplemented
    flags = array.flags
    return array if flags.behaved and not flags.owndata else NotImplemented


def from_narrow_dlpack(value: Any) -> np.ndarray[Any, Any]:
    """Return an ml_dtypes array over the memory of a DLPack producer.

    ``numpy.from_dlpack`` knows no such dtype, and teaching it one is for the whole process. So the
    capsule is not consumed but becomes the array's owner: freed with the array, it frees the memory
    as any capsule does that nobody consumed.
    """
    import numpy as np

    held = _Held(export(value))
    found = checked_export(held)
    wanted = _dtype(found.dtype)
    strides = found.strides and tuple(step * wanted.itemsize for step in found.strides)
    interface = {
        "version": 3,
        "shape": found.shape,
        "strides": None if 0 in found.shape else strides,
        "typestr": np.dtype(f"u{wanted.itemsize}").str,
        "data": (found.data, found.readonly),
    }
    return np.asarray(_Memory(interface, held)).view(wanted)


def from_locked_narrow_dlpack(value: Any) -> np.ndarray[Any, Any]:
    """Return a read-only ml_dtypes array over the memory of a producer that never changes it."""
    array = from_narrow_dlpack(value)
    array.flags.writeable = False
    return array


def memory(value: Any) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory an array lies in, and its mask's."""
    import numpy as np

    if isinstance(value, np.generic):
        return ()  # an array scalar has no memory that anything could share
    low, high = np.lib.array_utils.byte_bounds(value)
    extents = ((low, high - low),) if value.size else ()
    mask = _mask(value)
    return extents if mask is None else extents + memory(mask)


def fill(out: Any, value: Any) -> None:
    """Write the numbers of `value` into `out`.

    Raises
    ------
    BadRequestError
        `out` is read-only.
    """
    import numpy as np

    if isinstance(out, np.generic) or not out.flags.writeable:
        msg = (
            f"out= is a read-only {type(out).__name__} of shape {out.shape}; give a writable "
            "numpy array, such as a copy of it."
        )
        raise BadRequestError(msg)
    write(out, value)


def class_name(kind: Any) -> str:
    """Return the dtype that a Python number's type or a scalar type stands for.

    Raises
    ------
    TypeError
        The type is none of these.
    """
    if kind in _PYTHON_TYPES:
        return _PYTHON_TYPES[kind]
    numpy = sys.modules.get("numpy")
    if numpy is None or not issubclass(kind, numpy.generic) or _abstract(kind, numpy):
        msg = f"{kind.__module__}.{kind.__qualname__} is not a dtype; name one, such as 'float32'."
        raise TypeError(msg)
    return _name(numpy.dtype(kind))


def _abstract(kind: type, numpy: Any) -> bool:
    """Tell whether a scalar type, such as numpy.floating, stands for several dtypes."""
    return kind.__module__ == "numpy" and kind not in numpy.ScalarType


_PYTHON_TYPES: dict[type, str] = {
    bool: "bool",
    int: "int64",
    float: "float64",
    complex: "complex128",
}


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats, the conversions and the names of dtypes."""
    return [*_formats(), *_conversions(), *_dtypes()]


def _dtypes() -> Iterable[DtypeNames]:
    """Return how NumPy names its dtypes, and which the types of numbers stand for."""
    return [DtypeNames("numpy:dtype", _name), DtypeNames("builtins:type", class_name)]


def _formats() -> Iterable[Format]:
    """Return NumPy's one format."""
    return [
        Format(
            "numpy",
            types=("numpy:ndarray", "numpy:generic"),
            target_types=("numpy:ndarray",),
            describe=describe,
            dtypes=_DTYPES,
            carries=_MEMORY,
            # Its other protocols are not declared: every route through them is one it has already.
            exports={"dlpack": _PLAIN_DTYPES},
            requires="numpy",
            install="pip install numpy",
            memory=memory,
            fill=fill,
            fast_path=itself,
            samples=Samples(variants=VARIANTS),
        )
    ]


def _conversions() -> Iterable[Conversion]:
    """Return the steps within NumPy, and the hand-off from DLPack."""
    return [*_views(), *_copies(), *_casts(), *_hand_offs()]


def _views() -> Iterable[Conversion]:
    subclass, masked = frozenset({"subclass"}), frozenset({"masked"})
    carriers = frozenset({"uint8", "uint16"})
    return [
        _step(as_array, takes=_MEMORY, requires=subclass, drops=subclass, cost=Cost(2e-7)),
        _step(
            drop_mask,
            takes=_MEMORY,
            requires=masked,
            drops=masked,
            effects=frozenset({"drop_mask"}),
            cost=Cost(1e-6),
        ),
        _step(
            as_bits, dtypes=_PACKABLE, takes=_VIEWABLE, result=Result(bits="carry"), cost=Cost(3e-7)
        ),
        _step(
            from_bits,
            dtypes=carriers,
            takes=_VIEWABLE,
            result=Result(bits="restore"),
            cost=Cost(3e-7),
        ),
    ]


def _copies() -> Iterable[Conversion]:
    scalar = frozenset({"scalar"})
    yield _step(from_scalar, requires=scalar, drops=scalar, effects=_COPY, cost=Cost(5e-7))
    for name, takes, requires, cost in (
        ("copy", _FLAGS, _NONE, Cost(5e-7, 1.9e10, 1.2e11)),
        ("copy_to_contiguous", _VIEWABLE, _GAPS, Cost(5e-7, 7.5e9, 1.5e10)),
        ("copy_to_native", _MEMORY, _SWAPPED, Cost(1e-6, 1.4e10, 6e10)),
    ):
        yield _step(copy, takes=takes, requires=requires, effects=_COPY, cost=cost, name=name)


def _casts() -> Iterable[Conversion]:
    """Yield the casts, in groups of like speed: NumPy computes narrow reals one by one."""
    half, narrow = frozenset({"float16"}), _ML_DTYPES - {"bfloat16", "int4", "uint4"}
    fast, brief = _DTYPES - half - narrow, frozenset({"bfloat16"})
    for name, source, target, cost in (
        ("cast", fast, fast - brief, Cost(1.5e-6, 1.9e10, 6e10)),
        ("cast_to_bfloat16", fast, brief, Cost(1.5e-6, 1.1e10)),
        ("cast_to_half", fast, half, Cost(1.5e-6, 3e9)),
        ("cast_half", half, fast | half, Cost(1.5e-6, 4e9)),
        ("cast_narrow", narrow, _DTYPES, Cost(1.5e-6, 8e9)),
        ("cast_to_narrow", fast | half, narrow, Cost(1.5e-6, 1.5e9)),
    ):
        make = partial(
            _step,
            dtypes=source,
            changes=frozenset({"dtype"}),
            result=Result(dtypes=target),
            effects=_COPY,
            cost=cost,
        )
        # One speed for all strides, so that no copy that comes before seems to gain anything.
        yield make(cast, name=name, takes=_MEMORY)
        # Where any order will do, it is that of the value; elements that repeat have none.
        yield make(
            cast_in_order,
            name=f"{name}_in_order",
            takes=_MEMORY - {"broadcast"},
            requires=_GAPS,
            adds=_GAPS,
        )


def _hand_offs() -> Iterable[Conversion]:
    writable = _LAYOUT | {"unaligned", "pinned"}
    readonly, immutable = frozenset({"readonly"}), frozenset({"immutable"})
    common: dict[str, Any] = {"dtypes": _PLAIN_DTYPES, "cost": Cost(4e-6)}
    narrow: dict[str, Any] = {"dtypes": _ML_DTYPES, "cost": Cost(8e-6)}
    return [
        _from("dlpack", from_dlpack, takes=writable, fast_path=dlpack_fast_path, **common),
        _from(
            "dlpack", from_locked_dlpack, takes=writable | immutable, requires=readonly, **common
        ),
        _from("dlpack", from_locked_dlpack, takes=writable, requires=immutable, **common),
        _from("dlpack", from_narrow_dlpack, takes=writable | readonly, **narrow),
        _from(
            *("dlpack", from_locked_narrow_dlpack),
            takes=writable | readonly,
            requires=immutable,
            **narrow,
        ),
    ]


def _step(function: Callable[..., Any], **fields: Any) -> Conversion:
    return _from("numpy", function, **fields)


def _from(source: str, function: Callable[..., Any], **fields: Any) -> Conversion:
    return Conversion(source, "numpy", function, **fields)
