"""The array API standard: copies and casts by the functions that every namespace of it has."""

from __future__ import annotations

from importlib import import_module

from interop._model.typing import Value
from interop.errors import Declined


def recast(value: Value, *, dtype: str, namespace: str = "") -> Value:
    """Return a copy of an array in C order, cast to a dtype.

    Parameters
    ----------
    value : array
        Of any shape, dtype and device of its namespace.
    dtype : str
        That of the result; that of `value` for a mere copy. A real dtype keeps the real part of
        complex numbers.
    namespace : str
        The module; "" for the one that the array names itself.

    Raises
    ------
    Declined
        The namespace lacks the dtype or a function, or the array has no namespace.
    """
    try:
        xp = import_module(namespace) if namespace else value.__array_namespace__()
        target, astype, reshape = getattr(xp, dtype), xp.astype, xp.reshape
    except AttributeError as error:
        raise Declined(str(error)) from error
    # A copy keeps the order that it finds, and one axis has only one.
    flat = reshape(value, (-1,))
    if xp.isdtype(value.dtype, "complex floating") and not dtype.startswith(("bool", "complex")):
        flat = xp.real(flat)
    return reshape(astype(flat, target, copy=True), value.shape)
