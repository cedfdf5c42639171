"""What leads the search on may save it work, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from interop import Format, Interop, Spec, make_spec
from interop._model.dtype import itemsize
from interop._planning.search import Label, Search, State
from interop.errors import RefusedError
from tests.trust.effort import SEED, count


def _spec(rng: Random, one: Format) -> Spec:
    """Return the spec of some value of a format."""
    device = rng.choice([d for d in one.devices if d in ("cpu", "cuda")] or [one.devices[0]])
    dtype = rng.choice(sorted(one.dtypes))
    traits = rng.sample(sorted(one.carries | {"noncontiguous"}), rng.choice((0, 0, 1)))
    shape = rng.choice(((3, 4), (90, 120), (4096, 4096)))
    spec = make_spec(
        one.name,
        dtype,
        device="cpu" if device == "cpu" else f"{device}:0",
        shape=shape,
        traits=frozenset(traits),
    )
    if one.inside is not None:
        return spec._replace(inside="numpy" if device == "cpu" else "cupy")
    if one.layout == "affine":
        return spec._replace(code_dtype="uint8", nbytes=spec.size)
    if one.index_dtypes:
        index, nnz = rng.choice(sorted(one.index_dtypes)), max(1, spec.size // 100)
        nbytes = nnz * (itemsize(dtype) + 2 * itemsize(index))
        return spec._replace(nnz=nnz, index_dtype=index, nbytes=nbytes)
    return spec


def _cases(face: Interop, number: int) -> Iterator[tuple[Spec, str, dict[str, Any]]]:
    """Yield values and requests, drawn at random from all that is registered."""
    formats = sorted((one.format for one in face.formats()), key=lambda one: one.name)
    for seed in range(SEED, SEED + number):
        rng = Random(seed)
        words: dict[str, Any] = {"copy": rng.choice((None, None, True, False))}
        if rng.random() < 0.4:
            words["dtype"] = rng.choice(("float64", "float32", "int32", "bfloat16"))
        if rng.random() < 0.3:
            words["device"] = rng.choice(("cpu", "cuda"))
        words["allow"] = rng.sample(("narrow", "share_readonly"), rng.choice((0, 0, 1)))
        yield _spec(rng, rng.choice(formats)), rng.choice(formats).name, words


def _route(spec: Spec, to: str, words: dict[str, Any], face: Interop) -> object:
    """Return the steps of the preferred route, planned anew; None if all are refused."""
    face._requests.clear()
    face._planner.composites.forget()
    try:
        route = face.plan(spec, to=to, **words)
    except RefusedError:
        return None
    return [(step.label, step.after, step.effects, step.seconds) for step in route.steps]


def test_the_bound_changes_no_route(monkeypatch: pytest.MonkeyPatch) -> None:
    """Led on by nothing, the search finds the same routes between all that is bundled."""
    face = Interop()
    found = 0

    def unled(_: Search, state: State, label: Label, *, written: bool = False) -> Label:
        return label

    for spec, to, words in _cases(face, count(400)):
        led = _route(spec, to, words, face)
        with monkeypatch.context() as patch:
            patch.setattr(Search, "_bound", unled)
            # Of what is refused, that nothing leads there is soon told, but not which is nearest.
            plain = None if led is None else _route(spec, to, words, face)
        assert led == plain, f"{spec} → {to}, {words}"
        found += led is not None
    assert found > count(400) / 10
