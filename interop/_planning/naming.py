"""Naming: what callers call formats, dtypes and devices, and what they meant by other words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from operator import index
from types import ModuleType
from typing import Any

from interop._model.device import NICKNAMES, device_name, device_type
from interop._model.dialect import keyword, keywords
from interop._model.dtype import DTYPES, spelled, unknown_dtype
from interop._model.format import Format
from interop._model.spec import TRAITS, Spec
from interop._model.suggestion import listed, suggestion
from interop._registry.installed import framework_state
from interop._registry.registry import Registry
from interop.errors import BadRequestError, UnknownTargetError, UnknownValueError

#: The longest repr that a message quotes.
_SHORT = 40


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
        label = keyword("dtype", dtype) if words else f"dtype={_label(dtype)}"
        move = _other_keyword(registry, dtype) or move
        msg = f"{label} is not a dtype that interop recognises; {move}"
        raise BadRequestError(msg)
    return name


def check_format(registry: Registry, name: str) -> None:
    """Refuse to speak of values of a format that is not registered."""
    if name not in registry.formats:
        layouts = registry.named(name)
        move = f"name one of {listed(layouts)}." if layouts else _nearest(registry, name, name)
        if len(layouts) == 1:
            move = f"write {layouts[0]!r}."
        label = repr(name) if isinstance(name, str) else _label(name)
        msg = f"no plugin that is loaded declares the format {label}; {move}"
        raise UnknownValueError(msg)


def named_device(registry: Registry, device: object) -> str:
    """Return the name of a device, given as one or as a framework's device object."""
    name = device_name(device)
    devices = _devices(registry)
    if device_type(name) in TRAITS:  # 'meta': what is there has no data, and the trait says so
        msg = f"{keyword('device', device)} holds no data; the devices are {listed(devices)}."
        raise BadRequestError(msg)
    if device_type(name) not in devices:
        names = {**NICKNAMES, **dict(zip(devices, devices, strict=True))}
        move = suggestion(device_type(name), names, f"the devices are {listed(devices)}.")
        numbered = re.fullmatch(r"([a-z]+)(\d+)", name)
        if numbered and numbered[1] in names:
            move = f"did you mean '{names[numbered[1]]}:{numbered[2]}'?"
        elif device_type(name) not in names:
            move = _other_keyword(registry, device) or move
        msg = f"{keyword('device', device)} is not a device that interop recognises; {move}"
        raise BadRequestError(msg)
    return name


def traits(registry: Registry) -> set[str]:
    """Return the words of `TRAITS`, and those that plugins have of their own."""
    conversions = [declared.conversion for declared in registry.conversions]
    sets = [format_.carries for format_ in registry.formats.values()]
    sets += [words for item in conversions for words in (item.takes, item.requires)]
    return set(TRAITS).union(*sets)


def named_traits(registry: Registry, names: str | Iterable[str]) -> frozenset[str]:
    """Return `names` as a set of traits, refusing words that are not traits."""
    words = frozenset((names,) if isinstance(names, str) else names)
    for word in sorted(words - traits(registry)):
        move = suggestion(word, traits(registry), "interop.TRAITS has the words.")
        msg = f"{word!r} is not a trait; {move}"
        raise BadRequestError(msg)
    return words


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


def _devices(registry: Registry) -> list[str]:
    """Return the device types by the number of formats on them, those that everyone knows too."""
    counts = Counter(["cpu", *NICKNAMES.values()])
    counts.update(d for format_ in registry.formats.values() for d in format_.devices)
    return sorted(counts, key=lambda device: (-counts[device], device))


def _other_keyword(registry: Registry, word: Any) -> str:
    """Return which other keyword a word is for; "" if it is for none."""
    device = _device(word) if isinstance(word, str) else ""
    if device_type(device) in _devices(registry):
        return f"{word!r} is a device: {keyword('device', device)}."
    if isinstance(word, (str, ModuleType)) and (names := registry.named(word)):
        return f"{_label(word)} is a format: {keyword('to', names[0])}."
    dtype = _dtype(registry, word)
    return "" if dtype is None else f"{_label(word)} is a dtype: {keyword('dtype', dtype)}."


def _device(word: str) -> str:
    """Return the device that a word may name, its nickname resolved."""
    kind, colon, number = word.partition(":")
    return NICKNAMES.get(kind, kind) + colon + number


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
    """Return a few words for what was given."""
    if isinstance(target, type):
        return target.__qualname__
    text = getattr(target, "__name__", None) or repr(target)
    return text if len(text) < _SHORT and "\n" not in text else f"<{type(target).__qualname__}>"


def _word(target: object) -> str:
    """Return the word that comes nearest to what was given as a target."""
    if isinstance(target, type):
        return f"{target.__module__}.{target.__qualname__}"
    if isinstance(target, ModuleType):
        return target.__name__
    if not callable(target):
        return str(target)
    owner = getattr(target, "__self__", None) or target  # of a function, where it has one
    return owner.__name__ if isinstance(owner, ModuleType) else str(owner.__module__)


def _meant(registry: Registry, to: Any) -> str:
    """Return what to write in the place of a target that does not exist."""
    word = _word(to)
    framework, *rest = re.split(r"[:.\s]\s*", word, maxsplit=1)
    if rest and isinstance(to, str) and registry.named(framework):  # "torch:cuda"
        place = _device(rest[0])
        if homes := _in_order(registry, device_type(place)):
            return f"{rest[0]!r} is a device: {keywords(to=framework, device=place)}."
        if dtype := _dtype(registry, rest[0]):
            return f"{rest[0]!r} is a dtype: {keywords(to=framework, dtype=dtype)}."
    place = _device(word)
    if homes := _in_order(registry, device_type(place)):
        targets = {declared.conversion.target for declared in registry.conversions}
        names = [home.name for home in homes if home.name in targets]
        if names:
            return f"{_label(to)} is a device: {keywords(to=names[0], device=place)}."
        return (
            f"{_label(to)} is a device of values that are read and not written; name a framework."
        )
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
            format_ = registry.recognise(to)
        except UnknownValueError:
            word = ""
        else:
            if not format_.protocol:
                target = keyword("to", format_.name)
                return f"the nearest is {target}; make a {to.__qualname__} of its result."
    formats = _in_order(registry)
    frameworks = dict.fromkeys(format_.framework for format_ in formats)
    names = {alias: format_.name for format_ in formats for alias in format_.aliases}
    names |= {name: name for name in (*frameworks, *(format_.name for format_ in formats))}
    for format_ in formats:  # of those that share a type, the first
        for type_ in format_.types:
            names.setdefault(type_.replace(":", "."), format_.name)
            module = type_.partition(":")[0]  # "scipy.sparse._csr", of which two parts are public
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
