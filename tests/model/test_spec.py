"""Specs and their classes."""

from __future__ import annotations

import re
from itertools import chain, product

import numpy as np
import pytest

from interop import Spec
from interop._model import spec as spec_module
from interop._model.effect import EFFECTS
from interop._model.spec import (
    MEMORY_TRAITS,
    TRAITS,
    has_one_order,
    representative,
    spec_class,
)
from interop.plugin import make_spec, size_class


@pytest.mark.parametrize(
    "meanings", [TRAITS.values(), [effect.meaning for effect in EFFECTS.values()]], ids=["t", "e"]
)
def test_meanings_of_traits_and_effects_are_clauses(meanings: list[str]) -> None:
    """Messages put it in brackets, or after a colon: it begins small and ends without a stop."""
    assert all(re.fullmatch(r"[a-z].*[a-z0-9)]", meaning) for meaning in meanings)
    assert len({*meanings}) == len(meanings)


def test_sets_of_traits_are_of_traits_that_there_are() -> None:
    """What a module calls a set of traits names none that has no meaning."""
    sets = [traits for traits in vars(spec_module).values() if isinstance(traits, frozenset)]
    assert MEMORY_TRAITS in sets
    assert frozenset().union(*sets) <= TRAITS.keys()


def test_a_spec_is_frozen_hashable_and_readable() -> None:
    """Equal specs are one key, and no spec can be changed."""
    spec = make_spec("a", "float32", shape=(2, 3), traits={"grad"})
    assert spec == make_spec("a", "float32", shape=(2, 3), traits={"grad"})
    assert len({spec, make_spec("a", "float32", shape=(2, 3), traits={"grad"})}) == 1
    assert spec.nbytes == 24
    assert str(spec) == "a float32 2x3 on cpu (grad)"
    assert eval(repr(spec)) == spec
    assert "nnz" not in repr(spec)
    with pytest.raises(AttributeError):
        spec.dtype = "float64"  # type: ignore[misc]


def test_shapes_of_one_order_are_those_that_numpy_takes_for_such() -> None:
    """Without elements, or with one axis longer than one, both orders are one; unknown axes are long."""
    for shape in chain.from_iterable(product(range(4), repeat=axes) for axes in range(4)):
        flags, spec = np.empty(shape).flags, make_spec("a", "float64", shape=shape)
        assert has_one_order(spec) is (flags.c_contiguous and flags.f_contiguous)
        unknown = spec._replace(traits=frozenset({"unknown_shape"}))
        assert has_one_order(unknown) is (len(shape) < 2)


@pytest.mark.parametrize(
    ("spec", "nbytes"),
    [
        (make_spec("a", "float32"), 4),
        (make_spec("a", "float32", shape=(0,)), 1),
        (make_spec("a", "float32", shape=(1000, 1000)), 2**22),
        (
            Spec("a", "float32", "cpu", (99, 99), frozenset(), 4000, nnz=300, index_dtype="int32"),
            2**8 * (4 + 2 * 4),
        ),
        (Spec("a", "float32", "cpu", (10, 10), frozenset(), 120, code_dtype="uint8"), 2**6),
    ],
)
def test_the_representative_is_of_the_same_kind(spec: Spec, nbytes: int) -> None:
    """The spec that stands for a class has its kind and rank, and depends on the class alone.

    Its bytes are a power of four, or those of as many stored elements and of their indices.
    """
    stand_in = representative(spec)
    assert stand_in.nbytes == nbytes
    assert stand_in._replace(shape=(), nbytes=0, nnz=None) == spec._replace(
        shape=(), nbytes=0, nnz=None
    )
    assert len(stand_in.shape) == len(spec.shape)
    assert (
        representative(stand_in._replace(shape=spec.shape, nbytes=spec.nbytes, nnz=spec.nnz))
        == stand_in
    )


def test_sizes_may_be_numpys_integers() -> None:
    """A plugin that describes with NumPy's integers describes what Python's integers do."""
    of_python = Spec("a", "float32", "cpu", (2**40, 2**40), frozenset(), 2**42, 2**40)
    of_numpy = of_python._replace(
        shape=tuple(map(np.int64, of_python.shape)), nbytes=np.int64(2**42), nnz=np.int64(2**40)
    )
    assert of_numpy.size == 2**80
    assert spec_class(of_numpy) == spec_class(of_python)
    assert representative(of_numpy) == representative(of_python)


def test_classes_are_few() -> None:
    """Sizes from nothing to a terabyte fall into twenty classes."""
    classes = {spec_class(make_spec("a", "float32", shape=(2**n,))) for n in range(39)}
    assert len(classes) == 20


def test_plans_are_kept_by_the_size_class_that_plugins_are_given() -> None:
    """Sizes of one class share their plans, and sizes of two classes do not."""
    specs = [make_spec("a", "uint8", shape=(nbytes,)) for nbytes in range(130)]
    pairs = {(size_class(spec.nbytes), spec_class(spec)) for spec in specs}
    assert [number for number, _ in sorted(pairs, key=str)] == [0, 1, 2, 3, 4]
