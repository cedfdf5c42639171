"""Output: what the commands print, for people and for programs.

A terminal gets colors, and lines that are broken between words. A pipe gets plain text, whose lines
are never cut. With ``--json`` standard output is one document and nothing else, whatever a plugin
or its framework prints.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout, suppress
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from secrets import token_hex
from types import MappingProxyType
from typing import Any, NoReturn, ParamSpec, TextIO

import typer
from rich.columns import Columns
from rich.console import Console
from rich.measure import measure_renderables
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text
from typer.core import TyperGroup

from interop._model.provenance import OWN, Provenance
from interop._model.text import text_table
from interop._text import PART, excerpt, json_text, legible
from interop.errors import BadRequestError, InteropError, UnknownTargetError, UnknownValueError

from .streams import PLAINLY, ends_in_order

#: How many characters a line has at most; some list all conversions.
_LONGEST = 100_000

#: Exit codes: something is wrong or could not be done; the command line is wrong.
FAILURE, USAGE_ERROR = 1, 2

_AS_JSON = "--json"
JSON = typer.Option(_AS_JSON, help="Print one JSON document and nothing else.")

#: What a cell of a table holds that says nothing.
_NOTHING = frozenset({"", "—", "-"})

#: The styles of the states of frameworks, formats, conversions and plugins.
_STATES = {
    **dict.fromkeys(("missing", "blocked", "dormant"), "dim"),
    **dict.fromkeys(("degraded", "broken", "failed"), "red"),
    "ready": "green",
}

#: Spaces between the columns of a table, and the width up to which a column is not broken, so that
#: numbers stay beside their units.
_GAP, _WHOLE = 2, 16
#: The margin of a line; if the line is broken, the rest is indented as much.
_MARGIN = re.compile(r" *(?:- )?")

#: Errors about a word of the command line that names nothing.
_USAGE_ERRORS = (BadRequestError, UnknownTargetError, UnknownValueError)
#: Errors about words that do not fit the command; older versions of typer take it from click.
_UsageError: type[typer.BadParameter] = typer.BadParameter.__bases__[0]
#: The prefix of messages from typer's validation.
_INVALID = "Value error, "

_Parameters = ParamSpec("_Parameters")

#: The stream for documents, while standard output is closed to everything else.
_documents: ContextVar[TextIO | None] = ContextVar("documents", default=None)


def _written(text: str) -> str:
    """Return a text as standard output can hold it, so that the columns of a table line up."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, PLAINLY).decode(encoding)


@contextmanager
def quiet() -> Iterator[None]:
    """Drop whatever is printed and logged meanwhile, except by bars that were opened before."""
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
    """Make a command report interop's errors as a sentence and end with their exit code."""

    @wraps(command)
    def run(*args: _Parameters.args, **options: _Parameters.kwargs) -> None:
        with _documents_only() if options.get("as_json") else nullcontext():
            try:
                command(*args, **options)
            except _USAGE_ERRORS as error:
                misused(str(error))
            except InteropError as error:
                fail(str(error))

    return run


class Commands(TyperGroup):
    """The group of commands, which reports a wrong command line as it reports all else."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words before the name of the command, and keep all words.

        ``--json`` before the name is the command's own option.
        """
        if args[:1] == [_AS_JSON] and args[1:] and not args[1].startswith("-"):
            args = [*args[1:2], _AS_JSON, *args[2:]]
        ctx.obj = list(args)
        with ends_in_order(), _reports_misuse(ctx.obj):
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that is named."""
        with ends_in_order(), _reports_misuse(ctx.obj):
            return super().invoke(ctx)


@contextmanager
def _reports_misuse(words: Sequence[str]) -> Iterator[None]:
    """Report what typer finds wrong with a command line, as JSON if that is asked for."""
    try:
        yield
    except OSError as error:  # of the files in which --install-completion writes
        if isinstance(error, BrokenPipeError) or error.filename is None:
            raise
        fail(f"{error.filename} cannot be written ({error.strerror}).")
    except _UsageError as error:
        with _documents_only() if _AS_JSON in words else nullcontext():
            if error.ctx is not None:
                usage = f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} -h' for help."
                usage = usage if words else error.ctx.get_help()
                _print(Text(f"{usage}\n"), _console(stderr=True))
            error.message = error.message.removeprefix(_INVALID)
            misused(error.format_message())


@contextmanager
def _documents_only() -> Iterator[None]:
    """Send everything but documents to standard error."""
    token = _documents.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _documents.reset(token)


def line(text: str, style: str = "") -> None:
    """Print a line; terminals show its style."""
    _print(Text(legible(text, _LONGEST), style), _console())


def show_json(document: object) -> None:
    """Print a document of JSON."""
    show_bytes(f"{json_text(document, 1)}\n".encode())


def show_bytes(document: bytes) -> None:
    """Print a document as it is."""
    typer.echo(document, nl=False, file=_documents.get())


def show_table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    styles: Mapping[str, Callable[[str], str]] = MappingProxyType({}),
    *,
    spare: str = "",
    origins: Iterable[Provenance] | None = None,
) -> None:
    """Print a table.

    On a terminal that is too narrow for it, columns that say nothing are left out, then the spare
    one, and then the cells of one column are broken between words. If that is not enough, the cells
    of each row stand below its first.

    Parameters
    ----------
    heads : sequence of str
    rows : iterable of sequence of str
    styles : mapping of str to callable, optional
        By heads, functions that return the style of a cell; terminals show it.
    spare : str, optional
        The head of a column that can be left out, because it repeats what stands elsewhere.
    origins : iterable of Provenance, optional
        The declarers of the rows, whom the last column names. If interop declared all of them,
        there is no such column.
    """
    console, body = _console(), [tuple(row) for row in rows]
    if origins is not None and all(origin.distribution == OWN for origin in origins):
        heads, body = heads[:-1], [row[:-1] for row in body]
    if not console.is_terminal:
        written = [tuple(map(_written, row)) for row in body]
        typer.echo("\n".join(text_table(tuple(heads), written)))
        return
    columns = {
        head: [
            Text(_written(legible(cell, PART)), styles.get(head, _no_style)(cell)) for cell in cells
        ]
        for head, *cells in zip(heads, *body, strict=True)
    }
    telling = {h: cells for h, cells in columns.items() if not body or any(map(_says, cells))}
    necessary = {head: cells for head, cells in telling.items() if head != spare}
    for shown in (columns, telling, necessary):
        if table := _table(shown, console, breaks=shown is necessary):
            console.print(table)
            return
    for row in zip(*columns.values(), strict=True):
        first, *items = (
            Text.assemble((f"{head}: ", "dim"), cell)
            for head, cell in zip(columns, row, strict=True)
            if _says(cell)
        )
        console.print(first, Padding.indent(Columns(items, padding=(0, _GAP, 0, 0)), 4), sep="\n")


def _table(columns: Mapping[str, list[Text]], console: Console, *, breaks: bool) -> Table | None:
    """Return a table that fits the terminal, or None; one column may be broken between words."""
    wide = console.options.update_width(_LONGEST)
    widths = {h: measure_renderables(console, wide, [Text(h), *columns[h]]) for h in columns}
    slack = {head: width.span * (width.maximum > _WHOLE) for head, width in widths.items()}
    broken = max(slack, key=slack.__getitem__)
    total = sum(width.maximum + _GAP for width in widths.values()) - _GAP
    if total - slack[broken] * breaks > console.width:
        return None
    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, header_style="bold")
    for head in columns:
        table.add_column(head, no_wrap=head != broken, overflow="fold")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    return table


def state_style(cell: str) -> str:
    """Return the style of a cell that holds a state."""
    return _STATES.get(cell, "")


def _no_style(cell: str) -> str:
    return ""


def _says(cell: Text) -> bool:
    """Return whether a cell says something."""
    return cell.plain not in _NOTHING


def fail(reason: str, **facts: object) -> NoReturn:
    """Report why a command failed, and end with the exit code for failures."""
    _end(reason, FAILURE, facts)


def misused(reason: str) -> NoReturn:
    """Report what is wrong with the command line, and end with the exit code for that."""
    _end(reason, USAGE_ERROR, {})


def _end(reason: str, code: int, facts: Mapping[str, object]) -> NoReturn:
    reason = legible(reason)
    if _documents.get() is not None:
        show_json({"error": reason, **facts})
    _print(Text(f"interop: {reason}"), _console(stderr=True))
    raise typer.Exit(code)


def check_file(file: Path) -> None:
    """Refuse a folder, a link to a file, and a file in a folder that may be misspelt."""
    try:
        file.lstat()
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # it may be no name at all
        fail(f"{file} is no name of a file ({error}); pass another --file.")
    if file.is_dir():
        fail(f"{file} is a folder; pass --file with the name of a file.")
    if not file.parent.is_dir():
        fail(f"there is no folder {file.parent}; create it, or pass another --file.")
    if file.is_symlink() and (file.is_file() or not file.exists()):
        fail(f"{file} is a link; pass --file with the name of the file that it leads to.")


def write_file(file: Path, content: bytes) -> None:
    """Write a file as a whole, or leave what was there."""
    try:
        if file.exists() and not file.is_file():  # a pipe or a device
            file.write_bytes(content)
            return
        beside = file.with_name(f".interop-{token_hex(8)}")
        try:
            with beside.open("xb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())  # which some file systems need to report what is lost
            with suppress(FileNotFoundError):
                beside.chmod(file.stat().st_mode)
            beside.replace(file)
        finally:
            beside.unlink(missing_ok=True)
    except OSError as error:
        fail(f"{file} cannot be written ({error.strerror or error}); pass another --file.")


@contextmanager
def bar(title: str, *, hidden: bool) -> Iterator[Callable[[int, int, str], None]]:
    """Show a progress bar on standard error, if that is a terminal."""
    console = Console(file=sys.stderr)  # the stream itself, before `quiet` replaces it
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
            task, completed=count, total=total, description=f"{count}/{total} {excerpt(label)}"
        )


def _print(text: Text, console: Console) -> None:
    if not console.is_terminal:
        console.print(text, soft_wrap=True)
        return
    for line in text.split("\n", allow_blank=True):
        margin = _MARGIN.match(line.plain)
        indent = margin.end() if margin else 0
        grid = Table.grid(Column(width=indent), Column(overflow="fold"))
        grid.add_row(line[:indent], line[indent:])
        console.print(grid if indent else line, soft_wrap=False)


def _console(*, stderr: bool = False) -> Console:
    width = 80 if os.environ.get("COLUMNS") == "0" else None  # which means that it is not known
    return _Console(
        stderr=stderr, soft_wrap=True, highlight=False, markup=False, emoji=False, width=width
    )


class _Console(Console):
    """A console that lets the command decide how it ends once nobody reads the output."""

    def on_broken_pipe(self) -> None:
        """Pass the error on, which is being handled."""
        raise  # noqa: PLE0704
