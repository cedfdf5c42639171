"""Tables of what plugins declare: every field with its type, its default and its meaning.

They are made of the docstrings and of the defaults themselves, so that none can be left out.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from interop import plugin

__all__ = ["DECLARATIONS", "HOOKS", "Field", "fields", "fields_table", "hooks_table"]

#: The named tuples that pass through the authors' door.
DECLARATIONS: dict[str, Any] = {
    name: one
    for name, one in sorted(vars(plugin).items())
    if name in plugin.__all__ and inspect.isclass(one) and hasattr(one, "_fields")
}
#: The hooks a plugin may implement.
HOOKS: dict[str, Any] = {
    name: one for name, one in vars(plugin).items() if hasattr(one, "interop_spec")
}


class Field(NamedTuple):
    """A field as its docstring describes it.

    Parameters
    ----------
    name : str
    type : str
    unit : str
        "" if it is no number.
    default : str
        As source; "" if there is none, and it must be given.
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
        Field(name, *_type_and_unit(kind), _default(declaration, name), meaning)
        for name, kind, meaning in _parameters(inspect.getdoc(declaration) or "")
    ]


def _parameters(doc: str) -> Iterator[tuple[str, str, str]]:
    """Yield the names, types and descriptions of a numpydoc section of parameters."""
    section = doc.partition("Parameters\n----------\n")[2]
    section = re.split(r"\n\n\w[\w ]*\n-+\n", section)[0]
    for entry in re.split(r"^(?=\S)", section, flags=re.MULTILINE)[1:]:
        head, _, body = entry.partition("\n")
        names, _, kind = head.partition(" : ")
        for name in names.split(", "):
            yield name, kind, " ".join(body.split())


def _type_and_unit(kind: str) -> tuple[str, str]:
    """Divide ``float, in seconds`` and ``int, without unit``."""
    found = re.fullmatch(r"(.+), (?:in (.+)|(without unit))", kind)
    return (found[1], found[2] or "none") if found else (kind, "")


def _default(declaration: Any, name: str) -> str:
    defaults: Mapping[str, Any] = declaration._field_defaults
    if name not in defaults:
        return ""
    value = defaults[name]
    if isinstance(value, frozenset):
        return repr(set(value)) if value else "frozenset()"
    return getattr(value, "__name__", repr(value)) if callable(value) else repr(value)


def fields_table(declaration: Any) -> str:
    """Return what a declaration is, and a table of its fields."""
    heads = ("field", "type", "unit", "default", "meaning")
    rows = [
        (
            f"`{one.name}`",
            one.type,
            one.unit,
            f"`{one.default}`" if one.default else "required",
            _markdown(one.meaning),
        )
        for one in fields(declaration)
    ]
    units = any(one.unit for one in fields(declaration))
    kept = [place for place, head in enumerate(heads) if units or head != "unit"]
    lines = [heads, ["---"] * len(heads), *rows]
    summary = (inspect.getdoc(declaration) or "").partition("\nParameters\n---")[0]
    return "\n".join(
        [
            _markdown(summary),
            *(f"| {' | '.join(cells[place] for place in kept)} |" for cells in lines),
        ]
    )


def hooks_table() -> str:
    """Return the hooks, what each returns and what that is."""
    rows = (
        (f"`{name}`", _returned(one), _markdown(" ".join((inspect.getdoc(one) or "").split())))
        for name, one in HOOKS.items()
    )
    lines = [("hook", "returns an iterable of", "meaning"), ("---",) * 3, *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _returned(hook: Any) -> str:
    inner = re.fullmatch(r"Iterable\[(.+)\]", hook.__annotations__["return"])
    assert inner is not None, hook
    return f"`{inner[1]}`"


def _markdown(text: str) -> str:
    """Turn the little of reStructuredText that docstrings have into Markdown, within a table."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    text = text.replace("``", "`").replace("|", "\\|")
    return re.sub(r'(?<!`)""(?!`)', '`""`', text)
