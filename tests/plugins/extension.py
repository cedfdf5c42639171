"""An extension type of Arrow's, which is not registered."""

from __future__ import annotations

import pyarrow as pa


class Metres(pa.ExtensionType):
    """Numbers of a unit: another type than that of the numbers, and not hashable."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__(pa.int64(), "test.metres")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Metres:
        return cls()
