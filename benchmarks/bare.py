"""The barest front: functions that look up a statement, and look at nothing else.

They take about the least time that a front in Python can take. Their results are wrong for values
that are not plain: tensors in a graph, conjugates, arrays that are read-only, and so on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import torch

__all__ = ["coo", "names"]


def coo(csr: scipy.sparse.csr_array) -> torch.Tensor:
    """Return a COO tensor of a CSR matrix, by code that a user would write."""
    matrix = csr.tocoo()
    return torch.sparse_coo_tensor(
        np.vstack(matrix.coords),
        matrix.data,
        matrix.shape,
        check_invariants=False,
        is_coalesced=True,
    )


def _numpy(t: torch.Tensor) -> np.ndarray[Any, Any]:
    return t.numpy()


def _double(t: torch.Tensor) -> np.ndarray[Any, Any]:
    return t.numpy().astype("f8")


_SHARED: dict[type, Any] = {
    torch.Tensor: _numpy,
    list: np.asarray,
    float: np.asarray,
    scipy.sparse.csr_array: scipy.sparse.csr_array.toarray,
}
#: What to call, by what a call says beside its value, and by the type of the value.
_STATEMENTS: dict[object, dict[type, Any]] = {
    "numpy": _SHARED,
    "python": {np.ndarray: np.ndarray.tolist},
    "torch.sparse_coo": {scipy.sparse.csr_array: coo},
    ("numpy", "copy", True): {torch.Tensor: lambda t: t.numpy().copy()},
    ("numpy", "copy", False): _SHARED,
    ("numpy", "dtype", "float64"): {torch.Tensor: _double},
    ("numpy", "dtype", "float32"): _SHARED,
    ("torch", "device", "cpu"): {np.ndarray: torch.from_numpy},
    ("like", torch.Tensor): {np.ndarray: torch.from_numpy},
}


def _convert(x: Any, /, to: Any = None, **keywords: Any) -> Any:
    key = to
    for name, word in keywords.items():
        if name == "out":
            np.copyto(word, x.numpy())
            return word
        key = (name, type(word)) if name == "like" else (to, name, word)
    return _STATEMENTS[key][type(x)](x)


def _converter(statements: dict[type, Any]) -> Callable[[Any], Any]:
    def converted(x: Any) -> Any:
        return statements[type(x)](x)

    return converted


def _tree(tree: Any, to: str) -> Any:
    statements = _STATEMENTS[to]
    if type(tree) is dict:
        return {name: statements[type(x)](x) for name, x in tree.items()}
    return tuple([statements[type(x)](x) for x in tree])


def _accepts(function: Callable[..., Any]) -> Callable[..., Any]:
    ways = {torch.Tensor: (_numpy, torch.from_numpy), np.ndarray: (None, None)}

    def accepted(*args: Any, **kwargs: Any) -> Any:
        there, back = ways[type(args[0])]
        if there is None or back is None:
            return function(*args, **kwargs)
        return back(function(there(args[0]), *args[1:], **kwargs))

    return accepted


def names(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the functions of the front, by the names that calls use for them.

    Parameters
    ----------
    function : callable
        Takes a NumPy array; the front's `kept` makes it take tensors as well.
    """
    return {
        "convert": _convert,
        "bare_cast": _converter(_STATEMENTS["numpy", "dtype", "float64"]),
        "bare_shared": _converter(_SHARED),
        "convert_tree": _tree,
        "kept": _accepts(function),
    }
