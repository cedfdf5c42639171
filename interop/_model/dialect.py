"""Dialects: how advice writes a keyword, for a program or for the command line."""

from __future__ import annotations

import re
from contextvars import ContextVar

#: Whether the caller has typed a command.
on_command_line: ContextVar[bool] = ContextVar("interop_on_command_line", default=False)

#: A keyword in a text, with the name or the truth that may follow it.
_KEYWORD = re.compile(r"\b(allow|copy|device|dtype|forbid)=(?:'([^']*)'|(True|False))?")


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
    if name == "to":  # which is an argument there
        return str(value)
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
    """Return a plugin's text with the keywords in it as the caller writes them.

    Examples
    --------
    >>> token = on_command_line.set(True)
    >>> reworded("with allow='gather', or a narrower dtype=")
    'with --allow gather, or a narrower --dtype'
    >>> on_command_line.reset(token)
    """
    if not on_command_line.get():
        return text
    truths = {"True": True, "False": False}
    return _KEYWORD.sub(
        lambda match: keyword(match[1], truths[match[3]] if match[3] else match[2]), text
    )
