"""dpnp: what its devices lack, and what is said where there is none."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

import interop
from interop import Interop
from interop.plugin import make_spec
from interop_plugins.dpnp import queues
from interop_plugins.dpnp.problems import find_problems

FORMATS = ["dpnp", "dpnp.tensor"]


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
    value = make_spec("numpy", dtype, shape=(4096, 4096))
    for device in (None, "oneapi", "oneapi:0"):
        assert instance.plan(value, to=name, device=device).result.dtype == dtype
    if dtype == "float16":
        assert instance.plan(value, to=name, device="oneapi:1").result.dtype == "float32"
        return
    with pytest.raises(interop.errors.RefusedError):
        instance.plan(value, to=name, device="oneapi:1")
    there = value._replace(format=name, device="oneapi:0")
    with pytest.raises(interop.errors.RefusedError):
        instance.plan(there, to=name, device="oneapi:1")
    narrow = "float32" if dtype == "float64" else "complex64"
    route = instance.plan(value, to=name, device="oneapi:1", dtype=narrow)
    (crossing,) = (step for step in route.steps if "transfer" in step.effects)
    assert crossing.before.dtype == crossing.after.dtype == narrow


# ---------------------------------------------------------------------- without a device


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
