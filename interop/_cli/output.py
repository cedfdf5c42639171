"""Output: what the commands print, for people and for programs.

On a terminal there are colors and lines that fit it. Into a pipe goes plain text whose lines are
never cut. With ``--json`` standard output is one document, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import NoReturn, ParamSpec

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from interop._model.dialect import on_command_line
from interop._model.display import table as plain_table
from interop.errors import BadRequestError, InteropError, UnknownTargetError, UnknownValueError

__all__ = [
    "FAILURE",
    "JSON",
    "USAGE_ERROR",
    "bar",
    "fail",
    "line",
    "misused",
    "reports_errors",
    "show_json",
    "show_table",
]

#: Exit codes: something is wrong or could not be done; the command line is wrong.
FAILURE, USAGE_ERROR = 1, 2

JSON = typer.Option("--json", help="Print one JSON document and nothing else.")

#: What is raised when a word of the command line names nothing that exists.
_USAGE_ERRORS = (BadRequestError, UnknownTargetError, UnknownValueError)

_Parameters = ParamSpec("_Parameters")


def reports_errors(command: Callable[_Parameters, None]) -> Callable[_Parameters, None]:
    """Make a command print interop's errors as a sentence and end with the code for them."""

    @wraps(command)
    def run(*args: _Parameters.args, **options: _Parameters.kwargs) -> None:
        as_json = bool(options.get("as_json"))
        token = on_command_line.set(True)
        try:
            command(*args, **options)
        except _USAGE_ERRORS as error:
            misused(str(error), as_json=as_json)
        except InteropError as error:
            fail(str(error), as_json=as_json)
        finally:
            on_command_line.reset(token)

    return run


def line(text: str, style: str = "") -> None:
    """Print a line, in a style where styles are seen."""
    _console().print(Text(text, style), soft_wrap=True)


def show_json(document: object) -> None:
    """Print a document of JSON."""
    typer.echo(json.dumps(document, indent=1, ensure_ascii=False))


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
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for head in heads:
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(
            *(Text(c, style(n, c) if style else "", overflow="fold") for n, c in enumerate(row))
        )
    console.print(table)


def fail(reason: str, *, as_json: bool = False, **facts: object) -> NoReturn:
    """Say why it could not be done, and end with the code for that."""
    _end(reason, FAILURE, as_json, facts)


def misused(reason: str, *, as_json: bool = False) -> NoReturn:
    """Say what is wrong with the command line, and end with the code for that."""
    _end(reason, USAGE_ERROR, as_json, {})


def _end(reason: str, code: int, as_json: bool, facts: Mapping[str, object]) -> NoReturn:
    if as_json:
        show_json({"error": reason, **facts})
    typer.echo(f"interop: {reason}", err=True)
    raise typer.Exit(code)


@contextmanager
def bar(title: str, *, hidden: bool) -> Iterator[Callable[[int, int, str], None]]:
    """Show a progress bar on standard error, if that is a terminal."""
    console = Console(stderr=True)
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


def _console() -> Console:
    return Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
