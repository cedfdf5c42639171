"""Costs decide which way a conversion takes, and never what comes out."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import interop
from interop import Conversion, Cost, Interop
from interop.plugin import make_spec
from interop.testing._sample import NoSample, Recipe, sample, varied
from tests.inside import format_named, shares_memory
from tests.toys import Box, toy

pytestmark = pytest.mark.slow


def _table(seed: int) -> Mapping[str, Cost]:
    """Return costs that have nothing to do with anything."""
    rng = random.Random(seed)
    keys = [declared.key for declared in interop.conversions()]
    costs = {
        key: Cost(10 ** rng.uniform(-8, -2), 10 ** rng.uniform(7, 12), 10 ** rng.uniform(7, 12))
        for key in keys
    }
    costs.update((f.name, Cost(10 ** rng.uniform(-8, -2))) for f in interop.formats())
    return costs


@pytest.fixture(scope="module")
def instances() -> list[Interop]:
    """The declared costs, and three sets of random ones."""
    return [Interop(costs={}), *(Interop(costs=_table(seed)) for seed in range(3))]


def _hard(name: str) -> np.ndarray:
    """Return numbers on which kernels differ: halfway, out of range, subnormal, infinite, NaN."""
    rng = np.random.default_rng(0)
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        ends = [info.min, info.max, info.max - 1, info.max // 2, info.max // 3, 0, 1, 2]
        drawn = rng.integers(info.min, info.max, 88, dtype, endpoint=True)
        return np.concatenate([np.array(ends, dtype), drawn]).reshape(8, 12)
    if name == "bool":
        return rng.integers(0, 2, (8, 12)).astype(bool)
    halves = [s * (1 + n * 2.0**-d + e) for s in (1, -1) for d in (4, 8, 11, 24) for n in (1, 3)
              for e in (-(2.0**-30), 0, 2.0**-30, 2.0**-50)]  # fmt: skip
    ends = [
        0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, 1e-45, 3e-8, 6e-8, 65519.9, 65520, 448, 480,
        3.4e38, 3.5e38, 1e300, 2.0**31, -(2.0**31), 2.0**53, 2.0**63, 2.0**64, -129, 256.5, -0.9,
    ]  # fmt: skip
    with np.errstate(all="ignore"):
        drawn = (rng.standard_normal(96) * 10.0 ** rng.integers(-12, 12, 96)).astype("float64")
        numbers = np.array([*ends, *halves, *drawn])[:96]
        if dtype.kind == "c":
            numbers = numbers + 0j
            numbers.imag = numbers.real[::-1]
        return numbers.astype(dtype).reshape(8, 12)


def _bits(value: Any) -> tuple[np.ndarray, ...]:
    """Return the bits of an array, NaNs of any payload as one, and of a sparse one those it stores."""
    if not isinstance(value, np.ndarray):
        value = interop.convert(value, to="numpy")
    array = np.array(value, value.dtype.newbyteorder("="), order="C")
    parts = array.reshape(-1).view(array.real.dtype) if array.dtype.kind == "c" else array
    with np.errstate(all="ignore"):
        missing = parts != parts  # noqa: PLR0124 - NaN is what is not itself
    bits = np.where(missing, 0, parts.view(f"u{parts.itemsize}"))
    return bits, missing


def _outcome(instance: Interop, value: Any, request: Mapping[str, Any]) -> tuple[object, ...]:
    """Return all that may not depend on costs, in a form that can be compared.

    How a sparse result stores its numbers (in which order, with what width of index) depends on the
    route.
    """
    try:
        result = instance.convert(value, **request)
    except interop.InteropError as error:
        return (type(error),)
    spec = instance.spec(result)
    shares = shares_memory(value, result, instance)
    facts: tuple[object, ...] = (type(result), spec.format, spec.dtype, spec.device, spec.shape)
    if spec.nnz is None:
        facts += (spec.traits, shares)
    elif request.get("copy") is True:
        facts += (spec.traits & {"readonly", "immutable"}, shares)
    return *facts, *(part.tobytes() for part in _bits(result))


def _same_for_all(instances: list[Interop], value: Any, request: Mapping[str, Any]) -> None:
    expected = _outcome(instances[0], value, request)
    for instance in instances[1:]:
        outcome = _outcome(instance, value, request)
        assert outcome == expected, (instance.plan(value, **request), request)


TARGETS = ("bool", "int8", "uint8", "int32", "int64", "float16", "bfloat16", "float8_e4m3fn",
           "float32", "float64", "complex64", "complex128")  # fmt: skip
SOURCES = ("bool", "int8", "uint8", "int32", "int64", "uint64", "float16", "bfloat16",
           "float8_e4m3fn", "float32", "float64", "complex64", "complex128")  # fmt: skip
ODD = [
    *(("numpy", t) for t in ("", "noncontiguous", "negative_strides", "readonly", "byteswapped")),
    *(("torch", t) for t in ("", "noncontiguous", "conj", "neg", "grad")),
]


@pytest.mark.parametrize(("name", "trait"), ODD)
def test_dense_results_are_the_same_with_any_costs(
    name: str, trait: str, instances: list[Interop]
) -> None:
    """Bits, dtype, shape, device, traits and sharing do not depend on what steps cost."""
    rng = random.Random(f"{name} {trait}")
    format_ = format_named(name)
    for source in SOURCES:
        plain = instances[0].convert(_hard(source), to=name, copy=True)
        try:
            value = varied(format_, plain, frozenset({trait} - {""}))
        except (interop.errors.Declined, RuntimeError):
            continue  # there is no such value of this dtype
        requests: list[dict[str, Any]] = [
            {"to": to, **dtype, **copy}
            for to in ("numpy", "torch")
            for dtype in ({}, *({"dtype": target} for target in TARGETS))
            for copy in ({}, {"copy": True})
        ]
        for request in rng.sample(requests, 14):
            _same_for_all(instances, value, request)


COMPOSITES = [
    declared.name
    for declared in interop.formats()
    if (declared.format.layout or declared.format.index_dtypes) and "cpu" in declared.format.devices
]


@pytest.mark.parametrize("name", COMPOSITES)
def test_composite_results_are_the_same_with_any_costs(name: str, instances: list[Interop]) -> None:
    """The same holds of sparse and quantized arrays, whichever library makes them dense."""
    rng = random.Random(name)
    dtypes = format_named(name).dtypes
    targets = ["numpy", "torch", "scipy.csr", "scipy.coo", "torch.sparse_coo", "torch.sparse_csr"]
    traits = ["", "", "uncoalesced", "noncontiguous", "readonly", "grad"]
    extras = [{}, {"copy": True}, {"dtype": "float64"}, {"dtype": "float16"}, {"dtype": "int32"}]
    for _ in range(12):
        dtype = rng.choice(sorted(dtypes & {"float32", "float64", "complex64", "int32", "bool"}))
        trait = rng.choice(traits)
        recipe = Recipe(name, dtype, (10, 12), frozenset({trait} - {""}), density=0.3)
        try:
            value = sample(instances[0], recipe)
        except NoSample:
            continue
        request: dict[str, Any] = {"to": rng.choice(targets), **rng.choice(extras)}
        _same_for_all(instances, value, request)


def _preferring(*labels: str) -> Interop:
    """Return an instance for which all but some conversions are slow."""
    keys = {d.key: d.conversion.label for d in interop.conversions()}
    return Interop(costs={k: Cost(1e-9 if label in labels else 1e-2) for k, label in keys.items()})


def test_no_route_leads_through_a_format_that_keeps_no_dtype() -> None:
    """Python's lists have no dtype to keep, so that no route leads through them, however quick."""
    mine = _preferring("from_numpy", "to_numpy")
    for request in ({"to": "numpy", "copy": True}, {"to": "torch", "dtype": "int8"}):
        route = mine.plan(np.ones(3, "float32"), **request)
        assert "python" not in {step.after.format for step in route.steps}


def test_a_fast_path_for_foreign_values_serves_no_format_that_exports_by_the_protocol() -> None:
    """The negation that DLPack does not know of is carried out, on the second conversion too."""
    mine = _preferring("resolve_neg", "from_dlpack")
    numbers = interop.convert(np.arange(6.0), to="torch")
    for _ in range(2):
        value = format_named("torch").samples.variants["neg"](numbers)
        np.testing.assert_array_equal(mine.convert(value, to="numpy"), np.arange(6.0))


def test_an_array_put_in_order_is_written_as_it_is() -> None:
    """A native dtype that is not NumPy's own object of it is not taken for bits."""
    mine = _preferring("copy_to_native", "copy_into_torch")
    value = np.arange(6.0).astype(">c16")
    np.testing.assert_array_equal(mine.convert(value, to="torch", copy=True).numpy(), value)


def test_fresh_memory_is_writable_whoever_made_it(empty: Interop) -> None:
    """A library whose arrays never change does not make what somebody was promised for their own."""
    steps = [
        Conversion("a", "b", Box, effects=frozenset({"copy"}), adds=frozenset({"immutable"}), name="b"),
        Conversion("b", "a", Box, takes=frozenset({"immutable"}), name="back"),
        Conversion("a", "a", Box, effects=frozenset({"copy"}), cost=Cost(1.0), name="copy"),
    ]  # fmt: skip
    locked = frozenset({"readonly", "immutable"})
    empty.register(toy("a", carries=frozenset({"readonly"})), toy("b", carries=locked), *steps)
    route = empty.plan(make_spec("a", "float32", shape=(4,)), to="a", copy=True)
    assert [step.label for step in route.steps] == ["copy"]
