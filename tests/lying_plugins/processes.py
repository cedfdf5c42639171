"""Liars that end the process, or change it."""

from __future__ import annotations

import ctypes
import gc
import os
import random
import sys
import warnings
from typing import Any

from tests.lying_plugins.classes import Caught, Contained, Liar, Unseen, table
from tests.lying_plugins.grid import Grid, changed, conversions, copy, grid_format


def _exits_at_once(grid: Grid) -> Grid:
    os._exit(7)


def _aborts(grid: Grid) -> Grid:
    os.abort()


def _reads_nowhere(grid: Grid) -> Grid:
    ctypes.string_at(1, 8)
    return grid


def _recurses(grid: Grid) -> Grid:
    return _recurses(grid)


def _prints_to_stderr(grid: Grid) -> Grid:
    print("copying", file=sys.stderr)
    return copy(grid)


def _seeds(grid: Grid) -> Grid:
    random.seed(0)
    return copy(grid)


def _moves(grid: Grid) -> Grid:
    os.chdir("/")
    return copy(grid)


def _ignores_warnings(grid: Grid) -> Grid:
    warnings.simplefilter("ignore")
    return copy(grid)


def _sets_errors(grid: Grid) -> Grid:
    import numpy as np

    np.seterr(all="ignore")
    return copy(grid)


def _stops_collecting(grid: Grid) -> Grid:
    gc.disable()
    return copy(grid)


def _sets_a_variable(grid: Grid) -> Grid:
    os.environ["GRID"] = "1"
    return copy(grid)


def _raises_a_warning(grid: Grid) -> Grid:
    warnings.warn("grids are old", DeprecationWarning, stacklevel=1)
    return copy(grid)


def _limits_recursion(grid: Grid) -> Grid:
    sys.setrecursionlimit(sys.getrecursionlimit() + 1)
    return copy(grid)


def _leaks_a_buffer(grid: Grid) -> Grid:
    libc: Any = ctypes.CDLL(None)
    libc.malloc(64)
    return copy(grid)


def _copying(name: str, lie: str, function: Any, check: str, text: str) -> Liar:
    fate = Caught("grid → grid: copy", check, text)
    return Liar(name, lie, fate, lambda: [grid_format(), *changed("copy", function=function)])


def _filling(name: str, lie: str, function: Any, text: str) -> Liar:
    fate = Caught("format grid", "fill", text)
    plain = conversions()
    return Liar(name, lie, fate, lambda: [grid_format(fill=function), *plain])


def _contained(name: str, lie: str, function: Any) -> Liar:
    import numpy as np

    fate = Contained(lambda mine: mine.convert(Grid(np.ones(3)), "grid", copy=True), name)
    changes = {"function": function, "name": name}
    return Liar(name, lie, fate, lambda: [grid_format(), *changed("copy", **changes)])


LIARS = table(
    __name__,
    _copying("exits_at_once", "Ends the process.", _exits_at_once, "values", "status 7 when copy"),
    _copying("aborts", "Aborts the process.", _aborts, "values", "died of SIGABRT when copy"),
    _copying("reads_nowhere", "Reads no memory.", _reads_nowhere, "values", "SIGSEGV when copy"),
    _filling("fill_exits", "Ends the process in fill.", lambda *_: os._exit(3), "status 3"),
    _contained("recurses", "Calls itself for ever.", _recurses),
    _copying("prints_to_stderr", "Prints.", _prints_to_stderr, "state", "prints 'copying'"),
    _copying("seeds", "Seeds random numbers.", _seeds, "state", "Python's random numbers"),
    _copying("moves", "Changes the folder.", _moves, "state", "the working directory"),
    _copying("ignores_warnings", "Silences warnings.", _ignores_warnings, "state", "filters of"),
    _copying("sets_errors", "Silences NumPy.", _sets_errors, "state", "what NumPy does"),
    _copying("sets_a_variable", "Sets GRID.", _sets_a_variable, "state", "the environment"),
    _copying("raises_a_warning", "Warns.", _raises_a_warning, "state", "warns: grids are old"),
    _copying("stops_collecting", "Stops the collector.", _stops_collecting, "state", "collection"),
    _copying("limits_recursion", "Sets a limit.", _limits_recursion, "state", "recursion"),
    Liar(
        "leaks_a_buffer",
        "Asks for memory that nobody frees.",
        Unseen("Leaks of memory that belongs to no value"),
        lambda: [grid_format(), *changed("copy", function=_leaks_a_buffer)],
    ),
)
