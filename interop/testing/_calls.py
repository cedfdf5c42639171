"""Calls: one conversion, called on one value, and everything that it promised about the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from interop._calibration.sample import NoSample, Wanted
from interop._execution.runner import Halt, Runner
from interop._execution.trace import trace
from interop._model.device import matches
from interop._model.effect import COPYING, LOSING
from interop._model.spec import MEMORY_TRAITS, TRAITS, Spec
from interop._planning.step import ResolvedConversion, Step
from interop.errors import InteropError

from ._memory import Memory
from ._notes import Notes
from ._trial import Trial, made, sampled, step_of
from ._truth import REFUSALS, Reading, Truth, expected, numbers, same

if TYPE_CHECKING:
    import numpy as np

    from interop._api.interop import Interop

    Array = np.ndarray[Any, Any]

__all__ = ["Caller", "Refused"]

#: The checks that every call is good for.
OF_A_CALL = (
    "values", "dtype", "shape", "device", "traits", "effects", "source", "sharing", "readonly",
)  # fmt: skip

#: Variants whose numbers are not those that the sample was made from.
_OTHER_NUMBERS = frozenset({"broadcast", "scalar", "zero_tensor", "meta"})
#: Traits that say what a value is, and the effect of losing each.
_LOSSES = {"masked": "drop_mask", "grad": "detach"}
_LOCKED = frozenset({"readonly", "immutable"})


class _Call(NamedTuple):
    """One call: what it is given, and what that was before."""

    trial: Trial
    value: Any
    spec: Spec
    step: Step
    truth: Array | None


class Refused(Exception):  # noqa: N818 - it carries a reason
    """A conversion could not be tried on a value; the text says why."""


class Caller:
    """Calls one conversion, and holds the result against what was declared.

    Parameters
    ----------
    face : Interop
    edge : ResolvedConversion
    label : str
        What to call the conversion.
    """

    def __init__(self, face: Interop, edge: ResolvedConversion, label: str) -> None:
        self.face = face
        self.edge = edge
        self.label = label
        self.truth = Truth(face)
        self.memory = Memory(face, self.truth)
        self._registry = face._loaded()

    # ------------------------------------------------------------------ pieces for all stages

    def value(self, trial: Trial) -> tuple[Any, Step]:
        """Return a value, and the conversion as a step on it.

        Raises
        ------
        NoSample, Refused
            There is no such value here, or the conversion does not take it.
        """
        value = made(self.face, trial)
        spec = self.face.spec(value)
        step = step_of(self.edge, trial, spec)
        if step is None:
            why = self.edge.objection(spec) or f"it does not make {trial.to} of it"
            msg = f"of {trial}: {why}"
            raise Refused(msg)
        return value, step

    def call(self, step: Step, value: Any) -> Any:
        """Carry out the step.

        Raises
        ------
        Refused
            It declined, or this machine lacks what it needs.
        """
        try:
            return Runner((step,))(value)
        except Halt as halt:
            msg = f"{self.label} declined {step.before}: {halt}"
            raise Refused(msg) from halt

    def numbers(self, trial: Trial, value: Any, spec: Spec) -> Array | None:
        """Return the numbers of a sample, before anything is done to it."""
        seen = self.truth.witness(value, spec)
        if seen is not None:
            return seen
        if spec.traits & _OTHER_NUMBERS:
            return None
        own = self.edge.source.layout == "affine" or self.edge.source.sample is not None
        if own or spec.traits - TRAITS.keys():
            # What its own plugin only makes of the numbers, others must tell.
            reading = self.truth.read(value, spec)
            if reading is None:
                return None
            alone = self.label in reading.by and not same(reading.array, numbers(trial.wanted))
            return None if alone else reading.array
        array = numbers(trial.wanted)
        return array[None] if trial.odd.startswith("odd") else array

    def problem_of_numbers(self, reading: Reading | None, truth: Array, step: Step) -> str:
        """Say what is wrong with the numbers of a result; "" if nothing is."""
        if reading is None:
            return ""
        wanted, sure = expected(truth, step)
        if same(reading.array, wanted, sure):
            return ""
        if "drop_mask" in step.effects | reading.effects and _mostly_same(reading.array, wanted):
            return ""  # what lies under a mask may be anything
        if "dequantize" in step.effects and _near(reading.array, wanted):
            return ""
        by = f" (as {' → '.join(reading.by)} reads it)" if reading.by else ""
        return f"{self.label} gives {_difference(reading.array, wanted)}{by}"

    # ------------------------------------------------------------------ one call

    def examine(self, trial: Trial, notes: Notes) -> None:
        """Call the conversion once, and note everything that can be seen."""
        notes.tell("values", f"it made a result of {trial}")
        try:
            value, step = self.value(trial)
        except (NoSample, Refused) as reason:
            notes.skipped(reason, *OF_A_CALL)
            return
        spec = step.before if step.before.carrier is None else self.face.spec(value)
        call = _Call(trial, value, spec, step, self.numbers(trial, value, spec))
        result = self._called(call, notes)
        if result is None:
            return
        try:
            got = self.face.spec(result)
        except InteropError as error:
            notes.failed("values", f"{self.label} gives what nothing recognises: {error}")
            return
        liar = self._describes_wrongly(result, got, call)
        if liar:
            notes.skipped(liar)
            return
        self._judge_spec(trial, got, step, notes)
        self._judge_numbers(call, result, got, notes)
        self._judge_locks(call, result, got, notes)
        if got.format == step.after.format:
            self._judge_sharing(call, result, notes)

    def _called(self, call: _Call, notes: Notes) -> Any:
        """Return the result, or None if there is none; note whether the source is as it was."""
        declined = ""
        result = None
        try:
            result = self.call(call.step, call.value)
        except Refused as reason:
            notes.skipped(reason, *OF_A_CALL)
            declined = " and then declined it"
        except (InteropError, MemoryError) as error:
            device = call.step.after.device
            if device != "cpu" or call.spec.device != "cpu":
                notes.skipped(f"on {device} it failed: {error}", *OF_A_CALL)
            else:
                notes.failed("values", f"{self.label} fails on {call.trial}: {_cause(error)}")
        self._judge_source(call, declined, notes)
        return result

    def _judge_source(self, call: _Call, declined: str, notes: Notes) -> None:
        now = self.face.spec(call.value)
        said = f"{self.label} changed the numbers of its argument{declined}, {call.trial}"
        if now != call.spec:
            was = f"{now} of its argument, which was {call.spec}"
            notes.failed("source", f"{self.label} made {was}")
            return
        seen = self.truth.witness(call.value, now)
        if call.truth is None or (seen is None and now.device != "cpu"):
            return
        if seen is not None:
            notes.judge("source", "" if same(seen, call.truth) else said)
            return
        # Only conversions can read it.
        reading = self.truth.read(call.value, now)
        if reading is None:
            notes.skipped(f"the numbers of {now} cannot be read", "source")
            return
        by = " → ".join(reading.by)
        if same(reading.array, call.truth) or _near(reading.array, call.truth):
            notes.passed("source")
        elif self._first_reading_differs(call.trial, call.truth):
            notes.skipped(f"{by} does not read {now} as it was made", "source")
        else:
            notes.failed("source", f"{said} (as {by} reads it)")

    def _first_reading_differs(self, trial: Trial, truth: Array) -> bool:
        fresh = made(self.face, trial)
        reading = self.truth.read(fresh)
        return reading is None or not same(reading.array, truth)

    def _describes_wrongly(self, result: Any, got: Spec, call: _Call) -> str:
        """Say so if the numbers are as promised, and only the description is not."""
        planned = call.step.after
        agrees = (
            got.format == planned.format
            and got.dtype in (planned.element, planned.dtype)
            and got.shape == planned.shape
        )
        one = self._registry.formats[got.format]
        moved = not matches(got.device, planned.device)  # which no numbers can tell
        if agrees or moved or call.truth is None or one.name == self.truth.hub or one.forgets:
            return ""
        wanted, sure = expected(call.truth, call.step)
        for array in self.truth.other_readings(result, one):
            if array.dtype == wanted.dtype and same(array, wanted, sure):
                return f"describe of format {one.name} is wrong about {self.label}'s result: {got}"
        return ""

    def _judge_spec(self, trial: Trial, got: Spec, step: Step, notes: Notes) -> None:
        planned, forgets = step.after, self._registry.formats[got.format].forgets
        who = self.label
        if got.format != planned.format:
            notes.failed("values", f"{who} gives {got.format} for {planned.format} ({trial})")
            return
        if "shape" not in forgets:
            wrong = f"{who} gives the shape {got.shape} for {planned.shape} ({trial})"
            notes.judge("shape", wrong if got.shape != planned.shape else "")
        if "dtype" not in forgets:
            wrong = f"{who} gives {got.dtype} for {planned.element} ({trial})"
            wrong = wrong.replace(str(got.dtype), str(got.element), 1)
            notes.judge("dtype", wrong if got.element != planned.element else "")
        wrong = f"{who} gives a result on {got.device} for one on {planned.device} ({trial})"
        notes.judge("device", "" if matches(got.device, planned.device) else wrong)
        notes.judge("traits", self._problem_of_traits(trial, got, step))
        notes.judge("effects", self._problem_of_effects(trial, got, step))

    def _problem_of_traits(self, trial: Trial, got: Spec, step: Step) -> str:
        promised = step.after.traits
        extra = sorted(got.traits - promised - _LOCKED)
        # A value may turn out plainer in memory than promised, but not in what it is.
        lost = sorted(promised - got.traits - MEMORY_TRAITS - self._harmless(step))
        if extra:
            said = "and says that it drops that" if extra[0] in step.before.traits else "unsaid"
            return f"{self.label} gives a result that is {extra[0]!r}, {said} ({trial})"
        if lost:
            effect = _LOSSES.get(lost[0])
            unsaid = f" and not the effect {effect!r}" if effect else ""
            return (
                f"{self.label} loses {lost[0]!r}, which it takes and does not say that it drops"
                f"{unsaid} ({trial})"
            )
        return ""

    def _harmless(self, step: Step) -> set[str]:
        """Return the traits that some step within a format drops without losing anything."""
        names = {step.before.format, step.after.format}
        steps = (declared.conversion for declared in self._registry.conversions)
        within = (one for one in steps if one.source == one.target and one.source in names)
        return {trait for one in within if not one.effects & LOSING for trait in one.drops}

    def _problem_of_effects(self, trial: Trial, got: Spec, step: Step) -> str:
        before, who, effects = step.before, self.label, step.effects
        for trait, effect in _LOSSES.items():
            if trait in before.traits - got.traits and effect not in effects:
                return f"{who} loses {trait!r} without the effect {effect!r} ({trial})"
        moved = not matches(got.device, before.device)
        if moved != ("transfer" in effects):
            does = "moves the data" if moved else "leaves the data where they are"
            has = "without" if moved else "and declares"
            return f"{who} {does} {has} the effect 'transfer' ({trial})"
        source, target = self.edge.source, self.edge.target
        for effect, is_so in (
            ("densify", bool(source.index_dtypes) and target.is_dense and not target.inside),
            ("dequantize", source.layout == "affine" and target.is_dense),
        ):
            if is_so and not effects & {effect, "materialize"}:
                return f"{who} makes {target.name} of {source.name} without the effect {effect!r}"
            if effect in effects and not target.is_dense:
                return f"{who} declares the effect {effect!r}, which {target.name} is not"
        return ""

    def _judge_numbers(self, call: _Call, result: Any, got: Spec, notes: Notes) -> None:
        trial, step = call.trial, call.step
        if call.truth is None:
            notes.skipped(f"nobody knows the numbers of {trial}", "values")
            return
        if got.device != "cpu" and step.after.device == "cpu":
            return
        reading = self.truth.read(result, got)
        empty = not step.before.size and "shape" in self._registry.formats[got.format].forgets
        if reading is None or empty:
            notes.skipped(f"the numbers of {got} cannot be read", "values")
            return
        problem = self.problem_of_numbers(reading, call.truth, step)
        if problem and reading.by and not self._is_read_well(got):
            # The next ring's fault, which is found there.
            by = " → ".join(reading.by)
            notes.skipped(f"{by} does not read {got} as it was made", "values")
        elif problem:
            notes.failed("values", f"{problem} ({trial}{self._made_by(call)})")
        else:
            notes.passed("values")

    def _is_read_well(self, got: Spec) -> bool:
        """Tell whether another value of the same kind, made without the conversion, reads well."""
        if got.dtype is None:
            return True
        density = 1.0 if got.nnz is None else 0.5
        wanted = Wanted(
            got.format, got.dtype, got.shape, got.traits, got.device, density, full=True
        )
        try:
            value, makers = self._sampled(wanted)
        except NoSample:
            return True
        reading = self.truth.read(value)
        odd = got.traits & self._registry.formats[got.format].variants.keys()
        if self.label in makers and not odd:
            return True  # it would be judged by itself
        return reading is None or same(reading.array, numbers(wanted))

    def _sampled(self, wanted: Wanted) -> tuple[Any, tuple[str, ...]]:
        """Return a sample, and the conversions that made it."""
        with trace() as receipts:
            value = sampled(self.face, wanted)
        return value, tuple(step for receipt in receipts for step in receipt.steps)

    def _made_by(self, call: _Call) -> str:
        """Name who made the value, if only they know its numbers."""
        if call.trial.odd or self.truth.witness(call.value, call.spec) is not None:
            return ""
        _, makers = self._sampled(call.trial.wanted)
        others = dict.fromkeys(label for label in makers if label != self.label)
        return f", as {' → '.join(others)} made it" if others else ""

    def _judge_locks(self, call: _Call, result: Any, got: Spec, notes: Notes) -> None:
        """Note whether read-only memory stays read-only, and fresh memory is writable."""
        promised = call.step.after.traits & _LOCKED
        writable = self._is_writable(result, got)
        problem = ""
        step = call.step
        lucky = step.aliases and step.effects & COPYING and got.traits.isdisjoint(_LOCKED)
        if lucky and not self.memory.numbers_overlap(call.value, result):
            notes.passed("readonly")  # it may share, and this time it copied
            return
        if promised and not got.traits & _LOCKED:
            problem = f"{self.label} opens read-only memory to writing"
        elif not promised and (got.traits & _LOCKED or writable is False):
            fresh = "it says that it copies, but" if not call.step.aliases else "unsaid:"
            problem = f"{self.label} gives a result that cannot be written; {fresh} it is locked"
        elif promised and writable:
            problem = f"{self.label} says that the result is read-only, but it can be written"
        notes.judge("readonly", f"{problem} ({call.trial})" if problem else "")

    def _is_writable(self, result: Any, got: Spec) -> bool | None:
        if got.format != self.truth.hub or "scalar" in got.traits:
            return None
        return bool(result.flags.writeable)

    def _judge_sharing(self, call: _Call, result: Any, notes: Notes) -> None:
        trial, value, step = call.trial, call.value, call.step
        if step.aliases and step.effects & COPYING:
            notes.skipped("it may share memory or not, as it finds", "sharing")
            return
        if not step.before.size or step.after.device != "cpu" or step.before.device != "cpu":
            return
        notes.tell("sharing", f"it wrote into the memory of {trial}")
        by_address = self.memory.pointers_overlap(value, result)
        by_write = self.memory.is_written_through(value, result)
        if by_address is None and by_write is None:
            names = sorted({step.before.format, step.after.format})
            notes.skipped(f"nobody tells where {' and '.join(names)} lie", "sharing")
            return
        problem = self._problem_of_sharing(trial, step, by_address, by_write)
        if problem:
            liar = self.memory_liar(trial)
            if liar:
                notes.skipped(liar, "sharing")
                return
        notes.judge("sharing", problem)

    def memory_liar(self, trial: Trial) -> str:
        """Say so if a format's addresses are not where its numbers lie; "" if they are."""
        value, step = self.value(trial)
        for one in (value, self.call(step, value)):
            problem = self.memory.problem_of_addresses(one)
            if problem:
                return problem
        return ""

    def _problem_of_sharing(
        self, trial: Trial, step: Step, by_address: bool | None, by_write: bool | None
    ) -> str:
        seen = by_address if by_write is None else by_write
        how = "by the addresses" if by_write is None else "a write to one shows in the other"
        if step.aliases and not seen:
            how = how.replace("shows", "does not show")
            return f"{self.label} says that it shares memory, but copies: {how} ({trial})"
        if not step.aliases and (by_address or by_write):
            how = "by the addresses" if not by_write else how
            return f"{self.label} says that it copies, but shares memory: {how} ({trial})"
        if by_address is not None and by_address != seen:
            names = f"{step.before.format} and {step.after.format}"
            return (
                f"{names} do not tell the addresses at which {self.label} lets them share ({trial})"
            )
        return ""


def _mostly_same(found: Array, wanted: Array) -> bool:
    if found.shape != wanted.shape:
        return False
    differ = sum(not same(a, b) for a, b in zip(found.ravel(), wanted.ravel(), strict=True))
    return differ <= max(1, found.size // 2)


def _near(found: Array, wanted: Array) -> bool:
    import numpy as np

    if found.shape != wanted.shape or found.dtype.kind not in "fc":
        return False
    return bool(np.allclose(found.astype("c16"), wanted.astype("c16"), 1e-2, 1e-6))


def _difference(found: Array, wanted: Array) -> str:
    """Say in what way two arrays differ."""
    import numpy as np

    if found.shape != wanted.shape:
        turned = found.ndim > 1 and same(found.T, wanted)
        return f"the transpose, of shape {found.shape}" if turned else f"the shape {found.shape}"
    try:
        if same(np.sort(found, None), np.sort(wanted, None)):
            return "its elements in another order"
        if _near(found, wanted):
            return "fewer digits than it was given"
    except REFUSALS:  # dtypes that cannot be compared
        pass
    return "other numbers than it was given"


def _cause(error: BaseException) -> str:
    """Return what a foreign function raised, on one line."""
    cause = error.__cause__ or error
    return f"{type(cause).__name__}: {str(cause).partition(chr(10))[0]}"
