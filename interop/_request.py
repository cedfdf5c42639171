"""A request: what the caller wants of the result, resolved to names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ._policy import COPYING, Policy

if TYPE_CHECKING:
    from ._runner import Runner

__all__ = ["Request"]


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

    __slots__ = ("copy", "device", "dtype", "formats", "permitted", "policy", "routes")

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
        #: Routes already found for this request, by class of spec.
        self.routes: dict[tuple[object, ...], Runner] = {}

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two requests the same."""
        return (self.formats, self.dtype, self.device, self.copy, self.policy)

    def __str__(self) -> str:
        words = [" or ".join(self.formats)]
        words += [f"dtype={self.dtype}"] if self.dtype else []
        words += [f"device={self.device}"] if self.device else []
        words += [] if self.copy is None else [f"copy={self.copy}"]
        return ", ".join(words)
