"""The lower bound saves the search work, exceeds no route, and changes none."""

from __future__ import annotations

from collections.abc import Iterator
from operator import gt
from random import Random
from typing import Any, TypeAlias

import pytest

from interop import Format, Interop, Spec
from interop._model.dtype import itemsize
from interop._model.effect import LOSSES
from interop._model.spec import representative
from interop._planning.bounds import NOTHING, Least
from interop._planning.ranking import EACH
from interop._planning.step import Step
from interop._request.keywords import Keywords, checked
from interop.plugin import make_spec
from tests.inside import forget
from tests.properties.effort import SEED, count

Bounds: TypeAlias = dict[str, dict[str, Least]]

pytestmark = pytest.mark.slow


def _spec(rng: Random, format_: Format) -> Spec:
    """Return the spec of some value of a format."""
    device = rng.choice(
        [d for d in format_.devices if d in ("cpu", "cuda")] or [format_.devices[0]]
    )
    dtype = rng.choice(sorted(format_.dtypes))
    traits = rng.sample(sorted(format_.carries | {"noncontiguous"}), rng.choice((0, 0, 1)))
    shape = rng.choice(((3, 4), (90, 120), (4096, 4096)))
    spec = make_spec(
        format_.name,
        dtype,
        device="cpu" if device == "cpu" else f"{device}:0",
        shape=shape,
        traits=frozenset(traits),
    )
    if format_.wrapper is not None:
        return spec._replace(wrapped="numpy" if device == "cpu" else "cupy")
    if format_.layout == "affine":
        return spec._replace(code_dtype="uint8", nbytes=spec.size)
    if format_.index_dtypes:
        index, nnz = rng.choice(sorted(format_.index_dtypes)), max(1, spec.size // 100)
        nbytes = nnz * (itemsize(dtype) + 2 * itemsize(index))
        return spec._replace(nnz=nnz, index_dtype=index, nbytes=nbytes)
    return spec


def _cases(instance: Interop, number: int) -> Iterator[tuple[Spec, str, dict[str, Any]]]:
    """Yield values and requests, drawn at random from all that is registered."""
    formats = {declared.name: declared.format for declared in instance.formats()}
    names = sorted(formats)
    for seed in range(SEED, SEED + number):
        rng = Random(seed)
        keywords: dict[str, Any] = {"copy": rng.choice((None, None, True, False))}
        if rng.random() < 0.4:
            keywords["dtype"] = rng.choice(("float64", "float32", "int32", "bfloat16"))
        if rng.random() < 0.3:
            keywords["device"] = rng.choice(("cpu", "cuda"))
        keywords["allow"] = rng.sample(("narrow", "share_readonly"), rng.choice((0, 0, 1)))
        yield _spec(rng, formats[rng.choice(names)]), rng.choice(names), keywords


def _route(spec: Spec, to: str, keywords: dict[str, Any], instance: Interop) -> list[Step] | None:
    """Return the steps of the preferred route, planned anew; None if all are refused.

    The planner itself is asked: to explain a refusal takes far longer than to find that there is
    no route.
    """
    forget(instance)
    table = instance._converters.converter(checked(Keywords(to, **keywords)))
    route = instance._planner.route(representative(spec), table.request)
    return route and route[1]


def _told(steps: list[Step] | None) -> object:
    return steps and [(s.label, s.after, s.effects, s.seconds) for s in steps]


def _nothing(bounds: Bounds) -> Bounds:
    """Return bounds that say of every way that the rest may take nothing."""
    return {name: dict.fromkeys(onward, NOTHING) for name, onward in bounds.items()}


def _takes(steps: list[Step]) -> Least:
    """Return what some steps take together; whether they import anything is left out."""
    return (
        sum(len(step.effects & LOSSES) for step in steps),
        any(step.writes for step in steps),
        not all(step.aliases for step in steps),
        0,
        sum(step.seconds + EACH for step in steps),
    )


def _exceeding(steps: list[Step], bounds: Bounds) -> Iterator[str]:
    """Yield the places of a route where a bound exceeds what the rest of it takes."""
    for place, step in enumerate(steps):
        least = bounds[step.before.format].get(step.after.format)
        if step.before.format != step.after.format and least is not None:
            losses, copied, unshared, _, seconds = least
            takes = _takes(steps[place:])
            if any(map(gt, (losses, copied, unshared, 0, seconds), takes)):
                yield f"{step.label}: {least} exceeds {takes}"


@pytest.fixture(scope="module")
def instance() -> Interop:
    """An instance that has loaded all plugins, so that its graph stays the same."""
    instance = Interop()
    instance.formats()
    return instance


def test_the_bound_changes_no_route(monkeypatch: pytest.MonkeyPatch, instance: Interop) -> None:
    """Without the bound, the search finds the same routes between all bundled formats."""
    graph, routes = instance._planner.graph, 0
    rest = graph.rest

    for spec, to, keywords in _cases(instance, count(400)):
        led = _route(spec, to, keywords, instance)
        with monkeypatch.context() as patch:
            patch.setattr(graph, "rest", lambda *given, **named: _nothing(rest(*given, **named)))
            # Where all routes are refused, the search for the nearest would take too long without it.
            plain = None if led is None else _route(spec, to, keywords, instance)
        assert _told(led) == _told(plain), f"{spec} → {to}, {keywords}"
        routes += led is not None
    assert routes > count(400) / 10


def test_no_bound_exceeds_what_the_rest_of_a_route_takes(
    monkeypatch: pytest.MonkeyPatch, instance: Interop
) -> None:
    """Each number of the bound, by itself, is at most that of the route that is found."""
    graph, checked = instance._planner.graph, 0
    rest = graph.rest
    bounds: list[Bounds] = []

    def noted(*given: Any, **named: Any) -> Bounds:
        bounds.append(rest(*given, **named))
        return bounds[-1]

    monkeypatch.setattr(graph, "rest", noted)
    for spec, to, keywords in _cases(instance, count(400)):
        bounds.clear()
        steps = _route(spec, to, keywords, instance) or []
        pairs = [(step.before.format, step.after.format) for step in steps]
        # The bounds of the arrays of composite values come after those of the value.
        for least in bounds:
            if all(after in least.get(before, ()) for before, after in pairs):
                problems = [*_exceeding(steps, least)]
                assert not problems, f"{spec} → {to}, {keywords}: {problems}"
                checked += len(steps)
                break
    assert checked > count(400) / 10
