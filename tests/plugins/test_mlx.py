"""MLX: arrays in and out, what shares memory, and what is computed, traced or never narrowed."""

from __future__ import annotations

import gc
import sys
import threading
from functools import partial
from types import ModuleType

import mlx.core as mx
import numpy as np
import pytest

import interop
from interop.errors import Declined, HandOffError, RefusedError
from interop_plugins import mlx as plugin
from tests.plugins.immutable import framework
from tests.plugins.promises import is_kept
from tests.plugins.values import numbers, numpy_dtype, same, start

array, address = framework("mlx").make, framework("mlx").address


def mlx_dtype(name):
    return mx.bool_ if name == "bool" else getattr(mx, name)


# ------------------------------------------------------------------ describing


def test_named_targets():
    """The module, the array type, a dtype and an array name the format; an array is kept as is."""
    lazy = mx.array([1.0, 2.0]) + 1
    for target in ("mlx", mx, mx.array):
        assert isinstance(interop.convert(np.ones(2, "f4"), to=target), mx.array)
        assert interop.convert(lazy, to=target) is lazy
    with interop.policy():
        assert interop.convert(lazy, to="mlx") is lazy
    assert interop.convert([1.0], like=lazy, dtype=mx.bfloat16).dtype == mx.bfloat16
    assert interop.convert(lazy, to="numpy", dtype=mx.bool_).dtype == bool


LAYOUTS = {
    "transposed": (lambda a: a.T, {"noncontiguous", "fortran"}),
    "reversed": (lambda a: a[::-1, ::-2], {"noncontiguous", "negative_strides"}),
    "skipping": (lambda a: a[1:, ::2], {"noncontiguous"}),
    "rows": (lambda a: a[1:], set()),
    "one": (lambda a: a[1, 2], set()),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["float32", "bfloat16", "complex64", "bool"])
def test_layouts(convert, name, layout):
    """A view of an array is described as it lies, shared by NumPy, and put in order for torch."""
    view, traits = LAYOUTS[layout]
    base = array(name)
    mx.eval(base)
    value, expected = view(base), view(numbers(name))
    assert interop.spec(value).traits == traits | {"immutable"}
    result = convert(value, to="numpy", copy=False)
    assert same(result, expected)
    assert start(result) == address(value)
    assert address(base) <= start(result) < address(base) + base.nbytes
    tensor = interop.convert(value, to="torch")
    assert interop.plan(value, to="torch").zero_copy is ("negative_strides" not in traits)
    assert same(interop.convert(tensor, to="numpy"), expected)
    assert (tensor.data_ptr() == address(value)) is ("negative_strides" not in traits)
    copied = interop.convert(value, to="mlx", copy=True)
    assert interop.spec(copied).traits == {"immutable"}
    assert same(interop.convert(copied, to="numpy"), expected)


def test_repeated_memory():
    """An array that repeats its rows is shared as one that does, and copied for torch."""
    value = mx.broadcast_to(mx.arange(4), (3, 4))
    assert interop.spec(value).traits == {"immutable", "noncontiguous", "broadcast"}
    result = interop.convert(value, to="numpy", copy=False)
    assert (result.strides, result.tolist()) == ((0, 4), [[0, 1, 2, 3]] * 3)
    assert interop.convert(value, to="torch").tolist() == [[0, 1, 2, 3]] * 3
    assert interop.convert(value, to="jax").tolist() == [[0, 1, 2, 3]] * 3


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


def test_memoryviews_would_change(in_subprocess):
    """The buffer protocol, which interop does not use, lets MLX write to memory that others see."""
    out = in_subprocess("""
        import mlx.core as mx, numpy as np
        value = mx.zeros(100_000, dtype=mx.int32) + 3
        mx.eval(value)
        view = np.asarray(memoryview(value))
        value += 1
        mx.eval(value)
        print(view[0])
    """)
    assert out.strip() == "4"


def test_shared_memory_is_released():
    """MLX gets its memory back when the last array that shares it is gone."""
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


# ------------------------------------------------------------------ into MLX


# ------------------------------------------------------------------ what MLX lacks


def test_casts_are_numpys():
    """Numbers that a dtype cannot hold become what NumPy makes of them."""
    value = np.array([300.7, -1.5, 65520.0, np.nan, 1e30], "f4")
    for dtype in ("uint8", "float16", "bfloat16"):
        expected = interop.convert(value, to="numpy", dtype=dtype)
        result = interop.convert(interop.convert(value, to="mlx"), to="mlx", dtype=dtype)
        assert same(interop.convert(result, to="numpy"), expected)
    real = interop.convert(np.array([1 + 2j], "c8"), to="mlx", dtype="float32")
    assert (real.dtype, real.tolist()) == (mx.float32, [1])


@pytest.mark.parametrize(
    ("name", "narrower", "number"),
    [("complex128", "complex64", 1e300j), ("longdouble", "float64", 1.5)],
)
def test_never_narrowed_in_silence(name, narrower, number):
    """A dtype that MLX lacks is refused unless the loss is permitted or another dtype requested."""
    value = np.array([number], name)
    with pytest.raises(RefusedError, match=rf"narrow.*dtype='{narrower}'\.$"):
        interop.convert(value, to="mlx")
    for keywords in ({"allow": "narrow"}, {"dtype": narrower}):
        assert interop.convert(value, to="mlx", **keywords).dtype == mlx_dtype(narrower)


def test_narrow_reals_are_widened():
    """8-bit floats, which MLX lacks, become a dtype that holds all of them."""
    for name in ("float8_e4m3fn", "float8_e5m2"):
        value = np.arange(256, dtype="u1").view(numpy_dtype(name))
        result = interop.convert(value, to="mlx")
        back = interop.convert(result, to="numpy").astype("f4")
        np.testing.assert_array_equal(back, value.astype("f4"))


@pytest.fixture
def on_gpu(monkeypatch):
    """MLX whose default device is a GPU, as on Apple's machines."""
    core = ModuleType("mlx.core")
    vars(core).update(vars(mx))
    core.default_device = lambda: "gpu"
    monkeypatch.setitem(sys.modules, "mlx.core", core)


def test_doubles_on_a_gpu(convert, on_gpu):
    """While the default device is a GPU, which has no float64, float64 counts as narrowed."""
    value = np.array([1e300])
    with pytest.raises(
        RefusedError, match=r"dtype='float32'\.\nMLX computes with float64 on the CPU"
    ):
        convert(value, to="mlx")
    with pytest.raises(RefusedError, match="default device"):
        convert(value, to="mlx", dtype="float64")
    assert convert(value, to="mlx", allow="narrow").dtype == mx.float32
    with pytest.raises(Declined, match="GPU"):
        plugin.from_numpy(value)


def test_doubles_after_the_device_has_changed(monkeypatch):
    """A plan older than a change of the default device does not run after it."""
    value = np.array([1e300])
    route = interop.plan(value, to="mlx")
    assert route(value).dtype == mx.float64
    core = ModuleType("mlx.core")
    vars(core).update(vars(mx))
    core.default_device = lambda: "gpu"
    monkeypatch.setitem(sys.modules, "mlx.core", core)
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


@pytest.mark.slow
def test_axes_too_long_for_mlx():
    """An axis of more elements than MLX can count is refused before anything is copied."""
    value = np.broadcast_to(np.zeros(1, "u1"), (2**31,))
    with pytest.raises(RefusedError, match=r"at most 2147483647 elements along an axis"):
        interop.convert(value, to="mlx")


# ------------------------------------------------------------------ computing and tracing


def test_lazy_arrays_are_computed():
    """A lazy array is computed, which is no effect: nobody can tell the difference."""
    lazy = mx.arange(4) * 2
    with interop.policy(forbid="materialize"):
        assert interop.convert(lazy, to="numpy").tolist() == [0, 2, 4, 6]
    assert interop.plan(mx.arange(4) * 2, to="numpy").effects == set()


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


def test_computed_arrays_of_other_threads():
    """An array that its thread has computed is shared, and others are copied, in any thread."""
    sums, copies = [], []

    def make():
        sums.append(mx.array([1.0, 2.0], dtype=mx.bfloat16) + 1)
        mx.eval(sums[0])
        copies.append(interop.convert(np.arange(6.0)[::-2], to="mlx", dtype="bfloat16"))

    thread = threading.Thread(target=make)
    thread.start()
    thread.join()
    assert interop.convert(sums[0], to="torch").tolist() == [2, 3]
    assert interop.convert(copies[0], to="torch").tolist() == [5, 3, 1]


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


def test_memory_is_told():
    """A receipt tells what is shared, even for views with negative strides."""
    base = mx.arange(10)
    for value in (base, base[::-1], base[2:5], mx.array(3.0)):
        with interop.trace() as receipts:
            interop.convert(value, to="numpy")
            interop.convert(value, to="numpy", copy=True)
        assert [receipt.aliased for receipt in receipts] == [True, False]
    low, count = plugin.memory(base[::-1])[0]
    assert (low, count) == (address(base), 40)


@pytest.mark.parametrize("shape", [(1,), (1, 6), (0, 3)])
def test_an_axis_of_one_element_may_go_backwards(shape: tuple[int, ...]) -> None:
    """A stride that is never used does not count, though MLX itself would refuse it."""
    array = np.arange(np.prod(shape), dtype="float32").reshape(shape)[::-1]
    result = interop.convert(array, "mlx")
    assert isinstance(result, mx.array)
    assert np.array(result).tobytes() == array.tobytes()
    assert result.shape == shape


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
