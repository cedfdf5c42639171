"""Validation: declarations as they are registered, with their sets frozen.

A field of the wrong type would otherwise cause errors much later, in plans that other plugins take
part in. The annotations of the fields say which values are valid.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from interop._model.conversion import ORDERS, Conversion, Cost
from interop._model.device import misspelt_type
from interop._model.dtype import DTYPES, unknown_dtype
from interop._model.effect import DERIVED, EFFECTS, WRITING
from interop._model.extension import Container, Declaration, DtypeNames
from interop._model.format import Format, package
from interop._model.spec import LIKENESS, Spec
from interop._model.text import listed
from interop.errors import PluginError

#: Checks a value, and returns it with its sets frozen. It raises `_MisfitError`.
_Check = Callable[[Any], Any]

_Declaration = TypeVar("_Declaration")


class _MisfitError(Exception):
    """A field does not hold what its annotation says.

    The arguments are its path with its value, and what it must be.
    """


def described(declaration: object) -> str:
    """Return the name of a declaration in messages."""
    if isinstance(declaration, Format):
        return f"the format {declaration.name!r}"
    if isinstance(declaration, Conversion):
        return f"the conversion {declaration.source} → {declaration.target}"
    return repr(declaration)


def validated(declaration: _Declaration, origin: object) -> _Declaration:
    """Return a declaration that can be planned with, its sets frozen, or refuse it."""
    if not isinstance(declaration, Declaration):
        kinds = listed(kind.__name__ for kind in get_args(Declaration))
        msg = f"{origin} declared {declaration!r}, which is not a declaration ({kinds})."
        raise PluginError(msg)
    try:
        sound = _checked(declaration)
    except _MisfitError as misfit:
        contradiction = "{}; it must be {}.".format(*misfit.args)
    else:
        contradiction = _contradiction(sound)
        if not contradiction:
            return cast("_Declaration", sound)
    reference = "; see the reference of interop.plugin for what it must be."
    move = "" if contradiction.endswith((".", "?")) else reference
    msg = f"{origin} declared {described(declaration)} with {contradiction}{move}"
    raise PluginError(msg)


def frozen(declaration: Any) -> Any:
    """Return a declaration that was validated before, such as a bundled one, with its sets frozen.

    The tests validate what the bundled plugins declare. Validation takes a fifth of the time of a
    process's first conversion.
    """
    try:
        hash(declaration)
    except TypeError:
        pass  # something in it may be a set
    else:
        return declaration
    return type(declaration)(*map(_frozen, declaration))


def _frozen(value: Any) -> Any:
    if type(value) is set:
        return frozenset(value)
    return frozen(value) if isinstance(value, tuple) and hasattr(value, "_fields") else value


def _checked(declaration: Any) -> Any:
    """Return a named tuple after checking the fields that are not the default."""
    changes = {}
    kind: type = type(declaration)
    for name, check, default in _checks(kind):
        value = getattr(declaration, name)
        if value is default:
            continue
        try:
            sound = check(value)
        except _MisfitError as misfit:
            path, kind = misfit.args
            msg = f"{name}.{path}" if path else f"{name}={value!r}"
            raise _MisfitError(msg, kind) from None
        if sound is not value:
            changes[name] = sound
    return declaration._replace(**changes) if changes else declaration


@cache
def _checks(kind: type) -> tuple[tuple[str, _Check, object], ...]:
    """Return the name, the check and the default of every field of a declaration."""
    missing = object()
    defaults: Mapping[str, object] = getattr(kind, "_field_defaults", {})
    return tuple(
        (name, _check(annotation), defaults.get(name, missing))
        for name, annotation in get_type_hints(kind).items()
    )


def _check(annotation: Any) -> _Check:
    """Return the check that an annotation asks for."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, UnionType):
        (inner,) = (_check(argument) for argument in arguments if argument is not NoneType)
        return lambda value: None if value is None else inner(value)
    if origin is Set:
        return _items(arguments[0], frozenset)
    if origin is tuple and arguments[0] is str:
        return _items(str, tuple)
    if origin is tuple:
        return _sequence(arguments[0])
    if origin is Mapping:
        return _table(_check(arguments[1]))
    if origin is Callable:
        return _function
    if hasattr(annotation, "_fields"):
        return _instance(annotation, f"of type {annotation.__name__}", _checked)
    return _SCALARS[annotation]


def _instance(kind: type, text: str, sound: _Check | None = None) -> _Check:
    """Return the check of an instance of a type, and perhaps of what is in it."""

    def checked(value: Any) -> Any:
        if not isinstance(value, kind):
            raise _MisfitError("", text)
        return value if sound is None else sound(value)

    return checked


def _function(value: Any) -> Any:
    if not callable(value):
        raise _MisfitError("", "a function")
    return value


def _number(value: Any) -> Any:
    if not (isinstance(value, (int, float)) and value >= 0):
        raise _MisfitError("", "a number of 0 or more")
    return value


_SCALARS: dict[Any, _Check] = {
    str: _instance(str, "a string"),
    bool: _instance(bool, "a bool"),
    float: _number,
}

_STANDARD = sys.stdlib_module_names

_SPEC_FIELDS = frozenset(Spec._fields)


def _items(kind: type, make: Callable[[Iterable[Any]], Any]) -> _Check:
    """Return the check of a set, a list or a tuple of items of a type; a string is none of them."""

    def checked(value: Any) -> Any:
        if not (isinstance(value, (Set, list, tuple)) and {*map(type, value)} <= {kind}):
            raise _MisfitError("", f"a set or a tuple of {kind.__name__}")
        return make(value)

    return checked


def _table(check: _Check) -> _Check:
    """Return the check of a mapping from strings to what another check takes."""

    def checked(value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise _MisfitError("", "a mapping")
        try:
            return {_SCALARS[str](key): check(item) for key, item in value.items()}
        except _MisfitError as misfit:
            path, kind = misfit.args
            raise _MisfitError(path, f"a mapping in which each is {kind}") from None

    return checked


def _sequence(kind: type) -> _Check:
    """Return the check of a list or a tuple of declarations of a kind."""

    def checked(value: Any) -> Any:
        if not (isinstance(value, (list, tuple)) and all(isinstance(x, kind) for x in value)):
            raise _MisfitError("", f"a tuple of {kind.__name__}")
        return tuple(map(_checked, value))

    return checked


def _contradiction(declaration: Any) -> str:
    """Say what makes a declaration impossible; "" if it is sound."""
    if isinstance(declaration, Format):
        return (
            _unknown_dtype(_dtypes_of_format(declaration))
            or _misspelt_device(declaration.devices, "devices")
            or _misspelt_device(declaration.limits.unsupported, "limits.unsupported")
            or _impossible_format(declaration)
        )
    if isinstance(declaration, Conversion):
        return (
            _unknown_dtype(_dtypes_of_conversion(declaration))
            or _misspelt_device(declaration.devices or (), "devices")
            or _misspelt_device(declaration.result.devices or (), "result.devices")
            or _impossible_conversion(declaration)
            or _impossible_cost(declaration.cost)
            or _impossible_cost(declaration.across or declaration.cost)
        )
    if isinstance(declaration, DtypeNames):
        return _too_wide(declaration.type)
    if isinstance(declaration, Container) and package(declaration.requires) in _STANDARD:
        return f"requires={declaration.requires!r}, which every program may have imported"
    return ""


def _too_wide(name: str) -> str:
    """Say that a type is one that anybody's class may derive from."""
    if ":" not in name:
        return f"the type {name!r}; write it as 'module:Class'"
    wide = name == "builtins:object" or name.startswith(("abc:", "collections.abc:", "typing:"))
    return f"the type {name}, which everything may be an instance of" if wide else ""


def _misspelt_device(devices: Iterable[str], field: str) -> str:
    """Name a device type in a field that seems to be misspelt, and what is meant."""
    for device in devices:
        if meant := misspelt_type(device):
            return f"the device type {device!r} in {field}; did you mean {meant!r}?"
        if not device.isidentifier():
            return f"the device type {device!r} in {field}, which is no name"
    return ""


def _unknown_dtype(named: Iterable[tuple[str, frozenset[str]]]) -> str:
    """Name a dtype in a field that does not exist, and the field; "" if all exist."""
    for field, dtypes in named:
        if unknown := dtypes - DTYPES.keys():
            dtype = min(unknown)
            return f"the unknown dtype {dtype!r} in {field}; {unknown_dtype(dtype)}"
    return ""


def _dtypes_of_format(format_: Format) -> Iterator[tuple[str, frozenset[str]]]:
    yield "dtypes", frozenset(format_.dtypes)
    yield "index_dtypes", frozenset(format_.index_dtypes)
    for protocol, dtypes in format_.exports.items():
        yield f"exports[{protocol!r}]", frozenset(dtypes)
    for device, dtypes in format_.limits.unsupported.items():
        yield f"limits.unsupported[{device!r}]", frozenset(dtypes)
    if (components := format_.components) is not None:
        yield "components.code_dtypes", frozenset(components.code_dtypes)
        # A role's dtype is named by a field of the spec, or is fixed.
        yield "components.roles", frozenset(components.roles.values()) - _SPEC_FIELDS


def _dtypes_of_conversion(conversion: Conversion) -> Iterator[tuple[str, frozenset[str]]]:
    result = conversion.result
    # What is no identifier is the beginning of the names of dtypes that are not of numbers.
    yield "dtypes", frozenset(filter(str.isidentifier, conversion.dtypes or ()))
    yield "index_dtypes", frozenset(conversion.index_dtypes or ())
    yield "result.dtypes", frozenset(result.dtypes or ())
    if result.index_dtype is not None:
        yield "result.index_dtype", frozenset({result.index_dtype})


def _impossible_format(format_: Format) -> str:
    if not format_.name:
        return "no name"
    if not format_.devices:
        return "no devices"
    problems = map(_too_wide, (*format_.types, *format_.naming_types))
    return next(filter(None, problems), "")


def _impossible_conversion(conversion: Conversion) -> str:
    if not conversion.source:
        return "no source; a step within a format stands in that format's `unary`."
    unknown = sorted(conversion.effects - EFFECTS.keys())
    if unknown:
        return f"the effect {unknown[0]!r}; the effects are {listed(EFFECTS)}"
    derived = sorted(conversion.effects & DERIVED)
    if derived:
        return (
            f"the effect {derived[0]!r}, which follows from the specs of the values on the way: "
            "interop adds it to every step that has it, so leave it out"
        )
    if conversion.changes - {"dtype", "device", "order", "columns"}:
        return f"changes={sorted(conversion.changes)}"
    if (conversion.result.orders or ORDERS) - ORDERS:
        return f"result.orders={sorted(conversion.result.orders or ())}"
    if conversion.like - LIKENESS:
        return f"like={sorted(conversion.like)}; of {sorted(LIKENESS)} it is"
    if conversion.result.bits not in (None, "carry", "restore"):
        return f"result.bits={conversion.result.bits!r}"
    writes = conversion.effects & WRITING or "device" in conversion.changes
    if conversion.shares is False and not writes:
        return "shares=False and no effect that writes bytes"
    return ""


def _impossible_cost(cost: Cost) -> str:
    sound = math.isfinite(cost.latency) and cost.bandwidth != 0 and cost.cached != 0
    return "" if sound else f"cost={cost!r}"
