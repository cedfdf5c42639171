"""Converters: one rule of staleness, one bound, and plans for each state of the process."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import interop
from interop import Format, Interop, Spec
from interop._execution import converter as cache
from interop._execution.converter import Converters
from interop._model.spec import spec_class
from interop._planning.planner import Planner
from interop._recognition.installed import importable
from interop._registry.registry import Registry
from interop._request.keywords import Keywords, checked
from interop._request.request import Request
from interop.plugin import Limits, make_spec
from interop.plugin.advanced import Advanced
from tests.toys import Box, copy, toy, view


def _converters(registry: Registry) -> Converters:
    return Converters(registry, Planner(registry, importable))


def entries(instance: Interop) -> int:
    """Return how many entries the cache of an instance holds."""
    converters = instance._converters
    users = {*converters._by_request.values(), *converters._by_keywords.values()}
    return (
        len(converters._by_request)
        + len(converters._by_keywords)
        + len(converters.calls)
        + sum(len(t.plans) + len(t.learnt) + len(t.fast) + len(t.asked) for t in users)
    )


# ---------------------------------------------------------------------- staleness


@pytest.mark.parametrize("keywords", [{}, {"dtype": "float32"}, {"copy": None, "allow": "detach"}])
def test_a_target_means_what_is_registered_by_then(
    empty: Interop, keywords: dict[str, Any]
) -> None:
    """A framework's name stands for the formats that are registered when it is resolved."""
    empty.register(toy("a"), toy("ring.one"), copy("a", "ring.one"))
    box = Box("a", [1.0])
    assert empty.convert(box, "ring", **keywords).kind == "ring.one"
    fixed = empty.converter("ring", **keywords)
    empty.register(toy("ring"), view("a", "ring"))
    assert empty.convert(box, "ring", **keywords).kind == "ring"
    assert fixed(box).kind == "ring.one"


def test_calls_follow_registrations(empty: Interop) -> None:
    """A better conversion that is registered later is used at once, by converters made before, too."""
    empty.register(toy("a"), toy("b"), copy("a", "b"))
    calls, box = (empty.converter("b"), lambda box: empty.convert(box, to="b")), Box("a", [1.0])
    assert [call(box).numbers is box.numbers for call in calls] == [False, False]
    empty.register(view("a", "b"))
    assert [call(box).numbers is box.numbers for call in calls] == [True, True]


@pytest.mark.parametrize("change", ["register", "forget"])
def test_every_change_of_the_registry_clears_everything(empty: Interop, change: str) -> None:
    """Tables by request and by keywords, plans, refusals and fast paths go together."""
    empty.register(toy("a"), toy("b"), view("a", "b", fast_path=lambda box: box))
    box, convert = Box("a", [1.0]), empty.converter("b", dtype="float32")
    convert(box)
    for _ in range(2):
        empty.convert(box, to="b")
    with pytest.raises(interop.errors.RefusedError):
        empty.convert(box, to="b", copy=True)
    converter = empty._converters.of(Request(("b",), "float32"))
    assert converter.plans
    assert entries(empty) > 5
    if change == "register":
        empty.register(toy("c"))
    else:
        empty._registry.replace([])
    assert entries(empty) == 0
    assert converter.plans == {}  # which the converter holds


def test_nothing_is_kept_of_an_older_registry() -> None:
    """A plan that was found while another thread registered something is used and not kept."""
    registry = Registry()
    converters = _converters(registry)
    converter = converters.of(Request(("b",)))
    version = registry.version
    registry.register([toy("a")])
    assert converters.keep(converter.plans, "key", "plan", version) == "plan"
    assert converter.plans == {}
    assert converters.keep(converter.plans, "key", "plan", registry.version) == "plan"
    assert converter.plans == {"key": "plan"}


def test_the_first_entry_stays() -> None:
    """Of two threads that keep something under one key, both get what was kept first."""
    converters = _converters(Registry())
    kept: dict[str, str] = {}
    assert converters.keep(kept, "key", "first") == "first"
    assert converters.keep(kept, "key", "second") == "first"


# ---------------------------------------------------------------------- the bound


def test_the_bound() -> None:
    """The pages say how many entries are kept, which no ordinary program reaches."""
    assert cache._MOST == 16384
    for page in ("contributing/design", "contributing/house", "explanation/routes"):
        text = (Path(__file__).parents[2] / f"docs/{page}.md").read_text()
        assert f"exceed {cache._MOST:,} entries" in text


def test_thousands_of_requests_are_kept(empty: Interop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 2,500 requests in turn, none is planned a second time."""
    names = [f"b{n}" for n in range(52)]
    empty.register(toy("a"), *map(toy, names), view("a", "b0"))
    searches, asked = empty._planner.searches, []

    def counted(spec: Spec, request: Request) -> Any:
        asked.append(request)
        return searches(spec, request)

    monkeypatch.setattr(empty._planner, "searches", counted)
    box, requests = Box("a", [1.0]), list(permutations(names[1:], 2))
    for _ in range(3):
        for pair in requests:
            assert empty.convert(box, to=[*pair, "b0"]).kind == "b0"
    assert len(asked) == len(set(asked)) == len(requests) > 2500


def test_a_runaway_program_starts_over(empty: Interop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a program varies, the cache stays within its bound, and every result is right."""
    monkeypatch.setattr(cache, "_MOST", 7)
    names = [f"b{n}" for n in range(6)]
    empty.register(toy("a"), copy("a", "a", changes=frozenset({"dtype"})), *map(toy, names))
    empty.register(*(view("a", n, fast_path=lambda box, n=n: Box(n, box.numbers)) for n in names))
    for size in (1, 20, 400):
        for name in names:
            box = Box("a", [1.0] * size)
            convert = empty.converter(name)
            for _ in range(2):
                assert empty.convert(box, name).kind == convert(box).kind == name
                assert entries(empty) <= 7
            for dtype in ("float64", "int64"):
                result = empty.convert(box, "a", dtype=dtype, allow={"narrow"}, forbid=["detach"])
                assert result.dtype == dtype
                with pytest.raises(interop.errors.RefusedError):
                    empty.convert(box, name, dtype=dtype, copy=False)
                assert entries(empty) <= 7


# ---------------------------------------------------------------------- found once


def test_equal_requests_share_their_plans(empty: Interop) -> None:
    """However a request is spelt, its plans are in one converter."""
    empty.register(toy("a"), toy("b"), view("a", "b"))
    spellings: list[dict[str, Any]] = [
        {"allow": "narrow", "forbid": ["copy"]},
        {"allow": {"narrow"}, "forbid": ("copy",)},
        {"allow": iter(["narrow"]), "forbid": frozenset({"copy"})},
        {"allow": ["narrow", "narrow"], "forbid": "copy"},
    ]
    kept = [
        empty._converters.converter(checked(Keywords("b", **spelling))) for spelling in spellings
    ]
    assert all(converter is kept[0] for converter in kept)
    with interop.policy(allow="narrow"):
        assert empty._converters.converter(Keywords("b", forbid=("copy",))) is kept[0]
    assert empty._converters.converter(Keywords("b")) is not kept[0]


@pytest.mark.parametrize(
    ("words", "reason"),
    [({"copy": False}, r"\n.*copy_a_to_b"), ({"dtype": "float64"}, "nothing casts it")],
    ids=str,
)
def test_a_refusal_is_looked_for_once(
    empty: Interop, monkeypatch: pytest.MonkeyPatch, words: dict[str, Any], reason: str
) -> None:
    """A program that tries every value searches for the first, and each error is its own."""
    empty.register(toy("a"), toy("b"), copy("a", "b"))
    asked: list[Spec] = []
    searches = empty._planner.searches

    def counted(spec: Spec, request: Request) -> Any:
        asked.append(spec)
        return searches(spec, request)

    monkeypatch.setattr(empty._planner, "searches", counted)
    with pytest.raises(interop.errors.RefusedError, match=rf"float32 \(5,\) on cpu.*{reason}"):
        empty.convert(Box("a", [1.0] * 5), to="b", **words)
    first = len(asked)
    with pytest.raises(interop.errors.RefusedError, match=rf"float32 \(7,\) on cpu.*{reason}"):
        empty.convert(Box("a", [1.0] * 7), to="b", **words)
    assert len(asked) == first > 0
    empty.register(view("a", "b"))
    assert empty.convert(Box("a", [1.0] * 7), to="b", copy=False).kind == "b"


def test_threads_that_ask_for_the_same_route_search_once(
    empty: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that has waited for the planner takes the route that was found meanwhile."""
    empty.register(toy("a"), toy("b"), view("a", "b"))
    start, asked = threading.Barrier(8), []
    searches = empty._planner.searches

    def slow(spec: Spec, request: Request) -> Any:
        asked.append(spec)
        time.sleep(0.05)
        return searches(spec, request)

    def ask() -> str:
        start.wait()
        return empty.convert(Box("a", [1.0]), to="b", dtype="float32").kind

    monkeypatch.setattr(empty._planner, "searches", slow)
    with ThreadPoolExecutor(8) as pool:
        kinds = [answer.result() for answer in [pool.submit(ask) for _ in range(8)]]
    assert kinds == ["b"] * 8
    assert len(asked) == 1


# ---------------------------------------------------------------------- states of the process


def test_plans_are_kept_apart_by_the_state_of_the_process(empty: Interop) -> None:
    """`unsupported_now` is asked for each value, and the plans for each answer are kept."""
    unsupported: frozenset[str] = frozenset()
    narrow = Limits(unsupported_now=lambda device: unsupported)
    empty.register(toy("a"), toy("b", limits=narrow), view("a", "b"))
    empty.register(copy("a", "a", name="cast", changes=frozenset({"dtype"})))
    box = Box("a", [1.0], dtype="float64")
    convert = empty.converter("b", allow="narrow")
    for unsupported in (frozenset(), frozenset({"float64"}), frozenset(), frozenset({"float64"})):
        expected = "float32" if unsupported else "float64"
        assert convert(box).dtype == expected
        assert empty.plan(box, to="b", allow="narrow").result.dtype == expected
        assert empty.convert(box, to="b", allow="narrow").dtype == expected
    converter = empty._converters.converter(Keywords("b", allow="narrow"))
    assert len(converter.plans) == 2
    with pytest.raises(interop.errors.RefusedError):
        empty.convert(box, to="b")
    unsupported = frozenset()
    assert empty.convert(box, to="b").dtype == "float64"


def test_a_device_may_lack_what_another_has(empty: Interop) -> None:
    """`unsupported_now` is told the device, and a plan for one device is none for another."""
    lacking: dict[str, frozenset[str]] = {"npu:1": frozenset({"float64"})}
    limits = Limits(unsupported_now=lambda device: lacking.get(device, frozenset()))
    empty.register(
        toy("a"),
        toy("b", devices=("npu",), limits=limits),
        copy("a", "a", name="cast", changes=frozenset({"dtype"})),
        copy("a", "b", effects=frozenset({"transfer"}), changes=frozenset({"device"})),
    )
    box = Box("a", [1.0], dtype="float64")
    for device, expected in (("npu:0", "float64"), ("npu:1", "float32"), ("npu", "float64")):
        assert empty.plan(box, to="b", device=device, allow="narrow").result.dtype == expected
    with pytest.raises(interop.errors.RefusedError):
        empty.plan(box, to="b", device="npu:1")
    lacking["npu"] = frozenset({"float64"})
    assert empty.plan(box, to="b", device="npu", allow="narrow").result.dtype == "float32"


def test_formats_without_such_a_state_are_planned_by_their_spec_alone() -> None:
    """Only the formats of a request that have a state keep plans apart."""
    registry = Registry()
    registry.register(
        [Format("a"), Format("b", limits=Limits(unsupported_now=lambda device: frozenset()))]
    )
    converters = _converters(registry)
    spec = make_spec("a", "float64")
    group = spec_class(spec)
    assert converters.of(Request(("a",))).key(spec) == group
    assert converters.of(Request(("a", "b"))).key(spec) == (*group, frozenset())


def test_plans_for_numbers_without_a_dtype_are_kept_by_the_default_dtypes() -> None:
    """The default dtypes of a target count for weak numbers, and for no other value."""
    registry, default = Registry(), ["float32"]
    target = Format("a", advanced=Advanced(default_dtype=lambda dtype: default[0]))
    registry.register([target])
    converter = _converters(registry).of(Request(("a",)))
    plain = make_spec("a", "float64")
    weak = plain._replace(traits=frozenset({"weak"}))
    keys = []
    for default[0] in ("float32", "float64"):
        assert converter.key(plain) == spec_class(plain)
        keys.append(converter.key(weak))
    assert keys[0] != keys[1]


def test_entries_are_counted_and_not_calls(loaded: Interop) -> None:
    """The same call, however often it is made, takes up no more of the cache than once."""
    value, like = np.zeros(2**19), np.zeros(2)  # too large for a fast path
    loaded.convert(value, like=like, copy=True)
    before = loaded._converters._count
    for _ in range(20):
        loaded.convert(value, like=like, copy=True)
    assert loaded._converters._count - before < 3
