"""What `interop.convert` and `interop.converter` return, for static type checkers.

Nothing here runs: the core imports it under ``TYPE_CHECKING`` only. The names stand here and not
in the core because only the plugins know what they stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, overload

if TYPE_CHECKING:
    import cupy
    import cupyx.scipy.sparse
    import numpy.typing as npt
    import scipy.sparse
    import torch

    from interop import QuantizedArray

__all__ = ["Convert", "MakeConverter"]

T = TypeVar("T")
Names = str | Iterable[str]


class Convert(Protocol):
    """The type of `interop.convert`."""

    @overload
    def __call__(
        self,
        x: Any,
        /,
        to: Literal["numpy"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> npt.NDArray[Any]: ...
    @overload
    def __call__(
        self,
        x: Any,
        /,
        to: Literal[
            "torch",
            "torch.sparse_coo",
            "torch.sparse_csr",
            "torch.sparse_csc",
            "torch.sparse_bsr",
            "torch.sparse_bsc",
            "torch.quantized",
        ],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> torch.Tensor: ...
    @overload
    def __call__(
        self,
        x: Any,
        /,
        to: Literal["scipy.coo"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> scipy.sparse.coo_array: ...
    @overload
    def __call__(
        self,
        x: Any,
        /,
        to: Literal["scipy.csr"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> scipy.sparse.csr_array: ...
    @overload
    def __call__(
        self,
        x: Any,
        /,
        to: Literal["scipy.csc"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> scipy.sparse.csc_array: ...
    @overload
    def __call__(
        self,
        x: Any,
        /,
        to: Literal["scipy.bsr"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> scipy.sparse.bsr_array: ...
    @overload
    def __call__(
        self,
        x: Any,
        /,
        to: Literal["scipy.dia"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> scipy.sparse.dia_array: ...
    @overload
    def __call__(
        self,
        x: Any,
        /,
        to: Literal["scipy.lil"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> scipy.sparse.lil_array: ...
    @overload
    def __call__(
        self,
        x: Any,
        /,
        to: Literal["scipy.dok"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> scipy.sparse.dok_array: ...
    @overload
    def __call__(
        self,
        x: Any,
        /,
        to: Literal["cupy"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> cupy.ndarray: ...
    @overload
    def __call__(
        self,
        x: Any,
        /,
        to: Literal["cupy.coo"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> cupyx.scipy.sparse.coo_matrix: ...
    @overload
    def __call__(
        self,
        x: Any,
        /,
        to: Literal["cupy.csr"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> cupyx.scipy.sparse.csr_matrix: ...
    @overload
    def __call__(
        self,
        x: Any,
        /,
        to: Literal["cupy.csc"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> cupyx.scipy.sparse.csc_matrix: ...
    @overload
    def __call__(
        self,
        x: Any,
        /,
        to: Literal["quantized", "quantized.numpy", "quantized.torch", "quantized.cupy"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> QuantizedArray: ...
    @overload
    def __call__(
        self,
        x: Any,
        /,
        to: type[T],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> T: ...
    @overload
    def __call__(
        self,
        x: Any,
        /,
        to: None = None,
        *,
        like: T,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> T: ...
    @overload
    def __call__(
        self,
        x: Any,
        /,
        to: None = None,
        *,
        out: T,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> T: ...
    @overload
    def __call__(
        self,
        x: Any,
        /,
        to: Any = None,
        *,
        like: Any = None,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        out: Any = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> Any: ...


class MakeConverter(Protocol):
    """The type of `interop.converter`."""

    @overload
    def __call__(
        self,
        to: Literal["numpy"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> Callable[[Any], npt.NDArray[Any]]: ...
    @overload
    def __call__(
        self,
        to: Literal[
            "torch",
            "torch.sparse_coo",
            "torch.sparse_csr",
            "torch.sparse_csc",
            "torch.sparse_bsr",
            "torch.sparse_bsc",
            "torch.quantized",
        ],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> Callable[[Any], torch.Tensor]: ...
    @overload
    def __call__(
        self,
        to: Literal["scipy.coo"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> Callable[[Any], scipy.sparse.coo_array]: ...
    @overload
    def __call__(
        self,
        to: Literal["scipy.csr"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> Callable[[Any], scipy.sparse.csr_array]: ...
    @overload
    def __call__(
        self,
        to: Literal["scipy.csc"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> Callable[[Any], scipy.sparse.csc_array]: ...
    @overload
    def __call__(
        self,
        to: Literal["scipy.bsr"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> Callable[[Any], scipy.sparse.bsr_array]: ...
    @overload
    def __call__(
        self,
        to: Literal["scipy.dia"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> Callable[[Any], scipy.sparse.dia_array]: ...
    @overload
    def __call__(
        self,
        to: Literal["scipy.lil"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> Callable[[Any], scipy.sparse.lil_array]: ...
    @overload
    def __call__(
        self,
        to: Literal["scipy.dok"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> Callable[[Any], scipy.sparse.dok_array]: ...
    @overload
    def __call__(
        self,
        to: Literal["cupy"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> Callable[[Any], cupy.ndarray]: ...
    @overload
    def __call__(
        self,
        to: Literal["cupy.coo"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> Callable[[Any], cupyx.scipy.sparse.coo_matrix]: ...
    @overload
    def __call__(
        self,
        to: Literal["cupy.csr"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> Callable[[Any], cupyx.scipy.sparse.csr_matrix]: ...
    @overload
    def __call__(
        self,
        to: Literal["cupy.csc"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> Callable[[Any], cupyx.scipy.sparse.csc_matrix]: ...
    @overload
    def __call__(
        self,
        to: Literal["quantized", "quantized.numpy", "quantized.torch", "quantized.cupy"],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> Callable[[Any], QuantizedArray]: ...
    @overload
    def __call__(
        self,
        to: type[T],
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> Callable[[Any], T]: ...
    @overload
    def __call__(
        self,
        to: None = None,
        *,
        like: T,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> Callable[[Any], T]: ...
    @overload
    def __call__(
        self,
        to: Any = None,
        *,
        like: Any = None,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: Names = (),
        forbid: Names = (),
        stream: Any = None,
    ) -> Callable[[Any], Any]: ...
