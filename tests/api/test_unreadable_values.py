"""Values whose own code raises: the error is interop's, with the path and the original as its cause."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

import interop
from interop.errors import DoesNotFitError, HandOffError
from tests.cases import together


class GoneError(Exception):
    """What a library raises when its file is closed; no other class of exceptions."""


def _raising(error: BaseException) -> Callable[..., NoReturn]:
    def fail(*args: object, **keywords: object) -> NoReturn:
        raise error

    return fail


def _value(**attributes: Any) -> Any:
    """Return a value of a class with some attributes."""
    return type("Value", (), attributes)()


def _chunks(fail: Callable[..., NoReturn]) -> Any:
    import dask.array

    return dask.array.ones(4).map_blocks(fail, dtype="f8", meta=np.empty(0))


#: Values that raise, made of a function that does.
_MAKERS: dict[str, Callable[[Any], Any]] = {
    "array": lambda fail: _value(__array__=fail),
    "stated": lambda fail: _value(__array__=fail, dtype=np.dtype("f8"), shape=(2,)),
    "dtype": lambda fail: _value(__array__=fail, dtype=property(fail)),
    "dlpack": lambda fail: _value(__dlpack__=fail, __dlpack_device__=lambda value: (1, 0)),
    "interface": lambda fail: _value(__array_interface__=property(fail)),
    "proxy": lambda fail: _value(__getattr__=fail),
    "arrow": lambda fail: _value(__arrow_c_array__=fail),
    "stream": lambda fail: _value(__arrow_c_stream__=fail),
    "chunks": _chunks,
}


def _made(name: str, error: BaseException) -> Any:
    return _MAKERS[name](_raising(error))


@together("name", _MAKERS)
@together("kind", [OSError, ValueError, GoneError, KeyError, ZeroDivisionError])
def test_errors_of_values_become_errors_that_name_the_leaf(name: str, kind: type) -> None:
    """It is a BufferError that names the leaf, whatever the value has raised."""
    for to in ("numpy", "torch"):
        original = kind("closed")
        with pytest.raises(HandOffError) as caught:
            interop.convert(_made(name, original), to=to)
        assert isinstance(caught.value.__cause__, kind)
        with pytest.raises(HandOffError) as caught:
            interop.convert_tree({"a": [_made(name, original)]}, to=to)
        assert (caught.value.where, type(caught.value.__cause__)) == ("a/0", kind)


def test_an_argument_that_raises_is_named() -> None:
    """Under accepts the error begins with the parameter, and the function is not called."""

    @interop.accepts("numpy")
    def added(x: Any, y: Any) -> Any:
        raise AssertionError("it is called")

    for name in ("array", "dtype", "dlpack", "interface"):
        with pytest.raises(HandOffError, match=r"^y/a: .*closed"):
            added(np.ones(2), {"a": _made(name, OSError("closed"))})


@together("name", _MAKERS)
def test_a_value_without_memory_to_show_itself_raises_a_memory_error(name: str) -> None:
    """The error is still a MemoryError, and it tells where in the tree the value stands."""
    with pytest.raises(MemoryError) as caught:
        interop.convert_tree({"a": [_made(name, MemoryError("full"))]}, to="numpy")
    notes = " ".join(getattr(caught.value, "__notes__", []))
    assert isinstance(caught.value, DoesNotFitError) or "raised at a/0 in the tree" in notes


@together("name", _MAKERS)
def test_an_interruption_is_no_error_of_a_value(name: str) -> None:
    """Ctrl-C while a value shows itself goes through as it is."""
    with pytest.raises(KeyboardInterrupt):
        interop.convert_tree([_made(name, KeyboardInterrupt())], to="numpy")


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
