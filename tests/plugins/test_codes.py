"""Arrays of integers that are codes: their numbers come out, or a refusal, never the codes.

The classes here keep what bitsandbytes' and diffusers' keep, where these keep it.
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import interop
from interop.errors import RefusedError
from tests.cases import together

LEVELS = torch.linspace(-1, 1, 16)
NUMBERS = torch.tensor([[-1.0, 1.0, 0.2, -0.2], [2.0, -2.0, 0.4, -0.4]])


class Params4bit(torch.nn.Parameter):
    """Two codes a byte, in storage of any dtype; the state has their scales and their levels."""

    def __new__(cls, data: torch.Tensor, state: Any = None) -> Any:
        self = torch.Tensor._make_subclass(cls, data, False)
        self.quant_state, self.quant_type, self.module = state, "nf4", None
        return self


class Int8Params(torch.nn.Parameter):
    """A code a byte; a scale a row."""

    def __new__(cls, data: torch.Tensor, scale: Any = None) -> Any:
        self = torch.Tensor._make_subclass(cls, data, False)
        self.CB, self.SCB, self.has_fp16_weights = None, scale, False
        return self


class Kind(enum.IntEnum):
    """What blocks of bytes mean: a half and two bytes, say."""

    Q8 = 8


class GGUFParameter(torch.nn.Parameter):
    """Bytes of blocks, of which the kind says what they mean; its functions make its own kind."""

    def __new__(cls, data: torch.Tensor, quant_type: Any = None) -> Any:
        self = torch.Tensor._make_subclass(cls, data, False)
        self.quant_type = quant_type
        return self

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_function__(func, types, args, kwargs or {})
        return cls(result, Kind.Q8) if isinstance(result, torch.Tensor) else result


def dequantize_4bit(x: torch.Tensor, state: Any) -> torch.Tensor:
    pairs = x.view(torch.uint8).reshape(-1)
    numbers = LEVELS[torch.stack([pairs >> 4, pairs & 15], 1).int()].reshape(state.shape)
    return (numbers * state.absmax[:, None]).to(state.dtype)


def int8_vectorwise_dequant(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return x * scale[:, None] / 127


def dequantize_gguf_tensor(x: Any) -> torch.Tensor:
    blocks = x.as_subclass(torch.Tensor).reshape(-1, 4)
    scale, codes = blocks[:, :2].view(torch.float16), blocks[:, 2:].view(torch.int8)
    return (scale * codes).reshape(x.shape[0], x.shape[1] // 2)


def four_bits(storage: torch.dtype = torch.uint8) -> Any:
    codes = (NUMBERS / torch.tensor([[1.0], [2.0]]) * 7.5 + 7.5).round().byte().reshape(-1, 2)
    data = (codes[:, 0] << 4 | codes[:, 1]).view(storage)
    state = SimpleNamespace(
        absmax=torch.tensor([1.0, 2.0]), shape=NUMBERS.shape, dtype=torch.bfloat16
    )
    return Params4bit(data, state)


def eight_bits() -> Any:
    codes = torch.tensor([[-127, 127, 0, 1], [127, -127, 0, -1]], dtype=torch.int8)
    return Int8Params(codes, torch.tensor([1.0, 2.0]))


def blocks() -> Any:
    halves = torch.tensor([[0.5], [2.0]], dtype=torch.float16).view(torch.uint8)
    codes = torch.tensor([[-3, 4], [5, -6]], dtype=torch.int8).view(torch.uint8)
    return GGUFParameter(torch.cat([halves, codes], 1), Kind.Q8)


DECLARED: dict[str, tuple[Callable[[], Any], Callable[[Any], torch.Tensor]]] = {
    "4 bits": (four_bits, lambda x: dequantize_4bit(x, x.quant_state)),
    "4 bits stored as bfloat16": (
        lambda: four_bits(torch.bfloat16),
        lambda x: dequantize_4bit(x, x.quant_state),
    ),
    "8 bits": (eight_bits, lambda x: int8_vectorwise_dequant(x.data, x.SCB)),
    "blocks of a GGUF file": (blocks, dequantize_gguf_tensor),
}


@pytest.fixture(scope="module")
def libraries() -> Iterator[None]:
    """The modules that these classes and functions are in."""
    contents: dict[str, tuple[Any, ...]] = {
        "bitsandbytes": (),
        "bitsandbytes.nn": (),
        "bitsandbytes.nn.modules": (Params4bit, Int8Params),
        "bitsandbytes.functional": (dequantize_4bit, int8_vectorwise_dequant),
        "diffusers": (),
        "diffusers.quantizers": (),
        "diffusers.quantizers.gguf": (),
        "diffusers.quantizers.gguf.utils": (GGUFParameter, dequantize_gguf_tensor),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, objects in contents.items():
            module = ModuleType(name)
            vars(module).update({part.__name__: part for part in objects})
            patch.setitem(sys.modules, name, module)
            for part in objects:
                if isinstance(part, type):
                    patch.setattr(part, "__module__", name)
        yield


# github.com/bitsandbytes-foundation/bitsandbytes/issues/716
@pytest.mark.usefixtures("libraries")
@together("name", DECLARED)
@together("to", ["numpy", "jax", "torch", "tree", "accepts"])
def test_parameters_become_the_numbers_that_their_codes_stand_for(name: str, to: str) -> None:
    """The library's own function makes the numbers, in its dtype; the plan says dequantize."""
    make, dequantize = DECLARED[name]
    value = make()
    expected = dequantize(value)
    given = value.as_subclass(torch.Tensor).clone() if name != "blocks of a GGUF file" else None
    if to == "tree":
        result = interop.convert_tree({"weight": value}, to="numpy")["weight"]
    elif to == "accepts":
        result = torch.from_numpy(interop.accepts("numpy", dtype="float32")(np.copy)(value).numpy())
    else:
        result = interop.convert(value, to=to)
        plan = interop.plan(value, to=to)
        assert plan.effects >= {"dequantize"}
        assert not plan.aliases
        assert interop.spec(result).dtype == str(expected.dtype).removeprefix("torch.")
    numbers = interop.convert(result, to="numpy", dtype="float32")
    assert np.array_equal(numbers, expected.float().numpy())
    assert given is None or torch.equal(given, value.as_subclass(torch.Tensor))
    with pytest.raises(RefusedError):
        interop.convert(value, to="numpy", copy=False)


@pytest.mark.usefixtures("libraries")
def test_parameters_without_codes_are_tensors_and_those_without_scales_are_refused() -> None:
    """What its library has yet to quantize is shared; a scale that a layer took away is named."""
    for kind in (Params4bit, Int8Params):
        plain = kind(NUMBERS.clone())
        array = interop.convert(plain, to="numpy")
        assert (array.dtype, array.ctypes.data) == ("float32", plain.data_ptr())
    with pytest.raises(RefusedError, match=r"\(layer\.state\.SCB\)"):
        interop.convert(Int8Params(torch.ones(2, 2, dtype=torch.int8)), to="numpy")


class Scaled(torch.Tensor):
    """Codes that know how to dequantize themselves."""

    def dequantize(self) -> Any:
        return self.as_subclass(torch.Tensor) * vars(self)["scale"]


class Slotted(np.ndarray[Any, Any]):
    """Codes of NumPy's, with a scale in a slot."""

    __slots__ = ("step",)

    def dequantized(self) -> Any:
        return self.view(np.ndarray) * self.step


class Bare(torch.Tensor):
    """Codes whose library dequantizes them by a function."""


def held(kind: Any, dtype: str = "int8", **attributes: Any) -> Any:
    if issubclass(kind, np.ndarray):
        value = np.arange(3).astype(getattr(ml_dtypes, dtype, dtype)).view(kind)
    else:
        value = torch.arange(3).to(getattr(torch, dtype)).as_subclass(kind)
    for name, part in attributes.items():
        setattr(value, name, part)
    return value


UNDECLARED: dict[str, tuple[Callable[[], Any], str, str]] = {
    "a scale": (lambda: held(Scaled, scale=torch.tensor(0.5)), "scale", "x.dequantize()"),
    "scales of NumPy": (lambda: held(Scaled, scale=np.float32(0.5)), "scale", "x.dequantize()"),
    "a slot": (lambda: held(Slotted, step=np.ones(1)), "step", "x.dequantized()"),
    "a state": (
        lambda: held(Bare, state=SimpleNamespace(absmax=torch.ones(1), axis=0)),
        "state",
        f"{__name__}.dequantize_4bit(x, ...)",
    ),
    "a scale of float8": (
        lambda: held(Scaled, "float8_e4m3fn", scale=torch.tensor(0.5)),
        "scale",
        "x.dequantize()",
    ),
    "a step of float4": (
        lambda: held(Slotted, "float4_e2m1fn", step=np.ones(1)),
        "step",
        "x.dequantized()",
    ),
    "a type": (lambda: held(Scaled, quant_type=Kind.Q8), "quant_type", "x.dequantize()"),
}


@together("name", UNDECLARED)
@together("to", ["numpy", "jax", "python", "torch"])
def test_codes_that_no_plugin_knows_are_refused(name: str, to: str) -> None:
    """Whatever the class is called, an integer array with a scale names what dequantizes it."""
    make, attribute, move = UNDECLARED[name]
    words = rf"holds codes, and {attribute} tells .* convert what (\S+\(.*?\)) returns, or (.*) for"
    value = make()
    for convert in (
        interop.convert,
        interop.plan,
        lambda x, to: interop.convert_tree({"x": x}, to=to),
        lambda x, to: interop.convert(x, to=to, allow="drop_labels"),
    ):
        with pytest.raises(RefusedError, match=words) as refusal:
            convert(value, to=to)
    offered = refusal.value.args[0]
    assert move in offered
    plain = eval(offered.partition("or ")[2].partition(" for")[0], {"x": value}, LIBRARIES)
    assert interop.convert(plain, to="numpy").tolist() == [0, 1, 2]


LIBRARIES = {"torch": torch, "numpy": np}


@together(
    "attributes",
    [
        {},
        {"unit": "K", "names": ["a"], "meta": {"affine": torch.eye(4)}},
        {"quantity": "length", "quantile": 0.5, "format": None, "layer": torch.nn.Linear},
    ],
)
@together("kind", [Scaled, Bare])
def test_integers_with_labels_are_no_codes(kind: Any, attributes: dict[str, Any]) -> None:
    """Attributes that are neither arrays nor named after a quantization are labels."""
    value = held(kind, **attributes)
    assert interop.convert(value, to="numpy").tolist() == [0, 1, 2]
    assert (interop.plan(value, to="numpy").effects == {"drop_labels"}) is bool(attributes)


def test_floats_with_arrays_among_their_attributes_are_numbers() -> None:
    """Only integers can be codes: floats with a gradient scale or an affine matrix are numbers."""
    value = torch.ones(2).as_subclass(Bare)
    value.affine = torch.eye(4)
    assert interop.convert(value, to="numpy").tolist() == [1, 1]


# github.com/pytorch/pytorch/issues/148791
@together("shape", [(2,), (2, 3), (1, 1), (0, 2), (4, 2, 3)])
@together("to", ["numpy", "jax", "python"])
def test_two_numbers_in_a_byte_become_two_numbers(shape: tuple[int, ...], to: str) -> None:
    """The lower half of a byte is the first number; the bits are those of ml_dtypes, both ways."""
    pairs = torch.randint(256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    value = pairs.view(torch.float4_e2m1fn_x2)
    halves = torch.stack([pairs & 15, pairs >> 4], -1).reshape(*shape[:-1], 2 * shape[-1]).numpy()
    expected = halves.view(ml_dtypes.float4_e2m1fn)
    spec = interop.spec(value)
    assert (spec.format, spec.dtype, spec.shape) == ("torch.packed", "float4_e2m1fn", halves.shape)
    result = interop.convert(value, to=to)
    if to == "python":
        assert result == expected.tolist()
        return
    assert (np.asarray(result).dtype, result.shape) == (ml_dtypes.float4_e2m1fn, halves.shape)
    assert np.array_equal(np.asarray(result).view(np.uint8), halves)
    back = interop.convert(result, to="torch.packed")
    assert (back.dtype, back.shape) == (value.dtype, value.shape)
    assert torch.equal(back.view(torch.uint8), pairs)
    assert interop.convert(value, to="torch.packed") is value
    assert interop.convert(value, to="torch", dtype="float32").tolist() == expected.tolist()


@together("dtype", ["uint4", "int4", "uint2", "int2", "bits8", "bits4x2", "uint1", "int3"])
def test_bits_that_torch_does_not_explain_give_their_bytes(dtype: str) -> None:
    """A dtype that torch only stores is refused with a view that works, and what reads codes in it."""
    codes = torch.tensor([0x21, 0x43], dtype=torch.uint8)
    x = codes.view(getattr(torch, dtype))
    for to in ("numpy", "jax"):
        with pytest.raises(RefusedError):
            interop.convert(x, to=to)
    assert interop.convert(x.view(torch.uint8), to="numpy").tolist() == [0x21, 0x43]
    numbers = interop.QuantizedArray(codes, torch.tensor(1.0), packed="uint4", shape=(4,))
    assert interop.convert(numbers, to="numpy").tolist() == [1, 2, 3, 4]
