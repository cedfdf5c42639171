"""What the functions of `interop` that take a target take and return, for static type checkers.

Nothing here runs: only the stub of `interop` imports it. The names of formats are not in the core,
because only the plugins know their types; ``python -m docs.signatures --store`` writes them here. A
name that is not here is a type error. The format of another plugin is named by its type, by
``like=``, or by ``cast(Any, "its name")``.
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
    TypeVar,
    Unpack,
    overload,
)

if TYPE_CHECKING:
    from interop._api.leaves import Others as OtherLeaves
    from interop._model.typing import ArrayKeywords, OutKeywords, RequestKeywords
    from interop._model.typing import TargetKeywords as Keywords
    from interop._planning.route import Route

# begin imports
if TYPE_CHECKING:
    import array_api_strict._array_object
    import cupy
    import cupyx.scipy.sparse
    import dask.array
    import dpnp
    import dpnp.tensor
    import jax
    import jax.experimental.sparse
    import mlx.core
    import numpy.typing
    import onnxruntime.capi.onnxruntime_inference_collection
    import pandas
    import pandas.api.extensions
    import polars
    import pyarrow
    import scipy.sparse
    import sparse
    import tensorflow
    import torch
    import torch.distributed.tensor
    import xarray

    import interop_plugins.quantized.array
# end imports

__all__ = ["Accepts", "Convert", "ConvertTree", "MakeConverter", "MakePlan"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
P = ParamSpec("P")
R = TypeVar("R")

# By format, the words in ``to=`` that give results of one type; `Others` give several types.
# fmt: off
# begin names
ArrayApiStrict: TypeAlias = Literal["array_api_strict"]
Cupy: TypeAlias = Literal["cp", "cupy"]
CupyCoo: TypeAlias = Literal["cupy.coo"]
CupyCsc: TypeAlias = Literal["cupy.csc"]
CupyCsr: TypeAlias = Literal["cupy.csr"]
CupyDia: TypeAlias = Literal["cupy.dia"]
Dask: TypeAlias = Literal["da", "dask", "dask.cupy", "dask.scipy", "dask.scipy.coo", "dask.scipy.csc", "dask.scipy.csr", "dask.sparse", "dask.sparse.coo", "dask.torch"]
Dpnp: TypeAlias = Literal["dpnp"]
DpnpTensor: TypeAlias = Literal["dpnp.tensor"]
Jax: TypeAlias = Literal["jax", "jnp"]
JaxBcoo: TypeAlias = Literal["jax.bcoo"]
JaxBcsr: TypeAlias = Literal["jax.bcsr"]
Mlx: TypeAlias = Literal["mlx", "mx"]
Numpy: TypeAlias = Literal["np", "numpy"]
Onnxruntime: TypeAlias = Literal["onnxruntime", "ort"]
PandasArray: TypeAlias = Literal["pandas.array"]
PandasDataframe: TypeAlias = Literal["pandas.dataframe"]
PandasIndex: TypeAlias = Literal["pandas.index"]
PandasSeries: TypeAlias = Literal["pandas.series"]
PolarsDataframe: TypeAlias = Literal["polars.dataframe"]
PolarsList: TypeAlias = Literal["polars.list", "polars.series"]
Pyarrow: TypeAlias = Literal["pa", "pyarrow"]
PyarrowChunkedArray: TypeAlias = Literal["pyarrow.chunked_array"]
PyarrowFixedShapeTensor: TypeAlias = Literal["pyarrow.fixed_shape_tensor"]
PyarrowFixedSizeList: TypeAlias = Literal["pyarrow.fixed_size_list"]
PyarrowList: TypeAlias = Literal["pyarrow.list"]
PyarrowRecordBatch: TypeAlias = Literal["pyarrow.record_batch"]
PyarrowRow: TypeAlias = Literal["pyarrow.row"]
PyarrowScalar: TypeAlias = Literal["pyarrow.scalar"]
PyarrowTable: TypeAlias = Literal["pyarrow.table"]
PyarrowTensor: TypeAlias = Literal["pyarrow.tensor"]
Quantized: TypeAlias = Literal["quantized", "quantized.cupy", "quantized.numpy", "quantized.torch"]
ScipyBsr: TypeAlias = Literal["scipy.bsr"]
ScipyCoo: TypeAlias = Literal["scipy.coo"]
ScipyCsc: TypeAlias = Literal["scipy.csc"]
ScipyCsr: TypeAlias = Literal["scipy.csr"]
ScipyDia: TypeAlias = Literal["scipy.dia"]
ScipyDok: TypeAlias = Literal["scipy.dok"]
ScipyLil: TypeAlias = Literal["scipy.lil"]
SparseCoo: TypeAlias = Literal["sparse.coo"]
SparseDok: TypeAlias = Literal["sparse.dok"]
SparseGcxs: TypeAlias = Literal["sparse.gcxs", "sparse.gcxs.csc", "sparse.gcxs.csr", "sparse.gcxs.nd"]
Tensorflow: TypeAlias = Literal["tensorflow", "tf"]
TensorflowIndexedSlices: TypeAlias = Literal["tensorflow.indexed_slices"]
TensorflowSparse: TypeAlias = Literal["tensorflow.sparse"]
Torch: TypeAlias = Literal["pytorch", "torch", "torch.mkldnn", "torch.quantized", "torch.sparse_bsc", "torch.sparse_bsr", "torch.sparse_coo", "torch.sparse_csc", "torch.sparse_csr", "torchao", "torchao.float8", "torchao.int4", "torchao.int8", "torchao.intx", "torchao.nf4", "torchao.opaque"]
TorchDtensor: TypeAlias = Literal["torch.dtensor"]
XarrayDataarray: TypeAlias = Literal["xarray.dataarray"]
XarrayVariable: TypeAlias = Literal["xarray.variable"]
Others: TypeAlias = Literal["list", "pandas", "pd", "pl", "polars", "python", "scipy", "sparse", "xarray", "xr"]
Name: TypeAlias = (
    ArrayApiStrict | Cupy | CupyCoo | CupyCsc | CupyCsr | CupyDia | Dask | Dpnp | DpnpTensor |
    Jax | JaxBcoo | JaxBcsr | Mlx | Numpy | Onnxruntime | PandasArray | PandasDataframe |
    PandasIndex | PandasSeries | PolarsDataframe | PolarsList | Pyarrow | PyarrowChunkedArray
    | PyarrowFixedShapeTensor | PyarrowFixedSizeList | PyarrowList | PyarrowRecordBatch |
    PyarrowRow | PyarrowScalar | PyarrowTable | PyarrowTensor | Quantized | ScipyBsr |
    ScipyCoo | ScipyCsc | ScipyCsr | ScipyDia | ScipyDok | ScipyLil | SparseCoo | SparseDok |
    SparseGcxs | Tensorflow | TensorflowIndexedSlices | TensorflowSparse | Torch |
    TorchDtensor | XarrayDataarray | XarrayVariable | Others
)
# end names
# fmt: on


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


class Convert(Protocol):
    """The type of `interop.convert`."""

    # fmt: off
    # begin convert
    @overload
    def __call__(self, x: object, /, to: ArrayApiStrict, **keywords: Unpack[Keywords]) -> array_api_strict._array_object.Array: ...
    @overload
    def __call__(self, x: object, /, to: Cupy, **keywords: Unpack[Keywords]) -> cupy.ndarray: ...
    @overload
    def __call__(self, x: object, /, to: CupyCoo, **keywords: Unpack[Keywords]) -> cupyx.scipy.sparse.coo_array: ...
    @overload
    def __call__(self, x: object, /, to: CupyCsc, **keywords: Unpack[Keywords]) -> cupyx.scipy.sparse.csc_array: ...
    @overload
    def __call__(self, x: object, /, to: CupyCsr, **keywords: Unpack[Keywords]) -> cupyx.scipy.sparse.csr_array: ...
    @overload
    def __call__(self, x: object, /, to: CupyDia, **keywords: Unpack[Keywords]) -> cupyx.scipy.sparse.dia_array: ...
    @overload
    def __call__(self, x: object, /, to: Dask, **keywords: Unpack[Keywords]) -> dask.array.Array: ...
    @overload
    def __call__(self, x: object, /, to: Dpnp, **keywords: Unpack[Keywords]) -> dpnp.ndarray: ...
    @overload
    def __call__(self, x: object, /, to: DpnpTensor, **keywords: Unpack[Keywords]) -> dpnp.tensor.usm_ndarray: ...
    @overload
    def __call__(self, x: object, /, to: Jax, **keywords: Unpack[Keywords]) -> jax.Array: ...
    @overload
    def __call__(self, x: object, /, to: JaxBcoo, **keywords: Unpack[Keywords]) -> jax.experimental.sparse.BCOO: ...
    @overload
    def __call__(self, x: object, /, to: JaxBcsr, **keywords: Unpack[Keywords]) -> jax.experimental.sparse.BCSR: ...
    @overload
    def __call__(self, x: object, /, to: Mlx, **keywords: Unpack[Keywords]) -> mlx.core.array: ...
    @overload
    def __call__(self, x: object, /, to: Numpy, **keywords: Unpack[Keywords]) -> numpy.typing.NDArray[Any]: ...
    @overload
    def __call__(self, x: object, /, to: Onnxruntime, **keywords: Unpack[Keywords]) -> onnxruntime.capi.onnxruntime_inference_collection.OrtValue: ...
    @overload
    def __call__(self, x: object, /, to: PandasArray, **keywords: Unpack[Keywords]) -> pandas.api.extensions.ExtensionArray: ...
    @overload
    def __call__(self, x: object, /, to: PandasDataframe, **keywords: Unpack[Keywords]) -> pandas.DataFrame: ...
    @overload
    def __call__(self, x: object, /, to: PandasIndex, **keywords: Unpack[Keywords]) -> pandas.Index: ...
    @overload
    def __call__(self, x: object, /, to: PandasSeries, **keywords: Unpack[Keywords]) -> pandas.Series: ...
    @overload
    def __call__(self, x: object, /, to: PolarsDataframe, **keywords: Unpack[Keywords]) -> polars.DataFrame: ...
    @overload
    def __call__(self, x: object, /, to: PolarsList, **keywords: Unpack[Keywords]) -> polars.Series: ...
    @overload
    def __call__(self, x: object, /, to: Pyarrow, **keywords: Unpack[Keywords]) -> pyarrow.Array: ...
    @overload
    def __call__(self, x: object, /, to: PyarrowChunkedArray, **keywords: Unpack[Keywords]) -> pyarrow.ChunkedArray: ...
    @overload
    def __call__(self, x: object, /, to: PyarrowFixedShapeTensor, **keywords: Unpack[Keywords]) -> pyarrow.FixedShapeTensorArray: ...
    @overload
    def __call__(self, x: object, /, to: PyarrowFixedSizeList, **keywords: Unpack[Keywords]) -> pyarrow.FixedSizeListArray: ...
    @overload
    def __call__(self, x: object, /, to: PyarrowList, **keywords: Unpack[Keywords]) -> pyarrow.ListArray: ...
    @overload
    def __call__(self, x: object, /, to: PyarrowRecordBatch, **keywords: Unpack[Keywords]) -> pyarrow.RecordBatch: ...
    @overload
    def __call__(self, x: object, /, to: PyarrowRow, **keywords: Unpack[Keywords]) -> pyarrow.FixedShapeTensorScalar: ...
    @overload
    def __call__(self, x: object, /, to: PyarrowScalar, **keywords: Unpack[Keywords]) -> pyarrow.Scalar: ...
    @overload
    def __call__(self, x: object, /, to: PyarrowTable, **keywords: Unpack[Keywords]) -> pyarrow.Table: ...
    @overload
    def __call__(self, x: object, /, to: PyarrowTensor, **keywords: Unpack[Keywords]) -> pyarrow.Tensor: ...
    @overload
    def __call__(self, x: object, /, to: Quantized, **keywords: Unpack[Keywords]) -> interop_plugins.quantized.array.QuantizedArray: ...
    @overload
    def __call__(self, x: object, /, to: ScipyBsr, **keywords: Unpack[Keywords]) -> scipy.sparse.bsr_array: ...
    @overload
    def __call__(self, x: object, /, to: ScipyCoo, **keywords: Unpack[Keywords]) -> scipy.sparse.coo_array: ...
    @overload
    def __call__(self, x: object, /, to: ScipyCsc, **keywords: Unpack[Keywords]) -> scipy.sparse.csc_array: ...
    @overload
    def __call__(self, x: object, /, to: ScipyCsr, **keywords: Unpack[Keywords]) -> scipy.sparse.csr_array: ...
    @overload
    def __call__(self, x: object, /, to: ScipyDia, **keywords: Unpack[Keywords]) -> scipy.sparse.dia_array: ...
    @overload
    def __call__(self, x: object, /, to: ScipyDok, **keywords: Unpack[Keywords]) -> scipy.sparse.dok_array: ...
    @overload
    def __call__(self, x: object, /, to: ScipyLil, **keywords: Unpack[Keywords]) -> scipy.sparse.lil_array: ...
    @overload
    def __call__(self, x: object, /, to: SparseCoo, **keywords: Unpack[Keywords]) -> sparse.COO: ...
    @overload
    def __call__(self, x: object, /, to: SparseDok, **keywords: Unpack[Keywords]) -> sparse.DOK: ...
    @overload
    def __call__(self, x: object, /, to: SparseGcxs, **keywords: Unpack[Keywords]) -> sparse.GCXS: ...
    @overload
    def __call__(self, x: object, /, to: Tensorflow, **keywords: Unpack[Keywords]) -> tensorflow.Tensor: ...
    @overload
    def __call__(self, x: object, /, to: TensorflowIndexedSlices, **keywords: Unpack[Keywords]) -> tensorflow.IndexedSlices: ...
    @overload
    def __call__(self, x: object, /, to: TensorflowSparse, **keywords: Unpack[Keywords]) -> tensorflow.SparseTensor: ...
    @overload
    def __call__(self, x: object, /, to: Torch | torch.layout, **keywords: Unpack[Keywords]) -> torch.Tensor: ...
    @overload
    def __call__(self, x: object, /, to: TorchDtensor, **keywords: Unpack[Keywords]) -> torch.distributed.tensor.DTensor: ...
    @overload
    def __call__(self, x: object, /, to: XarrayDataarray, **keywords: Unpack[Keywords]) -> xarray.DataArray: ...
    @overload
    def __call__(self, x: object, /, to: XarrayVariable, **keywords: Unpack[Keywords]) -> xarray.Variable: ...
    # end convert
    # fmt: on
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

    # fmt: off
    # begin converter
    @overload
    def __call__(self, to: ArrayApiStrict, **keywords: Unpack[Keywords]) -> Callable[[object], array_api_strict._array_object.Array]: ...
    @overload
    def __call__(self, to: Cupy, **keywords: Unpack[Keywords]) -> Callable[[object], cupy.ndarray]: ...
    @overload
    def __call__(self, to: CupyCoo, **keywords: Unpack[Keywords]) -> Callable[[object], cupyx.scipy.sparse.coo_array]: ...
    @overload
    def __call__(self, to: CupyCsc, **keywords: Unpack[Keywords]) -> Callable[[object], cupyx.scipy.sparse.csc_array]: ...
    @overload
    def __call__(self, to: CupyCsr, **keywords: Unpack[Keywords]) -> Callable[[object], cupyx.scipy.sparse.csr_array]: ...
    @overload
    def __call__(self, to: CupyDia, **keywords: Unpack[Keywords]) -> Callable[[object], cupyx.scipy.sparse.dia_array]: ...
    @overload
    def __call__(self, to: Dask, **keywords: Unpack[Keywords]) -> Callable[[object], dask.array.Array]: ...
    @overload
    def __call__(self, to: Dpnp, **keywords: Unpack[Keywords]) -> Callable[[object], dpnp.ndarray]: ...
    @overload
    def __call__(self, to: DpnpTensor, **keywords: Unpack[Keywords]) -> Callable[[object], dpnp.tensor.usm_ndarray]: ...
    @overload
    def __call__(self, to: Jax, **keywords: Unpack[Keywords]) -> Callable[[object], jax.Array]: ...
    @overload
    def __call__(self, to: JaxBcoo, **keywords: Unpack[Keywords]) -> Callable[[object], jax.experimental.sparse.BCOO]: ...
    @overload
    def __call__(self, to: JaxBcsr, **keywords: Unpack[Keywords]) -> Callable[[object], jax.experimental.sparse.BCSR]: ...
    @overload
    def __call__(self, to: Mlx, **keywords: Unpack[Keywords]) -> Callable[[object], mlx.core.array]: ...
    @overload
    def __call__(self, to: Numpy, **keywords: Unpack[Keywords]) -> Callable[[object], numpy.typing.NDArray[Any]]: ...
    @overload
    def __call__(self, to: Onnxruntime, **keywords: Unpack[Keywords]) -> Callable[[object], onnxruntime.capi.onnxruntime_inference_collection.OrtValue]: ...
    @overload
    def __call__(self, to: PandasArray, **keywords: Unpack[Keywords]) -> Callable[[object], pandas.api.extensions.ExtensionArray]: ...
    @overload
    def __call__(self, to: PandasDataframe, **keywords: Unpack[Keywords]) -> Callable[[object], pandas.DataFrame]: ...
    @overload
    def __call__(self, to: PandasIndex, **keywords: Unpack[Keywords]) -> Callable[[object], pandas.Index]: ...
    @overload
    def __call__(self, to: PandasSeries, **keywords: Unpack[Keywords]) -> Callable[[object], pandas.Series]: ...
    @overload
    def __call__(self, to: PolarsDataframe, **keywords: Unpack[Keywords]) -> Callable[[object], polars.DataFrame]: ...
    @overload
    def __call__(self, to: PolarsList, **keywords: Unpack[Keywords]) -> Callable[[object], polars.Series]: ...
    @overload
    def __call__(self, to: Pyarrow, **keywords: Unpack[Keywords]) -> Callable[[object], pyarrow.Array]: ...
    @overload
    def __call__(self, to: PyarrowChunkedArray, **keywords: Unpack[Keywords]) -> Callable[[object], pyarrow.ChunkedArray]: ...
    @overload
    def __call__(self, to: PyarrowFixedShapeTensor, **keywords: Unpack[Keywords]) -> Callable[[object], pyarrow.FixedShapeTensorArray]: ...
    @overload
    def __call__(self, to: PyarrowFixedSizeList, **keywords: Unpack[Keywords]) -> Callable[[object], pyarrow.FixedSizeListArray]: ...
    @overload
    def __call__(self, to: PyarrowList, **keywords: Unpack[Keywords]) -> Callable[[object], pyarrow.ListArray]: ...
    @overload
    def __call__(self, to: PyarrowRecordBatch, **keywords: Unpack[Keywords]) -> Callable[[object], pyarrow.RecordBatch]: ...
    @overload
    def __call__(self, to: PyarrowRow, **keywords: Unpack[Keywords]) -> Callable[[object], pyarrow.FixedShapeTensorScalar]: ...
    @overload
    def __call__(self, to: PyarrowScalar, **keywords: Unpack[Keywords]) -> Callable[[object], pyarrow.Scalar]: ...
    @overload
    def __call__(self, to: PyarrowTable, **keywords: Unpack[Keywords]) -> Callable[[object], pyarrow.Table]: ...
    @overload
    def __call__(self, to: PyarrowTensor, **keywords: Unpack[Keywords]) -> Callable[[object], pyarrow.Tensor]: ...
    @overload
    def __call__(self, to: Quantized, **keywords: Unpack[Keywords]) -> Callable[[object], interop_plugins.quantized.array.QuantizedArray]: ...
    @overload
    def __call__(self, to: ScipyBsr, **keywords: Unpack[Keywords]) -> Callable[[object], scipy.sparse.bsr_array]: ...
    @overload
    def __call__(self, to: ScipyCoo, **keywords: Unpack[Keywords]) -> Callable[[object], scipy.sparse.coo_array]: ...
    @overload
    def __call__(self, to: ScipyCsc, **keywords: Unpack[Keywords]) -> Callable[[object], scipy.sparse.csc_array]: ...
    @overload
    def __call__(self, to: ScipyCsr, **keywords: Unpack[Keywords]) -> Callable[[object], scipy.sparse.csr_array]: ...
    @overload
    def __call__(self, to: ScipyDia, **keywords: Unpack[Keywords]) -> Callable[[object], scipy.sparse.dia_array]: ...
    @overload
    def __call__(self, to: ScipyDok, **keywords: Unpack[Keywords]) -> Callable[[object], scipy.sparse.dok_array]: ...
    @overload
    def __call__(self, to: ScipyLil, **keywords: Unpack[Keywords]) -> Callable[[object], scipy.sparse.lil_array]: ...
    @overload
    def __call__(self, to: SparseCoo, **keywords: Unpack[Keywords]) -> Callable[[object], sparse.COO]: ...
    @overload
    def __call__(self, to: SparseDok, **keywords: Unpack[Keywords]) -> Callable[[object], sparse.DOK]: ...
    @overload
    def __call__(self, to: SparseGcxs, **keywords: Unpack[Keywords]) -> Callable[[object], sparse.GCXS]: ...
    @overload
    def __call__(self, to: Tensorflow, **keywords: Unpack[Keywords]) -> Callable[[object], tensorflow.Tensor]: ...
    @overload
    def __call__(self, to: TensorflowIndexedSlices, **keywords: Unpack[Keywords]) -> Callable[[object], tensorflow.IndexedSlices]: ...
    @overload
    def __call__(self, to: TensorflowSparse, **keywords: Unpack[Keywords]) -> Callable[[object], tensorflow.SparseTensor]: ...
    @overload
    def __call__(self, to: Torch | torch.layout, **keywords: Unpack[Keywords]) -> Callable[[object], torch.Tensor]: ...
    @overload
    def __call__(self, to: TorchDtensor, **keywords: Unpack[Keywords]) -> Callable[[object], torch.distributed.tensor.DTensor]: ...
    @overload
    def __call__(self, to: XarrayDataarray, **keywords: Unpack[Keywords]) -> Callable[[object], xarray.DataArray]: ...
    @overload
    def __call__(self, to: XarrayVariable, **keywords: Unpack[Keywords]) -> Callable[[object], xarray.Variable]: ...
    # end converter
    # fmt: on
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
        grad: bool = False,
        **keywords: Unpack[ArrayKeywords],
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
        cast_all: bool = False,
        others: OtherLeaves = "keep",
        progress: bool = False,
        consume: bool = False,
        **keywords: Unpack[RequestKeywords],
    ) -> Any:
        """Convert every array in nested containers."""


class MakePlan(Protocol):
    """The type of `interop.plan`."""

    def __call__(
        self,
        x_or_spec: object,
        /,
        to: Target | None = None,
        **keywords: Unpack[RequestKeywords],
    ) -> Route:
        """Return the route that `interop.convert` would take."""
