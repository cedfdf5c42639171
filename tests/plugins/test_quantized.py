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
    ((2, 3, 150000), 1),
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


def address(array: Any) -> int:
    return array.data_ptr() if isinstance(array, torch.Tensor) else array.ctypes.data


@pytest.mark.parametrize(("shape", "axis"), FORMS)
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


@pytest.mark.parametrize(("shape", "axis"), FORMS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_codes_are_shared_all_the_way_round(
    scheme: str, shape: tuple[int, ...], axis: int | None
) -> None:
    """From torch to the neutral form, with either framework inside, and back: one memory."""
    tensor = quantized(scheme, shape, axis)
    for name in ("numpy", "torch"):
        array = interop.convert(tensor, to=f"quantized.{name}", copy=False)
        assert isinstance(array, QuantizedArray)
        assert (array.shape, array.axis, array.block_size) == (shape, axis, None)
        assert type(array.codes).__module__ == name
        assert str(array.codes.dtype).removeprefix("torch.") == SCHEMES[scheme][1]
        back = interop.convert(array, to="torch.quantized", copy=False)
        assert back.dtype == tensor.dtype
        assert back.qscheme() == tensor.qscheme()
        assert tuple(back.shape) == shape
        if tensor.numel():
            assert address(array.codes) == back.data_ptr() == tensor.data_ptr()
        assert torch.equal(back.dequantize(), tensor.dequantize())


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_scale_and_zero_point_are_kept(axis: int | None) -> None:
    """Scale and zero point survive with all their digits."""
    given = neutral("quint8", (5, 7), axis)
    tensor = interop.convert(given, to="torch.quantized")
    back = interop.convert(tensor, to="quantized.numpy")
    np.testing.assert_array_equal(back.scale, given.scale)
    np.testing.assert_array_equal(back.zero_point, given.zero_point)
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
    """A scale per block is spread along its axis, the last block being shorter."""
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
        with pytest.raises(RefusedError, match="per block"):
            interop.convert(array, to="torch.quantized")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("wanted", [None, "float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("target", ["numpy", "torch"])
def test_the_dtype_of_the_numbers(dtype: str, wanted: str | None, target: str) -> None:
    """The result has the array's dtype, or the one asked for."""
    array = QuantizedArray(
        np.array([[0, 4], [8, 255]], "uint8"), np.array(0.5, "float32"), np.array(4), dtype=dtype
    )
    result = interop.convert(array, to=target, dtype=wanted)
    assert str(result.dtype).removeprefix("torch.") == (wanted or dtype)
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
    """ml_dtypes codes of 4 bits and scales of 8 are as good as any, but not torch's."""
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
        with pytest.raises(RefusedError, match="dequantize"):
            interop.convert(value, to="numpy", forbid="dequantize")
        with pytest.raises(RefusedError, match="dequantize"):
            interop.convert(value, to="torch", copy=False)


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (QuantizedArray(np.zeros(3, "int16"), np.array(1.0)), "int16"),
        (QuantizedArray(np.zeros(3, "uint8"), np.array(1.0), np.array(-1)), "zero points"),
        (QuantizedArray(np.zeros(3, "uint8"), np.array(1.0), np.array(0.5)), "real numbers"),
        (
            QuantizedArray(np.zeros(3, "int32"), np.ones(3, "f4"), np.ones(3, "f4"), axis=0),
            "8-bit",
        ),
    ],
)
def test_what_torch_has_no_scheme_for(array: QuantizedArray, said: str) -> None:
    """What torch cannot hold, or would end the process over, is refused with the reason."""
    with pytest.raises(RefusedError, match=said):
        interop.convert(array, to="torch.quantized")
    assert interop.convert(array, to="numpy").shape == (3,)


def test_torch_does_not_get_to_end_the_process(in_subprocess: Callable[..., str]) -> None:
    """32-bit codes with real zero points, which torch dies of, are dequantized by interop."""
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
    assert in_subprocess(program).split("\n")[:2] == [expected, expected]


def test_the_deprecation_is_quiet_from_the_start(in_subprocess: Callable[..., str]) -> None:
    """The warning that torch gives once per process does not reach the user."""
    program = """
        import warnings, numpy, interop
        before = list(warnings.filters)
        array = interop.QuantizedArray(numpy.arange(4, dtype="uint8"), numpy.array(0.5))
        print(interop.convert(array, to="torch.quantized").dequantize().tolist())
        print(interop.convert(array, to="torch").tolist())
        assert [f for f in warnings.filters if "quantize" in str(f)] == []
    """
    assert in_subprocess(program).split("\n")[:2] == ["[0.0, 0.5, 1.0, 1.5]"] * 2


def test_packed_codes_dequantize_only() -> None:
    """Codes that torch packs two to a byte are numbers, but no array of codes."""
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
    with pytest.raises(RefusedError, match="mixed_components"):
        interop.convert(mixed, to="numpy")

    class Codes:
        shape, dtype, nbytes = (3,), "uint8", 3

    with pytest.raises(UnknownValueError, match="numpy, torch or cupy"):
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


def test_specs() -> None:
    """The spec names the framework inside, the dtype of the codes, and all bytes."""
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


def test_the_source_is_left_alone() -> None:
    """Codes, scale and zero point are as they were, whatever was made of them."""
    array = neutral("qint8", (5, 7), 1)
    before = [part.copy() for part in (array.codes, array.scale, array.zero_point)]
    for target in ("numpy", "torch", "torch.quantized", "quantized.torch"):
        interop.convert(array, to=target)
        interop.convert(array, to=target, copy=True)
    for part, old in zip((array.codes, array.scale, array.zero_point), before, strict=True):
        np.testing.assert_array_equal(part, old)
