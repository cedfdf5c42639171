"""Calls: one conversion is called on one value, and its result compared with the declaration."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from interop._api.inspection import Inspection
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

from ._memory import Memory
from ._notes import Notes
from ._sample import REFUSALS, NoSample, Recipe, first_line, step_on
from ._traits import LOCKED
from ._trial import SPECIAL, SPECIAL_DTYPES, Trial, odd_numbers, sampled, value_of
from ._truth import Reading, Truth, expected, numbers, same

if TYPE_CHECKING:
    from interop._api.interop import Interop

    from ._truth import Array

#: The checks to which every call contributes.
OF_A_CALL = (
    "values", "dtype", "shape", "device", "traits", "effects", "source", "sharing", "readonly",
)  # fmt: skip

#: Variants that change the numbers of the sample.
_OTHER_NUMBERS = frozenset({"broadcast", "scalar", "zero_tensor", "meta", "nested"})
#: Traits that have a meaning beyond memory, and the effect of losing each.
_LOSSES = {"masked": "drop_mask", "grad": "detach"}


class _Call(NamedTuple):
    """One call: its argument, with the spec and the numbers that it had before."""

    trial: Trial
    value: Value
    spec: Spec
    step: Step
    truth: Array | None


class Refused(Exception):  # noqa: N818 - it carries a reason
    """A conversion could not be tried on a value; the text says why."""


class Caller:
    """Calls one conversion, and compares the results with the declaration.

    Parameters
    ----------
    interop : Interop
    conversion : ResolvedConversion
    """

    def __init__(self, interop: Interop, conversion: ResolvedConversion) -> None:
        self.interop = interop
        self.conversion = conversion
        self.label = conversion.conversion.label
        self.truth = Truth(interop)
        self.memory = Memory(interop, self.truth)
        #: The traits and dtypes of the values on which it has been tried.
        self.tried: set[str] = set()
        self._registry = Inspection(interop).registry

    # ------------------------------------------------------------------ pieces for all stages

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
        is_own = source.layout == "affine" or is_varied
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

        has_bits = array.dtype.name in {
            *SPECIAL_DTYPES,
            "bool",
        }  # others have padding
        if array.dtype != truth.dtype or not has_bits or step.effects & LOSSES:
            return ""
        if array.dtype.kind == "b":
            is_bit = bool(np.all(array.view("u1") <= 1))
            return "" if is_bit else f"{self.label} returns a truth value that is neither 0 nor 1"
        if array.tobytes() == truth.tobytes() or step.before.dtype != step.after.dtype:
            return ""
        return f"{self.label} returns a zero of another sign, or another NaN, than it was given"

    # ------------------------------------------------------------------ one call

    def examine(self, trial: Trial, notes: Notes) -> None:
        """Call the conversion once, and note the outcome of every check."""
        notes.tell("values", f"{self.label} made a result of {trial}")
        try:
            value, step = self.value(trial)
        except (NoSample, Refused) as reason:
            notes.skipped(reason, *OF_A_CALL)
            return
        spec = step.before if step.before.carrier is None else self.interop.spec(value)
        self.tried |= {*spec.traits, spec.element or ""}
        call = _Call(trial, value, spec, step, self.numbers(trial, value, spec))
        result = self._result(call, notes)
        if result is None:
            return
        try:
            actual = self.interop.spec(result)
        except PluginError as error:
            notes.skipped(error)  # the fault of `describe`, found where the format is tried
            return
        except InteropError as error:
            notes.failed("values", f"interop does not recognise what {self.label} returns: {error}")
            return
        liar = self._problem_of_description(result, actual, call)
        if liar:  # which the format's own checks find, too, if they can make such a value
            notes.failed("dtype" if actual.shape == step.after.shape else "shape", liar)
            return
        self._judge_spec(trial, actual, step, notes)
        self._judge_numbers(call, result, actual, notes)
        self._judge_locks(call, result, actual, notes)
        if actual.format == step.after.format:
            self._judge_sharing(call, result, notes)

    def _result(self, call: _Call, notes: Notes) -> Value | None:
        """Return the result, if any, and note whether the source is unchanged."""
        declined = ""
        result = None
        try:
            result = self.call(call.step, call.value)
        except Refused as reason:
            notes.skipped(reason, *OF_A_CALL)
            declined = " and then declined it"
        except (InteropError, MemoryError) as error:
            device = call.step.after.device
            is_there = device == call.spec.device == "cpu"
            if not is_there and not _does_not_fit(error):
                notes.skipped(f"on {device} it failed: {error}", *OF_A_CALL)
            else:
                notes.failed("values", f"{self.label} fails on {call.trial}: {_cause(error)}")
        self._judge_source(call, declined, notes)
        return result

    def _judge_source(self, call: _Call, declined: str, notes: Notes) -> None:
        """Note whether the argument is as it was."""
        spec = self.interop.spec(call.value)
        problem = f"{self.label} changed the numbers of its argument{declined}, {call.trial}"
        if spec != call.spec:
            argument = f"its argument, which was {call.spec}, into {spec}"
            notes.failed("source", f"{self.label} turned {argument}")
            return
        visible = self.truth.witness(call.value, spec)
        if call.truth is None:
            return
        if visible is not None:
            notes.judge("source", "" if same(visible, call.truth) else problem)
            return
        # Only conversions can read the value.
        reading = self.truth.read(call.value, spec)
        if reading is None:
            notes.skipped(f"the numbers of {spec} cannot be read", "source")
            return
        readers = " → ".join(reading.by)
        if same(reading.array, call.truth) or _close(reading.array, call.truth):
            notes.passed("source")
        elif self._first_reading_differs(call.trial, call.truth):
            notes.skipped(f"{readers} does not read {spec} as it was made", "source")
        else:
            notes.failed("source", f"{problem} (as {readers} reads it)")

    def _first_reading_differs(self, trial: Trial, truth: Array) -> bool:
        reading = self.truth.read(value_of(self.interop, trial))
        return reading is None or not same(reading.array, truth)

    def _problem_of_description(self, result: Value, actual: Spec, call: _Call) -> str:
        """Return a problem if the numbers are as promised and only the description is wrong."""
        planned = call.step.after
        agrees = (
            actual.format == planned.format
            and actual.dtype in (planned.element, planned.dtype)
            and actual.shape == planned.shape
        )
        format_ = self._registry.formats[actual.format]
        moved = not matches(actual.device, planned.device)  # numbers cannot tell where they are
        exempt = format_.name == self.truth.hub or format_.not_recoverable
        if agrees or moved or exempt or call.truth is None:
            return ""
        truth, certain = expected(call.truth, call.step)
        for array in self.truth.other_readings(result, format_):
            if array.dtype == truth.dtype and same(array, truth, certain):
                name = format_.name
                return f"describe of format {name} is wrong about {self.label}'s result: {actual}"
        return ""

    def _judge_spec(self, trial: Trial, actual: Spec, step: Step, notes: Notes) -> None:
        label, planned = self.label, step.after
        unknown = self._registry.formats[actual.format].not_recoverable
        if actual.format != planned.format:
            problem = f"{label} returns {actual.format} for {planned.format} ({trial})"
            notes.failed("values", problem)
            return
        if "shape" not in unknown:
            problem = f"{label} returns the shape {actual.shape} for {planned.shape} ({trial})"
            notes.judge("shape", problem if actual.shape != planned.shape else "")
        if "dtype" not in unknown:
            notes.judge("dtype", self._problem_of_dtypes(trial, actual, planned))
        problem = f"{label} returns a result on {actual.device}, not on {planned.device} ({trial})"
        notes.judge("device", "" if matches(actual.device, planned.device) else problem)
        notes.judge("traits", self._problem_of_traits(trial, actual, step))
        notes.judge("effects", self._problem_of_effects(trial, actual, step))

    def _problem_of_dtypes(self, trial: Trial, actual: Spec, planned: Spec) -> str:
        target = self.conversion.target
        codes = target.components.code_dtypes if target.components else frozenset()
        holds = target.index_dtypes | codes
        for field, what in (("element", ""), ("index_dtype", " indices"), ("code_dtype", " codes")):
            dtype, promised = getattr(actual, field), getattr(planned, field)
            if dtype != promised and (field == "element" or (actual.shape and promised in holds)):
                return f"{self.label} returns {dtype}{what} for {promised}{what} ({trial})"
        return ""

    def _problem_of_traits(self, trial: Trial, actual: Spec, step: Step) -> str:
        promised = in_any_order(step.after.traits)
        # Weak numbers are seen in the numbers, and whether columns are blocks in the lengths, which
        # plans do not know: each column of a frame of one row is one.
        extra = sorted(actual.traits - promised - LOCKED - {"weak", "block_columns"})
        # A value and its columns may lie plainer in memory than promised, but its meaning must not
        # change.
        plainer = MEMORY_TRAITS | COLUMN_TRAITS | self._harmless(step)
        lost = sorted(promised - actual.traits - plainer)
        turned = step.after.traits & FORTRAN - step.before.traits
        if turned - actual.traits and not has_one_order(actual):
            return (
                f"{self.label} returns a result that is not 'fortran', which it declares ({trial})"
            )
        if extra:
            is_dropped = extra[0] in step.before.traits
            claim = "but declares that it drops that" if is_dropped else "which it does not declare"
            return f"{self.label} returns a result that is {extra[0]!r}, {claim} ({trial})"
        if lost:
            effect = _LOSSES.get(lost[0])
            claim = "which it takes and does not declare to drop"
            claim += f", nor has it the effect {effect!r}" if effect else ""
            return f"{self.label} loses {lost[0]!r}, {claim} ({trial})"
        return ""

    def _harmless(self, step: Step) -> set[str]:
        """Return the traits that a step within one of the formats drops without a loss."""
        formats = {step.before.format, step.after.format}
        conversions = (declared.conversion for declared in self._registry.conversions)
        return {
            trait
            for conversion in conversions
            if conversion.source == conversion.target and conversion.source in formats
            if not conversion.effects & LOSSES
            for trait in conversion.drops
        }

    def _problem_of_effects(self, trial: Trial, actual: Spec, step: Step) -> str:
        before, label, effects = step.before, self.label, step.effects
        for trait, effect in _LOSSES.items():
            if trait in before.traits - actual.traits and effect not in effects:
                return f"{label} loses {trait!r} without the effect {effect!r} ({trial})"
        moved = not matches(actual.device, before.device)
        if moved != ("transfer" in effects):
            act = "moves the data without" if moved else "leaves the data where they are, but has"
            return f"{label} {act} the effect 'transfer' ({trial})"
        source, target = self.conversion.source, self.conversion.target
        for effect, applies in (
            ("densify", source.is_sparse and target.is_dense and not target.wrapper),
            ("dequantize", source.layout == "affine" and target.is_dense),
        ):
            if applies and not effects & {effect, "materialize"}:
                return f"{label} makes {target.name} of {source.name} without the effect {effect!r}"
            if effect in effects and not target.is_dense:
                return f"{label} has the effect {effect!r}, but {target.name} is not dense"
        return ""

    def _judge_numbers(self, call: _Call, result: Value, actual: Spec, notes: Notes) -> None:
        trial, step = call.trial, call.step
        if call.truth is None:
            notes.skipped(f"nothing tells the numbers of {trial}", "values")
            return
        if actual.device != "cpu" and step.after.device == "cpu":
            return
        reading = self.truth.read(result, actual)
        unknown = self._registry.formats[actual.format].not_recoverable
        if reading is None or (not step.before.size and "shape" in unknown):
            notes.skipped(f"the numbers of {actual} cannot be read", "values")
            return
        problem = self.problem_of_numbers(reading, call.truth, step)
        is_special = trial.odd == SPECIAL
        if problem and reading.by and (is_special or not self._is_read_well(actual)):
            # The fault lies with the readers, and is found where they are tried.
            readers = " → ".join(reading.by)
            notes.skipped(f"{readers} does not read {actual} as it was made", "values")
        elif problem:
            notes.failed("values", f"{problem} ({trial}{self._makers(call)})")
        else:
            notes.passed("values")

    def _is_read_well(self, actual: Spec) -> bool:
        """Return whether a value of the same kind, made without the conversion, reads well."""
        if actual.dtype is None:
            return True
        name, dtype, device, shape, traits = actual[:5]
        density = 1.0 if actual.nnz is None else 0.5
        recipe = Recipe(name, dtype or "", shape, traits, device, density, full=True)
        try:
            value, makers = self._sampled(recipe)
        except NoSample:
            return True
        reading = self.truth.read(value)
        odd = traits & self._registry.formats[name].samples.variants.keys()
        if self.label in makers and not odd:
            return True  # the conversion must not be judged by itself
        return reading is None or same(reading.array, numbers(recipe))

    def _sampled(self, recipe: Recipe) -> tuple[Value, tuple[str, ...]]:
        """Return a sample, and the conversions that made it."""
        with trace() as receipts:
            value = sampled(self.interop, recipe)
        return value, tuple(step for receipt in receipts for step in receipt.steps)

    def _makers(self, call: _Call) -> str:
        """Name the conversions that made a value, if only they can tell its numbers."""
        if call.trial.odd or self.truth.witness(call.value, call.spec) is not None:
            return ""
        _, makers = self._sampled(call.trial.recipe)
        others = dict.fromkeys(label for label in makers if label != self.label)
        return f", as {' → '.join(others)} made it" if others else ""

    def _judge_locks(self, call: _Call, result: Value, actual: Spec, notes: Notes) -> None:
        """Note whether read-only memory stays read-only, and fresh memory is writable."""
        step, is_locked = call.step, bool(actual.traits & LOCKED)
        is_promised = bool(step.after.traits & LOCKED)
        is_writable = self._is_writable(result, actual)
        problem = ""
        may_copy = step.aliases and step.effects & COPYING
        if may_copy and not is_locked and not self.memory.numbers_overlap(call.value, result):
            notes.passed("readonly")  # the step made a copy this time
            return
        if is_promised and not is_locked:
            problem = f"{self.label} makes read-only memory writable"
        elif not is_promised and (is_locked or is_writable is False):
            claim = "" if step.aliases else ", but says that it copies"
            problem = f"{self.label} returns a result that cannot be written{claim}"
        elif self._opens_memory(call, result, actual):
            problem = f"{self.label} makes read-only memory writable, which drops= cannot permit"
        elif is_promised and is_writable:
            problem = f"{self.label} says that the result is read-only, but it can be written"
        notes.judge("readonly", f"{problem} ({call.trial})" if problem else "")

    def _opens_memory(self, call: _Call, result: Value, actual: Spec) -> bool:
        """Return whether read-only memory is shared as what may be written, with no effect."""
        is_opened = "readonly" in call.spec.traits and not actual.traits & LOCKED
        is_told = "share_readonly" in call.step.effects
        return is_opened and not is_told and self.memory.numbers_overlap(call.value, result)

    def _is_writable(self, result: Value, actual: Spec) -> bool | None:
        if actual.format != self.truth.hub or "scalar" in actual.traits:
            return None
        return bool(result.flags.writeable)

    def _judge_sharing(self, call: _Call, result: Value, notes: Notes) -> None:
        trial, value, step = call.trial, call.value, call.step
        if step.aliases and step.effects & COPYING:
            notes.skipped("it may share memory or not, as it finds", "sharing")
            return
        if not step.before.size or step.before.nnz == 0:
            return
        ends = (step.before, step.after)
        if all(end.device != "cpu" and not self.memory.can_fill(end) for end in ends):
            notes.skipped("nothing but a conversion can write on the devices", "sharing")
            return
        notes.tell("sharing", f"the memory of {trial} was written")
        by_address = self.memory.addresses_overlap(value, result)
        by_write = self.memory.is_written_through(value, result)
        if by_address is None and by_write is None:
            names = sorted({step.before.format, step.after.format})
            notes.skipped(f"nothing tells where {' and '.join(names)} values lie", "sharing")
            return
        problem = self._problem_of_sharing(trial, step, by_address, by_write)
        if problem:
            liar = self.memory_liar(trial)
            if liar:
                notes.skipped(liar, "sharing")
                return
            problem = self.problem_of_export(trial) or problem
        notes.judge("sharing", problem)

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

    def memory_liar(self, trial: Trial) -> str:
        """Return a problem if a format reports addresses where its numbers do not lie."""
        value, step = self.value(trial)
        for array in (value, self.call(step, value)):
            problem = self.memory.problem_of_addresses(array)
            if problem:
                return problem
        return ""

    def _problem_of_sharing(
        self, trial: Trial, step: Step, by_address: bool | None, by_write: bool | None
    ) -> str:
        shares = by_address if by_write is None else by_write
        evidence = "by the addresses" if by_write is None else "a write to one shows in the other"
        if step.aliases and not shares:
            evidence = evidence.replace("shows", "does not show")
            return f"{self.label} says that it shares memory, but copies: {evidence} ({trial})"
        if not step.aliases and (by_address or by_write):
            evidence = "by the addresses" if not by_write else evidence
            return f"{self.label} says that it copies, but shares memory: {evidence} ({trial})"
        if by_address is not None and by_address != shares:
            names = f"{step.before.format} and {step.after.format}"
            return (
                f"{names} do not report the addresses at which {self.label} lets them share "
                f"({trial})"
            )
        return ""


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
