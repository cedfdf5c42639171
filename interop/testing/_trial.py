"""Trials: the values on which a conversion is tried, derived from its declaration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from itertools import cycle, islice, pairwise
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from interop._api.inspection import Inspection
from interop._model.device import device_type
from interop._model.dtype import bit_carrier, preserves
from interop._model.effect import LOSSES
from interop._model.format import Format
from interop._model.spec import MEMORY_TRAITS, NONCONTIGUOUS, shape_text
from interop._model.typing import OrderLike, Value
from interop._planning.conversion import ResolvedConversion
from interop._recognition.installed import not_installed
from interop._registry.registry import Registry

from ._sample import (
    REFUSALS,
    NoSample,
    Recipe,
    axes_of,
    compare,
    first_line,
    fitted,
    preferred,
    recipe_for,
    sample,
    varied,
)
from ._truth import IEEE, numbers

if TYPE_CHECKING:
    from interop._api.interop import Interop

    from ._truth import Array

#: Trials of dtypes, traits and layouts have the first of these shapes that a conversion takes.
_SHAPES: tuple[tuple[int, ...], ...] = (
    (3, 4),
    (2, 3, 4),
    (2, 1, 3, 2),
    (5,),
    (),
    (0,),
    (1,),
    (1, 4),
    (5, 0, 2),
    (4, 6),
)
#: Layouts that no trait describes, and that only views have.
_ODD = ("offset", "odd strides along an axis of length 1")
#: A trial of numbers that samples do not hold: NaN, infinities, -0.0, the smallest, the largest.
SPECIAL = "special numbers"
SPECIAL_DTYPES = frozenset({"float16", "float32", "float64", "complex64", "complex128"})
#: Casts that tell how numbers are rounded, and whether they go by way of a narrower dtype.
_TELLING = (
    *(("float64", "float32"), ("float32", "int32"), ("float64", "int64"), ("int64", "int64")),
    *(("float64", "bool"), ("uint64", "uint64")),
)
#: A shape of more elements than functions treat one by one.
_LARGE = (400, 400)


#: For each instance, by format and device, why no sample can be made there; "" once one was made.
_unavailable: WeakKeyDictionary[Interop, dict[tuple[str, str], str]] = WeakKeyDictionary()


class Trial(NamedTuple):
    """One value on which a conversion is tried, and the changes that are asked for.

    Parameters
    ----------
    recipe : Recipe
        The recipe of the sample.
    dtype, device : str or None
        The dtype and device to change to.
    odd : str
        A layout that no trait describes.
    order : str or None
        The order to lay elements out in; None: the one in which they lie, if the conversion can.
    """

    recipe: Recipe
    dtype: str | None = None
    device: str | None = None
    odd: str = ""
    order: OrderLike = None

    def __str__(self) -> str:
        recipe = self.recipe
        notes = sorted(recipe.traits) + ([self.odd] if self.odd else [])
        notes += ["nothing but zeros"] if not recipe.density else []
        text = f"{recipe.format} {recipe.dtype} {shape_text(recipe.shape)}"
        text += f" on {recipe.device}" if recipe.device != "cpu" else ""
        text += f" ({', '.join(notes)})" if notes else ""
        text += f" to {self.dtype}" if self.dtype else ""
        return text + (f" in {self.order} order" if self.order else "")


def obstacle(conversion: ResolvedConversion) -> str:
    """Say why the declarations rule out a trial here; "" if they do not."""
    problem = not_installed(conversion.source) or not_installed(conversion.target)
    if not problem and not conversion.dtypes:
        return f"{conversion.source.name} offers it no dtype"
    return problem


def trials(registry: Registry, conversion: ResolvedConversion) -> Iterator[Trial]:
    """Yield the values to try a conversion on: shapes, then traits and layouts, then dtypes."""
    bases, pairs, shapes = _bases(conversion), _pairs(conversion), _shapes(conversion)
    source = conversion.source
    has_odd_views = source.is_dense and not (conversion.requires or source.protocol)
    for base in bases if pairs else ():
        yield from (_with(base, pairs[0], shape) for shape in shapes)
        main = _with(base, pairs[0], shapes[0])
        for traits in _trait_sets(registry, conversion):
            yield main._replace(recipe=main.recipe._replace(traits=main.recipe.traits | traits))
        yield from _turned(registry, conversion, main)
        if has_odd_views and main.recipe.device == "cpu":
            yield from (main._replace(odd=odd) for odd in _ODD)
        if main.recipe.density < 1:  # a value in which nothing is stored
            yield main._replace(recipe=main.recipe._replace(density=0.0))
        yield from _extremes(conversion, main)
    for base in bases[:1]:
        yield from (_with(base, pair, shapes[0]) for pair in pairs[1:])
    for base in _indexed_bases(conversion) if pairs else ():
        yield _with(base, pairs[0], shapes[0])


def _turned(registry: Registry, conversion: ResolvedConversion, main: Trial) -> Iterator[Trial]:
    """Yield trials of each order that a conversion can be asked for, from C order and another."""
    strided = [traits for traits in _trait_sets(registry, conversion) if traits == NONCONTIGUOUS]
    for order in ("C", "F"):
        if order in conversion.orders:
            for traits in (frozenset[str](), *strided):
                recipe = main.recipe._replace(traits=main.recipe.traits | traits)
                yield main._replace(recipe=recipe, order=order)


def _extremes(conversion: ResolvedConversion, main: Trial) -> Iterator[Trial]:
    """Yield a trial of special numbers and one of many, between dense formats on the host."""
    ends = conversion.source, conversion.target
    is_plain = all(end.is_dense and not end.not_recoverable for end in ends)
    if not is_plain or main.recipe.device != "cpu" or conversion.requires:
        return
    recipe = main.recipe
    if recipe.dtype in SPECIAL_DTYPES and (
        main.dtype is None or preserves(recipe.dtype, main.dtype)
    ):
        yield main._replace(odd=SPECIAL)
    yield main._replace(recipe=recipe._replace(shape=fitted(_LARGE, conversion)))


def main_trial(conversion: ResolvedConversion) -> Trial | None:
    """Return the plainest value that a conversion takes, or None if it takes nothing."""
    for pair in _pairs(conversion)[:1]:
        for base in _bases(conversion):
            return _with(base, pair, _shapes(conversion)[0])
    return None


def _bases(conversion: ResolvedConversion) -> list[Trial]:
    """Return a trial without dtypes for each type of source device and each of target device.

    What moves only within one type of devices moves to the second of these.
    """
    return list(_moves(conversion)) or list(_indexed_bases(conversion))


def _indexed_bases(conversion: ResolvedConversion) -> Iterator[Trial]:
    """Yield a trial without dtypes for each move to the second device of a type."""
    targets = conversion.conversion.result.devices or conversion.target.devices
    devices = [device for device in sorted(targets) if device_type(device) != "cpu"]
    if "device" not in conversion.conversion.changes:
        return
    for device in conversion.source.devices:
        if conversion.devices is None or device in conversion.devices:
            first = device if device_type(device) == "cpu" else f"{device}:0"
            recipe = recipe_for(conversion, density=0.5)._replace(device=first)
            yield from (Trial(recipe, None, f"{other}:1") for other in devices)


def _moves(conversion: ResolvedConversion) -> Iterator[Trial]:
    devices, source, target = conversion.devices, conversion.source, conversion.target
    base = Trial(recipe_for(conversion, density=0.5))
    targets = sorted(conversion.conversion.result.devices or target.devices)
    for device in source.devices:
        recipe = base.recipe._replace(device=device)
        if devices is not None and device not in devices:
            continue
        if "device" in conversion.conversion.changes:
            yield from (Trial(recipe, None, other) for other in targets if other != device)
        elif device in target.devices:
            yield Trial(recipe)


def _with(trial: Trial, pair: tuple[str, str | None], shape: tuple[int, ...]) -> Trial:
    dtype, target = pair
    # Numbers of few digits survive a cast that may lose some. IEEE's formats are rounded alike.
    full = target is None or preserves(dtype, target) or {dtype, target} <= IEEE
    recipe = trial.recipe._replace(dtype=dtype, shape=shape, full=full)
    if dtype == "float8_e8m0fnu":  # which has no zero
        recipe = recipe._replace(density=1.0)
    return trial._replace(recipe=recipe, dtype=target)


def _pairs(conversion: ResolvedConversion) -> list[tuple[str, str | None]]:
    """Return pairs of dtypes that cover all that a conversion takes and all that it returns."""
    result, possible = conversion.conversion.result, conversion.target.dtypes
    sources = preferred(conversion.dtypes)
    if result.bits == "carry":
        return [(dtype, None) for dtype in sources if bit_carrier(dtype) in possible]
    if result.bits == "restore":
        pairs = ((bit_carrier(dtype), dtype) for dtype in preferred(possible))
        return [(carrier, d) for carrier, d in pairs if carrier and carrier in conversion.dtypes]
    if "dtype" not in conversion.conversion.changes:
        return [(dtype, None) for dtype in sources if dtype in possible]
    targets = preferred(result.dtypes or possible)
    if not sources or not targets:
        return []
    count = max(len(sources), len(targets))
    # Rotated by one, so that most pairs are of different dtypes.
    others = targets[1:] + targets[:1]
    cycled = islice(zip(cycle(sources), cycle(others), strict=False), count)
    telling = [pair for pair in _TELLING if pair[0] in sources and pair[1] in targets]
    return list(dict.fromkeys([*cycled, *telling]))


def _shapes(conversion: ResolvedConversion) -> list[tuple[int, ...]]:
    return possible(_SHAPES, axes_of(conversion))


def possible(shapes: Iterable[tuple[int, ...]], ndims: Set[int] | None) -> list[tuple[int, ...]]:
    """Return the shapes with a permitted number of axes, or else a new one.

    No two axes of the new one are equally long, so that none can be taken for another.
    """
    if ndims is None:
        return list(shapes)
    fitting = [shape for shape in shapes if len(shape) in ndims]
    return fitting or [tuple(range(2, 2 + min(ndims, default=0)))]


def _trait_sets(registry: Registry, conversion: ResolvedConversion) -> list[frozenset[str]]:
    """Return the traits that a conversion takes and samples can have, one by one and paired."""
    variants = variants_of(registry, conversion.source)
    possible = conversion.takes - conversion.requires
    traits = [trait for trait in variants if trait in possible]
    sets = [frozenset({trait}) for trait in traits]
    memory = [trait for trait in traits if trait in MEMORY_TRAITS]
    return sets + [frozenset(pair) for pair in pairwise(memory)]


def variants_of(registry: Registry, format_: Format) -> list[str]:
    """Return the traits that samples can have, by the format or by its components."""
    variants = [*handed_over(registry, format_), *format_.samples.variants]
    components = registry.formats.get(format_.component_format)
    if components is not None:
        inner = MEMORY_TRAITS - set(variants)
        variants += [trait for trait in components.samples.variants if trait in inner]
    return variants


def handed_over(registry: Registry, format_: Format) -> list[str]:
    """Return the traits of memory that a format without such variants takes over from NumPy.

    Its values show by a protocol what has become of them, or by a conversion back.
    """
    import numpy as np

    source = registry.recognition.recognise(np.ndarray)
    if format_.protocol or format_ is source or not format_.is_dense:
        return []
    traits = (format_.carries & MEMORY_TRAITS) - format_.samples.variants.keys()
    names = {source.name, *source.exports}
    conversions = [declared.conversion for declared in registry.conversions if traits]
    ways = {(c.source, c.target): c.takes for c in conversions if not c.requires}
    takes = [
        taken for (start, end), taken in ways.items() if end == format_.name and start in names
    ]
    if not (format_.exports or format_.wrapper):
        traits &= ways.get((format_.name, source.name), frozenset())
    return [trait for trait in source.samples.variants if trait in traits.intersection(*takes)]


def _taken_over(interop: Interop, recipe: Recipe) -> Value | None:
    """Return a sample over memory that a NumPy array has laid out; None if that is plain."""
    import numpy as np

    registry = Inspection(interop).registry
    format_ = registry.formats.get(recipe.format)
    traits = recipe.traits & MEMORY_TRAITS
    if format_ is None or not traits or not traits <= {*handed_over(registry, format_)}:
        return None
    source = registry.recognition.recognise(np.ndarray).name
    array = sample(interop, recipe._replace(format=source, traits=traits))
    route = interop.plan(array, recipe.format)
    if not route.zero_copy:
        msg = f"{recipe.format} does not share memory that another format has laid out"
        raise NoSample(msg)
    value = varied(format_, route(array), recipe.traits - traits)
    compare(interop.spec(value), recipe, format_)
    return value


def value_of(interop: Interop, trial: Trial) -> Value:
    """Return the value of a trial.

    Raises
    ------
    NoSample
        It cannot be made here.
    """
    name = trial.recipe.format
    if not trial.odd:
        return sampled(interop, trial.recipe)
    odd = odd_numbers(trial)
    try:
        if trial.odd in _ODD and not interop.plan(odd, name).zero_copy:
            msg = f"{name} does not share memory that another format has laid out"
            raise NoSample(msg)
        return interop.convert(odd, name, forbid=LOSSES)
    except REFUSALS as error:
        raise NoSample(first_line(error)) from error


def sampled(interop: Interop, recipe: Recipe) -> Value:
    """Return a sample; remember on which devices none can be made.

    Raises
    ------
    NoSample
        It cannot be made here, for whatever reason.
    """
    where = (recipe.format, recipe.device)
    reasons = _unavailable.setdefault(interop, {})
    if reasons.get(where):
        raise NoSample(reasons[where])
    try:
        value = _taken_over(interop, recipe)
        value = sample(interop, recipe) if value is None else value
    except NoSample as reason:
        if recipe.device != "cpu":
            # Finding out that a device is missing takes long, and gives the same answer every time.
            reasons.setdefault(where, str(reason))
        raise
    # Samples are made by foreign code, whose errors are not what is being tested.
    except Exception as error:
        msg = f"{recipe.format} {recipe.dtype} {recipe.shape} could not be made: {error}"
        raise NoSample(first_line(msg)) from error
    reasons[where] = ""  # the device is there, even if other samples cannot be made on it
    return value


def odd_numbers(trial: Trial) -> Array:
    """Return the numbers of an odd trial, in its layout."""
    array = numbers(trial.recipe)
    if trial.odd == SPECIAL:
        return _special(array)
    return _offset(array) if trial.odd == _ODD[0] else _oddly_strided(array)


def _special(array: Array) -> Array:
    """Replace numbers by special ones, which careless functions lose."""
    import numpy as np

    parts = array.reshape(-1).view(array.real.dtype)
    facts = np.finfo(parts.dtype)
    quiet = np.array([np.nan], parts.dtype).view(f"u{parts.itemsize}") | 5  # NaN with a payload
    numbers = [-0.0, np.inf, -np.inf, facts.smallest_subnormal, -facts.max, 6e4, 3e6]
    with np.errstate(over="ignore"):
        specials = np.concatenate([quiet.view(parts.dtype), np.array(numbers, parts.dtype)])
    parts[:] = np.resize(specials, parts.shape)
    return array


def _offset(array: Array) -> Array:
    import numpy as np

    # An offset of 64 elements keeps the alignment of the whole memory.
    memory = np.zeros(64 + array.size, array.dtype)
    view = memory[64:].reshape(array.shape)
    view[...] = array
    return view


def _oddly_strided(array: Array) -> Array:
    import numpy as np

    strides = (7919 * array.itemsize, *array.strides)
    return np.lib.stride_tricks.as_strided(array, (1, *array.shape), strides)
