"""Running routes: declining, failing, checking, densifying."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import interop
from interop import Conversion, Cost, Interop, Spec, make_spec
from interop.plugin import Components
from tests.toys import Box, copy, describe, toy, view


@pytest.mark.parametrize("words", [{}, {"dtype": "float32"}, {"copy": None, "allow": "detach"}])
def test_a_target_means_what_is_registered_by_then(empty: Interop, words: dict[str, Any]) -> None:
    """A format that is registered later is among those that a framework's name stands for."""
    empty.register(toy("a"), toy("ring.one"), copy("a", "ring.one"))
    box = Box("a", [1.0])
    assert empty.convert(box, "ring", **words).kind == "ring.one"
    fixed = empty.converter("ring", **words)
    empty.register(toy("ring.two"), view("a", "ring.two"))
    assert empty.convert(box, "ring", **words).kind == "ring.two"
    assert fixed(box).kind == "ring.one"


def test_sorts_of_calls_that_are_remembered_are_bounded(
    empty: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that asks in ever new words starts over, and is answered all the same."""
    from interop._api import interop as _interop

    monkeypatch.setattr(_interop, "_MOST_WORDS", 3)
    empty.register(toy("a"), toy("b"), copy("a", "b", changes=frozenset({"dtype"})))
    for dtype in ("float32", "float64", "int64", "bfloat16", "uint16"):
        for _ in range(2):
            assert empty.convert(Box("a", [1.0]), "b", dtype=dtype, allow="narrow").dtype == dtype
        assert len(empty._served) <= 3


def test_a_declined_step_is_left_out_and_the_rest_goes_on_from_there(empty: Interop) -> None:
    """Declined makes the core plan again from where it stands, keeping what was done."""
    seen: list[str] = []

    def first(box: Box) -> Box:
        seen.append("first")
        return Box("b", box.numbers)

    def declining(box: Box) -> Box:
        seen.append("declining")
        raise interop.errors.Declined("it is Tuesday")

    empty.register(toy("a"), toy("b"), toy("c"))
    empty.register(
        Conversion("a", "b", first),
        Conversion("b", "c", declining, cost=Cost(1e-9)),
        view("b", "c", cost=Cost(1e-3)),
    )
    result = empty.convert(Box("a", [1.0]), to="c")
    assert result.kind == "c"
    assert seen == ["first", "declining"]


def test_when_everything_declines_the_reason_is_told(empty: Interop) -> None:
    """With no route left, the error says who declined and why."""

    def declining(box: Box) -> Box:
        raise interop.errors.Declined("it is Tuesday")

    empty.register(toy("a"), toy("b"), Conversion("a", "b", declining))
    with pytest.raises(interop.errors.RefusedError, match="declining declined: it is Tuesday"):
        empty.convert(Box("a", [1.0]), to="b")


def test_each_reason_is_told(empty: Interop) -> None:
    """If all of several ways end, the reason of the preferred one comes first, and none is left out."""

    def monday(box: Box) -> Box:
        raise interop.errors.Declined("it is Monday")

    def tuesday(box: Box) -> Box:
        raise interop.errors.Declined("it is Tuesday")

    empty.register(toy("a"), toy("b"))
    empty.register(
        Conversion("a", "b", monday, cost=Cost(1e-9), name="monday"),
        Conversion("a", "b", tuesday, name="tuesday"),
    )
    said = "^monday declined: it is Monday; tuesday declined: it is Tuesday. Without them: "
    with pytest.raises(interop.errors.RefusedError, match=said):
        empty.convert(Box("a", [1.0]), to="b")


def test_any_other_exception_stops_and_names_step_and_distribution(empty: Interop) -> None:
    """Nothing is silently rerouted: the failing step is reported, its cause kept."""

    def broken(box: Box) -> Box:
        raise ZeroDivisionError("oops")

    empty.register(toy("a"), toy("b"), Conversion("a", "b", broken), copy("a", "b"))
    with pytest.raises(
        interop.errors.ConversionError, match=r"broken.*run time.*ZeroDivisionError: oops"
    ) as info:
        empty.convert(Box("a", [1.0]), to="b")
    assert isinstance(info.value.__cause__, ZeroDivisionError)
    assert info.value.step == "broken"


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        (BufferError("no"), interop.errors.HandOffError),
        (ModuleNotFoundError("no", name="zig"), interop.errors.NotInstalledError),
        (MemoryError("no"), MemoryError),
        (interop.errors.BadRequestError("no"), interop.errors.BadRequestError),
    ],
)
def test_exceptions_keep_their_kind(
    empty: Interop, raised: Exception, expected: type[Exception]
) -> None:
    """A foreign exception becomes the one of the tree that also is what the user expects."""

    def broken(box: Box) -> Box:
        raise raised

    empty.register(toy("a"), toy("b"), Conversion("a", "b", broken))
    with pytest.raises(expected):
        empty.convert(Box("a", [1.0]), to="b")


def test_interrupts_pass_through(empty: Interop) -> None:
    """KeyboardInterrupt is nobody's conversion error."""

    def interrupted(box: Box) -> Box:
        raise KeyboardInterrupt

    empty.register(toy("a"), toy("b"), Conversion("a", "b", interrupted))
    with pytest.raises(KeyboardInterrupt):
        empty.convert(Box("a", [1.0]), to="b")


@pytest.mark.parametrize("lie", ["dtype", "shape", "format"])
def test_a_plugin_that_breaks_its_promise_is_caught(empty: Interop, lie: str) -> None:
    """The first result of a route is compared with the plan, and a lie is named."""

    def lying(box: Box) -> Box:
        kind = "a" if lie == "format" else "b"
        numbers = box.numbers[:-1] if lie == "shape" else box.numbers
        return Box(kind, numbers, dtype="float64" if lie == "dtype" else "float32")

    empty.register(toy("a"), toy("b"), Conversion("a", "b", lying))
    with pytest.raises(interop.errors.ConversionError, match=r"lying promised b float32 \(2,\)"):
        empty.convert(Box("a", [1.0, 2.0]), to="b")


class Thin:
    """A sparse toy array that claims a size."""

    shape = (10**7, 10**7)


def _thin_spec(value: Any) -> Spec:
    return Spec("thin", "float32", "cpu", value.shape, frozenset(), 24, nnz=2, index_dtype="int64")


def test_what_does_not_fit_in_memory_is_not_made_dense(empty: Interop) -> None:
    """Densifying more than the memory available is refused before it starts, with the size."""
    called = []
    empty.register(
        toy("a"),
        interop.Format(
            "thin",
            types=(f"{__name__}:Thin",),
            describe=_thin_spec,
            dtypes=frozenset({"float32"}),
            components=Components(layout="thin", format="a", unpack=id, pack=id),
        ),
        Conversion("thin", "a", called.append, effects=frozenset({"densify"})),
    )
    with pytest.raises(
        interop.errors.DensifyMemoryError, match=r"takes 363\.8 TiB.*ask for a sparse"
    ):
        empty.convert(Thin(), to="a")
    assert called == []


def test_what_is_lazy_need_not_fit_in_memory_until_it_is_computed(empty: Interop) -> None:
    """A step to a lazy format may be larger than memory; to compute it is refused, with the size."""
    huge = make_spec("a", "float32", shape=(10**7, 10**7))
    lazy = toy("a", lazy=True)._replace(describe=lambda box: huge._replace(format=box.kind))
    computing = copy("a", "c", effects=frozenset({"materialize"}))
    empty.register(lazy, toy("b", lazy=True), toy("c"), computing)
    empty.register(view("a", "b", effects=frozenset({"densify"})))
    assert empty.convert(Box("a", [1.0]), to="b").kind == "b"
    with pytest.raises(interop.errors.DensifyMemoryError, match=r"363\.8 TiB.*ask for a lazy"):
        empty.convert(Box("a", [1.0]), to="c")


def test_a_lazy_copy_is_no_copy_of_what_lies_in_memory(empty: Interop) -> None:
    """Of an array in memory a copy is made at once; of a lazy value, when it is computed."""
    empty.register(toy("a"), toy("b", lazy=True), toy("b.c", lazy=True))
    empty.register(view("a", "b"), copy("a", "a", cost=Cost(1.0)), copy("b", "b"), copy("b", "b.c"))
    for target, rest in (("b", []), ("b.c", ["copy_b_to_b.c"])):
        route = empty.plan(make_spec("a", "float32", shape=(3,)), to=target, copy=True)
        assert [step.label for step in route.steps] == ["copy_a_to_a", "a_to_b", *rest]
    route = empty.plan(make_spec("b", "float32", shape=(3,)), to="b", copy=True)
    assert [step.label for step in route.steps] == ["copy_b_to_b"]


def test_a_shape_that_was_not_known_is_not_compared(empty: Interop) -> None:
    """Of a lazy value some lengths are known only once it is computed: any result is as planned."""

    def spec(box: Box) -> Spec:
        known = describe(box)
        lazy = known._replace(shape=(0,), nbytes=0, traits=frozenset({"unknown_shape"}))
        return lazy if box.kind == "a" else known

    rest = {"takes": frozenset({"unknown_shape"}), "effects": frozenset({"materialize"})}
    empty.register(toy("a", lazy=True)._replace(describe=spec), toy("b"))
    empty.register(copy("a", "b", drops=frozenset({"unknown_shape"}), **rest))
    assert empty.convert(Box("a", [1.0, 2.0]), to="b").numbers == [1.0, 2.0]
    route = empty.plan(Box("a", [1.0]), to="b")
    assert not route.zero_copy  # what was computed has been written
    assert not route.aliases


def test_a_kept_shortcut_serves_the_next_value(empty: Interop) -> None:
    """After the first conversion of a type the plugin's shortcut is asked first."""
    asked: list[Box] = []

    def shortcut(box: Box) -> Any:
        asked.append(box)
        return NotImplemented if box.dtype == "float64" else Box("b", box.numbers)

    empty.register(toy("a"), toy("b"), view("a", "b", fast_path=shortcut))
    for dtype in ("float32", "float32", "float64"):
        box = Box("a", [1.0], dtype=dtype)
        assert empty.convert(box, to="b").numbers is box.numbers
    assert len(asked) == 2


def test_shortcuts_are_off_inside_policy_and_trace(empty: Interop) -> None:
    """A shortcut serves the default policy only, and leaves no receipt."""

    def shortcut(box: Box) -> Any:
        return "short"

    empty.register(toy("a"), toy("b"), view("a", "b", fast_path=shortcut))
    box = Box("a", [1.0])
    empty.convert(box, to="b")
    assert empty.convert(box, to="b") == "short"
    with interop.policy(forbid="copy"):
        assert isinstance(empty.convert(box, to="b"), Box)
    with interop.trace() as receipts:
        assert isinstance(empty.convert(box, to="b"), Box)
    assert len(receipts) == 1


def test_a_rival_from_elsewhere_takes_the_shortcut_away(empty: Interop) -> None:
    """With conversions of two distributions between two formats, every value is planned."""

    def shortcut(box: Box) -> Any:
        return "short"

    empty._registry.add(
        [toy("a"), toy("b")],
        [view("a", "b", fast_path=shortcut)],
        provenance=interop._registry.registry.Provenance("p", "other", "1"),
    )
    empty.register(copy("a", "b"))
    box = Box("a", [1.0])
    empty.convert(box, to="b")
    assert isinstance(empty.convert(box, to="b"), Box)


def test_a_converter_follows_registrations(empty: Interop) -> None:
    """A converter made before a better conversion was registered uses it afterwards."""
    empty.register(toy("a"), toy("b"), copy("a", "b"))
    convert = empty.converter("b")
    box = Box("a", [1.0])
    assert convert(box).numbers is not box.numbers
    empty.register(view("a", "b"))
    assert convert(box).numbers is box.numbers


def test_describe_is_what_spec_returns(empty: Interop) -> None:
    """`spec` is the format's own description."""
    empty.register(toy("a"))
    box = Box("a", [1.0, 2.0])
    assert empty.spec(box) == describe(box) == make_spec("a", "float32", shape=(2,))


def test_stream_reaches_only_the_steps_that_want_it(empty: Interop) -> None:
    """``stream=`` is handed to the conversions that declare it."""
    got: list[Any] = []

    def streaming(box: Box, stream: Any = None) -> Box:
        got.append(stream)
        return Box("c", box.numbers)

    empty.register(toy("a"), toy("b"), toy("c"), view("a", "b"))
    empty.register(Conversion("b", "c", streaming, stream=True))
    empty.convert(Box("a", [1.0]), to="c", stream=7)
    empty.convert(Box("a", [1.0]), to="c")
    assert got == [7, None]


def test_a_refusal_is_looked_for_once(empty: Interop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who tries copy=False for every value pays for the search once, and each error is its own."""
    empty.register(toy("a"), toy("b"), copy("a", "b"))
    searches: list[Spec] = []
    route = empty._planner.route

    def counted(spec: Spec, *rest: Any, **words: Any) -> Any:
        searches.append(spec)
        return route(spec, *rest, **words)

    monkeypatch.setattr(empty._planner, "route", counted)
    with pytest.raises(interop.errors.RefusedError, match=r"float32 5 on cpu.*\n.*copy_a_to_b"):
        empty.convert(Box("a", [1.0] * 5), to="b", copy=False)
    first = len(searches)
    with pytest.raises(interop.errors.RefusedError, match=r"float32 7 on cpu.*\n.*copy_a_to_b"):
        empty.convert(Box("a", [1.0] * 7), to="b", copy=False)
    assert len(searches) == first > 0
    empty.register(view("a", "b"))
    assert empty.convert(Box("a", [1.0] * 7), to="b", copy=False).kind == "b"


def test_threads_that_ask_for_the_same_route_search_once(
    empty: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has waited for the planner takes the route that was found meanwhile."""
    empty.register(toy("a"), toy("b"), view("a", "b"))
    start, searches = threading.Barrier(8), []
    route = empty._planner.route

    def slow(spec: Spec, *rest: Any, **words: Any) -> Any:
        searches.append(spec)
        time.sleep(0.05)
        return route(spec, *rest, **words)

    def ask() -> str:
        start.wait()
        return empty.convert(Box("a", [1.0]), to="b", dtype="float32").kind

    monkeypatch.setattr(empty._planner, "route", slow)
    with ThreadPoolExecutor(8) as pool:
        kinds = [asked.result() for asked in [pool.submit(ask) for _ in range(8)]]
    assert kinds == ["b"] * 8
    assert len(searches) == 1


def test_what_is_planned_refused_and_declined_is_logged(
    empty: Interop, caplog: pytest.LogCaptureFixture
) -> None:
    """At the level DEBUG the logger ``interop`` has a record of each, and none of a known route."""

    def declining(box: Box) -> Box:
        raise interop.errors.Declined("not today")

    empty.register(toy("a"), toy("b"), toy("c"), view("a", "b"))
    empty.register(Conversion("b", "c", declining, name="quick"), copy("b", "c", name="slow"))
    with caplog.at_level("DEBUG", "interop"):
        empty.convert(Box("a", [1.0]), to="b")
        empty.convert(Box("a", [1.0]), to="b")
        with pytest.raises(interop.errors.RefusedError):
            empty.convert(Box("a", [1.0]), to="a", copy=True)
        empty.convert(Box("a", [1.0]), to="c")
    said = [record.getMessage() for record in caplog.records if record.name == "interop"]
    assert said[0] == "planned a float32 1 on cpu → b: a_to_b"
    assert said[1].startswith("refused: cannot convert a float32 1 on cpu to a, copy=True")
    assert said[2] == "planned a float32 1 on cpu → c: a_to_b → quick"
    assert said[3] == "quick declined (not today); going on by slow"
    assert len(said) == 4
