"""What tests look at inside an instance, which is what `Inspection` shows."""

from __future__ import annotations

from typing import Any

import interop
from interop import Format, Interop
from interop._api.inspection import Inspection


def forget(instance: Interop) -> None:
    """Drop all plans and fast paths of an instance, so that its next call is a first call."""
    Inspection(instance).forget()


def format_named(name: str, instance: Interop = interop.default) -> Format:
    """Return a format that is registered."""
    return Inspection(instance).registry.formats[name]


def shares_memory(one: Any, other: Any, instance: Interop = interop.default) -> bool | None:
    """Tell whether two values share memory; None if their formats do not tell."""
    return Inspection(instance).shares_memory(one, other)
