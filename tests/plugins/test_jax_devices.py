"""JAX's arrays on a device, by a divided host that counts as a host and a TPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytestmark = pytest.mark.slow

START = """
    from tests.plugins.made_up_tpu import HOST, TPU
    import interop, jax, numpy as np
    from jax.experimental.sparse import BCOO, BCSR

    X = np.array([[0, 2, 0], [1, 0, 3]], "float32")

    def on(array, device=TPU):
        return jax.device_put(np.asarray(array), device)

    def padded(layout, device=TPU):
        data = on(np.array([2, 1, 3, 9], "float32"), device)
        if layout == "bcoo":
            coordinates = on(np.array([[0, 1], [1, 0], [1, 2], [2, 3]], "int32"), device)
            return BCOO((data, coordinates), shape=X.shape)
        indices = (on(np.array(a, "int32"), device) for a in ([1, 0, 2, 0], [0, 1, 3]))
        return BCSR((data, *indices), shape=X.shape)

    def numbers(value):
        value = interop.convert(value, "numpy")
        return np.asarray(value)
"""


def test_sparse_arrays_on_a_device_leave_it_without_their_padding(
    in_subprocess: Callable[[str], str],
) -> None:
    """Padded arrays on a device become sparse and dense arrays of others, with the same numbers."""
    in_subprocess(
        START
        + """
    targets = ("numpy", "jax", "scipy.coo", "scipy.csr", "torch", "torch.sparse_csr", "jax.bcsr")
    for layout in ("bcoo", "bcsr"):
        for to in (*targets, "jax.bcoo"):
            for dtype in (None, "float16" if to.startswith("jax") else "float64"):
                for copy in (None, True):
                    result = interop.convert(padded(layout), to, dtype=dtype, copy=copy)
                    spec = interop.spec(result)
                    assert spec.format == to and spec.dtype == (dtype or "float32"), (layout, to)
                    assert spec.device == ("tpu:0" if to.startswith("jax") else "cpu"), (layout, to)
                    assert (numbers(result) == X).all(), (layout, to)
    """
    )


def test_padding_that_a_step_has_dropped_is_not_assumed_again(
    in_subprocess: Callable[[str], str],
) -> None:
    """What interop makes on a device counts in full, so that the next conversion copies nothing."""
    in_subprocess(
        START
        + """
    made = [
        interop.convert(on(X), "jax.bcoo"),
        interop.convert(padded("bcoo"), "jax.bcsr"),
        interop.convert(interop.convert(padded("bcsr"), "jax.bcsr", copy=True), "jax.bcoo"),
        interop.convert(interop.convert(X, "jax.bcoo"), "jax.bcoo", device="tpu:0"),
        interop.convert(interop.convert(X, "scipy.csr"), "jax.bcsr", device="tpu:0"),
    ]
    for value in made:
        spec = interop.spec(value)
        assert spec.device == "tpu:0" and "padded" not in spec.traits, spec
        assert spec.nnz == 3 and (numbers(value) == X).all()
    # Others made these, over the same indices or over none that interop has seen.
    smaller = BCOO((made[0].data, made[0].indices), shape=(1, 3))
    for value in (padded("bcoo"), padded("bcsr"), smaller):
        assert "padded" in interop.spec(value).traits
    assert (numbers(smaller) == X[:1]).all()
    """
    )


def test_a_copy_without_padding_shares_nothing(in_subprocess: Callable[[str], str]) -> None:
    """An array that has no padding, although a device does not tell, is copied like any other."""
    in_subprocess(
        START
        + """
    full = interop.convert(on(X), "jax.bcsr")
    full = BCSR((full.data, full.indices + 0, full.indptr), shape=X.shape)
    assert "padded" in interop.spec(full).traits
    copied = interop.convert(full, "jax.bcsr", copy=True)
    for name in ("data", "indices", "indptr"):
        first, second = (getattr(a, name).unsafe_buffer_pointer() for a in (full, copied))
        assert first != second, name
    """
    )


def test_empty_sparse_arrays_stay_on_their_device(in_subprocess: Callable[[str], str]) -> None:
    """JAX would compute what has no elements on its default device; every part stays, for good."""
    in_subprocess(
        START
        + """
    for shape in ((0,), (3,), (0, 3), (3, 0), (2, 3)):
        value = on(np.zeros(shape, "float32"))
        with jax.default_device(TPU):
            movable = jax.numpy.ones(shape, "float32")
        for to in ("jax.bcoo", "jax.bcsr")[: len(shape)]:
            sparse = interop.convert(movable, to)
            for array in jax.tree.leaves([sparse, interop.convert(sparse, "jax")]):
                assert array.devices() == {TPU}, shape
        for to in ("jax.bcoo", "jax.bcsr")[: len(shape)]:
            sparse = interop.convert(value, to)
            results = [sparse, interop.convert(sparse, "jax"), interop.convert(sparse, to, copy=True)]
            for array in jax.tree.leaves(results):
                assert array.devices() == (array + 1).devices() == {TPU}, shape
    """
    )


def test_the_check_of_indices_is_kept_by_shape(in_subprocess: Callable[[str], str]) -> None:
    """Coordinates that lie inside one shape may be the padding of another."""
    in_subprocess(
        START
        + """
    whole = BCOO((on([1.0, 2.0], HOST), on([[0], [3]], HOST)), shape=(4,))
    assert "padded" not in interop.spec(whole).traits
    part = BCOO((whole.data, whole.indices), shape=(2,))
    assert "padded" in interop.spec(part).traits
    assert numbers(part).tolist() == [1, 0]
    assert interop.convert(part, "scipy.coo").nnz == 1
    """
    )
