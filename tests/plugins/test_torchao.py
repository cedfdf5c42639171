"""torchao's tensors: codes are shared, numbers are torchao's own to the last bit, nothing is dense."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import interop
from interop import QuantizedArray
from interop.errors import RefusedError
from tests.cases import together
from tests.plugins.values import address

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of its own dependencies, as it is imported
    import torchao.quantization as ao
    from torchao.optim.subclass_8bit import OptimState8bit
    from torchao.prototype.mx_formats.mx_tensor import MXTensor
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor
    from torchao.prototype.mx_formats.utils import from_blocked, to_blocked
    from torchao.quantization import granularity as gran
    from torchao.utils import TorchAOBaseTensor

FORMATS = ("torchao.int8", "torchao.float8", "torchao.int4", "torchao.intx")
HALVES = [torch.float32, torch.bfloat16, torch.float16]


@pytest.fixture(autouse=True)
def no_warning() -> Iterator[None]:
    """No conversion warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def weight(shape: tuple[int, ...] = (48, 64), dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(3)
    return torch.randn(shape, generator=generator).to(dtype)


def int8(
    granularity: Any, shape: tuple[int, ...] = (48, 64), **keywords: Any
) -> Callable[..., Any]:
    return lambda dtype: ao.Int8Tensor.from_hp(weight(shape, dtype), granularity, **keywords)


def float8(
    granularity: Any, shape: tuple[int, ...] = (48, 64), **keywords: Any
) -> Callable[..., Any]:
    return lambda dtype: ao.Float8Tensor.from_hp(
        weight(shape, dtype), granularity=granularity, **keywords
    )


def intx(blocks: tuple[int, ...], target: torch.dtype, **keywords: Any) -> Callable[..., Any]:
    return lambda dtype: ao.IntxUnpackedToInt8Tensor.from_hp(
        weight((48, 64), dtype), blocks, target, **keywords
    )


def intx_with_real_zero_points(dtype: torch.dtype) -> Any:
    plain = ao.IntxUnpackedToInt8Tensor.from_hp(weight((48, 64), dtype), (1, 16), torch.int4)
    zero_point = weight((48, 4), dtype) * 3
    return ao.IntxUnpackedToInt8Tensor(
        plain.qdata, plain.scale, zero_point, torch.int4, (1, 16), dtype, None
    )


ASYMMETRIC = {"mapping_type": ao.quant_primitives.MappingType.ASYMMETRIC}
#: By name: a maker, and the axis and the block size that its codes have.
CODED: dict[str, tuple[Callable[..., Any], int | None, int | None]] = {
    "int8 per row": (int8(gran.PerRow()), 0, None),
    "int8 per tensor": (int8(gran.PerTensor()), None, None),
    "int8 per column": (int8(gran.PerAxis(1)), 1, None),
    "int8 per group": (int8(gran.PerGroup(16)), 1, 16),
    "int8 per block": (int8(gran.PerBlock([16, 32])), 1, 32),
    "int8 in tall blocks": (int8(gran.PerBlock([24, 16])), 0, 24),
    "int8 asymmetric": (int8(gran.PerRow(), **ASYMMETRIC), 0, None),
    "int8 asymmetric group": (int8(gran.PerGroup(8), **ASYMMETRIC), 1, 8),
    "int8 of three axes": (int8(gran.PerRow(), (3, 8, 16)), 2, 16),
    "int8 of one group of rows": (int8(gran.PerGroup(16), (1, 64)), 1, 16),
    "float8 per row": (float8(gran.PerRow()), 0, None),
    "float8 per tensor": (float8(gran.PerTensor()), None, None),
    "float8 per block": (float8(gran.PerBlock([16, 32])), 1, 32),
    "float8 e5m2": (float8(gran.PerRow(), float8_dtype=torch.float8_e5m2), 0, None),
    "float8 of three axes": (float8(gran.PerRow(), (3, 8, 16)), 2, 16),
    "intx per row": (intx((1, 64), torch.int4), 0, None),
    "intx per group": (intx((1, 16), torch.int3), 1, 16),
    "intx asymmetric": (intx((1, 16), torch.int6, **ASYMMETRIC), 1, 16),
    "intx with real zero points": (intx_with_real_zero_points, 1, 16),
}


def int4(
    shape: tuple[int, ...] = (48, 64), group: int = 16, dtype: torch.dtype = torch.bfloat16
) -> tuple[Any, torch.Tensor]:
    """Return an `Int4Tensor` packed by hand, and the codes that are in it."""
    generator = torch.Generator().manual_seed(5)
    codes = torch.randint(-8, 8, shape, generator=generator, dtype=torch.int8)
    packed = (codes[..., ::2] & 15) | (codes[..., 1::2] << 4)
    grid = (*shape[:-2], -(-shape[-1] // group), shape[-2])
    scale = (torch.rand(grid, generator=generator) + 0.1).to(dtype)
    zero = torch.randn(grid, generator=generator).to(dtype)
    blocks = [*(1 for _ in shape[:-1]), group]
    return ao.Int4Tensor(packed, scale, zero, blocks, torch.Size(shape)), codes


def own_numbers(value: Any) -> torch.Tensor:
    """Return what torchao itself makes of a tensor."""
    if isinstance(value, ao.NF4Tensor):
        return value.get_original_weight()
    numbers: torch.Tensor = value.dequantize()
    return numbers


def int4_numbers(value: Any, codes: torch.Tensor) -> torch.Tensor:
    """Return the numbers of an `Int4Tensor` by the formula of its kernels."""
    group = value.block_size[-1]
    scale, zero = (
        part.float().transpose(-2, -1).repeat_interleave(group, -1)[..., : codes.shape[-1]]
        for part in (value.scale, value.zero_point)
    )
    return (codes.float() * scale + zero).to(value.dtype)


def assert_same_bits(result: Any, expected: torch.Tensor) -> None:
    """Assert that two dense arrays have the same bits."""
    assert type(result) in (torch.Tensor, np.ndarray)
    assert tuple(result.shape) == tuple(expected.shape)
    array, expected_array = (
        np.asarray(interop.convert(dense, to="numpy")) for dense in (result, expected)
    )
    assert array.dtype == expected_array.dtype
    assert array.tobytes() == expected_array.tobytes()


# ---------------------------------------------------------------- codes


@pytest.mark.parametrize("name", CODED)
@together("dtype", HALVES)
def test_numbers_are_torchaos_own_to_the_last_bit(name: str, dtype: torch.dtype) -> None:
    """Dense results in either framework have the bits of the tensor's own `dequantize`."""
    value = CODED[name][0](dtype)
    expected = own_numbers(value)
    assert expected.dtype == dtype
    for to in ("torch", "numpy"):
        assert_same_bits(interop.convert(value, to=to), expected)
        assert_same_bits(interop.convert(value, to=to, copy=True), expected)


@pytest.mark.parametrize("name", CODED)
@together("to", ["quantized.torch", "quantized.numpy"])
def test_codes_are_shared(name: str, to: str) -> None:
    """A quantized array has the codes at their address, and the same numbers."""
    make, axis, block = CODED[name]
    value = make(torch.bfloat16)
    array = interop.convert(value, to=to, copy=False)
    assert isinstance(array, QuantizedArray)
    assert (array.axis, array.block_size, array.dtype) == (axis, block, "bfloat16")
    assert array.shape == tuple(value.shape)
    assert address(array.codes) == value.qdata.data_ptr()
    assert not interop.plan(value, to=to).effects
    assert_same_bits(interop.convert(array, to="torch"), own_numbers(value))
    assert_same_bits(interop.convert(array, to="numpy"), own_numbers(value))


def test_scales_are_shared_where_their_dtype_is_common() -> None:
    """Scales of float32 lie where they lay; those of bfloat16, which NumPy lacks, are widened."""
    value = CODED["int8 per group"][0](torch.bfloat16)
    for to in ("quantized.torch", "quantized.numpy"):
        array = interop.convert(value, to=to)
        assert address(array.scale) == value.scale.data_ptr()
        assert address(array.zero_point) == value.zero_point.data_ptr()
    value = CODED["intx per group"][0](torch.bfloat16)
    assert value.scale.dtype == torch.bfloat16
    array = interop.convert(value, to="quantized.numpy")
    assert array.scale.dtype == np.float32
    np.testing.assert_array_equal(array.scale, value.scale.float().numpy())


# ---------------------------------------------------------------- wrappers


def test_views_of_float8() -> None:
    """A transposed tensor is described by its scale, and its codes are strided."""
    value = CODED["float8 per row"][0](torch.bfloat16)
    for view in (value.t(), value.transpose(0, 1)):
        assert interop.spec(view).traits == {"noncontiguous"}
        array = interop.convert(view, to="quantized.numpy", copy=False)
        assert array.axis == 1
        assert array.codes.strides == (1, 64)
        assert address(array.codes) == value.qdata.data_ptr()
        assert_same_bits(interop.convert(view, to="numpy"), own_numbers(value).t().contiguous())


@pytest.mark.parametrize("name", ["int8 per row", "float8 per row", "intx per group"])
def test_wrappers_in_a_graph(name: str) -> None:
    """A wrapper that requires a gradient is detached; the flag of the source stays."""
    value = torch.nn.Parameter(CODED[name][0](torch.float32))
    assert value.requires_grad
    assert "grad" in interop.spec(value).traits
    plan = interop.plan(value, to="numpy")
    assert plan.effects == {"detach", "dequantize"}
    assert_same_bits(interop.convert(value, to="numpy"), own_numbers(value).detach())
    array = interop.convert(value, to="quantized.torch", copy=False)
    assert address(array.codes) == value.qdata.data_ptr()
    assert value.requires_grad
    with pytest.raises(RefusedError):
        interop.convert(value, to="numpy", forbid="detach")
    assert interop.convert(value, to=interop.spec(value).format) is value


@pytest.mark.parametrize(
    ("config", "format_"),
    [
        (ao.Int8WeightOnlyConfig(), "torchao.int8"),
        (ao.Int8WeightOnlyConfig(granularity=gran.PerGroup(16)), "torchao.int8"),
        (ao.Float8WeightOnlyConfig(), "torchao.float8"),
        (ao.IntxWeightOnlyConfig(weight_dtype=torch.int4), "torchao.intx"),
        (ao.Int8DynamicActivationInt8WeightConfig(), "torchao.int8"),
        (ao.Int8DynamicActivationIntxWeightConfig(), "torchao.intx"),
    ],
    ids=lambda x: type(x).__name__ if not isinstance(x, str) else x,
)
def test_weights_that_quantize_made(config: Any, format_: str) -> None:
    """The weight of a real layer after `quantize_` converts, and the layer works as before."""
    layer = torch.nn.Linear(64, 48, dtype=torch.bfloat16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ao.quantize_(layer, config)
    value = layer.weight
    assert isinstance(value, torch.nn.Parameter)
    assert interop.spec(value).format == format_
    assert_same_bits(interop.convert(value, to="numpy"), own_numbers(value))
    codes = interop.convert(value, to="quantized.numpy").codes
    assert address(codes) == value.qdata.data_ptr()
    assert layer(weight((2, 64), torch.bfloat16)).shape == (2, 48)


def test_quantization_of_activations_is_kept_within_torchao() -> None:
    """A copy of a tensor keeps how its activations are quantized; other formats know no such thing."""
    value = int8(gran.PerRow(), act_quant_scale=torch.tensor([[0.5]]))(torch.float32)
    copy = interop.convert(value, to="torchao.int8", copy=True)
    assert torch.equal(copy.act_quant_scale, value.act_quant_scale)
    assert copy.act_quant_scale.data_ptr() != value.act_quant_scale.data_ptr()
    assert_same_bits(interop.convert(value, to="numpy"), own_numbers(value))
    back = interop.convert(interop.convert(value, to="quantized.torch"), to="torchao.int8")
    assert back.act_quant_scale is None


def test_weights_whose_activations_are_scaled_are_refused() -> None:
    """`act_pre_scale` is half of the weight, and would be lost; the refusal says what to do."""
    value = int8(gran.PerRow(), act_pre_scale=torch.ones(64))(torch.float32)
    for to in ("numpy", "torch", "quantized.numpy"):
        with pytest.raises(RefusedError):
            interop.convert(value, to=to)
    assert interop.convert(value, to="torchao.int8", copy=True).act_pre_scale is not None
    value.act_pre_scale = None
    assert_same_bits(interop.convert(value, to="numpy"), own_numbers(value))


def test_meta_tensors_are_refused() -> None:
    """A tensor on the meta device has no numbers."""
    value = CODED["int8 per row"][0](torch.float32).to("meta")
    assert "meta" in interop.spec(value).traits
    for to in ("numpy", "quantized.torch"):
        with pytest.raises(RefusedError):
            interop.convert(value, to=to)


def test_fake_components_are_refused() -> None:
    """Components that are wrappers themselves are not taken for memory."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    value = CODED["int8 per row"][0](torch.float32)
    with FakeTensorMode() as mode:
        value = ao.Int8Tensor(
            mode.from_tensor(value.qdata), mode.from_tensor(value.scale), [1, 64], torch.float32
        )
    with pytest.raises(RefusedError):
        interop.convert(value, to="numpy")


def test_components_on_two_devices_are_refused() -> None:
    """Components on different devices belong to no tensor that can be converted."""
    value = CODED["int8 per row"][0](torch.float32)
    value.scale = value.scale.to("meta")
    with pytest.raises(RefusedError):
        interop.convert(value, to="numpy")


@pytest.mark.slow
def test_a_dense_step_never_gets_a_wrapper(in_subprocess: Callable[..., str]) -> None:
    """The outer tensor, whose address is 0, is exported by nothing: no crash, and right numbers."""
    program = """
        import warnings; warnings.simplefilter("ignore")
        import torch, numpy, interop
        from torchao.quantization import Int8Tensor
        from torchao.quantization.granularity import PerRow
        value = Int8Tensor.from_hp(torch.arange(12.).reshape(3, 4), PerRow())
        assert value.data_ptr() == 0
        for to in ("numpy", "torch", "jax", "scipy.csr", "torch.sparse_csr", "python"):
            steps = interop.plan(value, to=to).steps
            assert steps[0].label.startswith("torchao_int8_to_quantized"), steps
            result = interop.convert(value, to=to)
            dense = numpy.asarray(interop.convert(result, to="numpy", dtype="float32"))
            assert numpy.array_equal(dense, value.dequantize().numpy()), (to, dense)
        print("done")
    """
    assert in_subprocess(program).strip().endswith("done")


# ---------------------------------------------------------------- four bits


@pytest.mark.parametrize("shape", [(48, 64), (1, 32), (3, 8, 32), (600, 1024)])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_four_bits_are_unpacked_in_order(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    """The low half of a byte is the first code, with its sign; scales stand upright again."""
    value, codes = int4(shape, 16, dtype)
    for to in ("quantized.torch", "quantized.numpy"):
        array = interop.convert(value, to=to)
        np.testing.assert_array_equal(np.asarray(array.codes), codes.numpy())
        assert str(array.codes.dtype).removeprefix("torch.") == "int8"
        assert (array.axis, array.block_size) == (len(shape) - 1, 16)
        for part, inner in ((array.scale, value.scale), (array.bias, value.zero_point)):
            expected = inner.float().transpose(-2, -1).numpy()
            np.testing.assert_array_equal(np.asarray(part, dtype="f4"), expected)
        assert array.zero_point is None
        assert_same_bits(interop.convert(array, to="torch"), int4_numbers(value, codes))


def test_four_bits_as_torchao_packs_them() -> None:
    """The byte 0x1f holds -1 and then 1."""
    scale = torch.ones(1, 1)
    value = ao.Int4Tensor(
        torch.tensor([[0x1F, -128]], dtype=torch.int8), scale, 0 * scale, [1, 4], torch.Size((1, 4))
    )
    assert interop.convert(value, to="numpy").tolist() == [[-1, 1, 0, -8]]
    unsigned = ao.Int4Tensor(
        value.qdata.view(torch.uint8), scale, 0 * scale, [1, 4], torch.Size((1, 4))
    )
    assert interop.convert(unsigned, to="numpy").tolist() == [[-1, 1, 0, -8]]


def test_four_bits_that_are_transposed_or_sliced() -> None:
    """A transposed tensor is packed along its first axis."""
    value, codes = int4()
    expected = int4_numbers(value, codes)
    assert_same_bits(interop.convert(value.transpose(0, 1), to="numpy"), expected.t().contiguous())
    assert_same_bits(interop.convert(value[8:24], to="numpy"), expected[8:24])
    assert_same_bits(interop.convert(value[:, 16:48], to="numpy"), expected[:, 16:48].contiguous())


def test_the_last_group_of_four_bits_may_be_short() -> None:
    """A row of 40 has groups of 16, 16 and 8."""
    value, codes = int4((6, 40), 16)
    assert value.scale.shape == (3, 6)
    assert_same_bits(interop.convert(value, to="numpy"), int4_numbers(value, codes))


def test_a_bias_is_not_lost() -> None:
    """Formats without a bias refuse a quantized array that has one, and say why."""
    array = interop.convert(int4()[0], to="quantized.torch")
    assert "biased" in interop.spec(array).traits
    for to in ("torch.quantized", "torchao.int8", "torchao.intx"):
        with pytest.raises(RefusedError):
            interop.convert(array, to=to)


def test_layouts_of_kernels_are_refused() -> None:
    """Codes in the order of a device's kernels, which only the kernels know, are no numbers."""
    value, _ = int4()
    plain = ao.Int4PlainInt32Tensor(
        torch.zeros(48, 8, dtype=torch.int32), value.scale, value.scale.to(torch.int8), [1, 16],
        torch.Size((48, 64)),
    )  # fmt: skip
    tiles = ao.Int4TilePackedTo4dTensor(
        torch.zeros(6, 1, 32, 4, dtype=torch.int32), torch.zeros(4, 48, 2), [1, 16], (48, 64)
    )
    for opaque in (plain, tiles):
        assert interop.spec(opaque).format == "torchao.opaque"
        assert "no_dequantize" in interop.spec(opaque).traits
        for to in ("numpy", "torch", "quantized.torch"):
            with pytest.raises(RefusedError):
                interop.convert(opaque, to=to)


# ---------------------------------------------------------------- opaque tensors


def nf4(dtype: torch.dtype = torch.float32) -> Any:
    return ao.NF4Tensor.from_tensor(weight((64, 32), dtype), 16, 8)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_nf4_has_numbers_only(dtype: torch.dtype) -> None:
    """NF4's numbers are its own; it has no affine codes."""
    value = nf4(dtype)
    spec = interop.spec(value)
    assert (spec.format, spec.shape) == ("torchao.nf4", (64, 32))
    assert spec.nbytes < 64 * 32 * 2
    for to in ("torch", "numpy"):
        assert_same_bits(interop.convert(value, to=to), value.get_original_weight())
    with pytest.raises(RefusedError):
        interop.convert(value, to="quantized.torch")


def test_nf4_in_a_graph() -> None:
    """A parameter of NF4 is detached."""
    value = torch.nn.Parameter(nf4())
    assert interop.plan(value, to="numpy").effects == {"detach", "dequantize"}
    result = interop.convert(value, to="torch")
    assert not result.requires_grad
    assert_same_bits(result, nf4().get_original_weight())


class Halves(TorchAOBaseTensor):
    """A class of tensors that nobody knows, which hold halves of numbers."""

    tensor_data_names = ["halves"]  # noqa: RUF012 - torchao copies it
    tensor_attribute_names: list[str] = []  # noqa: RUF012

    def __new__(cls, halves: torch.Tensor) -> Any:
        """Return a tensor without memory."""
        return torch.Tensor._make_wrapper_subclass(cls, halves.shape, dtype=torch.bfloat16)

    def __init__(self, halves: torch.Tensor) -> None:
        self.halves = halves

    def dequantize(self) -> torch.Tensor:
        """Return the numbers."""
        return self.halves * 2


class Itself(Halves):
    """One whose numbers are what it holds."""

    def dequantize(self) -> torch.Tensor:
        """Return the memory itself."""
        return self.halves


class Int8Tensor(ao.Int8Tensor):
    """A subclass with the name of its parent, and numbers of its own."""

    def dequantize(self, output_dtype: Any = None) -> torch.Tensor:
        """Return other numbers."""
        return super().dequantize(output_dtype) + 1


class Silent(TorchAOBaseTensor):
    """A class without numbers."""

    def __new__(cls, shape: tuple[int, ...]) -> Any:
        """Return a tensor without memory."""
        return torch.Tensor._make_wrapper_subclass(cls, shape, dtype=torch.float32)


def test_an_unknown_class_dequantizes_itself() -> None:
    """Of a class that nobody knows the numbers can be had, in the dtype that it claims."""
    value = Halves(weight())
    spec = interop.spec(value)
    assert (spec.format, spec.dtype) == ("torchao.opaque", "bfloat16")
    assert_same_bits(interop.convert(value, to="torch"), (weight() * 2).to(torch.bfloat16))
    assert_same_bits(interop.convert(value, to="numpy"), (weight() * 2).to(torch.bfloat16))


def test_opaque_numbers_are_in_memory_of_their_own() -> None:
    """A `dequantize` that returns the memory of the tensor itself is not trusted with it."""
    value = Itself(weight().to(torch.bfloat16))
    result = interop.convert(value, to="torch")
    assert result.data_ptr() != value.halves.data_ptr()
    assert torch.equal(result, value.halves)


def test_a_subclass_is_not_its_parent() -> None:
    """What a subclass makes of its codes is its own business."""
    plain = CODED["int8 per row"][0](torch.float32)
    value = Int8Tensor(plain.qdata, plain.scale, [1, 64], torch.float32)
    assert interop.spec(value).format == "torchao.opaque"
    assert_same_bits(interop.convert(value, to="numpy"), plain.dequantize() + 1)


@pytest.mark.parametrize(
    "change",
    [
        lambda value: setattr(value, "scale", value.scale.double()),
        lambda value: setattr(value, "zero_point", value.zero_point.to(torch.int32)),
    ],
    ids=["scale", "zero_point"],
)
def test_known_classes_with_unknown_insides_are_opaque(change: Callable[[Any], None]) -> None:
    """Components of dtypes that torchao computes with in its own way are left to it."""
    value = CODED["int8 per group"][0](torch.float32)
    change(value)
    assert interop.spec(value).format == "torchao.opaque"
    assert_same_bits(interop.convert(value, to="numpy"), value.dequantize())


@pytest.mark.parametrize("kind", ["mx", "state"])
def test_other_tensors_of_torchao(kind: str) -> None:
    """Microscaled tensors and the states of optimizers dequantize themselves."""
    if kind == "mx":
        value = MXTensor.to_mx(weight((48, 64), torch.bfloat16), torch.float8_e4m3fn, 32)
    else:
        value = OptimState8bit.zeros((48, 64))
        value.codes.copy_(torch.arange(48 * 64).remainder(256).view(48, 64))
        value.scale.copy_(torch.arange(12.0))
    assert interop.spec(value).format == "torchao.opaque"
    assert_same_bits(interop.convert(value, to="numpy"), value.dequantize())


# ---------------------------------------------------------------- scales in tiles


@together("rows, blocks", [(128, 4), (1, 1), (129, 5), (300, 17), (256, 8), (0, 3)])
@together("dtype", [torch.float8_e8m0fnu, torch.float8_e4m3fn, torch.float32])
def test_tiles_are_those_of_torchao(rows: int, blocks: int, dtype: torch.dtype) -> None:
    """Scales are swizzled and put back to the last bit, in torch and in NumPy."""
    bits = torch.arange(rows * blocks).remainder(251).to(torch.uint8).reshape(rows, blocks)
    scale = bits.view(dtype) if dtype.itemsize == 1 else bits.to(dtype)
    codes = torch.zeros((rows, 32 * blocks), dtype=torch.int8)
    q = QuantizedArray(codes, scale, axis=1, block_size=32)
    swizzled = q.with_scale_layout("128x4")
    assert swizzled.with_scale_layout("128x4") is swizzled
    assert swizzled.codes is codes
    assert_same_bits(swizzled.scale, to_blocked(scale))
    shared = QuantizedArray(codes, to_blocked(scale), axis=1, block_size=32, scale_layout="128x4")
    back = shared.with_scale_layout("linear")
    assert_same_bits(back.scale, scale)
    assert_same_bits(back.scale, from_blocked(shared.scale, rows, blocks))
    array = np.asarray(interop.convert(scale, to="numpy"))
    ours = QuantizedArray(codes.numpy(), array, axis=1, block_size=32).with_scale_layout("128x4")
    assert_same_bits(ours.scale, swizzled.scale)
    assert_same_bits(ours.with_scale_layout("linear").scale, scale)


def _microscaled(kind: str, shape: tuple[int, int], dtype: torch.dtype, swizzled: bool) -> Any:
    """Return a tensor of torchao and the arguments of its quantized array."""
    dense, name = weight(shape, dtype), str(dtype).removeprefix("torch.")
    facts: dict[str, Any] = {"axis": 1, "block_size": 32, "dtype": name}
    facts["scale_layout"] = "128x4" if swizzled else "linear"
    if kind == "nvfp4":
        whole = torch.tensor(0.25)
        value = NVFP4Tensor.to_nvfp4(dense, per_tensor_scale=whole, is_swizzled_scales=swizzled)
        scale, facts["block_size"] = whole * value.scale.float(), 16
    else:
        element = torch.float8_e4m3fn if kind == "mxfp8" else torch.float4_e2m1fn_x2
        value = MXTensor.to_mx(dense, element, 32, is_swizzled_scales=swizzled)
        scale = value.scale
    codes = value.qdata
    if kind != "mxfp8":
        codes, facts["packed"], facts["shape"] = codes.flatten(), "float4_e2m1fn", shape
    return value, codes, scale, facts


@together("kind", ["mxfp8", "mxfp4", "nvfp4"])
@together("shape", [(100, 96), (300, 192)])
@together("dtype", [torch.float32, torch.bfloat16])
@together("swizzled", [False, True])
def test_microscaled_tensors_have_the_numbers_of_torchao(
    kind: str, shape: tuple[int, int], dtype: torch.dtype, swizzled: bool
) -> None:
    """Codes and scales of either layout stand for torchao's numbers, to the last bit."""
    value, codes, scale, facts = _microscaled(kind, shape, dtype, swizzled)
    expected = value.dequantize()
    for _ in range(2):
        array = QuantizedArray(codes, scale, **facts)
        assert_same_bits(interop.convert(array, to="torch"), expected)
        assert_same_bits(interop.convert(array, to="numpy"), expected)
        for to in ("quantized.torch", "quantized.numpy"):
            result = interop.convert(array, to=to)
            assert (result.scale_layout, tuple(result.scale.shape[:1])) == ("linear", shape[:1])
            assert_same_bits(interop.convert(result, to="numpy"), expected)


def test_scales_in_tiles_are_put_in_rows_and_codes_are_shared() -> None:
    """A conversion copies the scales alone; a plan, a receipt and `copy=False` say so."""
    _, codes, scale, facts = _microscaled("mxfp8", (100, 96), torch.float32, True)
    array = QuantizedArray(codes, scale, **facts)
    assert "swizzled" in interop.spec(array).traits
    with interop.trace() as receipts:
        result = interop.convert(array, to="quantized.numpy")
    assert address(result.codes) == codes.data_ptr()
    assert result.scale.flags.c_contiguous
    plan = interop.plan(array, to="quantized.numpy")
    assert (plan.aliases, plan.effects) == (receipts[0].aliased, {"copy"}) == (True, {"copy"})
    with pytest.raises(RefusedError):
        interop.convert(array, to="quantized.numpy", copy=False)


# ---------------------------------------------------------------- into torchao


def test_codes_of_your_own() -> None:
    """A quantized array over NumPy's memory becomes an `Int8Tensor` that computes with it."""
    codes = np.arange(-32, 32, dtype="int8").reshape(4, 16)
    array = QuantizedArray(codes, np.linspace(0.1, 0.4, 4, dtype="float32"), axis=0)
    value = interop.convert(array, to=ao.Int8Tensor, copy=False)
    assert type(value) is ao.Int8Tensor
    assert value.qdata.data_ptr() == codes.ctypes.data
    assert_same_bits(interop.convert(array, to="torch"), value.dequantize())
    product = torch.nn.functional.linear(torch.eye(16), value)
    torch.testing.assert_close(product, value.dequantize().t())


def test_torchs_own_tensors() -> None:
    """A quantized tensor of torch's becomes one of torchao's, over the same codes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensor = torch.quantize_per_channel(
            weight(), torch.linspace(0.5, 1, 48), torch.arange(48) - 20, 0, torch.qint8
        )
    value = interop.convert(tensor, to="torchao.int8")
    assert value.qdata.data_ptr() == tensor.data_ptr()
    assert torch.equal(value.dequantize(), tensor.dequantize())


#: What only the numbers, or the axis, tell: a spec has neither.
UNFORESEEN = "-8 to 7|last of|one size|even number|do not fit|zero points|contiguous|real numbers"


def _schemes() -> Iterator[QuantizedArray]:
    """Yield arrays of every kind of codes, scales and zero points."""
    rng = np.random.default_rng(3)
    for codes in ("int8", "uint8", "int32", "int16", "float8_e4m3fn", "float8_e5m2"):
        numbers = rng.integers(0, 8, (4, 6)).astype("f4").astype(getattr(ml_dtypes, codes, codes))
        for axis, block, form in ((None, None, ()), (0, None, 4), (1, None, 6), (1, 3, (4, 2))):
            for zeros in (None, np.ones(form, "i8")):
                yield QuantizedArray(
                    numbers, np.ones(form, "f4"), zeros, axis=axis, block_size=block
                )


AFFINE = ("torch.quantized", "quantized.numpy", "quantized.torch", *FORMATS)


@cache
def _sources() -> list[tuple[np.ndarray[Any, Any], Any]]:
    """Return the values of every format that hold such arrays, each with its numbers."""
    return [
        (interop.convert(array, to="numpy"), value)
        for array in _schemes()
        for via in AFFINE
        if not isinstance(value := _or_refusal(partial(interop.convert, array, to=via)), str)
    ]


@pytest.mark.parametrize("target", AFFINE)
def test_a_plan_knows_the_schemes_of_a_format(target: str) -> None:
    """Where `plan` gives a route `convert` goes it, but for what only the numbers tell."""
    planned, refused = [], []
    for numbers, value in _sources():
        plan = _or_refusal(partial(interop.plan, value, to=target))
        result = _or_refusal(partial(interop.convert, value, to=target))
        if isinstance(plan, str):
            refused.append(result)
            assert result == plan
        elif isinstance(result, str):
            assert re.search(UNFORESEEN, result), result
        else:
            planned.append(result)
            assert np.array_equal(interop.convert(result, to="numpy"), numbers)
    assert len(planned) > 4
    assert len(refused) > 10 or target.startswith("quantized.")


def _or_refusal(call: Callable[[], Any]) -> Any:
    """Return what a call returns, or the text of its refusal."""
    try:
        return call()
    except RefusedError as refusal:
        return str(refusal)


def test_any_of_torchaos() -> None:
    """The bare name means whichever class can hold the codes."""
    array = QuantizedArray(np.zeros((2, 4), "int8"), np.array(1.0))
    assert isinstance(interop.convert(array, to="torchao"), TorchAOBaseTensor)
    value = CODED["float8 per row"][0](torch.float32)
    assert interop.convert(value, to="torchao") is value


def test_plans_for_devices() -> None:
    """Codes move before they are dequantized, on machines that have no device as well."""
    spec = interop.spec(CODED["int8 per row"][0](torch.float32))._replace(device="cuda:0")
    plan = interop.plan(spec, to="quantized.numpy", device="cpu")
    assert plan.effects == {"transfer"}
    plan = interop.plan(spec, to="quantized.cupy")
    assert plan.zero_copy
    assert interop.plan(spec, to="cupy").effects == {"dequantize"}
