"""Warnings for the caller: they name a line of the user's, or none where there is none."""

from __future__ import annotations

from typing import Any


def test_a_warning_where_no_line_is_the_users_is_a_warning(in_subprocess: Any) -> None:
    """What a thread or an exit handler calls at once has no line of the user's above it."""
    printed = in_subprocess("""
        import _thread, atexit, time, warnings
        import numpy as np
        import interop

        told = []
        warnings.showwarning = lambda message, *where: told.append(str(message))
        warnings.simplefilter("always")
        request = (interop.convert, (np.array([1 + 2j]), "numpy"), {"dtype": "float32"})
        atexit.register(lambda: print(len(told)))
        atexit.register(request[0], *request[1], **request[2])
        _thread.start_new_thread(*request)
        end = time.monotonic() + 30
        while not told and time.monotonic() < end:
            time.sleep(0.01)
        assert "imaginary part" in told[0]
    """)
    assert printed.split() == ["2"]
