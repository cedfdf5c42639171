"""Naming: what callers call formats, dtypes and devices, and what they meant by other words."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from interop._model.device import NICKNAMES, device_name, device_type
from interop._model.dialect import keyword, keywords
from interop._model.dtype import COMMON, DTYPES, SPELLINGS, spelled
from interop._model.format import Format
from interop._model.suggestion import listed, suggestion
from interop._registry.installed import framework_state
from interop._registry.registry import Registry
from interop.errors import BadRequestError, UnknownTargetError, UnknownValueError

__all__ = ["check_format", "named_device", "named_dtype", "named_formats", "unknown_dtype"]

#: The longest repr that a message quotes.
_SHORT = 40


def named_formats(registry: Registry, to: Any) -> tuple[str, ...]:
    """Return the formats that ``to=`` accepts."""
    if isinstance(to, (list, tuple, set, frozenset)) and to:
        return tuple(dict.fromkeys(name for item in to for name in named_formats(registry, item)))
    if to is None:
        msg = "no target was given; pass to= or like=."
        raise UnknownTargetError(msg)
    names = registry.named(to)
    if not names:
        label = keyword("to", to) if isinstance(to, str) else f"to={_label(to)}"
        msg = f"{label} does not name a registered format; {_meant(registry, to)}"
        raise UnknownTargetError(msg)
    return names


def named_dtype(registry: Registry, dtype: object) -> str:
    """Return the name of a dtype, given as one of its spellings or as a framework's object."""
    name = _dtype(registry, dtype)
    if name is None:
        words = isinstance(dtype, str)
        move = unknown_dtype(dtype) if words else "name it as a string, such as 'float32'."
        msg = f"{keyword('dtype', dtype)} is not a dtype that interop recognises; {move}"
        raise BadRequestError(msg)
    return name


def check_format(registry: Registry, name: str) -> None:
    """Refuse to speak of values of a format that is not registered."""
    if name not in registry.formats:
        layouts = registry.named(name)
        move = f"name one of {listed(layouts)}." if layouts else _nearest(registry, name, name)
        msg = f"no plugin that is loaded declares the format {name!r}; {move}"
        raise UnknownValueError(msg)


def unknown_dtype(dtype: object) -> str:
    """Return what to say of a dtype that does not exist."""
    names = {**SPELLINGS, **{name: name for name in DTYPES}}
    others = (name for name in DTYPES if name not in COMMON)
    return suggestion(dtype, names, f"the dtypes are {listed([*COMMON, *others])}.")


def named_device(registry: Registry, device: object) -> str:
    """Return the name of a device, given as one or as a framework's device object."""
    name = device_name(device)
    devices = _devices(registry)
    if device_type(name) not in devices:
        names = {**NICKNAMES, **dict(zip(devices, devices, strict=True))}
        move = suggestion(device_type(name), names, f"the devices are {listed(devices)}.")
        msg = f"{keyword('device', device)} is not a device that interop recognises; {move}"
        raise BadRequestError(msg)
    return name


def _devices(registry: Registry) -> list[str]:
    """Return the device types that everyone knows, and those on which there are formats."""
    devices = {d for format_ in registry.formats.values() for d in format_.devices}
    return sorted({"cpu", *NICKNAMES.values(), *devices})


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


def _label(target: object) -> str:
    """Return a few words for what was given as a target."""
    if isinstance(target, (type, ModuleType)):
        return getattr(target, "__qualname__", target.__name__)
    text = repr(target)
    return text if len(text) < _SHORT and "\n" not in text else f"<{type(target).__qualname__}>"


def _word(target: object) -> str:
    """Return the word that comes nearest to what was given as a target."""
    if isinstance(target, type):
        return f"{target.__module__}.{target.__qualname__}"
    return target.__name__ if isinstance(target, ModuleType) else str(target)


def _meant(registry: Registry, to: Any) -> str:
    """Return what to write in the place of a target that does not exist."""
    word = _word(to)
    kind, *index = word.split(":")
    device = NICKNAMES.get(kind, kind)
    homes = _in_order(registry, device)
    if homes:
        words = keywords(to=homes[0].name, device=":".join((device, *index)))
        return f"{_label(to)} is a device: {words}."
    dtype = _dtype(registry, to)
    if dtype is not None:
        return f"{_label(to)} is a dtype: {keyword('dtype', dtype)}."
    if not isinstance(to, type) and _is_array(registry, to):
        return "pass like=x for the format and the device of an array x."
    return _nearest(registry, to, word)


def _nearest(registry: Registry, to: object, word: str) -> str:
    """Return the format that a type or a word resembles, or else the frameworks that there are."""
    reason = registry.unavailable.get(word.partition(".")[0])
    if reason:
        return reason
    if isinstance(to, type):
        try:
            name = registry.recognise(to).name
        except UnknownValueError:
            word = ""
        else:
            return f"no result is of that type for certain; the nearest is {keyword('to', name)}."
    formats = _in_order(registry)
    frameworks = dict.fromkeys(format_.framework for format_ in formats)
    names = {alias: format_.name for format_ in formats for alias in format_.aliases}
    names |= {name: name for name in (*frameworks, *(format_.name for format_ in formats))}
    for format_ in formats:  # of those that share a type, the first
        for type_ in format_.types:
            names.setdefault(type_.replace(":", "."), format_.name)
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
    return sorted(
        formats,
        key=lambda f: (states.index(framework_state(f.requires)), "." in f.name, -len(f.devices)),
    )
