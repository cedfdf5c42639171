"""Transfers: what the helper for conversions between devices declares."""

from __future__ import annotations

from interop import Conversion, Cost, Interop
from interop.kit import transfer
from interop.plugin import BUS, Result, make_spec
from tests.toys import Box, labels, toy


def put(box: Box, *, device: str) -> Box:
    """Return the numbers on a device."""
    return Box("b", list(box.numbers), dtype=box.dtype, device=device)


def test_transfer_changes_the_device_at_the_speed_of_the_bus() -> None:
    """It says where the conversion starts and ends, and passes other fields on."""
    upload = Conversion(
        "a",
        "b",
        put,
        devices={"cpu"},
        changes={"device"},
        result=Result(devices={"cuda"}),
        cost=BUS,
    )
    assert transfer("a", "b", put, {"cpu"}, {"cuda"}) == upload
    slow = upload._replace(cost=Cost(1.0), takes={"readonly"}, name="slow")
    fields = {"cost": Cost(1.0), "takes": {"readonly"}, "name": "slow"}
    assert transfer("a", "b", put, {"cpu"}, {"cuda"}, **fields) == slow


def test_a_value_is_brought_to_the_device(empty: Interop) -> None:
    """The route has the effect, and the function is told the device."""
    empty.register(
        toy("a"), toy("b", devices=("cuda",)), transfer("a", "b", put, {"cpu"}, {"cuda"})
    )
    route = empty.plan(make_spec("a", "float32", shape=(3,)), to="b", device="cuda:1")
    assert labels(route) == ["put"]
    assert route.effects == {"transfer"}
    result = empty.convert(Box("a", [1.0]), to="b", device="cuda:1")
    assert (result.numbers, result.device) == ([1.0], "cuda:1")
