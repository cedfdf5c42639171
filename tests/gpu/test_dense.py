"""Dense arrays on a CUDA device: values, dtypes, layouts and whose memory it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import interop
from interop.errors import DeviceError, RefusedError
from tests.gpu.values import DTYPES, LAYOUTS, equal, host


def on_device(cupy: Any, dtype: str, shape: tuple[int, ...] = (5, 7)) -> Any:
    """Return a CuPy array made without interop."""
    values = host(dtype, shape)
    result = cupy.empty(shape, values.dtype)
    result.set(values)
    return result


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_cupy_to_torch(cupy: Any, torch: Any, dtype: str, layout: str) -> None:
    """A CuPy array and the tensor made from it are the same memory, in the same layout."""
    array = LAYOUTS[layout](on_device(cupy, dtype))
    with interop.trace() as receipts:
        tensor = interop.convert(array, to="torch")
    assert type(tensor) is torch.Tensor
    assert (str(tensor.dtype), tensor.shape) == (f"torch.{dtype}", array.shape)
    assert tensor.device == torch.device("cuda", array.device.id)
    if array.size:
        assert tensor.data_ptr() == array.data.ptr
        assert not receipts[-1].effects
    assert equal(interop.convert(tensor, to="numpy"), LAYOUTS[layout](host(dtype)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_torch_to_cupy(cupy: Any, torch: Any, dtype: str, layout: str) -> None:
    """A tensor and the CuPy array made from it are the same memory, in the same layout."""
    tensor = LAYOUTS[layout](interop.convert(on_device(cupy, dtype), to="torch"))
    array = interop.convert(tensor, to="cupy")
    assert type(array) is cupy.ndarray
    assert (array.dtype.name, array.shape) == (dtype, tuple(tensor.shape))
    assert array.device.id == tensor.device.index
    if array.size:
        assert array.data.ptr == tensor.data_ptr()
    assert equal(array.get(), LAYOUTS[layout](host(dtype)))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("source", ["cupy", "torch"])
@pytest.mark.parametrize("target", ["cupy", "torch", "numpy"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_results_lie_in_the_order_asked_for(
    cupy: Any, source: str, target: str, layout: str, order: Any
) -> None:
    """An array lies as asked, and a copy is made on the device only if it did not."""
    value = interop.convert(LAYOUTS[layout](on_device(cupy, "float32")), to=source)
    free = interop.convert(value, to="cupy")
    flags = free.flags
    lies = flags.c_contiguous if order == "C" else flags.f_contiguous
    result = interop.convert(value, to=target, order=order)
    array = result if target == "numpy" else interop.convert(result, to="cupy")
    assert array.flags.c_contiguous if order == "C" else array.flags.f_contiguous
    if target != "numpy" and array.size:
        assert (array.data.ptr == free.data.ptr) == lies
        assert array.device == free.device
    assert equal(array if target == "numpy" else array.get(), LAYOUTS[layout](host("float32")))


def test_writes_are_seen_on_both_sides(cupy: Any, torch: Any) -> None:
    """What one side writes the other reads."""
    array = cupy.zeros((4, 4), "float32")
    tensor = interop.convert(array, to="torch")
    tensor += 3
    torch.cuda.synchronize()
    assert (array.get() == 3).all()


def test_broadcast(cupy: Any, torch: Any) -> None:
    """Memory that repeats along an axis is shared, not spelt out."""
    tensor = torch.arange(5.0, device="cuda").expand(1000, 5)
    array = interop.convert(tensor, to="cupy")
    assert array.data.ptr == tensor.data_ptr()
    assert array.strides == (0, 4)


def test_negative_strides(cupy: Any, torch: Any) -> None:
    """An array walked backwards is copied for torch, which cannot be given one."""
    array = on_device(cupy, "float32")[::-1]
    tensor = interop.convert(array, to="torch")
    assert tensor.is_cuda
    assert equal(interop.convert(tensor, to="numpy"), host("float32")[::-1])


def test_subclass(cupy: Any, torch: Any) -> None:
    """An array of a subclass is shared as a plain one."""

    class Mine(cupy.ndarray):  # type: ignore[misc]
        pass

    array = on_device(cupy, "float32").view(Mine)
    assert interop.convert(array, to="torch").data_ptr() == array.data.ptr


def test_gradients(cupy: Any, torch: Any) -> None:
    """A tensor that records gradients is detached and shared, and goes on recording."""
    tensor = torch.ones(4, device="cuda", requires_grad=True)
    array = interop.convert(tensor, to="cupy")
    assert array.data.ptr == tensor.data_ptr()
    assert tensor.requires_grad


@pytest.mark.parametrize("lazy", ["conj", "neg"])
def test_lazy_bits(cupy: Any, torch: Any, lazy: str) -> None:
    """A lazy conjugate or negation leaves torch with the right sign."""
    z = torch.tensor([1 + 2j, 3 - 4j], device="cuda")
    value = z.conj() if lazy == "conj" else z.conj().imag
    array = interop.convert(value, to="cupy")
    assert (array.get() == value.resolve_conj().resolve_neg().cpu().numpy()).all()


def test_source_may_change_after_the_transfer(cupy: Any, torch: Any) -> None:
    """Page-locked memory may be overwritten as soon as convert has returned."""
    pinned = torch.ones(1 << 24).pin_memory().numpy()
    array = interop.convert(pinned, to="cupy")
    pinned[:] = 7
    assert float(array.min()) == float(array.max()) == 1


def test_casts_to_bfloat16_as_numpy_does(cupy: Any) -> None:
    """A float64 is rounded to bfloat16 by way of float32, on the device as on the host."""
    value = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8 - 2.0**-40, 1 + 2.0**-8 + 2.0**-20])
    array = interop.convert(interop.convert(value, to="cupy"), to="cupy", dtype="bfloat16")
    assert equal(array.get(), value.astype(ml_dtypes.bfloat16))
    assert array.get().astype("float64").tolist() == [1.0, 1.0, 1 + 2.0**-7]


def test_out(cupy: Any, torch: Any) -> None:
    """out= writes into a CuPy array that is there already, casting on the way."""
    out = cupy.zeros((5, 7), "float64")
    tensor = interop.convert(on_device(cupy, "float32"), to="torch")
    assert interop.convert(tensor, out=out) is out
    assert equal(out.get(), host("float64"))


def test_fresh_memory(cupy: Any, torch: Any) -> None:
    """copy=True gives memory of its own on the device."""
    tensor = torch.ones(16, device="cuda")
    array = interop.convert(tensor, to="cupy", copy=True)
    assert array.data.ptr != tensor.data_ptr()
    assert (array.get() == 1).all()


def test_copy_false(torch: Any) -> None:
    """copy=False refuses to leave the device."""
    with pytest.raises(interop.errors.RefusedError):
        interop.convert(torch.ones(4, device="cuda"), to="numpy", copy=False)


def test_large(cupy: Any, torch: Any) -> None:
    """Two gibibytes and more are shared, and cross to the host and back, byte for byte."""
    needed = 3 * 2**30
    if cupy.cuda.runtime.memGetInfo()[0] < 3 * needed:
        pytest.skip("the device has less than 9 GiB free")
    array = cupy.arange(needed // 4, dtype="uint32").reshape(3, -1)
    tensor = interop.convert(array, to="torch")
    assert tensor.data_ptr() == array.data.ptr
    value = interop.convert(array, to="numpy")
    assert (value[2, -1], value[1, 0]) == (needed // 4 - 1, needed // 12)
    back = interop.convert(value, to="cupy")
    assert bool((back == array).all())


def test_bfloat16_through_everything(cupy: Any, torch: Any) -> None:
    """bfloat16 keeps its bits from NumPy by CuPy and torch to NumPy."""
    value = np.arange(65536, dtype="uint16").view(ml_dtypes.bfloat16)
    array = interop.convert(value, to="cupy")
    tensor = interop.convert(array, to="torch")
    assert tensor.dtype == torch.bfloat16
    assert (interop.convert(tensor, to="numpy").view("uint16") == value.view("uint16")).all()


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2"])
def test_float8(cupy: Any, torch: Any, kind: str) -> None:
    """CuPy has no float8, so it gets the next wider float, which holds every value of it."""
    tensor = torch.tensor([0.5, -2.0, 448.0], device="cuda").to(getattr(torch, kind))
    array = interop.convert(tensor, to="cupy")
    assert array.dtype.name in {"float16", "bfloat16"}
    assert (array.get().astype("float32") == tensor.float().cpu().numpy()).all()


class Foreign:
    """A value that shows CuPy memory by ``__cuda_array_interface__``, and in no other way."""

    def __init__(self, array: Any, **entries: Any) -> None:
        self.array = array
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, **entries}


@pytest.mark.parametrize("target", ["cupy", "torch"])
def test_cuda_array_interface(cupy: Any, torch: Any, target: str) -> None:
    """A foreign value that has only __cuda_array_interface__ is shared, and kept alive."""
    value = Foreign(cupy.arange(6.0).reshape(2, 3))
    address = value.array.data.ptr
    result = interop.convert(value, to=target)
    assert (result.data.ptr if target == "cupy" else result.data_ptr()) == address
    del value
    cupy.full(6, 9.0)  # would take the freed memory
    assert equal(interop.convert(result, to="numpy"), np.arange(6.0).reshape(2, 3))


@pytest.mark.parametrize("stream", [None, 1, 2])
@pytest.mark.parametrize("target", ["cupy", "torch", "numpy"])
def test_cuda_array_interface_names_its_stream(
    cupy: Any, torch: Any, target: str, stream: int | None
) -> None:
    """Every stream that the interface can name without an address is taken, on the way to all."""
    value = Foreign(cupy.arange(6.0), stream=stream)
    result = interop.convert(value, to=target)
    assert equal(interop.convert(result, to="numpy"), np.arange(6.0))


def test_cuda_array_interface_without_elements(cupy: Any, torch: Any) -> None:
    """No elements have no address, and lie on the current device."""
    value = Foreign(cupy.empty((0, 3)), data=(0, False))
    assert interop.convert(value, to="cupy").shape == (0, 3)
    tensor = interop.convert(value, to="torch")
    assert (tuple(tensor.shape), tensor.is_cuda) == ((0, 3), True)


def test_cuda_array_interface_of_the_host(cupy: Any, torch: Any) -> None:
    """Memory of the host that is shown as a device's is refused, and not read."""
    host_memory = np.arange(6.0)
    entries = {"data": (host_memory.ctypes.data, False)}
    with pytest.raises(interop.errors.HandOffError, match="on no CUDA device"):
        interop.convert(Foreign(cupy.arange(6.0), **entries), to="torch")


def test_cuda_array_interface_on_the_second_device(
    cupy: Any, torch: Any, second_device: str
) -> None:
    """The device is that of the memory, whichever is current, and nothing is copied."""
    with cupy.cuda.Device(1):
        value = Foreign(cupy.arange(6.0))
    for current in (0, 1):
        with torch.cuda.device(current):
            tensor = interop.convert(value, to="torch")
            array = interop.convert(value, to="cupy")
        assert (str(tensor.device), tensor.data_ptr()) == (second_device, value.array.data.ptr)
        assert (array.device.id, array.data.ptr) == (1, value.array.data.ptr)
        assert tensor.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("framework", ["torch", "cupy"])
def test_out_of_memory_is_a_memory_error(cupy: Any, torch: Any, framework: str) -> None:
    """What a framework's allocator refuses is a MemoryError, and the next conversion works."""
    value, pool = np.ones(1 << 24, "float32"), cupy.get_default_memory_pool()
    torch.cuda.empty_cache()
    pool.free_all_blocks()
    try:
        torch.cuda.set_per_process_memory_fraction(1e-6)
        pool.set_limit(size=1 << 20)
        with pytest.raises(MemoryError):
            interop.convert(value, to=framework, device="cuda")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        pool.set_limit(size=0)
    assert interop.convert(value, to=framework, device="cuda").shape == value.shape


JAX_PROGRAM = """
import interop, jax, numpy as np
if jax.default_backend() != "gpu":
    print("no device")
    raise SystemExit
value = jax.numpy.arange(12.0).reshape(3, 4)
array = interop.convert(value, to="cupy")
assert array.data.ptr == value.unsafe_buffer_pointer()
assert (array.get() == np.arange(12.0).reshape(3, 4)).all()
fresh = interop.convert(value, to="cupy", copy=True)
assert fresh.data.ptr != array.data.ptr
assert (fresh.get() == array.get()).all()
import cupy
with cupy.cuda.using_allocator(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc):
    managed = cupy.arange(12.0, dtype="float32")
assert managed.__dlpack_device__()[0] == 13
# JAX takes no such memory by DLPack; torch shares it by the other protocol.
value = interop.convert(managed, to="jax")
assert value.unsafe_buffer_pointer() == managed.data.ptr
assert (np.asarray(value) == np.arange(12.0)).all()
print("shared")
"""


def test_jax(in_process: Callable[..., str]) -> None:
    """A JAX array on the device is shared with CuPy, in a process of its own: it is C++ that waits."""
    pytest.importorskip("jax", reason="JAX is not installed here")
    assert in_process(JAX_PROGRAM) == "shared"


def test_second_device(cupy: Any, torch: Any, second_device: str) -> None:
    """Data on a device that is not current is shared, cast, moved and fetched where it lies."""
    current = cupy.cuda.runtime.getDevice()
    tensor = torch.arange(12.0, device=second_device).reshape(3, 4)
    array = interop.convert(tensor, to="cupy")
    assert (array.device.id, array.data.ptr) == (1, tensor.data_ptr())
    assert interop.convert(array, to="torch").data_ptr() == tensor.data_ptr()
    assert interop.convert(array, to="cupy", dtype="int32").device.id == 1
    moved = interop.convert(array.T, to="cupy", device="cuda:0")
    assert moved.device.id == 0
    expected = np.arange(12.0, dtype="float32").reshape(3, 4)
    assert (moved.get() == expected.T).all()
    assert (interop.convert(array, to="numpy") == expected).all()
    sent = interop.convert(expected, to="cupy", device=second_device)
    assert sent.device.id == 1
    assert cupy.cuda.runtime.getDevice() == current


@pytest.mark.parametrize("kind", ["quint8", "qint8"])
def test_quantized(cupy: Any, torch: Any, kind: str) -> None:
    """A quantized tensor shares its codes with CuPy, and both sides stand for the same numbers."""
    real = torch.linspace(-1, 1, 35, device="cuda").reshape(5, 7)
    tensor = torch.quantize_per_tensor(real, 0.1, 3, getattr(torch, kind))
    quantized = interop.convert(tensor, to="quantized.cupy")
    assert type(quantized.codes) is cupy.ndarray
    assert quantized.codes.data.ptr == tensor.data_ptr()
    expected = tensor.dequantize().cpu().numpy()
    assert np.allclose(interop.convert(quantized, to="numpy"), expected)
    assert np.allclose(interop.convert(tensor, to="cupy").get(), expected)
    back = interop.convert(quantized, to="torch.quantized")
    assert back.is_cuda
    assert torch.equal(back.dequantize(), tensor.dequantize())


def test_quantized_by_channels(cupy: Any, torch: Any) -> None:
    """Scales of channels are on the device, whichever way the tensor has come there."""
    real = torch.linspace(-1, 1, 35).reshape(5, 7)
    scales, zeros = torch.linspace(0.1, 0.5, 5, dtype=torch.float64), torch.arange(5)
    tensor = torch.quantize_per_channel(real, scales, zeros, 0, torch.qint8)
    expected = tensor.dequantize().numpy()
    for there in (tensor.cuda(), interop.convert(tensor, to="torch.quantized", device="cuda")):
        quantized = interop.convert(there, to="quantized.cupy")
        assert quantized.codes.data.ptr == there.data_ptr()
        assert {type(quantized.scale), type(quantized.zero_point)} == {cupy.ndarray}
        assert np.allclose(interop.convert(quantized, to="cupy").get(), expected)


def test_quantized_with_a_scale_on_the_host(cupy: Any, torch: Any) -> None:
    """The scale comes to the codes, which are shared."""
    codes = torch.arange(12, dtype=torch.int8, device="cuda").reshape(3, 4)
    value = interop.QuantizedArray(codes, torch.tensor(0.5), torch.tensor(3))
    quantized = interop.convert(value, to="quantized.cupy")
    assert quantized.codes.data.ptr == codes.data_ptr()
    expected = (np.arange(12).reshape(3, 4) - 3) * 0.5
    assert np.allclose(interop.convert(value, to="cupy").get(), expected)
    assert np.allclose(interop.convert(value, to="numpy"), expected)


INTEGERS_PROGRAM = """
import cupy, interop, jax, numpy as np, torch
if jax.default_backend() != "gpu":
    print("no device")
    raise SystemExit
for sign in ("int", "uint"):
    fitting = np.array([[0, 1], [2, 2**31 - 1]], f"{sign}64")
    wide = fitting + fitting.dtype.type(2**32)
    for make in (lambda a: torch.from_numpy(a).cuda(), cupy.asarray):
        value = make(fitting)
        result = interop.convert(value, "jax")
        assert (result.dtype, result.devices()) == (f"{sign}32", {jax.devices("gpu")[0]})
        assert (np.asarray(result) == fitting).all()
        tree = interop.convert({"step": value, "weights": [value[:0]]}, "jax")
        assert tree["step"].dtype == tree["weights"][0].dtype == f"{sign}32"
        try:
            interop.convert(make(wide), "jax")
            raise AssertionError("it does not fit")
        except interop.errors.RefusedError as error:
            assert "4294967296 does not fit" in str(error), error
print("halved")
"""


def test_integers_of_64_bits_reach_jax_on_the_device_if_they_fit(
    in_process: Callable[..., str],
) -> None:
    """Counters of torch and CuPy become JAX's, alone and in trees; numbers too large are named."""
    pytest.importorskip("jax")
    assert in_process(INTEGERS_PROGRAM, JAX_ENABLE_X64="0") == "halved"


@pytest.mark.parametrize("source", ["numpy", "cupy"])
def test_no_device_type_stands_for_another(cupy: Any, source: str) -> None:
    """CuPy for CUDA puts nothing on a ROCm device, and says so."""
    value = np.ones(3, "float32") if source == "numpy" else cupy.ones(3, "float32")
    other = "cuda" if cupy.cuda.runtime.is_hip else "rocm"
    with pytest.raises(DeviceError, match="CuPy is installed for"):
        interop.convert(value, to="cupy", device=other)


def test_no_float8_in_cupy(cupy: Any, torch: Any) -> None:
    """Without a copy it is refused, and carrying the bits shares the memory."""
    tensor = torch.arange(4.0, device="cuda").to(torch.float8_e5m2)
    with pytest.raises(RefusedError):
        interop.convert(tensor, to="cupy", copy=False)
    bits = interop.convert(tensor.view(torch.uint8), to="cupy", copy=False)
    assert bits.data.ptr == tensor.data_ptr()
    assert interop.convert(tensor, to="cupy").get().tolist() == [0, 1, 2, 3]
