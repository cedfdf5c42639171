"""The plugin of the toy library, by the short forms; nothing of the library is imported."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from interop.plugin import Declaration, Samples, dense_format, hookimpl, wrapper_format

DENSE: dict[str, Any] = {
    "name": "library",
    "from_dlpack": "tests.toolkit.library:from_dlpack",
    "dtypes": {"float32", "float64", "int64", "complex64"},
    "carries": {"noncontiguous", "negative_strides", "broadcast"},
    "grad": "requires_grad",
    "namespace": "tests.toolkit.library",
    "dtype_type": "tests.toolkit.library:DType",
}


def with_unit(quantity: Any) -> Any:
    """Return a sample: the same numbers in a unit."""
    return type(quantity)(quantity.magnitude, "m")


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the dense format and the wrapper."""
    return [
        *dense_format("tests.toolkit.library:Array", **DENSE),
        *wrapper_format(
            "tests.toolkit.library:Quantity",
            name="quantity",
            unwrap="magnitude",
            rewrap=lambda array, like: type(like)(array, like.unit),
            labelled="unit",
            wraps={"numpy"},
            samples=Samples(variants={"labelled": with_unit}),
        ),
    ]
