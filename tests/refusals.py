"""Refusals and errors: requests, and the whole text that each is answered with.

``tests/refusals.txt`` holds them as in a Python shell, in sections whose headings name the modules
that they need. To add a request, write it there; ``python -m tests.refusals --store`` writes the
answers, and without ``--store`` prints them. A test compares the two, so that no text changes
without a line in a diff. What a request needs is written before it; a line that raises or warns is
a request.
"""

from __future__ import annotations

import doctest
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import interop
from interop import plugin
from interop.errors import InteropError, RefusedError
from interop.plugin import advanced
from tests import toys

FILE = Path(__file__).with_suffix(".txt")

#: How the requests write modules.
NICKNAMES = {"numpy": "np", "pandas": "pd", "polars": "pl", "pyarrow": "pa", "jax.numpy": "jnp"}
#: What changes from run to run, from machine to machine and from version to version.
FLEETING = {
    r"(?<=at )0x[0-9a-f]+": "0x…",
    # Those that are imported come first.
    r"the frameworks are (?!used)[^;]*\.$": "the frameworks are ….",
    r"only [\d.,]+ \w+ of": "only … of",
    r"\b\d+\.\d+\.\d+[\w.+]*": "1.2.3",
    re.escape(str(Path(__file__).parents[1])) + r"|" + re.escape(sys.prefix): "…",
    r"more than \d+ levels": "more than … levels",
}


class Section(NamedTuple):
    """Requests that need the same modules."""

    title: str
    modules: tuple[str, ...]
    text: str

    @property
    def missing(self) -> list[str]:
        """What is not installed of what the requests need."""
        return [name for name in self.modules if not _is_installed(name)]

    @property
    def of_the_core(self) -> bool:
        """Whether the requests need no framework but NumPy."""
        return {*self.modules} <= {"numpy", "ml_dtypes"}

    def answered(self) -> str:
        """Return the section with the answers that its requests get now."""
        names = _names(self.modules)
        for name in self.modules:
            package = name.partition(".")[0]
            module = import_module(name)
            names[NICKNAMES.get(name, package)] = (
                module if name in NICKNAMES else sys.modules[package]
            )
        return "".join(
            piece if isinstance(piece, str) else _answered(piece, names)
            for piece in doctest.DocTestParser().parse(self.text)
        )


def sections() -> list[Section]:
    """Return the sections as they are stored."""
    head, *parts = re.split(r"^(?=## )", FILE.read_text("utf-8"), flags=re.MULTILINE)
    made = [Section("", (), head)]
    for part in parts:
        title, _, modules = part.partition("\n")[0].removeprefix("## ").partition(": ")
        made.append(Section(title, tuple(filter(None, modules.split(", "))), part))
    return made


def _is_installed(module: str) -> bool:
    with suppress(ModuleNotFoundError):  # of the package that the module is in
        return find_spec(module) is not None
    return False


def _names(modules: tuple[str, ...]) -> dict[str, Any]:
    """Return what the requests of a section can use: the public names, and toys."""
    names: dict[str, Any] = {"__name__": "requests", "interop": interop}
    for module in (interop, toys, advanced, plugin):
        public = getattr(module, "__all__", ["Box", "copy", "toy", "view"])
        names |= {name: getattr(module, name) for name in public}
    return names | {"convert": interop.convert, "plan": interop.plan, "copy": toys.copy}


def _answered(example: doctest.Example, names: dict[str, Any]) -> str:
    """Return a request with its answer; a second time it is answered alike."""
    lines = example.source.splitlines()
    shown = "".join(
        f"{'...' if n else '>>>'} {line}".rstrip() + "\n" for n, line in enumerate(lines)
    )
    answer = "".join(_said(example.source, names))
    again = "".join(_said(example.source, names)) if answer else ""
    return shown + answer + (f"THE SECOND TIME: {again}" if again != answer else "")


def _said(source: str, names: dict[str, Any]) -> Iterator[str]:
    """Yield the warnings and the error of a statement, and the effects that the error names."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)  # of frameworks
        try:
            exec(compile(source, "<request>", "exec"), names)
            error = None
        except Exception as raised:  # noqa: BLE001 - whatever is raised is what is asked for
            error = raised
    for warning in caught:
        yield f"{warning.category.__name__}: {_steady(str(warning.message))}\n"
    if isinstance(error, InteropError):
        yield f"{type(error).__name__}: {_steady(str(error))}\n"
        if isinstance(error, RefusedError) and error.effects:
            yield f"  [effects: {', '.join(sorted(error.effects))}]\n"
        yield from (
            f"  [{_steady(note)}]\n"
            for note in getattr(error, "__notes__", ())
            if note.startswith("raised in")
        )
    elif error is not None:
        yield f"{type(error).__name__}, which is not interop's\n"


def _steady(text: str) -> str:
    for fleeting, steady in FLEETING.items():
        text = re.sub(fleeting, steady, text, flags=re.MULTILINE)
    return text.replace("\n\n", "\n<BLANKLINE>\n")


if __name__ == "__main__":
    made = "".join(s.text if s.missing else s.answered() for s in sections())
    for section in sections():
        if section.missing:
            print(f"left as it is: {section.title}, without {', '.join(section.missing)}")
    if "--store" in sys.argv:
        FILE.write_text(made, "utf-8")
    else:
        print(made, end="")
