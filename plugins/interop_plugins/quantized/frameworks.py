"""Functions of NumPy, torch and CuPy that the arithmetic needs beside the arrays' operators."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, NamedTuple

from interop.kit import parallel_for

if TYPE_CHECKING:
    from typing import Any, TypeAlias

    import torch
    from numpy.typing import NDArray

    #: An array of NumPy, torch or CuPy.
    Array: TypeAlias = Any

DTYPES = frozenset({"float16", "bfloat16", "float32", "float64"})
NUMPY_DTYPES = DTYPES - {"bfloat16"}

#: Elements that are dequantized at a time: of NumPy what fits the caches twice. torch divides each
#: operation among threads, and waiting for all of them has to be worth while.
_PIECE, _THREADED_PIECE, _DEVICE_PIECE = 2**18, 2**22, 2**26


def dtype_name(part: Array) -> str:
    """Return the name of the dtype of an array."""
    return _name(part.dtype)


@lru_cache(maxsize=256)
def _name(dtype: object) -> str:
    """Return the name of a dtype; NumPy takes as long for it as for small arithmetic."""
    return str(dtype).removeprefix("torch.")


class Framework(NamedTuple):
    """Functions of one framework, and how it computes on large arrays."""

    empty: Callable[[tuple[int, ...], str], Array]
    arange: Callable[..., Array]
    view: Callable[[Array, str], Array]
    look_up: Callable[[tuple[float, ...], Array], Array]
    piece: int
    parallel_for: Callable[[Callable[[int, int], None], int, int], None]


def numpy_framework() -> Framework:
    """Return the functions of NumPy."""
    import numpy as np

    look_up = partial(_look_up, np)
    return Framework(empty_numpy, np.arange, _view, look_up, _PIECE, _among_threads)


def torch_framework(device: torch.device) -> Framework:
    """Return the functions of torch for the tensors of a device."""
    import torch

    def empty(shape: tuple[int, ...], name: str) -> Array:
        return torch.empty(shape, dtype=getattr(torch, name), device=device)

    def view(tensor: Array, name: str) -> Array:
        return tensor.view(getattr(torch, name))

    def look_up(table: tuple[float, ...], indices: Array) -> Array:
        return torch.tensor(table, dtype=torch.float32, device=device)[indices.long()]

    arange = partial(torch.arange, device=device)
    if device.type == "cpu":
        return Framework(_empty_torch, arange, view, look_up, _THREADED_PIECE, _in_one_go)
    return Framework(empty, arange, view, look_up, _DEVICE_PIECE, _in_one_go)


def cupy_framework() -> Framework:
    """Return the functions of CuPy for the arrays of the current device."""
    import cupy

    look_up = partial(_look_up, cupy)
    return Framework(cupy.empty, cupy.arange, _view, look_up, _DEVICE_PIECE, _in_one_go)


def _view(array: Array, name: str) -> Array:
    return array.view(name)


def _look_up(xp: Any, table: tuple[float, ...], indices: Array) -> Array:
    return xp.asarray(table, "float32")[indices]


def _in_one_go(work: Callable[[int, int], None], count: int, nbytes: int) -> None:
    """Do all of the work in this thread, because the framework has threads of its own."""
    work(0, count)


def _among_threads(work: Callable[[int, int], None], count: int, nbytes: int) -> None:
    """Divide the work among threads, each of which has its own state of NumPy's errors."""
    import numpy as np

    def silently(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            work(start, stop)

    parallel_for(silently, count, nbytes)


def empty_numpy(shape: tuple[int, ...], dtype: str) -> NDArray[Any]:
    """Return an empty NumPy array of a floating-point dtype, bfloat16 included."""
    import numpy as np

    if dtype != "bfloat16":
        return np.empty(shape, dtype)
    import ml_dtypes

    return np.empty(shape, ml_dtypes.bfloat16)


def _empty_torch(shape: tuple[int, ...], dtype: str) -> torch.Tensor:
    """Return an empty tensor in memory from NumPy, which uses huge pages for large arrays."""
    import torch

    if dtype != "bfloat16":
        return torch.from_numpy(empty_numpy(shape, dtype))
    return torch.empty(shape, dtype=getattr(torch, dtype), device="cpu")
