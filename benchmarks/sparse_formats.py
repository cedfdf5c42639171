"""Sparse formats: every pair of sparseconverter's formats, side by side.

Formats on a device are included if there is one.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection
from timeit import Timer
from typing import Any

import numpy as np
import scipy.sparse

import interop
from interop.errors import InteropError

from .gpu import missing
from .table import Cell, Line, Listing, Result, Table
from .timing import compare, small

__all__ = ["tables"]

#: sparseconverter's names of its formats. All but "numpy" and "cupy" are the names of the types.
_FORMATS = (
    "numpy",
    "scipy.sparse.coo_array",
    "scipy.sparse.csr_array",
    "scipy.sparse.csc_array",
    "scipy.sparse.coo_matrix",
    "scipy.sparse.csr_matrix",
    "scipy.sparse.csc_matrix",
    "sparse.COO",
    "sparse.GCXS",
    "sparse.DOK",
    "numpy.matrix",
)
_ON_DEVICE = (
    "cupy",
    "cupyx.scipy.sparse.coo_matrix",
    "cupyx.scipy.sparse.csr_matrix",
    "cupyx.scipy.sparse.csc_matrix",
)
_TITLE = "dense and sparse formats, 1000×1000, 1 % stored, against sparseconverter"
_NOTE = (
    "A line for each source, a column for each target, each asked for by its type. Results are "
    "compared with the dense original first. `interop: no target` is a type that interop has no "
    "format for. Of sparseconverter's 16 formats `cuda` is left out, being NumPy's array by "
    "another name"
)
_HERE = {True: ".", False: ", and so are the four of CuPy, for which there is no device here."}


def _type(name: str) -> type:
    """Return the type that a name stands for."""
    module, _, kind = ("numpy.ndarray" if name == "numpy" else name).rpartition(".")
    if name == "cupy":
        module, kind = "cupy", "ndarray"
    __import__(module)
    class_: type = getattr(sys.modules[module], kind)
    return class_


def _short(name: str) -> str:
    """Return a format's name with a shorter module name, for the heads of the table."""
    return name.replace("cupyx.scipy.sparse.", "cupy ").replace("scipy.sparse.", "scipy ")


def _dense(x: Any) -> np.ndarray[Any, Any]:
    if hasattr(x, "get") and type(x).__module__.startswith("cupy"):
        x = x.get()
    return np.asarray(x.todense() if hasattr(x, "todense") else x)


def _right(result: Any, kind: type, dense: np.ndarray[Any, Any]) -> str:
    """Say what is wrong with a result; "" if it is right."""
    if type(result) is not kind:
        return f"gives a {type(result).__name__}"
    return "" if np.array_equal(_dense(result), dense) else "wrong numbers"


def _ours(x: Any, kind: type, dense: np.ndarray[Any, Any]) -> str:
    try:
        return _right(interop.convert(x, to=kind), kind, dense)
    except interop.errors.UnknownTargetError:
        return "no target"
    except InteropError:
        return "refuses"


def _theirs(x: Any, target: str, dense: np.ndarray[Any, Any]) -> str:
    from sparseconverter import for_backend

    try:
        return _right(for_backend(x, target), _type(target), dense)
    # It may raise anything: the finding is that it gives no result.
    except Exception:  # noqa: BLE001
        return "refuses"


def _cell(x: Any, target: str, dense: np.ndarray[Any, Any], rounds: int) -> Cell:
    from sparseconverter import for_backend

    ours, theirs = _ours(x, _type(target), dense), _theirs(x, target, dense)
    if ours or theirs:
        who = f"interop: {ours}" if ours else ""
        return Cell(f"→ {_short(target)}", "; ".join(text for text in (who, theirs) if text))
    names = {"convert": interop.convert, "for_backend": for_backend, "x": x}
    row = compare(
        f"→ {_short(target)}",
        _timer("convert(x, to=to)", {**names, "to": _type(target)}),
        _timer("for_backend(x, to)", {**names, "to": target}),
        rounds=rounds,
        budget=0.002,
    )
    return Cell(row.name, "", row.theirs, row.ratio, row.spread)


def _timer(statement: str, names: dict[str, Any]) -> Timer:
    if missing():
        return small(statement, names)
    import cupy

    wait = cupy.cuda.get_current_stream().synchronize
    return Timer(f"{statement}; wait()", globals={**names, "wait": wait})


def _formats() -> tuple[str, ...]:
    return _FORMATS if missing() else _FORMATS + _ON_DEVICE


def _line(source: str, dense: np.ndarray[Any, Any], rounds: int) -> Line:
    from sparseconverter import for_backend

    x = for_backend(dense, source)
    targets = [name for name in _formats() if name != source]
    return Line(_short(source), "", None, tuple(_cell(x, to, dense, rounds) for to in targets))


def tables(only: Collection[str] | None = None, rounds: int = 11) -> list[Result]:
    """Return the matrix of pairs, reduced to the sources in `only` if that is given."""
    try:
        import sparseconverter  # noqa: F401
    except ImportError:
        note = "Left out: sparseconverter is not installed."
        return [Listing("sparse_formats", _TITLE, note)]
    array = scipy.sparse.random_array((1000, 1000), density=0.01, format="csr", rng=0)
    dense = array.toarray()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = [
            _line(name, dense, rounds)
            for name in _formats()
            if only is None or _short(name) in only
        ]
    return [
        Table("sparse_formats", _TITLE, _NOTE + _HERE[not missing()], tuple(lines), times=False)
    ]
