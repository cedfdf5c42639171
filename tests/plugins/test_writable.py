"""``copy="writable"``: a result that is the caller's to write, copied only if it must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import torch
from jax.experimental import sparse as jax_sparse

import interop
from interop.errors import RefusedError


def readonly() -> np.ndarray[Any, Any]:
    array = np.arange(3.0)
    array.flags.writeable = False
    return array


#: Values whose memory is not the caller's to write.
LOCKED: dict[str, Callable[[], Any]] = {
    "read-only": readonly,
    "expanded": lambda: torch.ones(1).expand(3),
    "jax": lambda: jnp.arange(3.0),
    "pyarrow": lambda: pa.array([0.0, 1.0, 2.0]),
    "polars": lambda: pl.Series([0.0, 1.0, 2.0]),
}


def overwrite(result: Any) -> None:
    result[:] = 7


@pytest.mark.parametrize("target", ["numpy", "torch"])
@pytest.mark.parametrize("value", LOCKED.values(), ids=LOCKED)
def test_locked_memory_is_copied(value: Callable[[], Any], target: str) -> None:
    """Of memory that is not the caller's to write, the result is a copy that may be written."""
    source = value()
    before = interop.convert(source, to="numpy", copy=True)
    result = interop.convert(source, to=target, copy="writable")
    assert interop.spec(result).traits == frozenset()
    overwrite(result)
    assert result.tolist() == [7] * 3
    assert np.array_equal(interop.convert(source, to="numpy"), before)


@pytest.mark.parametrize("target", ["numpy", "torch"])
def test_memory_that_may_be_written_is_shared(target: str) -> None:
    """Writable memory is shared, and a value that is what was asked for is returned as it is."""
    for source in (np.arange(3.0), torch.arange(3.0), np.arange(6.0)[::2], bytearray(b"abc")):
        result = interop.convert(source, to=target, copy="writable")
        assert interop.plan(source, to=target, copy="writable").aliases
        overwrite(result)
        assert interop.convert(source, to="numpy").tolist() == [7] * 3
    assert interop.convert(result, to=target, copy="writable") is result


def test_a_route_copies_once() -> None:
    """The copy that a result has to be is the only one on the route."""
    for target in ("numpy", "torch"):
        route = interop.plan(jnp.arange(3.0), to=target, copy="writable")
        assert sum("copy" in step.effects for step in route.steps) == 1


@pytest.mark.parametrize("target", ["scipy.coo", "torch.sparse_coo"])
def test_sparse_components_may_be_written(target: str) -> None:
    """All arrays of a sparse result may be written, and the source keeps its numbers."""
    source = jax_sparse.BCOO.fromdense(jnp.eye(3))
    result = interop.convert(source, to=target, copy="writable")
    values = result.data if scipy.sparse.issparse(result) else result.coalesce().values()
    values[:] = 7
    assert source.todense().tolist() == np.eye(3).tolist()


@pytest.mark.parametrize(
    "source",
    [
        "numpy",
        "pyarrow.tensor",
        "torch",
        pytest.param("awkward", marks=pytest.mark.extra("awkward")),
    ],
)
@pytest.mark.parametrize(
    "target",
    "pyarrow.list pyarrow.fixed_size_list pyarrow.fixed_shape_tensor polars".split(),
)
def test_lists_that_nobody_can_write_are_refused(source: str, target: str) -> None:
    """Rows of Arrow and polars are immutable, by whatever components they are made."""
    value = interop.convert(np.arange(6.0).reshape(3, 2), to=source)
    assert "immutable" in interop.spec(interop.convert(value, to=target, copy=True)).traits
    with pytest.raises(RefusedError):
        interop.convert(value, to=target, copy="writable")
