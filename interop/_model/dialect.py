"""Dialects: how advice writes a keyword, for a program or for the command line."""

from __future__ import annotations

from contextvars import ContextVar

__all__ = ["keyword", "on_command_line"]

#: Whether the caller has typed a command.
on_command_line: ContextVar[bool] = ContextVar("interop_on_command_line", default=False)


def keyword(name: str, value: object) -> str:
    """Return a keyword and its value as the caller writes them.

    Examples
    --------
    >>> keyword("allow", {"narrow"})
    "allow={'narrow'}"
    >>> token = on_command_line.set(True)
    >>> keyword("allow", {"detach", "narrow"}), keyword("copy", False)
    ('--allow detach --allow narrow', '--no-copy')
    >>> on_command_line.reset(token)
    """
    values = sorted(value) if isinstance(value, (set, frozenset)) else [value]
    if not on_command_line.get():
        text = ", ".join(map(repr, values))
        return f"{name}={{{text}}}" if isinstance(value, (set, frozenset)) else f"{name}={text}"
    if name == "to":  # which is an argument there
        return str(value)
    if isinstance(value, bool):
        return f"--{name}" if value else f"--no-{name}"
    return " ".join(f"--{name} {item}" for item in values)
