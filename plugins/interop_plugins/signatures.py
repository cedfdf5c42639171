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
    import dask.array as da
    import jax
    import mlx.core as mx
    import numpy.typing as npt
    import onnxruntime
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import scipy.sparse as sp
    import sparse
    import tensorflow as tf
    import torch
    import xarray as xr
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
    "torchao",
    "torchao.int8",
    "torchao.float8",
    "torchao.int4",
    "torchao.intx",
]
Dask = Literal[
    "dask",
    "dask.torch",
    "dask.cupy",
    "dask.scipy",
    "dask.scipy.csr",
    "dask.scipy.csc",
    "dask.scipy.coo",
    "dask.sparse.coo",
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
    def __call__(self, x: Any, /, to: Literal["pyarrow"], **words: Unpack[Words]) -> pa.Array: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["pyarrow.chunked_array"], **words: Unpack[Words]
    ) -> pa.ChunkedArray: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["pyarrow.fixed_shape_tensor"], **words: Unpack[Words]
    ) -> pa.FixedShapeTensorArray: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["pyarrow.fixed_size_list"], **words: Unpack[Words]
    ) -> pa.FixedSizeListArray: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["pyarrow.scalar"], **words: Unpack[Words]
    ) -> pa.Scalar: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["pyarrow.tensor"], **words: Unpack[Words]
    ) -> pa.Tensor: ...
    @overload
    def __call__(self, x: Any, /, to: Dask, **words: Unpack[Words]) -> da.Array: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["tensorflow"], **words: Unpack[Words]
    ) -> tf.Tensor: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["tensorflow.sparse"], **words: Unpack[Words]
    ) -> tf.SparseTensor: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["pandas.series"], **words: Unpack[Words]
    ) -> pd.Series: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["pandas.dataframe"], **words: Unpack[Words]
    ) -> pd.DataFrame: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["pandas.index"], **words: Unpack[Words]
    ) -> pd.Index: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["polars.series"], **words: Unpack[Words]
    ) -> pl.Series: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["polars.dataframe"], **words: Unpack[Words]
    ) -> pl.DataFrame: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["xarray.variable"], **words: Unpack[Words]
    ) -> xr.Variable: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["xarray.dataarray"], **words: Unpack[Words]
    ) -> xr.DataArray: ...
    @overload
    def __call__(self, x: Any, /, to: Quantized, **words: Unpack[Words]) -> QuantizedArray: ...
    @overload
    def __call__(self, x: Any, /, to: Literal["mlx"], **words: Unpack[Words]) -> mx.array: ...
    @overload
    def __call__(
        self, x: Any, /, to: Literal["onnxruntime"], **words: Unpack[Words]
    ) -> onnxruntime.OrtValue: ...
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
        self, to: Literal["pyarrow"], **words: Unpack[Words]
    ) -> Callable[[Any], pa.Array]: ...
    @overload
    def __call__(
        self, to: Literal["pyarrow.chunked_array"], **words: Unpack[Words]
    ) -> Callable[[Any], pa.ChunkedArray]: ...
    @overload
    def __call__(
        self, to: Literal["pyarrow.fixed_shape_tensor"], **words: Unpack[Words]
    ) -> Callable[[Any], pa.FixedShapeTensorArray]: ...
    @overload
    def __call__(
        self, to: Literal["pyarrow.fixed_size_list"], **words: Unpack[Words]
    ) -> Callable[[Any], pa.FixedSizeListArray]: ...
    @overload
    def __call__(
        self, to: Literal["pyarrow.scalar"], **words: Unpack[Words]
    ) -> Callable[[Any], pa.Scalar]: ...
    @overload
    def __call__(
        self, to: Literal["pyarrow.tensor"], **words: Unpack[Words]
    ) -> Callable[[Any], pa.Tensor]: ...
    @overload
    def __call__(self, to: Dask, **words: Unpack[Words]) -> Callable[[Any], da.Array]: ...
    @overload
    def __call__(
        self, to: Literal["tensorflow"], **words: Unpack[Words]
    ) -> Callable[[Any], tf.Tensor]: ...
    @overload
    def __call__(
        self, to: Literal["tensorflow.sparse"], **words: Unpack[Words]
    ) -> Callable[[Any], tf.SparseTensor]: ...
    @overload
    def __call__(
        self, to: Literal["pandas.series"], **words: Unpack[Words]
    ) -> Callable[[Any], pd.Series]: ...
    @overload
    def __call__(
        self, to: Literal["pandas.dataframe"], **words: Unpack[Words]
    ) -> Callable[[Any], pd.DataFrame]: ...
    @overload
    def __call__(
        self, to: Literal["pandas.index"], **words: Unpack[Words]
    ) -> Callable[[Any], pd.Index]: ...
    @overload
    def __call__(
        self, to: Literal["polars.series"], **words: Unpack[Words]
    ) -> Callable[[Any], pl.Series]: ...
    @overload
    def __call__(
        self, to: Literal["polars.dataframe"], **words: Unpack[Words]
    ) -> Callable[[Any], pl.DataFrame]: ...
    @overload
    def __call__(
        self, to: Literal["xarray.variable"], **words: Unpack[Words]
    ) -> Callable[[Any], xr.Variable]: ...
    @overload
    def __call__(
        self, to: Literal["xarray.dataarray"], **words: Unpack[Words]
    ) -> Callable[[Any], xr.DataArray]: ...
    @overload
    def __call__(
        self, to: Quantized, **words: Unpack[Words]
    ) -> Callable[[Any], QuantizedArray]: ...
    @overload
    def __call__(self, to: Literal["mlx"], **words: Unpack[Words]) -> Callable[[Any], mx.array]: ...
    @overload
    def __call__(
        self, to: Literal["onnxruntime"], **words: Unpack[Words]
    ) -> Callable[[Any], onnxruntime.OrtValue]: ...
    @overload
    def __call__(self, to: type[T], **words: Unpack[Words]) -> Callable[[Any], T]: ...
    @overload
    def __call__(self, *, like: T, **words: Unpack[Words]) -> Callable[[Any], T]: ...
    @overload
    def __call__(
        self, to: Any = None, *, like: Any = None, **words: Unpack[Words]
    ) -> Callable[[Any], Any]: ...
