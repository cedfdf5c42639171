"""Claims: whom the registry hears where two distributions declare something in one place."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import permutations

import pytest

from interop import Conversion, Cost, DtypeNames, Format, Interop
from interop._registry.claims import Claim, overriding, settled
from interop._registry.declared import OWN, Provenance
from interop._registry.registry import Registry
from interop.errors import ConflictError
from interop.plugin import Autodiff, Declaration
from tests.toys import Box, copy, labels, toy, view

OURS = Provenance("numpy", OWN, "1")
AAA, ZZZ = Provenance("p", "aaa", "1"), Provenance("q", "zzz", "1")


def _are_heard(
    claims: Iterable[tuple[Provenance, Declaration]], *wanted: tuple[str, Declaration]
) -> bool:
    """Tell whether some claims alone are heard, in whatever order plugins are loaded."""
    for order in permutations(Claim(declaration, origin) for origin, declaration in claims):
        heard = [(claim.distribution, claim.declaration) for claim in settled(order)[0]]
        if len(heard) != len(wanted) or not all(pair in heard for pair in wanted):
            return False
    return True


def _disputes(*claims: tuple[Provenance, Declaration]) -> list[str]:
    return [str(d) for d in settled(Claim(item, origin) for origin, item in claims)[1]]


@pytest.mark.parametrize("rival", [AAA, ZZZ])
@pytest.mark.parametrize(
    "other",
    [
        view("a", "b", name="another"),
        view("a", "b", dtypes={"float32"}),
        copy("a", "b"),
        view("a", "b", takes={"grad"}),
    ],
)
def test_who_declares_a_format_is_heard_about_it(rival: Provenance, other: Conversion) -> None:
    """A bystander's conversion of the same values is left out, and both distributions are named."""
    owner = Provenance("own", "mmm", "2")
    own = view("a", "b")
    claims = (owner, Format("a")), (owner, own), (rival, other)
    assert _are_heard(claims, ("mmm", Format("a")), ("mmm", own))
    (dispute,) = _disputes(*claims)
    assert "the conversion a → b is declared by mmm 2" in dispute
    assert f"by {rival}" in dispute
    assert "larger priority" in dispute


@pytest.mark.parametrize(
    "other",
    [
        view("b", "a"),
        view("a", "c"),
        view("a", "b", dtypes={"int64"}),
        view("a", "b", devices={"cuda"}),
        view("a", "b", requires={"entangled"}),
        view("a", "b", ndims={3}),
    ],
)
def test_what_nobody_converts_may_be_added(other: Conversion) -> None:
    """Another pair, or values that no conversion of the pair takes, are free."""
    own = view("a", "b", dtypes={"float32"}, ndims={1, 2})
    claims = (OURS, own), (AAA, other)
    assert _are_heard(claims, (OWN, own), ("aaa", other))
    assert _disputes(*claims) == []


def test_within_one_distribution_conversions_of_a_pair_compete() -> None:
    """What one distribution declares is not in dispute with itself."""
    conversions = view("a", "b"), copy("a", "b"), view("a", "b", name="third")
    claims = [(AAA, conversion) for conversion in conversions]
    assert _are_heard(claims, *(("aaa", conversion) for conversion in conversions))


def test_a_stated_priority_replaces_what_it_covers() -> None:
    """A conversion that takes all that another takes is heard alone; a narrower one, beside it."""
    own = view("a", "b")
    whole, narrow = (
        copy("a", "b", priority=1),
        view("a", "b", priority=1, dtypes={"float32"}, name="narrow"),
    )
    assert _are_heard([(OURS, own), (AAA, whole)], ("aaa", whole))
    assert _are_heard([(OURS, own), (AAA, narrow)], (OWN, own), ("aaa", narrow))
    assert _disputes((OURS, own), (AAA, whole)) == []
    claims = [Claim(narrow, AAA), Claim(own, OURS)]
    assert list(overriding(claims)) == ["the conversion a → b (narrow), with priority 1"]


def test_a_priority_below_zero_is_none() -> None:
    """Nobody gets around a dispute by declaring less than the rest."""
    own, lesser = view("a", "b"), view("a", "b", priority=-1, name="lesser")
    assert _are_heard([(OURS, own), (AAA, lesser)], (OWN, own))


@pytest.mark.parametrize(
    ("own", "other", "place"),
    [
        (Format("x"), Format("x", devices=("cuda",)), "format 'x'"),
        (Format("x", types=("m:T",)), Format("y", types=("m:T",)), "the type m:T"),
        (Format("x", types=("m:T",)), Format("y", target_types=("m:T",)), "the type m:T"),
        (Format("x", protocol="__x__"), Format("y", protocol="__x__"), "the protocol __x__"),
        (Format("x.csr"), Format("x.coo"), "the framework 'x'"),
        (DtypeNames("m:D", str), DtypeNames("m:D", repr), "the names of m:D objects"),
        (Autodiff("x", print, print), Autodiff("x", id, id), "the differentiation of x"),
    ],
)
def test_everything_that_is_looked_up_has_one_owner(
    own: Declaration, other: Declaration, place: str
) -> None:
    """Names, types and protocols of a bundled plugin stay its own, whoever comes."""
    claims = (OURS, own), (AAA, other)
    assert _are_heard(claims, (OWN, own))
    assert all(place in dispute for dispute in _disputes(*claims))


def test_a_format_of_larger_priority_takes_a_type_over() -> None:
    """Its name, or its type alone, then stands for the newcomer."""
    own, named = Format("x", types=("m:T", "m:U")), Format("x", priority=1)
    assert _are_heard([(OURS, own), (AAA, named)], ("aaa", named))
    typed = Format("y", types=("m:T",), priority=1)
    rest = own._replace(types=("m:U",), target_types=("m:U",))
    assert _are_heard([(OURS, own), (AAA, typed)], (OWN, rest), ("aaa", typed))


def test_who_ships_a_type_is_heard_about_it() -> None:
    """Of two that claim one type, the distribution that installed it counts."""
    owner = Provenance("pluggy", "pluggy", "1")
    own, other = Format("p", types=("pluggy:T",)), Format("q", types=("pluggy:T",))
    assert _are_heard([(owner, own), (AAA, other)], ("pluggy", own))
    assert _are_heard([(owner, own), (ZZZ, other)], ("pluggy", own))


def test_registering_at_run_time_overrides_nobody_unless_it_says_so(empty: Interop) -> None:
    """A conversion in a plugin's place is refused, and replaces it with a larger priority."""
    registry: Registry = empty._registry
    registry.add([toy("a"), toy("b"), view("a", "b")], AAA)
    other = copy("a", "b", dtypes={"float32"})
    with pytest.raises(ConflictError, match=r"a → b.*aaa 1.*run time.*priority"):
        empty.register(other)
    assert len(empty.conversions()) == 1
    empty.register(copy("a", "b", priority=1))
    assert labels(empty.plan(Box("a", [1.0]), "b")) == ["copy_a_to_b"]
    assert registry.provenance["a"] == AAA


def test_a_bystander_is_no_way_unless_there_is_no_other(empty: Interop) -> None:
    """However cheap its steps are, a route of those concerned is taken if there is one."""
    registry, box = empty._registry, Box("a", [1.0])
    registry.add([toy("a"), toy("b"), toy("c"), copy("a", "b")], OURS)
    cheap = {"cost": Cost(0.0)}
    registry.add(
        [toy("evil", types=()), view("a", "evil", **cheap), view("evil", "b", **cheap)], AAA
    )
    registry.add([view("evil", "c", **cheap)], AAA)
    assert labels(empty.plan(box, "b")) == ["copy_a_to_b"]
    assert labels(empty.plan(box, "evil")) == ["a_to_evil"]
    assert labels(empty.plan(box, "c")) == ["a_to_evil", "evil_to_c"]
    assert labels(empty.plan(box, "b", copy=False)) == ["a_to_evil", "evil_to_b"]


def test_a_new_way_between_others_has_to_be_stated(empty: Interop) -> None:
    """A conversion of a pair that has a longer route replaces that with a priority alone."""
    registry, box = empty._registry, Box("a", [1.0])
    registry.add([toy("a"), toy("b"), toy("c"), view("a", "b"), view("b", "c")], OURS)
    registry.add([view("a", "c", name="shorter")], AAA)
    assert labels(empty.plan(box, "c")) == ["a_to_b", "b_to_c"]
    registry.add([view("a", "c", name="stated", priority=1)], ZZZ)
    assert labels(empty.plan(box, "c")) == ["stated"]
