"""The rules of the house: rooms, floors, names, and what is imported when."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from importlib.metadata import entry_points
from pathlib import Path
from textwrap import dedent

import pytest

import interop
import interop.plugin
import interop.testing
from tests.cases import together

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
#: The suite and the kit compute with NumPy, which they import inside functions.
WITH_NUMPY = [
    path for room in ("testing", "kit") for path in sorted((ROOT / "interop" / room).rglob("*.py"))
]
CORE = sorted((ROOT / "interop").rglob("*.py"))
PLUGINS = sorted((ROOT / "plugins" / "interop_plugins").rglob("*.py"))
FRAMEWORKS = (
    "numpy torch cupy cupyx dpnp dpctl scipy sparse jax tensorflow mlx pyarrow pandas polars xarray dask awkward "
    "onnxruntime torchao paddle numba"
).split()

#: For each room of the core, the rooms that it may import.
ROOMS: dict[str, list[str]] = PROJECT["tool"]["interop-house"]["rooms"]


def _module(path: Path) -> str:
    """Return the name under which a file of the core or of a plugin is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] == "plugins" else parts
    return ".".join(part for part in parts if part != "__init__")


#: The files of the core and of the plugins, by the names under which they are imported.
FILES = {_module(path): path for path in (*CORE, *PLUGINS)}


def _foreign(path: Path) -> set[str]:
    """Return what a file of the core must not name; the suite computes with NumPy, when it runs."""
    return set(FRAMEWORKS) - ({"numpy"} if path in WITH_NUMPY else set())


def _imports(path: Path, *, inside: bool) -> Iterator[tuple[str, int]]:
    """Yield the modules that a file imports, at its top level or anywhere."""
    tree = ast.parse(path.read_text())
    package = _module(path).split(".") if path.stem == "__init__" else _module(path).split(".")[:-1]
    for node in ast.walk(tree) if inside else _top(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            for alias in node.names:
                # A name may be a module of the package that it is imported from.
                module = f"{base}.{alias.name}"
                yield module if module in FILES else base, node.lineno


def _top(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the statements that run on import, leaving out ``if TYPE_CHECKING``."""
    for node in ast.iter_child_nodes(tree):
        guard = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        if not guard and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
            yield from _top(node)


@together("path", CORE)
def test_the_core_imports_no_framework(path: Path) -> None:
    """No module of the core imports a framework, not even inside a function."""
    found = {m.partition(".")[0] for m, _ in _imports(path, inside=True)}
    assert found & _foreign(path) == set()
    assert not {m for m, _ in _imports(path, inside=False)} & set(FRAMEWORKS)


@together("path", CORE)
def test_the_core_names_no_framework_in_code(path: Path) -> None:
    """Outside docstrings and comments no framework's name stands in the core's code."""
    tree = ast.parse(path.read_text())
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef))
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    words = re.compile(rf"\b({'|'.join(_foreign(path) - {'sparse'})})\b", re.IGNORECASE)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) not in docstrings:
                assert not words.search(node.value), node.lineno
        elif isinstance(node, (ast.Name, ast.Attribute)):
            name = node.id if isinstance(node, ast.Name) else node.attr
            assert not words.fullmatch(name), node.lineno


def _plugin(path: Path) -> str:
    """Return the plugin that a file belongs to: its folder, or itself."""
    return path.relative_to(ROOT / "plugins" / "interop_plugins").with_suffix("").parts[0]


@together("path", PLUGINS)
def test_plugins_use_only_the_authors_interface(path: Path) -> None:
    """A plugin imports ``interop``, its errors, the authors' interface, and no other plugin."""
    interface = (
        *("interop", "interop.errors", "interop.kit"),
        *("interop.plugin", "interop.plugin.advanced"),
    )
    own = f"interop_plugins.{_plugin(path)}"
    for module, line in _imports(path, inside=False):
        top = module.partition(".")[0]
        if top == "interop":
            assert module in interface, f"line {line}"
        if top == "interop_plugins":
            assert module == own or module.startswith(f"{own}."), f"line {line}: {module}"
        assert top not in FRAMEWORKS, f"line {line}"
        assert top in sys.stdlib_module_names or top.startswith("interop"), f"line {line}: {module}"


def test_a_plugin_of_several_files_is_a_folder() -> None:
    """Beside the folders there are only plugins of one file."""
    names = {_plugin(path) for path in PLUGINS} - {"__init__"}
    assert names == set(PROJECT["project"]["entry-points"]["interop"])
    assert [name for name in names if name.startswith("_")] == []


def _room(module: str) -> str:
    """Return the room of a module of the core."""
    return module.split(".")[1] if "." in module else "__init__"


def _arrows() -> dict[tuple[str, str], set[str]]:
    """Return the imports between rooms, also those inside functions and for type checkers."""
    arrows: dict[tuple[str, str], set[str]] = {}
    for path in CORE:
        for module, line in _imports(path, inside=True):
            rooms = _room(_module(path)), _room(module)
            if module.startswith("interop.") and rooms[0] != rooms[1]:
                arrows.setdefault(rooms, set()).add(f"{path.relative_to(ROOT)}:{line}")
    return arrows


def test_rooms_import_only_what_the_table_allows() -> None:
    """Every import between rooms of the core, lazy ones included, stands in pyproject's table."""
    allowed = {(room, other) for room, others in ROOMS.items() for other in others}
    arrows = _arrows()
    assert {rooms: places for rooms, places in arrows.items() if rooms not in allowed} == {}
    assert allowed - arrows.keys() == set(), "the table allows what nobody needs"


def test_rooms_stand_on_floors() -> None:
    """A room imports only rooms above it in the table, so that there is no circle."""
    order = list(ROOMS)
    assert {_room(_module(path)) for path in CORE} == set(order)
    for room, others in ROOMS.items():
        assert all(order.index(other) < order.index(room) for other in others), room


def test_no_files_import_each_other_in_a_circle() -> None:
    """There is no circle among files, imports in functions and for type checkers included."""
    graph = {
        module: {other for other, _ in _imports(path, inside=True) if other in FILES}
        for module, path in FILES.items()
    }
    assert _circles(graph) == set()


def _circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """Return the nodes of each circle of a graph, circles that share a node as one."""

    def reached(node: str) -> set[str]:
        found: set[str] = set()
        new = graph[node]
        while new:
            found |= new
            new = {other for one in new for other in graph[one]} - found
        return found

    behind = {node: reached(node) for node in graph}
    return {
        frozenset(other for other in others if node in behind[other])
        for node, others in behind.items()
        if node in others
    }


def test_the_wheel_is_our_own_code_under_one_licence() -> None:
    """What goes into the wheel is Python, and nothing vendored, under Apache-2.0 alone."""
    project, targets = PROJECT["project"], PROJECT["tool"]["hatch"]["build"]["targets"]
    assert (project["license"], project["license-files"]) == ("Apache-2.0", ["LICENSE"])
    paths = [path for name in targets["wheel"]["packages"] for path in (ROOT / name).rglob("*")]
    files = [path for path in paths if path.is_file() and path.parent.name != "__pycache__"]
    assert {path.suffix for path in files} == {".py", ".pyi", ".typed"}


def test_contributing_shows_the_table_of_rooms() -> None:
    """The picture of the floors in CONTRIBUTING names every room with what it may import."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    for room, others in ROOMS.items():
        names = ", ".join(f"`{other}`" for other in others) or "—"
        assert f"| `{room}` | {names} |" in text, room


def test_entry_points_are_the_files_and_are_installed() -> None:
    """pyproject's table names the plugins by their folders or files, and is what is installed."""
    declared = PROJECT["project"]["entry-points"]["interop"]
    assert all(value == f"interop_plugins.{name}" for name, value in declared.items())
    installed = {
        e.name: e.value
        for e in entry_points(group="interop")
        if e.dist and e.dist.name == "array-interop"
    }
    assert installed == declared, "run: pip install -e ."


def test_interop_has_no_private_methods() -> None:
    """Whatever its public methods call belongs to the objects that an instance wires."""
    private = [name for name in vars(interop.Interop) if re.match("_(?!_)", name)]
    assert private == []


def test_every_bundled_plugin_loads() -> None:
    """No first-party plugin is broken or blocked."""
    own = [p for p in interop.plugins() if p.distribution == "array-interop"]
    assert {p.state for p in own} == {"loaded"}


@pytest.mark.parametrize(
    "program",
    [
        "interop.plugins(), interop.formats(), interop.conversions()",
        """
        spec = interop.make_spec("torch", "bfloat16", device="cuda:0", shape=(4, 4))
        interop.plan(spec, to="cupy"), interop.plan(spec, to="numpy", dtype="float32")
        """,
    ],
    ids=["loading", "planning"],
)
def test_neither_loading_nor_planning_imports_a_framework(
    program: str, in_subprocess: Callable[..., str]
) -> None:
    """After all plugins are loaded, or routes planned from a spec, no framework is in memory."""
    head = "import sys, interop\nassert 'pluggy' not in sys.modules\n"
    shown = f"print(sorted(set(sys.modules) & set({FRAMEWORKS!r})))"
    assert in_subprocess(f"{head}{dedent(program)}\n{shown}").strip() == "[]"


def test_the_package_itself_imports_next_to_nothing(in_subprocess: Callable[..., str]) -> None:
    """``import interop`` alone imports none of the modules that take longer than it does."""
    program = """
        import sys
        before = {"site", *sys.modules}
        import interop
        print(sorted(sys.modules.keys() - before))
    """
    assert in_subprocess(program).strip() == "['__future__', 'interop']"


@pytest.mark.parametrize(
    "module", [interop, interop.plugin, interop.testing], ids=lambda m: m.__name__
)
def test_everything_public_is_listed_and_documented(module: object) -> None:
    """Every name in `__all__` exists once, and functions and classes have docstrings."""
    names = module.__all__  # type: ignore[attr-defined]
    assert len(set(names)) == len(names)
    assert not [name for name in names if not hasattr(module, name)]
    for name in names:
        value = getattr(module, name)
        if inspect.isroutine(value) or inspect.isclass(value):
            assert inspect.getdoc(value), name


def test_every_public_name_knows_its_home() -> None:
    """The stub and `__all__` agree, and an unknown name is an AttributeError."""
    assert set(interop._modules()) == set(interop.__all__)
    assert set(interop.__all__) <= set(dir(interop))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = interop.nonsense


def test_the_version_is_the_distributions() -> None:
    """`__version__` is what the metadata and the citation say."""
    from importlib.metadata import version

    assert interop.__version__ == version("array-interop")
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {interop.__version__}\n" in citation


def test_an_index_shows_no_link_into_the_repository() -> None:
    """The description of the distribution keeps the README's text, and only links that lead somewhere."""
    from importlib.metadata import metadata

    description = metadata("array-interop")["Description"]
    readme = (ROOT / "README.md").read_text("utf-8")
    link = re.compile(r"\]\((?!https://)[^)]*\)")
    assert len(link.findall(readme)) > 10
    assert link.findall(description) == []
    assert "[Benchmarks](docs/reference/benchmarks.md) says how" in readme
    assert "Benchmarks says how" in description


def test_nothing_speaks_of_this_machine() -> None:
    """No tracked text holds an absolute path of a home or work directory."""
    words = re.compile(r"(?<![\w./])/(home|root|work|tmp)/\w")
    for path in ROOT.rglob("*"):
        parts = set(path.relative_to(ROOT).parts)
        if path.suffix in {".py", ".md", ".toml"} and not parts & {
            ".venv",
            "venv",
            "build",
            "dist",
            ".git",
        }:
            assert not words.search(path.read_text()), path


def test_the_package_offers_nothing_but_its_public_names() -> None:
    """What editors complete behind ``interop.`` without running it: no import of the file's own."""
    tree = ast.parse((ROOT / "interop" / "__init__.py").read_text())
    imports = [node for node in _top(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    bound = [alias.asname or alias.name for node in imports for alias in node.names]
    assert [name for name in bound if not name.startswith("_")] == []


def test_the_stub_shows_the_docstring_of_the_package() -> None:
    """Over the name of the package, editors show what stands at the top of its stub."""
    package = ROOT / "interop"
    stub, source = (ast.parse((package / f"__init__.{end}").read_text()) for end in ("pyi", "py"))
    assert ast.get_docstring(stub) == ast.get_docstring(source) == inspect.cleandoc(interop.__doc__)
