"""The notebook of the first tutorial."""

from __future__ import annotations

import ast
import doctest
import json

from docs import notebook
from tests.docs.test_docs import FLAGS, timeless


def test_the_notebook_is_that_of_the_page() -> None:
    """What is stored is made of the page as it is; ``python -m docs.notebook --store`` renews it."""
    assert notebook.STORED.read_text("utf-8") == notebook.notebook(notebook.PAGE.read_text("utf-8"))


def test_the_cells_show_what_is_stored() -> None:
    """From top to bottom in one process, as "run all" does, each cell shows its output."""
    names: dict[str, object] = {}
    shown = 0
    for cell in json.loads(notebook.STORED.read_text("utf-8"))["cells"]:
        if cell["cell_type"] != "code":
            continue
        try:
            text = _run("".join(cell["source"]), names)
        except Exception as error:  # noqa: BLE001 - compared below
            assert "raises-exception" in cell["metadata"].get("tags", ()), "it stops what runs all"
            text = f"{type(error).__name__}: {error}"
        for output in cell["outputs"]:
            if "data" in output:
                want = "".join(output["data"]["text/plain"])
            elif output["output_type"] == "error":
                want = output["traceback"][0]
            else:
                continue  # it was printed
            shown += 1
            flags = doctest.OutputChecker().check_output(
                timeless(want) + "\n", timeless(text) + "\n", FLAGS
            )
            assert flags, (cell["source"], want, text)
        if not cell["outputs"]:
            assert text == "", cell["source"]
    assert shown > 25


def _run(source: str, names: dict[str, object]) -> str:
    """Run a cell; return what its last expression shows."""
    *statements, last = ast.parse(source).body
    if not isinstance(last, ast.Expr):
        statements, shown = [*statements, last], None
    else:
        shown = last.value
    exec(compile(ast.Module(statements, []), "cell", "exec"), names)
    value = None if shown is None else eval(compile(ast.Expression(shown), "cell", "eval"), names)
    return "" if value is None else repr(value)
