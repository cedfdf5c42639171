"""Checks of what else an array offers: an array interface, a buffer, Arrow's capsules.

They are run on the arrays of a library whose DLPack is looked at; what an array does not offer is
not tried.
"""

from __future__ import annotations

import gc
from functools import partial
from typing import Any

from interop.testing._memory import overwrite_freed
from interop.testing._sample import NoSample
from interop.testing._table import INTERFACE

from .capsule import name_of
from .library import compare
from .producer import CASES, Produced
from .rules import expect, rule

_BUFFER = "Python/C API, the buffer protocol"

_rule = partial(rule, INTERFACE)


class Offered(Produced):
    """An array of a library, whether or not it has ``__dlpack__``."""

    def _exports(self) -> None:
        """Take any array."""

    def interface(self) -> dict[str, Any]:
        """Return the array's ``__array_interface__``."""
        try:
            interface: dict[str, Any] = self.value.__array_interface__
        except AttributeError as error:
            raise NoSample("it has no __array_interface__") from error
        expect(isinstance(interface, dict), f"it is {type(interface).__name__}, not a dict")
        return interface

    def view(self) -> memoryview:
        """Return a view of the array's buffer."""
        try:
            return memoryview(self.value)
        except (TypeError, BufferError, ValueError) as error:
            raise NoSample(f"it has no buffer: {error}") from error


@_rule(
    "Shape, typestr and numbers are those of the array",
    "NumPy, the array interface protocol, version 3",
    *CASES,
)
def _array_interface(case: Offered) -> None:
    import numpy as np

    interface = case.interface()
    missing = {"shape", "typestr", "version"} - interface.keys()
    expect(not missing, f"it lacks {sorted(missing)}")
    typestr = interface["typestr"]
    if typestr[1] == "V" or typestr[1:] == "f1":  # NumPy's for what is of another package
        raise NoSample(f"the typestr {typestr!r} names no numbers")
    compare(np.asarray(_Interface(interface, case.value)), case.expected)


class _Interface:
    """An object that has the interface of another, and keeps it."""

    def __init__(self, interface: dict[str, Any], owner: Any) -> None:
        self.__array_interface__, self._owner = interface, owner


@_rule("Shape, format and numbers of the buffer are those of the array", _BUFFER, *CASES)
def _buffer(case: Offered) -> None:
    import numpy as np

    view = case.view()
    expect(view.shape == case.expected.shape, f"the shape is {view.shape}")
    try:
        numbers = np.asarray(view)
    except (ValueError, NotImplementedError, RuntimeError) as error:
        raise NoSample(f"NumPy does not know the format {view.format!r}") from error
    compare(numbers, case.expected)


@_rule("The buffer's memory stays as it is while a view lives", _BUFFER)
def _buffer_outlives_the_array(case: Offered) -> None:
    view = case.view()
    before = bytes(view)
    case.value = None
    filler = overwrite_freed(view.nbytes)
    expect(bytes(view) == before, "the bytes have changed")
    del filler


@_rule("Memory that may not be written has a read-only buffer", _BUFFER)
def _read_only_buffer(case: Offered) -> None:
    import numpy as np

    address = case.lock()
    view = case.view()
    if np.asarray(view).ctypes.data != address:
        raise NoSample("the library copies an array that may not be written")
    expect(view.readonly, "the buffer of a read-only array may be written")


@_rule(
    "An array answers with a schema and an array; unused, they are released",
    "Arrow PyCapsule interface",
)
def _arrow(case: Offered) -> None:
    export = getattr(case.value, "__arrow_c_array__", None)
    if export is None:
        raise NoSample("it has no __arrow_c_array__")
    capsules = export()
    names = [name_of(capsule) for capsule in capsules]
    expect(names == [b"arrow_schema", b"arrow_array"], f"the capsules are named {names}")
    # What is wrong with their destructors ends the process.
    for _ in range(10):
        export()
    del capsules
    gc.collect()
