"""The pictures of the five ideas."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from docs import ideas
from tests.docs.test_docs import PROSE


def test_the_pictures_are_those_that_are_drawn_and_shown() -> None:
    """Each is stored as ``python -m docs.ideas --store`` draws it, is XML, and stands on one page."""
    assert len(ideas.PICTURES) == 5
    for name, draw in ideas.PICTURES.items():
        text = (ideas.FOLDER / name).read_text("utf-8")
        assert text == draw()
        assert ET.fromstring(text)[0].text
        assert sum(f"{name}\n:alt: " in page.read_text("utf-8") for page in PROSE) == 1
