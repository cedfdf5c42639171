"""The built documentation: its links are followed, and a browser goes through it."""

from __future__ import annotations

import os
import re
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.browser import Browser, browser

__all__ = ["browser"]  # a fixture

SITE = os.environ.get("INTEROP_SITE", "")
pytestmark = pytest.mark.skipif(not SITE, reason="INTEROP_SITE names no documentation to look at")


class Page(HTMLParser):
    """The links of a page, and the places in it that links can name."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.append(value)
            if name in ("id", "name") and value:
                self.anchors.add(value)


def test_every_link_inside_leads_somewhere() -> None:
    """Every link within the site names a page, a file or a heading that exists."""
    site = Path(SITE).resolve()
    pages = {path: Page(path) for path in site.rglob("*.html") if "_static" not in path.parts}
    assert len(pages) > 30
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or link.startswith("//") or path.name == "formats-graph.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            leads_somewhere = target.exists() and (
                not parts.fragment
                or target not in pages
                or unquote(parts.fragment) in pages[target].anchors
            )
            if not leads_somewhere:
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []


def test_each_function_begins_with_an_example() -> None:
    """On the page of the functions an example that runs as it stands precedes the parameters."""
    text = (Path(SITE) / "reference" / "interop.html").read_text("utf-8")
    functions = re.findall(r'<dl class="py function">.*?</dd></dl>', text, re.DOTALL)
    names = [match[1] for f in functions if (match := re.search(r'id="interop\.(\w+)"', f))]
    assert {"convert", "plan", "accepts", "policy", "trace", "formats"} <= {*names}
    for name, function in zip(names, functions, strict=True):
        plain = re.sub(r"<[^>]*>", "", function)
        assert "\n>>> import interop" in plain.replace("&gt;", ">"), name
        example, fields = function.find("&gt;&gt;&gt; "), function.find("field-list")
        assert 0 < example < (fields if fields > 0 else len(function)), name


def test_the_graph_can_be_clicked_through_inside_its_page(browser: Browser, tmp_path: Path) -> None:
    """In the page of the documentation, two clicks show the route from torch to NumPy."""
    browser.open(Path(SITE) / "reference" / "graph.html")
    browser.enter("iframe")
    browser.click('.format[data-format="torch"]')
    browser.click('.format[data-format="scipy.csr"]')
    panel = browser.text("#panel")
    assert "torch → scipy.csr" in panel
    assert re.search(r"µs|ms", panel)
    assert browser.run("return document.querySelectorAll('.hop').length") > 0
    picture = tmp_path / "graph.png"
    picture.write_bytes(browser.screenshot())
    assert picture.stat().st_size > 20_000


#: What is wider than its place on a page: code, tables, or the page itself.
OVERFLOWING = """
    const wide = [...document.querySelectorAll("article pre, article table, article img, article dt")]
        .filter(part => part.checkVisibility() && (part.scrollWidth > part.clientWidth + 2 ||
            part.getBoundingClientRect().right > document.documentElement.clientWidth + 1));
    const page = document.documentElement;
    if (page.scrollWidth > page.clientWidth + 1) wide.push(page);
    return wide.map(part => `${part.tagName} ${part.scrollWidth}: ${part.textContent.slice(0, 60)}`);
"""


@pytest.mark.parametrize("width", [1400, 400])
def test_nothing_is_cut_off_in_a_wide_or_a_narrow_window(browser: Browser, width: int) -> None:
    """On no page are code, errors, tables or pictures wider than the window or their box."""
    browser.emulate(width, 900)
    overflowing = {}
    for path in sorted(Path(SITE).rglob("*.html")):
        if not {"_static", "_modules"} & set(path.parts) and path.name != "formats-graph.html":
            browser.open(path)
            if parts := browser.run(OVERFLOWING):
                overflowing[path.name] = parts
    browser.emulate(1400, 900)
    assert overflowing == {}


def test_the_picker_says_what_a_pair_does(browser: Browser) -> None:
    """The page of pairs answers for two names, and has an address for them."""
    browser.open(Path(SITE) / "reference" / "pairs.html")
    assert browser.text("#answer") == "Effects: none. Memory: shared. And back: the same."
    browser.run(
        "document.getElementById('to').value = 'jax';"
        "document.getElementById('picker').dispatchEvent(new Event('input'))"
    )
    assert browser.text("#answer") == "Effects: copy. Memory: its own. And back: the same."
    assert browser.run("return location.hash") == "#torch:jax"
    browser.open(Path(SITE) / "reference" / "pairs.html", "array:numpy")
    assert browser.text("#answer") == "Effects: copy. Memory: its own. And back: refused."
    assert browser.run("return document.documentElement.scrollHeight") < 3000


def test_the_graph_knows_frameworks_that_are_not_installed(browser: Browser) -> None:
    """Whatever is installed where the site is built, no format is missing and routes are shown."""
    browser.open(Path(SITE) / "formats-graph.html", "torch.sparse_csr numpy")
    assert browser.run("return data.formats.filter(format => format.state === 'missing')") == []
    assert "numpy" in browser.text("#panel")
    assert "No route" not in browser.text("#panel")


@pytest.mark.parametrize("format_", ["xarray.variable", "xarray.dataarray", "dlpack.capsule"])
def test_the_graph_knows_routes_out_of_wrappers(browser: Browser, format_: str) -> None:
    """A value that wraps another is taken to wrap a plain array."""
    browser.open(Path(SITE) / "formats-graph.html", f"{format_} numpy")
    assert "No route" not in browser.text("#panel")


def test_the_first_page_has_no_complaints(browser: Browser) -> None:
    """The first page opens without an error in the console."""
    browser.complaints()
    browser.open(Path(SITE) / "index.html")
    assert "interop" in browser.text("h1")
    complaints = [text for text in browser.complaints() if "[PST]" not in text]  # not the theme's
    assert complaints == []


#: What people look for, and the page that answers it.
QUESTIONS = {
    "tensor requires grad numpy": "how-to/numpy-on-tensor-that-requires-grad",
    "bfloat16 numpy": "how-to/bfloat16-to-numpy",
    "numpy to torch": "tutorial/first-conversions",
    "copy": "explanation/aliasing",
    "zero-copy": "how-to/never-copy-always-copy",
    "masked array": "tutorial/first-conversions",
    "thread": "explanation/compilers-and-processes",
    "pickle": "explanation/compilers-and-processes",
    "sklearn": "how-to/scikit-learn",
    "pandas nullable": "how-to/pandas-and-polars",
    "collate": "how-to/batches-in-a-data-loader",
    "install": "how-to/install",
    "state dict": "how-to/convert-nested-data",
    "GPU stream": "explanation/gpu",
    "array_namespace": "how-to/coming-from",
    "quantized": "how-to/quantized-tensors",
    "autograd": "how-to/accept-any-array-in-my-function",
    "read-only": "explanation/aliasing",
    "write a plugin": "how-to/write-a-plugin",
    "safetensors": "how-to/weights-to-a-file",
    "isinstance": "how-to/coming-from",
    "pin memory": "how-to/to-and-from-a-gpu",
    "cuda tensor to numpy fast": "how-to/to-and-from-a-gpu",
    "sparse to dense refused": "how-to/sparse-matrices-between-torch-and-scipy",
    "list of tensors": "how-to/batches-in-a-data-loader",
    "write plugin": "tutorial/write-and-publish-a-plugin",
    "string column": "how-to/pandas-and-polars",
    "RefusedError": "how-to/read-why-a-conversion-was-refused",
    "gpu to cpu": "how-to/to-and-from-a-gpu",
    "inhomogeneous shape": "how-to/ragged-rows",
    "requires_grad": "how-to/numpy-on-tensor-that-requires-grad",
    "float64 jax": "explanation/policy",
    "save weights": "how-to/weights-to-a-file",
    "mypy": "how-to/accept-any-array-in-my-function",
    "wrong package": "how-to/install",
    "multiprocessing": "explanation/compilers-and-processes",
    "DataFrame to tensor": "how-to/pandas-and-polars",
    "which route was taken": "how-to/see-what-happened",
    "forbid copy in production": "how-to/in-production",
    "PIL image to torch": "how-to/pillow-images",
    "changelog": "reference/changelog",
    "licence": "reference/licence",
    "license": "reference/licence",
    "github actions plugin": "how-to/check-my-plugin",
    "vulnerability": "reference/security",
    "deploy a service": "how-to/in-production",
    "cost of forbid": "how-to/in-production",
    "forbid transfer": "how-to/in-production",
    "opentelemetry": "how-to/see-what-happened",
    "logging": "how-to/see-what-happened",
    "pin versions": "how-to/in-production",
    "doctor": "reference/command",
    "jax float32": "explanation/policy",
    "out of memory": "how-to/never-copy-always-copy",
}
RESULTS = """
    return [...document.querySelectorAll('#search-results li a')]
        .map(link => link.getAttribute('href').replace(/[.]html.*/, ''))
"""


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_search_answers_in_its_first_three_pages(browser: Browser, question: str) -> None:
    """The page that answers a question is among the first three that the search names."""
    browser.open(Path(SITE) / "search.html", query=question)
    for _ in range(100):
        if not browser.run(
            "return document.querySelector('#search-results .search-summary') === null"
        ):
            break
        time.sleep(0.1)
    results: list[str] = browser.run(RESULTS)
    assert QUESTIONS[question] in list(dict.fromkeys(results))[:3]
