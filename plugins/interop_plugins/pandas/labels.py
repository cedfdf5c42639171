"""The labels of pandas' objects: indexes, names and attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from interop.kit import are_numbered

if TYPE_CHECKING:
    import pandas as pd

    #: An object that may have labels; an extension array has none.
    Labelled: TypeAlias = pd.Series | pd.DataFrame | pd.Index | pd.api.extensions.ExtensionArray


def present(value: Labelled) -> bool:
    """Tell whether a value has labels other than those that pandas gives to every array."""
    import pandas as pd

    if isinstance(value, pd.DataFrame):
        return are_named(value.columns) or not is_default(value.index) or bool(value.attrs)
    if isinstance(value, pd.Series):
        return not is_default(value.index) or value.name is not None or bool(value.attrs)
    return isinstance(value, pd.Index) and value.name is not None


def are_named(columns: pd.Index) -> bool:
    """Tell whether columns have names other than their numbers."""
    if is_default(columns):
        return False
    # To look one up takes less time than to take the first, or to list those of many columns.
    may_be_numbered = "0" in columns or "column_0" in columns
    return bool(len(columns)) and not (may_be_numbered and are_numbered([*columns]))


def _are_of_rows(value: Labelled, like: Labelled) -> bool:
    """Tell whether a value has as many rows as another, which has not as many columns."""
    import pandas as pd

    if not all(isinstance(side, (pd.Series, pd.DataFrame)) for side in (value, like)):
        return False
    return value.shape[0] == like.shape[0] and like.shape[0] not in like.shape[1:]


def is_default(index: pd.Index) -> bool:
    """Return whether an index counts from 0, as that of every new object, and has no name."""
    import pandas as pd

    counts = isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1
    return counts and index.name is None


def give(value: Labelled, like: Labelled) -> Labelled:
    """Return a value under the labels of another of its type and shape, or under those of its rows.

    pandas aligns by them: a column of predictions is joined to the frame that it was made of.
    """
    import pandas as pd

    if type(value) is not type(like) or value.shape != like.shape:
        return value.set_axis(like.index, axis=0) if _are_of_rows(value, like) else value
    if isinstance(like, pd.Index):
        return value.rename(like.name)
    labelled = value.set_axis(like.index, axis=0)
    if isinstance(like, pd.DataFrame):
        labelled = labelled.set_axis(like.columns, axis=1)
    else:
        labelled.name = like.name
    labelled.attrs = dict(like.attrs)
    return labelled
