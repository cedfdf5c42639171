"""Dialects: how advice writes a keyword, for a program or for the command line."""

from __future__ import annotations

import re
from contextvars import ContextVar

#: Whether the caller has typed a command.
on_command_line: ContextVar[bool] = ContextVar("interop_on_command_line", default=False)

#: A keyword in a text: in braces, perhaps with its value behind a colon.
_PLACEHOLDER = re.compile(r"\{(to|dtype|device|copy|allow|forbid)(?::([^{}]+))?\}")
_TRUTHS = {"True": True, "False": False}


def keyword(name: str, value: object = None) -> str:
    """Return a keyword, perhaps with its value, as the caller writes it.

    Examples
    --------
    >>> keyword("allow", {"narrow"})
    "allow={'narrow'}"
    >>> token = on_command_line.set(True)
    >>> keyword("allow", {"detach", "narrow"}), keyword("copy", False)
    ('--allow detach --allow narrow', '--no-copy')
    >>> on_command_line.reset(token)
    """
    if name == "like" and on_command_line.get():  # no option takes an array
        return "like= in a program"
    if value is None:
        return f"--{name}" if on_command_line.get() else f"{name}="
    values = sorted(value) if isinstance(value, (set, frozenset)) else [value]
    if not on_command_line.get():
        text = ", ".join(map(repr, values))
        return f"{name}={{{text}}}" if isinstance(value, (set, frozenset)) else f"{name}={text}"
    if name == "to":  # a command has an argument for it
        return str(value) or repr("")
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no-{name}"
    return " ".join(f"--{name} {item}" for item in values)


def keywords(**values: object) -> str:
    """Return several keywords as the caller writes them.

    Examples
    --------
    >>> keywords(dtype="int8", copy=True)
    "dtype='int8', copy=True"
    """
    separator = " " if on_command_line.get() else ", "
    return separator.join(keyword(name, value) for name, value in values.items())


def reworded(text: str) -> str:
    """Return a plugin's text with each placeholder written as the caller writes that keyword.

    Examples
    --------
    >>> reworded("with {allow:gather}, {copy:True} or a narrower {dtype}")
    "with allow='gather', copy=True or a narrower dtype="
    >>> token = on_command_line.set(True)
    >>> reworded("with {allow:gather}, {copy:True} or a narrower {dtype}")
    'with --allow gather, --copy or a narrower --dtype'
    >>> on_command_line.reset(token)
    """
    return _PLACEHOLDER.sub(lambda m: keyword(m[1], _TRUTHS.get(m[2], m[2])), text)
