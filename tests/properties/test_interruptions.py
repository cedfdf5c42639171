"""Ctrl-C at any line: what was interrupted can be done again, and everything else is as before."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.properties.effort import SEED, count

pytestmark = pytest.mark.slow

#: Interrupts some work the first time that it comes to a line of interop, for a share of all lines.
PROGRAM = """
    import os, random, sys
    import numpy as np
    import scipy.sparse
    import interop

    FOLDER = os.path.dirname(interop.__file__)

    class Interrupter:
        def __init__(self, nth):
            self.lines, self.nth, self.interrupted = dict(), nth, False

        def calls(self, frame, event, argument):
            return self.steps if frame.f_code.co_filename.startswith(FOLDER) else None

        def steps(self, frame, event, argument):
            line = os.path.relpath(frame.f_code.co_filename, FOLDER), frame.f_lineno
            if event == "line" and line not in self.lines:
                self.lines[line] = len(self.lines)
                if len(self.lines) - 1 == self.nth:
                    self.interrupted = True
                    raise KeyboardInterrupt
            return self.steps

    def interrupt(work, nth=None):
        interrupter = Interrupter(nth)
        sys.settrace(interrupter.calls)
        try:
            work()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        return interrupter

    array = np.arange(12.0).reshape(3, 4)
    csr = scipy.sparse.csr_array(array)

    def convert(instance):
        out = np.zeros((3, 4), "float32")
        results = [
            instance.convert(csr, to="numpy"),
            instance.convert(csr, to="numpy", dtype="float32"),
            instance.convert(array, to="python"),
            instance.convert(array, to="scipy.csc").toarray(),
            instance.convert(csr, out=out),
        ]
        return [np.asarray(result).tolist() for result in results]

    def planned():
        instance = interop.Interop()
        instance.plugins()
        return instance

    def warm():
        instance = planned()
        convert(instance), convert(instance)
        return instance

    rng, share = random.Random({seed}), {share}
    expected = convert(interop.Interop())
    for make in (interop.Interop, planned, warm):
        instance = make()
        total = len(interrupt(lambda: convert(instance)).lines)
        interrupted = 0
        for nth in sorted(rng.sample(range(total), min(share, total))):
            instance = make()
            interrupter = interrupt(lambda: convert(instance), nth)
            interrupted += interrupter.interrupted
            line = [*interrupter.lines][-1]
            states = {{plugin.state for plugin in instance.plugins()}}
            assert states <= {{"loaded", "blocked"}}, (make, line, states)
            for _ in range(2):
                assert convert(instance) == expected, (make, line)
        assert interrupted > min(share, total) // 2, (make, interrupted)
    print("done")
"""


def test_an_interruption_at_any_line_leaves_everything_in_order(
    in_subprocess: Callable[..., str],
) -> None:
    """Whichever line of loading, planning or converting Ctrl-C hits, what comes next is right."""
    heavy = "torch,jax,tensorflow,pandas,polars,pyarrow,dask,xarray,onnxruntime,mlx,torchao,cupy"
    program = PROGRAM.format(
        seed=SEED + 5, share=min(count(25), 100)
    )  # what two minutes suffice for
    assert in_subprocess(program, INTEROP_DISABLE_PLUGINS=heavy) == "done\n"
