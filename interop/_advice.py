"""Advice: when bytes go through the host for nothing, and which other request would spare them it.

A route is looked at once, when it is planned, and only if it brings bytes from a device to the host
and back. The same request is then planned again without `dtype` or `copy`, which can be had on the
device as well: by casting or copying what comes out. If that keeps the bytes off the host, those
who ask for it are warned. Another device is never called needless: whoever names one wants it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator

from ._device import device_type
from ._planner import Planner
from ._request import Request
from ._spec import Spec
from ._step import Step
from .errors import NeedlessCopyWarning

__all__ = ["advice", "advise"]


def advice(planner: Planner, spec: Spec, request: Request, steps: Iterable[Step]) -> str:
    """Return what to say to those who take a route, or "" if there is nothing to say.

    It does not name sizes, so that it is the same for all values of a kind.
    """
    if not any("host_round_trip" in step.effects for step in steps):
        return ""
    for keyword, instead, relaxed in _relaxed(request):
        found = planner.route(spec, relaxed)
        if found is not None and not _reaches_host(found[1]):
            made = found[1][-1].after if found[1] else spec
            return (
                f"{spec.format} {spec.dtype} on {spec.device} goes to {request} through the "
                f"host's memory and back; without {keyword} it would not, and come out as "
                f"{made.format} {made.dtype} on {made.device}. Leave {keyword} out and {instead} "
                "there, or silence this with warnings.filterwarnings."
            )
    return ""


def _relaxed(request: Request) -> Iterator[tuple[str, str, Request]]:
    """Yield the request with one keyword left out, and what to do in its place."""
    formats, dtype, device, copy, policy = request.key
    if dtype is not None:
        yield f"dtype={dtype!r}", "cast", Request(formats, None, device, copy, policy)
    if copy is not None:
        yield f"copy={copy}", "copy", Request(formats, dtype, device, None, policy)


def _reaches_host(steps: Iterable[Step]) -> bool:
    return any(device_type(step.after.device) == "cpu" for step in steps)


def advise(text: str) -> None:
    """Warn the line outside of this package that has asked for a conversion.

    Python's usual filter shows a warning once for each line.
    """
    level = 1
    while _is_ours(sys._getframe(level).f_globals.get("__name__", "")):
        level += 1
    warnings.warn(text, NeedlessCopyWarning, stacklevel=level + 1)


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] == __name__.partition(".")[0]
