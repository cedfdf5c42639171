"""Verification: the results of a plan's first run, compared with what was planned."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NoReturn

from interop._model.device import matches
from interop._model.effect import COPYING
from interop._model.spec import Spec
from interop._model.typing import Value
from interop.errors import ConversionError, UnknownValueError

from .trace import extents, overlap

if TYPE_CHECKING:
    from interop._planning.plan import Note
    from interop._planning.request import Request
    from interop._planning.step import Step
    from interop._registry.registry import Registry

_log = logging.getLogger("interop")


class FirstRun:
    """Compares the result of each step with what was planned; a plan's first run is called so.

    Parameters
    ----------
    registry : Registry
    request : Request
    x : object
        The value to convert.
    spec : Spec
        Its spec, whose lengths all results must have.
    note : callable or None
        Is told of each step first.
    """

    def __init__(
        self, registry: Registry, request: Request, x: Value, spec: Spec, note: Note | None
    ) -> None:
        self._registry = registry
        self._request = request
        self._spec = spec
        self._note = note
        self._argument, self._before = x, spec

    def __call__(self, step: Step, result: Value) -> None:
        """Compare the result of a step with what was planned, and note it."""
        if self._note is not None:
            self._note(step, result)
        actual = self._described(step, result)
        if not self._is_as_planned(step, actual):
            planned = f"{step.after.format} {step.after.element} {self._spec.shape}"
            _blame(step, f"promised {planned} on {step.after.device} and gave {actual}")
        self._compare_memory(step, result, actual)
        self._argument, self._before = result, actual

    def _described(self, step: Step, result: Value) -> Spec:
        """Return the spec of what a step gave, and blame the step if that is no array at all."""
        try:
            return self._registry.describe(result)
        except UnknownValueError as error:
            gave = "None" if result is None else f"a {type(result).__qualname__}"
            _blame(step, f"promised {step.after.format} and gave {gave}", error)

    def _is_as_planned(self, step: Step, actual: Spec) -> bool:
        planned = step.after
        unknown = self._registry.formats[planned.format].not_recoverable
        has_dtype = (
            actual.dtype == planned.element
            or "dtype" in unknown
            or "unknown_dtype" in actual.traits
        )
        has_shape = (
            actual.shape == self._spec.shape
            or "shape" in unknown
            or "unknown_shape" in self._spec.traits
        )
        is_there = (
            matches(actual.device, planned.device)
            # A framework that does not divide the host has it as one device.
            or (actual.device, planned.device) == ("cpu", "cpu:0")
        )
        return actual.format == planned.format and has_dtype and has_shape and is_there

    def _compare_memory(self, step: Step, result: Value, actual: Spec) -> None:
        """Compare the addresses of a step's argument and result.

        A caller who said nothing of copies has what was asked for, and only the log is told.
        """
        is_free = step.aliases and bool(step.effects & COPYING)  # it shares what it can
        shares = None if is_free else self._shares(result, actual)
        if shares is None or shares is step.aliases:
            return
        promise = "a view and gave a copy" if step.aliases else "a copy and shares its argument"
        claim = f"promised {promise}: {self._before} to {actual}"
        if self._request.copy is (not step.aliases):
            _blame(step, claim)
        _log.warning("%s %s; %s", step.label, claim, step.provenance.remedy)

    def _shares(self, result: Value, actual: Spec) -> bool | None:
        """Tell whether a result overlaps the argument; None if either does not tell where it is."""
        if not (self._tells(self._before) and self._tells(actual)):
            return None
        before = extents(self._registry, self._argument, self._before)
        after = extents(self._registry, result, actual)
        return overlap(before, after) if before and after else None

    def _tells(self, spec: Spec) -> bool:
        """Tell whether a value stores something, and can be asked where without a surprise.

        A protocol may have no answer the second time, and a subclass may run code of its own.
        """
        is_plain = self._registry.formats[spec.format].protocol is None
        return _is_stored(spec) and is_plain and "subclass" not in spec.traits


def _is_stored(spec: Spec) -> bool:
    return bool(spec.size) and spec.nnz != 0


def _blame(step: Step, claim: str, cause: Exception | None = None) -> NoReturn:
    msg = f"{step.label} {claim}; {step.provenance.remedy}"
    raise ConversionError(msg, step.label, step.provenance.distribution) from cause
