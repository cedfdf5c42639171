"""Liars whose arrays are on a device that pretends: their numbers are on the host."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from interop.plugin import Conversion, Cost, Declaration, Format, Samples, Spec, make_spec
from tests.lying_plugins import Caught, Liar, Unseen, table

_MOVES: dict[str, Any] = {
    "changes": {"device"},
    "effects": {"transfer"},
    "cost": Cost(1.5e-5, 1.2e10),
}


class Far:
    """An array on a device."""

    def __init__(self, numbers: Any, device: str) -> None:
        self.numbers, self.device = numbers, device


def _describe(value: Far) -> Spec:
    numbers = value.numbers
    return make_spec("far", numbers.dtype.name, device=value.device, shape=numbers.shape)


def _upload(array: Any, *, device: str) -> Far:
    return Far(array.copy(), device)


def _download(far: Far, *, device: str) -> Any:
    return far.numbers.copy()


def _move(far: Far, *, device: str) -> Far:
    return Far(far.numbers.copy(), device)


def _make(array: Any) -> Far:
    return Far(array.copy(), "oneapi:0")


def _fill(out: Far, far: Far) -> None:
    out.numbers[...] = far.numbers


_OWN = Samples(make=_make, source="numpy")


def declarations(
    *,
    describe: Callable[..., Any] = _describe,
    upload: Callable[..., Any] = _upload,
    download: Callable[..., Any] = _download,
    move: Callable[..., Any] = _move,
    samples: Samples | None = None,
    fill: Callable[..., Any] | None = None,
) -> list[Declaration]:
    """Return the honest plugin, with some functions changed."""
    return [
        Format(
            "far",
            types=(f"{__name__}:Far",),
            describe=describe,
            dtypes={"float32", "float64"},
            devices=("oneapi",),
            samples=samples or Samples(),
            fill=fill,
        ),
        Conversion("numpy", "far", upload, name="upload", takes={"noncontiguous"}, **_MOVES),
        Conversion("far", "numpy", download, name="download", devices={"oneapi"}, **_MOVES),
        Conversion("far", "far", move, name="move", devices={"oneapi"}, **_MOVES),
    ]


def _liar(
    field: str, promise: str, check: str, text: str, blamed: str = "", **others: Any
) -> Callable[[Callable[..., Any]], Liar]:
    def liar(function: Callable[..., Any]) -> Liar:
        changes = {field: function, **others}
        return Liar.of(
            function, Caught(promise, check, text, blamed), lambda: declarations(**changes)
        )

    return liar


_MOVE = "far → far: move on oneapi"
_DOWNLOAD = "far → numpy: download on oneapi"


@_liar("move", _MOVE, "values", "other numbers")
def moves_sevens(far: Far, *, device: str) -> Far:
    """Returns sevens, on the other device."""
    return Far(far.numbers * 0 + 7, device)


@_liar("move", _MOVE, "values", "other", samples=_OWN)
def moves_sevens_of_its_own(far: Far, *, device: str) -> Far:
    """Returns sevens, and makes its samples itself."""
    return Far(far.numbers * 0 + 7, device)


@_liar("move", _MOVE, "sharing", "says that it copies, but shares memory", fill=_fill)
def moves_nothing(far: Far, *, device: str) -> Far:
    """Gives the other device the memory of the first."""
    time.sleep(2e-5)
    return Far(far.numbers, device)


@_liar("move", _MOVE, "device", "on oneapi:0, not on oneapi:1")
def stays(far: Far, *, device: str) -> Far:
    """Leaves the numbers on the first device."""
    return Far(far.numbers.copy(), "oneapi:0")


@_liar("upload", "numpy → far: upload", "device", "on oneapi:0, not on oneapi:1")
def uploads_to_the_first(array: Any, *, device: str) -> Far:
    """Uploads to the first device, whichever is asked for."""
    return Far(array.copy(), "oneapi:0")


@_liar("download", _DOWNLOAD, "sharing", "says that it copies, but shares memory")
def downloads_nothing(far: Far, *, device: str) -> Any:
    """Gives out the memory of the device."""
    return far.numbers


@_liar("upload", "numpy → far: upload", "sharing", "says that it copies, but shares memory")
def uploads_nothing(array: Any, *, device: str) -> Far:
    """Keeps the memory of the host."""
    return Far(array, device)


@_liar("describe", "numpy → far: upload", "device", "on oneapi:0", blamed="on oneapi:0")
def knows_one_device(far: Far) -> Spec:
    """Says that every array is on the first device."""
    return _describe(far)._replace(device="oneapi:0")


@_liar("describe", "format far", "describe", "bytes of far")
def weighs_nothing(far: Far) -> Spec:
    """Says that an array has no bytes."""
    return _describe(far)._replace(nbytes=0)


LIARS = table(globals())
table(
    globals(),
    Liar("honest", "Tells none.", Unseen(""), declarations),
    Liar(
        *("honest_with_make", "Tells none, and makes its samples itself.", Unseen("")),
        lambda: declarations(samples=_OWN),
    ),
    Liar(
        *("honest_with_fill", "Tells none, and can be written into.", Unseen("")),
        lambda: declarations(fill=_fill),
    ),
)
