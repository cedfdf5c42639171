"""Text: how specs, bytes, times, tables, keywords and names are shown, and which name was meant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol, TypeVar

from interop._text import PART, legible, quoted


class Row(Protocol):
    """An item of a listing, which has a row in its table."""

    def row(self) -> dict[str, str]:
        """Return the cells, by the heads of their columns."""


_Row_co = TypeVar("_Row_co", bound=Row, covariant=True)

#: How many rows of a listing are shown, and how many characters of a cell.
_SHOWN_ROWS, _SHOWN_CHARACTERS = 80, 32


class Listing(tuple[_Row_co, ...]):
    """A tuple that is shown as a table."""

    __slots__ = ()

    def _columns(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        rows = [item.row() for item in self[:_SHOWN_ROWS]]
        cells = [tuple(map(_shortened, row.values())) for row in rows]
        return tuple(rows[0] if rows else ()), cells

    def _more(self) -> str:
        more = len(self) - _SHOWN_ROWS
        return f"… and {more} more" if more > 0 else ""

    def __repr__(self) -> str:
        lines = text_table(*self._columns()) if self else ["nothing"]
        return "\n".join(filter(None, [*lines, self._more()]))

    def _repr_html_(self) -> str:
        return html_table(self._more(), *self._columns())


def _shortened(cell: str) -> str:
    return cell if len(cell) <= _SHOWN_CHARACTERS else f"{cell[: _SHOWN_CHARACTERS - 1]}…"


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


def text_table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Return a table as lines of text, its columns aligned."""
    cells = [tuple(legible(cell, PART) for cell in row) for row in (heads, *rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in cells]
    return [line.rstrip() for line in lines]


def html_table(caption: str, heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table as HTML, with everything in it escaped."""
    from html import escape  # it costs more to import than the rest of this module

    def row(cells: Iterable[str], tag: str) -> str:
        start = f'<{tag} style="text-align: left">'  # notebooks align to the right
        texts = (f"{start}{escape(legible(cell, PART))}</{tag}>" for cell in cells)
        return f"<tr>{''.join(texts)}</tr>"

    names = tuple(heads)
    head = f"<thead>{row(names, 'th')}</thead>" if names else ""
    body = "".join(row(cells, "td") for cells in rows)
    return (
        f"<table><caption>{escape(legible(caption))}</caption>{head}<tbody>{body}</tbody></table>"
    )


def duration(seconds: float) -> str:
    """Return a time as people write it.

    Examples
    --------
    >>> duration(0.0123), duration(50_000), duration(0.0009999)
    ('12.3 ms', '13.9 h', '1 ms')
    """
    seconds = float(f"{seconds:.3g}")
    for limit, factor, unit in ((1e-3, 1e-6, "µs"), (1.0, 1e-3, "ms"), (1e3, 1.0, "s")):
        if seconds < limit:
            return f"{seconds / factor:.3g} {unit}"
    hours = seconds / 3600
    return f"{hours:.3g} h" if hours < 100 else f"{hours / 24:,.0f} days"


def counted_axes(count: int) -> str:
    """Return a number of axes as people write it."""
    return {0: "no axes", 1: "1 axis"}.get(count, f"{count} axes")


def keyword(name: str, value: object) -> str:
    """Return a keyword with its value as a call writes it; a set's items in order.

    Examples
    --------
    >>> keyword("allow", {"narrow", "detach"})
    "allow={'detach', 'narrow'}"
    """
    if isinstance(value, (set, frozenset)):
        return f"{name}={{{', '.join(map(quoted, sorted(value)))}}}"
    return f"{name}={quoted(value)}"


def keywords(**values: object) -> str:
    """Return several keywords as a call writes them.

    Examples
    --------
    >>> keywords(dtype="int8", copy=True)
    "dtype='int8', copy=True"
    """
    return ", ".join(keyword(name, value) for name, value in values.items())


#: How many names a message lists, and how many it suggests.
_LISTED, _SUGGESTED = 12, 3
#: Shorter words are alike by accident.
_SHORTEST = 3
#: The similarity, as difflib counts it, of a misspelt word and the right one.
_ALIKE = 0.75


def listed(names: Iterable[str], most: int = _LISTED) -> str:
    """Return names as a message lists them, a dozen at most.

    Examples
    --------
    >>> listed("abcdefghijklmn")
    'a, b, c, d, e, f, g, h, i, j, k, l and 2 more'
    """
    names = list(names)
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest


def resembling(word: str, words: Iterable[str]) -> list[str]:
    """Return the word that another is in other case, those that it begins, or the one most like it.

    Examples
    --------
    >>> resembling("NumPy", ["numpy", "cupy"]), resembling("float", ["float32", "float64"])
    (['numpy'], ['float32', 'float64'])
    """
    from difflib import get_close_matches

    originals = {original.casefold(): original for original in words}
    word = word.casefold()
    if word in originals:
        return [originals[word]]
    if len(word) > _SHORTEST and (begun := [o for w, o in originals.items() if w.startswith(word)]):
        # Words that another of them begins, such as formats of one framework, add nothing.
        return [w for w in begun if not any(w.startswith(f"{other}.") for other in begun)]
    long = [spelling for spelling in originals if len(spelling) >= _SHORTEST]
    return [originals[spelling] for spelling in get_close_matches(word, long, 1, _ALIKE)]


def suggestion(word: object, names: Mapping[str, str] | Iterable[str], otherwise: str) -> str:
    """Return the advice about a word that is not among some names.

    Parameters
    ----------
    word : object
    names : iterable of str, or mapping of str to str
        The names, or the name for each of its spellings.
    otherwise : str
        The advice if the word resembles none of them.
    """
    names = names if isinstance(names, Mapping) else {name: name for name in names}
    meant = dict.fromkeys(names[spelling] for spelling in resembling(quoted(word, str), names))
    if len(meant) > _SUGGESTED:
        return f"name one of {listed(meant)}."
    return f"did you mean {' or '.join(map(repr, meant))}?" if meant else otherwise
