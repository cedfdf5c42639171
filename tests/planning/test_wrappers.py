"""Wrappers, labels and lazy formats: what is unwrapped on the way, and what routes keep clear of."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import interop
import interop.plugin
from interop import Conversion, Cost, Format, Interop
from interop.errors import RefusedError, UnknownValueError
from interop.plugin import TRAITS, Labels, Wrapper
from interop.plugin.advanced import Advanced
from tests.kit.library import Array
from tests.kit.library_plugin import with_library


class Box(NamedTuple):
    """A wrapper with a label."""

    value: Any
    label: str = ""


class Crate(NamedTuple):
    """Another wrapper of the same framework."""

    value: Any
    label: str = ""


class Stream:
    """A wrapper without a length."""

    def __init__(self, value: Any) -> None:
        self.value = value


def recast(box: Box, *, dtype: str) -> Box:
    return Box(box.value.astype(dtype), box.label)


def _labelled_as(box: Box, like: Box) -> Box:
    return box._replace(label=like.label) if box.value.shape == like.value.shape else box


def boxes(**fields: Any) -> list[Any]:
    common: dict[str, Any] = {
        "wrapper": Wrapper(lambda box: box.value),
        "dtypes": frozenset(interop.plugin.DTYPES),
        "devices": ("cpu", "cuda"),
        "carries": interop.plugin.MEMORY_TRAITS,
        "labels": Labels(lambda box: bool(box.label), _labelled_as),
    }
    traits = frozenset(TRAITS)
    return [
        Format("boxes.box", types=(f"{__name__}:Box",), **{**common, **fields}),
        Format("boxes.crate", types=(f"{__name__}:Crate",), **{**common, **fields}),
        Conversion("numpy", "boxes.box", Box, takes=interop.plugin.MEMORY_TRAITS),
        Conversion("boxes.box", "boxes.crate", lambda b: Crate(*b), devices=None, takes=traits),
        Conversion(
            "boxes.box",
            "boxes.box",
            recast,
            takes=traits,
            changes=frozenset({"dtype"}),
            effects=frozenset({"copy"}),
            cost=Cost(1.0),  # dearer than any way that leaves the framework
        ),
    ]


class Few:
    """A sparse array: numbers, and where they stand."""

    def __init__(self, length: int, **numbers: float) -> None:
        self.length, self.numbers = length, numbers

    def dense(self) -> np.ndarray:
        array = np.zeros(self.length)
        array[[int(place[1:]) for place in self.numbers]] = [*self.numbers.values()]
        return array


def few() -> list[Any]:
    """Return a sparse format that becomes NumPy's."""

    def describe(value: Few) -> interop.Spec:
        spec = interop.plugin.make_spec("few", "float64", shape=(value.length,))
        return spec._replace(nnz=len(value.numbers))

    return [
        Format("few", types=(f"{__name__}:Few",), describe=describe, dtypes={"float64"}),
        Conversion("few", "numpy", Few.dense, effects={"densify"}),
    ]


@pytest.fixture
def instance() -> Interop:
    return with_library(*boxes(), *few())


def test_a_wrapper_is_described_as_what_it_wraps(instance: Interop) -> None:
    """Everything but the name of the format is that of the wrapped value."""
    for value in (np.ones((2, 3), "f4").T, Array(np.ones(2), requires_grad=True)):
        inner, spec = instance.spec(value), instance.spec(Box(value))
        assert spec == inner._replace(format="boxes.box", wrapped=inner.format)
        assert f"of {inner.format}" in str(spec)
    assert instance.spec(Box(Few(3, _1=5.0))).nnz == 1


def test_a_wrapper_is_unwrapped_on_the_way_out(instance: Interop) -> None:
    """The wrapped value is converted as if it had been passed itself, and shared where possible."""
    array = np.arange(6.0).reshape(2, 3)
    assert instance.convert(Box(array), to="numpy") is array
    other = instance.convert(Box(array), to="library", copy=False)
    assert other.data.ctypes.data == array.ctypes.data
    route = instance.plan(Box(array), to="library")
    assert [step.label for step in route.steps] == ["unwrap_boxes_box", "library_from_dlpack"]
    assert route.zero_copy
    assert instance.convert([Box(1)][0], to="numpy") == 1
    # After the other, on whose type nothing was kept.
    assert instance.convert(Box(Few(3, _1=5.0)), to="numpy").tolist() == [0, 5, 0]
    assert instance.convert(Box(array), to="numpy") is array


def test_the_policy_is_that_of_the_wrapped_value(instance: Interop) -> None:
    """A mask or read-only memory in a wrapper is as safe as outside of one."""
    with pytest.raises(RefusedError):
        instance.convert(Box(np.ma.array([1, 2], mask=[True, False])), to="library")
    locked = np.ones(3)
    locked.flags.writeable = False
    result = instance.convert(Box(locked), to="library")
    assert result.data.ctypes.data != locked.ctypes.data
    random = np.array([object()])
    with pytest.raises(RefusedError):
        instance.convert(Box(random), to="library")
    assert instance.convert(Box(random), to="numpy") is random


def test_a_wrapped_array_on_a_device_is_planned_for(instance: Interop) -> None:
    """A wrapper of an array on a device can be planned for from its spec."""
    spec = interop.make_spec("torch", "float32", device="cuda:0", shape=(4, 4))
    boxed = spec._replace(format="boxes.box", wrapped="torch")
    assert instance.plan(boxed, to="cupy").zero_copy
    assert instance.plan(boxed, to="numpy").effects == {"transfer"}
    assert instance.plan(boxed, to="boxes.box").steps == ()


def test_labels_stay_within_a_framework(instance: Interop) -> None:
    """A route within a framework with labels does not leave it, whatever its own steps cost."""
    box = Box(np.arange(3.0), "mine")
    assert instance.convert(box, to="boxes.box") is box
    assert instance.convert(box, to="boxes.box", dtype="float32").label == "mine"
    assert instance.convert(box, to="boxes.box", copy=True).label == "mine"
    crate = instance.convert(box, to="boxes.crate", dtype="int8")
    assert (crate.label, crate.value.dtype) == ("mine", np.int8)
    assert instance.spec(crate) == instance.plan(box, to="boxes.crate", dtype="int8").result
    with pytest.raises(RefusedError):
        instance.convert(crate, to="boxes.box", copy=True)


def test_a_value_without_labels_leaves_where_no_route_within_serves(instance: Interop) -> None:
    """A value that has no labels to lose is copied and cast by way of another framework."""
    crate = Crate(np.arange(3.0))
    box = instance.convert(crate, to="boxes.box", copy=True)
    assert box.value.tolist() == [0, 1, 2]
    assert box.value.ctypes.data != crate.value.ctypes.data
    assert instance.convert(crate, to="boxes.box", dtype="float32").value.dtype == np.float32
    # What the framework does itself is preferred, however dear it is.
    cast = instance.plan(Box(np.arange(3.0)), to="boxes.box", dtype="float32")
    assert [step.label for step in cast.steps] == ["recast"]


def test_a_search_within_a_framework_tells_nothing_of_one_beyond(empty: Interop) -> None:
    """What is known of the rest of a route within a framework does not count where it may leave."""
    labels = Labels(lambda box: False, lambda box, like: box)
    empty.register(
        *(Format(name, dtypes={"float32"}, labels=labels) for name in ("a.one", "a.other")),
        Format("b", dtypes={"float32"}, advanced=Advanced(hub=True)),
        Conversion("a.one", "a.one", id, effects={"copy"}, name="copy"),
        Conversion("a.one", "b", id, name="leave"),
        Conversion("b", "a.other", id, name="come_back"),
    )
    spec = interop.plugin.make_spec("a.one", "float32", shape=(3,))
    route = empty.plan(spec, to="a.other", copy=True)
    assert [step.label for step in route.steps] == ["copy", "leave", "come_back"]


def test_the_spec_of_a_new_wrapper_names_what_it_wraps(instance: Interop) -> None:
    """The planned spec of a wrapper says what the wrapper will hold."""
    for value in (np.ones(3, "f4"), Array(np.ones(3, "f4"))):
        result = instance.convert(value, to="boxes.box")
        assert instance.spec(result) == instance.plan(value, to="boxes.box").result
        assert instance.spec(result).wrapped == "numpy"
        assert result.value.ctypes.data == instance.convert(value, to="numpy").ctypes.data


def test_a_trace_knows_the_wrapped_memory(instance: Interop) -> None:
    """Receipts compare the memory of the wrapped value."""
    array = np.ones(3)
    for copy, shared in ((None, True), (True, False)):
        with interop.trace() as receipts:
            instance.convert(Box(array), to="library", copy=copy)
        assert receipts[0].aliased is shared


def test_out_takes_the_wrapped_value(instance: Interop) -> None:
    """``out=`` takes the wrapped value."""
    out = np.zeros(3)
    instance.convert(Box(Array(np.arange(3.0))), out=out)
    assert out.tolist() == [0, 1, 2]


def test_a_wrapper_of_nothing_yet() -> None:
    """A wrapper that wraps nothing yet is described by its own `describe`."""

    def describe(box: Box) -> interop.Spec:
        return interop.plugin.make_spec("boxes.box", "float64", shape=(3,), traits={"absent"})

    mine = with_library(
        *boxes(describe=describe),
        Conversion(
            "boxes.box",
            "numpy",
            lambda box: np.ones(3),
            requires=frozenset({"absent"}),
            drops=frozenset({"absent"}),
            effects=frozenset({"materialize"}),
        ),
    )
    assert mine.convert(Box(None), to="library").data.tolist() == [1, 1, 1]
    assert mine.convert(Box(np.zeros(3)), to="library").data.tolist() == [0, 0, 0]


def test_no_conversion_is_planned_to_what_is_read_before_all_else(loaded: Interop) -> None:
    """A format that is read once is no result, whatever is declared; the plan already says so."""
    once = Format(
        "handles",
        types=(f"{__name__}:Box", f"{__name__}:Stream"),
        dtypes=frozenset(interop.plugin.DTYPES),
        wrapper=Wrapper(lambda box: box.value, once=True),
    )
    loaded.register(Conversion("numpy", "handles", Box), once)
    with pytest.raises(RefusedError):
        loaded.plan(np.ones(2), to="handles")
    assert loaded.plan(np.ones(2), to=("handles", "python")).result.format == "python"
    spec = loaded.make_spec("handles", "float64", shape=(2,))
    with pytest.raises(RefusedError):
        loaded.plan(spec, to="python")
    assert loaded.convert(Box(np.ones(2)), to="python") == [1, 1]
    assert loaded.spec(Box(np.ones(2))) == loaded.spec(np.ones(2))
    with pytest.raises(UnknownValueError):  # what has no length can be read only once
        loaded.spec(Stream(np.ones(2)))
    assert loaded.convert(Stream(np.ones(2)), to="python") == [1, 1]


def test_a_wrapper_that_is_no_hub_is_left_by_unwrapping_alone(loaded: Interop) -> None:
    """A faster conversion out of it that is declared beside serves routes within its framework."""
    traits = frozenset(TRAITS)
    opened = Conversion("boxes.box", "numpy", lambda box: box.value, cost=Cost(1e-9), takes=traits)
    loaded.register(*boxes(wrapper=Wrapper(lambda box: box.value, seconds=1e-3)), opened)
    first, *_ = loaded.plan(Box(np.ones(3)), to="python").steps
    assert first.label == "unwrap_boxes_box"
