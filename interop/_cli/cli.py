"""The command ``interop``.

Exit codes: 0, it is done, and nothing is wrong; 1, something is wrong, or it could not be done, and
the reason is printed; 2, the command line is wrong, or the command needs something that is not
installed; 130, interrupted.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer import Typer

#: What the extra `cli` installs.
_NEEDED = ("typer", "rich", "platformdirs", "packaging")
_MISSING = (
    "interop {version}: all but --version needs {names}, not installed here: "
    "pip install 'array-interop[cli]'"
)
_TORN = "files of array-interop are missing: pip install --force-reinstall --no-deps array-interop"


def main() -> None:
    """Run the command; the entry point of the distribution."""
    if "_modules" not in vars(sys.modules["interop"]):
        from interop._registry.installed import rival

        print(f"interop: {rival('interop') or _TORN}", file=sys.stderr)
        raise SystemExit(2)
    from interop._model.suggestion import listed
    from interop._registry.installed import importable
    from interop._version import __version__

    if sys.argv[1:] == ["--version"]:
        print(f"interop {__version__}")
        return
    missing = [name for name in _NEEDED if not importable(name)]
    if missing:
        print(_MISSING.format(version=__version__, names=listed(missing)), file=sys.stderr)
        raise SystemExit(2)
    from .output import claim_standard_streams

    app = _app()
    claim_standard_streams()
    try:
        app(prog_name="interop")
    finally:
        sys.stdout = sys.stderr  # libraries print while the process ends


def _app() -> Typer:
    import typer

    from .about import about
    from .calibration import calibrate
    from .doctor import check, doctor
    from .graph import graph
    from .listings import conversions, formats, plugins
    from .output import Commands
    from .plan import PlanCommand, plan

    app = typer.Typer(
        cls=Commands,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(about)
    app.command(cls=PlanCommand)(plan)
    for command in (doctor, formats, conversions, plugins, graph, check, calibrate):
        app.command()(command)
    return app


if __name__ == "__main__":
    main()
