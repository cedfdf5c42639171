"""The reference of the authors' interface, made from its docstrings and defaults.

``python -m docs.declarations`` prints its pages, ``--store`` writes them. Whatever stands
between ``<!-- begin NAME -->`` and ``<!-- end NAME -->`` is made here, and the rest is written by
hand. A test compares the pages with what comes out.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, is_dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from interop import kit, plugin
from interop._registry import hooks
from interop.plugin import advanced

from .parts import filled, store_or_print

__all__ = [
    "DECLARATIONS",
    "GROUPS",
    "HOOKS",
    "PAGE",
    "PAGES",
    "TOOLS",
    "Field",
    "fields",
    "fields_table",
    "generated",
    "hooks_table",
    "questions_table",
    "rendered",
    "tool_entry",
]

_REFERENCE = Path(__file__).parent / "reference"
#: The pages, and whose names each explains.
PAGES: dict[Path, ModuleType] = {
    _REFERENCE / "plugin.md": plugin,
    _REFERENCE / "plugin.advanced.md": advanced,
    _REFERENCE / "kit.md": kit,
}
#: The page that most authors need.
PAGE = _REFERENCE / "plugin.md"

#: The tables into which the fields of a declaration are divided, if they are many.
GROUPS: dict[str, dict[str, str]] = {
    "Format": {
        "every format": "name types describe dtypes devices carries exports memory requires "
        "install unary",
        "results": "target_types aliases ndims fill fast_path",
        "sparse, quantized, wrapped, labelled and lazy values": "index_dtypes components wrapper "
        "labels lazy",
        "the rest": "limits samples protocol replaces advanced",
    },
    "Components": {
        "every composite format": "layout format roles unpack pack unpack_keeps pack_seconds",
        "copies and refusals": "unpack_copies pack_copies packed_dtypes pack_adds pack_refuses "
        "pack_requires code_dtypes",
        "speed": "fast_unpack",
    },
    "Conversion": {
        "every conversion": "source target function takes effects cost dtypes devices",
        "what else it takes and makes": "requires drops adds checked changes across "
        "result ndims index_dtypes shares shares_only copies name",
        "speed": "fast_path adopt batch into",
        "streams, divided values, and who wins": "stream like replaces",
    },
}


def _is_function(tool: Any) -> bool:
    """Tell functions, also those that remember their results, from classes and markers."""
    return callable(tool) and hasattr(tool, "__name__") and not inspect.isclass(tool)


def _is_record(thing: Any) -> bool:
    return inspect.isclass(thing) and (hasattr(thing, "_fields") or is_dataclass(thing))


def _declarations(module: ModuleType) -> dict[str, Any]:
    """Return the named tuples and the dataclasses among the names of a module."""
    return {
        name: declaration
        for name, declaration in sorted(vars(module).items())
        if name in module.__all__ and _is_record(declaration)
    }


def _tools(module: ModuleType) -> dict[str, Any]:
    """Return what plugins call among the names of a module: functions, and a few classes."""
    classes = (
        *(kit.CapsuleProducer, kit.CastErrors, kit.ColumnReader),
        *(kit.CheckedProducer, kit.MemoryAt),
    )
    return {
        name: tool
        for name, tool in sorted(vars(module).items())
        if name in module.__all__ and (_is_function(tool) or tool in classes)
    }


#: The declarations of the authors' interface.
DECLARATIONS = _declarations(plugin) | _declarations(advanced) | _declarations(kit)
#: The functions and classes that a plugin calls.
TOOLS = _tools(plugin) | _tools(advanced) | _tools(kit)
#: The hooks that a plugin implements.
HOOKS: dict[str, Any] = {
    name: hook for name, hook in vars(hooks).items() if hasattr(hook, "interop_spec")
}


class Field(NamedTuple):
    """A field as its docstring describes it.

    Parameters
    ----------
    name : str
    type : str
    unit : str
        "" if it is not a number.
    default : str
        As source; "" if there is none and the field must be given.
    meaning : str
    """

    name: str
    type: str
    unit: str
    default: str
    meaning: str


def fields(declaration: Any) -> list[Field]:
    """Return the documented fields of a named tuple, in the order of its docstring."""
    return [
        Field(name, *_type_and_unit(type_), _default(declaration, name), meaning)
        for name, type_, meaning in _entries(declaration, "Parameters")
    ]


def _entries(documented: Any, section: str) -> Iterator[tuple[str, str, str]]:
    """Yield the names, types and descriptions of a section of a numpydoc docstring."""
    doc = f"\n\n{inspect.getdoc(documented)}\n"
    text = doc.partition(f"\n\n{section}\n{'-' * len(section)}\n")[2]
    text = re.split(r"\n\n\w[\w ]*\n-+\n", text)[0]
    for entry in re.split(r"^(?=\S)", text, flags=re.MULTILINE)[1:]:
        head, _, body = entry.partition("\n")
        names, _, type_ = head.partition(" : ")
        for name in names.split(", "):
            yield name, type_, " ".join(body.split())


def _summary(documented: Any) -> str:
    """Return what a docstring says before its first section."""
    doc = inspect.getdoc(documented) or ""
    return _markdown(re.split(r"\n\n\w[\w ]*\n-+\n", doc)[0])


def _type_and_unit(type_: str) -> tuple[str, str]:
    """Divide ``float, in seconds`` and ``int, without unit``."""
    parts = re.fullmatch(r"(.+), (?:in (.+)|(without unit))", type_)
    return (parts[1], parts[2] or "none") if parts else (type_, "")


def _defaults(declaration: Any) -> Mapping[str, Any]:
    """Return the defaults of the fields that need not be given."""
    if not is_dataclass(declaration):
        return declaration._field_defaults  # type: ignore[no-any-return]
    defaults = {field.name: field.default for field in dataclasses.fields(declaration)}
    return {name: default for name, default in defaults.items() if default is not MISSING}


def _default(declaration: Any, name: str) -> str:
    defaults = _defaults(declaration)
    if name not in defaults:
        return ""
    default = defaults[name]
    if isinstance(default, frozenset):
        return repr(set(default)) if default else "frozenset()"
    if default in (plugin.Limits(), plugin.Result(), plugin.Samples(), advanced.Advanced()):
        return f"{type(default).__name__}()"
    return getattr(default, "__name__", repr(default)) if callable(default) else repr(default)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def fields_table(declaration: Any) -> str:
    """Return what a declaration is, and its fields: one table, or one for each group."""
    described = {field.name: field for field in fields(declaration)}
    groups = GROUPS.get(declaration.__name__)
    if groups is None:
        return f"{_summary(declaration)}\n\n{_fields([*described.values()])}"
    parts = [
        f"**Fields: {title}**\n\n{_fields([described[name] for name in names.split()])}"
        for title, names in groups.items()
    ]
    return "\n\n".join([_summary(declaration), *parts])


def _fields(group: Sequence[Field]) -> str:
    heads = ["field", "type", "unit", "default", "meaning"]
    rows = [
        [
            f"`{field.name}`",
            field.type,
            field.unit,
            f"`{field.default}`" if field.default else "required",
            _markdown(field.meaning),
        ]
        for field in group
    ]
    if not any(field.unit for field in group):
        for cells in (heads, *rows):
            del cells[2]
    return _table(heads, rows)


def hooks_table() -> str:
    """Return the hooks, what each returns and what that is."""
    rows = [[f"`{name}`", _returned(hook), _flat(_summary(hook))] for name, hook in HOOKS.items()]
    return _table(("hook", "returns an iterable of", "meaning"), rows)


def _returned(hook: Any) -> str:
    inner = re.fullmatch(r"Iterable\[(.+)\]", hook.__annotations__["return"])
    assert inner is not None, hook
    return f"`{inner[1]}`"


def questions_table(module: ModuleType) -> str:
    """Return the properties and the methods of the declarations of a module."""
    rows = [
        [f"`{owner}.{_call(name, member)}`", _flat(_summary(member))]
        for owner, declaration in _declarations(module).items()
        for name, member in vars(declaration).items()
        if not name.startswith("_") and name not in declaration.__annotations__
    ]
    return _table(("", "meaning"), rows)


def _call(name: str, member: Any) -> str:
    """Return how a property, a method or a function is used: its name, and its parameters."""
    if isinstance(member, property):
        return name
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(member).parameters.values()
        if parameter.name != "self"
    ]
    return f"{name}{inspect.Signature(parameters)}"


def tool_entry(name: str) -> str:
    """Return what a function or a class does, with its parameters."""
    tool = TOOLS[name]
    parts = [f"`{_call(name, tool)}`", _summary(tool)]
    parameters = [
        [f"`{parameter}`", type_, _markdown(meaning)]
        for parameter, type_, meaning in _entries(tool, "Parameters")
    ]
    if parameters:
        parts.append(_table(("parameter", "type", "meaning"), parameters))
    for section in ("Returns", "Raises"):
        results = [f"{kind}. {meaning}" for kind, _, meaning in _entries(tool, section)]
        parts += [f"{section}: {_markdown(result)}" for result in results]
    return "\n\n".join(parts)


def _flat(text: str) -> str:
    return " ".join(text.split())


def _markdown(text: str) -> str:
    """Turn the little of reStructuredText that docstrings have into Markdown, within a table."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    text = text.replace("``", "`").replace("|", "\\|")
    return re.sub(r'(?<!`)""(?!`)', '`""`', text)


def generated(module: ModuleType) -> dict[str, str]:
    """Return what is made here of a module, by the name it has in the page."""
    declarations = _declarations(module).items()
    made = {name: fields_table(declaration) for name, declaration in declarations}
    made |= {name: tool_entry(name) for name in _tools(module)}
    if module is plugin:
        made["hooks"] = hooks_table()
    return made | {"questions": questions_table(module)}


def rendered(page: str, module: ModuleType = plugin) -> str:
    """Return the page of a module with everything in it that is made here.

    Raises
    ------
    ValueError
        The page lacks a part, or has one that does not exist.
    """
    sections = {name: f"\n{section}\n" for name, section in generated(module).items()}
    return filled(page, sections, "<!-- begin {} -->", "<!-- end {} -->")


def main() -> None:
    """Print the pages, or store them."""
    pages = {path: partial(rendered, module=module) for path, module in PAGES.items()}
    store_or_print(pages, __doc__)


if __name__ == "__main__":
    main()
