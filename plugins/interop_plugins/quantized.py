"""Quantized arrays that belong to no framework, with components of NumPy's, torch's or CuPy's.

A `QuantizedArray` is dequantized by the framework its components are in. The arithmetic is torch's
own, to the last bit: of one scale for all, the difference to the zero point is exact and the
product is of the result's precision; of a scale per channel, the difference is of the result's
precision and the product is of the wider of that and the scale's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import prod
from typing import Any, NamedTuple

from interop.errors import UnknownValueError
from interop.plugin import (
    Conversion,
    Cost,
    Declined,
    Format,
    Parts,
    QuantizedArray,
    Spec,
    hookimpl,
    spread,
)

__all__ = ["interop_conversions", "interop_formats"]

_NONE: frozenset[str] = frozenset()
_GRAD = frozenset({"grad"})
_STRIDED = frozenset({"noncontiguous", "broadcast", "unaligned"})
_MEMORY = {
    "numpy": _STRIDED | {"readonly", "immutable", "negative_strides", "byteswapped"},
    "torch": _STRIDED,
    "cupy": _STRIDED | {"negative_strides"},
}
_DEVICES = {"numpy": ("cpu",), "torch": ("cpu", "cuda", "mps", "xpu"), "cupy": ("cuda",)}
_INSTALL = {"numpy": "pip install numpy", "torch": "pip install torch"}

_DTYPES = frozenset({"float16", "bfloat16", "float32", "float64"})
_NUMPY_DTYPES = _DTYPES - {"bfloat16"}

#: Elements that are dequantized at a time: of NumPy what the caches hold twice. torch divides each
#: operation among threads, whose meeting at its end has to be worth while.
_PIECE, _THREADED_PIECE, _DEVICE_PIECE = 2**16, 2**22, 2**26


def describe(value: QuantizedArray) -> Spec:
    """Return the spec of a quantized array, named after the framework of its components.

    Parameters
    ----------
    value : QuantizedArray

    Returns
    -------
    Spec

    Raises
    ------
    UnknownValueError
        The codes are of a framework whose arrays cannot be components.
    """
    codes = value.codes
    parts = [part for part in (codes, value.scale, value.zero_point) if part is not None]
    framework = _framework(codes)
    if framework not in _MEMORY:
        msg = (
            f"a QuantizedArray with codes of {type(codes).__module__}.{type(codes).__qualname__} "
            "is not known; give it arrays of numpy, torch or cupy."
        )
        raise UnknownValueError(msg)
    traits = _NONE.union(*(_traits(part) for part in parts))
    if any(_framework(part) != framework for part in parts):
        traits |= {"mixed_components"}
    return Spec(
        f"quantized.{framework}",
        value.dtype,
        _device(codes),
        value.shape,
        traits,
        sum(part.nbytes for part in parts),
        code_dtype=_dtype_name(codes),
    )


def _framework(part: Any) -> str:
    return type(part).__module__.partition(".")[0]


def _dtype_name(part: Any) -> str:
    return str(part.dtype).removeprefix("torch.")


def _device(part: Any) -> str:
    device = getattr(part, "device", "cpu")
    index = getattr(device, "id", None)  # CuPy's device does not say of which type it is
    return str(device) if index is None else f"cuda:{index}"


def _traits(part: Any) -> frozenset[str]:
    """Return the traits of the memory of one component."""
    if _framework(part) == "torch":
        found = {"noncontiguous": not part.is_contiguous(), "grad": part.requires_grad}
    elif not hasattr(part, "__setitem__"):  # an array scalar, which is copied
        return _NONE
    else:
        steps = [step for n, step in zip(part.shape, part.strides, strict=True) if n > 1]
        flags = part.flags
        found = {
            "noncontiguous": not flags.c_contiguous,
            "negative_strides": min(steps, default=0) < 0,
            "broadcast": 0 in steps,
            "byteswapped": not part.dtype.isnative,
            "readonly": not getattr(flags, "writeable", True),
            "unaligned": not getattr(flags, "aligned", True),
        }
    return frozenset(trait for trait, holds in found.items() if holds)


def take_apart(value: QuantizedArray) -> Parts:
    """Return the components, which are the very arrays of the value."""
    arrays = {
        role: part if part is None or hasattr(part, "__setitem__") else _as_array(part)
        for role, part in (
            ("codes", value.codes),
            ("scale", value.scale),
            ("zero_point", value.zero_point),
        )
    }
    facts = {"axis": value.axis, "block_size": value.block_size, "dtype": value.dtype}
    return Parts(value.shape, arrays, facts)


def _as_array(scalar: Any) -> Any:
    import numpy as np

    return np.asarray(scalar)


def assemble(parts: Parts) -> QuantizedArray:
    """Return the quantized array with the given components."""
    arrays, facts = parts.arrays, parts.facts
    return QuantizedArray(
        arrays["codes"],
        arrays["scale"],
        arrays["zero_point"],
        axis=facts["axis"],
        block_size=facts["block_size"],
        dtype=facts["dtype"],
    )


def detach(value: QuantizedArray) -> QuantizedArray:
    """Return the quantized array with components outside any autograd graph."""
    parts = take_apart(value)
    arrays = {role: part if part is None else part.detach() for role, part in parts.arrays.items()}
    return assemble(parts._replace(arrays=arrays))


def require_grad(value: QuantizedArray) -> QuantizedArray:
    """Return the quantized array with a scale that is a leaf of an autograd graph: a sample."""
    parts = take_apart(value)
    scale = parts.arrays["scale"].detach().requires_grad_()
    return assemble(parts._replace(arrays={**parts.arrays, "scale": scale}))


class _Framework(NamedTuple):
    """What of a framework the arithmetic needs, beyond the operators of its arrays."""

    empty: Callable[[tuple[int, ...], str], Any]
    arange: Callable[..., Any]
    piece: int
    spread: Callable[[Callable[[int, int], None], int, int], None]


def _at_once(work: Callable[[int, int], None], count: int, nbytes: int) -> None:
    """Do all of the work here, because the framework has threads of its own."""
    work(0, count)


def _quiet(work: Callable[[int, int], None], count: int, nbytes: int) -> None:
    """Cut the work up among threads, each of which has its own state of NumPy's errors."""
    import numpy as np

    def silently(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            work(start, stop)

    spread(silently, count, nbytes)


def dequantize_numpy(value: QuantizedArray, *, dtype: str) -> Any:
    """Return the real numbers of NumPy codes as a NumPy array."""
    out = _empty_numpy(value.shape, dtype)
    dequantize_into_numpy(out, value)
    return out


def dequantize_into_numpy(out: Any, value: QuantizedArray) -> None:
    """Write the real numbers of NumPy codes into an array of real numbers."""
    import numpy as np

    if _dtype_name(out) not in _DTYPES:
        msg = f"quantized arrays stand for real numbers, not for {out.dtype}"
        raise Declined(msg)
    with np.errstate(all="ignore"):
        xp = _Framework(_empty_numpy, np.arange, _PIECE, _quiet)
        _dequantize(value, _dtype_name(out), xp, out)


def dequantize_torch(value: QuantizedArray, *, dtype: str) -> Any:
    """Return the real numbers of torch codes as a tensor on their device."""
    import torch

    device = value.codes.device
    if device.type != "cpu":

        def empty(shape: tuple[int, ...], name: str) -> Any:
            return torch.empty(shape, dtype=getattr(torch, name), device=device)

        arange = partial(torch.arange, device=device)
        return _dequantize(value, dtype, _Framework(empty, arange, _DEVICE_PIECE, _at_once))
    xp = _Framework(_empty_torch, torch.arange, _THREADED_PIECE, _at_once)
    return _dequantize(value, dtype, xp)


def dequantize_cupy(value: QuantizedArray, *, dtype: str) -> Any:
    """Return the real numbers of CuPy codes as a CuPy array."""
    import cupy

    with value.codes.device:
        xp = _Framework(cupy.empty, cupy.arange, _DEVICE_PIECE, _at_once)
        return _dequantize(value, dtype, xp)


def _empty_numpy(shape: tuple[int, ...], dtype: str) -> Any:
    import numpy as np

    if dtype in _NUMPY_DTYPES:
        return np.empty(shape, dtype)
    import ml_dtypes

    return np.empty(shape, getattr(ml_dtypes, dtype))


def _empty_torch(shape: tuple[int, ...], dtype: str) -> Any:
    """Return an empty tensor in memory of NumPy's, which comes in huge pages where it is large."""
    import torch

    if dtype in _NUMPY_DTYPES:
        return torch.from_numpy(_empty_numpy(shape, dtype))
    return torch.empty(shape, dtype=getattr(torch, dtype), device="cpu")


class _Arithmetic(NamedTuple):
    """The dtypes in which the difference, the product and what is made of them are rounded."""

    difference: str
    product: str
    working: str


def _arithmetic(value: QuantizedArray) -> _Arithmetic:
    """Return dtypes that give torch's numbers, and of those the ones that are fastest."""
    working = "float64" if value.dtype == "float64" else "float32"
    codes, zero_point = value.codes.dtype.itemsize, value.zero_point
    if value.axis is None and codes > 2:  # codes of 32 bits have more digits than float32
        return _Arithmetic("float64", working, working)
    whole = zero_point is None or "int" in _dtype_name(zero_point)
    if value.axis is not None and codes == 1 and whole and _dtype_name(value.scale) == "float64":
        return _Arithmetic("float64", "float64", working)  # no difference needs to be rounded
    return _Arithmetic(working, working, working)


def _dequantize(value: QuantizedArray, dtype: str, xp: _Framework, out: Any = None) -> Any:
    """Write the real numbers piece by piece, so that what is computed on stays in the caches."""
    arithmetic = _arithmetic(value)
    parameters = _parameters(value, arithmetic.working, xp)
    out = xp.empty(value.shape, dtype) if out is None else out
    pieces = list(_pieces(value.shape, xp.piece))

    def work(start: int, stop: int) -> None:
        for index in pieces[start:stop]:
            zero_point, scale = (_along(one, index, value, xp) for one in parameters)
            _write(out[index], value.codes[index], zero_point, scale, arithmetic, xp)

    xp.spread(work, len(pieces), out.nbytes)
    return out


def _write(  # noqa: PLR0917 - made in one place
    part: Any, codes: Any, zero_point: Any, scale: Any, rounding: _Arithmetic, xp: _Framework
) -> None:
    """Write the real numbers of a piece into `part`."""
    working = rounding.working
    direct = _dtype_name(part) == working
    reals = part if direct else xp.empty(part.shape, working)
    wide = reals if rounding.difference == working else xp.empty(part.shape, rounding.difference)
    wide[...] = codes
    if zero_point is not None:
        wide -= zero_point
    if rounding.product == rounding.difference:
        wide *= scale
    if wide is not reals:
        reals[...] = wide
    if rounding.product != rounding.difference:
        reals *= scale
    if not direct:
        part[...] = reals


def _parameters(value: QuantizedArray, working: str, xp: _Framework) -> tuple[Any, Any]:
    """Return zero point and scale as numbers, or as arrays of dtypes fit to compute with."""
    zero_point, scale = value.zero_point, value.scale
    if value.axis is None:
        return (None if zero_point is None else float(zero_point)), float(scale)
    if zero_point is not None:
        zero_point = _cast(zero_point, working, xp)
    if _dtype_name(scale) not in ("float32", "float64"):
        scale = _cast(scale, working, xp)
    return zero_point, scale


def _cast(part: Any, dtype: str, xp: _Framework) -> Any:
    result = xp.empty(tuple(part.shape), dtype)
    result[...] = part
    return result


def _along(part: Any, index: tuple[Any, ...], value: QuantizedArray, xp: _Framework) -> Any:
    """Return what of a scale or zero point belongs to the piece of the codes at `index`."""
    axis, block = value.axis, value.block_size
    if part is None or axis is None:
        return part
    whole = slice(None)
    index = (*index, *(whole,) * (value.ndim - len(index)))
    if block is None:
        shape = [1] * value.ndim
        shape[axis] = -1
        return part.reshape(shape)[
            tuple(index[i] if i == axis else whole for i in range(len(index)))
        ]
    start, stop, _ = index[axis].indices(value.shape[axis])
    blocks = xp.arange(start, stop) // block
    return part[(*index[:axis], blocks, *index[axis + 1 :])]


def _pieces(shape: tuple[int, ...], step: int) -> Iterator[tuple[Any, ...]]:
    """Yield the indices that cut an array of `shape` into pieces of about `step` elements."""
    if not shape:
        yield (...,)
        return
    inner = prod(shape[1:])
    if inner > step:
        for start in range(shape[0]):
            for rest in _pieces(shape[1:], step):
                yield (slice(start, start + 1), *rest)
        return
    rows = max(1, step // max(inner, 1))
    for start in range(0, shape[0], rows):
        yield (slice(start, min(start + rows, shape[0])),)


def memory(value: QuantizedArray) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory of each component."""
    arrays = take_apart(value).arrays.values()
    return tuple(_extent(part) for part in arrays if part is not None and prod(part.shape))


def _extent(part: Any) -> tuple[int, int]:
    framework = _framework(part)
    size = part.dtype.itemsize
    if framework == "torch":
        address, strides = part.data_ptr(), [step * size for step in part.stride()]
    else:
        address = part.ctypes.data if framework == "numpy" else part.data.ptr
        strides = part.strides
    reach = [(n - 1) * step for n, step in zip(part.shape, strides, strict=True)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    return address + low, high - low + size


@hookimpl
def interop_formats() -> Iterable[Format]:
    """Return one format for each framework that the components may be in."""
    return [
        Format(
            f"quantized.{framework}",
            types=("interop._quantized:QuantizedArray",),
            describe=describe,
            dtypes=_DTYPES,
            devices=_DEVICES[framework],
            carries=memory_traits | (_GRAD if framework == "torch" else _NONE),
            requires=framework,
            install=_INSTALL.get(framework, "pip install cupy-cuda13x"),
            layout="affine",
            components=framework,
            roles={"codes": "code_dtype", "scale": "float64", "zero_point": "int64"},
            take_apart=take_apart,
            assemble=assemble,
            memory=memory,
            variants={"grad": require_grad} if framework == "torch" else {},
        )
        for framework, memory_traits in _MEMORY.items()
    ]


@hookimpl
def interop_conversions() -> Iterable[Conversion]:
    """Return the ways to real numbers, within each framework."""
    yield Conversion(
        "quantized.torch",
        "quantized.torch",
        detach,
        devices=None,
        takes=_MEMORY["torch"],
        requires=_GRAD,
        drops=_GRAD,
        effects=frozenset({"detach"}),
    )
    for framework, function, latency, bandwidth in (
        ("numpy", dequantize_numpy, 1e-5, 1e10),
        ("torch", dequantize_torch, 2e-5, 7e9),
        ("cupy", dequantize_cupy, 1e-4, 2e11),
    ):
        yield Conversion(
            f"quantized.{framework}",
            framework,
            function,
            devices=None,
            takes=_MEMORY[framework],
            changes=frozenset({"dtype"}),
            to_dtypes=_DTYPES if framework != "cupy" else _NUMPY_DTYPES,
            effects=frozenset({"dequantize"}),
            cost=Cost(latency, bandwidth),
            into=dequantize_into_numpy if framework == "numpy" else None,
        )
