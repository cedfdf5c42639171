"""Recognition: which format a value is of, by its type or by a protocol that it offers.

Types are looked up among the modules that are already imported: a framework has values only after
it was imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sized
from functools import partial
from types import NoneType

from interop._model.blame import blame, failed, is_signal, unreadable
from interop._model.format import Format, Labels, package
from interop._model.provenance import Provenance
from interop._model.spec import LABELLED, Spec
from interop._model.typing import Value
from interop.errors import (
    HandOffError,
    InteropError,
    NotInstalledError,
    PluginError,
    UnknownValueError,
)

from .classes import ByType, format_of_class, imported
from .installed import absent
from .unknown import leading_on, why_unknown

#: The function that describes the values of a type, and the formats that its specs may name.
_Describer = tuple[Callable[[Value], Spec], frozenset[str]]

#: The types of those fields of a spec for which a framework's own objects are often given.
_TYPES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(("format", "device"), (str,)),
    **dict.fromkeys(("dtype", "index_dtype", "code_dtype"), (str, NoneType)),
    "shape": (tuple,),
    "traits": (frozenset,),
}


class Recognition:
    """What can be told of a value by its type, given the formats.

    Parameters
    ----------
    load : callable
        ``load(name)`` has those formats registered for which imported modules, or a name, show the
        need.
    load_all : callable
        Has all formats registered, and tells whether any of them was not.
    """

    def __init__(self, load: Callable[[str], None], load_all: Callable[[], bool]) -> None:
        self._load = load
        self._load_all = load_all
        self.replace({}, {})

    def replace(self, formats: Mapping[str, Format], provenance: Mapping[str, Provenance]) -> None:
        """Recognise values by these formats alone, and forget which types were recognised."""
        self.provenance = provenance
        self.formats = formats
        # New tables, because other threads may be reading the old ones.
        self._recognised = ByType[Format]()
        #: Why the values of other types are none of any format, and how many modules were imported
        #: then: later ones may name a type.
        self._unknown = ByType[tuple[int, str]]()
        #: The hints for types of values that are none of any format.
        self._hints = {
            name: hint
            for format_ in self.formats.values()
            for name, hint in format_.limits.refusal_hints.items()
            if ":" in name
        }
        self._describers = ByType[_Describer]()

    def describe(self, value: object) -> Spec:
        """Return the spec of `value`."""
        describers = self._describers
        describer = describers.get(type(value))
        if describer is None:
            describer = describers.found(type(value))
        if describer is None:
            format_ = self._format_for(value)
            describer = self._describer(format_, type(value)), self._siblings(format_)
            describer = partial(self._first, format_, describer), describer[1]
        describe, siblings = describer
        try:
            spec = describe(value)
            if spec.format in siblings:
                return spec
        except (InteropError, Warning):
            raise
        except BaseException as error:  # descriptions are foreign code
            if is_signal(error):
                raise
            if missing := absent(error):
                raise NotInstalledError(missing, name=getattr(error, "name", None)) from error
            # The value's own code has raised it, and not the plugin's, if it has a protocol.
            if self.format_of(value).protocol:
                raise unreadable(value, error) from error
            raise failed(*self._description(value), error, _for_a(value)) from error
        raise self._misdescribed(value, f"answered with the format {spec.format!r}, not its own")

    def _first(self, format_: Format, describer: _Describer, value: Value) -> Spec:
        """Return the spec of the first value of a type, and check what it holds."""
        describers, (describe, _) = self._describers, describer
        spec = describe(value)
        if problem := _misfit(spec):
            raise self._misdescribed(value, problem)
        if self._recognised.found(type(value)) is format_:
            describers.keep(type(value), describer)
        return spec

    def _misdescribed(self, value: object, problem: str) -> PluginError:
        """Return the error that names the plugin whose description of a value is wrong."""
        return blame(*self._description(value), problem, _for_a(value))

    def _description(self, value: object) -> tuple[str, Provenance]:
        """Return how messages call the function that describes a value, and where it is from."""
        name = self.format_of(value).name
        return f"describe of format {name!r}", self.provenance[name]

    def _siblings(self, format_: Format) -> frozenset[str]:
        """Return the formats that the spec of a value may name.

        They are the formats of the plugin that describes it. A value that is read by a protocol, or
        that is unwrapped before all else, may be described as whatever it gives.
        """
        wrapper = format_.wrapper
        is_opened = wrapper is not None and (wrapper.once or wrapper.first is not None)
        if format_.protocol or is_opened:
            return frozenset(self.formats)
        origin = self.provenance[format_.name]
        return frozenset(name for name in self.formats if self.provenance[name] == origin)

    def _describer(self, format_: Format, type_: type) -> Callable[[Value], Spec]:
        describe = format_.describe
        if format_.wrapper is not None:
            describe = partial(self._describe_wrapped, format_)
            if format_.wrapper.once:
                return self._describe_opened
        if describe is None:
            msg = f"values of format {format_.name!r} cannot be described; declare its describe."
            raise PluginError(msg)
        if format_.protocol:
            describe = partial(self._describe_foreign, format_)
        if format_.labels is not None:
            return partial(_labelled, describe, format_.labels)
        return partial(_attributed, describe) if self._may_add(type_, format_) else describe

    def _may_add(self, type_: type, format_: Format) -> bool:
        """Return whether a type is a subclass that another package may have given attributes."""
        is_own = package(type_.__module__) in map(package, format_.types)
        return not (is_own or self.is_plain(type_, format_))

    def _describe_foreign(self, format_: Format, value: Value) -> Spec:
        """Return the spec of a value by a protocol, or by another that it offers at this moment."""
        unwrapped = partial(self._describe_wrapped, format_)
        describe = unwrapped if format_.wrapper is not None else format_.describe
        while True:
            assert describe is not None
            try:
                return describe(value)
            except HandOffError as error:
                following = self._following(format_, value, error)
                if following is None:
                    raise
            # Its steps take the value itself, which no conversion has unwrapped for it.
            format_ = following
            describe = format_.describe or partial(self._describe_wrapped, format_)

    def _following(self, format_: Format, value: Value, error: InteropError) -> Format | None:
        """Return the protocol that serves where one raised an error because it is missing, if any.

        A protocol's attribute may be a property that raises AttributeError for some values, such as
        those whose memory is on another device.
        """
        is_missing = isinstance(error.__cause__, AttributeError)
        if not is_missing or _offers(value, format_):
            return None
        offered = self._offered(value)
        return next((f for f in offered if f.wrapper is None or not f.wrapper.once), None)

    def _describe_wrapped(self, format_: Format, value: Value) -> Spec:
        """Return the spec of a wrapper: that of the wrapped value, with the wrapper's format."""
        assert format_.wrapper is not None
        wrapped = format_.wrapper.unwrap(value)
        if _is_opened_first(format_, value):
            return self.describe(wrapped)
        if wrapped is None and format_.describe is not None:
            return format_.describe(value)
        spec = self.describe(wrapped)
        if spec.wrapped:
            outer, inner = type(value).__qualname__, type(wrapped).__qualname__
            msg = (
                f"a {outer} wraps a {inner}, which is itself a wrapper; convert the array in the "
                f"{inner}."
            )
            raise UnknownValueError(msg)
        return spec._replace(format=format_.name, wrapped=spec.format)

    def opened(self, value: Value) -> Value:
        """Return a value, or what it wraps if a conversion unwraps it before all else."""
        format_ = self._recognised.found(type(value)) or self._format_for(value)
        while format_.wrapper is not None:
            try:
                if not _is_opened_first(format_, value):
                    return value
                wrapped = format_.wrapper.unwrap(value)
            except InteropError as error:
                following = self._following(format_, value, error)
                if following is None:
                    raise
                format_ = following
                continue
            except Warning:
                raise
            except BaseException as error:
                if is_signal(error):
                    raise
                raise unreadable(value, error) from error
            return self.opened(wrapped)
        return value

    def _describe_opened(self, value: Value) -> Spec:
        """Return the spec of what a value gives that a conversion unwraps before all else."""
        if isinstance(value, Sized):
            return self.describe(self.opened(value))
        msg = (
            f"{type(value).__qualname__} can be read only once, which a conversion does; to plan, "
            "pass what it gives when it is read."
        )
        raise UnknownValueError(msg)

    def is_plain(self, type_: type, format_: Format) -> bool:
        """Return whether a type is one of a format's own types, rather than a subclass of one.

        A protocol's own types are all that offer it.
        """
        return _offers(type_, format_) or any(imported(name) is type_ for name in format_.types)

    def format_of(self, value: object) -> Format:
        """Return the format of a value, by its type or else by a protocol that it offers itself."""
        try:
            return self.recognise(type(value))
        except UnknownValueError:
            # A class has the attributes of its values, but offers no protocol itself.
            for format_ in () if isinstance(value, type) else self._offered(value):
                return format_
            raise

    def _format_for(self, value: Value) -> Format:
        """Return the format of a value that is converted; an error looks for what leads on."""
        try:
            return self.format_of(value)
        except UnknownValueError as error:
            reason = str(error)
        # Raised here, the error has no other one as its context.
        raise UnknownValueError(leading_on(value, reason, self._is_format))

    def _is_format(self, value: object) -> bool:
        """Return whether a value is of a format by its type, and no number or list."""
        try:
            return type(value).__module__ != "builtins" and bool(self.recognise(type(value)))
        except UnknownValueError:
            return False

    def _offered(self, value: object) -> Iterator[Format]:
        """Yield the formats of the protocols that a value itself offers."""
        protocols = [format_ for format_ in self.formats.values() if format_.protocol is not None]
        yield from (format_ for format_ in protocols if _offers(value, format_))
        if _has_buffer(value):
            formats = self.formats.values()
            yield from (format_ for format_ in formats if format_.protocol == "__buffer__")

    def recognise(self, type_: type) -> Format:
        """Return the format of the values of a type, the first if several formats share it."""
        # A registration in the meantime makes new tables.
        recognised, unknown = self._recognised, self._unknown
        format_ = recognised.found(type_)
        if format_ is not None:
            return format_
        modules, (then, reason) = len(sys.modules), unknown.found(type_) or (0, "")
        if modules != then:
            format_ = self._search(type_)
            if format_ is not None:
                return recognised.keep(type_, format_)
            # What needs no package is no library that values have methods for.
            frameworks = dict.fromkeys(f.framework for f in self.formats.values() if f.requires)
            reason = why_unknown(type_, self.hint(type_), frameworks)
            unknown.keep(type_, (modules, reason))
        raise UnknownValueError(reason)

    def _search(self, type_: type) -> Format | None:
        self._load("")
        named = None if issubclass(type_, Spec) else format_of_class(type_, self.formats.values())
        if named is not None:
            return named
        for format_ in self.formats.values():
            if _offers(type_, format_):
                return format_
        if self._load_all():  # the advice names the methods of all frameworks
            return self._search(type_)
        return None

    def hint(self, type_: type) -> str:
        """Return what a plugin says of values of a type that no format has; "" if nothing."""
        hints = (hint for name, hint in self._hints.items() if imported(name) in type_.__mro__)
        return next(hints, "")

    def relabelled(self, value: Value, like: Value) -> Value:
        """Return a value with the labels of another, if it can have them."""
        labels = self.format_of(like).labels
        if labels is None or not labels.present(like):
            return value
        return value if self.describe(value).traits >= LABELLED else labels.give(value, like)


def _misfit(spec: object) -> str:
    """Say what keeps a spec that a plugin gives from being one; "" if nothing does."""
    if not isinstance(spec, Spec):
        return f"answered {spec!r}, which is no Spec"
    for name, types in _TYPES.items():
        value = getattr(spec, name)
        if not isinstance(value, types):
            kinds = " or ".join(kind.__name__ for kind in types)
            return f"answered with {name}={value!r}, which has to be of type {kinds}"
    return ""


def _for_a(value: object) -> str:
    return f", for a {type(value).__qualname__}"


def _is_opened_first(format_: Format, value: Value) -> bool:
    """Return whether a conversion unwraps a value before it describes it."""
    wrapper = format_.wrapper
    if wrapper is None or wrapper.first is None:
        return wrapper is not None and wrapper.once
    return bool(wrapper.first(value))


def _labelled(describe: Callable[[Value], Spec], labels: Labels, value: Value) -> Spec:
    """Return the spec of a value that may have labels."""
    spec = describe(value)
    return spec._replace(traits=spec.traits | LABELLED) if labels.present(value) else spec


def _attributed(describe: Callable[[Value], Spec], value: Value) -> Spec:
    """Return the spec of a subclass's value, whose attributes count as labels: a unit, say."""
    spec = describe(value)
    attributes = getattr(value, "__dict__", {})  # with __slots__ alone there is none
    if "subclass" in spec.traits and any(v is not None for v in attributes.values()):
        return spec._replace(traits=spec.traits | LABELLED)
    return spec


def _offers(owner: object, format_: Format) -> bool:
    """Return whether a value or a type has the attribute of a protocol; None does not count."""
    protocol = format_.protocol
    try:
        return protocol is not None and getattr(owner, protocol, None) is not None
    # A property may raise anything.
    except BaseException as error:
        if is_signal(error):
            raise
        raise unreadable(owner, error) from error


def _has_buffer(value: Value) -> bool:
    """Return whether a value has the buffer protocol; types show it only from Python 3.12 on."""
    try:
        memoryview(value).release()
    except TypeError:
        return False
    except (BufferError, RuntimeError, ValueError):  # it has the protocol, but refuses at present
        pass
    return True
