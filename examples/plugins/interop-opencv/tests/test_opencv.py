"""What users of the plugin rely on."""

from __future__ import annotations

import numpy as np
import pytest

import interop

cv2 = pytest.importorskip("cv2")


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 3)])
def test_an_image_is_read(dtype: str, shape: tuple[int, ...]) -> None:
    """Dtype, shape and numbers are those of the image; the result is no memory of the image."""
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    image = cv2.UMat(array)
    spec = interop.spec(image)
    assert (spec.dtype, spec.shape) == (dtype, shape)
    for target in ("numpy", "torch"):
        result = interop.convert(image, to=target)
        assert result.tolist() == array.tolist()
        assert str(result.dtype).removeprefix("torch.") == dtype
        result[...] = 1
        assert image.get().tolist() == array.tolist()


def test_it_is_read_once() -> None:
    """Reading may mean to wait for a device and to copy from it."""
    import interop_opencv

    readings = []
    mine = interop.Interop()

    def read(value: object) -> object:
        readings.append(value)
        return interop_opencv.read(value)

    [format_] = interop_opencv.interop_declarations()
    wrapper = format_.wrapper._replace(unwrap=read)
    mine.register(format_._replace(wrapper=wrapper, name="again", replaces={"interop-opencv"}))
    image = cv2.UMat(np.ones((2, 3), "float32"))
    assert mine.convert(image, to="torch", dtype="float64").sum() == 6
    assert readings == [image]
    tree = mine.convert_tree({"images": [image, cv2.blur(image, (1, 1))]}, to="torch")
    assert [part.sum() for part in tree["images"]] == [6, 6]
    assert len(readings) == 3
