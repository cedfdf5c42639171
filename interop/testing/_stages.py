"""Stages: the trials of one conversion, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import count
from time import process_time
from typing import TYPE_CHECKING

from interop._model.effect import COPYING, EFFECTS, LOSSES
from interop._model.spec import UNWRITABLE
from interop._model.typing import Value
from interop._planning.conversion import ResolvedConversion
from interop._planning.plan import Plan
from interop._planning.step import Step, batch
from interop.errors import ConversionError, Declined, InteropError, RefusedError

from ._calls import OF_A_CALL, Caller, Refused
from ._components import problem_of_components
from ._leaks import problem_of_leaks
from ._memory import overwrite_freed
from ._notes import Notes
from ._pace import problem_of_cost
from ._sample import REFUSALS, NoSample, Recipe, fitted, varied
from ._state import problem_of_state
from ._subject import Bench, Promise
from ._threads import Task, problem_of_threads
from ._traits import LOCKED, problem_of_traits
from ._trial import (
    Trial,
    foreign_traits,
    main_trial,
    obstacle,
    sampled,
    trials,
    variants_of,
)
from ._truth import expected, same

if TYPE_CHECKING:
    from ._truth import Array

_ALL = frozenset(EFFECTS)
#: The orders of memory in which numbers can be written.
_ORDERS = frozenset({"noncontiguous", "negative_strides", "byteswapped", "unaligned"})

#: After so many trials no other begins once they have taken so many seconds.
_ENOUGH, _BUDGET = 10, 1.0

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
    _Stages(bench, Caller(bench.interop, conversion), main, notes, promise.checks).run()


def _problem_of_ends(bench: Bench, conversion: ResolvedConversion) -> str:
    """Say what is wrong with the components of source or target, which is no fault of its own."""
    ends = (conversion.source, conversion.target)
    problems = (problem_of_components(bench.interop, end) for end in ends if end.components)
    return next(filter(None, problems), "")


class _Stages:
    """The stages of one conversion under test."""

    def __init__(
        self, bench: Bench, caller: Caller, main: Trial, notes: Notes, checks: tuple[str, ...]
    ) -> None:
        self._bench = bench
        self._checks = checks
        self._interop = bench.interop
        self._caller = caller
        self._conversion = caller.conversion
        self._label = caller.label
        self._main = main
        self._notes = notes

    def run(self) -> None:
        """Run all stages but those that have crashed before."""
        stages: dict[str, Callable[[], None]] = {
            "lifetime": self._lifetime,
            "copy": self._copy,
            "refusals": self._refusals,
            "threads": self._threads,
            "fast_path": self._quick_ways,
            "into": self._into,
            "cost": self._cost,
            "state": self._state,
            "leaks": self._leaks,
        }
        if all(map(self._notes.wants, OF_A_CALL)):
            if "extent" not in self._checks:  # one value is enough
                self._caller.examine(self._working(), self._notes)
                return
            self._examine()
            self._notes.judge_extent(self._declared() - self._caller.tried)
        self._main = self._working()
        for check, stage in stages.items():
            if not self._notes.wants(check):
                continue
            self._notes.tell(check, f"{self._label} was tried with {self._main}")
            try:
                stage()
            except (NoSample, Refused) as reason:
                self._notes.skipped(reason, check)
            except REFUSALS as error:
                # The examination reports conversions that fail.
                self._notes.skipped(f"it failed: {error}", check)

    def _examine(self) -> None:
        for trial in self._trials():
            self._caller.examine(trial, self._notes)

    def _trials(self) -> Iterator[Trial]:
        start = process_time()
        for number, trial in enumerate(trials(self._bench.registry, self._conversion)):
            # Frameworks that compile for every dtype and shape would take too long.
            if number > _ENOUGH and process_time() - start > _BUDGET:
                return
            yield trial

    def _declared(self) -> set[str]:
        conversion = self._conversion.conversion
        dtypes = self._conversion.dtypes if conversion.dtypes is not None else frozenset()
        return {*conversion.takes, *conversion.requires, *conversion.drops, *dtypes}

    def _working(self) -> Trial:
        """Return the plainest trial that can be made here."""
        for trial in self._trials():
            try:
                value, step = self._caller.value(trial)
                self._caller.call(step, value)
            except (NoSample, Refused, InteropError, MemoryError):
                continue
            return trial
        return self._main

    def _at(self, shape: tuple[int, ...], seed: int = 0) -> Trial:
        """Return the main trial with the nearest possible shape, and the numbers of a seed."""
        shape = fitted(shape, self._conversion)
        return self._main._replace(recipe=self._main.recipe._replace(shape=shape, seed=seed))

    # ------------------------------------------------------------------ lifetime

    def _lifetime(self) -> None:
        """Read results whose sources are gone, and sources whose results are gone."""
        trials = [self._at(shape) for shape in _MORTAL]
        for trial in (*trials, *self._laid_out(trials[-1])):
            for role in ("result", "source"):
                try:
                    problem = self._problem_of_lifetime(trial, role)
                except (NoSample, Refused):
                    if trial is trials[0]:
                        raise
                    break
                if problem is not None and not self._notes.judge("lifetime", problem):
                    return

    def _laid_out(self, trial: Trial) -> Iterator[Trial]:
        """Yield trials of values in other memory orders, if the conversion takes them."""
        recipe = trial.recipe
        for trait in ("noncontiguous", "negative_strides"):
            if trait in self._conversion.conversion.takes:
                yield trial._replace(recipe=recipe._replace(traits=recipe.traits | {trait}))

    def _problem_of_lifetime(self, trial: Trial, role: str) -> str | None:
        """Say what is wrong with the source or the result once the other is gone."""
        pair = self._pair(trial)
        truth = self._caller.truth
        survivor = pair.pop(role)
        spec = self._interop.spec(survivor)
        nbytes = max(spec.nbytes, 1)
        before = truth.read(survivor, spec)
        if before is None:
            self._notes.skipped(f"the numbers of {spec} cannot be read", "lifetime")
            return None
        if before.by and not self._is_read_well(trial, role, before.array):
            readers = " → ".join(before.by)
            self._notes.skipped(f"{readers} does not read {spec} as it was made", "lifetime")
            return None
        pair.clear()
        filler = overwrite_freed(nbytes)
        after = truth.read(survivor, spec)
        del filler
        if after is not None and same(after.array, before.array):
            return ""
        other = "source" if role == "result" else "result"
        return (
            f"{self._label}'s {role} changes when its {other} is gone ({trial}): nothing keeps the "
            "memory alive"
        )

    def _is_read_well(self, trial: Trial, role: str, array: Array) -> bool:
        """Return whether a value is read correctly while both source and result are alive."""
        pair = self._pair(trial)
        filler = overwrite_freed(array.nbytes)
        again = self._caller.truth.read(pair[role])
        del filler
        value, step = self._caller.value(trial)
        truth = self._caller.numbers(trial, value, self._interop.spec(value))
        if again is None or truth is None:
            return False
        truth, certain = expected(truth, step) if role == "result" else (truth, None)
        return same(array, truth, certain) and same(again.array, truth, certain)

    def _pair(self, trial: Trial) -> dict[str, Value]:
        value, step = self._caller.value(trial)
        return {"source": value, "result": self._caller.call(step, value)}

    # ------------------------------------------------------------------ the contracts of copy=

    def _copy(self) -> None:
        """Convert with copy=True and copy=False by the planned route."""
        for copy in (True, False):
            value, step = self._caller.value(self._main)
            if step.after.carrier or step.before.carrier:
                self._notes.skipped("bits are only carried in the middle of a route", "copy")
                return
            try:
                route = self._interop.plan(
                    value,
                    self._conversion.target.name,
                    dtype=self._main.dtype,
                    device=step.after.device,
                    copy=copy,
                    allow=_ALL - COPYING,
                )
            except RefusedError:
                if copy is False:
                    self._notes.passed("copy")
                continue
            if not self._judge_copy(value, route, copy=copy):
                return

    def _judge_copy(self, value: Value, plan: Plan, *, copy: bool) -> bool:
        """Note whether a result is a copy, or a view; tell whether to go on."""
        # A plan with other steps says nothing about this conversion.
        writers = {step.label for step in plan.steps if step.writes}
        if (writers if copy else {step.label for step in plan.steps}) != {self._label}:
            self._notes.skipped(f"no plan with copy={copy} consists of it", "copy")
            return True
        result = plan(value)
        shares = self._caller.memory.addresses_overlap(value, result)
        if shares is None or not plan.spec.size or result is value:
            return True
        if shares is not copy:
            return self._notes.judge("copy", "")
        liar = self._caller.memory_liar(self._main)
        if liar:
            self._notes.skipped(liar, "copy")
            return True
        labels = " → ".join(step.label for step in plan.steps)
        claim = "shares memory with its source" if copy else "is not a view of it"
        problem = f"copy={copy} by {labels} returns a result that {claim} ({self._main})"
        return self._notes.judge("copy", self._caller.problem_of_export(self._main) or problem)

    # ------------------------------------------------------------------ what it does not take

    def _refusals(self) -> None:
        """Offer values that the declaration does not cover."""
        recipes = self._outside()
        for recipe in recipes:
            try:
                value = sampled(self._interop, recipe)
            except NoSample as reason:
                self._notes.skipped(reason, "refusals")
                continue
            spec = self._interop.spec(value)
            has_all = self._conversion.requires <= spec.traits and not recipe.traits
            if has_all or spec.dtype != recipe.dtype:
                continue  # every value has what is required, or no dtype of its own
            is_offered = self._conversion.takes_value(spec)
            problem = f"{self._label} is offered {spec}, which it does not declare to take"
            self._notes.judge("refusals", problem if is_offered else "")
        if not recipes:
            self._notes.passed("refusals")

    def _outside(self) -> list[Recipe]:
        conversion, recipe = self._conversion, self._main.recipe
        required = frozenset(conversion.requires)
        recipes = [
            recipe._replace(traits=required | {trait})
            for trait in foreign_traits(self._bench.registry, conversion)
        ]
        if required:
            recipes.append(recipe._replace(traits=frozenset()))
        others = sorted(conversion.source.holds(recipe.device) - conversion.dtypes)
        recipes += [recipe._replace(dtype=dtype) for dtype in others[:3]]
        ndims, possible = (
            conversion.ndims,
            self._bench.registry.formats[self._caller.truth.hub].ndims,
        )
        if ndims is not None:
            axes = next(axes for axes in count() if axes not in ndims)
            if possible is None or axes in possible:  # no sample has more axes
                recipes.append(recipe._replace(shape=(1,) * axes))
        return recipes

    # ------------------------------------------------------------------ threads

    def _threads(self) -> None:
        self._reuse_addresses()
        self._convert_before_and_after_a_write()
        tasks = [self._task(seed) for seed in (1, 2, 3)]
        self._notes.judge("threads", problem_of_threads(self._label, tasks, self._bench.subject))

    def _reuse_addresses(self) -> None:
        """Convert values that are freed, and then one with the same `id`."""
        addresses = {self._pass(seed) for seed in _PASSING}
        held: list[Value] = []
        for seed in _HELD:
            trial = self._at(_MORTAL[0], seed)
            value, step = self._caller.value(trial)
            if id(value) in addresses:
                self._convert(trial, value, step)
                return
            held.append(value)

    def _convert_before_and_after_a_write(self) -> None:
        """Convert a value twice, and change its numbers in between."""
        trial = self._at(_MORTAL[0])
        value, step = self._caller.value(trial)
        is_exact = step.before.dtype == step.after.dtype and not step.effects & LOSSES
        if not is_exact or LOCKED & step.before.traits:
            return  # the result may be the same anyway, or nobody may write
        if self._caller.memory_liar(trial):
            return  # the place to write to is not known
        result = self._caller.call(step, value)
        reading = self._caller.truth.read(result)
        before = None if reading is None else reading.array
        for inner in (False, True):  # what is kept may be looked up by the first and last number
            with self._caller.memory.overwritten(value, inner=inner) as is_overwritten:
                after = self._caller.truth.read(self._caller.call(step, value))
            if is_overwritten and before is not None and after is not None and before.size:
                problem = f"{self._label} returns what the numbers were before a write ({trial})"
                self._notes.judge("values", problem if same(before, after.array) else "")

    def _pass(self, seed: int) -> int:
        """Convert a value that is freed afterwards, and return its `id`."""
        trial = self._at(_MORTAL[0], seed)
        value, step = self._caller.value(trial)
        self._convert(trial, value, step)
        return id(value)

    def _task(self, seed: int) -> Task:
        """Return a task for a thread: a call of the conversion with the numbers of a seed."""
        trial = self._at(_MORTAL[0], seed)
        problem_of = self._convert(trial, *self._caller.value(trial))
        value, step = self._caller.value(trial)
        return Task(partial(self._caller.call, step, value), problem_of)

    def _convert(self, trial: Trial, value: Value, step: Step) -> Callable[[Value], str]:
        """Convert a value in this thread; return a function that finds faults in a result."""
        truth = self._caller.numbers(trial, value, self._interop.spec(value))
        if truth is None:
            msg = f"nothing tells the numbers of {trial}"
            raise Refused(msg)

        def problem_of(result: Value) -> str:
            reading = self._caller.truth.read(result)
            return self._caller.problem_of_numbers(reading, truth, step)

        result = self._caller.call(step, value)
        problem = problem_of(result)
        if problem:
            spec = self._interop.spec(result)
            # Other checks report a wrong shape or a wrong description.
            is_described = spec.shape == step.after.shape
            if is_described and self._caller.truth.witness(result, spec) is not None:
                self._notes.failed("values", f"{problem} (after calls with other numbers; {trial})")
            msg = f"in a single thread, {problem}"
            raise Refused(msg)
        return problem_of

    # ------------------------------------------------------------------ fast path and into

    def _quick_ways(self) -> None:
        """Compare the fast path and the batch with what is done without them."""
        if self._conversion.fast_path is not None:
            self._fast_path()
        if self._conversion.conversion.batch is not None:
            self._notes.judge("fast_path", self._problem_of_batch())

    def _problem_of_batch(self) -> str:
        """Say in what the results for two values at once differ from those for each."""
        shape, overlap = self._main.recipe.shape, self._caller.memory.addresses_overlap
        trials = [self._at(shape, 0), self._at(_OTHER_SHAPE, 1), self._at(shape, 2)]
        pairs = [self._caller.value(trial) for trial in trials]
        convert, read = batch(pairs[0][1:]), self._caller.truth.read
        assert convert is not None
        problem = f"the batch of {self._label} returns others than {self._label} ({trials[0]})"
        try:
            results = convert([value for value, _ in pairs])
        except ConversionError:  # it returns too many or too few
            return problem
        if results is NotImplemented:
            return ""
        for (value, step), result in zip(pairs, results, strict=True):
            alone = self._caller.call(step, value)
            reading, other = read(result), read(alone)
            has_same = reading is None or other is None or same(reading.array, other.array)
            if self._interop.spec(result) != self._interop.spec(alone) or not has_same:
                return problem
            if overlap(value, result) and not overlap(value, alone):
                return f"the batch of {self._label} shares memory, and {self._label} copies"
        return ""

    def _fast_path(self) -> None:
        """Compare the fast path with the planned route, also for odd values."""
        source, required = self._conversion.source, frozenset(self._conversion.requires)
        for traits in (
            frozenset[str](),
            *(frozenset({trait}) for trait in source.samples.variants),
        ):
            recipe = self._main.recipe._replace(traits=traits | required)
            try:
                value = sampled(self._interop, recipe)
            except NoSample as reason:
                self._notes.skipped(reason, "fast_path")
                continue
            if self._bench.registry.recognition.is_plain(type(value), source):
                self._notes.judge("fast_path", self._problem_of_fast_path(recipe, value))

    def _problem_of_fast_path(self, recipe: Recipe, value: Value) -> str:
        fast_path, interop = self._conversion.fast_path, self._interop
        assert fast_path is not None
        result = fast_path(value)
        if result is NotImplemented:
            return ""
        trial, name = Trial(recipe), f"the fast path of {self._label}"
        try:
            route = interop.plan(value, self._conversion.target.name)
        except RefusedError:
            return f"{name} serves {trial}, for which every route is refused"
        planned = route(sampled(interop, recipe))
        actual, promised = interop.spec(result), interop.spec(planned)
        if actual != promised:
            return f"{name} returns {actual} where the route returns {promised}"
        reading, other = self._caller.truth.read(result), self._caller.truth.read(planned)
        if reading is not None and other is not None and not same(reading.array, other.array):
            return f"{name} returns other numbers than the route ({trial})"
        shares = self._caller.memory.addresses_overlap(value, result)
        may_share = any(step.aliases and step.effects & COPYING for step in route.steps)
        if shares is None or may_share or not actual.size or shares is route.aliases:
            return ""
        return (
            f"{name} {'shares memory' if shares else 'copies'} where the route does not ({trial})"
        )

    def _into(self) -> None:
        """Write results into existing memory, in every order, and values in every order into it."""
        target, trial = self._conversion.target, self._main
        orders = [trait for trait in variants_of(self._bench.registry, target) if trait in _ORDERS]
        self._judge_into(trial, self._out(trial))
        for trait in orders:
            with suppress(NoSample, *REFUSALS):
                out = varied(target, self._out(trial), frozenset({trait}))
                if not self._interop.spec(out).traits & UNWRITABLE:
                    self._judge_into(trial, out)
        for other in self._laid_out(trial):
            with suppress(NoSample, Refused):
                self._judge_into(other, self._out(trial))

    def _out(self, trial: Trial) -> Value:
        """Return a result of other numbers, to write into."""
        other, step = self._caller.value(self._at(trial.recipe.shape, 1))
        return self._caller.call(step, other)

    def _judge_into(self, trial: Trial, out: Value) -> None:
        write, read = self._conversion.conversion.into, self._caller.truth.read
        assert write is not None
        value, step = self._caller.value(trial)
        truth = self._caller.numbers(trial, value, self._interop.spec(value))
        before = read(out)
        plain = read(self._out(self._main))
        place = None if plain is None else self._caller.memory.place(out, plain.array)
        subject, facts = f"into of {self._label}", f"({trial}; out is {self._interop.spec(out)})"
        try:
            write(out, value)
        except Declined as reason:
            after = read(out)
            if before and after and not same(before.array, after.array):
                self._notes.failed("into", f"{subject} declined after it had written {facts}")
            else:
                self._notes.skipped(reason, "into")
            return
        except REFUSALS as error:
            self._notes.failed("into", f"{subject} fails: {error} {facts}")
            return
        if truth is None or place is None:
            self._notes.skipped(f"nothing tells the numbers of {trial}", "into")
            return
        truth, certain = expected(truth, step)
        problem = self._caller.memory.problem_of_writing(out, place, truth, certain)
        self._notes.judge("into", problem and f"{subject} {problem} {facts}")

    # ------------------------------------------------------------------ the process

    def _state(self) -> None:
        value, step = self._caller.value(self._main)
        problem = problem_of_state(self._label, partial(self._caller.call, step, value))
        self._notes.judge("state", problem)

    def _leaks(self) -> None:
        _, step = self._caller.value(self._main)
        problem = problem_of_leaks(
            self._label,
            lambda: self._caller.value(self._main)[0],
            partial(self._caller.call, step),
        )
        self._notes.judge("leaks", problem)

    # ------------------------------------------------------------------ cost

    def _cost(self) -> None:
        def prepared(shape: tuple[int, ...]) -> tuple[Value, Step]:
            trial = self._at(shape)
            density = trial.recipe.density if trial.recipe.density == 1 else 0.05
            recipe = trial.recipe._replace(density=density, full=False)
            return self._caller.value(trial._replace(recipe=recipe))

        if problem := self._caller.problem_of_export(self._main):
            self._notes.skipped(problem, "cost")  # the copy is no fault of the conversion's
            return
        self._notes.judge("cost", problem_of_cost(self._label, prepared))
