"""Unknown values: why no format has them, and what to convert instead."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MappingView, Sequence, Set
from inspect import signature
from io import IOBase
from numbers import Number
from operator import attrgetter, itemgetter
from os import PathLike
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType, NoneType, UnionType

from interop._model.spec import Spec
from interop._model.typing import Value

#: The advice for values of types that are not recognised. The first type that matches counts.
_MOVES: dict[type | UnionType, str] = {
    NoneType: ": there is nothing to convert.",
    type: "; pass a value of the class, not the class itself.",
    ModuleType: "; pass an array, and the module as to=.",
    str: "; interop reads no files: make numbers of the text first, or describe a value with "
    "interop.make_spec.",
    PathLike | IOBase: "; interop reads no files: load it, and pass what that returns.",
    Mapping: "; interop.convert_tree converts the arrays in it, and keeps lists of numbers.",
    FunctionType | BuiltinFunctionType | MethodType: "; call it, and pass what it returns.",
    Number: "; make a float of it first.",
    Spec: "; interop.plan takes it.",
    Iterator | MappingView | Set | Sequence: "; make a list of it first.",
    object: ", and it offers no array protocol; pass the arrays in it, or register a Format.",
}

#: How many attributes an advice names.
_SHOWN = 3

#: The advice for what has a shape and items, unless its parts are of its own type.
_READS = "; convert x[...], which reads it."
_EMPTY_PART = itemgetter(slice(0))
#: What gives the array in a value of an unknown type, if it does.
_WAYS: dict[str, Callable[[Value], object]] = {
    "x.data": attrgetter("data"),
    "x[:], which reads it": _EMPTY_PART,
}


def why_unknown(type_: type, hint: str, frameworks: Iterable[str]) -> str:
    """Return why values of a type are not taken, and what to pass instead.

    Parameters
    ----------
    type_ : type
    hint : str
        What a plugin says of them; "" if nothing.
    frameworks : iterable of str
        Those for which a value may have a method.
    """
    module = "" if type_.__module__ == "builtins" else f"{type_.__module__}."
    move = next(move for base, move in _MOVES.items() if issubclass(type_, base))
    if hint:
        move = f"; {hint}"
    elif move is _MOVES[object]:
        move = _own_move(type_, frameworks) or move
    return f"{module}{type_.__qualname__} is not an array type interop recognises{move}"


def _own_move(type_: type, frameworks: Iterable[str]) -> str:
    """Return the advice for values of a type with a method of its own to read them, or ""."""
    for name in (f"{start}{name}" for name in frameworks for start in ("to_", "", "as")):
        if _needs_nothing(getattr(type_, name, None)):
            return f"; convert what its {name}() returns."
    if is_like_mapping(type_) or hasattr(type_, "__dataclass_fields__"):
        return _MOVES[Mapping]
    if hasattr(type_, "shape") and hasattr(type_, "__getitem__"):
        return _READS
    return "; convert each item that it yields." if issubclass(type_, Iterable) else ""


def leading_on(value: Value, reason: str, is_format: Callable[[object], bool]) -> str:
    """Return why a value is unknown, with a move that leads on for this very value."""
    part = None if isinstance(value, type) else _part(value, _EMPTY_PART)
    if reason.endswith(_READS) and type(part) is type(value):  # to read it is no way out
        reason = reason.removesuffix(_READS) + _MOVES[object]
    if not reason.endswith(_MOVES[object]) or isinstance(value, type):
        return reason
    for way, get in _WAYS.items():
        part = _part(value, get)
        if part is not None and type(part) is not type(value) and is_format(part):
            return f"{reason.removesuffix(_MOVES[object])}; convert {way}."
    if names := _attributes(value, is_format):
        shown = ", ".join([f"x.{name}" for name in names[:_SHOWN]] + ["…"] * (len(names) > _SHOWN))
        move = f"interop.convert_tree(vars(x), ...) converts the arrays in its attributes ({shown})"
        return f"{reason.removesuffix(_MOVES[object])}; {move}."
    return reason


def _attributes(value: Value, is_format: Callable[[object], bool]) -> list[str]:
    """Return the attributes that are arrays of a value, by their public names if they have some."""
    attributes = getattr(value, "__dict__", {})
    held = [name for name, attribute in attributes.items() if is_format(attribute)]
    public = ((name, name.lstrip("_")) for name in held)
    return [short if hasattr(type(value), short) else name for name, short in public]


def _part(value: Value, get: Callable[[Value], object]) -> object:
    """Return what a value gives, or None: its code may raise anything."""
    try:
        return get(value)
    except Exception:  # noqa: BLE001 - the value is refused in any case
        return None


def is_like_mapping(kind: type) -> bool:
    """Return whether values of a type are asked by keys, although it is no registered mapping."""
    return hasattr(kind, "__getitem__") and callable(getattr(kind, "keys", None))


def _needs_nothing(method: object) -> bool:
    """Return whether a method of a class can be called without arguments."""
    if not callable(method):
        return False
    try:
        _, *parameters = signature(method).parameters.values()
    except ValueError:  # a method of C does not tell, and one without a first parameter is none
        return True
    return all(
        p.default is not p.empty or p.kind in {p.VAR_POSITIONAL, p.VAR_KEYWORD} for p in parameters
    )
