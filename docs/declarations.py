"""The reference of the authors' interface, made from its docstrings and defaults.

``python -m docs.declarations`` prints the page, ``--store`` writes it. What the page has between
``<!-- begin NAME -->`` and ``<!-- end NAME -->`` is made here, and the rest is written by hand. A
test compares the page with what comes out.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from interop import plugin
from interop._registry import hooks

__all__ = [
    "DECLARATIONS",
    "HOOKS",
    "PAGE",
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

PAGE = Path(__file__).parent / "reference" / "plugin.md"


def _is_function(tool: Any) -> bool:
    """Tell functions, also those that remember their results, from classes and markers."""
    return callable(tool) and hasattr(tool, "__name__") and not inspect.isclass(tool)


#: The named tuples of the authors' interface.
DECLARATIONS: dict[str, Any] = {
    name: declaration
    for name, declaration in sorted(vars(plugin).items())
    if name in plugin.__all__ and hasattr(declaration, "_fields")
}
#: The hooks that a plugin implements.
HOOKS: dict[str, Any] = {
    name: hook for name, hook in vars(hooks).items() if hasattr(hook, "interop_spec")
}
#: The functions and classes that a plugin calls.
TOOLS: dict[str, Any] = {
    name: tool
    for name, tool in sorted(vars(plugin).items())
    if name in plugin.__all__
    and (_is_function(tool) or tool in (plugin.CastErrors, plugin.CheckedProducer, plugin.MemoryAt))
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


def _default(declaration: Any, name: str) -> str:
    defaults: Mapping[str, Any] = declaration._field_defaults
    if name not in defaults:
        return ""
    default = defaults[name]
    if isinstance(default, frozenset):
        return repr(set(default)) if default else "frozenset()"
    if default in (plugin.Limits(), plugin.Result(), plugin.Samples()):
        return f"{type(default).__name__}()"
    return getattr(default, "__name__", repr(default)) if callable(default) else repr(default)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def fields_table(declaration: Any) -> str:
    """Return what a declaration is, and a table of its fields."""
    heads = ["field", "type", "unit", "default", "meaning"]
    rows = [
        [
            f"`{field.name}`",
            field.type,
            field.unit,
            f"`{field.default}`" if field.default else "required",
            _markdown(field.meaning),
        ]
        for field in fields(declaration)
    ]
    if not any(field.unit for field in fields(declaration)):
        for cells in (heads, *rows):
            del cells[2]
    return f"{_summary(declaration)}\n\n{_table(heads, rows)}"


def hooks_table() -> str:
    """Return the hooks, what each returns and what that is."""
    rows = [[f"`{name}`", _returned(hook), _flat(_summary(hook))] for name, hook in HOOKS.items()]
    return _table(("hook", "returns an iterable of", "meaning"), rows)


def _returned(hook: Any) -> str:
    inner = re.fullmatch(r"Iterable\[(.+)\]", hook.__annotations__["return"])
    assert inner is not None, hook
    return f"`{inner[1]}`"


def questions_table() -> str:
    """Return the properties and the methods of the declarations."""
    rows = [
        [f"`{owner}.{_call(name, member)}`", _flat(_summary(member))]
        for owner, declaration in DECLARATIONS.items()
        for name, member in vars(declaration).items()
        if not name.startswith("_") and name not in declaration._fields
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


def generated() -> dict[str, str]:
    """Return what is made here, by the name it has in the page."""
    return {
        **{name: fields_table(declaration) for name, declaration in DECLARATIONS.items()},
        **{name: tool_entry(name) for name in TOOLS},
        "hooks": hooks_table(),
        "questions": questions_table(),
    }


def rendered(page: str) -> str:
    """Return the page with everything in it that is made here.

    Raises
    ------
    ValueError
        The page lacks a part, or has one that does not exist.
    """
    sections = generated()
    places = re.findall(r"<!-- begin (\w+) -->\n.*?<!-- end \1 -->", page, re.DOTALL)
    if sorted(places) != sorted(sections):
        raise ValueError(f"the page and the interface differ in {set(places) ^ set(sections)}")
    return re.sub(
        r"(<!-- begin (\w+) -->\n).*?(<!-- end \2 -->)",
        lambda place: f"{place[1]}\n{sections[place[2]]}\n\n{place[3]}",
        page,
        flags=re.DOTALL,
    )


def main() -> None:
    """Print the page, or store it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", action="store_true", help=f"write it to {PAGE.name}")
    page = rendered(PAGE.read_text("utf-8"))
    if parser.parse_args().store:
        PAGE.write_text(page, "utf-8")
    else:
        print(page)


if __name__ == "__main__":
    main()
