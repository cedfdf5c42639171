"""The names of polars' Series and of the columns of its DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interop.kit import are_numbered

if TYPE_CHECKING:
    import polars as pl


def present(value: pl.Series | pl.DataFrame) -> bool:
    """Tell whether there are names other than those that polars gives to every array."""
    import polars as pl

    if isinstance(value, pl.Series):
        return value.name != ""
    # To list the names of many columns takes longer than to take the first of these.
    may_be_numbered = not value.width or are_numbered([value.to_series().name])
    return not (may_be_numbered and are_numbered(value.columns))


def give(
    value: pl.Series | pl.DataFrame, like: pl.Series | pl.DataFrame
) -> pl.Series | pl.DataFrame:
    """Return a value with the names of another, or as it is if type or shape differ."""
    import polars as pl

    if value.shape == like.shape:
        if isinstance(value, pl.Series) and isinstance(like, pl.Series):
            return value.alias(like.name)
        if isinstance(value, pl.DataFrame) and isinstance(like, pl.DataFrame):
            return value.rename(dict(zip(value.columns, like.columns, strict=True)))
    return value
