"""The command ``check``: what a plugin promises, or how a library keeps the DLPack standard."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from interop._api.default import default
from interop.errors import PluginError

from .output import FAILURE, JSON, bar, line, misused, reports_errors, show_bytes, show_json

if TYPE_CHECKING:
    from interop.testing import Report

_STYLES = {"wrong": "red", "ends the process": "bold red", "not as recommended": "yellow"}
#: How those checks can be tried that were not.
_WAYS = (
    "what is missing here has to be installed, and a format has to say how to make such a value: "
    "Samples(make=…, variants=…)"
)


def _plugins(typed: str) -> list[str]:
    """Return the names of plugins that begin like what was typed, for the shell to complete."""
    return [plugin.name for plugin in default.plugins() if plugin.name.startswith(typed)]


_NAME = typer.Argument(
    metavar="NAME",
    help="A distribution, a plugin or a module.",
    autocompletion=_plugins,
)
_VERBOSE = typer.Option("--verbose", "-v", help="Name what could not be exercised, and why.")
_DLPACK = typer.Option(
    "--dlpack", help="Look at the DLPack of a library, by the name of its module; no plugin needed."
)
_MAKE = typer.Option(
    "--make",
    metavar="MODULE:FUNCTION",
    help="With --dlpack: what makes its arrays, if it is not asarray or array.",
)
_CONSUMER = typer.Option(
    "--from-dlpack",
    metavar="MODULE:FUNCTION",
    help="With --dlpack: the consumer, if it is not from_dlpack.",
)
_MARKDOWN = typer.Option("--markdown", help="With --dlpack: print a table in Markdown.")


@reports_errors
def check(
    name: Annotated[str, _NAME],
    *,
    verbose: Annotated[bool, _VERBOSE] = False,
    as_json: Annotated[bool, JSON] = False,
    dlpack: Annotated[bool, _DLPACK] = False,
    make: Annotated[str, _MAKE] = "",
    from_dlpack: Annotated[str, _CONSUMER] = "",
    markdown: Annotated[bool, _MARKDOWN] = False,
) -> None:
    """Test everything that a plugin promises, or with --dlpack what a library's DLPack does."""
    if dlpack:
        options = {"as_json": as_json, "as_markdown": markdown}
        ok = _check_library(name, make=make, from_dlpack=from_dlpack, **options)
        raise typer.Exit(0 if ok else FAILURE)
    from interop.testing import check as check_promises
    from interop.testing._subject import subjects_of

    try:
        subjects_of(name)
    except PluginError as error:
        misused(str(error))
    with bar("checking", hidden=as_json) as progress:
        report = check_promises(name, progress=progress)
    if as_json:
        show_json(report.as_dict())
    else:
        _show(report, verbose=verbose)
    raise typer.Exit(0 if report.ok else FAILURE)


def _show(report: Report, *, verbose: bool) -> None:
    verdict, _, untried = str(report).partition("\n")
    tried, _, untried = untried.partition("not exercised: ")
    verdict, _, never = verdict.partition("; declared and never tried: ")
    for text in (verdict, *tried.splitlines()):
        line(text, "red" if text.startswith("FAILED") else "")
    if verbose and never:
        line(f"declared and never tried: {never}")
    if verbose and untried:
        line(f"not exercised: {untried}")
    if never or untried:
        count = len(report.not_exercised)
        named = (
            "" if verbose else f"'interop check {report.subject} -v' names them with the reasons; "
        )
        line(f"{count} checks were not tried: {named}{_WAYS}")


def _check_library(
    name: str, *, make: str, from_dlpack: str, as_json: bool, as_markdown: bool
) -> bool:
    """Look at a library, print what is found, and return whether nothing is wrong."""
    from interop.testing import check_dlpack

    sys.path.append(os.getcwd())  # a library that is being written need not be installed
    for reference in filter(None, (name, make, from_dlpack)):
        _expect_module(reference.partition(":")[0])
    with bar("checking", hidden=as_json or as_markdown) as progress:
        report = check_dlpack(name, make=make, from_dlpack=from_dlpack, progress=progress)
    if as_json:
        show_json(report.as_dict())
    elif as_markdown:
        show_bytes(report.as_markdown().encode())
    else:
        for text in str(report).splitlines():
            line(text, _STYLES.get(text.partition(":")[0], ""))
    return report.ok


def _expect_module(name: str) -> None:
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):  # its package is not there, or cannot be imported
        spec = None
    if spec is None:
        misused(f"there is no module {name!r} to import here")
