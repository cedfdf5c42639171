"""The network: formats and the conversions between them, as data to be drawn."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from interop._api.inspection import Inspection
from interop._model.effect import LOSSES
from interop._model.format import Format

if TYPE_CHECKING:
    from interop._api.interop import Interop
    from interop._planning.conversion import ResolvedConversion
    from interop._registry.declared import DeclaredFormat

#: The kinds of conversions by their effect on the numbers, the mildest first.
KINDS = ("shares", "copies", "loses")
#: The group of the formats that belong to no framework.
_PROTOCOLS = "protocols"


class Node(NamedTuple):
    """A format."""

    name: str
    group: str
    state: str
    layout: str
    devices: tuple[str, ...]
    dtypes: int
    distribution: str


class Arrow(NamedTuple):
    """All conversions from one format to another.

    Parameters
    ----------
    source, target : str
    kind : str
        One of :data:`KINDS`: the mildest among them.
    names : tuple of str
    """

    source: str
    target: str
    kind: str
    names: tuple[str, ...]


class Group(NamedTuple):
    """A framework, or the protocols that belong to none, with its formats."""

    name: str
    nodes: tuple[Node, ...]

    @property
    def is_missing(self) -> bool:
        """Whether the framework is not installed."""
        return all(node.state == "missing" for node in self.nodes)


class Network(NamedTuple):
    """Formats in groups, and the conversions between them."""

    groups: tuple[Group, ...]
    links: tuple[Arrow, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The formats of all groups."""
        return tuple(node for group in self.groups for node in group.nodes)

    def only(self, names: Collection[str]) -> Network:
        """Return the part with some frameworks or formats, and the links between these."""
        groups = tuple(
            Group(group.name, tuple(n for n in group.nodes if {group.name, n.name} & {*names}))
            for group in self.groups
        )
        shown = {node.name for group in groups for node in group.nodes}
        links = (link for link in self.links if {link.source, link.target} <= shown)
        return Network(tuple(group for group in groups if group.nodes), tuple(links))

    def by_frameworks(self) -> Network:
        """Return the network of frameworks: each is one node, and protocols are left out."""
        home = {node.name: node.group for node in self.nodes if node.group != _PROTOCOLS}
        kinds: dict[tuple[str, str], str] = {}
        for link in self.links:
            ends = home.get(link.source, ""), home.get(link.target, "")
            if all(ends) and ends[0] != ends[1]:
                kinds[ends] = min(link.kind, kinds.get(ends, link.kind), key=KINDS.index)
        groups = [group for group in self.groups if group.name != _PROTOCOLS]
        nodes = [group.nodes[0]._replace(name=group.name) for group in groups]
        return Network(
            tuple(Group(node.name, (node,)) for node in nodes),
            tuple(Arrow(*ends, kind, ()) for ends, kind in sorted(kinds.items())),
        )

    def as_dict(self) -> dict[str, object]:
        """Return it as what JSON can hold."""
        return {
            "formats": [node._asdict() for node in self.nodes],
            "links": [link._asdict() for link in self.links],
        }


def network(interop: Interop) -> Network:
    """Return the formats that are registered, and the links from each to the others."""
    nodes: dict[str, list[Node]] = {}
    declared_formats = sorted(interop.formats(), key=lambda d: (d.name.count("."), d.name))
    for declared in declared_formats:
        node = _node(declared)
        nodes.setdefault(node.group, []).append(node)
    groups = tuple(Group(name, tuple(nodes[name])) for name in sorted(nodes))
    formats = [declared.format for declared in declared_formats]
    return Network(groups, tuple(sorted(_links(interop, formats))))


def _node(declared: DeclaredFormat) -> Node:
    format_ = declared.format
    return Node(
        declared.name,
        _PROTOCOLS if format_.protocol else format_.framework,
        declared.state,
        format_.layout or ("dense" if format_.is_dense else "sparse"),
        format_.devices,
        len(format_.dtypes),
        str(declared.provenance),
    )


def _links(interop: Interop, formats: Iterable[Format]) -> Iterator[Arrow]:
    inspection = Inspection(interop)
    for source in formats:
        #: For each target, the names of the conversions to it, and their kinds.
        kinds: dict[str, dict[str, str]] = {}
        for conversion in inspection.conversions_from(source.name):
            label, kind = conversion.conversion.label, _kind(conversion)
            known = kinds.setdefault(conversion.target.name, {})
            known[label] = min(kind, known.get(label, kind), key=KINDS.index)
        for target in inspection.exchanges_with(source):
            kinds.setdefault(target.name, {})["by its components"] = "shares"
        kinds.pop(source.name, None)
        for name, known in kinds.items():
            yield Arrow(source.name, name, min(known.values(), key=KINDS.index), tuple(known))


def _kind(conversion: ResolvedConversion) -> str:
    if conversion.effects & LOSSES:
        return "loses"
    return "copies" if conversion.writes else "shares"
