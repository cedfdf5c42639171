"""Coordinates taken in from SciPy, and shared with torch."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import TYPE_CHECKING

from interop.kit import quietly
from interop.plugin import Declined

from .canonical import is_canonical
from .components import canonical_coo, coo_array

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    import torch

    from .canonical import Sparse

    SciPyArray: TypeAlias = Any

_COUNTABLE = 2**63
_UNCHECKED = "Sparse invariant checks are implicitly disabled"


def from_scipy_coo(value: SciPyArray) -> Sparse:
    """Return a sorted copy of SciPy's coo array, with duplicates summed."""
    import numpy as np

    return canonical_coo(np.stack(value.coords), value.data, value.shape, {})


def from_torch_coo(value: torch.Tensor) -> Sparse:
    """Return a COO array over the memory of a coalesced torch tensor.

    Raises
    ------
    Declined
        It is not coalesced, although torch has noted that it is.
    """
    result = coo_array(value._indices().numpy(), value._values().numpy(), tuple(value.shape))
    if not is_canonical(result):  # a look at the coordinates that later steps need not repeat
        msg = "it is flagged as coalesced, but its coordinates are not sorted, or not distinct"
        raise Declined(msg)
    return result


def to_torch_coo(value: Sparse) -> torch.Tensor:
    """Return a torch tensor over the memory of a COO array of 64-bit coordinates."""
    import torch

    if prod(value.shape) >= _COUNTABLE:
        msg = f"torch cannot count the elements of the shape {value.shape} in 64 bits"
        raise Declined(msg)
    # Where two of C's types have one width, torch knows one of them, which NumPy prefers as well.
    numbers = value.data.view(value.data.dtype.str)
    make = partial(
        torch.sparse_coo_tensor,
        torch.from_numpy(value.coords),
        torch.from_numpy(numbers),
        value.shape,
        device="cpu",  # and not torch's default
        is_coalesced=True,
        check_invariants=False,
    )
    quietly(_UNCHECKED, make)  # torch 2.11 warns once, although it is told not to check
    tensor: torch.Tensor = make()
    return tensor
