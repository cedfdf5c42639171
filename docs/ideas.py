"""The pictures of the five ideas: route, sharing, consent, tree, accepts.

``python -m docs.ideas --store`` draws them, as SVG on a white card of its own, so that it can be
read on light pages and on dark ones.
"""

from __future__ import annotations

import sys
from html import escape
from pathlib import Path

FOLDER = Path(__file__).parent / "explanation"

#: The colours of a framework's box, of what is shared, copied and refused, and of text.
_FRAMEWORKS = {"torch": "#fbe3dc", "numpy": "#dde9f7", "jax": "#e9e1f5", "plain": "#eef1f4"}
_SHARED, _COPIED, _REFUSED, _TEXT, _QUIET = "#1b7f5f", "#b86b00", "#b3303c", "#1f2933", "#5b6977"
_WIDTH = 680


def _text(x: float, y: float, text: str, colour: str = _TEXT, *, size: int = 14) -> str:
    return (
        f'<text x="{x}" y="{y}" fill="{colour}" font-size="{size}" text-anchor="middle">'
        f"{escape(text)}</text>"
    )


def _box(x: float, y: float, framework: str, *lines: str, width: float = 120) -> str:
    """Return a box, centred at x and y, with lines of text."""
    height = 18 * len(lines) + 14
    frame = (
        f'<rect x="{x - width / 2}" y="{y - height / 2}" width="{width}" height="{height}" rx="8" '
        f'fill="{_FRAMEWORKS[framework]}" stroke="#9aa7b4"/>'
    )
    parts = [frame]
    for number, line in enumerate(lines):
        below = y + 18 * (number - (len(lines) - 1) / 2) + 5
        parts.append(_text(x, below, line, _QUIET if number else _TEXT, size=12 if number else 14))
    return "".join(parts)


def _arrow(
    start: tuple[float, float], end: tuple[float, float], label: str = "", colour: str = _SHARED
) -> str:
    (x1, y1), (x2, y2) = start, end
    dashes = "" if colour == _SHARED else ' stroke-dasharray="6 4"'
    line = (
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-width="2"{dashes} '
        f'marker-end="url(#{colour[1:]})"/>'
    )
    return line + (_text((x1 + x2) / 2, (y1 + y2) / 2 - 8, label, colour, size=12) if label else "")


def _cells(x: float, y: float, *numbers: str) -> str:
    """Return memory: a row of cells from x on."""
    parts = []
    for position, number in enumerate(numbers):
        left = x + 34 * position
        parts.append(
            f'<rect x="{left}" y="{y}" width="34" height="26" fill="white" stroke="{_TEXT}"/>'
        )
        parts.append(_text(left + 17, y + 18, number, size=13))
    return "".join(parts)


def _picture(height: int, title: str, *parts: str) -> str:
    heads = "".join(
        f'<marker id="{colour[1:]}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" fill="{colour}"/></marker>'
        for colour in (_SHARED, _COPIED, _REFUSED)
    )
    card = f'<rect width="{_WIDTH}" height="{height}" rx="12" fill="white"/>'
    body = "\n".join([f"<defs>{heads}</defs>", card, *parts])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'font-family="DejaVu Sans, Helvetica, Arial, sans-serif" role="img">\n'
        f"<title>{escape(title)}</title>\n{body}\n</svg>\n"
    )


def route() -> str:
    """Draw steps through formats, with their effects, beside a route that costs more."""
    return _picture(
        190,
        "A route is a row of steps; the cheapest permitted one is taken.",
        _box(85, 60, "torch", "torch", "cuda, grad"),
        _arrow((145, 60), (275, 60), "detach"),
        _box(340, 60, "torch", "torch", "cuda"),
        _arrow((400, 60), (530, 60), "transfer", _COPIED),
        _box(595, 60, "numpy", "numpy", "cpu"),
        _arrow((85, 86), (270, 146), "", _REFUSED),
        _box(340, 150, "plain", "another way", "two copies"),
        _arrow((410, 146), (590, 86), "", _REFUSED),
        _text(530, 150, "dearer, so not taken", _REFUSED, size=12),
    )


def sharing() -> str:
    """Draw one memory under two arrays, and two memories after a copy."""
    return _picture(
        200,
        "Where memory is shared, a write is seen by both; a copy is apart.",
        _box(90, 45, "torch", "tensor"),
        _box(270, 45, "numpy", "array"),
        _arrow((90, 62), (140, 112)),
        _arrow((270, 62), (220, 112)),
        _cells(112, 116, "7", "0", "0", "0"),
        _text(180, 175, "shared: array[0] = 7 is seen in the tensor", _SHARED, size=12),
        _box(430, 45, "torch", "tensor"),
        _box(590, 45, "numpy", "array"),
        _arrow((430, 62), (430, 112)),
        _arrow((590, 62), (590, 112)),
        _cells(379, 116, "0", "0", "0"),
        _cells(539, 116, "7", "0", "0"),
        _text(510, 175, "copy=True: memory of its own", _COPIED, size=12),
    )


def consent() -> str:
    """Draw a loss that is refused, and the keyword that permits it."""
    return _picture(
        190,
        "What would change the numbers is refused until a keyword permits it.",
        _box(95, 55, "numpy", "numpy", "float64"),
        _arrow((155, 55), (330, 55), "narrow", _REFUSED),
        _text(352, 64, "✕", _REFUSED, size=26),
        _text(510, 50, "RefusedError: pass allow='narrow'", _REFUSED, size=13),
        _text(510, 70, "or dtype='float32'", _REFUSED, size=13),
        _box(95, 140, "numpy", "numpy", "float64"),
        _arrow((155, 140), (535, 140), "convert(x, to='jax', allow='narrow')", _COPIED),
        _box(600, 140, "jax", "jax", "float32"),
    )


def tree() -> str:
    """Draw nested data whose arrays change, and whose other leaves stay."""
    parts = []
    for x, framework in ((170, "torch"), (530, "numpy")):
        parts.append(_box(x, 35, "plain", "dict", width=70))
        leaves = ((framework, "image"), (framework, "weights"), ("plain", "'cat'"))
        for number, (kind, name) in enumerate(leaves):
            at = x - 100 + 100 * number
            parts.append(_arrow((x, 51), (at, 106), "", _SHARED))
            text = (name,) if kind == "plain" else (name, framework)
            parts.append(_box(at, 130, kind, *text, width=84))
    parts.append(_arrow((320, 70), (380, 70), "", _COPIED))
    parts.append(
        _text(350, 185, "convert_tree(batch, to='numpy'): arrays change, all else stays", size=13)
    )
    return _picture(205, "A tree keeps its shape; its arrays are converted.", *parts)


def accepts() -> str:
    """Draw a function in NumPy's words that gets and returns tensors."""
    return _picture(
        200,
        "A function written for one framework takes arrays of all, and answers in theirs.",
        _box(90, 62, "torch", "caller's", "tensor"),
        _arrow((150, 75), (262, 75), "in"),
        _box(340, 100, "numpy", "@accepts('numpy')", "def f(x):", "return x - x.mean()", width=160),
        _arrow((420, 75), (530, 75), "x: an array"),
        _box(595, 62, "numpy", "NumPy", "computes"),
        _arrow((530, 125), (420, 125)),
        _box(595, 138, "numpy", "result"),
        _arrow((262, 125), (150, 125), "out"),
        _box(90, 138, "torch", "a tensor", "again"),
    )


PICTURES = {f"idea-{draw.__name__}.svg": draw for draw in (route, sharing, consent, tree, accepts)}

if __name__ == "__main__":
    if sys.argv[1:] != ["--store"]:
        raise SystemExit(__doc__)
    for name, draw in PICTURES.items():
        (FOLDER / name).write_text(draw(), "utf-8")
