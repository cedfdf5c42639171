"""Policy: effects, blocks, and to whom a block belongs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import numpy as np
import pytest

import interop
from interop._request.policy import Opening, Policy, block, current_policy
from interop.errors import BadRequestError, RefusedError
from interop.plugin import make_spec
from tests.kit.library import Array
from tests.kit.library_plugin import with_library
from tests.toys import Box, copy, toy, view


def test_few_effects_need_consent() -> None:
    """All effects are permitted by default, but those that nobody expects of a conversion."""
    need_consent = {"pad", "gather", "narrow", "drop_mask", "share_readonly", "host_round_trip"}
    assert interop.EFFECTS.keys() - Policy().permitted == need_consent


def test_blocks_nest_and_the_innermost_word_counts() -> None:
    """An inner block overrules an outer one and ends with it."""
    with interop.policy(forbid={"copy"}):
        with interop.policy(allow="copy", forbid="detach"):
            assert "copy" in current_policy().permitted
            assert "detach" not in current_policy().permitted
        assert "copy" not in current_policy().permitted
        assert "detach" in current_policy().permitted
    assert current_policy() == Policy()


def test_policy_and_trace_are_one_block() -> None:
    """A trace keeps the policy around it, and a policy the trace around it."""
    with interop.policy(forbid="copy") as outer, interop.trace() as receipts:
        assert current_policy() == outer
        with interop.policy(forbid="detach"):
            interop.convert(np.zeros(2), to="numpy")
            assert current_policy().permitted == outer.permitted - {"detach"}
        assert current_policy() == outer
    assert len(receipts) == 1
    assert block.get() is None


@pytest.fixture
def default_of() -> Iterator[Callable[..., None]]:
    """Let a test set the default policy, and set it back."""
    yield interop.set_default_policy
    interop.set_default_policy()


@pytest.fixture
def narrowing() -> interop.Interop:
    """An instance in which a step from a to b narrows float64, and a fast path would do it, too."""
    instance = interop.Interop(plugins=False)
    instance.register(toy("a"), toy("b", dtypes={"float32"}))
    instance.register(copy("a", "a", name="cast", changes={"dtype"}))
    instance.register(
        view("b", "a"), view("a", "b", fast_path=lambda box: Box("b", box.numbers, dtype="float32"))
    )
    return instance


#: What is narrowed on the way to b.
WIDE = Box("a", [0.5, 0.1], dtype="float64")


def test_a_default_policy_holds_for_every_later_call(
    narrowing: interop.Interop, default_of: Callable[..., None]
) -> None:
    """Calls, plans, trees, functions and threads ask for it each time, those made before included."""

    @narrowing.accepts("b")
    def dtype_inside(x: Any) -> str:
        return x.dtype

    calls: list[Callable[[], Any]] = [
        lambda: narrowing.convert(WIDE, to="b").dtype,
        lambda: narrowing.plan(WIDE, to="b").result.dtype,
        lambda: narrowing.convert_tree([WIDE], to="b")[0].dtype,
        lambda: narrowing.converter("b")(WIDE).dtype,
        lambda: dtype_inside(WIDE),
    ]
    for _ in range(2):
        default_of(allow="narrow")
        for call in calls:
            assert [str(call()), str(call())] == ["float32"] * 2
        with ThreadPoolExecutor(1) as other:
            assert list(other.map(lambda call: str(call()), calls)) == ["float32"] * len(calls)
        default_of()
        for call in calls:
            for _ in range(2):
                with pytest.raises(RefusedError):
                    call()


def test_blocks_and_keywords_overrule_the_default_policy(
    narrowing: interop.Interop, default_of: Callable[..., None]
) -> None:
    """A block adds to the default, and what it or a call forbids is refused all the same."""
    default_of(allow="narrow", forbid="densify")
    with interop.policy(forbid="copy") as inside:
        assert inside.permitted == (Policy().permitted | {"narrow"}) - {"densify", "copy"}
    with interop.trace() as receipts:
        narrowing.convert(WIDE, to="b")
    assert receipts[0].effects == {"copy", "narrow"}
    with pytest.raises(RefusedError):
        narrowing.convert(WIDE, to="b", forbid="narrow")
    with interop.policy(forbid="narrow"):
        assert narrowing.convert(WIDE, to="b", allow="narrow").dtype == "float32"
        with pytest.raises(RefusedError):
            narrowing.convert(WIDE, to="b")
    assert current_policy().permitted == (Policy().permitted | {"narrow"}) - {"densify"}
    default_of(allow="drop_mask")  # which says nothing of the others
    assert current_policy().permitted == Policy().permitted | {"drop_mask"}


def test_a_converter_keeps_the_default_of_when_it_was_made(
    narrowing: interop.Interop, default_of: Callable[..., None]
) -> None:
    """A converter has the policy that was in force then, also where another was set afterwards."""
    strict = narrowing.converter("b")
    default_of(allow="narrow")
    lenient = narrowing.converter("b")
    default_of()
    assert lenient(WIDE).dtype == "float32"
    with pytest.raises(RefusedError):
        strict(WIDE)


def test_a_default_policy_of_unknown_words_changes_nothing(default_of: Callable[..., None]) -> None:
    """A misspelt effect is refused, and the default stays as it was."""
    default_of(allow="narrow")
    with pytest.raises(BadRequestError):
        default_of(allow="dropmask")
    assert current_policy().permitted == Policy().permitted | {"narrow"}


def test_allow_of_a_block_reaches_its_tasks_and_no_later_call(narrowing: interop.Interop) -> None:
    """A task that inherits allow= converts by it, and a later call outside is refused."""

    async def job() -> Any:
        await asyncio.sleep(0)
        return narrowing.convert(WIDE, to="b")

    async def main() -> Any:
        with interop.policy(allow="narrow"):
            return await asyncio.create_task(job())

    assert asyncio.run(main()).dtype == "float32"
    for _ in range(2):
        with pytest.raises(RefusedError):
            narrowing.convert(WIDE, to="b")
    with pytest.raises(RefusedError):
        narrowing.converter("b")(WIDE)


def test_forbid_of_a_block_reaches_its_tasks_and_no_later_call() -> None:
    """A task that inherits forbid= is refused, and a later call outside is converted."""
    mine, weight = with_library(), Array(np.ones(2), requires_grad=True)

    async def job() -> Any:
        await asyncio.sleep(0)
        return mine.convert(weight, to="numpy")

    async def main() -> None:
        with interop.policy(forbid="detach"):
            task = asyncio.create_task(job())
            with pytest.raises(RefusedError):
                await task

    asyncio.run(main())
    for _ in range(3):
        assert mine.convert(weight, to="numpy").tolist() == [1, 1]
    asyncio.run(main())


def test_a_task_that_outlives_its_blocks_converts_by_them(narrowing: interop.Interop) -> None:
    """It narrows where its block allowed that, its receipts are the block's, and no one else's are."""

    async def job(blocks_left: asyncio.Event) -> str:
        await blocks_left.wait()
        return str(narrowing.convert(WIDE, to="b").dtype)

    async def main() -> tuple[str, int]:
        blocks_left = asyncio.Event()
        with interop.policy(allow="narrow"), interop.trace() as receipts:
            task = asyncio.create_task(job(blocks_left))
            await asyncio.sleep(0)
        blocks_left.set()
        with pytest.raises(RefusedError):
            narrowing.convert(WIDE, to="b")
        interop.convert([1.0], to="numpy")
        return await task, len(receipts)

    assert asyncio.run(main()) == ("float32", 1)


def test_conversions_inside_a_block_open_no_fast_path_outside(narrowing: interop.Interop) -> None:
    """A conversion inside a block, in this context or another, opens no fast path outside."""
    box = Box("a", [1.0], dtype="float64")

    def inside() -> None:
        with interop.policy(allow="narrow"):
            for _ in range(3):
                assert narrowing.convert(box, to="b").dtype == "float32"

    inside()
    copy_context().run(inside)
    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    for _ in range(2):
        with pytest.raises(RefusedError):
            narrowing.convert(box, to="b")


def test_a_block_ends_when_it_is_left_by_an_exception() -> None:
    """After an error inside it, no block is open."""
    for opened in (interop.policy(forbid="copy"), interop.trace()):
        with pytest.raises(ZeroDivisionError), opened:
            raise ZeroDivisionError
        assert current_policy() == Policy()
        assert block.get() is None


def test_none_names_no_effect() -> None:
    """allow=None and forbid=None are what their absence is, in a call and around it."""
    with interop.policy(allow=None, forbid=None) as inside:
        assert inside == Policy()
        for call in (interop.convert, interop.plan, interop.convert_tree):
            call(1.5, to="numpy", allow=None, forbid=None)
    assert interop.converter("numpy", allow=None, forbid=None)(1.5) == 1.5
    assert interop.convert(1.5, out=np.zeros(()), allow=None, forbid=None) == 1.5
    assert interop.accepts("numpy", allow=None, forbid=None)(sum)([1, 2]) == 3


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ({"forbid": "detach"}, "leave out forbid='detach'."),
        ({"forbid": ["detach", "copy"]}, "leave out forbid='detach'."),
        ({"forbid": "detach", "copy": False}, "leave out forbid='detach'."),
        ({"forbid": "narrow", "dtype": "bfloat16"}, "leave out forbid='narrow'."),
        (
            {"forbid": ("copy", "detach"), "dtype": "float64"},
            "leave out forbid={'copy', 'detach'}.",
        ),
        (
            {"forbid": "narrow", "to": "ring"},
            "and pass allow={'narrow'} or dtype='bfloat16'.",
        ),
        (
            {"copy": False, "forbid": "copy", "dtype": "float64"},
            "copy=False and leave out forbid='copy'.",
        ),
        ({"block": "detach"}, "pass allow={'detach'}."),
        ({"block": "narrow", "dtype": "bfloat16"}, "pass allow={'narrow'}."),
    ],
    ids=str,
)
def test_advice_never_contradicts_the_call(empty: interop.Interop, words: Any, advice: str) -> None:
    """What the call forbids is to be left out; following the advice, the call succeeds."""
    empty.register(toy("a"), toy("grad", carries={"grad"}), toy("ring", dtypes={"bfloat16"}))
    plain = {"takes": {"grad"}, "name": "detach", "requires": {"grad"}, "drops": {"grad"}}
    empty.register(view("a", "a", effects={"detach"}, **plain), copy("a", "a", changes={"dtype"}))
    empty.register(view("a", "ring"))
    traits = {"grad"} if "detach" in str(words) else set()
    words = {"to": "a", **words}
    block = words.pop("block", ())
    value = make_spec("a", "float32", shape=(2,), traits=traits)
    with interop.policy(forbid=block):
        with pytest.raises(RefusedError) as caught:
            empty.plan(value, **words)
        assert str(caught.value).endswith(advice)
        for effect in caught.value.effects:
            if effect in words.get("forbid", ()):
                words["forbid"] = set(_names(words["forbid"])) - {effect}
            if f"allow={{'{effect}'}}" in advice:
                words["allow"] = effect
        if "copy=False" in advice:
            del words["copy"]
        assert empty.plan(value, **words).result.format == words["to"]


def _names(words: Any) -> tuple[str, ...]:
    return (words,) if isinstance(words, str) else tuple(words)


def test_an_explicit_prohibition_wins_over_dtype() -> None:
    """With forbid="narrow", in the call or a block, dtype= casts only where no value can be lost."""
    wide, narrow = np.array([1 + 2j]), np.arange(3, dtype="int8")
    calls: list[Any] = [
        lambda x, **words: interop.convert(x, "numpy", forbid="narrow", **words),
        lambda x, **words: interop.converter("numpy", forbid=["narrow"], **words)(x),
        lambda x, **words: interop.convert_tree([x], "numpy", forbid="narrow", **words)[0],
    ]
    for _ in range(2):  # cold and warm
        for call in calls:
            assert "int16" in str(call(narrow, dtype="int16").dtype)
            with pytest.raises(RefusedError):
                call(wide, dtype="complex64")
        with interop.policy(forbid="narrow"):
            with pytest.raises(RefusedError):
                interop.convert(wide, "numpy", dtype="complex64")
            allowed = interop.convert(wide, "numpy", dtype="complex64", allow="narrow")
        assert allowed.dtype == "complex64"
        assert interop.convert(wide, "numpy", dtype="complex64").dtype == "complex64"


@pytest.mark.parametrize("source", [np.array([300.0]), np.float32([1.5]), [1.5], [1.5 + 2j]])
def test_an_explicit_prohibition_wins_over_out(source: Any) -> None:
    """``forbid="narrow"`` is heard where ``out=`` would narrow, in a call and in a block."""
    out = np.zeros(1, "i1")
    with pytest.raises(RefusedError):
        interop.convert(source, out=out, forbid="narrow")
    with (
        interop.policy(forbid="narrow"),
        pytest.raises(RefusedError),
    ):
        interop.convert(source, out=out)
    assert out.tolist() == [0]
    wide = np.zeros(1)
    interop.convert(out, out=wide, forbid="narrow")


def test_to_write_into_out_is_no_copy_and_a_copy_on_the_way_there_is() -> None:
    """Under ``forbid="copy"`` a value is written into ``out=``, unless it must be copied before."""
    mine, strided = with_library(), np.arange(4.0)[::-1]
    for source, out in ((strided, np.zeros(4)), (np.arange(4), np.zeros(4, "float32"))):
        mine.convert(source, out=out, forbid="copy")
        assert out.tolist() == source.tolist()
    locked, overlapping, other = np.arange(4.0), np.arange(5.0), Array(np.zeros(4))
    locked.flags.writeable = False  # the library would have to copy it
    for source, out in ((locked, other), (overlapping[1:], overlapping[:-1])):
        with interop.policy(forbid="copy"), pytest.raises(RefusedError):
            mine.convert(source, out=out)
    assert other.data.tolist() == [0] * 4
    assert overlapping.tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(BadRequestError):
        mine.convert(strided, out=other, copy=False)


def test_what_a_block_yields_is_worked_out_before_it_opens() -> None:
    """An interrupt while the answer of a block is made leaves no block open."""

    def interrupted(inner: object) -> object:
        raise KeyboardInterrupt

    outer = current_policy()
    with pytest.raises(KeyboardInterrupt), Opening(lambda outer: outer, interrupted):
        raise AssertionError
    assert current_policy() is outer
    assert block.get() is None
