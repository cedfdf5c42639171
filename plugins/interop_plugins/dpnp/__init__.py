"""dpnp: arrays and tensors on the devices of SYCL, which DLPack calls oneAPI."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from interop.kit import COMPLEX, CPU, INTEGERS, NATIVE, REALS, STRIDED, transfer
from interop.plugin import (
    Cast,
    Conversion,
    Copy,
    Cost,
    Declaration,
    Drop,
    Format,
    Limits,
    Move,
    Samples,
    hookimpl,
    itself,
)
from interop.plugin.advanced import Problems

from . import dense, samples
from .describe import PRIVATE, describe, describe_tensor, memory, tensor_memory
from .problems import find_problems
from .queues import unsupported_now

if TYPE_CHECKING:
    from typing import Any

    from .queues import Tensor

    _Returning = Callable[[Callable[..., Tensor]], Callable[..., Any]]

_DEVICES = ("oneapi",)
_ON_DEVICE = frozenset(_DEVICES)
_DTYPES = INTEGERS | REALS | COMPLEX | {"bool"}

_CARRIED = STRIDED | {"readonly"}

_LACKING = (
    "not every SYCL device computes with it; ask for a narrower dtype=, or for a device= that does."
)
_HINTS = {
    "private_context": "it lies on a part of a device, or in a context of its own, where nobody "
    "else can use its memory; copy it to a whole device first (x.to_device(device)), or convert it "
    "to a format of the host.",
    **dict.fromkeys(("float16", "float64", "complex128"), _LACKING),
}


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the two formats, their conversions, and how to find out what is wrong with dpnp."""
    return [
        _format(
            "dpnp",
            types=("dpnp:ndarray",),
            describe=describe,
            memory=memory,
            unary=(*_unary(dense.holding), Drop("subclass", dense.as_array, cost=Cost(5e-6))),
            fill=dense.fill_array,
            samples=Samples(variants=samples.ARRAYS),
        ),
        _format(
            "dpnp.tensor",
            types=("dpnp.tensor:usm_ndarray",),
            aliases=("dpnp.tensor",),
            describe=describe_tensor,
            memory=tensor_memory,
            unary=tuple(_unary(itself)),
            fill=dense.fill,
            samples=Samples(variants=samples.TENSORS),
        ),
        *_hand_offs("dpnp.tensor", itself),
        *_hand_offs("dpnp", dense.holding),
        *_views(),
        Problems(find_problems),
    ]


def _format(name: str, **fields: Any) -> Format:
    return Format(
        name,
        dtypes=_DTYPES,
        devices=_DEVICES,
        carries=_CARRIED | PRIVATE,
        exports={"dlpack": _DTYPES},
        requires="dpnp",
        install="pip install dpnp",
        limits=Limits(unsupported_now=unsupported_now, refusal_hints=_HINTS),
        fast_path=itself,
        **fields,
    )


def _unary(returning: _Returning) -> Iterator[Conversion]:
    """Yield the steps within a format. Their costs were measured with a processor as the device.

    The functions work on tensors; `returning` makes functions of them that return the format.
    """
    cost, across = Cost(1e-4, 1e10), Cost(1.5e-4, 5e9)
    yield Copy(returning(dense.copy), frozenset("CF"), cost=cost, across=across, stream=True)
    yield Cast(returning(dense.cast), cost=Cost(2e-4, 1.2e10), stream=True)
    cost = Cost(4e-4, 2e9)
    yield Move(returning(dense.move), _ON_DEVICE, drops=PRIVATE, cost=cost, stream=True)


def _hand_offs(name: str, returning: _Returning) -> Iterator[Conversion]:
    """Yield the moves from the host and to it, and the ways in by DLPack."""
    link: dict[str, Any] = {"cost": Cost(2e-4, 4e9), "stream": True}
    upload = partial(transfer, "numpy", name, returning(dense.from_numpy), CPU, _ON_DEVICE)
    yield upload(takes=NATIVE, into=dense.send_into, **link)
    download = partial(transfer, name, "numpy", dense.to_numpy, _ON_DEVICE, CPU)
    yield download(takes=_CARRIED | PRIVATE, drops=PRIVATE, into=dense.bring_into, **link)
    share = partial(
        Conversion, "dlpack", name, devices=_ON_DEVICE, takes=_CARRIED, stream=True, cost=Cost(5e-5)
    )
    yield share(returning(dense.from_dlpack))
    yield share(returning(dense.from_locked_dlpack), requires={"immutable"})


def _views() -> Iterator[Conversion]:
    """Yield the steps between the two formats, which share memory."""
    view = partial(Conversion, devices=_ON_DEVICE, takes=_CARRIED | PRIVATE)
    yield view("dpnp", "dpnp.tensor", dense.from_array, cost=Cost(3e-7))
    yield view("dpnp.tensor", "dpnp", dense.to_array, cost=Cost(5e-6))
