"""Transfers: conversions between the host and devices."""

from __future__ import annotations

from collections.abc import Callable, Set
from typing import Any

from interop._model.conversion import BUS, Conversion, Result
from interop._model.typing import Value


def transfer(
    source: str,
    target: str,
    function: Callable[..., Value],
    devices: Set[str],
    to: Set[str],
    **fields: Any,
) -> Conversion:
    """Return a conversion from some devices to others, at the speed of the bus.

    Parameters
    ----------
    source, target : str
        Names of the formats.
    function : callable
        ``function(value, *, device) -> value``.
    devices, to : set of str
        The device types it takes, and those it can change to.
    **fields : object
        Further fields of :class:`Conversion`; ``cost`` if it is another.

    Returns
    -------
    Conversion
        With the effect ``transfer``, which follows.
    """
    shared = {"changes": {"device"}, "result": Result(devices=to), "cost": BUS}
    return Conversion(source, target, function, devices=devices, **shared | fields)
