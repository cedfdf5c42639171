"""Components: composite values pass between formats of one layout, array by array."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import interop
from interop import Conversion, Cost, Format, Interop, Parts, Spec
from interop.plugin import Components

ROLES = {"values": "dtype", "indices": "index_dtype"}


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


def unpack(pair: Pair) -> Parts:
    """Return the component arrays of a toy sparse vector."""
    return Parts(pair.shape, {"values": pair.values, "indices": pair.indices})


def sparse(name: str, *, components: Mapping[str, Any] | None = None, **fields: Any) -> Format:
    """Return the format of a toy sparse vector with NumPy components."""
    fields.setdefault("dtypes", {"float32", "float64"})
    fields.setdefault("index_dtypes", {"int32", "int64"})
    default = Components(
        "toy", "numpy", ROLES, unpack, lambda parts: Pair(name, parts.shape, *parts.arrays.values())
    )
    return Format(
        name,
        types=(f"{__name__}:Pair",),
        describe=describe,
        components=default._replace(**(components or {})),
        **fields,
    )


def pair(**facts: Any) -> Pair:
    """Return a toy sparse vector of format "one"."""
    values = np.array([1.5, 2.5], facts.get("dtype", "f4"))
    indices = np.array([0, 3], facts.get("index", "i8"))
    return Pair("one", facts.get("shape", (5,)), values, indices)


def test_components_are_shared(loaded: Interop) -> None:
    """A transfer between formats of one layout shares every component array."""
    loaded.register(sparse("one"), sparse("two"))
    x = pair()
    y = loaded.convert(x, to="two", copy=False)
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
    with pytest.raises(interop.errors.RefusedError):
        loaded.convert(x, to="one", dtype="float64", copy=False)


def test_a_narrowing_target_needs_consent(loaded: Interop) -> None:
    """A target without the dtype needs narrow or dtype=, as for dense arrays."""
    loaded.register(sparse("one"), sparse("two", dtypes={"float32"}))
    with pytest.raises(interop.errors.RefusedError):
        loaded.convert(pair(dtype="f8"), to="two")
    assert loaded.convert(pair(dtype="f8"), to="two", dtype="float32").values.dtype == np.float32


def test_indices_are_narrowed_only_where_they_fit(loaded: Interop) -> None:
    """int64 indices go to a target of int32 indices if they fit, and else not at all."""
    loaded.register(sparse("one"), sparse("two", index_dtypes={"int32"}))
    y = loaded.convert(pair(), to="two")
    assert y.indices.dtype == np.int32
    with pytest.raises(interop.errors.RefusedError):
        loaded.convert(pair(shape=(2**31 + 1,)), to="two")


def test_read_only_components_are_handed_on_as_such(loaded: Interop) -> None:
    """The read-only flag of a composite value is that of its arrays, and the result has it, too."""
    loaded.register(sparse("one"), sparse("two"))
    x = pair()
    x.values.flags.writeable = False
    assert loaded.convert(x, to="two").values is x.values
    assert loaded.plan(x, to="two").result.traits == {"readonly"}


def test_a_trait_that_unpacking_loses_is_refused(loaded: Interop) -> None:
    """A trait that does not survive unpacking stops the transfer, unless `unpack_keeps` names it."""
    loaded.register(sparse("one"), sparse("two"))
    spec = describe(pair())._replace(traits=frozenset({"uncoalesced"}))
    with pytest.raises(interop.errors.RefusedError):
        loaded.plan(spec, to="two")
    keeping = {"unpack_keeps": {"uncoalesced"}}
    carries = {"uncoalesced"}
    loaded.register(
        sparse("three", components=keeping, carries=carries), sparse("four", carries=carries)
    )
    route = loaded.plan(spec._replace(format="three"), to="four")
    assert (route.zero_copy, route.result.traits) == (True, {"uncoalesced"})


@pytest.mark.parametrize(
    ("packing", "spec", "reason"),
    [
        ({"pack_refuses": {"uncoalesced"}}, {"traits": {"uncoalesced"}}, "'uncoalesced' .it may"),
        ({"pack_requires": {"per_block"}}, {"traits": set()}, "are 'per_block' .its scales"),
        ({"code_dtypes": {"int8"}}, {"code_dtype": "uint8"}, "codes of int8, not of uint8"),
    ],
)
def test_refusals_of_pack_are_in_the_plan(
    loaded: Interop, packing: dict[str, Any], spec: dict[str, Any], reason: str
) -> None:
    """What packing refuses of other formats is refused in the plan; the format itself keeps it."""
    carries = {"uncoalesced", "per_block"}
    one = {"unpack_keeps": carries}
    loaded.register(
        sparse("one", components=one, carries=carries),
        sparse("two", components={**one, **packing}, carries=carries),
    )
    fields = {name: frozenset(f) if isinstance(f, set) else f for name, f in spec.items()}
    value = describe(pair())._replace(**fields)
    with pytest.raises(interop.errors.RefusedError):
        loaded.plan(value, to="two")
    copied = loaded.plan(value._replace(format="two"), to="two", copy=True)
    assert copied.result.traits == fields.get("traits", frozenset())
    assert loaded.plan(value._replace(format="two"), to="one").zero_copy


def test_a_fast_path_is_for_codes_that_the_target_takes(loaded: Interop) -> None:
    """What was learnt from codes of one dtype does not hand over those of another."""

    def coded(pair: Pair) -> Spec:
        return describe(pair)._replace(code_dtype=str(pair.indices.dtype))

    one = sparse("one", components={"fast_unpack": unpack})._replace(describe=coded)
    two = sparse("two", components={"code_dtypes": {"int64"}})._replace(describe=coded)
    loaded.register(one, two)
    for _ in range(3):
        assert loaded.convert(pair(), to="two").kind == "two"
    with pytest.raises(interop.errors.RefusedError):
        loaded.convert(pair(index="i4"), to="two")


def test_pointers_are_narrowed_only_where_they_fit(loaded: Interop) -> None:
    """Pointers count the stored elements, which may be more than any axis is long."""
    roles = {**ROLES, "pointers": "index_dtype"}
    many = np.broadcast_to(np.float32(1), (2**31 + 1,))  # without the memory of so many

    def rows(pair: Pair) -> Parts:
        pointers = np.array([0, len(pair.values)])
        return Parts(pair.shape, {**unpack(pair).arrays, "pointers": pointers})

    first = {"roles": roles, "unpack": rows}
    second = {**first, "pack": lambda parts: parts}
    loaded.register(
        sparse("one", components=first), sparse("two", components=second, index_dtypes={"int32"})
    )
    few = loaded.plan(pair(), to="two")
    assert few.steps[0].call(pair()).arrays["pointers"].dtype == np.int32
    stored = Pair("one", (4,), many, np.array([1, 3]))
    with pytest.raises(interop.errors.RefusedError):
        loaded.convert(stored, to="two")


def test_roles_that_are_always_copied_are_effects(loaded: Interop) -> None:
    """A role that packing has to copy makes the transfer a copy, and the other roles stay shared."""
    loaded.register(
        sparse("one"),
        sparse("two", components={"pack_copies": {"values"}, "pack": _packed_anew}),
        sparse("three", components={"pack_copies": {"values", "indices"}}),
    )
    x = pair()
    route = loaded.plan(x, to="two")
    assert (route.effects, route.aliases, route.zero_copy) == ({"copy"}, True, False)
    y = loaded.convert(x, to="two")
    assert y.indices is x.indices
    assert not np.shares_memory(y.values, x.values)
    assert loaded.plan(x, to="three").aliases is False
    with pytest.raises(interop.errors.RefusedError):
        loaded.convert(x, to="two", copy=False)


@pytest.mark.parametrize(
    ("copied", "shares"), [((), True), ({"values"}, True), ({"values", "indices"}, False)]
)
def test_a_declared_step_shares_no_role_that_its_source_makes_when_it_is_unpacked(
    loaded: Interop, copied: Any, shares: bool
) -> None:
    """A step that copies in part shares only what both sides share, which may be nothing."""
    loaded.register(sparse("one", components={"unpack_copies": copied}), sparse("two"))
    facts: dict[str, Any] = {"effects": {"copy"}, "shares": True, "cost": Cost(1e-12)}
    loaded.register(Conversion("one", "two", lambda x: x, **facts))
    assert loaded.plan(describe(pair()), to="two").aliases is shares


def _packed_anew(parts: Parts) -> Pair:
    return Pair("two", parts.shape, parts.arrays["values"].copy(), parts.arrays["indices"])


def test_the_fast_path_of_components_is_that_of_their_arrays(loaded: Interop) -> None:
    """A plain composite value takes the fast path of its arrays; any other takes its route."""
    calls: list[Pair] = []

    def fast_unpack(pair: Pair) -> Any:
        calls.append(pair)
        plain = pair.values.flags.writeable
        return unpack(pair) if plain and pair.kind == "one" else NotImplemented

    loaded.register(sparse("one", components={"fast_unpack": fast_unpack}), sparse("two"))
    x, locked = pair(), pair()
    locked.values.flags.writeable = False
    loaded.convert(x, to="two")
    assert calls == []
    for value in (x, locked):
        y = loaded.convert(value, to="two")
        assert (y.kind, y.values is value.values, y.indices is value.indices) == ("two", True, True)
    assert calls == [x, locked]


def test_no_step_writes_less_than_nothing(loaded: Interop) -> None:
    """A spec that does not say how many elements are stored has no step of negative bytes."""
    loaded.register(sparse("pair"), sparse("other", dtypes={"float32"}))
    spec = Spec("pair", "float64", "cpu", (1000,), frozenset(), 80, index_dtype="int64")
    plan = loaded.plan(spec, to="other", allow="narrow")
    assert all(step.after.nbytes >= 0 for step in plan.steps)
