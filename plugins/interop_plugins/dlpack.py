"""DLPack: whoever has ``__dlpack__`` and no plugin of its own.

Only the description is here. The consumers belong to the frameworks that consume, and take every
format that speaks DLPack by the same rule as this one.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Any

from interop.plugin import (
    DTYPES,
    MEMORY_TRAITS,
    Declaration,
    Export,
    Format,
    Samples,
    Spec,
    checked_export,
    hookimpl,
)

__all__ = ["interop_declarations"]

_NONE: frozenset[str] = frozenset()

#: An element of DLPack has at most 255 bits.
_DTYPES = frozenset(DTYPES) - {"clongdouble"}

_DEVICES = (
    "cpu",
    "cuda",
    "rocm",
    "metal",
    "oneapi",
    "opencl",
    "vulkan",
    "vpi",
    "ext_dev",
    "webgpu",
    "hexagon",
    "maia",
    "trn",
)


def describe(value: Any) -> Spec:
    """Return the spec of a producer, read from a capsule that is then dropped.

    Parameters
    ----------
    value : object
        Anything with ``__dlpack__``.

    Raises
    ------
    HandOffError
        The producer refuses, or what it offers cannot be usable memory.
    """
    found = _look(value)
    traits = _traits(value, found)
    nbytes = prod(found.shape) * (found.bits // 8)
    return Spec("dlpack", found.dtype, found.device, found.shape, traits, nbytes)


def _look(value: Any) -> Export:
    # No stream is named: "no synchronisation" (-1) is a handle to producers that do not know it.
    return checked_export(value)


def _traits(value: Any, found: Export) -> frozenset[str]:
    usual = found.contiguous and found.aligned and not found.backwards
    if usual and found.versioned and not found.readonly and not found.pinned:
        return _NONE
    # A legacy capsule has no flags. That of a framework whose arrays never change (JAX before
    # 0.12, TensorFlow) looks like any other, so that only a value's own word makes it writable.
    writeable = True if found.versioned else _writeable(value)
    present = {
        "readonly": found.readonly or writeable is False,
        "immutable": writeable is None,
        "noncontiguous": not found.contiguous,
        "negative_strides": found.backwards,
        "broadcast": found.broadcast,
        "unaligned": not found.aligned,
        "pinned": found.pinned,
    }
    return frozenset(trait for trait, holds in present.items() if holds)


def _writeable(value: Any) -> bool | None:
    """Return what a value says of itself, as NumPy's arrays do; None if it says nothing."""
    said = getattr(getattr(value, "flags", None), "writeable", None)
    return said if isinstance(said, bool) else None


def memory(value: Any) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory that a producer's array lies in."""
    found = _look(value)
    if 0 in found.shape:
        return ()
    itemsize = found.bits // 8
    if found.strides is None:
        return ((found.data, prod(found.shape) * itemsize),)
    reach = [(n - 1) * s for n, s in zip(found.shape, found.strides, strict=True)]
    low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
    return ((found.data + low * itemsize, (high - low + 1) * itemsize),)


class _Legacy:
    """A producer of the first kind of capsule, which has no flags: a sample of such a stranger."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __dlpack__(self, *, stream: Any = None) -> Any:
        return self._value.__dlpack__()

    def __dlpack_device__(self) -> Any:
        return self._value.__dlpack_device__()


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format of strangers that speak DLPack."""
    return [
        Format(
            "dlpack",
            describe=describe,
            dtypes=_DTYPES,
            devices=_DEVICES,
            carries=MEMORY_TRAITS - {"byteswapped"},
            exports={"dlpack": _DTYPES},
            protocol="__dlpack__",
            memory=memory,
            samples=Samples(variants={"immutable": _Legacy}),
        )
    ]
