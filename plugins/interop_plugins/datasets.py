"""Hugging Face datasets: the columns that a `Dataset` chooses, read from its Arrow tables.

A dataset is the table of its rows, and a column of it is that column. Without a selection of rows
they share the memory of the dataset, which is often mapped from a file. The format of a dataset
says which columns count. A transform computes rows, so a dataset that has one is no array.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from interop.errors import UnknownValueError
from interop.kit import INTEGERS, REALS
from interop.plugin import Declaration, Format, Wrapper, hookimpl

if TYPE_CHECKING:
    import pyarrow as pa
    from datasets import Column, Dataset


def table_of(dataset: Dataset) -> pa.Table:
    """Return the rows and columns that a dataset chooses; columns of tensors as lists of lists."""
    return _rows(dataset, dataset.format["columns"])


def column_of(column: Column) -> pa.ChunkedArray:
    """Return the rows of a column, or of a field of one."""
    source, name = column.source, column.column_name
    if hasattr(source, "column_name"):  # a field of the rows of another column
        import pyarrow.compute

        return pyarrow.compute.struct_field(column_of(source), name)
    return _rows(source, [name]).column(0)


def _rows(dataset: Dataset, columns: list[str]) -> pa.Table:
    import pyarrow as pa

    if dataset.format["type"] == "custom":
        msg = (
            "a Dataset with a transform holds what the transform computes of its rows; convert "
            "the batches that it gives (interop.convert_tree(x[:])), or leave the transform out "
            "(x.with_format(None))."
        )
        raise UnknownValueError(msg)
    table: Any = _chosen_rows(dataset, columns)
    for place, field in enumerate(table.schema):
        storage = getattr(field.type, "storage_type", None)
        if storage is not None and type(field.type).__module__.startswith("datasets."):
            chunks = [chunk.storage for chunk in table.column(place).chunks]
            table = table.set_column(place, field.name, pa.chunked_array(chunks, storage))
    return table


def _chosen_rows(dataset: Dataset, columns: list[str]) -> pa.Table:
    """Return the rows that a dataset selects, by its private table of their numbers if it has one.

    All its public ways cut the table row by row, which takes a thousand times as long.
    """
    if not hasattr(dataset, "_indices"):
        return dataset.with_format("arrow", columns=columns)[:]
    table: pa.Table = dataset.data.table.select(columns)
    return table if dataset._indices is None else table.take(dataset._indices.column(0))


@hookimpl
def interop_declarations() -> Iterable[Declaration]:
    """Return the formats of datasets and of their columns, which are read before all else."""
    for name, type_, read in (
        ("datasets", "Dataset", table_of),
        ("datasets.column", "Column", column_of),
    ):
        yield Format(
            name,
            types=(f"datasets.arrow_dataset:{type_}",),
            target_types=(),
            dtypes=INTEGERS | REALS | {"bool"},
            wrapper=Wrapper(read, 1e-3, once=True),
            requires="datasets",
            install="pip install datasets",
        )
