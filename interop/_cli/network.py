"""The network: formats and the conversions between them, as data to be drawn or looked through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypedDict

from interop._model.effect import LOSING
from interop._model.format import Format, common_axes
from interop._model.spec import Spec
from interop._planning.request import Request

from .notation import plain_shape, read_spec

if TYPE_CHECKING:
    from interop._api.interop import Interop
    from interop._planning.conversion import ResolvedConversion
    from interop._planning.step import Step
    from interop._registry.declared import DeclaredFormat

Progress = Callable[[int, int, str], None]

#: What a conversion does to the numbers, the mildest first.
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

    @property
    def is_missing(self) -> bool:
        """Whether the framework is not installed."""
        return all(node.state == "missing" for node in self.nodes)


class Network(NamedTuple):
    """Formats in groups, and the conversions between them."""

    groups: tuple[Group, ...]
    links: tuple[Link, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The formats of all groups."""
        return tuple(node for group in self.groups for node in group.nodes)

    def as_dict(self) -> dict[str, object]:
        """Return it as what JSON can hold."""
        return {
            "formats": [node._asdict() for node in self.nodes],
            "links": [link._asdict() for link in self.links],
        }


class StepFacts(TypedDict):
    """What is shown of one step of a route."""

    step: str
    to: str
    effects: list[str]
    seconds: float
    written: int
    by: str


class RouteFacts(TypedDict):
    """What is shown of a route."""

    value: str
    seconds: float
    zero_copy: bool
    steps: list[StepFacts]


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


def _links(interop: Interop, formats: Iterable[Format]) -> Iterator[Link]:
    graph = interop._planner.graph
    graph.refresh()
    for source in formats:
        #: For each target, the kinds of its conversions, as their places in `KINDS`, and the names.
        conversions: dict[str, list[tuple[int, str]]] = {}
        for conversion in graph.conversions(source.name):
            entry = _kind(conversion), conversion.conversion.label
            conversions.setdefault(conversion.target.name, []).append(entry)
        for target in graph.alike(source):
            conversions.setdefault(target.name, []).append((0, "by its components"))
        conversions.pop(source.name, None)
        for name, entries in conversions.items():
            labels = tuple(dict.fromkeys(label for _, label in entries))
            yield Link(source.name, name, KINDS[min(entries)[0]], labels)


def _kind(conversion: ResolvedConversion) -> int:
    """Return the place in `KINDS` of what a conversion does."""
    return 2 if conversion.effects & LOSING else 1 if conversion.writes else 0


def routes(
    interop: Interop, shown: Network, progress: Progress | None = None
) -> dict[str, RouteFacts | None]:
    """Return, for each ordered pair of formats, the route of a value of a usual size.

    Keys are ``"source target"``; a value is None where no route is permitted.
    """
    formats = {declared.name: declared.format for declared in interop.formats()}
    names = [node.name for node in shown.nodes]
    facts: dict[str, RouteFacts | None] = {}
    for count, source in enumerate(names):
        if progress:
            progress(count, len(names), source)
        specs: dict[int | None, Spec | None] = {None: None}
        for target in names:
            axes = common_axes(formats[source], formats[target])
            if axes not in specs:
                shape = "x".join(map(str, plain_shape(axes))) or "scalar"
                specs[axes] = read_spec(interop, f"{source}:{shape}")
            if source != target:
                facts[f"{source} {target}"] = _route(interop, specs[axes], target)
    return facts


def _route(interop: Interop, spec: Spec | None, target: str) -> RouteFacts | None:
    """Return the route of one value, or None. To say why there is none would take far longer."""
    route = None if spec is None else interop._planner.route(spec, Request((target,)))
    if route is None:
        return None
    _, steps = route
    return {
        "value": str(spec),
        "seconds": sum(step.seconds for step in steps),
        "zero_copy": not any(step.writes for step in steps),
        "steps": [_step(step) for step in steps],
    }


def _step(step: Step) -> StepFacts:
    return {
        "step": step.label,
        "to": step.after.format,
        "effects": sorted(step.effects),
        "seconds": step.seconds,
        "written": step.after.nbytes if step.writes else 0,
        "by": str(step.provenance),
    }
