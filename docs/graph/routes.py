"""The routes that the page of the graph shows: one for each ordered pair of formats."""

from __future__ import annotations

from typing import TypedDict

from interop import Interop, Spec
from interop._api.inspection import Inspection
from interop._cli.notation import common_axes, plain_shape, read_spec
from interop._planning.step import Step


class StepFacts(TypedDict):
    """The facts that are shown of one step of a route."""

    step: str
    to: str
    effects: list[str]
    seconds: float
    written: int
    by: str


class RouteFacts(TypedDict):
    """The facts that are shown of a route."""

    value: str
    seconds: float
    zero_copy: bool
    steps: list[StepFacts]


def routes(interop: Interop) -> dict[str, RouteFacts | None]:
    """Return, for each ordered pair of formats, the route of a value of a usual size.

    Keys are ``"source target"``. A value is None where the default policy permits no route.
    """
    formats = {declared.name: declared.format for declared in interop.formats()}
    facts: dict[str, RouteFacts | None] = {}
    for source in sorted(formats):
        specs: dict[int | None, Spec | None] = {None: None}
        for target in sorted(formats):
            axes = common_axes(formats[source], formats[target])
            if axes not in specs:
                shape = "x".join(map(str, plain_shape(axes))) or "scalar"
                specs[axes] = read_spec(interop, f"{source}:{shape}")
            if source != target:
                facts[f"{source} {target}"] = _route(interop, specs[axes], target)
    return facts


def _route(interop: Interop, spec: Spec | None, target: str) -> RouteFacts | None:
    steps = None if spec is None else Inspection(interop).route(spec, target)
    if steps is None:
        return None
    return {
        "value": str(spec),
        "seconds": sum(step.seconds for step in steps),
        "zero_copy": not any(step.writes for step in steps),
        "steps": [_step(step) for step in steps],
    }


def _step(step: Step) -> StepFacts:
    return {
        "step": step.label,
        "to": step.after.format,
        "effects": sorted(step.effects),
        "seconds": step.seconds,
        "written": step.after.nbytes if step.writes else 0,
        "by": str(step.provenance),
    }
