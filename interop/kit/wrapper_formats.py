"""Wrappers in one call: all that a library of arrays under labels declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from functools import partial
from typing import Any

from interop._model.conversion import Conversion, Cost
from interop._model.extension import Declaration
from interop._model.format import Format, Labels, Samples, Wrapper, package
from interop._model.spec import MEMORY_TRAITS
from interop._model.typing import Value, ValueFunction

from .arrays import COMPLEX, COPY, DTYPE, INTEGERS, REALS, recast
from .dense_formats import check_names
from .reference import Reference, referred

_STANDARD = INTEGERS | REALS | COMPLEX | {"bool"}


def wrapper_format(
    types: str | tuple[str, ...],
    *,
    unwrap: Reference,
    rewrap: Callable[[Value, Value], Value],
    labelled: Reference,
    wraps: Set[str],
    wrap: Reference = "",
    cast: Reference = "",
    name: str = "",
    dtypes: Set[str] | None = None,
    devices: tuple[str, ...] = ("cpu",),
    variants: Mapping[str, ValueFunction] | None = None,
    **fields: Any,
) -> list[Declaration]:
    """Return what makes a framework of a library whose values wrap arrays under labels.

    A value is described as the array in it, and unwrapped on the way to other frameworks, which
    drops the labels. A copy, a cast and the results of functions that accept any array are wrapped
    again under the labels of the value.

    Functions are given as such, as ``"module:function"``, which is imported at the first call, or
    as the name of an attribute of the value or of a method without arguments.

    Parameters
    ----------
    types : str or tuple of str
        The public names of the types, as ``"module:Class"``; they may be defined elsewhere.
    unwrap : function
        ``unwrap(value) -> array``; the array holds the numbers that the value stands for, in
        memory that it shares.
    rewrap : function
        ``rewrap(array, like) -> value`` around an array, under the labels of another value.
    labelled : function
        Tells whether a value has labels, other than those of every value.
    wraps : set of str
        The formats of the arrays that a value can be made of.
    wrap : function
        ``wrap(array) -> value`` without labels; "" for the first type, called. Results that are
        given back under labels are wrapped by it first.
    cast : function
        ``cast(array, dtype=name)`` returns a copy of an array that was wrapped; "" for the
        functions of its array API namespace.
    name : str
        Name of the format; "" for the package of the first type.
    dtypes : set of str or None
        The dtypes of the arrays that can be wrapped; None: those of the array API standard, and
        float16.
    devices : tuple of str
        The device types where they can live.
    variants : mapping of str to function
        For `Samples`: ``{"labelled": function}`` returns a value with labels, so that the
        conformance suite tries those, too.
    **fields
        Fields of `Format` (``install=``), in place of what is derived.

    Returns
    -------
    list of declarations
        A Format and Conversions, for a plugin's hook, or `interop.register`.

    Examples
    --------
    >>> wrapper_format(  # doctest: +ELLIPSIS
    ...     "units:Quantity",
    ...     unwrap="magnitude",
    ...     rewrap=lambda array, like: type(like)(array, like.units),
    ...     labelled="units",
    ...     wraps={"mylib"},
    ... )
    [Format('units', 14 dtypes on cpu), Conversion('mylib', 'units', wrap_mylib), ...]
    """
    check_names(wraps=wraps, dtypes=dtypes, devices=devices)
    types = (types,) if isinstance(types, str) else types
    name = name or package(types[0])
    opened = referred(unwrap)
    format_ = Format(
        name,
        types=types,
        dtypes=_STANDARD if dtypes is None else dtypes,
        devices=devices,
        carries=MEMORY_TRAITS,
        wrapper=Wrapper(opened),
        labels=Labels(referred(labelled), lambda value, like: rewrap(opened(value), like)),
        requires=package(types[0]),
        samples=Samples(variants=variants or {}),
    )
    step = partial(Conversion, takes=MEMORY_TRAITS, devices=None)
    made = [
        step(source, name, referred(wrap or types[0]), cost=Cost(1e-5), name=f"wrap_{source}")
        for source in sorted(wraps)
    ]
    again = partial(_rewrapped, opened, rewrap, referred(cast or recast))
    recasting = step(
        name, name, again, changes=DTYPE, effects=COPY, cost=Cost(3e-5, 8e9), name="rewrap"
    )
    return [format_._replace(**fields), *made, recasting]


def _rewrapped(
    unwrap: Callable[[Value], Value],
    rewrap: Callable[[Value, Value], Value],
    cast: Callable[..., Value],
    value: Value,
    *,
    dtype: str,
) -> Value:
    """Return a value under the same labels around a copy of its array."""
    return rewrap(cast(unwrap(value), dtype=dtype), value)
