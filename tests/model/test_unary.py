"""Unary steps: the conversions that a format makes of the steps in its `unary`."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest

from interop import Conversion, Cost, Format, Interop
from interop._model.unary import StepFields
from interop.errors import PluginError
from interop.plugin import BUS, Cast, Copy, Drop, Move, Result
from tests.toys import toy

CARRIES = frozenset({"grad", "noncontiguous", "traced"})
HELD = frozenset({"grad", "noncontiguous"})


def act(value: Any, **given: Any) -> Any:
    """Stand for what a step does."""


def filled_in(empty: Interop, *steps: Conversion, **fields: Any) -> list[Conversion]:
    """Return the conversions of a toy with some unary steps."""
    empty.register(toy("a", carries=CARRIES, unary=steps, **fields))
    return [declared.conversion for declared in empty.conversions()]


def declared(**fields: Any) -> Conversion:
    """Return the conversion that an author would have to write for a step that says nothing."""
    return Conversion("a", "a", act, **{"takes": HELD, **fields})


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (Drop("masked", act), declared(requires={"masked"}, drops={"masked"})),
        (
            Drop("grad", act, "detach", requires={"conj"}, drops={"neg"}),
            declared(requires={"grad", "conj"}, drops={"grad", "neg"}, effects={"detach"}),
        ),
        (Copy(act), declared(effects={"copy"})),
        (
            Copy(act, {"C", "F"}, across=Cost(1e-3)),
            declared(
                effects={"copy"},
                changes={"order"},
                result=Result(orders={"C", "F"}),
                across=Cost(1e-3),
            ),
        ),
        (
            Cast(act, {"int64"}, {"C", "K"}),
            declared(
                effects={"copy"},
                changes={"dtype", "order"},
                result=Result(dtypes={"int64"}, orders={"C", "K"}),
            ),
        ),
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
        (Copy(act, takes={"traced"}), declared(effects={"copy"}, takes={"traced"})),
        (Copy(act, takes=()), declared(effects={"copy"}, takes=set())),
    ],
)
def test_a_kind_of_step_is_a_conversion_that_its_format_fills_in(
    empty: Interop, step: Conversion, expected: Conversion
) -> None:
    """Each kind says its effects and changes; the format says what the step takes."""
    (conversion,) = filled_in(empty, step)
    assert conversion == expected


def test_the_fields_of_a_step_stay_as_they_are_stated(empty: Interop) -> None:
    """A format fills in what is open, and which distributions a step replaces; nothing else."""
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
    (conversion,) = filled_in(empty, Copy(act, **fields), replaces={"x"})
    assert conversion == declared(effects={"copy"}, replaces={"x"}, **fields)


def test_steps_state_fields_as_conversions_do() -> None:
    """Each field that a step may state has the type that it has in a conversion."""
    hints, of_conversions = get_type_hints(StepFields), get_type_hints(Conversion)
    assert hints == {name: of_conversions[name] for name in hints}


@pytest.mark.parametrize(
    ("devices", "expected"),
    [(("cpu",), {"cpu"}), (("cuda", "rocm"), {"cuda", "rocm"}), (("cpu", "cuda"), None)],
)
def test_a_step_is_possible_wherever_the_format_can_be(
    empty: Interop, devices: tuple[str, ...], expected: set[str] | None
) -> None:
    """Its devices are those of the format; None, which is any, where the host is one of several."""
    (conversion,) = filled_in(empty, Copy(act), devices=devices)
    assert conversion.devices == expected


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
        filled_in(empty, Copy(act), Cast(act))
    assert len(empty.conversions()) == 2


def test_a_malformed_step_keeps_its_format_out(empty: Interop) -> None:
    """A format is registered with all of its steps, or not at all."""
    with pytest.raises(PluginError):
        empty.register(Format("a", unary=[Copy(act), Drop("grad", act, "explode")]))
    assert not empty.formats()
