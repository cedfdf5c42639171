"""DLPack: every value that has ``__dlpack__`` and no plugin of its own.

Only the description is here. The conversions belong to the frameworks that consume, which take
every format that exports DLPack by the same rule as this one.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import TYPE_CHECKING

from interop.plugin import (
    DTYPES,
    EMPTY,
    MEMORY_TRAITS,
    Declaration,
    Export,
    Format,
    Samples,
    Spec,
    checked_export,
    hookimpl,
)

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Producer: TypeAlias = Any

__all__ = ["interop_declarations"]

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


def describe(value: Producer) -> Spec:
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
    exported = _inspect(value)
    traits = _traits(value, exported)
    nbytes = prod(exported.shape) * (exported.bits // 8)
    return Spec("dlpack", exported.dtype, exported.device, exported.shape, traits, nbytes)


def _inspect(value: Producer) -> Export:
    # No stream is named: some producers take -1 ("no synchronisation") for a handle.
    return checked_export(value)


def _traits(value: Producer, exported: Export) -> frozenset[str]:
    usual = exported.contiguous and exported.aligned
    if usual and exported.versioned and not exported.readonly and not exported.pinned:
        return EMPTY
    # A legacy capsule has no flags. That of a framework whose arrays never change (JAX before
    # 0.12, TensorFlow) looks like any other, so it is writable only if the value itself says so.
    writeable = True if exported.versioned else _writeable(value)
    present = {
        "readonly": exported.readonly or writeable is False,
        "immutable": writeable is None,
        "noncontiguous": not exported.contiguous,
        "negative_strides": exported.backwards and _is_walked_backwards(exported),
        "broadcast": exported.broadcast,
        "unaligned": not exported.aligned,
        "pinned": exported.pinned,
    }
    return frozenset(trait for trait, holds in present.items() if holds)


def _is_walked_backwards(exported: Export) -> bool:
    """Tell whether an array is walked along a negative stride.

    That of an axis of at most one element, or of an empty array, leads nowhere.
    """
    steps = zip(exported.shape, exported.strides or (), strict=False)
    return 0 not in exported.shape and any(n > 1 and step < 0 for n, step in steps)


def _writeable(value: Producer) -> bool | None:
    """Return what the flags of a value say, if it has such as NumPy's arrays have, else None."""
    flag = getattr(getattr(value, "flags", None), "writeable", None)
    return flag if isinstance(flag, bool) else None


def memory(value: Producer) -> tuple[tuple[int, int], ...]:
    """Return the address and the length of the memory that a producer's array lies in."""
    exported = _inspect(value)
    if 0 in exported.shape:
        return ()
    itemsize = exported.bits // 8
    if exported.strides is None:
        return ((exported.data, prod(exported.shape) * itemsize),)
    reaches = [(n - 1) * step for n, step in zip(exported.shape, exported.strides, strict=True)]
    low, high = sum(r for r in reaches if r < 0), sum(r for r in reaches if r > 0)
    return ((exported.data + low * itemsize, (high - low + 1) * itemsize),)


class _Legacy:
    """A sample: a producer of the first kind of capsule, which has no flags."""

    def __init__(self, value: Producer) -> None:
        self._value = value

    def __dlpack__(self, *, stream: object = None) -> object:
        return self._value.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self._value.__dlpack_device__()
        return device


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format of foreign values that export DLPack."""
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
