"""The command ``graph``."""

from __future__ import annotations

import sys
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from interop._api.default import default
from interop._text import json_text

from .drawing import dot
from .network import network
from .notation import unknown_format
from .output import JSON, check_file, fail, line, misused, reports_errors, show_bytes, write_file
from .tool import Tool, ToolFailed


class Drawing(StrEnum):
    """How the graph can be drawn."""

    svg = "svg"
    png = "png"
    pdf = "pdf"
    dot = "dot"
    json = "json"


#: The kinds that Graphviz draws.
_PICTURES = (Drawing.svg, Drawing.png, Drawing.pdf)
#: Seconds that Graphviz may take.
_PATIENCE = 120
_SUFFIXES = {".gv": "dot"}
_NO_GRAPHVIZ = (
    "Graphviz is not installed, which draws {kind}: install it "
    "(apt install graphviz, brew install graphviz), or pass --as dot or json."
)

_NAMES = typer.Argument(
    metavar="NAME...",
    help="The frameworks or formats to draw; by default all frameworks, as a box each.",
)
_DRAWING = typer.Option(
    "--as", metavar="KIND", help="What to draw; by default what the file's name ends with."
)
_FILE = typer.Option("--file", metavar="FILE", help="Where to write it instead of standard output.")


@reports_errors
def graph(
    names: Annotated[list[str] | None, _NAMES] = None,
    *,
    kind: Annotated[Drawing | None, _DRAWING] = None,
    file: Annotated[Path | None, _FILE] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Draw the frameworks and how they are linked, or the formats of some of them.

    As SVG, PNG or PDF, which needs Graphviz, or as DOT or JSON.

    Example: interop graph torch scipy --file graph.png
    """
    if file is not None:
        check_file(file)
    if as_json and kind not in (None, Drawing.json):
        misused(f"--json and --as {kind} exclude each other; leave one out.")
    named, asked = _kind_named_by(file), Drawing.json if as_json else kind
    if named and asked and named is not asked:
        misused(f"{file} names another kind of drawing than {asked}; name the file differently.")
    kind = asked or named or _default_kind(file)
    if file is None and kind in _PICTURES and sys.stdout.isatty():
        misused(
            "a picture is not for a terminal: pass --file graph.svg (or .png, .pdf), or --as dot."
        )
    drawing = _drawing(kind, names or ())
    if file is None:
        show_bytes(drawing)
        return
    write_file(file, drawing)
    line(f"wrote {file}")


def _kind_named_by(file: Path | None) -> Drawing | None:
    """Return the kind of drawing that the name of a file asks for, if any."""
    suffix = "" if file is None else file.suffix.lower()
    name = _SUFFIXES.get(suffix, suffix[1:])
    return Drawing(name) if name in set(Drawing) else None


def _default_kind(file: Path | None) -> Drawing:
    """Return the kind where nothing asks for one, which only standard output has."""
    if file is not None:
        kinds = ", ".join(Drawing)
        misused(f"{file} does not say what to draw; pass --as with one of {kinds}.")
    return Drawing.svg


def _drawing(kind: Drawing, names: Collection[str]) -> bytes:
    whole = network(default)
    for name in names:
        if not whole.only([name]).nodes:
            misused(unknown_format(default, name))
    if kind is Drawing.json:
        shown = whole.only(names) if names else whole
        return f"{json_text(shown.as_dict(), 1)}\n".encode()
    text = dot(whole.only(names) if names else whole.by_frameworks())
    return _picture(text, kind) if kind in _PICTURES else f"{text}\n".encode()


def _picture(text: str, kind: Drawing) -> bytes:
    tool = Tool.named("dot")
    if tool is None:
        misused(_NO_GRAPHVIZ.format(kind=kind.upper()))
    try:
        return tool.output([f"-T{kind}"], text, patience=_PATIENCE)
    except ToolFailed as error:
        fail(f"Graphviz's {error}")
