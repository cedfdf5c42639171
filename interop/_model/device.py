"""Devices by name: ``"cpu"``, ``"cuda"`` (whichever is current) or ``"cuda:1"``."""

from __future__ import annotations

from functools import lru_cache

from interop.errors import BadRequestError

from .dialect import keyword

__all__ = ["NICKNAMES", "device_name", "device_type", "matches"]

#: Words that people say for a device type.
NICKNAMES = {"gpu": "cuda"}


@lru_cache(maxsize=256)
def device_type(device: str) -> str:
    """Return the part of `device` before its index."""
    return device.partition(":")[0]


def matches(device: str, requested: str) -> bool:
    """Tell whether data on `device` is where `requested` asks; no index means any."""
    return device == requested or device_type(device) == requested


def device_name(device: object) -> str:
    """Return the name of `device`, given as a name or as a framework's device object.

    The host is one device, whatever a framework divides it into.
    """
    name = device if isinstance(device, str) else str(device)
    kind, colon, index = name.partition(":")
    if not kind.isidentifier() or (colon and not index.isdecimal()):
        msg = f"device={device!r} is not a device name; write 'cpu', 'cuda' or 'cuda:1'."
        raise BadRequestError(msg)
    if kind == "cpu" and int(index or 0):
        msg = (
            f"device={name!r} is a part of the host, which is one device here; ask for "
            f"{keyword('device', 'cpu')}, and let the framework move the result to that part."
        )
        raise BadRequestError(msg)
    return "cpu" if kind == "cpu" else name
