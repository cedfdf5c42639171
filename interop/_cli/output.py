"""Output: what the commands print, for people and for programs.

On a terminal there are colors, and lines that are broken between words to fit it. Into a pipe goes
plain text whose lines are never cut. With ``--json`` standard output is one document, and nothing
else, whatever a plugin or its framework prints.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TextIO

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text
from typer.core import TyperGroup

from interop._model.dialect import on_command_line
from interop._model.display import table as plain_table
from interop._registry.declared import OWN, Provenance
from interop.errors import BadRequestError, InteropError, UnknownTargetError, UnknownValueError

#: Exit codes: something is wrong or could not be done; the command line is wrong.
FAILURE, USAGE_ERROR = 1, 2

JSON = typer.Option("--json", help="Print one JSON document and nothing else.")

#: Spaces between the columns of a table, and the width up to which a column is not broken: numbers
#: stay beside their units.
_GAP, _WHOLE = 2, 16
#: What stands in a cell that says nothing.
_NOTHING = ("", "—")
#: What a line that is broken begins with, below which the rest of it is indented.
_MARGIN = re.compile(r" *(?:- )?")

#: What is raised when a word of the command line names nothing that exists.
_USAGE_ERRORS = (BadRequestError, UnknownTargetError, UnknownValueError)
#: What is raised when the words do not fit the command; older versions of typer have it from click.
_UsageError: type[typer.BadParameter] = typer.BadParameter.__bases__[0]
#: What typer's validation puts before what it says.
_INVALID = "Value error, "

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
        token = on_command_line.set(True)
        try:
            with _documents_only() if options.get("as_json") else nullcontext():
                try:
                    command(*args, **options)
                except _USAGE_ERRORS as error:
                    misused(str(error))
                except InteropError as error:
                    fail(str(error))
        finally:
            on_command_line.reset(token)

    return run


class Commands(TyperGroup):
    """The commands, which report words they cannot take as they report all else."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the words before the name of the command, and keep all words."""
        ctx.obj = list(args)
        with _reports_misuse(ctx.obj):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that is named."""
        with _reports_misuse(ctx.obj):
            return super().invoke(ctx)


@contextmanager
def _reports_misuse(words: Sequence[str]) -> Iterator[None]:
    """Report what typer finds wrong with the words of a command line, as JSON if they say so."""
    try:
        yield
    except _UsageError as error:
        if not words:  # which is no fault: the help is shown
            raise
        with _documents_only() if "--json" in words else nullcontext():
            if error.ctx is not None:
                usage = f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} -h' for help.\n"
                _print(Text(usage), _console(stderr=True))
            error.message = error.message.removeprefix(_INVALID)
            misused(error.format_message())


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


def without_own(
    heads: Sequence[str], rows: Iterable[Sequence[str]], origins: Iterable[Provenance]
) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Leave out the last column, which says who declared a row, if nobody else declared any."""
    if any(origin.distribution != OWN for origin in origins):
        return heads, list(rows)
    return heads[:-1], [row[:-1] for row in rows]


def show_table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    style: Callable[[int, str], str] | None = None,
    *,
    spare: str | None = None,
) -> None:
    """Print a table.

    On a terminal that is too narrow for it, columns that say nothing are left out, then the spare
    one; then lines are broken.

    Parameters
    ----------
    heads : sequence of str
    rows : iterable of sequence of str
    style : callable, optional
        ``style(column, cell)`` is how a cell is shown where styles are seen.
    spare : str, optional
        The head of a column that says only what stands elsewhere.
    """
    console, rows = _console(), list(rows)
    if not console.is_terminal:
        typer.echo("\n".join(plain_table(tuple(heads), map(tuple, rows))))
        return
    texts = [
        [Text(cell, style(column, cell) if style else "") for column, cell in enumerate(row)]
        for row in rows
    ]
    shown = _shown(heads, rows, spare, console.width)
    widths = _widths([_column(heads, rows, number) for number in shown], console.width)
    if widths is None:
        for row in texts:
            for items in _record(heads, row, console.width):
                _print(items, console)
        return
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
    for number, size in zip(shown, widths, strict=True):
        table.add_column(heads[number], width=size)
    for row in texts:
        table.add_row(*(row[number] for number in shown))
    console.print(table)


def _shown(
    heads: Sequence[str], rows: Sequence[Sequence[str]], spare: str | None, available: int
) -> list[int]:
    """Return the columns that are shown: all that fit without breaking a line."""
    shown = list(range(len(heads)))
    silent = {n for n in shown if rows and all(row[n] in _NOTHING for row in rows)}
    for dispensable in (silent, {n for n in shown if heads[n] == spare}):
        if _total([_width(_column(heads, rows, number)) for number in shown]) <= available:
            break
        shown = [number for number in shown if number not in dispensable]
    return shown


def _column(heads: Sequence[str], rows: Sequence[Sequence[str]], number: int) -> list[str]:
    return [heads[number], *(row[number] for row in rows)]


def _width(column: Sequence[str]) -> int:
    return max(map(cell_len, column))


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _widths(columns: Sequence[Sequence[str]], available: int) -> list[int] | None:
    """Return the widths of columns that fit between them; None if a word would be broken."""
    widths = [_width(column) for column in columns]
    least = [
        width if width <= _WHOLE else max(cell_len(w) for cell in column for w in cell.split(" "))
        for width, column in zip(widths, columns, strict=True)
    ]
    excess = _total(widths) - available
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
        if cell.plain in _NOTHING:
            continue
        item = Text.assemble((f"{head}: " if head else "", "dim"), cell)
        if row and row.cell_len + _GAP + item.cell_len > available:
            yield row
            row = Text("  ")
        row = Text.assemble(row, " " * _GAP if row else "", item)
    yield row


def fail(reason: str, **facts: object) -> NoReturn:
    """Say why it could not be done, and end with the code for that."""
    _end(reason, FAILURE, facts)


def misused(reason: str) -> NoReturn:
    """Say what is wrong with the command line, and end with the code for that."""
    _end(reason, USAGE_ERROR, {})


def _end(reason: str, code: int, facts: Mapping[str, object]) -> NoReturn:
    if _documents.get() is not None:
        show_json({"error": reason, **facts})
    _print(Text(f"interop: {reason}"), _console(stderr=True))
    raise typer.Exit(code)


def check_folder(file: Path) -> None:
    """Refuse to write a file into a folder that does not exist: its name may be misspelt."""
    if not file.parent.is_dir():
        fail(f"there is no folder {file.parent}; create it, or pass another --file.")


@contextmanager
def bar(title: str, *, hidden: bool) -> Iterator[Callable[[int, int, str], None]]:
    """Show a progress bar on standard error, if that is a terminal."""
    console = Console(file=sys.stderr)  # which may be quiet later
    columns = (
        TextColumn(title),
        BarColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    quiet = hidden or not console.is_terminal
    with Progress(*columns, console=console, disable=quiet, transient=True) as progress:
        task = progress.add_task("", total=None)
        yield lambda count, total, label: progress.update(
            task, completed=count, total=total, description=f"{count}/{total} {label}"
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
        margin = _MARGIN.match(paragraph.plain)
        indent = margin.end() if margin else 0
        parts = paragraph[indent:].wrap(console, console.width - indent) or [Text()]
        for number, part in enumerate(parts):
            part.rstrip()
            console.print((Text(" " * indent) if number else paragraph[:indent]) + part)


def _console(*, stderr: bool = False) -> Console:
    return Console(stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False)
