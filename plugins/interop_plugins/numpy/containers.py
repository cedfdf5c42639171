"""Files of arrays, opened as parts of trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interop.plugin import Branch

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    Value: TypeAlias = Any


def open_file(value: Value) -> Branch | None:
    """Open an ``.npz`` file, for which a dict stands."""
    import numpy as np

    if not isinstance(value, np.lib.npyio.NpzFile):
        return None
    names = value.files

    def rebuild(children: list[Value]) -> Value:
        return dict(zip(names, children, strict=True))

    return Branch(names, [value[name] for name in names], rebuild)
