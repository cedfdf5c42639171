"""Verification: the results of a plan's first run, compared with what was planned."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from interop._model.device import PAGE_LOCKED, matches
from interop._model.spec import LABELLED, NOMINAL, Spec
from interop._model.typing import Value
from interop.errors import ConversionError, UnknownValueError

if TYPE_CHECKING:
    from interop._planning.plan import Note
    from interop._planning.step import Step
    from interop._registry.registry import Registry


class FirstRun:
    """Compares the result of each step with what was planned; a plan's first run is called so.

    Parameters
    ----------
    registry : Registry
    spec : Spec
        That of the value to convert, whose lengths all results must have.
    note : callable or None
        Is told of each step first.
    """

    def __init__(self, registry: Registry, spec: Spec, note: Note | None) -> None:
        self._registry = registry
        self._spec = spec
        self._note = note

    def __call__(self, step: Step, result: Value) -> None:
        """Compare the result of a step with what was planned, and note it."""
        if self._note is not None:
            self._note(step, result)
        actual = self._described(step, result)
        if not self._is_as_planned(step, actual):
            planned = f"{step.after.format} {step.after.element} {self._spec.shape}"
            _blame(step, f"promised {planned} on {step.after.device} and gave {actual}")

    def _described(self, step: Step, result: Value) -> Spec:
        """Return the spec of what a step gave, and blame the step if that is no array at all."""
        try:
            return self._registry.recognition.describe(result)
        except UnknownValueError as error:
            gave = "None" if result is None else f"a {type(result).__qualname__}"
            _blame(step, f"promised {step.after.format} and gave {gave}", error)

    def _is_as_planned(self, step: Step, actual: Spec) -> bool:
        planned = step.after
        unknown = self._registry.formats[planned.format].not_recoverable
        has_dtype = (
            actual.dtype == planned.element
            or "dtype" in unknown
            or not NOMINAL.isdisjoint(planned.traits | actual.traits)
        )
        has_shape = (
            actual.shape == self._spec.shape
            or "shape" in unknown
            or "unknown_shape" in self._spec.traits
            or (self._has_rows(actual) and (actual.wrapped or self._spec.traits >= LABELLED))
        )
        is_there = (
            matches(actual.device, planned.device)
            # A framework that does not divide the host has it as one device, and an array need
            # not know that its memory is page-locked.
            or (actual.device == "cpu" and planned.device in {"cpu:0", PAGE_LOCKED})
        )
        return actual.format == planned.format and has_dtype and has_shape and is_there

    def _has_rows(self, actual: Spec) -> bool:
        """Return whether a table has the rows planned: labels of rows may become columns of it.

        Rows of an only column may be arrays, which have axes of their own.
        """
        is_table = self._registry.formats[actual.format].is_table
        return is_table and actual.shape[:1] == self._spec.shape[:1]


def _blame(step: Step, claim: str, cause: Exception | None = None) -> NoReturn:
    msg = f"{step.label} {claim}; {step.provenance.remedy}"
    raise ConversionError(msg, step.label, step.provenance.distribution) from cause
