"""Naming: the names that callers' words for formats, dtypes, devices and traits stand for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from operator import index
from types import ModuleType
from typing import Any

from interop._model.device import NICKNAMES, device_name, device_type
from interop._model.dialect import keyword, keywords
from interop._model.dtype import (
    DTYPES,
    KINDS,
    dtypes_of_kind,
    spelled,
    unknown_dtype,
    unknown_kind,
)
from interop._model.format import Format
from interop._model.spec import TRAITS, Spec
from interop._model.suggestion import listed, suggestion
from interop._registry.installed import framework_state
from interop._registry.registry import Registry
from interop.errors import BadRequestError, UnknownTargetError, UnknownValueError

#: The characters of the longest repr that a message quotes.
_LONGEST_REPR = 40
#: For each keyword that takes a name, what the name is of.
_KINDS = {"to": "format", "dtype": "dtype", "device": "device"}


def named_formats(registry: Registry, to: Any) -> tuple[str, ...]:
    """Return the formats that ``to=`` accepts."""
    if isinstance(to, Spec):
        msg = f"to= names a format; of this spec it is {keyword('to', to.format)}."
        raise UnknownTargetError(msg)
    if isinstance(to, (list, tuple, set, frozenset)) and to:
        return tuple(dict.fromkeys(name for item in to for name in named_formats(registry, item)))
    if to is None:
        msg = "no target was given; pass to= or like=."
        raise UnknownTargetError(msg)
    names = registry.named(to)
    if not names:
        move = _other_keyword(registry, "to", to) or _nearest(registry, to)
        msg = f"{_label('to', to)} does not name a registered format; {move}"
        raise UnknownTargetError(msg)
    return names


def named_dtype(registry: Registry, dtype: object) -> str:
    """Return the name of a dtype, from one of its spellings or a framework's object."""
    name = _dtype(registry, dtype)
    if name is None:
        move = "name it as a string, such as 'float32'."
        if isinstance(dtype, str):
            move = unknown_dtype(dtype)
        move = _other_keyword(registry, "dtype", dtype) or move
        msg = f"{_label('dtype', dtype)} is not a dtype that interop recognises; {move}"
        raise BadRequestError(msg)
    return name


def dtypes_by_dtype(registry: Registry, mapping: Mapping[Any, object]) -> dict[str, object]:
    """Return the dtypes that a mapping names by the dtypes of values, one by one.

    Its keys are dtypes, or kinds of dtypes by the names of the array API standard. If a dtype
    belongs to several keys, the narrowest counts.
    """
    groups = [(_dtypes_of_key(registry, key), dtype) for key, dtype in mapping.items()]
    groups.sort(key=lambda group: -len(group[0]))
    return {name: dtype for names, dtype in groups for name in names}


def _dtypes_of_key(registry: Registry, key: Any) -> tuple[str, ...]:
    if isinstance(key, str) and key in KINDS:
        return dtypes_of_kind(key)
    if _dtype(registry, key) is None:
        word = key if isinstance(key, str) else getattr(key, "__name__", str(key))
        msg = f"{_text(key)} is neither a dtype nor a kind of dtypes; {unknown_kind(word)}"
        raise BadRequestError(msg)
    return (named_dtype(registry, key),)


def check_format(registry: Registry, name: str) -> None:
    """Refuse a format that is not registered."""
    if name not in registry.formats:
        layouts = registry.named(name)
        move = f"name one of {listed(layouts)}." if layouts else _nearest(registry, name)
        if len(layouts) == 1:
            move = f"write {layouts[0]!r}."
        msg = f"no plugin that is loaded declares the format {_text(name)}; {move}"
        raise UnknownValueError(msg)


def named_device(registry: Registry, device: object) -> str:
    """Return the name of a device, from a name or a framework's device object."""
    name = device_name(_own_name(registry, device))
    devices = _devices(registry)
    if device_type(name) == "meta":
        msg = f"{keyword('device', device)} holds no data; the devices are {listed(devices)}."
        raise BadRequestError(msg)
    if device_type(name) not in devices:
        names = {**NICKNAMES, **{device: device for device in devices}}
        move = suggestion(device_type(name), names, f"the devices are {listed(devices)}.")
        numbered = re.fullmatch(r"([a-z]+)(\d+)", name)
        if numbered and numbered[1] in names:
            move = f"did you mean '{names[numbered[1]]}:{numbered[2]}'?"
        elif device_type(name) not in names:
            move = _other_keyword(registry, "device", device) or move
        msg = f"{keyword('device', device)} is not a device that interop recognises; {move}"
        raise BadRequestError(msg)
    return name


def _own_name(registry: Registry, device: object) -> object:
    """Return the name of a device object that its framework tells, or the object."""
    package = type(device).__module__.partition(".")[0]
    for format_ in registry.formats.values():
        name_of = format_.advanced.device_name
        if name_of is not None and format_.requires == package and (name := name_of(device)):
            return name
    return device


def traits(registry: Registry) -> set[str]:
    """Return the traits of `TRAITS`, and those that plugins have of their own."""
    conversions = [declared.conversion for declared in registry.conversions]
    sets = [format_.carries for format_ in registry.formats.values()]
    sets += [names for item in conversions for names in (item.takes, item.requires)]
    return set(TRAITS).union(*sets)


def named_traits(registry: Registry, names: str | Iterable[str]) -> frozenset[str]:
    """Return `names` as a set of traits, refusing any that is not a trait."""
    chosen, known = frozenset((names,) if isinstance(names, str) else names), traits(registry)
    for name in sorted(chosen - known):
        move = suggestion(name, known, "interop.TRAITS has the words.")
        msg = f"{name!r} is not a trait; {move}"
        raise BadRequestError(msg)
    return chosen


def lengths(shape: Any) -> tuple[int, ...]:
    """Return a shape as Python's integers, refusing what is not a tuple of lengths."""
    try:
        axes = tuple(map(index, shape))
    except TypeError:
        msg = f"shape={shape!r} is not a tuple of lengths; write (3,), or () for a scalar."
        raise BadRequestError(msg) from None
    if min(axes, default=0) < 0:
        msg = f"shape={shape!r} has a negative length; lengths are 0 or more."
        raise BadRequestError(msg)
    return axes


def _dtype(registry: Registry, dtype: object) -> str | None:
    """Return the name of a dtype, or None if it is none."""
    if not isinstance(dtype, str):
        return registry.dtype_name(dtype)
    prefix, _, word = dtype.rpartition(".")  # "torch.float16", as some libraries print it
    name = spelled(word)
    if prefix and not registry.named(prefix.partition(".")[0]):
        return None
    held = (format_.dtypes for format_ in registry.formats.values())
    return name if name in DTYPES or any(name in dtypes for dtypes in held) else None


def _devices(registry: Registry) -> list[str]:
    """Return the device types, those with most formats first; the well-known ones always."""
    counts = Counter(["cpu", *NICKNAMES.values()])
    counts.update(d for format_ in registry.formats.values() for d in format_.devices)
    return sorted(counts, key=lambda device: (-counts[device], device))


def _text(argument: object) -> str:
    """Return an argument as a message quotes it."""
    if isinstance(argument, str):
        return repr(argument)
    if isinstance(argument, type):
        return argument.__qualname__
    text = getattr(argument, "__name__", None) or repr(argument)
    is_short = len(text) < _LONGEST_REPR and "\n" not in text
    return text if is_short else f"<{type(argument).__qualname__}>"


def _label(name: str, argument: object) -> str:
    """Return a keyword with its argument as a message quotes them."""
    return keyword(name, argument) if isinstance(argument, str) else f"{name}={_text(argument)}"


def _word(argument: object) -> str:
    """Return the word that says most nearly what an argument is."""
    if isinstance(argument, type):
        return f"{argument.__module__}.{argument.__qualname__}"
    if isinstance(argument, ModuleType):
        return argument.__name__
    if not callable(argument):
        return str(argument)
    owner = getattr(argument, "__self__", None) or argument  # a function of C has its module
    return owner.__name__ if isinstance(owner, ModuleType) else getattr(owner, "__module__", "")


def _term(registry: Registry, argument: object) -> tuple[str, str] | None:
    """Return the keyword that takes an argument, and the name that the argument stands for."""
    kind, colon, number = _word(argument).partition(":")
    device = NICKNAMES.get(kind, kind)
    if any(device_type(device) in format_.devices for format_ in registry.formats.values()):
        return "device", device + colon + number
    if isinstance(argument, (str, ModuleType)) and (names := registry.named(argument)):
        return "to", names[0]
    dtype = _dtype(registry, argument)
    return None if dtype is None else ("dtype", dtype)


def _other_keyword(registry: Registry, name: str, argument: Any) -> str:
    """Say which other keyword takes an argument of the keyword `name`; "" if none does."""
    target = {}
    if name == "to" and isinstance(argument, str):  # "torch:cuda"
        framework, *rest = re.split(r"[:.\s]\s*", argument, maxsplit=1)
        if rest and registry.named(framework) and not registry.named(rest[0]):
            argument, target = rest[0], {"to": framework}
    term = _term(registry, argument)
    if term is None:
        is_array = name == "to" and not isinstance(argument, type) and _is_array(registry, argument)
        return "pass like=x for the format and the device of an array x." if is_array else ""
    taker, meaning = term
    if name == "to" and taker == "device" and not target:
        written = {declared.conversion.target for declared in registry.conversions}
        formats = _in_order(registry, device_type(meaning))
        names = [format_.name for format_ in formats if format_.name in written]
        if not names:
            reads = "is a device of values that are read and not written; name a framework."
            return f"{_text(argument)} {reads}"
        target = {"to": names[0]}
    advice = keywords(**target, **{taker: meaning})
    return f"{_text(argument)} is a {_KINDS[taker]}: {advice}."


def _nearest(registry: Registry, argument: object) -> str:
    """Return the format that a type or a word resembles, or else the frameworks that there are."""
    word = _word(argument)
    reason = registry.unavailable.get(word.partition(".")[0])
    if reason:
        return reason
    if isinstance(argument, type):
        try:
            format_ = registry.recognise(argument)
        except UnknownValueError:
            word = ""
        else:
            if not format_.protocol:
                target = keyword("to", format_.name)
                return f"the nearest is {target}; make a {argument.__qualname__} of its result."
    formats = _in_order(registry)
    frameworks = dict.fromkeys(format_.framework for format_ in formats)
    names = {alias: format_.name for format_ in formats for alias in format_.aliases}
    names |= {name: name for name in (*frameworks, *(format_.name for format_ in formats))}
    for format_ in formats:  # a type that several formats share stands for the first of them
        for type_ in format_.types:
            names.setdefault(type_.replace(":", "."), format_.name)
            module = type_.partition(":")[0]  # "scipy.sparse._csr", where two parts are public
            names.setdefault(".".join(module.split(".")[:2]), format_.framework)
    head, dot, tail = word.partition(".")
    if dot and names.get(head) in registry.formats:  # a nickname: "pd.DataFrame"
        word = registry.formats[names[head]].framework + dot + tail
    return suggestion(word, names, f"the frameworks are {listed(frameworks)}.")


def _is_array(registry: Registry, value: object) -> bool:
    """Tell whether a value is an array rather than one of Python's own objects."""
    try:
        return type(value).__module__ != "builtins" and bool(registry.format_of(value))
    except UnknownValueError:
        return False


def _in_order(registry: Registry, device: str = "cpu") -> list[Format]:
    """Return the formats that live on a device, those of frameworks in use before all others."""
    states = ("imported", "installed", "missing")
    formats = [f for f in registry.formats.values() if device in f.devices and not f.protocol]
    counts = Counter(declared.conversion.target for declared in registry.conversions)
    return sorted(
        formats,
        key=lambda f: (
            states.index(framework_state(f.requires) if f.requires else "installed"),
            "." in f.name,
            -counts[f.name],
        ),
    )
