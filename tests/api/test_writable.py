"""``copy="writable"``: a result that is the caller's to write, copied only if it must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.cases import together
from tests.kit.library import Array
from tests.kit.library_plugin import with_library

MINE = with_library()


def readonly() -> np.ndarray[Any, Any]:
    array = np.arange(3.0)
    array.flags.writeable = False
    return array


@together("target", ["numpy", "library"])
@together("value", [readonly, lambda: np.broadcast_to(np.ones(1), (3,)), lambda: b"abc"])
def test_locked_memory_is_copied_once(value: Callable[[], Any], target: str) -> None:
    """Of memory that is not the caller's to write, the result is a copy that may be written."""
    source = value()
    before = MINE.convert(source, to="numpy", copy=True)
    dtype = None if target == "numpy" else "float64"
    plan = MINE.plan(source, to=target, dtype=dtype, copy="writable")
    assert sum("copy" in step.effects for step in plan.steps) == 1
    for result in (plan(source), MINE.convert(source, to=target, dtype=dtype, copy="writable")):
        assert MINE.spec(result).traits == frozenset()
        written = result if target == "numpy" else result.data
        written[:] = 7
        assert not np.shares_memory(written, before)
    assert np.array_equal(MINE.convert(source, to="numpy"), before)


@together("target", ["numpy", "library"])
def test_memory_that_may_be_written_is_shared(target: str) -> None:
    """Writable memory is shared, and a value that is what was asked for is returned as it is."""
    for source in (np.arange(3.0), Array(np.arange(3.0)), np.arange(6.0)[::2]):
        result = MINE.convert(source, to=target, copy="writable")
        assert MINE.plan(source, to=target, copy="writable").aliases
        (result if target == "numpy" else result.data)[:] = 7
        assert MINE.convert(source, to="numpy").tolist() == [7] * 3
    assert MINE.convert(result, to=target, copy="writable") is result


def test_every_entrance_knows_the_word() -> None:
    """A converter, a tree and an accepting function make writable results of the same values."""
    source = readonly()
    assert MINE.converter("numpy", copy="writable")(source).flags.writeable
    tree = MINE.convert_tree({"a": source}, to="numpy", copy="writable")
    assert tree["a"].flags.writeable

    @MINE.accepts("numpy", copy="writable")
    def writeable(x: Any) -> bool:
        return bool(x.flags.writeable)

    assert writeable(source)
    assert writeable(Array(np.broadcast_to(np.ones(1), (3,))))
