"""The fast path: which values take it, when it is in force, and that it is never noticed."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import pytest

import interop
import interop.plugin
from interop import Conversion, Format, Interop
from interop._execution.fast_leaves import fast_leaves
from interop._model.provenance import Provenance
from interop._request.policy import block
from interop._request.request import Request
from interop.errors import UnknownValueError
from interop.plugin import Declined, itself
from interop.plugin.advanced import Advanced, NoTrace
from tests.toys import Box, copy, toy, view


class Kin(Box):
    """A box of a type of its own, for which nothing was learnt."""


# ---------------------------------------------------------------------- which are kept


def _kept(instance: Interop, target: Any) -> dict[type, Any]:
    """Return the fast paths that an instance has kept for a target."""
    calls = instance._converters.calls
    return dict(calls[target].fast) if target in calls else {}


def test_a_kept_fast_path_is_asked_first(empty: Interop) -> None:
    """After the first conversion of a type, the plugin's fast path is asked first."""
    calls: list[Box] = []

    def fast_path(box: Box) -> Any:
        calls.append(box)
        return NotImplemented if box.dtype == "float64" else Box("b", box.numbers)

    empty.register(toy("a"), toy("b"), view("a", "b", fast_path=fast_path))
    convert = empty.converter("b")
    for dtype in ("float32", "float32", "float64"):
        box = Box("a", [1.0], dtype=dtype)
        assert empty.convert(box, to="b").numbers is box.numbers
        assert convert(box).numbers is box.numbers
    assert len(calls) == 5


def test_a_type_has_several_fast_paths(empty: Interop, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first leaves out is tried by the next: of another format, or by its fast key."""
    asked: list[str] = []

    def path(kind: str) -> Callable[[Box], Any]:
        def only(box: Box) -> Any:
            asked.append(kind)
            return Box(f"fast {kind}", box.numbers) if box.kind == kind else NotImplemented

        return only

    keyed = Advanced(fast_key=lambda box: box.kind)
    empty.register(toy("a"), toy("b"), toy("k", advanced=keyed), toy("c"))
    empty.register(*(view(kind, "c", fast_path=path(kind)) for kind in "ab"), view("k", "c"))
    boxes = [Box(kind, [1.0]) for kind in "kab"]
    assert {empty.convert(box, to="c").kind for _ in range(2) for box in boxes[:1]} == {"c"}
    for box in boxes * 3:
        empty.convert(box, to="c")
    asked.clear()
    monkeypatch.setattr(
        empty._registry.recognition, "describe", None
    )  # no value is described again
    assert [empty.convert(box, to="c").kind for box in boxes] == ["c", "fast a", "fast b"]
    assert asked == ["a", "b", "a", "a", "b"]
    assert len(empty._converters.of(Request(("c",))).learnt[Box].parts) == 3


def test_a_type_whose_first_value_was_odd_gets_its_fast_path_later(empty: Interop) -> None:
    """A route without a fast path does not keep a type from getting one by the next route."""
    empty.register(toy("here"), toy("there", types=()))
    odd = frozenset({"odd"})
    empty.register(view("here", "there", requires=odd, drops=odd, name="from_odd"))
    empty.register(view("here", "there", fast_path=lambda box: box))
    strange, plain = Box("here", [1.0], traits=odd), Box("here", [1.0])
    for box in (strange, strange):
        assert empty.convert(box, to="there").numbers is box.numbers
    assert _kept(empty, "there") == {}
    empty.convert(plain, to="there")
    assert list(_kept(empty, "there")) == [Box]


def test_a_fast_path_may_be_built_in_or_partial() -> None:
    """A function without code cannot be marked for compilers, and is taken all the same."""
    for fast_path in (partial(_same, Box), memoryview.tobytes, itemgetter(0)):
        instance = Interop()
        marked: list[Any] = []
        instance.register(NoTrace(marked.append))
        instance.register(toy("here"), toy("there", types=()))
        instance.register(view("here", "there", fast_path=fast_path))
        instance.convert(Box("here", [1.0]), to="there")
        assert _kept(instance, "there") == {Box: fast_path}
        assert (_same in marked) == isinstance(fast_path, partial)


def _same(kind: type, value: Any) -> Any:
    return value if isinstance(value, kind) else NotImplemented


def test_what_a_fast_path_copies_is_kept_from_trees_that_share(empty: Interop) -> None:
    """A fast path that a plugin declares tells of no ties, so that it serves no tree that keeps them.

    A format that tells no memory has no ties.
    """
    empty.register(
        toy("a", memory=lambda box: ((id(box.numbers), 8),)), toy("b", types=()), toy("c", types=())
    )
    empty.register(toy("n"), copy("n", "c", fast_path=_same_box))
    empty.register(view("a", "b", fast_path=_same_box), copy("a", "c", fast_path=_same_box))
    for source, target, is_kept in (("a", "b", False), ("a", "c", True), ("n", "c", False)):
        box = Box(source, [1.0])
        empty._registry.changed()
        empty.convert(box, to=target)
        leaves = empty._converters.of(Request((target,))).leaves
        assert leaves[Box].parts == ((_same_box, NotImplemented if is_kept else None),)
        assert fast_leaves([box], leaves) == [NotImplemented if is_kept else box]


def _same_box(box: Box) -> Box:
    return box


def test_a_rival_from_elsewhere_takes_the_fast_path_away(empty: Interop) -> None:
    """With conversions of two distributions between two formats, every value is planned."""
    declarations = [toy("a"), toy("b"), view("a", "b", fast_path=lambda box: "fast")]
    empty._registry.register(declarations, origin=Provenance("p", "other", "1"))
    empty.register(copy("a", "b", changes={"dtype"}))
    box = Box("a", [1.0])
    empty.convert(box, to="b")
    assert isinstance(empty.convert(box, to="b"), Box)


@pytest.mark.parametrize(("ndims", "serves"), [({1}, False), (None, False), ({2}, True)], ids=str)
def test_a_fast_path_to_one_of_several_formats_serves_if_none_comes_before_it(
    empty: Interop, ndims: set[int] | None, serves: bool
) -> None:
    """A format that is preferred for some values rules it out, and one of other axes does not."""
    empty.register(
        toy("a"),
        toy("b.first", types=(), dtypes={"float32"}, ndims=ndims),
        toy("b.second", types=(), ndims={1}),
        view("a", "b.first", dtypes={"float32"}),
        view("a", "b.second", fast_path=lambda box: Box("fast", box.numbers)),
    )
    assert empty.convert(Box("a", [1], dtype="int64"), to="b").kind == "b.second"
    assert empty.convert(Box("a", [1], dtype="int64"), to="b").kind == (
        "fast" if serves else "b.second"
    )
    assert empty.convert(Box("a", [1]), to="b").kind == ("fast" if serves else "b.first")


def test_a_request_that_fast_paths_know_nothing_of_takes_none(empty: Interop) -> None:
    """A dtype, fresh memory, less than a path may do, a stream or a choice of formats: all are planned."""
    empty.register(toy("a"), toy("b"), view("a", "b", fast_path=lambda box: "fast"))
    empty.register(copy("b", "b"))
    box = Box("a", [1.0])
    requests: list[dict[str, Any]] = [
        {"to": "b", "dtype": "float32"},
        {"to": "b", "copy": True},
        {"to": "b", "forbid": "detach"},
        {"to": "b", "forbid": ["copy", "alias_immutable"], "allow": "narrow"},
        {"to": ["b", "c"]},
    ]
    empty.register(toy("c"))
    for request in requests:
        assert isinstance(empty.convert(box, **request), Box)
        assert isinstance(empty.converter(**request)(box), Box)
    assert _kept(empty, "b") == {}
    empty.convert(box, to="b")
    assert empty.convert(box, to="b") == empty.converter("b")(box) == "fast"
    for request in (*requests, {"to": "b", "stream": 1}):
        assert isinstance(empty.convert(box, **request), Box)
        assert isinstance(empty.converter(**request)(box), Box)


@pytest.mark.parametrize(
    "request_",
    [
        {"copy": False},
        {"device": "cpu"},
        {"like": Box("b", [1.0])},
        {"to": ("b",)},
        {"forbid": "copy"},
        {"allow": "narrow", "forbid": ("transfer", "materialize")},
    ],
    ids=["copy", "device", "like", "to", "forbid", "allow"],
)
def test_a_request_that_changes_nothing_for_plain_values_takes_fast_paths(
    empty: Interop, request_: dict[str, Any]
) -> None:
    """To share, to stay on the host and to name the format otherwise is what fast paths do."""
    empty.register(
        toy("a"), toy("b", advanced=Advanced(address=_address)), view("a", "b", fast_path=_text)
    )
    words = request_ if "like" in request_ else {"to": "b", **request_}
    box = Box("a", [1.0])
    assert isinstance(empty.convert(box, **words), Box)
    empty.convert(box, **words)  # of a like= of this type the first call finds out how to tell it
    assert empty.convert(box, **words) == empty.converter(**words)(box) == "fast"
    with interop.policy(forbid="narrow"):
        empty.convert(box, **words)
        assert empty.convert(box, **words) == "fast"
    with interop.policy(forbid="detach"):
        empty.convert(box, **words)
        assert isinstance(empty.convert(box, **words), Box)
    with interop.trace() as receipts:
        assert isinstance(empty.convert(box, **words), Box)
    assert len(receipts) == 1
    empty.register(toy("c"))
    assert isinstance(empty.convert(box, **words), Box)


def test_the_fast_path_of_numbers_without_a_dtype_gets_the_one_they_are_to_have(
    empty: Interop,
) -> None:
    """It is that of the request, or else what the target has by default."""
    given: list[dict[str, Any]] = []

    def fast_path(box: Box, **keywords: Any) -> Any:
        given.append(keywords)
        return NotImplemented

    def default_dtype(dtype: str) -> str:
        return dtype

    weak = frozenset({"weak"})
    empty.register(
        toy("a", carries=weak),
        toy("b"),
        toy("c", advanced=Advanced(default_dtype=default_dtype)),
        *(view("a", to, takes=weak, drops=weak, fast_path=fast_path) for to in "bc"),
    )
    for keywords, expected in (
        ({"to": "b"}, {}),
        ({"to": "c"}, {"default_dtype": default_dtype}),
        ({"to": "b", "dtype": "float32"}, {"dtype": "float32"}),
        ({"to": "c", "dtype": "float32"}, {"dtype": "float32"}),
    ):
        given.clear()
        for _ in range(3):
            empty.convert(Box("a", [1.0]), **keywords)
        assert given == [expected] * 2


def _kind(box: Box) -> tuple[str, ...] | None:
    return None if box.traits else (box.kind, box.dtype, box.device)


def _address(box: Box) -> int:
    return id(box.numbers)


def _text(box: Box) -> str:
    return "fast"


def _doubtful(box: Box, dtype: str) -> Box:
    """Return a copy of another dtype, unless the first number is odd in one of two ways."""
    if box.numbers[0] == 13:
        raise ValueError("thirteen")
    if box.numbers[0] == 7:
        raise Declined("seven is left to others")
    return Box("b", list(box.numbers), dtype=dtype)


def _other(box: Box, dtype: str) -> Box:
    return Box("b", [0.0], dtype=dtype)


def _to_b(box: Box) -> Any:
    return NotImplemented if box.traits else Box("b", box.numbers, dtype=box.dtype)


def _registered(instance: Interop) -> Interop:
    """Return an instance with a view from a to b, and two casts of b."""
    cast = partial(interop.Conversion, "b", "b", changes={"dtype"}, effects={"copy"})
    instance.register(
        toy("a", advanced=Advanced(fast_key=_kind)),
        toy("b", advanced=Advanced(fast_key=_kind)),
        view("a", "b", fast_path=_to_b),
        cast(_doubtful, name="doubtful", cost=interop.Cost(1e-6)),
        cast(_other, name="other", cost=interop.Cost(1e-3)),
    )
    return instance


def test_after_a_view_a_step_fails_and_declines_as_in_a_first_call(empty: Interop) -> None:
    """What is left of a plan is called without the plan, which is called if that goes wrong."""
    warm = _registered(empty)
    for _ in range(3):
        result = warm.convert(Box("a", [1.0]), to="b", dtype="float64")
        assert (result.numbers, result.dtype) == ([1.0], "float64")
    (converter,) = warm._converters._by_keywords.values()
    assert converter.learnt[Box].by_key
    errors = []
    for instance in (_registered(Interop(plugins=False)), warm, warm):
        with pytest.raises(interop.errors.ConversionError, match=r"doubtful.*thirteen") as caught:
            instance.convert(Box("a", [13.0]), to="b", dtype="float64")
        errors.append((str(caught.value), repr(caught.value.__cause__)))
        result = instance.convert(Box("a", [7.0]), to="b", dtype="float64")
        assert (result.numbers, result.dtype) == ([0.0], "float64")
    assert len(set(errors)) == 1


def test_under_accepts_a_step_fails_as_in_a_first_call(empty: Interop) -> None:
    """The error names the parameter, also after calls that took fast paths."""
    numbers = _registered(empty).accepts("b", dtype="float64")(lambda box, power: box.numbers)
    for _ in range(3):
        assert numbers(Box("a", [2.0]), 3) == [2.0]
    with pytest.raises(interop.errors.ConversionError, match=r"^box: .*thirteen") as caught:
        numbers(Box("a", [13.0]), 3)
    assert caught.value.where == "box"
    assert numbers(Box("a", [7.0]), 3) == [0.0]


class Shaped(Box):
    """A toy array that tells its shape."""

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.numbers),)


@pytest.mark.parametrize("kind", [Box, Shaped])
def test_out_takes_a_fast_path_on_the_host_where_values_tell_their_shape(
    empty: Interop, kind: type[Box]
) -> None:
    """On a device a view of another library's memory might be read after it has changed."""

    def fill(out: Box, value: Box) -> None:
        out.numbers[:] = value.numbers

    empty.register(
        toy(
            "a",
            types=(f"{__name__}:{kind.__name__}",),
            devices=("cpu", "cuda"),
            fast_path=itself,
            advanced=Advanced(fast_key=_kind),
            fill=fill,
            memory=lambda box: ((id(box.numbers), 1),),
        ),
        copy("a", "a"),
    )
    for _ in range(3):
        out = kind("a", [0.0])
        assert empty.convert(kind("a", [1.0]), out=out) is out
        assert out.numbers == [1.0]
    fast_fill = empty._converters.fills.get((kind, kind))
    assert (fast_fill is not None) is (kind is Shaped)
    if fast_fill is not None:
        assert fast_fill(kind("a", [1.0]), kind("a", [0.0]))
        assert not fast_fill(kind("a", [1.0], device="cuda"), kind("a", [0.0], device="cuda"))


def test_a_fast_path_that_copies_does_not_serve_copy_false(empty: Interop) -> None:
    """With ``copy=False`` a fast path is kept only for a route that writes nothing."""
    empty.register(toy("a"), toy("b"), copy("a", "b", fast_path=_text))
    box = Box("a", [1.0])
    for _ in range(2):
        with pytest.raises(interop.errors.RefusedError):
            empty.convert(box, to="b", copy=False)
        empty.convert(box, to="b", device="cpu")
    assert empty.convert(box, to="b", device="cpu") == "fast"


def test_a_device_that_values_may_leave_takes_no_fast_path(empty: Interop) -> None:
    """Where both formats live on a device, too, ``device="cpu"`` asks for more than a fast path knows."""
    both = ("cpu", "cuda")
    empty.register(toy("a", devices=both), toy("b", devices=both), view("a", "b", fast_path=_text))
    box = Box("a", [1.0])
    for _ in range(2):
        assert isinstance(empty.convert(box, to="b", device="cpu"), Box)


def test_a_format_whose_values_are_all_finished_needs_no_call(empty: Interop) -> None:
    """`itself` is kept as nothing to call, and the value is returned as it is."""
    described = interop.plugin.make_spec("mine", "float32", shape=(2,))
    empty.register(
        Format(
            "mine",
            types=("numpy:ndarray",),
            describe=lambda value: described,
            dtypes=frozenset({"float32"}),
            fast_path=itself,
        )
    )
    array = np.zeros(2, "float32")
    assert empty.convert(array, to="mine") is array
    assert _kept(empty, "mine") == {np.ndarray: None}
    assert empty.convert(array, to="mine") is array
    assert empty.converter("mine")(array) is array


def chained(declining: bool = False) -> Interop:
    """Return an instance with formats a, b and c, and views between them that have fast paths."""

    def to(kind: str) -> Callable[[Box], Any]:
        def fast_path(box: Box) -> Any:
            odd = declining and kind == "c" and len(box.numbers) > 1
            return NotImplemented if odd else Box(kind, [*box.numbers])

        return fast_path

    instance = Interop(plugins=False)
    instance.register(toy("a"), toy("b"), toy("c"))
    instance.register(view("a", "b", fast_path=to("b")), view("b", "c", fast_path=to("c")))
    return instance


def test_fast_paths_follow_each_other_along_a_route() -> None:
    """A route of two hand-offs that have fast paths takes both, one after the other."""
    instance, box = chained(), Box("a", [1.0])
    assert instance.convert(box, to="c").numbers is box.numbers
    assert _kept(instance, "c").keys() == {Box}
    result = instance.convert(box, to="c")
    assert (result.kind, result.numbers) == ("c", [1.0])
    assert result.numbers is not box.numbers


def test_a_fast_path_that_declines_ends_the_row() -> None:
    """If one of them declines the value, it takes the planned route."""
    instance, box = chained(declining=True), Box("a", [1.0, 2.0])
    instance.convert(Box("a", [1.0]), to="c")
    assert instance.convert(box, to="c").numbers is box.numbers


def test_a_rival_along_the_route_rules_the_row_out() -> None:
    """If another distribution declares one of the hand-offs, too, the route has no fast path."""
    instance = chained()
    rival = view("b", "c", requires=frozenset({"readonly"}))
    instance._registry.register([rival], Provenance("other", "other", "1"))
    instance.convert(Box("a", [1.0]), to="c")
    assert _kept(instance, "c") == {}


def test_a_row_that_would_forget_what_both_ends_carry_is_none(empty: Interop) -> None:
    """A value in a graph stays in it, although plain ones go by way of a format without graphs."""
    grad = frozenset({"grad"})

    def keep(box: Box) -> Box:
        return Box("c", list(box.numbers), traits=box.traits)

    empty.register(
        toy("a", carries=grad), toy("b"), toy("c", carries=grad),
        view("a", "b", fast_path=lambda box: Box("b", box.numbers)),
        view("b", "c", fast_path=lambda box: Box("c", box.numbers)),
        Conversion("a", "c", keep, takes=grad, effects={"copy"}),
    )  # fmt: skip
    plain, in_graph = Box("a", [1.0]), Box("a", [1.0], traits=grad)
    for _ in range(3):
        assert empty.convert(plain, to="c").numbers is plain.numbers
        assert empty.convert(in_graph, to="c").traits == grad


# ---------------------------------------------------------------------- when they are in force


@pytest.fixture
def fast(empty: Interop) -> Interop:
    """An instance that has kept a fast path from a to b, which gives a text."""
    empty.register(toy("a"), toy("b"), view("a", "b", fast_path=lambda box: "fast"))
    empty.convert(Box("a", [1.0]), to="b")
    assert empty.convert(Box("a", [1.0]), to="b") == "fast"
    return empty


def test_a_fast_path_is_of_the_very_type(fast: Interop) -> None:
    """A value of a subclass is converted in full, and ``copy=None`` says nothing."""
    for call in (fast.convert, lambda box, to: fast.converter(to)(box)):
        assert isinstance(call(Kin("a", [1.0]), "b"), Box)
        assert call(Box("a", [1.0]), "b") == "fast"
    assert fast.convert(Box("a", [1.0]), "b", copy=None) == "fast"


@pytest.mark.parametrize(
    "arguments",
    [
        *(((), {"x": 1}), ((), {}), ((1, "b", 2), {}), ((1, "b", None), {})),
        *(((1, "b", None, 2, 3, 4, 5), {}), ((1, None, None), {"out": 2})),
    ],
)
def test_convert_is_called_as_it_is_declared(fast: Interop, arguments: Any) -> None:
    """The value is positional only, and nothing but it and the target is positional."""
    args, keywords = arguments
    with pytest.raises(TypeError) as caught:
        fast.convert(*args, **keywords)
    assert type(caught.value) is TypeError


def test_an_error_comes_alone(fast: Interop) -> None:
    """A failed look-up leaves no trace in the traceback of an error."""
    for call in (lambda: fast.convert(object(), "b"), lambda: fast.converter("b")(object())):
        for _ in range(2):
            with pytest.raises(UnknownValueError) as caught:
                call()
            assert caught.value.__context__ is caught.value.__cause__ is None


def test_fast_paths_are_off_inside_policy_and_trace(fast: Interop) -> None:
    """A fast path may do what is permitted by default, and leaves no receipt."""
    box, convert = Box("a", [1.0]), fast.converter("b")
    for opened in (interop.policy(forbid="detach"), interop.trace()):
        with opened:
            for _ in range(3):
                assert isinstance(fast.convert(box, to="b"), Box)
        assert fast.convert(box, to="b") == convert(box) == "fast"
    with interop.trace() as receipts:
        fast.convert(box, to="b")
        convert(box)
    assert len(receipts) == 2


def test_a_block_turns_fast_paths_off_in_its_own_thread_alone(fast: Interop) -> None:
    """While one thread has a block open, another still takes the fast path."""
    box, results = Box("a", [1.0]), []
    with interop.policy(forbid="copy"), interop.trace() as receipts:
        thread = threading.Thread(target=lambda: results.append(fast.convert(box, to="b")))
        thread.start()
        thread.join()
    assert results == ["fast"]
    assert receipts == []


def test_a_block_turns_fast_paths_off_in_its_own_task_alone(fast: Interop) -> None:
    """While one task has a block open, another task of the same thread takes the fast path."""
    box = Box("a", [1.0])

    async def inside(opened: asyncio.Event, converted: asyncio.Event) -> Any:
        with interop.policy(forbid="copy"):
            opened.set()
            await converted.wait()
            return fast.convert(box, to="b")

    async def outside(opened: asyncio.Event, converted: asyncio.Event) -> Any:
        await opened.wait()
        result = fast.convert(box, to="b")
        converted.set()
        return result

    async def both() -> list[Any]:
        events = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(inside(*events), outside(*events))

    slow, quick = asyncio.run(both())
    assert isinstance(slow, Box)
    assert quick == "fast"


def test_what_is_converted_inside_a_block_is_kept_for_later(empty: Interop) -> None:
    """A conversion under the default policy inside a trace opens a fast path for later calls."""
    empty.register(toy("a"), toy("b"), view("a", "b", fast_path=lambda box: "fast"))
    box = Box("a", [1.0])
    with interop.trace():
        for _ in range(3):
            assert isinstance(empty.convert(box, to="b"), Box)
    empty.convert(box, to="b")  # finds out that there is one
    assert empty.convert(box, to="b") == "fast"


def test_a_context_keeps_its_block(fast: Interop) -> None:
    """A context that was copied inside a block has it for good, and no other context has."""
    box = Box("a", [1.0])
    with interop.policy(forbid="copy"):
        context = copy_context()
    assert block.get() is None
    assert fast.convert(box, to="b") == "fast"
    assert isinstance(context.run(fast.convert, box, to="b"), Box)
    assert fast.convert(box, to="b") == "fast"


def test_registering_clears_the_fast_paths(fast: Interop) -> None:
    """After a registration, inside a block or not, no old fast path comes back."""
    box, convert = Box("a", [1.0]), fast.converter("b")
    with interop.policy():
        fast.register(copy("a", "b", name="more"))
        assert _kept(fast, "b") == {}
    assert _kept(fast, "b") == {}
    assert isinstance(convert(box), Box)
    assert convert(box) == "fast"


def test_a_dropped_instance_is_freed() -> None:
    """A private instance is freed with its fast paths, also while a block is open."""
    instance = Interop()
    instance.convert(np.zeros(2), to="numpy")
    freed = weakref.ref(instance._converters)
    with interop.policy():
        del instance
        gc.collect()
        assert freed() is None


# ---------------------------------------------------------------------- large values


class _Large:
    """Formats of large values on one device, which count what is asked about them."""

    def __init__(self, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self.described = self.asked = 0
        self.interop = Interop(plugins=False)
        self._spec = interop.plugin.make_spec("a", "float32", shape=(2**28,), device=device)
        monkeypatch.setattr("interop._execution.engine.available_memory", self._available)
        key = Advanced(fast_key=lambda box: box.kind if box.kind == "a" else None)
        devices = {"devices": (device,)}
        casting = {"devices": None, "changes": {"dtype"}}
        self.interop.register(
            toy("a", advanced=key, **devices)._replace(describe=self._describe),
            toy("b", **devices)._replace(describe=self._describe),
            copy("a", "a", **casting),
            view("a", "b", devices=None),
        )

    def _describe(self, box: Box) -> interop.Spec:
        self.described += 1
        return self._spec._replace(format=box.kind, dtype=box.dtype)

    def _available(self) -> int:
        self.asked += 1
        return 2**60


@pytest.mark.parametrize(
    ("device", "keywords", "is_free"),
    [
        ("cpu", {"to": "b", "dtype": "float32"}, True),
        ("cpu", {"to": "a", "dtype": "float32"}, True),
        ("cuda", {"to": "a", "dtype": "float64"}, True),
        ("cpu", {"to": "a", "dtype": "float64"}, False),
    ],
    ids=["shared", "returned", "cast on a device", "cast on the host"],
)
def test_what_fills_no_memory_of_the_host_costs_the_same_whatever_its_size(
    monkeypatch: pytest.MonkeyPatch, device: str, keywords: Any, is_free: bool
) -> None:
    """A value of 1 GiB is described for the first call alone, unless the host has to have room."""
    large, value = _Large(device, monkeypatch), Box("a", [1.0], device=device)
    large.interop.convert(value, **keywords)
    described, asked = large.described, large.asked
    for _ in range(3):
        assert large.interop.convert(value, **keywords).dtype == keywords["dtype"]
    assert (large.described - described, large.asked - asked) == ((0, 0) if is_free else (3, 3))
    assert bool(asked) is not is_free


def test_values_of_one_plan_with_several_keys_are_all_learnt(empty: Interop) -> None:
    """A second fast key of values that go by the plan of the first one takes the fast path, too."""
    described: list[Box] = []

    def describe(box: Box) -> interop.Spec:
        described.extend([box] if box.kind == "a" else [])
        return interop.plugin.make_spec(box.kind, "float32", shape=(1,))

    key = Advanced(fast_key=lambda box: box.numbers[0] if box.kind == "a" else None)
    empty.register(toy("a", advanced=key)._replace(describe=describe), toy("b"), copy("a", "b"))
    for number in (1.0, 2.0, 3.0):
        described.clear()
        results = [empty.convert(Box("a", [number]), to="b", copy=True) for _ in range(4)]
        assert [box.numbers for box in results] == [[number]] * 4
        assert len(described) == 1
