"""NumPy: dense arrays on the host, of every dtype of NumPy and ml_dtypes.

Arrays are described from their flags and strides alone. The steps that write memory are declared
in groups of like speed, because the planner can only choose by what is declared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from interop.plugin import (
    COPY,
    DTYPE,
    EMPTY,
    Conversion,
    Cost,
    Declaration,
    DtypeNames,
    Format,
    Limits,
    Result,
    Samples,
    hookimpl,
    itself,
)

from .dense import (
    as_array,
    as_bits,
    cast,
    cast_in_order,
    copy,
    drop_mask,
    fill,
    from_bits,
    from_scalar,
)
from .describe import describe, fast_key, memory
from .dlpack import (
    dlpack_fast_path,
    from_dlpack,
    from_locked_dlpack,
    from_locked_narrow_dlpack,
    from_narrow_dlpack,
)
from .dtypes import HELD, NARROW_REALS, ONLY_ML_DTYPES, PLAIN, class_name, requested_name
from .samples import VARIANTS

if TYPE_CHECKING:
    from typing import Any

    from .dtypes import Array

__all__ = ["interop_declarations"]

_LAYOUT = frozenset({"noncontiguous", "negative_strides", "broadcast"})
_FLAGS = frozenset({"readonly", "immutable", "unaligned"})
_VIEWABLE = _LAYOUT | _FLAGS
_GAPS, _SWAPPED = frozenset({"noncontiguous"}), frozenset({"byteswapped"})
_MEMORY = _VIEWABLE | _SWAPPED
_HINTS = {
    "drop_mask": "The numbers under the mask then count as others do; x.filled(0) replaces them."
}


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the format, the conversions, and how dtypes are named."""
    return [*_formats(), *_views(), *_copies(), *_casts(), *_hand_offs(), *_dtype_names()]


def _formats() -> Iterable[Format]:
    return [
        Format(
            "numpy",
            # The scalars of bytes are Python's bytes as well, which show a buffer.
            types=("numpy:ndarray", "numpy:generic", "numpy:bytes_"),
            target_types=("numpy:ndarray",),
            aliases=("np",),
            describe=describe,
            dtypes=HELD,
            carries=_MEMORY,
            # Its other protocols are not declared: every route through them is one it has already.
            exports={"dlpack": PLAIN},
            limits=Limits(refusal_hints=_HINTS),
            requires="numpy",
            install="pip install numpy",
            memory=memory,
            fill=fill,
            fast_path=itself,
            fast_key=fast_key,
            samples=Samples(variants=VARIANTS),
        )
    ]


def _dtype_names() -> Iterable[DtypeNames]:
    return [DtypeNames("numpy:dtype", requested_name), DtypeNames("builtins:type", class_name)]


def _views() -> Iterable[Conversion]:
    """Return what shares the memory of its argument."""
    subclass, masked = frozenset({"subclass"}), frozenset({"masked"})
    return [
        _step(as_array, takes=_MEMORY, requires=subclass, drops=subclass, cost=Cost(2e-7)),
        _step(
            drop_mask,
            takes=_MEMORY,
            requires=masked,
            drops=masked,
            effects=frozenset({"drop_mask"}),
            cost=Cost(1e-6),
        ),
        _step(
            as_bits,
            dtypes=NARROW_REALS,
            takes=_VIEWABLE,
            result=Result(bits="carry"),
            cost=Cost(3e-7),
        ),
        _step(
            from_bits,
            dtypes=frozenset({"uint8", "uint16"}),
            takes=_VIEWABLE,
            result=Result(bits="restore"),
            cost=Cost(3e-7),
        ),
    ]


def _copies() -> Iterable[Conversion]:
    scalar = frozenset({"scalar"})
    yield _step(from_scalar, requires=scalar, drops=scalar, effects=COPY, cost=Cost(5e-7))
    for name, takes, requires, cost in (
        ("copy", _FLAGS, EMPTY, Cost(5e-7, 1.9e10, 1.2e11)),
        ("copy_to_contiguous", _VIEWABLE, _GAPS, Cost(5e-7, 7.5e9, 1.5e10)),
        ("copy_to_native", _MEMORY, _SWAPPED, Cost(1e-6, 1.4e10, 6e10)),
    ):
        yield _step(copy, takes=takes, requires=requires, effects=COPY, cost=cost, name=name)


def _casts() -> Iterable[Conversion]:
    """Yield the casts, in groups of like speed: NumPy computes narrow reals one by one."""
    half, narrow = frozenset({"float16"}), ONLY_ML_DTYPES - {"bfloat16", "int4", "uint4"}
    fast, brief = HELD - half - narrow, frozenset({"bfloat16"})
    for name, source, target, cost in (
        ("cast", fast, fast - brief, Cost(1.5e-6, 1.9e10, 6e10)),
        ("cast_to_bfloat16", fast, brief, Cost(1.5e-6, 1.1e10)),
        ("cast_to_half", fast, half, Cost(1.5e-6, 3e9)),
        ("cast_half", half, fast | half, Cost(1.5e-6, 4e9)),
        ("cast_narrow", narrow, HELD, Cost(1.5e-6, 8e9)),
        ("cast_to_narrow", fast | half, narrow, Cost(1.5e-6, 1.5e9)),
    ):
        declare = partial(
            _step,
            dtypes=source,
            changes=DTYPE,
            result=Result(dtypes=target),
            effects=COPY,
            cost=cost,
        )
        # One speed for all strides, so that no copy that comes before seems to gain anything.
        yield declare(cast, name=name, takes=_MEMORY)
        # Where any order will do, it is that of the value; elements that repeat have none.
        yield declare(
            cast_in_order,
            name=f"{name}_in_order",
            takes=_MEMORY - {"broadcast"},
            requires=_GAPS,
            adds=_GAPS,
        )


def _hand_offs() -> Iterable[Conversion]:
    """Return the ways from DLPack."""
    declare = partial(Conversion, "dlpack", "numpy")
    writable = _LAYOUT | {"unaligned", "pinned"}
    readonly, immutable = frozenset({"readonly"}), frozenset({"immutable"})
    plain: dict[str, Any] = {"dtypes": PLAIN, "cost": Cost(4e-6)}
    narrow: dict[str, Any] = {"dtypes": ONLY_ML_DTYPES, "cost": Cost(8e-6)}
    return [
        declare(from_dlpack, takes=writable, fast_path=dlpack_fast_path, **plain),
        declare(from_locked_dlpack, takes=writable | immutable, requires=readonly, **plain),
        declare(from_locked_dlpack, takes=writable, requires=immutable, **plain),
        declare(from_narrow_dlpack, takes=writable | readonly, **narrow),
        declare(from_locked_narrow_dlpack, takes=writable | readonly, requires=immutable, **narrow),
    ]


def _step(function: Callable[..., Array], **fields: Any) -> Conversion:
    return Conversion("numpy", "numpy", function, **fields)
