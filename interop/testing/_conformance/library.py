"""A library: how to make its arrays, and its function that takes those of others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from inspect import ismodule
from operator import attrgetter
from types import ModuleType
from typing import Any, NamedTuple

from interop.kit.dlpack import checked_export

from .rules import expect

#: What a function is called that makes an array of one of NumPy's, the standard's name first.
_MAKERS = ("asarray", "array", "to_tensor", "constant", "convert_to_tensor", "from_numpy", "tensor")


class Library(NamedTuple):
    """A library that is looked at; it fits into a question to another process.

    Parameters
    ----------
    name : str
        The module that is imported.
    make : str
        ``"module:function"``, which makes an array of a NumPy array; "": found in the module.
    from_dlpack : str
        ``"module:function"``, which makes an array of a producer; "": found in the module.
    """

    name: str
    make: str = ""
    from_dlpack: str = ""

    def maker(self) -> Any:
        """Return what makes an array of the library.

        Raises
        ------
        AttributeError
            There is no such function.
        """
        if self.make:
            return _named(self.make)
        for namespace in (self._namespace(), import_module(self.name)):
            for name in _MAKERS:
                if callable(function := getattr(namespace, name, None)):
                    return function
        raise AttributeError(f"{self.name} has no {' or '.join(_MAKERS[:2])}: name one by make=")

    def consumer(self) -> Any:
        """Return the library's ``from_dlpack``.

        Raises
        ------
        AttributeError
            There is none.
        """
        if self.from_dlpack:
            return _named(self.from_dlpack)
        namespace = self._namespace()
        if namespace is None:
            raise AttributeError(f"{self.name} has no from_dlpack: name one by from_dlpack=")
        return namespace.from_dlpack

    def _namespace(self) -> ModuleType | None:
        """Return the module, or the first of its own modules, that has a ``from_dlpack``."""
        module = import_module(self.name)
        modules = [module, *_modules_in(module)]
        return next((m for m in modules if callable(getattr(m, "from_dlpack", None))), None)


def _modules_in(module: ModuleType) -> Iterator[ModuleType]:
    for name, value in sorted(vars(module).items()):
        own = ismodule(value) and value.__name__.startswith(f"{module.__name__}.")
        if own and not name.startswith("_"):
            yield value


def _named(name: str) -> Any:
    module, _, path = name.partition(":")
    return attrgetter(path)(import_module(module))


def numbers(value: Any) -> Any:
    """Return the numbers of an array in memory of its own, read by way of NumPy or of DLPack.

    Parameters
    ----------
    value : object
        An array of any library.

    Returns
    -------
    numpy.ndarray
    """
    import numpy as np

    readers = (getattr(value, "numpy", None), getattr(value, "to_numpy", None), lambda: value)
    for read in filter(None, readers):
        with suppress(TypeError, ValueError, RuntimeError, BufferError):
            array = np.array(read())
            if array.dtype != object:  # else NumPy could not read it, and made an element of it
                return array
    return np.array(contents(value))


def compare(array: Any, expected: Any) -> None:
    """Expect the shape and the numbers of another array, which are unlike in no dtype of both."""
    import numpy as np

    expect(array.shape == expected.shape, f"the shape is {array.shape}, not {expected.shape}")
    expected = expected.astype(array.dtype)
    same = np.array_equal(array.astype("complex128"), expected.astype("complex128"))
    expect(same, f"the numbers are {array.tolist()}, not {expected.tolist()}")


def contents(value: Any) -> Any:
    """Return a NumPy array over what a producer exports through DLPack.

    Raises
    ------
    interop.errors.HandOffError
        The producer refused, or the capsule does not describe usable memory.
    """
    export = checked_export(value)
    return memory(export.dtype, export.shape, export.strides, export.data)


def memory(
    dtype: str, shape: tuple[int, ...], strides: tuple[int, ...] | None, address: int
) -> Any:
    """Return a NumPy array over memory at an address; strides are in elements."""
    import ctypes

    import numpy as np

    kind = numpy_dtype(dtype)
    if 0 in shape:
        return np.empty(shape, kind)
    steps = strides if strides is not None else c_order(shape)
    reach = [(length - 1) * step for length, step in zip(shape, steps, strict=True)]
    low = sum(r for r in reach if r < 0)
    size = (sum(r for r in reach if r > 0) - low + 1) * kind.itemsize
    buffer = (ctypes.c_char * size).from_address(address + low * kind.itemsize)
    offset, step_bytes = -low * kind.itemsize, [step * kind.itemsize for step in steps]
    return np.ndarray(shape, kind, buffer, offset, step_bytes)


def c_order(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides of one C-ordered block, in elements."""
    steps, step = [], 1
    for length in reversed(shape):
        steps.append(step)
        step *= length
    return tuple(reversed(steps))


def numpy_dtype(name: str) -> Any:
    """Return NumPy's dtype of a name, or that of ml_dtypes."""
    import ml_dtypes
    import numpy as np

    return np.dtype(getattr(ml_dtypes, name, name))
