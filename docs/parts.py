"""Files of which some parts are made from the declarations, and the rest is written by hand."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from pathlib import Path

__all__ = ["filled", "store_or_print"]


def filled(text: str, parts: Mapping[str, str], begin: str, end: str) -> str:
    """Return a text with its parts between markers made anew.

    Parameters
    ----------
    text : str
    parts : mapping of str to str
        What stands between the lines of the markers, by the name of the part.
    begin, end : str
        The markers, with ``{}`` in the place of the name.

    Raises
    ------
    ValueError
        The text lacks a part, or has one that does not exist.
    """
    first, last = begin.format(r"(?P<name>\w+)"), end.format("(?P=name)")
    pattern = re.compile(rf"(?P<begin>{first}\n).*?(?P<end> *{last}\n)", re.DOTALL)
    found = [part["name"] for part in pattern.finditer(text)]
    if sorted(found) != sorted(parts):
        raise ValueError(f"the text and what is made differ in {set(found) ^ set(parts)}")
    return pattern.sub(lambda part: f"{part['begin']}{parts[part['name']]}\n{part['end']}", text)


def store_or_print(rendered: Mapping[Path, Callable[[str], str]], description: str | None) -> None:
    """Print files with their parts made anew, or write them if the command says ``--store``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--store", action="store_true", help="write them")
    store = parser.parse_args().store
    for path, render in rendered.items():
        text = render(path.read_text("utf-8"))
        if store:
            path.write_text(text, "utf-8")
        else:
            print(text, end="")
