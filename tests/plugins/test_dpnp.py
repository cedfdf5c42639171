"""dpnp: every route on a SYCL device, planned from specs, which needs no device."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace

import pytest

import interop
from interop import Interop, Route, Spec
from interop.plugin import make_spec
from interop_plugins.dpnp import queues
from interop_plugins.dpnp.problems import find_problems

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]
FORMATS = ["dpnp", "dpnp.tensor"]


def dense(
    name: str,
    dtype: str = "float32",
    *,
    device: str = "oneapi:0",
    traits: frozenset[str] | set[str] = frozenset(),
) -> Spec:
    return make_spec(name, dtype, device=device, shape=(4096, 4096), traits=traits)


def devices(route: Route) -> set[str]:
    return {step.after.device for step in route.steps}


@pytest.mark.parametrize(("source", "target"), [FORMATS, FORMATS[::-1]])
def test_shares_between_its_formats(source: str, target: str) -> None:
    """An array and the tensor that it holds are one memory, in any layout, locked or not."""
    for traits in ({}, {"noncontiguous", "negative_strides"}, {"noncontiguous", "broadcast"}):
        spec = dense(source, device="oneapi:1", traits={*traits, "readonly"})
        route = interop.plan(spec, to=target)
        assert route.zero_copy
        assert not route.effects
        assert devices(route) == {"oneapi:1"}
        assert route.result.traits == spec.traits


@pytest.mark.parametrize("name", FORMATS)
def test_plans_the_order_on_the_device(name: str) -> None:
    """What lies as asked is left as it is, and all else is copied on its device."""
    fortran = {"noncontiguous", "fortran"}
    assert not interop.plan(dense(name), to=name, order="C").steps
    assert not interop.plan(dense(name, traits=fortran), to=name, order="F").steps
    turned = interop.plan(dense(name), to=name, order="F")
    assert turned.effects == {"copy"}
    assert (devices(turned), turned.result.traits) == ({"oneapi:0"}, fortran)
    straight = interop.plan(dense(name, traits=fortran), to=name, order="C")
    assert straight.effects == {"copy"}
    assert (devices(straight), straight.result.traits) == ({"oneapi:0"}, frozenset())


@pytest.mark.parametrize("name", FORMATS)
def test_shares_foreign_memory(name: str) -> None:
    """A foreign value on a SYCL device is shared; what may not be written stays so."""
    assert interop.plan(dense("dlpack"), to=name).zero_copy
    for trait in ("readonly", "immutable"):
        route = interop.plan(dense("dlpack", traits={trait}), to=name)
        assert route.zero_copy
        assert route.result.traits == {"readonly"}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", FORMATS)
def test_crosses_from_and_to_the_host(name: str, dtype: str) -> None:
    """An array of any dtype goes to the device in one step, and comes back in one."""
    there = interop.plan(dense("numpy", dtype, device="cpu", traits={"readonly"}), to=name)
    back = interop.plan(dense(name, dtype, traits={"noncontiguous", "readonly"}), to="numpy")
    assert [set(step.effects) for step in there.steps] == [{"transfer"}]
    assert [set(step.effects) for step in back.steps] == [{"transfer"}]
    assert (there.result.dtype, there.result.device) == (dtype, "oneapi")
    assert (back.result.dtype, back.result.device) == (dtype, "cpu")
    assert not back.result.traits


def test_goes_to_the_device_asked_for() -> None:
    """The bytes go straight to the device that is named, and stay if it is any of its kind."""
    sent = interop.plan(dense("numpy", device="cpu"), to="dpnp", device="oneapi:1")
    moved = interop.plan(dense("dpnp"), to="dpnp", device="oneapi:1")
    assert sent.result.device == moved.result.device == "oneapi:1"
    assert sent.effects == moved.effects == {"transfer"}
    assert "cpu" not in devices(moved)
    assert not interop.plan(dense("dpnp", device="oneapi:1"), to="dpnp", device="oneapi").steps


def test_widens_on_the_host() -> None:
    """A widening cast is done after the bytes have crossed, so that fewer do."""
    route = interop.plan(dense("dpnp"), to="numpy", dtype="float64")
    (step,) = (step for step in route.steps if "transfer" in step.effects)
    assert step.before.dtype == step.after.dtype == "float32"


def test_casts_what_it_cannot_hold() -> None:
    """bfloat16, which dpnp has not, becomes float32; what would lose digits is refused."""
    half = dense("torch", "bfloat16", device="cpu")
    assert interop.plan(half, to="dpnp").result.dtype == "float32"
    with pytest.raises(interop.errors.RefusedError, match="narrow"):
        interop.plan(dense("numpy", "longdouble", device="cpu"), to="dpnp")


def test_reaches_others_by_the_host() -> None:
    """torch on the host is reached by one transfer, and `copy=False` refuses that."""
    route = interop.plan(dense("dpnp"), to="torch")
    assert route.effects == {"transfer"}
    assert (route.result.format, route.result.device) == ("torch", "cpu")
    with pytest.raises(interop.errors.RefusedError, match="copy=False"):
        interop.plan(dense("dpnp"), to="torch", copy=False)


@pytest.mark.parametrize("name", FORMATS)
def test_refuses_to_share_a_private_context(name: str) -> None:
    """Memory that nobody else can use is not exported, and the message says what to do."""
    private = dense(name, traits={"private_context"})
    with pytest.raises(interop.errors.RefusedError, match="in a context of its own"):
        interop.plan(private, to="dlpack")
    assert interop.plan(private, to="numpy").effects == {"transfer"}
    assert interop.plan(private, to=name, copy=True).result.traits == {"private_context"}
    assert not interop.plan(private, to=name, device="oneapi:1").result.traits


# ---------------------------------------------------------------------- what devices lack


@pytest.fixture
def two_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that there are two devices, the second of which has neither float64 nor float16."""
    able = SimpleNamespace(has_aspect_fp64=True, has_aspect_fp16=True)
    poor = SimpleNamespace(has_aspect_fp64=False, has_aspect_fp16=False)
    fake = SimpleNamespace(get_devices=lambda: [able, poor], select_default_device=lambda: able)
    monkeypatch.setitem(sys.modules, "dpctl", fake)  # type: ignore[arg-type]
    tell_nothing = SimpleNamespace(intel_device_info=lambda device: {})
    monkeypatch.setitem(sys.modules, "dpctl.utils", tell_nothing)  # type: ignore[arg-type]
    monkeypatch.setattr(queues, "_lacking", {})


@pytest.mark.usefixtures("two_devices")
@pytest.mark.parametrize("dtype", ["float64", "complex128", "float16"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_device_may_lack_dtypes(name: str, dtype: str) -> None:
    """What one device has the other lacks: its plans differ, and nothing is narrowed silently."""
    instance = Interop()
    value = dense("numpy", dtype, device="cpu")
    for device in (None, "oneapi", "oneapi:0"):
        assert instance.plan(value, to=name, device=device).result.dtype == dtype
    if dtype == "float16":
        assert instance.plan(value, to=name, device="oneapi:1").result.dtype == "float32"
        return
    with pytest.raises(interop.errors.RefusedError, match="narrow"):
        instance.plan(value, to=name, device="oneapi:1")
    with pytest.raises(interop.errors.RefusedError, match="narrow"):
        instance.plan(dense(name, dtype), to=name, device="oneapi:1")
    narrow = "float32" if dtype == "float64" else "complex64"
    route = instance.plan(value, to=name, device="oneapi:1", dtype=narrow)
    (crossing,) = (step for step in route.steps if "transfer" in step.effects)
    assert crossing.before.dtype == crossing.after.dtype == narrow


# ---------------------------------------------------------------------- without a device


def test_planning_imports_nothing(in_subprocess: Callable[..., str]) -> None:
    """A route on a device is planned without importing dpnp or dpctl."""
    printed = in_subprocess(
        """
        import sys
        import interop

        spec = interop.make_spec("dpnp", "float64", device="oneapi:0", shape=(64, 64))
        host = spec._replace(format="numpy", device="cpu")
        for value, to in ((spec, "numpy"), (host, "dpnp"), (spec, "dpnp.tensor"), (spec, "torch")):
            str(interop.plan(value, to=to))
        print(sorted({"dpnp", "dpctl"} & sys.modules.keys()))
        """
    )
    assert printed.strip() == "[]"


class _Nothing:
    """A module of dpctl that finds no device."""

    __version__ = "0.0"

    @staticmethod
    def get_devices() -> list[object]:
        return []


def test_says_that_there_is_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a device the error says how to get the one that the processor can be."""
    monkeypatch.setitem(sys.modules, "dpctl", _Nothing)  # type: ignore[arg-type]
    with pytest.raises(interop.errors.DeviceError, match="OCL_ICD_FILENAMES"):
        queues.device_named("oneapi")


def test_the_doctor_finds_the_runtime(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The runtime for processors that is installed and not announced is named in the fix."""
    monkeypatch.setitem(sys.modules, "dpctl", _Nothing)  # type: ignore[arg-type]
    monkeypatch.delenv("OCL_ICD_FILENAMES", raising=False)
    prefix = tmp_path_factory.mktemp("prefix")
    monkeypatch.setattr(sys, "prefix", str(prefix))
    (problem,) = find_problems()
    assert "driver" in problem.fix
    runtime = prefix / "lib" / "libintelocl.so"
    runtime.parent.mkdir()
    runtime.touch()
    (problem,) = find_problems()
    assert problem.fix == f"export OCL_ICD_FILENAMES={runtime}"


def test_refuses_what_is_not_a_queue() -> None:
    """A number, which is a stream elsewhere, is none here, and the message says what is."""
    pytest.importorskip("dpnp", reason="the type of queues is dpctl's")
    with pytest.raises(interop.errors.BadRequestError, match="SyclQueue"):
        queues.queue_of(7, object())
