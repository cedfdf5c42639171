"""The runner: carries out the steps of a route on a value.

This is the one border where a foreign exception becomes interop's, with the step, the plugin's
distribution and the spec in its text.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from interop._planning.step import Step
from interop.errors import ConversionError, Declined, HandOffError, InteropError, NotInstalledError

__all__ = ["FILLING", "Halt", "Runner"]

#: Effects after which a value may take far more memory than before.
FILLING = frozenset({"densify", "materialize"})


class Halt(Exception):  # noqa: N818 - it carries a declined step to the planner
    """A step has declined; what was done so far stands.

    Attributes
    ----------
    step : Step
    value : object
        The value as the steps before left it.
    """

    def __init__(self, step: Step, value: Any, reason: Exception) -> None:
        super().__init__(str(reason))
        self.step = step
        self.value = value
        self.reason = reason


class Runner:
    """The steps of a route, ready to be carried out.

    Parameters
    ----------
    steps : tuple of Step
    advice : str
        What to warn those of who take this route; "" for nearly all routes.
    """

    __slots__ = ("advice", "calls", "fills", "steps", "verified", "wary")

    def __init__(self, steps: tuple[Step, ...], advice: str = "") -> None:
        self.steps = steps
        self.advice = advice
        self.calls = tuple(step.call for step in steps)
        #: Whether memory may be filled with more than the value holds.
        self.fills = any(step.effects & FILLING for step in steps)
        #: Whether there is anything to see to before the first step.
        self.wary = self.fills or bool(advice)
        #: Whether a result has once been compared with the plan.
        self.verified = not steps

    def __call__(self, value: Any, stream: int | None = None) -> Any:
        """Return what the steps make of `value`."""
        done = 0
        try:
            for call in self.calls if stream is None else self.calls_on(stream):
                value = call(value)
                done += 1
        except (Declined, Halt) as reason:
            raise Halt(self.steps[done], value, reason) from reason
        except Exception as error:
            raise explained(error, self.steps[done]) from error
        return value

    def calls_on(self, stream: int | None) -> list[Any]:
        """Return the calls of the steps, on a stream where they care."""
        return [partial(s.call, stream=stream) if s.stream else s.call for s in self.steps]


def explained(error: Exception, step: Step) -> Exception:
    """Return the exception to raise when a step has raised `error`."""
    who = f"{step.label}, declared by {step.provenance}"
    said = f"{type(error).__name__}: {error}"
    if isinstance(error, (InteropError, MemoryError)):
        error.add_note(f"raised in {who}")
        return error
    if isinstance(error, ImportError):
        what = error.name or "a module that it needs"
        return NotInstalledError(f"{who}, could not import {what}; install it.")
    if isinstance(error, BufferError):
        return HandOffError(f"{who}, was refused the memory ({said}); pass copy=True to copy it.")
    return ConversionError(
        f"{who}, failed on a {step.before.format} value with {said}; report it there, or block "
        "that plugin with INTEROP_DISABLE_PLUGINS.",
        step.label,
        step.provenance.distribution,
    )
