"""Sphinx: pages in MyST, a reference from docstrings, tables from what is registered."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from docutils import nodes
from docutils.nodes import document
from sphinx import addnodes
from sphinx.application import Sphinx

import interop
import interop.testing
from interop._recognition import installed
from interop.plugin import DTYPES

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))  # for what only the documentation consists of
from docs.graph.page import page  # noqa: E402

project = "interop"
author = "interop developers"
copyright = "interop developers"  # noqa: A001 - Sphinx's name for it
version = release = interop.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_copybutton"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True  # what is copied leaves prompts and output out
exclude_patterns = [
    "_build",
    "graph",
    "**/_benchmarks.md",
    "**/_device.md",
    "**/_dlpack.md",
    "**/_outcomes.md",
    "**/_pairs.md",
]
html_theme = "pydata_sphinx_theme"
html_title = f"interop {release}"
html_theme_options = {"show_toc_level": 2, "show_nav_level": 2, "navigation_with_keys": False}
html_context = {"default_mode": "auto"}  # the theme complains in the console where none is given
html_show_sourcelink = False
html_sidebars = {"glossary": []}  # it has no pages beside it
html_static_path = ["_static"]
html_css_files = ["interop.css"]
html_search_scorer = str(ROOT / "docs" / "_static" / "scorer.js")
html_js_files = [("tables.js", {"defer": "defer"})]

myst_enable_extensions = ["substitution", "colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
add_module_names = False
numpydoc_show_class_members = False
numpydoc_xref_param_type = False


def setup(app: Sphinx) -> None:
    """Write the page of the graph when the others are written."""
    app.connect("autodoc-process-docstring", examples_first)
    app.connect("doctree-read", index_keywords)
    app.connect("build-finished", write_graph)


def examples_first(*arguments: list[str]) -> None:
    """Move the example of a docstring, as numpydoc has written it, in front of the parameters."""
    *_, lines = arguments
    head, rubric, example = "\n".join(lines).partition(".. rubric:: Examples\n")
    fields = re.search(r"^:(?:Parameters|Returns|Yields|Raises):", head, re.MULTILINE)
    if rubric and fields:
        at = fields.start()
        lines[:] = f"{head[:at]}\n{example.strip()}\n\n{head[at:]}".split("\n")


def index_keywords(_: Sphinx, page: document) -> None:
    """Let the search find a page by the keywords in its head, as phrases and word by word."""
    for meta in list(page.findall(nodes.meta)):
        if meta.get("name") != "keywords":
            continue
        phrases = [" ".join(phrase.split()) for phrase in meta["content"].split(",")]
        entries = [("single", phrase, "", "main", None) for phrase in phrases]
        page.insert(0, addnodes.index(entries=entries))
        words = sorted({word for phrase in phrases for word in phrase.split()})
        meta["content"] = ", ".join([*phrases, *words])


def write_graph(app: Sphinx, error: Exception | None) -> None:
    """Write the page that the reference shows in a frame."""
    if error is None and app.builder.format == "html":
        # The page is about every framework, whichever are installed where it is made.
        for declared in interop.formats():
            installed._importable[declared.format.requires] = True
        text = page(interop.default)
        (Path(app.outdir) / "formats-graph.html").write_text(text, "utf-8")


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def effects_table() -> str:
    """Return the effects, their defaults and their meanings."""
    rows = (
        (
            f"`{effect.name}`",
            "permitted" if effect.allowed else "refused",
            "yes" if effect.loses else "no",
            effect.meaning,
        )
        for effect in interop.EFFECTS.values()
    )
    return table(("effect", "by default", "loses a property", "meaning"), rows)


def checks_table() -> str:
    """Return the checks of the conformance suite and what passes them."""
    rows = ((f"`{name}`", meaning) for name, meaning in interop.testing.CHECKS.items())
    return table(("check", "passes if"), rows)


def traits_table() -> str:
    """Return the standard traits and their meanings."""
    memory = interop.plugin.MEMORY_TRAITS
    rows = (
        (f"`{name}`", "yes" if name in memory else "no", meaning)
        for name, meaning in interop.TRAITS.items()
    )
    return table(("trait", "of the memory", "the value has it if"), rows)


def formats_table() -> str:
    """Return the bundled formats and what each can be."""
    rows = (
        (
            f"`{format_.name}`",
            ", ".join(format_.devices),
            format_.layout or ("dense" if format_.is_dense else "sparse"),
            str(len(format_.dtypes)),
            ", ".join(sorted(format_.exports)) or "—",
            ", ".join(sorted(format_.carries)) or "—",
        )
        for format_ in sorted(
            (declared.format for declared in interop.formats()), key=lambda format_: format_.name
        )
    )
    return table(("format", "devices", "layout", "dtypes", "exports", "carries"), rows)


def plugins_table() -> str:
    """Return the bundled plugins and how much each declares."""
    rows = (
        (f"`{plugin.name}`", str(plugin.formats), str(plugin.conversions))
        for plugin in interop.plugins()
        if plugin.distribution == "array-interop"
    )
    return table(("plugin", "formats", "conversions"), rows)


def dtypes_table() -> str:
    """Return the dtypes that planning knows, with their kinds."""
    kinds = {"b": "bool", "u": "unsigned", "i": "signed", "f": "real", "c": "complex"}
    rows = ((f"`{name}`", kinds[dtype.kind], str(dtype.bits)) for name, dtype in DTYPES.items())
    return table(("dtype", "kind", "bits stored"), rows)


def frameworks_table() -> str:
    """Return the versions that the extras allow, and those that the tests run with."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    groups = project["dependency-groups"]
    pinned = _versions([*groups["test"], *groups["test-all"], *groups["sycl"]])
    newest = _versions(groups["newest"])
    lowest = _versions(groups["floor"])
    required = _versions(project["project"]["dependencies"])["numpy"]
    versions = (required, lowest["numpy"], pinned["numpy"], newest["numpy"])
    rows = [("`numpy`", "`numpy`", *versions)]
    for plugin in interop.plugins():
        if plugin.name in extras:
            name, floor = next(iter(_versions(extras[plugin.name]).items()))
            tested = pinned.get(name) or pinned[f"{name}-cpu"]
            oldest = lowest.get(name, tested)
            versions = (floor, oldest, tested, newest.get(name, "—"))
            rows.append((f"`{plugin.name}`", f"`{name}`", *versions))
    lanes = "oldest in CI", "with Python 3.11", "with Python 3.13"
    return table(("plugin", "distribution", "needs", *lanes), rows)


def _versions(requirements: Iterable[str | dict[str, str]]) -> dict[str, str]:
    """Return the version that each requirement names, by its distribution."""
    texts = (text for text in requirements if isinstance(text, str))
    matches = (re.match(r"([\w-]+)(?:\[.*\])?[=>]=(\S+)", text) for text in texts)
    return {match[1]: match[2] for match in matches if match}


myst_substitutions = {
    "frameworks_table": frameworks_table(),
    "effects_table": effects_table(),
    "traits_table": traits_table(),
    "checks_table": checks_table(),
    "formats_table": formats_table(),
    "plugins_table": plugins_table(),
    "dtypes_table": dtypes_table(),
}
