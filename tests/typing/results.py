"""Type-checked, never run: what a static type checker knows of results."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, assert_type, cast

import dask.array as da
import jax
import jax.numpy as jnp
import mlx.core as mx
import numpy as np
import numpy.typing as npt
import onnxruntime
import pandas as pd
import polars as pl
import pyarrow as pa
import tensorflow as tf
import torch
import xarray as xr
from pandas.api.extensions import ExtensionArray

import interop
from interop.typing import Copy, Device, Dtype, Effects, Order, Target


def names(x: object, y: torch.Tensor) -> None:
    """The bundled names, array types, ``like=`` and ``out=`` each fix the result's type."""
    assert_type(interop.convert(x, to="numpy"), npt.NDArray[Any])
    assert_type(interop.convert(x, "torch", dtype="float32", copy=True), torch.Tensor)
    assert_type(interop.convert(x, "torch", order="F"), torch.Tensor)
    assert_type(interop.converter("numpy", order="C")(x), npt.NDArray[Any])
    assert_type(interop.plan(x, to="numpy", order=None)(x), npt.NDArray[Any])
    assert_type(interop.convert(x, to="torch.sparse_csr"), torch.Tensor)
    assert_type(interop.convert(x, to="quantized"), interop.QuantizedArray)
    assert_type(interop.convert(x, to="jax", dtype="float32"), jax.Array)
    assert_type(interop.convert(x, to="pyarrow"), pa.Array)
    assert_type(interop.convert(x, to="dask.torch"), da.Array)
    assert_type(interop.convert(x, to="tensorflow"), tf.Tensor)
    assert_type(interop.convert(x, to="polars.series"), pl.Series)
    assert_type(interop.convert(x, to="xarray.dataarray"), xr.DataArray)
    assert_type(interop.converter("polars.dataframe"), Callable[[object], pl.DataFrame])
    assert_type(interop.convert(x, to=pl), Any)
    assert_type(interop.convert(x, "numpy", forbid=frozenset(interop.EFFECTS)), npt.NDArray[Any])
    assert_type(interop.convert(x, to="mlx", copy=True), mx.array)
    assert_type(interop.convert(x, to="onnxruntime"), onnxruntime.OrtValue)
    assert_type(interop.convert(x, to=torch.Tensor), torch.Tensor)
    assert_type(interop.convert(x, like=y), torch.Tensor)
    assert_type(interop.convert(x, out=y), torch.Tensor)
    assert_type(interop.converter("numpy"), Callable[[object], npt.NDArray[Any]])
    assert_type(interop.converter("mlx"), Callable[[object], mx.array])
    array: npt.NDArray[np.float32] = interop.convert(x, to=np.ndarray)
    assert_type(interop.convert(x, to=np.ndarray), npt.NDArray[Any])
    assert_type(interop.convert(x, to=np), npt.NDArray[Any])
    assert array is not None
    assert_type(interop.convert(x, to=torch), torch.Tensor)
    assert_type(interop.convert(x, to=jnp), jax.Array)
    assert_type(interop.convert(x, to=jax, dtype="float32"), jax.Array)
    module: npt.NDArray[np.float32] = interop.convert(x, to=np)
    module[0] = module.mean()
    assert_type(interop.converter(torch), Callable[[object], torch.Tensor])
    assert_type(interop.convert(x, to=torch).sum(), torch.Tensor)
    assert_type(interop.convert(x, "numpy", allow=["narrow", "drop_mask"]), npt.NDArray[Any])
    assert_type(interop.convert(x, cast(Any, "ring")), Any)
    anything: int = interop.convert(x, to=["numpy", "torch"])
    assert anything
    assert_type(
        interop.convert(x, to="pandas"), pd.Series | pd.DataFrame | pd.Index | ExtensionArray
    )
    assert_type(interop.convert(x, to="polars"), pl.Series | pl.DataFrame)
    assert_type(interop.convert(x, to="python"), list[Any] | complex)
    assert_type(interop.convert(x, to="xarray"), xr.Variable | xr.DataArray)


def handed_on(
    x: object,
    to: Target,
    *,
    dtype: Dtype | None,
    device: Device | None,
    copy: Copy,
    order: Order,
    allow: Effects,
) -> None:
    """What a function of somebody else's takes for us, it can hand on."""
    interop.convert(x, to)
    interop.convert(x, to, dtype=dtype, device=device, copy=copy, allow=allow, forbid=allow)
    interop.convert(x, to, order=order)
    assert_type(interop.convert_tree([x], to, order=order), list[Any])
    assert_type(interop.convert_tree([x], to, dtype=dtype, forbid=allow), list[Any])
    interop.plan(x, to, dtype=dtype, allow=allow)(x)
    interop.converter(to, copy=copy)(x)
    interop.accepts(to, dtype=dtype)
    with interop.trace() as receipts:
        kept: interop.Trace = receipts
    assert kept.as_json()


def routes(x: object, y: torch.Tensor) -> None:
    """A route gives what `convert` would give."""
    route: interop.Plan = interop.plan(x, to="torch.sparse_csr")
    assert route.effects
    assert_type(interop.plan(x, to="numpy")(x), npt.NDArray[Any])
    assert_type(interop.plan(x, to="torch.sparse_csr")(x), torch.Tensor)
    assert_type(interop.plan(interop.spec(x), like=y)(x), torch.Tensor)
    assert_type(interop.plan(x, to=["numpy", np.ndarray, torch], copy=False)(x), Any)


@dataclass
class Batch:
    """A container of a class of its own."""

    pixels: Any


class Pair(NamedTuple):
    """A tuple with names."""

    pixels: torch.Tensor
    ids: object


def trees(x: object, y: torch.Tensor, batch: Batch, pair: Pair) -> None:
    """Containers come out as such, around anything; an array comes out as anything."""
    assert_type(interop.convert_tree({"a": y}, to="numpy"), dict[str, Any])
    state: OrderedDict[str, torch.Tensor] = OrderedDict()
    assert_type(interop.convert_tree(state, to="numpy"), OrderedDict[str, Any])
    assert_type(interop.convert_tree([y], np, others="refuse", allow="detach"), list[Any])
    assert_type(interop.convert_tree((y, 1), to="numpy"), tuple[Any, ...])
    assert_type(interop.convert_tree(deque([y]), to="numpy"), deque[Any])
    assert_type(interop.convert_tree(batch, to="numpy"), Batch)
    assert_type(interop.convert_tree(pair, to="numpy"), Pair)
    assert_type(interop.convert_tree(y, to="numpy"), Any)
    assert_type(interop.convert_tree(np.ones(1), to="torch"), Any)
    assert_type(interop.convert_tree(pd.DataFrame(), to="torch"), Any)
    assert_type(interop.convert_tree(x, np, others="refuse", allow="detach"), Any)
    assert_type(interop.convert_tree(x, cast(Any, "ring")), Any)


def trees_of_anything(a: dict[str, Any], b: dict[int, Any], c: list[dict[str, Any]]) -> None:
    """A dict of anything is a dict all the same."""
    assert_type(interop.convert_tree(a, to="numpy"), dict[str, Any])
    assert_type(interop.convert_tree(b, to="numpy"), dict[int, Any])
    assert_type(interop.convert_tree(c, to="numpy"), list[Any])
    model = torch.nn.Linear(1, 1)
    assert_type(interop.convert_tree(model.state_dict(), to="numpy"), dict[str, Any])


def words(x: object, y: torch.Tensor) -> None:
    """Dtypes and devices may be objects of any framework, and the names that interop knows."""
    interop.convert(x, "numpy", dtype="bf16", device="cpu")
    interop.convert(x, "numpy", dtype=np.float32)
    interop.convert(x, "numpy", dtype=np.ones(1).dtype)
    interop.convert(x, "numpy", dtype=torch.bfloat16)
    interop.convert(x, "numpy", dtype=jnp.bfloat16)
    interop.convert(x, "numpy", dtype=mx.float32)
    interop.convert(x, "numpy", dtype=tf.float32)
    interop.convert(x, "numpy", dtype=pa.float32())
    interop.convert(x, "numpy", dtype=pl.Float32)
    interop.convert(x, "numpy", dtype=pl.Float32())
    interop.convert(x, "numpy", dtype={"real floating": "float32", np.int64: torch.int32})
    interop.convert(x, "torch", device=y.device)
    interop.convert(x, "torch", device=torch.device("cuda", 1))
    interop.convert(x, "jax", device=jax.devices()[0])
    interop.converter("torch", device="cuda:3", dtype=y.dtype)
    interop.convert(x, "numpy", allow=interop.plan(x, to="numpy").effects)


@interop.accepts("numpy", allow="detach")
def centred(x: torch.Tensor, scale: float = 1) -> torch.Tensor:
    """Return a tensor less its mean."""
    return (x - x.mean()) * scale


@interop.accepts
def halved(x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return half of an array."""
    return x / 2


@interop.accepts(np.ndarray, copy=True)
def doubled(x: torch.Tensor) -> torch.Tensor:
    """Return twice a tensor."""
    return x + x


@interop.accepts(["numpy", "torch"])
def shown(x: object) -> str:
    """Return an array as text."""
    return str(x)


@interop.accepts("numpy", lists=True)
def mean(x: npt.NDArray[Any], *, axis: int = 0) -> float:
    """Return the mean of an array."""
    return float(x.mean(axis))


@interop.accepts("numpy")
def scaled(scale: float, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a multiple of an array."""
    return scale * x


class Model:
    """A class whose methods accept any arrays."""

    @interop.accepts("numpy")
    def predict(self, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return an array."""
        return x

    @interop.accepts("numpy")
    def score(self, x: npt.NDArray[Any]) -> float:
        """Return a number."""
        return float(x.sum())


def signatures(x: torch.Tensor, y: jax.Array, z: npt.NDArray[Any]) -> None:
    """A function that accepts any arrays takes those of callers, and gives them theirs."""
    assert_type(centred(x, scale=2), torch.Tensor)
    assert_type(centred(y), jax.Array)
    assert_type(halved(z), npt.NDArray[Any])
    assert_type(halved(x), torch.Tensor)
    assert_type(halved([1.0]), npt.NDArray[Any])
    assert_type(doubled(x), torch.Tensor)
    assert_type(doubled(y), jax.Array)
    assert_type(shown(x), str)
    assert_type(mean(x, axis=1), float)
    assert_type(mean([1.0, 2.0]), float)
    assert_type(scaled(2, x), Any)
    assert_type(Model().predict(x), Any)
    assert_type(Model().score(x), float)
