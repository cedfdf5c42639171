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
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import interop
import interop_plugins
from interop._api.inspection import Inspection
from interop._model.device import PAGE_LOCKED
from interop._model.dtype import DTYPES, KINDS, SPELLINGS
from interop._request.naming import named

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
#: The objects that name formats as strings do, by the type of the results. NumPy's array has type
#: arguments, which would be unknown if the type were taken as it is. No class of another
#: framework stands here: where it is not installed, its class is anything, and so each word passes.
_OBJECTS = {("numpy:ndarray",): " | NumpyModule | type[numpy.ndarray[Any, Any]]"}

#: The kinds of devices that a machine has several of, and how many are named.
_NUMBERED, _MOST = ("cpu", "cuda", "ext_dev", "oneapi", "rocm", "tpu", "xpu"), 16

#: The frameworks that are asked for most: what editors and checkers show begins with these.
_FIRST = ("numpy", "torch", "jax", "python", "pandas", "polars", "pyarrow", "scipy", "xarray")

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
    return {
        name: format_
        for name, format_ in _bundled().items()
        if not format_.protocol and (format_.naming_types or format_.aliases)
    }


def _bundled() -> dict[str, interop.Format]:
    registry = Inspection(interop.default).registry
    return {
        name: format_
        for name, format_ in registry.formats.items()
        if registry.provenance[name].distribution == "array-interop"
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
    """Return the results of all words, those asked for most first, then in the order of names."""
    registry = Inspection(interop.default).registry
    by_types: dict[tuple[str, ...], list[str]] = {}
    for word in words():
        types = [type_ for name in named(registry, word) for type_ in _types(name)]
        by_types.setdefault(tuple(dict.fromkeys(types)), []).append(word)
    found = [Results(types, tuple(names)) for types, names in by_types.items()]
    return sorted(found, key=_place)


def _place(result: Results) -> tuple[int, str]:
    frameworks = {word.partition(".")[0] for word in result.words}
    place = next((n for n, name in enumerate(_FIRST) if name in frameworks), len(_FIRST))
    return place, result.alias


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
    lines += [
        f"{alias}: TypeAlias = Literal{json.dumps(names)}"
        for alias, names in {
            "FormatName": sorted(_bundled()),
            "DtypeName": _dtype_names(),
            "KindName": list(KINDS),
            "DeviceName": _device_names(),
            "TraitName": list(interop.TRAITS),
        }.items()
    ]
    yield "names", "\n".join(lines)
    out = ("x: object, /, *, out: T, **keywords: Unpack[OutKeywords]", "T")
    yield "convert", _called("convert", [*_targets("x: object, /, ", "{}"), out])
    yield "converter", _called("converter", _targets("", "Callable[[object], {}]"))
    yield "plan", _called("plan", _targets("x_or_spec: object, /, ", "PlanTo[{}]"))
    yield "convert_tree", _called("convert_tree", _trees())
    yield "accepts", _called("accepts", _decorators())
    spec = (
        "format: FormatName, dtype: OneDtype, *, device: Device = ..., "
        "shape: tuple[int, ...] = ..., traits: TraitNames = ..."
    )
    yield "make_spec", _called("make_spec", [(spec, "Spec", "  # noqa: A002")])


def _dtype_names() -> list[str]:
    return sorted({*DTYPES, *SPELLINGS})


def _device_names() -> list[str]:
    formats = _formats().values()
    kinds = {device for format_ in formats for device in format_.devices}
    kinds |= {PAGE_LOCKED for format_ in formats if format_.advanced.page_locked}
    numbered = [f"{kind}:{number}" for kind in _NUMBERED for number in range(_MOST)]
    return [*sorted(kinds), *numbered]


def _called(call: str, overloads: Iterable[tuple[str, ...]]) -> str:
    """Return a function as an object that is called with these parameters, for these answers.

    Editors show its docstring, which begins with all keywords, instead of sixty signatures. And for
    strict checkers no type is unknown but that of a call whose framework is not installed.
    """
    kind = "".join(part.capitalize() for part in call.split("_"))
    calls = [
        f"    def __call__(self, {parameters}) -> {answer}: ...{''.join(comment)}"
        for parameters, answer, *comment in overloads
    ]
    several = len(calls) > 1
    lines = [line for each in calls for line in (["    @overload", each] if several else [each])]
    lines += [f"{call}: {kind}", _docstring(call, getattr(interop.Interop, call))]
    return "\n".join([f"class {kind}:", *lines])


def _docstring(call: str, method: Any) -> str:
    _, *parameters = inspect.signature(method).parameters.values()
    bare = [parameter.replace(annotation=inspect.Parameter.empty) for parameter in parameters]
    text = inspect.cleandoc(method.__doc__)
    return f'"""``{call}{inspect.Signature(bare)}``\n\n{text}\n"""'


def _targets(first: str, answer: str) -> Iterator[tuple[str, str]]:
    """Yield parameters and answers for each type, and for modules, other types and values."""
    for result in results():
        to = result.alias + _OBJECTS.get(result.types, "")
        yield f"{first}to: {to}, {_TO}", answer.format(result.annotation)
    yield f"{first}to: Framework[T], {_TO}", answer.format("T")
    yield f"{first}to: ModuleType, {_TO}", answer.format("Any")
    yield f"{first}to: type[T], {_TO}", answer.format("T")
    # a target that is handed on; and mypy names the argument that is wrong by this overload
    yield f"{first}to: Target, {_TO}", answer.format("Any")
    yield f"{first}*, like: T, {_TO}", answer.format("T")


def _trees() -> Iterator[tuple[str, ...]]:
    """Yield parameters and answers for trees: containers come out as what they were.

    What checkers do not know as a container comes last: by what can be hashed, as dicts and lists
    cannot, and by shape; the overloads for these must not fit a dict of anything, whose answer is
    anything otherwise.
    """
    rest = (
        'to: Target | None = None, *, cast_all: bool = False, others: OtherLeaves = "keep", '
        'lists: Literal["open", "arrays"] = "open", '
        f"progress: bool = False, consume: bool = False, like: object = None, {_TO}"
    )
    kinds = {
        "OrderedDict[K, V]": "OrderedDict[K, Any]",
        "defaultdict[K, V]": "defaultdict[K, Any]",
        "dict[K, V]": "dict[K, Any]",
        "list[V]": "list[Any]",
        "deque[V]": "deque[Any]",
        "Record": "Record",
        "tuple[V, ...]": "tuple[Any, ...]",
        "Hashable | HasShape": "Any",
    }
    for tree, answer in kinds.items():
        yield f"tree: {tree}, /, {rest}", answer
    # mypy takes every type for one that can be hashed, but where it sees that it cannot
    yield f"tree: T, /, {rest}", "T", "  # type: ignore[overload-cannot-match]"


def _decorators() -> Iterator[tuple[str, ...]]:
    """Yield parameters and answers for functions that accept any arrays.

    One that answers with an array of the type of its first argument gives callers theirs.
    """
    targets = "to: Target, *, grad: bool = False, lists: bool = False"
    # classes can be called, and name formats
    ignored = "  # type: ignore[overload-overlap]"
    function, answer = "Callable[Concatenate[X, P], R]", "Accepted[X, P, R]"
    keywords = "**keywords: Unpack[ArrayKeywords]"
    yield f"{targets}, {keywords}", f"Callable[[{function}], {answer}]", ignored
    yield f"to: {function}, /", answer


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
