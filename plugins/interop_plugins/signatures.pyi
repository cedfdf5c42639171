"""What the functions of `interop` that take a target take and return, for static type checkers.

Only the stub of `interop` imports it. The names of formats are not in the core, because only the
plugins know their types; ``python -m docs.signatures --store`` writes them here, with the docstrings
of the methods. A name that is not here is a type error, and so is a misspelt dtype, device or
effect. The format of another plugin is named by its type, by ``like=``, or by ``cast(Any, "its
name")``.
"""

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Set
from types import ModuleType
from typing import (
    Any,
    ClassVar,
    Concatenate,
    Generic,
    Literal,
    Never,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

# begin imports
import array_api_strict._array_object
import awkward
import cupy
import cupyx.scipy.sparse
import dask.array
import dpnp
import dpnp.tensor
import interop_plugins.quantized.array
import jax
import jax.experimental.sparse
import mlx.core
import numpy.ma
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
import torch.nested._internal.nested_tensor
import xarray

# end imports
from interop._api.leaves import Others as OtherLeaves
from interop._model.spec import Spec
from interop._model.typing import CopyLike, EffectNames, OrderLike
from interop._planning.plan import Plan as AnyPlan

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
K = TypeVar("K")
V = TypeVar("V")
P = ParamSpec("P")
R = TypeVar("R")
X = TypeVar("X")

# By format, the words in ``to=`` that give results of one type.
# fmt: off
# begin names
Numpy: TypeAlias = Literal["np", "numpy"]
NumpyMa: TypeAlias = Literal["numpy.ma"]
Torch: TypeAlias = Literal["pytorch", "torch", "torch.mkldnn", "torch.packed", "torch.quantized", "torch.sparse_bsc", "torch.sparse_bsr", "torch.sparse_coo", "torch.sparse_csc", "torch.sparse_csr", "torchao", "torchao.float8", "torchao.int4", "torchao.int8", "torchao.intx", "torchao.nf4", "torchao.opaque"]
TorchDtensor: TypeAlias = Literal["torch.dtensor"]
TorchJagged: TypeAlias = Literal["torch.jagged"]
Jax: TypeAlias = Literal["jax", "jnp"]
JaxBcoo: TypeAlias = Literal["jax.bcoo"]
JaxBcsr: TypeAlias = Literal["jax.bcsr"]
Python: TypeAlias = Literal["list", "python"]
Pandas: TypeAlias = Literal["pandas", "pd"]
PandasArray: TypeAlias = Literal["pandas.array"]
PandasDataframe: TypeAlias = Literal["pandas.dataframe"]
PandasIndex: TypeAlias = Literal["pandas.index"]
PandasRows: TypeAlias = Literal["pandas.rows", "pandas.series"]
Polars: TypeAlias = Literal["pl", "polars"]
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
Scipy: TypeAlias = Literal["scipy"]
ScipyBsr: TypeAlias = Literal["scipy.bsr"]
ScipyCoo: TypeAlias = Literal["scipy.coo"]
ScipyCsc: TypeAlias = Literal["scipy.csc"]
ScipyCsr: TypeAlias = Literal["scipy.csr"]
ScipyDia: TypeAlias = Literal["scipy.dia"]
ScipyDok: TypeAlias = Literal["scipy.dok"]
ScipyLil: TypeAlias = Literal["scipy.lil"]
Xarray: TypeAlias = Literal["xarray", "xr"]
XarrayDataarray: TypeAlias = Literal["xarray.dataarray"]
XarrayVariable: TypeAlias = Literal["xarray.variable"]
ArrayApiStrict: TypeAlias = Literal["array_api_strict"]
Awkward: TypeAlias = Literal["ak", "awkward"]
Cupy: TypeAlias = Literal["cp", "cupy"]
CupyCoo: TypeAlias = Literal["cupy.coo"]
CupyCsc: TypeAlias = Literal["cupy.csc"]
CupyCsr: TypeAlias = Literal["cupy.csr"]
CupyDia: TypeAlias = Literal["cupy.dia"]
Dask: TypeAlias = Literal["da", "dask", "dask.cupy", "dask.scipy", "dask.scipy.coo", "dask.scipy.csc", "dask.scipy.csr", "dask.sparse", "dask.sparse.coo", "dask.torch"]
Dpnp: TypeAlias = Literal["dpnp"]
DpnpTensor: TypeAlias = Literal["dpnp.tensor"]
Mlx: TypeAlias = Literal["mlx", "mx"]
Onnxruntime: TypeAlias = Literal["onnxruntime", "ort"]
Quantized: TypeAlias = Literal["quantized", "quantized.cupy", "quantized.numpy", "quantized.torch"]
Sparse: TypeAlias = Literal["sparse"]
SparseCoo: TypeAlias = Literal["sparse.coo"]
SparseDok: TypeAlias = Literal["sparse.dok"]
SparseGcxs: TypeAlias = Literal["sparse.gcxs", "sparse.gcxs.csc", "sparse.gcxs.csr", "sparse.gcxs.nd"]
Tensorflow: TypeAlias = Literal["tensorflow", "tf"]
TensorflowIndexedSlices: TypeAlias = Literal["tensorflow.indexed_slices"]
TensorflowRagged: TypeAlias = Literal["tensorflow.ragged"]
TensorflowSparse: TypeAlias = Literal["tensorflow.sparse"]
Name: TypeAlias = (
    Numpy | NumpyMa | Torch | TorchDtensor | TorchJagged | Jax | JaxBcoo | JaxBcsr | Python |
    Pandas | PandasArray | PandasDataframe | PandasIndex | PandasRows | Polars |
    PolarsDataframe | PolarsList | Pyarrow | PyarrowChunkedArray | PyarrowFixedShapeTensor |
    PyarrowFixedSizeList | PyarrowList | PyarrowRecordBatch | PyarrowRow | PyarrowScalar |
    PyarrowTable | PyarrowTensor | Scipy | ScipyBsr | ScipyCoo | ScipyCsc | ScipyCsr |
    ScipyDia | ScipyDok | ScipyLil | Xarray | XarrayDataarray | XarrayVariable |
    ArrayApiStrict | Awkward | Cupy | CupyCoo | CupyCsc | CupyCsr | CupyDia | Dask | Dpnp |
    DpnpTensor | Mlx | Onnxruntime | Quantized | Sparse | SparseCoo | SparseDok | SparseGcxs |
    Tensorflow | TensorflowIndexedSlices | TensorflowRagged | TensorflowSparse
)
FormatName: TypeAlias = Literal["array", "array_api_strict", "array_interface", "arrow_c_array", "arrow_c_stream", "awkward", "buffer", "cuda_array_interface", "cupy", "cupy.coo", "cupy.csc", "cupy.csr", "cupy.dia", "dask", "dask.cupy", "dask.scipy.coo", "dask.scipy.csc", "dask.scipy.csr", "dask.sparse.coo", "dask.torch", "datasets", "datasets.column", "dlpack", "dlpack.capsule", "dpnp", "dpnp.tensor", "jax", "jax.bcoo", "jax.bcsr", "jax.ref", "mlx", "numpy", "numpy.ma", "numpy.rows", "onnxruntime", "pandas.array", "pandas.dataframe", "pandas.index", "pandas.rows", "pandas.series", "polars.dataframe", "polars.list", "polars.series", "pyarrow", "pyarrow.chunked_array", "pyarrow.fixed_shape_tensor", "pyarrow.fixed_size_list", "pyarrow.list", "pyarrow.record_batch", "pyarrow.row", "pyarrow.scalar", "pyarrow.table", "pyarrow.tensor", "python", "python.arrays", "python.ragged", "quantized.cupy", "quantized.numpy", "quantized.torch", "scipy.bsr", "scipy.coo", "scipy.csc", "scipy.csr", "scipy.dia", "scipy.dok", "scipy.lil", "sparse.coo", "sparse.dok", "sparse.gcxs.csc", "sparse.gcxs.csr", "sparse.gcxs.nd", "tensorflow", "tensorflow.indexed_slices", "tensorflow.ragged", "tensorflow.sparse", "torch", "torch.codes", "torch.dtensor", "torch.jagged", "torch.mkldnn", "torch.packed", "torch.quantized", "torch.sparse_bsc", "torch.sparse_bsr", "torch.sparse_coo", "torch.sparse_csc", "torch.sparse_csr", "torchao.float8", "torchao.int4", "torchao.int8", "torchao.intx", "torchao.nf4", "torchao.opaque", "xarray.dataarray", "xarray.variable"]
DtypeName: TypeAlias = Literal["bf16", "bfloat16", "bool", "bool_", "c16", "c8", "clongdouble", "complex", "complex128", "complex32", "complex64", "double", "f2", "f32", "f4", "f64", "f8", "float", "float16", "float32", "float4_e2m1fn", "float64", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "fp16", "fp32", "fp64", "half", "i1", "i16", "i2", "i32", "i4", "i64", "i8", "int", "int1", "int16", "int2", "int32", "int4", "int64", "int8", "long", "longdouble", "short", "single", "u1", "u16", "u2", "u32", "u4", "u64", "u8", "uint", "uint1", "uint16", "uint2", "uint32", "uint4", "uint64", "uint8"]
KindName: TypeAlias = Literal["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]
DeviceName: TypeAlias = Literal["cpu", "cuda", "cuda_host", "ext_dev", "metal", "mps", "oneapi", "rocm", "tpu", "xpu", "cpu:0", "cpu:1", "cpu:2", "cpu:3", "cpu:4", "cpu:5", "cpu:6", "cpu:7", "cpu:8", "cpu:9", "cpu:10", "cpu:11", "cpu:12", "cpu:13", "cpu:14", "cpu:15", "cuda:0", "cuda:1", "cuda:2", "cuda:3", "cuda:4", "cuda:5", "cuda:6", "cuda:7", "cuda:8", "cuda:9", "cuda:10", "cuda:11", "cuda:12", "cuda:13", "cuda:14", "cuda:15", "ext_dev:0", "ext_dev:1", "ext_dev:2", "ext_dev:3", "ext_dev:4", "ext_dev:5", "ext_dev:6", "ext_dev:7", "ext_dev:8", "ext_dev:9", "ext_dev:10", "ext_dev:11", "ext_dev:12", "ext_dev:13", "ext_dev:14", "ext_dev:15", "oneapi:0", "oneapi:1", "oneapi:2", "oneapi:3", "oneapi:4", "oneapi:5", "oneapi:6", "oneapi:7", "oneapi:8", "oneapi:9", "oneapi:10", "oneapi:11", "oneapi:12", "oneapi:13", "oneapi:14", "oneapi:15", "rocm:0", "rocm:1", "rocm:2", "rocm:3", "rocm:4", "rocm:5", "rocm:6", "rocm:7", "rocm:8", "rocm:9", "rocm:10", "rocm:11", "rocm:12", "rocm:13", "rocm:14", "rocm:15", "tpu:0", "tpu:1", "tpu:2", "tpu:3", "tpu:4", "tpu:5", "tpu:6", "tpu:7", "tpu:8", "tpu:9", "tpu:10", "tpu:11", "tpu:12", "tpu:13", "tpu:14", "tpu:15", "xpu:0", "xpu:1", "xpu:2", "xpu:3", "xpu:4", "xpu:5", "xpu:6", "xpu:7", "xpu:8", "xpu:9", "xpu:10", "xpu:11", "xpu:12", "xpu:13", "xpu:14", "xpu:15"]
TraitName: TypeAlias = Literal["readonly", "immutable", "noncontiguous", "fortran", "negative_strides", "broadcast", "byteswapped", "unaligned", "grad", "conj", "neg", "labelled", "attributes", "indexed", "masked", "not_numbers", "untyped", "several_dtypes", "mixed", "bit_columns", "block_columns", "byte_columns", "category_columns", "chunked_columns", "large_text_columns", "list_columns", "object_columns", "odd_columns", "second_columns", "strided_columns", "text_columns", "view_columns", "zoned_columns", "weak", "uncoalesced", "replicated", "sharded", "distributed", "subclass", "scalar", "matrix", "hybrid", "batched", "zero_tensor", "meta", "traced", "nested", "unknown_shape", "unknown_dtype", "no_storage", "packed", "biased", "per_block"]
# end names
# fmt: on

class NumpyModule(Protocol):
    """NumPy itself."""

    @property
    def ndarray(self) -> type[numpy.ndarray[Any, Any]]: ...

class NumpyLike(Protocol[T_co]):
    """A module whose arrays are its ``ndarray``: NumPy, CuPy, ``jax.numpy``.

    Overloads for modules stand before those for types, for which some checkers take modules.
    """

    @property
    def ndarray(self) -> type[T_co]: ...

class TorchLike(Protocol[T_co]):
    """A module whose arrays are its ``Tensor``: torch, TensorFlow."""

    @property
    def Tensor(self) -> type[T_co]: ...
    # What sets it apart from modules with tensors that are not their arrays.
    @property
    def matmul(self) -> object: ...

class JaxLike(Protocol[T_co]):
    """A module whose arrays are its ``Array``: JAX."""

    @property
    def Array(self) -> type[T_co]: ...
    # What sets it apart from modules with an ``Array`` that is not of numbers.
    @property
    def jit(self) -> object: ...

#: A module that tells the type of its arrays.
Framework: TypeAlias = NumpyLike[T] | TorchLike[T] | JaxLike[T]
#: Several targets, of which the cheapest is taken.
Several: TypeAlias = Iterable[Name | type | ModuleType]
#: What ``to=`` takes where the result's type does not depend on it.
Target: TypeAlias = Name | type | ModuleType | Several

# What dtype and device objects have, and text lacks; their libraries need not be installed.

class HasItemsize(Protocol):
    """A dtype of NumPy, CuPy, torch or pandas."""

    @property
    def itemsize(self) -> object: ...

class HasSize(Protocol):
    """A dtype of MLX."""

    @property
    def size(self) -> object: ...

class HasNumpyDtype(Protocol):
    """A dtype of TensorFlow."""

    @property
    def as_numpy_dtype(self) -> object: ...

class HasBitWidth(Protocol):
    """A dtype of PyArrow."""

    @property
    def bit_width(self) -> object: ...

class HasBaseType(Protocol):
    """A dtype of Polars."""

    def base_type(self) -> object: ...

class HasDtype(Protocol):
    """A scalar type of JAX."""

    @property
    def dtype(self) -> object: ...

class HasType(Protocol):
    """A device of torch."""

    @property
    def type(self) -> object: ...

class HasPlatform(Protocol):
    """A device of JAX."""

    @property
    def platform(self) -> object: ...

class HasId(Protocol):
    """A device of CuPy."""

    @property
    def id(self) -> object: ...

OneDtype: TypeAlias = (
    DtypeName | type | HasItemsize | HasSize | HasNumpyDtype | HasBitWidth | HasBaseType | HasDtype
)

class Text(Protocol[T_co]):
    """Text, if the type is `str`; no value is of ``Text[Never]``.

    Where a keyword takes that, mypy says of a misspelt word which argument is wrong, because it
    first looks at the class alone. Else it prints all signatures, with all words.
    """

    def title(self) -> T_co: ...

#: What ``dtype=`` takes: a dtype, or dtypes by the dtypes or kinds of values.
Dtype: TypeAlias = OneDtype | Mapping[KindName | OneDtype, OneDtype] | Text[Never]
#: What ``device=`` takes.
Device: TypeAlias = DeviceName | HasType | HasPlatform | HasId | Text[Never]
#: Words of `TRAITS`. The traits of a spec are a frozen set.
TraitNames: TypeAlias = Set[TraitName] | frozenset[str]

# The keywords of `interop._model.typing`, with dtypes and devices by name.

class OutKeywords(TypedDict, total=False):
    """The keywords that a call may have beside ``out=``."""

    allow: EffectNames
    forbid: EffectNames
    stream: object

class ArrayKeywords(TypedDict, total=False):
    """The keywords of ``accepts``."""

    dtype: Dtype | None
    device: Device | None
    copy: CopyLike
    allow: EffectNames
    forbid: EffectNames

class Keywords(ArrayKeywords, total=False):
    """The keywords that a call may have beside ``to=``."""

    order: OrderLike
    stream: object

# What containers have that come out as what they were.

class HasShape(Protocol):
    """An array that cannot be hashed: NumPy's, or a frame of pandas."""

    @property
    def shape(self) -> object: ...

A = TypeVar("A", bound=HasShape)

class Accepted(Generic[X, P, R]):
    """A function that takes any arrays.

    Where it answers with an array of the type that it takes first, callers get theirs.
    """

    # mypy answers Any where overloads differ in the parameter that takes an array of anything.

    @overload
    def __call__(self: Accepted[A, P, A], x: list[Any], /, *args: Any, **kwargs: Any) -> A: ...
    @overload
    def __call__(self: Accepted[A, P, A], x: T, /, *args: Any, **kwargs: Any) -> T: ...
    @overload
    def __call__(self: Accepted[X, P, A], x: T, /, *args: Any, **kwargs: Any) -> Any: ...
    @overload
    def __call__(self, x: T, /, *args: Any, **kwargs: Any) -> R: ...
    @overload
    def __call__(self: Accepted[X, P, A], **kwargs: Any) -> Any: ...
    @overload
    def __call__(self, **kwargs: Any) -> R: ...

class HasFields(Protocol):
    """A dataclass."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

class HasAsdict(Protocol):
    """A named tuple."""

    def _asdict(self) -> dict[str, Any]: ...

Record = TypeVar("Record", bound=HasFields | HasAsdict)

class PlanTo(AnyPlan, Generic[T_co]):
    """A plan of which the type of its results is known."""

    def __call__(self, x: object, /) -> T_co: ...

# fmt: off
# begin convert
class Convert:
    @overload
    def __call__(self, x: object, /, to: Numpy | NumpyModule | type[numpy.ndarray[Any, Any]], **keywords: Unpack[Keywords]) -> numpy.typing.NDArray[Any]: ...
    @overload
    def __call__(self, x: object, /, to: NumpyMa, **keywords: Unpack[Keywords]) -> numpy.ma.MaskedArray: ...
    @overload
    def __call__(self, x: object, /, to: Torch, **keywords: Unpack[Keywords]) -> torch.Tensor: ...
    @overload
    def __call__(self, x: object, /, to: TorchDtensor, **keywords: Unpack[Keywords]) -> torch.distributed.tensor.DTensor: ...
    @overload
    def __call__(self, x: object, /, to: TorchJagged, **keywords: Unpack[Keywords]) -> torch.nested._internal.nested_tensor.NestedTensor: ...
    @overload
    def __call__(self, x: object, /, to: Jax, **keywords: Unpack[Keywords]) -> jax.Array: ...
    @overload
    def __call__(self, x: object, /, to: JaxBcoo, **keywords: Unpack[Keywords]) -> jax.experimental.sparse.BCOO: ...
    @overload
    def __call__(self, x: object, /, to: JaxBcsr, **keywords: Unpack[Keywords]) -> jax.experimental.sparse.BCSR: ...
    @overload
    def __call__(self, x: object, /, to: Python, **keywords: Unpack[Keywords]) -> list[Any] | complex: ...
    @overload
    def __call__(self, x: object, /, to: Pandas, **keywords: Unpack[Keywords]) -> pandas.Series | pandas.Index | pandas.api.extensions.ExtensionArray | pandas.DataFrame: ...
    @overload
    def __call__(self, x: object, /, to: PandasArray, **keywords: Unpack[Keywords]) -> pandas.api.extensions.ExtensionArray: ...
    @overload
    def __call__(self, x: object, /, to: PandasDataframe, **keywords: Unpack[Keywords]) -> pandas.DataFrame: ...
    @overload
    def __call__(self, x: object, /, to: PandasIndex, **keywords: Unpack[Keywords]) -> pandas.Index: ...
    @overload
    def __call__(self, x: object, /, to: PandasRows, **keywords: Unpack[Keywords]) -> pandas.Series: ...
    @overload
    def __call__(self, x: object, /, to: Polars, **keywords: Unpack[Keywords]) -> polars.Series | polars.DataFrame: ...
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
    def __call__(self, x: object, /, to: Scipy, **keywords: Unpack[Keywords]) -> scipy.sparse.csr_array | scipy.sparse.csc_array | scipy.sparse.bsr_array | scipy.sparse.coo_array | scipy.sparse.dia_array | scipy.sparse.lil_array | scipy.sparse.dok_array: ...
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
    def __call__(self, x: object, /, to: Xarray, **keywords: Unpack[Keywords]) -> xarray.Variable | xarray.DataArray: ...
    @overload
    def __call__(self, x: object, /, to: XarrayDataarray, **keywords: Unpack[Keywords]) -> xarray.DataArray: ...
    @overload
    def __call__(self, x: object, /, to: XarrayVariable, **keywords: Unpack[Keywords]) -> xarray.Variable: ...
    @overload
    def __call__(self, x: object, /, to: ArrayApiStrict, **keywords: Unpack[Keywords]) -> array_api_strict._array_object.Array: ...
    @overload
    def __call__(self, x: object, /, to: Awkward, **keywords: Unpack[Keywords]) -> awkward.Array: ...
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
    def __call__(self, x: object, /, to: Mlx, **keywords: Unpack[Keywords]) -> mlx.core.array: ...
    @overload
    def __call__(self, x: object, /, to: Onnxruntime, **keywords: Unpack[Keywords]) -> onnxruntime.capi.onnxruntime_inference_collection.OrtValue: ...
    @overload
    def __call__(self, x: object, /, to: Quantized, **keywords: Unpack[Keywords]) -> interop_plugins.quantized.array.QuantizedArray: ...
    @overload
    def __call__(self, x: object, /, to: Sparse, **keywords: Unpack[Keywords]) -> sparse.COO | sparse.GCXS | sparse.DOK: ...
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
    def __call__(self, x: object, /, to: TensorflowRagged, **keywords: Unpack[Keywords]) -> tensorflow.RaggedTensor: ...
    @overload
    def __call__(self, x: object, /, to: TensorflowSparse, **keywords: Unpack[Keywords]) -> tensorflow.SparseTensor: ...
    @overload
    def __call__(self, x: object, /, to: Framework[T], **keywords: Unpack[Keywords]) -> T: ...
    @overload
    def __call__(self, x: object, /, to: ModuleType, **keywords: Unpack[Keywords]) -> Any: ...
    @overload
    def __call__(self, x: object, /, to: type[T], **keywords: Unpack[Keywords]) -> T: ...
    @overload
    def __call__(self, x: object, /, to: Target, **keywords: Unpack[Keywords]) -> Any: ...
    @overload
    def __call__(self, x: object, /, *, like: T, **keywords: Unpack[Keywords]) -> T: ...
    @overload
    def __call__(self, x: object, /, *, out: T, **keywords: Unpack[OutKeywords]) -> T: ...
convert: Convert
"""``convert(x, /, to=None, *, like=None, dtype=None, device=None, copy=None, order=None, out=None, allow=(), forbid=(), stream=None)``

Convert `x` to another format by the cheapest correct route.

Parameters
----------
x : object
    Anything that holds an array: an array or tensor of a known framework, dense, sparse
    or quantized; any object with ``__dlpack__``, ``__cuda_array_interface__``,
    ``__array_interface__``, the buffer protocol, ``__arrow_c_array__``,
    ``__arrow_c_stream__`` or ``__array__``; a Python scalar or nested list.
to : str, type, module or sequence of these
    A format (``"torch"``, ``"scipy.csr"``), a framework's array type (``np.ndarray``) or
    its module (``np``). A sequence means the cheapest of its targets. The name of a
    framework that has only sparse formats means any of them.
like : object, optional
    Instead of `to`: a value whose format and device the result gets. The result also gets
    its labels, if the shapes agree and `x` has no labels. If the value is divided over
    devices or processes, a result of another format is divided likewise where a
    conversion can do so.
dtype : str, dtype or mapping, optional
    dtype of the result, by NumPy's or ml_dtypes' name or as a framework's dtype object.
    Asking for it is consent to the cast. By default the dtype of `x`, or the narrowest
    that holds all its values if the target does not know the dtype of `x`. A mapping names
    dtypes of results by the dtypes of values, or by their kinds in the array API standard
    (``{"real floating": "float32", "integral": "int64"}``); the narrower of two keys
    counts. The default is for values of other dtypes.
device : str, optional
    ``"cpu"``, ``"cuda"``, ``"cuda:1"`` …; ``"cpu:2"`` for a target that divides the host;
    ``"cuda_host"`` for page-locked memory of the host, which serves ``"cpu"`` as well.
    By default the data stay where they are if the target can be there.
copy : bool or "writable", optional
    None: share memory if at all possible. True: the result owns fresh writable memory.
    False: never copy, in any step; raise instead. "writable": share memory unless it is
    read-only or an immutable framework's, so that the result can be written to.
order : {"C", "F"}, optional
    The order in which the elements of a dense result lie in memory, as for `numpy.asarray`:
    they are copied only if they do not lie so. By default any, so that memory can be
    shared. Tables, lists, sparse and lazy arrays serve as "C", and are refused as "F".
out : array, optional
    An array into which the result is written; it is returned. It decides format, dtype
    and device, so `to`, `like`, `dtype`, `device`, `order` and ``copy=False`` are refused
    beside it. It is consent to narrow to its dtype, unless ``forbid="narrow"``. After an
    error its numbers are undefined.
allow, forbid : str or iterable of str
    Effects permitted or refused in this call.
stream : int or object, optional
    The stream on which the consumer will use the result, if the target has streams: its
    handle, or a framework's object.

Returns
-------
array
    It has the requested format. It shares memory with `x` unless `copy` is True or every
    route copies; that depends on the spec of `x` and on the request alone. A value that
    already is as requested is returned as it is.

Raises
------
UnknownValueError, UnknownTargetError
    `x` or `to` is not known (TypeErrors).
BadRequestError, RefusedError
    The request or a list makes no sense, or no route is permitted (ValueErrors).
HandOffError
    A producer's memory is not as the protocol demands (a BufferError).
DoesNotFitError
    The result does not fit in memory (a MemoryError), for example the dense form of a
    sparse array.
NotInstalledError
    The target's framework is not installed (an ImportError).
ConversionError, DeviceError
    A step failed, or the device is missing (RuntimeErrors).
PluginError
    A plugin cannot describe `x`, or no plugin is installed (a RuntimeError).

Warns
-----
ComplexWarning
    A cast keeps only the real parts of complex numbers.

Examples
--------
>>> import interop, numpy as np
>>> interop.convert(np.arange(3), to="python")
[0, 1, 2]
>>> interop.convert([1, 2], to="numpy", dtype="float32")
array([1., 2.], dtype=float32)
"""
# end convert
# begin converter
class Converter:
    @overload
    def __call__(self, to: Numpy | NumpyModule | type[numpy.ndarray[Any, Any]], **keywords: Unpack[Keywords]) -> Callable[[object], numpy.typing.NDArray[Any]]: ...
    @overload
    def __call__(self, to: NumpyMa, **keywords: Unpack[Keywords]) -> Callable[[object], numpy.ma.MaskedArray]: ...
    @overload
    def __call__(self, to: Torch, **keywords: Unpack[Keywords]) -> Callable[[object], torch.Tensor]: ...
    @overload
    def __call__(self, to: TorchDtensor, **keywords: Unpack[Keywords]) -> Callable[[object], torch.distributed.tensor.DTensor]: ...
    @overload
    def __call__(self, to: TorchJagged, **keywords: Unpack[Keywords]) -> Callable[[object], torch.nested._internal.nested_tensor.NestedTensor]: ...
    @overload
    def __call__(self, to: Jax, **keywords: Unpack[Keywords]) -> Callable[[object], jax.Array]: ...
    @overload
    def __call__(self, to: JaxBcoo, **keywords: Unpack[Keywords]) -> Callable[[object], jax.experimental.sparse.BCOO]: ...
    @overload
    def __call__(self, to: JaxBcsr, **keywords: Unpack[Keywords]) -> Callable[[object], jax.experimental.sparse.BCSR]: ...
    @overload
    def __call__(self, to: Python, **keywords: Unpack[Keywords]) -> Callable[[object], list[Any] | complex]: ...
    @overload
    def __call__(self, to: Pandas, **keywords: Unpack[Keywords]) -> Callable[[object], pandas.Series | pandas.Index | pandas.api.extensions.ExtensionArray | pandas.DataFrame]: ...
    @overload
    def __call__(self, to: PandasArray, **keywords: Unpack[Keywords]) -> Callable[[object], pandas.api.extensions.ExtensionArray]: ...
    @overload
    def __call__(self, to: PandasDataframe, **keywords: Unpack[Keywords]) -> Callable[[object], pandas.DataFrame]: ...
    @overload
    def __call__(self, to: PandasIndex, **keywords: Unpack[Keywords]) -> Callable[[object], pandas.Index]: ...
    @overload
    def __call__(self, to: PandasRows, **keywords: Unpack[Keywords]) -> Callable[[object], pandas.Series]: ...
    @overload
    def __call__(self, to: Polars, **keywords: Unpack[Keywords]) -> Callable[[object], polars.Series | polars.DataFrame]: ...
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
    def __call__(self, to: Scipy, **keywords: Unpack[Keywords]) -> Callable[[object], scipy.sparse.csr_array | scipy.sparse.csc_array | scipy.sparse.bsr_array | scipy.sparse.coo_array | scipy.sparse.dia_array | scipy.sparse.lil_array | scipy.sparse.dok_array]: ...
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
    def __call__(self, to: Xarray, **keywords: Unpack[Keywords]) -> Callable[[object], xarray.Variable | xarray.DataArray]: ...
    @overload
    def __call__(self, to: XarrayDataarray, **keywords: Unpack[Keywords]) -> Callable[[object], xarray.DataArray]: ...
    @overload
    def __call__(self, to: XarrayVariable, **keywords: Unpack[Keywords]) -> Callable[[object], xarray.Variable]: ...
    @overload
    def __call__(self, to: ArrayApiStrict, **keywords: Unpack[Keywords]) -> Callable[[object], array_api_strict._array_object.Array]: ...
    @overload
    def __call__(self, to: Awkward, **keywords: Unpack[Keywords]) -> Callable[[object], awkward.Array]: ...
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
    def __call__(self, to: Mlx, **keywords: Unpack[Keywords]) -> Callable[[object], mlx.core.array]: ...
    @overload
    def __call__(self, to: Onnxruntime, **keywords: Unpack[Keywords]) -> Callable[[object], onnxruntime.capi.onnxruntime_inference_collection.OrtValue]: ...
    @overload
    def __call__(self, to: Quantized, **keywords: Unpack[Keywords]) -> Callable[[object], interop_plugins.quantized.array.QuantizedArray]: ...
    @overload
    def __call__(self, to: Sparse, **keywords: Unpack[Keywords]) -> Callable[[object], sparse.COO | sparse.GCXS | sparse.DOK]: ...
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
    def __call__(self, to: TensorflowRagged, **keywords: Unpack[Keywords]) -> Callable[[object], tensorflow.RaggedTensor]: ...
    @overload
    def __call__(self, to: TensorflowSparse, **keywords: Unpack[Keywords]) -> Callable[[object], tensorflow.SparseTensor]: ...
    @overload
    def __call__(self, to: Framework[T], **keywords: Unpack[Keywords]) -> Callable[[object], T]: ...
    @overload
    def __call__(self, to: ModuleType, **keywords: Unpack[Keywords]) -> Callable[[object], Any]: ...
    @overload
    def __call__(self, to: type[T], **keywords: Unpack[Keywords]) -> Callable[[object], T]: ...
    @overload
    def __call__(self, to: Target, **keywords: Unpack[Keywords]) -> Callable[[object], Any]: ...
    @overload
    def __call__(self, *, like: T, **keywords: Unpack[Keywords]) -> Callable[[object], T]: ...
converter: Converter
"""``converter(to=None, *, like=None, dtype=None, device=None, copy=None, order=None, allow=(), forbid=(), stream=None)``

Resolve a request once, for hot loops.

The converter keeps the policy that is in force when it is made.

Parameters
----------
to, like, dtype, device, copy, order, allow, forbid, stream
    As for `convert`, which also takes `out`.

Returns
-------
callable
    ``converter(x)`` does what ``convert(x, ...)`` would do. It shares the plans of this
    instance, and holds the value in `like`. It is pickled by its request, policy included,
    if it was not made for a `stream`.

Raises
------
UnknownValueError, UnknownTargetError, BadRequestError
    As for `convert`, because of the keywords.

Examples
--------
>>> import interop
>>> to_floats = interop.converter("numpy", dtype="float32")
>>> to_floats([1, 2])
array([1., 2.], dtype=float32)
"""
# end converter
# begin plan
class Plan:
    @overload
    def __call__(self, x_or_spec: object, /, to: Numpy | NumpyModule | type[numpy.ndarray[Any, Any]], **keywords: Unpack[Keywords]) -> PlanTo[numpy.typing.NDArray[Any]]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: NumpyMa, **keywords: Unpack[Keywords]) -> PlanTo[numpy.ma.MaskedArray]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: Torch, **keywords: Unpack[Keywords]) -> PlanTo[torch.Tensor]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: TorchDtensor, **keywords: Unpack[Keywords]) -> PlanTo[torch.distributed.tensor.DTensor]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: TorchJagged, **keywords: Unpack[Keywords]) -> PlanTo[torch.nested._internal.nested_tensor.NestedTensor]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: Jax, **keywords: Unpack[Keywords]) -> PlanTo[jax.Array]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: JaxBcoo, **keywords: Unpack[Keywords]) -> PlanTo[jax.experimental.sparse.BCOO]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: JaxBcsr, **keywords: Unpack[Keywords]) -> PlanTo[jax.experimental.sparse.BCSR]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: Python, **keywords: Unpack[Keywords]) -> PlanTo[list[Any] | complex]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: Pandas, **keywords: Unpack[Keywords]) -> PlanTo[pandas.Series | pandas.Index | pandas.api.extensions.ExtensionArray | pandas.DataFrame]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: PandasArray, **keywords: Unpack[Keywords]) -> PlanTo[pandas.api.extensions.ExtensionArray]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: PandasDataframe, **keywords: Unpack[Keywords]) -> PlanTo[pandas.DataFrame]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: PandasIndex, **keywords: Unpack[Keywords]) -> PlanTo[pandas.Index]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: PandasRows, **keywords: Unpack[Keywords]) -> PlanTo[pandas.Series]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: Polars, **keywords: Unpack[Keywords]) -> PlanTo[polars.Series | polars.DataFrame]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: PolarsDataframe, **keywords: Unpack[Keywords]) -> PlanTo[polars.DataFrame]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: PolarsList, **keywords: Unpack[Keywords]) -> PlanTo[polars.Series]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: Pyarrow, **keywords: Unpack[Keywords]) -> PlanTo[pyarrow.Array]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: PyarrowChunkedArray, **keywords: Unpack[Keywords]) -> PlanTo[pyarrow.ChunkedArray]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: PyarrowFixedShapeTensor, **keywords: Unpack[Keywords]) -> PlanTo[pyarrow.FixedShapeTensorArray]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: PyarrowFixedSizeList, **keywords: Unpack[Keywords]) -> PlanTo[pyarrow.FixedSizeListArray]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: PyarrowList, **keywords: Unpack[Keywords]) -> PlanTo[pyarrow.ListArray]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: PyarrowRecordBatch, **keywords: Unpack[Keywords]) -> PlanTo[pyarrow.RecordBatch]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: PyarrowRow, **keywords: Unpack[Keywords]) -> PlanTo[pyarrow.FixedShapeTensorScalar]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: PyarrowScalar, **keywords: Unpack[Keywords]) -> PlanTo[pyarrow.Scalar]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: PyarrowTable, **keywords: Unpack[Keywords]) -> PlanTo[pyarrow.Table]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: PyarrowTensor, **keywords: Unpack[Keywords]) -> PlanTo[pyarrow.Tensor]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: Scipy, **keywords: Unpack[Keywords]) -> PlanTo[scipy.sparse.csr_array | scipy.sparse.csc_array | scipy.sparse.bsr_array | scipy.sparse.coo_array | scipy.sparse.dia_array | scipy.sparse.lil_array | scipy.sparse.dok_array]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: ScipyBsr, **keywords: Unpack[Keywords]) -> PlanTo[scipy.sparse.bsr_array]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: ScipyCoo, **keywords: Unpack[Keywords]) -> PlanTo[scipy.sparse.coo_array]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: ScipyCsc, **keywords: Unpack[Keywords]) -> PlanTo[scipy.sparse.csc_array]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: ScipyCsr, **keywords: Unpack[Keywords]) -> PlanTo[scipy.sparse.csr_array]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: ScipyDia, **keywords: Unpack[Keywords]) -> PlanTo[scipy.sparse.dia_array]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: ScipyDok, **keywords: Unpack[Keywords]) -> PlanTo[scipy.sparse.dok_array]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: ScipyLil, **keywords: Unpack[Keywords]) -> PlanTo[scipy.sparse.lil_array]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: Xarray, **keywords: Unpack[Keywords]) -> PlanTo[xarray.Variable | xarray.DataArray]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: XarrayDataarray, **keywords: Unpack[Keywords]) -> PlanTo[xarray.DataArray]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: XarrayVariable, **keywords: Unpack[Keywords]) -> PlanTo[xarray.Variable]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: ArrayApiStrict, **keywords: Unpack[Keywords]) -> PlanTo[array_api_strict._array_object.Array]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: Awkward, **keywords: Unpack[Keywords]) -> PlanTo[awkward.Array]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: Cupy, **keywords: Unpack[Keywords]) -> PlanTo[cupy.ndarray]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: CupyCoo, **keywords: Unpack[Keywords]) -> PlanTo[cupyx.scipy.sparse.coo_array]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: CupyCsc, **keywords: Unpack[Keywords]) -> PlanTo[cupyx.scipy.sparse.csc_array]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: CupyCsr, **keywords: Unpack[Keywords]) -> PlanTo[cupyx.scipy.sparse.csr_array]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: CupyDia, **keywords: Unpack[Keywords]) -> PlanTo[cupyx.scipy.sparse.dia_array]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: Dask, **keywords: Unpack[Keywords]) -> PlanTo[dask.array.Array]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: Dpnp, **keywords: Unpack[Keywords]) -> PlanTo[dpnp.ndarray]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: DpnpTensor, **keywords: Unpack[Keywords]) -> PlanTo[dpnp.tensor.usm_ndarray]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: Mlx, **keywords: Unpack[Keywords]) -> PlanTo[mlx.core.array]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: Onnxruntime, **keywords: Unpack[Keywords]) -> PlanTo[onnxruntime.capi.onnxruntime_inference_collection.OrtValue]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: Quantized, **keywords: Unpack[Keywords]) -> PlanTo[interop_plugins.quantized.array.QuantizedArray]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: Sparse, **keywords: Unpack[Keywords]) -> PlanTo[sparse.COO | sparse.GCXS | sparse.DOK]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: SparseCoo, **keywords: Unpack[Keywords]) -> PlanTo[sparse.COO]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: SparseDok, **keywords: Unpack[Keywords]) -> PlanTo[sparse.DOK]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: SparseGcxs, **keywords: Unpack[Keywords]) -> PlanTo[sparse.GCXS]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: Tensorflow, **keywords: Unpack[Keywords]) -> PlanTo[tensorflow.Tensor]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: TensorflowIndexedSlices, **keywords: Unpack[Keywords]) -> PlanTo[tensorflow.IndexedSlices]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: TensorflowRagged, **keywords: Unpack[Keywords]) -> PlanTo[tensorflow.RaggedTensor]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: TensorflowSparse, **keywords: Unpack[Keywords]) -> PlanTo[tensorflow.SparseTensor]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: Framework[T], **keywords: Unpack[Keywords]) -> PlanTo[T]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: ModuleType, **keywords: Unpack[Keywords]) -> PlanTo[Any]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: type[T], **keywords: Unpack[Keywords]) -> PlanTo[T]: ...
    @overload
    def __call__(self, x_or_spec: object, /, to: Target, **keywords: Unpack[Keywords]) -> PlanTo[Any]: ...
    @overload
    def __call__(self, x_or_spec: object, /, *, like: T, **keywords: Unpack[Keywords]) -> PlanTo[T]: ...
plan: Plan
"""``plan(x_or_spec, /, to=None, *, like=None, dtype=None, device=None, copy=None, order=None, allow=(), forbid=(), stream=None)``

Return the plan that `convert` would carry out, without touching the data.

Parameters
----------
x_or_spec : object or Spec
    A value, or the spec of one; no framework and no device is needed to plan from a spec.
to, like, dtype, device, copy, order, allow, forbid, stream
    As for `convert`, which also takes `out`.

Returns
-------
Plan
    It prints as a table. Calling it with a value carries it out. Its `explain` plans again,
    to find the routes that were refused.

Raises
------
UnknownValueError, UnknownTargetError, BadRequestError, RefusedError, PluginError
    As for `convert`.

Examples
--------
>>> import interop
>>> spec = interop.make_spec("torch", "float32", device="cuda:0", shape=(3,))
>>> interop.plan(spec, to="numpy").effects
frozenset({'transfer'})
"""
# end plan
# begin convert_tree
class ConvertTree:
    @overload
    def __call__(self, tree: OrderedDict[K, V], /, to: Target | None = None, *, cast_all: bool = False, others: OtherLeaves = "keep", lists: Literal["open", "arrays"] = "open", progress: bool = False, consume: bool = False, like: object = None, **keywords: Unpack[Keywords]) -> OrderedDict[K, Any]: ...
    @overload
    def __call__(self, tree: defaultdict[K, V], /, to: Target | None = None, *, cast_all: bool = False, others: OtherLeaves = "keep", lists: Literal["open", "arrays"] = "open", progress: bool = False, consume: bool = False, like: object = None, **keywords: Unpack[Keywords]) -> defaultdict[K, Any]: ...
    @overload
    def __call__(self, tree: dict[K, V], /, to: Target | None = None, *, cast_all: bool = False, others: OtherLeaves = "keep", lists: Literal["open", "arrays"] = "open", progress: bool = False, consume: bool = False, like: object = None, **keywords: Unpack[Keywords]) -> dict[K, Any]: ...
    @overload
    def __call__(self, tree: list[V], /, to: Target | None = None, *, cast_all: bool = False, others: OtherLeaves = "keep", lists: Literal["open", "arrays"] = "open", progress: bool = False, consume: bool = False, like: object = None, **keywords: Unpack[Keywords]) -> list[Any]: ...
    @overload
    def __call__(self, tree: deque[V], /, to: Target | None = None, *, cast_all: bool = False, others: OtherLeaves = "keep", lists: Literal["open", "arrays"] = "open", progress: bool = False, consume: bool = False, like: object = None, **keywords: Unpack[Keywords]) -> deque[Any]: ...
    @overload
    def __call__(self, tree: Record, /, to: Target | None = None, *, cast_all: bool = False, others: OtherLeaves = "keep", lists: Literal["open", "arrays"] = "open", progress: bool = False, consume: bool = False, like: object = None, **keywords: Unpack[Keywords]) -> Record: ...
    @overload
    def __call__(self, tree: tuple[V, ...], /, to: Target | None = None, *, cast_all: bool = False, others: OtherLeaves = "keep", lists: Literal["open", "arrays"] = "open", progress: bool = False, consume: bool = False, like: object = None, **keywords: Unpack[Keywords]) -> tuple[Any, ...]: ...
    @overload
    def __call__(self, tree: Hashable | HasShape, /, to: Target | None = None, *, cast_all: bool = False, others: OtherLeaves = "keep", lists: Literal["open", "arrays"] = "open", progress: bool = False, consume: bool = False, like: object = None, **keywords: Unpack[Keywords]) -> Any: ...
    @overload
    def __call__(self, tree: T, /, to: Target | None = None, *, cast_all: bool = False, others: OtherLeaves = "keep", lists: Literal["open", "arrays"] = "open", progress: bool = False, consume: bool = False, like: object = None, **keywords: Unpack[Keywords]) -> T: ...  # type: ignore[overload-cannot-match]
convert_tree: ConvertTree
"""``convert_tree(tree, /, to=None, *, like=None, dtype=None, device=None, copy=None, order=None, allow=(), forbid=(), stream=None, cast_all=False, others='keep', lists='open', progress=False, consume=False)``

Convert every array in nested containers.

Dicts, lists, tuples, namedtuples, deques and their subclasses, dataclasses, all other
mappings, and containers that plugins open (the pytrees of JAX, instances of attrs classes,
pydantic models, TensorDicts) are traversed. `others` says what happens to numbers, strings
and everything else that is not an array of numbers.

Parameters
----------
tree : object
    It is left as it is, unless `consume` is set.
to, like, dtype, device, copy, order, allow, forbid, stream
    As for `convert`, for every array; but no array gets the labels of `like`, and `dtype`
    is for the arrays of its kind: of floats, of integers, of bools or of complex numbers.
    Arrays of another kind keep their dtype, so that a cast of weights leaves token ids and
    masks as they are.
cast_all : bool, default False
    Whether `dtype` is for the arrays of other kinds, too.
others : {"keep", "convert", "refuse"}, default "keep"
    The fate of leaves that are not arrays of numbers. "keep": they pass through. "convert":
    they pass through, but Python's numbers become 0-d arrays. "refuse": the first of them
    is refused, unless it is None.
lists : {"open", "arrays"}, default "open"
    The fate of lists. "arrays": a list of numbers or of arrays, to any depth, is one array,
    as for `convert`; all others are opened, and so are tuples.
progress : bool, default False
    Whether to show a bar on standard error; needs ``rich``.
consume : bool, default False
    Whether to empty the dicts, lists and deques of the tree before converting, so that
    each array can be freed as soon as it is converted. If a conversion then fails, they
    are filled again: with the results so far, and with the arrays that are left.

Returns
-------
object
    New containers of the same types around the converted arrays; a dict stands for a file,
    a Dataset of xarray and records, which hold no other arrays than their own. An array
    that occurs twice is one array in the result. Two contiguous arrays of one type, dtype
    and shape over the same memory (tied weights) stay tied: they become one copy, or views
    over that memory. At most the tree and the result are in memory at once.

Raises
------
InteropError
    As for `convert`. The message begins with the path of the leaf
    (``model/layers/3/weight``), which is also the error's `where`.
RefusedLeavesError
    Several leaves are refused: a `RefusedError` and an `ExceptionGroup` of the first ten.
UnknownValueError
    A model, an iterator, a set or a view holds arrays that would come back unconverted.
BadRequestError
    A container holds itself, or has no means to be made anew around other arrays; or the
    tree is too deep.
NotInstalledError
    A target's framework is missing, or ``rich`` for `progress`.

Examples
--------
>>> import interop, numpy as np
>>> batch = {"pixels": [np.ones(2), np.ones(1)], "ids": np.arange(2), "split": "train"}
>>> interop.convert_tree(batch, to="numpy", dtype="float32")["pixels"]
[array([1., 1.], dtype=float32), array([1.], dtype=float32)]
>>> interop.convert_tree(batch, to="numpy", dtype="float32")["ids"]
array([0, 1])
"""
# end convert_tree
# begin accepts
class Accepts:
    @overload
    def __call__(self, to: Target, *, grad: bool = False, lists: bool = False, **keywords: Unpack[ArrayKeywords]) -> Callable[[Callable[Concatenate[X, P], R]], Accepted[X, P, R]]: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, to: Callable[Concatenate[X, P], R], /) -> Accepted[X, P, R]: ...
accepts: Accepts
"""``accepts(to, *, dtype=None, device=None, copy=None, allow=(), forbid=(), grad=False, lists=False)``

Let a function that is written for one framework take the arrays of any.

Parameters
----------
to : str, type or module
    The format that the function is written for. ``@accepts`` without parentheses takes it
    from the array types among the function's annotations.
dtype, device, copy, allow, forbid
    As for `convert`, for every array among the arguments; `allow` and `forbid` hold for
    those in the result, too.
grad : bool, default False
    Whether the function takes part in the caller's reverse-mode differentiation. Both
    frameworks must be ones that a plugin differentiates; arrays of others are constants.
    Without it a call that would cut a history, while one is being recorded, is refused,
    unless ``allow="detach"`` permits that.
lists : bool, default False
    Whether lists of numbers or of arrays among the arguments are arrays, too. They name no
    framework: a result goes back to the first other array, or stays as it is.

Returns
-------
callable
    A decorator. The function that it returns converts the arrays among its arguments, also
    those inside lists, tuples and mappings. It gives the arrays in the result back on the
    device and in the framework of the first array of numbers: a sparse result in the format
    of the same layout, if there is one, every other result as a dense array. If the shapes
    agree, the result gets the labels of that argument; one of as many rows gets those of
    the rows, where the framework aligns by them. A result for whose number of axes the
    framework has no format is given back as it is. Everything that is not an array of
    numbers passes through, and so do results of text and the result of a call without
    arrays; but a table among the arguments that has columns of text is refused.

Raises
------
UnknownTargetError, BadRequestError
    As for `convert`.
BadRequestError
    The function is a coroutine or a generator; or, when it is called with `grad`, no
    plugin differentiates functions of its framework.
RefusedError
    When it is called: as for `convert`, and for an array with a history (see `grad`).

Notes
-----
Without ``copy=True`` the function is given the caller's memory where that can be shared,
and must not write to it. Only floating-point and complex arrays are differentiated, and
only once: neither the pullback nor forward mode is differentiable.

Examples
--------
>>> import interop, torch
>>> @interop.accepts("numpy")
... def centred(x):
...     return x - x.mean()
>>> centred(torch.tensor([1.0, 3.0]))
tensor([-1.,  1.])
"""
# end accepts
# begin make_spec
class MakeSpec:
    def __call__(self, format: FormatName, dtype: OneDtype, *, device: Device = ..., shape: tuple[int, ...] = ..., traits: TraitNames = ...) -> Spec: ...  # noqa: A002
make_spec: MakeSpec
"""``make_spec(format, dtype, *, device='cpu', shape=(), traits=frozenset())``

Return the spec of a dense array that need not exist, to plan from.

Parameters
----------
format : str
dtype : str or dtype
device : str, default "cpu"
shape : tuple of int, in elements
traits : set of str
    Words of `TRAITS`, or of a plugin's.

Returns
-------
Spec
    With `nbytes` worked out from dtype and shape.

Raises
------
UnknownValueError, BadRequestError
    No such format is registered, or a word names no dtype, device or trait.

Examples
--------
>>> import interop
>>> interop.make_spec("torch", "bf16", device="cuda:0", shape=(4096, 4096)).nbytes
33554432
"""
# end make_spec
# fmt: on
