"""Naming: the names that callers' words for formats, dtypes, devices and traits stand for.

A word is a name, a nickname, or an object that names something: a type, a module, a framework's
dtype or device. What names nothing is refused with the advice which name was meant.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from operator import index
from types import ModuleType
from typing import Any

from interop._model.blame import failed
from interop._model.device import NICKNAMES, device_name, device_type
from interop._model.dtype import (
    DTYPE_WORDS,
    DTYPES,
    KINDS,
    common_first,
    dtypes_of_kind,
    spelled,
    unknown_kind,
)
from interop._model.format import Format, package
from interop._model.spec import TRAITS, Spec
from interop._model.text import keyword, keywords, listed, suggestion
from interop._recognition.classes import imported
from interop._recognition.installed import framework_state
from interop._registry.registry import Registry
from interop._text import quoted
from interop.errors import (
    BadRequestError,
    InteropError,
    UnknownTargetError,
    UnknownValueError,
)

#: The characters of the longest repr that a message quotes.
_LONGEST_REPR = 40
#: What separates the words of "torch:cuda:1" or "np.float32"; a number belongs to its device.
_BETWEEN_WORDS = re.compile(r"[.\s]\s*|:\s*(?![0-9])")


#: What holds several targets.
_SEVERAL = (list, tuple, set, frozenset)


def named_formats(registry: Registry, to: Any) -> tuple[str, ...]:
    """Return the formats that ``to=`` accepts."""
    if isinstance(to, Spec):
        msg = f"to= names a format; of this spec it is {keyword('to', to.format)}."
        raise UnknownTargetError(msg)
    if isinstance(to, _SEVERAL) and to:
        if any(isinstance(item, _SEVERAL) for item in to):
            msg = f"{_label('to', to)} has several targets in one; list them side by side."
            raise BadRequestError(msg)
        return tuple(dict.fromkeys(name for item in to for name in named_formats(registry, item)))
    if to is None:
        msg = "no target was given; pass to= or like=."
        raise UnknownTargetError(msg)
    names = named(registry, to)
    if not names:
        msg = f"{_label('to', to)} does not name a registered format; {_advice(registry, 'to', to)}"
        raise UnknownTargetError(msg)
    return names


def adopt(registry: Registry, to: object) -> None:
    """Let modules that name no format yet be targets, if a plugin knows how.

    A type stands for the module in which its package begins.
    """
    registry.loader.load()
    for target in to if isinstance(to, _SEVERAL) else (to,):
        if not isinstance(target, (str, ModuleType, type)) or named(registry, target):
            continue
        is_type = isinstance(target, type)
        module = sys.modules.get(package(target.__module__)) if is_type else target
        if isinstance(module, ModuleType):
            with registry.loader.lock:
                _register_module(registry, module)


def _register_module(registry: Registry, module: ModuleType) -> None:
    """Register the declarations that a plugin makes for a module, if it names no format yet."""
    if named(registry, module) or (registry.loader.load_all() and named(registry, module)):
        return
    for namespaces, origin in registry.namespaces:
        try:
            declarations = list(namespaces.declare(module))
        except InteropError:
            raise
        except Exception as error:
            what = f"to={module.__name__}: declare of the Namespaces"
            raise failed(what, origin, error) from error
        if declarations:
            registry.register(declarations, origin)
            return


def named(registry: Registry, target: object) -> tuple[str, ...]:
    """Return the formats that a name, a type, a module or another object stands for.

    A name stands for its format or for all formats of its framework, or else is a nickname of it; a
    module stands for its framework; a type for its framework's dense format, if there is one.
    """
    if isinstance(target, ModuleType):
        return _named_by_module(registry, target)
    if not isinstance(target, str):
        return _named_by_object(registry, target)
    head, dot, layout = target.partition(".")
    registry.loader.load(head)
    nicknamed = (f.framework for f in registry.formats.values() if head in f.aliases)
    frameworks = (head, *nicknamed)
    matches = (_with_name(registry, framework + dot + layout) for framework in frameworks)
    return next(filter(None, matches), ())


def _with_name(registry: Registry, name: str) -> tuple[str, ...]:
    if name in registry.formats:
        return (name,)
    return tuple(other for other in registry.formats if other.startswith(f"{name}."))


def _named_by_object(registry: Registry, target: object) -> tuple[str, ...]:
    formats = [format_ for format_ in registry.formats.values() if _names(format_, target)]
    if not formats:
        return ()
    # Two distributions may name one object by different modules.
    provenance = registry.provenance
    owner = provenance[formats[0].name].distribution
    names = [f.name for f in formats if provenance[f.name].distribution == owner]
    return tuple([name for name in names if "." not in name] or names)


def _names(format_: Format, target: object) -> bool:
    """Return whether an object is one of those that name a format."""
    names = (*format_.naming_types, *format_.aliases)
    return any(":" in name and imported(name) is target for name in names)


def _named_by_module(registry: Registry, module: ModuleType) -> tuple[str, ...]:
    """Return the formats that a module stands for, by its name or by the arrays that it makes.

    A namespace of the array API standard may wrap another library, and make its arrays.
    """
    framework, dot, _ = module.__name__.partition(".")
    names = named(registry, framework)
    standard = "__array_namespace_info__", "__array_api_version__"
    if (dot or not names) and any(hasattr(module, name) for name in standard):
        made = _named_by_arrays(registry, module)
        return names if set(made) <= set(names) else made
    return names


def _named_by_arrays(registry: Registry, module: ModuleType) -> tuple[str, ...]:
    """Return the formats of the arrays that a namespace makes."""
    # Making an array may need a device that is not there; naming its type does not.
    kind = getattr(module, "ndarray", None)
    names = named(registry, kind) if isinstance(kind, type) else ()
    if names or not hasattr(module, "empty"):
        return names
    try:
        array = module.empty(0)
    except Exception as error:
        msg = (
            f"to={module.__name__}: its empty(0), which would tell what its arrays are, raised "
            f"{type(error).__name__}: {error}"
        )
        raise UnknownTargetError(msg) from error
    return named(registry, type(array))


def named_dtype(registry: Registry, dtype: object) -> str:
    """Return the name of a dtype, from one of its spellings or a framework's object."""
    name = _dtype(registry, dtype)
    if name is None:
        move = _advice(registry, "dtype", dtype)
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
        word = key if isinstance(key, str) else getattr(key, "__name__", None) or quoted(key, str)
        msg = f"{_text(key)} is neither a dtype nor a kind of dtypes; {unknown_kind(word)}"
        raise BadRequestError(msg)
    return (named_dtype(registry, key),)


def check_format(registry: Registry, name: str) -> None:
    """Refuse a format that is not registered."""
    if name not in registry.formats:
        layouts = named(registry, name)
        move = f"name one of {listed(layouts)}." if layouts else _advice(registry, "to", name)
        if len(layouts) == 1:
            move = f"write {layouts[0]!r}."
        msg = f"no plugin that is loaded declares the format {_text(name)}; {move}"
        raise UnknownValueError(msg)


def named_device(registry: Registry, device: object) -> str:
    """Return the name of a device, from a name or a framework's device object."""
    name = device_name(_own_name(registry, device))
    kind = device_type(name)
    if kind == "meta":
        devices = listed(_devices(registry))
        msg = f"{keyword('device', device)} holds no data; the devices are {devices}."
        raise BadRequestError(msg)
    if kind not in _devices(registry):
        move = _advice(registry, "device", name)
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
        msg = f"shape={quoted(shape)} is not a tuple of lengths; write (3,), or () for a scalar."
        raise BadRequestError(msg) from None
    if min(axes, default=0) < 0:
        msg = f"shape={quoted(shape)} has a negative length; lengths are 0 or more."
        raise BadRequestError(msg)
    return axes


def _dtype(registry: Registry, dtype: object) -> str | None:
    """Return the name of a dtype, or None if it is none."""
    if not isinstance(dtype, str):
        return _dtype_of_object(registry, dtype)
    prefix, _, word = dtype.rpartition(".")  # "torch.float16", as some libraries print it
    if prefix and not named(registry, prefix.partition(".")[0]):
        return None
    return spelled(word) if spelled(word) in DTYPES else None


def _dtype_of_object(registry: Registry, dtype: object) -> str | None:
    """Return the name of a framework's dtype object, or None if no framework knows it."""
    for names in registry.dtype_names:
        type_ = imported(names.type)
        if isinstance(type_, type) and isinstance(dtype, type_):
            try:
                return names.name(dtype)
            except TypeError:
                continue
    return None


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
    text = getattr(argument, "__name__", None) or quoted(argument)
    is_short = len(text) < _LONGEST_REPR and "\n" not in text
    return text if is_short else f"<{type(argument).__qualname__}>"


def _label(name: str, argument: object) -> str:
    """Return a keyword with its argument as a message quotes them."""
    return keyword(name, argument) if isinstance(argument, str) else f"{name}={_text(argument)}"


def _word(argument: object) -> str:
    """Return the word that says most nearly what an argument is."""
    if isinstance(argument, type):
        return f"{argument.__module__}.{argument.__qualname__}".removeprefix("builtins.")
    if isinstance(argument, ModuleType):
        return argument.__name__
    return quoted(getattr(argument, "__module__", "") if callable(argument) else argument, str)


def vocabulary(registry: Registry) -> dict[str, tuple[str, str]]:
    """Return every word that names something, with the keyword that takes it and the name.

    Where several formats share a word, it stands for the first: those of frameworks in use come
    before all others.
    """
    formats = _in_order(registry)
    words = {name: ("to", name) for f in formats for name in (f.framework, f.name)}
    words |= {alias: ("to", format_.name) for format_ in formats for alias in format_.aliases}
    words |= {word: ("device", word) for word in _devices(registry)}
    words |= {word: ("device", name) for word, name in NICKNAMES.items()}
    words |= {word: ("dtype", name) for word, name in DTYPE_WORDS.items()}
    types = [(t.replace(":", "."), f.name) for f in formats for t in (f.name, *f.types)]
    ends = [(type_.rpartition(".")[2], name) for type_, name in types]
    # "tensor" is said for the first framework with a Tensor.
    others = [*types, *((word, name) for end, name in ends for word in (end, end.casefold()))]
    return {word: ("to", name) for word, name in reversed(others)} | words


def _advice(registry: Registry, name: str, argument: object) -> str:
    """Return the advice about an argument that the keyword `name` does not take."""
    if not isinstance(argument, str) and (dtype := _dtype(registry, argument)):
        return f"did you mean {keyword('dtype', dtype)}?"
    if name == "to" and hasattr(argument, "shape") and not isinstance(argument, type):
        return "pass like=x for the format and the device of an array x."
    word = _word(argument)
    if reason := registry.loader.unavailable.get(word.partition(".")[0]):
        return reason
    words = vocabulary(registry)
    if meaning := _meaning(words, word):
        is_own = meaning.keys() == {name}
        return f"did you mean {repr(meaning[name]) if is_own else keywords(**meaning)}?"
    names = {spelling: meant for spelling, (taker, meant) in words.items() if taker == name}
    otherwise = _choice(registry, name, argument)
    if framework := _meaning(words, word.partition(".")[0]).get("to"):
        names = {word: meant for word, meant in names.items() if meant.startswith(framework)}
        # "torch.csr" is said for "torch.sparse_csr".
        names |= {f"{framework}.{meant.rpartition('_')[2]}": meant for meant in names.values()}
        otherwise = f"did you mean {framework!r}?"
    elif name == "to" and (hint := _hint_of_type(registry, word)):
        return hint
    return suggestion(word, names, otherwise)


def _hint_of_type(registry: Registry, word: str) -> str:
    """Return what a plugin says of a type that a word, or the module that it names, leads to."""
    for format_ in registry.formats.values():
        for type_, hint in format_.limits.refusal_hints.items():
            path = f"{type_.replace(':', '.')}.".casefold()
            if word and ":" in type_ and path.startswith(f"{word}.".casefold()):
                return hint
    return ""


def _meaning(words: Mapping[str, tuple[str, str]], text: str) -> dict[str, str]:
    """Return the keywords that a text's words stand for.

    None, if a word stands for nothing or if two words name two values of one keyword, as in
    "torch.csr".
    """
    meaning: dict[str, str] = {}
    for part in [text] if text in words else _BETWEEN_WORDS.split(text):
        word, colon, number = part.partition(":")
        taker, name = words.get(word, ("", ""))
        if not taker or (number and taker != "device"):
            return {}
        value = name + colon + number
        if meaning.setdefault(taker, value) != value:
            return {}
    return meaning


def _choice(registry: Registry, name: str, argument: object) -> str:
    """Return the names that a keyword takes, as advice."""
    if name == "dtype" and not isinstance(argument, str):
        return "name it as a string, such as 'float32'."
    choices = {
        "to": ("frameworks", dict.fromkeys(f.framework for f in _in_order(registry))),
        "dtype": ("dtypes", common_first(DTYPES)),
        "device": ("devices", _devices(registry)),
    }
    plural, names = choices[name]
    return f"the {plural} are {listed(names)}."


def _in_order(registry: Registry) -> list[Format]:
    """Return the formats that can be asked for, those of frameworks in use before all others."""
    states = ("imported", "installed", "missing")
    formats = [format_ for format_ in registry.formats.values() if not format_.protocol]
    counts = Counter(declared.conversion.target for declared in registry.conversions)
    return sorted(
        formats,
        key=lambda f: (
            states.index(framework_state(f.requires) if f.requires else "installed"),
            "." in f.name,
            -counts[f.name],
        ),
    )
