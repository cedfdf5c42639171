"""The notebook of the first tutorial: the page, cell by cell, with what each cell shows.

``python -m docs.notebook --store`` writes it anew from the page, whose examples the tests run.
"""

from __future__ import annotations

import doctest
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parent / "tutorial" / "first-conversions.md"
STORED = PAGE.with_suffix(".ipynb")

#: A block of Python of a page.
_BLOCK = re.compile(r"```python\n(.*?)```\n", re.DOTALL)
#: What stands before the first heading.
_HEAD = re.compile(r"\A---\n.*?\n---\n\n", re.DOTALL)
#: The sentence that leads to the notebook.
_DOWNLOAD = re.compile(r"^.*\{download\}.*\n\n", re.MULTILINE)
_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def cells(page: str) -> Iterator[dict[str, Any]]:
    """Yield the cells of a page: one for each text, and for each statement that shows something."""
    for number, part in enumerate(_BLOCK.split(_HEAD.sub("", page))):
        if number % 2:
            yield from _code(part)
        elif part := _DOWNLOAD.sub("", part).strip():
            yield {"cell_type": "markdown", "metadata": {}, "source": _lines(part)}


def _code(block: str) -> Iterator[dict[str, Any]]:
    sources: list[str] = []
    examples = doctest.DocTestParser().get_examples(block)
    for example in examples:
        sources.append(example.source.rstrip("\n"))
        if example.want or example is examples[-1]:
            # Without the tag, "run all" stops at the first refusal.
            tags = {"tags": ["raises-exception"]} if example.exc_msg else {}
            yield {
                "cell_type": "code",
                "execution_count": None,
                "metadata": tags,
                "outputs": _outputs(example),
                "source": _lines("\n".join(sources)),
            }
            sources = []


def _outputs(example: doctest.Example) -> list[dict[str, Any]]:
    text = example.want.rstrip("\n")
    if example.exc_msg:
        name, _, message = example.exc_msg.strip().partition(": ")
        name = name.rpartition(".")[2]
        shown = [f"{name}: {message}"]
        return [{"output_type": "error", "ename": name, "evalue": message, "traceback": shown}]
    if not text:
        return []
    if example.source.startswith(("print(", "with ", "for ")):
        return [{"output_type": "stream", "name": "stdout", "text": _lines(text)}]
    result: dict[str, Any] = {
        "output_type": "execute_result",
        "execution_count": None,
        "metadata": {},
    }
    return [{**result, "data": {"text/plain": _lines(text)}}]


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def notebook(page: str) -> str:
    """Return the notebook of a page, as JSON."""
    document = {
        "cells": [{"id": f"cell-{n}", **cell} for n, cell in enumerate(cells(page))],
        "metadata": _METADATA,
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    if sys.argv[1:] != ["--store"]:
        raise SystemExit(__doc__)
    STORED.write_text(notebook(PAGE.read_text("utf-8")), "utf-8")
