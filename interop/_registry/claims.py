"""Claims: which distribution wins when several claim one place.

A place is a pair of formats, the name of a format or of its framework, a type, a protocol. Within
one distribution declarations may share a place. Between two of them the larger `priority` wins, so
an author who overrides another has to state one. If nobody states one, the claim of better standing
is heard, and the other is left out: installing a distribution changes no result of others in
silence, whatever the order in which plugins are loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import PackageNotFoundError, files
from typing import NamedTuple

from interop._model.conversion import Conversion
from interop._model.extension import Autodiff, Declaration, DtypeNames
from interop._model.format import Format, package

from .declared import HERE, OWN, Provenance


class Claim(NamedTuple):
    """A declaration, with who makes it."""

    declaration: Declaration
    origin: Provenance

    @property
    def priority(self) -> int:
        """The priority that is stated; 0 if none is, and negative ones count as 0."""
        return max(0, getattr(self.declaration, "priority", 0))

    @property
    def distribution(self) -> str:
        """Whose it is."""
        return self.origin.distribution

    @property
    def format(self) -> Format | None:
        """The declaration, if it is a format."""
        return self.declaration if isinstance(self.declaration, Format) else None

    @property
    def conversion(self) -> Conversion | None:
        """The declaration, if it is a conversion."""
        return self.declaration if isinstance(self.declaration, Conversion) else None


class Dispute(NamedTuple):
    """Two distributions claim a place, and neither has stated a larger priority."""

    place: str
    heard: Claim
    left_out: Claim

    def __str__(self) -> str:
        return (
            f"{self.place} is declared by {_named(self.heard)} and, differently, by "
            f"{_named(self.left_out)} with the same priority {self.heard.priority}; that of "
            f"{self.heard.origin} counts. Give one a larger priority, or block one of them with "
            "INTEROP_DISABLE_PLUGINS."
        )


def _named(claim: Claim) -> str:
    """Return who makes a claim, and what its conversion is called."""
    label = getattr(claim.declaration, "label", "")
    return f"{claim.origin} ({label})" if label else str(claim.origin)


def settled(claims: Iterable[Claim]) -> tuple[list[Claim], list[Dispute]]:
    """Return the claims of all plugins that are heard, and the disputes about the others."""
    claims = list(claims)
    formats = [claim for claim in claims if claim.format]
    others = [claim for claim in claims if not claim.format]
    heard, disputes = _settled(formats, _ships)
    owners = {format_.name: claim.distribution for claim in heard if (format_ := claim.format)}

    def is_at_home(claim: Claim) -> tuple[bool, bool]:
        """Tell whether a distribution declares the source, and the target, of its conversion."""
        ends = _ends(claim.declaration)
        return owners.get(ends[0]) == claim.distribution, owners.get(ends[-1]) == claim.distribution

    heard_others, more = _settled(others, is_at_home)
    return heard + heard_others, disputes + more


def overriding(claims: Iterable[Claim]) -> Iterator[str]:
    """Yield what is claimed with a stated priority."""
    for claim in claims:
        if claim.priority:
            label = getattr(claim.declaration, "label", "")
            name = min(_places(claim)) + (f" ({label})" if label else "")
            yield f"{name}, with priority {claim.priority}"


def _settled(
    claims: list[Claim], is_at_home: Callable[[Claim], tuple[bool, ...]]
) -> tuple[list[Claim], list[Dispute]]:
    """Hear claims in the order of priority and standing."""
    groups = _by_place(claims).values()
    contested = [group for group in groups if len({claim.distribution for claim in group}) > 1]
    unique = {id(claim): claim for group in contested for claim in group}
    heard: dict[str, list[Claim]] = {}
    disputes: list[Dispute] = []
    remaining: dict[int, Claim | None] = {}  # of the claims that are not heard in full, by identity
    for claim in sorted(unique.values(), key=lambda claim: _standing(claim, is_at_home)):
        others = [(place, c) for place in sorted(_places(claim)) for c in heard.get(place, ())]
        if any(_are_alike(other, claim) for _, other in others):
            continue  # the same again is harmless
        rivals = [(place, other) for place, other in others if _are_rivals(other, claim)]
        equals = [rival for rival in rivals if rival[1].priority == claim.priority]
        if equals:
            disputes.append(Dispute(*equals[0], claim))
            remaining[id(claim)] = None
            continue
        for place in _places(claim):
            heard.setdefault(place, []).append(claim)
        for place, rival in rivals:
            remaining[id(claim)] = _remainder(remaining.get(id(claim), claim), place, rival)
    kept = (remaining.get(id(claim), claim) for claim in claims)
    return [claim for claim in kept if claim is not None], disputes


def _standing(claim: Claim, is_at_home: Callable[[Claim], tuple[bool, ...]]) -> tuple[object, ...]:
    """Return the place of a claim in the order in which they are heard."""
    away = (not is_home for is_home in is_at_home(claim))
    return -claim.priority, claim.distribution != OWN, *away, *claim.origin


def _remainder(claim: Claim | None, place: str, rival: Claim) -> Claim | None:
    """Return what is left of a claim that another overrides."""
    if claim is None:
        return None
    declaration = claim.declaration
    if isinstance(declaration, Conversion):
        return None if _covers(rival, declaration) else claim
    if not isinstance(declaration, Format) or place == _name_place(declaration):
        return None
    types, naming = (
        tuple(name for name in names if _type_place(name) != place)
        for names in (declaration.types, declaration.naming_types)
    )
    protocol = None if _protocol_place(declaration) == place else declaration.protocol
    return claim._replace(
        declaration=declaration._replace(types=types, target_types=naming, protocol=protocol)
    )


# ---------------------------------------------------------------------- places


def _by_place(claims: Iterable[Claim]) -> dict[str, list[Claim]]:
    groups: dict[str, list[Claim]] = {}
    for claim in claims:
        for place in _places(claim):
            groups.setdefault(place, []).append(claim)
    return groups


def _places(claim: Claim) -> set[str]:
    """Return the places that a declaration claims, as messages call them."""
    declaration = claim.declaration
    if isinstance(declaration, Conversion):
        return {f"the conversion {declaration.source} → {declaration.target}"}
    if isinstance(declaration, DtypeNames):
        return {f"the names of {declaration.type} objects"}
    if isinstance(declaration, Autodiff):
        return {f"the differentiation of {declaration.format}"}
    if not isinstance(declaration, Format):
        return set()
    claimed = {_name_place(declaration)}
    claimed |= {_type_place(name) for name in (*declaration.types, *declaration.naming_types)}
    if declaration.protocol:
        claimed.add(_protocol_place(declaration))
    if claim.origin != HERE:  # a program may add layouts to any framework
        claimed.add(f"the framework {declaration.framework!r}")
    return claimed


def _name_place(format_: Format) -> str:
    return f"format {format_.name!r}"


def _type_place(name: str) -> str:
    return f"the type {name}"


def _protocol_place(format_: Format) -> str:
    return f"the protocol {format_.protocol}"


def _ends(declaration: Declaration) -> tuple[str, ...]:
    """Return the names of the formats that a declaration is about."""
    if isinstance(declaration, Conversion):
        return declaration.source, declaration.target
    return (declaration.format,) if isinstance(declaration, Autodiff) else ("",)


def _ships(claim: Claim) -> tuple[bool]:
    """Tell whether a distribution has installed the package of a type that its format claims."""
    types = () if claim.format is None else claim.format.types
    packages = {package(name) for name in types}
    try:
        paths = files(claim.distribution) or ()
    except (PackageNotFoundError, ValueError):
        paths = ()
    return (any(path.parts[0].removesuffix(".py") in packages for path in paths),)


# ---------------------------------------------------------------------- rivals


def _are_rivals(claim: Claim, other: Claim) -> bool:
    """Tell whether two claims to a place exclude each other."""
    if claim.distribution == other.distribution:
        return False
    if claim.conversion is None or other.conversion is None:
        return True
    return _overlap(claim.conversion, other.conversion)


def _are_alike(claim: Claim, other: Claim) -> bool:
    """Tell whether two claims are to the same thing; measured costs set no two apart."""
    if claim.format is None or other.format is None:
        return claim.declaration == other.declaration
    return claim.format.timed(0.0) == other.format.timed(0.0)


def _limits(conversion: Conversion) -> tuple[object, ...]:
    """Return the sets that limit what a conversion takes; None does not."""
    return conversion.dtypes, conversion.devices, conversion.ndims, conversion.index_dtypes


def _overlap(conversion: Conversion, other: Conversion) -> bool:
    """Tell whether there may be a value that both take."""
    pairs = zip(_limits(conversion), _limits(other), strict=True)
    return (
        all(limit is None or another is None or limit & another for limit, another in pairs)  # type: ignore[operator]
        and conversion.requires <= other.takes | other.requires
        and other.requires <= conversion.takes | conversion.requires
    )


def _covers(rival: Claim, conversion: Conversion) -> bool:
    """Tell whether a rival takes whatever a conversion takes, and changes what it changes."""
    declaration = rival.declaration
    assert isinstance(declaration, Conversion)
    pairs = zip(_limits(declaration), _limits(conversion), strict=True)
    return (
        all(limit is None or (other is not None and limit >= other) for limit, other in pairs)  # type: ignore[operator]
        and declaration.requires <= conversion.requires
        and conversion.takes | conversion.requires <= declaration.takes | declaration.requires
        and (declaration.changes, declaration.result) == (conversion.changes, conversion.result)
    )
