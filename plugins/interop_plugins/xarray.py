"""xarray: Variables and DataArrays, which hold arrays of other frameworks under names.

They are described as the array inside, whatever it is (NumPy's, dask's, CuPy's, sparse …), and
opened on the way to other frameworks: names of axes, coordinates and attributes are dropped then.
From xarray to xarray they stay. What is read from a file when it is needed is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from interop.errors import UnknownValueError
from interop.plugin import (
    DTYPES,
    MEMORY_TRAITS,
    TRAITS,
    Conversion,
    Cost,
    Declaration,
    Declined,
    Format,
    Spec,
    Wrapper,
    hookimpl,
)

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

__all__ = ["interop_declarations"]

_COPY, _DTYPE = frozenset({"copy"}), frozenset({"dtype"})
_UNLOADED = frozenset({"unloaded"})

_NUMPY = frozenset(DTYPES) - {"complex32"}
#: What NumPy knows without ml_dtypes.
_NUMPYS_OWN = frozenset(
    {"bool", "float16", "float32", "float64", "complex64", "complex128"}
    | {"longdouble", "clongdouble"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)

#: What xarray holds as it is: the formats, where they live, and what their arrays can be.
_HELD = {
    "numpy": ("cpu", MEMORY_TRAITS),
    "cupy": ("cuda", MEMORY_TRAITS),
    "dask": ("cpu", frozenset({"borrowed"})),
    "sparse.coo": ("cpu", frozenset({"fill_value", "readonly", "immutable"})),
}


def inside(value: Any) -> Any:
    """Return the array that a Variable or a DataArray holds; None if it is still to be loaded.

    Raises
    ------
    UnknownValueError
        It is a Dataset or a tree of them, which are several arrays.
    """
    variable = _variable(value)
    data = variable._data
    loads = hasattr(type(data), "get_duck_array") and not variable._in_memory
    return None if loads else variable.data


def _variable(value: Any) -> Any:
    import xarray as xr

    if isinstance(value, xr.Variable):
        return value
    if isinstance(value, xr.DataArray):
        return value.variable
    kind = type(value).__name__
    msg = (
        f"an xarray.{kind} is several arrays; choose one of them (x['name']), or make one of all "
        "first (to_dataarray of a Dataset)."
    )
    raise UnknownValueError(msg)


def describe(value: Any) -> Spec:
    """Return the spec of what is still to be loaded."""
    import numpy as np

    dtype = np.dtype(value.dtype)
    traits = _UNLOADED if dtype.isnative else _UNLOADED | {"byteswapped"}
    name = {13: "longdouble", 16: "clongdouble"}.get(dtype.num, dtype.name)
    nbytes = prod(value.shape) * dtype.itemsize
    return Spec(_name(value), name, "cpu", value.shape, traits, nbytes)


def _name(value: Any) -> str:
    return "xarray.variable" if _variable(value) is value else "xarray.dataarray"


def load(value: Any) -> np.ndarray[Any, Any]:
    """Return the numbers of a variable in a file; xarray may keep them, too."""
    import numpy as np

    data = _variable(value).data
    if type(data) is not np.ndarray:
        msg = f"it was loaded as {type(data).__module__}.{type(data).__qualname__}"
        raise Declined(msg)
    return data


def to_variable(array: Any) -> xr.Variable:
    """Return a Variable that holds an array, with the names that a DataArray's axes have."""
    import xarray as xr

    return xr.Variable([f"dim_{axis}" for axis in range(array.ndim)], array)


def to_dataarray(array: Any) -> xr.DataArray:
    """Return a DataArray that holds an array, with no coordinates."""
    import xarray as xr

    return xr.DataArray(to_variable(array))


def as_variable(value: Any) -> xr.Variable:
    """Return the Variable of a DataArray."""
    variable: xr.Variable = value.variable
    return variable


def as_dataarray(value: Any) -> xr.DataArray:
    """Return a DataArray of a Variable, without coordinates."""
    import xarray as xr

    return xr.DataArray(value)


def recast(value: Any, *, dtype: str) -> Any:
    """Return the same under the same names with a copy of the array, cast as NumPy casts."""
    import numpy as np
    import xarray as xr

    variable = _variable(value)
    data = variable.data
    if not isinstance(data, np.ndarray) or isinstance(variable, xr.IndexVariable):
        what = f"{type(data).__module__}.{type(data).__qualname__}"
        held = "the labels of an index" if isinstance(data, np.ndarray) else f"a {what}"
        msg = f"it holds {held}; convert x.data, and give the result its names (xarray.Variable)"
        raise Declined(msg)
    out = np.empty(data.shape, _dtype(dtype))
    with np.errstate(all="ignore"):
        if not {data.dtype.name, dtype} & _NUMPYS_OWN and data.dtype != out.dtype:
            data = data.astype("f4")  # ml_dtypes knows no way from some to others
        out[...] = data.real if data.dtype.kind == "c" and out.dtype.kind not in "bc" else data
    return value.copy(data=out)


def _dtype(name: str) -> Any:
    import numpy as np

    if name in _NUMPYS_OWN:
        return np.dtype(name)
    import ml_dtypes

    return getattr(ml_dtypes, name)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> Iterable[Format]:
    """Return the formats of Variables and DataArrays."""
    # Of several arrays, in order to be refused with the reason.
    for name, types in (
        ("Variable", ("xarray:Variable",)),
        ("DataArray", ("xarray:DataArray", "xarray:Dataset", "xarray:DataTree")),
    ):
        yield Format(
            f"xarray.{name.lower()}",
            types=types,
            target_types=(f"xarray:{name}",),
            describe=describe,
            wrapper=Wrapper(inside, seconds=4e-7),
            dtypes=_NUMPY,
            devices=("cpu", "cuda", "rocm", "tpu", "mps", "xpu"),
            carries=frozenset(TRAITS) | _UNLOADED | _HELD["dask"][1] | _HELD["sparse.coo"][1],
            requires="xarray",
            install="pip install xarray",
            has_labels=True,
            transit=False,
        )


def _conversions() -> Iterable[Conversion]:
    """Return the ways in, from one to the other, and the loading of files."""
    names = ("xarray.variable", "xarray.dataarray")
    anything = frozenset(TRAITS) | _UNLOADED | _HELD["dask"][1] | _HELD["sparse.coo"][1]
    across = partial(Conversion, devices=None, takes=anything, cost=Cost(3e-6))
    yield across(names[0], names[1], as_dataarray)
    yield across(names[1], names[0], as_variable)
    for name, make in zip(names, (to_variable, to_dataarray), strict=True):
        for held, (device, taken) in _HELD.items():
            yield Conversion(
                held, name, make, devices=frozenset({device}), takes=taken, cost=Cost(1e-5)
            )
        kept: dict[str, Any] = {"takes": MEMORY_TRAITS, "changes": _DTYPE}
        yield Conversion(name, name, recast, effects=_COPY, cost=Cost(3e-5, 8e9), **kept)
        yield Conversion(
            name,
            name,
            recast,
            requires=_UNLOADED,
            drops=_UNLOADED,
            effects=_COPY | {"materialize"},
            cost=Cost(1e-3, 1e9),
            **kept,
        )
        yield Conversion(
            name,
            "numpy",
            load,
            takes=frozenset({"byteswapped"}),
            requires=_UNLOADED,
            drops=_UNLOADED,
            effects=frozenset({"materialize"}),
            shares=True,  # with xarray's cache, if it has one
            cost=Cost(1e-3, 1e9),
        )
