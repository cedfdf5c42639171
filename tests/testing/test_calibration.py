"""Calibration: what is measured, and in which memory."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import interop
from interop import Conversion, Cost, Format, Interop
from interop._registry import costs as stored_costs
from interop.testing import _calibration as measure
from interop.testing._calibration import calibrate


def _formats(loaded: Interop) -> list[Format]:
    names = ("numpy", "array_interface")
    return [declared.format for declared in loaded.formats() if declared.name in names]


def _conversions(loaded: Interop) -> list[Conversion]:
    """Return what makes a plain sample, and what it can become."""
    pairs = {("array_interface", "numpy"), ("numpy", "numpy")}
    conversions = (declared.conversion for declared in loaded.conversions())
    return [c for c in conversions if (c.source, c.target) in pairs]


@pytest.mark.slow
def test_what_is_measured_is_the_call(loaded: Interop) -> None:
    """A conversion that sleeps costs what it sleeps; one that refuses is left out, with the reason."""

    def refuses(value: Any) -> Any:
        raise interop.errors.Declined("never on a Saturday")

    def naps(value: Any) -> Any:
        time.sleep(2e-3)
        return value

    common: dict[str, Any] = {"dtypes": {"float32"}, "drops": {"nap"}}
    mine = Interop(plugins=False)
    mine.register(*_formats(loaded), *_conversions(loaded))
    mine.register(
        Conversion("numpy", "numpy", naps, name="nap", **common),
        Conversion("numpy", "numpy", refuses, name="refuses", **common),
        Conversion("numpy", "elsewhere", refuses),
    )
    calls: list[tuple[int, int, str]] = []
    calibration = calibrate(mine, lambda *call: calls.append(call), budget=30)
    assert 2e-3 <= calibration.costs["run time: numpy → numpy: nap"].latency < 2e-2
    assert "never on a Saturday" in calibration.skipped["run time: numpy → numpy: refuses"]
    assert "elsewhere" in calibration.skipped["run time: numpy → elsewhere: refuses"]
    assert calls[0][0] == 0
    assert calls[-1][0] == calls[-1][1]
    copy = calibration.costs["run time: numpy → numpy: copy"]
    assert copy.bandwidth is not None
    assert 1e8 < copy.bandwidth < 2e11
    assert copy.latency < 1e-3
    assert stored_costs.decoded(stored_costs.encoded(calibration.costs)) == calibration.costs


def test_large_results_are_measured_in_fresh_memory(
    loaded: Interop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each timed call on a large sample, and no other, free memory goes back to the system."""
    events: list[int | str] = []

    def copies(value: np.ndarray) -> np.ndarray:
        events.append(value.nbytes)
        return value.copy()

    monkeypatch.setattr(measure, "give_back", lambda: events.append("back"))
    mine = Interop(plugins=False)
    mine.register(
        *_formats(loaded),
        *(conversion for conversion in _conversions(loaded) if not conversion.changes),
        Conversion("numpy", "numpy", copies, effects={"copy"}, cost=Cost(1e-6, 1e9), name="copies"),
    )
    calibrate(mine, lambda *_: events.append("sample"), budget=30)
    sizes = [event for event in events if isinstance(event, int)]
    largest = max(sizes)
    assert largest >= 2**25
    timed = [after for event, after in pairwise(events) if event == "back" and after in sizes]
    assert set(timed) == {largest}
    assert len(timed) >= 2
    assert events.count(largest) - len(timed) == 1  # the call by which it is judged


def test_a_conversion_that_no_sample_fits_is_left_out(loaded: Interop) -> None:
    """One of more axes than samples of its source have keeps its declared cost, with a reason."""
    mine = Interop(plugins=False)
    rows = [format_._replace(ndims=frozenset({1})) for format_ in _formats(loaded)]
    planes = Conversion("numpy", "numpy", np.copy, ndims={2}, effects={"copy"}, name="planes")
    mine.register(*rows, *_conversions(loaded), planes)
    assert "axes" in calibrate(mine, budget=0).skipped["run time: numpy → numpy: planes"]


@pytest.mark.slow
def test_no_time_is_no_measurement() -> None:
    """When the time is up, what is left keeps its declared cost."""
    calibration = calibrate(Interop(costs={}), budget=0)
    assert not any("→" in key for key in calibration.costs)
    copy = "array-interop: numpy → numpy: copy"
    assert "there was no time left" in calibration.skipped[copy]
