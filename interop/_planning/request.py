"""Requests: what a caller asks of the result, resolved to names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from interop._model.dialect import keyword
from interop._model.effect import COPYING
from interop._registry.registry import Registry
from interop.errors import BadRequestError

from .naming import named_device, named_dtype, named_formats
from .policy import Policy, adjusted, effect_names

__all__ = ["Request", "check_copy", "check_stream", "resolved"]


class Request(NamedTuple):
    """What the caller asks of the result.

    Parameters
    ----------
    formats : tuple of str
        Acceptable formats.
    dtype, device : str or None
        None: as the value has it, if the target can.
    copy : bool or None
        As in the array API standard.
    policy : Policy
        The effects permitted by the blocks around the call and by its keywords.
    forbid : frozenset of str
        The effects that the call itself forbids.
    """

    formats: tuple[str, ...]
    dtype: str | None = None
    device: str | None = None
    copy: bool | None = None
    policy: Policy = Policy()
    forbid: frozenset[str] = frozenset()

    @property
    def permitted(self) -> frozenset[str]:
        """The effects that a route may have."""
        permitted = self.policy.permitted
        return permitted - COPYING if self.copy is False else permitted

    @property
    def consents(self) -> bool:
        """Whether the caller named the dtype, so that a cast to it is no loss."""
        return self.dtype is not None and "narrow" not in self.policy.forbidden

    @property
    def is_default(self) -> bool:
        """Whether nothing but formats is asked for."""
        return self == Request(self.formats)

    def __str__(self) -> str:
        texts = [" or ".join(self.formats)]
        texts += [f"dtype={self.dtype}"] if self.dtype else []
        texts += [f"device={self.device}"] if self.device else []
        texts += [] if self.copy is None else [f"copy={self.copy}"]
        return ", ".join(texts)


def check_copy(copy: object) -> None:
    """Refuse what only compares equal to True or False: 1, 0 and NumPy's booleans."""
    if copy is not None and not isinstance(copy, bool):
        msg = f"copy must be None, True or False, got {copy!r}."
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
    copy: bool | None,
    allow: str | Iterable[str] | None,
    forbid: str | Iterable[str] | None,
    base: Policy,
) -> Request:
    """Return the request that the keywords of a call make under a policy."""
    contradictory = COPYING & effect_names(allow, "allow")
    if copy is False and contradictory:
        msg = (
            f"{keyword('copy', False)} forbids {min(contradictory)!r}, which {keyword('allow')} "
            "permits; pass one of the two."
        )
        raise BadRequestError(msg)
    return Request(
        named_formats(registry, to),
        None if dtype is None else named_dtype(registry, dtype),
        None if device is None else named_device(registry, device),
        copy,
        adjusted(base, allow, forbid),
        effect_names(forbid, "forbid"),
    )
