"""State: what a call must not change in its process, and what must be gone after it."""

from __future__ import annotations

import gc
import io
import os
import random
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from functools import partial
from typing import Literal

from interop._model.typing import Value

from ._calls import ConversionCase
from ._sample import first_line
from ._table import CONVERSION, Untried, check

#: A seed that nobody else uses, and two settings: a function that sets either changes something.
_SEED = 20_011
_ERRORS: tuple[Literal["ignore", "warn"], ...] = ("ignore", "warn")
#: The state at the start. Frameworks set variables when they are imported, and only then.
_ENVIRONMENT, _FOLDER = dict(os.environ), os.getcwd()
#: How often a value is made and converted; a leak grows by at least as much.
_CALLS = 4


@check(CONVERSION, "a call changes nothing of its process, and prints and warns of nothing")
def state(case: ConversionCase) -> str:
    """Call the conversion in two different states of the process."""
    value, step = case.value(case.main)
    environment, folder = dict(os.environ), os.getcwd()
    collects, limit = gc.isenabled(), sys.getrecursionlimit()
    try:
        for errors in _ERRORS:
            if problem := _problem(partial(case.call, step, value), errors):
                return f"{case.label} {problem}"
    finally:
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(folder)
        sys.setrecursionlimit(limit)
        if collects:
            gc.enable()
    return ""


def _problem(call: Callable[[], Value], errors: Literal["ignore", "warn"]) -> str:
    import numpy as np

    output = io.StringIO()
    with ExitStack() as stack:
        stack.enter_context(np.errstate(all=errors))
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        stack.enter_context(redirect_stdout(output))
        stack.enter_context(redirect_stderr(output))
        warnings.simplefilter("always")
        _prepare()
        before = _state()
        call()
        after = _state()
    changed = next((name for name in before if before[name] != after[name]), None)
    if changed is not None:
        return f"changes {changed}"
    if output.getvalue():
        return f"prints {first_line(output.getvalue())!r}"
    return f"warns: {first_line(caught[0].message)}" if caught else ""


def _prepare() -> None:
    import numpy as np

    random.seed(_SEED)
    np.random.seed(_SEED)
    for name in os.environ.keys() - _ENVIRONMENT.keys():
        del os.environ[name]
    os.environ.update(_ENVIRONMENT)
    os.chdir(_FOLDER)
    gc.enable()


def _state() -> dict[str, object]:
    """Return what a program may set, by the names that messages use."""
    import numpy as np

    numpys = np.random.get_state(legacy=False)["state"]
    return {
        "the environment": dict(os.environ),
        "the working directory": os.getcwd(),
        "Python's random numbers": random.getstate(),
        "NumPy's random numbers": (numpys["key"].tobytes(), numpys["pos"]),
        "what NumPy does about errors": tuple(np.geterr().items()),
        "the filters of warnings": list(warnings.filters),
        "the collection of garbage": (gc.isenabled(), gc.get_threshold()),
        "the limit of recursion": sys.getrecursionlimit(),
        "the switch interval": sys.getswitchinterval(),
    }


# ---------------------------------------------------------------------- what is left behind


@check(CONVERSION, "when its result is gone, no value, thread or open file stays behind")
def leaks(case: ConversionCase) -> str:
    """Call the conversion several times, and count what grows."""

    def make() -> Value:
        return case.value(case.main)[0]

    call = partial(case.call, case.value(case.main)[1])
    call(make())  # the first call may import, and start threads that serve all later ones
    if remnant := _remnant(make, lambda value: value):
        return Untried(f"{case.label} is tried with values whose makers leave {remnant} behind")
    remnant = _remnant(make, call)
    return f"{case.label} leaves {remnant} behind when nobody else holds them" if remnant else ""


def _remnant(make: Callable[[], Value], call: Callable[[Value], Value]) -> str:
    """Return what grows with every call; "" if nothing does."""
    before = _count()
    values: list[weakref.ref[Value]] = []
    results: list[weakref.ref[Value]] = []
    for _ in range(_CALLS):
        value = make()
        result = call(value)
        _remember(values, value)
        if result is not value:
            _remember(results, result)
        del value, result
    gc.collect(1)  # the objects of these calls are young
    for kind, references in (("its sources", values), ("its results", results)):
        if len(references) == _CALLS and all(ref() is not None for ref in references):
            return kind
    growing = (kind for kind, count in _count().items() if count - before[kind] >= _CALLS)
    return next(growing, "")


def _remember(references: list[weakref.ref[Value]], value: Value) -> None:
    try:
        references.append(weakref.ref(value))
    except TypeError:  # some types allow no weak references
        return


def _count() -> dict[str, int]:
    """Return the numbers of threads and, if the system tells, of open files."""
    try:
        files = len(os.listdir("/proc/self/fd"))
    except OSError:
        files = 0
    return {"threads": threading.active_count(), "open files": files}
