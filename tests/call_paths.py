"""What one has to read to know what a call does: the calls and the concepts of each path.

``python -m tests.call_paths`` shows them, ``python -m tests.call_paths --store`` stores the calls in
``tests/call_paths.txt``, which `tests.test_call_paths` compares.

Calls are calls of functions that stand in the core or in a bundled plugin. Their number depends on
nothing but the code, the frameworks that are imported and the version of Python. Concepts are the
classes and type aliases of the core that are named in the functions that run. "Cold" is the first
call of its kind on an instance whose plugins are loaded and whose graph is made; "warm" is the third.
"""

from __future__ import annotations

import ast
import collections
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch

import interop
import interop_plugins

CORE, PLUGINS = (Path(package.__path__[0]) for package in (interop, interop_plugins))
STORED = Path(__file__).with_suffix(".txt")

#: The file, the first line and the qualified name of a function.
Function = tuple[str, int, str]


class PathFigures(NamedTuple):
    """The figures of one path."""

    calls: int
    functions: int
    modules: int
    concepts: int


def _trees() -> dict[str, ast.Module]:
    files = [*CORE.rglob("*.py"), *PLUGINS.rglob("*.py")]
    return {str(file): ast.parse(file.read_text("utf-8")) for file in files}


def concepts(trees: dict[str, ast.Module] | None = None) -> dict[str, set[str]]:
    """Return the classes and type aliases of the core, each with the files that define it."""
    defined: dict[str, set[str]] = collections.defaultdict(set)
    for file, tree in (trees or _trees()).items():
        for node in ast.walk(tree) if file.startswith(str(CORE)) else ():
            if isinstance(node, ast.ClassDef):
                defined[node.name].add(file)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                is_alias = getattr(node.annotation, "id", "") == "TypeAlias"
                defined[node.target.id].update([file] if is_alias else [])
    return {name: files for name, files in defined.items() if files}


def _nodes(trees: dict[str, ast.Module]) -> dict[tuple[str, int], ast.AST]:
    """Return the functions by file and first line, their decorators' included."""
    kinds = ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda
    return {
        (file, min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])): node
        for file, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    }


def _functions_of(call: Callable[[], object]) -> list[Function]:
    """Return the functions that a call runs, in order and as often as they run."""
    functions: list[Function] = []
    roots = str(CORE), str(PLUGINS)

    def profile(frame: Any, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(roots):
            functions.append((code.co_filename, code.co_firstlineno, code.co_qualname))

    sys.setprofile(profile)
    try:
        with suppress(interop.InteropError):
            call()
    finally:
        sys.setprofile(None)
    return functions


def _loaded() -> interop.Interop:
    mine = interop.Interop()
    mine.formats()
    mine.convert(np.ones(2), to="torch")
    mine.convert([1.0], to="numpy")
    return mine


def _calls() -> Iterator[tuple[str, Callable[[], object]]]:
    """Yield the paths, each with its name; a path has to be taken before the next is asked for."""
    plain, grad = torch.ones(3), torch.ones(3, requires_grad=True)
    csr, masked = scipy.sparse.csr_array(np.eye(3)), np.ma.array([1.0, 2.0], mask=[False, True])
    batch, out = {"a": plain, "b": [plain, plain]}, np.empty(3, "f4")
    requests: dict[str, Callable[[interop.Interop], object]] = {
        "plain": lambda mine: mine.convert(plain, to="numpy"),
        "grad": lambda mine: mine.convert(grad, to="numpy"),
        "dtype": lambda mine: mine.convert(plain, to="numpy", dtype="float64"),
        "csr to torch": lambda mine: mine.convert(csr, to="torch"),
        "out": lambda mine: mine.convert(plain, out=out),
        "tree of three": lambda mine: mine.convert_tree(batch, to="numpy"),
        "refused": lambda mine: mine.convert(masked, to="torch"),
        "plan": lambda mine: mine.plan(grad, to="numpy"),
    }
    for name, request in requests.items():
        mine = _loaded()

        def call(request: Any = request, mine: interop.Interop = mine) -> object:
            return request(mine)

        yield f"{name}, cold", call
        with suppress(interop.InteropError):
            call()
        yield f"{name}, warm", call
    same = _loaded().accepts("numpy")(lambda x: x)
    yield "accepts, cold", lambda: same(plain)
    same(plain)
    yield "accepts, warm", lambda: same(plain)


def figures() -> dict[str, PathFigures]:
    """Return the figures of all paths, by their names."""
    trees = _trees()
    names, nodes = concepts(trees), _nodes(trees)
    paths = {}
    for name, call in _calls():
        functions = _functions_of(call)
        needed: set[str] = set()
        for file, line, qualified in set(functions):
            needed.update(part for part in qualified.split(".") if part in names)
            for node in ast.walk(nodes.get((file, line), ast.Pass())):
                word = node.id if isinstance(node, ast.Name) else getattr(node, "value", None)
                if isinstance(word, str) and word in names:
                    needed.add(word)
        distinct, files = set(functions), {file for file, *_ in functions}
        paths[name] = PathFigures(len(functions), len(distinct), len(files), len(needed))
    return paths


def stored() -> dict[str, int]:
    """Return the calls of the paths that are stored, by their names."""
    lines = STORED.read_text("utf-8").splitlines()
    return {name.strip(): int(calls) for name, calls in (line.rsplit(None, 1) for line in lines)}


def main() -> None:
    """Show the figures, or store the calls."""
    paths = figures()
    if "--store" in sys.argv:
        lines = [f"{name:24}{path.calls:6}" for name, path in paths.items()]
        STORED.write_text("\n".join([*lines, ""]), "utf-8")
        return
    print(f"{len(concepts())} classes and aliases")
    print(f"{'path':24} {'calls':>6} {'functions':>9} {'modules':>7} {'concepts':>8}")
    for name, path in paths.items():
        print(f"{name:24} {path.calls:6} {path.functions:9} {path.modules:7} {path.concepts:8}")


if __name__ == "__main__":
    main()
