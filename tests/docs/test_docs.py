"""The pages: every example runs, every link leads somewhere, every word is the glossary's."""

from __future__ import annotations

import doctest
import functools
import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
import tomllib
from collections.abc import Iterator
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
import interop.kit
import interop.plugin.advanced
import interop.testing
from interop.plugin import Declaration, hookimpl
from interop.testing._promises import promises
from interop.testing._session import findings_of
from interop.testing._subject import Bench, Subject
from tests.cases import together

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PROSE = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    *sorted(DOCS.rglob("*.md")),
]
#: Pages whose examples are reports of the conformance suite on many plugins.
OF_REPORTS = {"check-my-plugin.md"}
PAGES = [
    pytest.param(
        page,
        marks=[
            *(pytest.mark.extra(name) for name in needed),
            *([pytest.mark.slow] if page.name in OF_REPORTS else []),
        ],
    )
    for page in PROSE
    if "```python" in (text := page.read_text())
    for needed in [
        re.findall(
            r"^(?:>>> )?(?:import|from) (tensorflow|opentelemetry|sklearn|safetensors|datasets|PIL)\b",
            text,
            re.MULTILINE,
        )
    ]
]
MODULES = [
    module
    for folder in ("interop", "plugins/interop_plugins")
    for module in sorted((ROOT / folder).rglob("*.py"))
    if re.search(r"^\s*>>>", module.read_text(), re.MULTILINE)
]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE

#: The warnings that torch gives when a page makes such a tensor with torch.
TORCH_WARNINGS = (
    "ignore:Sparse CSR tensor support is in beta state:UserWarning",
    "ignore:torch.quantize_per_tensor, torch.quantize_per_channel:UserWarning",
)


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


class Checker(doctest.OutputChecker):
    """Compares output except for estimated times, which are recalibrated, and the version."""

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


@pytest.fixture(scope="module", autouse=True)
def checked_once() -> Iterator[None]:
    """Let examples that check the same plugin share a report: each takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        check = functools.cache(interop.testing.check)
        for module in ("interop.testing", "interop.testing._check"):
            patch.setattr(sys.modules[module], "check", check)
        yield


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
@pytest.mark.filterwarnings(*TORCH_WARNINGS)
def test_the_examples_of_a_page_run(page: Path, own_instance: ModuleType) -> None:
    """A page shows what happens, from its first example to its last."""
    parser = PythonCodeBlockParser(doctest_optionflags=FLAGS)
    parser.doctest_parser = DocTestStringParser(_evaluator())
    assert _run(Document.parse(str(page), parser), own_instance) > 0


#: Steps that the suite has no values for: streams are read once, and casts are of columns that a
#: request names. tests/kit/test_column_formats.py tries them.
OF_TABLES = ("columns_to_sheets", "sheets → sheets: cast_columns")
#: The steps of tables whose memory nobody locks, or lays out in other ways.
OF_SHEETS = (
    *("format sheets", "format sheets.series", "numpy → sheets: table_of"),
    *("numpy → sheets.series: series_of", "numpy.ma → sheets.series: series_of if masked"),
    *("numpy.ma → sheets: table_of if masked", "sheets → numpy.ma: table_with_nulls if masked"),
    *("sheets → numpy: fill_if_exact if masked, mixed", "sheets → numpy: gather_mixed if mixed"),
    *("sheets → numpy: fill_mixed_nulls if masked, mixed", "sheets → sheets: copy_table"),
    *("sheets → numpy: fill_sheets_nulls if masked", "sheets → numpy: gather_if_exact if mixed"),
    *("sheets → numpy: gather_sheets if scattered", "sheets.series → numpy: numbers"),
    "sheets.series → numpy.ma: vector_with_nulls if masked",
    *("sheets.series → numpy: fill_series_nulls if masked", "sheets.series → sheets.series: cast"),
    "sheets.series → sheets.series: copy",
)

#: Pages whose examples are plugins, and the checks that no plugin of theirs could be tried by.
UNTRIED: dict[str, set[str]] = {
    "write-a-plugin.md": {
        # Memory that nobody may write, and strides, come from exporters that do not try these.
        *("extent of format units", "extent of numpy → units: wrap_numpy"),
        *("extent of units → units: rewrap", "extent of dlpack → tensors: tensors_from_dlpack"),
        # Columns have one layout, and no route tells the numbers of those with nulls.
        *(f"extent of {step}" for step in OF_SHEETS),
        *(
            f"{promise} of sheets → numpy: {step}"
            for promise in ("source", "threads", "values")
            for step in (
                "fill_if_exact if masked, mixed",
                "fill_sheets_nulls if masked",
                "gather_if_exact if mixed",
            )
        ),
        "source of sheets.series → numpy.ma: vector_with_nulls if masked",
        "lifetime of sheets.series → numpy.ma: vector_with_nulls if masked",
        "source of sheets.series → numpy: fill_series_nulls if masked",
        # A handle is read before all else, and is then no handle any more.
        *("describe of format handles", "copy of format handles"),
        *("wrapper of format handles", "extent of format handles"),
    },
    "sparse-lazy-and-device-arrays.md": {
        # The layout is its own, so that no other format shows what lies there.
        "variants of format runs",
        "copy of format later",  # there is no memory before it is computed
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("page", UNTRIED)
@pytest.mark.filterwarnings(*TORCH_WARNINGS, "ignore:Casting complex values to real")
def test_the_plugins_of_a_page_keep_their_promises(
    page: str, own_instance: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an author copies from a page passes the conformance suite, with nothing left out."""
    register, declared = interop.register, []

    def noted(*declarations: Declaration) -> None:
        declared.extend(declarations)
        register(*declarations)

    monkeypatch.setattr(interop, "register", noted)
    parser = PythonCodeBlockParser(doctest_optionflags=FLAGS)
    parser.doctest_parser = DocTestStringParser(_evaluator())
    _run(Document.parse(str(DOCS / "how-to" / page), parser), own_instance)
    vars(own_instance)["interop_declarations"] = hookimpl(lambda: declared)
    bench = Bench(Subject("page", "page"))
    findings = [found for promise in promises(bench)[1:] for found in findings_of(bench, promise)]
    assert [str(finding) for finding in findings if finding.outcome == "failed"] == []
    own = (finding for finding in findings if " by " not in finding.conversion)
    own = (finding for finding in own if not finding.name.endswith(OF_TABLES))
    untried = {finding.name: finding.reason for finding in own if finding.reason}
    assert set(untried) == UNTRIED[page], "\n".join(map(" | ".join, untried.items()))


@pytest.mark.parametrize(
    "module",
    [
        # Those of the suite check a plugin and a library, as slow tests do.
        pytest.param(module, marks=[pytest.mark.slow] * (module.parent.name == "testing"))
        for module in MODULES
    ],
    ids=_name,
)
def test_the_examples_of_docstrings_run(module: Path, own_instance: ModuleType) -> None:
    """A docstring shows what happens."""
    parser = DocTestParser(FLAGS)
    document = PythonDocStringDocument.parse(str(module), parser)
    assert _run(document, own_instance) > 0


@together("page", PROSE)
def test_links_lead_somewhere(page: Path) -> None:
    """Every relative link names a file of the repository."""
    prose = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)  # not calls in code
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", prose)
    relative = [link for link in links if "://" not in link]
    assert [link for link in relative if not (page.parent / link).exists()] == []


#: Words that the glossary has others for.
OTHER_WORDS = re.compile(
    r"(?i)\b(?:adapter|backend|handler|translator|outlook|shortcut|shield|trouble|stranger|zoo)s?\b"
    r"|\bpassable\b|\btak(?:e|es|en|ing) apart\b"
)


@together("page", PROSE)
def test_rows_stand_in_tables(page: Path) -> None:
    """Every row of a table stands below a head; one that does not would be shown as it is written."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    headless = [rows for rows in tables if not re.match(r"\|.*\n\|( :?-+:? \|)+\n", rows)]
    assert headless == []


@together("page", [page for page in PROSE if page.name[0] != "_"])
def test_the_words_are_the_glossarys(page: Path) -> None:
    """No page calls a concept by a word that the glossary does not use for it."""
    links = r"\]\([^)]*\)"
    prose = re.sub(rf"```.*?```|`[^`\n]*`|{links}", "", page.read_text(), flags=re.DOTALL)
    assert OTHER_WORDS.findall(prose) == []


#: Where the glossary's names are found that are not modules.
HOMES = ("plugin", "kit", "errors", "_model", "_registry", "_request", "_planning", "_execution")


def test_the_glossary_names_what_exists() -> None:
    """Every file, module, class, field and function in the glossary's last column exists."""
    glossary = (DOCS / "glossary.md").read_text("utf-8")
    cells = re.findall(r"^\|.*\| ([^|]+) \|$", glossary, re.MULTILINE)
    names = {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
    assert len(names) > 60
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(interop.__path__, "interop.")
        if module.name.split(".")[1] in HOMES
    ]
    scope = {name: value for module in modules for name, value in vars(module).items()}
    assert [name for name in sorted(names) if not _exists(name, scope)] == []


def _exists(name: str, scope: dict[str, object]) -> bool:
    if "/" in name:
        return (ROOT / name).exists()
    if name.startswith("interop"):
        return importlib.util.find_spec(name) is not None
    owner, _, member = name.partition(".")
    return owner in scope and (not member or hasattr(scope[owner], member))


def test_the_glossary_explains_a_term_once() -> None:
    """No term stands in it twice."""
    glossary = (DOCS / "glossary.md").read_text("utf-8")
    cells = re.findall(r"^\| ([^|]+) \|.*\|.*\|$", glossary, re.MULTILINE)
    terms = [term for cell in cells for term in cell.split(", ") if cell not in ("term", "---")]
    assert len(terms) > 80
    assert sorted(terms) == sorted(set(terms))


def test_readme_sets_up_in_two_commands_that_name_what_exists() -> None:
    """Under "Two commands" there are two, and their extras, groups and files exist."""
    readme = (ROOT / "README.md").read_text()
    section = readme.partition("## Two commands")[2].partition("\n## ")[0]
    commands = "\n".join(re.findall(r"```sh\n(.*?)```", section, re.DOTALL)).strip().splitlines()
    assert len(commands) == 2
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    assert re.findall(r"\.\[(\w+)\]", commands[0])
    assert set(re.findall(r"\.\[(\w+)\]", " ".join(commands))) <= set(extras)
    assert re.findall(r"--group (\w+)", commands[1])
    assert set(re.findall(r"--group (\w+)", commands[1])) <= set(project["dependency-groups"])
    files = re.findall(r"\S+\.py\b", " ".join(commands))
    assert [file for file in files if not (ROOT / file).exists()] == []


def _documented(module: ModuleType) -> set[str]:
    """Return the names that the page of a module explains."""
    page = DOCS / "reference" / f"{module.__name__.removeprefix('interop.')}.md"
    text = page.read_text("utf-8")
    if ":members:\n" in text and ".. automodule::" in text:
        return set(module.__all__)
    directives = re.findall(r"^\.\. auto(?:function|class):: (?:\w+\.)*(\w+)$", text, re.MULTILINE)
    headings = re.findall(r"^### (\w+)$", text, re.MULTILINE)
    return {*directives, *headings, *re.findall(r"`(?:interop\.)?(\w+)`", text)}


@pytest.mark.parametrize(
    "module",
    [
        interop,
        interop.plugin,
        interop.plugin.advanced,
        interop.kit,
        interop.errors,
        interop.testing,
    ],
    ids=lambda m: m.__name__,
)
def test_every_public_name_is_in_the_reference(module: ModuleType) -> None:
    """What can be imported is explained on the page of its module."""
    hidden = {name for name in module.__all__ if inspect.ismodule(getattr(module, name))}
    assert set(module.__all__) - hidden - _documented(module) == set()


def test_every_class_that_a_function_returns_is_in_the_reference() -> None:
    """Whoever reads `route.steps`, a trace or a listing finds its class explained."""
    with interop.trace() as receipts:
        interop.convert([1.0], to="numpy", copy=True)
    route = interop.plan([1.0], to="numpy")
    returned = [route, route.spec, *route.steps, route.steps[0].provenance, receipts, receipts[0]]
    returned += [interop.formats()[0], interop.conversions()[0], interop.plugins()[0]]
    classes = {type(value).__name__ for value in returned}
    assert {"Plan", "Step", "Trace", "DeclaredFormat", "Plugin"} <= classes
    assert classes - _documented(interop) == set()


def _first_screen() -> str:
    """Return what stands in the README before its first heading."""
    return (ROOT / "README.md").read_text("utf-8").partition("\n## ")[0]


def test_the_first_screen_installs_converts_and_refuses() -> None:
    """It names an extra that has what its examples need, and links to nothing that can be lost."""
    screen = _first_screen()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert len(screen.partition("Traceback")[0].splitlines()) < 40
    assert 'pip install ".[torch]"' in screen
    version = interop.__version__
    wheel = f"{project['name'].replace('-', '_')}-{version}-py3-none-any.whl"
    assert f'pip install "{wheel}[torch]"' in screen
    needs = " ".join(project["optional-dependencies"]["torch"])
    assert "torch" in needs
    assert all(f"interop.{name}(" in screen for name in ("convert", "accepts", "convert_tree"))
    assert "RefusedError: " in screen
    assert [link for link in re.findall(r"\]\(([^)]+)\)", screen) if "://" not in link] == []
    landing = (DOCS / "index.md").read_text("utf-8")
    block = re.search(r"```python\n.*?```", screen, re.DOTALL)
    assert block is not None
    assert block[0] in landing


def test_the_badges_are_true() -> None:
    """Python, licence and state are those of pyproject; what pyright measures is another test's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    facts = project["project"]
    python = facts["requires-python"].removeprefix(">=")
    assert "Development Status :: 3 - Alpha" in facts["classifiers"]
    badges = re.findall(
        r"^!\[([^]]+)\]\(https://img.shields.io/badge/(\S+)\)$", _first_screen(), re.MULTILINE
    )
    assert dict(badges) == {
        f"Python {python} or later": f"python-{python}_or_later-blue",
        f"Licence: {facts['license']}": f"licence-{facts['license'].replace('-', '--').replace(' ', '_')}-blue",
        "Types: 98 % complete": "types-98_%25_complete-blue",
        "State: alpha": "state-alpha-orange",
    }


def test_every_page_on_effects_and_traits_is_generated() -> None:
    """The tables of the reference are filled in when the pages are built, not by hand."""
    for name in ("effects", "traits", "formats"):
        assert f"{{{{ {name}_table }}}}" in (DOCS / "reference" / f"{name}.md").read_text()


#: Texts that users read: of the code, the documentation and the examples.
ADVISING = [
    path
    for folder in ("interop", "plugins", "docs", "examples", ".github", ".")
    for pattern in ("*.py", "*.md", "*.toml", "*.yml")
    for path in sorted(
        (ROOT / folder).glob(pattern) if folder == "." else (ROOT / folder).rglob(pattern)
    )
    if path.name != "pyproject.toml"
]


def test_nobody_is_told_to_install_the_distribution_from_an_index() -> None:
    """Until its first release whoever takes the name there would be installed."""
    by_name = re.compile(r"pip install [^`\n]*\barray-interop\b(?!\S* @ )|array-interop\[(?!.* @ )")
    by_module = re.compile(
        r"pip install \{\w*module\w*\}"
    )  # whose name need not be its distribution's
    assert len(ADVISING) > 300
    advised = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in ADVISING
        for line in path.read_text("utf-8").splitlines()
        if by_name.search(line) or by_module.search(line)
    ]
    assert advised == []
