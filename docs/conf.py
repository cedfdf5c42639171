"""Sphinx: pages in MyST, reference from docstrings, tables from what the package itself holds."""

from __future__ import annotations

from collections.abc import Iterable

import interop
from interop.plugin import DTYPES

project = "interop"
author = "the authors of interop"
copyright = "the authors of interop"  # noqa: A001 - Sphinx's name for it
version = release = interop.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
exclude_patterns = ["_build", "**/_benchmarks.md"]  # the latter is included by its page
html_theme = "pydata_sphinx_theme"
html_title = "interop"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}
html_show_sourcelink = False

myst_enable_extensions = ["substitution", "colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    heads = list(heads)
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def code(words: Iterable[str]) -> str:
    """Return words as a list of code, in order."""
    return ", ".join(f"`{word}`" for word in sorted(words)) or "none"


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
            f"`{one.name}`",
            code(one.devices),
            f"`{one.layout}`" if one.layout else "dense",
            str(len(one.dtypes)),
            code(one.speaks),
            code(one.carries),
        )
        for one in sorted((known.format for known in interop.formats()), key=lambda one: one.name)
    )
    return table(("format", "devices", "layout", "dtypes", "speaks", "carries"), rows)


def plugins_table() -> str:
    """Return the bundled plugins and how much each declares."""
    rows = (
        (f"`{one.name}`", str(one.formats), str(one.conversions))
        for one in interop.plugins()
        if one.distribution == "array-interop"
    )
    return table(("plugin", "formats", "conversions"), rows)


def dtypes_table() -> str:
    """Return the dtypes that planning knows."""
    kinds = {"b": "bool", "u": "unsigned", "i": "signed", "f": "real", "c": "complex"}
    rows = ((f"`{name}`", kinds[one.kind], str(one.bits)) for name, one in DTYPES.items())
    return table(("dtype", "kind", "bits stored"), rows)


myst_substitutions = {
    "effects_table": effects_table(),
    "traits_table": traits_table(),
    "formats_table": formats_table(),
    "plugins_table": plugins_table(),
    "dtypes_table": dtypes_table(),
}
