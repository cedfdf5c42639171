"""Stages: the trials of one conversion, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from interop._model.effect import COPYING, EFFECTS, LOSSES
from interop._model.spec import UNWRITABLE
from interop._model.typing import Value
from interop._planning.conversion import ResolvedConversion
from interop._planning.step import Step, batch
from interop._registry.registry import Registry
from interop.errors import ConversionError, Declined, InteropError, PluginError, RefusedError

from ._calls import OF_A_CALL, ConversionCase, examine
from ._components import problem_of_components
from ._memory import overwrite_freed
from ._notes import Notes
from ._pace import problem_of_cost
from ._sample import REFUSALS, NoSample, Recipe, varied
from ._subject import Bench, Promise
from ._table import CONVERSION, Refused, Untried, check, judge, untried
from ._threads import Task, problem_of_threads
from ._traits import LOCKED, problem_of_traits
from ._trial import (
    Trial,
    main_trial,
    obstacle,
    variants_of,
)
from ._truth import expected, same

if TYPE_CHECKING:
    from ._truth import Array

_ALL = frozenset(EFFECTS)
#: The orders of memory in which numbers can be written.
_ORDERS = frozenset({"noncontiguous", "negative_strides", "byteswapped", "unaligned"})

#: Seeds of values that are freed one by one.
_PASSING = range(4, 12)
#: Seeds of values that are held until one takes the address of a freed one.
_HELD = range(12, 76)
#: Shapes of values whose freed memory is soon used again, or returned to the system.
_MORTAL = ((3, 4), (32, 33))
#: The shape of one of the values of a batch.
_OTHER_SHAPE = (2, 6)


def try_conversion(bench: Bench, promise: Promise, notes: Notes) -> None:
    """Try everything that one conversion promises, and note what becomes of it."""
    conversion = promise.conversion
    assert conversion is not None
    if problem := problem_of_traits(bench.registry, conversion.conversion):
        notes.failed("extent", problem)
    problem = obstacle(conversion) or _problem_of_ends(bench, conversion)
    main = None if problem else main_trial(conversion)
    if main is None:
        notes.skipped(problem or "no format holds what it takes")
        return
    case = ConversionCase(bench, conversion, main, notes)
    if all(map(notes.wants, OF_A_CALL)):  # and no call has ended the process
        if "extent" not in promise.checks:  # one value is enough
            examine(case, case.working())
            return
        for trial in case.trials():
            examine(case, trial)
    case.take(case.working())
    judge(CONVERSION, case, notes, promise.name, excused=True)


def _problem_of_ends(bench: Bench, conversion: ResolvedConversion) -> str:
    """Say what is wrong with the components of source or target, which is no fault of its own."""
    ends = (conversion.source, conversion.target)
    problems = (problem_of_components(bench, end) for end in ends if end.components)
    return next(filter(None, problems), "")


def _has_fast_path(conversion: ResolvedConversion, registry: Registry) -> bool:
    return conversion.fast_path is not None or conversion.conversion.batch is not None


@check(CONVERSION, "results outlive their sources, and sources their results")
def lifetime(case: ConversionCase) -> Iterator[str]:
    """Read results whose sources are gone, and sources whose results are gone."""
    trials = [case.at(shape) for shape in _MORTAL]
    for trial in (*trials, *_laid_out(case, trials[-1])):
        try:
            for role in ("result", "source"):
                yield _problem_of_lifetime(case, trial, role)
        except NoSample:
            if trial is trials[0]:
                raise


def _laid_out(case: ConversionCase, trial: Trial) -> Iterator[Trial]:
    """Yield trials of values in other memory orders, if the conversion takes them."""
    recipe = trial.recipe
    for trait in ("noncontiguous", "negative_strides"):
        if trait in case.conversion.conversion.takes:
            yield trial._replace(recipe=recipe._replace(traits=recipe.traits | {trait}))


def _problem_of_lifetime(case: ConversionCase, trial: Trial, role: str) -> str:
    """Say what is wrong with the source or the result once the other is gone."""
    pair = case.pair(trial)
    truth = case.truth
    survivor = pair.pop(role)
    spec = case.interop.spec(survivor)
    nbytes = max(spec.nbytes, 1)
    before = truth.read(survivor, spec)
    if before is None:
        return Untried(f"the numbers of {spec} cannot be read")
    if before.by and not _is_read_well(case, trial, role, before.array):
        readers = " → ".join(before.by)
        return Untried(f"{readers} does not read {spec} as it was made")
    pair.clear()
    filler = overwrite_freed(nbytes)
    after = truth.read(survivor, spec)
    del filler
    if after is not None and same(after.array, before.array):
        return ""
    other = "source" if role == "result" else "result"
    return (
        f"{case.label}'s {role} changes when its {other} is gone ({trial}): nothing keeps the "
        "memory alive"
    )


def _is_read_well(case: ConversionCase, trial: Trial, role: str, array: Array) -> bool:
    """Return whether a value is read correctly while both source and result are alive."""
    pair = case.pair(trial)
    filler = overwrite_freed(array.nbytes)
    again = case.truth.read(pair[role])
    del filler
    value, step = case.value(trial)
    truth = case.numbers(trial, value, case.interop.spec(value))
    if again is None or truth is None:
        return False
    truth, certain = expected(truth, step) if role == "result" else (truth, None)
    return same(array, truth, certain) and same(again.array, truth, certain)


@check(
    CONVERSION, "several threads can call it at once, and it never reuses the memory of a result"
)
def threads(case: ConversionCase) -> str:
    _reuse_addresses(case)
    _convert_before_and_after_a_write(case)
    tasks = [_task(case, seed) for seed in (1, 2, 3)]
    return problem_of_threads(case.label, tasks, case.bench.subject)


def _reuse_addresses(case: ConversionCase) -> None:
    """Convert values that are freed, and then one with the same `id`."""
    addresses = {_pass(case, seed) for seed in _PASSING}
    held: list[Value] = []
    for seed in _HELD:
        trial = case.at(_MORTAL[0], seed)
        value, step = case.value(trial)
        if id(value) in addresses:
            _convert(case, trial, value, step)
            return
        held.append(value)


def _convert_before_and_after_a_write(case: ConversionCase) -> None:
    """Convert a value twice, and change its numbers in between."""
    trial = case.at(_MORTAL[0])
    value, step = case.value(trial)
    is_exact = step.before.dtype == step.after.dtype and not step.effects & LOSSES
    if not is_exact or LOCKED & step.before.traits:
        return  # the result may be the same anyway, or nobody may write
    result = case.call(step, value)
    reading = case.truth.read(result)
    before = None if reading is None else reading.array
    for inner in (False, True):  # what is kept may be looked up by the first and last number
        with case.memory.overwritten(value, inner=inner) as is_overwritten:
            after = case.truth.read(case.call(step, value))
        if is_overwritten and before is not None and after is not None and before.size:
            problem = f"{case.label} returns what the numbers were before a write ({trial})"
            case.notes.judge("values", problem if same(before, after.array) else "")


def _pass(case: ConversionCase, seed: int) -> int:
    """Convert a value that is freed afterwards, and return its `id`."""
    trial = case.at(_MORTAL[0], seed)
    value, step = case.value(trial)
    _convert(case, trial, value, step)
    return id(value)


def _task(case: ConversionCase, seed: int) -> Task:
    """Return a task for a thread: a call of the conversion with the numbers of a seed."""
    trial = case.at(_MORTAL[0], seed)
    problem_of = _convert(case, trial, *case.value(trial))
    value, step = case.value(trial)
    return Task(partial(case.call, step, value), problem_of)


def _convert(
    case: ConversionCase, trial: Trial, value: Value, step: Step
) -> Callable[[Value], str]:
    """Convert a value in this thread; return a function that finds faults in a result."""
    truth = case.numbers(trial, value, case.interop.spec(value))
    if truth is None:
        msg = f"nothing tells the numbers of {trial}"
        raise Refused(msg)

    def problem_of(result: Value) -> str:
        reading = case.truth.read(result)
        return case.problem_of_numbers(reading, truth, step)

    result = case.call(step, value)
    problem = problem_of(result)
    if problem:
        spec = case.interop.spec(result)
        # Other checks report a wrong shape or a wrong description.
        is_described = spec.shape == step.after.shape
        if is_described and case.truth.witness(result, spec) is not None:
            case.notes.failed("values", f"{problem} (after calls with other numbers; {trial})")
        msg = f"in a single thread, {problem}"
        raise Refused(msg)
    return problem_of


@check(CONVERSION, applies=_has_fast_path)
def fast_path(case: ConversionCase) -> Iterator[str]:
    """Compare the fast path, also for odd values, and the batch with what is done without them."""
    if case.conversion.conversion.batch is not None:
        yield _problem_of_batch(case)
    if case.conversion.fast_path is None:
        return
    source, required = case.conversion.source, frozenset(case.conversion.requires)
    traits = ([], *([trait] for trait in source.samples.variants))
    main = case.main.recipe
    for recipe, value in case.samples(main._replace(traits=required.union(t)) for t in traits):
        if case.registry.recognition.is_plain(type(value), source):
            yield _problem_of_fast_path(case, recipe, value)


def _problem_of_batch(case: ConversionCase) -> str:
    """Say in what the results for two values at once differ from those for each."""
    shape, overlap = case.main.recipe.shape, case.memory.addresses_overlap
    trials = [case.at(shape, 0), case.at(_OTHER_SHAPE, 1), case.at(shape, 2)]
    pairs = [case.value(trial) for trial in trials]
    convert = batch(pairs[0][1:])
    assert convert is not None
    problem = f"the batch of {case.label} returns others than {case.label} ({trials[0]})"
    try:
        results = convert([value for value, _ in pairs])
    except ConversionError:  # it returns too many or too few
        return problem
    if results is NotImplemented:
        return ""
    for (value, step), result in zip(pairs, results, strict=True):
        alone = case.call(step, value)
        if case.interop.spec(result) != case.interop.spec(alone) or case.differ(result, alone):
            return problem
        if overlap(value, result) and not overlap(value, alone):
            return f"the batch of {case.label} shares memory, and {case.label} copies"
    return ""


def _problem_of_fast_path(case: ConversionCase, recipe: Recipe, value: Value) -> str:
    fast_path, interop = case.conversion.fast_path, case.interop
    assert fast_path is not None
    trial, name = Trial(recipe), f"the fast path of {case.label}"
    try:
        result = fast_path(value)
    except REFUSALS as error:
        if isinstance(error, InteropError) and not isinstance(error, PluginError):
            raise  # what the route would be refused for, too
        return f"{name} fails ({trial}): {error}"
    if result is NotImplemented:
        return ""
    try:
        route = interop.plan(value, case.conversion.target.name)
    except RefusedError:
        return f"{name} serves {trial}, for which every route is refused"
    planned = route(case.sample(recipe))
    actual, promised = interop.spec(result), interop.spec(planned)
    if actual != promised:
        return f"{name} returns {actual} where the route returns {promised}"
    if case.differ(result, planned):
        return f"{name} returns other numbers than the route ({trial})"
    shares = case.memory.addresses_overlap(value, result)
    may_share = any(step.aliases and step.effects & COPYING for step in route.steps)
    if shares is None or may_share or not actual.size or shares is route.aliases:
        return ""
    return f"{name} {'shares memory' if shares else 'copies'} where the route does not ({trial})"


@check(
    CONVERSION,
    "writing into existing memory writes the same numbers",
    lambda conversion, registry: conversion.conversion.into,
)
def into(case: ConversionCase) -> Iterator[str]:
    """Write results into existing memory, in every order, and values in every order into it."""
    target, trial = case.conversion.target, case.main
    orders = [trait for trait in variants_of(case.registry, target) if trait in _ORDERS]
    yield _problem_of_into(case, trial, _out(case, trial))
    for trait in orders:
        with suppress(NoSample, *REFUSALS):
            out = varied(target, _out(case, trial), frozenset({trait}))
            if not case.interop.spec(out).traits & UNWRITABLE:
                yield _problem_of_into(case, trial, out)
    for other in _laid_out(case, trial):
        with suppress(NoSample, Refused):
            yield _problem_of_into(case, other, _out(case, trial))


def _out(case: ConversionCase, trial: Trial) -> Value:
    """Return a result of other numbers, to write into."""
    other, step = case.value(case.at(trial.recipe.shape, 1))
    return case.call(step, other)


def _problem_of_into(case: ConversionCase, trial: Trial, out: Value) -> str:
    write, read = case.conversion.conversion.into, case.truth.read
    assert write is not None
    value, step = case.value(trial)
    truth = case.numbers(trial, value, case.interop.spec(value))
    before = read(out)
    plain = read(_out(case, case.main))
    place = None if plain is None else case.memory.place(out, plain.array)
    subject, facts = f"into of {case.label}", f"({trial}; out is {case.interop.spec(out)})"
    try:
        write(out, value)
    except Declined as reason:
        after = read(out)
        if before and after and not same(before.array, after.array):
            return f"{subject} declined after it had written {facts}"
        return Untried(reason)
    except REFUSALS as error:
        return f"{subject} fails: {error} {facts}"
    if truth is None or place is None:
        return Untried(f"nothing tells the numbers of {trial}")
    truth, certain = expected(truth, step)
    problem = case.memory.problem_of_writing(out, place, truth, certain)
    return problem and f"{subject} {problem} {facts}"


@check(CONVERSION, "it takes about as long as declared, within an order of magnitude or so")
def cost(case: ConversionCase) -> str:
    def prepared(shape: tuple[int, ...]) -> tuple[Value, Step]:
        trial = case.at(shape)
        density = trial.recipe.density if trial.recipe.density == 1 else 0.05
        recipe = trial.recipe._replace(density=density, full=False)
        return case.value(trial._replace(recipe=recipe))

    # A copy that the source exports is no fault of the conversion's.
    export = case.problem_of_export(case.main)
    return Untried(export) if export else problem_of_cost(case.label, prepared)


@check(CONVERSION)
def extent(case: ConversionCase) -> str:
    conversion = case.conversion.conversion
    dtypes = case.conversion.dtypes if conversion.dtypes is not None else frozenset()
    declared = {*conversion.takes, *conversion.requires, *conversion.drops, *dtypes}
    return untried(declared - case.tried)
