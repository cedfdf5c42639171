"""How bytes and times are shown."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from interop._model.display import Listing, duration, readable


class _Word(NamedTuple):
    text: str

    def row(self) -> dict[str, str]:
        return {"word": self.text, "length": str(len(self.text))}


def test_a_listing_is_shown_under_the_heads_of_its_columns() -> None:
    """The heads stand above the cells, in text and in HTML; without items there is no table."""
    words = Listing([_Word("numpy"), _Word("jax")])
    assert repr(words).splitlines() == ["word   length", "numpy  5", "jax    3"]
    assert "<tr><th>word</th><th>length</th></tr>" in words._repr_html_()
    assert repr(Listing[_Word]()) == "nothing"
    assert "<th>" not in Listing[_Word]()._repr_html_()


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
