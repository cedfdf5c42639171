"""The public surface: every name that users and authors of plugins can write, as text.

``python -m tests.surface`` prints it, ``--store`` writes ``tests/surface.txt``. A test compares the
two, so that no name, keyword, default, field, effect or class of error changes unnoticed.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

FILE = Path(__file__).with_suffix(".txt")

#: The modules, and what is promised of each: see docs/reference/stability.md.
MODULES = {
    "interop": "stable",
    "interop.errors": "stable",
    "interop.typing": "stable",
    "interop.plugin": "provisional",
    "interop.plugin.advanced": "provisional",
    "interop.kit": "provisional",
    "interop.testing": "provisional",
}


def surface() -> str:
    """Return the public surface."""
    return "\n".join(line.rstrip() for line in _lines()) + "\n"


def _lines() -> Iterator[str]:
    for name, promise in MODULES.items():
        module = import_module(name)
        yield f"# {name} ({promise})"
        for public in sorted(module.__all__):
            yield from _described(public, getattr(module, public), module)
        yield ""
    yield "# the command (provisional)"
    yield from _commands()


def _described(name: str, value: Any, module: ModuleType) -> Iterator[str]:
    if module.__name__ == "interop.typing":
        yield name
    elif isinstance(value, type):
        yield from _class(name, value)
    elif callable(value):
        yield f"{name}{_signature(value)}"
    elif name == "EFFECTS":
        for effect in value.values():
            permitted = "permitted" if effect.allowed else "refused"
            yield f"EFFECTS[{effect.name!r}]: {permitted} by default"
    elif name in ("TRAITS", "DTYPES"):
        yield from (f"{name}[{key!r}]" for key in sorted(value))
    elif isinstance(value, (int, str, frozenset)) and name != "__version__":
        yield f"{name} = {sorted(value) if isinstance(value, frozenset) else value!r}"
    else:
        yield name


def _class(name: str, kind: type) -> Iterator[str]:
    """Yield a class with its bases, what makes one, and its attributes."""
    bases = ", ".join(base.__name__ for base in kind.__bases__ if base is not object)
    fields: Any = getattr(kind, "_fields", None) or getattr(kind, "__dataclass_fields__", ())
    yield f"class {name}({bases})"
    with_signature = not issubclass(kind, BaseException) or "__init__" in vars(kind)
    if with_signature:
        yield f"    {name}{_signature(kind)}"
    for attribute in sorted({a for base in kind.__mro__ for a in _own(base)} - {*fields}):
        value = inspect.getattr_static(kind, attribute)
        if isinstance(value, (FunctionType, classmethod, staticmethod)):
            yield f"    .{attribute}{_signature(getattr(kind, attribute))}"
        else:
            yield f"    .{attribute}"


def _own(kind: type) -> list[str]:
    """Return the public attributes that a class of this distribution defines or annotates."""
    if not kind.__module__.startswith(("interop", "_pytest", "interop_plugins")):
        return []
    names = {*vars(kind), *inspect.get_annotations(kind), *vars(kind).get("__slots__", ())}
    return [name for name in names if not name.startswith("_") or name == "__call__"]


def _signature(function: Any) -> str:
    """Return a signature without annotations; a default that is an object is named by its class."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty, default=_default(parameter.default))
        for parameter in signature.parameters.values()
    ]
    return str(inspect.Signature(parameters))


class _Text:
    """A default that is written as it is here."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _default(value: Any) -> Any:
    if value is inspect.Parameter.empty:
        return value
    if isinstance(value, frozenset):
        return _Text(f"{{{', '.join(map(repr, sorted(value)))}}}" if value else "frozenset()")
    return _Text(re.sub(r" at 0x\w+", "", repr(value)))


def _commands() -> Iterator[str]:
    """Yield the commands with their arguments and options."""
    from typer.main import get_command

    from interop._cli.cli import _app

    commands: dict[str, Any] = get_command(_app()).commands  # type: ignore[attr-defined]
    for name, command in sorted(commands.items()):
        options = [option for parameter in command.params for option in parameter.opts]
        extra = [option for parameter in command.params for option in parameter.secondary_opts]
        yield f"interop {name} {' '.join(sorted({*options, *extra}))}"


if __name__ == "__main__":
    if "--store" in sys.argv:
        FILE.write_text(surface(), "utf-8")
    else:
        print(surface(), end="")
