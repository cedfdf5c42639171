"""Formats: the promises of a format about its values, tried on samples."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import product
from math import prod
from timeit import Timer
from typing import TYPE_CHECKING, Any

from interop._model.conversion import Conversion
from interop._model.dtype import DTYPES, itemsize
from interop._model.effect import COPYING, EFFECTS
from interop._model.format import Format, itself
from interop._model.spec import (
    LABELLED,
    MEMORY_TRAITS,
    UNWRITABLE,
    Spec,
    in_any_order,
    shape_text,
    spec_class,
)
from interop._model.text import counted_axes, listed
from interop._model.typing import Value
from interop._planning.plan import StepDeclined
from interop._recognition.installed import not_installed
from interop._registry.registry import Registry
from interop.errors import (
    InteropError,
    PluginError,
    RefusedError,
    UnknownValueError,
)

from ._case import FormatCase
from ._components import answers
from ._notes import Notes
from ._sample import (
    REFUSALS,
    NoSample,
    Recipe,
    WrongSample,
    first_line,
    source_of,
)
from ._subject import Bench, Promise
from ._table import FORMAT, Untried, check, judge, untried
from ._traits import problem_of_traits, silence
from ._trial import handed_over, variants_of
from ._truth import is_plain, numbers, same

if TYPE_CHECKING:
    from ._truth import Array

#: The shape of a value of 2 MB or more, whose rows are few, since some formats have one for each.
_LARGE = (4, 150_000)
#: How many times as long as describing a NumPy array it may take to describe a value, and how
#: many times as long as a small value a large one may take. The least time of several calls counts.
_SLOWER, _GROWTH, _CALLS = 500, 20, 20
#: Dtypes of less than a byte, which some frameworks pack.
_NARROW = re.compile(r"^(?:u?int|float)([1-7])(?:_|$)")
#: The types of what a wrapper may keep beside its array.
_PLAIN_TYPES = (bool, int, float, complex, str, type(None))
#: Traits of memory that others must know of, who write there or take strides.
_TELLING = ("readonly", "negative_strides", "broadcast", "noncontiguous")
#: Errors that mean a mistake in a function, not a refusal.
_MISTAKES = (AttributeError, LookupError, NameError, TypeError)
#: Traits that a value with a fast key may have, beside those of all plain ones.
_KEYED = frozenset({"grad", "noncontiguous", "fortran", "negative_strides", "weak"})
#: Variants that change the numbers of the value.
_OTHER_NUMBERS = frozenset({"broadcast", "scalar", "zero_tensor", "meta", "masked", "nested"})


def _is_described(format_: Format, registry: Registry) -> bool:
    return format_.describe is not None or format_.wrapper is not None


def try_format(bench: Bench, promise: Promise, notes: Notes) -> None:
    """Try everything that one format promises, and note what becomes of it."""
    format_ = promise.format
    assert format_ is not None
    if problem := problem_of_traits(bench.registry, format_):
        notes.failed("extent", problem)
    if problem := not_installed(format_):
        notes.skipped(problem)
    else:
        judge(FORMAT, FormatCase(bench, format_, notes), notes, promise.name)


@check(FORMAT, "specs match the values: format, dtype, shape, device and bytes", _is_described)
def describe(case: FormatCase) -> Iterator[str]:
    import numpy as np

    for value, truth, dtype, maker in _made(case):
        yield _problem_of_description(case, value, truth, dtype, maker)
    yield from _describe_shared(case)
    failures, describe = dict[int, NoSample](), f"describe of format {case.name}"
    axes: set[int] = set()
    for shape in case.shapes():
        # Every dtype is described in the first shape, and one dtype in the others.
        for dtype in case.dtypes()[: 1 if case.tried else None]:
            recipe = case.recipe(shape)._replace(dtype=dtype)
            try:
                value = case.sample(recipe)
            except NoSample as reason:
                yield _problem_of_making(case, reason)
                if len(shape) not in failures or _mistake(reason):
                    failures[len(shape)] = reason
                continue
            axes.add(len(shape))
            spec = case.interop.spec(value)
            case.tried |= {*spec.traits, spec.dtype or ""}
            yield _problem_of_bytes(case, spec)
            problem = f"takes more than {_SLOWER} times as long as that of numpy"
            is_slow = _pace(case, value, np.empty((3, 4))) > _SLOWER
            yield f"{describe} {problem}" * is_slow
    yield from _describe_large(case)
    if case.format.samples.make:
        for count in failures.keys() - axes:
            yield _problem_of_axes(case, count, failures[count])


def _problem_of_axes(case: FormatCase, axes: int, reason: NoSample) -> str:
    """Say that no sample has a number of axes that the format declares."""
    mistake, source = _mistake(reason), source_of(case.interop, case.format, axes)
    if not case.tried:  # what is not installed, or another device, may be the reason
        return f"samples.make fails on a value of {source}: {mistake}" * bool(mistake)
    if not reason.__cause__ or isinstance(reason.__cause__, InteropError):
        return ""
    return (
        f"samples.make fails on a value of {source} of {counted_axes(axes)}, which ndims of "
        f"{case.name} does not leave out: {first_line(reason.__cause__)}"
    )


def _describe_large(case: FormatCase) -> Iterator[str]:
    """Judge time and memory of describing a large array, which must not depend on its size."""
    is_array = case.format.is_dense and not case.format.not_recoverable
    # Tables, of two axes, are described column by column.
    if is_array and (case.format.ndims is None or {2, 3} <= case.format.ndims):
        with suppress(NoSample):
            small, large = (case.sample(case.recipe(s)) for s in ((3, 4), _LARGE))
            describe = f"describe of format {case.name}"
            # Its memory comes first: how long that takes depends on the machine.
            loads = _allocated(case, large) > 0.5 * prod(_LARGE)  # half a byte an element
            problem = f"{describe} reads the numbers of a large value into memory"
            yield problem * loads
            is_slow = _pace(case, large, small) > _GROWTH
            problem = f"{describe} takes more than {_GROWTH} times as long for a large value"
            yield f"{problem} as for a small one" * is_slow


def _problem_of_making(case: FormatCase, reason: NoSample) -> str:
    """Return why a sample could not be made, which may be the fault of `describe`."""
    start = f"describe of format {case.name!r}"
    if start in str(reason):
        return start + str(reason).partition(start)[2]
    if wrong := _contradicted(case, reason):
        maker = "samples.make" if case.format.samples.make else "what makes a sample"
        return _contradiction(maker, wrong)
    return Untried(reason)


def _contradicted(case: FormatCase, reason: NoSample) -> WrongSample | None:
    """Return the reason if a sample of this format is described as something else."""
    if isinstance(reason, WrongSample) and reason.recipe.format == case.name:
        return reason
    return None


def _pace(case: FormatCase, value: Value, reference: Value) -> float:
    """Return how many times as long as a reference it takes to describe a value.

    The two are described in turn, and the least time of each counts, because a busy machine
    can only add to it.
    """
    values = (value, reference)
    timers = [Timer(partial(case.interop.spec, described)) for described in values]
    rounds = [[timer.timeit(1) for timer in timers] for _ in range(_CALLS)]
    return min(own for own, _ in rounds) / min(other for _, other in rounds)


def _allocated(case: FormatCase, value: Value) -> int:
    """Return how many bytes Python and NumPy allocate to describe a value."""
    tracemalloc.start()
    try:
        case.interop.spec(value)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _problem_of_bytes(case: FormatCase, spec: Spec) -> str:
    format_, element = case.format, spec.element
    if not format_.is_dense or format_.not_recoverable or element not in DTYPES:
        return ""
    outward = (declared.conversion for declared in case.registry.conversions)
    if any(way.source == case.name and "dequantize" in way.effects for way in outward):
        return ""  # its bytes are those of codes and scales
    nbytes = prod(spec.shape) * itemsize(element)
    narrow = _NARROW.search(element or "")
    packed = nbytes if narrow is None else -(-prod(spec.shape) * int(narrow[1]) // 8)
    if packed <= spec.nbytes <= nbytes:
        return ""
    return f"describe of format {case.name} says {spec.nbytes} bytes of {spec}, not {nbytes}"


def _made(case: FormatCase) -> Iterator[tuple[Value, Array, str, str]]:
    """Yield what conversions from NumPy make: values, with their numbers, dtypes and makers."""
    if case.format.not_recoverable or case.name == case.truth.hub:
        return
    for dtype, declared in product(case.dtypes(), case.registry.conversions):
        conversion = declared.conversion
        if not _is_maker(case, conversion, dtype):
            continue
        ndims = case.format.ndims if conversion.ndims is None else conversion.ndims
        axes = 2 if ndims is None or 2 in ndims else min(ndims)
        truth = numbers(Recipe(case.name, dtype, (3, 4, 2)[:axes], full=True))
        try:
            value = conversion.function(truth)
        except REFUSALS:  # found where the conversion is tried
            continue
        yield value, truth, dtype, conversion.label


def _is_maker(case: FormatCase, conversion: Conversion, dtype: str) -> bool:
    """Return whether a conversion turns plain arrays of a dtype into this format."""
    is_offered = conversion.dtypes is None or dtype in conversion.dtypes
    return is_offered and is_plain(conversion, case.truth.hub, case.name)


def _problem_of_description(
    case: FormatCase, value: Value, truth: Array, dtype: str, maker: str
) -> str:
    """Compare the description of a result with its numbers, without trusting the former."""
    name, facts = case.name, (case.name, dtype, "cpu", truth.shape)
    try:
        spec: Spec | InteropError = case.interop.spec(value)
    except PluginError as error:
        return str(error)
    except UnknownValueError:
        kind = f"{type(value).__module__}:{type(value).__qualname__}"
        problem = f"{maker} made a value of the type {kind!r}, which interop does not recognise"
        return f"{problem}; types names {listed(case.format.types)}"
    except InteropError as error:
        spec = error
    if isinstance(spec, Spec) and (spec.format, spec.dtype, spec.device, spec.shape) == facts:
        return ""
    readings = case.truth.other_readings(value, case.format)
    if not any(array.dtype == truth.dtype and same(array, truth) for array in readings):
        return ""
    return (
        f"describe of format {name} says {spec} of what {maker} made, which reads back as {name} "
        f"{dtype} {truth.shape} on cpu"
    )


def _describe_shared(case: FormatCase) -> Iterator[str]:
    """Judge how values are described over memory that is locked, or laid out oddly.

    What reads a value shows whether the value could tell.
    """
    conversions = [declared.conversion for declared in case.registry.conversions]
    readers = [c.function for c in conversions if is_plain(c, case.name, case.truth.hub)]
    makers = [c.function for c in conversions if is_plain(c, case.truth.hub, case.name)]
    for trait, make, read in product(_TELLING, makers, readers):
        with suppress(NoSample, *REFUSALS):
            if _is_hidden(case, trait, make, read):
                yield silence(case.name, trait)


def _is_hidden(
    case: FormatCase, trait: str, make: Callable[..., Any], read: Callable[..., Any]
) -> bool:
    """Return whether a value is read as memory with a trait that its description leaves out."""
    recipe = case.plain()[0]._replace(format=case.truth.hub)
    plain, value = (
        make(case.sample(recipe._replace(traits=t))) for t in (frozenset(), frozenset({trait}))
    )
    if trait in case.interop.spec(read(plain)).traits:
        return False  # which says nothing of the memory of the value
    shown, traits = case.interop.spec(read(value)).traits, case.interop.spec(value).traits
    is_told = trait in traits or (trait == "readonly" and "immutable" in traits)
    shares = case.memory.addresses_overlap(value, read(value))
    return trait in shown and not is_told and bool(shares)


@check(
    FORMAT, "the numbers lie at the addresses that it reports", lambda format_, _: format_.memory
)
def memory(case: FormatCase) -> Iterator[str]:
    assert case.format.memory is not None
    _, value = case.plain()
    problem = case.memory.problem_of_addresses(value)
    extents = case.format.memory(value)
    spec = case.interop.spec(value)
    if not extents and not problem:
        yield Untried(f"{case.name} reports no address of {spec}")
        return
    length = sum(nbytes for _, nbytes in extents)
    if not problem and case.format.is_dense and length < spec.nbytes:
        problem = f"memory of format {case.name} reports {length} of the {spec.nbytes} bytes"
    yield problem


@check(
    FORMAT,
    "odd values can be made, are described as such, and hold the same numbers",
    lambda format_, registry: variants_of(registry, format_),
)
def variants(case: FormatCase) -> Iterator[str]:
    # A variant of its components is no promise of the format's: it may lay them out anew.
    promised = (*handed_over(case.registry, case.format), *case.format.samples.variants)
    for trait in promised:
        failures: list[NoSample] = []
        answers = [_variant(case, trait, shape, failures) for shape in case.even_shapes()]
        yield from filter(None, answers)
        if "" in answers:
            yield ""
        elif not any(answers):
            problem = next(filter(None, (_fault(case, trait, failure) for failure in failures)), "")
            yield problem or Untried([*failures, "it holds nothing on the host"][0])


def _variant(
    case: FormatCase, trait: str, shape: tuple[int, ...], failures: list[NoSample]
) -> str | None:
    """Make a variant in the first dtype that works, and judge it; None if there is none."""
    for dtype in case.dtypes():
        recipe = case.recipe(shape)._replace(dtype=dtype)
        odd = recipe._replace(traits=frozenset({trait}))
        try:
            value = case.sample(odd)
        except NoSample as reason:
            failures.append(_without_traits(case, recipe) or reason)
            wrong = _contradicted(case, failures[-1])
            if wrong and wrong.field != "traits":
                return _contradiction(f"variants[{trait!r}]", wrong)
            continue
        case.tried |= case.interop.spec(value).traits
        return _problem_of_variant(case, trait, odd, value)
    return None


def _without_traits(case: FormatCase, recipe: Recipe) -> NoSample | None:
    """Return why there is no plain value either, which is no fault of a variant."""
    try:
        case.sample(recipe)
    except NoSample as reason:
        return NoSample(str(reason))
    return None


def _fault(case: FormatCase, trait: str, failure: NoSample) -> str:
    """Name the function of the plugin that is at fault for a variant that cannot be made."""
    wrong = _contradicted(case, failure)
    if wrong and wrong.field == "traits" and case.format.describe:
        return silence(case.name, trait)
    mistake = _mistake(failure)
    return f"variants[{trait!r}] fails: {mistake}" if mistake else ""


def _problem_of_variant(case: FormatCase, trait: str, recipe: Recipe, value: Value) -> str:
    if trait in _OTHER_NUMBERS or case.format.layout == "affine":
        return ""
    reading = case.truth.read(value)
    # Conversions that misread the value are found where they are tried.
    if reading is None or reading.by or same(reading.array, numbers(recipe)):
        return ""
    return f"a value of {case.name} that is {trait!r} holds other numbers"


@check(
    FORMAT,
    "the fast path, and a batch, return what the planned route does, or nothing",
    lambda format_, _: format_.fast_path,
)
def fast_path(case: FormatCase) -> Iterator[str]:
    """Call the fast path with finished values and with odd ones."""
    format_ = case.format
    assert format_.fast_path is not None
    first = format_._replace(types=(format_.types[0] if format_.types else "",))
    shape = case.even_shapes()[0]
    for _, value in case.samples(case.recipe(shape, traits) for traits in case.trait_sets()):
        if not case.registry.recognition.is_plain(type(value), first):
            continue
        spec = case.interop.spec(value)
        result = format_.fast_path(value)
        is_finished = spec.format == case.name and spec.traits <= in_any_order(format_.carries)
        problem = ""
        if result is not NotImplemented and result is not value:
            problem = f"does not return {spec} itself"
        elif result is value and not is_finished:
            problem = f"returns {spec} as it is, which is not a finished value"
        subject = f"the fast path of format {case.name}"
        yield problem and f"{subject} {problem}"


@check(
    FORMAT,
    "values with the same key have the same plans, and odd ones have no key",
    lambda format_, _: format_.fast_key,
)
def fast_key(case: FormatCase) -> Iterator[str]:
    """Compare the keys of values with different plans, and of odd values."""
    assert case.format.fast_key is not None
    shape, traits = case.even_shapes()[0], case.format.samples.variants
    recipes = [case.recipe(shape, frozenset({trait})) for trait in traits]
    plain = product(case.shapes(), case.dtypes())
    recipes += [case.recipe(shape)._replace(dtype=dtype) for shape, dtype in plain]
    specs: dict[object, Spec] = {}
    usual = _KEYED | case.interop.spec(case.plain()[1]).traits
    for _, value in case.samples(recipes):
        spec, kind = case.interop.spec(value), type(value)
        key = case.format.fast_key(value)
        if key is None or not case.registry.recognition.is_plain(kind, case.format):
            continue
        other = specs.setdefault((kind, key), spec)
        is_odd = bool(spec.traits - usual) and not case.format.is_table
        problem = f"gives {spec} a key, although it is not plain" if is_odd else ""
        if spec_class(other) != spec_class(spec):
            problem = f"gives {other} and {spec} the same key"
        address, memory = case.format.advanced.address, case.format.memory
        if address is not None and memory is not None and memory(value) and spec.nbytes:
            begins = address(value) == memory(value)[0][0]
            problem = problem or ("" if begins else f"begins elsewhere than at address({spec})")
        yield problem and f"fast_key of format {case.name} {problem}"


@check(
    FORMAT, "copy=True gives memory of its own, and copy=False a view or a refusal", _is_described
)
def copy(case: FormatCase) -> Iterator[str]:
    """Convert a value to its own format, as it is and as a copy."""
    interop, name = case.interop, case.name
    recipe, value = case.plain()
    if problem := _problem_of_labels(case, interop.spec(value), recipe):
        yield problem
    try:
        for copy in (None, False):
            if interop.convert(value, name, copy=copy) is not value:
                problem = f"a value of {name} is not returned as it is with copy={copy}"
                yield problem
        route = interop.plan(value, name, copy=True, allow=frozenset(EFFECTS) - COPYING)
        way = f"copy=True by {' → '.join(step.label for step in route.steps)}"
        case.notes.tell("copy", f"{way} was tried")
        copied = route(value)
    except (RefusedError, StepDeclined) as reason:
        yield Untried(reason)
        return
    shares = case.memory.addresses_overlap(value, copied)
    spec = interop.spec(copied)
    problem = ""
    if shares and spec.size and not case.format.not_recoverable:
        problem = "returns a value that shares memory with its source"
    elif case.differ(value, copied):
        problem = "returns other numbers"
    elif "readonly" in spec.traits:
        problem = "returns a value that cannot be written"
    elif shares is None and case.truth.read(value) is None:
        yield Untried(f"{name} does not tell where its numbers lie")
        return
    yield problem and f"{way} {problem}"


def _problem_of_labels(case: FormatCase, plain: Spec, recipe: Recipe) -> str:
    """Return a problem if plain values can be copied or cast, and values with labels cannot."""
    if case.format.labels is None:
        return ""
    labelled = plain._replace(traits=plain.traits | LABELLED)
    if _is_lost(case, plain, labelled, copy=True):
        return _lack(case, "copies", "effects={'copy'}")
    # A framework may have labels that this format does not have.
    with suppress(NoSample):
        labelled = case.interop.spec(case.sample(recipe._replace(traits=LABELLED)))
        dtypes = (dtype for dtype in case.dtypes() if dtype != plain.dtype)
        if any(_is_lost(case, plain, labelled, dtype=dtype) for dtype in dtypes):
            return _lack(case, "casts", "changes={'dtype'}, effects={'copy'}")
    return ""


def _is_lost(case: FormatCase, plain: Spec, labelled: Spec, **request: Any) -> bool:
    """Return whether a request is refused only because a value has labels."""
    return _is_planned(case, plain, **request) and not _is_planned(case, labelled, **request)


def _is_planned(case: FormatCase, spec: Spec, **request: Any) -> bool:
    try:
        case.interop.plan(spec, case.name, **request)
    except RefusedError:
        return False
    return True


def _lack(case: FormatCase, verb: str, fields: str) -> str:
    """Return the problem that a format with labels lacks a step within its framework."""
    name, framework = case.name, case.format.framework
    return (
        f"{name} has labels, so that routes of values with labels do not leave {framework}, "
        f"and no step there {verb} them; register Conversion({name!r}, {name!r}, …, {fields})"
    )


@check(
    FORMAT,
    "a value unpacked and packed again, or rebuilt from its components, is the same",
    lambda format_, _: format_.components,
)
def components(case: FormatCase) -> Iterator[str]:
    return answers(case)


@check(
    FORMAT,
    "what is unwrapped holds the numbers, and wrapped again it has the same labels",
    lambda format_, _: format_.wrapper,
)
def wrapper(case: FormatCase) -> Iterator[str]:
    """Unwrap a plain value and one with labels, and wrap what was in them again."""
    wrapper = case.format.wrapper
    assert wrapper is not None
    for value, truth, _, maker in _made(case):
        array = wrapper.unwrap(value)
        reading = None if array is None else case.truth.read(array)
        if reading is not None and not same(reading.array, truth):
            problem = f"unwrap of {case.name} returns other numbers than {maker} was given"
            yield problem
    plain = case.plain()[0]
    for recipe, value in case.samples(plain._replace(traits=set_) for set_ in case.trait_sets()):
        yield _problem_of_wrapped(case, recipe, value)


def _problem_of_wrapped(case: FormatCase, recipe: Recipe, value: Value) -> str:
    wrapper, labels = case.format.wrapper, case.format.labels
    assert wrapper is not None
    array = wrapper.unwrap(value)
    if array is None:  # it is not loaded yet
        return ""
    spec, kind = case.interop.spec(value), f"a value of {case.name}"
    kind += f" that is {', '.join(sorted(recipe.traits))}" if recipe.traits else ""
    before = case.truth.read(array)
    has_numbers = recipe.traits.isdisjoint(_OTHER_NUMBERS)
    if before and has_numbers and not same(before.array, numbers(recipe)):
        return f"unwrap of {kind} returns other numbers than those of the value"
    if labels is None or not labels.present(value):
        return ""
    again = labels.give(case.interop.convert(array, case.name), value)
    after = case.interop.spec(again)
    if after != spec:
        return f"give of the labels of {kind} makes {after}, and the value was {spec}"
    if case.differ(array, wrapper.unwrap(again)):
        return f"give of the labels of {kind} changes the numbers"
    return ""


@check(
    FORMAT,
    "a value that is given the labels of another has them, and its own numbers",
    lambda format_, _: format_.labels and not format_.wrapper,
)
def labels(case: FormatCase) -> Iterator[str]:
    """Give a plain value the labels of another."""
    labels, recipe = case.format.labels, case.plain()[0]
    assert labels is not None
    like = case.sample(recipe._replace(traits=LABELLED))
    value = case.sample(recipe._replace(seed=1))
    given = labels.give(value, like)
    spec = case.interop.spec(given)
    problem = ""
    if not spec.traits >= LABELLED:
        problem = f"makes {spec}, which has none"
    elif case.differ(value, given):
        problem = "changes the numbers"
    elif case.memory.addresses_overlap(value, given) is False:
        problem = "copies the numbers"
    subject = f"give of the labels of format {case.name}"
    yield problem and f"{subject} {problem}"


@check(
    FORMAT, "writing into out= writes the numbers that were given", lambda format_, _: format_.fill
)
def fill(case: FormatCase) -> Iterator[str]:
    """Write into values in every order of memory, and from values in every order."""
    recipe, value = case.plain()
    variants = variants_of(case.registry, case.format)
    orders = [frozenset({trait}) for trait in variants if trait in MEMORY_TRAITS - _OTHER_NUMBERS]
    recipes = [recipe._replace(traits=traits) for traits in orders]
    outs = [out for other in (recipe, *recipes) for out in _writable(case, other)]
    if not outs:
        msg = f"no value of {case.name} that can be made may be written into"
        raise NoSample(msg)
    for out in outs:
        yield from _judge_fill(case, out, value)
    for other in recipes:
        with suppress(NoSample):
            value = case.sample(other)
            yield from _judge_fill(case, _writable(case, recipe)[0], value)


def _writable(case: FormatCase, recipe: Recipe) -> list[Value]:
    """Return the first value that may be ``out=``: a sample as it is, or a variant of it."""
    try:
        value = case.sample(recipe._replace(seed=1))
    except NoSample:
        return []
    variants = case.format.samples.variants.items()
    for variant in (itself, *(make for trait, make in variants if trait in MEMORY_TRAITS)):
        with suppress(*REFUSALS):
            out = variant(value)
            if not case.interop.spec(out).traits & UNWRITABLE:
                return [out]
    return []


def _judge_fill(case: FormatCase, out: Value, value: Value) -> Iterator[str]:
    assert case.format.fill is not None
    spec = case.interop.spec(out)
    written = numbers(case.plain()[0])
    earlier = numbers(case.plain()[0]._replace(seed=1))
    place = case.memory.place(out, earlier)
    if place is None:
        yield Untried(f"the numbers of {spec} are not read as they were made")
        return
    case.format.fill(out, value)
    problem = case.memory.problem_of_writing(out, place, written)
    yield (problem and f"fill of format {case.name} {problem} (out is {spec})")


@check(FORMAT, "every trait and dtype that is declared has been tried on some value", _is_described)
def extent(case: FormatCase) -> Iterator[str]:
    """Tell which dtypes and traits of the format no sample had."""
    declared = {*case.format.dtypes, *case.format.carries}
    declared |= LABELLED if case.format.labels else set()
    yield untried((declared - case.tried) | _constant(case))


def _constant(case: FormatCase) -> set[str]:
    """Return the attributes that wrappers have and that are the same in all samples.

    A wrapper may keep a scale or a unit in them, and nothing tells whether it is kept.
    """
    if case.format.wrapper is None:
        return set()
    constants: dict[str, set[str]] = {}
    for traits in case.trait_sets():
        with suppress(NoSample):
            value = case.sample(case.plain()[0]._replace(traits=traits))
            for name, field in getattr(value, "__dict__", {}).items():
                if not name.startswith("_") and isinstance(field, _PLAIN_TYPES):
                    constants.setdefault(name, set()).add(repr(field))
    return {f"another {name}" for name, fields in constants.items() if len(fields) == 1}


def _contradiction(maker: str, wrong: WrongSample) -> str:
    """Say how the result of a plugin's function contradicts the plugin's `describe`."""
    field, spec, recipe = wrong.field, wrong.spec, wrong.recipe
    actual, requested = getattr(spec, field), getattr(recipe, field)
    if field == "shape":
        actual, requested = shape_text(actual), shape_text(requested)
    return (
        f"{maker} returned {field} {actual}, as describe has it, for a sample of {requested}; "
        f"a {'variant' if recipe.traits else 'sample'} keeps the {field}"
    )


def _mistake(failure: NoSample) -> str:
    """Return the error of a function with a mistake in it; "" if it only refused."""
    error = failure.__cause__
    is_mistake = isinstance(error, _MISTAKES) and not isinstance(error, InteropError)
    return f"{type(error).__name__}: {first_line(error)}" if is_mistake else ""
