"""Routes to, from and on devices, planned from specs, which needs no device.

A source is written as ``format@device@dtype trait …`` (float32 if no dtype is named), a request as
``target keyword=value …``, and a route as its steps: what each does, where its result is, its dtype
if that is another, and after the last step the traits of the result. Of steps that do nothing but
look at the same memory in another way none is written, unless there are no others: which of them a
route takes follows from what is imported. Sparse values have 10,000 elements and indices of 32 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

import numpy as np
import pytest
import torch  # noqa: F401 - some routes lead through it where it is imported

import interop
from interop import Conversion, Cost, Format, Interop, Plan, Spec
from interop.errors import RefusedError
from interop.plugin import Result, make_spec
from tests.cases import together

NUMBERS = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]
FLOAT8 = [f"float8_{name}" for name in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")]


SPARSE = ["bool", "float32", "float64", "complex64", "complex128"]


def source(text: str, dtype: str = "float32", index: str = "int32") -> Spec:
    """Return the spec of a value, as the table writes it."""
    place, *traits = text.split()
    name, device, *dtypes = place.split("@")
    dtype = dtypes[0] if dtypes else dtype
    spec = make_spec(name, dtype, device=device, shape=(4096, 4096), traits=frozenset(traits))
    if name.endswith(("csr", "csc", "coo", "dia")) and not name.startswith("dask"):
        nbytes = 10_000 * (np.dtype(dtype).itemsize + np.dtype(index).itemsize)
        return spec._replace(nbytes=nbytes, nnz=10_000, index_dtype=index)
    return spec._replace(code_dtype="int8") if name.endswith("quantized") else spec


def planned(value: Spec, request: str) -> Plan:
    """Return the route of a request, as the table writes it."""
    target, *pairs = request.split()
    words: dict[str, Any] = dict(pair.split("=") for pair in pairs)
    if "copy" in words:
        words["copy"] = words["copy"] == "True"
    return interop.plan(value, to=target, **words)


def written(route: Plan) -> str:
    """Return a route as the table writes it."""
    steps = []
    for step in route.steps:
        dtype = f" {step.after.dtype}" * (step.after.dtype != step.before.dtype)
        if step.effects or dtype:
            steps.append(f"{'+'.join(sorted(step.effects)) or 'view'} {step.after.device}{dtype}")
    if route.steps and not steps:
        steps.append(f"view {route.result.device}")
    return ", ".join(steps) + "".join(f" +{trait}" for trait in sorted(route.result.traits))


ROUTES = [
    # CuPy and torch
    ("torch@cuda:0 noncontiguous broadcast", "cupy", "view cuda:0 +broadcast +noncontiguous"),
    ("cupy@cuda:0 noncontiguous broadcast", "torch", "view cuda:0 +broadcast +noncontiguous"),
    ("cupy@cuda:0 noncontiguous negative_strides", "torch", "copy cuda:0"),
    ("torch@cuda:0 grad", "cupy", "detach cuda:0"),
    ("torch@cuda:0@complex64 conj", "cupy", "copy cuda:0"),
    ("torch@cuda:0@complex64 neg", "cupy", "copy cuda:0"),
    ("torch@cuda:0", "cupy copy=True", "copy cuda:0"),
    # no route copies what an earlier step has shared: its producer might go on
    ("cupy@cuda:0", "torch copy=True", "copy cuda:0"),
    ("jax@cuda:0 immutable", "torch copy=True", "copy cuda:0"),
    ("cupy@cuda:0", "torch dtype=int32", "copy cuda:0 int32"),
    ("jax@cuda:0 immutable", "torch dtype=int32", "copy cuda:0 int32"),
    ("torch@cuda:0", "cupy device=cuda:1", "transfer cuda:1"),
    ("cupy@cuda:0", "cupy device=cuda:1", "transfer cuda:1"),
    ("cupy@cuda:1", "cupy device=cuda", ""),
    # CuPy has no float8, and others share it
    ("torch@cuda:0@float8_e4m3fn", "cupy", "copy cuda:0 bfloat16"),
    ("jax@cuda:0@float8_e5m2 immutable", "cupy", "copy cuda:0 bfloat16"),
    ("jax@cuda:0@float8_e5m2 immutable", "torch", "alias_immutable cuda:0"),
    ("torch@cuda:0@float8_e5m2", "jax copy=False", "view cuda:0 +immutable"),
    # memory of others: CuPy has no read-only arrays
    ("dlpack@cuda:0 readonly", "cupy", "copy cuda:0"),
    ("dlpack@cuda:0 readonly", "cupy allow=share_readonly", "share_readonly cuda:0"),
    ("dlpack@cuda:0 immutable", "cupy", "alias_immutable cuda:0"),
    ("cuda_array_interface@cuda", "cupy", "view cuda"),
    # across the link; what is narrowed is narrowed before, and what is widened after
    ("numpy@cpu", "cupy device=cuda:1", "transfer cuda:1"),
    ("numpy@cpu readonly noncontiguous negative_strides", "cupy", "transfer cuda"),
    ("numpy@cpu@bfloat16", "torch device=cuda:1", "transfer cuda:1"),
    ("numpy@cpu@bfloat16 readonly", "torch device=cuda:1", "transfer cuda:1"),
    ("numpy@cpu@bfloat16 noncontiguous immutable", "torch device=cuda:1", "transfer cuda:1"),
    ("torch@cpu@float64", "torch device=mps dtype=float32", "copy cpu float32, transfer mps"),
    ("torch@cuda:0 grad", "numpy", "detach cuda:0, transfer cpu"),
    ("torch@cuda:0", "numpy dtype=float16", "copy cuda:0 float16, transfer cpu"),
    ("cupy@cuda:0", "numpy dtype=float16", "copy cuda:0 float16, transfer cpu"),
    ("torch@cuda:0", "numpy dtype=float64", "transfer cpu, copy cpu float64"),
    ("cupy@cuda:0", "numpy dtype=float64", "transfer cpu, copy cpu float64"),
    ("cupy@cuda:0", "torch device=cpu", "transfer cpu"),
    # JAX, whose integers of 64 bits are halved if all fit, where they are
    *(
        (f"{name}@cuda:0@{sign}64", "jax", f"copy cuda:0 {sign}32 +immutable")
        for name in ("torch", "cupy")
        for sign in ("int", "uint")
    ),
    ("jax@cuda:1 immutable", "torch", "alias_immutable cuda:1"),
    ("jax@cuda:1 immutable", "cupy", "alias_immutable cuda:1"),
    ("torch@cuda:1", "jax", "view cuda:1 +immutable"),
    ("cupy@cuda:1", "jax", "view cuda:1 +immutable"),
    ("torch@cuda:1 noncontiguous", "jax", "copy cuda:1 +immutable"),
    ("dlpack@cuda:1 readonly", "torch", "copy cuda:1"),
    ("dlpack@cuda:1 readonly", "jax", "copy cuda:1 +immutable"),
    ("jax@cuda:1 immutable", "numpy", "transfer cpu"),
    ("numpy@cpu", "jax device=cuda:1", "transfer cuda:1 +immutable"),
    ("jax@cpu immutable", "jax device=cuda", "transfer cuda +immutable"),
    ("jax@cuda:1 immutable sharded", "numpy", "transfer cpu"),
    (
        *("jax@cuda immutable sharded", "torch device=cuda:0"),
        "transfer cuda:0, alias_immutable cuda:0",
    ),
    ("jax@cuda immutable replicated", "torch", "alias_immutable cuda"),
    # TensorFlow, which takes no stream, so that nothing is shared on the way in
    ("tensorflow@cuda:1 immutable", "torch", "alias_immutable cuda:1"),
    ("tensorflow@cuda:1 immutable", "cupy", "alias_immutable cuda:1"),
    ("tensorflow@cuda:1 immutable", "jax", "view cuda:1 +immutable"),
    ("cupy@cuda:1", "tensorflow device=cpu", "transfer cpu, copy cpu +immutable"),
    ("jax@cuda:1 immutable", "tensorflow device=cpu", "transfer cpu, copy cpu +immutable"),
    (
        *("cupy@cuda:1", "tensorflow allow=host_round_trip"),
        "transfer cpu, host_round_trip+transfer cuda:1 +immutable",
    ),
    (
        *("jax@cuda:1 immutable", "tensorflow allow=host_round_trip"),
        "transfer cpu, host_round_trip+transfer cuda:1 +immutable",
    ),
    ("tensorflow@cuda:1 immutable", "numpy", "transfer cpu"),
    ("tensorflow@cuda:1 variable", "numpy", "transfer cpu"),
    ("numpy@cpu", "tensorflow device=cuda:1", "transfer cuda:1 +immutable"),
    ("tensorflow@cuda:1 immutable", "tensorflow device=cpu", "transfer cpu +immutable"),
    ("tensorflow@cuda:1 immutable", "tensorflow copy=True", "copy cuda:1 +immutable"),
    (
        *("tensorflow@cuda:1 immutable", "tensorflow dtype=float16"),
        "copy cuda:1 float16 +immutable",
    ),
    # ONNX Runtime
    ("torch@cuda:1 noncontiguous", "onnxruntime", "copy cuda:1"),
    ("cupy@cuda:1 noncontiguous", "onnxruntime", "copy cuda:1"),
    ("onnxruntime@cuda:1", "numpy", "transfer cpu"),
    ("numpy@cpu", "onnxruntime device=cuda:1", "transfer cuda:1"),
    ("torch@cpu", "onnxruntime device=cuda:0", "transfer cuda:0"),
    ("onnxruntime@cuda:1", "onnxruntime device=cpu", "transfer cpu"),
    # chunks and wrappers
    ("dask@cpu", "dask.cupy", "transfer cuda"),
    ("dask@cpu", "dask.cupy device=cuda:1", "transfer cuda:1"),
    ("dask.cupy@cuda:0", "dask", "transfer cpu"),
    ("dask.cupy@cuda:0", "dask.torch", "transfer cpu"),
    ("dask.cupy@cuda:0", "dask.scipy.csr", "transfer cpu"),
    ("cupy@cuda:0", "dask.cupy", "view cuda:0"),
    ("dask.cupy@cuda:0", "cupy", "materialize cuda:0"),
    ("cupy@cuda:0", "xarray.dataarray", "view cuda:0"),
    # dpnp
    ("dpnp@oneapi:1 noncontiguous", "dpnp.tensor", "view oneapi:1 +noncontiguous"),
    ("dpnp.tensor@oneapi:1 broadcast", "dpnp", "view oneapi:1 +broadcast"),
    ("dpnp@oneapi:1 negative_strides", "dpnp.tensor", "view oneapi:1 +negative_strides"),
    ("dpnp@oneapi:1 readonly", "dpnp.tensor", "view oneapi:1 +readonly"),
    ("dpnp.tensor@oneapi:1 readonly", "dpnp", "view oneapi:1 +readonly"),
    ("numpy@cpu", "dpnp device=oneapi:1", "transfer oneapi:1"),
    ("dpnp@oneapi:0", "dpnp device=oneapi:1", "transfer oneapi:1"),
    ("dpnp@oneapi:1", "dpnp device=oneapi", ""),
    ("dpnp@oneapi:0", "numpy dtype=float64", "transfer cpu, copy cpu float64"),
    ("torch@cpu@bfloat16", "dpnp", "copy cpu float32, transfer oneapi"),
    ("dpnp@oneapi:0", "torch", "transfer cpu"),
]
ROUTES += [
    row
    for name in ("dpnp", "dpnp.tensor")
    for row in (
        ("dlpack@oneapi:0", name, "view oneapi:0"),
        ("dlpack@oneapi:0 readonly", name, "view oneapi:0 +readonly"),
        ("dlpack@oneapi:0 immutable", name, "view oneapi:0 +readonly"),
    )
]
ROUTES += [
    # sparse: components are shared and cross; what is made dense is so on its device, where it can
    *(
        row
        for layout in ("csr", "csc", "coo")
        for row in (
            (f"cupy.{layout}@cuda:0", f"scipy.{layout}", "transfer cpu"),
            (f"torch.sparse_{layout}@cuda:0", f"scipy.{layout}", "transfer cpu"),
            (f"scipy.{layout}@cpu", f"cupy.{layout} device=cuda", "transfer cuda"),
            (f"cupy.{layout}@cuda:0", "cupy", "densify cuda:0"),
            (f"cupy.{layout}@cuda:0 uncoalesced", "cupy", "densify cuda:0"),
            ("cupy@cuda:0", f"cupy.{layout}", "copy cuda:0"),
        )
    ),
    ("scipy.csr@cpu", "torch.sparse_csr device=cuda", "transfer cuda"),
    # torch stacks indices, in 64 bits
    ("scipy.coo@cpu", "torch.sparse_coo device=cuda", "copy cpu, transfer cuda"),
    ("cupy.csr@cuda:0 uncoalesced", "torch.sparse_csr", "copy cuda:0"),
    ("cupy.csr@cuda:0 uncoalesced", "scipy.csr", "transfer cpu +uncoalesced"),
    # integers, which cupyx does not hold, become the narrowest floats that hold them all
    ("torch.sparse_csr@cuda:0@int32", "cupy.csr", "copy cuda:0 float64"),
    # layouts, each in one step where its library has one
    ("cupy.csr@cuda:0", "cupy.csr", ""),
    *(
        (f"cupy.{one}@cuda:0", f"cupy.{other}", "copy cuda:0")
        for one, other in map(
            str.split,
            ("csr csc", "csr coo", "csc csr", "coo csr", "coo csc", "dia csr", "dia csc"),
        )
    ),
    ("cupy.csc@cuda:0", "cupy.coo", "copy cuda:0 +uncoalesced"),
    # only cupyx has vectors that are CSR arrays
    ("cupy.csr@cuda:0 vector", "cupy", "densify cuda:0"),
    ("cupy.csr@cuda:0 uncoalesced vector", "cupy.coo", "copy cuda:0 +uncoalesced"),
    ("cupy.dia@cuda:0", "cupy.coo", "copy cuda:0, copy cuda:0 +uncoalesced"),
    ("scipy.csr@cpu", "scipy.csc", "copy cpu"),
    ("torch.sparse_csr@cpu", "torch.sparse_csc", "copy cpu"),
    # quantized
    ("torch.quantized@cuda:0", "quantized.cupy", "view cuda:0"),
    ("torch.quantized@cuda:0", "quantized.torch", "view cuda:0"),
    ("torch.quantized@cuda:0", "cupy", "dequantize cuda:0"),
]
#: What lies in the order that is asked for stays as it is, and all else is copied on its device.
TURNED = "+fortran +noncontiguous"
ROUTES += [
    row
    for name, place in (("cupy", "cuda:1"), ("dpnp", "oneapi:1"), ("dpnp.tensor", "oneapi:1"))
    for row in (
        (f"{name}@{place}", f"{name} order=C", ""),
        (f"{name}@{place} noncontiguous fortran", f"{name} order=F", f" {TURNED}"),
        (f"{name}@{place}", f"{name} order=F", f"copy {place} {TURNED}"),
        (f"{name}@{place} noncontiguous fortran", f"{name} order=C", f"copy {place}"),
    )
]
ROUTES += [
    ("cupy@cuda:1", "torch order=C", "view cuda:1"),
    ("cupy@cuda:1 noncontiguous fortran", "torch order=F", f"view cuda:1 {TURNED}"),
    ("cupy@cuda:1", "torch order=F", f"copy cuda:1 {TURNED}"),
    ("cupy@cuda:1 noncontiguous fortran", "torch order=C", "copy cuda:1"),
    ("dpnp@oneapi:0 private_context", "numpy", "transfer cpu"),
    ("dpnp@oneapi:0 private_context", "dpnp copy=True", "copy oneapi:0 +private_context"),
    ("dpnp@oneapi:0 private_context", "dpnp device=oneapi:1", "transfer oneapi:1"),
    ("dpnp.tensor@oneapi:0 private_context", "numpy", "transfer cpu"),
    (
        *("dpnp.tensor@oneapi:0 private_context", "dpnp.tensor copy=True"),
        "copy oneapi:0 +private_context",
    ),
    ("dpnp.tensor@oneapi:0 private_context", "dpnp.tensor device=oneapi:1", "transfer oneapi:1"),
]


@pytest.mark.parametrize(("value", "request_", "route"), ROUTES)
def test_routes_across_devices_take_the_fewest_and_cheapest_steps(
    value: str, request_: str, route: str
) -> None:
    """Bytes stay on their device where they can, cross at most once, and are copied only if needed."""
    plan = planned(source(value), request_)
    assert written(plan) == route
    assert plan.result.format == request_.split(maxsplit=1)[0]
    writes = ("copy", "transfer", "materialize", "densify", "dequantize")
    assert plan.zero_copy == all(word not in route for word in writes)
    assert plan.aliases or not plan.zero_copy


@pytest.mark.parametrize(
    ("place", "target", "route", "dtypes"),
    [
        *(
            (f"{name}@{device}", other, f"view {device}", [*NUMBERS, "bfloat16"])
            for name, other in (("torch", "cupy"), ("cupy", "torch"))
            for device in ("cuda:0", "cuda:1")
        ),
        *(
            (f"{name}@cuda:1", other, "view cuda:1", ["float32", "bool", "int64"])
            for other in ("torch", "cupy")
            for name, other in (("onnxruntime", other), (other, "onnxruntime"))
        ),
        ("torch@cuda:1", "onnxruntime", "view cuda:1", ["bfloat16"]),
        ("numpy@cpu", "cupy", "transfer cuda", [*NUMBERS, "bfloat16"]),
        ("cupy@cuda:0", "numpy", "transfer cpu", [*NUMBERS, "bfloat16"]),
        ("torch@cuda:0", "numpy", "transfer cpu", [*NUMBERS, "bfloat16", *FLOAT8]),
        *(
            row
            for name in ("dpnp", "dpnp.tensor")
            for row in (
                ("numpy@cpu readonly", name, "transfer oneapi", NUMBERS),
                (f"{name}@oneapi:0 noncontiguous readonly", "numpy", "transfer cpu", NUMBERS),
            )
        ),
    ],
)
def test_every_dtype_is_shared_or_crosses_as_it_is_in_one_step(
    place: str, target: str, route: str, dtypes: list[str]
) -> None:
    """Each dtype that both formats hold takes one step, which is no cast."""
    for dtype in dtypes:
        plan = planned(source(place, dtype), target)
        assert (written(plan), plan.result.dtype) == (route, dtype)


@together("index", ["int32", "int64"])
@together(
    "source_, target",
    [
        *(
            pair
            for layout in ("csr", "csc")
            for pair in (
                (f"torch.sparse_{layout}", f"cupy.{layout}"),
                (f"cupy.{layout}", f"torch.sparse_{layout}"),
            )
        ),
        ("torch.sparse_coo", "cupy.coo"),
    ],
)
def test_sparse_arrays_share_all_components_with_torch(
    source_: str, target: str, index: str
) -> None:
    """Values and indices are shared as they are, of any dtype; only torch stacks those of a COO."""
    if (target, index) == ("cupy.coo", "int32"):  # torch has none
        return
    for dtype in SPARSE:
        plan = planned(source(f"{source_}@cuda:0", dtype, index), target)
        assert (written(plan), plan.zero_copy, plan.aliases) == ("view cuda:0", True, True)
        assert (plan.result.dtype, plan.result.index_dtype) == (dtype, index)
    stacked = planned(source("cupy.coo@cuda:0", "float32", "int64"), "torch.sparse_coo")
    assert (written(stacked), stacked.aliases) == ("copy cuda:0", True)


def test_torch_reaches_tensorflow_on_the_host_and_back_if_permitted() -> None:
    """Where the host may be used, a tensor on a device becomes one of TensorFlow's."""
    value = source("torch@cuda:1")
    assert planned(value, "tensorflow device=cpu").result.device == "cpu"
    there = planned(value, "tensorflow allow=host_round_trip")
    assert there.result.device == "cuda:1"
    assert there.steps[-1].effects == {"transfer", "host_round_trip"}


def test_steps_that_take_a_stream_say_so() -> None:
    """A step that is not told the caller's stream would work on another, and nobody would wait."""
    declared = [entry.declaration for entry in interop.conversions()]
    steps = [step for step in declared if isinstance(step, Conversion)]
    takes = {step: "stream" in signature(step.function).parameters for step in steps}
    assert [str(step) for step in steps if takes[step] != step.stream] == []
    assert sum(takes.values()) > 20


@pytest.fixture
def with_hermit() -> Interop:
    """Return an instance with a framework on the device that shares memory with no other."""
    instance = Interop()
    instance.register(
        Format("hermit", dtypes=frozenset({"float32"}), devices=("cuda",)),
        Conversion(
            "hermit",
            "numpy",
            lambda value, *, device: value,
            devices=frozenset({"cuda"}),
            changes=frozenset({"device"}),
            result=Result(devices=frozenset({"cpu"})),
            effects=frozenset({"transfer"}),
            cost=Cost(1e-5, 5e9),
        ),
    )
    return instance


def test_round_trips_by_the_host_are_refused_unless_permitted(with_hermit: Interop) -> None:
    """A round trip from device to host and back is refused by its name, and made if it is allowed."""
    value, words = source("hermit@cuda:0"), {"to": "cupy", "device": "cuda:0"}
    with pytest.raises(RefusedError) as caught:
        with_hermit.plan(value, **words)
    assert caught.value.effects == {"host_round_trip"}
    route = with_hermit.plan(value, **words, allow="host_round_trip")
    assert route.effects == {"transfer", "host_round_trip"}


@pytest.mark.parametrize(
    ("routes", "modules"),
    [
        (
            [("torch@cuda:0", "cupy"), ("torch@cuda:0", "numpy"), ("cupy@cuda:0", "numpy")],
            {"cupy", "cupyx", "torch", "numpy"},
        ),
        (
            [("dpnp@oneapi:0", "numpy"), ("numpy@cpu", "dpnp"), ("dpnp@oneapi:0", "torch")],
            {"dpnp", "dpctl", "torch", "numpy"},
        ),
        (
            [("numpy@cpu", "onnxruntime"), ("onnxruntime@cpu", "torch")],
            {"onnxruntime", "torch", "numpy"},
        ),
    ],
    ids=["cupy", "dpnp", "onnxruntime"],
)
def test_planning_from_specs_imports_nothing(
    in_subprocess: Callable[..., str], routes: list[tuple[str, str]], modules: set[str]
) -> None:
    """Routes are planned without any of the frameworks."""
    program = f"""
        import sys, interop
        for place, target in {routes!r}:
            name, device = place.split("@")
            spec = interop.make_spec(name, "float32", device=device, shape=(64, 64))
            str(interop.plan(spec, to=target))
        csr = interop.Spec("cupy.csr", "float32", "cuda:0", (64, 64), frozenset(), 800, 100, "int32")
        for target in ("torch.sparse_csr", "numpy") if "cupy" in {modules!r} else ():
            str(interop.plan(csr, to=target))
        print(sorted({modules!r} & sys.modules.keys()))
    """
    assert in_subprocess(program).strip() == "[]"
