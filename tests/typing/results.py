"""Type-checked, never run: what a static type checker knows of results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import dask.array as da
import jax
import mlx.core as mx
import numpy as np
import numpy.typing as npt
import onnxruntime
import polars as pl
import pyarrow as pa
import tensorflow as tf
import torch
import xarray as xr

import interop


def names(x: object, y: torch.Tensor) -> None:
    """The bundled names, array types, ``like=`` and ``out=`` each fix the result's type."""
    assert_type(interop.convert(x, to="numpy"), npt.NDArray[Any])
    assert_type(interop.convert(x, "torch", dtype="float32", copy=True), torch.Tensor)
    assert_type(interop.convert(x, to="torch.sparse_csr"), torch.Tensor)
    assert_type(interop.convert(x, to="quantized"), interop.QuantizedArray)
    assert_type(interop.convert(x, to="jax", dtype="float32"), jax.Array)
    assert_type(interop.convert(x, to="pyarrow"), pa.Array)
    assert_type(interop.convert(x, to="dask.torch"), da.Array)
    assert_type(interop.convert(x, to="tensorflow"), tf.Tensor)
    assert_type(interop.convert(x, to="polars.series"), pl.Series)
    assert_type(interop.convert(x, to="xarray.dataarray"), xr.DataArray)
    assert_type(interop.converter("polars.dataframe"), Callable[[object], pl.DataFrame])
    assert_type(interop.convert(x, to="tensorflow.sparse"), tf.SparseTensor)
    assert_type(interop.convert(x, to="mlx", copy=True), mx.array)
    assert_type(interop.convert(x, to="onnxruntime"), onnxruntime.OrtValue)
    assert_type(interop.convert(x, to=torch.Tensor), torch.Tensor)
    assert_type(interop.convert(x, like=y), torch.Tensor)
    assert_type(interop.convert(x, out=y), torch.Tensor)
    assert_type(interop.converter("numpy"), Callable[[object], npt.NDArray[Any]])
    assert_type(interop.converter("mlx"), Callable[[object], mx.array])
    array: npt.NDArray[np.float32] = interop.convert(x, to=np.ndarray)
    assert array is not None
    anything: int = interop.convert(x, to=["numpy", "torch"])
    assert anything
