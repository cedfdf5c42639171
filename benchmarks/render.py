"""Rendering: tables as text for the terminal, and as a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .table import Result, Table

__all__ = ["grid", "page", "terminal"]


def grid(heads: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown that is also easy to read as plain text."""
    cells = [[_escaped(cell) for cell in row] for row in (heads, *rows)]
    widths = [max(3, *(len(row[i]) for row in cells)) for i in range(len(heads))]
    rule = ["-" * width for width in widths]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in (cells[0], rule, *cells[1:])
    )


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


def terminal(table: Result) -> str:
    """Return a table for the terminal."""
    parts = [f"\n{table.title}", table.note, _body(table), _summary(table)]
    return "\n".join(part for part in parts if part)


def page(facts: Mapping[str, Any], tables: Iterable[Result]) -> str:
    """Return all tables as Markdown, with the command and the machine that made them."""
    machine = [[name, text] for name, text in facts["machine"].items()]
    parts = [
        f"Made on {facts['date']} by `{facts['command']}` on this machine:",
        grid(["", ""], machine),
    ]
    for table in tables:
        parts += [
            f"### {_sentence(table.title)}",
            table.note,
            _body(table),
            _summary(table),
        ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _sentence(text: str) -> str:
    return text if "(" in text.partition(" ")[0] else text[0].upper() + text[1:]


def _body(table: Result) -> str:
    heads, rows = table.grid()
    return grid(heads, rows) if rows else ""


def _summary(table: Result) -> str:
    """Return the geometric mean of all ratios."""
    mean = table.mean() if isinstance(table, Table) else None
    if mean is None or not isinstance(table, Table) or not table.pooled:
        return ""
    count = len(table.compared())
    text = f"Geometric mean of {count} ratios: {mean:.2f}"
    if mean < 1:
        text += f" ({1 / mean:.1f} times as fast)"
    return text + "."
