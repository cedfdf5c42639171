"""Requests: what a caller wants of the result, resolved to names, and kept with their routes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from interop._model.device import device_name
from interop._model.effect import COPYING
from interop._registry.registry import Registry
from interop.errors import BadRequestError, UnknownTargetError

from .policy import Policy, adjust, current_policy

if TYPE_CHECKING:
    from interop._execution.runner import Runner

__all__ = ["Request", "Requests"]

#: Requests kept, each with its routes. A program asks for a handful; a runaway one starts over.
_MOST = 4096

#: Common spellings of dtypes that are not their names.
_SPELLINGS = {"bool_": "bool", "half": "float16", "float": "float64", "double": "float64"}


class RoutesByState(dict[Any, Any]):
    """Routes that are kept apart by how the process is set up when they are looked up.

    Parameters
    ----------
    states : iterable of callable
        What answers how it is set up.
    """

    def __init__(self, states: Iterable[Callable[[], Any]]) -> None:
        super().__init__()
        self._states = tuple(states)

    def _now(self) -> tuple[Any, ...]:
        return tuple(state() for state in self._states)

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the route of a class of specs in the present state."""
        return super().get((key, self._now()), default)

    def __setitem__(self, key: Any, route: Any) -> None:
        super().__setitem__((key, self._now()), route)


class Request:
    """What the caller wants of the result.

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

    __slots__ = (
        "copy",
        "device",
        "dtype",
        "formats",
        "is_default",
        "permitted",
        "policy",
        "refusals",
        "routes",
    )

    def __init__(
        self,
        formats: tuple[str, ...],
        dtype: str | None = None,
        device: str | None = None,
        copy: bool | None = None,
        policy: Policy | None = None,
    ) -> None:
        self.formats = formats
        self.dtype = dtype
        self.device = device
        self.copy = copy
        self.policy = policy or Policy()
        self.permitted = self.policy.permitted - (COPYING if copy is False else frozenset())
        #: Whether nothing but formats was asked for.
        self.is_default = self.key[1:] == (None, None, None, Policy())
        #: Routes already found for this request, by class of spec.
        self.routes: dict[tuple[object, ...], Runner] = {}
        #: For the classes that have none, the nearest routes that are refused.
        self.refusals: dict[tuple[object, ...], list[Any]] = {}

    @property
    def key(self) -> tuple[tuple[str, ...], str | None, str | None, bool | None, Policy]:
        """What makes two requests the same: the arguments it was made with."""
        return (self.formats, self.dtype, self.device, self.copy, self.policy)

    def __str__(self) -> str:
        words = [" or ".join(self.formats)]
        words += [f"dtype={self.dtype}"] if self.dtype else []
        words += [f"device={self.device}"] if self.device else []
        words += [] if self.copy is None else [f"copy={self.copy}"]
        return ", ".join(words)


class Requests:
    """The requests made so far, by the words in which they were made.

    Parameters
    ----------
    registry : Registry
    """

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        #: The version of the registry they are good for, and the requests.
        self._held: tuple[int, dict[tuple[Any, ...], Request]] = (-1, {})

    def clear(self) -> None:
        """Forget all requests, and with them their routes."""
        self._held = (-1, {})

    def _known(self) -> dict[tuple[Any, ...], Request]:
        """Return the requests that hold routes of what is registered now.

        Whoever is still at an older one puts it back among the older ones, where nobody looks.
        """
        version, requests = self._held
        if version != self._registry.version:
            version, requests = self._registry.version, {}
            self._held = (version, requests)
        return requests

    def current(self, request: Request) -> Request:
        """Return the request of the same key that holds routes of what is registered now."""
        requests = self._known()
        known = requests.get(request.key)
        # A forgotten request may hold stale routes, so that a new one takes its place.
        return known or requests.setdefault(request.key, self._fresh(request))

    def _fresh(self, request: Request) -> Request:
        """Return a request of the same key without routes."""
        fresh = Request(*request.key)
        formats = (self._registry.formats.get(name) for name in request.formats)
        states = [one.lacks_now for one in formats if one is not None and one.lacks_now]
        if states:
            fresh.routes, fresh.refusals = RoutesByState(states), RoutesByState(states)
        return fresh

    def get(
        self,
        to: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        copy: bool | None = None,
        allow: str | Iterable[str] = (),
        forbid: str | Iterable[str] = (),
    ) -> Request:
        """Return the request that the words of a call make under the current policy."""
        policy, requests = current_policy(), self._known()
        words: tuple[Any, ...] = (to, dtype, device, copy, allow, forbid, policy)
        try:
            known = requests.get(words)
        except TypeError:  # a list or a set among them does not hash
            words, known = (), None
        if known is None:
            _check_copy(copy, allow)
            if len(requests) > _MOST:
                requests.clear()
            known = self.current(
                Request(
                    self.targets(to),
                    None if dtype is None else self._dtype(dtype),
                    None if device is None else device_name(device),
                    copy,
                    adjust(policy, allow, forbid),
                )
            )
            if words:
                requests[words] = known
        return known

    def targets(self, to: Any) -> tuple[str, ...]:
        """Return the formats that ``to=`` accepts.

        Raises
        ------
        UnknownTargetError
            It names no format, framework, array type or module that is registered.
        """
        if isinstance(to, (list, tuple, set, frozenset)) and to:
            return tuple(dict.fromkeys(name for one in to for name in self.targets(one)))
        found: tuple[str, ...] = ()
        if isinstance(to, str):
            found = self._registry.named(to)
        elif isinstance(to, type):
            found = self._registry.named_by_type(to)
        elif isinstance(to, ModuleType):
            found = self._registry.named(to.__name__.partition(".")[0])
        return found or self._unknown_target(to)

    def _unknown_target(self, to: Any) -> tuple[str, ...]:
        from difflib import get_close_matches

        if to is None:
            msg = "no target was given; pass to= or like=."
            raise UnknownTargetError(msg)
        formats = self._registry.formats
        names = sorted({*formats, *(name.partition(".")[0] for name in formats)})
        close = get_close_matches(str(to), names, 1)
        move = f"did you mean {close[0]!r}?" if close else f"the formats are {', '.join(names)}."
        msg = f"to={to!r} names no format that is registered; {move}"
        raise UnknownTargetError(msg)

    def _dtype(self, dtype: Any) -> str:
        if isinstance(dtype, str):
            return _SPELLINGS.get(dtype, dtype)
        name = self._registry.dtype_name(dtype)
        if name is None:
            msg = f"dtype={dtype!r} is no dtype of a framework that is known; name it as a string."
            raise BadRequestError(msg)
        return name


def _check_copy(copy: bool | None, allow: str | Iterable[str]) -> None:
    if copy not in (None, True, False):
        msg = f"copy={copy!r} is none of None, True and False; pass one of these."
        raise BadRequestError(msg)
    both = COPYING & frozenset((allow,) if isinstance(allow, str) else allow)
    if copy is False and both:
        msg = f"copy=False forbids {min(both)!r}, which allow= permits; pass one of the two."
        raise BadRequestError(msg)
