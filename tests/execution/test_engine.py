"""The engine: what it does when a step declines, fails, lies, or needs too much memory."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from typing import Any

import pytest

import interop
from interop import Conversion, Cost, Interop, Spec
from interop._execution.verification import FirstRun
from interop.errors import ConversionError, Declined, RefusedError
from interop.plugin import Components, Drop, make_spec
from tests.toys import Box, copy, describe, toy, view

#: Every error of interop's that a step may raise.
ERRORS = [
    getattr(interop.errors, name)
    for name in interop.errors.__all__
    if issubclass(getattr(interop.errors, name), interop.InteropError)
    and name not in ("InteropError", "Declined")
]


def raising(error: BaseException) -> Any:
    """Return a function that raises an error."""

    def broken(box: Box) -> Box:
        raise error

    return broken


def declining(reason: str = "it is Tuesday") -> Any:
    """Return a function that declines whatever it is given."""
    return raising(Declined(reason))


def test_a_declined_step_is_left_out_and_the_rest_goes_on_from_there(empty: Interop) -> None:
    """After a step has declined, the route is planned again from there, and no step is repeated."""
    empty.register(toy("a"), toy("b"), toy("c"))
    empty.register(
        Conversion("a", "b", counted := Counted(lambda box: Box("b", box.numbers)), name="first"),
        Conversion("b", "c", declined := Counted(declining()), cost=Cost(1e-9), name="declining"),
        view("b", "c", cost=Cost(1e-3)),
    )
    assert empty.convert(Box("a", [1.0]), to="c").kind == "c"
    assert (counted.calls, declined.calls) == (1, 1)


class Counted:
    """A function that counts how often it is called."""

    def __init__(self, function: Any) -> None:
        self.function, self.calls = function, 0

    def __call__(self, box: Box) -> Any:
        self.calls += 1
        return self.function(box)


def test_any_other_exception_stops_and_names_step_and_distribution(empty: Interop) -> None:
    """A failing step is reported with its cause, and no other route is tried silently."""
    error = ZeroDivisionError("oops")
    empty.register(toy("a"), toy("b"), Conversion("a", "b", raising(error)), copy("a", "b"))
    with pytest.raises(ConversionError) as info:
        empty.convert(Box("a", [1.0]), to="b")
    assert info.value.__cause__ is error
    assert info.value.step == "broken"


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (BufferError("no"), interop.errors.HandOffError),
        (ModuleNotFoundError("no", name="zig"), interop.errors.NotInstalledError),
        (MemoryError("no"), MemoryError),
        (interop.errors.BadRequestError("no"), interop.errors.BadRequestError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
def test_exceptions_keep_their_kind(
    empty: Interop, raised: BaseException, expected: type[BaseException]
) -> None:
    """A foreign exception becomes the InteropError that is also what the user expects."""
    empty.register(toy("a"), toy("b"), Conversion("a", "b", raising(raised)))
    with pytest.raises(expected):
        empty.convert(Box("a", [1.0]), to="b")


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Only what nothing refers to is freed."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.mark.parametrize(
    "raised", [*ERRORS, Declined, ValueError, BufferError, MemoryError, ImportError]
)
def test_errors_of_steps_keep_no_value_alive(
    empty: Interop, no_collector: None, raised: type[Exception]
) -> None:
    """Whatever a step raises, its value is freed with the error, and no collection is needed."""
    reached = []

    def broken(box: Box) -> Box:
        reached.append(1)
        raise raised("no")

    empty.register(toy("a"), toy("b"), toy("c"))
    empty.register(view("a", "b"), Conversion("b", "c", broken))
    for count in (1, 2):
        box = Box("a", [1.0])
        alive = weakref.ref(box)
        with suppress(interop.InteropError, MemoryError):
            empty.convert(box, to="c")
        del box
        assert len(reached) == count
        assert alive() is None


@pytest.mark.parametrize(
    "words", [{"dtype": "float16"}, {"copy": False}, {"device": "cuda"}], ids=str
)
def test_refusals_keep_no_value_alive(
    empty: Interop, no_collector: None, words: dict[str, Any]
) -> None:
    """The first value of a class that is refused is freed as the later ones are."""
    empty.register(toy("a"), toy("b"), toy("there", devices=("cuda",)), copy("a", "b"))
    for call in (empty.convert, empty.plan, empty.converter("b", **words)):
        box = Box("a", [1.0])
        alive = weakref.ref(box)
        keywords = {"to": "b", **words} if call in (empty.convert, empty.plan) else {}
        with suppress(interop.InteropError):
            call(box, **keywords)
            pytest.fail("it was not refused")
        del box
        assert alive() is None


class ResourceExhaustedError(Exception):
    """An error whose name alone says that memory ran out."""


@pytest.mark.parametrize(
    "error",
    [
        ResourceExhaustedError("failed on a tensor"),
        RuntimeError("RESOURCE_EXHAUSTED: 2 GiB"),
        RuntimeError("CUDA out of memory"),
        RuntimeError("OutOfMemoryError: 2 GiB"),
        RuntimeError("could not allocate 2 GiB of memory"),
    ],
)
def test_an_error_that_says_that_memory_ran_out_is_a_memory_error(
    empty: Interop, error: Exception
) -> None:
    """It says so by its name or its text; another error of a step stays a failure."""
    empty.register(toy("a"), toy("b"), Conversion("a", "b", raising(error)))
    with pytest.raises(interop.errors.DoesNotFitError) as caught:
        empty.convert(Box("a", [1.0]), to="b")
    assert caught.value.__cause__ is error


def _lying(lie: str, kind: str) -> Conversion:
    """Return a conversion to a format whose results break one promise."""

    def lying(box: Box) -> Box:
        return Box(
            "a" if lie == "format" else kind,
            box.numbers[:-1] if lie == "shape" else box.numbers,
            dtype="float64" if lie == "dtype" else "float32",
            device="cuda:0" if lie == "device" else "cpu",
        )

    return Conversion("a", kind, lying)


@pytest.mark.parametrize("lie", ["dtype", "shape", "device", "format"])
@pytest.mark.parametrize("traced", [False, True])
def test_the_step_that_broke_its_promise_is_named(empty: Interop, lie: str, traced: bool) -> None:
    """The first result of every step is compared, so that no later step is blamed for a lie."""
    calls: list[Box] = []

    def honest(box: Box) -> Box:
        calls.append(box)
        return Box("c", box.numbers)

    empty.register(toy("a"), toy("b"), toy("c"), _lying(lie, "b"), Conversion("b", "c", honest))
    block = interop.trace() if traced else nullcontext()
    with block, pytest.raises(ConversionError) as caught:
        empty.convert(Box("a", [1.0, 2.0]), to="c")
    assert (caught.value.step, caught.value.distribution) == ("lying", "run time")
    assert calls == []


def test_results_are_compared_once_for_each_plan(
    empty: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan whose first results were as promised is not compared again, with or without a trace."""
    empty.register(toy("a"), toy("b"), toy("c"), view("a", "b"), view("b", "c"))
    compared: list[str] = []
    compare = FirstRun.__call__

    def counted(run: FirstRun, step: Any, result: Any) -> None:
        compared.append(step.label)
        compare(run, step, result)

    monkeypatch.setattr(FirstRun, "__call__", counted)
    box = Box("a", [1.0])
    for _ in range(2):
        empty.convert(box, to="b", dtype="float32")
    with interop.trace():
        empty.convert(box, to="c", dtype="float32")
    empty.convert(box, to="c", dtype="float32")
    assert compared == ["a_to_b", "a_to_b", "b_to_c"]


def _assuming(box: Box) -> Spec:
    """Describe a toy array, of which a device does not tell whether it is padded."""
    spec = describe(box)
    return spec._replace(traits=spec.traits | ({"padded"} if spec.device != "cpu" else set()))


@pytest.mark.parametrize("declines", [False, True], ids=["at once", "after a step has declined"])
def test_a_trait_that_a_device_is_assumed_to_have_is_dropped_once(
    empty: Interop, declines: bool
) -> None:
    """What a step has dropped is known, although a second look would assume it again.

    It is neither blamed on the step, nor dropped a second time where the route is planned anew, nor
    told by the receipt.
    """
    calls: list[str] = []

    def dropping(box: Box) -> Box:
        calls.append("dropping")
        return Box("a", list(box.numbers), device=box.device)

    def sharing(box: Box) -> Box:
        calls.append("sharing")
        if declines:
            raise Declined("it is Tuesday")
        return Box("b", box.numbers, device=box.device)

    drop = Drop("padded", dropping, "copy", takes={"uncoalesced"})
    on_devices: dict[str, Any] = {"devices": ("cpu", "cuda"), "carries": {"padded"}}
    empty.register(toy("a", **on_devices, unary=(drop,))._replace(describe=_assuming))
    empty.register(toy("b", **on_devices)._replace(describe=_assuming))
    empty.register(
        Conversion("a", "b", sharing, devices=None, cost=Cost(1e-9)),
        view("a", "b", devices=None, cost=Cost(1e-3)),
    )
    box = Box("a", [1.0], device="cuda:0", traits={"uncoalesced"})
    with pytest.raises(RefusedError):
        empty.convert(box, to="b")  # a trait that no step drops still counts
    box.traits = frozenset()
    with interop.trace() as receipts:
        result = empty.convert(box, to="b")
    assert (result.kind, result.device, result.numbers) == ("b", "cuda:0", [1.0])
    assert calls == ["dropping", "sharing"]
    assert receipts[0].result.traits == frozenset()


@pytest.mark.parametrize("shares", [True, False])
def test_memory_and_traits_of_a_result_are_not_compared(empty: Interop, shares: bool) -> None:
    """A false promise about memory or a dropped trait is for the conformance suite to find."""
    effects, cost = ({"copy"}, Cost(1e-6, 1e9)) if shares else (frozenset(), Cost(1e-6))

    def lying(box: Box) -> Box:
        return Box("b", box.numbers if shares else list(box.numbers), traits=box.traits)

    empty.register(toy("a", carries={"pending"}), toy("b", carries={"pending"}))
    step = Conversion(
        "a", "b", lying, takes={"pending"}, drops={"pending"}, effects=effects, cost=cost
    )
    empty.register(step)
    assert empty.convert(Box("a", [1.0], traits={"pending"}), to="b", copy=shares).kind == "b"


class Thin:
    """A sparse toy array that claims a size."""

    shape = (10**7, 10**7)


def _thin_spec(value: Any) -> Spec:
    return Spec("thin", "float32", "cpu", value.shape, frozenset(), 24, nnz=2, index_dtype="int64")


_THIN = interop.Format(
    "thin",
    types=(f"{__name__}:Thin",),
    describe=_thin_spec,
    dtypes=frozenset({"float32"}),
    components=Components("thin", "a", {}, unpack=id, pack=id),
)


def test_densifying_more_than_the_memory_is_refused(empty: Interop) -> None:
    """Densifying more than the memory available is refused before it starts, with the size."""
    called = []
    densify = Conversion("thin", "a", called.append, effects=frozenset({"densify"}))
    empty.register(toy("a"), _THIN, densify)
    with pytest.raises(interop.errors.DensifyMemoryError):
        empty.convert(Thin(), to="a")
    assert called == []


def test_a_lazy_value_need_not_fit_in_memory_until_it_is_computed(empty: Interop) -> None:
    """A step to a lazy format may exceed memory; computing the value is refused, with the size."""
    huge = make_spec("a", "float32", shape=(10**7, 10**7))
    lazy = toy("a", lazy=True)._replace(describe=lambda box: huge._replace(format=box.kind))
    computing = copy("a", "c", effects=frozenset({"materialize"}))
    empty.register(lazy, toy("b", lazy=True), toy("c"), computing)
    empty.register(view("a", "b", effects=frozenset({"densify"})))
    assert empty.convert(Box("a", [1.0]), to="b").kind == "b"
    with pytest.raises(interop.errors.DensifyMemoryError):
        empty.convert(Box("a", [1.0]), to="c")


def test_a_lazy_copy_is_no_copy_of_what_lies_in_memory(empty: Interop) -> None:
    """An array in memory is copied at once, and a lazy value when it is computed."""
    empty.register(toy("a"), toy("b", lazy=True), toy("b.c", lazy=True))
    empty.register(view("a", "b"), copy("a", "a", cost=Cost(1.0)), copy("b", "b"), copy("b", "b.c"))
    for target, steps in (("b", []), ("b.c", ["copy_b_to_b.c"])):
        route = empty.plan(make_spec("a", "float32", shape=(3,)), to=target, copy=True)
        assert [step.label for step in route.steps] == ["copy_a_to_a", "a_to_b", *steps]
    route = empty.plan(make_spec("b", "float32", shape=(3,)), to="b", copy=True)
    assert [step.label for step in route.steps] == ["copy_b_to_b"]


def test_a_shape_that_was_not_known_is_not_compared(empty: Interop) -> None:
    """The unknown lengths of a lazy value are not compared with those of its result."""

    def spec(box: Box) -> Spec:
        computed = describe(box)
        lazy = computed._replace(shape=(0,), nbytes=0, traits=frozenset({"unknown_shape"}))
        return lazy if box.kind == "a" else computed

    fields: dict[str, Any] = {
        "takes": frozenset({"unknown_shape"}),
        "effects": frozenset({"materialize"}),
    }
    empty.register(toy("a", lazy=True)._replace(describe=spec), toy("b"))
    empty.register(copy("a", "b", drops=frozenset({"unknown_shape"}), **fields))
    assert empty.convert(Box("a", [1.0, 2.0]), to="b").numbers == [1.0, 2.0]
    route = empty.plan(Box("a", [1.0]), to="b")
    assert not route.zero_copy  # what was computed has been written
    assert not route.aliases


def test_a_dtype_that_nothing_has_is_not_compared(empty: Interop) -> None:
    """A result without columns may be given another dtype than was planned, no other result may."""

    def spec(box: Box) -> Spec:
        plain = describe(box)
        if box.kind == "a":
            return plain
        return plain._replace(dtype="float64", traits=frozenset(() if plain.size else {trait}))

    trait = "unknown_dtype"
    empty.register(toy("a")._replace(describe=spec), toy("b", carries={trait}), view("a", "b"))
    with pytest.raises(ConversionError):
        empty.convert(Box("a", [1.0]), to="b")
    assert empty.convert(Box("a", []), to="b").kind == "b"


def test_stream_reaches_only_the_steps_that_want_it(empty: Interop) -> None:
    """``stream=`` is passed to the conversions that declare it, and to no other."""
    streams: list[Any] = []

    def streaming(box: Box, stream: Any = None) -> Box:
        streams.append(stream)
        return Box("c", box.numbers)

    empty.register(toy("a"), toy("b"), toy("c"), view("a", "b"))
    empty.register(Conversion("b", "c", streaming, stream=True))
    empty.convert(Box("a", [1.0]), to="c", stream=7)
    empty.convert(Box("a", [1.0]), to="c")
    assert streams == [7, None]


def test_stream_reaches_the_steps_before_one_that_writes_into_out(empty: Interop) -> None:
    """``stream=`` counts with ``out=`` as it does without, also where nothing is written twice."""
    steps: list[Any] = []

    def streaming(box: Box, stream: Any = None) -> Box:
        steps.append(stream)
        return Box("b", box.numbers)

    def into(out: Box, box: Box) -> None:
        steps.append("into")
        out.numbers[:] = box.numbers

    def apart(box: Box) -> list[tuple[int, int]]:
        return [(id(box.numbers), 1)]

    empty.register(toy("a", memory=apart), toy("b"), toy("c", memory=apart, fill=into))
    empty.register(Conversion("a", "b", streaming, stream=True), copy("b", "c", into=into))
    out = Box("c", [0.0])
    empty.convert(Box("a", [1.0]), out=out, stream=7)
    assert steps == [7, "into"]
    assert out.numbers == [1.0]


def test_plans_refusals_and_declined_steps_are_logged(
    empty: Interop, caplog: pytest.LogCaptureFixture
) -> None:
    """At level DEBUG the logger ``interop`` records each of them, and no route that is known already."""
    empty.register(toy("a"), toy("b"), toy("c"), view("a", "b"))
    quick = Conversion("b", "c", declining("not today"), name="quick")
    empty.register(quick, copy("b", "c", name="slow"))
    with caplog.at_level("DEBUG", "interop"):
        empty.convert(Box("a", [1.0]), to="b")
        empty.convert(Box("a", [1.0]), to="b")
        with pytest.raises(RefusedError):
            empty.convert(Box("a", [1.0]), to="a", copy=True)
        empty.convert(Box("a", [1.0]), to="c")
    messages = [record.getMessage() for record in caplog.records if record.name == "interop"]
    assert messages[0] == "planned a float32 (1,) on cpu → b: a_to_b"
    assert messages[1].startswith("refused: cannot convert a float32 (1,) on cpu to a, copy=True")
    assert messages[2] == "planned a float32 (1,) on cpu → c: a_to_b → quick"
    assert messages[3] == "quick declined (not today); going on by slow"
    assert len(messages) == 4


def test_a_cast_that_exceeds_the_memory_is_planned_and_refused(
    empty: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cast that exceeds the memory left is refused before it starts, and the plan says so."""
    calls: list[Any] = []
    free = {"cpu": 2**30}
    monkeypatch.setattr("interop._execution.engine.available_memory", lambda: free["cpu"])
    huge = make_spec("a", "float32", shape=(2**27,))  # 512 MiB
    empty.register(
        toy("a")._replace(describe=lambda _: huge),
        copy("a", "a", changes={"dtype"})._replace(function=lambda x, **_: calls.append(x)),
    )
    assert empty.plan(huge, to="a", dtype="float64").problem == ""
    free["cpu"] = 2**29
    route = empty.plan(huge, to="a", dtype="float64")
    with pytest.raises(
        MemoryError, match=r"a copy of .* takes 1\.0 GiB, but only 512\.0 MiB"
    ) as caught:
        empty.convert(Box("a", []), to="a", dtype="float64")
    assert str(caught.value) == route.problem == route.as_dict()["problem"]
    assert f"refused, because {route.problem}" in str(route)
    assert calls == []
    assert empty.plan(huge._replace(shape=(4,)), to="a", dtype="float64").problem == ""


def test_a_view_of_what_fills_the_memory_is_no_problem(
    empty: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sharing memory needs none, however little is left."""
    monkeypatch.setattr("interop._execution.engine.available_memory", lambda: 0)
    empty.register(toy("a"), toy("b"), view("a", "b"))
    assert empty.plan(make_spec("a", "float32", shape=(2**40,)), to="b").problem == ""


def test_the_memory_of_a_device_is_not_asked_for(
    empty: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its allocator refuses what does not fit; the host's memory is read once for a plan."""
    asked: list[int] = []
    monkeypatch.setattr(
        "interop._execution.engine.available_memory", lambda: asked.append(1) or 2**60
    )
    there = make_spec("a", "float32", shape=(2**27,), device="cuda:0")
    devices = {"devices": ("cpu", "cuda")}
    anywhere = {"devices": None, "changes": {"dtype"}}
    empty.register(
        toy("a", **devices)._replace(describe=lambda box: there._replace(dtype=box.dtype)),
        toy("b", **devices),
        copy("a", "a", **anywhere),
        copy("a", "b", **anywhere | {"changes": {"device"}, "effects": {"transfer"}}),
        copy("b", "b", **anywhere),
    )
    assert empty.plan(there, to="a", dtype="float64").problem == ""
    assert empty.convert(Box("a", [1.0], device="cuda:0"), to="a", dtype="float64")
    assert asked == []
    route = empty.plan(there, to="b", device="cpu", dtype="int64")
    assert len([step for step in route.steps if step.after.device == "cpu"]) == 2
    assert route.problem == ""
    assert asked == [1]


def test_memory_is_checked_again_after_a_step_has_declined(empty: Interop) -> None:
    """A route that is planned in the place of another may need memory that the first did not."""
    calls: list[Any] = []
    empty.register(
        toy("a"),
        _THIN,
        Conversion("thin", "a", declining(), cost=Cost(1e-9)),
        Conversion("thin", "a", calls.append, effects={"densify"}, cost=Cost(1e-3, 1e9)),
    )
    with pytest.raises(interop.errors.DensifyMemoryError):
        empty.convert(Thin(), to="a")
    assert calls == []


#: The facts of a step between devices.
_MOVE: dict[str, Any] = {
    "name": "move",
    "changes": {"device"},
    "devices": {"cpu", "cuda"},
    "effects": {"transfer"},
}


def test_a_step_that_declines_leaves_the_result_where_it_was_to_be(empty: interop.Interop) -> None:
    """After the value has come to the host, the default device is still that of the value."""
    empty.register(*(toy(name, devices=("cpu", "cuda")) for name in ("a", "b")))
    empty.register(copy("a", "a", **_MOVE), copy("b", "b", **_MOVE))
    empty.register(Conversion("a", "b", declining(), name="quick"))
    empty.register(copy("a", "b", name="slow"))
    value = Box("a", [1.0, 2.0], device="cuda:0")
    with interop.trace() as receipts:
        result = empty.convert(value, to="b", allow="host_round_trip")
    assert (result.kind, result.device, result.numbers) == ("b", "cuda:0", [1.0, 2.0])
    assert receipts[0].steps == ("move", "slow", "move")
    assert "host_round_trip" in receipts[0].effects


def test_a_step_that_declines_hides_no_round_trip(empty: interop.Interop) -> None:
    """Bytes that a declined route has brought to the host are not sent back where that is refused."""
    empty.register(toy("a", devices=("cpu", "cuda")), toy("b"), toy("c", devices=("cuda",)))
    empty.register(copy("a", "a", **_MOVE))
    empty.register(Conversion("a", "b", declining(), name="quick"))
    empty.register(copy("a", "c", **_MOVE))
    with pytest.raises(RefusedError):
        empty.convert(Box("a", [1.0], device="cuda:0"), to=("b", "c"))


def test_a_step_that_declines_unlocks_no_memory(empty: interop.Interop) -> None:
    """Memory that its owner flagged is not shared with a writer after the flag's last holder."""
    flags = {"readonly", "immutable"}

    def shared(box: Box) -> Box:
        return Box("m", box.numbers, traits=flags)

    empty.register(toy("a", carries=flags), toy("m", carries=flags), toy("b"))
    empty.register(
        Conversion("a", "m", shared, takes=flags, adds={"immutable"}),
        Conversion("m", "b", declining(), name="quick", takes=flags, effects={"copy"}),
        view("m", "b", name="shared", takes=flags, cost=Cost(1e-3)),
    )
    box = Box("a", [1.0], traits={"readonly"})
    assert [step.label for step in empty.plan(box, to="b").steps] == ["shared", "quick"]
    with pytest.raises(RefusedError):
        empty.convert(box, to="b")
    assert empty.convert(box, to="b", allow="share_readonly").numbers is box.numbers


def test_a_step_that_declines_makes_no_second_copy(empty: interop.Interop) -> None:
    """Under ``copy=True``, a value that was copied before a step declined is not copied again."""
    empty.register(toy("a"), toy("b"), toy("c"))
    empty.register(copy("a", "b"), Conversion("b", "c", declining(), name="quick"))
    empty.register(view("b", "c", name="shared", cost=Cost(1e-3)), copy("c", "c"))
    with interop.trace() as receipts:
        result = empty.convert(Box("a", [1.0]), to="c", copy=True)
    assert (result.kind, receipts[0].steps) == ("c", ("copy_a_to_b", "shared"))


def test_what_was_copied_before_two_steps_declined_is_not_copied_again(empty: Interop) -> None:
    """The rest of a way is planned from all steps that were taken, not from the last plan's alone."""
    empty.register(*(toy(kind) for kind in "abcde"), copy("a", "b", name="copied"))
    empty.register(
        Conversion("b", "e", declining(), name="first"),
        view("b", "c"),
        Conversion("c", "e", declining(), name="second"),
        view("c", "d"),
        view("d", "e"),
    )
    with interop.trace() as receipts:
        assert empty.convert(Box("a", [1.0]), to="e", copy=True).kind == "e"
    assert receipts[0].steps == ("copied", "b_to_c", "c_to_d", "d_to_e")
