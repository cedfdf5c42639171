"""pandas: Series, DataFrames, Indexes and the arrays inside them.

Labels (indexes, names of columns) are no part of an array: they are dropped when it leaves. They
stay from Series to Series and from DataFrame to DataFrame.

Numbers that lie in NumPy's or Arrow's memory as such are shared, read-only: pandas shares memory
between its own objects until one of them is written to. Columns of several dtypes are put together
only if NumPy's common dtype holds the numbers of each of them exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

from interop.plugin import (
    MEMORY_TRAITS,
    Conversion,
    Cost,
    Declaration,
    Format,
    Limits,
    Result,
    Spec,
    hookimpl,
    itemsize,
)

from . import _pandas_arrays as arrays
from . import _pandas_frames as frames

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    Array = np.ndarray[Any, Any]

__all__ = ["interop_declarations"]

_COPY, _DTYPE = frozenset({"copy"}), frozenset({"dtype"})
_READONLY, _GAPS = frozenset({"readonly"}), frozenset({"noncontiguous"})
_MASKED, _MIXED = frozenset({"masked"}), frozenset({"mixed"})
_SCATTERED, _OTHER = frozenset({"scattered"}), frozenset({"not_numbers"})

_REAL = frozenset(
    {"bool", "float16", "float32", "float64"}
    | {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}
)
_COMPLEX = frozenset({"complex64", "complex128"})
_LONG = frozenset({"longdouble", "clongdouble"})
_DTYPES = _REAL | _COMPLEX | _LONG

#: What memory of NumPy's may be like that pandas computes with.
_TAKEN = MEMORY_TRAITS - {"byteswapped", "unaligned", "pinned"}

#: Of what is written once: no way out begins by a cast within pandas.
_GATHER = Cost(3e-5, 1e10)
#: Between those of few long columns and of many short ones.
_COLUMNS = Cost(3e-5, 3e9)

_OBSTACLES = {
    "not_numbers": "these are not numbers of an array; choose columns that are "
    "(x[['a', 'b']], x.select_dtypes('number')), or turn them into numbers in pandas first "
    "(x.cat.codes, x.sparse.to_dense(), pandas.to_numeric(x), x.astype(...)).",
    "mixed": "its columns have several dtypes, and the dtype that NumPy would give them all does "
    "not hold the numbers of each (int64 and float64 is the usual pair); choose columns of one "
    "dtype (x[['a', 'b']]), or ask for the dtype of the result with dtype=.",
}


def describe(value: Any) -> Spec:
    """Return the spec of a Series or of an array of pandas'."""
    return _spec(value, arrays.look(arrays.bare(value)))


def describe_index(index: Any) -> Spec:
    """Return the spec of an Index; the numbers of a range are computed."""
    import pandas as pd

    if isinstance(index, pd.RangeIndex):
        return _spec(index, arrays.Look("int64", _SCATTERED))
    if isinstance(index, pd.MultiIndex):
        return _spec(index, arrays.Look("a tuple of labels", _OTHER))
    return _spec(index, arrays.look(arrays.bare(index)))


def describe_frame(frame: Any) -> Spec:
    """Return the spec of a DataFrame."""
    return _spec(frame, frames.look_at_frame(frame))


def _spec(value: Any, found: arrays.Look) -> Spec:
    shape = value.shape
    nbytes = prod(shape) * itemsize(found.dtype)
    return Spec(_name(value), found.dtype, "cpu", shape, found.traits, nbytes)


def _name(value: Any) -> str:
    import pandas as pd

    for kind, name in (
        (pd.Series, "pandas.series"),
        (pd.DataFrame, "pandas.dataframe"),
        (pd.Index, "pandas.index"),
    ):
        if isinstance(value, kind):
            return name
    return "pandas.array"


def _values(value: Any) -> Any:
    """Return what is inside: of a range, whose numbers pandas would keep, fresh ones."""
    import numpy as np
    import pandas as pd

    if isinstance(value, pd.RangeIndex):
        return np.arange(value.start, value.stop, value.step, dtype=np.int64)
    return arrays.bare(value)


def to_numpy(value: Any) -> Array:
    """Return a read-only array over the memory of a Series, an Index or an array."""
    return arrays.locked(arrays.bare(value))


def series_fast_path(series: Any) -> Any:
    """Return a read-only array over a Series of NumPy's numbers."""
    dtype = series.dtype
    if type(dtype).__module__ == "numpy.dtypes" and arrays.number_name(dtype):
        array = series.to_numpy()
        if not array.flags.writeable:
            return array
    return NotImplemented


def gather(value: Any, *, dtype: str) -> Array:
    """Return the numbers of an array that is in chunks, in bits, or computed."""
    import numpy as np

    out = np.empty(value.shape, dtype)
    arrays.write(out, _values(value))
    return out


def fill_nulls(value: Any) -> Array:
    """Return the numbers, with NaN for the nulls of reals, zero or False for others."""
    return gather(value, dtype=arrays.number_name(arrays.bare(value).dtype))


def fill_frame_nulls(frame: Any) -> Array:
    """Return the columns side by side, with what `fill_nulls` gives for the nulls of each."""
    return frames.gather(frame, dtype=frames.look_at_frame(frame).dtype)


def copy_series(series: Any) -> pd.Series:
    """Return a copy with the labels."""
    copied: pd.Series = series.copy(deep=True)
    return copied


def copy_frame(frame: Any) -> pd.DataFrame:
    """Return a copy with the labels."""
    copied: pd.DataFrame = frame.copy(deep=True)
    return copied


def copy_index(index: Any) -> pd.Index:
    """Return a copy with the names."""
    copied: pd.Index = index.copy(deep=True)
    return copied


def copy_array(array: Any) -> Any:
    """Return a copy."""
    return array.copy()


def cast_series(series: Any, *, dtype: str) -> pd.Series:
    """Return a Series with the same labels of another dtype, cast as NumPy casts."""
    import pandas as pd

    numbers = gather(series, dtype=dtype)
    return pd.Series(numbers, index=series.index, name=series.name, copy=False)


def cast_frame(frame: Any, *, dtype: str) -> pd.DataFrame:
    """Return a DataFrame with the same labels of another dtype, cast as NumPy casts."""
    import pandas as pd

    numbers = frames.gather(frame, dtype=dtype)
    return pd.DataFrame(numbers, index=frame.index, columns=frame.columns, copy=False)


def to_series(array: Any) -> pd.Series:
    """Return a Series over the memory of an array."""
    import pandas as pd

    return pd.Series(array, copy=False)


def to_frame(array: Any) -> pd.DataFrame:
    """Return a DataFrame over the memory of an array."""
    import pandas as pd

    return pd.DataFrame(array, copy=False)


def to_index(array: Any) -> pd.Index:
    """Return an Index of a copy: its labels must not change."""
    import numpy as np
    import pandas as pd

    return pd.Index(np.array(array), copy=False)


def to_array(array: Any) -> Any:
    """Return pandas' array around a copy."""
    import numpy as np
    import pandas as pd

    return pd.arrays.NumpyExtensionArray(np.array(array))


def memory(value: Any) -> tuple[tuple[int, int], ...]:
    """Return the addresses and lengths of the memory of the numbers."""
    import pandas as pd

    if isinstance(value, (pd.RangeIndex, pd.MultiIndex)):
        return ()
    array = arrays.bare(value)
    return arrays.extents(array) if arrays.number_name(array.dtype) else ()


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> Iterable[Format]:
    """Return the formats of the labelled arrays, and of the arrays inside them."""
    one, two = frozenset({1}), frozenset({2})
    line = partial(_format, memory=memory, ndims=one)
    return [
        line("series", "pandas:Series", describe=describe),
        _format(
            "dataframe",
            "pandas:DataFrame",
            describe=describe_frame,
            memory=frames.memory,
            ndims=two,
        ),
        line(
            "index", "pandas:Index", describe=describe_index, dtypes=_DTYPES - _LONG - {"float16"}
        ),
        line("array", "pandas.api.extensions:ExtensionArray", describe=describe),
    ]


def _format(name: str, type_: str, **fields: Any) -> Format:
    return Format(
        f"pandas.{name}",
        **{
            "types": (type_,),
            "dtypes": _DTYPES,
            "carries": _TAKEN | arrays.LAYOUT | _MASKED | _MIXED | _SCATTERED | _OTHER,
            "requires": "pandas",
            "install": "pip install pandas",
            "limits": Limits(refusal_hints=_OBSTACLES),
            "has_labels": True,
            "transit": False,
            **fields,
        },
    )


def _conversions() -> Iterable[Conversion]:
    """Return the ways to NumPy and back, and the copies that keep the labels."""
    for name, cost in (("series", 2e-6), ("index", 4e-6), ("array", 4e-6)):
        fast_path = series_fast_path if name == "series" else None
        yield from _out(name, to_numpy, gather, fill_nulls, cost, fast_path=fast_path)
    yield from _out(
        "dataframe",
        frames.locked,
        frames.gather,
        fill_frame_nulls,
        4e-6,
        fast_path=frames.fast_path,
    )
    yield from _mixed()
    yield from _into()
    yield from _within()


def _out(
    name: str, view: Any, gathered: Any, filled: Any, latency: float, *, fast_path: Any = None
) -> Iterable[Conversion]:
    make = partial(Conversion, f"pandas.{name}", "numpy")
    # In pandas' order every column is a block.
    order = _GAPS if name == "dataframe" else frozenset()
    yield make(
        view,
        takes=arrays.LAYOUT | {"immutable"},
        adds=_READONLY,
        cost=Cost(latency),
        fast_path=fast_path,
        name=f"{name}_to_numpy",
    )
    written: dict[str, Any] = {"effects": _COPY, "adds": order, "cost": _GATHER}
    yield make(
        gathered,
        requires=_SCATTERED,
        drops=_SCATTERED,
        changes=_DTYPE,
        result=Result(dtypes=_DTYPES),
        name=f"gather_{name}",
        **written,
    )
    written["effects"] = _COPY | {"drop_mask"}
    yield make(
        filled,
        takes=arrays.LAYOUT | _SCATTERED,
        requires=_MASKED,
        drops=_MASKED | _SCATTERED,
        name=f"fill_{name}_nulls",
        **written,
    )


def _mixed() -> Iterable[Conversion]:
    """Return the ways of columns that have no dtype in common, for those who name one."""
    make = partial(
        Conversion,
        "pandas.dataframe",
        "numpy",
        frames.gather,
        changes=_DTYPE,
        result=Result(dtypes=_REAL | _COMPLEX),
        adds=_GAPS,
        cost=_GATHER,
    )
    taken = _MIXED | _SCATTERED
    yield make(requires=taken, drops=taken, effects=_COPY, name="gather_mixed_columns")
    yield make(
        requires=taken | _MASKED,
        drops=taken | _MASKED,
        effects=_COPY | {"drop_mask"},
        name="fill_mixed_columns_nulls",
    )


def _into() -> Iterable[Conversion]:
    for function, name, latency in ((to_series, "series", 1.3e-5), (to_frame, "dataframe", 1.1e-5)):
        yield Conversion("numpy", f"pandas.{name}", function, takes=_TAKEN, cost=Cost(latency))
    for function, name in ((to_index, "index"), (to_array, "array")):
        yield Conversion(
            "numpy",
            f"pandas.{name}",
            function,
            takes=_TAKEN,
            effects=_COPY,
            cost=Cost(2.5e-5, 1.8e10),  # `to="pandas"` is to mean the others
        )


def _within() -> Iterable[Conversion]:
    """Return the copies and casts, which keep the labels."""
    kept = (MEMORY_TRAITS - {"byteswapped"}) | _MASKED | _SCATTERED | _MIXED
    for function, cast, name in (
        (copy_series, cast_series, "series"),
        (copy_frame, cast_frame, "dataframe"),
        (copy_index, None, "index"),
        (copy_array, None, "array"),
    ):
        make = partial(Conversion, f"pandas.{name}", f"pandas.{name}", effects=_COPY)
        adds = _GAPS if name == "dataframe" else frozenset()
        yield make(function, takes=kept, adds=adds, cost=Cost(5e-6, 2e10))
        if cast:
            rest: dict[str, Any] = {
                "changes": _DTYPE,
                "result": Result(dtypes=_REAL | _COMPLEX),
                "adds": adds,
            }
            rest["cost"] = _COLUMNS if name == "dataframe" else _GATHER
            yield make(cast, takes=arrays.LAYOUT, **rest)
            yield make(cast, takes=arrays.LAYOUT, requires=_SCATTERED, drops=_SCATTERED, **rest)
            if name == "dataframe":
                taken = _MIXED | _SCATTERED
                yield make(cast, takes=arrays.LAYOUT, requires=taken, drops=taken, **rest)
