"""Keywords: everything that a call says beside its value, before any of it is resolved."""

from __future__ import annotations

from types import ModuleType
from typing import Final, NamedTuple

from interop._model.typing import CopyLike, EffectNames, OrderLike, TargetLike, Value
from interop._text import quoted
from interop.errors import BadRequestError

from .policy import reusable

#: The word of ``copy=`` for a result that may be written to.
WRITABLE: Final = "writable"


class Keywords(NamedTuple):
    """The keywords of a call; those that it leaves out have their defaults.

    Their meanings stand in `Interop.convert`. The stream, which stands last, is no part of the
    request.
    """

    to: TargetLike | None = None
    like: object = None
    dtype: object = None
    device: object = None
    copy: CopyLike = None
    out: Value = None
    allow: EffectNames = ()
    forbid: EffectNames = ()
    order: OrderLike = None
    stream: object = None

    def __str__(self) -> str:
        """Return what a call gave, as it may stand there; the value in ``like=`` by its type."""
        given = {
            name: _shown(value)
            for name, value in self._asdict().items()
            if value is not self._field_defaults[name]
        }
        if "like" in given:
            given["like"] = f"<{type(self.like).__qualname__}>"
        return ", ".join(f"{name}={text}" for name, text in given.items())


def _shown(value: object) -> str:
    return value.__name__ if isinstance(value, (type, ModuleType)) else quoted(value)


def checked(keywords: Keywords) -> Keywords:
    """Return the keywords of a call, checked as far as that needs no registry.

    Raises
    ------
    BadRequestError
        `copy`, `order` or `stream` is not a valid value, or `allow` or `forbid` does not name
        effects.
    """
    if keywords.copy is not None:
        _check_copy(keywords.copy)
    if keywords.order is not None:
        _check_order(keywords.order)
    if keywords.stream is not None:
        _check_stream(keywords.stream)
    if type(keywords.allow) is type(keywords.forbid) is tuple:  # as nearly always
        return keywords
    allow, forbid = reusable(keywords.allow, "allow"), reusable(keywords.forbid, "forbid")
    if allow is keywords.allow and forbid is keywords.forbid:
        return keywords
    return keywords._replace(allow=allow, forbid=forbid)  # type: ignore[arg-type]


def _check_copy(copy: object) -> None:
    """Refuse values that only compare equal to True or False: 1, 0 and NumPy's booleans."""
    if not (isinstance(copy, bool) or (isinstance(copy, str) and copy == WRITABLE)):
        msg = f"copy must be None, True, False or 'writable', got {quoted(copy)}."
        raise BadRequestError(msg)


def _check_order(order: object) -> None:
    if not (isinstance(order, str) and order in ("C", "F")):
        msg = f"order must be None, 'C' or 'F', got {quoted(order)}."
        raise BadRequestError(msg)


def _check_stream(stream: object) -> None:
    """Refuse anything but the number of a stream's handle and a framework's object."""
    kind = type(stream)
    if kind is not int and kind.__module__ == "builtins":
        msg = f"stream={quoted(stream)} is not a stream; pass its handle, a number, or its object."
        raise BadRequestError(msg)
