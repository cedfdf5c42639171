"""Results that do not fit, of every kind of call, under a limit of the system (``ulimit -v``), in a program of its own."""

from __future__ import annotations

import json
import resource
import sys
import traceback
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import interop
from interop.errors import DoesNotFitError

#: Elements of what does not fit again; 64 MiB as float64, or as pointers to Python's numbers.
MANY = 2**23
#: Bytes that are left when it is tried.
LEFT = 2**25

NUMBERS = [0.5] * MANY
MIXTURE = [1, *NUMBERS[1:]]
ROWS = [[0.5] * 2**12] * 2**11
ARRAY = np.zeros(MANY)
OUT = np.zeros(MANY, "float32")
TO_NUMPY, TO_LIST = interop.converter("numpy"), interop.converter("python")


@interop.accepts("numpy", lists=True)
def total(array: Any) -> float:
    """Return the sum of an array or a list."""
    return float(array.sum())


def calls_of_lists() -> dict[str, Callable[[], Any]]:
    """Return calls that read a list of numbers, or make one."""
    return {
        "spec": lambda: interop.spec(NUMBERS),
        "plan": lambda: interop.plan(NUMBERS, to="numpy"),
        "convert": lambda: interop.convert(NUMBERS, to="numpy"),
        "rows": lambda: interop.convert(ROWS, to="numpy"),
        "a mixture": lambda: interop.convert(MIXTURE, to="numpy"),
        "dtype": lambda: interop.convert(NUMBERS, to="numpy", dtype="float16"),
        "converter": lambda: TO_NUMPY(NUMBERS),
        "tree": lambda: interop.convert_tree({"a": NUMBERS}, to="numpy", lists="arrays"),
        "accepts": lambda: total(NUMBERS),
        "out": lambda: interop.convert(NUMBERS, out=OUT),
        "to a list": lambda: interop.convert(ARRAY, to="python"),
        "converter to a list": lambda: TO_LIST(ARRAY),
        "tree to lists": lambda: interop.convert_tree({"a": ARRAY}, to="python"),
        "view to a list": lambda: interop.convert(memoryview(ARRAY), to="python"),
    }


def calls_of_arrays() -> dict[str, Callable[[], Any]]:
    """Return calls that copy an array of some framework."""
    calls: dict[str, Callable[[], Any]] = {
        "copy": lambda: interop.convert(ARRAY, to="numpy", copy=True),
        "cast": lambda: interop.convert(ARRAY, to="numpy", dtype="complex64"),
        "tree of copies": lambda: interop.convert_tree([ARRAY], to="numpy", copy=True),
    }
    if find_spec("scipy"):
        from scipy.sparse import csr_array

        sparse = csr_array((ARRAY, np.arange(MANY, dtype="int32"), [0, MANY]), shape=(1, MANY))
        calls["to columns"] = lambda: interop.convert(sparse, to="scipy.csc")
        calls["densify"] = lambda: interop.convert(sparse, to="numpy", allow="densify")
        interop.convert(csr_array(np.eye(2)), to="scipy.csc")
    for name in ("pandas.series", "polars.series", "torch"):
        if find_spec(name.partition(".")[0]):
            interop.convert(np.zeros(2), to=name, copy=True)
            calls[f"to {name}"] = lambda name=name: interop.convert(ARRAY, to=name, copy=True)  # type: ignore[misc]
            calls[f"list to {name}"] = lambda name=name: interop.convert(NUMBERS, to=name)  # type: ignore[misc]
    return calls


def learn_fast_paths() -> None:
    """Make the calls with values that fit."""
    few = np.zeros(1)
    for _ in range(4):
        TO_NUMPY([0.5])
        TO_LIST(few)
        total([0.5])
        interop.convert([0.5], to="numpy")
        interop.convert([0.5], to="numpy", dtype="float16")
        interop.convert(few, to="python")
        interop.convert([0.5], out=np.zeros(1, "float32"))
        interop.convert_tree({"a": few}, to="python")
        interop.convert_tree({"a": [0.5]}, to="numpy", lists="arrays")


def main(kind: str) -> None:
    """Try the calls of a kind with too little memory left, and print what each has raised."""
    warnings.simplefilter("ignore")
    calls = {"lists": calls_of_lists, "arrays": calls_of_arrays}[kind]()
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + LEFT, hard))
    raised = {}
    for name, call in calls.items():
        print(name, file=sys.stderr, flush=True)
        for again in ("", " again"):
            learn_fast_paths()
            try:
                call()
                raised[name + again] = "nothing"
            except Exception as error:  # noqa: BLE001 - reported
                raised[name + again] = type(error).__name__
                if not isinstance(error, DoesNotFitError):
                    traceback.print_exc()
    print(json.dumps(raised))


if __name__ == "__main__":
    main(sys.argv[1])
