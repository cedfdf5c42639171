"""Crowds: instances of `Interop` with any number of formats and conversions."""

from __future__ import annotations

from random import Random

from interop import Conversion, Cost, Format, Interop, Spec
from interop.plugin import make_spec
from interop.plugin.advanced import Advanced

__all__ = [
    "COUNTS",
    "EACH",
    "bundled",
    "bundled_spec",
    "crowd",
    "enlarge",
    "forget",
    "forget_graph",
    "kept_routes",
    "star",
]

#: Numbers of formats, and of conversions from each.
COUNTS, EACH = (10, 100, 1000), 10


def crowd(count: int, per_format: int = EACH) -> Interop:
    """Return an instance with `count` formats, and `per_format` conversions from each of them."""
    rng = Random(0)
    mine = Interop(plugins=False)
    names = [f"f{n}" for n in range(count)]
    mine.register(
        *(Format(name, dtypes={"float32"}, advanced=Advanced(hub=True)) for name in names),
        *(
            Conversion(name, rng.choice(names), print, cost=Cost(rng.random() * 1e-6), name=f"c{i}")
            for name in names
            for i in range(per_format)
        ),
    )
    return mine


def star(count: int) -> Interop:
    """Return an instance with the installed plugins and `count` formats around NumPy.

    Most plugins are like that: they convert to and from one format that others know.
    """
    mine = bundled()
    names = [f"f{n}" for n in range(count)]
    mine.register(
        *(Format(name, dtypes=frozenset({"float32"})) for name in names),
        *(
            Conversion("numpy", name, print, effects={"copy"}, name=f"into {name}")
            for name in names
        ),
        *(Conversion(name, "numpy", print, name=f"out of {name}") for name in names),
    )
    return mine


def bundled() -> Interop:
    """Return an instance that has loaded the installed plugins and built their graph."""
    mine = Interop()
    mine.plan(make_spec("numpy", "float32", shape=(2,)), to="numpy")
    return mine


def bundled_spec(source: str) -> Spec:
    """Return the spec of a large array of a bundled format; sparse arrays store 1 %."""
    spec = make_spec(source, "float32", shape=(4096, 4096))
    if "." not in source:
        return spec
    nnz = spec.size // 100
    index = "int64" if source.endswith("coo") else "int32"
    return spec._replace(nbytes=12 * nnz, nnz=nnz, index_dtype=index)


def forget(mine: Interop) -> None:
    """Make an instance forget its routes, but not its graph. Users cannot do that."""
    mine._converters.forget()


def forget_graph(mine: Interop) -> None:
    """Make an instance forget its routes and its graph, as every registration does."""
    forget(mine)
    mine._planner._graph = None


def enlarge(mine: Interop, count: int = 1000) -> Interop:
    """Register `count` more formats, with types and conversions that no value needs."""
    names = [f"more{n}" for n in range(count)]
    mine.register(
        *(
            Format(name, types=(f"{name}:Array",), describe=_describe, dtypes={"float32"})
            for name in names
        ),
        *(Conversion(name, "numpy", print, name=f"out of {name}") for name in names),
        *(Conversion("numpy", name, print, name=f"into {name}") for name in names),
    )
    return mine


def _describe(value: object) -> Spec:
    raise NotImplementedError  # there are no values of these types


def kept_routes(mine: Interop) -> int:
    """Return how many routes an instance has in its cache."""
    return sum(len(table.plans) for table in mine._converters._by_request.values())
