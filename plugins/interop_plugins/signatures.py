"""What `interop.convert` and `interop.converter` return, for static type checkers.

Nothing here runs: the core imports it under ``TYPE_CHECKING`` only. The names stand here and not
in the core because only the plugins know what they stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypedDict, TypeVar, Unpack, overload

if TYPE_CHECKING:
    import cupy
    import cupyx.scipy.sparse as cusparse
    import jax
    import numpy.typing as npt
    import scipy.sparse as sp
    import sparse
    import torch
    from jax.experimental import sparse as jsparse

    from interop.plugin import QuantizedArray

__all__ = ["Convert", "MakeConverter"]

T = TypeVar("T")

Torch = Literal[
    "torch",
    "torch.sparse_coo",
    "torch.sparse_csr",
    "torch.sparse_csc",
    "torch.sparse_bsr",
    "torch.sparse_bsc",
    "torch.quantized",
]
Gcxs = Literal["sparse.gcxs", "sparse.gcxs.csr", "sparse.gcxs.csc", "sparse.gcxs.nd"]
Quantized = Literal["quantized", "quantized.numpy", "quantized.torch", "quantized.cupy"]


class Words(TypedDict, total=False):
    """The keywords that every request may have."""

    dtype: Any
    device: Any
    copy: bool | None
    allow: str | Iterable[str]
    forbid: str | Iterable[str]
    stream: Any


class Out(TypedDict, total=False):
    """The keywords that a request with ``out=`` may have."""

    allow: str | Iterable[str]
    forbid: str | Iterable[str]
    stream: Any


class Convert(Protocol):
    """The type of `interop.convert`."""

    @overload
    def __call__(
        self, x: Any, /, to: Literal["numpy"], **words: Unpack[Words]
    ) -> npt.NDArray[Any]: ...
    @overload
    def __call__(self, x: Any, /, to: Torch, **words: Unpack[Words]) -> torch.Tensor: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["scipy.coo"], **words: Unpack[Words]
    ) -> sp.coo_array: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["scipy.csr"], **words: Unpack[Words]
    ) -> sp.csr_array: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["scipy.csc"], **words: Unpack[Words]
    ) -> sp.csc_array: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["scipy.bsr"], **words: Unpack[Words]
    ) -> sp.bsr_array: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["scipy.dia"], **words: Unpack[Words]
    ) -> sp.dia_array: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["scipy.lil"], **words: Unpack[Words]
    ) -> sp.lil_array: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["scipy.dok"], **words: Unpack[Words]
    ) -> sp.dok_array: ...
    @overload
    def __call__(self, x: Any, /, to: Literal["cupy"], **words: Unpack[Words]) -> cupy.ndarray: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["cupy.coo"], **words: Unpack[Words]
    ) -> cusparse.coo_array: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["cupy.csr"], **words: Unpack[Words]
    ) -> cusparse.csr_array: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["cupy.csc"], **words: Unpack[Words]
    ) -> cusparse.csc_array: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["sparse.coo"], **words: Unpack[Words]
    ) -> sparse.COO: ...
    @overload
    def __call__(self, x: Any, /, to: Gcxs, **words: Unpack[Words]) -> sparse.GCXS: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["sparse.dok"], **words: Unpack[Words]
    ) -> sparse.DOK: ...
    @overload
    def __call__(self, x: Any, /, to: Literal["jax"], **words: Unpack[Words]) -> jax.Array: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["jax.bcoo"], **words: Unpack[Words]
    ) -> jsparse.BCOO: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["jax.bcsr"], **words: Unpack[Words]
    ) -> jsparse.BCSR: ...
    @overload
    def __call__(self, x: Any, /, to: Quantized, **words: Unpack[Words]) -> QuantizedArray: ...
    @overload
    def __call__(self, x: Any, /, to: type[T], **words: Unpack[Words]) -> T: ...
    @overload
    def __call__(self, x: Any, /, *, like: T, **words: Unpack[Words]) -> T: ...
    @overload
    def __call__(self, x: Any, /, *, out: T, **words: Unpack[Out]) -> T: ...
    @overload
    def __call__(
        self,
        x: Any,
        /,
        to: Any = None,
        *,
        like: Any = None,
        out: Any = None,
        **words: Unpack[Words],
    ) -> Any: ...


class MakeConverter(Protocol):
    """The type of `interop.converter`."""

    @overload
    def __call__(
        self, to: Literal["numpy"], **words: Unpack[Words]
    ) -> Callable[[Any], npt.NDArray[Any]]: ...
    @overload
    def __call__(self, to: Torch, **words: Unpack[Words]) -> Callable[[Any], torch.Tensor]: ...
    @overload
    def __call__(
        self, to: Literal["scipy.coo"], **words: Unpack[Words]
    ) -> Callable[[Any], sp.coo_array]: ...
    @overload
    def __call__(
        self, to: Literal["scipy.csr"], **words: Unpack[Words]
    ) -> Callable[[Any], sp.csr_array]: ...
    @overload
    def __call__(
        self, to: Literal["scipy.csc"], **words: Unpack[Words]
    ) -> Callable[[Any], sp.csc_array]: ...
    @overload
    def __call__(
        self, to: Literal["scipy.bsr"], **words: Unpack[Words]
    ) -> Callable[[Any], sp.bsr_array]: ...
    @overload
    def __call__(
        self, to: Literal["scipy.dia"], **words: Unpack[Words]
    ) -> Callable[[Any], sp.dia_array]: ...
    @overload
    def __call__(
        self, to: Literal["scipy.lil"], **words: Unpack[Words]
    ) -> Callable[[Any], sp.lil_array]: ...
    @overload
    def __call__(
        self, to: Literal["scipy.dok"], **words: Unpack[Words]
    ) -> Callable[[Any], sp.dok_array]: ...
    @overload
    def __call__(
        self, to: Literal["cupy"], **words: Unpack[Words]
    ) -> Callable[[Any], cupy.ndarray]: ...
    @overload
    def __call__(
        self, to: Literal["cupy.coo"], **words: Unpack[Words]
    ) -> Callable[[Any], cusparse.coo_array]: ...
    @overload
    def __call__(
        self, to: Literal["cupy.csr"], **words: Unpack[Words]
    ) -> Callable[[Any], cusparse.csr_array]: ...
    @overload
    def __call__(
        self, to: Literal["cupy.csc"], **words: Unpack[Words]
    ) -> Callable[[Any], cusparse.csc_array]: ...
    @overload
    def __call__(
        self, to: Literal["sparse.coo"], **words: Unpack[Words]
    ) -> Callable[[Any], sparse.COO]: ...
    @overload
    def __call__(self, to: Gcxs, **words: Unpack[Words]) -> Callable[[Any], sparse.GCXS]: ...
    @overload
    def __call__(
        self, to: Literal["sparse.dok"], **words: Unpack[Words]
    ) -> Callable[[Any], sparse.DOK]: ...
    @overload
    def __call__(
        self, to: Literal["jax"], **words: Unpack[Words]
    ) -> Callable[[Any], jax.Array]: ...
    @overload
    def __call__(
        self, to: Literal["jax.bcoo"], **words: Unpack[Words]
    ) -> Callable[[Any], jsparse.BCOO]: ...
    @overload
    def __call__(
        self, to: Literal["jax.bcsr"], **words: Unpack[Words]
    ) -> Callable[[Any], jsparse.BCSR]: ...
    @overload
    def __call__(
        self, to: Quantized, **words: Unpack[Words]
    ) -> Callable[[Any], QuantizedArray]: ...
    @overload
    def __call__(self, to: type[T], **words: Unpack[Words]) -> Callable[[Any], T]: ...
    @overload
    def __call__(self, *, like: T, **words: Unpack[Words]) -> Callable[[Any], T]: ...
    @overload
    def __call__(
        self, to: Any = None, *, like: Any = None, **words: Unpack[Words]
    ) -> Callable[[Any], Any]: ...
