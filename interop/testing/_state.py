"""State: the parts of the process that a call must not change."""

from __future__ import annotations

import gc
import io
import os
import random
import sys
import warnings
from collections.abc import Callable
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from typing import Literal

from interop._model.typing import Value

#: A seed that nobody else uses, and two settings: a function that sets either changes something.
_SEED = 20_011
_ERRORS: tuple[Literal["ignore", "warn"], ...] = ("ignore", "warn")
#: The state at the start. Frameworks set variables when they are imported, and only then.
_ENVIRONMENT, _FOLDER = dict(os.environ), os.getcwd()


def problem_of_state(label: str, call: Callable[[], Value]) -> str:
    """Say what a call changes in its process, prints or warns of; "" if nothing.

    Parameters
    ----------
    label : str
    call : callable
        It is called twice, in two different states.
    """
    environment, folder = dict(os.environ), os.getcwd()
    collects, limit = gc.isenabled(), sys.getrecursionlimit()
    try:
        for errors in _ERRORS:
            if problem := _problem(call, errors):
                return f"{label} {problem}"
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
        return f"prints {output.getvalue().strip().partition(chr(10))[0]!r}"
    return f"warns: {str(caught[0].message).partition(chr(10))[0]}" if caught else ""


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
