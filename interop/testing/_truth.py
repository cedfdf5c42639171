"""The truth: the numbers that a value was made from, and ways to read it without its conversions.

A conversion must not be judged by itself. Numbers come from memory of Python's own. Results are
read by their protocols, their memory or their components. A result that has none of these is read
by other conversions, and findings then name those as well.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from interop._api.inspection import Inspection
from interop._model.conversion import Conversion
from interop._model.dtype import DTYPES, itemsize
from interop._model.effect import EFFECTS
from interop._model.format import Format, Parts
from interop._model.spec import MEMORY_TRAITS, Spec
from interop._model.typing import Value
from interop._planning.step import Step

from ._sample import REFUSALS, Numbers, Recipe

if TYPE_CHECKING:
    import numpy as np

    from interop._api.interop import Interop

    Array: TypeAlias = np.ndarray[Any, Any]

#: The formats of IEEE 754 that NumPy has, and pairs of them.
IEEE = frozenset({"float16", "float32", "float64", "complex64", "complex128"})
#: Traits of memory whose bytes do not lie in order.
_DISORDER = frozenset({"noncontiguous", "negative_strides", "broadcast", "byteswapped"})
#: Traits that do not keep the components from telling the numbers; duplicates are summed.
_PLAIN = frozenset({"matrix", "subclass", "grad", "uncoalesced", "nested"})

#: How many bytes around reported addresses are searched for the numbers.
_BESIDE = 8


class Reading(NamedTuple):
    """The numbers of a value, and how they were read.

    Parameters
    ----------
    array : numpy.ndarray
        A copy.
    by : tuple of str
        The conversions that were needed, if any.
    effects : frozenset of str
        The effects of these conversions.
    """

    array: Array
    by: tuple[str, ...] = ()
    effects: frozenset[str] = frozenset()


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the dtype object of a name."""
    import ml_dtypes
    import numpy as np

    # NumPy has no complex numbers of half precision.
    return np.dtype(getattr(ml_dtypes, "complex64" if name == "complex32" else name, name))


def numbers(recipe: Recipe) -> Array:
    """Return the numbers from which a plain sample is made."""
    import numpy as np

    return np.array(np.asarray(Numbers(recipe)).astype(dtype_of(recipe.dtype)))


def hub(interop: Interop) -> str:
    """Return the format of NumPy's arrays, into which everything is read."""
    import numpy as np

    return interop.spec(np.empty(0)).format


def same(array: Array, truth: Array, where: Array | None = None) -> bool:
    """Return whether two arrays hold the same numbers; NaN equals NaN."""
    import numpy as np

    if array.shape != truth.shape:
        return False
    if where is not None:
        array, truth = array[where], truth[where]
    if array.dtype == truth.dtype and array.tobytes() == truth.tobytes():
        return True
    with np.errstate(all="ignore"):
        equal = array == truth
        if {array.dtype.kind, truth.dtype.kind} & set("fcV"):
            equal = equal | ((array != array) & (truth != truth))  # noqa: PLR0124 - NaN
    return bool(np.all(equal))


def expected(truth: Array, step: Step) -> tuple[Array, Array | None]:
    """Return the numbers that a step should return, and which of them are certain."""
    import numpy as np

    before, after = step.before, step.after
    if after.carrier != before.carrier:
        return truth.view(dtype_of(after.element or "")), None
    if after.dtype is None or after.dtype == before.dtype or after.dtype not in DTYPES:
        return truth, None
    with np.errstate(all="ignore"):
        cast = _cast(truth, dtype_of(after.dtype))
        certain = _cast(cast, truth.dtype) == truth
        certain |= _is_rounded_alike(truth, cast, after.dtype)
    return cast, certain


def _is_rounded_alike(truth: Array, cast: Array, dtype: str) -> Array:
    """Tell which numbers every cast rounds as NumPy does.

    These are real numbers to integers that can hold them, cut off; anything to truth values; and
    between IEEE's formats, to the nearest, the even one of two.
    """
    import numpy as np

    kind, digits = DTYPES[dtype].kind, DTYPES[dtype].digits
    if kind == "b":
        return np.isfinite(truth)
    if kind in "iu" and truth.dtype.kind == "f":
        bound = 2.0 ** min(digits, _digits(truth.dtype))
        return np.isfinite(truth) & (truth < bound) & (truth > (-bound if kind == "i" else -1))
    if {truth.dtype.name, dtype} <= IEEE and truth.dtype.kind == cast.dtype.kind:
        return np.isfinite(cast)
    return np.zeros(truth.shape, bool)


def _digits(dtype: np.dtype[Any]) -> int:
    """Return the digits of a real dtype; NumPy does not call long double as interop does."""
    import numpy as np

    known = DTYPES.get(dtype.name)
    return np.finfo(dtype).nmant + 1 if known is None else known.digits


def _cast(array: Array, dtype: np.dtype[Any]) -> Array:
    try:
        return array.astype(dtype)
    except TypeError:  # there is no cast between some narrow dtypes
        return array.astype("float64").astype(dtype)


class Truth:
    """Reads values of one instance's formats.

    Parameters
    ----------
    interop : Interop
    reading : callable, optional
        ``reading(readers)``, a context in which other conversions read a value.
    """

    def __init__(
        self,
        interop: Interop,
        reading: Callable[[str], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._interop = interop
        self._reading = reading
        self._registry = Inspection(interop).registry
        self.hub = hub(interop)
        self._misplaced: dict[str, bool] = {}

    def read(self, value: Value, spec: Spec | None = None) -> Reading | None:
        """Return the numbers of a value, or None if nothing can read it."""
        array = self.witness(value, spec or self._interop.spec(value))
        return Reading(array) if array is not None else self._by_conversion(value)

    def witness(self, value: Value, spec: Spec) -> Array | None:
        """Return the numbers of a value if they can be read without a conversion, or None."""
        format_ = self._registry.formats[spec.format]
        if format_.name == self.hub:
            return _plain(value)
        if format_.not_recoverable:
            return _of_python(value)
        if not format_.is_dense:
            return self._by_components(format_, value, spec)
        array = _by_protocol(value, spec)
        if array is not None or self.is_misplaced(format_, value, spec):
            return array
        return _by_memory(format_, value, spec)

    def is_misplaced(self, format_: Format, value: Value, spec: Spec) -> bool:
        """Return whether a format reports addresses that are a few bytes off.

        The first value whose numbers can be read in another way decides.
        """
        if format_.name not in self._misplaced:
            bytes_ = _by_memory(format_, value, spec)
            if bytes_ is None or not bytes_.any():
                return False
            (address, length), *_ = format_.memory(value) if format_.memory else ()
            around = ctypes.string_at(address - _BESIDE, length + 2 * _BESIDE)
            readings = [array.tobytes() for array in self.other_readings(value, format_)]
            self._misplaced[format_.name] = bytes_.tobytes() not in readings and any(
                len(reading) == length and reading in around for reading in readings
            )
        return self._misplaced[format_.name]

    def indirect(self, value: Value, spec: Spec) -> Callable[[], Array | None] | None:
        """Return a function that reads a value without asking for its address, or None."""
        if _by_protocol(value, spec) is not None:
            return lambda: _by_protocol(value, spec)
        if self._by_conversion(value) is None:
            return None

        def read() -> Array | None:
            reading = self._by_conversion(value)
            return None if reading is None else reading.array

        return read

    def other_readings(self, value: Value, format_: Format) -> Iterator[Array]:
        """Yield the numbers of a value in all ways that do not depend on its description."""
        import numpy as np

        readers: list[Callable[[Value], object]]
        readers = [np.asarray] if hasattr(type(value), "__array__") else []
        conversions = (declared.conversion for declared in self._registry.conversions)
        readers += [c.function for c in conversions if is_plain(c, format_.name, self.hub)]
        for reader in readers:
            try:
                array = _plain(reader(value))
            except REFUSALS:
                continue
            yield array

    def _by_conversion(self, value: Value) -> Reading | None:
        try:
            route = self._interop.plan(value, self.hub, allow=frozenset(EFFECTS))
            labels = tuple(step.label for step in route.steps)
            with self._reading(" → ".join(labels)):
                array = _plain(route(value))
        except REFUSALS:
            return None
        return Reading(array, labels, route.effects)

    def _by_components(self, format_: Format, value: Value, spec: Spec) -> Array | None:
        """Compute a composite value from its components, by the definition of its layout."""
        components = format_.components
        if components is None or components.layout not in LAYOUTS:
            return None
        if not is_defined(spec):
            return None
        try:
            parts = components.unpack(value)
            arrays = {
                role: self.witness(array, self._interop.spec(array))
                for role, array in parts.arrays.items()
                if array is not None
            }
            if any(array is None for array in arrays.values()):
                return None
            return LAYOUTS[components.layout](parts._replace(arrays=arrays))
        except REFUSALS:
            return None


def is_defined(spec: Spec) -> bool:
    """Return whether the definition of its layout tells the numbers of a composite value."""
    return not spec.traits - MEMORY_TRAITS - _PLAIN


def is_plain(conversion: Conversion, source: str, target: str) -> bool:
    """Return whether a conversion turns plain values of one format into another."""
    ends = (conversion.source, conversion.target)
    is_odd = conversion.requires or conversion.changes or conversion.result.bits
    return ends == (source, target) and not is_odd


def _plain(value: Value) -> Array:
    """Return a copy of an array as a plain one, without a mask."""
    import numpy as np

    return np.array(value)


def _of_python(value: Value) -> Array | None:
    import numpy as np

    if isinstance(value, (bool, int, float, complex, list)):
        array = np.array(value)
        return array if array.dtype.kind in "biufc" else None
    return None


def _by_protocol(value: Value, spec: Spec) -> Array | None:
    """Read a value by a protocol of its own."""
    import numpy as np

    if spec.traits - MEMORY_TRAITS:  # protocols may misrepresent odd values
        return None
    type_ = type(value)
    try:
        if hasattr(type_, "__array_interface__") or hasattr(type_, "__array__"):
            # Some frameworks return a view even when asked for a copy.
            array = np.array(np.asarray(value))
        elif hasattr(type_, "__dlpack__"):
            array = np.array(np.from_dlpack(value))
        elif isinstance(value, memoryview):
            array = np.array(value)
        else:
            return None
    except REFUSALS:
        return None
    # A protocol may have carried the bits of a dtype that it cannot name.
    fits = array.shape == spec.shape and spec.element in DTYPES
    return array if fits and array.dtype == dtype_of(spec.element or "") else None


def _by_memory(format_: Format, value: Value, spec: Spec) -> Array | None:
    """Read the bytes at the address that a value's format reports."""
    import numpy as np

    if spec.device != "cpu" or spec.traits - MEMORY_TRAITS or spec.traits & _DISORDER:
        return None
    if format_.memory is None or spec.element not in DTYPES or spec.element == "complex32":
        return None
    extents, dtype = format_.memory(value), dtype_of(spec.element or "")
    nbytes = prod(spec.shape) * itemsize(spec.element)
    if not nbytes:
        return np.empty(spec.shape, dtype)
    if len(extents) != 1 or extents[0][1] != nbytes or not extents[0][0]:
        return None
    return np.frombuffer(ctypes.string_at(*extents[0]), dtype).reshape(spec.shape).copy()


# ---------------------------------------------------------------------- layouts, by definition


def _coo(parts: Parts) -> Array:
    import numpy as np

    arrays = parts.arrays
    places = tuple(arrays[f"indices_{axis}"] for axis in range(len(parts.shape)))
    dense = np.zeros(parts.shape, arrays["values"].dtype)
    for place, number in zip(zip(*places, strict=True), arrays["values"], strict=True):
        dense[place] += number
    return dense


def _rows(parts: Parts) -> Array:
    """Return the dense form of compressed rows, of elements or of blocks."""
    import numpy as np

    values, pointers = parts.arrays["values"], parts.arrays["pointers"]
    height, width = values.shape[1:] if values.ndim > 1 else (1, 1)
    dense = np.zeros(parts.shape, values.dtype)
    rows = np.atleast_2d(dense)  # an array of one axis is one row
    for row, (low, high) in enumerate(pairwise(pointers)):
        for k in range(int(low), int(high)):
            y, x = row * height, int(parts.arrays["indices"][k]) * width
            rows[y : y + height, x : x + width] += values[k]
    return dense


def _columns(parts: Parts) -> Array:
    values = parts.arrays["values"]
    blocks = values.swapaxes(1, 2) if values.ndim > 1 else values
    arrays = {**parts.arrays, "values": blocks}
    return _rows(parts._replace(shape=parts.shape[::-1], arrays=arrays)).T


def _ragged(parts: Parts) -> Array:
    import numpy as np

    dense = np.zeros(parts.shape, parts.arrays["values"].dtype)
    for row, (low, high) in enumerate(pairwise(map(int, parts.arrays["offsets"]))):
        dense[row, : high - low] = parts.arrays["values"][low:high]
    return dense


def _affine(parts: Parts) -> Array | None:
    arrays, facts = parts.arrays, parts.facts
    if facts.get("axis") is not None or facts.get("block_size") is not None:
        return None
    zero = arrays.get("zero_point")
    codes = arrays["codes"].astype("float64") - (0.0 if zero is None else float(zero.item()))
    real: Array = codes * float(arrays["scale"].item())
    return real.astype(dtype_of(facts.get("dtype") or "float32"))


LAYOUTS: dict[str, Callable[[Parts], Array | None]] = {
    "coo": _coo,
    "csr": _rows,
    "bsr": _rows,
    "csc": _columns,
    "bsc": _columns,
    "ragged": _ragged,
    "affine": _affine,
}
