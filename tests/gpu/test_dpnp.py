"""dpnp on SYCL devices: its two types, its queues, and what it does not share.

A queue is kept busy before values are written, so that a hand-off that ordered nothing would read
what was there before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import interop
from interop.kit import checked_export
from interop.testing import check
from interop_plugins.dpnp import dense, queues
from tests.gpu.test_any_device import Foreign
from tests.gpu.values import LAYOUTS, equal, host

SIZE = 1 << 20


@pytest.fixture
def queue_beside(dpnp: Any) -> Any:
    """Return a queue of the first device, other than the one that its arrays share."""
    import dpctl

    return dpctl.SyclQueue(dpctl.get_devices()[0])


@pytest.fixture
def write_late(dpnp: Any) -> Callable[[Any, float], Callable[[], bool]]:
    """Write a value into an array behind some tenths of a second of work on the array's queue.

    It returns at once, with a function that tells whether the work has been done.
    """
    import dpctl
    from dpctl.utils import SequentialOrderManager

    tensor = dpnp.tensor

    def write(array: Any, value: float) -> Callable[[], bool]:
        queue = array.sycl_queue
        number = tensor.full((1,), value, dtype=array.dtype, sycl_queue=queue)
        busy = tensor.zeros((400, 400), dtype=array.dtype, sycl_queue=queue)
        for _ in range(4):
            busy = tensor.matmul(busy, busy)
        # The write depends on the work. A Python number on the way would be waited for.
        array.get_array()[...] = tensor.add(number, busy[0, :1])
        events = SequentialOrderManager[queue].submitted_events
        complete = dpctl.event_status_type.complete
        return lambda: all(event.execution_status == complete for event in events)

    # What is compiled on first use is compiled now.
    first = dpnp.zeros(SIZE, dtype="float32")
    write(first, 1)
    first.sycl_queue.wait()
    return write


class Barrier(Foreign):
    """A producer that lets the consumer's queue wait by a barrier alone."""

    def __dlpack__(self, *, stream: Any = None, **keywords: Any) -> object:
        if stream is not None:
            stream.submit_barrier([self.array.sycl_queue.submit_barrier()])
        return super().__dlpack__(**keywords)


def address(array: Any) -> int:
    interface = array.__sycl_usm_array_interface__
    return int(interface["data"][0]) + int(interface["offset"]) * int(array.itemsize)


# ---------------------------------------------------------------------- one memory


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_array_and_its_tensor_are_one_memory(dpnp: Any, layout: str) -> None:
    """Both ways nothing is copied, and the layout, the queue and the flags stay."""
    array = LAYOUTS[layout](dpnp.asarray(host("float32")))
    tensor = interop.convert(array, to="dpnp.tensor", copy=False)
    assert tensor is array.get_array()
    back = interop.convert(tensor, to="dpnp", copy=False)
    assert type(back) is dpnp.ndarray
    assert (address(back), back.strides) == (address(array), array.strides)
    assert back.sycl_queue == array.sycl_queue
    tensor.flags.writable = False
    assert interop.spec(interop.convert(tensor, to="dpnp")).traits >= {"readonly"}


def test_a_subclass_is_shared_as_a_plain_array(dpnp: Any) -> None:
    """What holds the memory of an array of a subclass is a plain array."""

    class Mine(dpnp.ndarray):  # type: ignore[misc]
        pass

    array = Mine((5, 7), buffer=dpnp.asarray(host("float32")))
    assert interop.spec(array).traits == {"subclass"}
    result = interop.convert(array, to="dpnp")
    assert type(result) is dpnp.ndarray
    assert address(result) == address(array)


@pytest.mark.parametrize("name", ["dpnp", "dpnp.tensor"])
def test_readonly_memory_stays_so(dpnp: Any, name: str) -> None:
    """A foreign value that may not be written is shared, and locked; a copy of it is not."""
    array = dpnp.asarray(host("float32"))
    array.get_array().flags.writable = False
    result = interop.convert(Foreign(array), to=name)
    assert address(result) == address(array)
    assert interop.spec(result).traits == {"readonly"}
    copied = interop.convert(result, to=name, copy=True)
    assert not interop.spec(copied).traits
    with pytest.raises(interop.InteropError):
        interop.convert(host("float32"), out=result)


def test_an_array_without_axes_can_be_written(dpnp: Any) -> None:
    """dpnp's capsules of an array without axes are flagged as read-only; its own steps are not."""
    array = dpnp.asarray(3.0)
    assert checked_export(array).readonly
    assert interop.spec(dense.from_dlpack(array)).traits == frozenset()
    assert interop.spec(interop.convert(array, to="dpnp.tensor")).traits == frozenset()


def test_only_what_is_shown_comes_to_the_host(dpnp: Any) -> None:
    """A part of a large array brings no more than itself, and keeps nothing else alive."""
    array = dpnp.ones(SIZE, dtype="float32")
    part = interop.convert(array[5:9], to="numpy")
    assert part.base is None
    assert part.nbytes == 16
    assert (part == 1).all()


# ---------------------------------------------------------------------- queues


@pytest.mark.parametrize("name", ["dpnp", "dpnp.tensor"])
def test_the_result_belongs_to_the_queue_that_is_named(
    dpnp: Any, queue_beside: Any, name: str
) -> None:
    """Whatever a step does, its result is on the caller's queue."""
    array = dpnp.asarray(host("float32"))
    for result in (
        interop.convert(host("float32"), to=name, stream=queue_beside),
        interop.convert(array, to=name, copy=True, stream=queue_beside),
        interop.convert(array, to=name, dtype="int32", stream=queue_beside),
        interop.convert(Foreign(array), to=name, stream=queue_beside),
    ):
        assert result.sycl_queue == queue_beside
        assert (interop.convert(result, to="numpy") == host("float32")).all()
    shared = interop.convert(Foreign(array), to=name, stream=queue_beside)
    assert address(shared) == address(array)


def test_a_device_of_an_array_names_its_queue(dpnp: Any, queue_beside: Any) -> None:
    """stream= takes what has a queue as well as the queue."""
    device = dpnp.asarray(host("float32"), sycl_queue=queue_beside).device
    result = interop.convert(host("float32"), to="dpnp", stream=device)
    assert result.sycl_queue == queue_beside


@pytest.mark.parametrize("step", ["share", "take", "copy", "cast", "fetch", "out"])
def test_the_named_queue_waits(
    dpnp: Any, queue_beside: Any, write_late: Callable[[Any, float], Callable[[], bool]], step: str
) -> None:
    """What is still to be written on the array's queue is there when the other queue reads it."""
    keywords: dict[str, Any] = {"stream": queue_beside}
    keywords |= {"take": {"copy": True}, "copy": {"copy": True}, "cast": {"dtype": "int32"}}.get(
        step, {}
    )
    for number in (1, 3):  # the first is planned for longer than the write takes
        array = dpnp.zeros(SIZE, dtype="float32")
        write_late(array, number)
        if step == "out":
            result = dpnp.zeros(SIZE, dtype="float32", sycl_queue=queue_beside)
            interop.convert(array, out=result)
        elif step == "fetch":
            result = interop.convert(array, to="numpy", **keywords)
        else:
            value = {"share": Foreign, "take": Barrier}.get(step, lambda array: array)(array)
            result = interop.convert(value, to="dpnp", **keywords)
        total = result.sum() if step == "fetch" else dpnp.asnumpy(result.sum())
        assert int(total) == number * SIZE


def test_the_host_does_not_wait(
    dpnp: Any, queue_beside: Any, write_late: Callable[[Any, float], Callable[[], bool]]
) -> None:
    """Sharing returns while the array's queue is still at work, unless this process is held up."""
    for _ in range(5):
        array = dpnp.zeros(SIZE, dtype="float32")
        is_done = write_late(array, 3)
        shared = interop.convert(Foreign(array), to="dpnp", stream=queue_beside)
        returned_early = not is_done()
        assert int(dpnp.asnumpy(shared.sum())) == 3 * SIZE
        if returned_early:
            return
    pytest.fail("the host has waited five times")


def test_a_foreign_queue_is_waited_for(
    dpnp: Any, queue_beside: Any, write_late: Callable[[Any, float], Callable[[], bool]]
) -> None:
    """Without stream= a result belongs to its device's own queue, which waits for the producer's."""
    array = dpnp.zeros(SIZE, dtype="float32", sycl_queue=queue_beside)
    write_late(array, 3)
    shared = interop.convert(Foreign(array), to="dpnp")
    assert shared.sycl_queue == dpnp.empty(1).sycl_queue
    assert int(dpnp.asnumpy(shared.sum())) == 3 * SIZE


def test_refuses_what_is_no_queue_of_the_device(dpnp: Any, queue_beside: Any) -> None:
    """Numbers, queues of other devices and of other contexts are refused with the reason."""
    import dpctl

    array = dpnp.asarray(host("float32"))
    context = dpctl.SyclContext([array.sycl_device])
    private = dpctl.SyclQueue(context, array.sycl_device)
    for stream, reason in ((7, "is not a SYCL queue"), (private, "of another context")):
        with pytest.raises(interop.errors.BadRequestError, match=reason):
            interop.convert(array, to="dpnp", copy=True, stream=stream)
    if dpctl.get_num_devices() > 1:
        with pytest.raises(interop.errors.BadRequestError, match="of another device"):
            interop.convert(host("float32"), to="dpnp", device="oneapi:1", stream=queue_beside)


# ---------------------------------------------------------------------- what is not shared


def made_apart(dpnp: Any, how: str) -> Any:
    """Return an array whose memory nobody else can use."""
    import dpctl

    device = dpctl.get_devices()[0]
    if how == "context":
        queue = dpctl.SyclQueue(dpctl.SyclContext([device]), device)
    else:
        try:
            part = device.create_sub_devices(partition=1)[0]
        except dpctl.SyclSubDeviceCreationError as error:
            pytest.skip(f"the device has no parts: {error}")
        queue = dpctl.SyclQueue(part)
    return dpnp.asarray(host("float32"), sycl_queue=queue)


def test_out_of_another_context_is_refused_by_its_name(dpnp: Any) -> None:
    """An out= whose memory the array's queue cannot use is refused, and is left as it was."""
    array, out = interop.convert(host("float32") + 1, to="dpnp"), made_apart(dpnp, "context")
    with pytest.raises(interop.errors.BadRequestError, match=r"^out= is of another SYCL context"):
        interop.convert(array, out=out)
    assert np.array_equal(dpnp.asnumpy(out), host("float32"))


@pytest.mark.parametrize("how", ["context", "part"])
@pytest.mark.parametrize("name", ["dpnp", "dpnp.tensor"])
def test_private_memory(dpnp: Any, name: str, how: str) -> None:
    """It is copied, cast, fetched and moved, and not shared, with a message that says why."""
    array = interop.convert(made_apart(dpnp, how), to=name)
    assert interop.spec(array).traits == {"private_context"}
    assert interop.spec(array).device == "oneapi:0"
    for keywords in ({"copy": True}, {"dtype": "float64"}):
        result = interop.convert(array, to=name, **keywords)
        assert result.sycl_queue == array.sycl_queue
        assert (interop.convert(result, to="numpy") == host("float32")).all()
    with pytest.raises(interop.errors.RefusedError, match="in a context of its own"):
        interop.convert(array, to="dlpack")


def test_private_memory_moves(dpnp: Any) -> None:
    """On another device it is private no longer."""
    import dpctl

    if dpctl.get_num_devices() < 2:
        pytest.skip("there is one SYCL device, and this needs two")
    moved = interop.convert(made_apart(dpnp, "context"), to="dpnp", device="oneapi:1")
    assert interop.spec(moved).traits == frozenset()
    assert equal(interop.convert(moved, to="numpy"), host("float32"))


def test_a_dtype_that_a_device_lacks(dpnp: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the plan did not know is declined where dpnp would have narrowed it silently."""
    array = dpnp.asarray(host("float32"))
    monkeypatch.setitem(queues._lacking, "oneapi:0", frozenset({"float64"}))
    monkeypatch.setitem(queues._lacking, "oneapi", frozenset())
    instance = interop.Interop()
    with pytest.raises(interop.InteropError, match="cannot compute with float64"):
        instance.convert(host("float64"), to="dpnp", device="oneapi")
    with pytest.raises(interop.errors.RefusedError):
        instance.convert(array, to="dpnp", dtype="float64")
    narrowed = instance.convert(host("float64"), to="dpnp", device="oneapi:0", dtype="float32")
    assert equal(dpnp.asnumpy(narrowed), host("float32"))


# ---------------------------------------------------------------------- all of it


def test_keeps_its_promises(dpnp: Any) -> None:
    """The conformance suite finds nothing, having tried every conversion that can be tried here."""
    report = check("dpnp")
    assert report.ok, str(report)
    passed = {finding.conversion for finding in report.findings if finding.outcome == "passed"}
    steps = ("copy", "cast", "from_numpy", "from_dlpack")
    names = ("dpnp → dpnp", "dpnp.tensor → dpnp.tensor", "dpnp → numpy", "numpy → dpnp.tensor")
    assert all(any(name in label for label in passed) for name in (*steps, *names)), passed
    assert np.sum([finding.outcome == "passed" for finding in report.findings]) > 200
