"""accepts with arrays on devices: results come back to the caller's device, cold and warm."""

from __future__ import annotations

from typing import Any

import pytest

import interop
from interop import Interop
from interop.plugin.advanced import Advanced
from tests.toys import Box, copy, toy

_BOTH = ("cpu", "cuda")


class Case(Box):
    """An array of another toy framework."""


def _shared(kind: type[Box], name: str, device: str = "") -> Any:
    """Return a function that shares the numbers of a box, of a box on that device alone."""

    def share(box: Box) -> Any:
        if device and box.device != device:
            return NotImplemented
        return kind(name, box.numbers, device=box.device)

    return share


def _down(box: Box, *, device: str) -> Case:
    return Case("n", list(box.numbers), device=device)


def _up(case: Case, *, device: str) -> Box:
    return Box("a", list(case.numbers), device=device)


@pytest.fixture
def instance(empty: Interop) -> Interop:
    """Return an instance with a framework for devices, and another one for those in `n`."""
    keyed = Advanced(fast_key=lambda box: (box.dtype, box.device))
    moving = {"changes": {"device"}, "effects": {"transfer"}}
    empty.register(
        toy("a", devices=_BOTH, advanced=keyed),
        copy("a", "a", name="move", devices=None, **moving),
    )
    return empty


@pytest.mark.parametrize("order", ["cuda cpu cpu cuda cuda", "cpu cpu cuda cpu cuda cuda"])
def test_a_function_of_the_host_gives_results_back_to_the_device(
    instance: Interop, order: str
) -> None:
    """What was learnt of arrays on the host does not serve those on a device, and the reverse."""
    moving = {"changes": {"device"}, "effects": {"transfer"}}
    keyed = Advanced(fast_key=lambda case: (case.dtype, case.device))
    instance.register(
        toy("n", types=(f"{__name__}:Case",), advanced=keyed),
        interop.Conversion("a", "n", _shared(Case, "n"), fast_path=_shared(Case, "n", "cpu")),
        interop.Conversion("n", "a", _shared(Box, "a"), fast_path=_shared(Box, "a")),
        interop.Conversion("a", "n", _down, devices={"cuda"}, **moving),
        interop.Conversion("n", "a", _up, **moving),
    )

    @instance.accepts("n")
    def same(case: Case) -> Case:
        assert (type(case), case.device) == (Case, "cpu")
        return case

    for device in order.split():
        result = same(Box("a", [1.0], device=device))
        assert (type(result), result.device, result.numbers) == (Box, device, [1.0])


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the devices of what is described, which no warm call does."""
    from interop._recognition.recognition import Recognition

    devices: list[str] = []
    describe = Recognition.describe

    def noted(self: Recognition, value: Any) -> interop.Spec:
        devices.append(value.device)
        return describe(self, value)

    monkeypatch.setattr(Recognition, "describe", noted)
    return devices


def test_a_function_for_devices_is_called_without_a_plan(
    instance: Interop, described: list[str]
) -> None:
    """Warm arguments and results are handed over, on each device; a result elsewhere is moved."""
    moving = {"changes": {"device"}, "effects": {"transfer"}}
    sharing = {"devices": None}
    instance.register(
        toy("n", types=(f"{__name__}:Case",), devices=_BOTH),
        interop.Conversion("a", "n", _shared(Case, "n"), fast_path=_shared(Case, "n"), **sharing),
        interop.Conversion("n", "a", _shared(Box, "a"), fast_path=_shared(Box, "a"), **sharing),
        copy("n", "n", name="move", devices=None, **moving),
    )

    @instance.accepts("n")
    def moved(case: Case, to: str = "") -> Any:
        assert type(case) is Case
        result = Case("n", case.numbers, device=to or case.device)
        return [result] if to else result

    for device in ("cuda", "cpu", "cuda"):
        for _ in range(3):
            described.clear()
            result = moved(Box("a", [1.0], device=device))
            assert (type(result), result.device) == (Box, device)
        assert described == []
    for _ in range(3):
        (result,) = moved(Box("a", [1.0], device="cuda"), "cpu")
        assert (type(result), result.device) == (Box, "cuda")
    elsewhere = instance.accepts("n")(lambda case: Case("n", [1.0]))
    for device in ("cpu", "cpu", "cuda", "cuda"):
        result = elsewhere(Box("a", [1.0], device=device))
        assert (type(result), result.device) == (Box, device)
