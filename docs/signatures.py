"""The overloads for type checkers, made from the declarations of the bundled plugins.

``python -m docs.signatures`` prints the file, ``--store`` writes it. What the file has between
``# begin NAME`` and ``# end NAME`` is made here, and the rest is written by hand. A test compares
the file with what comes out.
"""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import interop
import interop_plugins
from interop._api.inspection import Inspection
from interop._model.dtype import DTYPES, SPELLINGS

from .parts import filled, store_or_print

__all__ = ["FILE", "Results", "rendered", "results", "words"]

FILE = Path(interop_plugins.__path__[0]) / "signatures.pyi"

#: Types that stand for others in annotations. Of torchao's classes checkers know nothing; all are
#: torch's.
_INSTEAD = {"torchao": "torch:Tensor"}
#: Annotations that are not the type, because they say more, or are all that checkers find.
_ANNOTATIONS = {
    "numpy:ndarray": "numpy.typing.NDArray[Any]",
    "dask.array.core:Array": "dask.array.Array",
    "builtins:list": "list[Any]",
    "builtins:complex": "complex",
}
#: The types of results of formats that are named by no type: checkers take all of Python's numbers
#: for complex ones.
_OF_NAMES = {"python": ("builtins:list", "builtins:complex")}
#: The objects that name formats as strings do, by the type of the results.
_OBJECTS = {("torch:Tensor",): " | torch.layout"}

#: The kinds of devices that a machine has several of, and how many are named.
_NUMBERED, _MOST = ("cpu", "cuda", "rocm", "tpu", "xpu"), 16

#: The keywords of a call with a target; checkers print a `TypedDict` by its name, whereas fifty
#: overloads of a wrong call would fill screens with all dtypes.
_TO = "**keywords: Unpack[Keywords]"


class Results(NamedTuple):
    """The results that some words in ``to=`` ask for.

    Parameters
    ----------
    types : tuple of str
        Those that a result may be of, as declared: ``"module:name"``.
    words : tuple of str
    """

    types: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def annotation(self) -> str:
        """The types, as they stand in the file."""
        return " | ".join(_ANNOTATIONS.get(type_, type_.replace(":", ".")) for type_ in self.types)

    @property
    def alias(self) -> str:
        """What the file calls the words: by the shortest that is no nickname."""
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
    """Return the results of all words, in the order of their names."""
    registry = Inspection(interop.default).registry
    by_types: dict[tuple[str, ...], list[str]] = {}
    for word in words():
        types = [type_ for name in registry.named(word) for type_ in _types(name)]
        by_types.setdefault(tuple(dict.fromkeys(types)), []).append(word)
    found = [Results(types, tuple(named)) for types, named in by_types.items()]
    return sorted(found, key=lambda result: result.alias)


def _types(name: str) -> tuple[str, ...]:
    """Return the types of the values of a format: the first that names it, if any does."""
    if name in _OF_NAMES:
        return _OF_NAMES[name]
    type_ = _formats()[name].naming_types[0]
    return (_INSTEAD.get(type_.split(".")[0], type_),)


def _parts() -> Iterator[tuple[str, str]]:
    """Yield what is made here, with its name in the file."""
    every = results()
    modules = {
        annotation.partition("[")[0].rpartition(".")[0]
        for result in every
        for annotation in result.annotation.split(" | ")
    }
    yield "imports", "\n".join([*(f"import {m}" for m in sorted(modules - {""})), ""])
    literals = {result.alias: result.words for result in every}
    lines = [
        f"{alias}: TypeAlias = Literal{json.dumps(names)}" for alias, names in literals.items()
    ]
    union = textwrap.fill(" | ".join(literals), 90)
    lines += ["Name: TypeAlias = (", textwrap.indent(union, "    "), ")"]
    lines.append(f"DtypeName: TypeAlias = Literal{json.dumps(_dtype_names())}")
    lines.append(f"DeviceName: TypeAlias = Literal{json.dumps(_device_names())}")
    yield "names", "\n".join(lines)
    yield "convert", _overloads("convert", "x: object, /, ", "{}", out=True)
    yield "converter", _overloads("converter", "", "Callable[[object], {}]")
    yield "plan", _overloads("plan", "x_or_spec: object, /, ", "RouteTo[{}]")
    yield "convert_tree", "\n".join(_of_trees())
    yield "accepts", "\n".join(_of_accepts())


def _dtype_names() -> list[str]:
    return sorted({*DTYPES, *SPELLINGS})


def _device_names() -> list[str]:
    kinds = {device for format_ in _formats().values() for device in format_.devices}
    numbered = [f"{kind}:{number}" for kind in _NUMBERED for number in range(_MOST)]
    return [*sorted(kinds), *numbered]


def _overloads(call: str, first: str, answer: str, *, out: bool = False) -> str:
    """Return an overload for each type, and those for modules, other types and values."""
    overloads = [
        (f"{first}to: {result.alias}{_OBJECTS.get(result.types, '')}, {_TO}", result.annotation)
        for result in results()
    ]
    overloads += [
        (f"{first}to: Framework[T], {_TO}", "T"),
        (f"{first}to: ModuleType, {_TO}", "Any"),
        (f"{first}to: type[T], {_TO}", "T"),
        (f"{first}to: Several, {_TO}", "Any"),
        (f"{first}*, like: T, {_TO}", "T"),
    ]
    if out:
        overloads.append((f"{first}*, out: T, **keywords: Unpack[OutKeywords]", "T"))
    lines = []
    for number, (parameters, type_) in enumerate(overloads):
        body = " ..." if number else f"\n{_docstring(call)}"
        lines.append(f"@overload\ndef {call}({parameters}) -> {answer.format(type_)}:{body}")
    return "\n".join(lines)


def _docstring(call: str) -> str:
    text = inspect.cleandoc(getattr(interop.Interop, call).__doc__)
    return textwrap.indent(f'"""{text}\n"""', "    ", lambda line: bool(line.strip()))


def _of_trees() -> Iterator[str]:
    """Yield the overloads for trees: containers of these kinds come out as what they were."""
    rest = (
        'to: Target | None = None, *, cast_all: bool = False, others: OtherLeaves = "keep", '
        f"progress: bool = False, consume: bool = False, like: object = None, {_TO}"
    )
    kinds = {
        "OrderedDict[K, V]": "OrderedDict[K, Any]",
        "defaultdict[K, V]": "defaultdict[K, Any]",
        "dict[K, V]": "dict[K, Any]",
        "list[V]": "list[Any]",
        "object": "Any",
    }
    for number, (tree, answer) in enumerate(kinds.items()):
        body = " ..." if number else f"\n{_docstring('convert_tree')}"
        yield f"@overload\ndef convert_tree(tree: {tree}, /, {rest}) -> {answer}:{body}"


def _of_accepts() -> Iterator[str]:
    yield (
        "@overload\n"
        "def accepts(  # type: ignore[overload-overlap] # classes can be called, and name formats\n"
        "    to: Name | type | ModuleType | Several, *, grad: bool = False, "
        "**keywords: Unpack[ArrayKeywords]\n"
        f") -> Callable[[Callable[P, R]], Callable[P, R]]:\n{_docstring('accepts')}"
    )
    yield "@overload\ndef accepts(to: Callable[P, R], /) -> Callable[P, R]: ..."


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
