"""The documentation: every example in it runs, every link in it leads somewhere."""

from __future__ import annotations

import doctest
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from sybil import Document
from sybil.document import PythonDocStringDocument
from sybil.evaluators.doctest import DocTestEvaluator
from sybil.parsers.abstract.doctest import DocTestStringParser
from sybil.parsers.myst import PythonCodeBlockParser
from sybil.parsers.rest import DocTestParser

import interop

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PROSE = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted(DOCS.rglob("*.md")),
]
PAGES = [page for page in PROSE if "```python" in page.read_text()]
MODULES = [
    module
    for folder in ("interop", "plugins/interop_plugins")
    for module in sorted((ROOT / folder).rglob("*.py"))
    if re.search(r"^\s*>>>", module.read_text(), re.MULTILINE)
]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

#: What torch says of its own features when a page makes such a tensor with torch.
TORCH_SAYS = (
    "ignore:Sparse CSR tensor support is in beta state:UserWarning",
    "ignore:torch.quantize_per_tensor, torch.quantize_per_channel:UserWarning",
)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


class Checker(doctest.OutputChecker):
    """Compares output but for estimated times, which are recalibrated, and the version."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(timeless(want), timeless(got), optionflags)


def timeless(text: str) -> str:
    """Return text without what differs from run to run: times and the version."""
    text = re.sub(r"\b\d[\d.e+-]* (?:µs|ms|s)\b", "some time", text)
    return re.sub(r"\barray-interop \d+\.\d+\S*", "array-interop", text)


def _evaluator() -> DocTestEvaluator:
    evaluator = DocTestEvaluator(FLAGS)
    evaluator.runner = doctest.DocTestRunner(Checker(), verbose=False, optionflags=FLAGS)
    return evaluator


@pytest.fixture
def own_instance(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Give a page its own registry behind the package's functions, and a module to live in."""
    mine = interop.Interop()
    for name in (n for n in interop.__all__ if hasattr(interop.Interop, n)):
        monkeypatch.setattr(interop, name, getattr(mine, name))
    page = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", page)
    return page


def _run(document: Document, module: ModuleType) -> int:
    """Run the examples of a document in the namespace of a module, and return how many."""
    module.__dict__["interop"] = interop
    document.namespace = module.__dict__
    examples = list(document.examples())
    for example in examples:
        example.evaluate()
    return len(examples)


@pytest.mark.parametrize("page", PAGES, ids=_name)
@pytest.mark.filterwarnings(*TORCH_SAYS)
def test_the_examples_of_a_page_run(page: Path, own_instance: ModuleType) -> None:
    """What a page shows is what happens, from its first example to its last."""
    parser = PythonCodeBlockParser(doctest_optionflags=FLAGS)
    parser.doctest_parser = DocTestStringParser(_evaluator())
    assert _run(Document.parse(str(page), parser), own_instance) > 0


@pytest.mark.parametrize("module", MODULES, ids=_name)
def test_the_examples_of_docstrings_run(module: Path, own_instance: ModuleType) -> None:
    """What a docstring shows is what happens."""
    parser = DocTestParser(FLAGS)
    document = PythonDocStringDocument.parse(str(module), parser)
    assert _run(document, own_instance) > 0


@pytest.mark.parametrize("page", PROSE, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file of the repository."""
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    relative = [link for link in links if "://" not in link]
    assert [link for link in relative if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PROSE, ids=_name)
def test_the_words_are_the_glossarys(page: Path) -> None:
    """No page calls a concept by a word that the glossary does not use for it."""
    text = page.read_text().replace("build-backend", "")  # which is not ours to name
    assert re.findall(r"(?i)\b(?:adapter|backend|handler|translator)s?\b", text) == []


def test_readme_sets_up_in_two_commands_that_name_what_exists() -> None:
    """Under "Two commands" there are two, and their extras and files exist."""
    readme = (ROOT / "README.md").read_text()
    section = readme.partition("## Two commands")[2].partition("\n## ")[0]
    commands = "\n".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL)).strip().splitlines()
    assert len(commands) == 2
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    assert set(re.findall(r"\.\[(\w+)\]", " ".join(commands))) <= set(extras)
    files = re.findall(r"\S+\.py\b", " ".join(commands))
    assert [file for file in files if not (ROOT / file).exists()] == []


def test_every_page_on_effects_and_traits_is_generated() -> None:
    """The tables of the reference are filled in when the pages are built, not by hand."""
    for name in ("effects", "traits", "formats"):
        assert f"{{{{ {name}_table }}}}" in (DOCS / "reference" / f"{name}.md").read_text()
