"""Holders, labels and lazy stops: formats that hold any other, and what routes keep clear of."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse
import torch

import interop
import interop.plugin
from interop import Conversion, Cost, Format, Interop
from interop.errors import RefusedError, UnknownValueError


class Box(NamedTuple):
    """A holder with a label."""

    value: Any
    label: str = ""


class Crate(NamedTuple):
    """Another holder of the same framework."""

    value: Any
    label: str = ""


def recast(box: Box, *, dtype: str) -> Box:
    return Box(box.value.astype(dtype), box.label)


def boxes(**fields: Any) -> list[Any]:
    common: dict[str, Any] = {
        "inside": lambda box: box.value,
        "dtypes": frozenset(interop.plugin.DTYPES),
        "devices": ("cpu", "cuda"),
        "carries": interop.plugin.MEMORY_TRAITS,
        "labelled": True,
        "passable": False,
    }
    traits = frozenset(interop.plugin.TRAITS)
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


@pytest.fixture
def face(loaded: Interop) -> Interop:
    loaded.register(*boxes())
    return loaded


def test_a_holder_is_described_as_what_is_inside(face: Interop) -> None:
    """Everything but the name of the format is that of the value inside."""
    for value in (np.ones((2, 3), "f4").T, torch.ones(2, requires_grad=True)):
        inner, spec = face.spec(value), face.spec(Box(value))
        assert spec == inner._replace(format="boxes.box", inside=inner.format)
        assert f"of {inner.format}" in str(spec)
    sparse = scipy.sparse.eye_array(3, format="csr")
    assert face.spec(Box(sparse)).nnz == 3


def test_a_holder_is_opened_on_the_way_out(face: Interop) -> None:
    """What is inside goes on as if it had been given, shared where that can be."""
    array = np.arange(6.0).reshape(2, 3)
    assert face.convert(Box(array), to="numpy") is array
    tensor = face.convert(Box(array), to="torch", copy=False)
    assert tensor.data_ptr() == array.ctypes.data
    route = face.plan(Box(array), to="torch")
    assert [step.label for step in route.steps] == ["open_boxes_box", "numpy_to_torch"]
    assert route.zero_copy
    sparse = scipy.sparse.eye_array(3, format="csr")
    assert face.convert(Box(sparse), to="torch.sparse_csr").values().data_ptr() == (
        sparse.data.ctypes.data
    )
    assert face.convert([Box(1)][0], to="numpy") == 1
    for value in (array, sparse):  # after the other, on whose type nothing was kept
        assert face.convert(Box(value), to="numpy").shape == value.shape


def test_the_policy_is_that_of_what_is_inside(face: Interop) -> None:
    """A mask inside a holder, or locked memory, is as safe as outside."""
    with pytest.raises(RefusedError, match="drop_mask"):
        face.convert(Box(np.ma.array([1, 2], mask=[True, False])), to="torch")
    locked = np.ones(3)
    locked.flags.writeable = False
    tensor = face.convert(Box(locked), to="torch")
    assert tensor.data_ptr() != locked.ctypes.data
    random = np.array([object()])
    with pytest.raises(RefusedError, match="object is not a dtype"):
        face.convert(Box(random), to="numpy")


def test_a_device_inside_is_planned_for(face: Interop) -> None:
    """A holder of an array on a device is planned for from its spec."""
    spec = interop.make_spec("torch", "float32", device="cuda:0", shape=(4, 4))
    held = spec._replace(format="boxes.box", inside="torch")
    assert face.plan(held, to="cupy").zero_copy
    assert face.plan(held, to="numpy").effects == {"transfer"}
    assert face.plan(held, to="boxes.box").steps == ()


def test_labels_stay_within_a_framework(face: Interop) -> None:
    """A route within a framework does not leave it, however dear its own steps are."""
    box = Box(np.arange(3.0), "mine")
    assert face.convert(box, to="boxes.box") is box
    assert face.convert(box, to="boxes.box", dtype="float32").label == "mine"
    assert face.convert(box, to="boxes.box", copy=True).label == "mine"
    crate = face.convert(box, to="boxes.crate", dtype="int8")
    assert (crate.label, crate.value.dtype) == ("mine", np.int8)
    assert face.spec(crate) == face.plan(box, to="boxes.crate", dtype="int8").result
    with pytest.raises(RefusedError, match="no conversion"):
        face.convert(crate, to="boxes.box", copy=True)


def test_what_is_put_into_a_holder(face: Interop) -> None:
    """The spec of a holder that is made says what will be inside."""
    for value in (np.ones(3, "f4"), torch.ones(3)):
        result = face.convert(value, to="boxes.box")
        assert face.spec(result) == face.plan(value, to="boxes.box").result
        assert face.spec(result).inside == "numpy"
        assert result.value.ctypes.data == interop.convert(value, to="numpy").ctypes.data


def test_a_trace_knows_the_memory_inside(face: Interop) -> None:
    """Receipts compare the memory of what is inside."""
    array = np.ones(3)
    for words, shared in (({}, True), ({"copy": True}, False)):
        with interop.trace() as receipts:
            face.convert(Box(array), to="torch", **words)
        assert receipts[0].aliased is shared


def test_out(face: Interop) -> None:
    """``out=`` takes what is inside."""
    out = np.zeros(3)
    face.convert(Box(torch.arange(3.0)), out=out)
    assert out.tolist() == [0, 1, 2]


def test_a_holder_in_a_holder(face: Interop) -> None:
    """A holder that holds a holder is refused with what to do."""
    with pytest.raises(UnknownValueError, match="convert what is inside"):
        face.convert(Box(Box(np.ones(2))), to="numpy")


def test_a_holder_with_nothing_inside_yet(loaded: Interop) -> None:
    """What is not there yet is described by the holder itself."""

    def describe(box: Box) -> interop.Spec:
        return interop.make_spec("boxes.box", "float64", shape=(3,), traits={"absent"})

    loaded.register(*boxes(describe=describe))
    loaded.register(
        Conversion(
            "boxes.box",
            "numpy",
            lambda box: np.ones(3),
            requires=frozenset({"absent"}),
            drops=frozenset({"absent"}),
            effects=frozenset({"materialize"}),
        )
    )
    assert loaded.convert(Box(None), to="torch").tolist() == [1, 1, 1]
    assert loaded.convert(Box(np.zeros(3)), to="torch").tolist() == [0, 0, 0]


def test_no_route_leads_through_a_lazy_framework(loaded: Interop) -> None:
    """To put memory into a lazy array and compute that is no way round ``copy=False``."""
    locked = frozenset({"readonly"})

    def lazy(name: str, **fields: Any) -> list[Any]:
        effects = frozenset({"materialize"})
        return [
            Format(name, dtypes=frozenset({"float64"}), carries=locked, transit=False, **fields),
            Conversion("numpy", name, list, takes=locked),
            Conversion(name, "numpy", np.array, takes=locked, effects=effects),
        ]

    spec = interop.make_spec("numpy", "float64", shape=(3,), traits=locked)
    loaded.register(*lazy("later", lazy=True))
    with pytest.raises(RefusedError, match="share_readonly"):
        loaded.plan(spec, to="torch", copy=False)
    loaded.register(*lazy("sooner"))  # one that is not lazy is a last resort
    assert "sooner" in [s.after.format for s in loaded.plan(spec, "torch", copy=False).steps]
