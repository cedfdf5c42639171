"""Namespaces of the array API standard are targets, and their arrays are sources."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import interop
from interop import Interop
from interop.errors import (
    DeviceError,
    InteropError,
    NotInstalledError,
    RefusedError,
    UnknownTargetError,
)
from interop_plugins.dlpack import namespace


class Array:
    """An array of a library that nobody knows, over NumPy's memory."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, **keywords: Any) -> object:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self.array.__dlpack_device__()

    def __array_namespace__(self, api_version: str | None = None) -> ModuleType:
        return sys.modules["unheard_of"]


class Dtype:
    """A dtype of that library."""

    def __str__(self) -> str:
        return "unheard_of.float32"


@pytest.fixture
def xp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A namespace with what a conversion needs of the standard."""
    module: Any = ModuleType("unheard_of")
    module.__spec__ = ModuleSpec("unheard_of", None)  # as if it were installed
    module.Array, module.Dtype, module.float32 = Array, Dtype, Dtype()
    module.from_dlpack = lambda x: Array(np.from_dlpack(x))
    module.__array_namespace_info__ = object
    module.empty = lambda shape: Array(np.empty(shape))
    monkeypatch.setitem(sys.modules, "unheard_of", module)
    return module


@pytest.fixture
def mine(xp: Any) -> Interop:
    """An instance to which the namespace is declared."""
    instance = Interop()
    instance.register(*namespace("unheard_of", "unheard_of:Array", "unheard_of:Dtype"))
    return instance


def test_a_namespace_is_a_target(mine: Interop, xp: Any) -> None:
    """By its module, its name and its type; the memory of a producer is shared."""
    array = np.arange(3.0)
    for to in (xp, "unheard_of", Array):
        result: Any = mine.convert(array, to=to)
        assert type(result) is Array
        assert np.shares_memory(result.array, array)
    for value in (torch.arange(3.0), jnp.arange(3.0), [0.0, 1.0, 2.0], array[::-1][::-1]):
        result = mine.convert(value, to=xp)
        assert result.array.tolist() == [0, 1, 2]
    assert mine.convert(array, to=xp, dtype=Dtype()).array.dtype == np.float32


def test_an_array_of_a_namespace_is_a_source(mine: Interop) -> None:
    """It is described as one of its library, shared, copied and cast like any other."""
    array = np.arange(6.0).reshape(2, 3)
    value = Array(array)
    spec = mine.spec(value)
    assert (spec.format, spec.dtype, spec.shape) == ("unheard_of", "float64", (2, 3))
    assert mine.convert(value, to="torch").data_ptr() == array.ctypes.data
    copy: Any = mine.convert(value, to="unheard_of", copy=True)
    assert not np.shares_memory(copy.array, array)
    assert copy.array.tolist() == array.tolist()
    assert mine.convert(value, like=value) is value


def test_bfloat16_is_cast_and_swapped_memory_copied_for_a_namespace(mine: Interop) -> None:
    """bfloat16 is not of the standard, and byte-swapped memory not of DLPack."""
    assert mine.convert(torch.ones(2, dtype=torch.bfloat16), to="unheard_of").array.dtype == "f4"
    swapped: Any = mine.convert(np.arange(3, dtype=">i4"), to="unheard_of")
    assert (swapped.array.dtype.str, swapped.array.tolist()) == ("<i4", [0, 1, 2])


@pytest.mark.parametrize("by", ["to", "like", "several", "accepts"])
def test_a_namespace_that_nobody_declared_is_a_target(xp: Any, by: str) -> None:
    """It is declared when it is first given, as a module or by one of its arrays."""
    instance = Interop()
    array = np.arange(3.0)
    with pytest.raises(UnknownTargetError):
        instance.convert(array, to="unheard_of")
    if by == "to":
        result: Any = instance.convert(array, to=xp)
    elif by == "like":
        result = instance.convert(array, like=Array(np.ones(2)))
    elif by == "several":
        result = instance.convert(array, to=[xp])
    else:
        kinds: list[type] = []
        instance.accepts(xp)(lambda x: kinds.append(type(x)))(array)
        assert kinds == [Array]
        result = instance.convert(array, to=xp)
    assert type(result) is Array
    assert np.shares_memory(result.array, array)
    assert type(instance.convert(array, to="unheard_of")) is Array
    assert type(instance.convert([1, 2], to=xp, dtype=Dtype())) is Array
    assert instance.plan(array, to=xp).zero_copy
    assert instance.convert(torch.ones(2, dtype=torch.bfloat16), to=xp).array.dtype == "f4"
    assert sum(item.name == "unheard_of" for item in instance.formats()) == 1


ODD: dict[str, Any] = {
    "plain": lambda: np.arange(6.0).reshape(2, 3),
    "reversed": lambda: np.arange(6.0)[::-2],
    "repeated": lambda: np.broadcast_to(np.arange(3.0), (2, 3)),
    "locked": lambda: np.broadcast_to(np.arange(3), 3),
    "unaligned": lambda: np.frombuffer(bytearray(17), np.uint8)[1:].view("f8"),
    "empty": lambda: np.zeros((0, 3), "int8"),
    "half": lambda: np.ones(2, "float16"),
}


@pytest.mark.parametrize("odd", ODD)
def test_to_be_a_target_changes_nothing_of_a_source(xp: Any, odd: str) -> None:
    """Arrays of a namespace are read alike before and after it is first given as a target."""
    before, after = Interop(), Interop()
    after.convert([1.0], to=xp)
    value = Array(ODD[odd]())
    specs = before.spec(value), after.spec(value)
    assert (specs[0].format, specs[1].format) == ("dlpack", "unheard_of")
    assert specs[0][1:] == specs[1][1:]
    for to in ("numpy", "torch", "jax", "python"):
        for copy in (None, True, False):
            outcomes = []
            for instance in (before, after):
                try:
                    result = instance.convert(value, to=to, copy=copy, allow="narrow")
                except InteropError as error:
                    outcomes.append((type(error), ()))
                else:
                    shares = instance.plan(value, to=to, copy=copy, allow="narrow").aliases
                    outcomes.append((type(result), (shares, interop.convert(result, "python"))))
            assert outcomes[0] == outcomes[1], (to, copy)


def test_threads_declare_a_namespace_once(xp: Any) -> None:
    """Sixteen threads may give it at the same time."""
    instance = Interop()
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda n: instance.convert([n], to=xp), range(64)))
    assert [result.array.tolist() for result in results] == [[n] for n in range(64)]


def test_a_namespace_of_a_known_librarys_arrays_stands_for_that_library(xp: Any) -> None:
    """What counts is the arrays that it makes, whatever its name."""
    xp.empty = torch.empty
    assert interop.convert([1.0], to=xp).equal(torch.tensor([1.0]))
    assert not any(item.name == "unheard_of" for item in interop.formats())


def test_a_part_of_a_known_library_stands_for_that_library() -> None:
    """What tells of no arrays of its own is taken by the name of its package."""
    part: Any = ModuleType("torch.part")
    part.__array_api_version__ = "2025.12"
    assert interop.convert([1.0], to=part).equal(torch.tensor([1.0]))


@pytest.mark.parametrize("lack", ["from_dlpack", "__array_namespace_info__", "its place"])
def test_a_module_that_is_no_namespace_is_refused(
    xp: Any, lack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not asked to make arrays either, and the refusal lists frameworks."""
    if lack == "its place":
        monkeypatch.delitem(sys.modules, "unheard_of")
    else:
        delattr(xp, lack)
        monkeypatch.delattr(Array, "__dlpack__")
    with pytest.raises(UnknownTargetError):
        Interop().convert(np.ones(1), to=xp)


def test_a_namespace_that_makes_no_arrays_is_named(xp: Any) -> None:
    """Its own error is the cause of a refusal that says whose module it is."""

    def empty(shape: object) -> object:
        raise ZeroDivisionError("no memory")

    xp.empty = empty
    with pytest.raises(UnknownTargetError, match="ZeroDivisionError: no memory") as caught:
        Interop().convert(np.ones(1), to=xp)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_undeclared_array_is_dlpacks() -> None:
    """Nobody asks what its namespace is until it is to be a target."""
    assert Interop().spec(Array(np.ones(1))).format == "dlpack"


def test_array_api_strict() -> None:
    """The strict namespace and its dtypes are known, and it shares memory in both directions."""
    strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    instance, tensor = Interop(), torch.arange(3.0)
    array = instance.convert(tensor, to=strict)
    assert type(array) is type(strict.ones(1))
    assert strict.all(array == strict.asarray([0.0, 1.0, 2.0], dtype=strict.float32))
    assert instance.convert(array, to="torch").data_ptr() == tensor.data_ptr()
    assert instance.convert([1, 2], to=strict, dtype=strict.int8).dtype == strict.int8


def test_array_api_strict_holds_every_layout() -> None:
    """What it could not be given is copied first: the numbers are those of the array."""
    strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    room = np.zeros(49, np.uint8)[1:].view("float32")
    room[:] = range(12)
    plain = np.arange(12, dtype="float32").reshape(3, 4)
    for array in (room, plain, plain.T, plain[::-1, ::2], plain.astype(">f4"), plain[:0]):
        result = interop.convert(array, to=strict)
        assert interop.convert(result, to="python") == array.tolist()
    locked = plain.copy()
    locked.flags.writeable = False
    interop.convert(locked, to=strict, copy="writable")[0, 0] = 7.0
    assert locked[0, 0] == 0.0


def test_devices_that_dlpack_takes_for_the_host_are_told_apart() -> None:
    """Arrays get to the device of `like=`, stay there when they are cast, and leave it as copies."""
    strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    there = strict.Device("device2")
    like = strict.zeros(1, device=there)
    array = interop.convert(np.asarray([1.5, 2.5]), like=like)
    assert (array.device, array.dtype) == (there, strict.float64)
    assert interop.spec(array).device == "ext_dev:2"
    assert interop.convert(array, to=strict) is array
    ordered = strict.reshape(strict.arange(6.0, device=there), (2, 3))
    interop.convert(ordered, to=strict, copy=True)[0, 0] = 7.0
    assert ordered[0, 0] == 0.0
    turned = strict.permute_dims(ordered, (1, 0))
    for request in ({"copy": True}, {"dtype": "int32"}, {"device": "cpu"}):
        result = interop.convert(turned, to=strict, **request)
        assert result.device == (strict.Device("CPU_DEVICE") if "device" in request else there)
        assert interop.spec(result).traits == frozenset()
        assert interop.convert(result, to="python") == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    route = interop.plan(array, to="numpy")
    assert (route.effects, route.aliases) == ({"transfer"}, False)
    with pytest.raises(RefusedError):
        interop.convert(array, to="numpy", copy=False)
    for name in ("ext_dev:9", "ext_dev:0"):
        with pytest.raises(DeviceError):
            interop.convert(np.ones(1), to=strict, device=name)


def test_a_device_of_a_namespace_is_asked_for_by_its_object() -> None:
    """Such an object has a `str` that is no name, and is found in the namespace's own list."""
    strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    for device in strict.__array_namespace_info__().devices():
        result = interop.convert(np.ones(2, "f4"), to=strict, device=device)
        assert (result.device, result.dtype) == (device, strict.float32)
        assert interop.convert(result, to=strict, device=device) is result
        home = interop.convert(result, to=strict, device=strict.Device("CPU_DEVICE"))
        assert home.device == strict.Device("CPU_DEVICE")


def test_a_namespace_that_is_not_installed_says_how() -> None:
    """The command that installs it ends the message."""
    instance = Interop()
    instance.register(*namespace("no_such_xp", "no_such_xp:Array", install="pip install xp"))
    with pytest.raises(NotInstalledError):
        instance.convert(np.ones(1), to="no_such_xp")


# ------------------------------------------------------------------ libraries with a from_dlpack


class Plain:
    """An array of a library that has a `from_dlpack`, and nothing else of the standard."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __dlpack__(self, *, stream: object = None) -> object:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self.array.__dlpack_device__()


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A module that shares arrays of floats with at least one axis, and writes into them."""
    module: Any = ModuleType("plainly")
    module.Plain = Plain
    monkeypatch.setattr(Plain, "__module__", "plainly")

    def from_dlpack(producer: Any) -> Plain:
        array = np.from_dlpack(producer)
        if not array.ndim or array.dtype.kind != "f":
            raise RuntimeError("no such arrays")
        return Plain(array)

    module.from_dlpack = from_dlpack
    monkeypatch.setitem(sys.modules, "plainly", module)
    return module


@pytest.mark.parametrize("by", ["module", "type", "like", "accepts"])
def test_a_library_with_from_dlpack_is_a_target(plain: Any, by: str) -> None:
    """By its module, its array type, or one of its arrays; memory is shared as the plan says."""
    instance = Interop()
    array = np.arange(3.0)
    if by == "like":
        result: Any = instance.convert(array, like=Plain(np.ones(2)))
    elif by == "accepts":
        result = instance.accepts(plain)(lambda x: x)(Plain(array))
    else:
        result = instance.convert(array, to=plain if by == "module" else Plain)
    assert type(result) is Plain
    assert np.shares_memory(result.array, array)
    if by != "accepts":
        assert instance.plan(array, to="plainly").zero_copy
        tensor = torch.arange(6.0).reshape(2, 3).T
        assert np.shares_memory(instance.convert(tensor, to="plainly").array, tensor.numpy())
        assert instance.convert(result, to="torch").data_ptr() == array.ctypes.data


def test_dtypes_and_axes_that_a_namespace_refuses_are_refused(plain: Any) -> None:
    """Dtypes and numbers of axes that it refuses are refused before; locked memory is copied."""
    instance = Interop()
    locked = np.arange(3.0)
    locked.flags.writeable = False
    result: Any = instance.convert(locked, to=plain)
    assert result.array.tolist() == [0, 1, 2]
    assert not np.shares_memory(result.array, locked)
    result.array[0] = 5
    assert locked[0] == 0
    backwards = np.arange(3.0)[::-1]
    assert instance.convert(backwards, to=plain).array.tolist() == [2, 1, 0]
    assert instance.convert([1, 2], to=plain, dtype="float32").array.dtype == np.float32
    with pytest.raises(RefusedError, match="plainly does not hold int64; ask for one of these"):
        instance.convert(np.arange(3), to=plain)
    with pytest.raises(RefusedError, match="plainly holds arrays of 1 to 64 axes, not of 0"):
        instance.convert(np.float64(1), to=plain)


def test_a_library_that_copies_is_planned_as_a_copy(plain: Any) -> None:
    """Whether its `from_dlpack` shares memory is seen, so that copy=False is not promised."""
    share = plain.from_dlpack
    plain.from_dlpack = lambda producer: Plain(share(producer).array.copy())
    instance = Interop()
    assert instance.plan(np.ones(3), to=plain).effects == {"copy"}
    with pytest.raises(RefusedError):
        instance.convert(np.ones(3), to=plain, copy=False)


def test_a_library_that_takes_nothing_says_why(plain: Any) -> None:
    """What its `from_dlpack` raises is the reason that it is no target, and may pass."""
    take = plain.from_dlpack

    def not_yet(producer: Any) -> Plain:
        raise RuntimeError("call init() first")

    plain.from_dlpack = not_yet
    instance = Interop()
    for to in (plain, Plain):
        with pytest.raises(
            UnknownTargetError, match=r"plainly: its from_dlpack.*call init\(\) first"
        ):
            instance.convert(np.ones(3), to=to)
    plain.from_dlpack = take
    assert type(instance.convert(np.ones(3), to=Plain)) is Plain


def test_other_types_and_modules_are_no_targets() -> None:
    """A type whose package has no `from_dlpack` is refused as before."""
    for to in (Interop, ModuleSpec, int, sys, pytest):
        with pytest.raises(UnknownTargetError):
            interop.convert(np.ones(3), to=to)


@pytest.mark.extra("tvm_ffi")
def test_tensors_of_tvm_ffi() -> None:
    """A library of that kind takes and gives memory without a copy."""
    import tvm_ffi

    array = np.arange(6.0).reshape(2, 3)
    for to in (tvm_ffi, tvm_ffi.Tensor):
        tensor: Any = Interop().convert(array, to=to)
        assert type(tensor) is tvm_ffi.Tensor
        assert np.shares_memory(np.from_dlpack(tensor), array)
    assert interop.convert(tensor, to="torch").data_ptr() == array.ctypes.data


@pytest.mark.extra("warp")
def test_arrays_of_warp(in_subprocess: Any) -> None:
    """NVIDIA Warp is a target by its module, its type and its arrays, once it is initialised."""
    in_subprocess("""
        import interop, numpy as np, torch, warp as wp
        wp.config.quiet = True
        try:
            interop.convert(np.ones(3), to=wp)
        except interop.InteropError as error:
            assert "wp.init()" in str(error), error
        wp.init()
        array = np.arange(6.0).reshape(2, 3)
        like = wp.zeros(2)
        for keywords in ({"to": wp}, {"to": wp.array}, {"like": like}):
            result = interop.Interop().convert(array, **keywords)
            assert type(result) is wp.array and result.ptr == array.ctypes.data
            assert result.dtype is wp.float64 and result.shape == (2, 3)
        weights = torch.ones(2, requires_grad=True)
        assert interop.convert(weights, to=wp).numpy().tolist() == [1, 1]
        assert interop.convert(interop.convert(weights, to=wp), to="torch").data_ptr() == weights.data_ptr()
    """)
