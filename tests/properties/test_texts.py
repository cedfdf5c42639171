"""Texts of others: names, keys, messages and metadata, which may hold anything.

Whatever leaves the package is printable, in lines of its own making, and short.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import interop
from interop import Interop
from interop._cli import cli, listings
from interop._cli.drawing import dot
from interop._cli.network import Arrow, Group, Network, Node
from interop._model.text import Listing
from interop._registry.plugins import Plugin
from interop._text import json_text
from interop.errors import InteropError
from interop.plugin import Conversion, Cost
from tests.cases import together
from tests.toys import Box, toy, view

#: How a forged line would begin.
FORGED = "FORGED"
#: What commands a terminal, forges a line, turns the rest around, or hides it.
HOSTILE = {
    "escape": f"\x1b[2J\x1b]0;{FORGED}\x07",
    "c1": f"\x9b31m{FORGED}",
    "newline": f"a\n{FORGED}",
    "return": f"a\r{FORGED}",
    "separator": f"a\u2028{FORGED}\u2029{FORGED}\x85{FORGED}",
    "bidi": f"\u202e{FORGED}\u2066\u200f",
    "surrogate": f"\ud800{FORGED}",
    "long": "long" * 100_000,
    "ten megabytes": "long" * 2_500_000,
    "long escapes": "\x1b" * 100_000,
    "many lines": f"\n{FORGED}" * 10_000,
}
KINDS = [
    pytest.param(kind, marks=[pytest.mark.slow] if kind == "ten megabytes" else [])
    for kind in HOSTILE
]
#: No text needs more characters, or lines.
MOST_CHARACTERS, MOST_LINES = 10_000, 40


def _class(name: str, **members: Any) -> type:
    return type(name, (), members)


def _raising(text: str, error: type[Exception] = ValueError) -> Callable[..., Any]:
    def method(*_: object, **__: object) -> None:
        raise error(text)

    return method


class _Hinting(dict[str, Any]):
    """A mapping that lists its names, and raises a text when it is asked for one."""

    def __init__(self, text: str) -> None:
        super().__init__(a=1)
        self._text = text

    def __getitem__(self, key: str) -> Any:
        raise ValueError(self._text)


def _with_format(text: str, **fields: Any) -> Interop:
    hostile = Interop(plugins=False)
    hostile.register(toy("a"), toy("b", **fields), view("a", "b"))
    return hostile


def _failing(text: str) -> Interop:
    failing = Interop(plugins=False)
    failing.register(toy("a"), toy("b", types=("builtins:frozenset",)))
    failing.register(Conversion("a", "b", _raising(text), cost=Cost(1e-6)))
    return failing


ARRAY = np.arange(3.0)

#: Calls that quote a text of others, by what it is.
CALLS: dict[str, Callable[[str], object]] = {
    "to=": lambda text: interop.convert(ARRAY, to=text),
    "dtype=": lambda text: interop.convert(ARRAY, to="numpy", dtype=text),
    "device=": lambda text: interop.convert(ARRAY, to="numpy", device=text),
    "allow=": lambda text: interop.convert(ARRAY, to="numpy", allow={text}),
    "order=": lambda text: interop.convert(ARRAY, to="numpy", order=text),  # type: ignore[call-overload]
    "like=, a class": lambda text: interop.convert(ARRAY, like=_class(text)()),
    "to=, a class": lambda text: interop.convert(ARRAY, to=_class(text)),
    "to=, a partial": lambda text: interop.convert(
        ARRAY, to=_class("A", __repr__=lambda _: text)()
    ),
    "the value's class": lambda text: interop.convert(_class(text)(), to="numpy"),
    "the class's module": lambda text: interop.convert(_class("A", __module__=text)(), to="numpy"),
    "others='refuse'": lambda text: interop.convert_tree(
        {"a": _class(text)()}, to="numpy", others="refuse"
    ),
    "a key of a tree": lambda text: interop.convert_tree(
        {text: object()}, to="numpy", others="refuse"
    ),
    "a key above": lambda text: interop.convert_tree(
        {text: [{"a": object()}]}, to="numpy", others="refuse"
    ),
    "a key whose leaf raises": lambda text: interop.convert_tree(
        {text: _class("A", __array__=_raising("no"))()}, to="numpy"
    ),
    "a mapping": lambda text: interop.convert_tree({"a": _Hinting(text)}, to="numpy"),
    "__array__": lambda text: interop.convert(_class("A", __array__=_raising(text))(), to="numpy"),
    "__array_interface__": lambda text: interop.convert(
        _class("A", __array_interface__=property(_raising(text)))(), to="numpy"
    ),
    "typestr": lambda text: interop.convert(
        _class(
            "A",
            __array_interface__={"version": 3, "typestr": text, "shape": (1,), "data": (8, False)},
        )(),
        to="numpy",
    ),
    "__dlpack__": lambda text: interop.convert(
        _class("A", __dlpack__=_raising(text), __dlpack_device__=lambda _: (1, 0))(), to="numpy"
    ),
    "__dlpack_device__": lambda text: interop.convert(
        _class("A", __dlpack__=_raising(""), __dlpack_device__=_raising(text, BufferError))(),
        to="numpy",
    ),
    "a field of a record": lambda text: interop.convert(
        np.zeros(2, [(text[:5_000_000], "f4"), ("b", "f4")]), to="torch"
    ),
    "many fields": lambda text: interop.convert(
        np.zeros(1, [(f"{n}{text[:1000]}", "f4") for n in range(3000)]), to="torch"
    ),
    "a field's spec": lambda text: interop.spec(np.zeros(2, [(text[:5_000_000], "f4")])),
    "an object": lambda text: interop.convert(np.array([text, None], object), to="torch"),
    "a list": lambda text: interop.convert([text, 1], to="numpy"),
    "install=": lambda text: _with_format(text, requires="no_such_module", install=text).plan(
        interop.make_spec("a", "float32", shape=(2,)), to="b"
    ),
    "a name": lambda text: _with_format(text, types=(text,)),
    "a step's error": lambda text: _failing(text).convert(Box("a", [1.0]), to="b"),
    "a plugin": lambda text: Listing([Plugin(text, text, text, "failed", text, 1, 1, (text,))]),
    "a name at run time": lambda text: Interop(plugins=False).register(toy(text)),
    "a spec": lambda text: interop.make_spec(text, "float32"),
    "a policy": lambda text: interop.policy(allow={text}).__enter__(),
    "cost": lambda text: interop.default.set_costs({text: 1}),  # type: ignore[dict-item]
}


def _said(call: Callable[[str], object], text: str) -> Iterator[str]:
    """Yield what a call gives that people read: its result, or its error with all that it says."""
    try:
        result = call(text)
    except InteropError as error:
        yield str(error)
        yield error.where
        yield from map(str, error.args)
        yield from getattr(error, "__notes__", ())
    except Exception as error:  # noqa: BLE001 - an error of the value's own may pass
        yield from getattr(error, "__notes__", ())
    else:
        yield str(result)
        yield repr(result)
        for name in ("explain", "_repr_html_"):
            if hasattr(result, name):
                yield getattr(result, name)()


def _faults(text: str, *, is_data: bool = False) -> Iterator[str]:
    """Yield what is wrong with a text that has left the package; data may be long."""
    lines = text.split("\n")
    if not is_data and (len(text) > MOST_CHARACTERS or len(lines) > MOST_LINES):
        yield f"{len(text)} characters in {len(lines)} lines"
    for line in lines:
        if not line.isprintable():
            yield f"not printable: {line!r:.300}"
        if line.startswith(FORGED):
            yield f"forged: {line:.100}"


@pytest.mark.parametrize("kind", KINDS)
@together("name", CALLS)
def test_what_is_said_of_a_text_of_others_is_legible(
    name: str, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Errors, notes, plans, listings and records of the log quote no text of others as it is."""
    caplog.set_level(logging.DEBUG, "interop")
    caplog.clear()
    said = [*_said(CALLS[name], HOSTILE[kind]), *caplog.messages]
    assert [fault for text in said for fault in _faults(text)] == []


#: Command lines with a text of others in them.
COMMANDS: dict[str, Callable[[str], tuple[str, ...]]] = {
    "a source": lambda text: ("plan", text, "numpy"),
    "a target": lambda text: ("plan", "numpy", text),
    "a dtype": lambda text: ("plan", f"numpy:{text}", "numpy"),
    "--dtype": lambda text: ("plan", "numpy", "numpy", "--dtype", text),
    "--allow": lambda text: ("plan", "numpy", "numpy", "--allow", text),
    "--density": lambda text: ("plan", "numpy", "numpy", "--density", text),
    "a format": lambda text: ("formats", text),
    "--from": lambda text: ("conversions", "--from", text),
    "a command": lambda text: (text,),
    "an option": lambda text: (f"--{text}",),
    "a file": lambda text: ("graph", "--file", f"{text}.dot"),
    "a folder": lambda text: ("graph", "--file", f"{text}/graph.dot"),
    "--as": lambda text: ("graph", "--as", text),
    "a plugin": lambda text: ("check", text),
    "metadata": lambda text: ("plugins",),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [(), ("--json",)], ids=["for people", "as JSON"])
@together("name", COMMANDS)
def test_what_the_command_prints_is_legible(
    name: str,
    options: tuple[str, ...],
    kind: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Whatever is typed, is in metadata or is a file's name, both streams can be read."""
    from typer.testing import CliRunner

    text = HOSTILE[kind]
    plugin = Plugin(text, text, text, "failed", text, 1, 1, (text,))
    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        if name == "metadata":
            patch.setattr(type(listings.default), "plugins", lambda _: Listing([plugin]))
        words = [*COMMANDS[name](text), *options]
        result = CliRunner().invoke(cli._app(), words, prog_name="interop")
    assert result.exception is None or isinstance(result.exception, SystemExit)
    for said in (result.stdout, result.stderr):
        assert list(_faults(said, is_data=bool(options) and name == "metadata")) == []


def test_drawings_hold_no_commands_of_others() -> None:
    """In the language of each, a name is a text, in one line."""
    for text in HOSTILE.values():
        nodes = (
            Node(text, text, "ready", text, (text,), 1, text),
            Node("b", "b", "", "", (), 1, ""),
        )
        links = (Arrow(text, "b", "shares", (text,)),)
        shown = Network((Group(text, nodes[:1]), Group("b", nodes[1:])), links)
        for part in (shown, shown.by_frameworks()):
            assert list(_faults(dot(part))) == []
        assert json.loads(json_text(shown.as_dict()))["links"][0]["source"] == text
