"""Output: what the commands print, for people and for programs.

On a terminal there are colors and lines that fit it. Into a pipe goes plain text whose lines are
never cut. With ``--json`` standard output is one document, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, NoReturn, TypeVar, cast

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from interop._model.display import table as plain_table
from interop.errors import BadRequestError, InteropError, UnknownTargetError, UnknownValueError

__all__ = [
    "FOUND",
    "JSON",
    "WRONG_USE",
    "bar",
    "fail",
    "line",
    "misused",
    "show_json",
    "show_table",
    "told",
]

#: Exit codes: something was found or could not be done; the command line is wrong.
FOUND, WRONG_USE = 1, 2

JSON = typer.Option("--json", help="Print one document of JSON and nothing else.")

#: What is raised when the words of a command name nothing that there is.
_MISUSES = (BadRequestError, UnknownTargetError, UnknownValueError)

_Command = TypeVar("_Command", bound=Callable[..., None])


def told(command: _Command) -> _Command:
    """Make a command end with a sentence and a code where it would raise an error of interop's."""

    @wraps(command)
    def run(**words: Any) -> None:
        as_json = bool(words.get("as_json"))
        try:
            command(**words)
        except _MISUSES as error:
            misused(str(error), as_json=as_json)
        except InteropError as error:
            fail(str(error), as_json=as_json)

    return cast("_Command", run)


def line(text: str, style: str = "") -> None:
    """Print a line, in a style if that is seen."""
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


def fail(reason: str, *, as_json: bool = False, **facts: Any) -> NoReturn:
    """Say why it could not be done, and end with the code for that."""
    _end(reason, FOUND, as_json, facts)


def misused(reason: str, *, as_json: bool = False) -> NoReturn:
    """Say what is wrong with the command line, and end with the code for that."""
    _end(reason, WRONG_USE, as_json, {})


def _end(reason: str, code: int, as_json: bool, facts: dict[str, Any]) -> NoReturn:
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
    with Progress(*columns, console=console, disable=quiet, transient=True) as shown:
        task = shown.add_task("", total=None)
        yield lambda done, total, what: shown.update(
            task, completed=done, total=total, description=what
        )


def _console() -> Console:
    return Console(soft_wrap=True, highlight=False, markup=False, emoji=False)
