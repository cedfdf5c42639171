"""Parameters of other libraries that hold codes, and what these stand for among their attributes.

Each library dequantizes its own. What it says of a parameter costs no look at the codes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from interop.plugin import Spec

from . import describe as tensors

if TYPE_CHECKING:
    from torch import Tensor


class _Coded(NamedTuple):
    """What a parameter stands for: the shape and the dtype of the numbers, and what makes them."""

    shape: tuple[int, ...]
    dtype: Any
    dequantize: Callable[[], Tensor]


def describe(value: Any) -> Spec:
    """Return the spec of a parameter: of its numbers if it holds codes, else of a tensor.

    Parameters
    ----------
    value : Params4bit or Int8Params of bitsandbytes, or GGUFParameter of diffusers

    Returns
    -------
    Spec
        Codes whose scale is elsewhere have a trait that says so.
    """
    import torch

    with torch._C.DisableTorchFunctionSubclass():
        device, nbytes = str(value.device), value.nbytes
        traits = frozenset({"meta"} if value.is_meta else ())
    coded = _coded(value)
    if coded is None:
        if value.is_floating_point():  # the library has yet to quantize it
            return tensors.describe(value)
        shape, dtype, traits = tuple(value.shape), "float32", traits | {"no_scale"}
    else:
        shape, dtype = tuple(coded.shape), tensors.dtype_name(coded.dtype)
    return Spec("torch.codes", dtype, device, shape, traits, nbytes)


def dequantize(value: Any) -> Tensor:
    """Return the numbers that the codes of a parameter stand for, as its library makes them."""
    import torch

    coded = _coded(value)
    assert coded is not None
    with torch.no_grad():
        return coded.dequantize()


def _coded(value: Any) -> _Coded | None:
    """Return what a parameter stands for, or None if it has no scale."""
    names = {kind.__name__ for kind in type(value).__mro__}
    kinds = (
        ("Params4bit", _coded_4bit),
        ("Int8Params", _coded_8bit),
        ("GGUFParameter", _coded_gguf),
    )
    return next(coded for name, coded in kinds if name in names)(value)


def _coded_4bit(value: Any) -> _Coded | None:
    """Read bitsandbytes' 4 bits, which may lie in storage of any dtype."""
    state = value.quant_state
    if state is None:
        return None
    functional = import_module("bitsandbytes.functional")
    return _Coded(state.shape, state.dtype, partial(functional.dequantize_4bit, value, state))


def _coded_8bit(value: Any) -> _Coded | None:
    """Read bitsandbytes' 8 bits; a layer that has computed keeps their scale in its own state."""
    import torch

    if value.is_floating_point() or value.SCB is None:
        return None
    functional = import_module("bitsandbytes.functional")
    dequantize = partial(functional.int8_vectorwise_dequant, value.data, value.SCB)
    return _Coded(value.shape, torch.float32, dequantize)


def _coded_gguf(value: Any) -> _Coded:
    """Read the blocks of a GGUF file."""
    import torch

    dequantize = import_module(type(value).__module__).dequantize_gguf_tensor
    # The kind of blocks decides the dtype and the length of rows, whatever is in them.
    row = dequantize(torch.zeros_like(value.reshape(-1, value.shape[-1])[:1]))
    return _Coded((*value.shape[:-1], row.shape[-1]), row.dtype, partial(dequantize, value))
