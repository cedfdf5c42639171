"""The command ``interop``.

Exit codes: 0, it is done, and nothing is wrong; 1, something is wrong, or it could not be done, and
the reason is printed; 2, the command line is wrong, or the command needs something that is not
installed; 130, interrupted.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

from .streams import claim_standard_streams, ends_in_order

if TYPE_CHECKING:
    from typer import Typer

#: What the extra `cli` installs, and what the distribution itself does.
_NEEDED = ("pluggy", "typer", "rich", "packaging")
_MISSING = "all but --version needs {names}, not installed here: {install}"
_TORN = "files of array-interop are missing: {install}"


def main() -> None:
    """Run the command; the entry point of the distribution."""
    with ends_in_order():
        claim_standard_streams()
        try:
            _run(sys.argv[1:])
        finally:
            sys.stdout = sys.stderr  # libraries print while the process ends


def _run(words: list[str]) -> None:
    as_json = "--json" in words
    if "_modules" not in vars(sys.modules["interop"]):
        from importlib.metadata import packages_distributions

        from interop._model.provenance import how_to_install, rival

        text = rival(packages_distributions().get("interop", ())) or _TORN.format(
            install=how_to_install(anew=True)
        )
        _refuse(text, as_json=as_json)
    from interop._model.provenance import how_to_install
    from interop._model.text import listed
    from interop._recognition.installed import importable
    from interop._version import __version__

    if words == ["--version"]:
        print(f"interop {__version__}", flush=True)
        return
    missing = [name for name in _NEEDED if not importable(name)]
    if missing:
        text = _MISSING.format(names=listed(missing), install=how_to_install("cli"))
        _refuse(text, as_json=as_json)
    _app()(prog_name="interop")


def _refuse(reason: str, *, as_json: bool) -> NoReturn:
    """Report why no command can be run, as all commands report what they need."""
    from interop._text import json_text, legible

    if as_json:
        print(json_text({"error": reason}, 1), flush=True)
    print(f"interop: {legible(reason)}", file=sys.stderr)
    raise SystemExit(2)


def _app() -> Typer:
    import typer

    from .about import about
    from .check import check
    from .doctor import doctor
    from .graph import graph
    from .listings import conversions, formats, plugins
    from .output import Commands
    from .plan import PlanCommand, plan

    app = typer.Typer(
        cls=Commands,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(about)
    app.command(cls=PlanCommand)(plan)
    for command in (doctor, formats, conversions, plugins, graph, check):
        app.command()(command)
    return app


if __name__ == "__main__":
    main()
