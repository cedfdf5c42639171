"""Liars that end the process, or change it."""

from __future__ import annotations

import ctypes
import gc
import os
import random
import sys
import warnings
from typing import Any

from interop import Interop
from tests.lying_plugins import Contained, Unseen, table
from tests.lying_plugins.grid import Grid, conversion_liar, copy, format_liar


def _copy_one(mine: Interop) -> object:
    import numpy as np

    return mine.convert(Grid(np.ones(3)), "grid", copy=True)


@format_liar("fill", "fill", "status 3")
def fill_exits(out: Grid, grid: Grid) -> None:
    """Ends the process in fill."""
    os._exit(3)


def _call(grid: Grid) -> Grid:
    return _call(grid)


@conversion_liar("copy", Contained(_copy_one, "recurses"), name="recurses")
def recurses(grid: Grid) -> Grid:
    """Calls itself for ever."""
    return _call(grid)


@conversion_liar("copy", "state", "prints 'copying'")
def prints(grid: Grid) -> Grid:
    """Prints."""
    print("copying")
    return copy(grid)


@conversion_liar("copy", "state", "prints 'copying'")
def prints_to_stderr(grid: Grid) -> Grid:
    """Prints to stderr."""
    print("copying", file=sys.stderr)
    return copy(grid)


@conversion_liar("copy", "state", "Python's random numbers")
def seeds(grid: Grid) -> Grid:
    """Seeds random numbers."""
    random.seed(0)
    return copy(grid)


@conversion_liar("copy", "state", "changes NumPy's random numbers")
def seeds_numpy(grid: Grid) -> Grid:
    """Seeds the random numbers of NumPy."""
    import numpy as np

    np.random.seed(0)
    return copy(grid)


@conversion_liar("copy", "state", "the working directory")
def moves(grid: Grid) -> Grid:
    """Changes the folder."""
    os.chdir("/")
    return copy(grid)


@conversion_liar("copy", "state", "filters of")
def ignores_warnings(grid: Grid) -> Grid:
    """Silences warnings."""
    warnings.simplefilter("ignore")
    return copy(grid)


@conversion_liar("copy", "state", "changes what NumPy does about errors")
def sets_errors(grid: Grid) -> Grid:
    """Silences NumPy."""
    import numpy as np

    np.seterr(all="ignore")
    return copy(grid)


@conversion_liar("copy", "state", "changes the environment")
def sets_a_variable(grid: Grid) -> Grid:
    """Sets GRID."""
    os.environ["GRID"] = "1"
    return copy(grid)


@conversion_liar("copy", "state", "warns: grids are old")
def warns(grid: Grid) -> Grid:
    """Warns of nothing."""
    warnings.warn("grids are old", stacklevel=2)
    return copy(grid)


@conversion_liar("copy", "state", "warns: grids are old")
def warns_of_deprecation(grid: Grid) -> Grid:
    """Warns of nothing, in a class that Python hides."""
    warnings.warn("grids are old", DeprecationWarning, stacklevel=1)
    return copy(grid)


@conversion_liar("copy", "state", "collection")
def stops_collecting(grid: Grid) -> Grid:
    """Stops the collector."""
    gc.disable()
    return copy(grid)


@conversion_liar("copy", "state", "recursion")
def limits_recursion(grid: Grid) -> Grid:
    """Sets a limit."""
    sys.setrecursionlimit(sys.getrecursionlimit() + 1)
    return copy(grid)


@conversion_liar("copy", Unseen("Leaks of memory that belongs to no value"))
def leaks_a_buffer(grid: Grid) -> Grid:
    """Asks for memory that nobody frees."""
    libc: Any = ctypes.CDLL(None)
    libc.malloc(64)
    return copy(grid)


LIARS = table(globals())
