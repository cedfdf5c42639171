"""What tests look at inside an instance, which is what `Inspection` shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import interop
from interop import Format, Interop
from interop._api.inspection import Inspection


def forget(instance: Interop) -> Interop:
    """Drop all plans and fast paths of an instance, so that its next call is a first; return it."""
    Inspection(instance).forget()
    return instance


def format_named(name: str, instance: Interop = interop.default) -> Format:
    """Return a format that is registered."""
    return Inspection(instance).registry.formats[name]


def shares_memory(one: Any, other: Any, instance: Interop = interop.default) -> bool | None:
    """Tell whether two values share memory; None if their formats do not tell."""
    return Inspection(instance).shares_memory(one, other)


def outcome(instance: Interop, value: Any, call: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Return what a call makes of a value, or its error; and what of it can be compared."""
    from tests.properties.readers import read

    try:
        result = call(value)
    except interop.InteropError as error:
        return error, (type(error), str(error))
    numbers = read(result)
    memory = numbers.tolist() if numbers.dtype.hasobject else numbers.tobytes()
    shared = shares_memory(value, result, instance)
    return result, (type(result), instance.spec(result), numbers.dtype, memory, shared)
