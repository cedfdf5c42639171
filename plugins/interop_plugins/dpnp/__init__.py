"""dpnp: arrays and tensors on the devices of SYCL, which DLPack calls oneAPI."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from interop.plugin import (
    COMPLEX,
    COPY,
    CPU,
    DEVICE,
    DTYPE,
    INTEGERS,
    MEMORY_TRAITS,
    REALS,
    TRANSFER,
    Conversion,
    Cost,
    Declaration,
    Format,
    Limits,
    Problems,
    Result,
    Samples,
    hookimpl,
    itself,
)

from . import dense, samples
from .describe import PRIVATE, describe, describe_tensor, memory, tensor_memory
from .problems import find_problems
from .queues import available, unsupported_now

if TYPE_CHECKING:
    from typing import Any

    from .queues import Tensor

__all__ = ["interop_declarations"]

_DEVICES = ("oneapi",)
_ON_DEVICE = frozenset(_DEVICES)
_DTYPES = INTEGERS | REALS | COMPLEX | {"bool"}

_LAYOUT = frozenset({"noncontiguous", "negative_strides", "broadcast"})
_CARRIED = _LAYOUT | {"readonly"}
_SUBCLASS, _IMMUTABLE = frozenset({"subclass"}), frozenset({"immutable"})

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
            fill=dense.fill_array,
            samples=Samples(variants=samples.ARRAYS),
        ),
        _format(
            "dpnp.tensor",
            types=("dpnp.tensor:usm_ndarray",),
            aliases=("dpnp.tensor",),
            describe=describe_tensor,
            memory=tensor_memory,
            fill=dense.fill,
            samples=Samples(variants=samples.TENSORS),
        ),
        *_steps("dpnp.tensor", lambda function: function),
        *_steps("dpnp", dense.holding),
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
        install="pip install 'array-interop[dpnp]'",
        limits=Limits(unsupported_now=unsupported_now, refusal_hints=_HINTS, available=available),
        fast_path=itself,
        **fields,
    )


def _steps(
    name: str, returning: Callable[[Callable[..., Tensor]], Callable[..., Any]]
) -> Iterator[Conversion]:
    """Yield what can be done with one of the formats.

    `returning` makes its steps of those of tensors. The costs were measured with a processor as
    the device.
    """
    stays = partial(Conversion, name, name, devices=_ON_DEVICE, stream=True)
    takes = _CARRIED | PRIVATE
    yield stays(returning(dense.copy), takes=takes, effects=COPY, cost=Cost(1e-4, 1e10))
    yield stays(
        returning(dense.cast), takes=takes, changes=DTYPE, effects=COPY, cost=Cost(2e-4, 1.2e10)
    )
    moves: dict[str, Any] = {
        "changes": DEVICE,
        "effects": TRANSFER,
        "stream": True,
        "cost": Cost(2e-4, 4e9),
    }
    on_device = Result(devices=_ON_DEVICE)
    yield Conversion(
        "numpy",
        name,
        returning(dense.from_numpy),
        takes=MEMORY_TRAITS - {"byteswapped"},
        result=on_device,
        **moves,
    )
    yield Conversion(
        name,
        "numpy",
        dense.to_numpy,
        devices=_ON_DEVICE,
        takes=takes,
        result=Result(devices=CPU),
        drops=PRIVATE,
        **moves,
    )
    yield stays(
        returning(dense.move),
        takes=takes,
        drops=PRIVATE,
        result=on_device,
        **{**moves, "cost": Cost(4e-4, 2e9)},
    )
    share = partial(
        Conversion, "dlpack", name, devices=_ON_DEVICE, takes=_CARRIED, stream=True, cost=Cost(5e-5)
    )
    yield share(returning(dense.from_dlpack))
    yield share(returning(dense.from_locked_dlpack), requires=_IMMUTABLE)


def _views() -> Iterator[Conversion]:
    """Yield the steps between the two formats, which are one memory."""
    view = partial(Conversion, devices=_ON_DEVICE, takes=_CARRIED | PRIVATE)
    yield view("dpnp", "dpnp.tensor", dense.from_array, cost=Cost(3e-7))
    yield view("dpnp.tensor", "dpnp", dense.to_array, cost=Cost(5e-6))
    yield view("dpnp", "dpnp", dense.as_array, requires=_SUBCLASS, drops=_SUBCLASS, cost=Cost(5e-6))
