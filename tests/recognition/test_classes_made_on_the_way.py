"""Classes that are made while a program runs: they are recognised, and freed with their last value."""

from __future__ import annotations

import gc
import weakref
from collections import namedtuple
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

import interop
from tests.cases import together


def answering() -> object:
    """Return a value of a new class that shows its array by ``__array__``."""

    class Answering:
        def __array__(self, dtype: object = None, copy: object = None) -> Any:
            return np.ones(3)

    return Answering()


def lending() -> object:
    """Return a value of a new class that speaks DLPack."""

    class Lending:
        def __dlpack__(self, **keywords: Any) -> Any:
            return np.ones(3).__dlpack__(**keywords)

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

    return Lending()


def own() -> object:
    """Return an array of a new subclass of NumPy's."""

    class Own(np.ndarray):
        pass

    return np.ones(3).view(Own)


def unknown() -> object:
    """Return a value of a new class that is no array."""

    class Unknown:
        pass

    return Unknown()


def record() -> object:
    """Return a value of a new dataclass."""

    @dataclass
    class Record:
        array: np.ndarray[Any, Any]

    return Record(np.ones(3))


def pair() -> object:
    """Return a tuple of a new class of named tuples."""
    return namedtuple("Pair", "a b")(np.ones(3), 1)


MAKERS: dict[str, Callable[[], tuple[object, object]]] = {
    **{
        f.__name__: lambda f=f: 2 * (f(),) for f in (answering, lending, own, unknown, record, pair)
    },  # type: ignore[misc]
    "list": lambda: (x := lending(), [x, x]),
    "dict": lambda: (x := answering(), {"a": x}),
}

CALLS: dict[str, Callable[[Any], object]] = {
    "convert": lambda x: interop.convert(x, to="numpy"),
    "copy": lambda x: interop.convert(x, to="numpy", copy=True),
    "like": lambda x: interop.convert(np.ones(3), like=x),
    "out": lambda x: interop.convert(x, out=np.ones(3)),
    "to": lambda x: interop.convert(np.ones(3), to=type(x)),
    "tree": lambda x: interop.convert_tree(x, to="numpy"),
    "plan": lambda x: interop.plan(x, to="python"),
    "accepts": interop.accepts("numpy")(lambda x: None),
}


@together("made", MAKERS)
@together("call", CALLS)
def test_classes_that_nobody_can_find_again_are_freed(made: str, call: str) -> None:
    """No table by type keeps a class that a function has made, with all that its methods hold."""
    classes = []
    for _ in range(20):
        inner, value = MAKERS[made]()
        for _ in range(3):
            with suppress(interop.InteropError):
                CALLS[call](value)
        classes.append(weakref.ref(type(inner)))
        del inner, value
    gc.collect()
    assert sum(reference() is not None for reference in classes) <= 1  # one may be in use yet
