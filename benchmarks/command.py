"""The command ``python -m benchmarks``: measures, shows, compares with what is stored, stores."""

from __future__ import annotations

import argparse
import datetime as dt
import sys
import traceback
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from . import catalogue, picture, render
from .machine import machine
from .ratios import STORE, Stored, check, confirmed, load, save
from .table import Result

__all__ = ["main"]

_ROOT = Path(__file__).parent.parent
_PAGE = _ROOT / "docs" / "reference" / "_benchmarks.md"
_RESULTS = Path(__file__).with_name("results")
#: The modules in the picture for those who meet the library first.
_FIRST = ("zero_copy", "instead", "copies")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    It is 1 if a row has got worse or a table could not be measured, and 2 for an unknown table.
    """
    options = _parser().parse_args(arguments)
    unknown = sorted(set(options.tables) - set(catalogue.MODULES))
    if unknown:
        print(f"there is no table {unknown[0]!r}; there are {', '.join(catalogue.MODULES)}.")
        return 2
    if options.draw:
        _show(load())
        return 0
    _quieten()
    results, failed = _measured(options.tables or _default(options), options.rounds)
    stored = load()
    if options.store and options.tables and stored.tables:
        options.tables = []  # the page is of all tables, whichever of them are renewed
    worse = _compared(stored, results) if options.check else 0
    _keep(stored, results, _line(options), options.store)
    return 1 if worse or failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("tables", nargs="*", help=f"of {', '.join(catalogue.MODULES)}; all if none")
    parser.add_argument("--check", action="store_true", help="fail if a stored ratio got worse")
    parser.add_argument(
        "--store", action="store_true", help="store the ratios, tables and pictures"
    )
    parser.add_argument("--draw", action="store_true", help="draw what is stored; measure nothing")
    parser.add_argument("--rounds", type=int, help="how often to measure each row")
    return parser


def _default(options: argparse.Namespace) -> list[str]:
    """Return all modules, but for a check only those that have ratios."""
    left_out = {"predictions"} if options.check and not options.store else set()
    return [name for name in catalogue.MODULES if name not in left_out]


def _line(options: argparse.Namespace) -> str:
    """Return the command as it was given."""
    flags = [f"--{name}" for name in ("check", "store") if getattr(options, name)]
    flags += [f"--rounds {options.rounds}"] if options.rounds else []
    return " ".join(["python -m benchmarks", *options.tables, *flags])


def _quieten() -> None:
    """Silence what torch announces once a process of features that the rows use."""
    import torch

    warnings.filterwarnings("ignore", message="torch.quantize_per_tensor", category=UserWarning)
    warnings.filterwarnings("ignore", message="Sparse .* tensor support", category=UserWarning)
    warnings.filterwarnings("ignore", message="Sparse invariant checks", category=UserWarning)
    torch.manual_seed(0)


def _measured(modules: Iterable[str], rounds: int | None) -> tuple[list[Result], list[str]]:
    """Return the tables of some modules, and the modules that failed; print each when measured."""
    results: list[Result] = []
    failed = []
    for name in modules:
        try:
            tables = catalogue.measure(name, rounds=rounds)
        except ModuleNotFoundError as error:
            print(f"\n{name} is left out: {error}", flush=True)
            continue
        # One table that fails must not cost the minutes that the others took.
        except Exception:  # noqa: BLE001
            failed.append(name)
            print(f"\n{name} FAILED\n{traceback.format_exc()}", flush=True)
            continue
        for table in tables:
            print(render.terminal(table), flush=True)
        results += tables
    return results, failed


def _compared(stored: Stored, results: list[Result]) -> int:
    """Print the rows that are worse than the stored ones, and return their number."""
    if not stored.tables:
        print("\nnothing is stored to compare with: python -m benchmarks --store")
        return 1
    suspects = check(stored.tables, results)
    if suspects:
        print(f"\n{len(suspects)} rows look worse; measuring them again", flush=True)
    worse = confirmed(suspects, stored.tables, _again)
    rows = sum(len(table.ratios()) for table in results if table.key in stored.tables)
    for finding in worse:
        print(f"WORSE  {finding}", file=sys.stderr)
    print(f"\n{rows} ratios compared with those of {stored.made['date']}; {len(worse)} are worse")
    return len(worse)


def _again(table: str, lines: set[str]) -> list[Result]:
    return catalogue.measure(catalogue.module_of(table), lines)


def _keep(stored: Stored, results: list[Result], command: str, store: bool) -> None:
    """Write the page and the picture, and the ratios if they are to be stored."""
    facts = {"date": dt.date.today().isoformat(), "command": command, "machine": machine()}
    if not store:
        _RESULTS.mkdir(exist_ok=True)
        _write(Stored(facts, _ordered(results)), _RESULTS / "benchmarks.md")
        return
    measured = {catalogue.module_of(table.key) for table in results}
    unmeasured = [
        table for key, table in stored.tables.items() if catalogue.module_of(key) not in measured
    ]
    if unmeasured and facts["machine"] != stored.made["machine"]:  # of which the page tells
        where = f"Measured on {facts['date']} on another machine: {facts['machine']['processor']}."
        results = [table._replace(note=f"{table.note} {where}") for table in results]
        facts = stored.made
    anew = Stored(facts, _ordered([*unmeasured, *results]))
    save(anew.made, anew.tables.values())
    print(f"stored in {STORE.relative_to(_ROOT)}")
    _show(load())


def _ordered(tables: Iterable[Result]) -> dict[str, Result]:
    """Return tables by key, in the order of the catalogue; the later of two with one key counts."""
    by_key = {table.key: table for table in tables}
    order = catalogue.MODULES.index
    return dict(sorted(by_key.items(), key=lambda item: order(catalogue.module_of(item[0]))))


def _show(stored: Stored) -> None:
    _write(stored, _PAGE)


def _write(stored: Stored, page: Path) -> None:
    """Write the page of a run, and beside it the pictures."""
    tables = stored.tables.values()
    page.write_text(render.page(stored.made, tables))
    print(f"written: {page.relative_to(_ROOT)}")
    try:
        picture.overview(tables, page.with_name("benchmarks.png"))
        first = [table for table in tables if catalogue.module_of(table.key) in _FIRST]
        picture.overview(first, page.with_name("benchmarks-first.png"))
        picture.draw(tables, page.with_name("benchmarks-rows.png"))
    except ImportError as error:
        print(f"no picture is drawn: {error}; pip install -e . --group bench")
