"""Files of arrays, and arrays of records, opened as parts of trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interop.plugin import Branch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeAlias

    Value: TypeAlias = Any


def open_container(value: Value) -> Branch | None:
    """Open an ``.npz`` file, or an array of records with numbers in a field, as a dict."""
    import numpy as np

    if isinstance(value, np.lib.npyio.NpzFile):
        return _read(value, value.files)
    if isinstance(value, (np.ndarray, np.void)) and _has_numbers(value.dtype):
        return _read(value, value.dtype.names or ())
    return None


def _has_numbers(dtype: Any) -> bool:
    """Tell whether a dtype is of records of which a field is of numbers, at any depth."""
    fields = [dtype[name].base for name in dtype.names or ()]
    return any(field.kind in "biufc" or _has_numbers(field) for field in fields)


def _read(value: Value, names: Sequence[str]) -> Branch:
    """Return the branch of what is asked by names, for which a dict stands."""

    def rebuild(children: list[Value]) -> Value:
        return dict(zip(names, children, strict=True))

    return Branch(names, [value[name] for name in names], rebuild)
