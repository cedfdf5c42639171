"""Stages: everything that is tried with one conversion, in the order in which it is tried."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from time import process_time
from typing import Any

from interop._calibration.sample import NoSample, fitted
from interop._model.effect import COPYING, EFFECTS
from interop._planning.step import ResolvedConversion, Step
from interop.errors import Declined, InteropError, RefusedError

from ._calls import OF_A_CALL, Caller, Refused
from ._memory import overwrite_freed
from ._notes import Notes
from ._pace import judged_cost
from ._subject import Bench, Promise
from ._threads import problem_of_threads
from ._trial import Trial, foreign_traits, main_trial, obstacle, sampled, trials
from ._truth import REFUSALS, expected, same

__all__ = ["try_conversion"]

_ALL = frozenset(EFFECTS)

#: Trials after which no more are begun if they have taken so many seconds.
_ENOUGH, _BUDGET = 10, 1.0

#: Shapes whose memory, once freed, is soon used again, or given back to the system.
_MORTAL = ((3, 4), (32, 33))


def try_conversion(bench: Bench, promise: Promise, notes: Notes, skip: frozenset[str]) -> None:
    """Try everything that one conversion promises.

    Parameters
    ----------
    bench : Bench
    promise : Promise
    notes : Notes
    skip : frozenset of str
        Checks that have ended the process before.
    """
    edge = promise.edge
    assert edge is not None
    problem = obstacle(bench.registry, edge)
    main = None if problem else main_trial(edge)
    if main is None:
        notes.skipped(problem or "no format holds what it takes")
        return
    one = _Conversion(bench, edge, main, notes)
    one.run(skip)


class _Conversion:
    """One conversion under test."""

    def __init__(self, bench: Bench, edge: ResolvedConversion, main: Trial, notes: Notes) -> None:
        self._bench = bench
        self._edge = edge
        self._main = main
        self._notes = notes
        self._caller = Caller(bench.face, edge, edge.conversion.label)
        self._label = edge.conversion.label

    def run(self, skip: frozenset[str]) -> None:
        """Run all stages but those that have ended the process."""
        stages: dict[str, Callable[[], None]] = {
            "lifetime": self._lifetime,
            "copy": self._copy,
            "refusals": self._refusals,
            "threads": self._threads,
            "shortcut": self._shortcut,
            "into": self._into,
            "cost": self._cost,
        }
        if not skip & set(OF_A_CALL):
            start = process_time()
            for number, trial in enumerate(trials(self._bench.registry, self._edge)):
                # What compiles for every dtype and shape is not tried with all of them.
                if number > _ENOUGH and process_time() - start > _BUDGET:
                    break
                self._caller.examine(trial, self._notes)
        self._main = self._working()
        for check, stage in stages.items():
            if check in skip or not self._notes.wants(check):
                continue
            self._notes.tell(check, f"it was tried with {self._main}")
            try:
                stage()
            except (NoSample, Refused) as reason:
                self._notes.skipped(reason, check)
            except REFUSALS as error:
                # What fails at all is for the call to report.
                self._notes.skipped(f"it failed: {error}", check)

    def _working(self) -> Trial:
        """Return the plainest trial that can be made here."""
        for trial in trials(self._bench.registry, self._edge):
            try:
                value, step = self._caller.value(trial)
                self._caller.call(step, value)
            except (NoSample, Refused, InteropError, MemoryError):
                continue
            return trial
        return self._main

    def _at(self, shape: tuple[int, ...], seed: int = 0) -> Trial:
        """Return the main trial at a shape, or what is nearest to it, or with other numbers."""
        wanted = self._main.wanted._replace(shape=fitted(shape, self._edge), seed=seed)
        return self._main._replace(wanted=wanted)

    # ------------------------------------------------------------------ lifetime

    def _lifetime(self) -> None:
        """Read the result after its source is gone, and the source after the result is."""
        for shape in _MORTAL:
            for keep in ("result", "source"):
                problem = self._survives(self._at(shape), keep)
                if problem is None:
                    continue
                if not self._notes.judge("lifetime", problem):
                    return

    def _survives(self, trial: Trial, keep: str) -> str | None:
        pair = self._pair(trial)
        truth = self._caller.truth
        kept = pair.pop(keep)
        spec = self._bench.face.spec(kept)
        nbytes = max(spec.nbytes, 1)
        before = truth.read(kept, spec)
        if before is None:
            self._notes.skipped(f"the numbers of {spec} cannot be read", "lifetime")
            return None
        if before.by and not self._is_read_well(trial, keep, before.array):
            by = " → ".join(before.by)
            self._notes.skipped(f"{by} does not read {spec} as it was made", "lifetime")
            return None
        pair.clear()
        rubbish = overwrite_freed(nbytes)
        after = truth.read(kept, spec)
        del rubbish
        if after is not None and same(after.array, before.array):
            return ""
        other = "source" if keep == "result" else "result"
        return f"{self._label}'s {keep} changes when its {other} is gone ({trial}): nobody owns it"

    def _is_read_well(self, trial: Trial, keep: str, found: Any) -> bool:
        """Tell whether those who read a value can be relied on while all of it is alive."""
        pair = self._pair(trial)
        rubbish = overwrite_freed(found.nbytes)
        again = self._caller.truth.read(pair[keep])
        del rubbish
        value, step = self._caller.value(trial)
        truth = self._caller.numbers(trial, value, self._bench.face.spec(value))
        if again is None or truth is None:
            return False
        wanted, sure = expected(truth, step) if keep == "result" else (truth, None)
        return same(found, wanted, sure) and same(again.array, wanted, sure)

    def _pair(self, trial: Trial) -> dict[str, Any]:
        value, step = self._caller.value(trial)
        return {"source": value, "result": self._caller.call(step, value)}

    # ------------------------------------------------------------------ the contracts of copy=

    def _copy(self) -> None:
        """Convert with copy=True and copy=False, by whatever route that takes."""
        for copy in (True, False):
            value, step = self._caller.value(self._main)
            words: dict[str, Any] = {"dtype": self._main.to, "device": step.after.device}
            if step.after.carrier or step.before.carrier:
                self._notes.skipped("bits are carried in the midst of routes only", "copy")
                return
            try:
                route = self._bench.face.plan(
                    value, self._edge.target.name, copy=copy, allow=_ALL - COPYING, **words
                )
            except RefusedError:
                if copy is False:
                    self._notes.passed("copy")
                continue
            # Only what this very conversion did is for it to answer.
            writers = {one.label for one in route.steps if one.writes}
            if (writers if copy else {one.label for one in route.steps}) != {self._label}:
                self._notes.skipped(f"no route with copy={copy} consists of it", "copy")
                continue
            result = route(value)
            shared = self._caller.memory.pointers_overlap(value, result)
            if shared is None or not step.before.size or result is value:
                continue
            labels = " → ".join(one.label for one in route.steps)
            wrong = "shares memory with its source" if copy else "is no view of it"
            problem = f"copy={copy} by {labels} gives a result that {wrong} ({self._main})"
            liar = self._caller.memory_liar(self._main) if shared is copy else ""
            if liar:
                self._notes.skipped(liar, "copy")
            elif not self._notes.judge("copy", problem if shared is copy else ""):
                return

    # ------------------------------------------------------------------ what it does not take

    def _refusals(self) -> None:
        """Hold values outside of the declaration against it."""
        for trial in self._outside():
            try:
                value = sampled(self._bench.face, trial.wanted)
            except NoSample as reason:
                self._notes.skipped(reason, "refusals")
                continue
            spec = self._bench.face.spec(value)
            problem = ""
            if self._edge.requires <= spec.traits and not trial.wanted.traits:
                continue  # every value has what is required
            if self._edge.takes_value(spec):
                problem = f"{self._label} is offered {spec}, which it does not declare to take"
            self._notes.judge("refusals", problem)
        if not self._restricts():
            self._notes.passed("refusals")

    def _restricts(self) -> bool:
        return any(True for _ in self._outside())

    def _outside(self) -> list[Trial]:
        edge, main = self._edge, self._main
        wanted = main.wanted
        outside = [
            wanted._replace(traits=edge.requires | {trait})
            for trait in foreign_traits(self._bench.registry, edge)
        ]
        if edge.requires:
            outside.append(wanted._replace(traits=frozenset()))
        others = sorted(edge.source.holds(wanted.device) - edge.dtypes)
        outside += [wanted._replace(dtype=dtype) for dtype in others[:3]]
        ndims = edge.ndims
        if ndims is not None:
            wrong = next(n for n in count() if n not in ndims)
            outside.append(wanted._replace(shape=(1,) * wrong))
        return [main._replace(wanted=one) for one in outside]

    # ------------------------------------------------------------------ threads

    def _threads(self) -> None:
        pieces = [self._piece(seed) for seed in (1, 2, 3)]
        self._notes.judge("threads", problem_of_threads(self._label, pieces, self._bench.subject))

    def _piece(self, seed: int) -> tuple[Callable[[], Any], Callable[[Any], str]]:
        """Return a call of the conversion, and what tells what is wrong with its result."""
        trial = self._at((3, 4), seed)
        value, step = self._caller.value(trial)
        spec = self._bench.face.spec(value)
        truth = self._caller.numbers(trial, value, spec)
        if truth is None:
            msg = f"nobody knows the numbers of {trial}"
            raise Refused(msg)
        read, compare = self._caller.truth.read, self._caller.problem_of_numbers
        alone = compare(read(self._caller.call(step, self._caller.value(trial)[0])), truth, step)
        if alone:
            raise Refused(f"with nobody else about, {alone}")
        return (
            partial(self._caller.call, step, value),
            lambda result: compare(read(result), truth, step),
        )

    # ------------------------------------------------------------------ shortcut and into

    def _shortcut(self) -> None:
        """Hold the shortcut against the planned route, for odd values as well."""
        registry, face = self._bench.registry, self._bench.face
        odd = [frozenset[str](), *(frozenset({t}) for t in self._edge.source.variants)]
        for traits in odd:
            wanted = self._main.wanted._replace(traits=traits | self._edge.requires)
            try:
                value = sampled(face, wanted)
            except NoSample as reason:
                self._notes.skipped(reason, "shortcut")
                continue
            if registry.is_plain(type(value), self._edge.source):
                self._notes.judge("shortcut", self._problem_of_shortcut(wanted, value))

    def _problem_of_shortcut(self, wanted: Any, value: Any) -> str:
        shortcut, face = self._edge.conversion.shortcut, self._bench.face
        assert shortcut is not None
        result = shortcut(value)
        if result is NotImplemented:
            return ""
        trial = Trial(wanted)
        who = f"the shortcut of {self._label}"
        try:
            route = face.plan(value, self._edge.target.name)
        except RefusedError:
            return f"{who} serves {trial}, for which every route is refused"
        planned = route(sampled(face, wanted))
        got, should = face.spec(result), face.spec(planned)
        if got._replace(traits=got.traits & should.traits) != should or got.traits != should.traits:
            return f"{who} gives {got} where the route gives {should}"
        truth = self._caller.truth
        one, other = truth.read(result), truth.read(planned)
        if one is not None and other is not None and not same(one.array, other.array):
            return f"{who} gives other numbers than the route ({trial})"
        shared = self._caller.memory.pointers_overlap(value, result)
        views = all(step.aliases for step in route.steps)
        maybe = any(step.aliases and step.effects & COPYING for step in route.steps)
        if shared is None or maybe or not got.size or shared is views:
            return ""
        does = "shares memory" if shared else "copies"
        return f"{who} {does} where the route does not ({trial})"

    def _into(self) -> None:
        """Write a result into memory that is there already."""
        write = self._edge.conversion.into
        assert write is not None
        other, step = self._caller.value(self._at(self._main.wanted.shape, 1))
        place = self._caller.call(step, other)
        value, step = self._caller.value(self._main)
        spec = self._bench.face.spec(value)
        truth = self._caller.numbers(self._main, value, spec)
        read = self._caller.truth.read
        before = read(place)
        try:
            write(place, value)
        except Declined as reason:
            after = read(place)
            if before and after and not same(before.array, after.array):
                msg = f"into of {self._label} declined after it had written ({self._main})"
                self._notes.failed("into", msg)
            else:
                self._notes.skipped(reason, "into")
            return
        except REFUSALS as error:
            self._notes.failed("into", f"into of {self._label} fails: {error} ({self._main})")
            return
        if truth is None:
            self._notes.skipped(f"nobody knows the numbers of {self._main}", "into")
            return
        after = read(place)
        wanted, sure = expected(truth, step)
        if after is None:
            self._notes.skipped(f"the numbers of {step.after} cannot be read", "into")
        elif same(after.array, wanted, sure):
            self._notes.passed("into")
        else:
            msg = f"into of {self._label} writes other numbers than it was given ({self._main})"
            self._notes.failed("into", msg)

    # ------------------------------------------------------------------ cost

    def _cost(self) -> None:
        def prepared(shape: tuple[int, ...]) -> tuple[Any, Step]:
            trial = self._at(shape)
            density = trial.wanted.density if trial.wanted.density == 1 else 0.05
            return self._caller.value(
                trial._replace(wanted=trial.wanted._replace(density=density, full=False))
            )

        self._notes.judge("cost", judged_cost(self._label, prepared))
