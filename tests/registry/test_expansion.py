"""Expansion: which conversions the unary steps of a format stand for."""

from __future__ import annotations

from typing import Any

import pytest

from interop import Conversion, Cost, Format, Interop
from interop._registry.expansion import unary_conversions
from interop.errors import PluginError
from interop.plugin import BUS, Cast, Copy, Drop, Move, Result, Unary, UnaryStep
from tests.toys import toy

CARRIES = frozenset({"grad", "noncontiguous", "traced"})
HELD = frozenset({"grad", "noncontiguous"})


def act(value: Any, **given: Any) -> Any:
    """Stand for what a step does."""


def expand(empty: Interop, *steps: Unary, **fields: Any) -> list[Conversion]:
    """Return the conversions of a toy with some unary steps."""
    empty.register(toy("a", carries=CARRIES, unary=steps, **fields))
    return [declared.conversion for declared in empty.conversions()]


def declared(**fields: Any) -> Conversion:
    """Return the conversion that an author would have to write for a step that says nothing."""
    return Conversion("a", "a", act, **{"takes": HELD, **fields})


@pytest.mark.parametrize(
    ("step", "conversion"),
    [
        (Drop("masked", act), declared(requires={"masked"}, drops={"masked"})),
        (
            Drop("grad", act, "detach", requires={"conj"}, drops={"neg"}),
            declared(requires={"grad", "conj"}, drops={"grad", "neg"}, effects={"detach"}),
        ),
        (Copy(act), declared(effects={"copy"})),
        (Cast(act), declared(effects={"copy"}, changes={"dtype"})),
        (
            Cast(act, {"int64"}),
            declared(effects={"copy"}, changes={"dtype"}, result=Result(dtypes={"int64"})),
        ),
        (Move(act), declared(effects={"transfer"}, changes={"device"}, cost=BUS)),
        (
            Move(act, {"cpu"}, cost=Cost(1e-3)),
            declared(
                effects={"transfer"},
                changes={"device"},
                result=Result(devices={"cpu"}),
                cost=Cost(1e-3),
            ),
        ),
        (Copy(act, blocked={"grad"}), declared(effects={"copy"}, takes={"noncontiguous"})),
        (Copy(act, takes={"traced"}), declared(effects={"copy"}, takes={"traced"})),
        (Copy(act, takes=()), declared(effects={"copy"}, takes=set())),
    ],
)
def test_a_kind_of_step_stands_for_a_conversion(
    empty: Interop, step: Unary, conversion: Conversion
) -> None:
    """Each kind says its effects and changes; the format says what the step takes."""
    (expanded,) = expand(empty, step)
    assert expanded == conversion


def test_other_fields_are_passed_on(empty: Interop) -> None:
    """What a step says beside its kind is said of the conversion; what they replace is the format's."""
    fields: dict[str, Any] = {
        "adds": {"immutable"},
        "dtypes": {"float32"},
        "ndims": {1},
        "cost": Cost(1e-3),
        "shares": True,
        "stream": True,
        "into": act,
        "name": "other",
    }
    (expanded,) = expand(empty, Copy(act, **fields), replaces={"x"})
    assert expanded == declared(effects={"copy"}, replaces={"x"}, **fields)


@pytest.mark.parametrize(
    ("devices", "expected"),
    [(("cpu",), {"cpu"}), (("cuda", "rocm"), {"cuda", "rocm"}), (("cpu", "cuda"), None)],
)
def test_a_step_is_possible_wherever_the_format_can_be(
    empty: Interop, devices: tuple[str, ...], expected: set[str] | None
) -> None:
    """Its devices are those of the format; None, which is any, where the host is one of several."""
    (expanded,) = expand(empty, Copy(act), devices=devices)
    assert expanded.devices == expected


@pytest.mark.parametrize(("given", "beyond"), [(None, {"cuda", "xpu"}), ({"cpu", "xpu"}, {"xpu"})])
def test_a_cost_beyond_the_host_makes_two_conversions(
    empty: Interop, given: set[str] | None, beyond: set[str]
) -> None:
    """One is for the host, and the other, with that cost, for the other devices of the step."""
    step = Copy(act, devices=given, cost=Cost(1e-6), device_cost=Cost(1e-5))
    host, other = expand(empty, step, devices=("cpu", "cuda", "xpu"))
    assert (host.devices, host.cost) == ({"cpu"}, Cost(1e-6))
    assert (other.devices, other.cost) == (beyond, Cost(1e-5))


def test_steps_come_in_the_order_of_their_format(empty: Interop) -> None:
    """The conversions stand where the format stands, in the order of its steps."""
    empty.register(
        Conversion("a", "b", act, name="first"),
        toy("a", unary=[Copy(act, name="second"), Cast(act, name="third")]),
        Conversion("a", "b", act, name="last"),
    )
    names = [declared.conversion.name for declared in empty.conversions()]
    assert names == ["first", "second", "third", "last"]


def test_a_format_registered_twice_has_its_steps_once(empty: Interop) -> None:
    """To register an equal format again is harmless."""
    for _ in range(2):
        expand(empty, Copy(act), Cast(act))
    assert len(empty.conversions()) == 2


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (["copy"], r"format 'a' with unary=\['copy'\]"),
        (Copy(act), "format 'a' with unary=Copy"),
        ([UnaryStep()], r"format 'a' with unary=\[UnaryStep"),
        ([Copy("act")], "format 'a' with unary.function='act'"),  # type: ignore[arg-type]
        ([Copy(act, takes="grad")], "format 'a' with unary.takes='grad'"),  # type: ignore[arg-type]
        ([Cast(act, {"flaot32"})], "conversion a → a with the unknown dtype 'flaot32'"),
        ([Drop("grad", act, "explode")], "conversion a → a with the effect 'explode'"),
    ],
)
def test_malformed_steps_are_refused(empty: Interop, steps: Any, message: str) -> None:
    """The refusal names the format or the conversion, and what is wrong about it."""
    with pytest.raises(PluginError, match=message):
        empty.register(Format("a", unary=steps))
    assert not empty.formats()


def test_a_step_on_the_host_alone_is_one_conversion() -> None:
    """A cost for devices makes no conversion where no device is named."""
    step = Copy(print, devices={"cpu"}, device_cost=Cost(1e-6))
    format_ = Format("a", dtypes={"float32"}, devices=("cpu", "cuda"), unary=(step,))
    (conversion,) = unary_conversions(format_)
    assert conversion.devices == {"cpu"}
