"""What holds on every device: transfers, casts, layouts, and whose memory it is."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import interop
from interop import Conversion, Cost, Format, Interop, Spec
from interop.plugin import Result
from tests.gpu.conftest import Kit
from tests.gpu.values import DTYPES, LAYOUTS, equal, host


class Foreign:
    """A value that nothing is known of but that it exports DLPack."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **keywords: Any) -> object:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self.array.__dlpack_device__()
        return device


@pytest.mark.parametrize("dtype", DTYPES)
def test_from_the_host_and_back(kit: Kit, dtype: str) -> None:
    """An array of any dtype comes back from the device as it went."""
    if dtype not in kit.dtypes:
        pytest.skip(f"{kit.name} has no {dtype}")
    value = host(dtype)
    array = interop.convert(value, to=kit.name)
    assert interop.spec(array).format == kit.name
    assert interop.spec(array).device.startswith(f"{kit.device_type}:")
    assert not interop.spec(array).traits
    assert equal(kit.fetch(array), value)
    back = interop.convert(array, to="numpy")
    assert equal(back, value)
    assert back.flags.owndata
    assert back.flags.writeable


@pytest.mark.parametrize("layout", LAYOUTS)
def test_awkward_layouts_cross(kit: Kit, layout: str) -> None:
    """Any layout crosses either way, and arrives as one block that can be written."""
    value = np.asarray(LAYOUTS[layout](host("float64")))
    value.flags.writeable = False
    array = interop.convert(value, to=kit.name)
    assert not interop.spec(array).traits
    assert equal(kit.fetch(array), value)
    strided = LAYOUTS[layout](kit.make(host("float64")))
    back = interop.convert(strided, to="numpy")
    assert equal(back, value)
    assert back.flags.c_contiguous
    assert back.base is None


def test_backwards_crosses(kit: Kit) -> None:
    """An array walked backwards crosses either way."""
    value = host("float32")[::-1, ::-1]
    assert equal(kit.fetch(interop.convert(value, to=kit.name)), value)
    array = kit.make(host("float32"))[::-1, ::-1]
    assert equal(interop.convert(array, to="numpy"), value)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_describes_layouts(kit: Kit, layout: str) -> None:
    """The description of an array on the device has the traits of the same one on the host."""
    array = LAYOUTS[layout](kit.make(host("float32")))
    expected = interop.spec(np.asarray(LAYOUTS[layout](host("float32"))))
    place = {"format": kit.name, "device": f"{kit.device_type}:0"}
    assert interop.spec(array) == expected._replace(**place)


@pytest.mark.parametrize("source", DTYPES)
def test_casts(kit: Kit, source: str) -> None:
    """A dtype is cast into every other on the device, as NumPy does it on the host."""
    if source not in kit.dtypes:
        pytest.skip(f"{kit.name} has no {source}")
    value = host(source)
    array = kit.make(value)
    for target in kit.dtypes:
        narrowing = source.startswith("complex") and not target.startswith(("complex", "bool"))
        real = value.real if narrowing else value
        middle = real.astype("float32") if source == "bfloat16" else real
        expected = middle.astype(ml_dtypes.bfloat16 if target == "bfloat16" else target)
        result = interop.convert(array, to=kit.name, dtype=target)
        assert equal(kit.fetch(result), expected), target
        assert kit.index(result) == 0


def test_returned_as_it_is(kit: Kit) -> None:
    """An array that is what was asked for is returned as it is."""
    array = kit.make(host("float32"))
    assert interop.convert(array, to=kit.name) is array
    assert interop.convert(array, to=kit.module) is array
    assert interop.convert(array, to=type(array), device=kit.device_type) is array


def test_fresh_memory(kit: Kit) -> None:
    """copy=True gives memory of its own on the device, in one block: in C order, or transposed."""
    array = kit.make(host("float32")).T
    result = interop.convert(array, to=kit.name, copy=True)
    assert kit.address(result) != kit.address(array)
    assert not interop.spec(result).traits or not interop.spec(result.T).traits
    assert equal(kit.fetch(result), host("float32").T)


def test_copy_false(kit: Kit) -> None:
    """copy=False refuses to leave the device."""
    with pytest.raises(interop.errors.RefusedError):
        interop.convert(kit.make(host("float32")), to="numpy", copy=False)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_out(kit: Kit, layout: str) -> None:
    """out= writes into an array that is there already, casting on the way."""
    value = LAYOUTS[layout](kit.make(host("float32")))
    out = LAYOUTS[layout](kit.make(np.zeros((5, 7))))
    assert interop.convert(value, out=out) is out
    assert equal(kit.fetch(out), np.asarray(LAYOUTS[layout](host("float64"))))


def test_out_from_the_host(kit: Kit) -> None:
    """out= takes a value of the host, too."""
    out = kit.make(np.zeros((5, 7), "float32"))
    assert interop.convert(host("float32"), out=out) is out
    assert equal(kit.fetch(out), host("float32"))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_foreign_values_are_shared(kit: Kit, layout: str) -> None:
    """What a foreign value exports by DLPack is shared, in its layout, and written on both sides."""
    array = LAYOUTS[layout](kit.make(host("float32")))
    with interop.trace() as receipts:
        result = interop.convert(Foreign(array), to=kit.name)
    assert equal(kit.fetch(result), np.asarray(LAYOUTS[layout](host("float32"))))
    assert not receipts[-1].effects
    if result.size:
        assert kit.address(result) == kit.address(array)
        interop.convert(np.full(array.shape, 7, "float32"), out=array)
        assert (kit.fetch(result) == 7).all()


def test_foreign_values_are_kept_alive(kit: Kit) -> None:
    """A result holds the memory of a foreign value that is gone."""
    result = interop.convert(Foreign(kit.make(host("float32"))), to=kit.name)
    others = [kit.make(np.full((5, 7), 9, "float32")) for _ in range(8)]  # of the freed memory
    assert equal(kit.fetch(result), host("float32"))
    del others


def test_the_source_may_change(kit: Kit) -> None:
    """Memory of the host may be overwritten as soon as convert has returned."""
    values = np.ones(1 << 22, "float32")
    array = interop.convert(values, to=kit.name)
    values[:] = 7
    assert (kit.fetch(array) == 1).all()


def test_another_device(kit: Kit, another_device: str) -> None:
    """Data on a device that is not the first is shared, cast, moved and fetched where it lies."""
    expected = host("float32", (3, 4))
    there = kit.make(expected, 1)
    assert interop.spec(there).device == another_device
    shared = interop.convert(Foreign(there), to=kit.name)
    assert kit.address(shared) == kit.address(there)
    for result in (shared, interop.convert(there, to=kit.name, dtype="int32")):
        assert kit.index(result) == 1
    moved = interop.convert(there.T, to=kit.name, device=f"{kit.device_type}:0")
    assert kit.index(moved) == 0
    assert equal(kit.fetch(moved), expected.T)
    assert equal(interop.convert(there, to="numpy"), expected)
    sent = interop.convert(expected, to=kit.name, device=another_device)
    assert kit.index(sent) == 1
    assert equal(kit.fetch(sent), expected)
    again = interop.convert(kit.make(expected), to=kit.name, device=another_device)
    assert kit.index(again) == 1
    assert equal(kit.fetch(again), expected)


def test_any_device_will_do(kit: Kit, another_device: str) -> None:
    """A device without an index is any of its kind, so data stay where they are."""
    there = kit.make(host("float32"), 1)
    assert interop.convert(there, to=kit.name, device=kit.device_type) is there


def test_a_device_that_is_not_there(kit: Kit) -> None:
    """Asking for a device that the machine lacks is an error that says how many there are."""
    name = f"{kit.device_type}:99"
    for value in (np.ones(4), kit.make(np.ones(4))):
        with pytest.raises(interop.InteropError, match=rf"{kit.count()} device.*{name}"):
            interop.convert(value, to=kit.name, device=name)


class Hermit:
    """A value of a framework that shares its memory with nobody."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.fetched = 0


def describe_hermit(value: Hermit) -> Spec:
    return interop.spec(value.array)._replace(format="hermit")


def test_round_trips_are_refused(kit: Kit) -> None:
    """From device to host and back is refused unless allowed, and nothing has then happened."""

    def fetch(value: Hermit, *, device: str) -> Any:
        value.fetched += 1
        return kit.fetch(value.array)

    instance = Interop()
    instance.register(
        Format(
            "hermit",
            (f"{__name__}:Hermit",),
            describe_hermit,
            frozenset({"float32"}),
            devices=(kit.device_type,),
        ),
        Conversion(
            "hermit",
            "numpy",
            fetch,
            devices=frozenset({kit.device_type}),
            changes=frozenset({"device"}),
            result=Result(devices=frozenset({"cpu"})),
            effects=frozenset({"transfer"}),
            cost=Cost(1e-5, 5e9),
        ),
    )
    value = Hermit(kit.make(host("float32")))
    with pytest.raises(interop.errors.RefusedError):
        instance.convert(value, to=kit.name)
    assert value.fetched == 0
    array = instance.convert(value, to=kit.name, allow="host_round_trip")
    assert equal(kit.fetch(array), host("float32"))
