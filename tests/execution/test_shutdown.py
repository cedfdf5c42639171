"""The end of a process: conversions from handlers at exit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

#: Converts once everything is being taken apart, or says what it was refused.
LATE = """
    import atexit, sys
    import numpy as np
    import interop
    if {warm}:
        interop.convert(np.arange(3.0), to="python")
        interop.convert([1.0, 2.0], to="numpy", dtype="float32")

    def convert(source):
        try:
            array = interop.convert([1.0, 2.0], to="numpy", dtype="float32")
            numbers = interop.convert(np.arange(3.0), to="python")
            assert (array.tolist(), numbers) == ([1.0, 2.0], [0.0, 1.0, 2.0])
        except (interop.errors.InteropError, ImportError, AttributeError, TypeError) as error:
            print(source, "refused", type(error).__name__, flush=True)
        except RuntimeError as error:  # no thread can be started any more
            print(source, "refused", error, flush=True)
        else:
            print(source, "right", flush=True)

    class Late:
        convert = staticmethod(convert)  # what globals name may be gone
        def __del__(self):
            self.convert("__del__")

    atexit.register(convert, "atexit")
    kept = Late()
    sys.modules["a_module_that_keeps_it"] = kept
"""


@pytest.mark.parametrize("warm", [False, True])
def test_a_conversion_at_exit_does_not_crash(in_subprocess: Callable[..., str], warm: bool) -> None:
    """A handler at exit converts, the first time, too; a finalizer converts or is refused."""
    lines = in_subprocess(LATE.format(warm=warm)).splitlines()
    assert lines[0] == "atexit right"
    assert lines[1].startswith(("__del__ right", "__del__ refused"))
    assert len(lines) == 2
