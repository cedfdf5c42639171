"""Texts that leave this package: errors, tables, plans, logs and what the command prints.

They quote names and texts of others. These must neither forge lines of a log, nor command a
terminal, nor be so long that nobody reads the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

#: How many characters a line may have, and how many a part of it that comes from others.
_LONGEST, PART = 2000, 500


class _Lines(str):
    """A text with breaks of lines that are meant, because all its lines have been legible."""

    __slots__ = ()

    def __str__(self) -> str:
        return self

    def _repr_html_(self) -> str:
        from html import escape  # which few need

        return f"<pre>{escape(self)}</pre>"


def legible(text: str, most: int = _LONGEST) -> str:
    r"""Return a text in one line of limited length, without characters that are not printed.

    Breaks of lines, control characters, marks of direction and the like are escaped as `repr`
    escapes them. Of a long text the middle is left out, since messages end with the next move.

    Examples
    --------
    >>> legible("two" + chr(10) + "lines"), legible("a" * 50, 9)
    ('two\\nlines', 'aaaaaa…aa')
    """
    if isinstance(text, _Lines) or (len(text) <= most and text.isprintable()):
        return text
    escaped = (c if c.isprintable() else repr(c)[1:-1] for c in _shortened(text, most))
    return _shortened("".join(escaped), most)


def _shortened(text: str, most: int) -> str:
    end = most // 4
    return text if len(text) <= most else f"{text[: most - end - 1]}…{text[len(text) - end :]}"


def excerpt(text: str) -> str:
    """Return a text of others as a part of a line: without its breaks of lines, and legible."""
    return legible(" ".join(text[: 4 * _LONGEST].split()), PART)


def quoted(value: object, form: Callable[[object], str] = repr) -> str:
    """Return the `repr` of a value of others, or its type, if it cannot say or is too deep."""
    try:
        return form(value)
    except Exception:  # noqa: BLE001 - its code is foreign, and this is for an error already
        return f"<{type(value).__qualname__}>"


def lines(texts: Iterable[str]) -> str:
    """Return a text of several lines, each of which is legible."""
    return _Lines("\n".join(map(legible, texts)))


def json_text(document: object, indent: int | None = None) -> str:
    """Return a document of JSON, with what is not printed escaped as JSON escapes it."""
    import json  # which few need

    text = json.dumps(document, indent=indent, ensure_ascii=False)
    if all(map(str.isprintable, text.split("\n"))):
        return text
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
