"""The plugin of the toy library, by the short forms; nothing of the library is imported."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.kit import dense_format, wrapper_format
from interop.plugin import Declaration, Samples, hookimpl

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
