"""ONNX Runtime: tensors in and out, who keeps their memory, and what is not a tensor."""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace

import numpy as np
import onnxruntime as ort
import pytest
import torch

import interop
from interop.errors import HandOffError, RefusedError
from interop_plugins.onnxruntime import describe as plugin
from tests.cases import together
from tests.plugins.values import numpy_dtype, same, start

PLAIN, NARROW, PACKED = sorted(plugin.PLAIN), sorted(plugin.NARROW), sorted(plugin.PACKED)
SHARED = sorted(plugin.PLAIN | plugin.NARROW)


def numbers(name, shape=(3, 4)):
    """Return small numbers that the dtype can hold."""
    size = int(np.prod(shape))
    dtype = numpy_dtype(name)
    if name in PACKED:
        return (np.arange(size) % 2).astype(np.int8).astype(dtype).reshape(shape)
    return (2 ** (np.arange(size) % 2)).reshape(shape).astype(dtype)


def memory(value):
    """Return a tensor's bytes."""
    from ctypes import c_uint8

    count = value.tensor_size_in_bytes()
    return np.ctypeslib.as_array((c_uint8 * count).from_address(value.data_ptr()))


# ------------------------------------------------------------------ describing


def test_named_targets():
    """The class names the format, and a value stays itself."""
    value = interop.convert(np.ones(2), to=ort.OrtValue)
    assert isinstance(value, ort.OrtValue)
    assert interop.convert(value, to="onnxruntime") is value
    assert interop.convert(value, to=ort.OrtValue) is value
    assert isinstance(interop.convert([1.0], like=value), ort.OrtValue)
    with interop.policy():
        assert interop.convert(value, to="onnxruntime") is value


# ------------------------------------------------------------------ out


def test_writes_to_shared_memory_are_seen_on_both_sides():
    """What is written to shared memory is seen on both sides."""
    array = np.zeros(3, "f4")
    value = interop.convert(array, to="onnxruntime")
    interop.convert(value, to="torch")[1] = 5
    assert array.tolist() == value.numpy().tolist() == [0, 5, 0]
    value.update_inplace(np.ones(3, "f4"))
    assert array.tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", PACKED)
@together("count", [1, 2, 3, 4, 5, 1000])
def test_packed_elements(name, count):
    """Every code of the packed dtypes survives a round trip, the first in the lowest bits."""
    width = plugin.PACKED_BITS[name]
    codes = (np.arange(count) * 7 % 2**width).astype(np.uint8)
    if name.startswith("int"):
        half = 2 ** (width - 1)
        codes = ((codes ^ half).astype(np.int8) - half).view(np.uint8)
    source = codes.view(numpy_dtype(name))
    value = interop.convert(source, to="onnxruntime")
    spec = interop.spec(value)
    assert (spec.dtype, spec.nbytes) == (name, value.tensor_size_in_bytes())
    expected = sum(
        (int(code) & (2**width - 1)) << (width * place) for place, code in enumerate(codes)
    )
    assert int.from_bytes(memory(value).tobytes(), "little") == expected
    assert same(interop.convert(value, to="numpy"), source)
    assert same(interop.convert(value, to="numpy", dtype="float32"), source.astype("f4"))


# ------------------------------------------------------------------ in


ODD = {
    "transposed": lambda a: a.T,
    "reversed": lambda a: a[::-1, ::-2],
    "repeated": lambda a: np.broadcast_to(a[0], a.shape),
    "swapped": lambda a: a.astype(a.dtype.newbyteorder(">")),
    "readonly": lambda a: np.frombuffer(a.tobytes(), a.dtype),
    "unaligned": lambda a: np.frombuffer(bytearray(b"x" + a.tobytes()), a.dtype, offset=1),
    "scalar": lambda a: a[0, 0],
}


@pytest.mark.parametrize("name", ["float32", "int64", "bool"])
@pytest.mark.parametrize("odd", ODD)
def test_memory_of_every_kind(odd, name):
    """Memory that ONNX Runtime would misread, or must not write to, is copied."""
    value = ODD[odd](np.arange(36).reshape(6, 6).astype(name))
    result = interop.convert(value, to="onnxruntime")
    expected = np.ascontiguousarray(value, name).reshape(value.shape)
    assert same(result.numpy(), expected)
    harmless = name == "bool" and odd in ("swapped", "unaligned")  # one byte has no order
    shares = np.shares_memory(interop.convert(result, to="numpy"), value)
    assert shares is harmless
    if not harmless:
        with pytest.raises(RefusedError):
            interop.convert(value, to="onnxruntime", copy=False)


def test_memory_that_is_flagged():
    """Read-only memory is shared if permitted, and that of an immutable array by default."""
    array = np.arange(3.0)
    array.flags.writeable = False
    value = interop.convert(array, to="onnxruntime", allow="share_readonly", copy=False)
    assert value.data_ptr() == start(array)
    narrow = numbers("bfloat16")
    narrow.flags.writeable = False
    value = interop.convert(narrow, to="onnxruntime", allow="share_readonly", copy=False)
    assert value.data_ptr() == start(narrow)
    never = interop.convert(array, to="jax", dtype="float32")
    assert interop.plan(never, to="onnxruntime").effects == {"alias_immutable"}
    assert interop.convert(never, to="onnxruntime").data_ptr() == never.unsafe_buffer_pointer()
    copied = interop.convert(never, to="onnxruntime", forbid="alias_immutable")
    assert copied.data_ptr() != never.unsafe_buffer_pointer()


def test_axes_of_one_element():
    """Strides along axes of one element mean nothing, and do not prevent sharing."""
    array = np.lib.stride_tricks.as_strided(np.arange(12.0).reshape(3, 4), (3, 1, 4), (32, 999, 8))
    value = interop.convert(array, to="onnxruntime", copy=False)
    assert (value.data_ptr(), value.shape()) == (start(array), [3, 1, 4])
    tensor = torch.arange(12.0).as_strided((3, 1, 4), (4, 7, 1))
    value = interop.convert(tensor, to="onnxruntime", copy=False)
    assert (value.data_ptr(), value.shape()) == (tensor.data_ptr(), [3, 1, 4])


def test_masks_graphs_and_lazy_tensors():
    """A mask is not lost silently; torch's lazy tensors arrive with their numbers."""
    with pytest.raises(RefusedError):
        interop.convert(np.ma.array([1.0, 2], mask=[0, 1]), to="onnxruntime")
    graph = torch.ones(3, requires_grad=True)
    assert interop.convert(graph, to="onnxruntime").data_ptr() == graph.data_ptr()
    negative = torch.tensor([1 + 2j, 3 - 1j]).conj().imag
    assert interop.convert(negative, to="onnxruntime").numpy().tolist() == [-2, 1]
    zeros = torch._efficientzerotensor((3,))
    assert interop.convert(zeros, to="onnxruntime").numpy().tolist() == [0, 0, 0]


# ------------------------------------------------------------------ lifetime


def references(array):
    """Return how many references there are to an array, without those of this call."""
    return sys.getrefcount(array) - 2


@pytest.mark.parametrize("name", ["float32", "bool", "bfloat16", "float8_e5m2"])
def test_the_source_is_kept_and_released(name):
    """The source of a tensor lives as long as the tensor or whatever shares its memory."""
    source = numbers(name)
    expected, before = source.copy(), references(source)
    value = interop.convert(source, to="onnxruntime")
    shared = interop.convert(value, to="numpy")
    tensor = interop.convert(value, to="torch")
    for owner in ("value", "shared", "tensor"):
        assert references(source) > before, owner
        if owner == "value":
            del value
        elif owner == "shared":
            del shared
        gc.collect()
    assert same(interop.convert(tensor, to="numpy"), expected)
    del tensor
    gc.collect()
    assert references(source) == before


@pytest.mark.parametrize("name", PLAIN)
def test_onnxruntime_itself_keeps_the_source(name):
    """What ONNX Runtime's own methods share keeps the source alive after the value is gone."""
    source = numbers(name, (50_000,))
    before = references(source)
    value = interop.convert(source, to="onnxruntime")
    result = value.numpy()
    native = value._get_c_value()
    del value
    gc.collect()
    assert references(source) > before
    assert same(result, source)
    del result, native
    gc.collect()
    assert references(source) == before


def test_values_that_keep_less_are_safe(in_fork):
    """The results of `ortvalue_from_numpy`, whose own views dangle, keep their source alive."""
    in_fork("""
        import gc, numpy as np, onnxruntime as ort, interop
        for target in ("numpy", "torch", "jax", "mlx"):
            value = ort.OrtValue.ortvalue_from_numpy(np.full(5_000_000, 3.0, "f4"))
            result = interop.convert(value, to=target)
            del value
            gc.collect()
            others = [np.full(5_000_000, 9.0, "f4") for _ in range(3)]
            assert float(result.min()) == float(result.max()) == 3
        value = ort.OrtValue.ortvalue_from_numpy(np.full(5_000_000, 3.0, "f4"))
        other = interop.convert(interop.convert(value, to="torch"), to="onnxruntime")
        del value
        gc.collect()
        assert other.numpy().min() == 3
    """)


def test_readonly_arrays_that_it_was_made_of():
    """A tensor over a read-only array, a flag that ONNX Runtime ignores, is shared read-only."""
    array = np.arange(3.0)
    array.flags.writeable = False
    value = ort.OrtValue.ortvalue_from_numpy(array)
    assert interop.spec(value).traits == {"locked"}
    shared = interop.convert(value, to="numpy")
    assert start(shared) == start(array)
    assert not shared.flags.writeable
    tensor = interop.convert(value, to="torch")
    tensor[0] = 7
    assert array.tolist() == [0, 1, 2]
    assert interop.convert(value, to="onnxruntime") is value
    with interop.policy():
        assert interop.convert(value, to="onnxruntime") is value
    copied = interop.convert(value, to="onnxruntime", copy=True)
    assert interop.spec(copied).traits == set()
    assert copied.numpy().tolist() == [0, 1, 2]


def test_values_of_the_c_layer():
    """A value without an object of Python's class is converted all the same, also of bool."""
    array = np.array([True, False])
    outer = ort.OrtValue.ortvalue_from_numpy(array)
    value = outer._get_c_value()
    assert interop.spec(value).traits == {"bare"}
    assert interop.convert(value, to="torch").tolist() == [True, False]
    wrapped = interop.convert(value, to="onnxruntime")
    assert isinstance(wrapped, ort.OrtValue)
    assert wrapped.data_ptr() == start(array)


# ------------------------------------------------------------------ sessions, and what is not a tensor


def field(number, content):
    """Return a field of a message in the format of protocol buffers."""
    if isinstance(content, int):
        return bytes([number << 3, content])
    content = content.encode() if isinstance(content, str) else content
    assert len(content) < 128
    return bytes([number << 3 | 2, len(content)]) + content


def tensor_type(element, *shape):
    axes = b"".join(field(1, field(1, length)) for length in shape)
    return field(1, field(1, element) + field(2, axes))


def session(kind, input_, output, *attributes):
    """Return a session of a model of one node, from `x` to `y`."""
    node = field(1, "x") + field(2, "y") + field(4, kind)
    node += b"".join(field(5, attribute) for attribute in attributes)
    graph = field(1, node) + field(2, "g")
    graph += field(11, field(1, "x") + field(2, input_))
    graph += field(12, field(1, "y") + field(2, output))
    options = ort.SessionOptions()
    model = field(1, 8)
    length = len(graph)
    model += bytes([7 << 3 | 2, length & 127 | 128, length >> 7]) + graph
    model += field(8, field(2, 17))
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def outputs(run_session, feed):
    """Return the outputs of a session as OrtValues."""
    binding = run_session.io_binding()
    binding.bind_cpu_input("x", feed)
    binding.bind_output("y")
    run_session.run_with_iobinding(binding)
    return binding.get_outputs()


def test_in_and_out_of_a_session():
    """A session takes converted values, and its outputs are shared and outlive it."""
    negate = session("Neg", tensor_type(1, 3, 4), tensor_type(1, 3, 4))
    source = torch.arange(12.0).reshape(3, 4)
    (value,) = negate.run_with_ort_values(["y"], {"x": interop.convert(source, to="onnxruntime")})
    address = value.data_ptr()
    result = interop.convert(value, to="torch")
    assert result.data_ptr() == address
    del value, negate
    gc.collect()
    assert torch.equal(result, -source)


def test_bound_inputs_outlive_their_value():
    """A binding keeps the memory alive after value and array are gone."""
    negate = session("Neg", tensor_type(1, 3, 4), tensor_type(1, 3, 4))
    binding = negate.io_binding()
    value = interop.convert(np.full((3, 4), 3.0, "f4"), to="onnxruntime")
    binding.bind_ortvalue_input("x", value)
    binding.bind_output("y")
    del value
    gc.collect()
    others = [np.full((3, 4), 9.0, "f4") for _ in range(9)]
    negate.run_with_iobinding(binding)
    assert interop.convert(binding.get_outputs()[0], to="numpy").tolist() == [[-3.0] * 4] * 3
    assert len(others) == 9


def refused(value, trait, match):
    assert interop.spec(value).traits == trait
    for target in ("numpy", "torch", "onnxruntime", "python"):
        with pytest.raises(RefusedError, match=match):
            interop.convert(value, to=target)


def test_strings():
    """A tensor of strings is refused as one."""
    to_string = field(1, "to") + field(3, 8) + bytes([20 << 3 & 127 | 128, 1, 2])
    cast = session("Cast", tensor_type(1, 2), tensor_type(8, 2), to_string)
    (value,) = outputs(cast, np.ones(2, "f4"))
    assert interop.spec(value).dtype == "tensor(string)"
    for target in ("numpy", "torch", "python"):
        with pytest.raises(RefusedError):
            interop.convert(value, to=target)
    with pytest.raises(RefusedError):
        interop.convert(np.array(["a", "bc"], object), to="onnxruntime")


def test_sequences():
    """A sequence of tensors is refused as one."""
    sequence = field(4, field(1, tensor_type(1, 2)))
    construct = session("SequenceConstruct", tensor_type(1, 2), sequence)
    (value,) = outputs(construct, np.ones(2, "f4"))
    refused(value, {"sequence"}, r"sequence of tensors; convert its elements")


def test_optionals():
    """An optional without a value is refused; one with a value is a tensor."""
    kind = tensor_type(1, 2)
    optional = session("Optional", kind, field(9, field(1, kind)))
    (value,) = outputs(optional, np.ones(2, "f4"))
    assert interop.convert(value, to="numpy").tolist() == [1, 1]
    nothing = SimpleNamespace(
        is_tensor=lambda: True, has_value=lambda: False, data_type=lambda: "optional(tensor(float))"
    )
    assert plugin.describe(nothing).traits == {"no_value"}


def test_maps():
    """The type tells a map from a sequence."""
    value = SimpleNamespace(
        is_tensor=lambda: False,
        has_value=lambda: True,
        data_type=lambda: "map(int64,tensor(float))",
    )
    assert plugin.describe(value).traits == {"map"}


def test_sparse_tensors():
    """The refusal of a sparse tensor, in an OrtValue or not, says what to do."""
    host = ort.OrtDevice.make("cpu", 0)
    values, indices = np.array([1.0, 2.0], "f4"), np.array([0, 4])
    sparse = ort.SparseTensor.sparse_coo_from_numpy(np.array([3, 3]), values, indices, host)
    refused(sparse, {"sparse"}, "sparse tensor of ONNX Runtime's")
    refused(ort.OrtValue.ort_value_from_sparse_tensor(sparse), {"sparse"}, "ask the model")


def test_values_of_no_memory():
    """A tensor that has elements and no address is refused before anyone reads it."""
    broken = SimpleNamespace(data_ptr=lambda: 0)
    with pytest.raises(HandOffError, match="no address"):
        plugin.array_interface(broken, (3,), "<f4")


# ------------------------------------------------------------------ devices


class Device:
    """A value on a device, as far as DLPack asks for it."""

    def __init__(self, name, *place):
        self._name, self._place = name, place

    def __dlpack_device__(self):
        if not self._place:
            raise RuntimeError("WebGPU OrtValues do not expose a DLPack device")
        return self._place


def test_names_of_devices():
    """DLPack's number names a device if it has one; if not, ONNX Runtime's name does."""
    assert plugin.device_name(Device("cuda", 2, 1), "cuda") == "cuda:1"
    assert plugin.device_name(Device("dml", 99, 0), "dml") == "dml:0"
    assert plugin.device_name(Device("webgpu"), "webgpu") == "webgpu:0"
