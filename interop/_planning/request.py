"""Requests: what a caller asks of the result, resolved to names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from interop._model.dialect import keyword, on_command_line
from interop._model.effect import COPYING, LOCKING
from interop._model.typing import CopyLike
from interop._registry.registry import Registry
from interop.errors import BadRequestError

from .naming import named_device, named_dtype, named_formats
from .policy import Policy, adjusted, effect_names

#: The word of ``copy=`` for a result that may be written to.
WRITABLE: Final = "writable"

#: The effects that a word of ``copy=`` forbids.
_FORBIDDEN = {False: COPYING, WRITABLE: LOCKING}


class Request(NamedTuple):
    """What the caller asks of the result.

    Parameters
    ----------
    formats : tuple of str
        Acceptable formats.
    dtype, device : str or None
        None: as the value has it, if the target can.
    copy : bool, "writable" or None
        As in the array API standard; or whatever it takes for the result to be the caller's to
        write.
    policy : Policy
        The effects permitted by the blocks around the call and by its keywords.
    forbid : frozenset of str
        The effects that the call itself forbids.
    like : frozenset of str
        How the value that was given as ``like=`` is divided, if it is.
    """

    formats: tuple[str, ...]
    dtype: str | None = None
    device: str | None = None
    copy: CopyLike = None
    policy: Policy = Policy()
    forbid: frozenset[str] = frozenset()
    like: frozenset[str] = frozenset()

    @property
    def permitted(self) -> frozenset[str]:
        """The effects that a route may have."""
        return self.policy.permitted - self.forbidden_by_copy

    @property
    def forbidden_by_copy(self) -> frozenset[str]:
        """The effects that ``copy=`` forbids."""
        return frozenset() if self.copy is None else _FORBIDDEN.get(self.copy, frozenset())

    @property
    def consents(self) -> bool:
        """Whether the caller named the dtype, so that a cast to it is no loss."""
        return self.dtype is not None and "narrow" not in self.policy.forbidden

    def given(self, stream: object, like: object = None) -> dict[str, object]:
        """Return what the caller has given for the steps themselves, by keyword."""
        given = {} if stream is None else {"stream": stream}
        return {**given, "like": like} if self.like else given

    @property
    def text(self) -> str:
        """The request as programs read it, whoever made it."""
        return ", ".join(
            [" or ".join(self.formats), *(f"{name}={word}" for name, word in self._words())]
        )

    def _words(self) -> list[tuple[str, object]]:
        keywords = {"dtype": self.dtype, "device": self.device, "copy": self.copy}
        return [(name, word) for name, word in keywords.items() if word is not None]

    def __str__(self) -> str:
        if not on_command_line.get():
            return self.text
        options = (keyword(name, word) for name, word in self._words())
        return " ".join([" or ".join(self.formats), *options])


def check_copy(copy: object) -> None:
    """Refuse what only compares equal to True or False: 1, 0 and NumPy's booleans."""
    if not (copy is None or isinstance(copy, bool) or (isinstance(copy, str) and copy == WRITABLE)):
        msg = f"copy must be None, True, False or 'writable', got {copy!r}."
        raise BadRequestError(msg)


def check_stream(stream: object) -> None:
    """Refuse what is neither the number of a stream's handle nor a framework's object."""
    kind = type(stream)
    if kind is not int and kind.__module__ == "builtins":
        msg = f"stream={stream!r} is not a stream; pass its handle, a number, or its object."
        raise BadRequestError(msg)


def resolved(
    registry: Registry,
    to: Any,
    *,
    dtype: Any,
    device: Any,
    copy: CopyLike,
    allow: str | Iterable[str] | None,
    forbid: str | Iterable[str] | None,
    base: Policy,
    like: frozenset[str] = frozenset(),
) -> Request:
    """Return the request that the keywords of a call make under a policy."""
    request = Request(
        named_formats(registry, to),
        None if dtype is None else named_dtype(registry, dtype),
        None if device is None else named_device(registry, device),
        copy,
        adjusted(base, allow, forbid),
        effect_names(forbid, "forbid"),
        like,
    )
    contradictory = request.forbidden_by_copy & effect_names(allow, "allow")
    if contradictory:
        msg = (
            f"{keyword('copy', copy)} forbids {min(contradictory)!r}, which {keyword('allow')} "
            "permits; pass one of the two."
        )
        raise BadRequestError(msg)
    return request
