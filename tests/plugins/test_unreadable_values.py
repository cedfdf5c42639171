"""Values whose own code raises: those that offer Arrow's memory, chunks, and what reads a closed file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import dask.array
import numpy as np
import pytest

import interop
from interop.errors import HandOffError
from tests.api.test_unreadable_values import check_errors
from tests.cases import together


def _chunks(fail: Callable[..., NoReturn]) -> Any:
    return dask.array.ones(4).map_blocks(fail, dtype="f8", meta=np.empty(0))


@together(
    "make",
    [
        lambda fail: type("Value", (), {"__arrow_c_array__": fail})(),
        lambda fail: type("Value", (), {"__arrow_c_stream__": fail})(),
        _chunks,
    ],
)
def test_errors_of_values_become_errors_that_name_the_leaf(make: Any) -> None:
    """Any error is interop's and has the path, one of memory is a MemoryError, and Ctrl-C passes."""
    check_errors(make, ("numpy", "torch"))


@pytest.mark.extra("h5py")
def test_a_dataset_of_a_closed_file_is_named(tmp_path: Path) -> None:
    """A dataset, and what reads from it in chunks, say that they cannot be read, and where they stand."""
    import h5py
    import xarray as xr

    with h5py.File(tmp_path / "numbers.h5", "w") as file:
        dataset = file["x"] = np.arange(4.0)
        dataset = file["x"]
        chunks = dask.array.from_array(dataset, chunks=2)
        assert interop.convert(dataset, to="torch").tolist() == [0, 1, 2, 3]
    for value in (dataset, chunks, xr.DataArray(chunks)):
        with pytest.raises(HandOffError, match=r"(?s)^x/0: .*pen what it reads from") as caught:
            interop.convert_tree({"x": [value]}, to="torch")
        assert isinstance(caught.value.__cause__, (ValueError, OSError, RuntimeError))
