"""Samples: a real value of any registered format, made from declarations alone.

The numbers come from memory of Python's own, through `convert`. What cannot come that way is put
together from components, or made by the format's own `sample`; traits are added by its `variants`,
and strangers that speak a protocol are values of another format with all but that protocol hidden.
"""

from __future__ import annotations

import ctypes
import random
import sys
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from interop._model.dtype import DTYPES, itemsize
from interop._model.format import Format, Parts
from interop._model.spec import MEMORY_TRAITS, Spec
from interop._registry.installed import importable
from interop.errors import Declined, InteropError

if TYPE_CHECKING:
    from interop._api.interop import Interop
    from interop._planning.step import ResolvedConversion

__all__ = ["NoSample", "Numbers", "Wanted", "axes_of", "fitted", "sample"]

#: Numbers that most dtypes hold, and powers of two among them for those that hold no others.
_REALS = (0.5, 1.0, 2.0, 4.0, -0.5, -1.0, -2.0, 1.5, -1.5, 3.0)
_POWERS = _REALS[:4]
#: Elements before the pattern repeats: a prime, so that no row is like the one above.
_PERIOD = 9973

_CTYPES = {"b": ctypes.c_bool, "i": ctypes.c_int64, "u": ctypes.c_uint64}


class NoSample(Exception):  # noqa: N818 - it says why there is none
    """There is no way to make such a value here; the text says why."""


class Wanted(NamedTuple):
    """What a sample is to be.

    Parameters
    ----------
    format, dtype : str
    shape : tuple of int
    traits : frozenset of str
        Those it must have. It may have others that follow from them.
    device : str
    density : float
        Share of the elements that are not zero.
    code_dtype : str
        Of a quantized array, the dtype of the codes.
    seed : int
        Other seeds give other numbers.
    full : bool
        Whether the numbers need every digit of the dtype, so that none survives a narrower one.
    """

    format: str
    dtype: str
    shape: tuple[int, ...] = (3, 4)
    traits: frozenset[str] = frozenset()
    device: str = "cpu"
    density: float = 1.0
    code_dtype: str = "uint8"
    seed: int = 0
    full: bool = False


def axes_of(edge: ResolvedConversion) -> frozenset[int] | None:
    """Return the numbers of axes that a conversion and both its formats allow; None if any.

    What a format allows is what can be made of it. Values of more axes may exist.
    """
    limits = [one for one in (edge.ndims, edge.source.ndims) if one is not None]
    return frozenset.intersection(*limits) if limits else None


def fitted(shape: tuple[int, ...], edge: ResolvedConversion) -> tuple[int, ...]:
    """Return a shape of as many elements with the nearest number of axes that a conversion takes.

    Parameters
    ----------
    shape : tuple of int
    edge : ResolvedConversion
        If it takes arrays of no axes alone, one element must do.
    """
    own, ndims = len(shape), axes_of(edge)
    if ndims is None or own in ndims:
        return shape
    # Of two as near, the one with more axes: there is more that can go wrong, and that takes time.
    axes = min(ndims, key=lambda axes: (abs(axes - own), -axes))
    if axes > own:
        return shape + (1,) * (axes - own)
    return (prod(shape[: own - axes + 1]), *shape[own - axes + 1 :]) if axes else ()


class Numbers:
    """Numbers in memory of Python's own, shown by the array interface.

    Parameters
    ----------
    dtype : str
        The dtype that the numbers must fit. The memory holds them in the widest of its kind.
    shape : tuple of int
    density : float
        Share of the elements that are not zero.
    seed : int
        Other seeds give other numbers.
    full : bool
        Whether they need every digit of the dtype.
    """

    def __init__(
        self,
        dtype: str,
        shape: tuple[int, ...],
        density: float = 1.0,
        *,
        seed: int = 0,
        full: bool = False,
    ) -> None:
        kind = DTYPES[dtype].kind
        width = 2 if kind == "c" else 1
        one = _CTYPES.get(kind, ctypes.c_double)
        pattern = _pattern(dtype, density, one, width, seed=seed, full=full)
        self._memory = _repeated(one, pattern, prod(shape) * width)
        self._shape = shape
        self._typestr = "|b1" if kind == "b" else f"={kind}{8 * width}"

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """Where the numbers are, and how they lie there."""
        address = ctypes.addressof(self._memory)
        data = {"typestr": self._typestr, "data": (address, False)}
        return {"version": 3, "shape": self._shape, **data}


@lru_cache(maxsize=128)
def _pattern(
    dtype: str, density: float, one: Any, width: int = 1, *, seed: int = 0, full: bool = False
) -> Any:
    """Return memory of ctypes' with the numbers that are repeated, of `width` parts each."""
    known = DTYPES[dtype]
    rng = random.Random(seed)
    numbers: tuple[Any, ...] = _REALS if known.kind in "fc" and known.digits > 1 else _POWERS
    if known.kind in "bui":
        top = min(2**known.digits - 1, 9)
        numbers = tuple(range(1, top + 1)) or (0,)
    if full and known.digits > 1:
        numbers = tuple(_full(dtype, rng) for _ in range(97))
    elements = [
        rng.choice(numbers) if rng.random() < density else type(numbers[0])(0)
        for _ in range(_PERIOD)
    ]
    if width == 2:
        elements = [part for each in elements for part in (each, -each)]
    return (one * len(elements))(*elements)


def _full(dtype: str, rng: random.Random) -> float:
    """Return a number that needs every digit of a dtype, as far as ctypes can hold them."""
    known = DTYPES[dtype]
    digits = min(known.digits, 53 if known.kind in "fc" else 64)
    number = rng.getrandbits(digits) | 1 << (digits - 1) | 1
    if known.kind == "i":
        return number if rng.random() < 0.5 else -number
    # Between 1 and 2, where every dtype of reals has its digits.
    return number if known.kind == "u" else number / 2 ** (digits - 1)


def _repeated(one: Any, pattern: Any, count: int) -> Any:
    """Return memory for `count` numbers, filled with a pattern over and over."""
    # An array of no length has no address that could be shown.
    memory = (one * max(count, 1))()
    view = memoryview(memory).cast("B")
    bytes_ = memoryview(pattern).cast("B")
    for start in range(0, len(view), len(bytes_)):
        view[start : start + len(bytes_)] = bytes_[: len(view) - start]
    return memory


def sample(face: Interop, wanted: Wanted) -> Any:
    """Return a value as wanted.

    Parameters
    ----------
    face : Interop
        Whose formats and conversions to use.
    wanted : Wanted

    Returns
    -------
    object
        A value that is described as having the format, dtype, shape and traits wanted.

    Raises
    ------
    NoSample
        It cannot be made on this machine, or at all.
    """
    one = face._loaded().formats.get(wanted.format)
    _check(one, wanted)
    assert one is not None
    try:
        value = _with_traits(face, one, wanted)
    except (InteropError, ValueError, TypeError, RuntimeError, NotImplementedError) as reason:
        said = str(reason).partition("\n")[0]
        msg = f"{wanted.format} {wanted.dtype} {wanted.shape} could not be made: {said}"
        raise NoSample(msg) from reason
    _compare(face.spec(value), wanted, one)
    return value


def _check(one: Format | None, wanted: Wanted) -> None:
    """Say what stands in the way before anything is made."""
    problem = ""
    if one is None:
        problem = "is not registered"
    elif one.requires and not importable(one.requires):
        problem = f"needs {one.requires}, which is not installed; {one.install}"
    elif wanted.dtype not in one.holds(wanted.device):
        problem = f"does not hold {wanted.dtype} on {wanted.device}"
    elif wanted.device.partition(":")[0] not in one.devices:
        problem = f"does not live on {wanted.device}"
    elif one.ndims is not None and len(wanted.shape) not in one.ndims:
        problem = f"does not have {len(wanted.shape)} axes"
    if problem:
        msg = f"{wanted.format} {problem}"
        raise NoSample(msg)


def _compare(spec: Spec, wanted: Wanted, one: Format) -> None:
    missing = sorted(wanted.traits - spec.traits)
    is_it = (
        spec.format == wanted.format
        and (spec.dtype == wanted.dtype or "dtype" in one.forgets)
        and (spec.shape == wanted.shape or "scalar" in wanted.traits or "shape" in one.forgets)
    )
    if missing or not is_it:
        what = f"lacks {', '.join(missing)}" if missing else "is something else"
        msg = f"what was made for {wanted.format} {wanted.dtype} {wanted.shape} {what}: {spec}"
        raise NoSample(msg)


def _with_traits(face: Interop, one: Format, wanted: Wanted) -> Any:
    if one.protocol:
        return _stranger(face, one, wanted)
    inner = frozenset(t for t in wanted.traits & MEMORY_TRAITS if t not in one.variants)
    composite = one.components is not None and bool(inner)
    value = _plain(face, one, wanted)
    # What every value of the format is needs no variant.
    wanted = wanted._replace(traits=wanted.traits - (face.spec(value).traits - one.variants.keys()))
    if composite:
        value = _with_odd_components(face, one, value, inner)
    return _varied(one, value, wanted.traits - inner if composite else wanted.traits)


def _varied(one: Format, value: Any, traits: frozenset[str]) -> Any:
    """Return a value with traits added, in the order of the format's variants."""
    unknown = sorted(traits - one.variants.keys())
    if unknown:
        msg = f"{one.name} declares no variant that is {unknown[0]!r}"
        raise Declined(msg)
    for trait, variant in one.variants.items():
        if trait in traits:
            value = variant(value)
    return value


def _with_odd_components(face: Interop, one: Format, value: Any, traits: frozenset[str]) -> Any:
    """Return a composite whose first component has some traits of memory."""
    assert one.unpack is not None
    assert one.pack is not None
    components = face._registry.formats[one.components or ""]
    parts = one.unpack(value)
    role = next(iter(one.roles))
    arrays = {**parts.arrays, role: _varied(components, parts.arrays[role], traits)}
    return one.pack(parts._replace(arrays=arrays))


def _plain(face: Interop, one: Format, wanted: Wanted) -> Any:
    """Return a value without any trait."""
    if one.sample is not None:
        dense = wanted._replace(format=_dense_format(face, one, wanted), traits=frozenset())
        return one.sample(sample(face, dense))
    if one.layout == "affine":
        return _quantized(face, one, wanted)
    numbers = Numbers(
        wanted.dtype, wanted.shape, wanted.density, seed=wanted.seed, full=wanted.full
    )
    return face.convert(
        numbers,
        to=one.name,
        dtype=wanted.dtype,
        device=wanted.device,
        copy=True if one.is_dense else None,
    )


def _dense_format(face: Interop, one: Format, wanted: Wanted) -> str:
    """Return the bare dense format of a framework, or the first other that has as many axes.

    Of a framework without any it is that of its components.
    """
    dense = [f for f in face._planner.formats(one.framework) if f.is_dense and f.sample is None]
    dense.sort(key=lambda f: f.name != one.framework)
    fits = (f.name for f in dense if f.ndims is None or len(wanted.shape) in f.ndims)
    return next(fits, one.components or one.framework)


def _quantized(face: Interop, one: Format, wanted: Wanted) -> Any:
    """Return a quantized array with one scale, put together from components."""
    assert one.pack is not None
    base = wanted._replace(format=one.components or "", traits=frozenset(), density=1.0)
    base = base._replace(full=False)  # a zero point is no number of many digits
    arrays = {
        "codes": sample(face, base._replace(dtype=wanted.code_dtype)),
        "scale": sample(face, base._replace(dtype="float64", shape=())),
        "zero_point": sample(face, base._replace(dtype="int64", shape=())),
    }
    facts = {"axis": None, "block_size": None, "dtype": wanted.dtype}
    return one.pack(Parts(wanted.shape, arrays, facts))


def _stranger(face: Interop, one: Format, wanted: Wanted) -> Any:
    """Return a value that shows nothing but one protocol."""
    if one.types:  # the protocol is that of types of Python's own
        return _varied(one, _buffer(one, wanted), wanted.traits)
    own = wanted.traits & one.variants.keys()
    # What is imported already serves as well, and to import the others can take a minute.
    # Those that are no help to others have costs of their own.
    others = sorted(
        face._registry.formats.values(),
        key=lambda other: (other.requires not in sys.modules, not other.passable),
    )
    for other in others:
        carries = wanted.dtype in other.speaks.get(one.name, other.dtypes)
        if other.protocol or not carries or not other.is_dense or other.forgets:
            continue
        try:
            inner = wanted._replace(format=other.name, traits=wanted.traits - own)
            value = sample(face, inner)
        except NoSample:
            continue
        if hasattr(value, one.protocol or ""):
            stranger = _varied(one, _Hidden.behind(one.protocol or "", value), own)
            # Frameworks differ in what they say of their memory.
            if face.spec(stranger).traits == wanted.traits:
                return stranger
    msg = f"no format holds {wanted.dtype} and offers {one.protocol} with these traits"
    raise Declined(msg)


class _Hidden:
    """A value of which only a protocol shows."""

    def __init__(self, value: Any) -> None:
        self._value = value

    @staticmethod
    def behind(protocol: str, value: Any) -> Any:
        """Return an object with only the attributes of `protocol`."""
        names = (protocol, f"{protocol.rstrip('_')}_device__")
        shown = {name: _forwarded(name) for name in names if hasattr(value, name)}
        return type("Stranger", (_Hidden,), shown)(value)


def _forwarded(name: str) -> Any:
    return property(lambda self: getattr(self._value, name))


_BUFFER_CODES = {
    "bool": "?",
    "float32": "f",
    "float64": "d",
    **dict(zip((f"int{8 << n}" for n in range(4)), "bhiq", strict=True)),
    **dict(zip((f"uint{8 << n}" for n in range(4)), "BHIQ", strict=True)),
}


def _buffer(one: Format, wanted: Wanted) -> Any:
    """Return a view of memory of Python's own."""
    code = _BUFFER_CODES.get(wanted.dtype)
    if code is None or 0 in wanted.shape:
        msg = f"Python has no {one.name} of {wanted.dtype} {wanted.shape}"
        raise Declined(msg)
    kind = DTYPES[wanted.dtype].kind
    ctype = getattr(ctypes, f"c_{wanted.dtype}") if kind in "iu" else _REAL_CTYPES[wanted.dtype]
    pattern = _pattern(wanted.dtype, wanted.density, ctype, seed=wanted.seed, full=wanted.full)
    memory = _repeated(ctype, pattern, prod(wanted.shape))
    view: Any = memoryview(bytearray(memoryview(memory).cast("B")[: _nbytes(wanted)]))
    return view.cast(code, wanted.shape)


def _nbytes(wanted: Wanted) -> int:
    return prod(wanted.shape) * itemsize(wanted.dtype)


_REAL_CTYPES = {"bool": ctypes.c_bool, "float32": ctypes.c_float, "float64": ctypes.c_double}
