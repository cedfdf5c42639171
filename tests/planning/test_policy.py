"""Effects and the policy around a call."""

from __future__ import annotations

import asyncio
import threading

import pytest

import interop
from interop._model.effect import EFFECTS
from interop._planning.policy import Policy, adjust, current_policy, watch

#: Section 4 of the contract: what is allowed unless the caller says otherwise.
DEFAULTS = {
    "detach": True,
    "copy": True,
    "transfer": True,
    "densify": True,
    "dequantize": True,
    "materialize": True,
    "alias_immutable": True,
    "narrow": False,
    "drop_mask": False,
    "share_readonly": False,
    "host_round_trip": False,
}


def test_the_defaults_are_those_of_the_contract() -> None:
    """Every effect exists, with the documented default."""
    assert {e.name: e.allowed for e in EFFECTS.values()} == DEFAULTS
    assert Policy().permitted == {name for name, allowed in DEFAULTS.items() if allowed}


def test_blocks_nest_and_the_innermost_word_counts() -> None:
    """An inner block overrules an outer one and ends with it."""
    with interop.policy(forbid={"copy"}):
        with interop.policy(allow="copy", forbid="detach"):
            assert "copy" in current_policy().permitted
            assert "detach" not in current_policy().permitted
        assert "copy" not in current_policy().permitted
        assert "detach" in current_policy().permitted
    assert current_policy() == Policy()


def test_a_block_belongs_to_its_thread() -> None:
    """Another thread does not see the policy of this one."""
    seen: list[Policy] = []
    with interop.policy(forbid="copy"):
        thread = threading.Thread(target=lambda: seen.append(current_policy()))
        thread.start()
        thread.join()
    assert seen == [Policy()]


def test_a_block_belongs_to_its_task() -> None:
    """Two tasks of one thread have policies of their own."""

    async def inside() -> bool:
        with interop.policy(forbid="copy"):
            await asyncio.sleep(0.01)
            return "copy" in current_policy().permitted

    async def outside() -> bool:
        await asyncio.sleep(0.005)
        return "copy" in current_policy().permitted

    async def both() -> list[bool]:
        return await asyncio.gather(inside(), outside())

    assert asyncio.run(both()) == [False, True]


def test_a_block_ends_when_it_is_left_by_an_exception() -> None:
    """Policy and watch are as before after an error inside the block."""
    with pytest.raises(ZeroDivisionError), interop.policy(forbid="copy"):
        raise ZeroDivisionError
    assert current_policy() == Policy()
    assert watch.blocks == 0


@pytest.mark.parametrize("keyword", ["allow", "forbid"])
def test_a_word_that_is_no_effect_is_refused_with_the_list(keyword: str) -> None:
    """A misspelt effect is an error that lists the effects."""
    with pytest.raises(interop.errors.BadRequestError, match=f"{keyword}='copies'.*copy, transfer"):
        adjust(Policy(), **{"allow": (), "forbid": (), keyword: "copies"})


def test_an_effect_cannot_be_both() -> None:
    """Allowing and forbidding one effect in one call is an error."""
    with pytest.raises(interop.errors.BadRequestError, match="both allowed and forbidden"):
        adjust(Policy(), allow={"copy"}, forbid={"copy"})
