"""The promises of a plugin: for each of its declarations, the checks that apply to it.

They follow from declarations alone, so that two processes number them alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType

from interop._model.extension import Autodiff, Container, DtypeNames

from . import _state  # noqa: F401 - it registers its checks
from ._calls import OF_A_CALL
from ._extensions import try_extension
from ._formats import try_format
from ._notes import Notes
from ._plugin import try_plugin
from ._stages import try_conversion
from ._subject import Bench, Promise, Subject, subjects_of
from ._table import CALL, CONVERSION, FORMAT, PLUGIN, RESULT, TABLE, names

#: The kinds of checks, in the order in which they are made; declarations of other kinds follow.
_KINDS: tuple[str | type, ...] = (PLUGIN, FORMAT, CALL, RESULT, CONVERSION)
_KINDS += tuple(check.about for check in TABLE if isinstance(check.about, type))

#: The checks, each with the statement that it tests.
CHECKS: dict[str, str] = {
    check.name: check.sentence
    for about in _KINDS
    for check in TABLE
    if check.about == about and check.sentence
}

#: The fields that tell two declarations of a kind apart.
_FIELDS: dict[type, str] = {DtypeNames: "type", Container: "requires", Autodiff: "format"}


def promises(bench: Bench) -> list[Promise]:
    """Return all promises of a plugin, in a fixed order."""
    return list(_numbered(_promises(bench)))


def work_of(plugin: str | ModuleType) -> list[tuple[Subject, int, Promise]]:
    """Return all promises of the plugins that a name or a module stands for, with their numbers."""
    return [
        (subject, number, promise)
        for subject in subjects_of(plugin)
        for number, promise in enumerate(promises(Bench(subject)))
    ]


def _promises(bench: Bench) -> Iterator[Promise]:
    yield Promise(f"plugin {bench.subject.name}", names(PLUGIN))
    if bench.problem:
        return
    for format_ in bench.formats():
        checks = _applying(FORMAT, format_, bench)
        yield Promise(f"format {format_.name}", checks, format_)
    for name, conversion in bench.conversions():
        checks = (*OF_A_CALL, *_applying(CONVERSION, conversion, bench))
        yield Promise(name, checks, None, conversion)
    for extension in bench.extensions():
        for check in names(type(extension)):
            field, words = _FIELDS.get(type(extension), ""), check.replace("_", " ")
            name = f"{words} {getattr(extension, field)}" if field else words
            yield Promise(name, (check,), extension=extension)


def _applying(about: str, declaration: object, bench: Bench) -> tuple[str, ...]:
    checks = (check for check in TABLE if check.about == about)
    return tuple(c.name for c in checks if c.applies(declaration, bench.registry))


def _numbered(promises: Iterable[Promise]) -> Iterator[Promise]:
    """Yield the promises; names that occur again get a number."""
    counts: Counter[str] = Counter()
    for promise in promises:
        counts[promise.name] += 1
        count = counts[promise.name]
        yield promise if count == 1 else promise._replace(name=f"{promise.name} ({count})")


def trier(promise: Promise) -> Callable[[Bench, Promise, Notes], None]:
    """Return what tries a promise."""
    if promise.conversion is not None:
        return try_conversion
    if promise.extension is not None:
        return try_extension
    return try_plugin if promise.format is None else try_format
