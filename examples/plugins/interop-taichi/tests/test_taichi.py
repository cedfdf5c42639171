"""What users of the plugin rely on."""

from __future__ import annotations

import numpy as np
import pytest

import interop

ti = pytest.importorskip("taichi")


@pytest.fixture(scope="module", autouse=True)
def _taichi() -> None:
    ti.init(arch=ti.cpu, log_level=ti.ERROR)


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64"]
)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_there_and_back(dtype: str, shape: tuple[int, ...]) -> None:
    """An array becomes an ndarray of the same dtype and shape, and the same numbers come back."""
    numbers = np.arange(6).reshape(2, 3)[(0,) * (2 - len(shape))].astype(dtype)
    array = np.asarray(numbers)
    result = interop.convert(array, to="taichi")
    assert type(result) is ti.lang._ndarray.ScalarNdarray
    assert interop.spec(result) == interop.make_spec("taichi", dtype, shape=shape)
    back = interop.convert(result, to="numpy")
    assert back.dtype == dtype
    assert np.array_equal(back, array)
    result.fill(1)
    assert np.array_equal(array, numbers)
    assert np.array_equal(back, array)


def test_layouts_and_fields() -> None:
    """Strides do not show in a copy, and fields are sources, too."""
    array = np.arange(6.0).reshape(2, 3)
    for odd in (array.T, array[:, ::-1]):
        assert interop.convert(odd, to=ti).to_numpy().tolist() == odd.tolist()
    field = ti.field(ti.f32, shape=(2,))
    field.from_numpy(np.array([1, 2], "f4"))
    assert interop.convert(field, to="numpy").tolist() == [1, 2]


def test_what_taichi_lacks_is_refused() -> None:
    """Empty arrays and complex numbers have no ndarray; copy=False is not promised."""
    with pytest.raises(interop.errors.RefusedError, match="without elements"):
        interop.convert(np.zeros((0, 3)), to="taichi")
    with pytest.raises(interop.errors.RefusedError, match="does not hold complex64"):
        interop.convert(np.zeros(2, "c8"), to="taichi")
    with pytest.raises(interop.errors.RefusedError, match="copy=False"):
        interop.convert(np.zeros(2), to="taichi", copy=False)
