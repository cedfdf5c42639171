"""Precedence: which distribution owns what two of them declare, and what becomes of the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from itertools import permutations
from typing import Protocol, runtime_checkable

import numpy as np
import pytest

from interop import Conversion, Cost, DtypeNames, Format, Interop
from interop._model.provenance import OWN, Provenance
from interop._registry.precedence import declared_by, replacements, without_conflicts
from interop._registry.registry import Registry
from interop._request.naming import named
from interop.errors import ConflictError, UnknownValueError
from interop.plugin import Autodiff, Container, Copy, Declaration, Drop, make_spec
from tests.toys import Box, copy, labels, toy, view

OURS = Provenance("numpy", OWN, "1")
AAA, ZZZ = Provenance("p", "aaa", "1"), Provenance("q", "zzz", "1")

#: Who declares what.
Declared = tuple[Provenance, Declaration]


def _is_kept(declared: Iterable[Declared], *wanted: Declared) -> bool:
    """Tell whether some declarations alone are kept, in whatever order plugins are loaded."""
    for order in permutations(declared):
        entries = [entry for origin, item in order for entry in declared_by([item], origin)]
        kept = [(entry.provenance, entry.declaration) for entry in without_conflicts(entries)[0]]
        if len(kept) != len(wanted) or not all(pair in kept for pair in wanted):
            return False
    return True


def _conflicts(*declared: Declared) -> list[str]:
    entries = [entry for origin, item in declared for entry in declared_by([item], origin)]
    return [str(conflict) for conflict in without_conflicts(entries)[1]]


@pytest.mark.parametrize("rival", [AAA, ZZZ])
@pytest.mark.parametrize(
    "other",
    [
        view("a", "b", name="another"),
        view("a", "b", dtypes={"float32"}),
        view("a", "b", devices={"cuda"}),
        view("a", "b", ndims={3}),
        copy("a", "b"),
        view("a", "b", takes={"grad"}),
    ],
)
def test_a_bundled_conversion_keeps_its_place(rival: Provenance, other: Conversion) -> None:
    """Another of the same formats is left out, whatever it takes, and both are named."""
    declared = (OURS, own := view("a", "b")), (rival, other)
    assert _is_kept(declared, (OURS, own))
    (conflict,) = _conflicts(*declared)
    assert "the conversion a → b is declared by array-interop 1" in conflict
    assert f"by {rival}" in conflict
    assert "replaces={'array-interop'}" in conflict


def test_between_other_distributions_the_first_name_counts() -> None:
    """The order in which they are loaded does not."""
    own, other = view("a", "b"), view("a", "b")
    assert _is_kept([(ZZZ, own), (AAA, other)], (AAA, other))


@pytest.mark.parametrize(
    ("other", "place"),
    [
        (view("b", "a"), "b → a"),
        (view("a", "c"), "a → c"),
        (view("a", "b", requires={"entangled"}), "a → b of entangled values"),
        (copy("a", "b", changes={"dtype"}), "a → b to another dtype"),
        (copy("a", "b", changes={"dtype", "device"}), "a → b to another device and dtype"),
    ],
)
def test_steps_of_another_kind_have_places_of_their_own(other: Conversion, place: str) -> None:
    """Other formats, other changes and other required traits are free, and then have an owner."""
    own = view("a", "b")
    assert _is_kept([(OURS, own), (AAA, other)], (OURS, own), (AAA, other))
    assert _conflicts((OURS, own), (AAA, other)) == []
    again = other._replace(name="again")
    (conflict,) = _conflicts((OURS, own), (AAA, other), (ZZZ, again))
    assert conflict.startswith(f"the conversion {place} is declared by aaa 1")


def test_one_distribution_may_declare_several_conversions_in_a_place() -> None:
    """Declarations of one distribution compete by their costs."""
    conversions = view("a", "b"), copy("a", "b"), view("a", "b", name="third")
    declared = [(AAA, conversion) for conversion in conversions]
    assert _is_kept(declared, *declared)


def test_a_declaration_that_replaces_a_distribution_takes_the_place_whole() -> None:
    """A narrower declaration leaves nothing of those that it replaces, which is no conflict."""
    one, two = view("a", "b"), copy("a", "b")
    narrow = view("a", "b", replaces={"Array_Interop"}, dtypes={"float32"}, name="narrow")
    (kept,) = declared_by([narrow], AAA)
    declared = [(OURS, one), (OURS, two), (OURS, other := view("b", "a")), (AAA, narrow)]
    assert _is_kept(declared, (OURS, other), (AAA, kept.declaration))
    assert _conflicts(*declared) == []
    stated = list(replacements(declared_by([one, narrow], AAA)))
    assert stated == ["the conversion a → b (narrow) of Array_Interop"]


def test_only_the_named_distribution_is_replaced() -> None:
    """A third one keeps its place, and the conflict with it is told."""
    own, other = view("a", "b"), view("a", "b", replaces=frozenset({"zzz"}), name="other")
    assert _is_kept([(OURS, own), (AAA, other)], (OURS, own))
    (conflict,) = _conflicts((OURS, own), (AAA, other))
    assert conflict.startswith("the conversion a → b is declared by array-interop 1 (a_to_b) and ")


def test_two_that_replace_each_other_are_in_conflict() -> None:
    """The first name counts, as if neither had said so."""
    one = view("a", "b", replaces=frozenset({"zzz"}))
    two = view("a", "b", replaces=frozenset({"aaa"}))
    assert _is_kept([(ZZZ, two), (AAA, one)], (AAA, one))
    assert len(_conflicts((AAA, one), (ZZZ, two))) == 1


def test_a_format_that_is_left_out_replaces_nothing() -> None:
    """What it says that it replaces stays if it loses another of its places."""
    own, theirs = Format("x"), Format("y")
    wide = Format("y", aliases=("x",), replaces=frozenset({"zzz"}))
    assert _is_kept([(OURS, own), (ZZZ, theirs), (AAA, wide)], (OURS, own), (ZZZ, theirs))


@pytest.mark.parametrize(("owner", "other"), [(ZZZ, AAA), (AAA, ZZZ), (ZZZ, ZZZ)])
def test_the_steps_of_a_format_go_with_it(owner: Provenance, other: Provenance) -> None:
    """One that is replaced or overwritten leaves none of its unary steps, which is no conflict."""
    format_ = Format("x", dtypes={"float32"}, unary=(Drop("masked", list, name="own"),))
    again = format_._replace(unary=(Copy(list, name="other"),), replaces={"aaa", "zzz"})
    kept, conflicts = without_conflicts(
        [*declared_by([format_], owner), *declared_by([again], other)]
    )
    assert [getattr(entry.declaration, "name", "") for entry in kept] == ["x", "other"]
    assert {entry.provenance for entry in kept} == {other}
    assert conflicts == []


@pytest.mark.parametrize(
    ("own", "other", "place"),
    [
        (Format("x"), Format("x", devices=("cuda",)), "the name 'x'"),
        (Format("x.csr"), Format("x.coo"), "the name 'x'"),
        (Format("x", aliases=("y",)), Format("z", aliases=("y",)), "the name 'y'"),
        (Format("x", aliases=("y",)), Format("y"), "the name 'y'"),
        (Format("x"), Format("z", aliases=("x",)), "the name 'x'"),
        (Format("x", types=("m:T",)), Format("y", types=("m:T",)), "the object m:T"),
        (Format("x", types=("m:T",)), Format("y", target_types=("m:T",)), "the object m:T"),
        (Format("x", types=("m:T",)), Format("y", aliases=("m:T",)), "the object m:T"),
        (Format("x", aliases=("m:t",)), Format("y", aliases=("m:t",)), "the object m:t"),
        (Format("x", protocol="__x__"), Format("y", protocol="__x__"), "the protocol __x__"),
        (DtypeNames("m:D", str), DtypeNames("m:D", repr), "the names of m:D objects"),
        (Autodiff("x", print, print), Autodiff("x", id, id), "the differentiation of x"),
        (Container("m", print), Container("m", id), "the containers of m"),
    ],
)
def test_everything_that_is_looked_up_has_one_owner(
    own: Declaration, other: Declaration, place: str
) -> None:
    """Names, nicknames, objects and protocols of a bundled plugin stay its own, whoever comes."""
    declared = (OURS, own), (AAA, other)
    assert _is_kept(declared, (OURS, own))
    assert all(place in conflict for conflict in _conflicts(*declared))


def test_who_loses_one_place_loses_the_declaration() -> None:
    """A format that is replaced in one type leaves its other types to others."""
    own = Format("x", types=("m:T", "m:U"))
    typed = Format("y", types=("m:T",), replaces=frozenset({OWN}))
    third = Format("z", types=("m:U",))
    assert _is_kept([(OURS, own), (AAA, typed)], (AAA, typed))
    assert _is_kept([(OURS, own), (AAA, typed), (ZZZ, third)], (AAA, typed), (ZZZ, third))


def test_a_name_comes_before_a_nickname(empty: Interop) -> None:
    """Within one distribution, which may use a word for both, it means the format."""
    empty.register(toy("a", aliases=("b", "c")), toy("b", types=()), copy("a", "b"))
    box = Box("a", [1.0])
    assert empty.plan(box, "b").result.format == "b"
    assert empty.plan(box, "c").result.format == "a"


def test_registering_at_run_time_replaces_nobody_unless_it_says_so(empty: Interop) -> None:
    """A conversion in a plugin's place is refused, unless it says that it replaces that plugin's."""
    registry: Registry = empty._registry
    registry.register([toy("a"), toy("b"), view("a", "b")], ZZZ)
    other = copy("a", "b", dtypes={"float32"})
    with pytest.raises(ConflictError):
        empty.register(other)
    assert len(empty.conversions()) == 1
    empty.register(copy("a", "b", replaces={"zzz"}))
    assert labels(empty.plan(Box("a", [1.0]), "b")) == ["copy_a_to_b"]
    assert registry.provenance["a"] == ZZZ


# ---------------------------------------------------------------------- classes


class _Base:
    """What one distribution has a format for."""


class _Derived(_Base):
    """What another one wants."""


class _Further(_Derived):
    """What nobody has declared."""


def _format(name: str, *types: type) -> Format:
    return Format(
        name,
        types=tuple(f"{__name__}:{type_.__name__}" for type_ in types),
        describe=lambda value: make_spec(name, "float32", shape=(1,)),
        dtypes={"float32"},
    )


@pytest.mark.parametrize("owner", [OURS, AAA, ZZZ])
@pytest.mark.parametrize("owner_first", [True, False])
def test_the_nearest_class_counts_whoever_names_it(
    empty: Interop, owner: Provenance, owner_first: bool
) -> None:
    """A subclass of a class of others is its author's, and so are the classes below it."""
    pairs = [
        (_format("base", _Base), owner),
        (_format("derived", _Derived), Provenance("t", "mmm", "1")),
    ]
    for format_, origin in pairs if owner_first else pairs[::-1]:
        empty._registry.register([format_], origin)
    formats = [empty.spec(value).format for value in (_Base(), _Derived(), _Further())]
    assert formats == ["base", "derived", "derived"]


def test_a_subclass_can_be_registered_at_run_time(empty: Interop) -> None:
    """Its values were of the base's format until then."""
    empty._registry.register([_format("base", _Base)], AAA)
    assert empty.spec(_Derived()).format == "base"
    empty.register(_format("mine", _Derived))
    assert empty.spec(_Derived()).format == "mine"
    assert empty.spec(_Base()).format == "base"


def test_a_class_that_goes_by_two_paths_has_one_owner(empty: Interop) -> None:
    """It is the bundled plugin's, for values and for targets, whatever the order of loading."""
    own = declared_by([_format("own")._replace(types=("numpy:ndarray",))], OURS)
    path = f"{np.ndarray.__module__}._core.multiarray:ndarray"
    other = declared_by([_format("other")._replace(types=(path,))], AAA)
    for entries in (own + other, other + own):
        empty._registry.replace(without_conflicts(entries)[0])
        assert empty.spec(np.ones(2)).format == "own"
        assert named(empty._registry, np.ndarray) == ("own",)


class _Long(ABC):
    """What every class with a length counts as, and `_Row` derives from."""

    @abstractmethod
    def __len__(self) -> int: ...

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        return hasattr(other, "__len__")


@runtime_checkable
class _Sized(Protocol):
    def __len__(self) -> int: ...


class _Unanswering(type):
    def __subclasscheck__(cls, other: type) -> bool:
        raise ZeroDivisionError("who asks?")


class _Silent(metaclass=_Unanswering):
    """A class that fails where it is asked for its subclasses."""


class _Row(_Long):
    """What says that it is long."""

    def __len__(self) -> int:
        return 1


@pytest.mark.parametrize("base", [_Long, _Sized, _Silent])
def test_classes_that_do_not_derive_from_an_abstract_one_are_none_of_its_format(
    empty: Interop, base: type
) -> None:
    """No class is asked for its subclasses: who knows nothing of a plugin is not drawn into it."""
    empty.register(_format("long", base), toy("a"))
    assert empty.spec(Box("a", [1.0])).format == "a"
    with pytest.raises(UnknownValueError):
        empty.spec({})
    if base is _Long:
        assert empty.spec(_Row()).format == "long"


# ---------------------------------------------------------------------- routes


def test_a_bystander_is_no_way_unless_there_is_no_other(empty: Interop) -> None:
    """However cheap its steps are, a route of those concerned is taken if there is one."""
    registry, box = empty._registry, Box("a", [1.0])
    registry.register([toy("a"), toy("b"), toy("c"), copy("a", "b")], OURS)
    cheap = {"cost": Cost(0.0)}
    registry.register(
        [toy("evil", types=()), view("a", "evil", **cheap), view("evil", "b", **cheap)], AAA
    )
    registry.register([view("evil", "c", **cheap)], AAA)
    assert labels(empty.plan(box, "b")) == ["copy_a_to_b"]
    assert labels(empty.plan(box, "evil")) == ["a_to_evil"]
    assert labels(empty.plan(box, "c")) == ["a_to_evil", "evil_to_c"]
    assert labels(empty.plan(box, "b", copy=False)) == ["a_to_evil", "evil_to_b"]


def test_a_new_way_between_others_has_to_be_stated(empty: Interop) -> None:
    """A conversion of a pair that has a longer route is preferred if it says that it replaces it."""
    registry, box = empty._registry, Box("a", [1.0])
    registry.register([toy("a"), toy("b"), toy("c"), view("a", "b"), view("b", "c")], OURS)
    registry.register([view("a", "c", name="shorter")], AAA)
    assert labels(empty.plan(box, "c")) == ["a_to_b", "b_to_c"]
    registry.register([view("a", "c", name="stated", replaces={OWN, "aaa"})], ZZZ)
    assert labels(empty.plan(box, "c")) == ["stated"]
