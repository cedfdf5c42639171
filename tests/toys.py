"""Toy frameworks, to test the core without any real one."""

from __future__ import annotations

from typing import Any

from interop import Conversion, Cost, Format, Plan, Spec
from interop.plugin import make_spec
from interop.plugin.advanced import Advanced

DTYPES = frozenset({"float32", "float64", "int64", "bfloat16", "uint16"})


class Box:
    """An array of a toy framework: a list of numbers that knows its kind."""

    def __init__(self, kind: str, numbers: list[float], **facts: Any) -> None:
        self.kind = kind
        self.numbers = numbers
        self.dtype = facts.get("dtype", "float32")
        self.device = facts.get("device", "cpu")
        self.traits = frozenset(facts.get("traits", ()))


def describe(box: Box) -> Spec:
    """Return the spec of a toy array."""
    return make_spec(
        box.kind, box.dtype, device=box.device, shape=(len(box.numbers),), traits=box.traits
    )


def toy(name: str, **facts: Any) -> Format:
    """Return the format of a toy framework; routes between any two others may lead through it."""
    facts.setdefault("advanced", Advanced(hub=True))
    facts.setdefault("types", (f"{__name__}:Box",))
    facts.setdefault("dtypes", DTYPES)
    return Format(name, describe=describe, **facts)


def view(source: str, target: str, **facts: Any) -> Conversion:
    """Return a conversion that shares the numbers."""

    def function(box: Box) -> Box:
        return Box(target, box.numbers, dtype=box.dtype, device=box.device)

    facts.setdefault("cost", Cost(1e-6))
    facts.setdefault("name", f"{source}_to_{target}")
    return Conversion(source, target, function, **facts)


def copy(source: str, target: str, **facts: Any) -> Conversion:
    """Return a conversion that copies the numbers."""

    def function(box: Box, dtype: str | None = None, device: str | None = None) -> Box:
        return Box(target, list(box.numbers), dtype=dtype or box.dtype, device=device or box.device)

    facts.setdefault("cost", Cost(1e-6, 1e9))
    facts.setdefault("effects", frozenset({"copy"}))
    facts.setdefault("name", f"copy_{source}_to_{target}")
    return Conversion(source, target, function, **facts)


def labels(route: Plan) -> list[str]:
    """Return the names of a route's steps."""
    return [step.label for step in route.steps]
