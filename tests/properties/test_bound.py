"""The lower bound saves the search work, and changes no route."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from interop import Format, Interop, Spec
from interop._model.dtype import itemsize
from interop._model.spec import representative
from interop._planning.ranking import Rank
from interop._request.keywords import Keywords, checked
from interop.plugin import make_spec
from tests.properties.effort import SEED, count

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


def _route(spec: Spec, to: str, keywords: dict[str, Any], instance: Interop) -> object:
    """Return the steps of the preferred route, planned anew; None if all are refused.

    The planner itself is asked: to explain a refusal takes far longer than to find that there is
    no route.
    """
    instance._cache.clear()
    table = instance._requests.table(checked(Keywords(to, **keywords)))
    route = instance._planner.route(representative(spec), table.request)
    return route and [(s.label, s.after, s.effects, s.seconds) for s in route[1]]


def test_the_bound_changes_no_route(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the bound, the search finds the same routes between all bundled formats."""
    instance = Interop()
    routes = 0

    for spec, to, keywords in _cases(instance, count(400)):
        led = _route(spec, to, keywords, instance)
        with monkeypatch.context() as patch:
            patch.setattr(Rank, "bounded", lambda rank, *_: rank)
            # Where all routes are refused, the search for the nearest would take too long without it.
            plain = None if led is None else _route(spec, to, keywords, instance)
        assert led == plain, f"{spec} → {to}, {keywords}"
        routes += led is not None
    assert routes > count(400) / 10
