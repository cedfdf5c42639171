"""A plan: the steps of a route, ready to be carried out on values of one class.

An exception that a step raises becomes one of interop's here. Its text names the step and the
distribution that declares it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeAlias

from interop._model.blame import error_text, is_signal
from interop._model.device import device_type
from interop._model.typing import Value
from interop._text import legible
from interop.errors import (
    ConversionError,
    Declined,
    DoesNotFitError,
    HandOffError,
    InteropError,
    NotInstalledError,
)

from .step import Step, batch, handed_off

#: Effects after which a value may take far more memory than before.
FILLING = frozenset({"densify", "pad", "materialize"})

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


#: The names of steps, their effects, and the distributions that declare them.
Facts: TypeAlias = tuple[tuple[str, ...], frozenset[str], tuple[str, ...]]


def facts(steps: tuple[Step, ...]) -> Facts:
    """Return the facts about steps for a receipt."""
    effects = frozenset(effect for step in steps for effect in step.effects)
    distributions = tuple(str(step.provenance) for step in steps)
    return tuple(step.label for step in steps), effects, distributions


class Plan:
    """The steps of a route, ready to be carried out."""

    def __init__(self, steps: tuple[Step, ...], warning: Warning | None = None) -> None:
        self.steps = steps
        #: The warning for callers who take this route; None for nearly all routes.
        self.warning = warning
        self.calls = tuple(step.call for step in steps)
        #: What converts several values at once; None if no step can.
        self.batch = batch(steps)
        self._facts: Facts | None = None
        self.writes = any(step.writes for step in steps)
        on_host = [step for step in steps if device_type(step.after.device) == "cpu"]
        #: Whether fresh memory on the host is written. A device's allocator refuses cleanly.
        self.fills_host = any(step.writes for step in on_host)
        #: Whether it may be filled with more than the value holds.
        self.allocates = any(step.effects & FILLING for step in on_host)
        #: Whether a result has once been compared with what was planned.
        self.verified = not steps
        #: The tables and types of values for which a fast path was looked for.
        self.asked: dict[tuple[object, type], bool] = {}

    def __call__(
        self,
        value: Value,
        given: Mapping[str, object] | None = None,
        note: Note | None = None,
    ) -> Value:
        """Return what the steps make of `value`, with what the caller has `given` for them."""
        position = 0
        try:
            for call in self._calls_with(given) if given else self.calls:
                value = call(value)
                if note is not None:
                    note(self.steps[position], value)
                position += 1
        except (Declined, StepDeclined) as reason:
            taken = self.steps[:position]
            raise StepDeclined(self.steps[position], value, reason, taken) from reason
        except (RuntimeWarning, FloatingPointError):
            raise  # the caller has turned warnings about numbers that do not fit into errors
        except InteropError as error:
            error.add_note(legible(f"raised in {_declared(self.steps[position])}"))
            raise
        except BaseException as error:
            if is_signal(error):
                raise
            # The new exception is not kept in a variable of this frame: the frame is in its
            # traceback, and the circle would keep the value alive.
            raise _attributed(error, self.steps[position]) from error
        return value

    @property
    def is_known(self) -> bool:
        """Whether there is nothing to compare, to check or to warn of before it is carried out."""
        return self.verified and not self.allocates and self.warning is None

    @property
    def key(self) -> tuple[object, ...]:
        """What is equal for plans that make the same calls, though for values of other sizes."""
        return tuple(
            (step.origin, step.before.device, step.after.element, step.after.device)
            for step in self.steps
        )

    @property
    def facts(self) -> Facts:
        """The facts about the steps for a receipt, worked out for the first receipt."""
        if self._facts is None:
            self._facts = facts(self.steps)
        return self._facts

    def _calls_with(self, given: Mapping[str, object]) -> list[Value]:
        """Return the calls of the steps, each with the given keywords that it wants."""
        wanted = (
            {name: given[name] for name in step.wants if name in given} for step in self.steps
        )
        return [
            handed_off(step, **words) if words.keys() == _STREAM else partial(step.call, **words)
            for step, words in zip(self.steps, wanted, strict=True)
        ]


def _declared(step: Step) -> str:
    return f"{step.label}, declared by {step.provenance}"


def _attributed(error: BaseException, step: Step) -> Exception:
    """Return the exception to raise when a step has raised `error`."""
    declared, reason = _declared(step), error_text(error)
    if isinstance(error, ImportError):
        module = error.name or "a module that it needs"
        return NotInstalledError(f"{declared}, could not import {module}; install it.")
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
