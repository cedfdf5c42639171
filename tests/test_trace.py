"""Receipts of what really happened."""

from __future__ import annotations

import threading

import numpy as np

import interop


def test_receipts_say_what_was_done() -> None:
    """One receipt for each conversion: steps, effects, times, bytes and sharing by address."""
    x = np.arange(6.0)
    with interop.trace() as receipts:
        interop.convert(x, to="numpy")
        interop.convert(x, to="numpy", copy=True)
        interop.convert(x[::-1], to="numpy", dtype="float32")
    same, copied, cast = receipts
    assert (same.steps, same.aliased) == ((), True)
    assert (copied.aliased, copied.effects, copied.nbytes) == (False, {"copy"}, 48)
    assert cast.result.dtype == "float32"
    assert len(cast.seconds) == len(cast.steps)
    assert all(s > 0 for s in cast.seconds)


def test_receipts_print_as_a_table() -> None:
    """Printing a trace gives one line for each conversion below a head."""
    with interop.trace() as receipts:
        interop.convert(np.arange(3), to="numpy", copy=True)
    head, line = str(receipts).splitlines()
    assert head.split()[0] == "value"
    assert "copy" in line
    assert line.endswith("no")


def test_a_trace_belongs_to_its_thread() -> None:
    """Conversions of other threads leave no receipt here."""
    with interop.trace() as receipts:
        thread = threading.Thread(target=interop.convert, args=(np.zeros(2), "numpy"))
        thread.start()
        thread.join()
    assert receipts == []
