"""Trials: the values on which a conversion is tried, worked out from its declaration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from itertools import cycle, islice, pairwise
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from interop._calibration.sample import (
    REFUSALS,
    NoSample,
    Recipe,
    axes_of,
    first_line,
    fitted,
    preferred,
    recipe_for,
    sample,
)
from interop._model.dtype import ZEROLESS, bit_carrier, preserves
from interop._model.effect import LOSING
from interop._model.format import Format
from interop._model.spec import MEMORY_TRAITS, shape_text
from interop._model.typing import Value
from interop._planning.conversion import ResolvedConversion
from interop._registry.installed import not_installed
from interop._registry.registry import Registry

from ._truth import numbers

if TYPE_CHECKING:
    from interop._api.interop import Interop

    from ._truth import Array

__all__ = [
    "SPECIAL",
    "SPECIAL_DTYPES",
    "Trial",
    "foreign_traits",
    "main_trial",
    "obstacle",
    "odd_numbers",
    "possible",
    "sampled",
    "trials",
    "value_of",
]

#: The first that a conversion takes is that of all trials of dtypes, traits and layouts.
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
#: Layouts that no trait describes: only views have them.
_ODD = ("offset", "odd strides along an axis of length 1")
#: Numbers that samples do not hold: NaN, infinities, -0.0, the smallest and the largest.
SPECIAL = "special numbers"
SPECIAL_DTYPES = frozenset({"float16", "float32", "float64", "complex64", "complex128"})
#: More elements than a function looks at one by one.
_LARGE = (400, 400)


#: For each instance, why no sample of a format can be made on a device, by both their names, and
#: "" once one was made.
_unavailable: WeakKeyDictionary[Interop, dict[tuple[str, str], str]] = WeakKeyDictionary()


class Trial(NamedTuple):
    """One value on which a conversion is tried, and what it is asked to change.

    Parameters
    ----------
    recipe : Recipe
        What to sample.
    dtype, device : str or None
        What to change to.
    odd : str
        A layout that no trait describes.
    """

    recipe: Recipe
    dtype: str | None = None
    device: str | None = None
    odd: str = ""

    def __str__(self) -> str:
        recipe = self.recipe
        notes = sorted(recipe.traits) + ([self.odd] if self.odd else [])
        text = f"{recipe.format} {recipe.dtype} {shape_text(recipe.shape)}"
        text += f" on {recipe.device}" if recipe.device != "cpu" else ""
        text += f" ({', '.join(notes)})" if notes else ""
        return text + (f" to {self.dtype}" if self.dtype else "")


def obstacle(conversion: ResolvedConversion) -> str:
    """Say why a conversion cannot be tried here, as far as declarations tell; "" if nothing."""
    problem = not_installed(conversion.source) or not_installed(conversion.target)
    if not problem and not conversion.dtypes:
        return f"{conversion.source.name} offers it no dtype"
    return problem


def trials(registry: Registry, conversion: ResolvedConversion) -> Iterator[Trial]:
    """Yield the values to try a conversion on: shapes, then traits and layouts, then dtypes."""
    bases, pairs, shapes = list(_bases(conversion)), _pairs(conversion), _shapes(conversion)
    source = conversion.source
    has_odd_views = source.is_dense and not (conversion.requires or source.protocol)
    for base in bases if pairs else ():
        yield from (_with(base, pairs[0], shape) for shape in shapes)
        main = _with(base, pairs[0], shapes[0])
        for traits in _trait_sets(registry, conversion):
            yield main._replace(recipe=main.recipe._replace(traits=main.recipe.traits | traits))
        if has_odd_views and main.recipe.device == "cpu":
            yield from (main._replace(odd=odd) for odd in _ODD)
        yield from _extremes(conversion, main)
    for base in bases[:1]:
        yield from (_with(base, pair, shapes[0]) for pair in pairs[1:])


def _extremes(conversion: ResolvedConversion, main: Trial) -> Iterator[Trial]:
    """Yield a value of special numbers, and one of many, between dense formats on the host."""
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


def _bases(conversion: ResolvedConversion) -> Iterator[Trial]:
    """Yield a trial for each device to start from and each to change to; dtypes come later."""
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
    # Where a cast may lose digits, numbers of few digits survive it.
    full = target is None or preserves(dtype, target)
    recipe = trial.recipe._replace(dtype=dtype, shape=shape, full=full)
    if dtype in ZEROLESS:
        recipe = recipe._replace(density=1.0)
    return trial._replace(recipe=recipe, dtype=target)


def _pairs(conversion: ResolvedConversion) -> list[tuple[str, str | None]]:
    """Return pairs of dtypes in which every dtype that it takes, or can give, occurs."""
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
    # One place further on, so that most are pairs of different dtypes.
    others = targets[1:] + targets[:1]
    return list(dict.fromkeys(islice(zip(cycle(sources), cycle(others), strict=False), count)))


def _shapes(conversion: ResolvedConversion) -> list[tuple[int, ...]]:
    return possible(_SHAPES, axes_of(conversion))


def possible(shapes: Iterable[tuple[int, ...]], ndims: Set[int] | None) -> list[tuple[int, ...]]:
    """Return those of some shapes that have one of some numbers of axes, or else one that has.

    No two of its axes are equally long, so that none is taken for another.
    """
    if ndims is None:
        return list(shapes)
    fitting = [shape for shape in shapes if len(shape) in ndims]
    return fitting or [tuple(range(2, 2 + min(ndims, default=0)))]


def _trait_sets(registry: Registry, conversion: ResolvedConversion) -> list[frozenset[str]]:
    """Return the traits of which samples can be made and which it takes, one by one and paired."""
    variants = _variants(registry, conversion.source)
    possible = conversion.takes - conversion.requires
    traits = [trait for trait in variants if trait in possible]
    sets = [frozenset({trait}) for trait in traits]
    memory = [trait for trait in traits if trait in MEMORY_TRAITS]
    return sets + [frozenset(pair) for pair in pairwise(memory)]


def _variants(registry: Registry, format_: Format) -> list[str]:
    """Return the traits of which samples can be made, by the format or by its components."""
    variants = list(format_.samples.variants)
    components = registry.formats.get(format_.component_format)
    if components is not None:
        inner = MEMORY_TRAITS - set(variants)
        variants += [trait for trait in components.samples.variants if trait in inner]
    return variants


def foreign_traits(registry: Registry, conversion: ResolvedConversion) -> list[str]:
    """Return the traits of which samples can be made and which it does not take."""
    variants = _variants(registry, conversion.source)
    return [trait for trait in variants if trait not in conversion.takes]


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
        return interop.convert(odd, name, forbid=LOSING)
    except REFUSALS as error:
        raise NoSample(first_line(error)) from error


def sampled(interop: Interop, recipe: Recipe) -> Value:
    """Return a sample.

    Raises
    ------
    NoSample
        It cannot be made here, for whatever reason.
    """
    place = (recipe.format, recipe.device)
    reasons = _unavailable.setdefault(interop, {})
    if reasons.get(place):
        raise NoSample(reasons[place])
    try:
        value = sample(interop, recipe)
    except NoSample as reason:
        if recipe.device != "cpu":
            # To find out that there is no such device takes long, and is the same every time.
            reasons.setdefault(place, str(reason))
        raise
    # Foreign code of all kinds makes samples, and is not to blame if it cannot.
    except Exception as error:
        msg = f"{recipe.format} {recipe.dtype} {recipe.shape} could not be made: {error}"
        raise NoSample(first_line(msg)) from error
    reasons[place] = ""  # the device is there, whatever else cannot be made on it
    return value


def odd_numbers(trial: Trial) -> Array:
    """Return the numbers of an odd trial, as an array that is laid out in its way."""
    array = numbers(trial.recipe)
    if trial.odd == SPECIAL:
        return _special(array)
    return _offset(array) if trial.odd == _ODD[0] else _oddly_strided(array)


def _special(array: Array) -> Array:
    """Replace numbers by those that functions which compute with them tend to lose."""
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

    # Many elements further on, so that it is aligned as the whole memory is.
    memory = np.zeros(64 + array.size, array.dtype)
    view = memory[64:].reshape(array.shape)
    view[...] = array
    return view


def _oddly_strided(array: Array) -> Array:
    import numpy as np

    strides = (7919 * array.itemsize, *array.strides)
    return np.lib.stride_tricks.as_strided(array, (1, *array.shape), strides)
