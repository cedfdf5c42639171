"""How bytes and times are shown."""

from __future__ import annotations

import pytest

from interop._model.display import duration, readable


@pytest.mark.parametrize(
    ("nbytes", "text"), [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (2**50, "1024.0 TiB")]
)
def test_bytes_are_readable(nbytes: int, text: str) -> None:
    """Bytes are shown in binary units, with one decimal."""
    assert readable(nbytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 µs"),
        (1.234e-6, "1.23 µs"),
        (0.5, "500 ms"),
        (2.0, "2 s"),
        (9.996e-4, "1 ms"),
        (0.9996, "1 s"),
    ],
)
def test_times_are_readable(seconds: float, text: str) -> None:
    """A time has three digits and the unit that suits it."""
    assert duration(seconds) == text
