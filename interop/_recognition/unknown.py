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

_LISTED = "; make a list of it first."
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
    Iterator | MappingView | Set | Sequence: _LISTED,
    object: ", and it offers no array protocol; pass the arrays in it, or register a Format.",
}

#: The types of attributes that several arrays stand in.
_SEVERAL = frozenset({list, tuple})
#: How many attributes an advice names.
_SHOWN = 3

#: The advice for what has a shape and items, if its parts are arrays.
_READS = "; convert x[...], which reads it."
#: The advice for what can be gone through, unless its first item is a number or cannot be had.
_YIELDS = "; convert each item that it yields."
#: The methods of values that are computed later, which give what converts.
_RESULTS = ("compute", "result")
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
    names = [f"{start}{name}" for name in frameworks for start in ("to_", "", "as")]
    for name in (*names, *_RESULTS):
        if _needs_nothing(getattr(type_, name, None)):
            return f"; convert what its {name}() returns."
    if is_like_mapping(type_) or hasattr(type_, "__dataclass_fields__"):
        return _MOVES[Mapping]
    if callable(getattr(type_, "get_tensor", None)):
        return "; convert what its get_tensor(...) returns for a name."
    if hasattr(type_, "shape") and hasattr(type_, "__getitem__"):
        return _READS
    return _YIELDS if issubclass(type_, Iterable) else ""


def leading_on(value: Value, reason: str, is_format: Callable[[object], bool]) -> str:
    """Return why a value is unknown, with a move that leads on for this very value."""
    if isinstance(value, type):
        return reason
    if reason.endswith(_READS):
        # Of a value without axes x[...] is all there is to read; of others nothing is read.
        whole = getattr(value, "shape", None) == ()
        part = _part(value, itemgetter(...) if whole else _EMPTY_PART)
        if type(part) is type(value) or not is_format(part):  # to read it is no way out
            reason = reason.removesuffix(_READS) + _MOVES[object]
    elif reason.endswith(_YIELDS):
        reason = reason.removesuffix(_YIELDS) + _move_of_items(value, is_format)
    if not reason.endswith(_MOVES[object]):
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


def _move_of_items(value: Value, is_format: Callable[[object], bool]) -> str:
    """Return the advice about the items of a value, as far as they can be looked at one by one.

    What has to be gone through may be computed, read or drawn by that, and is left alone.
    """
    if not hasattr(type(value), "__getitem__"):
        attributes = getattr(value, "__dict__", {}).items()
        has_arrays = any(is_format(held) and name[:1] != "_" for name, held in attributes)
        return _MOVES[object] if has_arrays else _YIELDS
    item = _part(value, itemgetter(0)) if hasattr(type(value), "__len__") else None
    if isinstance(item, Number):
        return _LISTED
    children = item if isinstance(item, (list, tuple)) else [item]
    return _YIELDS if any(map(is_format, children)) else _MOVES[object]


def _attributes(value: Value, is_format: Callable[[object], bool]) -> list[str]:
    """Return the attributes that are arrays of a value, by their public names if they have some."""
    attributes = getattr(value, "__dict__", {})
    held = [
        name
        for name, attribute in attributes.items()
        if any(map(is_format, attribute if type(attribute) in _SEVERAL else [attribute]))
    ]
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
