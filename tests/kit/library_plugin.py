"""The plugin of the toy library, by the short forms; nothing of the library is imported."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop import Interop
from interop.kit import dense_format, wrapper_format
from interop.plugin import Declaration, Samples, hookimpl
from interop.plugin.advanced import Advanced

DENSE: dict[str, Any] = {
    "name": "library",
    "from_dlpack": "tests.kit.library:from_dlpack",
    "dtypes": {"float32", "float64", "int64", "complex64"},
    "carries": {"noncontiguous", "negative_strides", "broadcast"},
    "grad": "requires_grad",
    "namespace": "tests.kit.library",
    "dtype_type": "tests.kit.library:DType",
}


def with_unit(quantity: Any) -> Any:
    """Return a sample: the same numbers in a unit."""
    return type(quantity)(quantity.magnitude, "m")


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the dense format and the wrapper."""
    return [
        *dense_format("tests.kit.library:Array", **DENSE),
        *wrapper_format(
            "tests.kit.library:Quantity",
            name="quantity",
            unwrap="magnitude",
            rewrap=lambda array, like: type(like)(array, like.unit),
            labelled="unit",
            wraps={"numpy"},
            samples=Samples(variants={"labelled": with_unit}),
        ),
    ]


def _key(x: Any) -> Any:
    """Tell arrays apart that are converted alike."""
    array, traced = x.data, x.requires_grad
    if not array.flags.writeable or min(array.strides, default=1) <= 0:
        return None
    size = array.nbytes.bit_length() >> 1
    return array.dtype, array.ndim, size, array.flags.c_contiguous, traced


def _fill(out: Any, x: Any) -> None:
    out.data[...] = x.data


def with_library(*declared: Declaration) -> Interop:
    """Return an instance with the installed plugins and the library, whose arrays take fast paths."""
    mine = Interop()
    advanced = Advanced(fast_key=_key, address=lambda x: x.data.ctypes.data)
    fast = dense_format("tests.kit.library:Array", **DENSE, advanced=advanced, fill=_fill)
    mine.register(*fast, *list(interop_declarations())[len(fast) :], *declared)
    return mine
