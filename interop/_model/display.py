"""How specs, bytes, times and tables are shown, to people and to JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .spec import Spec

__all__ = ["counted_axes", "duration", "html_table", "readable", "spec_as_dict", "table"]


def readable(nbytes: float) -> str:
    """Return a number of bytes as people write it.

    Examples
    --------
    >>> readable(64 * 2**20)
    '64.0 MiB'
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(nbytes) < 1024:
            return f"{nbytes:.0f} B" if unit == "B" else f"{nbytes:.1f} {unit}"
        nbytes /= 1024
    return f"{nbytes:.1f} TiB"


def table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Return a table as lines of text, its columns aligned."""
    cells = [heads, *rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in cells]
    return [line.rstrip() for line in lines]


def html_table(caption: str, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table as HTML, whatever stands in it taken for text."""
    from html import escape  # it costs more to import than the rest of this module

    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )


def spec_as_dict(spec: Spec) -> dict[str, Any]:
    """Return a spec as what JSON can hold, without the fields that say nothing."""
    fields = {**spec._asdict(), "shape": list(spec.shape), "traits": sorted(spec.traits)}
    return {name: field for name, field in fields.items() if field is not None}


def duration(seconds: float) -> str:
    """Return a time as people write it."""
    for scale, unit in ((1e-3, "µs"), (1.0, "ms")):
        if seconds < scale:
            return f"{seconds / scale * 1e3:.3g} {unit}"
    return f"{seconds:.3g} s"


def counted_axes(count: int) -> str:
    """Return a number of axes as people write it."""
    return {0: "no axes", 1: "1 axis"}.get(count, f"{count} axes")
