"""What users of the plugin rely on."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

import interop
from interop.testing import PluginTests

if shutil.which("clang") is None:
    os.environ.setdefault("DEV", "PYTHON")  # tinygrad then interprets what clang would compile

tinygrad = pytest.importorskip("tinygrad")
Tensor = tinygrad.Tensor

DTYPES = {
    **{name: name for name in ("bool", "int8", "uint16", "int64", "uint64")},
    **{name: name for name in ("float16", "bfloat16", "float32", "float64")},
    "float8_e4m3fn": "fp8e4m3",
    "float8_e5m2": "fp8e5m2",
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3)])
def test_there_and_back(dtype: str, shape: tuple[int, ...]) -> None:
    """An array becomes a tensor of the same dtype and shape, and the same numbers come back."""
    array = interop.convert(np.arange(np.prod(shape)).reshape(shape), to="numpy", dtype=dtype)
    before = array.tobytes()
    result = interop.convert(array, to="tinygrad")
    assert type(result) is Tensor
    assert result.dtype == getattr(tinygrad.dtypes, DTYPES[dtype])
    assert interop.spec(result) == interop.make_spec("tinygrad", dtype, shape=shape)
    back = interop.convert(result, to="numpy")
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, shape, before)
    back[...] = array[...] = 1  # neither of them is the memory of the tensor
    assert interop.convert(result, to="numpy").tobytes() == before


def test_a_tensor_is_computed_once_and_only_when_it_is_converted() -> None:
    """What it takes to describe, to plan and to convert one is what its own `numpy` takes."""

    def kernels(read: object) -> int:
        tensor = Tensor(np.arange(6.0)).realize() * 2 + 1
        tinygrad.GlobalCounters.reset()
        assert read(tensor).tolist() == [1, 3, 5, 7, 9, 11]
        return tinygrad.GlobalCounters.kernel_count

    def planned(tensor: object) -> object:
        assert interop.spec(tensor).dtype == "float64"
        route = interop.plan(tensor, to="numpy")
        assert route.effects == {"copy", "materialize"}
        assert tinygrad.GlobalCounters.kernel_count == 0
        return route(tensor)

    own = kernels(Tensor.numpy)
    assert own > 0
    assert kernels(planned) == own
    assert kernels(lambda tensor: interop.convert(tensor, to="numpy")) == own


def test_what_a_tensor_can_be() -> None:
    """Constants, views and other layouts keep their numbers."""
    array = np.arange(6.0).reshape(2, 3)
    for odd in (array.T, array[:, ::-1], np.broadcast_to(array[0], (2, 3))):
        assert interop.convert(odd, to=tinygrad).numpy().tolist() == odd.tolist()
    tensor = interop.convert(array, to=tinygrad)
    assert interop.convert(tensor.T, to="torch").tolist() == array.T.tolist()
    for constant, numbers in ((Tensor(2.0), 2.0), (Tensor.full((2,), 2.0), [2.0, 2.0])):
        result = interop.convert(constant, to="numpy")
        assert (result.dtype, result.tolist()) == ("float32", numbers)


@pytest.mark.skipif(shutil.which("clang") is None, reason="the device CPU needs clang")
def test_shards_are_put_together() -> None:
    """A tensor in two parts gives all of its numbers."""
    halves = Tensor(np.arange(6.0)).shard(("CPU", "CPU:1"), axis=0)
    assert interop.convert(halves, to="numpy").tolist() == [0, 1, 2, 3, 4, 5]


def test_what_is_refused_says_why() -> None:
    """Complex numbers have no tensor, another device is named, and copy=False is not promised."""
    with pytest.raises(interop.errors.RefusedError, match="does not hold complex64"):
        interop.convert(np.zeros(2, "c8"), to="tinygrad")
    with pytest.raises(interop.errors.RefusedError, match="on cpu, not on null"):
        interop.convert(Tensor.empty(3, device="NULL"), to="numpy")
    with pytest.raises(interop.errors.RefusedError, match="copy=False"):
        interop.convert(np.zeros(2), to="tinygrad", copy=False)
    with pytest.raises(interop.errors.RefusedError, match="materialize"):
        interop.convert(Tensor.ones(2) + 1, to="numpy", forbid="materialize")


class TestPromises(PluginTests):
    """Everything that the plugin declares holds."""

    plugin = "interop_tinygrad"
