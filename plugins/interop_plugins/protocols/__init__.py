"""Protocols other than DLPack by which foreign values show arrays, and the ways to NumPy.

They are ``__cuda_array_interface__``, ``__array_interface__``, the buffer protocol, Arrow's
``__arrow_c_array__`` and ``__arrow_c_stream__``, and ``__array__``. A type that has several is
recognised by the first: ``__array__`` comes last because it is the only one that may lose something
on the way, such as nulls, and an integer dtype with them. A unit (`units` or `unit`) counts as a
label. An interface is checked before
NumPy acts on it, so that a NULL pointer, a negative length or an extent beyond all memory is
refused. A wrong address that looks plausible cannot be detected: its publisher vouches for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from interop.kit import COPY, INTEGERS, REALS
from interop.plugin import (
    DTYPES,
    MEMORY_TRAITS,
    Conversion,
    Cost,
    Declaration,
    Format,
    Labels,
    Limits,
    Samples,
    Wrapper,
    hookimpl,
)
from interop.plugin.advanced import Advanced

from .arrow import array_of, stream_of
from .buffers import (
    BUFFERS,
    buffer_fast_path,
    buffer_key,
    buffer_memory,
    describe_buffer,
    from_buffer,
)
from .common import NUMBERS, PLAIN
from .interfaces import (
    cuda_memory,
    describe_array_interface,
    describe_cuda_array_interface,
    from_array_interface,
    interface_memory,
    is_unread,
    offer_of,
)
from .methods import array_in, describe_array, from_array, has_labels, is_asked_first
from .offers import offer
from .samples import Answer, ArrowArray, Interface, buffer_with_gaps, masked_interface

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

_MASKED = frozenset({"masked"})
_CARRIES = MEMORY_TRAITS | _MASKED
#: The unit of a quantity and the names of columns count as labels.
_LABELS = Labels(has_labels, lambda value, like: value)


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return a format for each protocol, in the order of recognition, and the ways to NumPy."""
    return [*_interfaces(), _buffer(), *_arrow(), _array_method(), *_to_numpy()]


def _interfaces() -> Iterable[Format]:
    return [
        Format(
            "cuda_array_interface",
            describe=describe_cuda_array_interface,
            dtypes=PLAIN,
            devices=("cuda",),
            carries=_CARRIES,
            protocol="__cuda_array_interface__",
            memory=cuda_memory,
            labels=_LABELS,
            advanced=Advanced(offers={"cuda_array_interface": offer}),
        ),
        Format(
            "array_interface",
            describe=describe_array_interface,
            dtypes=NUMBERS,
            carries=_CARRIES,
            protocol="__array_interface__",
            types=("interop_plugins.protocols.interfaces:Offer",),
            memory=interface_memory,
            wrapper=Wrapper(offer_of, 2e-6, first=is_unread),
            samples=Samples(make=Interface, source="numpy", variants={"masked": masked_interface}),
            labels=_LABELS,
        ),
    ]


def _buffer() -> Format:
    return Format(
        "buffer",
        types=BUFFERS,
        describe=describe_buffer,
        dtypes=NUMBERS,
        carries=MEMORY_TRAITS,
        protocol="__buffer__",
        memory=buffer_memory,
        advanced=Advanced(fast_key=buffer_key),
        samples=Samples(
            variants={"noncontiguous": buffer_with_gaps, "readonly": memoryview.toreadonly}
        ),
    )


def _arrow() -> Iterable[Format]:
    exported = partial(
        Format,
        requires="pyarrow",
        install="pip install pyarrow",
        dtypes=INTEGERS | REALS | {"bool"},
    )
    yield exported(
        "arrow_c_array",
        protocol="__arrow_c_array__",
        wrapper=Wrapper(array_of, 2e-5),
        samples=Samples(make=ArrowArray, source="pyarrow"),
    )
    yield exported(
        "arrow_c_stream",
        protocol="__arrow_c_stream__",
        wrapper=Wrapper(stream_of, 3e-5, once=True),
    )


def _array_method() -> Format:
    return Format(
        "array",
        describe=describe_array,
        dtypes=frozenset(DTYPES) - {"complex32"},
        protocol="__array__",
        wrapper=Wrapper(array_in, 1e-6, first=is_asked_first),
        limits=Limits(refusal_hints={"not_numbers": "its shape is None; leave it out."}),
        labels=_LABELS,
        samples=Samples(make=Answer, source="numpy"),
    )


def _to_numpy() -> Iterable[Conversion]:
    """Return the way from each protocol of the host to NumPy."""
    return [
        _view("array_interface", from_array_interface, cost=Cost(4e-6)),
        _view(
            "array_interface",
            from_array_interface,
            requires=_MASKED,
            drops=_MASKED,
            effects=frozenset({"drop_mask"}),
            cost=Cost(4e-6),
            name="from_masked_array_interface",
        ),
        _view("buffer", from_buffer, cost=Cost(4e-7), fast_path=buffer_fast_path),
        Conversion("array", "numpy", from_array, effects=COPY, cost=Cost(8e-6, 8e9)),
    ]


def _view(source: str, function: Callable[..., NDArray[Any]], **fields: Any) -> Conversion:
    return Conversion(source, "numpy", function, dtypes=NUMBERS, takes=MEMORY_TRAITS, **fields)
