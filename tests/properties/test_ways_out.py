"""Ways out: whatever a format holds becomes an array of NumPy's or torch's, and numbers of Python's."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import interop
from interop.errors import RefusedError
from interop.testing._sample import NoSample, Recipe, sample
from tests.properties.readers import DECLARED, FORMATS

tf = pytest.importorskip("tensorflow", reason="TensorFlow is in the group `test-all`")
pytestmark = pytest.mark.slow

#: What says that there is no such value: torchao and TensorFlow have errors of their own for that.
_NO_VALUE = (NoSample, AssertionError, tf.errors.InvalidArgumentError, tf.errors.NotFoundError)


def _values(name: str) -> Iterator[tuple[str, str, Any]]:
    """Yield a value of every dtype with every trait of which one can be made."""
    format_ = DECLARED[name]
    for dtype in sorted(format_.dtypes):
        for trait in ("", *sorted(format_.samples.variants)):
            for shape in ((4, 4), (6,), (2, 2, 2), ()):
                recipe = Recipe(name, dtype, shape, frozenset({trait} - {""}), density=0.5)
                try:
                    value = sample(interop.default, recipe)
                except _NO_VALUE:
                    continue
                yield dtype, trait, value
                break


# A sample of a tensor over several processes needs several processes.
@pytest.mark.parametrize("name", sorted({*FORMATS} - {"torch.codes", "torch.dtensor"}))
def test_whatever_a_format_holds_has_a_way_out(name: str) -> None:
    """Every dtype, with every trait that can be made, unless there are no data at all."""
    tried = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what frameworks think of such dtypes
        for dtype, trait, value in _values(name):
            tried += 1
            for to in ("numpy", "torch", "python"):
                try:
                    interop.plan(value, to=to, allow={"drop_mask", "narrow", "pad"})
                except RefusedError:
                    # Rows of several lengths are padded for the common dtypes alone.
                    assert trait in {"meta", "nested"}, (dtype, trait, to)
    assert tried
