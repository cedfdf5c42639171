"""xarray: Variables and DataArrays, which hold arrays of other frameworks under names.

They are described as the array inside, whatever it is (NumPy's, dask's, CuPy's, sparse …). On the
way to other frameworks they are unwrapped, which drops names of axes, coordinates and attributes
(the effect `drop_labels`). From xarray to xarray these are kept. Arrays that xarray would read from
a file on demand are loaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import interop
from interop.errors import RefusedError, UnknownValueError
from interop.kit import (
    COPY,
    DTYPE,
    EMPTY,
    NATIVE,
    TEXTS,
    CastErrors,
    dtype_name,
    numpy_dtype,
    real_part,
)
from interop.plugin import (
    DTYPES,
    MEMORY_TRAITS,
    TRAITS,
    Branch,
    Container,
    Conversion,
    Copy,
    Cost,
    Declaration,
    Declined,
    Format,
    Labels,
    Result,
    Spec,
    Wrapper,
    hookimpl,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import xarray as xr

    Array: TypeAlias = np.ndarray[Any, Any]
    #: An array of any framework.
    AnyArray: TypeAlias = Any
    Labelled: TypeAlias = xr.Variable | xr.DataArray
    LabelledT = TypeVar("LabelledT", xr.Variable, xr.DataArray)

_MATERIALIZE = frozenset({"materialize"})
_UNLOADED, _FILL_VALUE = frozenset({"unloaded"}), frozenset({"fill_value"})

#: The dtypes that NumPy holds.
_NUMPY = frozenset(DTYPES) - {"complex32"}

#: The formats that xarray wraps, with their devices and the traits of their arrays.
_WRAPPED = {
    "numpy": ("cpu", MEMORY_TRAITS),
    "cupy": ("cuda", MEMORY_TRAITS),
    "dask": ("cpu", EMPTY),
    "sparse.coo": ("cpu", _FILL_VALUE | {"readonly", "immutable"}),
}
#: The names of NumPy's dtypes of dates. xarray turns the longer units into seconds.
_DATES = frozenset(
    f"{kind}64[{unit}]$" for kind in ("datetime", "timedelta") for unit in ("s", "ms", "us", "ns")
)
_LONG_DATES = frozenset(
    f"{kind}64[{unit}]$" for kind in ("datetime", "timedelta") for unit in ("m", "h", "D")
)
_ANY_TRAIT = frozenset(TRAITS) | _UNLOADED | _FILL_VALUE


def unwrap(value: Labelled) -> AnyArray | None:
    """Return the array that a Variable or a DataArray holds; None if it is not loaded yet.

    Raises
    ------
    UnknownValueError
        The value is a Dataset or a DataTree, which hold several arrays.
    """
    variable = _variable(value)
    data = variable._data
    loads = hasattr(type(data), "get_duck_array") and not variable._in_memory
    return None if loads else _locked(variable)


def _locked(variable: xr.Variable) -> AnyArray:
    """Return the array of a Variable, read-only if it is the array of an index."""
    import numpy as np
    import xarray as xr

    array = variable.data
    is_index = isinstance(variable, xr.IndexVariable) and isinstance(array, np.ndarray)
    if is_index and array.flags.writeable:  # pandas before 3 does not lock the labels it looks up
        array = array.view()
        array.flags.writeable = False
    return array


def _variable(value: Labelled | xr.Dataset | xr.DataTree) -> xr.Variable:
    import xarray as xr

    if isinstance(value, xr.Variable):
        return value
    if isinstance(value, xr.DataArray):
        return value.variable
    msg = (
        f"an xarray.{type(value).__name__} is several arrays; choose one of them (x['name']), or "
        "make one of all first (to_dataarray of a Dataset)."
    )
    raise UnknownValueError(msg)


def describe(value: Labelled) -> Spec:
    """Return the spec of a value that is not loaded yet."""
    import numpy as np

    dtype = np.dtype(value.dtype)
    traits = _UNLOADED if dtype.isnative else _UNLOADED | {"byteswapped"}
    nbytes = prod(value.shape) * dtype.itemsize
    return Spec(_format_name(value), dtype_name(dtype), "cpu", value.shape, traits, nbytes)


def _format_name(value: Labelled) -> str:
    return "xarray.variable" if _variable(value) is value else "xarray.dataarray"


def load(value: Labelled) -> Array:
    """Return the numbers of a variable in a file; xarray may keep them, too."""
    import numpy as np

    data = _variable(value).data
    if type(data) is not np.ndarray:
        msg = f"it was loaded as {_type_name(data)}"
        raise Declined(msg)
    return data


def _type_name(data: AnyArray) -> str:
    return f"{type(data).__module__}.{type(data).__qualname__}"


def to_variable(array: AnyArray) -> xr.Variable:
    """Return a Variable around an array, with the default names of axes of a DataArray."""
    import xarray as xr

    return xr.Variable([f"dim_{axis}" for axis in range(array.ndim)], array)


def to_dataarray(array: AnyArray) -> xr.DataArray:
    """Return a DataArray around an array, without coordinates."""
    import xarray as xr

    return xr.DataArray(to_variable(array))


def as_variable(array: xr.DataArray) -> xr.Variable:
    """Return the Variable of a DataArray."""
    return array.variable


def as_dataarray(variable: xr.Variable) -> xr.DataArray:
    """Return a DataArray of a Variable, without coordinates."""
    import xarray as xr

    return xr.DataArray(variable)


def recast(value: LabelledT, *, dtype: str) -> LabelledT:
    """Return a value under the same names around a copy of the array, cast as NumPy casts.

    A lazy array is copied and cast when it is computed.
    """
    import numpy as np

    data = _variable(value).data
    copy = _cast(data, dtype) if isinstance(data, np.ndarray) else _converted(data, dtype)
    return _relabelled(value, copy)


def copy_to_fortran(value: LabelledT, *, order: str) -> LabelledT:
    """Return a value under the same names around a copy of the array in Fortran order."""
    data = _variable(value).data
    return _relabelled(value, _converted(data, dtype=interop.spec(data).dtype, order=order))


def copy_elements(value: LabelledT) -> LabelledT:
    """Return a value under the same names around a copy of text, dates or objects."""
    return _relabelled(value, _variable(value).data.copy())


def _cast(data: Array, dtype: str) -> Array:
    import numpy as np

    out = np.empty(data.shape, numpy_dtype(dtype))
    errors = CastErrors()
    if not np.can_cast(data.dtype, out.dtype, "unsafe"):
        data = data.astype("f4")  # some dtypes of ml_dtypes have no cast to some others
    errors.run(np.copyto, out, real_part(data, out.dtype), "unsafe")
    errors.tell()
    return out


def _converted(data: AnyArray, dtype: Any, order: Any = None) -> AnyArray:
    """Return a copy of an array in its own format."""
    spec = interop.spec(data)
    name: Any = spec.format  # type checkers take known names only, of dtypes as well
    try:
        if dtype == spec.dtype:
            return interop.convert(data, name, copy=True, order=order)
        return interop.convert(data, name, dtype=dtype)
    except RefusedError as refusal:
        msg = f"it holds a {_type_name(data)}: {refusal}"
        raise Declined(msg) from refusal


def _relabelled(value: LabelledT, data: AnyArray) -> LabelledT:
    """Return an array under the labels of a value, in an object of the value's type."""
    import xarray as xr

    variable = _variable(value)
    if not isinstance(variable, xr.IndexVariable):
        return value.copy(data=data)
    # An index never changes, so the result, which may be written to, is a plain Variable.
    plain = variable.to_base_variable().copy(data=data)
    if isinstance(value, xr.Variable):
        return plain
    return xr.DataArray(plain, coords=value.coords, name=value.name)


def has_labels(value: Labelled) -> bool:
    """Tell whether there are labels other than the names that xarray gives to every axis."""
    import xarray as xr

    named = value.dims != tuple(f"dim_{axis}" for axis in range(value.ndim))
    if isinstance(value, xr.DataArray):
        return named or bool(value.coords) or bool(value.attrs) or value.name is not None
    return named or bool(value.attrs)


def give_labels(value: LabelledT, like: LabelledT) -> LabelledT:
    """Return a value with the labels of another, or as it is if type or shape differ."""
    if _format_name(value) != _format_name(like) or value.shape != like.shape:
        return value
    return _relabelled(like, _variable(value).data)


def open_dataset(value: Any) -> Branch | None:
    """Open what is several arrays, and holds none but xarray's, as a dict."""
    import xarray as xr

    if not isinstance(value, (xr.Dataset, xr.DataTree)):
        return None
    holder: Any = value
    names = list(holder)

    def rebuild(children: list[Any]) -> Any:
        return dict(zip(names, children, strict=True))

    return Branch(names, [holder[name] for name in names], rebuild)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions(), Container("xarray:DataTree", open_dataset)]


def _formats() -> Iterable[Format]:
    for name, types in (
        ("Variable", ("xarray:Variable",)),
        # The types that are several arrays are recognised so that the refusal gives the reason.
        ("DataArray", ("xarray:DataArray", "xarray:Dataset", "xarray:DataTree")),
    ):
        yield Format(
            f"xarray.{name.lower()}",
            types=types,
            target_types=(f"xarray:{name}",),
            aliases=("xr",),
            describe=describe,
            wrapper=Wrapper(unwrap, seconds=4e-7),
            dtypes=_NUMPY,
            devices=("cpu", "cuda", "rocm", "tpu", "mps", "xpu"),
            carries=_ANY_TRAIT,
            unary=tuple(_copies_of_elements()),
            requires="xarray",
            install="pip install xarray",
            labels=Labels(has_labels, give_labels),
        )


def _copies_of_elements() -> Iterable[Conversion]:
    """Yield the copies of text, dates and objects."""
    make = partial(Copy, copy_elements, takes=MEMORY_TRAITS, cost=Cost(3e-5, 2e9))
    yield make(dtypes=TEXTS | _DATES | _LONG_DATES)
    yield make(requires={"not_numbers"})


def _conversions() -> Iterable[Conversion]:
    """Yield the ways into both formats, the ways between them, and the loading of files."""
    variable, dataarray = "xarray.variable", "xarray.dataarray"
    across = partial(Conversion, devices=None, takes=_ANY_TRAIT, cost=Cost(3e-6))
    yield across(variable, dataarray, as_dataarray)
    # A Variable has no coordinates and no name.
    yield across(dataarray, variable, as_variable, drops={"labelled"})
    yield from _wrap_cast_and_load(variable, to_variable)
    yield from _wrap_cast_and_load(dataarray, to_dataarray)


def _wrap_cast_and_load(name: str, wrap: Callable[[AnyArray], Labelled]) -> Iterable[Conversion]:
    for wrapped, (device, traits) in _WRAPPED.items():
        yield Conversion(wrapped, name, wrap, devices={device}, takes=traits, cost=Cost(1e-5))
    elements = partial(Conversion, "numpy", name, wrap, cost=Cost(1e-5))
    yield elements(dtypes=TEXTS, takes=MEMORY_TRAITS, name="wrap_texts")
    yield elements(dtypes=_DATES, takes={"readonly", "immutable"}, name="wrap_dates")
    gaps = frozenset({"noncontiguous"})  # which xarray, or pandas for it, does not keep
    yield elements(
        dtypes=_DATES, takes=NATIVE, requires=gaps, effects=COPY, name="wrap_scattered_dates"
    )
    yield elements(
        dtypes=_LONG_DATES,
        takes=NATIVE,
        adds={"not_numbers"},
        effects=COPY,
        name="wrap_dates_in_seconds",
    )
    yield elements(requires={"not_numbers"}, takes=MEMORY_TRAITS, name="wrap_objects")
    cast = partial(Conversion, name, name, recast, takes=MEMORY_TRAITS | _FILL_VALUE, changes=DTYPE)
    yield cast(effects=COPY, cost=Cost(3e-5, 8e9))
    yield Conversion(
        name,
        name,
        copy_to_fortran,
        takes=MEMORY_TRAITS,
        effects=COPY,
        cost=Cost(4e-5, 6e9),
        devices=None,
        changes={"order"},
        result=Result(orders={"F"}),
    )
    yield cast(
        requires=_UNLOADED,
        drops=_UNLOADED,
        effects=COPY | _MATERIALIZE,
        cost=Cost(1e-3, 1e9),
    )
    yield Conversion(
        name,
        "numpy",
        load,
        takes={"byteswapped"},
        requires=_UNLOADED,
        drops=_UNLOADED,
        effects=_MATERIALIZE,
        shares=True,  # with xarray's cache, if it has one
        cost=Cost(1e-3, 1e9),
    )
