"""Values of other libraries that export Arrow's arrays by ``__arrow_c_array__``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from interop.errors import NotInstalledError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["imported"]


def imported(value: Any) -> pa.Array:
    """Return a value's elements as an array of PyArrow's, which shares their memory."""
    try:
        import pyarrow as pa
    except ImportError as error:
        msg = "to read __arrow_c_array__ takes pyarrow, which is not installed: pip install pyarrow"
        raise NotInstalledError(msg, name="pyarrow") from error
    return pa.array(value)
