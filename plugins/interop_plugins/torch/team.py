"""Copies on the host, with torch's team of threads or without.

torch divides a copy of more than 32,768 elements among a team of OpenMP threads and waits for the
slowest. Where other programs take the cores, that thread waits for its turn: milliseconds, for a
copy of microseconds. So each copy by the team is timed. After one that took far too long, the
calling thread makes the copies alone until the team is tried again. NumPy makes them, or torch in
pieces too small for a team.

The first try, and each after a copy that was late, waits until no more threads are running than
there are cores. That alone does not tell that the team is in time: a core can be taken for a
moment, and containers see cores that they may not use.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING, Any

from interop.kit import idle_cores

if TYPE_CHECKING:
    import torch
    from torch import Tensor

#: Elements that torch gives to one thread: ``at::internal::GRAIN_SIZE``.
_GRAIN = 2**15
#: Bytes of a result from which on the team gains more than it waits.
_LARGE = 2**25
#: Seconds, and bytes a second, that no copy takes on idle cores, not even into fresh memory.
_LATE, _SLOW = 1e-3, 3e9
#: For how many times what it took the team is not tried again: a fortieth of the time is lost.
_PAUSE = 40
#: Seconds between two looks at the cores.
_GLANCE = 0.01

#: Whether the team's last copy was in time, and if not, until when the team is left alone.
_in_time, _crowded_until = False, 0.0


def is_few(value: Tensor) -> bool:
    """Tell whether a tensor has so few elements that torch needs no team."""
    return value.numel() <= _GRAIN


def run(
    value: Tensor, nbytes: int, by_team: Callable[[], Tensor], alone: Callable[[], Tensor]
) -> Tensor:
    """Return what `by_team` returns, or `alone` while the team would have to be waited for.

    Parameters
    ----------
    value : torch.Tensor
        What is read.
    nbytes : int
        Bytes that are written.
    by_team, alone : callable
        The same work, by torch's threads and by the calling one.
    """
    global _in_time, _crowded_until  # noqa: PLW0603 - a lost update costs one more try
    if not _is_for_team(value, nbytes):
        return by_team()
    start = perf_counter()
    if not _in_time:
        if start < _crowded_until:
            return alone()
        if idle_cores() < 1:
            _crowded_until = start + _GLANCE
            return alone()
    result = by_team()
    stop = perf_counter()
    _in_time = stop - start <= _LATE + nbytes / _SLOW
    _crowded_until = stop + _PAUSE * (stop - start)
    return result


def copied(value: Tensor, dtype: torch.dtype, memory_format: torch.memory_format) -> Tensor:
    """Return a copy in a dtype and an order of elements, part of the same graph."""
    import torch

    def alone() -> Tensor:
        out = torch.empty_like(value, dtype=dtype, memory_format=memory_format)
        return _write_alone(out, value)

    def by_team() -> Tensor:
        return value.to(dtype, copy=True, memory_format=memory_format)

    return run(value, value.numel() * dtype.itemsize, by_team, alone)


def copy_into(out: Tensor, value: Tensor) -> Tensor:
    """Write numbers into a tensor, which joins their graph, and return it."""
    import torch

    if type(out) is not torch.Tensor or not out.is_cpu or out.requires_grad:
        return assign(out, value)
    numbers = value if out.shape == value.shape else value.expand_as(out)
    nbytes = out.numel() * out.itemsize
    return run(numbers, nbytes, lambda: assign(out, value), lambda: _write_alone(out, numbers))


def assign(out: Tensor, value: Tensor) -> Tensor:
    """Let torch write numbers into a tensor, which joins their graph, and return it.

    Under a cast, `Tensor.copy_` negates what is lazily negated too late, and between float16 and
    float32 not at all, but `Tensor.to` first. Whole complex numbers are negated by their parts.
    """
    return out.copy_(value.to(out.dtype) if value.is_neg() or out.is_neg() else value)


def _is_for_team(value: Tensor, nbytes: int) -> bool:
    """Tell whether torch would give a copy to its team that one thread may make just as well."""
    import torch

    return (
        value.numel() > _GRAIN
        and nbytes < _LARGE
        and value.is_cpu
        and type(value) is torch.Tensor
        and not (value.requires_grad and torch.is_grad_enabled())  # only torch keeps the graph
        and torch.get_num_threads() > 1
    )


def _write_alone(out: Tensor, value: Tensor) -> Tensor:
    """Write numbers by the calling thread."""
    if out.numel() <= _GRAIN:
        return assign(out, value)
    import numpy as np
    import torch

    arrays = _as_numpy(out), _as_numpy(value)
    if arrays[0] is not None and arrays[1] is not None:
        if out.dtype is value.dtype:
            np.copyto(*arrays)
            return out
        with np.errstate(all="ignore"):  # torch says nothing of numbers that do not fit
            np.copyto(*arrays, casting="unsafe")
        return out
    outs, values = out, value
    if out.is_contiguous() and value.is_contiguous():
        outs, values = out.view(-1), value.view(-1)
    rows = _GRAIN * len(outs) // outs.numel()
    divide = (lambda tensor: torch.split(tensor, rows)) if rows else torch.unbind
    for piece, numbers in zip(divide(outs), divide(values), strict=True):
        _write_alone(piece, numbers)
    return out


def _as_numpy(value: Tensor) -> Any:
    """Return a plain tensor's memory as an array, or None if NumPy is slow with its dtype."""
    if value.dtype not in _quick_dtypes() or value.is_conj() or value.is_neg():
        return None
    return (value.detach() if value.requires_grad else value).numpy()


@cache
def _quick_dtypes() -> frozenset[torch.dtype]:
    """Return the dtypes for which NumPy's loops are as fast as those of one torch thread."""
    import torch

    names = "bool uint8 int8 int16 int32 int64 float32 float64 complex64 complex128"
    return frozenset(getattr(torch, name) for name in names.split())
