"""Requests: the results that callers ask for, resolved to names."""

from __future__ import annotations

from typing import NamedTuple

from interop._model.dtype import DTYPES
from interop._model.effect import COPYING, LOCKING
from interop._model.text import keyword
from interop._model.typing import CopyLike, OrderLike
from interop._registry.registry import Registry
from interop.errors import BadRequestError

from .keywords import WRITABLE, Keywords
from .naming import named_device, named_dtype, named_formats
from .policy import Policy, adjusted, effect_names

#: The effects that a word of ``copy=`` forbids.
_FORBIDDEN = {False: COPYING, WRITABLE: LOCKING}

#: The dtypes of columns that a dtype for all of them is for.
_COLUMNS = (*DTYPES, "untyped")


class Request(NamedTuple):
    """The result that a caller asks for.

    Parameters
    ----------
    formats : tuple of str
        Acceptable formats.
    dtype, device : str or None
        None: that of the value, if the target can have it.
    copy : bool, "writable" or None
        As in the array API standard. "writable": copy only if the caller could not write to the
        result otherwise.
    policy : Policy
        The effects permitted by the blocks around the call and by its keywords.
    forbid : frozenset of str
        The effects that the call itself forbids.
    like : frozenset of str
        How the value in ``like=`` is divided over devices or processes, if it is.
    order : "C", "F" or None
        The order in which the elements of a dense result lie. None: any.
    columns : tuple of pairs of str, or None
        The dtypes of results by those of values, where a mapping or a kind names them: those of
        the columns of a table. None: `dtype` is for all columns of numbers.
    around : frozenset of str
        Those of `forbid` that are permitted around the call.
    """

    formats: tuple[str, ...]
    dtype: str | None = None
    device: str | None = None
    copy: CopyLike = None
    policy: Policy = Policy()
    forbid: frozenset[str] = frozenset()
    like: frozenset[str] = frozenset()
    order: OrderLike = None
    columns: tuple[tuple[str, str], ...] | None = None
    around: frozenset[str] = frozenset()

    @property
    def by_column(self) -> dict[str, str]:
        """The dtypes of columns of results by those of columns of numbers; see `cast_dtypes`."""
        if self.columns is not None:
            return dict(self.columns)
        return dict.fromkeys(_COLUMNS, self.dtype) if self.dtype else {}

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
        named = self.dtype is not None or bool(self.columns)
        return named and "narrow" not in self.policy.forbidden

    def step_keywords(self, keywords: Keywords) -> dict[str, object]:
        """Return the keywords of a call that its steps may take themselves."""
        chosen = {} if keywords.stream is None else {"stream": keywords.stream}
        return {**chosen, "like": keywords.like} if self.like else chosen

    def __str__(self) -> str:
        keywords = {
            "dtype": self.dtype,
            "device": self.device,
            "copy": self.copy,
            "order": self.order,
        }
        given = [f"{name}={value}" for name, value in keywords.items() if value is not None]
        return ", ".join([" or ".join(self.formats), *given])


def resolved(
    registry: Registry, keywords: Keywords, base: Policy, division: frozenset[str] = frozenset()
) -> Request:
    """Return the request that the keywords of a call make under a policy.

    Where the call had ``like=``, `to` and `device` are those of that value, and `division` is how
    it is divided.
    """
    dtype, device = keywords.dtype, keywords.device
    forbid = effect_names(keywords.forbid, "forbid")
    request = Request(
        named_formats(registry, keywords.to),
        None if dtype is None else named_dtype(registry, dtype),
        None if device is None else named_device(registry, device),
        keywords.copy,
        adjusted(base, keywords.allow, keywords.forbid),
        forbid,
        division,
        keywords.order,
        around=forbid & base.permitted,
    )
    contradictory = request.forbidden_by_copy & effect_names(keywords.allow, "allow")
    if contradictory:
        msg = (
            f"{keyword('copy', request.copy)} forbids {min(contradictory)!r}, which "
            "allow= permits; pass one of the two."
        )
        raise BadRequestError(msg)
    return request
