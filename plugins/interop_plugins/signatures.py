"""What `interop.convert` and `interop.converter` return, for static type checkers.

Nothing here runs: only the stub of `interop` imports it. The names of formats stand here and not in
the core because only the plugins know what they stand for.
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

    from interop_plugins.quantized.array import QuantizedArray

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


class Keywords(TypedDict, total=False):
    """The keywords that every request may have."""

    dtype: object
    device: object
    copy: bool | None
    allow: str | Iterable[str]
    forbid: str | Iterable[str]
    stream: object


class OutKeywords(TypedDict, total=False):
    """The keywords that a request with ``out=`` may have."""

    allow: str | Iterable[str]
    forbid: str | Iterable[str]
    stream: object


class Convert(Protocol):
    """The type of `interop.convert`."""

    @overload
    def __call__(
        self, x: object, /, to: Literal["numpy"], **keywords: Unpack[Keywords]
    ) -> npt.NDArray[Any]: ...
    @overload
    def __call__(self, x: object, /, to: Torch, **keywords: Unpack[Keywords]) -> torch.Tensor: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["scipy.coo"], **keywords: Unpack[Keywords]
    ) -> sp.coo_array: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["scipy.csr"], **keywords: Unpack[Keywords]
    ) -> sp.csr_array: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["scipy.csc"], **keywords: Unpack[Keywords]
    ) -> sp.csc_array: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["scipy.bsr"], **keywords: Unpack[Keywords]
    ) -> sp.bsr_array: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["scipy.dia"], **keywords: Unpack[Keywords]
    ) -> sp.dia_array: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["scipy.lil"], **keywords: Unpack[Keywords]
    ) -> sp.lil_array: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["scipy.dok"], **keywords: Unpack[Keywords]
    ) -> sp.dok_array: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["cupy"], **keywords: Unpack[Keywords]
    ) -> cupy.ndarray: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["cupy.coo"], **keywords: Unpack[Keywords]
    ) -> cusparse.coo_array: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["cupy.csr"], **keywords: Unpack[Keywords]
    ) -> cusparse.csr_array: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["cupy.csc"], **keywords: Unpack[Keywords]
    ) -> cusparse.csc_array: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["sparse.coo"], **keywords: Unpack[Keywords]
    ) -> sparse.COO: ...
    @overload
    def __call__(self, x: object, /, to: Gcxs, **keywords: Unpack[Keywords]) -> sparse.GCXS: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["sparse.dok"], **keywords: Unpack[Keywords]
    ) -> sparse.DOK: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["jax"], **keywords: Unpack[Keywords]
    ) -> jax.Array: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["jax.bcoo"], **keywords: Unpack[Keywords]
    ) -> jsparse.BCOO: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["jax.bcsr"], **keywords: Unpack[Keywords]
    ) -> jsparse.BCSR: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["pyarrow"], **keywords: Unpack[Keywords]
    ) -> pa.Array: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["pyarrow.chunked_array"], **keywords: Unpack[Keywords]
    ) -> pa.ChunkedArray: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["pyarrow.fixed_shape_tensor"], **keywords: Unpack[Keywords]
    ) -> pa.FixedShapeTensorArray: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["pyarrow.fixed_size_list"], **keywords: Unpack[Keywords]
    ) -> pa.FixedSizeListArray: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["pyarrow.scalar"], **keywords: Unpack[Keywords]
    ) -> pa.Scalar: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["pyarrow.tensor"], **keywords: Unpack[Keywords]
    ) -> pa.Tensor: ...
    @overload
    def __call__(self, x: object, /, to: Dask, **keywords: Unpack[Keywords]) -> da.Array: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["tensorflow"], **keywords: Unpack[Keywords]
    ) -> tf.Tensor: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["tensorflow.sparse"], **keywords: Unpack[Keywords]
    ) -> tf.SparseTensor: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["pandas.series"], **keywords: Unpack[Keywords]
    ) -> pd.Series: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["pandas.dataframe"], **keywords: Unpack[Keywords]
    ) -> pd.DataFrame: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["pandas.index"], **keywords: Unpack[Keywords]
    ) -> pd.Index: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["polars.series"], **keywords: Unpack[Keywords]
    ) -> pl.Series: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["polars.dataframe"], **keywords: Unpack[Keywords]
    ) -> pl.DataFrame: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["xarray.variable"], **keywords: Unpack[Keywords]
    ) -> xr.Variable: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["xarray.dataarray"], **keywords: Unpack[Keywords]
    ) -> xr.DataArray: ...
    @overload
    def __call__(
        self, x: object, /, to: Quantized, **keywords: Unpack[Keywords]
    ) -> QuantizedArray: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["mlx"], **keywords: Unpack[Keywords]
    ) -> mx.array: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["onnxruntime"], **keywords: Unpack[Keywords]
    ) -> onnxruntime.OrtValue: ...
    @overload
    def __call__(self, x: object, /, to: type[T], **keywords: Unpack[Keywords]) -> T: ...
    @overload
    def __call__(self, x: object, /, *, like: T, **keywords: Unpack[Keywords]) -> T: ...
    @overload
    def __call__(self, x: object, /, *, out: T, **keywords: Unpack[OutKeywords]) -> T: ...
    @overload
    def __call__(
        self,
        x: object,
        /,
        to: object = None,
        *,
        like: object = None,
        out: object = None,
        **keywords: Unpack[Keywords],
    ) -> Any: ...


class MakeConverter(Protocol):
    """The type of `interop.converter`."""

    @overload
    def __call__(
        self, to: Literal["numpy"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], npt.NDArray[Any]]: ...
    @overload
    def __call__(
        self, to: Torch, **keywords: Unpack[Keywords]
    ) -> Callable[[object], torch.Tensor]: ...
    @overload
    def __call__(
        self, to: Literal["scipy.coo"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], sp.coo_array]: ...
    @overload
    def __call__(
        self, to: Literal["scipy.csr"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], sp.csr_array]: ...
    @overload
    def __call__(
        self, to: Literal["scipy.csc"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], sp.csc_array]: ...
    @overload
    def __call__(
        self, to: Literal["scipy.bsr"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], sp.bsr_array]: ...
    @overload
    def __call__(
        self, to: Literal["scipy.dia"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], sp.dia_array]: ...
    @overload
    def __call__(
        self, to: Literal["scipy.lil"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], sp.lil_array]: ...
    @overload
    def __call__(
        self, to: Literal["scipy.dok"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], sp.dok_array]: ...
    @overload
    def __call__(
        self, to: Literal["cupy"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], cupy.ndarray]: ...
    @overload
    def __call__(
        self, to: Literal["cupy.coo"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], cusparse.coo_array]: ...
    @overload
    def __call__(
        self, to: Literal["cupy.csr"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], cusparse.csr_array]: ...
    @overload
    def __call__(
        self, to: Literal["cupy.csc"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], cusparse.csc_array]: ...
    @overload
    def __call__(
        self, to: Literal["sparse.coo"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], sparse.COO]: ...
    @overload
    def __call__(
        self, to: Gcxs, **keywords: Unpack[Keywords]
    ) -> Callable[[object], sparse.GCXS]: ...
    @overload
    def __call__(
        self, to: Literal["sparse.dok"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], sparse.DOK]: ...
    @overload
    def __call__(
        self, to: Literal["jax"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], jax.Array]: ...
    @overload
    def __call__(
        self, to: Literal["jax.bcoo"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], jsparse.BCOO]: ...
    @overload
    def __call__(
        self, to: Literal["jax.bcsr"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], jsparse.BCSR]: ...
    @overload
    def __call__(
        self, to: Literal["pyarrow"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], pa.Array]: ...
    @overload
    def __call__(
        self, to: Literal["pyarrow.chunked_array"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], pa.ChunkedArray]: ...
    @overload
    def __call__(
        self, to: Literal["pyarrow.fixed_shape_tensor"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], pa.FixedShapeTensorArray]: ...
    @overload
    def __call__(
        self, to: Literal["pyarrow.fixed_size_list"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], pa.FixedSizeListArray]: ...
    @overload
    def __call__(
        self, to: Literal["pyarrow.scalar"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], pa.Scalar]: ...
    @overload
    def __call__(
        self, to: Literal["pyarrow.tensor"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], pa.Tensor]: ...
    @overload
    def __call__(self, to: Dask, **keywords: Unpack[Keywords]) -> Callable[[object], da.Array]: ...
    @overload
    def __call__(
        self, to: Literal["tensorflow"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], tf.Tensor]: ...
    @overload
    def __call__(
        self, to: Literal["tensorflow.sparse"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], tf.SparseTensor]: ...
    @overload
    def __call__(
        self, to: Literal["pandas.series"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], pd.Series]: ...
    @overload
    def __call__(
        self, to: Literal["pandas.dataframe"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], pd.DataFrame]: ...
    @overload
    def __call__(
        self, to: Literal["pandas.index"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], pd.Index]: ...
    @overload
    def __call__(
        self, to: Literal["polars.series"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], pl.Series]: ...
    @overload
    def __call__(
        self, to: Literal["polars.dataframe"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], pl.DataFrame]: ...
    @overload
    def __call__(
        self, to: Literal["xarray.variable"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], xr.Variable]: ...
    @overload
    def __call__(
        self, to: Literal["xarray.dataarray"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], xr.DataArray]: ...
    @overload
    def __call__(
        self, to: Quantized, **keywords: Unpack[Keywords]
    ) -> Callable[[object], QuantizedArray]: ...
    @overload
    def __call__(
        self, to: Literal["mlx"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], mx.array]: ...
    @overload
    def __call__(
        self, to: Literal["onnxruntime"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], onnxruntime.OrtValue]: ...
    @overload
    def __call__(self, to: type[T], **keywords: Unpack[Keywords]) -> Callable[[object], T]: ...
    @overload
    def __call__(self, *, like: T, **keywords: Unpack[Keywords]) -> Callable[[object], T]: ...
    @overload
    def __call__(
        self, to: object = None, *, like: object = None, **keywords: Unpack[Keywords]
    ) -> Callable[[object], Any]: ...
