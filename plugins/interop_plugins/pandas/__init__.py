"""pandas: Series, DataFrames, Indexes and the arrays inside them.

Labels (indexes, names, attributes) are not part of an array: they are dropped when it leaves pandas
(the effect `drop_labels`), and stay from Series to Series and from DataFrame to DataFrame.

Numbers that lie one after the other in NumPy's or Arrow's memory are shared, read-only: pandas
shares memory between its own objects until one of them is written to. Columns of several dtypes
become one array only if their common dtype in NumPy holds the numbers of each exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

from interop.plugin import (
    COMPLEX,
    COPY,
    DTYPE,
    DTYPES,
    EMPTY,
    INTEGERS,
    MEMORY_TRAITS,
    REALS,
    Conversion,
    Cost,
    Declaration,
    Format,
    Labels,
    Limits,
    Result,
    hookimpl,
)

from . import arrays, describe, frames, labels
from .describe import LAYOUT, UNKNOWN_DTYPE

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]
    #: It may answer `NotImplemented`.
    FastPath: TypeAlias = Callable[..., Any]

__all__ = ["interop_declarations"]

_READONLY, _NONCONTIGUOUS = frozenset({"readonly"}), frozenset({"noncontiguous"})
_MASKED, _MIXED = frozenset({"masked"}), frozenset({"mixed"})
_SCATTERED, _NOT_NUMBERS = frozenset({"scattered"}), frozenset({"not_numbers"})

_NUMBERS = INTEGERS | REALS | COMPLEX | {"bool"}
_LONG = frozenset({"longdouble", "clongdouble"})
_DTYPES = _NUMBERS | _LONG
#: What nulls are written as: NaN in reals, 0 in others.
_FILLED = _DTYPES | frozenset(d for d in DTYPES if d.startswith(("bfloat", "float8")))
#: The traits of a DataFrame whose common dtype in NumPy does not hold the numbers of each column.
_SEVERAL = _MIXED | {f"{dtype} columns" for dtype in _DTYPES}

#: The traits of NumPy's memory that pandas can compute with.
_COMPUTABLE = MEMORY_TRAITS - {"byteswapped", "unaligned", "pinned"}
_CARRIED = _COMPUTABLE | LAYOUT | _MASKED | _SCATTERED | _NOT_NUMBERS

#: The cost of numbers that are written once. It is the same for every dtype, so that no route out
#: of pandas starts with a cast within pandas.
_GATHER = Cost(3e-5, 1e10)
#: Between the costs of a few long columns and of many short ones.
_COLUMNS = Cost(3e-5, 1e9)

_REFUSAL_HINTS = {
    "not_numbers": "these are not plain numbers; choose columns of numbers "
    "(x.select_dtypes('number')), or turn the others into numbers in pandas first "
    "(pandas.to_numeric(x), x.astype('boolean'), x.cat.codes, x.sparse.to_dense()).",
}


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats and the conversions."""
    return [*_formats(), *_conversions()]


def _formats() -> Iterable[Format]:
    """Return the formats of labelled arrays, and of the arrays inside them."""
    common = partial(
        Format,
        dtypes=_DTYPES,
        carries=_CARRIED,
        requires="pandas",
        install="pip install pandas",
        limits=Limits(refusal_hints=_REFUSAL_HINTS),
        labels=Labels(labels.present, labels.give),
        transit=False,
    )
    vector = partial(common, memory=arrays.memory, ndims={1})
    return [
        vector(
            "pandas.series", types=("pandas:Series",), aliases=("pd",), describe=describe.describe
        ),
        common(
            "pandas.dataframe",
            types=("pandas:DataFrame",),
            describe=describe.describe_frame,
            carries=_CARRIED | _SEVERAL | UNKNOWN_DTYPE,
            memory=frames.frame_memory,
            ndims={2},
        ),
        vector(
            "pandas.index",
            types=("pandas:Index",),
            describe=describe.describe_index,
            dtypes=_DTYPES - _LONG - {"float16"},
        ),
        vector(
            "pandas.array",
            types=("pandas.api.extensions:ExtensionArray",),
            describe=describe.describe,
        ),
    ]


def _conversions() -> Iterable[Conversion]:
    """Return the conversions to NumPy and back, and those that keep the labels."""
    for name, latency in (("series", 2e-6), ("index", 4e-6), ("array", 4e-6)):
        fast_path = arrays.series_fast_path if name == "series" else None
        yield from _to_numpy(name, arrays.to_numpy, arrays.gather, latency, fast_path=fast_path)
    yield from _to_numpy(
        "dataframe",
        frames.frame_to_numpy,
        frames.gather_frame,
        4e-6,
        fast_path=frames.frame_fast_path,
    )
    yield from _mixed_columns_to_numpy()
    yield from _from_numpy()
    yield from _copies_and_casts()


def _to_numpy(
    name: str,
    view: Callable[..., Array],
    gather: Callable[..., Array],
    latency: float,
    *,
    fast_path: FastPath | None = None,
) -> Iterable[Conversion]:
    make = partial(Conversion, f"pandas.{name}", "numpy")
    yield make(
        view,
        takes=LAYOUT | {"immutable"},
        adds=_READONLY,
        cost=Cost(latency),
        fast_path=fast_path,
        name=f"{name}_to_numpy",
    )
    # pandas keeps every column in one block, so that the rows of a DataFrame are not contiguous.
    write = partial(make, adds=_NONCONTIGUOUS if name == "dataframe" else EMPTY, cost=_GATHER)
    yield write(
        gather,
        takes=UNKNOWN_DTYPE,
        requires=_SCATTERED,
        drops=_SCATTERED | UNKNOWN_DTYPE,
        changes=DTYPE,
        result=Result(dtypes=_DTYPES),
        effects=COPY,
        name=f"gather_{name}",
    )
    yield write(
        gather,
        takes=LAYOUT | _SCATTERED,
        requires=_MASKED,
        drops=_MASKED | _SCATTERED,
        changes=DTYPE,
        result=Result(dtypes=_FILLED),
        effects=COPY | {"drop_mask"},
        name=f"fill_{name}_nulls",
    )


def _mixed_columns_to_numpy() -> Iterable[Conversion]:
    """Return the conversions of columns whose common dtype does not hold the numbers of each."""
    make = partial(
        Conversion,
        "pandas.dataframe",
        "numpy",
        frames.gather_frame,
        takes=_SEVERAL,
        changes=DTYPE,
        result=Result(dtypes=_NUMBERS),
        adds=_NONCONTIGUOUS,
        cost=_GATHER,
    )
    mixed = _MIXED | _SCATTERED
    drops = _SEVERAL | _SCATTERED
    yield make(requires=mixed, drops=drops, effects=COPY, name="gather_mixed_columns")
    yield make(
        requires=mixed | _MASKED,
        drops=drops | _MASKED,
        result=Result(dtypes=_FILLED),
        effects=COPY | {"drop_mask"},
        name="fill_mixed_columns_nulls",
    )


def _from_numpy() -> Iterable[Conversion]:
    share = partial(Conversion, "numpy", takes=_COMPUTABLE)
    yield share("pandas.series", arrays.to_series, cost=Cost(1.3e-5))
    yield share("pandas.dataframe", frames.to_frame, cost=Cost(1.1e-5))
    # They cost more than the others, which `to="pandas"` should find first.
    copy = partial(share, effects=COPY, cost=Cost(2.5e-5, 1.8e10))
    yield copy("pandas.index", arrays.to_index)
    yield copy("pandas.array", arrays.to_array)


def _copies_and_casts() -> Iterable[Conversion]:
    """Return the copies and casts, which keep the labels."""
    copied = (MEMORY_TRAITS - {"byteswapped"}) | _MASKED | _SCATTERED | _SEVERAL | UNKNOWN_DTYPE
    for copy, cast, name in (
        (arrays.copy_series, arrays.cast_series, "series"),
        (frames.copy_frame, frames.cast_frame, "dataframe"),
        (arrays.copy_index, None, "index"),
        (arrays.copy_array, None, "array"),
    ):
        is_frame = name == "dataframe"
        make = partial(
            Conversion,
            f"pandas.{name}",
            f"pandas.{name}",
            effects=COPY,
            adds=_NONCONTIGUOUS if is_frame else EMPTY,
        )
        yield make(copy, takes=copied, cost=Cost(5e-6, 2e10))
        if cast:
            make_cast = partial(
                make,
                cast,
                takes=LAYOUT | UNKNOWN_DTYPE,
                changes=DTYPE,
                result=Result(dtypes=_NUMBERS),
                cost=_COLUMNS if is_frame else _GATHER,
            )
            yield make_cast()
            yield make_cast(requires=_SCATTERED, drops=_SCATTERED)
            if is_frame:
                mixed = make_cast(requires=_MIXED | _SCATTERED, drops=_SEVERAL | _SCATTERED)
                yield mixed._replace(takes=_SEVERAL)
