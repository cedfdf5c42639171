"""Dialects: how advice writes a keyword, for a program or for the command line."""

from __future__ import annotations

from contextvars import ContextVar

#: Whether the caller has typed a command.
on_command_line: ContextVar[bool] = ContextVar("interop_on_command_line", default=False)


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
