"""Streams: the handle of whatever a caller names as the stream to work on."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from interop.errors import BadRequestError
from interop.kit import stream_handle


@pytest.mark.parametrize(
    "stream",
    [1234, SimpleNamespace(__cuda_stream__=lambda: (0, 1234))],
    ids=["number", "protocol"],
)
def test_a_handle_is_read_from_whatever_has_one(stream: Any) -> None:
    """A stream may be given as its handle, or as an object with the protocol."""
    assert stream_handle(stream) == 1234


@pytest.mark.parametrize(
    "odd",
    [
        "side",
        -1,
        SimpleNamespace(__cuda_stream__=lambda: (0, "x")),
        SimpleNamespace(cuda_stream=1234, ptr=1234),
    ],
    ids=["text", "negative", "no number", "attributes"],
)
def test_streams_refuse_objects_without_a_handle(odd: Any) -> None:
    """What has no handle is refused, DLPack's -1 and mere attributes included; the message says what to do."""
    with pytest.raises(BadRequestError, match=r"a number from 0 on, or its framework's object"):
        stream_handle(odd)
