"""Samples: real values of any registered format, made from declarations alone.

`convert` makes a sample from numbers in memory of Python's own. If it cannot, the sample is packed
from components, or made by its format's `samples.make`; `samples.variants` add traits. A sample of
a protocol is a value of another format that shows nothing but this protocol.
"""

from __future__ import annotations

import random
import sys
from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from interop._api.inspection import Inspection
from interop._model.device import device_type, matches
from interop._model.dtype import DTYPES
from interop._model.format import Format, Parts
from interop._model.spec import MEMORY_TRAITS, Spec, in_any_order
from interop._model.typing import OrderLike, Value
from interop._planning.conversion import ResolvedConversion
from interop._planning.question import Question
from interop._planning.step import Step
from interop._recognition.installed import not_installed
from interop._request.request import Request
from interop.errors import Declined, InteropError

if TYPE_CHECKING:
    from interop._api.interop import Interop

#: The errors by which foreign functions refuse a value.
REFUSALS = (
    InteropError, ArithmeticError, AttributeError, BufferError, ImportError, LookupError,
    MemoryError, OSError, RuntimeError, TypeError, ValueError,
)  # fmt: skip

#: Common dtypes, the commonest first.
_COMMON = (
    "float32", "float64", "int64", "complex64", "bfloat16", "float16", "int32", "uint8", "uint16",
    "bool",
)  # fmt: skip

#: Numbers that most dtypes hold. The first are powers of two, which all dtypes hold.
_REALS = (0.5, 1.0, 2.0, 4.0, -0.5, -1.0, -2.0, 1.5, -1.5, 3.0)
_POWERS = _REALS[:4]
#: Elements before the pattern repeats: a prime, so that no row is like the one above.
_PERIOD = 9973

#: By kind of dtype, the type code of :mod:`array`; floats and parts of complex numbers have ``d``.
_CODES = {"b": "b", "i": "q", "u": "Q"}
#: The dtypes of the buffer protocol, with its codes.
_BUFFER_CODES = {
    "bool": "?",
    "float32": "f",
    "float64": "d",
    **{f"int{8 << n}": code for n, code in enumerate("bhiq")},
    **{f"uint{8 << n}": code for n, code in enumerate("BHIQ")},
}


class NoSample(Exception):  # noqa: N818 - it says why there is none
    """There is no way to make such a value here; the text says why."""


class Recipe(NamedTuple):
    """The properties of a sample.

    Parameters
    ----------
    format, dtype : str
    shape : tuple of int
    traits : frozenset of str
        The traits it must have. It may have others that follow from them.
    device : str
    density : float
        Share of the elements that are not zero.
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
    seed: int = 0
    full: bool = False


class WrongSample(NoSample):
    """A sample is described as something else than its recipe.

    Parameters
    ----------
    recipe : Recipe
        The properties that were asked for.
    spec : Spec
        The description of the sample.
    field : str
        The field in which they differ: ``"traits"``, ``"format"``, ``"dtype"`` or ``"shape"``.
    """

    def __init__(self, recipe: Recipe, spec: Spec, field: str) -> None:
        missing = ", ".join(sorted(recipe.traits - spec.traits))
        fault = f"lacks {missing}" if missing else "is something else"
        super().__init__(
            f"what was made for {recipe.format} {recipe.dtype} {recipe.shape} {fault}: {spec}"
        )
        self.recipe = recipe
        self.spec = spec
        self.field = field


def first_line(text: object) -> str:
    """Return the first line of a text, and the first item of the list that it announces."""
    line, _, rest = str(text).strip().partition("\n")
    item = rest.partition("\n")[0].strip().removeprefix("- ")
    return f"{line} {item}" if line.endswith(":") and item else line


def preferred(dtypes: Iterable[str]) -> list[str]:
    """Return dtypes in order, the common ones first."""
    ranks = {dtype: rank for rank, dtype in enumerate(_COMMON)}
    return sorted(dtypes, key=lambda dtype: (ranks.get(dtype, len(ranks)), dtype))


# ---------------------------------------------------------------------- what a conversion takes


def recipe_for(conversion: ResolvedConversion, density: float) -> Recipe:
    """Return a recipe for a value that a conversion takes, without dtype and shape.

    The density holds if the source or the target is sparse.
    """
    is_sparse = conversion.source.is_sparse or conversion.target.is_sparse
    traits = frozenset(conversion.requires)
    return Recipe(conversion.source.name, "", (), traits, density=density if is_sparse else 1.0)


def axes_of(conversion: ResolvedConversion) -> frozenset[int] | None:
    """Return the numbers of axes that a conversion and both its formats allow; None if any.

    Samples of a format have these numbers of axes. Values of more may exist.
    """
    sets = (conversion.ndims, conversion.source.ndims)
    limits = [frozenset(ndims) for ndims in sets if ndims is not None]
    return frozenset.intersection(*limits) if limits else None


def fitted(shape: tuple[int, ...], conversion: ResolvedConversion) -> tuple[int, ...]:
    """Return a shape of as many elements with the nearest number of axes that a conversion takes.

    A conversion that takes only arrays without axes gets one element, and so does one that takes
    none of the numbers of axes that samples have.
    """
    count, ndims = len(shape), axes_of(conversion)
    if ndims is None or count in ndims:
        return shape
    # If two are equally near, take more axes: more can go wrong with them.
    axes = min(ndims, key=lambda axes: (abs(axes - count), -axes), default=0)
    if axes > count:
        return shape + (1,) * (axes - count)
    return (prod(shape[: count - axes + 1]), *shape[count - axes + 1 :]) if axes else ()


def step_on(
    conversion: ResolvedConversion,
    spec: Spec,
    dtype: str | None,
    device: str | None,
    order: OrderLike = None,
) -> Step | None:
    """Return a conversion as a step on a value, or None if it does not take the value.

    The step changes the dtype, the device and the order to those that are given.
    """
    if conversion.bits == "restore":  # the value does not tell whose bits it carries
        spec = spec._replace(dtype=dtype, carrier=spec.dtype)
    if not conversion.takes_value(spec):
        return None
    dtypes, devices = (dtype,) if dtype else (), (device,) if device else ()
    order = order or ("F" if conversion.orders == {"F"} else None)
    request = Request((conversion.target.name,), dtype or spec.dtype, order=order)
    question = Question(request, {}, dtypes, devices, {}, lambda *_: None)
    for step in conversion.steps(spec, question):
        is_there = device is None or matches(step.after.device, device_type(device))
        lies = "F" if "fortran" in step.after.traits else "C"
        if is_there and dtype in {None, step.after.dtype} and order in {None, lies}:
            return step
    return None


# ---------------------------------------------------------------------- numbers


class Numbers:
    """The numbers of a sample, in memory of Python's own; the array interface shows them.

    They are stored in the widest dtype of their kind.
    """

    def __init__(self, recipe: Recipe) -> None:
        self._kind = DTYPES[recipe.dtype].kind
        self._shape = recipe.shape
        self._memory = _memory(recipe, _CODES.get(self._kind, "d"))

    @property
    def __array_interface__(self) -> dict[str, object]:
        """The address and the layout of the numbers."""
        width = 16 if self._kind == "c" else 8
        return {
            "version": 3,
            "shape": self._shape,
            "typestr": "|b1" if self._kind == "b" else f"={self._kind}{width}",
            "data": (self._memory.buffer_info()[0], False),
        }

    def values(self) -> Sequence[complex]:
        """Return the numbers in a row, as Python's own; an empty array has one."""
        numbers = self._memory.tolist()
        if self._kind == "c":
            return [complex(*parts) for parts in zip(numbers[::2], numbers[1::2], strict=True)]
        return numbers


def _memory(recipe: Recipe, code: str) -> array[float]:
    """Return memory for the numbers of a recipe, filled with a repeated pattern."""
    pattern = _pattern(recipe.dtype, recipe.density, recipe.seed, recipe.full, code)
    parts = 2 if DTYPES[recipe.dtype].kind == "c" else 1
    # An array without elements would have no address to show.
    count = max(prod(recipe.shape), 1) * parts
    memory = pattern * (count // len(pattern))
    memory.extend(pattern[: count % len(pattern)])
    return memory


@lru_cache(maxsize=128)
def _pattern(dtype: str, density: float, seed: int, full: bool, code: str) -> array[float]:
    """Return the numbers that are repeated; complex ones as their parts in turn."""
    kind, _, digits, *_ = DTYPES[dtype]
    rng = random.Random(seed)
    numbers: Sequence[float] = _REALS if kind in "fc" and digits > 1 else _POWERS
    if kind in "bui":
        numbers = range(1, min(2**digits, 10)) or (0,)
    if full and digits > 1:
        numbers = [_full(kind, digits, rng) for _ in range(97)]
    elements = rng.choices(numbers, k=_PERIOD)
    if density < 1:
        elements = [number if rng.random() < density else 0 for number in elements]
    if kind == "c":
        elements = [part for real in elements for part in (real, -real)]
    return array(code, elements)


def _full(kind: str, digits: int, rng: random.Random) -> float:
    """Return a number that needs every digit of a dtype, or as many as can be stored."""
    digits = min(digits, 53 if kind in "fc" else 64)
    number = rng.getrandbits(digits) | 1 << (digits - 1) | 1
    if kind == "i":
        return number if rng.random() < 0.5 else -number
    # Every real dtype has all its digits between 1 and 2.
    return number if kind == "u" else number / 2 ** (digits - 1)


# ---------------------------------------------------------------------- values


def sample(interop: Interop, recipe: Recipe) -> Value:
    """Return a value whose spec agrees with a recipe.

    Raises
    ------
    NoSample
        No such value can be made here.
    """
    format_ = _format(interop, recipe)
    is_foreign = format_.protocol is not None and format_.samples.make is None
    make = _foreign_value if is_foreign else _value
    try:
        value = make(interop, format_, recipe)
    except (InteropError, ValueError, TypeError, RuntimeError, BufferError) as error:
        msg = (
            f"{recipe.format} {recipe.dtype} {recipe.shape} could not be made: {first_line(error)}"
        )
        raise NoSample(msg) from error
    compare(interop.spec(value), recipe, format_)
    return value


def _format(interop: Interop, recipe: Recipe) -> Format:
    """Return the format of a recipe, unless its declaration rules out the sample."""
    name, dtype, device = recipe.format, recipe.dtype, recipe.device
    format_ = Inspection(interop).registry.formats.get(name)
    if format_ is None:
        problem = f"{name} is not registered"
    elif missing := not_installed(format_):
        problem = missing
    elif dtype not in format_.holds(device):
        problem = f"{name} does not hold {dtype} on {device}"
    elif device_type(device) not in format_.devices:
        problem = f"{name} cannot be on {device}"
    elif format_.ndims is not None and len(recipe.shape) not in format_.ndims:
        problem = f"{name} does not have {len(recipe.shape)} axes"
    else:
        return format_
    raise NoSample(problem)


def compare(spec: Spec, recipe: Recipe, format_: Format) -> None:
    """Refuse a value that differs from its recipe."""
    if not recipe.traits <= spec.traits:
        raise WrongSample(recipe, spec, "traits")
    # A scalar object has no axes, and some formats do not keep dtype or shape.
    free = format_.not_recoverable | ({"shape"} if "scalar" in recipe.traits else set())
    for field in ("format", "dtype", "shape"):
        if field not in free and getattr(spec, field) != getattr(recipe, field):
            raise WrongSample(recipe, spec, field)


def _value(interop: Interop, format_: Format, recipe: Recipe) -> Value:
    """Return a value; a component gets the traits of memory for which there is no variant."""
    variants, components = format_.samples.variants.keys(), format_.components
    value = _plain(interop, format_, recipe)
    # Traits that every value of the format has need no variant.
    traits = recipe.traits - (interop.spec(value).traits - variants)
    odd = (recipe.traits & MEMORY_TRAITS) - variants
    if components is not None and odd:
        parts, role = components.unpack(value), next(iter(components.roles))
        dense = Inspection(interop).registry.formats[components.format]
        arrays = {**parts.arrays, role: varied(dense, parts.arrays[role], odd)}
        value, traits = components.pack(parts._replace(arrays=arrays)), traits - odd
    return varied(format_, value, traits)


def _plain(interop: Interop, format_: Format, recipe: Recipe) -> Value:
    """Return a value without any trait."""
    if format_.samples.make is not None:
        try:
            return _made(interop, format_, recipe)
        except Declined:
            if format_.components is None:
                raise  # what has components can be packed
    if format_.layout == "affine":
        return _quantized(interop, format_, recipe)
    return interop.convert(
        Numbers(recipe),
        to=format_.name,
        dtype=recipe.dtype,
        device=recipe.device,
        copy=True if format_.is_dense else None,
    )


def _made(interop: Interop, format_: Format, recipe: Recipe) -> Value:
    """Return a value that the plugin makes of a dense one, moved to the device of the recipe."""
    assert format_.samples.make is not None
    name = source_of(interop, format_, len(recipe.shape))
    source = Inspection(interop).registry.formats.get(name)
    device = recipe.device
    if source is not None and device_type(device) not in source.devices:
        device = source.devices[0]
    dense = sample(interop, recipe._replace(format=name, traits=frozenset(), device=device))
    value = format_.samples.make(dense)
    if matches(interop.spec(value).device, recipe.device):
        return value
    return interop.convert(value, to=format_.name, device=recipe.device)


def source_of(interop: Interop, format_: Format, axes: int) -> str:
    """Return the format from whose samples those of a format are made; refuse a circle."""
    formats, names = Inspection(interop).registry.formats, [format_.name]
    current: Format | None = format_
    while current is not None and current.samples.make is not None:
        name = current.samples.source or _dense_format(interop, current, axes)
        if name in names:
            msg = f"samples.source goes in a circle: {' → '.join([*names, name])}"
            raise Declined(msg)
        names.append(name)
        current = formats.get(name)
    return names[1]


def _dense_format(interop: Interop, format_: Format, axes: int) -> str:
    """Return the dense format of a framework, or another with as many axes.

    A framework without dense formats gets the format of its components. The dense format itself
    gets the first format to which it converts.
    """
    registry, framework = Inspection(interop).registry, format_.framework
    formats = (other for other in registry.formats.values() if other.framework == framework)
    dense = [other for other in formats if other.is_dense and other.samples.make is None]
    dense.sort(key=lambda other: other.name != framework)
    names = (other.name for other in dense if other.ndims is None or axes in other.ndims)
    name = next(names, format_.component_format or framework)
    if name != format_.name:
        return name
    conversions = (declared.conversion for declared in registry.conversions)
    name = next((c.target for c in conversions if c.source == name != c.target), "")
    if not name:
        msg = f"samples.source of {format_.name} does not say what make takes"
        raise Declined(msg)
    return name


def _quantized(interop: Interop, format_: Format, recipe: Recipe) -> Value:
    """Return a quantized array with one scale, packed from components."""
    assert format_.components is not None
    # A zero point has few digits.
    dense = recipe._replace(
        format=format_.component_format, traits=frozenset(), density=1.0, full=False
    )
    arrays = {
        "codes": sample(interop, dense._replace(dtype="uint8")),
        "scale": sample(interop, dense._replace(dtype="float64", shape=())),
        "zero_point": sample(interop, dense._replace(dtype="int64", shape=())),
    }
    facts = {"axis": None, "block_size": None, "dtype": recipe.dtype}
    return format_.components.pack(Parts(recipe.shape, arrays, facts))


def varied(format_: Format, value: Value, traits: frozenset[str]) -> Value:
    """Return a value with traits added, in the order of the format's variants."""
    variants = format_.samples.variants
    unknown = sorted(traits - variants.keys())
    if unknown:
        msg = f"{format_.name} declares no variant that is {unknown[0]!r}"
        raise Declined(msg)
    for trait, variant in variants.items():
        if trait in traits:
            value = variant(value)
    return value


# ---------------------------------------------------------------------- values of a protocol


def _foreign_value(interop: Interop, format_: Format, recipe: Recipe) -> Value:
    """Return a value that shows nothing but one protocol."""
    if format_.protocol == "__buffer__":  # which Python's own types have
        return varied(format_, _buffer(recipe), recipe.traits)
    protocol = format_.protocol or ""
    variants = recipe.traits & format_.samples.variants.keys()
    # Frameworks that are imported already come first, because an import can take a minute. Formats
    # that no route passes through come last, because their exports have costs of their own.
    others = sorted(
        Inspection(interop).registry.formats.values(),
        key=lambda other: (other.requires not in sys.modules, not other.hub),
    )
    for other in others:
        exports = recipe.dtype in other.exports.get(format_.name, other.dtypes)
        if other.protocol or not exports or not other.is_dense or other.not_recoverable:
            continue
        try:
            inner = recipe._replace(format=other.name, traits=recipe.traits - variants)
            value = sample(interop, inner)
        except NoSample:
            continue
        if hasattr(value, protocol):
            foreign = varied(format_, _behind(protocol, value), variants)
            # Frameworks describe the same memory differently.
            traits = interop.spec(foreign).traits
            if recipe.traits <= traits <= in_any_order(recipe.traits):
                return foreign
    msg = f"no format holds {recipe.dtype} and offers {protocol} with these traits"
    raise Declined(msg)


class _Hidden:
    """A wrapper that hides its value."""

    def __init__(self, value: Value) -> None:
        self._value = value


def _behind(protocol: str, value: Value) -> object:
    """Return an object that shows the attributes of a protocol, and those alone."""
    names = (protocol, f"{protocol.rstrip('_')}_device__")
    shown = {name: property(attrgetter(f"_value.{name}")) for name in names if hasattr(value, name)}
    return type("ForeignValue", (_Hidden,), shown)(value)


def _buffer(recipe: Recipe) -> memoryview:
    code = _BUFFER_CODES.get(recipe.dtype)
    if code is None or 0 in recipe.shape:
        msg = f"Python has no {recipe.format} of {recipe.dtype} {recipe.shape}"
        raise Declined(msg)
    memory = _memory(recipe, "b" if code == "?" else code)
    view: Value = memoryview(bytearray(memory.tobytes()))
    return view.cast(code, recipe.shape)  # type: ignore[no-any-return]
