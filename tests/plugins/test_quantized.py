"""Quantized values: codes are shared, never copied; numbers are torch's own, to the last bit."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import interop
from interop import QuantizedArray
from interop.errors import InteropError, RefusedError, UnknownValueError
from interop_plugins.quantized.describe import memory
from tests.cases import together
from tests.plugins.values import address, numpy_dtype

SCHEMES = {
    "quint8": (torch.quint8, "uint8", 0, 256),
    "qint8": (torch.qint8, "int8", -128, 128),
    "qint32": (torch.qint32, "int32", -(2**31), 2**31),
}
#: Shape and axis; the large ones are dequantized in several pieces.
FORMS: list[tuple[tuple[int, ...], int | None]] = [
    ((5, 7), None),
    ((), None),
    ((0,), None),
    ((3, 0), None),
    ((600, 1000), None),
    ((5, 7), 0),
    ((5, 7), 1),
    ((9,), 0),
    ((3, 4, 5), 1),
    ((3, 4, 5), 2),
    ((700, 600), 0),
    ((700, 600), 1),
    ((3, 2, 150000), 1),
]


@pytest.fixture(autouse=True)
def no_warning() -> Iterator[None]:
    """No conversion warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def components(scheme: str, shape: tuple[int, ...], axis: int | None) -> dict[str, Any]:
    _, code, low, high = SCHEMES[scheme]
    rng = np.random.default_rng(7)
    count = () if axis is None else (shape[axis],)
    return {
        "codes": rng.integers(low, high, shape).astype(code),
        "scale": np.asarray(rng.uniform(1e-3, 1, count)),
        "zero_point": np.asarray(rng.integers(max(low, -100), 100, count)),
    }


def neutral(scheme: str, shape: tuple[int, ...], axis: int | None) -> QuantizedArray:
    return QuantizedArray(**components(scheme, shape, axis), axis=axis)


def quantized(scheme: str, shape: tuple[int, ...], axis: int | None) -> torch.Tensor:
    """Return a torch tensor made by torch alone."""
    parts = {k: torch.from_numpy(v) for k, v in components(scheme, shape, axis).items()}
    codes, scale, zero_point = parts["codes"], parts["scale"], parts["zero_point"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if axis is None:
            return torch._make_per_tensor_quantized_tensor(codes, float(scale), int(zero_point))
        return torch._make_per_channel_quantized_tensor(codes, scale, zero_point, axis)


@together("shape, axis", FORMS)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("target", ["numpy", "torch"])
def test_torch_and_interop_agree_to_the_last_bit(
    scheme: str, shape: tuple[int, ...], axis: int | None, target: str
) -> None:
    """Dequantizing gives what torch's own `dequantize` gives, from torch and from the neutral form."""
    tensor = quantized(scheme, shape, axis)
    expected = tensor.dequantize().numpy()
    array = neutral(scheme, shape, axis)
    inside_torch = interop.convert(tensor, to="quantized.torch")
    for value in (tensor, array, inside_torch):
        result = np.asarray(interop.convert(value, to=target))
        assert result.dtype == np.float32
        np.testing.assert_array_equal(result, expected)
        assert interop.plan(value, to=target).effects == {"dequantize"}


@pytest.mark.parametrize("axis", [None, 0])
def test_tensors_with_one_key_are_dequantized_without_a_look_at_each(
    axis: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second tensor of a dtype and size needs no spec; what is short of memory is refused."""
    instance, value = interop.Interop(), quantized("qint8", (5, 7), axis)
    other, short = quantized("qint8", (7, 5), axis), quantized("qint8", (7, 5), axis)
    short.untyped_storage().resize_(10)
    instance.convert(value, to="numpy")
    with pytest.raises(RefusedError):
        instance.convert(short, to="numpy")
    instance.convert(value, to="numpy")  # a refusal may have loaded plugins, and all is learnt anew
    monkeypatch.setattr(instance._registry.recognition, "describe", None)
    result = instance.convert(other, to="numpy")
    np.testing.assert_array_equal(result, other.dequantize().numpy())


def test_codes_in_one_memory_with_two_scales_are_two_leaves() -> None:
    """A tree gives each of them its own numbers, also when both have one address."""
    first = quantized("qint8", (5, 7), None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        second = torch._empty_affine_quantized([0], scale=8.0, zero_point=1, dtype=torch.qint8)
    second.set_(first.untyped_storage(), 0, first.size(), first.stride())
    for tree in ({"a": first, "b": second}, {"a": torch.ones(2), "b": first, "c": second}):
        for _ in range(3):
            result = interop.convert_tree(tree, to="numpy")
            for name, tensor in tree.items():
                numbers = tensor.dequantize() if tensor.is_quantized else tensor
                np.testing.assert_array_equal(result[name], numbers.numpy())


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_scale_and_zero_point_are_kept(axis: int | None) -> None:
    """Scale and zero point survive with all their digits."""
    array = neutral("quint8", (5, 7), axis)
    tensor = interop.convert(array, to="torch.quantized")
    back = interop.convert(tensor, to="quantized.numpy")
    np.testing.assert_array_equal(back.scale, array.scale)
    np.testing.assert_array_equal(back.zero_point, array.zero_point)
    assert back.scale.dtype == np.float64
    assert back.zero_point.dtype == np.int64


@pytest.mark.parametrize("copy", [None, True])
def test_zero_points_that_are_real_numbers(copy: bool | None) -> None:
    """The scheme `per_channel_affine_float_qparams` keeps its zero points as they are."""
    scale, zero_point = torch.tensor([0.25, 0.5]), torch.tensor([0.75, 2.5])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensor = torch.quantize_per_channel(torch.rand(2, 40), scale, zero_point, 0, torch.quint8)
    array = interop.convert(tensor, to="quantized.numpy", copy=copy)
    np.testing.assert_array_equal(array.zero_point, zero_point)
    assert (address(array.codes) == tensor.data_ptr()) is (copy is None)
    expected = tensor.dequantize().numpy()
    np.testing.assert_array_equal(interop.convert(array, to="numpy"), expected)
    np.testing.assert_array_equal(interop.convert(tensor, to="numpy"), expected)
    back = interop.convert(array, to="torch.quantized")
    assert back.qscheme() == torch.per_channel_affine_float_qparams
    assert torch.equal(back.dequantize(), tensor.dequantize())


def test_blocks_have_a_scale_each() -> None:
    """A scale per block applies along its axis; the last block may be shorter."""
    rng = np.random.default_rng(3)
    for shape, axis, block in (((6, 10), 1, 4), ((10, 6), 0, 3), ((500, 1030), 1, 32)):
        codes = rng.integers(-8, 8, shape).astype("int8")
        shrunk = list(shape)
        shrunk[axis] = -(-shape[axis] // block)
        scale = rng.uniform(0.1, 1, shrunk).astype("float32")
        zero = rng.integers(-3, 3, shrunk).astype("int8")

        def spread(part: Any, n: int = shape[axis], b: int = block, a: int = axis) -> Any:
            return np.repeat(part, b, a).take(np.arange(n), a)

        expected = (codes - spread(zero).astype("float32")) * spread(scale)
        for part in (np.asarray, torch.from_numpy):
            array = QuantizedArray(
                part(codes), part(scale), part(zero), axis=axis, block_size=block
            )
            for target in ("numpy", "torch"):
                result = np.asarray(interop.convert(array, to=target))
                np.testing.assert_array_equal(result, expected)
        with pytest.raises(RefusedError):
            interop.convert(array, to="torch.quantized")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@together("requested", [None, "float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("target", ["numpy", "torch"])
def test_the_dtype_of_the_numbers(dtype: str, requested: str | None, target: str) -> None:
    """The result has the array's dtype, or the requested one."""
    array = QuantizedArray(
        np.array([[0, 4], [8, 255]], "uint8"), np.array(0.5, "float32"), np.array(4), dtype=dtype
    )
    result = interop.convert(array, to=target, dtype=requested)
    assert str(result.dtype).removeprefix("torch.") == (requested or dtype)
    numbers = np.array([[-2, 0], [2, 125.5]])
    assert (
        np.abs(
            np.asarray(result.astype("f8") if target == "numpy" else result.double()) - numbers
        ).max()
        <= 0.5
    )


def test_without_a_zero_point() -> None:
    """No zero point stands for zeros."""
    array = QuantizedArray(np.array([1, 2, -3], "int8"), np.array(0.5))
    np.testing.assert_array_equal(interop.convert(array, to="numpy"), [0.5, 1, -1.5])
    tensor = interop.convert(array, to="torch.quantized")
    assert tensor.q_zero_point() == 0
    assert tensor.dequantize().tolist() == [0.5, 1, -1.5]


def test_narrow_codes_and_scales() -> None:
    """Codes of 4 bits and scales of 8 of ml_dtypes dequantize like any, but torch cannot hold them."""
    array = QuantizedArray(
        np.array([-8, 7, 3]).astype(ml_dtypes.int4),
        np.array([1, 2, 0.5]).astype(ml_dtypes.float8_e8m0fnu),
        axis=0,
    )
    np.testing.assert_array_equal(interop.convert(array, to="numpy"), [-8, 14, 1.5])
    with pytest.raises(InteropError):
        interop.convert(array, to="torch.quantized")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_strided_codes(scheme: str) -> None:
    """Transposed and sliced tensors share their codes too, and dequantize right."""
    tensor = quantized(scheme, (6, 8), None)
    for view in (tensor.t(), tensor[:, ::2], tensor[1:]):
        array = interop.convert(view, to="quantized.numpy")
        assert address(array.codes) == view.data_ptr()
        np.testing.assert_array_equal(interop.convert(view, to="numpy"), view.dequantize().numpy())
        back = interop.convert(array, to="torch.quantized")
        assert back.stride() == view.stride()
        assert torch.equal(back.dequantize(), view.dequantize())


def test_array_scalars_and_odd_memory() -> None:
    """Scalars for scale and zero point, reversed and read-only codes are all taken."""
    codes = np.arange(6, dtype="uint8")[::-1]
    array = QuantizedArray(codes, np.float32(0.5), np.int32(1))
    np.testing.assert_array_equal(interop.convert(array, to="numpy"), [2, 1.5, 1, 0.5, 0, -0.5])
    locked = np.arange(6, dtype="uint8")
    locked.flags.writeable = False
    array = QuantizedArray(locked, np.float32(0.5), np.int32(1))
    tensor = interop.convert(array, to="torch.quantized")
    assert tensor.data_ptr() != address(locked)
    assert tensor.dequantize().tolist() == [-0.5, 0, 0.5, 1, 1.5, 2]


def test_copies_are_fresh() -> None:
    """`copy=True` gives codes of its own."""
    tensor = quantized("quint8", (5, 7), 0)
    for target in ("quantized.numpy", "quantized.torch"):
        array = interop.convert(tensor, to=target, copy=True)
        assert address(array.codes) != tensor.data_ptr()
    again = interop.convert(array, to="quantized.torch")
    assert again is array
    assert interop.convert(array, to=QuantizedArray) is array


def test_dequantizing_needs_leave() -> None:
    """`forbid` and `copy=False` refuse it by name."""
    for value in (quantized("quint8", (5, 7), None), neutral("qint8", (5, 7), 1)):
        with pytest.raises(RefusedError):
            interop.convert(value, to="numpy", forbid="dequantize")
        with pytest.raises(RefusedError):
            interop.convert(value, to="torch", copy=False)


@pytest.mark.parametrize(
    "array",
    [
        QuantizedArray(np.zeros(3, "int16"), np.array(1.0)),
        QuantizedArray(np.zeros(3, "uint8"), np.array(1.0), np.array(-1)),
        QuantizedArray(np.zeros(3, "uint8"), np.array(1.0), np.array(0.5)),
        QuantizedArray(np.zeros(3, "int32"), np.ones(3, "f4"), np.ones(3, "f4"), axis=0),
    ],
)
def test_arrays_that_torch_cannot_quantize_are_refused(array: QuantizedArray) -> None:
    """What torch cannot hold, or what would make it end the process, is refused."""
    with pytest.raises(RefusedError):
        interop.convert(array, to="torch.quantized")
    assert interop.convert(array, to="numpy").shape == (3,)


def test_torch_does_not_get_to_end_the_process(in_fork: Callable[[str], str]) -> None:
    """32-bit codes with real zero points, which crash torch, are dequantized by interop."""
    program = """
        import warnings, torch, interop
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tensor = torch._empty_per_channel_affine_quantized(
                [2, 3], scales=torch.ones(2), zero_points=torch.ones(2) / 2, axis=0, dtype=torch.qint32
            )
        codes = torch.arange(6, dtype=torch.int32).reshape(2, 3)
        tensor.set_(codes.untyped_storage(), 0, codes.size(), codes.stride())
        print(interop.convert(tensor, to="numpy").tolist())
        print(interop.convert(tensor, to="torch").tolist())
    """
    expected = "[[-0.5, 0.5, 1.5], [2.5, 3.5, 4.5]]"
    assert in_fork(program).split("\n")[:2] == [expected, expected]


def test_the_deprecation_is_quiet_from_the_start(in_fork: Callable[[str], str]) -> None:
    """The warning that torch gives once per process does not reach the user."""
    program = """
        import warnings, numpy, interop
        before = list(warnings.filters)
        array = interop.QuantizedArray(numpy.arange(4, dtype="uint8"), numpy.array(0.5))
        print(interop.convert(array, to="torch.quantized").dequantize().tolist())
        print(interop.convert(array, to="torch").tolist())
        assert [f for f in warnings.filters if "quantize" in str(f)] == []
    """
    assert in_fork(program).split("\n")[:2] == ["[0.0, 0.5, 1.0, 1.5]"] * 2


def test_packed_codes_dequantize_only() -> None:
    """Codes that torch packs two to a byte dequantize, but do not become an array of codes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensor = torch.quantize_per_channel(
            torch.rand(4, 8), torch.ones(4), torch.zeros(4), 0, torch.quint4x2
        )
    expected = tensor.dequantize().numpy()
    np.testing.assert_array_equal(interop.convert(tensor, to="numpy"), expected)
    with pytest.raises(InteropError):
        interop.convert(tensor, to="quantized.numpy")


def test_components_of_one_framework() -> None:
    """Components of two frameworks, or of an unknown one, are refused."""
    mixed = QuantizedArray(torch.zeros(3, dtype=torch.uint8), np.array(0.5))
    with pytest.raises(RefusedError):
        interop.convert(mixed, to="numpy")

    class Codes:
        shape, dtype, nbytes = (3,), "uint8", 3

    with pytest.raises(UnknownValueError):
        interop.convert(QuantizedArray(Codes(), np.array(0.5)), to="numpy")


def test_scales_that_are_trained() -> None:
    """Components in a graph are detached on the way to numbers."""
    scale = torch.tensor([0.5, 0.25, 1.0], requires_grad=True)
    array = QuantizedArray(torch.arange(3, dtype=torch.uint8), scale, axis=0)
    assert interop.spec(array).traits == {"grad"}
    result = interop.convert(array, to="numpy")
    assert result.tolist() == [0, 0.25, 2]
    assert "detach" in interop.plan(array, to="numpy").effects
    assert interop.convert(array, to="quantized.torch") is array


# ---------------------------------------------------------------- as ONNX has it


@together("framework", [np.asarray, torch.from_numpy])
def test_the_memory_is_that_of_each_component(framework: Any) -> None:
    """It reaches from the first number to the last; what an array lacks has none."""
    codes, scale = framework(np.zeros((3, 4), "int8")), framework(np.ones(6, "float32"))[::2]
    array = QuantizedArray(codes, scale, axis=0)
    assert memory(array) == ((address(codes), 12), (address(scale), 20))


def test_specs() -> None:
    """The spec names the framework of the components, the dtype of the codes, and all bytes."""
    array = neutral("qint8", (5, 7), 1)
    spec = interop.spec(array)
    assert (spec.format, spec.dtype, spec.code_dtype) == ("quantized.numpy", "float32", "int8")
    assert (spec.shape, spec.device) == ((5, 7), "cpu")
    assert spec.nbytes == 35 + 7 * 8 * 2
    tensor = interop.spec(quantized("qint32", (5, 7), None))
    assert (tensor.format, tensor.dtype, tensor.code_dtype) == (
        "torch.quantized",
        "float32",
        "int32",
    )


ONNX_CODES = (
    "int8 uint8 int16 uint16 int32 int4 uint4 int2 uint2 float8_e4m3fn float8_e5m2 "
    "float8_e4m3fnuz float8_e5m2fnuz float4_e2m1fn"
).split()
#: Shape, axis, block size: the last block is short in most.
ONNX_FORMS: list[tuple[tuple[int, ...], int | None, int | None]] = [
    ((3, 5), None, None),
    ((3, 5), 0, None),
    ((3, 5), 1, None),
    ((3, 5, 7), 1, 2),
    ((3, 5, 7), 2, 3),
    ((5, 7), 1, 16),
    ((7,), 0, 3),
    ((0, 3), 1, None),
    ((300, 601), 1, 32),
]


def onnx_codes(rng: np.random.Generator, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return codes from all over the range of their dtype, except those that are not numbers."""
    dtype = numpy_dtype(kind)
    if kind.startswith("float"):
        bits = rng.integers(0, 16 if kind.startswith("float4") else 256, shape).astype("u1")
        codes = bits.view(dtype)
        return np.where(np.isfinite(codes.astype("f4")), codes, dtype.type(1)).astype(dtype)
    info = np.iinfo(kind) if dtype.isbuiltin == 1 else ml_dtypes.iinfo(dtype)
    return rng.integers(int(info.min), int(info.max) + 1, shape).astype(dtype)


def onnx_parts(
    kind: str, scale: str, form: tuple[tuple[int, ...], int | None, int | None]
) -> tuple[Any, Any, Any]:
    shape, axis, block = form
    rng = np.random.default_rng(11)
    reach: tuple[int, ...] = () if axis is None else (shape[axis],)
    if axis is not None and block is not None:
        reach = tuple(-(-n // block) if i == axis else n for i, n in enumerate(shape))
    codes = onnx_codes(rng, kind, shape)
    scales = np.asarray(rng.uniform(0.01, 0.5, reach)).astype(numpy_dtype(scale))
    plain = kind.startswith("float") or kind == "int32"  # ONNX gives these no zero points
    return codes, scales, None if plain else np.asarray(onnx_codes(rng, kind, reach))


def onnx_numbers(
    parts: tuple[Any, Any, Any], form: tuple[tuple[int, ...], int | None, int | None]
) -> np.ndarray:
    """Return what ONNX's `DequantizeLinear` gives: computed in float32, in the scale's dtype."""
    codes, scale, zero = parts
    shape, axis, block = form

    def spread(part: Any) -> Any:
        part = part.astype("f4")
        if axis is None:
            return part
        if block is None:
            return part.reshape([-1 if i == axis else 1 for i in range(len(shape))])
        return part.repeat(block, axis).take(np.arange(shape[axis]), axis)

    zero = np.float32(0) if zero is None else spread(zero)
    with np.errstate(all="ignore"):
        return ((codes.astype("f4") - zero) * spread(scale)).astype(scale.dtype)


def packed_bytes(codes: np.ndarray) -> np.ndarray:
    """Return codes as ONNX's initializers hold them: the first in the lowest bits."""
    bits = {"2": 2, "4": 4, "f": 4}[codes.dtype.name[-1] if codes.dtype.name[-1] in "24" else "f"]
    raw = codes.reshape(-1).view("u1") & (2**bits - 1)
    per_byte = 8 // bits
    raw = np.concatenate([raw, np.zeros(-len(raw) % per_byte, "u1")]).reshape(-1, per_byte)
    return (raw << (bits * np.arange(per_byte, dtype="u1"))).sum(1, dtype="u1")


@together("scale", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("kind", ONNX_CODES)
def test_numbers_are_those_of_onnx(kind: str, scale: str) -> None:
    """Codes of every dtype of ONNX dequantize as its `DequantizeLinear` does, to the last bit."""
    for form in ONNX_FORMS:
        parts = onnx_parts(kind, scale, form)
        array = QuantizedArray(*parts, axis=form[1], block_size=form[2], dtype=scale)
        expected = onnx_numbers(parts, form)
        for to in ("numpy", "torch"):
            numbers = interop.convert(interop.convert(array, to=to), to="numpy")
            assert numbers.dtype == expected.dtype
            assert numbers.tobytes() == expected.tobytes()


@pytest.mark.parametrize("kind", ["int4", "uint4", "int2", "uint2", "float4_e2m1fn"])
@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_packed_codes_have_the_same_numbers(kind: str, framework: str) -> None:
    """Codes and zero points that share bytes dequantize and unpack right, odd counts included."""
    for form in ONNX_FORMS:
        parts = codes, scale, zero = onnx_parts(kind, "float32", form)
        expected = onnx_numbers(parts, form)
        in_framework = torch.from_numpy if framework == "torch" else np.asarray
        array = QuantizedArray(
            in_framework(packed_bytes(codes)),
            in_framework(scale),
            None if zero is None else in_framework(packed_bytes(zero)),
            axis=form[1],
            block_size=form[2],
            packed=kind,
            shape=form[0],
        )
        spec = interop.spec(array)
        assert "packed" in spec.traits
        assert (spec.shape, spec.code_dtype) == (form[0], "uint8")
        for to in ("numpy", "torch"):
            numbers = interop.convert(interop.convert(array, to=to), to="numpy")
            assert numbers.tobytes() == expected.tobytes()
        for to in ("quantized.numpy", "quantized.torch"):
            unpacked = interop.convert(array, to=to)
            assert unpacked.packed is None
            assert str(unpacked.codes.dtype).removeprefix("torch.") == (
                "float32" if zero is None else "uint8" if kind.startswith("u") else "int8"
            )
            np.testing.assert_array_equal(np.asarray(unpacked.codes), codes.astype("f4"))
            if zero is not None:
                np.testing.assert_array_equal(np.asarray(unpacked.zero_point), zero.astype("f4"))


def test_packed_bytes_are_read_in_order() -> None:
    """The byte 0xe1 holds 1 and then -2, and the last byte may be half full."""
    raw = bytes.fromhex("e18307")
    codes = np.frombuffer(raw, "u1")  # read-only, as an initializer's are
    array = QuantizedArray(codes, np.array(1.0), packed="int4", shape=(5,))
    assert interop.convert(array, to="numpy").tolist() == [1, -2, 3, -8, 7]
    assert interop.convert(array, to="torch").tolist() == [1, -2, 3, -8, 7]
    array = QuantizedArray(codes, np.array(1.0), packed="uint2", shape=(3, 3))
    numbers = interop.convert(array, to="numpy")
    assert numbers.tolist() == [[1, 0, 2], [3, 3, 0], [0, 2, 3]]
    assert codes.tobytes() == raw


def test_unpacking_is_a_copy_of_the_scale_too() -> None:
    """`copy=False` refuses it, a plan says that nothing is shared, and torch gets plain codes."""
    scale = np.array([0.5, 2])
    array = QuantizedArray(
        np.array([0x21, 0x43], "u1"), scale, axis=0, packed="uint4", shape=(2, 2)
    )
    with pytest.raises(RefusedError):
        interop.convert(array, to="quantized.numpy", copy=False)
    for target in ("quantized.numpy", "quantized.torch", "torch.quantized"):
        with interop.trace() as receipts:
            result = interop.convert(array, to=target)
        assert interop.plan(array, to=target).aliases is receipts[0].aliased is False
        if target == "quantized.numpy":
            assert result.scale.tolist() == scale.tolist()
            assert address(result.scale) != address(scale)
    tensor = interop.convert(array, to="torch.quantized")
    assert tensor.dequantize().tolist() == [[0.5, 1], [6, 8]]
    trained = QuantizedArray(
        torch.from_numpy(array.codes), torch.ones(2, requires_grad=True), axis=0, packed="uint4",
        shape=(2, 2),
    )  # fmt: skip
    assert interop.convert(trained, to="numpy").tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("framework", ["numpy", "torch"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_a_bias_is_added(framework: str, dtype: str) -> None:
    """A bias gives the real number that a code of zero stands for."""
    rng = np.random.default_rng(2)
    codes = rng.integers(-8, 8, (6, 10)).astype("int8")
    scale, bias = (rng.uniform(0.1, 1, (6, 3)).astype("f4") for _ in range(2))
    in_framework = torch.from_numpy if framework == "torch" else np.asarray
    array = QuantizedArray(
        in_framework(codes),
        in_framework(scale),
        axis=1,
        block_size=4,
        bias=in_framework(bias),
        dtype=dtype,
    )
    wide, high = (part.repeat(4, 1)[:, :10] for part in (scale, bias))
    kind = "f8" if dtype == "float64" else "f4"
    expected = (codes.astype(kind) * wide + high.astype(kind)).astype(numpy_dtype(dtype))
    for to in ("numpy", "torch"):
        numbers = interop.convert(interop.convert(array, to=to), to="numpy")
        assert numbers.dtype == expected.dtype
        assert numbers.tobytes() == expected.tobytes()
    other = "numpy" if framework == "torch" else "torch"
    moved = interop.convert(array, to=f"quantized.{other}", copy=False)
    assert address(moved.bias) == address(array.bias)
    with pytest.raises(RefusedError):
        interop.convert(array, to="torch.quantized")
    per_tensor = QuantizedArray(
        in_framework(codes),
        in_framework(np.array(0.5)),
        in_framework(np.array(3)),
        bias=in_framework(np.array(2.0)),
    )
    np.testing.assert_array_equal(interop.convert(per_tensor, to="numpy"), (codes - 3) * 0.5 + 2)


def test_scales_that_one_framework_lacks_are_widened() -> None:
    """bfloat16 scales and 4-bit zero points are handed over in dtypes that both frameworks have."""
    codes = np.array([[1, 2], [3, 4]], "int8")
    array = QuantizedArray(
        codes, np.array([0.5, 2]).astype(ml_dtypes.bfloat16), np.array([1, -1]).astype(ml_dtypes.int4),
        axis=0,
    )  # fmt: skip
    moved = interop.convert(array, to="quantized.torch")
    assert (moved.scale.dtype, moved.zero_point.dtype) == (torch.float32, torch.int8)
    assert address(moved.codes) == address(codes)
    back = interop.convert(
        QuantizedArray(moved.codes, moved.scale.bfloat16(), moved.zero_point, axis=0),
        to="quantized.numpy",
    )
    assert back.scale.tolist() == [0.5, 2]
    for quantized in (array, moved, back):
        assert interop.convert(quantized, to="numpy").tolist() == [[0, 0.5], [8, 10]]


def test_zero_points_of_a_narrower_dtype_than_the_codes() -> None:
    """A limit of 255 is not compared in int8, where it is -1."""
    array = QuantizedArray(
        np.array([[1, 2]], "uint8"), np.array([0.5], "f4"), np.array([1], "int8"), axis=0
    )
    assert interop.convert(array, to="torch.quantized").dequantize().tolist() == [[0, 0.5]]


def test_another_dtype_is_a_cast_of_the_numbers() -> None:
    """The numbers are rounded to the array's dtype before any step casts them to another."""
    array = QuantizedArray(np.array([3], "int8"), np.array(0.1, "f4"), dtype="bfloat16")
    rounded = np.float32(0.1 * 3).astype(ml_dtypes.bfloat16)
    for to in ("numpy", "torch"):
        numbers = interop.convert(array, to=to, dtype="float32")
        assert np.asarray(numbers).tolist() == [np.float32(rounded)]


def test_no_detour_through_another_framework() -> None:
    """A format that a value cannot become is not reached through a third framework either."""
    array = QuantizedArray(np.zeros((4, 4), "int8"), np.ones((4, 2), "f4"), axis=1, block_size=2)
    with pytest.raises(RefusedError) as refused:
        interop.convert(array, to="torch.quantized")
    assert "torchao" not in str(refused.value)
