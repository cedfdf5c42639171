"""Keywords: everything that a call says beside its value, before any of it is resolved."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import Parameter, signature
from types import ModuleType
from typing import Any, Final, NamedTuple, TypeVar

from interop._model.deprecation import Renamed, with_new_names
from interop._model.suggestion import unexpected
from interop._model.typing import CopyLike, EffectNames, TargetLike, Value
from interop.errors import BadRequestError

from .policy import reusable

_Method = TypeVar("_Method", bound=Callable[..., Any])

#: The word of ``copy=`` for a result that may be written to.
WRITABLE: Final = "writable"


#: The keywords that had other names in former releases, by these.
RENAMED: dict[str, Renamed] = {}


class Keywords(NamedTuple):
    """The keywords of a call; those that it leaves out have their defaults.

    The types that callers see stand in `ConvertKeywords`, the meanings in `Interop.convert`. The
    stream, which stands last, is no part of the request.
    """

    to: TargetLike | None = None
    like: object = None
    dtype: object = None
    device: object = None
    copy: CopyLike = None
    out: Value = None
    allow: EffectNames = ()
    forbid: EffectNames = ()
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
    return value.__name__ if isinstance(value, (type, ModuleType)) else repr(value)


def read(
    call: str,
    kind: Any,
    to: TargetLike | None,
    named: Mapping[str, Any],
    *,
    others: tuple[str, ...] = (),
) -> Keywords:
    """Return the keywords of a call, checked as far as that needs no registry.

    Parameters
    ----------
    call : str
        Its name.
    kind : type
        The `TypedDict` of the keywords that it takes.
    to : object
    named : mapping of str to object
    others : tuple of str
        The names of the call's keywords that are no part of a request.

    Raises
    ------
    TypeError
        The call takes no keyword of a name.
    BadRequestError
        `copy` or `stream` is not a valid value, or `allow` or `forbid` does not name effects.
    """
    if not named:
        return Keywords(to)
    if not named.keys() <= kind.__optional_keys__:
        named = with_new_names(call, named, RENAMED)
    if not named.keys() <= kind.__optional_keys__:
        name = next(name for name in named if name not in kind.__optional_keys__)
        names = [name for name in Keywords._fields if name in kind.__optional_keys__]
        raise unexpected(call, name, [*others, *names])
    keywords = Keywords(to, **named)
    if keywords.copy is not None:
        _check_copy(keywords.copy)
    if keywords.stream is not None:
        _check_stream(keywords.stream)
    allow, forbid = reusable(keywords.allow, "allow"), reusable(keywords.forbid, "forbid")
    if allow is keywords.allow and forbid is keywords.forbid:
        return keywords
    return keywords._replace(allow=allow, forbid=forbid)  # type: ignore[arg-type]


def _check_copy(copy: object) -> None:
    """Refuse values that only compare equal to True or False: 1, 0 and NumPy's booleans."""
    if not (isinstance(copy, bool) or (isinstance(copy, str) and copy == WRITABLE)):
        msg = f"copy must be None, True, False or 'writable', got {copy!r}."
        raise BadRequestError(msg)


def _check_stream(stream: object) -> None:
    """Refuse anything but the number of a stream's handle and a framework's object."""
    kind = type(stream)
    if kind is not int and kind.__module__ == "builtins":
        msg = f"stream={stream!r} is not a stream; pass its handle, a number, or its object."
        raise BadRequestError(msg)


def with_signature(kind: Any) -> Callable[[_Method], _Method]:
    """Return a decorator that lets `inspect` and `help` show the keywords of a `TypedDict`.

    They are shown with their defaults, instead of the ``**named`` that takes them.
    """

    def decorated(method: _Method) -> _Method:
        own = signature(method)
        shown = [
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=Keywords._field_defaults[name],
                annotation=kind.__annotations__[name].__forward_arg__,
            )
            for name in Keywords._fields
            if name in kind.__optional_keys__
        ]
        others = [p for p in own.parameters.values() if p.kind is not Parameter.VAR_KEYWORD]
        first = [p for p in others if p.kind is not Parameter.KEYWORD_ONLY]
        parameters = [*first, *shown, *others[len(first) :]]
        method.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        return method

    return decorated
