"""The network: formats and the conversions between them, as data to be drawn or looked through."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from interop._model.effect import LOSING
from interop._model.format import Format, common_axes
from interop._model.spec import Spec

from .notation import plain_shape, read_spec

if TYPE_CHECKING:
    from interop._api.interop import Interop

__all__ = ["KINDS", "Group", "Link", "Network", "Node", "network", "routes"]

Progress = Callable[[int, int, str], None]

#: What a conversion does to the numbers, the mildest first.
KINDS = ("shares", "copies", "loses")
#: The group of the formats that are no framework's.
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


class Link(NamedTuple):
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


class Network(NamedTuple):
    """Formats in groups, and the conversions between them."""

    groups: tuple[Group, ...]
    links: tuple[Link, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The formats of all groups."""
        return tuple(node for group in self.groups for node in group.nodes)

    def as_dict(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        return {
            "formats": [node._asdict() for node in self.nodes],
            "links": [link._asdict() for link in self.links],
        }


def network(face: Interop) -> Network:
    """Return the formats that are registered, and what leads from each to the others."""
    declared = face.formats()
    nodes: dict[str, list[Node]] = {}
    for one in sorted(declared, key=lambda one: (one.name.count("."), one.name)):
        form = one.format
        group = _PROTOCOLS if form.protocol else form.framework
        layout = form.layout or ("dense" if form.is_dense else "sparse")
        nodes.setdefault(group, []).append(
            Node(
                one.name,
                group,
                one.state,
                layout,
                form.devices,
                len(form.dtypes),
                str(one.provenance),
            )
        )
    groups = tuple(Group(name, tuple(nodes[name])) for name in sorted(nodes))
    return Network(groups, tuple(_links(face, [one.format for one in declared])))


def _links(face: Interop, formats: list[Format]) -> Iterator[Link]:
    graph = face._planner.graph
    graph.refresh()
    for one in formats:
        found: dict[str, list[tuple[int, str]]] = {}
        for edge in graph.edges(one.name):
            if edge.target.name != one.name:
                kind = 2 if edge.effects & LOSING else 1 if edge.writes else 0
                found.setdefault(edge.target.name, []).append((kind, edge.conversion.label))
        for other in graph.alike(one):
            if other.name != one.name:
                found.setdefault(other.name, []).append((0, "by its components"))
        for target, some in sorted(found.items()):
            names = tuple(dict.fromkeys(name for _, name in some))
            yield Link(one.name, target, KINDS[min(some)[0]], names)


def routes(
    face: Interop, shown: Network, progress: Progress | None = None
) -> dict[str, dict[str, Any] | None]:
    """Return, for each ordered pair of formats, the route of a value of a usual size.

    Keys are ``"source target"``; None where no route is permitted.
    """
    formats = {one.name: one.format for one in face.formats()}
    names = [node.name for node in shown.nodes]
    found: dict[str, dict[str, Any] | None] = {}
    for done, source in enumerate(names):
        if progress:
            progress(done, len(names), source)
        specs: dict[int | None, Spec | None] = {None: None}
        for target in names:
            axes = common_axes(formats[source], formats[target])
            if axes not in specs:
                shape = "x".join(map(str, plain_shape(axes))) or "scalar"
                specs[axes] = read_spec(face, f"{source}:{shape}")
            if source != target:
                found[f"{source} {target}"] = _route(face, specs[axes], target)
    return found


def _route(face: Interop, spec: Spec | None, target: str) -> dict[str, Any] | None:
    """Return the route of one value, or None. To say why there is none would take far longer."""
    found = spec and face._planner.route(spec, face._requests.get(target))
    if not found:
        return None
    steps = found[1]
    return {
        "value": str(spec),
        "seconds": sum(step.seconds for step in steps),
        "zero_copy": not any(step.writes for step in steps),
        "steps": [
            {
                "step": step.label,
                "to": step.after.format,
                "effects": sorted(step.effects),
                "seconds": step.seconds,
                "written": step.after.nbytes if step.writes else 0,
                "by": str(step.provenance),
            }
            for step in steps
        ],
    }
