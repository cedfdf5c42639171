"""Composite formats, handed over by components: a toy pair of one layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import interop
from interop import Format, Interop, Parts, Spec
from interop.plugin import Components

LAYOUT = {"values": "dtype", "indices": "index_dtype"}


class Pair:
    """A toy sparse vector: values at indices."""

    def __init__(self, kind: str, shape: tuple[int, ...], values: Any, indices: Any) -> None:
        self.kind = kind
        self.shape = shape
        self.values = values
        self.indices = indices


def describe(pair: Pair) -> Spec:
    """Return the spec of a toy sparse vector."""
    readonly = not pair.values.flags.writeable
    return Spec(
        pair.kind,
        str(pair.values.dtype),
        "cpu",
        pair.shape,
        frozenset({"readonly"} if readonly else ()),
        pair.values.nbytes + pair.indices.nbytes,
        nnz=len(pair.values),
        index_dtype=str(pair.indices.dtype),
    )


def apart(pair: Pair) -> Parts:
    """Take a toy sparse vector apart."""
    return Parts(pair.shape, {"values": pair.values, "indices": pair.indices})


def sparse(name: str, **facts: Any) -> Format:
    """Return the format of a toy sparse vector with NumPy components."""
    facts.setdefault("dtypes", frozenset({"float32", "float64"}))
    facts.setdefault("index_dtypes", frozenset({"int32", "int64"}))
    facts.setdefault("roles", LAYOUT)
    facts.setdefault("unpack", apart)
    facts.setdefault("pack", lambda parts: Pair(name, parts.shape, *parts.arrays.values()))
    return Format(
        name,
        types=(f"{__name__}:Pair",),
        describe=describe,
        components=Components(layout="toy", format="numpy"),
        **facts,
    )


def pair(**facts: Any) -> Pair:
    """Return a toy sparse vector of format "one"."""
    values = np.array([1.5, 2.5], facts.get("dtype", "f4"))
    indices = np.array([0, 3], facts.get("index", "i8"))
    return Pair("one", facts.get("shape", (5,)), values, indices)


def test_components_are_shared(loaded: Interop) -> None:
    """A hand-off between formats of one layout shares every component array."""
    loaded.register(sparse("one"), sparse("two"))
    x = pair()
    y = loaded.convert(x, to="two")
    assert y.kind == "two"
    assert y.values is x.values
    assert y.indices is x.indices
    assert loaded.plan(x, to="two").zero_copy


def test_copy_true_copies_every_component(loaded: Interop) -> None:
    """``copy=True`` leaves no component shared."""
    loaded.register(sparse("one"), sparse("two"))
    x = pair()
    y = loaded.convert(x, to="two", copy=True)
    assert not np.shares_memory(x.values, y.values)
    assert not np.shares_memory(x.indices, y.indices)


def test_a_cast_touches_the_values_alone(loaded: Interop) -> None:
    """``dtype=`` casts the values; the indices stay shared, and copy=True copies them."""
    loaded.register(sparse("one"))
    x = pair()
    y = loaded.convert(x, to="one", dtype="float64")
    assert y.values.dtype == np.float64
    assert y.indices is x.indices
    assert loaded.plan(x, to="one", dtype="float64").effects == {"copy"}
    with pytest.raises(interop.errors.RefusedError, match="copy"):
        loaded.convert(x, to="one", dtype="float64", copy=False)


def test_a_narrowing_target_needs_consent(loaded: Interop) -> None:
    """A target that lacks the dtype is refused as narrow, as for dense arrays."""
    loaded.register(sparse("one"), sparse("two", dtypes=frozenset({"float32"})))
    with pytest.raises(interop.errors.RefusedError, match="narrow"):
        loaded.convert(pair(dtype="f8"), to="two")
    assert loaded.convert(pair(dtype="f8"), to="two", dtype="float32").values.dtype == np.float32


def test_indices_are_narrowed_only_where_they_fit(loaded: Interop) -> None:
    """int64 indices go to a target of int32 indices if the shape allows, else not at all."""
    loaded.register(sparse("one"), sparse("two", index_dtypes=frozenset({"int32"})))
    y = loaded.convert(pair(), to="two")
    assert y.indices.dtype == np.int32
    with pytest.raises(interop.errors.RefusedError, match="do not fit in 32 bits"):
        loaded.convert(pair(shape=(2**31 + 1,)), to="two")


def test_read_only_components_are_handed_on_as_such(loaded: Interop) -> None:
    """The trait of the whole is a trait of the parts, and the target's own."""
    loaded.register(sparse("one"), sparse("two"))
    x = pair()
    x.values.flags.writeable = False
    assert loaded.convert(x, to="two").values is x.values
    assert loaded.plan(x, to="two").result.traits == {"readonly"}


def test_a_trait_that_is_lost_on_the_way_apart_is_refused(loaded: Interop) -> None:
    """What does not survive taking apart stops the hand-off."""
    loaded.register(sparse("one"), sparse("two"))
    spec = describe(pair())._replace(traits=frozenset({"uncoalesced"}))
    with pytest.raises(interop.errors.RefusedError):
        loaded.plan(spec, to="two")


def test_pointers_are_narrowed_only_where_they_fit(loaded: Interop) -> None:
    """Pointers count the stored elements, which may be more than any axis is long."""
    roles = {**LAYOUT, "pointers": "index_dtype"}
    many = np.broadcast_to(np.float32(1), (2**31 + 1,))  # without the memory of so many

    def rows(pair: Pair) -> Parts:
        pointers = np.array([0, len(pair.values)])
        return Parts(pair.shape, {**apart(pair).arrays, "pointers": pointers})

    narrow = {"index_dtypes": frozenset({"int32"}), "pack": lambda parts: parts}
    facts = {"roles": roles, "unpack": rows}
    loaded.register(sparse("one", **facts), sparse("two", **facts, **narrow))
    few = loaded.plan(pair(), to="two")
    assert few.steps[0].call(pair()).arrays["pointers"].dtype == np.int32
    stored = Pair("one", (4,), many, np.array([1, 3]))
    with pytest.raises(interop.errors.RefusedError, match="do not fit in 32 bits"):
        loaded.convert(stored, to="two")
