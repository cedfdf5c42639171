"""Inspection: what shows of an instance."""

from __future__ import annotations

import numpy as np
import pytest

from interop import Interop
from interop._api.inspection import Inspection
from interop.errors import RefusedError
from interop.plugin import make_spec
from tests.inside import forget, format_named, shares_memory
from tests.toys import Box, copy, labels, toy, view


def test_the_installed_plugins_are_loaded() -> None:
    """A new instance has its formats by the time it is inspected."""
    registry = Inspection(Interop()).registry
    assert {"numpy", "python"} <= registry.formats.keys()
    assert registry.conversions


def test_a_route_is_that_of_plan_or_none(empty: Interop) -> None:
    """The steps are those that `plan` gives; None stands where `plan` refuses."""
    empty.register(toy("a"), toy("b"), toy("c"), view("a", "b"), copy("b", "c"))
    spec = make_spec("a", "float32", shape=(4,))
    steps = Inspection(empty).route(spec, "c")
    assert steps is not None
    assert [step.label for step in steps] == labels(empty.plan(spec, to="c"))
    backward = make_spec("c", "float32", shape=(4,))
    assert Inspection(empty).route(backward, "a") is None
    with pytest.raises(RefusedError):
        empty.plan(backward, to="a")


def test_conversions_are_as_registered_now(empty: Interop) -> None:
    """An inspection that exists already shows what is registered after it."""
    empty.register(toy("a"), toy("b"), view("a", "b"))
    inspection = Inspection(empty)
    assert [c.target.name for c in inspection.conversions_from("a")] == ["b"]
    empty.register(toy("c"), view("a", "c"))
    assert {c.target.name for c in inspection.conversions_from("a")} == {"b", "c"}


def test_formats_of_one_layout_exchange_their_arrays(loaded: Interop) -> None:
    """A sparse format exchanges with those of its layout, and a dense one with none."""
    inspection = Inspection(loaded)
    names = {other.name for other in inspection.exchanges_with(format_named("scipy.csr", loaded))}
    assert "torch.sparse_csr" in names
    assert "scipy.csc" not in names
    assert inspection.exchanges_with(format_named("numpy", loaded)) == []


def test_forget_lets_the_next_call_plan_again(
    empty: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second call plans nothing; after `forget` it plans as the first one did."""
    empty.register(toy("a"), toy("b"), view("a", "b"))
    routes: list[str] = []
    plan = empty._planner.searches

    def counted(spec: object, *args: object, **keywords: object) -> object:
        routes.append(str(spec))
        return plan(spec, *args, **keywords)  # type: ignore[arg-type]

    monkeypatch.setattr(empty._planner, "searches", counted)
    for _ in range(2):
        empty.convert(Box("a", [1.0]), to="b")
    assert len(routes) == 1
    forget(empty)
    empty.convert(Box("a", [1.0]), to="b")
    assert len(routes) == 2


def test_listings_have_these_columns(loaded: Interop) -> None:
    """What is registered is listed with its state and with who has declared it."""
    heads = [
        repr(listing).splitlines()[0].split("  ")
        for listing in (loaded.formats(), loaded.conversions(), loaded.plugins())
    ]
    assert [[head.strip() for head in row if head] for row in heads] == [
        ["format", "state", "dtypes", "devices", "declared by"],
        ["from", "to", "conversion", "effects", "state", "declared by"],
        [
            *("plugin", "distribution", "version", "state", "reason"),
            *("formats", "conversions", "replaces"),
        ],
    ]


def test_memory_is_told_by_addresses() -> None:
    """A view shares memory with its array, a copy does not, and lists tell no addresses."""
    array = np.zeros((3, 4), "float32")
    assert shares_memory(array, array[1:]) is True
    assert shares_memory(array, array.copy()) is False
    assert shares_memory(array, [0.0]) is None
