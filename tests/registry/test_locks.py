"""Locks: what threads share changes under a lock or as a whole, and not by the grace of a global lock."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import interop
from interop._api.inspection import Inspection
from interop._execution.converter import Converter, Converters
from interop._execution.fast import Fast
from tests.toys import describe

#: What writes to a dict.
WRITES = ("__setitem__", "__delitem__", "clear", "pop", "popitem", "setdefault", "update")


class Watched(dict[Any, Any]):
    """A dict that notes each write of a thread that does not hold a lock."""

    def __init__(self, name: str, lock: Any, noted: list[str], counted: list[str]) -> None:
        super().__init__()
        self.name, self.lock, self.noted, self.counted = name, lock, noted, counted


def _watching(write: str) -> Callable[..., Any]:
    def method(self: Watched, *args: Any, **keywords: Any) -> Any:
        self.counted.append(self.name)
        if not self.lock._is_owned():
            self.noted.append(f"{self.name}.{write}")
        return getattr(dict, write)(self, *args, **keywords)

    return method


for _write in WRITES:
    setattr(Watched, _write, _watching(_write))


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """The names of the dicts of converters that were written to, without their lock and at all."""
    noted: list[str] = []
    counted: list[str] = []
    locks: list[Any] = []

    def watch(owner: type) -> None:
        make: Callable[..., None] = owner.__init__  # type: ignore[misc]

        def made(self: Any, *args: Any, **keywords: Any) -> None:
            make(self, *args, **keywords)
            if owner is Converters:
                locks.append(self.lock)
            for name in getattr(owner, "__slots__", None) or vars(self):
                value = getattr(self, name, None)
                if type(value) is dict and not value:
                    watched = Watched(f"{owner.__name__}.{name}", locks[-1], noted, counted)
                    setattr(self, name, watched)

        monkeypatch.setattr(owner, "__init__", made)

    for owner in (Converters, Converter, Fast):
        watch(owner)
    return noted, counted


def _use(mine: interop.Interop) -> None:
    """Make calls of every kind that leave something in the cache, twice."""
    array = np.arange(3.0)
    to_list = mine.converter("python")
    doubled = mine.accepts("numpy")(lambda x: x * 2)
    for _ in range(2):
        mine.convert(array, to="python")
        mine.convert([1.0, 2.0], to="numpy", dtype="float32")
        mine.convert(array, to="numpy", dtype={"real floating": "float32"}, copy=True)
        mine.convert(array, like=np.ones(2, "float32"))
        mine.convert([1.0, 2.0, 3.0], out=np.empty(3))
        mine.convert_tree({"a": array, "b": [array, 1]}, to="python")
        mine.convert_tree([array, np.arange(3)], to="numpy", dtype="float32")
        mine.plan(array, to="python")
        to_list(array)
        doubled([1.0, 2.0])
        doubled(array)
        with pytest.raises(interop.errors.RefusedError):
            mine.convert(array, to="numpy", dtype="float32", copy=False)


def test_the_caches_are_written_to_under_their_lock_alone(
    watched: tuple[list[str], list[str]],
) -> None:
    """Calls of every kind, a registration and what follows it write nothing without the lock."""
    noted, counted = watched
    mine = interop.Interop()
    _use(mine)
    mine.register(
        interop.Format("box", types=("tests.toys:Box",), describe=describe, dtypes={"float64"})
    )
    _use(mine)
    kept = {"calls", "_by_keywords", "_by_request", "fills", "likes"}
    learnt = {"fast", "learnt", "leaves", "plans", "asked"}
    assert set(counted) == {
        *(f"Converters.{name}" for name in kept),
        *(f"Converter.{name}" for name in learnt),
        "Fast.by_key",
    }
    assert noted == []


def test_a_registration_replaces_what_threads_read_without_a_lock() -> None:
    """Whoever reads a container of the registry meanwhile reads the old one to its end."""
    mine = interop.Interop()
    mine.formats()
    registry = Inspection(mine).registry
    read = ("formats", "conversions", "provenance", "attainable", "_containers", "no_trace")
    before = {name: getattr(registry, name) for name in read}
    contents = {name: type(value)(value) for name, value in before.items()}
    registering = threading.Thread(
        target=mine.register,
        args=(
            interop.Format("box", types=("tests.toys:Box",), describe=describe, dtypes={"float64"}),
        ),
    )
    registering.start()
    registering.join()
    assert "box" in registry.formats
    assert "box" not in before["formats"]
    assert before == contents
