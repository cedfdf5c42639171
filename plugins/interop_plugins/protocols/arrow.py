"""Arrow's protocols: ``__arrow_c_array__`` and ``__arrow_c_stream__``.

PyArrow reads them, without a copy: what a value exports is described and converted as PyArrow's own
array, chunked array, record batch or table. Some streams can be read only once, and others compute
their rows each time, so a conversion reads a stream once, before it is described.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from interop.errors import NotInstalledError

if TYPE_CHECKING:
    from typing import Any

    import pyarrow as pa

    from .common import Foreign


def array_of(value: Foreign) -> pa.Array | pa.RecordBatch:
    """Return the array that a value exports, over its memory; structs are rows of columns."""
    pa = _pyarrow("__arrow_c_array__")
    array = pa.array(value)
    is_rows = isinstance(array, pa.StructArray)
    return pa.RecordBatch.from_struct_array(array) if is_rows else array


def stream_of(value: Foreign) -> pa.ChunkedArray | pa.Table:
    """Return the chunks that a value streams, over its memory; structs are rows of columns."""
    pa = _pyarrow("__arrow_c_stream__")
    chunks = pa.chunked_array(value)
    is_rows = pa.types.is_struct(chunks.type)
    return pa.Table.from_struct_array(chunks) if is_rows else chunks


def _pyarrow(protocol: str) -> Any:
    """Return PyArrow, which reads a protocol."""
    try:
        return import_module("pyarrow")
    except ImportError as error:
        msg = f"to read {protocol} takes pyarrow, which is not installed: pip install pyarrow"
        raise NotInstalledError(msg, name="pyarrow") from error
