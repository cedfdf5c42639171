"""Components: composite values unpacked, packed and handed over, against values of the library's.

What a plugin unpacks and packs the same wrong way looks right to itself. So a value that the
library has made is compared with the numbers that it was made of, and arrays that are put together
here with what comes out again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from interop._model.format import Format, Parts
from interop._model.spec import MEMORY_TRAITS, Spec
from interop._model.text import listed
from interop._model.typing import Value
from interop._recognition.installed import not_installed
from interop.errors import Declined, InteropError, RefusedError

from ._case import FormatCase
from ._notes import Notes
from ._sample import REFUSALS, NoSample, Recipe, first_line, preferred
from ._subject import Bench
from ._traits import LOCKED, silence
from ._trial import possible
from ._truth import LAYOUTS, is_defined, numbers, same

if TYPE_CHECKING:
    from ._truth import Array

#: Shapes of sparse values: longer along one axis than the other, and longer than 16 bits count.
_SHAPES = ((3, 4), (2, 40_000), (5,), (2, 3, 4))
#: The share of the elements that are stored, by the number of elements.
_DENSITIES = {12: 0.5, 80_000: 0.002}
#: An index that does not fit in 16 bits, and one that does not fit in 32.
_FAR = {"int32": 70_000, "int64": 2**31 + 7}
#: Coordinates that are out of order, or stored twice; the second time only the last of them is.
_LOOSE = (((0, 1), (0, 0), (1, 3), (1, 3)), ((1, 0), (2, 0), (2, 3), (2, 0)))
#: Traits of memory of which a library has to be told, lest it ends the process.
_FATAL = frozenset({"readonly", "negative_strides"})
#: What the formats of a layout read of each other, beside the arrays.
_FACTS = {"affine": {"axis", "block_size", "dtype"}}
#: The layouts whose values tell all their coordinates.
SPARSE = frozenset({"coo", "csr", "csc", "bsr", "bsc"})


def problem_of_components(bench: Bench, format_: Format) -> str:
    """Say what is wrong with the components of a sparse format; "" if nothing is.

    Conversions of its values cannot be judged if their numbers are not known.
    """
    faults, name = bench.faults, format_.name
    if name not in faults:
        is_tried = format_.layout in SPARSE and not not_installed(format_)
        case = FormatCase(bench, format_, Notes())
        is_here = is_tried and "cpu" in format_.devices
        faults[name] = next(filter(None, problems(case)), "") if is_here else ""
    return faults[name]


class _Made(NamedTuple):
    """A value that the library has made, and the numbers that it was made of."""

    value: Value
    spec: Spec
    truth: Array


def answers(case: FormatCase) -> Iterator[str]:
    """Yield what is wrong with unpacking, packing, and what others make of the arrays."""
    recipe, value = case.plain()  # without which nothing can be tried here
    if case.format.layout in SPARSE:
        yield from problems(case)
    empty = [recipe._replace(density=0.0)] * case.format.is_sparse
    for packed in (value, *map(case.sample, empty)):
        yield _problem_of_packing(case, packed)
    described = dict(_described(case, case.sample(recipe)))
    case.tried.update(described)
    yield from described.values()
    yield from _problems_of_transfer(case, recipe)


def problems(case: FormatCase) -> Iterator[str]:
    """Yield what is wrong with `describe`, `unpack` and `pack` of a sparse format."""
    if case.format.samples.make is None:
        yield (
            f"{case.name} is tested only against itself: what pack makes, unpack reads; "
            "declare samples.make, which makes a value of a dense one as the library does"
        )
        return
    for shape in possible(_SHAPES, case.format.ndims):
        for made in _made(case, shape):
            with suppress(Declined):  # some shapes are the library's own
                yield _problem_of_value(case, made)
    yield from _problems_of_parts(case)


# ---------------------------------------------------------------------- values of the library's


def _made(case: FormatCase, shape: tuple[int, ...]) -> Iterator[_Made]:
    """Yield a value of a shape in the first dtype that works, and one with duplicates."""
    density = _DENSITIES.get(prod(shape), 0.5)
    for dtype in preferred(case.format.holds("cpu")):
        recipe = Recipe(case.name, dtype, shape, density=density)
        try:
            value = case.sample(recipe)
        except NoSample:
            continue
        yield _Made(value, case.interop.spec(value), numbers(recipe))
        if "uncoalesced" in case.format.samples.variants:
            with suppress(Declined):
                twice = case.format.samples.variants["uncoalesced"](value)
                yield _Made(twice, case.interop.spec(twice), numbers(recipe))
        empty = recipe._replace(density=0.0)
        value = case.sample(empty)
        yield _Made(value, case.interop.spec(value), numbers(empty))
        return


def _problem_of_value(case: FormatCase, made: _Made) -> str:
    spec, unpack = made.spec, f"unpack of {case.name}"
    parts = case.components.unpack(made.value)
    if problem := _problem_of_arrays(case, parts, spec):
        return problem
    arrays = _arrays(case, parts)
    if arrays is None or not is_defined(spec):
        return ""
    try:
        dense = LAYOUTS[case.components.layout](parts._replace(arrays=arrays))
    except REFUSALS as error:
        return f"{unpack} gives arrays that make no value of {spec}: {first_line(error)}"
    if dense is not None and not same(dense, made.truth):
        is_transposed = dense.ndim == 2 and same(dense.T, made.truth)
        what = "the transpose" if is_transposed else "other numbers"
        return f"{unpack} gives {what} of the value that samples.make was given ({spec})"
    return _problem_of_order(case, parts, arrays, spec) or _problem_of_size(case, arrays, spec)


def _arrays(case: FormatCase, parts: Parts) -> dict[str, Array] | None:
    """Return the arrays as NumPy's, or None if one cannot be read."""
    arrays: dict[str, Array] = {}
    for role, array in parts.arrays.items():
        if array is None:
            continue
        reading = case.truth.read(array)
        if reading is None:
            return None
        arrays[role] = reading.array
    return arrays


def _problem_of_arrays(case: FormatCase, parts: Parts, spec: Spec) -> str:
    """Say which array is not as the format declares it."""
    unpack, components = f"unpack of {case.name} gives", case.components
    if parts.shape != spec.shape:
        return f"{unpack} the shape {parts.shape} for {spec.shape}"
    if lacking := _FACTS.get(components.layout, set()) - parts.facts.keys():
        return f"{unpack} no {listed(sorted(lacking))} among its facts"
    for role, array in parts.arrays.items():
        field = components.roles.get(role) or components.roles.get(role.partition("_")[0])
        if array is None:
            continue
        if field is None:
            return f"{unpack} the role {role!r}, which it does not declare"
        actual = case.interop.spec(array)
        dtype = getattr(spec, field) if field in Spec._fields else field
        if components.layout == "affine" and role != next(iter(components.roles)):
            dtype = None  # parameters are small, and handed over without a cast
        if actual.format != components.format:
            return f"{unpack} {role} as {actual.format}, not {components.format}"
        if dtype is not None and actual.dtype != dtype:
            return f"{unpack} {role} as {actual.dtype}, not {dtype}"
        if not actual.traits <= case.registry.formats[actual.format].carries | MEMORY_TRAITS:
            return f"{unpack} {role} as {actual}"
    return ""


def _problem_of_order(case: FormatCase, parts: Parts, arrays: dict[str, Array], spec: Spec) -> str:
    """Say who calls coordinates canonical that are stored twice, or out of order."""
    coordinates = _coordinates(case.components.layout, arrays)
    if all(before < after for before, after in pairwise(coordinates)):
        return ""
    if parts.facts.get("canonical"):
        return (
            f"unpack of {case.name} says that the coordinates are canonical, but some are "
            f"stored twice or out of order ({spec})"
        )
    if "uncoalesced" in case.format.carries - spec.traits:
        return (
            f"describe of {case.name} does not say 'uncoalesced' of {spec}, some of whose "
            "coordinates are stored twice or out of order"
        )
    return ""


def _problem_of_size(case: FormatCase, arrays: dict[str, Array], spec: Spec) -> str:
    values, describe = arrays["values"], f"describe of format {case.name} says"
    if spec.nnz not in (None, len(values), values.size):
        return f"{describe} that {spec.nnz} elements are stored; there are {len(values)}"
    nbytes = sum(array.nbytes for array in arrays.values())
    # A library may store a little more beside, and narrower indices than it hands out.
    if not values.nbytes <= spec.nbytes <= nbytes + nbytes // 2 + 256:
        return f"{describe} {spec.nbytes} bytes of {spec}, and its arrays take {nbytes}"
    return ""


# ---------------------------------------------------------------------- packing


def _problem_of_packing(case: FormatCase, value: Value) -> str:
    """Say how a value changes that is unpacked and packed again."""
    name, spec = case.name, case.interop.spec(value)
    if problem := _problem_of_arrays(case, case.components.unpack(value), spec):
        return problem
    packed = case.components.pack(case.components.unpack(value))
    again = case.interop.spec(packed)
    before, after = case.truth.read(value, spec), case.truth.read(packed, again)
    if (again.format, again.dtype, again.shape) != (spec.format, spec.dtype, spec.shape):
        return f"{name} unpacked and packed again is {again}, and was {spec}"
    if before and (after is None or not same(before.array, after.array)):
        return f"{name} unpacked and packed again holds other numbers"
    return _problem_of_shared_arrays(case, value, spec)


def _problem_of_shared_arrays(case: FormatCase, value: Value, spec: Spec) -> str:
    """Say which array is copied, or shared, and is not declared to be."""
    components, memory = case.components, case.memory
    parts, again = components.unpack(value), components.unpack(value)
    packed = components.unpack(components.pack(parts))
    for role, array in parts.arrays.items():
        family = {role, role.partition("_")[0]}
        is_moved = role == "values" and spec.dtype in components.packed_dtypes
        is_moved |= components.layout == "affine" and role != next(iter(components.roles))
        if array is None or is_moved or not case.interop.spec(array).nbytes:
            continue
        copies = bool(family & components.unpack_copies)
        pairs = [("unpack", copies, again.arrays[role])]
        if not copies:
            copies = bool(family & components.pack_copies)
            pairs.append(("pack", copies, packed.arrays[role]))
        for verb, copies, other in pairs:
            shares = memory.addresses_overlap(array, other)
            if shares is copies:
                claim = "copies" if copies else "shares"
                return f"{verb} of {case.name} declares that it {claim} {role}, and does not"
    return ""


def _described(case: FormatCase, value: Value) -> Iterator[tuple[str, str]]:
    """Yield traits of memory that a value can have, and what is wrong with its description."""
    parts, role = case.components.unpack(value), next(iter(case.components.roles))
    variants = case.registry.formats[case.components.format].samples.variants
    for trait in sorted(MEMORY_TRAITS & variants.keys()):
        with suppress(Declined, *REFUSALS):
            odd = {**parts.arrays, role: variants[trait](parts.arrays[role])}
            packed = case.components.pack(parts._replace(arrays=odd))
            spec = case.interop.spec(packed)
            shown = case.interop.spec(case.components.unpack(packed).arrays[role]).traits
            told = spec.traits | (LOCKED if spec.traits & LOCKED else set())
            if trait in told:
                yield trait, ""
            elif trait in shown and trait in _FATAL:
                yield trait, silence(case.name, trait)


def _problems_of_parts(case: FormatCase) -> Iterator[str]:
    """Yield what becomes of arrays with duplicates, and of coordinates that are far out."""
    dtype = next(iter(preferred(case.format.holds("cpu"))), "")
    if not dtype or case.format.layout not in {"coo", "csr", "csc"}:
        return
    is_free = "uncoalesced" in case.format.carries - case.components.pack_refuses
    for index in sorted(case.format.index_dtypes & _FAR.keys()):
        for places in (*(_LOOSE if is_free else ()), ((0, 0), (0, 1), (1, _FAR[index]))):
            yield _problem_of_parts(case, dtype, index, places)


def _problem_of_parts(
    case: FormatCase, dtype: str, index: str, places: tuple[tuple[int, int], ...]
) -> str:
    """Say what packing makes of elements at some places."""
    arrays = _parts(case.components.layout, dtype, index, places)
    last, is_twice = max(column for _, column in places), len({*places}) < len(places)
    shape = (3, last + 3) if case.components.layout != "csc" else (last + 3, 3)
    if case.format.ndims is not None and 2 not in case.format.ndims:
        return ""
    try:
        given = {
            role: case.interop.convert(array, case.components.format)
            for role, array in arrays.items()
        }
        packed = case.components.pack(Parts(shape, given, {"canonical": not is_twice}))
        spec = case.interop.spec(packed)
        parts = case.components.unpack(packed)
    except REFUSALS:  # it says that it cannot hold them
        return ""
    again = _arrays(case, parts)
    if spec.shape != shape:
        return f"pack of {case.name} makes the shape {spec.shape} of {shape}"
    if again is None:
        return ""
    if problem := _problem_of_order(case, parts, again, spec):
        return problem
    if _elements(case.components.layout, arrays) == _elements(case.components.layout, again):
        return ""
    what = "the elements at one coordinate" if is_twice else f"a coordinate of {last}"
    return f"pack and unpack of {case.name} change {what} ({index} indices)"


# ---------------------------------------------------------------------- other formats


def _problems_of_transfer(case: FormatCase, recipe: Recipe) -> Iterator[str]:
    """Convert a value to every other format of the layout, and back."""
    for other in list(case.registry.formats.values()):
        is_alike = other.layout == case.format.layout and other is not case.format
        if not is_alike or "cpu" not in other.devices or not_installed(other):
            continue
        value = case.sample(recipe)
        try:
            route = case.interop.plan(value, other.name)
            result = route(value)
            back = case.interop.convert(result, case.name)
        except RefusedError:
            continue
        except InteropError as error:
            yield first_line(f"{case.name} fails on its way to {other.name}, or back: {error}")
            continue
        problem = ""
        if case.differ(value, result):
            steps = " → ".join(step.label for step in route.steps)
            problem = f"{steps} returns other numbers than it was given"
        elif case.differ(value, back):
            problem = f"{other.name} to {case.name} gives other numbers than it was given"
        yield problem


# ---------------------------------------------------------------------- coordinates


def _coordinates(layout: str, arrays: dict[str, Array]) -> list[tuple[int, ...]]:
    """Return the coordinates of the elements as they are stored; of blocks, those of the blocks."""
    if layout == "coo":
        axes = sorted(
            (role for role in arrays if role.startswith("indices_")),
            key=lambda role: int(role.partition("_")[2]),
        )
        return list(zip(*(arrays[axis].tolist() for axis in axes), strict=True))
    indices = arrays["indices"].tolist()
    pairs = enumerate(pairwise(arrays["pointers"].tolist()))
    return [(row, indices[k]) for row, (low, high) in pairs for k in range(low, high)]


def _elements(layout: str, arrays: dict[str, Array]) -> dict[tuple[int, ...], complex]:
    """Return the sums of the elements by their coordinates."""
    sums: dict[tuple[int, ...], complex] = {}
    values = arrays["values"].tolist()
    for place, value in zip(_coordinates(layout, arrays), values, strict=True):
        sums[place] = sums.get(place, 0) + value
    return sums


def _parts(
    layout: str, dtype: str, index: str, places: tuple[tuple[int, int], ...]
) -> dict[str, Array]:
    """Return arrays of elements at places in three lines, as a layout has them."""
    import numpy as np

    values = numbers(Recipe("", dtype, (len(places),)))
    rows, columns = np.array(places, index).T.copy()
    if layout == "coo":
        return {"values": values, "indices_0": rows, "indices_1": columns}
    pointers = np.searchsorted(rows, range(4)).astype(index)
    return {"values": values, "indices": columns, "pointers": pointers}
