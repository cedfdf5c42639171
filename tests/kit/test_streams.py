"""Streams: the handle of whatever a caller names as the stream to work on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from interop.kit import stream_handle


@pytest.mark.parametrize(
    "stream",
    [1234, SimpleNamespace(__cuda_stream__=lambda: (0, 1234))],
    ids=["number", "protocol"],
)
def test_a_handle_is_read_from_whatever_has_one(stream: Any) -> None:
    """A stream may be given as its handle, or as an object with the protocol."""
    assert stream_handle(stream) == 1234
