"""Devices by name: ``"cpu"``, ``"cuda"`` (whichever is current), ``"cuda:1"`` or ``"cpu:2"``.

``"cpu"`` is the host as a whole. Few frameworks divide it, into ``"cpu:0"``, ``"cpu:1"`` …
``"cuda_host"``, as DLPack calls it, is memory of the host that is page-locked: devices reach it at
the speed of their link.
"""

from __future__ import annotations

import re
from functools import lru_cache

from interop._text import quoted
from interop.errors import BadRequestError

from .text import keyword, resembling

#: Page-locked memory, which is a part of the host.
PAGE_LOCKED = "cuda_host"

#: The device types that DLPack and the bundled plugins name. Others may have names of their own.
DEVICE_TYPES = frozenset(
    {"cpu", "cuda", "rocm", "opencl", "vulkan", "metal", "vpi", "ext_dev", "oneapi", "webgpu"}
    | {"hexagon", "maia", "mtia", "trn", "mps", "xpu", "tpu", "sycl", "hpu", "npu", "meta"}
    | {PAGE_LOCKED}
)

#: Words that people say for a device type.
NICKNAMES = {"gpu": "cuda", "host": "cpu"}


#: What stands behind the colon. More digits count no devices.
_INDEX = re.compile(r"[0-9]{1,9}")


@lru_cache(maxsize=256)
def device_type(device: str) -> str:
    """Return the part of `device` before its index; of page-locked memory that of the host."""
    return "cpu" if device == PAGE_LOCKED else device.partition(":")[0]


def ordinary(device: str) -> str:
    """Return where to put a value that shall be where another is: page-locked memory is asked for.

    It is scarce, and made for transfers. Whoever wants it names it.
    """
    return "cpu" if device == PAGE_LOCKED else device


def misspelt_type(word: str) -> str:
    """Return the device type that a word seems to be meant for; "" if it may be one itself."""
    if word in DEVICE_TYPES:
        return ""
    names = {**NICKNAMES, **{name: name for name in sorted(DEVICE_TYPES)}}
    return next((names[spelling] for spelling in resembling(device_type(word), names)), "")


def matches(device: str, requested: str) -> bool:
    """Return whether data on `device` is where `requested` asks; no index means any."""
    return device == requested or device_type(device) == requested


def is_host_part(device: str) -> bool:
    """Return whether `device` is a part of the host, which only some frameworks tell apart."""
    return device == PAGE_LOCKED or device.startswith("cpu:")


def device_name(device: object) -> str:
    """Return the name of `device`, given as a name or as a framework's device object."""
    name = device if isinstance(device, str) else quoted(device, str)
    kind, colon, index = name.partition(":")
    if not kind.isidentifier() or (colon and not _INDEX.fullmatch(index)):
        msg = f"{keyword('device', device)} is not a device name; write 'cpu', 'cuda' or 'cuda:1'."
        raise BadRequestError(msg)
    return f"{kind}:{int(index)}" if colon else name
