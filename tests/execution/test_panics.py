"""Exceptions that are no `Exception`: signals to the program pass, panics of compiled code do not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import interop
from interop import Interop
from interop.errors import ConversionError, HandOffError, PluginError
from interop.plugin import Wrapper
from interop.plugin.advanced import Advanced
from tests.cases import together
from tests.strange import install_plugin
from tests.toys import Box, copy, toy

#: As Rust's panics arrive in Python: a BaseException of a module that there is not.
Panic = type("PanicException", (BaseException,), {"__module__": "compiled_runtime"})

SIGNALS = [
    *(KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError, pytest.fail.Exception),
    type("Timeout", (BaseException,), {}),
]


class Fault:
    """A function that raises once it is told to."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.raised: type[BaseException] | None = None

    def __call__(self, *values: Any, **keywords: Any) -> Any:
        if self.raised is not None:
            raise self.raised("index out of bounds")
        return self.function(*values, **keywords)


def faults() -> Iterator[tuple[str, type[Exception], Callable[[Interop], Fault], dict[str, Any]]]:
    """Yield where foreign code runs, which error its failure is, what makes it, and a request."""
    formats = toy("b"), toy("a", advanced=Advanced(hub=True, fast_key=lambda box: box.device))

    def step(mine: Interop) -> Fault:
        fault = Fault(copy("a", "b").function)
        mine.register(*formats, copy("a", "b")._replace(function=fault))
        return fault

    def describe(mine: Interop) -> Fault:
        fault = Fault(toy("a").describe)  # type: ignore[arg-type]
        mine.register(toy("a")._replace(describe=fault), toy("b"), copy("a", "b"))
        return fault

    def unwrap(mine: Interop) -> Fault:
        fault = Fault(lambda box: Box("a", box.numbers))
        types = (f"{__name__}:Wrapping",)
        wrapper = toy("w", types=types, wrapper=Wrapper(fault, 1e-6, once=True))
        mine.register(*formats, wrapper._replace(describe=None), copy("a", "b"))
        return fault

    yield "step", ConversionError, step, {}
    yield "step by key", ConversionError, step, {"copy": True}
    yield "describe", PluginError, describe, {"copy": True}  # the path by type does not ask it
    yield "unwrap", HandOffError, unwrap, {}


class Wrapping(Box):
    """A box that wraps another."""


@together("where, error, install, request_", faults())
def test_panics_of_compiled_code_are_errors_and_signals_pass(
    where: str,
    error: type[Exception],
    install: Callable[[Interop], Fault],
    request_: dict[str, Any],
) -> None:
    """Whoever catches `Exception` catches a panic, cold and warm; Ctrl-C and its like arrive as they are."""
    mine = Interop(plugins=False)
    fault = install(mine)
    value = (Wrapping if where == "unwrap" else Box)("a", [1.0])
    for warm in (False, True):
        if warm:
            fault.raised = None
            for _ in range(3):
                mine.convert(value, to="b", **request_)
        fault.raised = Panic
        with pytest.raises(error, match="PanicException: index out of bounds"):
            mine.convert(value, to="b", **request_)
        for signal in SIGNALS:
            fault.raised = signal
            with pytest.raises(signal):
                mine.convert(value, to="b", **request_)


class Panicking:
    """A value whose attributes panic, and so does what it is opened by."""

    @property
    def __array_interface__(self) -> Any:
        raise Panic("index out of bounds")

    def keys(self) -> Any:
        raise Panic("index out of bounds")

    __getitem__ = __len__ = __iter__ = keys


def test_values_and_plugins_that_panic_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A value that panics when it is asked or opened is refused, and a plugin disables itself alone."""
    with pytest.raises(HandOffError, match="PanicException"):
        interop.convert(Panicking(), to="numpy")
    with pytest.raises(interop.InteropError, match="PanicException"):
        interop.convert_tree(Panicking(), to="numpy")
    text = """
    raise type("PanicException", (BaseException,), {"__module__": "compiled_runtime"})("no")
    """
    install_plugin(tmp_path, "panicking", text.strip())
    monkeypatch.syspath_prepend(tmp_path)
    (plugin,) = (p for p in Interop().plugins() if p.name == "panicking")
    assert (plugin.state, plugin.reason) == ("failed", "PanicException: no")
