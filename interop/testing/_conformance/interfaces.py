"""Checks of what else an array offers: an array interface, a buffer, Arrow's capsules.

They are run on the arrays of a library whose DLPack is looked at; what an array does not offer is
not tried.
"""

from __future__ import annotations

import gc
from typing import Any

from .capsule import name_of
from .producer import DTYPES, LAYOUTS, Produced
from .rules import NotTriedError, expect, rule

INTERFACE = "NumPy, the array interface protocol, version 3"
BUFFER = "Python/C API, the buffer protocol"
ARROW = "Arrow PyCapsule interface"
_ONE = ("one block",)


class Offered(Produced):
    """An array of a library, whether or not it has ``__dlpack__``."""

    def _exports(self) -> None:
        """Take any array."""

    def interface(self) -> dict[str, Any]:
        """Return the array's ``__array_interface__``."""
        try:
            interface: dict[str, Any] = self.value.__array_interface__
        except AttributeError as error:
            raise NotTriedError("it has no __array_interface__") from error
        expect(isinstance(interface, dict), f"it is {type(interface).__name__}, not a dict")
        return interface

    def view(self) -> memoryview:
        """Return a view of the array's buffer."""
        try:
            return memoryview(self.value)
        except (TypeError, BufferError, ValueError) as error:
            raise NotTriedError(f"it has no buffer: {error}") from error


@rule(
    "interface", "Shape, typestr and numbers are those of the array", INTERFACE, *LAYOUTS, *DTYPES
)
def _array_interface(case: Offered) -> None:
    import numpy as np

    interface = case.interface()
    missing = {"shape", "typestr", "version"} - interface.keys()
    expect(not missing, f"it lacks {sorted(missing)}")
    typestr = interface["typestr"]
    if typestr[1] == "V" or typestr[1:] == "f1":  # NumPy's for what is of another package
        raise NotTriedError(f"the typestr {typestr!r} names no numbers")
    numbers = np.asarray(_Interface(interface, case.value))
    expect(numbers.shape == case.expected.shape, f"the shape is {numbers.shape}")
    same = np.array_equal(numbers, case.expected.astype(numbers.dtype))
    expect(same, f"the numbers are {numbers.tolist()}, not {case.expected.tolist()}")


class _Interface:
    """An object that has the interface of another, and keeps it."""

    def __init__(self, interface: dict[str, Any], owner: Any) -> None:
        self.__array_interface__, self._owner = interface, owner


@rule(
    "interface",
    "Shape, format and numbers of the buffer are those of the array",
    BUFFER,
    *LAYOUTS,
    *DTYPES,
)
def _buffer(case: Offered) -> None:
    import numpy as np

    view = case.view()
    expect(view.shape == case.expected.shape, f"the shape is {view.shape}")
    try:
        numbers = np.asarray(view)
    except (ValueError, NotImplementedError, RuntimeError) as error:
        raise NotTriedError(f"NumPy does not know the format {view.format!r}") from error
    same = np.array_equal(numbers, case.expected.astype(numbers.dtype))
    expect(same, f"the numbers are {numbers.tolist()}, not {case.expected.tolist()}")


@rule("interface", "The buffer's memory stays as it is while a view lives", BUFFER, *_ONE)
def _buffer_outlives_the_array(case: Offered) -> None:
    import numpy as np

    view = case.view()
    before = bytes(view)
    case.value = None
    gc.collect()
    others = [np.full(case.expected.shape, 77, case.expected.dtype) for _ in range(200)]
    expect(bytes(view) == before, "the bytes have changed")
    del others


@rule("interface", "Memory that may not be written has a read-only buffer", BUFFER, *_ONE)
def _read_only_buffer(case: Offered) -> None:
    import numpy as np

    array = np.array(case.expected)
    array.flags.writeable = False
    case.value = case.library.maker()(array)
    view = case.view()
    address = np.asarray(view).ctypes.data
    if address != array.ctypes.data:
        raise NotTriedError("the library copies an array that may not be written")
    expect(view.readonly, "the buffer of a read-only array may be written")


@rule(
    "interface",
    "An array answers with a schema and an array; unused, they are released",
    ARROW,
    *_ONE,
)
def _arrow(case: Offered) -> None:
    export = getattr(case.value, "__arrow_c_array__", None)
    if export is None:
        raise NotTriedError("it has no __arrow_c_array__")
    capsules = export()
    names = [name_of(capsule) for capsule in capsules]
    expect(names == [b"arrow_schema", b"arrow_array"], f"the capsules are named {names}")
    # What is wrong with their destructors ends the process.
    for _ in range(10):
        export()
    del capsules
    gc.collect()
