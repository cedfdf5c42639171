"""What a shell and a notebook show of what the functions return."""

from __future__ import annotations

import pydoc
import re
from html import escape
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import interop

LISTINGS = ["formats", "conversions", "plugins"]


class _Table(HTMLParser):
    """Reads the cells of a table; a tag that is not closed where it should be is an error."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


@pytest.mark.parametrize("listing", LISTINGS)
def test_a_listing_shows_as_a_table_of_a_screen(listing: str) -> None:
    """Its text has a heading, a line for each of the first, and says how many are left out."""
    items = getattr(interop, listing)()
    lines = repr(items).splitlines()
    assert lines[0].split()[0] in ("format", "from", "plugin")
    assert max(map(len, lines)) <= 160
    assert len(lines) <= 102
    shown = lines[1:-1] if lines[-1].startswith("…") else lines[1:]
    left_out = int(lines[-1].split()[2]) if lines[-1].startswith("…") else 0
    assert len(shown) + left_out == len(items)
    for line, item in zip(shown, items, strict=False):
        assert line.split()[0] == next(iter(item.row().values()))


@pytest.mark.parametrize("listing", LISTINGS)
def test_a_notebook_shows_the_table_of_the_text(listing: str) -> None:
    """Its HTML is sound and has the cells of the text, row by row."""
    items = getattr(interop, listing)()
    heading, *rows = _Table(items._repr_html_()).rows
    text = repr(items).splitlines()
    assert " ".join(heading).split() == text[0].split()
    for row, line in zip(rows, text[1:], strict=False):
        assert " ".join(row).split() == line.split()


@pytest.mark.parametrize("listing", LISTINGS)
def test_a_listing_is_a_tuple(listing: str) -> None:
    """Programs read it as any other tuple of its items."""
    items = getattr(interop, listing)()
    assert isinstance(items, tuple)
    assert isinstance(items[:2], tuple)
    assert items[0] == next(iter(items))


def test_nothing_shows_as_nothing() -> None:
    """An empty listing says so, as text and as HTML."""
    nothing = interop.Interop(plugins=False).formats()
    assert repr(nothing) == "nothing"
    assert _Table(nothing._repr_html_()).rows == []


def test_a_spec_shows_the_fields_that_say_something() -> None:
    """Its text can be evaluated again; its HTML names each field and what it is."""
    spec = interop.spec(np.ones((2, 3), "float32").T)
    assert eval(repr(spec), {"Spec": interop.Spec, "frozenset": frozenset}) == spec
    assert "nnz" not in repr(spec)
    cells = dict(row for row in _Table(spec._repr_html_()).rows if row[0])
    assert cells["format"] == "numpy"
    assert cells["shape"] == "[3, 2]"
    assert cells["traits"] == "['fortran', 'noncontiguous']"


def test_a_notebook_shows_what_a_text_says() -> None:
    """A trace is the table of its text, and an explanation keeps its lines."""
    with interop.trace() as receipts:
        interop.convert(np.ones((2, 2)), to="python", dtype="float32")
    heading, *rows = _Table(receipts._repr_html_()).rows
    text = str(receipts).splitlines()
    assert " ".join(heading).split() == text[0].split()
    assert [" ".join(row).split() for row in rows] == [line.split() for line in text[1:]]
    explained = interop.plan(np.ones((2, 2)), to="python", dtype="float32").explain()
    html: Any = explained
    assert html._repr_html_() == f"<pre>{escape(explained)}</pre>"
    assert "\n" in explained


def test_no_text_of_others_is_markup_in_a_notebook() -> None:
    """Names of formats, traits and dtypes are escaped wherever a spec, a plan or a trace shows them."""
    name = "<img src=x onerror=alert(1)>"
    mine = interop.Interop(plugins=False)
    described = interop.Spec(name, "int8", shape=(1,), traits=frozenset({"<b>"}), nbytes=1)
    mine.register(
        interop.Format(
            name, types=("builtins:set",), describe=lambda _: described, dtypes={"int8"}
        ),
        interop.Format("other", types=("m:T",), dtypes={"int8"}),
        interop.Conversion(
            name, "other", frozenset, name="<i>", takes={"<b>"}, drops={"<b>"}, effects={"copy"}
        ),
    )
    plan: Any = mine.plan(described, to="other")
    receipt = interop.Receipt(described, described, ("<i>",), plan.effects, (0.0,), 1, None)
    receipts = interop.Trace()
    receipts.append(receipt)
    for shown in (plan, plan.explain(), receipts, described, mine.conversions()):
        html = shown._repr_html_()
        assert "&lt;" in html
        assert not any(tag in html for tag in ("<img", "<i>", "<b>"))


def test_names_of_plugins_are_escaped_in_html() -> None:
    """Names are text in the HTML, whatever they hold."""
    mine = interop.Interop(plugins=False)
    mine.register(interop.Format("<b>&", describe=lambda x: x, types=("m:T",), dtypes={"int8"}))
    assert "<b>" not in mine.formats()._repr_html_()
    assert _Table(mine.formats()._repr_html_()).rows[1][0] == "<b>&"


def test_declarations_show_on_one_line() -> None:
    """A format names itself, its dtypes and its devices; a conversion its ends and its name."""
    format_ = next(item.format for item in interop.formats() if item.name == "mlx")
    assert repr(format_).startswith("Format('mlx', ")
    assert len(repr(format_)) < 80
    conversion = interop.Conversion("numpy", "mlx", abs)
    assert repr(conversion) == "Conversion('numpy', 'mlx', abs)"


def test_the_instance_and_its_functions_say_what_they_are() -> None:
    """No representation shows a private module or a wrapper."""
    assert repr(interop.default) == "interop.default"
    assert repr(interop.Interop(plugins=False)) == "<Interop of 0 formats>"
    for name in ("convert", "convert_tree", "plan", "accepts", "converter", "spec"):
        text = repr(getattr(interop, name))
        assert name in text
        assert "_" not in text.replace("convert_tree", "")
        assert getattr(interop, name).__name__ == name


def test_help_on_the_package_is_short_and_names_convert_first() -> None:
    """It fits two screens, although the package has all its names for ``import *``."""
    lines = pydoc.plain(pydoc.render_doc(interop)).splitlines()
    assert len(lines) < 80
    functions = [line for line in lines if re.match(r" +``\w+", line)]
    assert functions[0].lstrip().startswith("``convert(")
    names: dict[str, object] = {}
    exec("from interop import *", names)
    assert {"convert", "Interop", "Spec"} <= names.keys()
