"""The numbers of a result do not depend on what steps cost, and so not on the route."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from random import Random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import sparse
import torch

import interop
from interop import Conversion, Cost, Interop
from interop.plugin import make_spec
from interop.testing._sample import NoSample, Recipe, varied
from interop.testing._sample import sample as made
from tests.inside import format_named, shares_memory
from tests.properties.readers import dtype_of
from tests.toys import Box, toy

DTYPES = (
    "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128 "
    "float8_e4m3fn float8_e5m2 float8_e8m0fnu"
).split()


@cache
def instances() -> tuple[Interop, ...]:
    """Return instances in which all steps on the host cost something else."""
    declared = Interop(costs={})
    keys = [conversion.key for conversion in declared.conversions()]
    formats = [format_.name for format_ in declared.formats()]
    priced = [declared]
    for seed in range(4):
        rng = Random(seed)
        priced.append(
            Interop(
                costs={
                    key: Cost(1e-6 * rng.random(), 1e8 * 10 ** (3 * rng.random()))
                    for key in keys + formats
                }
            )
        )
    return tuple(priced)


def sample(name: str) -> np.ndarray:
    """Return numbers of a dtype: extremes, halves, NaN, infinities, and neighbours of ties."""
    dtype = dtype_of(name)
    if dtype.itemsize == 1:
        bits = np.arange(256, dtype="u1")
        return bits < 128 if name == "bool" else bits.view(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([info.min, -1, 0, 1, 255, 256, 465, 32767, info.max] * 30).astype(dtype)
    rng = np.random.default_rng(0)
    ties = 2049 * 2.0 ** np.arange(-20, 5)  # in the middle between two float16
    numbers = np.concatenate(
        [
            [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -0.5, 255.5, 464.0, 465.0, 65519.0, 65520.0],
            [1e-40, 2.0**31, 2.0**63, -(2.0**63), 3e38, 1e300],
            *(ties * (1 + step) for step in (0, 1e-9, -1e-9, 1e-13, -1e-13)),
            rng.standard_normal(200) * 2.0 ** rng.integers(-30, 30, 200),
        ]
    )
    with np.errstate(all="ignore"):
        real = numbers.astype(dtype)
        return real + 1j * real[::-1] if dtype.kind == "c" else real


def as_bytes(value: Any) -> bytes:
    """Return the bits of a result, with one NaN for all."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        value = value.to_dense() if value.layout is not torch.strided else value.contiguous()
        value = interop.convert(value, "numpy")
    elif scipy.sparse.issparse(value):
        value = value.toarray()
    elif isinstance(value, sparse.SparseArray):
        value = value.todense()
    value = np.ascontiguousarray(value)
    if value.dtype.kind == "c":
        value = value.view(f"f{value.itemsize // 2}")
    if value.dtype.kind in "fV" or value.dtype.isbuiltin != 1:
        value = np.where(np.isnan(value.astype("f4")), value.dtype.type(1), value).astype(
            value.dtype
        )
    return value.tobytes()


def outcome(instance: Interop, value: Any, request: Mapping[str, Any]) -> tuple[object, ...]:
    """Return all that may not depend on costs, in a form that can be compared.

    How a sparse result stores its numbers (in which order, with what width of index) depends on the
    route.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
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
    return *facts, as_bytes(result)


def results(value: Any, **keywords: Any) -> list[bytes]:
    """Return the bits that each instance makes of a value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [as_bytes(instance.convert(value, **keywords)) for instance in instances()]


def pairs() -> Iterator[Any]:
    for source in DTYPES:
        for target in DTYPES:
            if source != target and (dtype_of(source).kind != "c" or dtype_of(target).kind == "c"):
                yield pytest.param(source, target, id=f"{source}-{target}")


@pytest.mark.parametrize(("source", "target"), list(pairs()))
def test_a_cast_gives_the_same_numbers_whoever_casts(source: str, target: str) -> None:
    """NaN, infinities, overflows and ties are cast alike by every route, in one block or strided."""
    array = sample(source)
    for strided in (array, np.stack([array, array], 1)[:, 0]):
        for value in (strided, interop.convert(strided, "torch")):
            casts = (results(value, to=to, dtype=target) for to in ("numpy", "torch"))
            assert len({bits for cast in casts for bits in cast}) == 1


ODD = [
    *(("numpy", t) for t in ("", "noncontiguous", "negative_strides", "readonly", "byteswapped")),
    *(("torch", t) for t in ("", "noncontiguous", "conj", "neg", "grad")),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "trait"), ODD)
def test_dense_results_are_the_same_with_any_costs(name: str, trait: str) -> None:
    """Bits, dtype, shape, device, traits and sharing do not depend on what steps cost."""
    rng = Random(f"{name} {trait}")
    first, *others = instances()
    for source in (*DTYPES, "uint64"):
        plain = first.convert(np.resize(sample(source), (8, 40)), to=name, copy=True)
        try:
            value = varied(format_named(name), plain, frozenset({trait} - {""}))
        except (interop.errors.Declined, RuntimeError):
            continue  # there is no such value of this dtype
        requests: list[dict[str, Any]] = [
            {"to": to, **dtype, **copy}
            for to in ("numpy", "torch")
            for dtype in ({}, *({"dtype": target} for target in DTYPES))
            for copy in ({}, {"copy": True})
        ]
        for request in rng.sample(requests, 14):
            expected = outcome(first, value, request)
            assert {outcome(other, value, request) for other in others} == {expected}, request


COMPOSITES = [
    declared.name
    for declared in interop.formats()
    if (declared.format.layout or declared.format.index_dtypes) and "cpu" in declared.format.devices
]


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPOSITES)
def test_composite_results_are_the_same_with_any_costs(name: str) -> None:
    """The same holds of sparse and quantized arrays, whichever library makes them dense."""
    rng = Random(name)
    first, *others = instances()
    dtypes = format_named(name).dtypes & {"float32", "float64", "complex64", "int32", "bool"}
    targets = ["numpy", "torch", "scipy.csr", "scipy.coo", "torch.sparse_coo", "torch.sparse_csr"]
    traits = ["", "", "uncoalesced", "noncontiguous", "readonly", "grad"]
    extras = [{}, {"copy": True}, {"dtype": "float64"}, {"dtype": "float16"}, {"dtype": "int32"}]
    for _ in range(12):
        dtype, trait = rng.choice(sorted(dtypes)), rng.choice(traits)
        recipe = Recipe(name, dtype, (10, 12), frozenset({trait} - {""}), density=0.3)
        try:
            value = made(first, recipe)
        except NoSample:
            continue
        request: dict[str, Any] = {"to": rng.choice(targets), **rng.choice(extras)}
        expected = outcome(first, value, request)
        assert {outcome(other, value, request) for other in others} == {expected}, request


def test_a_cast_in_a_graph_gives_the_same_numbers() -> None:
    """A cast that torch would round twice or clip gives NumPy's numbers, and stays in the graph."""
    for source, target in (("float64", "float16"), ("float32", "float8_e4m3fn")):
        tensor = interop.convert(sample(source), "torch").requires_grad_()
        cast = interop.convert(tensor, "torch", dtype=target)
        assert cast.requires_grad
        plain = interop.convert(tensor.detach(), "numpy", dtype=target)
        assert as_bytes(cast) == as_bytes(plain)
        assert len(set(results(tensor, to="numpy", dtype=target))) == 1


def test_numbers_that_float16_cannot_hold_are_rounded_once() -> None:
    """float64 becomes the nearest float16, not the nearest of the nearest float32."""
    tensor = torch.tensor([1 + 2**-11 + 2**-40], dtype=torch.float64)
    assert tensor.half().item() == 1.0  # rounded twice
    assert interop.convert(tensor, "torch", dtype="float16").item() == 1 + 2**-10


def duplicates(dtype: torch.dtype, count: int) -> torch.Tensor:
    """Return a COO tensor most of whose coordinates are stored several times."""
    rng = np.random.default_rng(count)
    places = torch.from_numpy(rng.integers(0, 9, (2, count)))
    values = torch.from_numpy(rng.standard_normal(count)).to(dtype)
    return torch.sparse_coo_tensor(places, values, (9, 9), check_invariants=False)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex128, torch.int8])
@pytest.mark.parametrize("count", [60, 5000])
def test_duplicates_are_summed_in_the_order_they_are_stored_in(
    dtype: torch.dtype, count: int
) -> None:
    """Every route to dense numbers or another layout gives the sums that torch's to_dense gives."""
    value = duplicates(dtype, count)
    expected = as_bytes(value.to_dense())
    targets = ["numpy", "torch", "torch.sparse_csr", "torch.sparse_csc"]
    if dtype is not torch.bfloat16:
        targets += ["scipy.csr", "scipy.csc", "scipy.lil", "scipy.dok", "scipy.coo"]
    for to in targets:
        assert set(results(value, to=to)) == {expected}, to


#: Numbers that are stored at one place, the dtype to cast their sum to, and the result.
SUMMED = [
    ([1.6, 1.6], "int32", 3),
    ([1.6, -1.6], "bool", 0),
    ([1e300, 1e300, -1e300], "float32", np.inf),
    (np.array([200, 100], "u1"), "int32", 44),
    ([2**31, -(2**31), 3], "int16", 3),
    (np.array([706.6, 706.6], "g"), "int16", 1413),
    ([1.6 + 1j, 1.6 - 1j], "float32", 3.2),
]
_WITHOUT_TORCH = (
    *("numpy", "sparse.coo"),
    *(f"scipy.{layout}" for layout in ("coo", "csr", "csc", "bsr", "dia", "lil", "dok")),
)


def _summed(values: np.ndarray, side: int) -> Iterator[Any]:
    """Yield square arrays of every library that store all numbers at their first place."""
    places = np.zeros((2, len(values)), np.int64)
    pointers = np.array([0, *[len(values)] * side])
    blocks = np.zeros((len(values), 2, 2), values.dtype)
    blocks[:, 0, 0] = values
    yield scipy.sparse.coo_array((values, (places[0], places[1])), (side, side))
    yield scipy.sparse.csr_array((values, places[0], pointers), (side, side))
    yield scipy.sparse.csc_array((values, places[0], pointers), (side, side))
    yield scipy.sparse.bsr_array((blocks, places[0], pointers))
    yield sparse.COO(places, values, (side, side), has_duplicates=False, sorted=True)
    if values.dtype.char != "g":
        yield torch.sparse_coo_tensor(
            places, torch.from_numpy(values), (side, side), check_invariants=False
        )


@pytest.mark.parametrize(("numbers", "dtype", "total"), SUMMED, ids=str)
def test_duplicates_are_summed_before_they_are_cast(numbers: Any, dtype: str, total: float) -> None:
    """Whatever steps cost and whatever the size, the sum is the source's, and then it is cast."""
    values, rng = np.asarray(numbers), Random(dtype)
    in_torch = () if values.dtype.char == "g" else ("torch", "torch.sparse_csr")
    # Of the larger, teams of threads add the elements.
    for source, larger in zip(_summed(values, 3), _summed(values, 190), strict=True):
        for to in (*_WITHOUT_TORCH, *in_torch):
            for value, instance in zip((source, larger), rng.sample(instances(), 2), strict=True):
                expected = np.zeros(value.shape, dtype)
                expected[0, 0] = total
                result = instance.convert(value, to=to, dtype=dtype)
                assert as_bytes(result) == expected.tobytes(), (source, to)


def nulls() -> dict[str, Any]:
    """Return small integers with a null, alone and beside floats, in a value of each kind."""
    whole, real = [1, None, 3] * 20_000, [0.5, 1.5, 2.5] * 20_000
    series = pd.Series(whole, dtype="Int8")
    return {
        "pandas.series": series,
        "pandas.dataframe": pd.DataFrame({"a": series, "b": series}),
        "pandas.dataframe beside floats": pd.DataFrame({"a": series.astype("Int64"), "b": real}),
        "pandas.dataframe of arrow": pd.DataFrame({"a": series.astype("int8[pyarrow]")}),
        "polars.series": pl.Series(whole, dtype=pl.Int8),
        "polars.dataframe": pl.DataFrame({"a": whole, "b": whole}, {"a": pl.Int8, "b": pl.Int8}),
        "polars.dataframe beside floats": pl.DataFrame({"a": whole, "b": real}),
        "pyarrow": pa.array(whole, pa.int8()),
        "pyarrow.chunked_array": pa.chunked_array([whole, whole], pa.int8()),
        "pyarrow.table": pa.table({"a": pa.array(whole, pa.int8())}),
        "pyarrow.scalar": pa.scalar(None, pa.int8()),
    }


@pytest.mark.parametrize("kind", nulls())
def test_a_null_is_nan_where_the_result_has_one(kind: str) -> None:
    """Whatever steps cost, the dtype of the result decides what stands for the null of an integer."""
    value = nulls()[kind]
    for dtype, is_null in (
        *((name, np.isnan) for name in ("float64", "float16", "bfloat16", "float8_e5m2")),
        *((name, np.logical_not) for name in ("int64", "uint8", "bool")),
    ):
        for instance in instances():
            result = instance.convert(value, "numpy", dtype=dtype, allow="drop_mask")
            assert result.dtype.name == dtype
            numbers = result.reshape(-1, *result.shape[1:2])
            column = numbers[:, 0] if numbers.ndim > 1 else numbers
            assert is_null(column[1::3] if column.size > 1 else column).all(), dtype
            if column.size > 1 and dtype != "bool":
                assert set(column[::3].tolist()) == {1}
                assert set(column[2::3].tolist()) == {3}


@pytest.mark.filterwarnings("ignore")  # torch says that its quantized tensors will go
def test_dequantized_numbers_are_torchs() -> None:
    """Every route that dequantizes gives what torch's own dequantize gives."""
    real = torch.rand(40, 30) * 3 - 1
    scales, zeros = torch.rand(40, dtype=torch.float64) / 50 + 0.01, torch.arange(40) - 20
    for value in (
        torch.quantize_per_tensor(real, 0.013, 3, torch.quint8),
        torch.quantize_per_tensor(real, 1e-8, -7, torch.qint32),
        torch.quantize_per_channel(real, scales, zeros, 0, torch.qint8),
    ):
        for to in ("numpy", "torch"):
            assert set(results(value, to=to)) == {as_bytes(value.dequantize())}


def preferring(*labels: str) -> Interop:
    """Return an instance for which all but some conversions are slow."""
    keys = {d.key: d.conversion.label for d in interop.conversions()}
    return Interop(costs={k: Cost(1e-9 if label in labels else 1e-2) for k, label in keys.items()})


def test_no_route_leads_through_a_format_that_keeps_no_dtype() -> None:
    """Python's lists have no dtype to keep, so that no route leads through them, however quick."""
    mine = preferring("from_numpy", "to_numpy")
    for request in ({"to": "numpy", "copy": True}, {"to": "torch", "dtype": "int8"}):
        route = mine.plan(np.ones(3, "float32"), **request)
        assert "python" not in {step.after.format for step in route.steps}


def test_a_fast_path_for_foreign_values_serves_no_format_that_exports_by_the_protocol() -> None:
    """The negation that DLPack does not know of is carried out, on the second conversion too."""
    mine = preferring("resolve_neg", "from_dlpack")
    numbers = interop.convert(np.arange(6.0), to="torch")
    for _ in range(2):
        value = format_named("torch").samples.variants["neg"](numbers)
        np.testing.assert_array_equal(mine.convert(value, to="numpy"), np.arange(6.0))


def test_an_array_put_in_order_is_written_as_it_is() -> None:
    """A native dtype that is not NumPy's own object of it is not taken for bits."""
    mine = preferring("copy_to_native", "copy_into_torch")
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
