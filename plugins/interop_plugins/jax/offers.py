"""Hand-offs on CUDA devices: JAX orders its work itself, and is told where others read it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from .dense import BLOCK
from .describe import IMMUTABLE, PACKED, is_compact, place, unsupported_now

if TYPE_CHECKING:
    from jax.sharding import Sharding

    from interop.kit.devices import Offer, StreamOf

_DLPACK_CUDA = 2
#: DLPack's handle of the legacy default stream, which libraries call 0.
_LEGACY = 1


def offer(value: Any, stream_of: StreamOf, waits: bool, block: int = 0) -> Offer | Any:
    """Return a capsule of an array on one device, or `NotImplemented`.

    The consumer's stream, of which `stream_of` returns the handle, is told to wait whether it
    `waits` otherwise or not: JAX works on streams of its own.
    """
    index = _index(value.sharding)
    if index is None or value.dtype.name in PACKED or (block and not is_compact(value)):
        return NotImplemented
    return value.__dlpack__(stream=stream_of(index) or _LEGACY), index, False


@lru_cache(maxsize=256)
def _index(sharding: Sharding) -> int | None:
    """Return the index of the one CUDA device on which an array lies."""
    name, traits = place(sharding)
    kind, _, index = name.partition(":")
    return int(index) if kind == "cuda" and index and traits == IMMUTABLE else None


class _Offered:
    """A producer of what is offered of a value, once JAX has named its stream."""

    __slots__ = ("_device", "_offer", "_value")

    def __init__(self, offer: Callable[..., Any], value: Any, device: tuple[Any, int]) -> None:
        self._offer = offer
        self._value = value
        self._device = device

    def __dlpack__(self, *, stream: int, **_: object) -> object:
        offered = self._offer(self._value, lambda index: stream, True, BLOCK)
        if offered is NotImplemented:
            msg = "nothing is offered of it"
            raise BufferError(msg)
        return offered[0]

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self._device


def adopt(offer: Callable[..., Any], value: Any) -> Any:
    """Return an array over the memory that is offered of a value, or `NotImplemented`.

    It is offered in C order, so that XLA does not keep another one.
    """
    device = value.__dlpack_device__()
    if device[0] != _DLPACK_CUDA or (value.itemsize >= 8 and _is_wide(value.dtype)):
        return NotImplemented
    return _from_dlpack()(_Offered(offer, value, device))


def _is_wide(dtype: object) -> bool:
    """Tell whether JAX would narrow the elements of another library as it is set up now."""
    return str(dtype).removeprefix("torch.") in unsupported_now()


@cache
def _from_dlpack() -> Callable[[object], Any]:
    import jax

    function: Callable[[object], Any] = jax.dlpack.from_dlpack
    return function
