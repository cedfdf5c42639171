"""Values whose own code raises: the error is interop's, with the path and the original as its cause."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import numpy as np
import pytest

import interop
from interop.errors import DoesNotFitError, HandOffError
from tests.cases import together


class GoneError(Exception):
    """What a library raises when its file is closed; no other class of exceptions."""


def _raising(error: BaseException) -> Callable[..., NoReturn]:
    def fail(*args: object, **keywords: object) -> NoReturn:
        raise error

    return fail


def _value(**attributes: Any) -> Any:
    """Return a value of a class with some attributes."""
    return type("Value", (), attributes)()


#: Values that raise, made of a function that does.
_MAKERS: dict[str, Callable[[Any], Any]] = {
    "array": lambda fail: _value(__array__=fail),
    "stated": lambda fail: _value(__array__=fail, dtype=np.dtype("f8"), shape=(2,)),
    "dtype": lambda fail: _value(__array__=fail, dtype=property(fail)),
    "dlpack": lambda fail: _value(__dlpack__=fail, __dlpack_device__=lambda value: (1, 0)),
    "interface": lambda fail: _value(__array_interface__=property(fail)),
    "proxy": lambda fail: _value(__getattr__=fail),
}


def check_errors(make: Callable[[Any], Any], targets: Iterable[str]) -> None:
    """Hold what a value raises to a BufferError that names the leaf, a MemoryError or Ctrl-C."""
    for to in targets:
        for kind in (OSError, ValueError, GoneError, KeyError, ZeroDivisionError):
            with pytest.raises(HandOffError) as caught:
                interop.convert(make(_raising(kind("closed"))), to=to)
            assert isinstance(caught.value.__cause__, kind)
            with pytest.raises(HandOffError) as caught:
                interop.convert_tree({"a": [make(_raising(kind("closed")))]}, to=to)
            assert (caught.value.where, type(caught.value.__cause__)) == ("a/0", kind)
        with pytest.raises(MemoryError) as full:
            interop.convert_tree({"a": [make(_raising(MemoryError("full")))]}, to=to)
        notes = " ".join(getattr(full.value, "__notes__", []))
        assert isinstance(full.value, DoesNotFitError) or "raised at a/0 in the tree" in notes
        with pytest.raises(KeyboardInterrupt):
            interop.convert_tree([make(_raising(KeyboardInterrupt()))], to=to)


@together("name", _MAKERS)
def test_errors_of_values_become_errors_that_name_the_leaf(name: str) -> None:
    """Any error is interop's and has the path, one of memory is a MemoryError, and Ctrl-C passes."""
    check_errors(_MAKERS[name], ("numpy", "python"))


def test_an_argument_that_raises_is_named() -> None:
    """Under accepts the error begins with the parameter, and the function is not called."""

    @interop.accepts("numpy")
    def added(x: Any, y: Any) -> Any:
        raise AssertionError("it is called")

    for name in ("array", "dtype", "dlpack", "interface"):
        with pytest.raises(HandOffError, match=r"^y/a: .*closed"):
            added(np.ones(2), {"a": _MAKERS[name](_raising(OSError("closed")))})
