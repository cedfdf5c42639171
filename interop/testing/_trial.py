"""Trials: the values on which a conversion is tried, worked out from its declaration."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import cycle, islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from interop._calibration.sample import NoSample, Wanted, axes_of, sample
from interop._model.device import device_type, matches
from interop._model.dtype import DTYPES, bit_carrier, preserves
from interop._model.format import Format
from interop._model.spec import MEMORY_TRAITS, Spec
from interop._planning.step import ResolvedConversion, Step, Wants
from interop._registry.installed import importable
from interop._registry.registry import Registry

from ._truth import REFUSALS, numbers

if TYPE_CHECKING:
    from interop._api.interop import Interop

__all__ = [
    "Trial",
    "foreign_traits",
    "made",
    "main_trial",
    "obstacle",
    "sampled",
    "step_of",
    "trials",
]

#: Dtypes that people have, the first being those tried with every layout and trait.
_PREFERRED = ("float32", "float64", "int64", "complex64", "bfloat16", "uint8", "uint16", "bool")
#: The first that a conversion takes is that of all other trials, too.
_SHAPES: tuple[tuple[int, ...], ...] = (
    (3, 4),
    (2, 3, 4),
    (5,),
    (),
    (0,),
    (1,),
    (1, 4),
    (5, 0, 2),
    (4, 6),
)
#: Layouts that no trait tells of: they are seen in views only.
_ODD = ("offset", "odd strides along an axis of length 1")


#: For each instance, formats of which no sample can be made on some device, and why.
_barren: WeakKeyDictionary[Interop, dict[tuple[str, str], str]] = WeakKeyDictionary()


class Trial(NamedTuple):
    """One value on which a conversion is tried, and what it is asked to make of it.

    Parameters
    ----------
    wanted : Wanted
        What to sample.
    to : str or None
        The dtype to change to.
    device : str or None
        The device to change to.
    odd : str
        A layout of which no trait tells.
    """

    wanted: Wanted
    to: str | None = None
    device: str | None = None
    odd: str = ""

    def __str__(self) -> str:
        wanted = self.wanted
        shape = "x".join(map(str, wanted.shape)) or "0-d"
        notes = sorted(wanted.traits) + ([self.odd] if self.odd else [])
        text = f"{wanted.format} {wanted.dtype} {shape}"
        text += f" on {wanted.device}" if wanted.device != "cpu" else ""
        text += f" ({', '.join(notes)})" if notes else ""
        return text + (f" to {self.to}" if self.to else "")


def obstacle(registry: Registry, edge: ResolvedConversion) -> str:
    """Say why a conversion cannot be tried here, as far as declarations tell; "" if nothing."""
    for one in (edge.source, edge.target):
        if one.requires and not importable(one.requires):
            return f"{one.requires} is not installed"
    if not edge.dtypes:
        return f"{edge.source.name} offers it no dtype"
    return ""


def trials(registry: Registry, edge: ResolvedConversion) -> Iterator[Trial]:
    """Yield the values to try a conversion on: shapes, then traits and layouts, then dtypes."""
    pairs = _pairs(edge)
    for device, to_device in _devices(edge):
        base = Trial(_wanted(edge, device), None, to_device)
        for pair in pairs[:1]:
            yield from (_with(base, pair, shape) for shape in _shapes(edge))
            for traits in _trait_sets(registry, edge):
                one = _with(base, pair, _shape(edge))
                yield one._replace(wanted=one.wanted._replace(traits=edge.requires | traits))
            if (
                edge.source.is_dense
                and device == "cpu"
                and not (edge.requires or edge.source.protocol)
            ):
                one = _with(base, pair, _shape(edge))
                yield from (one._replace(odd=odd) for odd in _ODD)
    for device, to_device in islice(_devices(edge), 1):
        base = Trial(_wanted(edge, device), None, to_device)
        yield from (_with(base, pair, _shape(edge)) for pair in pairs[1:])


def main_trial(edge: ResolvedConversion) -> Trial | None:
    """Return the plainest value that a conversion takes, or None if it takes nothing."""
    for pair in _pairs(edge)[:1]:
        for device, to_device in _devices(edge):
            return _with(Trial(_wanted(edge, device), None, to_device), pair, _shape(edge))
    return None


def _wanted(edge: ResolvedConversion, device: str) -> Wanted:
    sparse = edge.source.index_dtypes or edge.target.index_dtypes
    return Wanted(edge.source.name, "", (), edge.requires, device, density=0.5 if sparse else 1.0)


def _with(trial: Trial, pair: tuple[str, str | None], shape: tuple[int, ...]) -> Trial:
    dtype, to = pair
    # Where a cast may lose digits, numbers of few digits survive it.
    full = to is None or preserves(dtype, to)
    wanted = trial.wanted._replace(dtype=dtype, shape=shape, full=full)
    if not _has_zero(dtype):
        wanted = wanted._replace(density=1.0)
    return trial._replace(wanted=wanted, to=to)


def _has_zero(dtype: str) -> bool:
    """Tell whether a dtype holds zero; what has no sign and one digit holds powers of two."""
    known = DTYPES[dtype]
    return known.kind != "f" or known.digits > 1


def _devices(edge: ResolvedConversion) -> Iterator[tuple[str, str | None]]:
    """Yield the devices to start from, each with one to change to."""
    takes = [d for d in edge.source.devices if edge.devices is None or d in edge.devices]
    if "device" not in edge.conversion.changes:
        yield from ((device, None) for device in takes if device in edge.target.devices)
        return
    targets = edge.conversion.to_devices or edge.target.devices
    for device in takes:
        yield from ((device, other) for other in sorted(targets) if other != device)


def _pairs(edge: ResolvedConversion) -> list[tuple[str, str | None]]:
    """Return pairs of dtypes in which every dtype that it takes, or can give, occurs."""
    one, target = edge.conversion, edge.target.dtypes
    sources = _in_order(edge.dtypes)
    if one.bits == "pack":
        return [(d, None) for d in sources if bit_carrier(d) in target]
    if one.bits == "unpack":
        reals = _in_order(target)
        return [(c, d) for d in reals if (c := bit_carrier(d)) and c in edge.dtypes]
    if "dtype" not in one.changes:
        return [(d, None) for d in sources if d in target]
    targets = _in_order(one.to_dtypes or target)
    if not sources or not targets:
        return []
    count = max(len(sources), len(targets))
    others = targets[1:] + targets[:1]
    pairs = zip(islice(cycle(sources), count), islice(cycle(others), count), strict=True)
    return list(dict.fromkeys(pairs))


def _in_order(dtypes: Iterable[str]) -> list[str]:
    rank = {dtype: place for place, dtype in enumerate(_PREFERRED)}
    return sorted(dtypes, key=lambda dtype: (rank.get(dtype, len(rank)), dtype))


def _shapes(edge: ResolvedConversion) -> list[tuple[int, ...]]:
    ndims = axes_of(edge)
    shapes: list[tuple[int, ...]] = [
        shape for shape in _SHAPES if ndims is None or len(shape) in ndims
    ]
    return shapes or [(2,) * min(ndims or {2})]


def _shape(edge: ResolvedConversion) -> tuple[int, ...]:
    return _shapes(edge)[0]


def _trait_sets(registry: Registry, edge: ResolvedConversion) -> list[frozenset[str]]:
    """Return the traits of which samples can be made and which it takes, one by one and paired."""
    known = _variants(registry, edge.source)
    own = [t for t in known if t in edge.takes and t not in edge.requires]
    sets = [frozenset({trait}) for trait in own]
    memory = [t for t in own if t in MEMORY_TRAITS]
    return sets + [frozenset({a, b}) for a, b in pairwise(memory)]


def _variants(registry: Registry, one: Format) -> list[str]:
    known = list(one.variants)
    components = registry.formats.get(one.components or "")
    if components is not None:
        known += [t for t in components.variants if t in MEMORY_TRAITS and t not in known]
    return known


def foreign_traits(registry: Registry, edge: ResolvedConversion) -> list[str]:
    """Return the traits of which samples can be made and which it does not take."""
    return [t for t in _variants(registry, edge.source) if t not in edge.takes]


def made(face: Interop, trial: Trial) -> Any:
    """Return the value of a trial.

    Raises
    ------
    NoSample
        It cannot be made here.
    """
    if not trial.odd:
        return sampled(face, trial.wanted)
    array = numbers(trial.wanted)
    odd = _offset(array) if trial.odd == _ODD[0] else _odd_strides(array)
    try:
        if not face.plan(odd, trial.wanted.format).zero_copy:
            msg = f"{trial.wanted.format} shares no memory that others have laid out"
            raise NoSample(msg)
        return face.convert(odd, trial.wanted.format)
    except REFUSALS as reason:
        raise NoSample(str(reason).partition("\n")[0]) from reason


def sampled(face: Interop, wanted: Wanted) -> Any:
    """Return a sample.

    Raises
    ------
    NoSample
        It cannot be made here, for whatever reason.
    """
    place = (wanted.format, wanted.device)
    known = _barren.setdefault(face, {})
    if place in known:
        raise NoSample(known[place])
    try:
        return sample(face, wanted)
    except NoSample as reason:
        if wanted.device != "cpu":
            # To find out that there is no such device takes long, and is the same every time.
            known[place] = str(reason)
        raise
    # Foreign code of all kinds makes samples, and none is to blame for not being able to.
    except Exception as error:
        msg = f"{wanted.format} {wanted.dtype} {wanted.shape} could not be made: {error}"
        raise NoSample(msg.partition("\n")[0]) from error


def _offset(array: Any) -> Any:
    import numpy as np

    # Many elements further on, so that it is aligned as the whole memory is.
    whole = np.zeros(64 + array.size, array.dtype)
    part = whole[64:].reshape(array.shape)
    part[...] = array
    return part


def _odd_strides(array: Any) -> Any:
    import numpy as np

    strides = (7919 * array.itemsize, *array.strides)
    return np.lib.stride_tricks.as_strided(array, (1, *array.shape), strides)


def step_of(edge: ResolvedConversion, trial: Trial, spec: Spec) -> Step | None:
    """Return the conversion as a step on a value of some spec, or None if it does not take it."""
    if edge.bits == "unpack":  # the value does not know whose bits it carries
        spec = spec._replace(dtype=trial.to, carrier=spec.dtype)
    if not edge.takes_value(spec):
        return None
    wants = Wants((trial.to,) if trial.to else (), (trial.device,) if trial.device else (), True)
    for step in edge.steps(spec, wants):
        fits = trial.device is None or matches(step.after.device, device_type(trial.device))
        if fits and (trial.to is None or step.after.dtype == trial.to):
            return step
    return None
