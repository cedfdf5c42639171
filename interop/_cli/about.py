"""The command without a subcommand: its help and its version."""

from __future__ import annotations

from typing import Annotated

import typer

from interop._version import __version__

from .output import JSON, show_json

_VERSION = typer.Option("--version", help="Print the version and exit.")


def about(
    context: typer.Context,
    version: Annotated[bool, _VERSION] = False,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Convert arrays between frameworks by the cheapest correct route."""
    if version:
        if as_json:
            show_json({"version": __version__})
        else:
            typer.echo(f"interop {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        context.fail("Missing command.")
