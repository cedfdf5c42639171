"""The specs of numbers, whose values are read, and of sequences of arrays, whose specs are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from numbers import Number
from operator import attrgetter
from typing import TYPE_CHECKING, cast

import interop
from interop.errors import BadRequestError, UnknownValueError
from interop.kit import EMPTY, numpy_dtype
from interop.plugin import MEMORY_TRAITS, Format, Spec, itemsize, preserves

from . import ragged
from .arrays import formats_of
from .numbers import (
    MAX_AXES,
    MIXED,
    NUMBERS,
    SEQUENCES,
    WEAK,
    check_unmasked,
    describe_number,
    describe_numbers,
    element_types,
    key_of_numbers,
    no_arrays,
    not_a_number,
)

if TYPE_CHECKING:
    from typing import Any

    from .numbers import Nested

_DTYPE, _SHAPE = attrgetter("dtype"), attrgetter("shape")

#: The dtypes that hold the numbers of two others for which NumPy names none.
_WIDE = ("float32", "float64", "complex64", "complex128")
#: The traits that an array loses when it is copied into another.
_RESOLVED = MEMORY_TRAITS | {"attributes", "conj", "neg", "weak", "scalar", "subclass"}


def describe(value: Nested, *, depth: int = 0) -> Spec:
    """Return the spec of the array that a number, or a nested sequence, becomes.

    Python's lists do not say what they hold, so lists of numbers are read. Only here is a value
    described by its elements.

    Raises
    ------
    UnknownValueError
        The leaves are neither numbers nor dense arrays.
    BadRequestError
        The rows differ in shape or device, no dtype holds every number exactly, or some are masked.
    """
    if not isinstance(value, SEQUENCES):
        number = cast("complex", value)
        return describe_number(number) or describe_numbers(number)
    try:
        if _holds_arrays(value):
            return _describe_arrays(cast("Sequence[Any]", value), depth)
        return describe_numbers(value)
    except BadRequestError:
        spec = None if depth else _describe_ragged(cast("Sequence[Any]", value))
        if spec is None:
            raise
        return spec


def fast_key(value: Sequence[Any]) -> tuple[object, ...] | None:
    """Return what tells numbers, or plain arrays of one type and shape, from others in lists."""
    numbers = key_of_numbers(value)
    if numbers is not None or not isinstance(value, (list, tuple)):
        return numbers
    kind = next(map(type, value), object)
    if kind in NUMBERS:  # several types, or integers that int64 does not hold
        return None
    key_of = _keys.get(kind) or _key_of(kind)
    key = None if key_of is None else key_of(value[0])
    if key_of is None or key is None or {*map(type, value)} != {kind}:
        return None
    first, shape = value[0], value[0].shape
    if getattr(first.dtype, "hasobject", False):  # its dtype does not say what it holds
        return None
    if _are_of_one_dtype(value):
        is_alike = {*map(_SHAPE, value)} == {shape}
    else:
        is_alike = all(x.shape == shape and key_of(x) == key for x in value)
    if not is_alike:
        return None
    device, nbytes = getattr(first, "device", None), first.nbytes * len(value)
    return kind, first.dtype, device, len(shape), nbytes.bit_length() >> 1  # its `size_class`


def _are_of_one_dtype(value: Sequence[Any]) -> bool:
    """Tell whether all elements are arrays of NumPy, and numbers of one dtype.

    Beside their shapes nothing else counts where they are copied, and each fact is asked of all of
    them at once.
    """
    import numpy as np

    if {*map(type, value)} != {np.ndarray} or len({*map(_DTYPE, value)}) != 1:
        return False
    return not value[0].dtype.hasobject


#: The fast keys of types that formats declare. Others are freed with their last value.
_keys: dict[type, Callable[[Any], Any]] = {}


def _key_of(kind: type) -> Callable[[Any], Any] | None:
    """Return the fast key of the arrays of a type, or None for a type of sequences."""
    formats = formats_of(f"{kind.__module__}:{kind.__qualname__}")
    keys = filter(None, (format_.fast_key for format_ in formats))
    key_of = None if issubclass(kind, SEQUENCES) else next(keys, None)
    if key_of is not None:
        _keys[kind] = key_of
    return key_of


def _describe_ragged(value: Sequence[Any]) -> Spec | None:
    """Return the spec of rows of several lengths; None if they have one length, or are no rows."""
    lengths = None if type(value) is range else ragged.lengths_of(value)
    if lengths is None or len({*lengths}) < 2:
        return None
    elements = ragged.chained(value)
    # Deeper rows of several lengths, and a list that holds itself, are refused as they are.
    if elements is None:
        alike = _are_of_one_dtype(value)
        rows = [_describe_row(value, row, 0) for row in (value[:1] if alike else value)]
    else:
        rows = [describe(cast("Nested", elements), depth=1)]
    if elements is None and len({row.shape[1:] for row in (value if alike else rows)}) > 1:
        return None
    for row in rows:
        if not _is_dense(row.format) or "nested" in row.traits:
            return None
    dtype, mixed = _common_dtype(rows)
    device = _common(value, "devices", [row.device for row in rows])
    traits = frozenset[str]().union(mixed, *(row.traits for row in rows)) - (_RESOLVED - WEAK)
    if elements is None:
        traits -= WEAK
    stored, inner = sum(lengths), rows[0].shape[1:]
    shape = (len(lengths), max(lengths), *inner)
    traits |= {"nested", "hybrid"} if inner else {"nested"}
    index = ragged.index_dtype(stored)
    nbytes = stored * prod(inner) * itemsize(dtype) + itemsize(index) * (len(lengths) + 1)
    return Spec("python.ragged", dtype, device, shape, traits, nbytes, stored, index)


def _holds_arrays(value: Nested) -> bool:
    """Tell whether a sequence holds something else than numbers and what stands in their place."""
    if type(value) is range:  # which may be too long to be read
        return False
    usual = no_arrays()
    return not all(issubclass(kind, usual) for kind in element_types(value))


def _describe_arrays(value: Sequence[Any], depth: int) -> Spec:
    """Return the spec of the array that a sequence of arrays of one shape becomes."""
    if depth > MAX_AXES:
        msg = f"this {type(value).__name__} is nested more than {MAX_AXES} deep; flatten it first."
        raise BadRequestError(msg)
    check_unmasked(cast("Nested", value))
    rows = _rows(value, depth)
    for name in {row.format for row in rows} | {row.wrapped for row in rows if row.wrapped}:
        if not _is_dense(name):
            raise _not_stacked(value, name)
    shape = (len(value), *_common(value, "shapes", [row.shape for row in rows]))
    device = _common(value, "devices", [row.device for row in rows])
    dtype, mixed = _common_dtype(rows)
    traits = frozenset[str]().union(mixed, *(row.traits for row in rows)) - _RESOLVED
    nbytes = prod(shape) * itemsize(dtype)
    return Spec("python.arrays", dtype, device, shape, traits, nbytes)


def _rows(value: Sequence[Any], depth: int) -> list[Spec]:
    """Return the specs of the elements; those of several elements may be one.

    Elements with the spec of the first share its type and shape, and the fast key, which tells
    their dtype and device.
    """
    first = _describe_row(value, value[0], depth)
    key_of, kind = _format(first.format).fast_key, type(value[0])
    # A key tells values of a framework's own types apart; those of subclasses have a trait.
    is_nested = isinstance(value[0], SEQUENCES)
    key = None if key_of is None or first.traits or is_nested else key_of(value[0])
    if _are_of_one_dtype(value):
        shapes = {*map(_SHAPE, value)} - {first.shape}
        return [first, *(first._replace(shape=shape) for shape in shapes)]
    if key_of is None or key is None:
        return [first, *(_describe_row(value, element, depth) for element in value[1:])]
    shape = first.shape
    return [
        first
        if type(element) is kind and key_of(element) == key and element.shape == shape
        else _describe_row(value, element, depth)
        for element in value
    ]


def _describe_row(value: Sequence[Any], element: Any, depth: int) -> Spec:
    """Return the spec of one element, which has to be a dense array, or a sequence of such."""
    if isinstance(element, SEQUENCES):
        return describe(element, depth=depth + 1)
    try:
        spec = interop.spec(element)
    except UnknownValueError:
        kinds = dict.fromkeys(map(type, value))
        if any(issubclass(kind, Number) for kind in kinds):
            raise not_a_number(cast("Nested", value), element) from None
        names = (f"{kind.__module__}.{kind.__qualname__}" for kind in kinds)
        shown = " and ".join(name.removeprefix("builtins.") for name in names)
        raise _not_stacked(value, shown) from None
    if type(element) is int:  # which has no dtype of its own
        import numpy as np

        return spec._replace(dtype=np.min_scalar_type(element).name)
    return spec


def _not_stacked(value: Sequence[Any], kind: str) -> UnknownValueError:
    move = (
        "make one table of the records first, as pandas.DataFrame(x) does"
        if kind == "dict"
        else "interop.convert_tree converts each element, or stack them with their framework first"
    )
    msg = f"a {type(value).__name__} of {kind} is not one array; {move}."
    return UnknownValueError(msg)


@lru_cache(maxsize=256)
def _format(name: str) -> Format:
    formats = {declared.name: declared.format for declared in interop.formats()}
    return formats[name]


def _is_dense(name: str) -> bool:
    """Tell whether a format stores every element, and in memory."""
    return _format(name).is_dense and not _format(name).lazy


def _common(value: Sequence[Any], what: str, facts: list[Any]) -> Any:
    """Return the shape or the device of all elements."""
    if any(fact != facts[0] for fact in facts):
        other = next(fact for fact in facts if fact != facts[0])
        shapes = "pad each to one shape (numpy.pad, torch.nn.functional.pad, jax.numpy.pad)"
        move = shapes if what == "shapes" else "move them to one device"
        msg = (
            f"this {type(value).__name__} holds arrays of different {what} ({facts[0]}, {other}), "
            f"so it is not one array; {move}, or convert each (interop.convert_tree)."
        )
        raise BadRequestError(msg)
    return facts[0]


def _common_dtype(rows: list[Spec]) -> tuple[str | None, frozenset[str]]:
    """Return the dtype of all elements together, and the trait if it does not hold all numbers."""
    import numpy as np

    names = {row.dtype for row in rows}
    if len(names) == 1:
        return names.pop(), EMPTY
    try:
        common = np.result_type(*[numpy_dtype(str(name)) for name in names]).name
    except TypeError:  # NumPy knows none for two of ml_dtypes'
        common = next((wide for wide in _WIDE if all(preserves(n, wide) for n in names)), _WIDE[-1])
    return common, EMPTY if all(preserves(name, common) for name in names) else MIXED
