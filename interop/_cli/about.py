"""The command without a subcommand: its help and its version."""

from __future__ import annotations

from typing import Annotated

import typer

from interop._version import __version__


def _show(flag: bool) -> None:
    if flag:
        typer.echo(f"interop {__version__}")
        raise typer.Exit


_VERSION = typer.Option(
    "--version", is_eager=True, callback=_show, help="Print the version and exit."
)


def about(version: Annotated[bool, _VERSION] = False) -> None:
    """Convert arrays between frameworks by the cheapest correct route."""
