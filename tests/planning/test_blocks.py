"""Blocks: they end with their ``with`` statements, interrupted, crossed or suspended."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, nullcontext
from types import FrameType
from typing import Any

import numpy as np
import pytest

import interop
from interop._planning import policy
from interop._planning.policy import Policy, block, current_policy
from interop.errors import RefusedError


class Interrupt(BaseException):
    """What a signal handler raises."""


def interrupting(nth: int) -> Callable[..., Any]:
    """Return a trace function that raises before the nth bytecode by which blocks are changed."""
    bytecodes = iter(range(nth))

    def tracer(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename != policy.__file__:
            return None
        frame.f_trace_opcodes = True
        if event in {"call", "opcode"} and next(bytecodes, None) is None:
            raise Interrupt
        return tracer

    return tracer


def interrupted(work: Callable[[], object], nth: int) -> bool:
    """Tell whether work was interrupted before its nth bytecode, and did not end sooner."""
    before = sys.gettrace()
    sys.settrace(interrupting(nth))
    try:
        work()
    except Interrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def nested() -> None:
    """Go in and out of blocks of each kind."""
    with interop.policy(allow="drop_mask"), interop.trace(), interop.policy(forbid="copy"):
        assert "drop_mask" in current_policy().permitted


def crossed() -> None:
    """Leave two blocks in the order in which they were entered."""
    first, second = interop.policy(allow="drop_mask"), interop.trace()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)


@pytest.mark.parametrize("work", [nested, crossed])
def test_an_interruption_before_any_bytecode_leaves_no_block_behind(
    work: Callable[[], None],
) -> None:
    """Whichever bytecode of entering or leaving Ctrl-C comes before, the blocks around are in force."""
    for around, stride in ((nullcontext(), 1), (interop.policy(forbid="detach"), 7)):
        with around:
            before, nth = block.get(), 0
            while interrupted(work, nth):
                assert block.get() is before, nth
                nth += stride
            assert nth > 200


def test_after_an_interruption_nothing_is_permitted_that_was_not() -> None:
    """A mask is refused after Ctrl-C while the block that had permitted its loss was being left."""
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    nth = 0
    while interrupted(nested, nth):
        with pytest.raises(RefusedError, match="drop_mask"):
            interop.convert(masked, to="torch")
        nth += 11
    assert nth > 200


def test_crossed_blocks_end_each_with_its_own_statement() -> None:
    """Of two blocks, the one that is closed first takes its own change away, whichever that is."""
    for order in ((0, 1), (1, 0)):
        opened = [interop.policy(allow="narrow"), interop.policy(forbid="copy")]
        for opening in opened:
            opening.__enter__()
        opened[order[0]].__exit__(None, None, None)
        remaining = current_policy().permitted
        assert ("narrow" in remaining, "copy" in remaining) == ((False, False), (True, True))[
            order[0]
        ]
        opened[order[1]].__exit__(None, None, None)
        assert block.get() is None


def test_crossed_traces_take_the_receipts_of_their_own_time() -> None:
    """A trace that is closed before one inside it gets no more receipts, the other one does."""
    outer, inner = interop.trace(), interop.trace()
    first, second = outer.__enter__(), inner.__enter__()
    interop.convert([1.0], to="numpy")
    outer.__exit__(None, None, None)
    interop.convert([1.0], to="numpy")
    inner.__exit__(None, None, None)
    assert (len(first), len(second)) == (1, 2)
    assert block.get() is None


def under_a_policy() -> Generator[int]:
    """Yield inside a block."""
    with interop.policy(forbid="copy"):
        yield 1


def test_the_policy_of_a_suspended_generator_holds_in_its_caller() -> None:
    """A block inside a generator stays open while that waits, and ends when it goes on or is closed."""
    for end in (lambda generator: next(generator, None), lambda generator: generator.close()):
        generator = under_a_policy()
        next(generator)
        assert "copy" not in current_policy().permitted
        with interop.policy(forbid="detach") as inner:
            assert "copy" not in inner.permitted
            end(generator)
            assert current_policy().permitted == Policy().permitted - {"detach"}
        assert block.get() is None
    next(under_a_policy())  # nobody keeps the generator
    assert block.get() is None


def test_an_opening_serves_again_in_stacks_and_as_a_decorator() -> None:
    """One object may be entered twice, also within itself, and decorate a recursive function."""
    strict = interop.policy(forbid="copy")

    @strict
    def depth(n: int) -> int:
        assert "copy" not in current_policy().permitted
        return depth(n - 1) + 1 if n else 0

    for _ in range(2):
        with strict, ExitStack() as stack:
            assert "copy" not in stack.enter_context(strict).permitted
        assert block.get() is None
        assert depth(3) == 3
        assert block.get() is None


@pytest.mark.parametrize("words", [{"allow": iter(["narrow"])}, {"forbid": iter(["copy"])}])
def test_names_from_an_iterator_serve_whenever_a_block_is_opened(
    words: dict[str, Iterator[str]],
) -> None:
    """An iterator of effects is gone through once, however often the block is entered."""
    opening = interop.policy(**words)  # type: ignore[arg-type]
    policies = []
    for _ in range(2):
        with opening as inside:
            policies.append(inside)
    assert policies[0] == policies[1] != Policy()
