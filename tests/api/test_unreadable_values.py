"""Values whose own code raises: the error is interop's, with the path and the original as its cause."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import interop
from interop.errors import DoesNotFitError, HandOffError
from tests.cases import together


class GoneError(Exception):
    """What a library raises when its file is closed; no other class of exceptions."""


def _array(error: BaseException) -> Any:
    class Lazy:
        def __array__(self, *args: Any, **keywords: Any) -> NoReturn:
            raise error

    return Lazy()


def _stated(error: BaseException) -> Any:
    value = _array(error)
    type(value).dtype, type(value).shape = np.dtype("f8"), (2,)
    return value


def _dtype(error: BaseException) -> Any:
    value = _array(error)

    def dtype(self: Any) -> NoReturn:
        raise error

    type(value).dtype = property(dtype)
    return value


def _dlpack(error: BaseException) -> Any:
    class Producer:
        def __dlpack__(self, **keywords: Any) -> NoReturn:
            raise error

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    return Producer()


def _interface(error: BaseException) -> Any:
    class Interface:
        @property
        def __array_interface__(self) -> NoReturn:
            raise error

    return Interface()


def _proxy(error: BaseException) -> Any:
    class Proxy:
        def __getattr__(self, name: str) -> NoReturn:
            raise error

    return Proxy()


def _arrow(error: BaseException) -> Any:
    class Column:
        def __arrow_c_array__(self, *args: Any) -> NoReturn:
            raise error

    return Column()


def _stream(error: BaseException) -> Any:
    class Table:
        def __arrow_c_stream__(self, *args: Any) -> NoReturn:
            raise error

    return Table()


def _chunks(error: BaseException) -> Any:
    import dask.array

    def load(block: Any) -> NoReturn:
        raise error

    return dask.array.ones(4).map_blocks(load, dtype="f8", meta=np.empty(0))


_VALUES = [_array, _stated, _dtype, _dlpack, _interface, _proxy, _arrow, _stream, _chunks]


@together("make", _VALUES)
@together("kind", [OSError, ValueError, GoneError, KeyError, ZeroDivisionError])
def test_errors_of_values_become_errors_that_name_the_leaf(make: Any, kind: type) -> None:
    """It is a BufferError that names the leaf, whatever the value has raised."""
    for to in ("numpy", "torch"):
        original = kind("closed")
        with pytest.raises(HandOffError, match="closed") as caught:
            interop.convert(make(original), to=to)
        assert isinstance(caught.value.__cause__, kind)
        with pytest.raises(HandOffError, match=r"^a/0: .*closed") as caught:
            interop.convert_tree({"a": [make(original)]}, to=to)
        assert (caught.value.where, type(caught.value.__cause__)) == ("a/0", kind)


def test_an_argument_that_raises_is_named() -> None:
    """Under accepts the error begins with the parameter, and the function is not called."""

    @interop.accepts("numpy")
    def added(x: Any, y: Any) -> Any:
        raise AssertionError("it is called")

    for make in (_array, _dtype, _dlpack, _interface):
        with pytest.raises(HandOffError, match=r"^y/a: .*closed"):
            added(np.ones(2), {"a": make(OSError("closed"))})


@together("make", _VALUES)
def test_a_value_without_memory_to_show_itself_raises_a_memory_error(make: Any) -> None:
    """The error is still a MemoryError, and it tells where in the tree the value stands."""
    with pytest.raises(MemoryError) as caught:
        interop.convert_tree({"a": [make(MemoryError("full"))]}, to="numpy")
    notes = " ".join(getattr(caught.value, "__notes__", []))
    assert isinstance(caught.value, DoesNotFitError) or "raised at a/0 in the tree" in notes


@together("make", _VALUES)
def test_an_interruption_is_no_error_of_a_value(make: Any) -> None:
    """Ctrl-C while a value shows itself goes through as it is."""
    with pytest.raises(KeyboardInterrupt):
        interop.convert_tree([make(KeyboardInterrupt())], to="numpy")


@pytest.mark.extra("h5py")
def test_a_dataset_of_a_closed_file_is_named(tmp_path: Path) -> None:
    """A dataset, and what reads from it in chunks, say that they cannot be read, and where they stand."""
    import dask.array
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
