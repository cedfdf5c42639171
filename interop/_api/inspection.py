"""Inspection: what an instance holds, for the command, the conformance suite and tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interop._execution.trace import shares_memory
from interop._request.request import Request

if TYPE_CHECKING:
    from interop._model.format import Format
    from interop._model.spec import Spec
    from interop._model.typing import Value
    from interop._planning.conversion import ResolvedConversion
    from interop._planning.step import Step
    from interop._registry.registry import Registry

    from .interop import Interop


class Inspection:
    """What an instance holds.

    Nothing else outside of `interop._api` touches the private attributes of an instance.

    Parameters
    ----------
    interop : Interop
        Its plugins are loaded now, if they were not before.

    Attributes
    ----------
    registry : Registry
        The formats and conversions that are registered.
    """

    def __init__(self, interop: Interop) -> None:
        self.registry: Registry = interop._registry.loaded()
        self._planner = interop._planner
        self._converters = interop._converters

    def conversions_from(self, name: str) -> list[ResolvedConversion]:
        """Return the conversions that start from a format, those of its protocols included."""
        return self._planner.graph.conversions(name)

    def exchanges_with(self, format_: Format) -> list[Format]:
        """Return the formats to which a composite value goes array by array, undeclared."""
        return [way.target for way in self._planner.graph.composites(format_.name)]

    def route(self, spec: Spec, target: str) -> tuple[Step, ...] | None:
        """Return the steps of the preferred route under the default policy, or None.

        `Interop.plan` would work out why there is none, which takes far longer.

        Parameters
        ----------
        spec : Spec
        target : str
            The name of a format.
        """
        route = self._planner.route(spec, Request((target,)))
        return None if route is None else tuple(route[1])

    def shares_memory(self, one: Value, other: Value) -> bool | None:
        """Return whether two values share memory, by the addresses that their formats report.

        Returns
        -------
        bool or None
            None if a format reports none.
        """
        return shares_memory(self.registry, one, other)

    def forget(self) -> None:
        """Drop all plans and fast paths: the next call is planned as the first one was."""
        self._converters.forget()
