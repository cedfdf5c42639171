"""Owners of memory that is lent, which take it back while a result lives, in a program of its own.

Every case is written to standard error before it is tried, so that the last line names the one that ended the process.
An owner that knows to whom it has lent refuses to take its memory back (BufferError); one that need not ask anybody,
since its memory was copied, gets it back at once. Either way the result has its numbers.
"""

from __future__ import annotations

import array
import collections
import ctypes
import gc
import io
import json
import mmap
import pickle
import re
import sys
import threading
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from multiprocessing.shared_memory import SharedMemory
from typing import Any, NamedTuple

import numpy as np

import interop
from interop.errors import HandOffError, InteropError
from tests.properties.fuzz import Answer, Array, Liar, read, tell

LENGTH = 2**13
NUMBERS = np.arange(LENGTH, dtype="float32") + 0.5
#: What the owners of the second part hold in every byte, however long they are at the moment.
BYTE = 7


class Loan(NamedTuple):
    """A value, and what takes its memory back; that raises an error as long as it is lent."""

    value: Any
    take_back: Callable[[], object]


class ShowsDlpack(Liar):
    """A value that shows its array by DLPack alone."""

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return 1, 0


class ShowsArrow(Liar):
    """A value that exports its array by Arrow's interface alone."""

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.array.__arrow_c_array__(requested_schema)


class StreamsArrow(Liar):
    """A value that streams its chunks by Arrow's interface alone."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        import pyarrow as pa

        return pa.chunked_array([self.array]).__arrow_c_stream__(requested_schema)


class OwnBuffer(bytearray):
    """A buffer whose interface gives no other."""

    __array_interface__ = property(lambda self: interface(None))  # type: ignore[assignment]


def interface(data: object) -> dict[str, Any]:
    """Return the array interface of the numbers in a buffer."""
    return {"version": 3, "shape": (LENGTH,), "typestr": "<f4", "data": data}


def _mapping() -> mmap.mmap:
    mapping = mmap.mmap(-1, NUMBERS.nbytes)
    mapping[:] = NUMBERS.tobytes()
    return mapping


def of_bytearray(show: Callable[[bytearray], Any]) -> Callable[[], Loan]:
    """Return what lends the memory of a bytearray, shown in some way."""

    def lend() -> Loan:
        owner = bytearray(NUMBERS.tobytes())
        return Loan(show(owner), owner.clear)

    return lend


def of_mapping(show: Callable[[mmap.mmap], Any]) -> Callable[[], Loan]:
    """Return what lends the memory of a mapping, shown in some way."""

    def lend() -> Loan:
        owner = _mapping()
        return Loan(show(owner), owner.close)

    return lend


def _of_own_interface() -> Loan:
    owner = OwnBuffer(NUMBERS.tobytes())
    return Loan(owner, owner.clear)


def _of_array() -> Loan:
    owner = array.array("f", NUMBERS.tolist())
    return Loan(owner, lambda: owner.__delitem__(slice(None)))


def _of_bytes_io() -> Loan:
    owner = io.BytesIO(NUMBERS.tobytes())
    return Loan(owner.getbuffer().cast("f"), owner.close)


def _of_view() -> Loan:
    owner = bytearray(NUMBERS.tobytes())
    view = memoryview(owner).cast("f")

    def take_back() -> None:
        view.release()
        owner.clear()

    return Loan(view, take_back)


def _of_shared_memory() -> Loan:
    owner = SharedMemory(create=True, size=NUMBERS.nbytes)
    owner.unlink()
    owner.buf[: NUMBERS.nbytes] = NUMBERS.tobytes()
    return Loan(owner.buf[: NUMBERS.nbytes].cast("f"), owner.close)


def _resized_array() -> Loan:
    owner = NUMBERS.copy()
    return Loan(owner, lambda: owner.resize(0))


def _moved_mapping() -> Loan:
    owner = _mapping()
    return Loan(Array(interface=interface(owner)), lambda: owner.resize(16 * NUMBERS.nbytes))


def _arrow(owner: Any) -> Any:
    import pyarrow as pa

    return pa.Array.from_buffers(pa.float32(), LENGTH, [None, pa.py_buffer(owner)])


def _in(name: str) -> Callable[[Any], Any]:
    """Return what puts the memory of a buffer into a value of a format, if that can share it."""
    return lambda owner: interop.convert(np.frombuffer(owner, "<f4"), to=name)


def _rows(owner: Any) -> Any:
    from scipy.sparse import csr_array

    numbers = np.frombuffer(owner, "<f4")
    return csr_array((numbers, np.arange(LENGTH), [0, LENGTH]), shape=(1, LENGTH))


def _columns(owner: Any) -> Any:
    import pandas as pd

    return pd.DataFrame(np.frombuffer(owner, "<f4").reshape(-1, 2), columns=["a", "b"], copy=False)


#: Those of the standard library and of the protocols.
PLAIN: dict[str, Callable[[], Loan]] = {
    "bytearray": of_bytearray(lambda owner: owner),
    "mapping": of_mapping(lambda owner: owner),
    "array.array": _of_array,
    "bytes_io": _of_bytes_io,
    "view": _of_view,
    "view of mapping": of_mapping(lambda owner: memoryview(owner).cast("f")),
    "shared memory": _of_shared_memory,
    "pickle buffer": of_bytearray(pickle.PickleBuffer),
    "ctypes": of_bytearray((ctypes.c_float * LENGTH).from_buffer),
    "array": _resized_array,
    "moved mapping": _moved_mapping,
    "interface of mapping": of_mapping(lambda owner: Array(interface=interface(owner))),
    "interface of bytearray": of_bytearray(lambda owner: Array(interface=interface(owner))),
    "interface of view": of_bytearray(lambda owner: Array(interface=interface(memoryview(owner)))),
    "own interface": _of_own_interface,
    "answer": of_bytearray(lambda owner: Answer(answer=np.frombuffer(owner, "<f4"))),
    "dlpack": of_mapping(lambda owner: ShowsDlpack(array=np.frombuffer(owner, "<f4"))),
}

#: Those that lie in a framework's array.
WRAPPED: dict[str, Callable[[], Loan]] = {
    **{
        name: of_mapping(_in(name))
        for name in (
            *("torch", "jax", "mlx", "pandas.series", "xarray", "dask", "awkward"),
            *("polars.series", "pyarrow.tensor", "tensorflow"),
        )
    },
    "pandas": of_mapping(_columns),
    "scipy": of_mapping(_rows),
    "pyarrow": of_bytearray(_arrow),
    "pyarrow by array": of_mapping(lambda owner: ShowsArrow(array=_arrow(owner))),
    "pyarrow by stream": of_mapping(lambda owner: StreamsArrow(array=_arrow(owner))),
}

#: Why an owner does not get its memory back: it was asked by one of Python's, of NumPy's.
LENT = (BufferError, ValueError)


def take_back(lend: Callable[[], Loan], target: str, *, copy: bool | None) -> str:
    """Convert what an owner lends, let it take its memory back, and read the result."""
    try:
        value, retake = lend()
        result = interop.convert(value, to=target, copy=copy)
    except InteropError as error:
        return f"refused ({type(error).__name__})"
    del value
    fate = "lent" if _is_lent(retake, again=copy or target == "python") else "returned"
    assert fate == "returned" or not (copy or target == "python"), "the memory of a copy is lent"
    rubbish = [bytearray(b"\xff" * NUMBERS.nbytes) for _ in range(4)]
    numbers = read(result.toarray() if hasattr(result, "toarray") else result)
    # The memory of some owners is bytes, and not numbers.
    expected = NUMBERS if numbers.dtype.kind == "f" else NUMBERS.view("u1")
    assert np.array_equal(numbers.reshape(-1), expected), f"the numbers are gone: {numbers}"
    del result, numbers, rubbish
    is_lent = fate == "lent" and _is_lent(retake, again=True)
    assert not is_lent, "the memory is lent although nobody has it"
    return fate


def _is_lent(retake: Callable[[], object], *, again: bool = False) -> bool:
    """Tell whether an owner does not get its memory back, even once all circles are collected."""
    try:
        retake()
    except LENT:
        if not again:
            return True
        gc.collect()
        return _is_lent(retake)
    return False


# ---------------------------------------------------------------------- during a conversion


def _shrink(owner: Any) -> None:
    del owner[len(owner) // 2 :]


def _grow(owner: Any) -> None:
    owner.extend(bytes([BYTE]) * (2**16 - len(owner)))


def _of_seven(data: Any, length: int) -> dict[str, Any]:
    return {"version": 3, "shape": (length,), "typestr": "|u1", "data": data}


#: How an owner whose length changes all the time is shown.
SHOWN: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda owner: owner,
    "interface": lambda owner: Array(interface=_of_seven(owner, 2**16)),
    "short interface": lambda owner: Array(interface=_of_seven(owner, 2**10)),
    "answer": lambda owner: Answer(answer=np.frombuffer(owner, "u1")),
    "dlpack": lambda owner: ShowsDlpack(array=np.frombuffer(owner, "u1")),
}


def change(kind: str, target: str, *, copy: bool | None, seconds: float) -> dict[str, int]:
    """Convert what an owner shows while a thread of its own changes how long it is."""
    owner: Any = bytearray() if kind != "array.array" else array.array("B")
    _grow(owner)
    ends, outcomes = threading.Event(), collections.Counter[str]()

    def keep_changing() -> None:
        while not ends.is_set():
            for act in (_shrink, _grow):
                try:
                    act(owner)
                    outcomes["changed"] += 1
                except BufferError:
                    outcomes["lent"] += 1
            bytearray(b"\xff" * 2**15)

    thread = threading.Thread(target=keep_changing)
    thread.start()
    until = time.monotonic() + seconds
    try:
        while time.monotonic() < until:
            for how, show in SHOWN.items():
                tell("change", kind, how, target, copy)
                try:
                    result = interop.convert(show(owner), to=target, copy=copy)
                except HandOffError:
                    outcomes["refused"] += 1
                    continue
                assert (read(result) == BYTE).all(), f"{how}: {read(result)}"
                outcomes["right"] += 1
                del result
    finally:
        ends.set()
        thread.join()
    return dict(outcomes)


def main(lenders: str, targets: str, seconds: float) -> None:
    """Try owners of some kinds with some targets, and print what has become of them."""
    warnings.simplefilter("ignore")
    fates: dict[str, Any] = {}
    cases = PLAIN if lenders == "plain" else PLAIN | _installed(WRAPPED)
    for target in targets.split(","):
        for name, lend in cases.items():
            for copy in (None, None, True):  # cold and warm
                tell("take back", name, target, copy)
                fates[f"{name} to {target}, copy={copy}"] = take_back(lend, target, copy=copy)
        for kind in ("bytearray", "array.array") if seconds else ():
            for copy in (None, True):
                fate = change(kind, target, copy=copy, seconds=seconds)
                fates[f"{kind} changed, to {target}, copy={copy}"] = fate
    print(json.dumps(fates))


def _installed(lenders: dict[str, Callable[[], Loan]]) -> dict[str, Callable[[], Loan]]:
    return {name: lend for name, lend in lenders.items() if find_spec(re.split("[. ]", name)[0])}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
