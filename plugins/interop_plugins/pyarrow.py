"""PyArrow: arrays with their nulls, chunked arrays, tensors, and the columns of tables, declared.

Arrays of Arrow's never change: what shares their memory is read-only where that can be said. An
array over a buffer that is flagged read-only (mapped from a file, say) is ``readonly`` besides, and
stays so for whoever comes after NumPy.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from interop.plugin import (
    MEMORY_TRAITS,
    Conversion,
    Cost,
    Declaration,
    DtypeNames,
    Format,
    Limits,
    Samples,
    hookimpl,
    itself,
)

from . import _pyarrow_arrays as arrays
from . import _pyarrow_samples as samples
from . import _pyarrow_tensors as tensors
from ._pyarrow_types import DTYPES, NUMBERS, dtype_name

__all__ = ["interop_declarations"]

_BOOL, _DTYPE = frozenset({"bool"}), frozenset({"dtype"})
_COPY, _DROP_MASK = frozenset({"copy"}), frozenset({"copy", "drop_mask"})
_IMMUTABLE, _READONLY = frozenset({"immutable"}), frozenset({"readonly"})
_MASKED, _CHUNKED = frozenset({"masked"}), frozenset({"chunked"})
_GAPS, _UNALIGNED = frozenset({"noncontiguous"}), frozenset({"unaligned"})

#: What the memory of an array can be.
_MEMORY = _IMMUTABLE | _READONLY | _UNALIGNED
#: What the memory of a NumPy array may be that Arrow shares.
_BLOCK = _IMMUTABLE | _READONLY
_STRIDED = _BLOCK | _GAPS | {"broadcast"}

_ONE = frozenset({1})
#: NumPy knows arrays of so many axes at most.
_SEVERAL = frozenset(range(2, 65))

_INTEGERS = tuple(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64))
#: The types of arrays of numbers, which have shortcuts.
_TYPES = tuple(f"pyarrow:{name}Array" for name in ("HalfFloat", "Float", "Double", *_INTEGERS))

_OBSTACLES = {
    "mixed_columns": "its columns are of several types; cast them to one (its method cast), or "
    "select those of one (its method select).",
    "no_columns": "it has no columns; select at least one.",
}

_format = partial(
    Format,
    requires="pyarrow",
    install="pip install pyarrow",
    transit=False,  # NumPy shares as much, and more
)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats, the conversions and the names of dtypes."""
    return [*_formats(), *_conversions(), *_dtypes()]


def _dtypes() -> Iterable[DtypeNames]:
    """Return how Arrow names its types."""
    return [DtypeNames("pyarrow:DataType", dtype_name)]


def _formats() -> Iterable[Format]:
    """Return the formats of arrays, of tensors and of tables."""
    return [*_array_formats(), *_other_formats()]


def _array_formats() -> Iterable[Format]:
    common: dict[str, Any] = {"dtypes": DTYPES, "fast_path": itself}
    yield _format(
        "pyarrow",
        types=(*_TYPES, "pyarrow:Array"),
        target_types=("pyarrow:Array",),
        describe=arrays.describe,
        carries=_MEMORY | _MASKED,
        memory=arrays.memory,
        ndims=_ONE,
        samples=Samples(variants=samples.VARIANTS),
        **common,
    )
    yield _format(
        "pyarrow.chunked_array",
        types=("pyarrow:ChunkedArray",),
        describe=arrays.describe_chunks,
        carries=_MEMORY | _MASKED | _CHUNKED,
        memory=arrays.memory_of_chunks,
        ndims=_ONE,
        samples=Samples(variants=samples.CHUNKED_VARIANTS),
        **common,
    )
    nested: dict[str, Any] = {"carries": _MEMORY | _MASKED | _GAPS, "memory": arrays.memory}
    yield _format(
        "pyarrow.fixed_shape_tensor",
        types=("pyarrow:FixedShapeTensorArray",),
        describe=arrays.describe_tensors,
        ndims=_SEVERAL,
        **nested,
        **common,
    )
    yield _format(
        "pyarrow.fixed_size_list",
        types=("pyarrow:FixedSizeListArray",),
        describe=arrays.describe_lists,
        ndims=_SEVERAL,
        **nested,
        **common,
    )


def _other_formats() -> Iterable[Format]:
    yield _format(
        "pyarrow.scalar",
        types=("pyarrow:Scalar",),
        describe=arrays.describe_scalar,
        dtypes=DTYPES,
        carries=_MASKED,
        ndims=frozenset({0}),
        fast_path=itself,
    )
    yield _format(
        "pyarrow.tensor",
        types=("pyarrow:Tensor",),
        describe=tensors.describe_tensor,
        dtypes=NUMBERS,
        carries=_READONLY | _GAPS | _UNALIGNED | {"broadcast"},
        memory=tensors.memory_of_tensor,
        fill=tensors.fill_tensor,
        fast_path=itself,
    )
    for name, type_, describe, sample in (
        ("table", "Table", tensors.describe_table, samples.table_of_tensors),
        ("record_batch", "RecordBatch", tensors.describe_batch, samples.batch_of_tensors),
    ):
        yield _format(
            f"pyarrow.{name}",
            types=(f"pyarrow:{type_}",),
            describe=describe,
            dtypes=DTYPES,
            carries=_IMMUTABLE | _MASKED | {"mixed_columns", "no_columns"},
            memory=tensors.memory_of_columns,
            ndims=frozenset({2}),
            limits=Limits(refusal_hints=_OBSTACLES),
            samples=Samples(make=sample),
            fast_path=itself,
        )


def _conversions() -> Iterable[Conversion]:
    """Return the hand-offs to and from NumPy and torch, and the steps within Arrow."""
    return [*_out(), *_into(), *_within()]


def _out() -> Iterable[Conversion]:
    for source, to_numpy in (
        ("pyarrow", arrays.to_numpy),
        ("pyarrow.chunked_array", arrays.chunk_to_numpy),
        ("pyarrow.fixed_shape_tensor", arrays.to_numpy),
        ("pyarrow.fixed_size_list", arrays.to_numpy),
    ):
        taken = _IMMUTABLE | _UNALIGNED | _GAPS
        shared: dict[str, Any] = {"dtypes": NUMBERS, "takes": taken, "cost": Cost(1e-6)}
        fast_path = arrays.numpy_fast_path if source == "pyarrow" else None
        yield _out_of(source, to_numpy, fast_path=fast_path, **shared)
        # That it never changes gives nobody leave to write where the memory cannot be written.
        yield _out_of(source, to_numpy, requires=_READONLY, drops=_IMMUTABLE, **shared)
        taken |= _READONLY
        bits: dict[str, Any] = {"dtypes": _BOOL, "effects": _COPY, "cost": Cost(2e-6, 4e10)}
        yield _out_of(source, to_numpy, takes=taken, name="unpack_bits", **bits)
        write = arrays.combined if source == "pyarrow.chunked_array" else arrays.written
        yield _filling(
            source, write, takes=taken | (_CHUNKED if write is arrays.combined else set())
        )
    yield _out_of(
        "pyarrow.chunked_array",
        arrays.combined,
        takes=_IMMUTABLE,
        requires=_CHUNKED,
        drops=_CHUNKED,
        effects=_COPY,
        cost=Cost(5e-6, 2e10),
    )
    yield Conversion(
        "pyarrow",
        "torch",
        arrays.to_torch,
        dtypes=NUMBERS,
        takes=_IMMUTABLE,
        cost=Cost(1e-6),
        fast_path=arrays.torch_fast_path,
    )
    strided = _READONLY | _GAPS | _UNALIGNED | {"broadcast"}
    view = tensors.tensor_to_numpy
    yield _out_of("pyarrow.tensor", view, takes=strided, cost=Cost(2e-7), fast_path=view)
    yield _out_of("pyarrow.scalar", arrays.scalar_to_numpy, effects=_COPY, cost=Cost(1e-6))
    yield _filling("pyarrow.scalar", arrays.scalar_to_numpy)
    for source in ("pyarrow.table", "pyarrow.record_batch"):
        # Between those of few long columns and of many short ones.
        cost = Cost(2e-5, 2.5e9)
        yield _out_of(source, tensors.stacked, takes=_IMMUTABLE, effects=_COPY, cost=cost)
        yield _filling(source, tensors.stacked, takes=_IMMUTABLE)


def _filling(source: str, function: Any, **fields: Any) -> Conversion:
    """Return the step that writes NaN, 0 or False in the place of nulls."""
    return _out_of(
        source,
        function,
        requires=_MASKED,
        drops=_MASKED | _CHUNKED,
        effects=_DROP_MASK,
        cost=Cost(5e-6, 8e9),
        name="fill_nulls",
        **fields,
    )


def _out_of(source: str, function: Any, **fields: Any) -> Conversion:
    return Conversion(source, "numpy", function, **fields)


def _into() -> Iterable[Conversion]:
    for target, make in (
        ("pyarrow", arrays.from_numpy),
        ("pyarrow.fixed_shape_tensor", arrays.to_tensors),
        ("pyarrow.fixed_size_list", arrays.to_lists),
    ):
        into = partial(Conversion, "numpy", target, make, adds=_IMMUTABLE)
        fast_path = arrays.array_fast_path if target == "pyarrow" else None
        yield into(dtypes=NUMBERS, takes=_BLOCK, cost=Cost(2e-6), fast_path=fast_path)
        cost = Cost(3e-6, 7e10)
        yield into(dtypes=_BOOL, takes=MEMORY_TRAITS, effects=_COPY, cost=cost, name="pack_bits")
    masked = partial(
        Conversion, "numpy", "pyarrow", requires=_MASKED, adds=_IMMUTABLE, effects=_COPY
    )
    # The numbers stay where they are, and the mask is packed.
    cost = Cost(5e-6, 2e10)
    yield masked(arrays.from_masked, dtypes=NUMBERS, takes=_BLOCK, shares=True, cost=cost)
    yield masked(arrays.from_masked_copy, dtypes=DTYPES, takes=MEMORY_TRAITS, cost=Cost(1e-5, 8e9))
    yield Conversion(
        "numpy",
        "pyarrow.tensor",
        tensors.tensor_from_numpy,
        takes=_STRIDED,
        cost=Cost(1e-6),
        fast_path=tensors.tensor_fast_path,
    )
    yield Conversion(
        "numpy",
        "pyarrow.scalar",
        arrays.scalar_from_numpy,
        takes=_STRIDED | _UNALIGNED,
        effects=_COPY,
        cost=Cost(5e-6),
    )


def _within() -> Iterable[Conversion]:
    written: dict[str, Any] = {"adds": _IMMUTABLE, "effects": _COPY}
    for name in ("pyarrow", "pyarrow.fixed_shape_tensor", "pyarrow.fixed_size_list"):
        takes = _MEMORY | _MASKED
        yield Conversion(name, name, arrays.copy, takes=takes, cost=Cost(5e-6, 3e10), **written)
    yield Conversion(
        "pyarrow",
        "pyarrow",
        arrays.cast_with_nulls,
        takes=_MEMORY,
        requires=_MASKED,
        changes=_DTYPE,
        cost=Cost(1e-5, 4e9),
        **written,
    )
    chunked = "pyarrow.chunked_array"
    shared = _MEMORY | _MASKED
    yield Conversion(chunked, "pyarrow", arrays.first_chunk, takes=shared, cost=Cost(2e-7))
    yield Conversion("pyarrow", chunked, arrays.to_chunks, takes=shared, cost=Cost(1e-6))
    yield Conversion(
        chunked,
        "pyarrow",
        arrays.all_chunks,
        takes=shared,
        requires=_CHUNKED,
        drops=_CHUNKED,
        cost=Cost(5e-6, 3e10),
        **written,
    )
