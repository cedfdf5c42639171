"""Calls: a conversion is called on one value, and its result compared with the declaration."""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time
from typing import TYPE_CHECKING, Any, NamedTuple

from interop._execution.trace import trace
from interop._model.device import matches
from interop._model.effect import COPYING, LOSSES
from interop._model.spec import (
    COLUMN_TRAITS,
    FORTRAN,
    MEMORY_TRAITS,
    TRAITS,
    Spec,
    has_one_order,
    in_any_order,
)
from interop._model.typing import Value
from interop._planning.conversion import ResolvedConversion
from interop._planning.plan import StepDeclined, run
from interop._planning.step import Step
from interop.errors import InteropError, PluginError, RefusedError

from ._case import Case
from ._notes import Notes
from ._sample import REFUSALS, NoSample, Recipe, first_line, fitted, step_on
from ._subject import Bench
from ._table import CALL, RESULT, Refused, Untried, check, judge, names
from ._traits import LOCKED
from ._trial import SPECIAL, SPECIAL_DTYPES, Trial, odd_numbers, trials, value_of
from ._truth import Reading, expected, numbers, same

if TYPE_CHECKING:
    from ._truth import Array

#: Variants that change the numbers of the sample.
_OTHER_NUMBERS = frozenset({"broadcast", "scalar", "zero_tensor", "meta", "nested"})
#: Traits that have a meaning beyond memory, and the effect of losing each.
_LOSSES = {"masked": "drop_mask", "grad": "detach"}


#: After so many trials no other begins once they have taken so many seconds.
_ENOUGH, _BUDGET = 10, 1.0


class ConversionCase(Case):
    """One conversion under test: what is known of it, values for it, and calls.

    Parameters
    ----------
    bench : Bench
    conversion : ResolvedConversion
    main : Trial
        The plainest value that it takes.
    notes : Notes
    """

    def __init__(
        self, bench: Bench, conversion: ResolvedConversion, main: Trial, notes: Notes
    ) -> None:
        super().__init__(bench, notes)
        self.conversion = conversion
        self.label = conversion.conversion.label
        self.take(main)

    def take(self, main: Trial) -> None:
        """Try the checks that follow with another value."""
        self.main = main
        self.activity = f"{self.label} was tried with {main}"

    def trials(self) -> Iterator[Trial]:
        """Yield the values to try, as long as there is time."""
        start = 0.0
        for number, trial in enumerate(trials(self.registry, self.conversion)):
            if number == 1:  # the first may have imported the framework
                start = process_time()
            # Frameworks that compile for every dtype and shape would take too long.
            if number > _ENOUGH and process_time() - start > _BUDGET:
                return
            yield trial

    def working(self) -> Trial:
        """Return the plainest trial that can be made here."""
        for trial in self.trials():
            try:
                self.pair(trial)
            except (NoSample, InteropError, MemoryError):
                continue
            return trial
        return self.main

    def at(self, shape: tuple[int, ...], seed: int = 0) -> Trial:
        """Return the main trial with the nearest possible shape, and the numbers of a seed."""
        shape = fitted(shape, self.conversion)
        return self.main._replace(recipe=self.main.recipe._replace(shape=shape, seed=seed))

    def pair(self, trial: Trial) -> dict[str, Value]:
        """Return a value and what the conversion makes of it."""
        value, step = self.value(trial)
        return {"source": value, "result": self.call(step, value)}

    def value(self, trial: Trial) -> tuple[Value, Step]:
        """Return a value, and the conversion as a step on it.

        Raises
        ------
        NoSample, Refused
            There is no such value here, or the conversion does not take it.
        """
        value = value_of(self.interop, trial)
        spec = self.interop.spec(value)
        step = step_on(self.conversion, spec, trial.dtype, trial.device, trial.order)
        if step is None:
            reason = self.conversion.objection(spec) or f"it does not make {trial.dtype} of it"
            msg = f"{trial}: {reason}"
            raise Refused(msg)
        return value, step

    def call(self, step: Step, value: Value) -> Value:
        """Call the step.

        Raises
        ------
        Refused
            It declined or refused the value, or this machine lacks what it needs.
        """
        try:
            return run((step,), value)
        except RefusedError as error:
            msg = f"{self.label} refused {step.before}: {error}"
            raise Refused(msg) from error
        except StepDeclined as declined:
            msg = f"{self.label} declined {step.before}: {declined}"
            raise Refused(msg) from declined

    def numbers(self, trial: Trial, value: Value, spec: Spec) -> Array | None:
        """Return the numbers of a sample, before anything is done to it."""
        visible = self.truth.witness(value, spec)
        if visible is not None:
            return visible
        if spec.traits & _OTHER_NUMBERS:
            return None
        source = self.conversion.source
        samples = source.samples
        is_varied = samples.make and not trial.recipe.traits.isdisjoint(samples.variants)
        is_coded = source.layout == "affine" or "dequantize" in self.conversion.effects
        is_own = is_coded or is_varied
        if is_own or spec.traits - TRAITS.keys():
            # The plugin itself made this value, so that only others can tell its numbers.
            reading = self.truth.read(value, spec)
            if reading is None:
                return None
            alone = self.label in reading.by and not same(reading.array, numbers(trial.recipe))
            return None if alone else reading.array
        if trial.odd == SPECIAL:
            return None  # they may have changed on the way here
        return odd_numbers(trial) if trial.odd else numbers(trial.recipe)

    def problem_of_numbers(self, reading: Reading | None, truth: Array, step: Step) -> str:
        """Say what is wrong with the numbers of a result; "" if nothing is."""
        if reading is None:
            return ""
        array, certain = expected(truth, step)
        if same(reading.array, array, certain):
            return self._problem_of_bits(reading.array, array, step)
        if "drop_mask" in step.effects | reading.effects and _mostly_same(reading.array, array):
            return ""  # any number may lie under a mask
        if "dequantize" in step.effects and _close(reading.array, array):
            return ""
        readers = f" (as {' → '.join(reading.by)} reads it)" if reading.by else ""
        return f"{self.label} returns {_difference(reading.array, array)}{readers}"

    def _problem_of_bits(self, array: Array, truth: Array, step: Step) -> str:
        """Say what differs between numbers that are equal; "" if nothing does."""
        import numpy as np

        has_bits = array.dtype.name in {*SPECIAL_DTYPES, "bool"}  # others have padding
        if array.dtype != truth.dtype or not has_bits or step.effects & LOSSES:
            return ""
        if array.dtype.kind == "b":
            is_bit = bool(np.all(array.view("u1") <= 1))
            return "" if is_bit else f"{self.label} returns a truth value that is neither 0 nor 1"
        if array.tobytes() == truth.tobytes() or step.before.dtype != step.after.dtype:
            return ""
        return f"{self.label} returns a zero of another sign, or another NaN, than it was given"

    def problem_of_export(self, trial: Trial) -> str:
        """Say that the source exports a copy, if the conversion is one from its protocol."""
        import numpy as np

        name = self.conversion.source.name
        value, step = self.value(trial)
        is_exported = self.conversion.conversion.source != name and step.aliases
        if not is_exported or not hasattr(value, "__dlpack__"):
            return ""
        try:
            shares = self.memory.addresses_overlap(value, np.from_dlpack(value))
        except REFUSALS:
            return ""
        return f"{name} exports a copy: its __dlpack__ gives out other memory" * (shares is False)

    def traced(self, recipe: Recipe) -> tuple[Value, tuple[str, ...]]:
        """Return a sample, and the conversions that made it."""
        with trace() as receipts:
            value = self.sample(recipe)
        return value, tuple(step for receipt in receipts for step in receipt.steps)


class Call(NamedTuple):
    """One call: its argument, with the spec and the numbers that it had before, and its result."""

    case: ConversionCase
    trial: Trial
    value: Value
    spec: Spec
    step: Step
    truth: Array | None
    result: Value = None
    actual: Any = None
    #: What is wrong with the call itself: a problem, or why it was declined.
    outcome: str = ""
    #: What is noted before a check; nothing, since each call is noted.
    activity: str = ""


def examine(case: ConversionCase, trial: Trial) -> None:
    """Call the conversion once, and judge the call by every check."""
    notes = case.notes
    notes.tell("values", f"{case.label} made a result of {trial}")
    try:
        value, step = case.value(trial)
    except (NoSample, Refused) as reason:
        notes.skipped(reason, *OF_A_CALL)
        return
    spec = step.before if step.before.carrier is None else case.interop.spec(value)
    case.tried |= {*spec.traits, spec.element or ""}
    call = Call(case, trial, value, spec, step, case.numbers(trial, value, spec))
    call = _called(call)
    if isinstance(call.outcome, Untried):
        notes.skipped(call.outcome, *OF_A_CALL)
    elif call.outcome:
        notes.failed("values", call.outcome)
    judge(CALL, call, notes, case.label)
    if not call.outcome:
        judge(RESULT, call, notes, case.label)


def _called(call: Call) -> Call:
    """Return the call with its result, or with why there is none."""
    case = call.case
    try:
        result = case.call(call.step, call.value)
    except Refused as reason:
        return call._replace(outcome=Untried(reason))
    except (InteropError, MemoryError) as error:
        device = call.step.after.device
        is_there = device == call.spec.device == "cpu"
        if not is_there and not _does_not_fit(error):
            return call._replace(outcome=Untried(f"on {device} it failed: {error}"))
        return call._replace(outcome=f"{case.label} fails on {call.trial}: {_cause(error)}")
    try:
        return call._replace(result=result, actual=case.interop.spec(result))
    except PluginError as error:  # the fault of `describe`, found where the format is tried
        return call._replace(outcome=Untried(error))
    except InteropError as error:
        problem = f"interop does not recognise what {case.label} returns: {error}"
        return call._replace(outcome=problem)


@check(RESULT, "results hold the numbers that were given, whatever the dtype, shape and layout")
def values(call: Call) -> str | None:
    case, trial, step, actual = call.case, call.trial, call.step, call.actual
    unknown = case.registry.formats[actual.format].not_recoverable
    if actual.format != step.after.format:
        return f"{case.label} returns {actual.format} for {step.after.format} ({trial})"
    if call.truth is None:
        return Untried(f"nothing tells the numbers of {trial}")
    if actual.device != "cpu" and step.after.device == "cpu":
        return None
    reading = case.truth.read(call.result, actual)
    if reading is None or (not step.before.size and "shape" in unknown):
        return Untried(f"the numbers of {actual} cannot be read")
    problem = case.problem_of_numbers(reading, call.truth, step)
    if problem and reading.by and (trial.odd == SPECIAL or not _is_read_well(call)):
        # The fault lies with the readers, and is found where they are tried.
        return Untried(f"{' → '.join(reading.by)} does not read {actual} as it was made")
    return problem and f"{problem} ({trial}{_makers(call)})"


def _is_read_well(call: Call) -> bool:
    """Return whether a value of the same kind, made without the conversion, reads well."""
    actual = call.actual
    if actual.dtype is None:
        return True
    name, dtype, device, shape, traits = actual[:5]
    density = 1.0 if actual.nnz is None else 0.5
    recipe = Recipe(name, dtype or "", shape, traits, device, density, full=True)
    try:
        value, makers = call.case.traced(recipe)
    except NoSample:
        return True
    reading = call.case.truth.read(value)
    odd = traits & call.case.registry.formats[name].samples.variants.keys()
    if call.case.label in makers and not odd:
        return True  # the conversion must not be judged by itself
    return reading is None or same(reading.array, numbers(recipe))


def _makers(call: Call) -> str:
    """Name the conversions that made a value, if only they can tell its numbers."""
    if call.trial.odd or call.case.truth.witness(call.value, call.spec) is not None:
        return ""
    _, makers = call.case.traced(call.trial.recipe)
    others = dict.fromkeys(label for label in makers if label != call.case.label)
    return f", as {' → '.join(others)} made it" if others else ""


@check(RESULT, "results have the promised dtype, also of indices and codes")
def dtype(call: Call) -> str | None:
    actual, planned, target = call.actual, call.step.after, call.case.conversion.target
    if "dtype" in target.not_recoverable:
        return None
    holds = target.index_dtypes | (target.components.code_dtypes if target.components else set())
    for field, what in (("element", ""), ("index_dtype", " indices"), ("code_dtype", " codes")):
        dtype, promised = getattr(actual, field), getattr(planned, field)
        # An array without axes has no indices.
        if dtype != promised and (field == "element" or (actual.shape and promised in holds)):
            return f"{call.case.label} returns {dtype}{what} for {promised}{what} ({call.trial})"
    return ""


@check(RESULT, "results have the promised shape")
def shape(call: Call) -> str | None:
    actual, planned = call.actual.shape, call.step.after.shape
    if "shape" in call.case.conversion.target.not_recoverable:
        return None
    problem = f"{call.case.label} returns the shape {actual} for {planned} ({call.trial})"
    return problem if actual != planned else ""


@check(RESULT, "results are on the promised device")
def device(call: Call) -> str:
    actual, planned = call.actual.device, call.step.after.device
    problem = f"{call.case.label} returns a result on {actual}, not on {planned} ({call.trial})"
    return "" if matches(actual, planned) else problem


@check(RESULT, "traits that it keeps are there, and traits that it drops are gone")
def traits(call: Call) -> str:
    trial, actual, step = call.trial, call.actual, call.step
    promised = in_any_order(step.after.traits)
    # Weak numbers are seen in the numbers, and whether columns are blocks in the lengths, which
    # plans do not know: each column of a frame of one row is one.
    unforeseen = LOCKED | {"weak", "block_columns"}
    if "scattered" in promised - actual.traits:
        unforeseen |= FORTRAN | {"noncontiguous"}  # columns that happen to lie side by side
    extra = sorted(actual.traits - promised - unforeseen)
    # A value and its columns may lie plainer in memory than promised, but its meaning must not
    # change.
    plainer = MEMORY_TRAITS | COLUMN_TRAITS | _harmless(call)
    lost = sorted(promised - actual.traits - plainer)
    # Who takes an order lays elements out in it; what others return may lie plainer.
    turned = step.after.traits & FORTRAN
    turned -= frozenset() if call.case.conversion.orders else step.before.traits
    if turned - actual.traits and not has_one_order(actual):
        return (
            f"{call.case.label} returns a result that is not 'fortran', which it declares ({trial})"
        )
    if extra:
        is_dropped = extra[0] in step.before.traits
        claim = "but declares that it drops that" if is_dropped else "which it does not declare"
        return f"{call.case.label} returns a result that is {extra[0]!r}, {claim} ({trial})"
    if lost:
        effect = _LOSSES.get(lost[0])
        claim = "which it takes and does not declare to drop"
        claim += f", nor has it the effect {effect!r}" if effect else ""
        return f"{call.case.label} loses {lost[0]!r}, {claim} ({trial})"
    return ""


def _harmless(call: Call) -> set[str]:
    """Return the traits that a step within one of the formats drops without a loss."""
    formats = {call.step.before.format, call.step.after.format}
    conversions = (declared.conversion for declared in call.case.registry.conversions)
    return {
        trait
        for conversion in conversions
        if conversion.source == conversion.target and conversion.source in formats
        if not conversion.effects & LOSSES
        for trait in conversion.drops
    }


@check(RESULT, "what happens is what is declared: a lost graph or mask, a move, a dense result")
def effects(call: Call) -> str:
    trial, actual, step = call.trial, call.actual, call.step
    before, label, effects = step.before, call.case.label, step.effects
    for trait, effect in _LOSSES.items():
        if trait in before.traits - actual.traits and effect not in effects:
            return f"{label} loses {trait!r} without the effect {effect!r} ({trial})"
    moved = not matches(actual.device, before.device)
    if moved != ("transfer" in effects):
        act = "moves the data without" if moved else "leaves the data where they are, but has"
        return f"{label} {act} the effect 'transfer' ({trial})"
    source, target = call.case.conversion.source, call.case.conversion.target
    for effect, applies in (
        ("densify", source.is_sparse and target.is_dense and not target.wrapper),
        ("dequantize", source.layout == "affine" and target.is_dense),
    ):
        if applies and not effects & {effect, "materialize"}:
            return f"{label} makes {target.name} of {source.name} without the effect {effect!r}"
        if effect in effects and not target.is_dense:
            return f"{label} has the effect {effect!r}, but {target.name} is not dense"
    return ""


@check(CALL, "the argument is unchanged, even if the conversion declined it")
def source(call: Call) -> str | None:
    case, spec = call.case, call.case.interop.spec(call.value)
    declined = " and then declined it" if isinstance(call.outcome, Untried) else ""
    problem = f"{case.label} changed the numbers of its argument{declined}, {call.trial}"
    if spec != call.spec:
        return f"{case.label} turned its argument, which was {call.spec}, into {spec}"
    if call.truth is None:
        return None
    reading = case.truth.read(call.value, spec)
    if reading is None:
        return Untried(f"the numbers of {spec} cannot be read")
    if same(reading.array, call.truth):
        return ""
    if not reading.by:
        return problem
    # Only conversions can read the value.
    readers = " → ".join(reading.by)
    if _close(reading.array, call.truth):
        return ""
    if _first_reading_differs(call):
        return Untried(f"{readers} does not read {spec} as it was made")
    return f"{problem} (as {readers} reads it)"


def _first_reading_differs(call: Call) -> bool:
    reading = call.case.truth.read(value_of(call.case.interop, call.trial))
    return reading is None or call.truth is None or not same(reading.array, call.truth)


@check(RESULT, "read-only memory stays read-only, and copies can be written")
def readonly(call: Call) -> str:
    step, label = call.step, call.case.label
    is_locked, is_promised = bool(call.actual.traits & LOCKED), bool(step.after.traits & LOCKED)
    may_copy, is_writable = step.aliases and step.effects & COPYING, _is_writable(call)
    shares = call.case.memory.numbers_overlap
    problem = ""
    if may_copy and not is_locked and not shares(call.value, call.result):
        return ""  # the step made a copy this time
    if is_promised and not is_locked:
        problem = f"{label} makes read-only memory writable"
    elif not is_promised and (is_locked or is_writable is False):
        claim = "" if step.aliases else ", but says that it copies"
        problem = f"{label} returns a result that cannot be written{claim}"
    elif _opens_memory(call):
        problem = f"{label} makes read-only memory writable, which drops= cannot permit"
    elif is_promised and is_writable:
        problem = f"{label} says that the result is read-only, but it can be written"
    return problem and f"{problem} ({call.trial})"


def _opens_memory(call: Call) -> bool:
    """Return whether read-only memory is shared as what may be written, with no effect."""
    is_opened = "readonly" in call.spec.traits and not call.actual.traits & LOCKED
    is_told = "share_readonly" in call.step.effects or not call.step.aliases
    return is_opened and not is_told and call.case.memory.numbers_overlap(call.value, call.result)


def _is_writable(call: Call) -> bool | None:
    if call.actual.format != call.case.truth.hub or "scalar" in call.actual.traits:
        return None
    return bool(call.result.flags.writeable)


@check(RESULT, "a view shares memory and a copy does not, by the addresses and by writing")
def sharing(call: Call) -> str | None:
    case, step, memory = call.case, call.step, call.case.memory
    ends = (step.before, step.after)
    if call.actual.format != step.after.format or not step.before.size or step.before.nnz == 0:
        return None
    if step.aliases and step.effects & COPYING:
        return Untried("it may share memory or not, as it finds")
    is_far = all(end.device != "cpu" for end in ends)
    writers = [end.format for end in ends if memory.can_fill(end)]
    if is_far and not writers:
        return Untried("nothing but a conversion can write on the devices")
    by = f" by fill of format {writers[0]}" if writers else ""
    case.notes.tell("sharing", f"the memory of {call.trial} was written{by}")
    by_address = None if is_far else memory.addresses_overlap(call.value, call.result)
    by_write = memory.is_written_through(call.value, call.result)
    if by_address is None and by_write is None:
        names = sorted({end.format for end in ends})
        return Untried(f"nothing tells where {' and '.join(names)} values lie")
    problem = _problem_of_sharing(call, by_address, by_write)
    return problem and (case.problem_of_export(call.trial) or problem)


def _problem_of_sharing(call: Call, by_address: bool | None, by_write: bool | None) -> str:
    trial, step = call.trial, call.step
    shares = by_address if by_write is None else by_write
    evidence = "by the addresses" if by_write is None else "a write to one shows in the other"
    if step.aliases and not shares:
        evidence = evidence.replace("shows", "does not show")
        return f"{call.case.label} says that it shares memory, but copies: {evidence} ({trial})"
    if not step.aliases and (by_address or by_write):
        evidence = "by the addresses" if not by_write else evidence
        return f"{call.case.label} says that it copies, but shares memory: {evidence} ({trial})"
    if by_address is not None and by_address != shares:
        names = f"{step.before.format} and {step.after.format}"
        return (
            f"{names} do not report the addresses at which {call.case.label} lets them share "
            f"({trial})"
        )
    return ""


#: The checks to which every call contributes.
OF_A_CALL = (*names(CALL), *names(RESULT))


def _mostly_same(array: Array, truth: Array) -> bool:
    if array.shape != truth.shape:
        return False
    differing = sum(not same(a, b) for a, b in zip(array.ravel(), truth.ravel(), strict=True))
    return differing <= max(1, array.size // 2)


def _close(array: Array, truth: Array) -> bool:
    import numpy as np

    if array.shape != truth.shape or array.dtype.kind not in "fc":
        return False
    return bool(np.allclose(array.astype("c16"), truth.astype("c16"), 1e-2, 1e-6))


def _difference(array: Array, truth: Array) -> str:
    """Say how an array differs from what it should be."""
    import numpy as np

    if array.shape != truth.shape:
        is_transposed = array.ndim > 1 and same(array.T, truth)
        return f"the {'transpose, of ' if is_transposed else ''}shape {array.shape}"
    try:
        if same(np.sort(array, None), np.sort(truth, None)):
            return "its elements in another order"
        if _close(array, truth):
            return "fewer digits than it was given"
    except REFUSALS:  # dtypes that cannot be compared
        pass
    return "other numbers than it was given"


def _does_not_fit(error: BaseException) -> bool:
    """Return whether a function was not even entered, because it does not take its keywords."""
    cause = error.__cause__
    trace = None if cause is None else cause.__traceback__
    return isinstance(cause, TypeError) and trace is not None and trace.tb_next is None


def _cause(error: BaseException) -> str:
    """Return what a foreign function raised, on one line."""
    cause = error.__cause__ or error
    return f"{type(cause).__name__}: {first_line(cause)}"
