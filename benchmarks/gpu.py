"""On a CUDA device: hand-offs that copy nothing, and transfers against the speed of the link."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection
from functools import cache
from timeit import Timer
from typing import Any

import numpy as np
import torch

import interop

from .machine import cupy_finds, torch_finds
from .table import Cell, Line, Listing, Result, Table, from_rows
from .timing import against, compare, interleaved

__all__ = ["missing", "tables"]

_SIZE = 1 << 30
_NOTE = (
    "1 GiB of float32, fresh memory on the other side. `pageable` is `x.cpu().numpy()` and "
    "`torch.from_numpy(x).cuda()`; `staged` goes through two page-locked buffers of 32 MiB that "
    "are used again; `link` is the bare copy from or into page-locked memory of that size, which "
    "nothing can beat: {down:.1f} GB/s to the host, {up:.1f} GB/s to the device."
)


@cache
def missing() -> str:
    """Return why there is no CUDA device to measure on, "" if there is one."""
    with warnings.catch_warnings():
        # Frameworks warn when they find no device; the reason is returned instead.
        warnings.simplefilter("ignore")
        return torch_finds() or cupy_finds()


# ---------------------------------------------------------------------- hand-offs


def _pairs() -> list[tuple[str, Any, str, str]]:
    """Return name, value, target and the best hand-written statement."""
    import cupy

    t = torch.arange(12.0, device="cuda").reshape(3, 4)
    a = cupy.arange(12, dtype="float32").reshape(3, 4)
    return [
        ("torch → cupy", t, "cupy", "cupy.from_dlpack(x)"),
        (
            "torch → cupy, grad",
            t.clone().requires_grad_(),
            "cupy",
            "cupy.from_dlpack(x.detach())",
        ),
        ("torch → cupy, transposed", t.t(), "cupy", "cupy.from_dlpack(x)"),
        ("cupy → torch", a, "torch", "torch.from_dlpack(x)"),
    ]


def _hand_offs(only: Collection[str] | None, rounds: int) -> Table:
    import cupy

    rows = []
    for name, x, to, by_hand in _pairs():
        if only is None or name in only:
            names = {"cupy": cupy, "torch": torch, "convert": interop.convert, "x": x, "to": to}
            ours = Timer("convert(x, to=to)", globals=names)
            rows.append(compare(name, ours, Timer(by_hand, globals=names), rounds=rounds))
    note = "Small arrays, nothing copied. Neither side makes the host wait for the device."
    return Table("gpu.hand_offs", "hand-offs on a device", note, from_rows(rows, "by hand"))


# ---------------------------------------------------------------------- transfers


def _synchronous(call: Callable[[], Any]) -> Callable[[], Any]:
    def synchronous() -> Any:
        result = call()
        torch.cuda.synchronize()
        return result

    return synchronous


def _down(t: Any, staging: Any, pinned: Any) -> dict[str, Callable[[], Any]]:
    """Return the ways to move a tensor to the host."""
    return {
        "interop": lambda: interop.convert(t, to="numpy"),
        "pageable": lambda: t.cpu().numpy(),
        "staged": lambda: staging.to_host(t),
        "link": lambda: pinned.copy_(t, non_blocking=True),
    }


def _up(a: np.ndarray[Any, Any], staging: Any, pinned: Any) -> dict[str, Callable[[], Any]]:
    """Return the ways to move an array to the device."""
    out = torch.empty_like(pinned, device="cuda")
    return {
        "interop": lambda: interop.convert(a, to="torch", device="cuda"),
        "pageable": lambda: torch.from_numpy(a).cuda(),
        "staged": lambda: staging.to_device(a),
        "link": lambda: out.copy_(pinned, non_blocking=True),
    }


def _right(result: Any, numbers: np.ndarray[Any, Any]) -> bool:
    array = result.cpu().numpy() if isinstance(result, torch.Tensor) else result
    return np.array_equal(array.reshape(-1).view(np.uint8), numbers.reshape(-1).view(np.uint8))


def _line(
    name: str, ways: dict[str, Callable[[], Any]], numbers: np.ndarray[Any, Any], rounds: int
) -> Line:
    calls = {way: _synchronous(call) for way, call in ways.items()}
    wrong = [way for way, call in calls.items() if not _right(call(), numbers)]
    if wrong:
        msg = f"{name}: {wrong[0]} gave wrong numbers"
        raise RuntimeError(msg)
    timers = {way: Timer(call) for way, call in calls.items()}
    times = interleaved(timers, rounds=rounds, budget=0)
    rows = [against(way, times["interop"], times[way]) for way in ways if way != "interop"]
    cells = tuple(Cell(row.name, "", row.theirs, row.ratio, row.spread) for row in rows)
    return Line(name, "", rows[0].ours, cells)


def _transfers(rounds: int) -> Table:
    from .staging import Staging

    numbers = np.random.default_rng(0).random(_SIZE // 4, dtype="float32")
    t = torch.from_numpy(numbers).cuda()
    pinned = torch.from_numpy(numbers).pin_memory()
    staging = Staging()
    lines = (
        _line("device → host", _down(t, staging, pinned), numbers, rounds),
        _line("host → device", _up(numbers, staging, pinned), numbers, rounds),
    )
    rates = [_SIZE / 1e9 / (line.cells[-1].seconds or 1) for line in lines]
    note = _NOTE.format(down=rates[0], up=rates[1])
    return Table("gpu.transfers", "transfers of 1 GiB over the link", note, lines)


def tables(only: Collection[str] | None = None, rounds: int = 21) -> list[Result]:
    """Return the tables of the device, or a listing that says why there are none."""
    reason = missing()
    if reason:
        note = f"Not run here, since there is no CUDA device: {reason}."
        return [Listing("gpu", "on a CUDA device", note)]
    return [_hand_offs(only, rounds), _transfers(min(7, rounds))]
