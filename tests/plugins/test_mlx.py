"""MLX: arrays in and out, what shares memory, and what is computed, traced or never narrowed."""

from __future__ import annotations

import gc
import threading
from functools import partial

import mlx.core as mx
import numpy as np
import pytest

import interop
from interop.errors import Declined, HandOffError, RefusedError
from interop_plugins import mlx as plugin
from tests.cases import together
from tests.plugins.immutable import framework
from tests.plugins.promises import is_kept
from tests.plugins.values import numbers, same, start

array, address = framework("mlx").make, framework("mlx").address


def mlx_dtype(name):
    return mx.bool_ if name == "bool" else getattr(mx, name)


# ------------------------------------------------------------------ describing


@together("name", ["float32", "bfloat16"])
@together(
    "view",
    [
        lambda a, _: a.T,
        lambda a, _: a[::-1, ::-2],
        lambda a, _: a[1:, ::2],
        lambda a, _: a[1:2, ::2],
        lambda a, library: library.broadcast_to(a[1], (3, 4)),
    ],
)
def test_views_are_shared_as_they_lie(name, view):
    """NumPy gets the memory of a view, and torch and JAX its numbers, whatever the strides."""
    base = array(name)
    mx.eval(base)
    value, expected = view(base, mx), view(numbers(name), np)
    result = interop.convert(value, to="numpy", copy=False)
    assert same(result, expected)
    assert start(result) == address(value)
    for target in ("torch", "jax"):
        assert same(interop.convert(interop.convert(value, target), "numpy"), expected)


# ------------------------------------------------------------------ out of MLX


@pytest.mark.parametrize("name", ["int32", "bfloat16"])
@pytest.mark.parametrize("target", ["numpy", "torch"])
def test_shared_memory_outlives_the_array_and_never_changes(target, name):
    """Nothing that MLX does to an array, or to its memory afterwards, reaches those who share it."""
    count = 100_000
    for change in ("+=", "[]=", "del"):
        value = mx.zeros(count, dtype=mlx_dtype(name)) + 3
        result = interop.convert(value, to=target)
        if change == "+=":
            value += 1
        elif change == "[]=":
            value[:] = 4
        mx.eval(value)
        assert float(value[0]) == (3 if change == "del" else 4)
        del value
        gc.collect()
        others = [mx.zeros(count, dtype=mlx_dtype(name)) + n for n in range(5, 9)]
        mx.eval(others)
        assert float(result.min()) == float(result.max()) == 3


def test_shared_memory_is_released():
    """MLX gets its memory back when the last array that shares it is gone."""
    gc.collect()
    mx.clear_cache()
    before = mx.get_active_memory()
    value = mx.zeros(1_000_000) + 1
    shared = [interop.convert(value, to="numpy") for _ in range(3)]
    shared.append(interop.convert(value, to="torch"))
    del value
    gc.collect()
    assert mx.get_active_memory() - before >= 4_000_000
    shared.clear()
    gc.collect()
    assert mx.get_active_memory() - before < 1_000_000


# ------------------------------------------------------------------ what MLX lacks


def test_doubles_on_a_gpu(convert, monkeypatch):
    """While the default device is a GPU, which has no float64, float64 counts as narrowed.

    No plan that is older than that runs.
    """
    value = np.array([1e300])
    route = interop.plan(value, to="mlx")
    assert route(value).dtype == mx.float64
    monkeypatch.setattr(mx, "default_device", lambda: mx.gpu)
    for keywords in ({}, {"dtype": "float64"}):
        with pytest.raises(RefusedError):
            convert(value, to="mlx", **keywords)
    assert convert(value, to="mlx", allow="narrow").dtype == mx.float32
    with pytest.raises(Declined):
        plugin.from_numpy(value)
    with pytest.raises(RefusedError):
        route(value)


def test_before_mlx_is_imported(in_subprocess):
    """Planning imports nothing, and assumes the default device that MLX has on such a machine."""
    program = """
        import sys, interop
        spec = interop.make_spec("numpy", "float64", shape=(3,))
        sys.platform = {platform!r}
        try:
            print(interop.plan(spec, to="mlx").result.dtype)
        except interop.errors.RefusedError as error:
            print("narrow" in str(error))
        assert "mlx.core" not in sys.modules
    """
    assert in_subprocess(program.format(platform="linux")).strip() == "float64"
    assert in_subprocess(program.format(platform="darwin")).strip() == "True"


# ------------------------------------------------------------------ computing and tracing


@pytest.mark.parametrize("transform", ["compile", "vmap", "compiled gradient"])
def test_inside_traces(transform):
    """A traced value has no elements to hand over, and converts to MLX as itself."""
    constants = []

    def look(x):
        for value in (x, x * 2):
            assert interop.spec(value).traits == {"traced"}
            for target in ("numpy", "torch", "python", "jax"):
                with pytest.raises(RefusedError):
                    interop.convert(value, to=target)
            with pytest.raises(RefusedError):
                interop.convert(value, to="mlx", copy=True)
            assert interop.convert(value, to="mlx") is value
            with interop.policy():
                assert interop.convert(value, to="mlx") is value
        arrays = (np.ones(4, "f4"), np.ones(8, "f4")[::2], np.ones(4))
        constants.extend(interop.convert(a, to="mlx", dtype="float32") for a in arrays)
        return (x * constants[-1]).sum()

    x = mx.ones((2, 4))
    for _ in range(3):  # so that fast paths are known
        interop.convert(x, to="numpy"), interop.convert(x, to="torch")
    if transform == "compile":
        assert mx.compile(look)(x).item() == 8
    elif transform == "vmap":
        assert mx.vmap(look)(x).tolist() == [4, 4]
    else:
        assert mx.compile(mx.grad(look))(x).tolist() == [[1] * 4] * 2
    assert len(constants) == 3


def test_inside_gradients():
    """In a gradient MLX has the numbers, and what leaves is a constant, as with `tolist`."""

    def loss(x):
        y = x * 2
        for target in ("numpy", "torch"):
            assert interop.convert(y, to=target).tolist() == y.tolist() == [2, 4]
        assert interop.convert(y, to="mlx") is y
        return (y * interop.convert(interop.convert(x, to="numpy"), to="mlx")).sum()

    assert mx.grad(loss)(mx.array([1.0, 2.0])).tolist() == [2, 4]  # of 2 * x * constant


def test_arrays_of_other_threads():
    """A lazy array of another thread, which MLX cannot compute here, is refused with the reason."""
    arrays = []
    thread = threading.Thread(target=lambda: arrays.append(mx.arange(5) + 1))
    thread.start()
    thread.join()
    assert interop.spec(arrays[0]).traits == {"uncomputed"}
    for target in ("numpy", "torch"):
        with pytest.raises(RefusedError):
            interop.convert(arrays[0], to=target)
    assert interop.convert(arrays[0], to="mlx") is arrays[0]


def test_failing_computations(monkeypatch):
    """A computation that fails on the way to NumPy stops the conversion, with what failed.

    MLX would take the array for computed after that. Whether and when it notices a failure in
    another thread of its own is a race, so the failure is simulated here.
    """
    value = mx.ones(2)
    interop.convert(mx.ones(2), to="numpy")  # after which the fast path knows the dtype

    def fail(*_, **__):
        raise RuntimeError("[Inverse::eval_cpu] LU factorization failed")

    monkeypatch.setattr(np, "from_dlpack", fail)
    with pytest.raises(
        HandOffError, match=r"LU factorization.*Fix the expression that computes it"
    ):
        plugin.numpy_fast_path(value)
    for error, trait in (
        (RuntimeError("[Inverse::eval_cpu] LU factorization failed"), "uncomputed"),
        (
            RuntimeError("[eval] Attempting to eval an array during function transformations"),
            "traced",
        ),
    ):
        assert plugin._reason(error) == trait
    spec = interop.make_spec("mlx", "float32", shape=(2,), traits={"uncomputed"})
    with pytest.raises(RefusedError):
        interop.plan(spec, to="numpy")


def test_errors_keep_nothing(monkeypatch):
    """A large array is freed with the error that refused it, without a collection."""
    make = partial(np.ones, 2**17)
    for fail in (
        lambda value: plugin.from_numpy(np.broadcast_to(value[:1], 2**31)),
        partial(interop.convert, to="mlx", copy=False),
        partial(interop.convert, to="mlx", device="cuda"),
    ):
        is_kept(make, fail)  # a first call imports, and plans
        assert not is_kept(make, fail)

    def refuse(*_, **__):
        raise RuntimeError("[Inverse::eval_cpu] LU factorization failed")

    interop.convert(mx.ones(2), to="numpy")
    monkeypatch.setattr(np, "from_dlpack", refuse)
    mx.clear_cache()
    before = mx.get_active_memory()
    value = mx.ones(2**20)
    mx.eval(value)
    gc.disable()
    try:
        with pytest.raises(HandOffError):
            plugin.numpy_fast_path(value)
        del value
        assert mx.get_active_memory() - before < 2**20
    finally:
        gc.enable()


def test_subclasses():
    """An array of a subclass becomes one of MLX's own over the same memory."""

    class Special(mx.array):
        pass

    value = Special([1.0, 2.0])
    assert interop.spec(value).traits == {"immutable", "subclass"}
    plain = interop.convert(value, to="mlx")
    assert type(plain) is mx.array
    assert address(plain) == address(value)
    assert interop.convert(value, to="numpy").tolist() == [1, 2]


class OnDevice:
    """An array of MLX's CUDA build, as far as it tells where it is."""

    def __init__(self, kind):
        self.dtype, self.shape, self.nbytes = mx.float32, (2,), 8
        self.kind = kind

    def __dlpack_device__(self):
        return (self.kind, 0)


def test_devices():
    """Apple's unified memory counts as the host's; memory of a CUDA build does not."""
    assert plugin._device(OnDevice(1)) == plugin._device(OnDevice(8)) == "cpu"
    assert plugin._device(OnDevice(2)) == "cuda:0"
    spec = interop.make_spec("mlx", "float32", device="cuda:0", shape=(3,), traits={"immutable"})
    with pytest.raises(RefusedError):
        interop.plan(spec, to="numpy")


# ------------------------------------------------------------------ Apple's GPU

#: A machine of Apple's that is none: torch's tensors say that they lie on MPS, MLX's arrays that
#: they lie on Metal, and what either library would do there notes it, and copies.
ON_APPLE = """
    import sys
    import mlx.core as mx, numpy as np, torch
    import interop, interop_plugins.torch
    description = sys.modules["interop_plugins.torch.describe"]

    events, metal = [], (8, 0)
    description._devices[torch.device("cpu")] = "mps:0"
    torch.mps.synchronize = lambda: events.append("torch has written")
    torch.Tensor.__dlpack_device__ = lambda tensor: metal
    compute = mx.eval
    mx.eval = lambda *arrays: (events.append("MLX has computed"), compute(*arrays))

    def imported(producer, **keywords):
        assert producer.__dlpack_device__() == metal
        events.append(("shared with MLX", keywords))
        capsule = producer.__dlpack__(max_version=(1, 3))
        return mx.array(np.from_dlpack(Capsule(capsule)))

    class Capsule:
        def __init__(self, capsule): self.capsule = capsule
        def __dlpack__(self, **_): return self.capsule
        def __dlpack_device__(self): return 1, 0

    mx.from_dlpack = imported
"""


def test_tensors_on_mps_are_shared_with_mlx(in_fork):
    """MLX gets the memory of torch on Apple's GPU, for which torch's writes are waited for."""
    in_fork(
        ON_APPLE
        + """
    tensor = torch.arange(6.0).reshape(2, 3)
    for keywords in ({}, {"copy": False}):
        assert np.array(interop.convert(tensor, "mlx", **keywords)).tolist() == tensor.tolist()
        assert events == ["torch has written", ("shared with MLX", {"copy": False})], events
        events.clear()
    assert not interop.plan(tensor, "mlx").effects
    """
    )


def test_arrays_of_mlx_are_shared_with_torch_on_mps(in_fork):
    """torch gets the memory of MLX on Apple's GPU, once MLX has computed it."""
    in_fork(
        ON_APPLE
        + """
    import torch.utils.dlpack
    share = torch.utils.dlpack.from_dlpack

    def adopted(producer):
        assert producer.__dlpack_device__() == metal
        events.append("shared with torch")
        return share(producer.__dlpack__(max_version=(1, 0)))

    torch.utils.dlpack.from_dlpack = adopted
    array = mx.arange(3) + 1
    mx.array.__dlpack_device__ = lambda array: metal
    for keywords in ({}, {"copy": False}):
        tensor = interop.convert(array, "torch", device="mps", **keywords)
        assert tensor.tolist() == [1, 2, 3]
        assert events == ["MLX has computed", "shared with torch"], events
        events.clear()
    """
    )


def test_where_mlx_does_not_share_the_other_way_is_gone(in_fork):
    """What an older MLX refuses is copied over the host, as it was before."""
    in_fork(
        ON_APPLE
        + """
    del mx.from_dlpack
    torch.Tensor.cpu = lambda tensor: tensor.clone()
    assert interop.convert(torch.arange(3), "mlx").tolist() == [0, 1, 2]
    """
    )
