"""nvmath's universal sparse tensor: a view of a sparse matrix of SciPy, CuPy or torch."""

from __future__ import annotations

from functools import partial
from typing import Any

from interop.kit import COMPLEX, INTEGERS, REALS
from interop.plugin import Conversion, Cost, Declaration, Declined, Format, Wrapper, hookimpl

INTEROP_API = 1  # the version of interop.plugin that this was written for

_FORMATS = ("scipy.csr", "scipy.csc", "scipy.bsr", "torch.sparse_csr", "torch.sparse_csc")


def view(value: Any) -> Any:
    """Return the universal sparse tensor over the arrays of a matrix."""
    from nvmath.sparse.ust import Tensor

    try:
        return Tensor.from_package(value)
    except TypeError as reason:  # it has no elements, for one
        raise Declined(f"nvmath does not view it: {reason}") from reason


@hookimpl
def interop_declarations() -> list[Declaration]:
    """Return the format, which is as sparse as what it views, and the ways into it."""
    format_ = Format(
        "nvmath.ust",
        types=("nvmath.sparse.ust:Tensor",),
        aliases=("nvmath",),
        dtypes=INTEGERS | REALS | COMPLEX,
        devices=("cpu", "cuda"),
        wrapper=Wrapper(lambda value: value.to_package(), 1e-5),
        requires="nvmath",
        install="pip install nvmath-python",
    )
    make = partial(Conversion, target="nvmath.ust", function=view, devices=None, cost=Cost(5e-5))
    return [format_, *(make(source, name=f"view_{source}") for source in _FORMATS)]
