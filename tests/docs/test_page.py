"""The page of the graph: what is in the file, and what it does in a browser."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from docs.graph.page import page
from docs.graph.routes import routes
from interop import Interop
from interop._cli.network import network
from tests.browser import Browser, browser
from tests.toys import copy, toy, view

__all__ = ["browser"]  # a fixture

VENDOR = Path(__file__).parents[2] / "docs" / "graph" / "vendor"


def _toys() -> Interop:
    interop = Interop(plugins=False)
    interop.register(toy("a"), toy("a.odd"), toy("b"), toy("</script><c>"), toy("z"))
    interop.register(toy("gone", requires="no_such_framework"), view("b", "gone"))
    interop.register(view("a", "b"), copy("b", "</script><c>", name="duplicate"))
    interop.register(view("a", "a.odd", effects=frozenset({"detach"}), name="let_go"))
    return interop


@pytest.fixture(scope="module")
def text() -> str:
    """The page of six toy formats, one with a name that could end a script."""
    return page(_toys())


def test_the_page_asks_nobody_for_anything(text: str) -> None:
    """It forbids itself to load anything, no code in it can, and what is ours names no address."""
    assert "default-src 'none'" in text
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]*\b(?:src|href)=\"(?!data:)", text)
    loads = r"\b(?:fetch|XMLHttpRequest|WebSocket|EventSource|sendBeacon|importScripts|import)\s*\("
    assert not re.findall(loads, text)
    for path in VENDOR.glob("*.js"):
        assert path.read_text("utf-8") in text
        text = text.replace(path.read_text("utf-8"), "")
    assert not re.findall(r"https?://", text)


def test_names_cannot_leave_their_place(text: str) -> None:
    """What would end the script stands in it as text."""
    assert text.count("</script>") == text.count("<script") == 4
    assert not re.findall(r"@@[A-Z]+@@", text)
    assert '"\\u003c/script>\\u003cc>"' in text


def test_vendored_libraries_are_named_with_version_and_licence() -> None:
    """The table beside them has a row for each, with its version and the file of its licence."""
    table = (VENDOR / "README.md").read_text("utf-8")
    rows = re.findall(
        r"^\| `(.*?)` \| \[`(.*?)`\]\(.*?\) \| (\S+) \| MIT, `(.*?)` \|$", table, re.MULTILINE
    )
    assert {name for name, *_ in rows} == {path.name for path in VENDOR.glob("*.js")}
    for name, _, version, licence in rows:
        assert f'"{version}"' in (VENDOR / name).read_text("utf-8")
        assert "Permission is hereby granted, free of charge" in (VENDOR / licence).read_text(
            "utf-8"
        )


# ---------------------------------------------------------------------- the routes in it


def test_routes_are_those_that_plan_gives(empty: Interop) -> None:
    """For each ordered pair there is the route of a value of a usual size, or none."""
    empty.register(toy("a"), toy("b"), toy("c", ndims=frozenset({1})), toy("p", protocol="__p__"))
    empty.register(view("a", "b"), copy("b", "a"), copy("a", "b", name="slow"), view("p", "a"))
    empty.register(view("b", "c", effects=frozenset({"detach"}), name="lose"))
    facts = routes(empty)
    assert len(facts) == 4 * 3
    assert facts["b p"] is None
    route = facts["p c"]
    assert route is not None
    assert [step["step"] for step in route["steps"]] == ["p_to_a", "a_to_b", "lose"]
    assert [step["to"] for step in route["steps"]] == ["a", "b", "c"]
    assert route["value"] == "p float32 (1048576,) on cpu"
    assert (route["zero_copy"], route["steps"][2]["effects"]) == (True, ["detach"])
    reverse = facts["b a"]
    assert reverse is not None
    assert reverse["steps"][0]["written"] == 4 * 2**20


def test_formats_that_never_have_as_many_axes_have_no_route(empty: Interop) -> None:
    """There is no value of both."""
    empty.register(toy("a", ndims=frozenset({1})), toy("b", ndims=frozenset({3})), view("a", "b"))
    assert routes(empty) == {"a b": None, "b a": None}


def test_the_page_holds_the_formats_the_links_and_every_step_once(text: str) -> None:
    """Its data are what ``interop graph --json`` prints, and routes that name steps by number."""
    found = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    shown = network(_toys()).as_dict()
    assert {name: data[name] for name in shown} == json.loads(json.dumps(shown))
    steps, pairs = data["routes"]["steps"], data["routes"]["pairs"]
    assert pairs["z a"] == 0
    assert [steps[n]["step"] for n in pairs["a </script><c>"][2]] == ["a_to_b", "duplicate"]
    assert len(steps) == len({json.dumps(step) for step in steps})


# ---------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def whole() -> tuple[Interop, str]:
    """An instance with the installed plugins, and its page: to plan all routes takes long."""
    interop = Interop()
    return interop, page(interop)


def _show(browser: Browser, text: str, folder: Path, fragment: str = "") -> Browser:
    path = folder / "graph.html"
    path.write_text(text, "utf-8")
    browser.open(path, fragment)
    return browser


@pytest.fixture
def opened(browser: Browser, text: str, tmp_path: Path) -> Browser:
    """The page in the browser."""
    return _show(browser, text, tmp_path)


#: Where a node is: its middle, as seen from the middle of the picture.
PLACE = """
const stage = document.getElementById("stage").getBoundingClientRect();
const node = graph.getElementById(arguments[0]).renderedBoundingBox({includeLabels: false});
return [(node.x1 + node.x2 - stage.width) / 2, (node.y1 + node.y2 - stage.height) / 2];
"""


def _place(browser: Browser, node: str) -> tuple[float, float]:
    x, y = browser.run(PLACE, node)
    return x, y


def _click(browser: Browser, format_: str) -> None:
    """Click on a format in the picture."""
    browser.click_at("#stage", _place(browser, f"format {format_}"))


def _button(format_: str) -> str:
    """Return the selector of a format in the list."""
    return f'.format[data-format="{format_}"]'


def _view(browser: Browser) -> list[float]:
    """Return the left, the top and the size of what the picture shows."""
    box = browser.run("return graph.extent()")
    return [box["x1"], box["y1"], box["w"], box["h"]]


def _arrows(browser: Browser) -> list[list[str]]:
    """Return the arrows of the route that is drawn: from where, to where, and with which label."""
    return browser.run(
        "return graph.$('.hop').map(hop => [hop.source().data('format'), "
        "hop.target().data('format'), hop.data('label')])"
    )


def _marked(browser: Browser, mark: str) -> list[str]:
    """Return the formats in the picture that have a mark."""
    return browser.run(f"return graph.$('.format.{mark}').map(node => node.data('format'))")


@pytest.mark.parametrize("by", ["picture", "list"])
def test_clicking_a_pair_shows_its_route_and_cost(opened: Browser, by: str) -> None:
    """The steps stand in the panel with effects and estimates, and are drawn from row to row."""
    opened.complaints()
    assert "Click a format" in opened.text("#panel")
    for name in ("a", "</script><c>"):
        _click(opened, name) if by == "picture" else opened.click(_button(name))
        if name == "a":
            assert "Click the format to convert it to" in opened.text("#panel")
    panel = opened.text("#panel")
    assert "a → </script><c>" in panel
    assert "a float32 1024x1024 on cpu: bytes are copied" in panel
    assert re.search(r"a_to_b\n→ b\nview; 1 µs", panel)
    assert re.search(r"duplicate\n.*\ncopy; .* ms; 4\.0 MiB written", panel)
    assert _arrows(opened) == [["a", "b", "view"], ["b", "</script><c>", "copy"]]
    assert (_marked(opened, "end"), _marked(opened, "stop")) == (["</script><c>", "a"], ["b"])
    kinds = opened.run("return [...document.querySelectorAll('ol li')].map(li => li.className)")
    assert kinds == ["hop shares", "hop copies"]
    assert opened.run("return location.hash") == "#a%20%3C%2Fscript%3E%3Cc%3E"
    picture = opened.screenshot()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 10_000
    assert opened.complaints() == []
    assert opened.run("return performance.getEntriesByType('resource').length") == 0


def test_a_pair_without_a_route_says_how_to_find_out_why(opened: Browser) -> None:
    """The command that tells is shown, and nothing is drawn."""
    _click(opened, "z")
    _click(opened, "a")
    assert "No route is permitted" in opened.text("#panel")
    assert "interop plan z a" in opened.text("#panel")
    assert _arrows(opened) == []


def test_a_link_leads_to_a_pair(browser: Browser, text: str, tmp_path: Path) -> None:
    """What stands behind the # of the address is asked at once."""
    _show(browser, text, tmp_path, "a%20a.odd")
    panel = browser.text("#panel")
    assert "a → a.odd" in panel
    assert "let_go" in panel
    assert browser.run("return document.querySelector('ol li').className") == "hop loses"


def test_a_format_shows_where_it_leads(opened: Browser) -> None:
    """Arrows to its direct targets are drawn, the list has every effect, and the rest is faint."""
    _click(opened, "a")
    arrows = "return graph.$('.out').map(link => [link.target().data('format'), link.classes()])"
    assert opened.run(arrows) == [
        ["a.odd", ["out", "loses", "bowed"]],
        ["b", ["out", "shares", "bent"]],
    ]
    assert _marked(opened, "far") == ["z"]
    notes = "return [...document.querySelectorAll('.format small')].map(note => note.textContent)"
    copied, *others = opened.run(notes)
    assert re.fullmatch(r"copy; .* ms", copied)
    assert others == ["dense", "detach; 1 µs", "view; 1 µs", "view; 2 µs", "no route"]


def test_a_framework_and_a_line_show_what_leads_where(opened: Browser) -> None:
    """A click on a caption names the neighbors, one on a line its conversions."""
    opened.click_at("#stage", _place(opened, "caption b"))
    panel = opened.text("#panel")
    assert panel.startswith("b\n1 format; installed; declared by run time")
    assert "→ </script><c>\nat best bytes are copied" in panel
    assert "← a\nat best memory is shared" in panel
    assert opened.run("return graph.$('.line.near').length") == 3
    opened.click('.framework[data-framework="a"]')
    assert opened.text("#panel").startswith("a\n2 formats; installed")
    on_line = """
        const line = graph.$('.line').filter(line => line.data('line') === '["a","b"]');
        const stage = document.getElementById("stage").getBoundingClientRect();
        const start = line.renderedSourceEndpoint(), bend = line.renderedSegmentPoints()[0];
        return [(start.x * 3 + bend.x) / 4 - stage.width / 2, (start.y * 3 + bend.y) / 4 - stage.height / 2];
    """
    opened.click_at("#stage", opened.run(on_line))
    assert opened.text("#panel") == "a and b\na → b\na_to_b: memory is shared"


def test_missing_frameworks_are_told_apart(opened: Browser) -> None:
    """The picture, the list and the panel say what is not installed."""
    styles = "return graph.$('.framework').map(box => [box.data('framework'), box.style('border-style')])"
    borders = dict(opened.run(styles))
    assert borders.pop("gone") == "dashed"
    assert set(borders.values()) == {"solid"}
    label = "return graph.getElementById('caption gone').data('label')"
    assert opened.run(label) == "gone (not installed)"
    assert opened.text('.framework[data-framework="gone"]') == "gone\nnot installed"
    _click(opened, "gone")
    assert "not installed" in opened.text("#panel")


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
    assert "Click the format to convert it to" in opened.text("#panel")
    before = _view(opened)
    opened.type("#stage", "\ue014")  # the arrow to the right
    assert _view(opened)[0] > before[0]
    opened.type("#stage", "+")
    assert _view(opened)[2] < before[2]
    opened.type("#stage", "0")
    assert _view(opened) == pytest.approx(before)


def test_readers_are_told_what_the_picture_shows(opened: Browser) -> None:
    """Every control has a name, answers are announced, and the list has every format by name."""
    unnamed = """
        const controls = [...document.querySelectorAll("button, input, select")];
        return controls.filter(control => !control.ariaLabel && !control.textContent.trim()
            && !control.closest("label")).map(control => control.outerHTML);
    """
    assert opened.run(unnamed) == []
    assert opened.run("return document.getElementById('panel').ariaLive") == "polite"
    assert opened.run("return document.getElementById('stage').ariaLabel")
    names = "return [...document.querySelectorAll('nav .format')].map(row => row.dataset.format)"
    assert sorted(opened.run(names)) == sorted(["a", "a.odd", "b", "</script><c>", "z", "gone"])


def test_searching_marks_and_finds(opened: Browser) -> None:
    """What matches is marked, and Enter takes the first."""
    opened.type("#search", "odd")
    listed = "return [...document.querySelectorAll('.format.found')].map(row => row.dataset.format)"
    assert opened.run(listed) == _marked(opened, "found") == ["a.odd"]
    opened.type("#search", "\ue007")
    assert opened.text("#panel").startswith("a.odd\n")
    opened.type("#search", "\ue00c")
    assert opened.run(listed) == _marked(opened, "found") == []


def test_dragging_moves_and_the_wheel_zooms(opened: Browser) -> None:
    """To drag is not to click, and the place under the pointer stays where it is."""
    before = _view(opened)
    opened.drag("#stage", (-300, 200), (120, -60))
    moved = _view(opened)
    assert moved[0] < before[0]
    assert moved[1] > before[1]
    assert moved[2:] == pytest.approx(before[2:])
    opened.drag("#stage", _place(opened, "format b"), (40, 30))
    assert _view(opened)[0] < moved[0]
    assert "Click a format" in opened.text("#panel")
    opened.drag("#stage", _place(opened, "format b"), (-40, -30))
    assert _view(opened) == pytest.approx(moved, abs=1)
    opened.wheel("#stage", -240)
    nearer = _view(opened)
    assert nearer[2] < moved[2]
    assert nearer[0] + nearer[2] / 2 == pytest.approx(moved[0] + moved[2] / 2, abs=moved[2] / 50)
    opened.click("#farther")
    assert _view(opened)[2] > nearer[2]
    opened.click("#reset")
    assert _view(opened) == pytest.approx(before)
    assert "Click a format" in opened.text("#panel")
    assert opened.complaints() == []


# ---------------------------------------------------------------------- what it looks like

#: Boxes that overlap, formats outside the box of their framework, and labels wider than their row.
MISPLACED = """
const boxes = graph.$(".framework").map(box => [box.data("framework"), box.boundingBox()]);
const apart = (a, b) => a.x2 <= b.x1 || b.x2 <= a.x1 || a.y2 <= b.y1 || b.y2 <= a.y1;
const overlaps = boxes.flatMap(([name, box], n) => boxes.slice(n + 1)
    .filter(([, other]) => !apart(box, other)).map(([other]) => `${name} and ${other}`));
const inside = (a, b) => a.x1 >= b.x1 - 1 && a.x2 <= b.x2 + 1 && a.y1 >= b.y1 - 1 && a.y2 <= b.y2 + 1;
const rows = graph.$(".format, .caption").filter(row => !inside(row.boundingBox({includeOverlays: false}),
    row.parent().boundingBox())).map(row => row.id());
return [...overlaps, ...rows];
"""


@pytest.mark.slow
def test_frameworks_do_not_overlap(
    browser: Browser, whole: tuple[Interop, str], tmp_path: Path
) -> None:
    """Of all that is registered no box covers another, and every name is inside of its box."""
    loaded, text = whole
    _show(browser, text, tmp_path)
    assert browser.run("return graph.$('.framework').length") > 10
    assert browser.run("return graph.$('.format').length") == len(loaded.formats())
    assert browser.run(MISPLACED) == []
    assert browser.complaints() == []


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, 1, 2, 3, 40])
def test_any_number_of_frameworks_has_a_place(
    browser: Browser, empty: Interop, tmp_path: Path, count: int
) -> None:
    """None, one, and more than there will ever be."""
    for number in range(count):
        empty.register(*(toy(f"f{number}.layout{m}") for m in range(number % 7 + 1)))
    _show(browser, page(empty), tmp_path)
    assert browser.run("return graph.$('.framework').length") == count
    assert browser.run(MISPLACED) == []
    assert browser.complaints() == []


def test_the_same_network_has_the_same_places(browser: Browser, tmp_path: Path) -> None:
    """Neither chance nor the order of registration moves a framework."""
    forward, backward = Interop(plugins=False), Interop(plugins=False)
    forward.register(toy("a"), toy("b"), toy("c"), view("a", "b"), copy("b", "c"))
    backward.register(copy("b", "c"), view("a", "b"), toy("c"), toy("b"), toy("a"))
    assert page(forward) == page(backward)
    places = "return graph.nodes().map(node => [node.id(), node.position().x, node.position().y])"
    first = _show(browser, page(forward), tmp_path).run(places)
    assert _show(browser, page(forward), tmp_path).run(places) == first


@pytest.mark.slow
@pytest.mark.parametrize("width", [1400, 400])
def test_text_is_legible_in_every_window(
    browser: Browser, whole: tuple[Interop, str], tmp_path: Path, width: int
) -> None:
    """In a wide window most is shown at once, in a narrow one a part; the page itself fits both."""
    browser.emulate(width, 900)
    try:
        _show(browser, whole[1], tmp_path)
        size = "return graph.zoom() * parseFloat(graph.$('.format').style('font-size'))"
        assert browser.run(size) >= 9.4
        assert browser.run("return document.documentElement.scrollWidth") <= width
        shown = "return graph.$('.framework').map(box => box.renderedBoundingBox())"
        boxes = browser.run(shown)
        stage = browser.run("return [graph.width(), graph.height()]")
        inside = [box["x1"] >= 0 and box["x2"] <= stage[0] for box in boxes]
        assert any(inside)
        assert width < 1400 or sum(inside) > len(inside) / 2
        header = browser.run("return document.querySelector('header').offsetHeight")
        assert header < 110
    finally:
        browser.emulate(1400, 900)


@pytest.mark.slow
def test_the_picture_opens_full_and_is_filtered_by_what_is_typed(
    browser: Browser, whole: tuple[Interop, str], tmp_path: Path
) -> None:
    """No more is empty beside the graph than has to be, and what is not linked with a match fades."""
    browser.emulate(1000, 650)  # as in the frame of the site
    _show(browser, whole[1], tmp_path)
    places = """
        const all = graph.elements().boundingBox(), shown = graph.extent(), margin = 20 / graph.zoom();
        return [["x1", "x2", "w"], ["y1", "y2", "h"]].filter(([_, __, size]) => all[size] > shown[size])
            .map(([first, last]) => [shown[first] - all[first], all[last] - shown[last]])
            .flat().map(hidden => hidden + margin);
    """
    hidden = browser.run(places)
    browser.emulate(1400, 900)
    assert hidden, "the test needs a graph that is larger than its place"
    assert min(hidden) > 0
    fades = "return graph.getElementById(arguments[0]).hasClass('aside')"
    browser.type("#search", "onnxr")
    names = ("framework onnxruntime", "framework numpy", "framework awkward")
    assert [browser.run(fades, name) for name in names] == [False, False, True]
    browser.type("#search", "\ue00c")
    assert browser.run("return graph.$('.aside').length") == 0


def test_the_page_is_dark_where_the_system_is(opened: Browser) -> None:
    """Paper and boxes change their colors at once, and names stay legible on them."""
    colors = """
        const light = text => text.match(/\\d+/g).slice(0, 3).reduce((sum, n) => sum + +n, 0) / 765;
        const name = graph.$(".format"), box = graph.$(".framework");
        return [getComputedStyle(document.body).backgroundColor, box.style("background-color"),
            name.style("color")].map(light);
    """
    paper, box, name = opened.run(colors)
    assert min(paper, box) > 0.9
    assert name < 0.3
    opened.emulate(1400, 900, dark=True)
    try:
        deadline = time.monotonic() + 10
        while opened.run(colors)[1] > 0.5 and time.monotonic() < deadline:
            time.sleep(0.05)
        paper, box, name = opened.run(colors)
        assert max(paper, box) < 0.2
        assert name > 0.8
    finally:
        opened.emulate(1400, 900)
