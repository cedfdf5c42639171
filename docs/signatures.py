"""The overloads for type checkers, made from the declarations of the bundled plugins.

``python -m docs.signatures`` prints the file, ``--store`` writes it. What the file has between
``# begin NAME`` and ``# end NAME`` is made here, and the rest is written by hand. A test compares
the file with what comes out.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import interop
import interop_plugins
from interop._api.inspection import Inspection

from .parts import filled, store_or_print

__all__ = ["FILE", "Results", "rendered", "results", "words"]

FILE = Path(interop_plugins.__path__[0]) / "signatures.py"

#: Types that stand for others in annotations. Of torchao's classes checkers know nothing; all are
#: torch's.
_INSTEAD = {"torchao": "torch:Tensor"}
#: Annotations that are not the type, because they say more, or are all that checkers find.
_ANNOTATIONS = {
    "numpy:ndarray": "numpy.typing.NDArray[Any]",
    "dask.array.core:Array": "dask.array.Array",
}
#: The objects that name formats as strings do, by the type of the results.
_OBJECTS = {"torch:Tensor": " | torch.layout"}
#: The type of results where it depends on the value, or where no type names the format.
_ANY = "typing:Any"


class Results(NamedTuple):
    """The results of one type, and the words in ``to=`` that ask for them.

    Parameters
    ----------
    type : str
        As declared: ``"module:name"``.
    words : tuple of str
    """

    type: str
    words: tuple[str, ...]

    @property
    def annotation(self) -> str:
        """The type, as it stands in the file."""
        return _ANNOTATIONS.get(self.type, self.type.replace(":", ".")).removeprefix("typing.")

    @property
    def alias(self) -> str:
        """What the file calls the words: by the shortest that is no nickname."""
        if self.type == _ANY:
            return "Others"
        nicknames = [a for format_ in _formats().values() for a in format_.aliases]
        word = min(self.words, key=lambda word: (word in nicknames, len(word)))
        return "".join(part[:1].upper() + part[1:] for part in re.split(r"[._]", word))


def _formats() -> dict[str, interop.Format]:
    """Return the bundled formats that words can name; a protocol's are sources alone."""
    registry = Inspection(interop.default).registry
    return {
        name: format_
        for name, format_ in registry.formats.items()
        if registry.provenance[name].distribution == "array-interop"
        and not format_.protocol
        and (format_.naming_types or format_.aliases)
    }


def words() -> list[str]:
    """Return what names formats: their names, the parts that stand for several, and nicknames."""
    found: set[str] = set()
    for format_ in _formats().values():
        parts = format_.name.split(".")
        found |= {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
        found |= {alias for alias in format_.aliases if ":" not in alias}
    return sorted(found)


def results() -> list[Results]:
    """Return the types of results in the order of their names; those of no one type come last."""
    registry = Inspection(interop.default).registry
    by_type: dict[str, list[str]] = {}
    for word in words():
        types = {_type(name) for name in registry.named(word)}
        by_type.setdefault(types.pop() if len(types) == 1 else _ANY, []).append(word)
    found = [Results(type_, tuple(named)) for type_, named in by_type.items()]
    return sorted(found, key=lambda result: (result.type == _ANY, result.alias))


def _type(name: str) -> str:
    """Return the type of the values of a format: the first that names it."""
    type_ = (*_formats()[name].naming_types, _ANY)[0]
    return _INSTEAD.get(type_.split(".")[0], type_)


def _parts() -> Iterator[tuple[str, str]]:
    """Yield what is made here, with its name in the file."""
    every = results()
    named = [result for result in every if result.type != _ANY]
    modules = sorted({result.annotation.rpartition(".")[0] for result in named})
    own = [module for module in modules if module.startswith("interop_plugins.")]
    lines = [f"    import {module}" for module in modules if module not in own]
    lines += ["", *(f"    import {module}" for module in own)]
    yield "imports", "\n".join(["if TYPE_CHECKING:", *lines])
    lines = [f"{result.alias}: TypeAlias = Literal{json.dumps(result.words)}" for result in every]
    union = textwrap.fill(" | ".join(result.alias for result in every), 90)
    lines += ["Name: TypeAlias = (", textwrap.indent(union, "    "), ")"]
    yield "names", "\n".join(lines)
    yield "convert", _overloads(named, "x: object, /, ", "{}")
    yield "converter", _overloads(named, "", "Callable[[object], {}]")


def _overloads(named: list[Results], first: str, answer: str) -> str:
    """Return an overload for each type; those of modules and other targets are written by hand."""
    return "\n".join(
        f"    @overload\n    def __call__(self, {first}to: {result.alias}"
        f"{_OBJECTS.get(result.type, '')}, **keywords: Unpack[Keywords]) -> "
        f"{answer.format(result.annotation)}: ..."
        for result in named
    )


def rendered(text: str) -> str:
    """Return the text of the file with everything in it that is made here.

    Raises
    ------
    ValueError
        The file lacks a part, or has one that does not exist.
    """
    return filled(text, dict(_parts()), "# begin {}", "# end {}")


if __name__ == "__main__":
    store_or_print({FILE: rendered}, __doc__)
