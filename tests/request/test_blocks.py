"""Blocks: they end with their ``with`` statements, and with those around them."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier

import numpy as np
import pytest

import interop
from interop._request.policy import Policy, block, current_policy
from interop.errors import RefusedError
from tests.kit.library_plugin import with_library


def test_a_block_closes_those_that_were_opened_inside() -> None:
    """If the outer of two blocks is closed first, both end there, and closing the inner one is nothing."""
    outer, inner = interop.policy(allow="narrow"), interop.policy(forbid="copy")
    with interop.policy(forbid="detach"):
        around = block.get()
        outer.__enter__()
        inner.__enter__()
        outer.__exit__(None, None, None)
        assert block.get() is around
        inner.__exit__(None, None, None)
        assert block.get() is around
    assert block.get() is None


def test_a_block_that_an_interruption_leaves_open_ends_with_the_one_around_it() -> None:
    """Nothing that an interrupted block permits outlives the block around it."""
    masked = np.ma.masked_array([1.0, 2.0], [False, True])
    with interop.policy(forbid="detach"):
        interop.policy(allow="drop_mask").__enter__()
        assert "drop_mask" in current_policy().permitted
    with pytest.raises(RefusedError):
        with_library().convert(masked, to="library")


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
        end(generator)
        assert block.get() is None
    next(under_a_policy())  # nobody keeps the generator
    assert block.get() is None


def test_a_generator_closes_the_blocks_that_its_caller_opened_while_it_waited() -> None:
    """No block stays open for ever, but the caller's ends too early."""
    generator = under_a_policy()
    next(generator)
    with interop.policy(forbid="detach"):
        generator.close()
        assert current_policy() == Policy()
    assert block.get() is None


def test_several_threads_may_enter_one_opening() -> None:
    """Each thread has a block of its own, and leaves it whatever the others do."""
    strict, barrier = interop.policy(forbid="copy"), Barrier(4, timeout=30)

    def work(_: int) -> bool:
        with strict:
            barrier.wait()
            inside = "copy" in current_policy().permitted
            barrier.wait()
        return inside or block.get() is not None

    with ThreadPoolExecutor(4) as pool:
        assert not any(pool.map(work, range(4)))


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
