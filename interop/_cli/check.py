"""The command ``check``: what a plugin promises, or how a library keeps the DLPack standard."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from interop._api.default import default
from interop.errors import PluginError
from interop.testing._report import ADVICE

from .output import FAILURE, JSON, bar, line, misused, reports_errors, show_bytes, show_json

if TYPE_CHECKING:
    from interop.testing import Report
    from interop.testing._check import Progress

_STYLES = {"FAILED ": "red", f"{ADVICE}: ": "yellow"}
#: How those checks can be tried that were not.
_WAYS = (
    "what is missing here has to be installed, and a format has to say how to make such a value: "
    "Samples(make=…, variants=…)"
)
_NO_ARRAYS = "the library makes no such arrays, or not by --make"


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
_MARKDOWN = typer.Option("--markdown", help="Print what did not pass as a table in Markdown.")


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
    with bar("checking", hidden=as_json or markdown) as progress:
        if dlpack:
            report = _of_library(name, progress, make=make, from_dlpack=from_dlpack)
        else:
            report = _of_plugin(name, progress)
    if as_json:
        show_json(report.as_dict())
    elif markdown:
        show_bytes(report.as_markdown().encode())
    else:
        command = f"interop check {name}" + " --dlpack" * dlpack
        _show(report, _NO_ARRAYS if dlpack else _WAYS, "" if verbose else command)
    raise typer.Exit(0 if report.ok else FAILURE)


def _of_plugin(name: str, progress: Progress) -> Report:
    from interop.testing import check
    from interop.testing._subject import subjects_of

    try:
        subjects_of(name)
    except PluginError as error:
        misused(str(error))
    return check(name, progress=progress)


def _of_library(name: str, progress: Progress, **functions: str) -> Report:
    from interop.testing import check_dlpack

    sys.path.append(os.getcwd())  # a library that is being written need not be installed
    for reference in filter(None, (name, *functions.values())):
        _expect_module(reference.partition(":")[0])
    return check_dlpack(name, **functions, progress=progress)


def _show(report: Report, ways: str, command: str) -> None:
    """Print a report; `command` is what names the checks that were not tried, "" to name them."""
    verdict, _, untried = str(report).partition("\n")
    tried, _, untried = untried.partition("not exercised: ")
    verdict, _, never = verdict.partition("; declared and never tried: ")
    for text in (verdict, *tried.splitlines()):
        line(text, next((_STYLES[start] for start in _STYLES if text.startswith(start)), ""))
    if never and not command:
        line(f"declared and never tried: {never}")
    for text in f"not exercised: {untried}".splitlines() if untried and not command else ():
        line(text)
    if never or untried:
        named = f"'{command} -v' names them with the reasons; " if command else ""
        line(f"{len(report.not_exercised)} checks were not tried: {named}{ways}")


def _expect_module(name: str) -> None:
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):  # its package is not there, or cannot be imported
        spec = None
    if spec is None:
        misused(f"there is no module {name!r} to import here")
