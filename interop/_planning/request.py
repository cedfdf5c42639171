"""Requests: what a caller asks of the result, resolved to names."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any, NamedTuple

from interop._model.device import device_name
from interop._model.effect import COPYING
from interop._registry.registry import Registry
from interop.errors import BadRequestError, UnknownTargetError

from .policy import Policy, adjusted

__all__ = ["Request", "check_copy", "resolved"]

#: Common spellings of dtypes that are not their names.
_SPELLINGS = {"bool_": "bool", "half": "float16", "float": "float64", "double": "float64"}


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
        The effects permitted by the block and the keywords around the call.
    """

    formats: tuple[str, ...]
    dtype: str | None = None
    device: str | None = None
    copy: bool | None = None
    policy: Policy = Policy()

    @property
    def permitted(self) -> frozenset[str]:
        """The effects that a route may have."""
        permitted = self.policy.permitted
        return permitted - COPYING if self.copy is False else permitted

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


def resolved(
    registry: Registry,
    to: Any,
    *,
    dtype: Any,
    device: Any,
    copy: bool | None,
    allow: str | Iterable[str],
    forbid: str | Iterable[str],
    base: Policy,
) -> Request:
    """Return the request that the keywords of a call make under a policy."""
    contradictory = COPYING & frozenset((allow,) if isinstance(allow, str) else allow)
    if copy is False and contradictory:
        msg = (
            f"copy=False forbids {min(contradictory)!r}, which allow= permits; pass one of the two."
        )
        raise BadRequestError(msg)
    return Request(
        _targets(registry, to),
        None if dtype is None else _dtype(registry, dtype),
        None if device is None else device_name(device),
        copy,
        adjusted(base, allow, forbid),
    )


def _targets(registry: Registry, to: Any) -> tuple[str, ...]:
    """Return the formats that ``to=`` accepts."""
    if isinstance(to, (list, tuple, set, frozenset)) and to:
        return tuple(dict.fromkeys(name for target in to for name in _targets(registry, target)))
    names: tuple[str, ...] = ()
    if isinstance(to, str):
        names = registry.named(to)
    elif isinstance(to, type):
        names = registry.named_by_type(to)
    elif isinstance(to, ModuleType):
        names = _of_module(registry, to)
    if not names:
        raise UnknownTargetError(_unknown_target(registry, to))
    return names


def _of_module(registry: Registry, module: ModuleType) -> tuple[str, ...]:
    """Return the formats that a module stands for, by its name or by the arrays that it makes.

    A namespace of the array API standard may be another library's, wrapped.
    """
    name = module.__name__
    if name not in registry.formats and hasattr(module, "__array_namespace_info__"):
        names = registry.named_by_type(type(module.empty(0)))
        if names:
            return names
    return registry.named(name.partition(".")[0])


def _unknown_target(registry: Registry, to: Any) -> str:
    from difflib import get_close_matches

    if to is None:
        return "no target was given; pass to= or like=."
    names = sorted({*registry.formats, *(name.partition(".")[0] for name in registry.formats)})
    close = get_close_matches(str(to), names, 1)
    move = f"did you mean {close[0]!r}?" if close else f"the formats are {', '.join(names)}."
    return f"to={to!r} does not name a registered format; {move}"


def _dtype(registry: Registry, dtype: Any) -> str:
    if isinstance(dtype, str):
        return _SPELLINGS.get(dtype, dtype)
    name = registry.dtype_name(dtype)
    if name is None:
        msg = (
            f"dtype={dtype!r} is not a dtype of a framework that interop recognises; name it as a "
            "string."
        )
        raise BadRequestError(msg)
    return name
