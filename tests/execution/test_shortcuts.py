"""Shortcuts: which are in force when."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

import interop
from interop import Format, Interop
from interop._execution.fast_path import Shortcuts
from interop._planning.policy import watch
from interop._registry.declared import Provenance
from interop.plugin import itself
from tests.toys import Box, toy, view


def test_the_first_shortcut_for_a_type_stays() -> None:
    """Of formats that share a type, the first that has a shortcut keeps it."""
    known = Shortcuts()
    known.learn("there", int, abs)
    known.learn("there", int, None)
    assert known.table("there") == {int: abs}


def test_a_type_whose_first_value_was_odd_gets_its_shortcut_later() -> None:
    """A route without a shortcut does not keep a type from getting one by the next route."""
    mine = Interop(plugins=False)
    mine.register(toy("here"), toy("there", types=()))
    odd = frozenset({"odd"})
    mine.register(view("here", "there", requires=odd, drops=odd, name="from_odd"))
    mine.register(view("here", "there", fast_path=lambda box: box))
    strange, plain = Box("here", [1.0], traits=odd), Box("here", [1.0])
    for box in (strange, strange):
        assert mine.convert(box, to="there").numbers is box.numbers
    assert mine._shortcuts.tables == {}
    mine.convert(plain, to="there")
    assert list(mine._shortcuts.table("there")) == [Box]


def test_a_shortcut_may_be_built_in_or_partial() -> None:
    """What has no code to be shielded, and what hides it, serve as shortcuts like any other."""
    for shortcut in (partial(_same, Box), memoryview.tobytes, itemgetter(0)):
        mine = Interop()
        seen: list[Any] = []
        mine._loaded().shields.append(seen.append)
        mine.register(toy("here"), toy("there", types=()))
        mine.register(view("here", "there", fast_path=shortcut))
        mine.convert(Box("here", [1.0]), to="there")
        assert mine._shortcuts.table("there") == {Box: shortcut}
        assert (_same in seen) == isinstance(shortcut, partial)


def _same(kind: type, value: Any) -> Any:
    return value if isinstance(value, kind) else NotImplemented


def test_tables_are_empty_while_a_block_is_open() -> None:
    """What is learned inside a block is in force after it, and what was known is so again."""
    known = Shortcuts()
    table = known.table("there")
    known.learn("there", int, abs)
    with interop.policy(), interop.trace():
        assert table == {}
        known.learn("there", float, abs)
        assert table == {}
    assert table == {int: abs, float: abs}
    assert known.tables["there"] is table


def test_what_was_cleared_does_not_come_back() -> None:
    """After something was registered, no block brings an old shortcut back."""
    known = Shortcuts()
    known.learn("there", int, abs)
    known.clear()
    assert known.table("there") == {}
    with interop.policy():
        pass
    assert known.table("there") == {}


def test_clearing_inside_a_block_leaves_the_tables_usable() -> None:
    """What is learned after clearing is in force once the block is closed."""
    known = Shortcuts()
    with interop.policy():
        known.clear()
        known.learn("there", int, abs)
        assert known.table("there") == {}
    assert known.table("there") == {int: abs}


def test_the_watch_keeps_no_instance_alive() -> None:
    """A private instance that is dropped is freed, with its shortcuts."""
    mine = Interop()
    gone = weakref.ref(mine._shortcuts)
    del mine
    gc.collect()
    assert gone() is None
    with interop.policy():
        assert watch.blocks == 1


def test_a_format_whose_values_are_all_finished_needs_no_call() -> None:
    """`itself` stands in the table as nothing to call, and the value is returned as it is."""
    mine = Interop(plugins=False)
    described = interop.make_spec("mine", "float32", shape=(2,))
    mine.register(
        Format(
            "mine",
            types=("numpy:ndarray",),
            describe=lambda value: described,
            dtypes=frozenset({"float32"}),
            fast_path=itself,
        )
    )
    array = np.zeros(2, "float32")
    assert mine.convert(array, to="mine") is array
    assert mine._shortcuts.tables == {"mine": {np.ndarray: None}}
    assert mine.convert(array, to="mine") is array
    assert mine.converter("mine")(array) is array


def test_a_trace_sees_what_a_shortcut_would_serve() -> None:
    """Inside a trace the same conversion leaves a receipt, by convert and by a converter."""
    array = np.zeros(3)
    converter = interop.converter("numpy")
    assert interop.convert(array, "numpy") is converter(array) is array
    with interop.trace() as receipts:
        interop.convert(array, "numpy")
        converter(array)
    assert len(receipts) == 2


def chained(declining: bool = False) -> Interop:
    """Return an instance with formats a, b and c, and views between them that have shortcuts."""

    def to(kind: str) -> Callable[[Box], Any]:
        def shortcut(box: Box) -> Any:
            odd = declining and kind == "c" and len(box.numbers) > 1
            return NotImplemented if odd else Box(kind, [*box.numbers])

        return shortcut

    mine = Interop(plugins=False)
    mine.register(toy("a"), toy("b"), toy("c"))
    mine.register(view("a", "b", fast_path=to("b")), view("b", "c", fast_path=to("c")))
    return mine


def test_shortcuts_follow_each_other_along_a_route() -> None:
    """A route of two hand-offs that have shortcuts is served by both, one after the other."""
    mine, box = chained(), Box("a", [1.0])
    assert mine.convert(box, to="c").numbers is box.numbers
    assert mine._shortcuts.tables["c"].keys() == {Box}
    served = mine.convert(box, to="c")
    assert (served.kind, served.numbers) == ("c", [1.0])
    assert served.numbers is not box.numbers


def test_a_shortcut_that_declines_ends_the_row() -> None:
    """If one of them does not serve the value, the planned route does."""
    mine, box = chained(declining=True), Box("a", [1.0, 2.0])
    mine.convert(Box("a", [1.0]), to="c")
    assert mine.convert(box, to="c").numbers is box.numbers


def test_a_rival_along_the_route_rules_the_row_out() -> None:
    """If another distribution has a say on one of the hand-offs, no shortcut stands for the route."""
    mine = chained()
    other = Provenance("other", "other", "1")
    mine._registry.add([], [view("b", "c", requires=frozenset({"readonly"}))], [], other)
    mine.convert(Box("a", [1.0]), to="c")
    assert mine._shortcuts.table("c") == {}
