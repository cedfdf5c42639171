"""Validation: declarations as they are registered, with their sets frozen.

A field of the wrong kind, or a word that is misspelt, would otherwise cause errors much later, in
plans that other plugins take part in. Annotations say which kind of value a field holds.
What only the author of a plugin needs to be told, the conformance suite tells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Set
from functools import cache, lru_cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from interop._model.conversion import ORDERS, Conversion
from interop._model.device import DEVICE_TYPES, misspelt_type
from interop._model.dtype import DTYPES, unknown_dtype
from interop._model.effect import EFFECTS
from interop._model.extension import Declaration, DtypeNames
from interop._model.format import Format
from interop._model.spec import LIKENESS, Spec
from interop._model.text import listed, suggestion
from interop._text import excerpt, quoted
from interop.errors import PluginError

_Declaration = TypeVar("_Declaration")

_DTYPES = frozenset(DTYPES)

#: The words that a field, or each item of it, may be.
_WORDS: Mapping[str, frozenset[str]] = {
    "Format.dtypes": _DTYPES,
    "Format.index_dtypes": _DTYPES,
    "Format.exports": _DTYPES,
    "Format.devices": DEVICE_TYPES,
    "Limits.unsupported": _DTYPES,
    "Components.code_dtypes": _DTYPES,
    "Components.roles": _DTYPES | frozenset(Spec._fields),
    "Conversion.index_dtypes": _DTYPES,
    "Conversion.devices": DEVICE_TYPES,
    "Conversion.effects": frozenset(EFFECTS),
    "Conversion.changes": frozenset({"dtype", "device", "order", "columns"}),
    "Conversion.like": LIKENESS,
    "Result.dtypes": _DTYPES,
    "Result.index_dtype": _DTYPES,
    "Result.devices": DEVICE_TYPES,
    "Result.orders": ORDERS,
    "Result.bits": frozenset({"carry", "restore"}),
}

#: What is said of a field that holds a value of another kind.
_TEXTS = {
    str: "a string",
    bool: "a bool",
    float: "a number of 0 or more",
    dict: "a mapping from strings",
    tuple: "a set or a tuple of {0}",
    frozenset: "a set or a tuple of {0}",
    Callable: "a function",
}

_COLLECTIONS = (frozenset, tuple, set, list, Set)


def described(declaration: object) -> str:
    """Return the name of a declaration in messages."""
    if isinstance(declaration, Format):
        return f"the format {excerpt(quoted(declaration.name))}"
    if isinstance(declaration, Conversion):
        return f"the conversion {declaration.source} → {declaration.target}"
    return excerpt(quoted(declaration))


def validated(declaration: _Declaration, origin: object) -> _Declaration:
    """Return a declaration that can be planned with, its sets frozen, or refuse it."""
    if not isinstance(declaration, Declaration):
        kinds = listed(kind.__name__ for kind in get_args(Declaration))
        msg = f"{origin} declared {described(declaration)}, which is not a declaration ({kinds})."
        raise PluginError(msg)
    try:
        sound = _checked(declaration)
        problem = _lack(sound)
    except PluginError as misfit:
        problem = str(misfit)
    if not problem:
        return cast("_Declaration", sound)
    reference = "; see the reference of interop.plugin for what it must be."
    move = "" if problem.endswith((".", "?")) else reference
    msg = f"{origin} declared {described(declaration)} with {problem}{move}"
    raise PluginError(msg)


def frozen(declaration: Any) -> Any:
    """Return a declaration that was validated before, such as a bundled one, with its sets frozen.

    The tests validate what the bundled plugins declare. Validation takes a twelfth of the time of a
    process's first conversion.
    """
    try:
        hash(declaration)
    except TypeError:  # something in it may be a set
        return type(declaration)(*map(_with_frozen_sets, declaration))
    return declaration


def _with_frozen_sets(value: Any) -> Any:
    if type(value) is set:
        return frozenset(value)
    return frozen(value) if isinstance(value, tuple) and hasattr(value, "_fields") else value


def _checked(declaration: Any, path: str = "") -> Any:
    """Return a declaration with its sets frozen, if its fields hold what they may."""
    changes = {}
    record: type = type(declaration)
    fields, defaults = _fields(record)
    for value, default, field in zip(declaration, defaults, fields, strict=True):
        if value is default:
            continue  # as most are
        name, is_optional, kind, items, words = field
        if (
            (type(value) is kind and items is words)
            or (kind is Callable and callable(value))
            or (kind is float and isinstance(value, (int, float)) and value >= 0)
            or (value is None and is_optional)
        ):
            continue
        sound = _frozen(value, kind, items, words, path + name)
        if sound is not value:
            changes[name] = sound
    return declaration._replace(**changes) if changes else declaration


@cache
def _fields(declaration: type) -> tuple[list[tuple[Any, ...]], list[object]]:
    """Return the fields of a declaration with what they may hold, and their defaults."""
    kinds = get_type_hints(declaration)
    defaults: Mapping[str, object] = getattr(declaration, "_field_defaults", {})
    missing = object()
    return (
        [
            (name, *_kind(annotation), _WORDS.get(f"{declaration.__name__}.{name}"))
            for name, annotation in kinds.items()
        ],
        [defaults.get(name, missing) for name in kinds],
    )


def _kind(annotation: Any) -> tuple[bool, Any, Any]:
    """Return whether a field may be None, the kind of its value, and that of the value's items."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in {Union, UnionType}:
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return True, *_kind(inner)[1:]
    if origin is Mapping:
        return False, dict, _kind(arguments[1])[1:]
    if origin in {Set, tuple}:
        return False, frozenset if origin is Set else tuple, arguments[0]
    return False, origin or annotation, None if annotation in {str, bool} else annotation


def _frozen(value: Any, kind: Any, items: Any, words: frozenset[str] | None, path: str) -> Any:
    """Return the value of a field with its sets frozen, or refuse what the field may not hold."""
    if kind is frozenset and type(value) is frozenset and _is_sound(value, items, words):
        return value
    if kind is frozenset or kind is tuple:
        if isinstance(value, _COLLECTIONS) and {*map(type, value)} <= {items}:
            _check_words(value, words, path)
            return kind(value)
    elif kind is dict:
        if isinstance(value, Mapping) and {*map(type, value)} <= {str}:
            kind, items = items
            return {
                key: _frozen(item, kind, items, words, f"{path}[{key!r}]")
                for key, item in value.items()
            }
    elif isinstance(value, kind) and kind is not float:
        _check_words((value,), words, path)
        return _checked(value, f"{path}.") if hasattr(kind, "_fields") else value
    text = _TEXTS.get(kind, "of type {0}").format(getattr(items or kind, "__name__", ""))
    msg = f"{path}={excerpt(quoted(value))}; it must be {text}."
    raise PluginError(msg)


@lru_cache(maxsize=4096)
def _is_sound(names: frozenset[Any], kind: type, words: frozenset[str] | None) -> bool:
    """Return whether a set has items of a kind alone, and known words; most sets occur often."""
    return {*map(type, names)} <= {kind} and (words is None or names <= words)


def _check_words(names: Collection[str], words: frozenset[str] | None, path: str) -> None:
    """Refuse names in a field that are none of the words that it may hold."""
    if words is None or words.issuperset(names):
        return
    for name in sorted({*names} - words):
        if words is DEVICE_TYPES:
            _check_device(name, path)
            continue
        what = "dtype" if words >= _DTYPES else "word"
        advice = f"the words are {listed(sorted(words))}."
        advice = unknown_dtype(name) if what == "dtype" else suggestion(name, words, advice)
        msg = f"the unknown {what} {name!r} in {path}; {advice}"
        raise PluginError(msg)


def _check_device(name: str, path: str) -> None:
    """Refuse a device type that seems to be misspelt; a plugin may have one of its own."""
    meant = misspelt_type(name)
    if meant or not name.isidentifier():
        advice = f"; did you mean {meant!r}?" if meant else ", which is no name"
        msg = f"the device type {name!r} in {path}{advice}"
        raise PluginError(msg)


def _lack(declaration: Any) -> str:
    """Say what keeps a declaration from being planned with; "" if nothing does."""
    types: tuple[str, ...] = ()
    if isinstance(declaration, Format):
        if not declaration.name or not declaration.devices:
            return "no devices" if declaration.name else "no name"
        _check_words(declaration.limits.unsupported.keys(), DEVICE_TYPES, "limits.unsupported")
        types = (*declaration.types, *declaration.naming_types)
    elif isinstance(declaration, Conversion):
        if not declaration.source:
            return "no source; a step within a format stands in that format's `unary`."
        # What is no identifier is the beginning of the names of dtypes that are not of numbers.
        if declaration.dtypes and not declaration.dtypes <= _DTYPES:
            _check_words([*filter(str.isidentifier, declaration.dtypes)], _DTYPES, "dtypes")
        for cost in {declaration.cost, declaration.across or declaration.cost}:
            if not math.isfinite(cost.latency) or cost.bandwidth == 0 or cost.cached == 0:
                return f"cost={cost!r}"
    elif isinstance(declaration, DtypeNames):
        types = (declaration.type,)
    return next(filter(None, map(_no_class, types)), "")


def _no_class(name: str) -> str:
    """Say that a type is not named, or that anybody's class may derive from it."""
    if ":" not in name:
        return f"the type {name!r}; write it as 'module:Class'"
    wide = name == "builtins:object" or name.startswith(("abc:", "collections.abc:", "typing:"))
    return f"the type {name}, which everything may be an instance of" if wide else ""
