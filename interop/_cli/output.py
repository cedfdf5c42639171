"""Output: what the commands print, for people and for programs.

On a terminal there are colors, and lines that are broken between words to fit it. Into a pipe goes
plain text whose lines are never cut. With ``--json`` standard output is one document, and nothing
else, whatever a plugin or its framework prints.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from contextvars import ContextVar
from functools import wraps
from typing import NoReturn, ParamSpec, TextIO

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from interop._model.dialect import on_command_line
from interop._model.display import table as plain_table
from interop.errors import BadRequestError, InteropError, UnknownTargetError, UnknownValueError

#: Exit codes: something is wrong or could not be done; the command line is wrong.
FAILURE, USAGE_ERROR = 1, 2

JSON = typer.Option("--json", help="Print one JSON document and nothing else.")

#: Spaces between the columns of a table, and the width up to which a column is not broken: numbers
#: stay beside their units.
_GAP, _WHOLE = 2, 16

#: What is raised when a word of the command line names nothing that exists.
_USAGE_ERRORS = (BadRequestError, UnknownTargetError, UnknownValueError)

_Parameters = ParamSpec("_Parameters")

#: Where documents go, while standard output is closed to everything else.
_documents: ContextVar[TextIO | None] = ContextVar("documents", default=None)


def claim_standard_streams() -> None:
    """Keep the standard streams for what the command prints.

    From then on Python's streams are this process's own copies. What compiled code prints to
    standard output goes to standard error, also what it keeps until the process ends.
    """
    sys.stdout, sys.stderr = _copy(sys.stdout), _copy(sys.stderr)
    os.dup2(2, 1)


def _copy(stream: TextIO) -> TextIO:
    descriptor = os.dup(stream.fileno())
    return open(descriptor, "w", encoding=stream.encoding, errors=stream.errors, buffering=1)


@contextmanager
def quiet() -> Iterator[None]:
    """Drop what frameworks print and log meanwhile; bars that were opened before stay."""
    sys.stderr.flush()
    terminal = os.dup(2)
    with open(os.devnull, "w", encoding="utf-8") as nothing:
        os.dup2(nothing.fileno(), 2)
        try:
            with redirect_stdout(nothing), redirect_stderr(nothing):
                yield
        finally:
            os.dup2(terminal, 2)
            os.close(terminal)


def reports_errors(command: Callable[_Parameters, None]) -> Callable[_Parameters, None]:
    """Make a command print interop's errors as a sentence and end with the code for them."""

    @wraps(command)
    def run(*args: _Parameters.args, **options: _Parameters.kwargs) -> None:
        as_json = bool(options.get("as_json"))
        token = on_command_line.set(True)
        try:
            with _documents_only() if as_json else nullcontext():
                try:
                    command(*args, **options)
                except _USAGE_ERRORS as error:
                    misused(str(error), as_json=as_json)
                except InteropError as error:
                    fail(str(error), as_json=as_json)
        finally:
            on_command_line.reset(token)

    return run


@contextmanager
def _documents_only() -> Iterator[None]:
    """Send what is printed to standard error, but for documents."""
    token = _documents.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _documents.reset(token)


def line(text: str, style: str = "") -> None:
    """Print a line, in a style where styles are seen."""
    _print(Text(text, style), _console())


def show_json(document: object) -> None:
    """Print a document of JSON."""
    show_bytes(f"{json.dumps(document, indent=1, ensure_ascii=False)}\n".encode())


def show_bytes(document: bytes) -> None:
    """Print a document as it is."""
    typer.echo(document, nl=False, file=_documents.get())


def show_table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    style: Callable[[int, str], str] | None = None,
) -> None:
    """Print a table.

    Parameters
    ----------
    heads : sequence of str
    rows : iterable of sequence of str
    style : callable, optional
        ``style(column, cell)`` is how a cell is shown where styles are seen.
    """
    console, rows = _console(), list(rows)
    if not console.is_terminal:
        typer.echo("\n".join(plain_table(tuple(heads), map(tuple, rows))))
        return
    texts = [
        [Text(cell, style(column, cell) if style else "") for column, cell in enumerate(row)]
        for row in rows
    ]
    widths = _widths([list(heads), *rows], console.width)
    if widths is None:
        for row in texts:
            for items in _record(heads, row, console.width):
                console.print(items, soft_wrap=False)
        return
    table = Table(box=None, padding=(0, _GAP, 0, 0), header_style="bold")
    for head, size in zip(heads, widths, strict=True):
        table.add_column(head, width=size)
    for row in texts:
        table.add_row(*row)
    console.print(table)


def _widths(cells: Sequence[Sequence[str]], available: int) -> list[int] | None:
    """Return the widths of columns that fit between them; None if a word would be broken."""
    columns = list(zip(*cells, strict=True))
    widths = [max(map(cell_len, column)) for column in columns]
    least = [
        width if width <= _WHOLE else max(cell_len(w) for cell in column for w in cell.split(" "))
        for width, column in zip(widths, columns, strict=True)
    ]
    excess = sum(widths) + _GAP * len(widths) - available
    while excess > 0:
        slack, column = max((widths[n] - least[n], n) for n in range(len(widths)))
        if not slack:
            return None
        widths[column] -= 1
        excess -= 1
    return widths


def _record(heads: Sequence[str], cells: Sequence[Text], available: int) -> Iterator[Text]:
    """Yield the lines that say what a row says that is too wide for a table."""
    row = Text()
    for head, cell in zip(heads, cells, strict=True):
        if cell.plain in ("", "—"):
            continue
        item = Text.assemble((f"{head}: " if head else "", "dim"), cell)
        if row and row.cell_len + _GAP + item.cell_len > available:
            yield row
            row = Text("  ")
        row = Text.assemble(row, " " * _GAP if row else "", item)
    yield row


def fail(reason: str, *, as_json: bool = False, **facts: object) -> NoReturn:
    """Say why it could not be done, and end with the code for that."""
    _end(reason, FAILURE, as_json, facts)


def misused(reason: str, *, as_json: bool = False) -> NoReturn:
    """Say what is wrong with the command line, and end with the code for that."""
    _end(reason, USAGE_ERROR, as_json, {})


def _end(reason: str, code: int, as_json: bool, facts: Mapping[str, object]) -> NoReturn:
    if as_json:
        show_json({"error": reason, **facts})
    _print(Text(f"interop: {reason}"), _console(stderr=True))
    raise typer.Exit(code)


@contextmanager
def bar(title: str, *, hidden: bool) -> Iterator[Callable[[int, int, str], None]]:
    """Show a progress bar on standard error, if that is a terminal."""
    console = Console(file=sys.stderr)  # which may be quiet later
    columns = (
        TextColumn(title),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} {task.description}"),
        TimeElapsedColumn(),
    )
    quiet = hidden or not console.is_terminal
    with Progress(*columns, console=console, disable=quiet, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda count, total, label: progress.update(
            task, completed=count, total=total, description=label
        )


def width() -> int | None:
    """Return how many characters a line may have; None in a pipe, where there is no limit."""
    console = _console()
    return console.width if console.is_terminal else None


def _print(text: Text, console: Console) -> None:
    if not console.is_terminal:
        console.print(text, soft_wrap=True)
        return
    for paragraph in text.split("\n", allow_blank=True):
        indent = len(paragraph.plain) - len(paragraph.plain.lstrip())
        parts = paragraph[indent:].wrap(console, console.width - indent) or [Text()]
        for part in parts:
            part.rstrip()
            console.print(Text(" " * indent) + part)


def _console(*, stderr: bool = False) -> Console:
    return Console(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)
