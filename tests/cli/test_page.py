"""The page of the graph: what is in the file, and what it does in a browser."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop import Interop
from interop._cli.network import network, routes
from interop._cli.page import page
from tests.browser import Browser, missing
from tests.toys import copy, toy, view


def _face() -> Interop:
    face = Interop(plugins=False)
    face.register(toy("a"), toy("a.odd"), toy("b"), toy("</script><c>"), toy("z"))
    face.register(view("a", "b"), copy("b", "</script><c>", name="duplicate"))
    face.register(view("a", "a.odd", effects=frozenset({"detach"}), name="let_go"))
    return face


@pytest.fixture(scope="module")
def text() -> str:
    """The page of four toy formats, one with a name that could end a script."""
    face = _face()
    shown = network(face)
    return page(shown, routes(face, shown))


def test_the_page_asks_nobody_for_anything(text: str) -> None:
    """It names no address but that of SVG's namespace, and forbids itself to load any."""
    assert set(re.findall(r"https?://[^\s\"')]+", text)) == {"http://www.w3.org/2000/svg"}
    assert "default-src 'none'" in text
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]*\b(?:src|href)=\"(?!data:)", text)


def test_names_cannot_leave_their_place(text: str) -> None:
    """What would end the script stands in it as text."""
    assert text.count("</script>") == 2
    assert "@@" not in text
    assert "&lt;/script&gt;&lt;c&gt;" in text


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser, or a skip that says which program is missing."""
    lacking = missing()
    if lacking:
        pytest.skip(f"{lacking} is not installed")
    opened = Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


@pytest.fixture
def opened(browser: Browser, text: str, tmp_path: Path) -> Browser:
    """The page in the browser."""
    path = tmp_path / "graph.html"
    path.write_text(text, "utf-8")
    browser.open(path)
    return browser


def _row(name: str) -> str:
    return f'.format[data-format="{name}"]'


def _view(browser: Browser) -> list[float]:
    box = browser.run("return document.querySelector('#stage > svg').getAttribute('viewBox')")
    return [float(number) for number in box.split()]


def test_clicking_a_pair_shows_its_route_and_cost(opened: Browser) -> None:
    """The steps stand in the panel with effects and estimates, and are drawn from row to row."""
    assert "Click a format" in opened.text("#panel")
    opened.click(_row("a"))
    assert "Click where it is to go" in opened.text("#panel")
    opened.click(_row("</script><c>"))
    said = opened.text("#panel")
    assert "a → </script><c>" in said
    assert "a float32 1024x1024 on cpu: bytes are copied" in said
    assert re.search(r"a_to_b\n→ b\nview; 1 µs", said)
    assert re.search(r"duplicate\n.*\ncopy; .* ms; 4\.0 MiB written", said)
    assert opened.run("return document.querySelectorAll('.hop').length") == 2
    kinds = opened.run("return [...document.querySelectorAll('ol li')].map(li => li.className)")
    assert kinds == ["shares", "copies"]
    assert opened.run("return location.hash") == "#a%20%3C%2Fscript%3E%3Cc%3E"
    picture = opened.screenshot()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000
    assert opened.complaints() == []
    assert opened.run("return performance.getEntriesByType('resource').length") == 0


def test_a_pair_without_a_route_says_how_to_find_out_why(opened: Browser) -> None:
    """The command that tells is shown, and nothing is drawn."""
    opened.click(_row("z"))
    opened.click(_row("a"))
    assert "No route is permitted" in opened.text("#panel")
    assert "interop plan z a" in opened.text("#panel")
    assert opened.run("return document.querySelectorAll('.hop').length") == 0


def test_a_link_leads_to_a_pair(browser: Browser, text: str, tmp_path: Path) -> None:
    """What stands behind the # of the address is asked at once."""
    path = tmp_path / "graph.html"
    path.write_text(text, "utf-8")
    browser.open(path, "a%20a.odd")
    said = browser.text("#panel")
    assert "a → a.odd" in said
    assert "let_go" in said
    assert browser.run("return document.querySelector('ol li').className") == "loses"


def test_lists_and_keys_do_what_the_mouse_does(opened: Browser) -> None:
    """A pair can be chosen, swapped and dropped without a pointer."""
    opened.type("#from", "a.odd")
    opened.type("#to", "b")
    assert "a.odd → b" in opened.text("#panel")
    opened.click("#swap")
    assert "b → a.odd" in opened.text("#panel")
    opened.type("body", "\ue00c")  # Escape
    assert "Click a format" in opened.text("#panel")
    opened.run("document.querySelector('.format[data-format=a]').focus()")
    opened.type(".format[data-format=a]", "\ue007")  # Enter
    assert "Click where it is to go" in opened.text("#panel")


def test_searching_marks_and_finds(opened: Browser) -> None:
    """What matches is marked, and Enter takes the first."""
    opened.type("#search", "odd")
    found = "return [...document.querySelectorAll('.format.found')].map(one => one.dataset.format)"
    assert opened.run(found) == ["a.odd"]
    opened.type("#search", "\ue007")
    assert opened.text("#panel").startswith("a.odd\n")
    opened.type("#search", "\ue00c")
    assert opened.run(found) == []


def test_dragging_moves_and_the_wheel_zooms(opened: Browser) -> None:
    """To drag is not to click, and the place under the pointer stays where it is."""
    before = _view(opened)
    opened.drag("#stage", (-300, 200), (120, -60))
    moved = _view(opened)
    assert moved[0] < before[0]
    assert moved[1] > before[1]
    assert moved[2:] == before[2:]
    opened.drag(_row("b"), (0, 0), (40, 30))
    assert "Click a format" in opened.text("#panel")
    opened.drag(_row("b"), (0, 0), (-40, -30))
    opened.wheel("#stage", -240)
    nearer = _view(opened)
    assert nearer[2] < moved[2]
    assert nearer[0] + nearer[2] / 2 == pytest.approx(moved[0] + moved[2] / 2, abs=moved[2] / 50)
    opened.click("#farther")
    assert _view(opened)[2] > nearer[2]
    opened.click("#reset")
    assert _view(opened) == before
    assert "Click a format" in opened.text("#panel")
    assert opened.complaints() == []
