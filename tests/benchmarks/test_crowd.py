"""Crowds: large instances to measure how planning scales."""

from __future__ import annotations

import numpy as np

import interop
import interop.plugin
from benchmarks import crowd


def test_the_cache_of_plans_does_not_grow_with_the_shapes(loaded: interop.Interop) -> None:
    """After thousands of distinct shapes the cache holds one plan for each class of sizes."""
    base = np.zeros(40_000, "float32")
    counts = []
    for most in (50, 200):
        for rows in range(1, most):
            for columns in (1, 7, 100, 200):
                view = base[: rows * columns].reshape(rows, columns)
                result = loaded.convert(view, to="numpy", dtype="float64")
                assert result.shape == view.shape
        counts.append(crowd.kept_routes(loaded))
    # Sizes from 4 B to 39 kB are 8 powers of 4, and up to 159 kB they are 9.
    assert counts == [8, 9]


def test_a_crowd_is_as_large_as_requested() -> None:
    """A crowd has so many formats and so many conversions from each, and can be planned over."""
    instance = crowd.crowd(10)
    assert len(instance.formats()) == 10
    assert len(instance.conversions()) == 100
    spec = interop.plugin.make_spec("f0", "float32", shape=(4,))
    assert instance.plan(spec, to="f1").result.format == "f1"
    crowd.forget(instance)
    assert crowd.kept_routes(instance) == 0


def test_a_graph_that_is_forgotten_is_built_anew() -> None:
    """After `forget_graph` the next plan resolves all conversions again, and finds the same."""
    instance = crowd.bundled()
    spec = crowd.bundled_spec("torch.sparse_csr")._replace(device="cuda:0")
    labels = [step.label for step in instance.plan(spec, to="scipy.csr").steps]
    before = instance._planner.graph.conversions("numpy")
    crowd.forget_graph(instance)
    assert crowd.kept_routes(instance) == 0
    assert [step.label for step in instance.plan(spec, to="scipy.csr").steps] == labels
    assert instance._planner.graph.conversions("numpy") is not before


def test_a_star_has_numpy_in_its_middle() -> None:
    """Every format of a star converts to and from NumPy, and to nothing else."""
    instance = crowd.star(10)
    spec = crowd.bundled_spec("torch")
    steps = instance.plan(spec, to="f9").steps
    assert [step.after.format for step in steps] == ["numpy", "f9"]
    graph = instance._planner.graph
    ends = {(way.source.name, way.target.name) for way in graph.conversions("f3")}
    assert ends == {("f3", "numpy")}


def test_an_instance_is_enlarged() -> None:
    """The formats more are in the graph, beside NumPy, and no value is taken for one of theirs."""
    instance = crowd.enlarge(crowd.bundled(), 10)
    assert {"more0", "more9"} <= {format_.name for format_ in instance.formats()}
    assert instance.convert(np.zeros(2), to="torch").tolist() == [0, 0]
    targets = {item.target.name for item in instance._planner.graph.conversions("numpy")}
    assert "more9" in targets
