"""The authors' kit: what the functions of a plugin build with.

Arrays and their memory, casts that report what they lose, DLPack, sparse indices, streams, threads,
and the formats that one call declares. :mod:`interop.plugin` has the declarations. The kit imports
NumPy only inside functions.
"""

from __future__ import annotations

from interop.kit.array_tables import array_columns
from interop.kit.arrays import (
    COMPLEX,
    COPY,
    CPU,
    DEVICE,
    DTYPE,
    EMPTY,
    INTEGERS,
    NATIVE,
    REALS,
    STRIDED,
    TEXTS,
    MemoryAt,
    address,
    dtype_name,
    extent,
    extents,
    extents_of_all,
    memory_traits,
    null_number,
    numpy_dtype,
    overlaps,
    real_part,
    stride_traits,
    unlocked,
)
from interop.kit.arrow_memory import (
    arrow_dtype,
    arrow_nulls,
    arrow_numbers,
    buffer_extents,
    cast_decimals,
    copied_columns,
)
from interop.kit.cast_errors import (
    CastErrors,
    cast_digits,
    cast_objects,
    checked_cast,
    misfit,
)
from interop.kit.codes import (
    refuse_codes,
)
from interop.kit.column_reader import (
    ColumnReader,
)
from interop.kit.columns import (
    ANY_DTYPES,
    ROW_TRAITS,
    SEVERAL_DTYPES,
    common_dtype,
    describe_columns,
    kinds_of_column,
    kinds_of_type,
    list_columns,
)
from interop.kit.dense_formats import (
    dense_format,
)
from interop.kit.devices import (
    stream_handle,
    take_offer,
    transfer,
)
from interop.kit.dlpack import (
    ADDRESSES,
    CapsuleProducer,
    CheckedProducer,
    Export,
    checked_export,
    export,
    plain_array,
)
from interop.kit.driver import (
    device_of,
    own_stream,
    queue_behind,
)
from interop.kit.quiet import (
    quietly,
)
from interop.kit.sparse_indices import (
    check_coordinates,
    check_ends,
    check_lines,
    check_offsets,
    inspect_once,
    rising,
)
from interop.kit.staging import (
    SMALL_LEAF,
    STAGED_FROM,
    fetch_staged,
    send_staged,
)
from interop.kit.tables import (
    are_numbered,
    column_formats,
)
from interop.kit.threads import (
    idle_cores,
    limit_threads,
    parallel_for,
)
from interop.kit.wrapper_formats import (
    wrapper_format,
)

__all__ = [
    "ADDRESSES",
    "ANY_DTYPES",
    "COMPLEX",
    "COPY",
    "CPU",
    "DEVICE",
    "DTYPE",
    "EMPTY",
    "INTEGERS",
    "NATIVE",
    "REALS",
    "ROW_TRAITS",
    "SEVERAL_DTYPES",
    "SMALL_LEAF",
    "STAGED_FROM",
    "STRIDED",
    "TEXTS",
    "CapsuleProducer",
    "CastErrors",
    "CheckedProducer",
    "ColumnReader",
    "Export",
    "MemoryAt",
    "address",
    "are_numbered",
    "array_columns",
    "arrow_dtype",
    "arrow_nulls",
    "arrow_numbers",
    "buffer_extents",
    "cast_decimals",
    "cast_digits",
    "cast_objects",
    "check_coordinates",
    "check_ends",
    "check_lines",
    "check_offsets",
    "checked_cast",
    "checked_export",
    "column_formats",
    "common_dtype",
    "copied_columns",
    "dense_format",
    "describe_columns",
    "device_of",
    "dtype_name",
    "export",
    "extent",
    "extents",
    "extents_of_all",
    "fetch_staged",
    "idle_cores",
    "inspect_once",
    "kinds_of_column",
    "kinds_of_type",
    "limit_threads",
    "list_columns",
    "memory_traits",
    "misfit",
    "null_number",
    "numpy_dtype",
    "overlaps",
    "own_stream",
    "parallel_for",
    "plain_array",
    "queue_behind",
    "quietly",
    "real_part",
    "refuse_codes",
    "rising",
    "send_staged",
    "stream_handle",
    "stride_traits",
    "take_offer",
    "transfer",
    "unlocked",
    "wrapper_format",
]
