"""What the functions of `interop` that take a target take and return, for static type checkers.

Nothing here runs: only the stub of `interop` imports it. The names of formats stand here and not in
the core because only the plugins know what they stand for. A name that is not here is a type error;
the format of another plugin is named by its type, by ``like=``, or by ``cast(Any, "its name")``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

if TYPE_CHECKING:
    import cupy
    import dask.array as da
    import jax
    import mlx.core as mx
    import numpy.typing as npt
    import onnxruntime
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import scipy.sparse as sp
    import tensorflow as tf
    import torch
    import xarray as xr
    from jax.experimental import sparse as jsparse

    from interop._api.leaves import Others as OtherLeaves
    from interop._model.typing import CopyLike, EffectNames
    from interop._planning.route import Route
    from interop_plugins.quantized.array import QuantizedArray

__all__ = ["Accepts", "Convert", "ConvertTree", "MakeConverter", "MakePlan"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
P = ParamSpec("P")
R = TypeVar("R")

Torch: TypeAlias = Literal[
    "torch",
    "pytorch",
    "torch.sparse_coo",
    "torch.sparse_csr",
    "torch.sparse_csc",
    "torch.sparse_bsr",
    "torch.sparse_bsc",
    "torch.quantized",
    "torch.mkldnn",
    "torch.dtensor",
    "torchao",
    "torchao.int8",
    "torchao.float8",
    "torchao.int4",
    "torchao.intx",
    "torchao.nf4",
    "torchao.opaque",
]
Dask: TypeAlias = Literal[
    "dask",
    "da",
    "dask.torch",
    "dask.cupy",
    "dask.scipy",
    "dask.scipy.csr",
    "dask.scipy.csc",
    "dask.scipy.coo",
    "dask.sparse",
    "dask.sparse.coo",
]
Quantized: TypeAlias = Literal["quantized", "quantized.numpy", "quantized.torch", "quantized.cupy"]
#: Those that stand for values of several types, or of types that are not annotated.
Others: TypeAlias = Literal[
    "python",
    "list",
    "pandas",
    "pd",
    "pandas.index",
    "pandas.array",
    "polars",
    "pl",
    "xarray",
    "xr",
    "scipy",
    "scipy.bsr",
    "scipy.dia",
    "scipy.lil",
    "scipy.dok",
    "sparse",
    "sparse.coo",
    "sparse.dok",
    "sparse.gcxs",
    "sparse.gcxs.csr",
    "sparse.gcxs.csc",
    "sparse.gcxs.nd",
    "cupy.coo",
    "cupy.csr",
    "cupy.csc",
    "cupy.dia",
    "pyarrow.chunked_array",
    "pyarrow.fixed_shape_tensor",
    "pyarrow.fixed_size_list",
    "pyarrow.scalar",
    "pyarrow.tensor",
    "pyarrow.table",
    "pyarrow.record_batch",
    "tensorflow.sparse",
    "tensorflow.indexed_slices",
    "array_api_strict",
    "dpnp",
    "dpnp.tensor",
]
Name: TypeAlias = (
    Torch
    | Dask
    | Quantized
    | Others
    | Literal["numpy", "np", "jax", "jnp", "jax.bcoo", "jax.bcsr"]
    | Literal["scipy.csr", "scipy.csc", "scipy.coo", "cupy", "cp", "tensorflow", "tf"]
    | Literal["mlx", "mx", "pyarrow", "pa", "onnxruntime", "ort"]
    | Literal["pandas.series", "pandas.dataframe", "polars.series", "polars.dataframe"]
    | Literal["xarray.variable", "xarray.dataarray"]
)


class NumpyLike(Protocol[T_co]):
    """A module whose arrays are its ``ndarray``: NumPy, CuPy, ``jax.numpy``.

    Overloads for modules stand before those for types, for which some checkers take modules.
    """

    @property
    def ndarray(self) -> type[T_co]:
        """The type of its arrays."""


class TorchLike(Protocol[T_co]):
    """A module whose arrays are its ``Tensor``: torch, TensorFlow."""

    @property
    def Tensor(self) -> type[T_co]:  # noqa: N802 - its name there
        """The type of its arrays."""

    @property
    def matmul(self) -> object:
        """What sets it apart from modules with tensors that are not their arrays."""


class JaxLike(Protocol[T_co]):
    """A module whose arrays are its ``Array``: JAX."""

    @property
    def Array(self) -> type[T_co]:  # noqa: N802 - its name there
        """The type of its arrays."""

    @property
    def jit(self) -> object:
        """What sets it apart from modules with an ``Array`` that is not of numbers."""


#: Several targets, of which the cheapest is taken.
Several: TypeAlias = Iterable[Name | type | ModuleType]
#: What ``to=`` takes where the result's type does not depend on it.
Target: TypeAlias = "Name | type | ModuleType | torch.layout | Several"


class Keywords(TypedDict, total=False):
    """The keywords that every request may have."""

    dtype: object
    device: object
    copy: CopyLike
    allow: EffectNames
    forbid: EffectNames
    stream: object


class OutKeywords(TypedDict, total=False):
    """The keywords that a request with ``out=`` may have."""

    allow: EffectNames
    forbid: EffectNames
    stream: object


class Convert(Protocol):
    """The type of `interop.convert`."""

    @overload
    def __call__(
        self, x: object, /, to: Literal["numpy", "np"], **keywords: Unpack[Keywords]
    ) -> npt.NDArray[Any]: ...
    @overload
    def __call__(
        self, x: object, /, to: Torch | torch.layout, **keywords: Unpack[Keywords]
    ) -> torch.Tensor: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["jax", "jnp"], **keywords: Unpack[Keywords]
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
        self, x: object, /, to: Literal["scipy.csr"], **keywords: Unpack[Keywords]
    ) -> sp.csr_array: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["scipy.csc"], **keywords: Unpack[Keywords]
    ) -> sp.csc_array: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["scipy.coo"], **keywords: Unpack[Keywords]
    ) -> sp.coo_array: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["cupy", "cp"], **keywords: Unpack[Keywords]
    ) -> cupy.ndarray: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["tensorflow", "tf"], **keywords: Unpack[Keywords]
    ) -> tf.Tensor: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["mlx", "mx"], **keywords: Unpack[Keywords]
    ) -> mx.array: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["pyarrow", "pa"], **keywords: Unpack[Keywords]
    ) -> pa.Array: ...
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
    def __call__(self, x: object, /, to: Dask, **keywords: Unpack[Keywords]) -> da.Array: ...
    @overload
    def __call__(
        self, x: object, /, to: Quantized, **keywords: Unpack[Keywords]
    ) -> QuantizedArray: ...
    @overload
    def __call__(
        self, x: object, /, to: Literal["onnxruntime", "ort"], **keywords: Unpack[Keywords]
    ) -> onnxruntime.OrtValue: ...
    @overload
    def __call__(
        self,
        x: object,
        /,
        to: NumpyLike[T] | TorchLike[T] | JaxLike[T],
        **keywords: Unpack[Keywords],
    ) -> T: ...
    @overload
    def __call__(
        self, x: object, /, to: Others | ModuleType, **keywords: Unpack[Keywords]
    ) -> Any: ...
    @overload
    def __call__(self, x: object, /, to: type[T], **keywords: Unpack[Keywords]) -> T: ...
    @overload
    def __call__(self, x: object, /, to: Several, **keywords: Unpack[Keywords]) -> Any: ...
    @overload
    def __call__(self, x: object, /, *, like: T, **keywords: Unpack[Keywords]) -> T: ...
    @overload
    def __call__(self, x: object, /, *, out: T, **keywords: Unpack[OutKeywords]) -> T: ...


class MakeConverter(Protocol):
    """The type of `interop.converter`."""

    @overload
    def __call__(
        self, to: Literal["numpy", "np"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], npt.NDArray[Any]]: ...
    @overload
    def __call__(
        self, to: Torch | torch.layout, **keywords: Unpack[Keywords]
    ) -> Callable[[object], torch.Tensor]: ...
    @overload
    def __call__(
        self, to: Literal["jax", "jnp"], **keywords: Unpack[Keywords]
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
        self, to: Literal["scipy.csr"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], sp.csr_array]: ...
    @overload
    def __call__(
        self, to: Literal["scipy.csc"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], sp.csc_array]: ...
    @overload
    def __call__(
        self, to: Literal["scipy.coo"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], sp.coo_array]: ...
    @overload
    def __call__(
        self, to: Literal["cupy", "cp"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], cupy.ndarray]: ...
    @overload
    def __call__(
        self, to: Literal["tensorflow", "tf"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], tf.Tensor]: ...
    @overload
    def __call__(
        self, to: Literal["mlx", "mx"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], mx.array]: ...
    @overload
    def __call__(
        self, to: Literal["pyarrow", "pa"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], pa.Array]: ...
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
    def __call__(self, to: Dask, **keywords: Unpack[Keywords]) -> Callable[[object], da.Array]: ...
    @overload
    def __call__(
        self, to: Quantized, **keywords: Unpack[Keywords]
    ) -> Callable[[object], QuantizedArray]: ...
    @overload
    def __call__(
        self, to: Literal["onnxruntime", "ort"], **keywords: Unpack[Keywords]
    ) -> Callable[[object], onnxruntime.OrtValue]: ...
    @overload
    def __call__(
        self, to: NumpyLike[T] | TorchLike[T] | JaxLike[T], **keywords: Unpack[Keywords]
    ) -> Callable[[object], T]: ...
    @overload
    def __call__(
        self, to: Others | ModuleType, **keywords: Unpack[Keywords]
    ) -> Callable[[object], Any]: ...
    @overload
    def __call__(self, to: type[T], **keywords: Unpack[Keywords]) -> Callable[[object], T]: ...
    @overload
    def __call__(self, to: Several, **keywords: Unpack[Keywords]) -> Callable[[object], Any]: ...
    @overload
    def __call__(self, *, like: T, **keywords: Unpack[Keywords]) -> Callable[[object], T]: ...


class Accepts(Protocol):
    """The type of `interop.accepts`."""

    @overload
    def __call__(  # type: ignore[overload-overlap] # classes can be called, and name formats
        self,
        to: Name | type | ModuleType | Several,
        *,
        dtype: object = None,
        device: object = None,
        copy: CopyLike = None,
        allow: EffectNames = (),
        forbid: EffectNames = (),
        grad: bool = False,
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
    @overload
    def __call__(self, to: Callable[P, R], /) -> Callable[P, R]: ...


class ConvertTree(Protocol):
    """The type of `interop.convert_tree`."""

    def __call__(
        self,
        tree: object,
        /,
        to: Target | None = None,
        *,
        like: object = None,
        cast_all: bool = False,
        others: OtherLeaves = "keep",
        progress: bool = False,
        consume: bool = False,
        **keywords: Unpack[Keywords],
    ) -> Any:
        """Convert every array in nested containers."""


class MakePlan(Protocol):
    """The type of `interop.plan`."""

    def __call__(
        self,
        x_or_spec: object,
        /,
        to: Target | None = None,
        *,
        like: object = None,
        **keywords: Unpack[Keywords],
    ) -> Route:
        """Return the route that `interop.convert` would take."""
