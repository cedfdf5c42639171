"""A plan: the steps for one value and one request, to be read and to be carried out.

An exception that a step raises becomes one of interop's here. Its text names the step and the
distribution that declares it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from interop._model.blame import error_text, is_signal
from interop._model.device import device_type
from interop._model.spec import Spec
from interop._model.text import duration, html_table, readable, text_table
from interop._model.typing import Value, ValueFunction
from interop._recognition.installed import import_problem
from interop._text import legible, lines
from interop.errors import (
    ConversionError,
    Declined,
    DoesNotFitError,
    HandOffError,
    InteropError,
    NotInstalledError,
)

from .step import Step, batch, handed_off

if TYPE_CHECKING:
    from interop._request.request import Request

#: Effects after which a value may take far more memory than before.
FILLING = frozenset({"densify", "pad", "materialize"})

_call_of = attrgetter("call")
#: The keyword that a hand-off may take.
_STREAM = {"stream"}

#: Called with each step and its result, once the step is done.
Note: TypeAlias = Callable[[Step, Value], None]

#: Matches the names and the texts of exceptions that are raised when memory runs out, and that are
#: no MemoryErrors. The second is what the status codes of remote calls say.
_OUT_OF_MEMORY = re.compile("out.?of.?memory|resource.?exhausted|allocate .*memory", re.IGNORECASE)


class StepDeclined(Exception):  # noqa: N818 - it carries a declined step to the planner
    """A step has declined; the steps before it need not be repeated."""

    def __init__(
        self, step: Step, value: Value, reason: Exception, taken: tuple[Step, ...] = ()
    ) -> None:
        super().__init__(str(reason))
        self.step = step
        #: The steps before.
        self.taken = taken
        #: Their result.
        self.value = value
        self.reason = reason
        #: What the value turned out to be once it was read, or None.
        self.instead: Value = getattr(reason, "instead", None)


HEADS = ("", "step", "from", "to", "effects", "written", "estimate", "declared by")

#: The names of steps, their effects, and the distributions that declare them.
Facts: TypeAlias = tuple[tuple[str, ...], frozenset[str], tuple[str, ...]]


def facts(steps: tuple[Step, ...]) -> Facts:
    """Return the facts about steps for a receipt."""
    effects = frozenset(effect for step in steps for effect in step.effects)
    distributions = tuple(str(step.provenance) for step in steps)
    return tuple(step.label for step in steps), effects, distributions


class Plan:
    """The steps for one value and one request, with their effects and estimated cost.

    Calling it with a value of the spec it was planned for converts the value. Printing it shows a
    table; notebooks show the same as HTML. It is pickled by its spec and its request, and planned
    again where it is loaded.

    Attributes
    ----------
    spec : Spec
        The spec of the value.
    request : Request
        The request, resolved to names: `formats`, `dtype`, `device`, `copy`, `policy` …
    steps : tuple of Step
    result : Spec
        The spec of the result.
    effects : frozenset of str
    zero_copy : bool
        Whether no bytes are copied or moved.
    aliases : bool
        Whether the result shares memory with the value.
    cost : float
        Estimated seconds.
    problem : str
        Why the conversion would be refused all the same: its result does not fit in the memory of
        this machine. "" if it fits.
    missing : tuple of str
        The modules that it needs and that are not installed, with the commands that install them.
    """

    __slots__ = (
        *(
            "_allocates",
            "_batch",
            "_convert",
            "_explain",
            "_fills_host",
            "_known_facts",
            "_pickled",
            "_replayed",
        ),
        *(
            "_batch_verified",
            "_verified",
            "_warning",
            "missing",
            "problem",
            "request",
            "spec",
            "steps",
        ),
    )

    #: What `_at` gives to a plan that a caller gets.
    _convert: ValueFunction
    _explain: Callable[[], str]
    _pickled: Callable[[], tuple[Any, ...]]

    def __init__(
        self,
        spec: Spec,
        request: Request,
        steps: tuple[Step, ...],
        *,
        warning: Warning | None = None,
    ) -> None:
        self.spec: Spec = spec
        self.request: Request = request
        self.steps: tuple[Step, ...] = steps
        self.problem: str = ""
        self.missing: tuple[str, ...] = ()
        #: The warning for callers of this plan; None for nearly all plans.
        self._warning = warning
        #: What converts several values at once; None if no step can.
        self._batch = batch(steps)
        on_host = [step for step in steps if device_type(step.after.device) == "cpu"]
        #: Whether fresh memory on the host is written. A device's allocator refuses cleanly.
        self._fills_host = any(step.writes for step in on_host)
        #: Whether it may be filled with more than the value holds.
        self._allocates = any(step.effects & FILLING for step in on_host)
        #: Whether a result has once been compared with what was planned.
        self._verified = not steps
        #: Whether all results of a batch have once been compared.
        self._batch_verified = False
        self._known_facts: Facts | None = None
        #: The last spec for which a caller asked for this plan, and the steps of its sizes.
        self._replayed: tuple[Spec | None, tuple[Step, ...]] = None, steps

    def _at(
        self,
        spec: Spec,
        steps: tuple[Step, ...],
        *,
        convert: ValueFunction,
        explain: Callable[[], str],
        pickled: Callable[[], tuple[Any, ...]],
        problem: str = "",
        missing: tuple[str, ...] = (),
    ) -> Plan:
        """Return this plan for a caller: of one spec, and with steps of its sizes.

        The kept plan is of a class of specs, and has the sizes of a typical one.
        """
        plan = Plan(spec, self.request, steps, warning=self._warning)
        plan.problem, plan.missing = problem, missing
        plan._convert, plan._explain, plan._pickled = convert, explain, pickled
        return plan

    @property
    def _is_known(self) -> bool:
        """Whether there is nothing to compare, to check or to warn of before it is carried out."""
        return self._verified and not self._allocates and self._warning is None

    @property
    def _key(self) -> tuple[object, ...]:
        """What is equal for plans that make the same calls, though for values of other sizes."""
        return tuple(
            (step.origin, step.before.device, step.after.element, step.after.device)
            for step in self.steps
        )

    @property
    def _facts(self) -> Facts:
        """The facts about the steps for a receipt, worked out for the first receipt."""
        if self._known_facts is None:
            self._known_facts = facts(self.steps)
        return self._known_facts

    @property
    def result(self) -> Spec:
        """The spec of the result."""
        return self.steps[-1].after if self.steps else self.spec

    @property
    def effects(self) -> frozenset[str]:
        """Every effect of every step."""
        return frozenset(effect for step in self.steps for effect in step.effects)

    @property
    def zero_copy(self) -> bool:
        """Whether no bytes are copied or moved."""
        return not any(step.writes for step in self.steps)

    @property
    def aliases(self) -> bool:
        """Whether the result shares memory with the value."""
        shared: frozenset[str] | None = None
        for step in self.steps:
            shared = step.still_shared(shared)
        return shared is None or bool(shared)

    @property
    def cost(self) -> float:
        """Estimated seconds."""
        return sum(step.seconds for step in self.steps)

    def __call__(self, value: Value) -> Value:
        """Convert a value of the spec it was planned for.

        Parameters
        ----------
        value : object
            A value of another spec is not refused: it gets its own plan under the same request.

        Returns
        -------
        array

        Raises
        ------
        InteropError
            As for `convert`.
        """
        return self._convert(value)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._pickled()

    def explain(self) -> str:
        """Return the table, and below it the nearest routes that are refused and why.

        Finding those takes longer than the plan did. A notebook shows the lines of the text.
        """
        return lines(f"{self}\n\n{refused(self)}".rstrip().split("\n"))

    def as_dict(self) -> dict[str, Value]:
        """Return the plan as values that JSON can hold.

        Returns
        -------
        dict
            With ``source``, ``request``, ``result``, ``zero_copy``, ``aliases``, ``effects``,
            ``seconds``, ``problem``, ``missing`` and ``steps``. Each step has ``step``, ``source``,
            ``result``, ``effects``, ``written`` (in bytes), ``seconds`` and ``declared_by``.
        """
        return {
            "source": self.spec.as_dict(),
            "request": str(self.request),
            "result": self.result.as_dict(),
            "zero_copy": self.zero_copy,
            "aliases": self.aliases,
            "effects": sorted(self.effects),
            "seconds": self.cost,
            "problem": self.problem,
            "missing": list(self.missing),
            "steps": [
                {
                    "step": step.label,
                    "source": step.before.as_dict(),
                    "result": step.after.as_dict(),
                    "effects": sorted(step.effects),
                    "written": step.after.nbytes if step.writes else 0,
                    "seconds": step.seconds,
                    "declared_by": str(step.provenance),
                }
                for step in self.steps
            ],
        }

    def __str__(self) -> str:
        table = text_table(HEADS, rows(self)) if self.steps else ()
        return lines([title(self), *table, *self.missing])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table("; ".join([title(self), *self.missing]), HEADS, rows(self))


def title(plan: Plan) -> str:
    """Return the line above the table: the spec, the request and a summary."""
    return f"{plan.spec} → {plan.request}: {_summary(plan)}"


def _summary(plan: Plan) -> str:
    if not plan.steps:
        return "already what was asked for; returned as it is"
    memory = "zero-copy" if plan.zero_copy else "fresh memory"
    if plan.aliases and not plan.zero_copy:
        memory = "shares some memory, copies the rest"
    verdict = f"; refused, because {plan.problem}" if plan.problem else ""
    return f"{memory}, {duration(plan.cost)} estimated{verdict}"


def rows(plan: Plan) -> list[tuple[str, ...]]:
    """Return the cells of the table of a plan, below `HEADS`."""
    return [
        (
            str(number),
            step.label,
            _brief(step.before),
            _brief(step.after),
            ", ".join(sorted(step.effects)) or "view",
            readable(step.after.nbytes) if step.writes else "—",
            duration(step.seconds),
            str(step.provenance),
        )
        for number, step in enumerate(plan.steps, 1)
    ]


def refused(plan: Plan) -> str:
    """Return the nearest routes that are refused and why, for which it plans again."""
    return plan._explain()


def _brief(spec: Spec) -> str:
    dtype = f"{spec.dtype} as {spec.carrier}" if spec.carrier else spec.dtype
    return f"{spec.format} {dtype} {spec.device}"


def run(
    steps: tuple[Step, ...],
    value: Value,
    given: Mapping[str, object] | None = None,
    note: Note | None = None,
) -> Value:
    """Return what some steps make of `value`, with what the caller has `given` for them."""
    calls = _calls_with(steps, given) if given else map(_call_of, steps)
    position = 0
    try:
        for call in calls:
            value = call(value)
            if note is not None:
                note(steps[position], value)
            position += 1
    except (Declined, StepDeclined) as reason:
        taken = steps[:position]
        raise StepDeclined(steps[position], value, reason, taken) from reason
    except (RuntimeWarning, FloatingPointError):
        raise  # the caller has turned warnings about numbers that do not fit into errors
    except InteropError as error:
        error.add_note(legible(f"raised in {_declared(steps[position])}"))
        raise
    except BaseException as error:
        if is_signal(error):
            raise
        # The new exception is not kept in a variable of this frame: the frame is in its
        # traceback, and the circle would keep the value alive.
        raise _attributed(error, steps[position]) from error
    return value


def _calls_with(steps: Iterable[Step], given: Mapping[str, object]) -> list[Value]:
    """Return the calls of the steps, each with the given keywords that it wants."""
    wanted = ({name: given[name] for name in step.wants if name in given} for step in steps)
    return [
        handed_off(step, **words) if words.keys() == _STREAM else partial(step.call, **words)
        for step, words in zip(steps, wanted, strict=True)
    ]


def _declared(step: Step) -> str:
    return f"{step.label}, declared by {step.provenance}"


def _attributed(error: BaseException, step: Step) -> Exception:
    """Return the exception to raise when a step has raised `error`."""
    declared, reason = _declared(step), error_text(error)
    if problem := import_problem(error):
        return NotInstalledError(f"{declared}, {problem}", name=getattr(error, "name", None))
    if isinstance(error, BufferError):
        return HandOffError(
            f"{declared}, was refused the memory ({reason}); pass copy=True to copy it."
        )
    if isinstance(error, MemoryError) or _OUT_OF_MEMORY.search(reason):
        return DoesNotFitError(
            f"{declared}, ran out of memory ({reason}); ask for a narrower dtype, or convert it in "
            "parts."
        )
    if "materialize" in step.effects:  # the value's own code has run
        return HandOffError(
            f"{declared}, could not compute the value ({reason}); open what it reads from, or "
            "compute it first."
        )
    return ConversionError(
        f"{declared}, failed on a {step.before.format} value with {reason}; "
        f"{step.provenance.remedy}",
        step.label,
        step.provenance.distribution,
    )
