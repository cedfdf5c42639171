"""Tables: their columns keep their dtypes or are cast by them, in toy tables of NumPy's columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from random import Random
from typing import Any

import numpy as np
import pytest

from interop import Conversion, Cost, Format, Interop, Spec
from interop._model.dtype import preserves
from interop._model.spec import column_dtypes
from interop.errors import RefusedError
from interop.kit import ANY_DTYPES, describe_columns
from interop.plugin import CastColumns, make_spec
from tests.toys import toy, view

DATES = "datetime64[s]"
NUMBERS = ("bool", "int8", "int64", "float32", "float64")
CARRIES = ANY_DTYPES | {"indexed", "text_columns"}


class Table:
    """A toy table: columns of a few rows by their names."""

    def __init__(self, kind: str, columns: Mapping[str, np.ndarray]) -> None:
        self.kind, self.columns = kind, dict(columns)

    @property
    def dtypes(self) -> dict[str, str]:
        """The dtypes of its columns by their names."""
        return {name: column.dtype.name for name, column in self.columns.items()}


def describe(table: Table) -> Spec:
    """Return the spec of a toy table."""
    dtype, traits = describe_columns((dtype, name) for name, dtype in table.dtypes.items())
    return make_spec(table.kind, dtype, shape=(3, len(table.columns)), traits=traits)


def cast(table: Table, *, columns: Mapping[str, str]) -> Table:
    """Return a table with the columns of some dtypes cast, each that is named."""
    names = {name: own.replace("object", "untyped") for name, own in table.dtypes.items()}
    new = {
        name: column.astype(columns[names[name]]) if names[name] in columns else column
        for name, column in table.columns.items()
    }
    return Table(table.kind, new)


def _table(name: str, *unary: Conversion) -> Format:
    """Return a format of toy tables, which other libraries read by a protocol."""
    facts: dict[str, Any] = {"ndims": {2}, "carries": CARRIES, "exports": {"stream": {*NUMBERS}}}
    format_ = toy(name, types=(f"{__name__}:Table",), dtypes={*NUMBERS}, unary=unary, **facts)
    return format_._replace(describe=describe)


@pytest.fixture
def mine(empty: Interop) -> Interop:
    """An instance with two formats of toy tables, of which the first casts columns."""
    way = view("stream", "b", takes=CARRIES, ndims={2})
    way = way._replace(function=lambda table: Table("b", table.columns))
    step = CastColumns(cast, cost=Cost(1e-6), name="cast")
    empty.register(_table("a", step), _table("b"), toy("stream", types=()), way)
    return empty


def numbers(own: Collection[str]) -> set[str]:
    """Return the dtypes of columns that a dtype is for: objects may be numbers, and dates are none."""
    names = {*own} - {DATES}
    return names - {"bool"} or names


def test_columns_of_numbers_get_the_dtype_that_is_asked_for(mine: Interop) -> None:
    """All others are shared as they are; the plan knows the dtypes, and losses can be forbidden."""
    for seed in range(300):
        rng = Random(seed)
        own = rng.choices((*NUMBERS, rng.choice(("object", DATES))), k=rng.randrange(4))
        table = Table("a", {f"c{n}": np.ones(3, dtype) for n, dtype in enumerate(own)})
        dtype, to = rng.choice((None, *NUMBERS)), rng.choice("ab")
        keywords: dict[str, Any] = {} if dtype is None else {"dtype": dtype}
        new = [dtype if dtype and name in numbers(own) else name for name in own]
        if dtype and own and not numbers(own):
            with pytest.raises(RefusedError):
                mine.plan(table, to=to, **keywords)
            continue
        route, result = mine.plan(table, to=to, **keywords), mine.convert(table, to=to, **keywords)
        assert [*result.dtypes.values()] == new, seed
        assert column_dtypes(route.result) == column_dtypes(describe(result)), seed
        kept = [name for name, now in result.columns.items() if now is table.columns[name]]
        assert kept == [f"c{n}" for n, name in enumerate(own) if name == new[n]]
        assert route.zero_copy is (own == new)
        # Where a table has objects, there may be others that are no numbers.
        assert route.aliases is (own == new or bool(kept) or "object" in own)
        if not all(map(preserves, own, new)):
            with pytest.raises(RefusedError):
                mine.plan(table, to=to, **keywords, forbid="narrow")


def test_a_table_without_columns_gets_none_but_its_index(mine: Interop) -> None:
    """What makes columns where there were none serves only tables with labels of rows."""
    way = view("stream", "c", takes=CARRIES, drops={"unknown_dtype"}, ndims={2})
    mine.register(_table("c"), way)
    nothing = describe(Table("a", {}))
    with pytest.raises(RefusedError):
        mine.plan(nothing, to="c")
    labelled = nothing._replace(traits=nothing.traits | {"indexed"})
    assert mine.plan(labelled, to="c").result.traits == {"indexed"}
    assert mine.plan(labelled, to="b").result.traits == labelled.traits
